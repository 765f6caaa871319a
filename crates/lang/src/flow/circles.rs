//! Circles of stages: the strongly connected components of the stage graph.
//!
//! Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972): a depth-first search numbers
//! the stages and keeps those whose component is still open on a stack; a stage from which no earlier open
//! stage can be reached closes a component. The search keeps its own stack, so that long chains of stages do
//! not use up the thread's.

use super::facts::Facts;
use crate::check::hir::StageId;
use std::collections::BTreeSet;

/// The components in which a stage can be reached again from itself, over stages that `through` allows.
pub(super) fn of(
    facts: &[Facts],
    among: &BTreeSet<StageId>,
    through: impl Fn(StageId) -> bool,
) -> Vec<Vec<StageId>> {
    let mut search = Search {
        number: vec![None; facts.len()],
        lowest: vec![0; facts.len()],
        open: vec![false; facts.len()],
        stack: Vec::new(),
        count: 0,
    };
    let mut circles = Vec::new();
    for &root in among {
        if search.number[root.0].is_some() || !through(root) {
            continue;
        }
        search.enter(root);
        let mut way = vec![(root, 0usize)];
        while let Some((stage, next)) = way.pop() {
            if let Some(transfer) = facts[stage.0].transfers.get(next) {
                way.push((stage, next + 1));
                let to = transfer.to;
                match search.number[to.0] {
                    _ if !through(to) => {}
                    None => {
                        search.enter(to);
                        way.push((to, 0));
                    }
                    Some(number) if search.open[to.0] => {
                        search.lowest[stage.0] = search.lowest[stage.0].min(number);
                    }
                    Some(_) => {}
                }
                continue;
            }
            if let Some(&(caller, _)) = way.last() {
                search.lowest[caller.0] = search.lowest[caller.0].min(search.lowest[stage.0]);
            }
            if search.number[stage.0] == Some(search.lowest[stage.0]) {
                let component = search.close(stage);
                let again = component.len() > 1
                    || facts[stage.0].transfers.iter().any(|transfer| transfer.to == stage);
                if again {
                    circles.push(component);
                }
            }
        }
    }
    circles.sort_by_key(|circle| circle.iter().min().copied());
    circles
}

struct Search {
    /// Order in which the stages were found.
    number: Vec<Option<usize>>,
    /// The earliest open stage that can be reached from each.
    lowest: Vec<usize>,
    open: Vec<bool>,
    stack: Vec<StageId>,
    count: usize,
}

impl Search {
    fn enter(&mut self, stage: StageId) {
        self.number[stage.0] = Some(self.count);
        self.lowest[stage.0] = self.count;
        self.open[stage.0] = true;
        self.stack.push(stage);
        self.count += 1;
    }

    fn close(&mut self, root: StageId) -> Vec<StageId> {
        let mut component = Vec::new();
        while let Some(stage) = self.stack.pop() {
            self.open[stage.0] = false;
            component.push(stage);
            if stage == root {
                break;
            }
        }
        component
    }
}
