//! Circles of stages: the strongly connected components of the stage graph.

use super::facts::Facts;
use crate::check::hir::StageId;
use crate::components::{Components, is_circle};
use std::collections::BTreeSet;

/// The components in which a stage can be reached again from itself, over stages that `through` allows.
pub(super) fn of(
    facts: &[Facts],
    among: &BTreeSet<StageId>,
    through: impl Fn(StageId) -> bool,
) -> Vec<Vec<StageId>> {
    let behind = |facts: &Facts| {
        let stages = facts.transfers.iter().map(|transfer| transfer.to);
        stages.filter(|to| through(*to)).map(|to| to.0).collect()
    };
    let successors: Vec<Vec<usize>> = facts.iter().map(behind).collect();
    let roots = among.iter().filter(|stage| through(**stage)).map(|stage| stage.0);
    let components = Components::of(&successors, roots);
    let members = components.ranges.iter().map(|range| &components.members[range.clone()]);
    let circles = members.filter(|members| is_circle(&successors, members));
    let mut circles: Vec<Vec<StageId>> =
        circles.map(|members| members.iter().copied().map(StageId).collect()).collect();
    circles.sort_by_key(|circle| circle.iter().min().copied());
    circles
}
