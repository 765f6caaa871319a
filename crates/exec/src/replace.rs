//! A program takes over from another one: what packets left in the old one goes over where the new one has
//! the same.
//!
//! Two steps. The first one can fail and can be undone: tables are exchanged or copied, members of groups
//! copied. The second one cannot fail, and is done when it is certain that the old program does not go on:
//! tables that were exchanged take on the capacity and times of the new program, and what is neither table
//! nor group changes its owner.

use crate::backend::Backend;
use crate::errors::EntryError;
use crate::state::handover::{Handover, Pairs, SharedState};
use lang::ir::replace::{Fate, Replacement, replacement};
use lang::ir::{Entry, Program};

/// Why a program does not replace another. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// A table or group has another shape.
    #[error(
        "`{name}` has another shape: it held {old}, it would hold {new}; give up what it held by name, or keep its columns"
    )]
    Misfit {
        /// Its name.
        name: String,
        /// Its shape so far.
        old: String,
        /// Its shape from now on.
        new: String,
    },
    /// An entry or member does not go over.
    #[error("`{name}`: {cause}")]
    Entry {
        /// The name of the table or group.
        name: String,
        /// Why.
        cause: EntryError,
    },
}

/// What went over, and what did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeoverReport {
    /// Entries by the name of their table; in one that changed its owner, also those that have ended and are
    /// still to be taken out.
    pub tables: Vec<(String, u64)>,
    /// Members by the name of their group.
    pub groups: Vec<(String, u64)>,
    /// Entries that have ended since the pool of the new program does not have their item, by the name of
    /// their table.
    pub ended: Vec<(String, u64)>,
    /// What begins anew since its shape is another: word for its kind, name, shape so far, shape from now on.
    pub anew: Vec<(&'static str, String, String, String)>,
    /// Events that were queued or delayed and are given up.
    pub events_given_up: u64,
}

/// Tables that were exchanged while a program took over, so that it can be undone, and what is to follow.
#[derive(Debug, Default)]
#[must_use]
pub struct Exchanged {
    /// Tables by pairs: that of the old program, that of the new one.
    tables: Pairs,
    shared: SharedState,
    /// Tables of the old program whose entries gave their items up, with the pool of the new program.
    given: Pairs,
    /// Tables of the new program whose entries take their items, with the pool.
    taken: Pairs,
}

impl Exchanged {
    /// Gives the tables back: `old` goes on as if nothing had been.
    pub fn undo(self, old: &mut dyn Backend, new: &mut dyn Backend) {
        for (from, to) in self.tables {
            new.exchange_back(to, old.control_mut(), from);
        }
    }

    /// `new` goes on with them, and with all else that both programs remember alike. `old` is not to run any
    /// more. Says how many events are given up.
    pub fn keep(self, old: &mut dyn Backend, new: &mut dyn Backend) -> u64 {
        for (from, to) in self.tables {
            new.settle(to, old.control_mut(), from);
        }
        let items = |of: &dyn Backend, table| -> Vec<Vec<u128>> {
            of.entries(table).into_iter().map(|(entry, _)| entry.value).collect()
        };
        // What has ended gives its items back first: nobody does that for a table that does not go over.
        self.given.iter().for_each(|&(table, _)| old.finish(table));
        let given: Vec<_> = self.given.iter().map(|&(table, pool)| (pool, items(old, table))).collect();
        let taken: Vec<_> = self.taken.iter().map(|&(table, pool)| (pool, items(new, table))).collect();
        let (Some(mut old), Some(mut new)) = (old.handover(), new.handover()) else { return 0 };
        let given_up = new.take_over(&mut old, &self.shared);
        // Where an item is given up by an entry of the old program and held by one of the new, it is held.
        given.into_iter().for_each(|(pool, items)| new.items(pool, false, items.into_iter()));
        taken.into_iter().for_each(|(pool, items)| new.items(pool, true, items.into_iter()));
        given_up
    }
}

/// Gives what packets made in the tables and groups of `old` to `new`, a program that has just been loaded.
/// Tables that both keep in one way and that hold nothing else change their owner as they are, however large,
/// with the times of their entries; `old` has them no more until that is undone. Exact ones do so also where
/// the new program says another capacity, idle time or age, as long as there is room. From others entries are
/// copied as if packets had made them at `now` (ns). Entries and members of the program text and of the
/// control plane do not go over: those of the new program are its own. An entry whose item the pool of the
/// new program does not have ends. Members of groups that both declare alike, and that nobody outside
/// changed, keep their buckets; others share the flows out as ones that join the new program's in ascending
/// order. `discard` names what is given up.
///
/// # Errors
/// A table or group of both has another shape and is not given up, or the new one has no room; `new` is then
/// of no use, and `old` has everything.
pub fn take_over(
    (old, old_program): (&mut dyn Backend, &Program),
    (new, new_program): (&mut dyn Backend, &Program),
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
    let taken = tables((old, old_program), (new, new_program), &plan, now, (&mut report, &mut exchanged))
        .and_then(|()| groups(old, new, &plan, (&mut report, &mut exchanged)));
    match taken {
        Ok(()) => Ok((report, exchanged)),
        Err(error) => {
            exchanged.undo(old, new);
            Err(error)
        }
    }
}

/// Makes a program ready to take over from one whose tables hold so many entries each: for whoever loads it,
/// while the other one runs. Tables of one shape that are not declared alike get their memory.
pub fn make_ready(old: &Program, held: &[u64], (new, new_program): (&mut dyn Backend, &Program)) {
    for (_, fate) in replacement(old, new_program, &[]).tables {
        let Fate::Kept { old: from, new: to } = fate else { continue };
        let lives = |program: &Program, table: u32| {
            let table = &program.tables[table as usize];
            (table.capacity, table.idle, table.age, table.evict, table.entries.is_empty())
        };
        let entries = held.get(from as usize).copied().unwrap_or(0);
        if entries > 0 && lives(old, from) != lives(new_program, to) {
            new.touch(to, entries);
        }
    }
}

/// What becomes of everything: tables and groups all fit or are given up.
fn plan(old: &Program, new: &Program, discard: &[String]) -> Result<Replacement, ReplaceError> {
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

/// What begins anew since its shape is another.
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

/// Tables change their owner or are copied; what their entries hold of pools is put down.
fn tables(
    (old, old_program): (&mut dyn Backend, &Program),
    (new, new_program): (&mut dyn Backend, &Program),
    plan: &Replacement,
    now: u64,
    (report, exchanged): (&mut TakeoverReport, &mut Exchanged),
) -> Result<(), ReplaceError> {
    let pool_of = |program: &Program, table: u32| program.tables[table as usize].releases;
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
        let has_item = |entry: &Entry| {
            pool.is_none_or(|pool| new_program.pools[pool as usize].number(&entry.value).is_some())
        };
        let learned = old.learned(from);
        let (mut entries, mut ended) = (0, 0);
        for entry in &learned {
            if !has_item(entry) {
                ended += 1;
                continue;
            }
            let refused = |cause| ReplaceError::Entry { name: name.clone(), cause };
            new.learn(to, entry, now).map_err(refused)?;
            entries += 1;
        }
        report.tables.push((name.clone(), entries));
        if ended > 0 {
            report.ended.push((name.clone(), ended));
        }
    }
    let is_kept = |table: &u32| exchanged.tables.iter().any(|(from, _)| from == table);
    let is_copied = |table: &u32| !exchanged.tables.iter().any(|(_, to)| to == table);
    let given = (0..old_program.tables.len() as u32).filter(|table| !is_kept(table)).filter_map(|table| {
        let pool = pool_of(old_program, table)?;
        exchanged.shared.pools.iter().find(|(from, _)| *from == pool).map(|(_, to)| (table, *to))
    });
    exchanged.given = given.collect();
    let taken = (0..new_program.tables.len() as u32)
        .filter(is_copied)
        .filter_map(|table| Some((table, pool_of(new_program, table)?)));
    exchanged.taken = taken.collect();
    Ok(())
}

/// Members of groups that do not go over whole are copied.
fn groups(
    old: &mut dyn Backend,
    new: &mut dyn Backend,
    plan: &Replacement,
    (report, exchanged): (&mut TakeoverReport, &mut Exchanged),
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
