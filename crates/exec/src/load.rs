//! From a program to a back end that runs it: the program is verified first.

use crate::backend::{Backend, BackendKind};
use crate::interpret::Interpreter;
use crate::native::Native;
use lang::ir::Program;
use lang::ir::footprint;
use lang::ir::verify::VerifyError;
use lang::limits::LARGEST_MEMORY;
use std::sync::Arc;
use tables::exact::ExactSpecError;

/// Makes a program ready to run.
///
/// `ports` is how many ports there are, numbered from 1; sending to any other is a drop for
/// [`lang::ir::NO_SUCH_PORT`]. `seed` chooses the tables' hash functions and has no other effect.
pub fn load(
    program: &Program,
    back_end: BackendKind,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Backend>, LoadError> {
    Ok(match back_end {
        BackendKind::Interpreter => Box::new(Interpreter::new(program, ports, seed)?),
        BackendKind::Native => Box::new(Native::new(program, ports, seed)?),
    })
}

/// As [`load()`], for a program whose stages somebody may want to measure while it runs
/// ([`Backend::run_measured`]).
pub fn load_measurable(
    program: &Arc<Program>,
    back_end: BackendKind,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Backend>, LoadError> {
    match back_end {
        BackendKind::Interpreter => load(program, back_end, ports, seed),
        BackendKind::Native => Ok(Box::new(Native::measurable(program.clone(), ports, seed)?)),
    }
}

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

/// Checks a program as every back end relies on.
pub(crate) fn verify(program: &Program) -> Result<(), LoadError> {
    lang::ir::verify::verify(program).map_err(LoadError::Verify)?;
    let footprint = footprint::footprint(program);
    if footprint::total(&footprint) <= LARGEST_MEMORY {
        return Ok(());
    }
    let largest = footprint.into_iter().max_by_key(|part| part.bytes).unwrap_or_default();
    let cause = format!(
        "with it the program takes {} bytes, and a program may take {LARGEST_MEMORY}",
        footprint::total(&footprint::footprint(program))
    );
    Err(LoadError::Memory { name: largest.name, cause })
}

fn list(faults: &[VerifyError]) -> String {
    let faults: Vec<String> = faults.iter().map(VerifyError::to_string).collect();
    faults.join("; ")
}
