//! The checksum of the Internet protocols: the one's complement sum of 16-bit numbers (RFC 1071).

/// The sum of the bytes as 16-bit numbers; an odd last byte counts as if a zero followed. Of a header whose checksum is right it is 0xffff.
pub fn sum(bytes: &[u8]) -> u16 {
    // Eight bytes at once in 128 bits: the order of 16-bit numbers does not matter to the sum, nor does where they are carried to (§2 of the RFC).
    let (wide, rest) = bytes.as_chunks::<8>();
    let wide: u128 = wide.iter().map(|&eight| u128::from(u64::from_be_bytes(eight))).sum();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let total = wide + u128::from(u64::from_be_bytes(last));
    let parts = (0..8).map(|part| u64::from((total >> (16 * part)) as u16)).sum();
    folded(parts)
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
