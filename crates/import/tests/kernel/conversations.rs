//! Packets of whole connections, in the order in which their ends send them, and what Linux knows of a
//! connection at each of them.

use super::random::Random;
use policy::{PacketField, State};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The end that sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Client,
    Server,
}

/// What a packet says to its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A segment of TCP: its flags, sequence number, acknowledged number and length.
    Segment(u8, u32, u32, usize),
    /// A datagram of UDP with so many bytes, perhaps in two fragments.
    Datagram(usize, bool),
    /// A message of ICMP by its type.
    Echo(u8),
    /// "Destination unreachable" with this code about the last packet of the other end.
    Unreachable(u8),
    /// A packet of a protocol that nobody knows.
    Plain,
}

/// One conversation of a client with a server.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) client: Ipv4Addr,
    pub(crate) server: Ipv4Addr,
    /// The ports; the first is the identifier of echoes, too.
    pub(crate) ports: (u16, u16),
    /// The byte of the type of service.
    pub(crate) service: u8,
    pub(crate) time_to_live: u8,
    pub(crate) steps: Vec<(End, Message)>,
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// The protocol that conversations of [`Message::Plain`] have.
const NOBODY_KNOWS: u8 = 89;

impl Conversation {
    /// A conversation with a number that no other one of the test has, so that Linux knows nothing of it.
    pub(crate) fn made(random: &mut Random, number: u32) -> Conversation {
        use End::{Client, Server};
        use Message::{Datagram, Echo, Plain, Segment, Unreachable};
        let opening = vec![
            (Client, Segment(SYN, 1000, 0, 0)),
            (Server, Segment(SYN | ACK, 5000, 1001, 0)),
            (Client, Segment(ACK, 1001, 5001, 0)),
            (Client, Segment(ACK | 8, 1001, 5001, 10)),
            (Server, Segment(ACK, 5001, 1011, 20)),
        ];
        let closing = vec![
            (Client, Segment(FIN | ACK, 1011, 5021, 0)),
            (Server, Segment(FIN | ACK, 5021, 1012, 0)),
            (Client, Segment(ACK, 1012, 5022, 0)),
        ];
        let steps = match random.below(14) {
            0 | 1 => [opening, closing].concat(),
            2 => [opening, vec![(Server, Segment(RST | ACK, 5021, 1011, 0))]].concat(),
            3 => vec![opening[0].clone(), (Server, Segment(RST | ACK, 0, 1001, 0))],
            4 => vec![opening[0].clone(), (Server, Unreachable(random.one(&[1, 13])))],
            // What belongs to no connection.
            5 => vec![(Client, Segment(random.one(&[SYN | ACK, RST, FIN | ACK, RST | ACK]), 7, 9, 0))],
            // A connection that is older than the table of connections.
            6 => opening[3..].to_vec(),
            7 => vec![(Client, Echo(8)), (Server, Echo(0)), (Client, Echo(8)), (Server, Echo(0))],
            8 => vec![(Client, Echo(0)), (Client, Echo(8))],
            9 => {
                vec![(Client, Datagram(9, false)), (Server, Unreachable(3)), (Client, Datagram(9, false))]
            }
            10 => vec![(Client, Datagram(40, true)), (Server, Datagram(80, true))],
            11 => vec![(Client, Plain), (Server, Plain), (Client, Plain)],
            _ => {
                let plain = Datagram(random.one(&[0, 20, 100]), false);
                vec![(Client, plain.clone()), (Server, plain.clone()), (Client, plain)]
            }
        };
        Conversation {
            // What has no ports is told apart by its addresses.
            client: Ipv4Addr::from(0x6440_0000 | number & 0x3f_ffff),
            server: Ipv4Addr::from(0xc000_0200 | random.one(&[1u32, 2, 130])),
            ports: (1024 + (number & 0x3fff) as u16, random.one(&[22, 53, 80, 1024, 60_000])),
            service: random.one(&[0, 0, 0xb8, 0x28, 0x29]),
            time_to_live: random.one(&[64, 64, 3, 255]),
            steps,
        }
    }

    /// Who sends a step to whom: addresses and ports.
    fn between(&self, end: End) -> ((Ipv4Addr, u16), (Ipv4Addr, u16)) {
        let (client, server) = ((self.client, self.ports.0), (self.server, self.ports.1));
        if end == End::Client { (client, server) } else { (server, client) }
    }

    /// What stands behind the header of IP in a step.
    fn payload(&self, step: usize) -> (u8, Vec<u8>) {
        let (end, message) = &self.steps[step];
        let ((source, from), (target, to)) = self.between(*end);
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let (protocol, mut bytes, check) = match message {
            Message::Segment(flags, sequence, acknowledged, length) => {
                let mut bytes = ports;
                bytes.extend([sequence.to_be_bytes(), acknowledged.to_be_bytes()].concat());
                bytes.extend([0x50, *flags, 0xff, 0xff, 0, 0, 0, 0]);
                bytes.extend(vec![b'x'; *length]);
                (6, bytes, Some(16))
            }
            Message::Datagram(length, _) => {
                let mut bytes = ports;
                bytes.extend((8 + *length as u16).to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(vec![b'x'; *length]);
                (17, bytes, Some(6))
            }
            Message::Echo(kind) => {
                let [high, low] = self.ports.0.to_be_bytes();
                (1, vec![*kind, 0, 0, 0, high, low, 0, 1], None)
            }
            Message::Unreachable(code) => {
                let about = (0..step).rev().find(|before| self.steps[*before].0 != *end).expect("one before");
                let mut bytes = vec![3, *code, 0, 0, 0, 0, 0, 0];
                bytes.extend(&self.packets(about, 0xffff)[0][..28]);
                (1, bytes, None)
            }
            Message::Plain => (NOBODY_KNOWS, b"nobody knows".to_vec(), Some(usize::MAX)),
        };
        let mut summed = Vec::new();
        if let Some(at) = check {
            summed.extend([source.octets(), target.octets()].concat());
            summed.extend([0, protocol]);
            summed.extend((bytes.len() as u16).to_be_bytes());
            summed.extend(&bytes);
            if at < bytes.len() {
                let sum = !packet::checksum::sum(&summed);
                bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            }
        } else {
            let sum = !packet::checksum::sum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        (protocol, bytes)
    }

    /// The packets of a step, with this identification: two fragments, or one whole packet.
    pub(crate) fn packets(&self, step: usize, identification: u16) -> Vec<Vec<u8>> {
        let (protocol, payload) = self.payload(step);
        let ((source, _), (target, _)) = self.between(self.steps[step].0);
        let packet = |place: u16, part: &[u8]| {
            let mut header = vec![0x45, self.service];
            header.extend((20 + part.len() as u16).to_be_bytes());
            header.extend([identification.to_be_bytes(), place.to_be_bytes()].concat());
            header.extend([self.time_to_live, protocol, 0, 0]);
            header.extend([source.octets(), target.octets()].concat());
            let check = !packet::checksum::sum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            [&header, part].concat()
        };
        match self.steps[step].1 {
            Message::Datagram(_, true) => vec![packet(0x2000, &payload[..16]), packet(2, &payload[16..])],
            _ => vec![packet(0, &payload)],
        }
    }

    /// A step as the fields of its packet, whole.
    pub(crate) fn fields(&self, step: usize, state: State) -> policy::Packet {
        const MAPPED: u128 = 0xffff_0000_0000;
        let (end, message) = &self.steps[step];
        let ((source, from), (target, to)) = self.between(*end);
        let (protocol, payload) = self.payload(step);
        let (in_port, out_port, mac) = if *end == End::Client { (1, 2, 1) } else { (2, 1, 4) };
        let mut fields = vec![
            (PacketField::Family, 4),
            (PacketField::Source, MAPPED | u128::from(u32::from(source))),
            (PacketField::Destination, MAPPED | u128::from(u32::from(target))),
            (PacketField::Protocol, protocol.into()),
            (PacketField::LaterFragment, 0),
            (PacketField::InPort, in_port),
            (PacketField::OutPort, out_port),
            (PacketField::Dscp, u128::from(self.service >> 2)),
            (PacketField::TimeToLive, self.time_to_live.into()),
            (PacketField::Length, 20 + payload.len() as u128),
            (PacketField::State, state as u128),
            (PacketField::SourceMac, 0x0200_0000_0000 | mac),
        ];
        match message {
            Message::Segment(flags, ..) => fields.push((PacketField::TcpFlags, (*flags).into())),
            Message::Echo(_) | Message::Unreachable(_) => {
                fields.push((PacketField::IcmpType, payload[0].into()));
                fields.push((PacketField::IcmpCode, payload[1].into()));
            }
            Message::Datagram(..) | Message::Plain => {}
        }
        if matches!(protocol, 6 | 17) {
            fields.push((PacketField::SourcePort, from.into()));
            fields.push((PacketField::DestinationPort, to.into()));
        }
        let with = |packet: policy::Packet, (field, value)| packet.with(field, Some(value));
        fields.into_iter().fold(policy::Packet::default(), with)
    }
}

/// What Linux knows of a conversation: who began it, if its first packet has passed, and whether the other
/// end has answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    begun: Option<End>,
    answered: bool,
}

impl Connection {
    /// The state of a packet of this end, before rules are asked.
    ///
    /// Of TCP, a SYN begins a connection, and so does an acknowledgement, of a connection that may be older
    /// than the table. Of ICMP a request does. An error belongs to the connection of the packet that it is
    /// about.
    pub(crate) fn state(&mut self, end: End, message: &Message) -> State {
        match (self.begun, message) {
            (Some(_), Message::Unreachable(_)) => State::Related,
            (None, Message::Unreachable(_) | Message::Echo(0)) => State::Invalid,
            (None, Message::Segment(flags, ..)) if !matches!(flags & (FIN | SYN | RST | ACK), SYN | ACK) => {
                State::Invalid
            }
            (None, _) => State::New,
            (Some(beginner), _) => {
                // Linux notes an answer when it comes, whether it passes or not.
                self.answered |= beginner != end;
                if self.answered { State::Established } else { State::New }
            }
        }
    }

    /// The packet has passed all rules.
    pub(crate) fn passed(&mut self, end: End, state: State) {
        if state == State::New {
            self.begun.get_or_insert(end);
        }
    }
}

/// Packets on their way, each by the identification that it is known by.
pub(crate) type OnTheWay = HashMap<u16, (Ipv4Addr, Ipv4Addr)>;
