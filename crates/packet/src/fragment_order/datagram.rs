//! Which frames hold fragments, and of which packet: Ethernet with up to two VLAN tags, then IPv4, or IPv6
//! with its fragment header behind others that say how long they are.

/// How many extension headers of IPv6 are looked through for the fragment header.
const MOST_HEADERS: usize = 8;
/// How many VLAN tags are looked through for the type of the packet.
const MOST_TAGS: usize = 2;

/// Headers of IPv6 that may stand before the fragment header (RFC 8200, 4.1), and this header.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// The packet that fragments are part of (RFC 791, 3.2; RFC 8200, 4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Datagram {
    /// Addresses; of IPv4 those that stand for them in IPv6 (RFC 4291, 2.5.5.2).
    pub(super) from: u128,
    pub(super) to: u128,
    pub(super) id: u32,
    /// The protocol of IPv4; in IPv6, where an identification serves all protocols, 44.
    pub(super) kind: u8,
}

impl Datagram {
    /// What is bounded together: an address of IPv4, or the network of 64 bits of one of IPv6, which a single
    /// host can use as a whole.
    pub(super) fn source(&self) -> u64 {
        if self.from >> 32 == 0xffff { self.from as u64 } else { (self.from >> 64) as u64 }
    }
}

/// The packet that a frame holds a fragment of, and whether this is the first one; `None` if it holds none.
#[inline]
pub(super) fn fragment(frame: &[u8]) -> Option<(Datagram, bool)> {
    let mut at = 12;
    for _ in 0..=MOST_TAGS {
        match word(frame, at)? {
            0x0800 => return four(frame.get(at + 2..)?),
            0x86dd => return six(frame.get(at + 2..)?),
            0x8100 | 0x88a8 => at += 4,
            _ => return None,
        }
    }
    None
}

#[inline]
fn four(ip: &[u8]) -> Option<(Datagram, bool)> {
    let place = word(ip, 6)?;
    // Offset, and whether more fragments follow.
    if place & 0x3fff == 0 {
        return None;
    }
    let address =
        |at: usize| Some(0xffff_0000_0000 | u128::from(word(ip, at)?) << 16 | u128::from(word(ip, at + 2)?));
    let datagram =
        Datagram { from: address(12)?, to: address(16)?, id: u32::from(word(ip, 4)?), kind: *ip.get(9)? };
    (ip[0] >> 4 == 4).then_some((datagram, place & 0x1fff == 0))
}

#[inline]
fn six(ip: &[u8]) -> Option<(Datagram, bool)> {
    let (mut next, mut at) = (*ip.get(6)?, 40);
    for _ in 0..MOST_HEADERS {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION => {
                next = *ip.get(at)?;
                at += 8 + 8 * usize::from(*ip.get(at + 1)?);
            }
            FRAGMENT => {
                let (place, id) = (word(ip, at + 2)?, u32::from(word(ip, at + 4)?) << 16);
                // The only fragment of its packet waits for no other (RFC 6946).
                if place & 0xfff9 == 0 {
                    return None;
                }
                let address = |at: usize| Some(u128::from_be_bytes(ip.get(at..at + 16)?.try_into().ok()?));
                let id = id | u32::from(word(ip, at + 6)?);
                let datagram = Datagram { from: address(8)?, to: address(24)?, id, kind: FRAGMENT };
                return (ip[0] >> 4 == 6).then_some((datagram, place >> 3 == 0));
            }
            _ => return None,
        }
    }
    None
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(head: &[u16], ip: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        head.iter().for_each(|word| frame.extend(word.to_be_bytes()));
        frame.extend_from_slice(ip);
        frame
    }

    /// A header of IPv4 with these flags and this offset.
    fn four(place: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9];
        ip[6..8].copy_from_slice(&place.to_be_bytes());
        ip
    }

    /// A header of IPv6, other headers, and behind them the fragment header with this place.
    fn six(others: &[u8], place: u16) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0, 0, 8, 44, 64];
        ip.extend((0..32).map(|byte| byte as u8));
        for (number, &other) in others.iter().enumerate() {
            let next = others.get(number + 1).copied().unwrap_or(44);
            ip.extend([next, 1]);
            ip.extend([0; 14]);
            if number == 0 {
                ip[6] = other;
            }
        }
        ip.extend([17, 0]);
        ip.extend(place.to_be_bytes());
        ip.extend([0, 1, 2, 3]);
        ip
    }

    #[test]
    fn fragments_of_ipv4_and_ipv6_are_told_from_whole_packets() {
        let datagram = Datagram { from: 0xffff_0a00_0001, to: 0xffff_c000_0209, id: 7, kind: 17 };
        for head in [&[0x0800][..], &[0x8100, 5, 0x0800], &[0x88a8, 5, 0x8100, 6, 0x0800]] {
            assert_eq!(fragment(&frame(head, &self::four(0x2000))), Some((datagram, true)));
            assert_eq!(fragment(&frame(head, &self::four(0x2001))), Some((datagram, false)));
            assert_eq!(fragment(&frame(head, &self::four(1))), Some((datagram, false)));
            assert_eq!(fragment(&frame(head, &self::four(0x4000))), None, "don't fragment");
        }
        let tags = [0x8100, 5, 0x8100, 5, 0x8100, 5, 0x0800];
        assert_eq!(fragment(&frame(&tags, &self::four(1))), None, "more tags than a program decodes");
        for others in [&[][..], &[0], &[0, 60, 43], &[60; MOST_HEADERS - 1]] {
            let of = |place| fragment(&frame(&[0x86dd], &self::six(others, place)));
            let (datagram, first) = of(1).expect("a fragment");
            assert_eq!((datagram.id, datagram.kind, first), (0x0001_0203, 44, true));
            assert_eq!(datagram.from >> 120, 0);
            assert_eq!(datagram.to >> 120, 16);
            assert_eq!(of(8), Some((datagram, false)));
            assert_eq!(of(9), Some((datagram, false)));
            assert_eq!(of(0), None, "atomic");
            assert_eq!(of(6), None, "reserved bits");
        }
        assert_eq!(fragment(&frame(&[0x86dd], &self::six(&[60; MOST_HEADERS], 8))), None, "too long a chain");
        assert_eq!(
            fragment(&frame(&[0x86dd], &self::six(&[51], 8))),
            None,
            "a header without a known length"
        );
    }

    #[test]
    fn what_is_cut_off_holds_no_fragment() {
        for whole in [frame(&[0x8100, 5, 0x0800], &self::four(1)), frame(&[0x86dd], &self::six(&[0, 60], 8))]
        {
            assert!(fragment(&whole).is_some());
            for length in 0..whole.len() {
                assert_eq!(fragment(&whole[..length]), None, "{length}");
            }
        }
    }

    #[test]
    fn hosts_are_bounded_by_what_they_can_choose() {
        let source = |from| Datagram { from, ..Datagram::default() }.source();
        assert_ne!(source(0xffff_0a00_0001), source(0xffff_0a00_0002));
        assert_eq!(source(0x2001_0db8 << 96 | 1), source(0x2001_0db8 << 96 | 2));
        assert_ne!(source(0x2001_0db8 << 96 | 1), source(0x2001_0db9 << 96 | 1));
    }
}
