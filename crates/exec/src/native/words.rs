//! Numbers of 128 bits as two words of 64 bits: the form in which compiled code and host functions exchange
//! them.

/// The number of these two words, the less significant first.
pub(super) fn whole([low, high]: &[u64; 2]) -> u128 {
    u128::from(*high) << 64 | u128::from(*low)
}

/// Two words of a 128-bit number, as functions give them back in two registers.
#[repr(C)]
pub(super) struct Pair {
    low: u64,
    high: u64,
}

pub(super) fn split(value: u128) -> Pair {
    Pair { low: value as u64, high: (value >> 64) as u64 }
}
