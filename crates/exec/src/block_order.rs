//! The order in which code is generated for blocks: each block after its predecessors, except for the edges
//! of loops.

use ir::{BlockId, Function};

/// The blocks that can be reached from `from`; the successors of a block where `ends` is true do not count.
/// Each block comes after all blocks that dominate it: reverse postorder, computed without recursion.
pub(crate) fn order(function: &Function, from: BlockId, ends: impl Fn(BlockId) -> bool) -> Vec<BlockId> {
    order_by(function.blocks.len(), from, |id| {
        if ends(id) {
            return Vec::new();
        }
        function.block(id).terminator.targets().iter().map(|target| target.block).collect()
    })
}

/// The same for `blocks` blocks, where `next` gives the successors of a block.
pub(crate) fn order_by(blocks: usize, from: BlockId, next: impl Fn(BlockId) -> Vec<BlockId>) -> Vec<BlockId> {
    let mut order = Vec::with_capacity(blocks);
    let mut seen = vec![false; blocks];
    let mut path = vec![(from, next(from))];
    seen[from.0 as usize] = true;
    while let Some((id, left)) = path.last_mut() {
        let Some(following) = left.pop() else {
            order.push(*id);
            path.pop();
            continue;
        };
        if !std::mem::replace(&mut seen[following.0 as usize], true) {
            path.push((following, next(following)));
        }
    }
    order.reverse();
    order
}
