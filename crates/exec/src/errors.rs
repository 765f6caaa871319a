//! Errors: why a program is not loaded, and why an entry is not put into a table.

use lang::ir::verify::VerifyError;
use tables::exact::ExactSpecError;

/// Why a program cannot be made ready to run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The program breaks a rule of the IR: a defect of the compiler that made it, not of the user's program.
    #[error("the compiled program is not well formed: {}; report this", list(.0))]
    Verify(Vec<VerifyError>),
    /// A key or value takes more words than a table can hold.
    #[error(
        "table `{table}`: its {what} takes {words} words of 64 bits and at most 8 are possible: use fewer or narrower columns"
    )]
    TooWide {
        /// The table.
        table: String,
        /// `key` or `value`.
        what: &'static str,
        /// How many it takes.
        words: usize,
    },
    /// The table library refuses the shape.
    #[error("table `{table}` cannot be made: {cause}")]
    Table {
        /// The table.
        table: String,
        /// Why.
        cause: ExactSpecError,
    },
    /// The table library refuses the shape or an entry.
    #[error("table `{table}` cannot be made: {cause}")]
    Refused {
        /// The table.
        table: String,
        /// Why.
        cause: String,
    },
    /// A meter, register, pool or group cannot be made.
    #[error("`{name}` cannot be made: {cause}")]
    Memory {
        /// Its name.
        name: String,
        /// Why.
        cause: String,
    },
    /// More entries in the program than the table holds.
    #[error("table `{table}` holds {capacity} entries and the program lists more: raise its capacity")]
    TooManyEntries {
        /// The table.
        table: String,
        /// The most entries it holds.
        capacity: u32,
    },
    /// Counters without measure.
    #[error(
        "the counters have {cells} cells together and at most 67,108,864 are possible: declare smaller ones"
    )]
    TooManyCells {
        /// Cells of all counters.
        cells: usize,
    },
    /// A function's values do not fit into the stack that it may have.
    #[error(
        "function `{function}` needs {bytes} bytes of stack as machine code and at most {} are possible: compute values where they are needed, so that fewer wait at once, or use the interpreter",
        lang::limits::LARGEST_FRAME
    )]
    Frame {
        /// The function.
        function: String,
        /// What it needs.
        bytes: u32,
    },
    /// This machine has no code generator.
    #[error("native code cannot be made on this machine: {0}; use the interpreter")]
    Machine(String),
    /// The code generator failed: a defect of this program, not of the user's.
    #[error("function `{function}` could not be compiled: {cause}; use the interpreter and report this")]
    Compile {
        /// The function.
        function: String,
        /// What the code generator says.
        cause: String,
    },
}

/// Why an entry is not put in. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It has other columns than the table, a number that does not fit its column, or a match that tables of
    /// this kind do not have.
    #[error("the entry does not suit the table's columns: compare it with the table's declaration")]
    Key,
    /// No room.
    #[error("the table is full with {capacity} entries: raise its capacity")]
    Full {
        /// The most entries it holds.
        capacity: usize,
    },
    /// The execution has no tables that can be changed from outside.
    #[error("this execution takes no entries from outside")]
    Fixed,
    /// The program never looks for a default entry.
    #[error(
        "the program gives this table no default entry: declare one (`default => …`) to have it replaced"
    )]
    NoDefault,
    /// The table itself refuses it.
    #[error("{0}")]
    Refused(String),
}

fn list(faults: &[VerifyError]) -> String {
    let faults: Vec<String> = faults.iter().map(VerifyError::to_string).collect();
    faults.join("; ")
}
