//! Sequences of packets, one for each pair of ends that talk: TCP, UDP, echoes, other protocols, errors.

use crate::packets::{Address, Cut, ICMP, ICMP6, Packet, TCP, UDP, datagram_bytes};
use crate::rules::{SERVICES, inside, outside};
use crate::segment::Segment;
use crate::tcp::{Step, Talk};
use suite::random::SuiteRandom;

/// Two ends, and who of them begins.
#[derive(Clone, Copy)]
struct Ends {
    client_inside: bool,
    client: Address,
    server: Address,
    ports: (u16, u16),
}

impl Ends {
    /// A packet of one of them.
    fn packet(&self, from_client: bool, label: &'static str, proto: u8, body: Vec<u8>) -> Packet {
        let (from, to) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        let from_inside = from_client == self.client_inside;
        Packet { from_inside, from_client, label, from, to, proto, body, cut: None }.summed()
    }

    fn ports(&self, from_client: bool) -> (u16, u16) {
        if from_client { self.ports } else { (self.ports.1, self.ports.0) }
    }

    fn segment(&self, from_client: bool, label: &'static str, segment: &Segment) -> Packet {
        let (from, to) = self.ports(from_client);
        self.packet(from_client, label, TCP, segment.bytes(from, to))
    }

    fn datagram(&self, from_client: bool, label: &'static str, payload: usize) -> Packet {
        self.packet(from_client, label, UDP, datagram_bytes(self.ports(from_client), payload))
    }

    /// A message of ICMP with an identifier.
    fn message(&self, from_client: bool, label: &'static str, [v4, v6]: [u8; 2], id: u16) -> Packet {
        let (proto, kind) = if self.client.v6 { (ICMP6, v6) } else { (ICMP, v4) };
        let [high, low] = id.to_be_bytes();
        self.packet(from_client, label, proto, vec![kind, 0, 0, 0, high, low, 0, 1, 1, 2, 3, 4])
    }

    /// From whom an error comes about a packet of the client, or of the server: mostly a router on the way.
    fn reporter(&self, random: &mut SuiteRandom, about_client: bool) -> Address {
        let other = if about_client { self.server } else { self.client };
        let near = if other == self.server { self.server.bits ^ 0x40 } else { self.client.bits ^ 0x80 };
        if random.one_in(3) { other } else { Address { bits: near, ..other } }
    }

    /// An error about a packet.
    fn error(&self, random: &mut SuiteRandom, packet: &Packet, label: &'static str) -> Packet {
        let kind = error_kind(random, packet.from.v6);
        packet.error(kind, self.reporter(random, packet.from_client), label)
    }
}

/// The types of an error about a packet: unreachable, too big, expired.
fn error_kind(random: &mut SuiteRandom, v6: bool) -> u8 {
    if v6 { *random.pick(&[1, 2, 3, 4]) } else { *random.pick(&[3, 3, 11, 12]) }
}

/// One sequence. `index` makes its ends differ from those of all others of the set.
pub(crate) fn flow(random: &mut SuiteRandom, set: u32, index: u16) -> Vec<Packet> {
    let v6 = random.one_in(2);
    let client_inside = !random.one_in(3);
    let kind = random.below(20);
    // Connections of other protocols are found by addresses alone: the host inside is another for each.
    let host = if kind == 18 { 16 + index as u8 } else { random.below(8) as u8 + 1 };
    let (own, other) = (inside(v6, set, host), outside(v6, random.below(16) as u8 + 1));
    let (client, server) = if client_inside { (own, other) } else { (other, own) };
    let from_port = if random.one_in(5) { 45_000 } else { 1_024 };
    let ports = (from_port + index, *random.pick(&SERVICES));
    let ends = Ends { client_inside, client, server, ports };
    match kind {
        0..=11 => tcp(random, &ends),
        12..=15 => udp(random, &ends),
        16 | 17 => echo(random, &ends, index),
        18 => pair(random, &ends),
        _ => strays(random, &ends),
    }
}

fn tcp(random: &mut SuiteRandom, ends: &Ends) -> Vec<Packet> {
    let mut talk = Talk::new(random);
    talk.handshake();
    talk.data();
    talk.end();
    let steps = talk.disturbed();
    steps.iter().map(|step| tcp_packet(random, ends, step)).collect()
}

fn tcp_packet(random: &mut SuiteRandom, ends: &Ends, step: &Step) -> Packet {
    let mut packet = ends.segment(step.from_client, step.label, &step.segment);
    if step.as_error {
        return ends.error(random, &packet, step.label);
    }
    if step.segment.payload > 64 && random.one_in(12) {
        packet.cut = Some(Cut { at: packet.body.len() / 2 / 8 * 8, second_first: random.one_in(2) });
    }
    packet
}

fn udp(random: &mut SuiteRandom, ends: &Ends) -> Vec<Packet> {
    let mut packets = vec![ends.datagram(true, "datagram", 20)];
    for _ in 0..random.below(6) {
        let from_client = random.one_in(2);
        let mut packet = ends.datagram(from_client, "datagram", *random.pick(&[0, 12, 300]));
        if packet.body.len() > 64 && random.one_in(2) {
            packet.cut = Some(Cut { at: 160, second_first: random.one_in(2) });
            packet.label = "datagram in fragments";
        }
        if random.one_in(4) {
            packet = ends.error(random, &packet, "error about a datagram");
        }
        packets.push(packet);
    }
    if random.one_in(3) {
        packets.push(Ends { ports: (ends.ports.0, 9), ..*ends }.datagram(
            false,
            "datagram of another port",
            4,
        ));
    }
    packets
}

fn echo(random: &mut SuiteRandom, ends: &Ends, id: u16) -> Vec<Packet> {
    let request = |ends: &Ends| ends.message(true, "echo request", [8, 128], id);
    let mut packets = vec![request(ends)];
    for _ in 0..random.below(5) {
        packets.push(match random.below(6) {
            0 => request(ends),
            1 | 2 => ends.message(false, "echo reply", [0, 129], id),
            3 => ends.message(false, "echo reply of another", [0, 129], id ^ 0x4000),
            4 => ends.error(random, &request(ends), "error about an echo"),
            _ => ends.message(true, "echo reply that nobody asked for", [0, 129], id ^ 0x2000),
        });
    }
    packets
}

/// Other protocols.
fn pair(random: &mut SuiteRandom, ends: &Ends) -> Vec<Packet> {
    let proto = *random.pick(&[47, 50, 253]);
    let body = || vec![0, 0, 8, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    let mut packets = vec![ends.packet(true, "other protocol", proto, body())];
    for _ in 0..random.below(4) {
        let from_client = random.one_in(2);
        let packet = ends.packet(from_client, "other protocol", proto, body());
        let is_error = random.one_in(4);
        packets.push(if is_error {
            ends.error(random, &packet, "error about another protocol")
        } else {
            packet
        });
    }
    packets
}

/// Packets of no connection.
fn strays(random: &mut SuiteRandom, ends: &Ends) -> Vec<Packet> {
    let mut packets = Vec::new();
    for _ in 0..random.between(1, 4) {
        let from_client = random.one_in(2);
        let flags = *random.pick(&[0x10, 0x12, 0x11, 0x04, 0x14, 0x18, 0x29]);
        let segment =
            Segment { flags, seq: random.number() as u32, ack: 5, window: 100, ..Segment::default() };
        let stray = ends.segment(from_client, "segment of no connection", &segment);
        let is_error = random.one_in(3);
        packets.push(if is_error { ends.error(random, &stray, "error about no connection") } else { stray });
    }
    packets
}
