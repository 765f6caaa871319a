//! The control-flow graph of a function: reachable blocks in reverse postorder and the dominator tree.
//!
//! A block dominates another if every path from the entry to the other goes through it. The tree is found
//! with the algorithm of Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a Flowgraph",
//! 1979): number the blocks in depth-first order; the semidominator of a block is the lowest number from
//! which a path over higher numbers leads to it; one pass up and one pass down turn semidominators into
//! immediate dominators. With path compression it takes O(edges × log blocks), whatever the graph.

use crate::Function;

/// Stands for "none" where blocks are numbered.
const NONE: usize = usize::MAX;

/// A step of the walk over the dominator tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The walk comes to a block, after all blocks that dominate it.
    Enter(usize),
    /// All blocks that it dominates are done.
    Leave(usize),
}

/// Paths of a function whose edges all lead to existing blocks. Vectors are indexed by block unless stated.
pub(super) struct Paths {
    /// Blocks each block leads to, in the terminator's order.
    pub(super) successors: Vec<Vec<usize>>,
    /// Reachable blocks, each forward edge leading to the right.
    pub(super) order: Vec<usize>,
    /// Place in `order`; [`usize::MAX`] for blocks that no path leads to.
    pub(super) position: Vec<usize>,
    /// Immediate dominators; the entry's is the entry.
    pub(super) dominator: Vec<usize>,
    /// Depth in the dominator tree.
    pub(super) depth: Vec<usize>,
    /// The dominator tree, depth first, siblings by `position`: all forward predecessors of a block are
    /// entered before it.
    pub(super) walk: Vec<Step>,
    entered: Vec<usize>,
    left: Vec<usize>,
}

impl Paths {
    pub(super) fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        let successors: Vec<Vec<usize>> = (function.blocks.iter())
            .map(|block| block.terminator.targets().iter().map(|target| target.block.0 as usize).collect())
            .collect();
        let search = Search::of(&successors);
        let mut position = vec![NONE; count];
        for (place, &block) in search.order.iter().enumerate() {
            position[block] = place;
        }
        let mut paths = Self {
            dominator: dominators(&successors, &search),
            order: search.order,
            successors,
            position,
            depth: vec![0; count],
            walk: Vec::new(),
            entered: vec![0; count],
            left: vec![0; count],
        };
        paths.plan_walk();
        paths
    }

    pub(super) fn is_reachable(&self, block: usize) -> bool {
        self.position[block] != NONE
    }

    /// True if every path to `below` goes through `above`. Both are reachable.
    pub(super) fn dominates(&self, above: usize, below: usize) -> bool {
        self.entered[above] <= self.entered[below] && self.left[below] <= self.left[above]
    }

    fn plan_walk(&mut self) {
        let mut children = vec![Vec::new(); self.successors.len()];
        for &block in self.order.iter().skip(1) {
            children[self.dominator[block]].push(block);
            self.depth[block] = self.depth[self.dominator[block]] + 1;
        }
        let mut waiting: Vec<Step> =
            self.order.first().map(|&entry| Step::Enter(entry)).into_iter().collect();
        while let Some(step) = waiting.pop() {
            match step {
                Step::Enter(block) => {
                    self.entered[block] = self.walk.len();
                    waiting.push(Step::Leave(block));
                    waiting.extend(children[block].iter().rev().map(|&child| Step::Enter(child)));
                }
                Step::Leave(block) => self.left[block] = self.walk.len(),
            }
            self.walk.push(step);
        }
    }
}

/// A depth-first search from the entry.
struct Search {
    /// Blocks by the number the search gave them.
    found: Vec<usize>,
    /// Numbers by block.
    number: Vec<usize>,
    /// By number: the number of the block it was found from.
    parent: Vec<usize>,
    /// Reverse postorder.
    order: Vec<usize>,
}

impl Search {
    fn of(successors: &[Vec<usize>]) -> Self {
        let mut search = Self {
            found: Vec::new(),
            number: vec![NONE; successors.len()],
            parent: Vec::new(),
            order: Vec::new(),
        };
        if successors.is_empty() {
            return search;
        }
        search.find(0, 0);
        let mut open = vec![(0, 0)];
        while let Some((block, tried)) = open.last_mut() {
            if let Some(&next) = successors[*block].get(*tried) {
                *tried += 1;
                if search.number[next] == NONE {
                    search.find(next, search.number[*block]);
                    open.push((next, 0));
                }
            } else {
                search.order.push(*block);
                open.pop();
            }
        }
        search.order.reverse();
        search
    }

    fn find(&mut self, block: usize, parent: usize) {
        self.number[block] = self.found.len();
        self.found.push(block);
        self.parent.push(parent);
    }
}

/// Immediate dominators by block. Inside, blocks go by their number in the search.
fn dominators(successors: &[Vec<usize>], search: &Search) -> Vec<usize> {
    let count = search.found.len();
    let mut predecessors = vec![Vec::new(); count];
    for (number, &block) in search.found.iter().enumerate() {
        successors[block].iter().for_each(|&next| predecessors[search.number[next]].push(number));
    }
    let mut forest =
        Forest { semi: (0..count).collect(), best: (0..count).collect(), above: vec![NONE; count] };
    let mut dominator = vec![0; count];
    let mut waiting = vec![Vec::new(); count];
    for number in (1..count).rev() {
        for &predecessor in &predecessors[number] {
            let best = forest.lowest(predecessor);
            forest.semi[number] = forest.semi[number].min(forest.semi[best]);
        }
        waiting[forest.semi[number]].push(number);
        let parent = search.parent[number];
        forest.above[number] = parent;
        for below in std::mem::take(&mut waiting[parent]) {
            let best = forest.lowest(below);
            dominator[below] = if forest.semi[best] < forest.semi[below] { best } else { parent };
        }
    }
    for number in 1..count {
        if dominator[number] != forest.semi[number] {
            dominator[number] = dominator[dominator[number]];
        }
    }
    let mut by_block = vec![NONE; successors.len()];
    for (number, &block) in search.found.iter().enumerate() {
        by_block[block] = search.found[dominator[number]];
    }
    by_block
}

/// The part of the search tree that has been linked so far, its paths compressed.
struct Forest {
    semi: Vec<usize>,
    best: Vec<usize>,
    above: Vec<usize>,
}

impl Forest {
    /// Of the linked ancestors of a number and itself, roots left out, the one with the lowest semidominator.
    fn lowest(&mut self, number: usize) -> usize {
        if self.above[number] == NONE {
            return number;
        }
        let mut path = Vec::new();
        let mut at = number;
        while self.above[self.above[at]] != NONE {
            path.push(at);
            at = self.above[at];
        }
        for &below in path.iter().rev() {
            let above = self.above[below];
            if self.semi[self.best[above]] < self.semi[self.best[below]] {
                self.best[below] = self.best[above];
            }
            self.above[below] = self.above[above];
        }
        self.best[number]
    }
}
