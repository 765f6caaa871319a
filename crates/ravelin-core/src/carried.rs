//! The state that packets left in a program, as messages between two cores: entries of exact tables, members
//! of groups and registers. What both programs declare in the same way goes over, as when a program takes
//! over within a core; counters and meters begin anew.

use engine::live::Generation;
use exec::ProgramControl;
use exec::replace::restore;
use ir::replace::{Fate, Replacement};
use ir::{Entry, Match, Program};
use messages::limits::STATE_AT_ONCE;
use messages::takeover::TakeoverAnswer;

/// All of it that one worker has.
pub(crate) fn carried(generation: &Generation, worker: u16) -> Vec<TakeoverAnswer> {
    let (program, state) = (&generation.program, &*generation.backend);
    let mut all = Vec::new();
    for table in 0..program.tables.len() as u32 {
        let entries: Vec<_> =
            state.learned(table).into_iter().filter_map(|entry| told(state, table, entry)).collect();
        let parts = entries.chunks(STATE_AT_ONCE).map(<[_]>::to_vec);
        all.extend(parts.map(|entries| TakeoverAnswer::Entries { worker, table, entries }));
    }
    for group in 0..program.groups.len() as u32 {
        let members = state.learned_members(group);
        let parts = members.chunks(STATE_AT_ONCE).map(<[_]>::to_vec);
        all.extend(parts.map(|members| TakeoverAnswer::Members { worker, group, members }));
    }
    for register in 0..program.registers.len() as u32 {
        let cells = state.register(register);
        let parts = (0..).step_by(STATE_AT_ONCE).zip(cells.chunks(STATE_AT_ONCE));
        all.extend(parts.map(|(first, cells)| TakeoverAnswer::Cells {
            worker,
            register,
            first,
            cells: cells.to_vec(),
        }));
    }
    all
}

/// The columns of an entry, and when it ends by its age.
fn told(state: &dyn ProgramControl, table: u32, entry: Entry) -> Option<(Vec<u128>, Vec<u128>, Option<u64>)> {
    let ends = state.age_of(table, &entry.key, entry.priority).filter(|&ends| ends < u64::MAX);
    let number = |part: Match| if let Match::Exact(number) = part { Some(number) } else { None };
    let key = entry.key.into_iter().map(number).collect::<Option<_>>()?;
    Some((key, entry.value, ends))
}

/// Gives a part of the state to the program that takes over by this plan, at `now` (ns); returns how much of
/// it there was room for. What is not of the plan, or does not suit its place, is left out.
pub(crate) fn take(
    generations: &mut [Generation],
    plan: &Replacement,
    part: TakeoverAnswer,
    now: u64,
) -> u64 {
    let place = |fates: &[(String, Fate)], of: u32| {
        fates.iter().find_map(|(_, fate)| match fate {
            Fate::Kept { old, new } if *old == of => Some(*new),
            _ => None,
        })
    };
    match part {
        TakeoverAnswer::Entries { worker, table, entries } => {
            let (Some(generation), Some(table)) =
                (generations.get_mut(usize::from(worker)), place(&plan.tables, table))
            else {
                return 0;
            };
            let program = generation.program.clone();
            let entries = entries.into_iter().filter(|(key, value, _)| suits(&program, table, key, value));
            let entries = entries.map(|(key, value, ends)| (Entry::exact(&key, &value), ends));
            restore(generation.backend.as_mut(), &program, table, entries, now)
        }
        TakeoverAnswer::Members { worker, group, members } => {
            let (Some(generation), Some(group)) =
                (generations.get_mut(usize::from(worker)), place(&plan.groups, group))
            else {
                return 0;
            };
            let learned = |(index, member): (u32, Vec<u128>)| {
                generation.backend.learn_member(group, index, &member).is_ok()
            };
            members.into_iter().map(learned).filter(|&taken| taken).count() as u64
        }
        TakeoverAnswer::Cells { worker, register, first, cells } => {
            let (Some(generation), Some(register)) =
                (generations.get_mut(usize::from(worker)), place(&plan.registers, register))
            else {
                return 0;
            };
            let Some(mut state) = generation.backend.handover() else { return 0 };
            let count = cells.len() as u64;
            (first..).zip(cells).for_each(|(cell, value)| state.write_register(register, cell, value));
            count
        }
        _ => 0,
    }
}

/// Whether there are as many columns as in the table.
fn suits(program: &Program, table: u32, key: &[u128], value: &[u128]) -> bool {
    let table = &program.tables[table as usize];
    table.keys.len() == key.len() && table.values.len() == value.len()
}
