//! Whether the rights that a signed policy gives to `control` are rights for its program: a right that means
//! nothing there was meant for something else.

use bundle::TableRight;
use ir::{Program, TableKind};

/// Why a right is none for a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightError {
    /// no such table
    #[error(
        "the policy gives a right for the table `{0}`, which its program does not have: sign one that fits"
    )]
    NoTable(String),
    /// rules, or patterns
    #[error("the policy gives a right for the table `{0}`, whose entries are rules: `control` changes none")]
    Rules(String),
    /// keys of another width
    #[error(
        "the policy gives a right for keys of {found} bits of the table `{table}`, whose keys have {bits}: sign \
         one that fits"
    )]
    Width {
        /// The table.
        table: String,
        /// Bits of its keys.
        bits: u32,
        /// Bits of the keys that the right is for.
        found: u8,
    },
}

/// Whether all rights are for tables of this program.
///
/// # Errors
/// The first one that is not.
pub fn check(program: &Program, rights: &[TableRight]) -> Result<(), RightError> {
    rights.iter().try_for_each(|right| {
        let name = || right.table.clone();
        let table = program.tables.iter().find(|table| table.name == right.table);
        let table = table.ok_or_else(|| RightError::NoTable(name()))?;
        if let TableKind::Rules { .. } | TableKind::Patterns(_) = table.kind {
            return Err(RightError::Rules(name()));
        }
        let bits = table.key_bits();
        match right.prefixes.iter().find(|prefix| u32::from(prefix.width()) != bits) {
            Some(other) => Err(RightError::Width { table: name(), bits, found: other.width() }),
            None => Ok(()),
        }
    })
}
