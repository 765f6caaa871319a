//! Fragments in order, for the programs that ask for it.

use ir::Program;
use ir::fragment_order::{BYTES, BYTES_OF_SOURCE, PACKETS, REMEMBER, WAIT};
use packet::{FragmentLimits, FragmentOrder};

/// What may wait at each worker.
const LIMITS: FragmentLimits = FragmentLimits {
    packets: PACKETS,
    bytes: BYTES,
    bytes_of_source: BYTES_OF_SOURCE,
    wait: WAIT,
    remember: REMEMBER,
};

/// What brings the fragments that come to a program into order; `None` if the program does not ask for it.
/// The seed chooses the hash function.
pub fn fragment_order(program: &Program, seed: u64) -> Option<Box<FragmentOrder>> {
    program.orders_fragments.then(|| Box::new(FragmentOrder::new(LIMITS, seed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::fragment_order::ALLOCATED;

    #[test]
    fn as_much_memory_is_told_as_is_allocated_and_not_much_more() {
        let allocated = LIMITS.allocated() as u64;
        assert!((ALLOCATED * 3 / 4..=ALLOCATED).contains(&allocated), "{allocated} of {ALLOCATED}");
    }
}
