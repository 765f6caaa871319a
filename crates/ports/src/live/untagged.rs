//! Removes priority tags: VLAN tags with the VLAN number 0, which only say how urgent a packet is.
//!
//! ```text
//! destination 6 | source 6 | 0x8100 | priority 3, drop 1, VLAN 12: zero | type 2 | …
//! ```
//!
//! A station that is no part of VLANs takes such a packet for an untagged one (IEEE 802.1Q, 6.9.1), as the
//! kernel's own stack does. So ports do: the program gets the packet without the tag, and it leaves without
//! it.

/// Bytes of a tag, and where it begins.
const TAG: usize = 4;
const AT: usize = 12;

/// Whether a tag of this type and with this control word names no VLAN.
pub(crate) fn is_priority(protocol: u16, control: u16) -> bool {
    protocol == 0x8100 && control & 0x0fff == 0
}

/// Takes the priority tag out of a frame that has one: it begins so many bytes later then.
#[inline]
pub(crate) fn take_out(frame: &mut [u8]) -> usize {
    let Some(&[a, b, c, d]) = frame.get(AT..).and_then(|rest| rest.first_chunk()) else { return 0 };
    if !is_priority(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])) {
        return 0;
    }
    frame.copy_within(..AT, TAG);
    TAG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_tag_goes_and_every_other_stays() {
        let mut tagged = *b"ddddddssssss\x81\x00\xa0\x00\x08\x00xy";
        let begins = take_out(&mut tagged);
        assert_eq!(&tagged[begins..], b"ddddddssssss\x08\x00xy");
        for other in [
            &b"ddddddssssss\x81\x00\xa0\x01\x08\x00xy"[..],
            b"ddddddssssss\x88\xa8\xa0\x00\x08\x00xy",
            b"ddddddssssss\x08\x00xyzz",
            b"ddddddssssss\x81\x00\xa0",
            b"",
        ] {
            let mut frame = other.to_vec();
            assert_eq!((take_out(&mut frame), &frame[..]), (0, other));
        }
    }
}
