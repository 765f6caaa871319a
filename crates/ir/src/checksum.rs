//! The Internet checksum (RFC 1071): sums over bytes, and what a made packet gets when its bytes are known.
//!
//! Bytes are taken as 16-bit numbers, the more significant byte first, an odd one at the end with zero behind
//! it, and added with the carry put back in at the low end. That is arithmetic modulo 65,535, so the order
//! does not matter, wider pieces may be added and folded at the end, and in either order of bytes. A checksum
//! is the complement of the sum, so that a right packet sums up to 65,535.

use super::{Sum, Template};

/// The sum of the bytes, at most 65,535; zero only if all of them are.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut total = 0_u64;
    let mut pieces = bytes.chunks_exact(4);
    for piece in &mut pieces {
        total += u64::from(u32::from_be_bytes([piece[0], piece[1], piece[2], piece[3]]));
    }
    let mut rest = [0; 4];
    rest[..pieces.remainder().len()].copy_from_slice(pieces.remainder());
    folded(total + u64::from(u32::from_be_bytes(rest)))
}

/// A sum of 16-bit numbers (or of wider ones) with all carries put back.
pub fn folded(total: u64) -> u16 {
    let mut total = total;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

impl Template {
    /// Writes the checksums of a packet made from this template: `packet` holds the template's bytes, their
    /// holes filled, and the tail.
    pub fn finish(&self, packet: &mut [u8]) {
        self.sums.iter().for_each(|one| one.write(packet));
    }
}

impl Sum {
    /// Computes the checksum over the packet and writes it. Bytes that the packet does not have count as
    /// zero.
    pub fn write(&self, packet: &mut [u8]) {
        let at = self.at as usize;
        let end = self.end.map_or(packet.len(), |end| end as usize).min(packet.len());
        let from = (self.from as usize).min(end);
        let Some(field) = packet.get_mut(at..at + 2) else { return };
        field.fill(0);
        let mut total = u64::from(self.plus) + u64::from(sum(&packet[from..end]));
        if self.length {
            total += (end - from) as u64;
        }
        for &(first, count) in &self.besides {
            let first = (first as usize).min(packet.len());
            let last = (first + count as usize).min(packet.len());
            total += u64::from(sum(&packet[first..last]));
        }
        let mut check = !folded(total);
        if self.never_zero && check == 0 {
            check = 0xffff;
        }
        packet[at..at + 2].copy_from_slice(&check.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_bytes() {
        // The example of RFC 1071, section 3.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[0xab]), 0xab00);
        assert_eq!(sum(&[0, 1, 0xff]), 0xff01);
        assert_eq!(sum(&[0xff, 0xff, 0, 0]), 0xffff);
        assert_eq!(sum(&[0xff; 262_144]), 0xffff);
    }

    #[test]
    fn a_sum_covers_its_range_and_what_counts_besides() {
        let mut packet = [0x10, 0x00, 0x20, 0x00, 0xaa, 0xaa, 0x01];
        let one = Sum {
            at: 4,
            from: 2,
            end: None,
            besides: vec![(0, 2)],
            plus: 17,
            length: true,
            never_zero: false,
        };
        one.write(&mut packet);
        let total = 0x1000 + 0x2000 + 0x0100 + 17 + 5;
        assert_eq!(u16::from_be_bytes([packet[4], packet[5]]), !(total as u16));
        Sum { end: Some(6), length: false, plus: 0, besides: Vec::new(), ..one.clone() }.write(&mut packet);
        assert_eq!([packet[4], packet[5]], [0xdf, 0xff]);
        Sum { at: 6, ..one }.write(&mut packet);
        assert_eq!(packet[6], 1, "a field that the packet does not have is left out");
    }

    #[test]
    fn zero_stands_for_no_checksum_where_that_is_so() {
        let one = Sum {
            at: 0,
            from: 0,
            end: None,
            besides: Vec::new(),
            plus: 0xffff,
            length: false,
            never_zero: true,
        };
        let mut packet = [1, 1, 0, 0];
        one.write(&mut packet);
        assert_eq!(packet, [0xff, 0xff, 0, 0]);
        Sum { never_zero: false, ..one }.write(&mut packet);
        assert_eq!(packet, [0, 0, 0, 0]);
    }
}
