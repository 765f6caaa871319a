//! The state that packets left in a program, as messages between two cores: entries of exact tables, members
//! of groups and registers. What both programs declare in the same way goes over, as when a program takes
//! over within a core; counters and meters begin anew.

use crate::changing::{insert_all, undo};
use crate::granted::{Admitted, Granted, parts};
use bundle::KeyPrefix;
use engine::live::Generation;
use exec::ProgramControl;
use exec::replace::restore;
use ir::replace::{Fate, Replacement};
use ir::{Entry, Match, Program};
use messages::control::{EntryChange, EntryOperation};
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

/// What `control` has done: the entries under these keys that it has inserted and packets have not made
/// theirs, and those that the program began with and that are gone from these tables.
pub(crate) fn done_by_control(
    generation: &Generation,
    held: &[(u32, KeyPrefix)],
    tables: &[u32],
) -> Vec<TakeoverAnswer> {
    let state = &*generation.backend;
    let change = |&(table, key): &(u32, KeyPrefix)| {
        let parts = parts(&generation.program.tables[table as usize], key)?;
        let entry = state.entry(table, &parts, 0)?;
        let stays = state.age_of(table, &parts, 0).is_none();
        let operation = EntryOperation::Insert(entry.value);
        stays.then_some(EntryChange { table, length: key.length(), bits: key.bits(), operation })
    };
    let mut changes: Vec<_> = held.iter().filter_map(change).collect();
    changes.extend(tables.iter().flat_map(|table| removed(generation, *table)));
    changes.chunks(STATE_AT_ONCE).map(|part| TakeoverAnswer::ByControl(part.to_vec())).collect()
}

/// The entries that the program began with and that a table does not have any more.
fn removed(generation: &Generation, table: u32) -> Vec<EntryChange> {
    let Some(declared) = generation.program.tables.get(table as usize) else { return Vec::new() };
    let is_there = |entry: &Entry| generation.backend.entry(table, &entry.key, entry.priority).is_some();
    let gone = declared.entries.iter().filter(|entry| !is_there(entry));
    let change = |entry: &Entry| {
        let (bits, length) = declared.joined_key(&entry.key);
        EntryChange { table, length, bits, operation: EntryOperation::Remove }
    };
    gone.map(change).collect()
}

/// Does what `control` has done in another core to a program that begins with these rights; returns how many
/// of the entries are within the rights and had room. Removed is only what the program began with.
pub(crate) fn take_done(
    generations: &mut [Generation],
    granted: &mut Granted,
    changes: &[EntryChange],
) -> u64 {
    let mut taken = 0;
    for change in changes {
        let admitted = granted.admit_before(change);
        if change.operation == EntryOperation::Remove {
            let of_program = admitted.iter().filter(|change| !granted.holds(change));
            for Admitted { table, entry, .. } in of_program {
                let mut was_there = false;
                for generation in generations.iter_mut() {
                    was_there |= generation.backend.remove(*table, &entry.key, entry.priority);
                }
                taken += u64::from(was_there);
            }
            continue;
        }
        let made: Vec<_> =
            generations.iter_mut().map_while(|generation| insert_all(generation, &admitted).ok()).collect();
        if made.len() == generations.len() {
            granted.made(&admitted);
            taken += admitted.len() as u64;
        } else {
            // All workers have it, or none.
            generations.iter_mut().zip(made).for_each(|(at, made)| undo(at, &admitted, made));
        }
    }
    taken
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
            let cells = (first..=u32::MAX).zip(cells);
            cells.filter(|&(cell, value)| state.write_register(register, cell, value)).count() as u64
        }
        _ => 0,
    }
}

/// Whether there are as many columns as in the table.
fn suits(program: &Program, table: u32, key: &[u128], value: &[u128]) -> bool {
    let table = &program.tables[table as usize];
    table.keys.len() == key.len() && table.values.len() == value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::{Loading, prepare};
    use exec::BackendKind;
    use exec::replace::plan;
    use ir::print::print;
    use lang::pipeline::{CompileOptions, compile};

    const BEFORE: &str = "import std.net.ethernet
reason full \"no room\"
table hosts: exact(mac) -> port { capacity 10k  age 1h  evict lru }
table gone: exact(mac) -> port { capacity 16  age 1h  evict lru }
group near[2]: port { buckets 8  capacity 4 }
register seen[9000]: u16
start decoder d(eth: ethernet) {
    learn hosts[eth.src] = in_port
    learn gone[eth.src] = in_port
    set seen[0] = 1
    insert near[1, in_port] else { drop full }
    multicast near[1]
}";
    const LOADING: Loading = Loading { back_end: BackendKind::Bytecode, workers: 2, ports: 2, seed: 1 };

    fn loaded(text: &str) -> Vec<Generation> {
        let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        prepare(&print(&program), &[], LOADING, 1).expect("it loads").generations
    }

    #[test]
    fn what_packets_left_goes_over_and_what_does_not_fit_stays_behind() {
        let mut before = loaded(BEFORE);
        let state = &mut before[1].backend;
        for host in 0..5000 {
            state
                .learn_until(0, &Entry::exact(&[host], &[1 + host % 2]), 7, 1000 + host as u64)
                .expect("room");
        }
        state.learn(1, &Entry::exact(&[3], &[1]), 7).expect("room");
        state.learn_member(0, 1, &[2]).expect("it fits");
        let mut handover = state.handover().expect("it has state");
        assert!(handover.write_register(0, 8999, 77));
        let mut after = loaded(&BEFORE.replace("gone", "other"));
        let plan = plan(&before[0].program, &after[0].program, &[]).expect("it fits");
        assert!(
            carried(&before[0], 0).iter().all(|part| matches!(part, TakeoverAnswer::Cells { .. })),
            "zeros"
        );
        let taken: u64 =
            carried(&before[1], 1).into_iter().map(|part| take(&mut after, &plan, part, 8)).sum();
        assert_eq!(taken, 5000 + 1 + 9000);
        let (old, new) = (&before[1].backend, &after[1].backend);
        assert_eq!(new.learned(0), old.learned(0));
        let ends = |state: &dyn ProgramControl, host| state.age_of(0, &[Match::Exact(host)], 0);
        assert!((0..5000).all(|host| ends(&**new, host) == ends(&**old, host)));
        assert_eq!((new.learned(1).len(), new.learned_members(0)), (0, old.learned_members(0)));
        assert_eq!(new.register(0), old.register(0));
        assert!(after[0].backend.learned(0).is_empty(), "that of another worker");
    }

    #[test]
    fn what_a_core_cannot_have_is_left_out() {
        let mut after = loaded(BEFORE);
        let plan = plan(&after[0].program, &after[0].program, &[]).expect("it fits");
        let entries = |worker, table, key: &[u128], value: &[u128]| TakeoverAnswer::Entries {
            worker,
            table,
            entries: vec![(key.to_vec(), value.to_vec(), None)],
        };
        let members = |group, member: u128| TakeoverAnswer::Members {
            worker: 0,
            group,
            members: vec![(0, vec![member])],
        };
        let cells = |register, first| TakeoverAnswer::Cells { worker: 0, register, first, cells: vec![1, 1] };
        for part in [
            entries(2, 0, &[1], &[1]),
            entries(0, 9, &[1], &[1]),
            entries(0, 0, &[], &[1]),
            entries(0, 0, &[1], &[]),
            entries(0, 0, &[u128::MAX], &[1]),
            members(7, 1),
            members(0, 9),
            cells(3, 0),
            cells(0, u32::MAX),
            TakeoverAnswer::Yours,
        ] {
            assert_eq!(take(&mut after, &plan, part.clone(), 8), 0, "{part:?}");
        }
        assert!(
            after[0].backend.learned(0).is_empty()
                && after[0].backend.register(0).iter().all(|&cell| cell == 0)
        );
    }
}
