//! The takeover: a new program takes over what packets left in the tables and other state of the old one, if
//! both programs declare it in the same way.
//!
//! A takeover has two steps. The first step can fail and can be undone: it exchanges or copies tables, and
//! copies members of groups. The second step cannot fail, and happens when it is certain that the old program
//! does not go on: exchanged tables take on the capacity and times of the new program, and the new program
//! gets the state that is neither table nor group.

use crate::backend::Backend;
use crate::errors::EntryError;
use crate::provision::provide;
use crate::state::handover::{Handover, Pairs, SharedState};
use ir::replace::{Fate, Replacement, replacement};
use ir::{Entry, Program};
use std::collections::HashSet;

/// Why a program cannot take over from another one. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// A table or group has another shape.
    #[error(
        "`{name}` has another shape: it held {old}, it would hold {new}; give up what it held by name, or keep its columns"
    )]
    Misfit {
        /// The name of the table or group.
        name: String,
        /// The shape in the old program.
        old: String,
        /// The shape in the new program.
        new: String,
    },
    /// The new program cannot take over an entry or member.
    #[error("`{name}`: {cause}")]
    Entry {
        /// The name of the table or group.
        name: String,
        /// Why the new program refuses it.
        cause: EntryError,
    },
}

/// What the new program took over, and what it did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeoverReport {
    /// The number of entries taken over, by the name of their table; in an exchanged table, expired entries
    /// count until their memory is reclaimed.
    pub tables: Vec<(String, u64)>,
    /// The number of members taken over, by the name of their group.
    pub groups: Vec<(String, u64)>,
    /// The number of entries that were removed because the pool of the new program does not have their item,
    /// by the name of their table.
    pub ended: Vec<(String, u64)>,
    /// State that begins anew because its shape differs: the word for its kind, its name, the old shape, the
    /// new shape.
    pub anew: Vec<(&'static str, String, String, String)>,
    /// The number of queued and delayed events that are given up.
    pub events_given_up: u64,
}

/// The tables that the first step of a takeover exchanged, so that the exchange can be undone, and the work
/// of the second step.
#[derive(Debug, Default)]
#[must_use]
pub struct Exchanged {
    /// Exchanged tables: number in the old program, number in the new one.
    tables: Pairs,
    shared: SharedState,
    /// Tables of the old program whose entries lose their items, each with the pool of the new program.
    given: Pairs,
    /// Tables of the new program whose entries take items, each with the pool.
    taken: Pairs,
}

impl Exchanged {
    /// Notes the tables that are not exchanged and whose entries hold items of pools.
    fn note_items(&mut self, old: &Program, new: &Program) {
        let is_kept = |table: &u32| self.tables.iter().any(|(from, _)| from == table);
        let is_copied = |table: &u32| !self.tables.iter().any(|(_, to)| to == table);
        let given = (0..old.tables.len() as u32).filter(|table| !is_kept(table)).filter_map(|table| {
            let pool = pool_of(old, table)?;
            self.shared.pools.iter().find(|(from, _)| *from == pool).map(|(_, to)| (table, *to))
        });
        self.given = given.collect();
        let taken = (0..new.tables.len() as u32)
            .filter(is_copied)
            .filter_map(|table| Some((table, pool_of(new, table)?)));
        self.taken = taken.collect();
    }

    /// Undoes the exchange: `old` goes on as if nothing had happened.
    pub fn undo(self, old: &mut dyn Backend, new: &mut dyn Backend) {
        for (from, to) in self.tables {
            new.exchange_back(to, old.control_mut(), from);
        }
    }

    /// The second step: `new` keeps the tables and takes over all other state that both programs declare in
    /// the same way. `old` must not run any more. Returns how many events are given up.
    pub fn keep(self, old: &mut dyn Backend, new: &mut dyn Backend) -> u64 {
        for (from, to) in self.tables {
            new.settle(to, old.control_mut(), from);
        }
        let items = |of: &dyn Backend, table| -> Vec<Vec<u128>> {
            of.entries(table).into_iter().map(|(entry, _)| entry.value).collect()
        };
        // Expired entries give their items back first, since nobody does that later in a table that is not
        // taken over.
        self.given.iter().for_each(|&(table, _)| old.finish(table));
        let given: Vec<_> = self.given.iter().map(|&(table, pool)| (pool, items(old, table))).collect();
        let taken: Vec<_> = self.taken.iter().map(|&(table, pool)| (pool, items(new, table))).collect();
        let (Some(mut old), Some(mut new)) = (old.handover(), new.handover()) else { return 0 };
        let given_up = new.take_over(&mut old, &self.shared);
        // If an entry of the old program gives up an item that an entry of the new program holds, the item
        // stays taken.
        given.into_iter().for_each(|(pool, items)| new.items(pool, false, items.into_iter()));
        taken.into_iter().for_each(|(pool, items)| new.items(pool, true, items.into_iter()));
        given_up
    }
}

/// The first step: gives what packets made in the tables and groups of `old` to `new`, a program that has
/// just been loaded. If both programs represent a table in the same way, and it has only entries that packets
/// made, the tables are exchanged, however large they are; entries keep their times, and `old` does not have
/// them until the exchange is undone. Exact tables are also exchanged if the new program declares another
/// capacity, idle time or age, as long as there is room, unless only the new one raises events for what
/// expires. From other tables, entries are copied as if packets had made them at `now` (ns). Entries and
/// members of the program text and of the control plane are not taken over: the new program has its own. An
/// entry whose item the pool of the new program does not have is removed. Members of a group keep their
/// buckets if both programs declare the group in the same way and the control plane did not change it;
/// otherwise they join the members of the new program in ascending order. `discard` names tables and groups
/// that are given up.
///
/// # Errors
/// A table or group has another shape in the new program and is not given up, or `new` has no room. Then
/// `new` cannot be used, and `old` is unchanged.
pub fn take_over(
    old: &mut dyn Backend,
    old_program: &Program,
    new: &mut dyn Backend,
    new_program: &Program,
    discard: &[String],
    now: u64,
) -> Result<(TakeoverReport, Exchanged), ReplaceError> {
    let plan = plan(old_program, new_program, discard)?;
    let (mut report, mut exchanged) =
        (TakeoverReport { anew: anew(&plan), ..TakeoverReport::default() }, Exchanged::default());
    exchanged.shared = SharedState {
        tables: kept(&plan.tables),
        groups: Vec::new(),
        meters: kept(&plan.meters),
        registers: kept(&plan.registers),
        pools: kept(&plan.pools),
        counters: kept(&plan.counters),
        events: kept(&plan.events),
    };
    let taken = tables(old, new, (old_program, new_program), &plan, now, &mut report, &mut exchanged)
        .and_then(|()| groups(old, new, &plan, &mut report, &mut exchanged));
    match taken {
        Ok(()) => {
            exchanged.note_items(old_program, new_program);
            Ok((report, exchanged))
        }
        Err(error) => {
            exchanged.undo(old, new);
            Err(error)
        }
    }
}

/// Gives entries that packets made in an earlier run to a table of the same shape, as if packets had made
/// them at `now` (ns); one with a time (ns) ends then at the latest. Returns how many it took; an entry is
/// left out where the table has no room for it, or its pool does not have its item.
pub fn restore(
    new: &mut dyn Backend,
    program: &Program,
    table: u32,
    entries: impl Iterator<Item = (Entry, Option<u64>)>,
    now: u64,
) -> u64 {
    let pool = pool_of(program, table);
    let mut taken = 0;
    for (entry, ends) in entries.filter(|(entry, _)| has_item(program, pool, entry)) {
        let learned = match ends {
            Some(ends) => new.learn_until(table, &entry, now, ends),
            None => new.learn(table, &entry, now),
        };
        if learned.is_err() {
            continue;
        }
        taken += 1;
        if let Some((pool, mut handover)) = pool.zip(new.handover()) {
            handover.items(pool, true, std::iter::once(entry.value));
        }
    }
    taken
}

/// Prepares a program to take over from one whose tables have `held` entries each; its loader calls this
/// while the other program runs. Provides the memory of tables that begin anew, as for the first program, and
/// of tables that have the same shape in both programs but are not declared in the same way; of other tables
/// as much as so many bytes hold.
pub fn make_ready(old: &Program, held: &[u64], new: &mut dyn Backend, new_program: &Program, bytes: u64) {
    let mut kept = HashSet::new();
    for (_, fate) in replacement(old, new_program, &[]).tables {
        let Fate::Kept { old: from, new: to } = fate else { continue };
        kept.insert(to);
        let lives = |program: &Program, table: u32| {
            let table = &program.tables[table as usize];
            let times = (table.idle, table.age, table.lifetimes);
            (table.capacity, times, table.evict, table.entries.is_empty())
        };
        let entries = held.get(from as usize).copied().unwrap_or(0);
        if entries > 0 && lives(old, from) != lives(new_program, to) {
            new.touch(to, entries);
        }
    }
    provide(new_program, bytes, new, |table| !kept.contains(&table));
}

/// The plan of a takeover.
///
/// # Errors
/// A table or group has another shape in the new program and is not given up.
pub fn plan(old: &Program, new: &Program, discard: &[String]) -> Result<Replacement, ReplaceError> {
    let plan = replacement(old, new, discard);
    for (name, fate) in plan.tables.iter().chain(&plan.groups) {
        if let Fate::Misfit { old, new } = fate {
            return Err(ReplaceError::Misfit { name: name.clone(), old: old.clone(), new: new.clone() });
        }
    }
    Ok(plan)
}

fn kept(fates: &[(String, Fate)]) -> Pairs {
    let pair = |(_, fate): &(String, Fate)| match fate {
        &Fate::Kept { old, new } => Some((old, new)),
        _ => None,
    };
    fates.iter().filter_map(pair).collect()
}

/// The state that begins anew because its shape differs.
fn anew(plan: &Replacement) -> Vec<(&'static str, String, String, String)> {
    let one = |kind, (name, fate): &(String, Fate)| match fate {
        Fate::Anew { old, new } => Some((kind, name.clone(), old.clone(), new.clone())),
        _ => None,
    };
    plan.kinds()
        .into_iter()
        .flat_map(|(kind, fates)| fates.iter().filter_map(move |fate| one(kind, fate)))
        .collect()
}

/// The pool of which the entries of a table hold items.
fn pool_of(program: &Program, table: u32) -> Option<u32> {
    program.tables[table as usize].releases
}

/// Whether a pool has the item that an entry holds, if it holds one.
fn has_item(program: &Program, pool: Option<u32>, entry: &Entry) -> bool {
    pool.is_none_or(|pool| program.pools[pool as usize].number(&entry.value).is_some())
}

/// Exchanges or copies the tables.
fn tables(
    old: &mut dyn Backend,
    new: &mut dyn Backend,
    (old_program, new_program): (&Program, &Program),
    plan: &Replacement,
    now: u64,
    report: &mut TakeoverReport,
    exchanged: &mut Exchanged,
) -> Result<(), ReplaceError> {
    for (name, fate) in &plan.tables {
        let &Fate::Kept { old: from, new: to } = fate else { continue };
        let pool = pool_of(new_program, to);
        let shared = &exchanged.shared.pools;
        let pool_goes_over = pool.is_none_or(|pool| shared.iter().any(|(_, to)| *to == pool));
        if pool_goes_over && new.exchange(to, old.control_mut(), from) {
            exchanged.tables.push((from, to));
            report.tables.push((name.clone(), new.entries_held(to)));
            continue;
        }
        let learned = old.learned(from);
        let (mut entries, mut ended) = (0, 0);
        for entry in &learned {
            if !has_item(new_program, pool, entry) {
                ended += 1;
                continue;
            }
            let refused = |cause| ReplaceError::Entry { name: name.clone(), cause };
            // What may have a lifetime of its own keeps it.
            match old_program.tables[from as usize].lifetimes.then(|| old.age_of(from, &entry.key, 0)) {
                Some(Some(ends)) => new.learn_until(to, entry, now, ends),
                _ => new.learn(to, entry, now),
            }
            .map_err(refused)?;
            entries += 1;
        }
        report.tables.push((name.clone(), entries));
        if ended > 0 {
            report.ended.push((name.clone(), ended));
        }
    }
    Ok(())
}

/// Copies the members of groups that are not taken over with their buckets.
fn groups(
    old: &mut dyn Backend,
    new: &mut dyn Backend,
    plan: &Replacement,
    report: &mut TakeoverReport,
    exchanged: &mut Exchanged,
) -> Result<(), ReplaceError> {
    for (name, fate) in &plan.groups {
        let &Fate::Kept { old: from, new: to } = fate else { continue };
        let whole = |old: Handover<'_>, new: Handover<'_>| old.memory.group_goes_whole(from, new.memory, to);
        if old.handover().zip(new.handover()).is_some_and(|(old, new)| whole(old, new)) {
            exchanged.shared.groups.push((from, to));
        } else {
            for (index, member) in old.learned_members(from) {
                let refused = |cause| ReplaceError::Entry { name: name.clone(), cause };
                new.learn_member(to, index, &member).map_err(refused)?;
            }
        }
        report.groups.push((name.clone(), old.members_learned(from)));
    }
    Ok(())
}
