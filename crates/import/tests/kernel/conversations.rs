//! Packets of whole connections, in the order in which their ends send them, and what Linux knows of a
//! connection at each of them.

use super::random::Random;
use super::router::Router;
use super::times;
use import::address::AddressFamily;
use policy::{PacketField, Path, Policy, RuleAction, State, evaluate};
use serde_json::Value;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Conversations that are carried on together, a step of each at a time.
const TOGETHER: u32 = 48;

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
    /// An echo of ICMP: a request, or (`false`) a reply.
    Echo(bool),
    /// "Destination unreachable" with this code about the last packet of the other end.
    Unreachable(u8),
    /// A packet of a protocol that nobody knows.
    Plain,
}

/// One conversation of a client with a server.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) client: IpAddr,
    pub(crate) server: IpAddr,
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

/// What stands before the bits of an IPv4 address in an address of IPv6.
const PREFIX: u128 = 0x2001_0db8 << 96;

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

impl Conversation {
    /// A conversation with a number that no other one of the test has, so that Linux knows nothing of it.
    pub(crate) fn made(random: &mut Random, family: AddressFamily, number: u32) -> Conversation {
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
            7 => {
                vec![(Client, Echo(true)), (Server, Echo(false)), (Client, Echo(true)), (Server, Echo(false))]
            }
            8 => vec![(Client, Echo(false)), (Client, Echo(true))],
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
        // What has no ports is told apart by its addresses.
        let client = Ipv4Addr::from(0x6440_0000 | number & 0x3f_ffff);
        let server = Ipv4Addr::from(0xc000_0200 | random.one(&[1u32, 2, 130]));
        let address = |address: Ipv4Addr| match family {
            AddressFamily::V4 => IpAddr::V4(address),
            AddressFamily::V6 => IpAddr::V6(Ipv6Addr::from(PREFIX | u128::from(u32::from(address)))),
        };
        Conversation {
            client: address(client),
            server: address(server),
            ports: (1024 + (number & 0x3fff) as u16, random.one(&[22, 53, 80, 1024, 60_000])),
            service: random.one(&[0, 0, 0xb8, 0x28, 0x29]),
            time_to_live: random.one(&[64, 64, 3, 255]),
            steps,
        }
    }

    /// Who sends a step to whom: addresses and ports.
    fn between(&self, end: End) -> ((IpAddr, u16), (IpAddr, u16)) {
        let (client, server) = ((self.client, self.ports.0), (self.server, self.ports.1));
        if end == End::Client { (client, server) } else { (server, client) }
    }

    /// What stands behind the header of IP in a step.
    fn payload(&self, step: usize) -> (u8, Vec<u8>) {
        let (end, message) = &self.steps[step];
        let ((source, from), (target, to)) = self.between(*end);
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let six = source.is_ipv6();
        let icmp = if six { 58 } else { 1 };
        let (protocol, mut bytes, check) = match message {
            Message::Segment(flags, sequence, acknowledged, length) => {
                let mut bytes = ports;
                bytes.extend([sequence.to_be_bytes(), acknowledged.to_be_bytes()].concat());
                bytes.extend([0x50, *flags, 0xff, 0xff, 0, 0, 0, 0]);
                bytes.extend(vec![b'x'; *length]);
                (6, bytes, 16)
            }
            Message::Datagram(length, _) => {
                let mut bytes = ports;
                bytes.extend((8 + *length as u16).to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(vec![b'x'; *length]);
                (17, bytes, 6)
            }
            Message::Echo(asks) => {
                let kind = match (six, asks) {
                    (false, true) => 8,
                    (false, false) => 0,
                    (true, true) => 128,
                    (true, false) => 129,
                };
                let [high, low] = self.ports.0.to_be_bytes();
                (icmp, vec![kind, 0, 0, 0, high, low, 0, 1], 2)
            }
            Message::Unreachable(code) => {
                let about = (0..step).rev().find(|before| self.steps[*before].0 != *end).expect("one before");
                let mut bytes = vec![if six { 1 } else { 3 }, *code, 0, 0, 0, 0, 0, 0];
                let quoted = &self.packets(about, 0xffff)[0];
                bytes.extend(&quoted[..if six { quoted.len() } else { 28 }]);
                (icmp, bytes, 2)
            }
            // Linux answers nobody whose bytes have no right sum, whatever the protocol.
            Message::Plain => (NOBODY_KNOWS, b"\0\0nobody knows".to_vec(), 0),
        };
        // ICMP of IPv4 sums no pseudo header, as what nobody knows in IPv4.
        let mut summed = Vec::new();
        if six || matches!(protocol, 6 | 17) {
            summed.extend([octets(source), octets(target), vec![0, protocol]].concat());
            summed.extend((bytes.len() as u16).to_be_bytes());
        }
        summed.extend(&bytes);
        let sum = !packet::checksum::sum(&summed);
        bytes[check..check + 2].copy_from_slice(&sum.to_be_bytes());
        (protocol, bytes)
    }

    /// The packets of a step, with this identification: two fragments, or one whole packet. In IPv6 the flow
    /// label is the identification.
    pub(crate) fn packets(&self, step: usize, identification: u16) -> Vec<Vec<u8>> {
        let (protocol, payload) = self.payload(step);
        let ((source, _), (target, _)) = self.between(self.steps[step].0);
        let (source, target) = (octets(source), octets(target));
        let of_four = |place: u16, part: &[u8]| {
            let mut header = vec![0x45, self.service];
            header.extend((20 + part.len() as u16).to_be_bytes());
            header.extend([identification.to_be_bytes(), place.to_be_bytes()].concat());
            header.extend([self.time_to_live, protocol, 0, 0]);
            header.extend([&source[..], &target].concat());
            let check = !packet::checksum::sum(&header);
            header[10..12].copy_from_slice(&check.to_be_bytes());
            [&header, part].concat()
        };
        let of_six = |place: Option<u16>, part: &[u8]| {
            let label = 6 << 28 | u32::from(self.service) << 20 | u32::from(identification);
            let mut header = label.to_be_bytes().to_vec();
            let more = place.map_or(Vec::new(), |place| {
                let mut more = vec![protocol, 0];
                more.extend(place.to_be_bytes());
                more.extend(u32::from(identification).to_be_bytes());
                more
            });
            header.extend(((part.len() + more.len()) as u16).to_be_bytes());
            header.extend([if more.is_empty() { protocol } else { 44 }, self.time_to_live]);
            [&header, &source[..], &target, &more, part].concat()
        };
        match (self.client.is_ipv6(), &self.steps[step].1) {
            (false, Message::Datagram(_, true)) => {
                vec![of_four(0x2000, &payload[..16]), of_four(2, &payload[16..])]
            }
            (false, _) => vec![of_four(0, &payload)],
            (true, Message::Datagram(_, true)) => {
                vec![of_six(Some(1), &payload[..16]), of_six(Some(16), &payload[16..])]
            }
            (true, _) => vec![of_six(None, &payload)],
        }
    }

    /// A step as the fields of its packet, whole.
    pub(crate) fn fields(&self, step: usize, state: State) -> policy::Packet {
        let mapped = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
            IpAddr::V6(address) => u128::from(address),
        };
        let (end, message) = &self.steps[step];
        let ((source, from), (target, to)) = self.between(*end);
        let (protocol, payload) = self.payload(step);
        let (in_port, out_port, mac) = if *end == End::Client { (1, 2, 1) } else { (2, 1, 4) };
        let (family, header) = if self.client.is_ipv6() { (6, 40) } else { (4, 20) };
        let mut fields = vec![
            (PacketField::Family, family),
            (PacketField::Source, mapped(source)),
            (PacketField::Destination, mapped(target)),
            (PacketField::Protocol, protocol.into()),
            (PacketField::LaterFragment, 0),
            (PacketField::InPort, in_port),
            (PacketField::OutPort, out_port),
            (PacketField::Dscp, u128::from(self.service >> 2)),
            (PacketField::Ecn, u128::from(self.service & 3)),
            (PacketField::TimeToLive, self.time_to_live.into()),
            (PacketField::Length, header + payload.len() as u128),
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
            (None, Message::Unreachable(_) | Message::Echo(false)) => State::Invalid,
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

    /// Who began it, if its first packet has passed.
    pub(crate) fn begun(&self) -> Option<End> {
        self.begun
    }

    /// Whether a policy lets a step pass that Linux follows connections for, and the state of its packet.
    fn decided(&mut self, policy: &Policy, conversation: &Conversation, step: usize) -> (bool, State) {
        let (end, message) = &conversation.steps[step];
        let state = self.state(*end, message);
        let packet = conversation.fields(step, state);
        let remembered = |memory: usize| self.remembers(conversation, *end, &policy.memories[memory].text);
        let verdict = evaluate(policy, Path::Forwarded, &packet, &remembered).expect("it ends");
        let passes = verdict.action == RuleAction::Pass;
        if passes {
            self.passed(*end, state);
        }
        (passes, state)
    }

    /// What Linux remembers of a connection, where a rule asks for it in a packet of this end: a match of
    /// nftables, or an option of iptables.
    fn remembers(&self, conversation: &Conversation, end: End, text: &str) -> bool {
        let Some(begun) = self.begun else { return false };
        let (asked, turned) = match serde_json::from_str::<Value>(text) {
            Ok(statement) => {
                let asked = &statement["match"];
                let (ct, prefix) = (&asked["left"]["ct"], &asked["right"]["prefix"]);
                let words = [&ct["dir"], &ct["key"], &asked["right"], &prefix["addr"], &prefix["len"]];
                (words.map(|word| word.as_str().map_or(word.to_string(), str::to_owned)), asked["op"] == "!=")
            }
            Err(_) => {
                let words: Vec<&str> = text.trim_start_matches("! ").split([' ', '/']).collect();
                let (direction, key) = match words[0].trim_start_matches("--ct").split_at_checked(4) {
                    Some((direction @ ("orig" | "repl"), key)) => (direction, key),
                    _ => ("", "direction"),
                };
                let value = words[1].to_lowercase();
                let length = words.get(2).unwrap_or(&"32").to_string();
                let words = [direction.to_owned(), key.to_owned(), value.clone(), value, length];
                (words, text.starts_with('!'))
            }
        };
        let [direction, key, value, address, length] = asked;
        let fits = if key == "direction" {
            value == if begun == end { "original" } else { "reply" }
        } else {
            let is_destination = key.ends_with("dst") || key.ends_with("daddr");
            let is_of_client = (begun == End::Client) != (direction.starts_with("repl") != is_destination);
            let own = if is_of_client { conversation.client } else { conversation.server };
            let within: IpAddr = address.parse().expect("an address");
            let length: u32 = length.parse().expect("a length");
            match (own, within) {
                (IpAddr::V4(own), IpAddr::V4(within)) => {
                    (u32::from(own) ^ u32::from(within)).leading_zeros() >= length
                }
                (IpAddr::V6(own), IpAddr::V6(within)) => {
                    (u128::from(own) ^ u128::from(within)).leading_zeros() >= length
                }
                // What a connection has not, Linux compares with nothing.
                _ => return false,
            }
        };
        fits != turned
    }

    /// The packet has passed all rules.
    pub(crate) fn passed(&mut self, end: End, state: State) {
        if state == State::New {
            self.begun.get_or_insert(end);
        }
    }
}

/// Packets on their way, each by the identification that it is known by.
pub(crate) type OnTheWay = HashMap<u16, (IpAddr, IpAddr)>;

/// Makes a conversation with a number.
pub(crate) type MakeConversation = fn(&mut Random, AddressFamily, u32) -> Conversation;

/// How Linux and a policy treated the steps of many conversations.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Which conversations are carried on; all of them, if nothing says it.
    only: Option<fn(&Conversation) -> bool>,
    /// How they are made, if not by [`Conversation::made`].
    made: Option<MakeConversation>,
    /// How many conversations there were.
    conversations: u32,
    /// How many packets passed.
    pub(crate) passed: usize,
    /// How many did not.
    pub(crate) dropped: usize,
}

impl Carried {
    /// Of these conversations alone.
    pub(crate) fn only(only: fn(&Conversation) -> bool) -> Carried {
        Carried { only: Some(only), ..Carried::default() }
    }

    /// Of these conversations, made so.
    pub(crate) fn made(self, made: MakeConversation) -> Carried {
        Carried { made: Some(made), ..self }
    }

    /// Carries on conversations that follow from `random`, and says where Linux and the policy differ.
    pub(crate) fn agree(
        &mut self,
        router: &mut Router,
        policy: &Policy,
        family: AddressFamily,
        random: &mut Random,
    ) -> Result<(), String> {
        let decider = || {
            let mut connections: HashMap<usize, Connection> = HashMap::new();
            move |index: usize, conversation: &Conversation, step: usize| {
                connections.entry(index).or_default().decided(policy, conversation, step)
            }
        };
        self.agree_with(router, &decider, family, random)
    }

    /// The same, where each decider says anew which steps of the conversations pass, and in which state Linux
    /// has them.
    pub(crate) fn agree_with<D: FnMut(usize, &Conversation, usize) -> (bool, State)>(
        &mut self,
        router: &mut Router,
        decider: &dyn Fn() -> D,
        family: AddressFamily,
        random: &mut Random,
    ) -> Result<(), String> {
        (0..times()).try_for_each(|_| self.agree_once(router, decider, family, random))
    }

    fn agree_once<D: FnMut(usize, &Conversation, usize) -> (bool, State)>(
        &mut self,
        router: &mut Router,
        decider: &dyn Fn() -> D,
        family: AddressFamily,
        random: &mut Random,
    ) -> Result<(), String> {
        let made = random.below(u64::MAX >> 33);
        // A frame that a busy machine lost is lost once; what Linux decides it decides again.
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let mut random = Random(made);
            let first = self.conversations;
            self.conversations += TOGETHER;
            let conversations: Vec<Conversation> = (first..self.conversations)
                .map(|number| self.made.unwrap_or(Conversation::made)(&mut random, family, number))
                .filter(|conversation| self.only.is_none_or(|only| only(conversation)))
                .collect();
            match self.differs(router, &mut decider(), &conversations) {
                Some(differs) => seen.push(differs),
                None => {
                    let steps = |conversation: &Conversation| conversation.steps.len();
                    router.judged.in_conversations += conversations.iter().map(steps).sum::<usize>();
                    return Ok(());
                }
            }
        }
        Err(format!("{seen:#?}"))
    }

    /// Carries on these conversations, and says at which step the first one differs.
    fn differs(
        &mut self,
        router: &mut Router,
        decide: &mut dyn FnMut(usize, &Conversation, usize) -> (bool, State),
        conversations: &[Conversation],
    ) -> Option<String> {
        let longest = conversations.iter().map(|conversation| conversation.steps.len()).max()?;
        let mut differs = None;
        for step in 0..longest {
            let (mut frames, mut on_the_way, mut wanted) = (Vec::new(), OnTheWay::new(), Vec::new());
            for (index, conversation) in conversations.iter().enumerate() {
                let Some((end, _)) = conversation.steps.get(step) else { continue };
                let (passes, state) = decide(index, conversation, step);
                let identification = index as u16 + 1;
                let packets = conversation.packets(step, identification);
                let ((source, _), (target, _)) = conversation.between(*end);
                on_the_way.insert(identification, (source, target));
                frames.extend(packets.into_iter().map(|packet| (*end == End::Server, packet)));
                wanted.push((index, identification, passes, state));
                let count = if passes { &mut self.passed } else { &mut self.dropped };
                *count += 1;
            }
            let came = router.exchange(&frames, &on_the_way);
            for (index, identification, passes, state) in wanted {
                if came.contains(&identification) != passes && differs.is_none() {
                    let conversation = &conversations[index];
                    differs = Some(format!("step {step}, {state:?}, wanted {passes}: {conversation:?}"));
                }
            }
        }
        differs
    }
}
