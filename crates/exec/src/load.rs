//! Loads a program into a back end, after the program was verified.

use crate::backend::Backend;
use crate::bytecode::Bytecode;
use crate::errors::LoadError;
#[cfg(feature = "reference")]
use crate::interpret::Interpreter;
#[cfg(feature = "native")]
use crate::native::Native;
use crate::reports::BackendKind;
use ir::Program;
use std::sync::Arc;

/// Makes a program ready to run.
///
/// `ports` is the number of ports, which are numbered from 1; a `send` to any other port is a drop for
/// [`ir::NO_SUCH_PORT`]. `seed` chooses the tables' hash functions and has no other effect.
pub fn load(
    program: &Program,
    back_end: BackendKind,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Backend>, LoadError> {
    Ok(match back_end {
        #[cfg(feature = "reference")]
        BackendKind::Interpreter => Box::new(Interpreter::new(program, ports, seed)?),
        BackendKind::Bytecode => Box::new(Bytecode::new(program, ports, seed)?),
        #[cfg(feature = "native")]
        BackendKind::Native => Box::new(Native::new(program, ports, seed)?),
    })
}

/// As [`load()`], for a program whose stages may be measured while it runs
/// ([`Inspect::run_measured`](crate::Inspect::run_measured)).
pub fn load_measurable(
    program: &Arc<Program>,
    back_end: BackendKind,
    ports: u16,
    seed: u64,
) -> Result<Box<dyn Backend>, LoadError> {
    match back_end {
        #[cfg(feature = "native")]
        BackendKind::Native => Ok(Box::new(Native::measurable(program.clone(), ports, seed)?)),
        _ => load(program, back_end, ports, seed),
    }
}
