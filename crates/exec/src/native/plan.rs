//! The plan with which a program is compiled in addition to its IR, and the second variant of the code, which
//! measures stages and is compiled when it is first needed.
//!
//! Both variants work on the same state: the second one is compiled from the same plan and program as the
//! first, by any thread, and is swapped in for a batch.

use super::call::Code;
use super::compile::Compilation;
use super::early_lookups::{EarlyLookup, early_lookups};
use super::placements::{Placement, placements};
use super::translate::Shared;
use crate::errors::LoadError;
use crate::inspect::{Draft, Measured};
use crate::pack::Packing;
use crate::state::ProgramState;
use crate::state::table_set::{Fast, TablePlace};
use ir::Program;
use std::sync::Arc;

/// What compiled code assumes about the state.
pub(super) struct Plan {
    ports: u16,
    packings: Vec<(Packing, Packing)>,
    marks: Vec<u8>,
    first_cell: Vec<usize>,
    defaults: Vec<bool>,
    places: Vec<TablePlace>,
    /// The placements, by number.
    pub(super) placements: Vec<Placement>,
    /// The early lookups.
    pub(super) lookups: Vec<EarlyLookup>,
}

impl Plan {
    /// For a program with this state.
    pub(super) fn new(program: &Program, ports: u16, state: &ProgramState<Fast>) -> Plan {
        let tables = &state.tables;
        Plan {
            ports,
            packings: tables.shapes.iter().map(|shape| (shape.key.clone(), shape.value.clone())).collect(),
            marks: tables.exact.iter().map(|table| table.spec().marks()).collect(),
            first_cell: state.first_cell.clone(),
            defaults: state.may_default.clone(),
            places: tables.places.clone(),
            placements: placements(program),
            lookups: early_lookups(program, &tables.places),
        }
    }

    /// Compiles the program for which this plan was made; with `measured`, its second variant.
    pub(super) fn compile(
        &self,
        program: &Program,
        measured: bool,
        listing: Option<&mut String>,
    ) -> Result<Compilation, LoadError> {
        let shared = Shared {
            program,
            ports: self.ports,
            packings: &self.packings,
            marks: &self.marks,
            first_cell: &self.first_cell,
            defaults: &self.defaults,
            places: &self.places,
            placements: &self.placements,
            measured,
        };
        super::compile::compile(&shared, &self.lookups, listing)
    }
}

/// The second variant of a program, with the plan by which it was compiled.
pub(super) struct Variant {
    pub(super) plan: Arc<Plan>,
    pub(super) code: Code,
}

/// What is needed to compile the second variant of a program by its plan.
pub(super) fn draft(plan: Arc<Plan>, program: Arc<Program>) -> Draft {
    Draft(Box::new(move || {
        let code = plan.compile(&program, true, None)?.code;
        Ok(Measured(Box::new(Variant { plan, code })))
    }))
}
