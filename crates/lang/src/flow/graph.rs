//! The stage graph, as lowering uses it.

use super::covering::Covering;
use super::facts::{Facts, Read, Transfer};
use super::gone::Decoded;
use crate::check::hir::{HeaderId, Program, StageId};
use ir::source::Span;
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

/// Adds to a set of stages all to which transfers lead from these.
pub fn reach(facts: &[Facts], reached: &mut BTreeSet<StageId>, mut open: Vec<StageId>) {
    while let Some(stage) = open.pop() {
        let transfers = facts[stage.0].transfers.iter().map(|transfer| transfer.to);
        open.extend(transfers.filter(|to| reached.insert(*to)));
    }
}

/// The shortest path of at least one transfer, through stages that `through` allows.
pub fn path(
    facts: &[Facts],
    from: StageId,
    to: StageId,
    through: impl Fn(StageId) -> bool,
) -> Option<Vec<Transfer>> {
    let edges = |stage: usize| {
        let transfers = facts[stage].transfers.iter();
        let allowed = transfers.filter(|transfer| transfer.to == to || through(transfer.to));
        allowed.map(|transfer| (transfer.to.0, transfer)).collect()
    };
    let way = way(from.0, to.0, edges)?;
    Some(way.into_iter().map(|(_, transfer)| transfer.clone()).collect())
}

/// The edges of the shortest way of at least one edge between two nodes, each with the node that it leads to;
/// `edges` gives the edges of a node.
pub(super) fn way<E>(
    from: usize,
    to: usize,
    edges: impl Fn(usize) -> Vec<(usize, E)>,
) -> Option<Vec<(usize, E)>> {
    // By node: the node before it, and the edge between the two.
    let mut came: BTreeMap<usize, (usize, E)> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for (next, edge) in edges(node) {
            if next == to {
                let (mut way, mut at) = (vec![(to, edge)], node);
                while at != from {
                    let (before, edge) = came.remove(&at)?;
                    way.push((at, edge));
                    at = before;
                }
                way.reverse();
                return Some(way);
            }
            if next != from && !came.contains_key(&next) {
                came.insert(next, (node, edge));
                queue.push_back(next);
            }
        }
    }
    None
}
