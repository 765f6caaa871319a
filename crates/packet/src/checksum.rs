//! The checksum of the Internet protocols: the one's complement sum of 16-bit numbers (RFC 1071).

/// The sum of the bytes as 16-bit numbers; an odd last byte counts as if a zero followed. Of a header whose
/// checksum is right it is 0xffff.
pub fn sum(bytes: &[u8]) -> u16 {
    // Sums of numbers in the machine's order come out in the machine's order (§2 B of the RFC), and carries
    // may wait (§2 A): four bytes at a time into eight, which compilers turn into vectors. A slice has less
    // than 2^32 times four bytes, so nothing overflows.
    let (fours, rest) = bytes.as_chunks::<4>();
    let total: u64 = fours.iter().map(|&four| u64::from(u32::from_ne_bytes(four))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let total = total + u64::from(u32::from_ne_bytes(last));
    folded(total).to_be()
}

/// A sum of sums brought back to 16 bits, carries added at the low end.
pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    proptest! {
        #[test]
        fn as_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut slow = 0u32;
            for pair in bytes.chunks(2) {
                slow += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
                slow = (slow & 0xffff) + (slow >> 16);
            }
            prop_assert_eq!(u32::from(sum(&bytes)), slow);
        }
    }
}
