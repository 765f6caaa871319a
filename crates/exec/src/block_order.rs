//! The order in which code is made of blocks: each behind those that lead to it, loops aside.

use lang::ir::{BlockId, Function};

/// Blocks that can be reached from one without going on behind those where it `ends`, each behind all that
/// dominate it: reverse postorder, without recursion.
pub(crate) fn order(function: &Function, from: BlockId, ends: impl Fn(BlockId) -> bool) -> Vec<BlockId> {
    order_by(function.blocks.len(), from, |id| {
        if ends(id) {
            return Vec::new();
        }
        function.block(id).terminator.targets().iter().map(|target| target.block).collect()
    })
}

/// The same of so many blocks, where `next` tells which follow one.
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
