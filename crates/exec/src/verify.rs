//! Checks a program before any back end runs it: the program keeps the rules of the IR and fits into memory.

use crate::errors::LoadError;
use ir::limits::LARGEST_MEMORY;
use ir::{Program, footprint};

/// Makes the checks on which every back end relies.
pub(crate) fn verify(program: &Program) -> Result<(), LoadError> {
    ir::verify::verify(program).map_err(LoadError::Verify)?;
    let footprint = footprint::footprint(program);
    let bytes = footprint::total(&footprint);
    if bytes <= LARGEST_MEMORY {
        return Ok(());
    }
    let largest = footprint.into_iter().max_by_key(|part| part.bytes).unwrap_or_default();
    let cause = format!("with it the program takes {bytes} bytes, and a program may take {LARGEST_MEMORY}");
    Err(LoadError::Memory { name: largest.name, cause })
}
