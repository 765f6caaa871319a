//! Judges what the router sends to the LAN by the policy of the gateway that is attacked, written without
//! looking at the program: what a host puts together of fragments must be nothing that the policy drops.
//!
//! The policy closes a port and opens no connections, by what stands in the first 20 bytes behind the header
//! of IPv4. So no fragment may begin within these, and a first one must have all of them: then whatever
//! overlaps, these bytes are those of one frame, which is judged alone.

/// The port of UDP at the LAN host that the router must not reach.
pub(crate) const CLOSED: u16 = 4002;
/// Bytes of the shortest header of TCP.
const HEADER: usize = 20;

/// Why the policy lets a frame of the router not go to the LAN; nothing if it does.
pub fn forbidden(frame: &[u8]) -> Option<&'static str> {
    let packet = frame.strip_prefix(frame.get(..12)?)?.strip_prefix(&[8, 0])?;
    let number = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let header = usize::from(packet.first()? & 15) * 4;
    let (place, protocol) = (number(6)?, *packet.get(9)?);
    let payload = packet.get(header..usize::from(number(2)?))?;
    let (more, offset) = (place & 0x2000 != 0, usize::from(place & 0x1fff) * 8);
    if (1..HEADER).contains(&offset) {
        return Some("is a fragment that lies over the header of its transport");
    }
    if offset > 0 {
        return None;
    }
    if more && payload.len() < HEADER {
        return Some("is a first fragment without the whole header of its transport");
    }
    match protocol {
        17 if payload.get(2..4)? == CLOSED.to_be_bytes() => Some("goes to a closed port"),
        6 if payload.get(13)? & 0b1_0010 == 0b10 => Some("opens a connection"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Ipv4, Scene, ethernet, ipv4, udp};

    #[test]
    fn a_closed_port_a_connection_and_whatever_could_make_one_of_them_are_forbidden() {
        let scene = Scene::usual();
        let frame = |protocol: u8, place: u16, payload: &[u8]| {
            let header = Ipv4 { from: scene.own().ipv4, to: scene.lan.ipv4, protocol, place, options: &[] };
            ethernet(scene.lan.ethernet, scene.router.ethernet, 0x0800, &ipv4(header, payload))
        };
        let datagram = |port| udp((53, port), &[0; 24]);
        let segment = |flags| [&[0; 12][..], &[0x50, flags, 0, 0, 0, 0, 0, 0]].concat();
        for (allowed, frame) in [
            (true, frame(17, 0, &datagram(53))),
            (false, frame(17, 0, &datagram(CLOSED))),
            (true, frame(17, 0x2000, &datagram(53))),
            (false, frame(17, 0x2000, &datagram(CLOSED))),
            (false, frame(17, 0x2000, &datagram(53)[..16])),
            (false, frame(17, 1, &[0; 8])),
            (false, frame(17, 0x2002, &[0; 8])),
            (true, frame(17, 0x2003, &[0; 8])),
            (false, frame(6, 0, &segment(2))),
            (true, frame(6, 0, &segment(0x12))),
            (false, frame(6, 0x2000, &[segment(0xc2), vec![0; 4]].concat())),
        ] {
            assert_eq!(forbidden(&frame).is_none(), allowed, "{frame:02x?}");
        }
    }
}
