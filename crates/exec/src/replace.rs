//! Carrying over what packets put into the tables of a program to the one that replaces it.

use crate::processor::{EntryError, Processor};
use lang::ir::Program;
use lang::ir::replace::{Fate, replacement};

/// Why a program does not replace another. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// A table has another shape.
    #[error(
        "table `{table}` has another shape: it held {old}, it would hold {new}; give its entries up by name, or keep its columns"
    )]
    Misfit {
        /// Its name.
        table: String,
        /// Its shape so far.
        old: String,
        /// Its shape from now on.
        new: String,
    },
    /// An entry does not go over.
    #[error("table `{table}`: {cause}")]
    Entry {
        /// Its name.
        table: String,
        /// Why.
        cause: EntryError,
    },
}

/// What went over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Entries by the name of their table.
    pub tables: Vec<(String, u64)>,
}

/// Puts what packets made in the tables of `old` into `new`, a program that has just been loaded, as if they had made it at `now` (ns). Entries of
/// the program text and of the control plane do not go over: those of the new program are its own. `discard` names tables whose
/// entries are given up.
///
/// # Errors
/// A table of both has another shape and is not given up, or the new one has no room; `new` is then of no use and `old` goes on.
pub fn carry_over(
    (old, old_program): (&dyn Processor, &Program),
    (new, new_program): (&mut dyn Processor, &Program),
    discard: &[String],
    now: u64,
) -> Result<Carried, ReplaceError> {
    let fates = replacement(old_program, new_program, discard);
    if let Some((table, Fate::Misfit { old, new })) =
        fates.iter().find(|(_, fate)| matches!(fate, Fate::Misfit { .. }))
    {
        return Err(ReplaceError::Misfit { table: table.clone(), old: old.clone(), new: new.clone() });
    }
    let mut carried = Carried::default();
    for (table, fate) in fates {
        let Fate::Kept { old: from, new: to } = fate else { continue };
        let learned = old.learned(from);
        for entry in &learned {
            let refused = |cause| ReplaceError::Entry { table: table.clone(), cause };
            new.learn(to, entry, now).map_err(refused)?;
        }
        carried.tables.push((table, learned.len() as u64));
    }
    Ok(carried)
}
