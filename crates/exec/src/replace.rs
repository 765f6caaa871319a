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
    let Replacement { tables, groups } = replacement(old_program, new_program, discard);
    for (name, fate) in tables.iter().chain(&groups) {
        if let Fate::Misfit { old, new } = fate {
            return Err(ReplaceError::Misfit { name: name.clone(), old: old.clone(), new: new.clone() });
        }
    }
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
