//! A waypoint and a gateway in memory: their programs, and packets of initiators and hosts at each side.

use crate::measure::SEED;
use crate::programs::compile;
use crate::traffic::LabError;
use cpu_time::ThreadTime;
use etherparse::PacketBuilder;
use exec::provision::provide;
use exec::{Backend, BackendKind, Outputs};
use lang::pipeline::Decode;
use packet::{BATCH, Batch, Frames, VerdictKind};
use std::net::Ipv4Addr;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// So many gateways with so many hosts each, since none has all the places for bindings.
const GATEWAYS: u32 = 4;
const HOSTS: u32 = 8;
/// The number by which gateways know the waypoint, and the network cards of each.
const WAYPOINT: u8 = 9;
const HERE: [u8; 6] = peer(0);
const ROUTER: [u8; 6] = [2, 0, 0x5e, 0, 0, 0xfe];
const WAYPOINT_CARD: [u8; 6] = [2, 0, 0x5e, 0, 0, 1];
const GATEWAY_CARD: [u8; 6] = [2, 0, 0x5e, 0, 0, 2];

/// Where each initiator is promised a host, by this port.
const AT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const SERVICE: u16 = 53;

/// Headers of IPv4 without options and of UDP.
const HEADERS: usize = 28;

const fn peer(number: u8) -> [u8; 6] {
    [2, 0x52, 0x56, 0, 0, number]
}

/// An initiator: initiators with the same host are in one network of 16 bits.
fn initiator(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0100_0000 + ((number % (GATEWAYS * HOSTS)) << 16) + number / (GATEWAYS * HOSTS))
}

/// The number of a host's gateway, the host's address and its network card, by the number of an initiator or
/// of its network.
fn host(number: u32) -> (u8, Ipv4Addr, [u8; 6]) {
    let last = 80 + (number % HOSTS) as u8;
    let gateway = 2 + (number / HOSTS % GATEWAYS) as u8;
    (gateway, Ipv4Addr::new(10, 0, 0, last), [2, 0, 0, 0, 0, last])
}

/// A side at which a packet comes in: where it is on its way between initiator and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// From the initiator, at the waypoint.
    WaypointIn,
    /// From the tunnel, at the gateway.
    GatewayIn,
    /// From the host, at the gateway.
    GatewayOut,
    /// From the tunnel, at the waypoint.
    WaypointOut,
}

impl Side {
    pub(super) const ALL: [Side; 4] =
        [Side::WaypointIn, Side::GatewayIn, Side::GatewayOut, Side::WaypointOut];

    /// In words, for a row.
    pub(super) fn case(self) -> &'static str {
        match self {
            Side::WaypointIn => "waypoint, to the host",
            Side::GatewayIn => "gateway, to the host",
            Side::GatewayOut => "gateway, from the host",
            Side::WaypointOut => "waypoint, from the host",
        }
    }

    pub(super) fn is_of_waypoint(self) -> bool {
        matches!(self, Side::WaypointIn | Side::WaypointOut)
    }

    /// Whether what comes in there leaves into the tunnel; else it has come out of it.
    pub(super) fn leaves_into_tunnel(self) -> bool {
        matches!(self, Side::WaypointIn | Side::GatewayOut)
    }

    /// The port at which packets of this side come in.
    fn port(self) -> u16 {
        match self {
            Side::WaypointIn | Side::GatewayIn => 1,
            Side::GatewayOut | Side::WaypointOut => 2,
        }
    }

    /// A packet of UDP between the initiator of a number and its host, of so many bytes of IPv4.
    fn frame(self, number: u32, size: usize) -> Vec<u8> {
        let (initiator, (gateway, host, card)) = (initiator(number), host(number));
        let (source, from, to, cards) = match self {
            Side::WaypointIn => (false, initiator, AT, (ROUTER, WAYPOINT_CARD)),
            Side::GatewayIn => (false, initiator, host, (peer(WAYPOINT), HERE)),
            Side::GatewayOut => (true, host, initiator, (card, GATEWAY_CARD)),
            Side::WaypointOut => (true, host, initiator, (peer(gateway), HERE)),
        };
        let (sender, receiver) = if source { (SERVICE, 4_000) } else { (4_000, SERVICE) };
        let mut bytes = Vec::with_capacity(size + 14);
        let ip = PacketBuilder::ethernet2(cards.0, cards.1).ipv4(from.octets(), to.octets(), 64);
        let body = vec![0x5a; size.saturating_sub(HEADERS)];
        let written = ip.udp(sender, receiver).write(&mut bytes, &body);
        written.unwrap_or_else(|_| unreachable!("a vector takes it"));
        bytes
    }
}

/// A program at work.
pub(super) struct End {
    backend: Box<dyn Backend>,
    now: u64,
}

impl End {
    /// The waypoint's program, with room for so many bindings.
    pub(super) fn waypoint(bindings: u64) -> Result<End, LabError> {
        let text = include_str!("../../../../programs/waypoint.rav");
        let promised = "        (198.51.100.2, 6, 80, _) => (2, 10.0.0.80)\n";
        let ours = (0..GATEWAYS * HOSTS).map(|network| {
            let (gateway, host, _) = host(network);
            format!("        ({AT}, 17, {SERVICE}, {}/16) => ({gateway}, {host})\n", initiator(network))
        });
        let text = text.replacen(promised, &ours.fold(promised.to_owned(), |all, one| all + &one), 1)
            + &format!("\nconst MOST_BINDINGS: u64 = {bindings}\n");
        End::of("waypoint", &text)
    }

    /// The gateway's program, which knows the hosts.
    pub(super) fn gateway() -> Result<End, LabError> {
        let mut end = End::of("names_gateway", include_str!("../../../../programs/names_gateway.rav"))?;
        let mut asks = Traffic::default();
        for number in 0..HOSTS {
            let (_, host, card) = host(number);
            let mut arp = [&[0xff; 6][..], &card, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &card].concat();
            arp.extend(host.octets());
            arp.extend([0; 6]);
            arp.extend([10, 0, 0, 1]);
            arp.resize(60, 0);
            asks.push(Side::GatewayOut, &arp);
        }
        end.run(&mut asks);
        Ok(end)
    }

    /// Packets as long as the cable takes fit into the tunnel, so that none is cut.
    fn of(name: &str, text: &str) -> Result<End, LabError> {
        let text = text.replacen("in 576..9000 = 1420", "in 576..9000 = 1500", 1);
        let program = compile(name, &text, Decode::Lazy).map_err(LabError::Program)?;
        let backend = exec::load(&program, BackendKind::Native, 2, SEED);
        let mut backend = backend.map_err(|error| LabError::Program(error.to_string()))?;
        // As a running gateway does where memory is not short.
        provide(&program, u64::MAX, backend.as_mut(), |_| true);
        Ok(End { backend, now: SECOND })
    }

    /// How many bindings of UDP there are.
    pub(super) fn bindings(&self) -> u64 {
        let tables = self.backend.tables();
        tables.iter().find(|table| table.name == "datagram_bindings").map_or(0, |table| table.entries)
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, time: u64) {
        self.now += time;
    }

    /// Runs all packets, 100 ns apart.
    pub(super) fn run(&mut self, traffic: &mut Traffic) -> Ran {
        let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
        let mut ran = Ran::default();
        for first in (0..traffic.ports.len()).step_by(BATCH) {
            batch.clear();
            outputs.clear();
            let filled = traffic.frames.fill(&mut batch, first..first + BATCH);
            batch.port[..filled].copy_from_slice(&traffic.ports[first..first + filled]);
            for time in &mut batch.time[..filled] {
                self.now += 100;
                *time = self.now;
            }
            let before = ThreadTime::now();
            self.backend.run(traffic.frames.memory_mut(), &mut batch, &mut outputs);
            let spent = before.elapsed();
            ran.time += spent;
            ran.longest = ran.longest.max(spent);
            ran.sent += batch.verdicts().iter().filter(|one| one.kind() == VerdictKind::Send).count();
        }
        ran
    }
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ran {
    /// How many were sent on.
    pub(super) sent: usize,
    /// What all took on the processor, and the longest batch.
    pub(super) time: Duration,
    pub(super) longest: Duration,
}

/// Frames, and the port by which each comes in.
#[derive(Default)]
pub(super) struct Traffic {
    frames: Frames,
    ports: Vec<u16>,
}

impl Traffic {
    /// Packets of initiators, one each, at a side.
    pub(super) fn of(side: Side, initiators: impl Iterator<Item = u32>, size: usize) -> Traffic {
        let mut traffic = Traffic::default();
        initiators.for_each(|initiator| traffic.push(side, &side.frame(initiator, size)));
        traffic
    }

    /// The first packet of each initiator, its answer, and a packet that shows that the answer came, at the
    /// waypoint.
    pub(super) fn binding(initiators: impl Iterator<Item = u32>, size: usize) -> Traffic {
        let mut traffic = Traffic::default();
        for initiator in initiators {
            for side in [Side::WaypointIn, Side::WaypointOut, Side::WaypointIn] {
                traffic.push(side, &side.frame(initiator, size));
            }
        }
        traffic
    }

    fn push(&mut self, side: Side, bytes: &[u8]) {
        self.frames.push(bytes, bytes.len() as u32, 0);
        self.ports.push(side.port());
    }

    pub(super) fn len(&self) -> usize {
        self.ports.len()
    }

    /// The packets alone, whichever port they come in by.
    pub(super) fn into_frames(self) -> Frames {
        self.frames
    }
}
