//! Carrying over what packets put into the tables and groups of a program to the one that replaces it.

use crate::processor::{EntryError, Processor};
use lang::ir::Program;
use lang::ir::replace::{Fate, Replacement, replacement};

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

/// What went over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Entries by the name of their table.
    pub tables: Vec<(String, u64)>,
    /// Members by the name of their group.
    pub groups: Vec<(String, u64)>,
}

/// Tables that were exchanged while a program took over, so that it can be undone.
#[derive(Debug, Default)]
#[must_use]
pub struct Exchanged(Vec<u32>);

impl Exchanged {
    /// Gives the tables back: `old` goes on as if nothing had been.
    pub fn undo(self, old: &mut dyn Processor, new: &mut dyn Processor) {
        for table in self.0 {
            new.exchange(table, old);
        }
    }

    /// `new` goes on with them.
    pub fn keep(self, new: &mut dyn Processor) {
        for table in self.0 {
            new.count_anew(table);
        }
    }
}

/// Gives what packets made in the tables and groups of `old` to `new`, a program that has just been loaded. Tables that both keep in one way and that hold
/// nothing else change their owner as they are, however large, with the times of their entries; `old` has them no more until that is undone. All others
/// are copied as by [`carry_over`].
///
/// # Errors
/// As for [`carry_over`]; `old` has everything then.
pub fn take_over(
    (old, old_program): (&mut dyn Processor, &Program),
    (new, new_program): (&mut dyn Processor, &Program),
    discard: &[String],
    now: u64,
) -> Result<(Carried, Exchanged), ReplaceError> {
    let plan = plan(old_program, new_program, discard)?;
    let (mut carried, mut exchanged) = (Carried::default(), Exchanged::default());
    let copied = plan.tables.into_iter().filter(|(name, fate)| {
        let &Fate::Kept { old: from, new: to } = fate else { return true };
        let given = from == to && new.exchange(to, old);
        if given {
            exchanged.0.push(to);
            let entries = new.tables().get(to as usize).map_or(0, |table| table.entries);
            carried.tables.push((name.clone(), entries));
        }
        !given
    });
    let rest = Replacement { tables: copied.collect(), groups: plan.groups };
    match copy(old, new, rest, now) {
        Ok(copied) => {
            carried.tables.extend(copied.tables);
            carried.groups.extend(copied.groups);
            Ok((carried, exchanged))
        }
        Err(error) => {
            exchanged.undo(old, new);
            Err(error)
        }
    }
}

/// Puts what packets made in the tables and groups of `old` into `new`, a program that has just been loaded, as if they had made it at `now` (ns). Entries
/// and members of the program text and of the control plane do not go over: those of the new program are its own. Members share the flows out as
/// ones that join the new program's in ascending order. `discard` names tables and groups whose contents are given up.
///
/// # Errors
/// A table or group of both has another shape and is not given up, or the new one has no room; `new` is then of no use and `old` goes on.
pub fn carry_over(
    (old, old_program): (&dyn Processor, &Program),
    (new, new_program): (&mut dyn Processor, &Program),
    discard: &[String],
    now: u64,
) -> Result<Carried, ReplaceError> {
    copy(old, new, plan(old_program, new_program, discard)?, now)
}

/// What becomes of every table and group, all of which fit or are given up.
fn plan(old: &Program, new: &Program, discard: &[String]) -> Result<Replacement, ReplaceError> {
    let plan = replacement(old, new, discard);
    for (name, fate) in plan.tables.iter().chain(&plan.groups) {
        if let Fate::Misfit { old, new } = fate {
            return Err(ReplaceError::Misfit { name: name.clone(), old: old.clone(), new: new.clone() });
        }
    }
    Ok(plan)
}

fn copy(
    old: &dyn Processor,
    new: &mut dyn Processor,
    Replacement { tables, groups }: Replacement,
    now: u64,
) -> Result<Carried, ReplaceError> {
    let mut carried = Carried::default();
    for (name, fate) in tables {
        let Fate::Kept { old: from, new: to } = fate else { continue };
        let learned = old.learned(from);
        for entry in &learned {
            let refused = |cause| ReplaceError::Entry { name: name.clone(), cause };
            new.learn(to, entry, now).map_err(refused)?;
        }
        carried.tables.push((name, learned.len() as u64));
    }
    for (name, fate) in groups {
        let Fate::Kept { old: from, new: to } = fate else { continue };
        let learned = old.learned_members(from);
        for (index, member) in &learned {
            let refused = |cause| ReplaceError::Entry { name: name.clone(), cause };
            new.learn_member(to, *index, member).map_err(refused)?;
        }
        carried.groups.push((name, learned.len() as u64));
    }
    Ok(carried)
}
