//! Whether a program decides about packets that the machine sends: it asks for them where packets come.

use super::collect;
use super::facts::Facts;
use super::graph::reach;
use crate::check::hir::{Program, StageId};
use std::collections::BTreeSet;

/// Whether a stage that packets reach asks if the machine has sent the packet. Otherwise packets of the
/// machine leave past the program.
pub fn asks_host(program: &Program) -> bool {
    let facts: Vec<Facts> = program.stages.iter().map(|stage| collect::stage(program, stage)).collect();
    let mut reached: BTreeSet<StageId> = program.start.into_iter().collect();
    reach(&facts, &mut reached, program.start.into_iter().collect());
    reached.iter().any(|stage| facts[stage.0].asks_host)
}
