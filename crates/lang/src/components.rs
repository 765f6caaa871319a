//! Strongly connected components of a graph: nodes that all lead to each other.
//!
//! Tarjan's algorithm ("Depth-First Search and Linear Graph Algorithms", 1972): a depth-first search numbers
//! the nodes and keeps those whose component is still open on a stack; a node from which no earlier open node
//! can be reached closes a component. The search keeps its own stack, so that long chains of nodes do not use
//! up the thread's.

use std::ops::Range;

/// The components of a graph, each numbered before those that lead to it.
pub(crate) struct Components {
    /// Nodes, component by component.
    pub(crate) members: Vec<usize>,
    /// By component: its part of `members`.
    pub(crate) ranges: Vec<Range<usize>>,
    /// By node: its component, or [`usize::MAX`] if the search did not come to it.
    pub(crate) of_node: Vec<usize>,
}

impl Components {
    /// The components that these nodes lead to; by node, `successors` are the nodes behind it.
    pub(crate) fn of(successors: &[Vec<usize>], roots: impl Iterator<Item = usize>) -> Self {
        const NONE: usize = usize::MAX;
        let count = successors.len();
        let mut components = Self { members: Vec::new(), ranges: Vec::new(), of_node: vec![NONE; count] };
        let mut lowest = vec![NONE; count];
        let mut found = vec![NONE; count];
        let mut stack = Vec::new();
        let mut clock = 0;
        for root in roots {
            let mut open: Vec<(usize, usize)> = Vec::new();
            let mut next = Some(root).filter(|root| found[*root] == NONE);
            loop {
                if let Some(node) = next.take() {
                    (found[node], lowest[node]) = (clock, clock);
                    clock += 1;
                    stack.push(node);
                    open.push((node, 0));
                }
                let Some((node, tried)) = open.last_mut() else { break };
                let node = *node;
                if let Some(&target) = successors[node].get(*tried) {
                    *tried += 1;
                    if found[target] == NONE {
                        next = Some(target);
                    } else if components.of_node[target] == NONE {
                        lowest[node] = lowest[node].min(found[target]);
                    }
                    continue;
                }
                open.pop();
                if let Some((before, _)) = open.last() {
                    lowest[*before] = lowest[*before].min(lowest[node]);
                }
                if lowest[node] == found[node] {
                    let start = components.members.len();
                    while let Some(member) = stack.pop() {
                        components.of_node[member] = components.ranges.len();
                        components.members.push(member);
                        if member == node {
                            break;
                        }
                    }
                    components.ranges.push(start..components.members.len());
                }
            }
        }
        components
    }
}

/// Whether the nodes of a component lead back to themselves.
pub(crate) fn is_circle(successors: &[Vec<usize>], members: &[usize]) -> bool {
    members.len() > 1 || successors[members[0]].contains(&members[0])
}
