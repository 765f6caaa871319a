//! The stage graph, as lowering uses it.

use super::covering::Covering;
use super::facts::{Facts, Read, Transfer};
use super::gone::Decoded;
use crate::check::hir::{HeaderId, Program, StageId};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the graph says, for lowering.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// For every stage, what its body does that matters here.
    pub facts: Vec<Facts>,
    /// Stages in an order in which callers come before those they call, cycles aside; unreachable ones are
    /// left out.
    pub order: Vec<StageId>,
    /// The stage lies on a cycle.
    pub cyclic: Vec<bool>,
    /// Headers decoded whenever the stage is entered.
    pub available: Vec<BTreeSet<HeaderId>>,
    /// The same with what was decoded behind what.
    pub decoded: Vec<Decoded>,
    /// Places in headers that must be handed to the stage.
    pub needs: Vec<BTreeSet<Read>>,
    /// Headers that may have been decoded last when the stage is entered.
    pub last: Vec<BTreeSet<HeaderId>>,
    /// Checksums over payload.
    pub covering: Covering,
    /// By edit, the headers whose lengths it changes.
    pub enclosing: BTreeMap<Span, Vec<HeaderId>>,
    /// By edit, the headers with a pseudo header that what follows is then no longer summed up with.
    pub governing: BTreeMap<Span, Vec<HeaderId>>,
}

impl Flow {
    /// What is decoded wherever a packet is in the stage: the stage's own header, too.
    pub fn decoded_in(&self, program: &Program, stage: StageId) -> Decoded {
        let mut decoded = self.decoded[stage.0].clone();
        program.stages[stage.0].header.into_iter().for_each(|own| decoded.decode(own));
        decoded
    }
}

/// The shortest path of at least one transfer, through stages that `through` allows.
pub fn path(
    facts: &[Facts],
    from: StageId,
    to: StageId,
    through: impl Fn(StageId) -> bool,
) -> Option<Vec<Transfer>> {
    let mut came: Vec<Option<(StageId, usize)>> = vec![None; facts.len()];
    let mut queue = VecDeque::from([from]);
    let mut seen = BTreeSet::new();
    while let Some(stage) = queue.pop_front() {
        for (index, transfer) in facts[stage.0].transfers.iter().enumerate() {
            let arrived = transfer.to == to;
            if !arrived && (!through(transfer.to) || !seen.insert(transfer.to)) {
                continue;
            }
            if arrived {
                let mut steps = vec![transfer.clone()];
                let mut at = stage;
                while at != from {
                    let (before, index) = came[at.0]?;
                    steps.push(facts[before.0].transfers[index].clone());
                    at = before;
                }
                steps.reverse();
                return Some(steps);
            }
            came[transfer.to.0] = Some((stage, index));
            queue.push_back(transfer.to);
        }
    }
    None
}
