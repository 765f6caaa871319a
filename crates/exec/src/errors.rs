//! Errors of this crate: why a program is not loaded, and why an entry is not inserted into a table.

use crate::pack::MAX_WORDS;
use ir::Table;
use ir::verify::VerifyError;
use tables::exact::ExactSpecError;

/// Why a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The program breaks a rule of the IR: a defect of the compiler that made it, not of the user's program.
    #[error("the compiled program is not well formed: {}; report this", list(.0))]
    Verify(Vec<VerifyError>),
    /// A key or value needs more words than a table supports.
    #[error(
        "table `{table}`: its {what} takes {words} words of 64 bits and at most {most} are possible: use fewer or narrower columns"
    )]
    TooWide {
        /// The name of the table.
        table: String,
        /// `key` or `value`.
        what: &'static str,
        /// How many words of 64 bits it needs.
        words: usize,
        /// How many there may be.
        most: usize,
    },
    /// The crate `tables` refuses the shape of an exact table.
    #[error("table `{table}` cannot be made: {cause}")]
    Table {
        /// The name of the table.
        table: String,
        /// What the crate `tables` says.
        cause: ExactSpecError,
    },
    /// The crate `tables` refuses the shape of a table of another kind, or one of its entries.
    #[error("table `{table}` cannot be made: {cause}")]
    Refused {
        /// The name of the table.
        table: String,
        /// What the crate `tables` says.
        cause: String,
    },
    /// A meter, register, pool or group cannot be created.
    #[error("`{name}` cannot be made: {cause}")]
    Memory {
        /// The name of its declaration.
        name: String,
        /// What the crate `tables` says.
        cause: String,
    },
    /// The program text has more entries for a table than the table's capacity.
    #[error("table `{table}` holds {capacity} entries and the program lists more: raise its capacity")]
    TooManyEntries {
        /// The name of the table.
        table: String,
        /// The most entries it holds.
        capacity: u32,
    },
    /// The counters of the program have too many cells.
    #[error(
        "the counters have {cells} cells together and at most 67,108,864 are possible: declare smaller ones"
    )]
    TooManyCells {
        /// Cells of all counters.
        cells: usize,
    },
    /// The stack frame of a compiled function is larger than allowed.
    #[error(
        "function `{function}` needs {bytes} bytes of stack as machine code and at most {} are possible: compute values where they are needed, so that fewer wait at once, or use bytecode",
        ir::limits::LARGEST_FRAME
    )]
    Frame {
        /// The function.
        function: String,
        /// The bytes of stack that it needs.
        bytes: u32,
    },
    /// Cranelift cannot generate code for this machine.
    #[error("native code cannot be made on this machine: {0}; use bytecode")]
    Machine(String),
    /// The code generator failed: a defect of Ravelin, not of the user's program.
    #[error("function `{function}` could not be compiled: {cause}; use bytecode and report this")]
    Compile {
        /// The function.
        function: String,
        /// What the code generator says.
        cause: String,
    },
}

impl LoadError {
    /// The error of a table whose key or value has more words than it supports.
    pub(crate) fn too_wide(table: &Table, key: usize, value: usize) -> Option<LoadError> {
        let parts = [("key", key, table.kind.most_key_words()), ("value", value, MAX_WORDS)];
        let (what, words, most) = parts.into_iter().find(|(_, words, most)| words > most)?;
        Some(LoadError::TooWide { table: table.name.clone(), what, words, most })
    }
}

/// Why an entry or member is not inserted. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry has other columns than the table, a number that does not fit its column, or a kind of match
    /// that tables of this kind do not support.
    #[error("the entry does not suit the table's columns: compare it with the table's declaration")]
    Key,
    /// No room.
    #[error("the table is full with {capacity} entries: raise its capacity")]
    Full {
        /// The most entries it holds.
        capacity: usize,
    },
    /// The control plane cannot change the tables of this back end.
    #[error("this execution takes no entries from outside")]
    Fixed,
    /// The program never looks for a default entry.
    #[error(
        "the program gives this table no default entry: declare one (`default => …`) to have it replaced"
    )]
    NoDefault,
    /// The table has no age, so its entries can have no lifetime of their own.
    #[error("entries of this table have no `age`, so none of them can have a lifetime: declare an `age`")]
    Ageless,
    /// The lifetime is nothing, or longer than the table's age.
    #[error("the lifetime of an entry is more than nothing and at most the `age` of its table, {age} ns")]
    Lifetime {
        /// The age of the table, ns.
        age: u64,
    },
    /// The entry would count as learned before time began.
    #[error("an entry that ends so soon needs a table whose `age` is shorter than {age} ns")]
    Early {
        /// The age of the table, ns.
        age: u64,
    },
    /// The table itself refuses it.
    #[error("{0}")]
    Refused(String),
}

fn list(faults: &[VerifyError]) -> String {
    let faults: Vec<String> = faults.iter().map(VerifyError::to_string).collect();
    faults.join("; ")
}
