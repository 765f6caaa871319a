//! What `control` says on links, and what it is told: frames by which neighbours find each other, and packets
//! that the program punts.
//!
//! ```text
//! control ─► frames ─► ARP, neighbour solicitation or advertisement ─► source guard of the port ─► rate ─► port
//!         ◄─ packets ◄─ queue of punted packets ◄─ program
//! ```
//!
//! These frames pass no program. So they are of two kinds by which nothing else can be said, and tell no
//! other addresses than the gateway's, as the guard of a container has it; `launch` says which these are.

use engine::live::{Injected, Punted, PuntedPackets, Remote, urgency};
use guard::{Guard, OwnAddresses};
use messages::control::{CoreAnswer, LinkFrame, PuntedPacket};
use messages::limits::{LINK_FRAMES_PER_SECOND, LONGEST_EXCHANGE, LONGEST_PUNTED};
use packet::VirtioHeader;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The rate may be exceeded by the frames of this time.
const BURST: Duration = Duration::from_secs(1);

/// By port, the addresses in whose name `control` may send; none where it may not.
#[derive(Default)]
pub(crate) struct Speakers(Mutex<Vec<Option<Guard>>>);

impl Speakers {
    /// These are those of the port with this number.
    pub(crate) fn set(&self, port: u16, own: Option<OwnAddresses>) {
        let mut guards = self.lock();
        let Some(at) = usize::from(port).checked_sub(1) else { return };
        if guards.len() <= at {
            guards.resize(at + 1, None);
        }
        guards[at] = own.map(Guard::new);
    }

    fn are_none(&self) -> bool {
        self.lock().iter().all(Option::is_none)
    }

    /// Whether a frame may leave by a port.
    fn admit(&self, port: u16, frame: &[u8]) -> bool {
        let guards = self.lock();
        let guard = usize::from(port).checked_sub(1).and_then(|at| guards.get(at)?.as_ref());
        guard.is_some_and(|guard| guard.judge(frame).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Guard>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is needed for it.
pub(crate) struct Exchange {
    remote: Remote,
    speakers: Arc<Speakers>,
    /// Packets that were punted, once they are asked for.
    punts: Option<Receiver<PuntedPackets>>,
    /// The theoretical arrival time of the next frame (generic cell rate algorithm, ITU-T I.371).
    arrival: Instant,
}

impl Exchange {
    /// Of ports in whose names `control` speaks so.
    pub(crate) fn new(remote: Remote, speakers: Arc<Speakers>) -> Exchange {
        Exchange { remote, speakers, punts: None, arrival: Instant::now() }
    }

    /// Sends frames, and waits so many milliseconds at most for packets that were punted, while the program
    /// with this number runs.
    pub(crate) fn exchange(&mut self, number: u64, frames: Vec<LinkFrame>, patience: u16) -> CoreAnswer {
        let asked = frames.len();
        let admitted = self.admit(frames, Instant::now());
        let left_out = (asked - admitted.len()) as u32;
        if !admitted.is_empty() && !self.remote.send(admitted) {
            return CoreAnswer::Refused("a worker of the core has ended".to_owned());
        }
        if self.speakers.are_none() {
            return CoreAnswer::Exchanged { number, left_out, punted: Vec::new() };
        }
        let remote = &self.remote;
        let punts = self.punts.get_or_insert_with(|| remote.punts(urgency::of_neighbours));
        let patience = Duration::from_millis(patience.min(LONGEST_EXCHANGE).into());
        let punted = punts
            .recv_timeout(patience)
            .map(|packets| punted_packets((0..packets.len()).filter_map(|index| packets.packet(index))));
        let punted = punted.unwrap_or_default();
        CoreAnswer::Exchanged { number, left_out, punted }
    }

    /// Those of the frames that may be sent now.
    fn admit(&mut self, frames: Vec<LinkFrame>, now: Instant) -> Vec<Injected> {
        let cost = BURST / LINK_FRAMES_PER_SECOND;
        let mut admitted = Vec::new();
        for LinkFrame { port, bytes } in frames {
            let after = self.arrival.max(now) + cost;
            let may = says_no_more_than_it_has_to(&bytes) && self.speakers.admit(port, &bytes);
            if may && after <= now + BURST {
                self.arrival = after;
                admitted.push(Injected { port, bytes, virtio: VirtioHeader::NONE });
            }
        }
        admitted
    }
}

/// Whether a frame is ARP, or a neighbour solicitation or advertisement, of the one form that has no room for
/// anything else: whoever takes `control` over must not send bytes of its choice past the program.
///
/// ```text
/// ARP:  14 Ethernet │ 28 ARP                                                                        42 bytes
/// ND:   14 Ethernet │ 40 IPv6: no class, no flow │ 24: no reserved bits; target │ 8 one option      86 bytes
/// ```
fn says_no_more_than_it_has_to(frame: &[u8]) -> bool {
    const TARGET: std::ops::Range<usize> = 62..78;
    let goes_where_it_belongs = |destination: &[u8]| {
        // A question is for whoever has the target, or for the group of such.
        let group = destination.starts_with(&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff])
            && destination[13..] == frame[TARGET.end - 3..TARGET.end];
        frame[54] == 136 || group || destination == &frame[TARGET]
    };
    urgency::finds_neighbours(frame)
        && match frame.len() {
            42 => frame[12..14] == [0x08, 0x06],
            86 => {
                let reserved = if frame[54] == 136 { frame[58] & 0x1f } else { frame[58] };
                frame[12..18] == [0x86, 0xdd, 0x60, 0, 0, 0]
                    && (reserved, &frame[59..62]) == (0, &[0, 0, 0])
                    && goes_where_it_belongs(&frame[38..54])
                    && frame[78..80] == [if frame[54] == 135 { 1 } else { 2 }, 1]
            }
            _ => false,
        }
}

/// Packets, as `control` is told of them.
fn punted_packets<'p>(packets: impl Iterator<Item = Punted<'p>>) -> Vec<PuntedPacket> {
    let short = packets.filter(|packet| packet.bytes.len() <= LONGEST_PUNTED);
    let told = short.map(|packet| PuntedPacket {
        reason: packet.reason.to_string(),
        port: packet.port,
        bytes: packet.bytes.to_vec(),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::live::{Remote, workers};
    use ports::live::clock::{Clock, MachineClock};

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// Three ports, of which the second one has an address, and when a second's frames have passed.
    fn exchange() -> (Exchange, Instant) {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock);
        let remote: Remote = workers(vec![Vec::new()], &clock).expect("descriptors").1;
        let own = OwnAddresses {
            ethernet: OWN,
            ipv4: vec![[10, 0, 0, 1].into()],
            ipv6: vec![[0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].into()],
            mtu: 1500,
            advertises: false,
            dhcp_client: false,
        };
        let speakers = Speakers::default();
        [None, Some(own), None].into_iter().zip(1..).for_each(|(own, port)| speakers.set(port, own));
        let exchange = Exchange::new(remote, Arc::new(speakers));
        let now = exchange.arrival + BURST;
        (exchange, now)
    }

    /// ARP of a station with an address of IPv4: a question for 10.0.0.9, or an answer.
    fn arp(station: [u8; 6], sender: [u8; 4], operation: u8) -> Vec<u8> {
        let to = if operation == 1 { [0xff; 6] } else { [2, 0, 0, 0, 0, 9] };
        [
            &to[..],
            &station,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation],
            &station,
            &sender,
            &[0; 6],
            &[10, 0, 0, 9],
        ]
        .concat()
    }

    /// A message of ICMPv6 of this kind from 2001::1, with a whole option of its Ethernet address.
    fn icmpv6(kind: u8, station: [u8; 6]) -> Vec<u8> {
        let mut source = [0; 16];
        (source[0], source[1], source[15]) = (0x20, 1, 1);
        let mut group = [0; 16];
        (group[0], group[1], group[11], group[12], group[15]) = (0xff, 2, 1, 0xff, 9);
        let option = if kind == 136 { 2 } else { 1 };
        let target = if kind == 136 { source } else { group.map(|byte| if byte > 9 { 0x20 } else { byte }) };
        let message = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, &[option, 1], &station].concat();
        let length = (message.len() as u16).to_be_bytes();
        let header = [&[0x60, 0, 0, 0][..], &length, &[58, 255], &source, &group].concat();
        [&[0x33, 0x33, 0xff, 0, 0, 9][..], &station, &[0x86, 0xdd], &header, &message].concat()
    }

    /// Whether a frame is sent by a port.
    fn is_sent(port: u16, bytes: &[u8]) -> bool {
        let (mut exchange, now) = exchange();
        let frame = LinkFrame { port, bytes: bytes.to_vec() };
        let sent = exchange.admit(vec![frame], now);
        assert!(sent.iter().all(|sent| sent.port == port && sent.bytes == bytes));
        !sent.is_empty()
    }

    #[test]
    fn frames_by_which_neighbours_find_the_gateway_leave_by_its_ports_and_no_others() {
        for right in
            [arp(OWN, [10, 0, 0, 1], 1), arp(OWN, [10, 0, 0, 1], 2), icmpv6(135, OWN), icmpv6(136, OWN)]
        {
            assert!(is_sent(2, &right), "{right:x?}");
            for port in [0, 1, 3, 4, u16::MAX] {
                assert!(!is_sent(port, &right), "port {port}");
            }
            for length in 0..right.len() {
                assert!(!is_sent(2, &right[..length]), "cut to {length}");
            }
        }
        let other = [2, 0, 0, 0, 0, 7];
        let mut datagram = icmpv6(135, OWN);
        datagram[20] = 17;
        let mut reserved = icmpv6(135, OWN);
        reserved[58] = 1;
        let mut class = icmpv6(136, OWN);
        class[15] = 1;
        let mut elsewhere = icmpv6(135, OWN);
        elsewhere[38..54].copy_from_slice(&[0x2a; 16]);
        let with_more = |mut frame: Vec<u8>| {
            frame.extend([14, 1, 0, 0, 0, 0, 0, 0]);
            let length = (frame.len() as u16 - 54).to_be_bytes();
            frame[18..20].copy_from_slice(&length);
            frame
        };
        for wrong in [
            reserved,
            class,
            elsewhere,
            with_more(icmpv6(135, OWN)),
            [arp(OWN, [10, 0, 0, 1], 1), vec![0; 18]].concat(),
            arp(other, [10, 0, 0, 1], 2),
            arp(OWN, [10, 0, 0, 7], 2),
            icmpv6(135, other),
            icmpv6(134, OWN),
            icmpv6(128, OWN),
            icmpv6(1, OWN),
            datagram,
        ] {
            assert!(!is_sent(2, &wrong), "{wrong:x?}");
        }
    }

    #[test]
    fn packets_that_are_too_long_are_not_told_and_the_others_in_their_order() {
        let (reason, bytes) = (Arc::from("ours"), vec![7; LONGEST_PUNTED + 1]);
        let lengths = [60, LONGEST_PUNTED + 1, LONGEST_PUNTED, 42];
        let packets = lengths.iter().zip(1..).map(|(&length, port)| Punted {
            reason: &reason,
            port,
            time: 0,
            bytes: &bytes[..length],
            virtio: VirtioHeader::NONE,
        });
        let told = punted_packets(packets);
        let told: Vec<_> = told.iter().map(|one| (&*one.reason, one.port, one.bytes.len())).collect();
        assert_eq!(told, [("ours", 1, 60), ("ours", 3, LONGEST_PUNTED), ("ours", 4, 42)]);
    }

    #[test]
    fn no_more_frames_leave_than_the_rate_says_and_a_second_s_more() {
        let (mut exchange, begin) = exchange();
        let frames = vec![LinkFrame { port: 2, bytes: arp(OWN, [10, 0, 0, 1], 1) }; 64];
        let most = LINK_FRAMES_PER_SECOND as usize;
        let mut sent = 0;
        for step in 0..100 {
            sent += exchange.admit(frames.clone(), begin + Duration::from_millis(step)).len();
        }
        assert!((most + 90..=most + 100).contains(&sent), "{sent}");
        assert_eq!(exchange.admit(frames, begin + Duration::from_secs(10)).len(), 64);
    }
}
