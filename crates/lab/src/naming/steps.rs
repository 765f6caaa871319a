//! What a set-up takes, step by step, as the paper on AVES (USENIX 2001) has measured its own: from a query
//! to SETUP, from SETUP to ACCEPT, from ACCEPT to the reply; and set-ups a second by mode.
//!
//! ```text
//!  name server                          tunnel           waypoint
//!  query ─► held ─► asker ─► SETUP ─► sealed ══════► opened ─► owner ─► promise, entries of packets
//!  reply ◄─ held ◄─ asker ◄────────── opened ◄══════ sealed ◄─ ACCEPT ◄──┘
//! ```
//!
//! Both are in memory, on one thread, with everything but sockets and the table of packets. Clients ask in
//! groups, and each step is done for a group, so that reading the clock adds nothing to it.

use super::paper_message::{self, PAPER_SUM};
use super::queries::{self, A, AAAA, Told, ZONE, half_cookie, query, whole_cookie};
use super::set_ups::{ADDRESSES, PAPER_BOUND};
use crate::experiment::{Figure, Row};
use crate::plan::LabPlan;
use cpu_time::ThreadTime;
use naming::control::{
    AnswerBody, AskBody, ControlMessage, ControlOwner, Peer, Rejection, SetUp, SetUpAction, SetUpAsker,
    SetUpOutcome, decode, encode,
};
use naming::dns::{
    Arrival, CookieSecrets, DnsAnswer, DnsMoment, DnsPolicy, DnsTransport, Ipv4Mode, NameDescription,
    NameServer, NameServerDescription, Zone, ZoneDescription,
};
use naming::limits::SECOND;
use naming::{AddressPool, Hold, PathEntries, Responder, Waypoint};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tunnel::{PeerId, Received, SendOutcome, Tunnel, TunnelPayload};

/// Hosts, each with a name.
const HOSTS: u32 = 10_000;
/// Clients that ask together.
const GROUP: u32 = 64;
/// Addresses for initiators that are known, and for others.
const KNOWN: u32 = 50;
const UNKNOWN: u32 = 900;
/// Entries that packets have room for.
const MOST_ENTRIES: usize = 1 << 17;
/// The waypoint, for the name server, and the name server, for the waypoint.
const PEER: Peer = Peer(1);
/// Seconds since 1970, for cookies.
const UNIX: u32 = 1_800_000_000;
/// Room for a message in the tunnel.
const ROOM: usize = 512;
/// SETUP and ACCEPT together are to take no more.
const GOAL: f64 = 8_000.0;

/// How a client is known to who promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The client asks itself.
    Known,
    /// Its resolver tells the client's network.
    Network,
    /// Its resolver tells nothing.
    Unknown,
    /// The host has an address of IPv6 for everybody, so nothing is set up.
    Stable,
}

impl Mode {
    const ALL: [Mode; 4] = [Mode::Known, Mode::Network, Mode::Unknown, Mode::Stable];

    fn case(self) -> &'static str {
        match self {
            Mode::Known => "set-up of a name, known initiator",
            Mode::Network => "set-up of a name, network of the initiator known (ECS)",
            Mode::Unknown => "set-up of a name, unknown initiator",
            Mode::Stable => "set-up of a name, stable address of IPv6",
        }
    }

    /// How far apart clients ask, so that all are promised something.
    fn pause(self) -> u64 {
        match self {
            Mode::Known | Mode::Stable => 50_000,
            Mode::Network | Mode::Unknown => SECOND / 300,
        }
    }
}

/// The parts of a set-up, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Query,
    SetUp,
    Accept,
    Accepted,
    Reply,
}

/// Nanoseconds of each part for a set-up.
type Parts = [f64; 5];

/// A row of the paper's table.
struct Step {
    what: &'static str,
    parts: &'static [Part],
    paper: Option<f64>,
}

const STEPS: [Step; 5] = [
    Step { what: "query to SETUP", parts: &[Part::Query, Part::SetUp], paper: Some(142_000.0) },
    Step { what: "SETUP to ACCEPT", parts: &[Part::Accept], paper: Some(71_000.0) },
    Step { what: "ACCEPT to reply", parts: &[Part::Accepted, Part::Reply], paper: Some(17_900.0) },
    Step {
        what: "whole look-up",
        parts: &[Part::Query, Part::SetUp, Part::Accept, Part::Accepted, Part::Reply],
        paper: Some(357_000.0),
    },
    Step {
        what: "SETUP and ACCEPT without DNS",
        parts: &[Part::SetUp, Part::Accept, Part::Accepted],
        paper: None,
    },
];

/// The paper's set-ups a second where clients ask for themselves.
const PAPER_KNOWN: f64 = 2_800.0;

/// The rows. `mhz` is how often the processor's clock ticks in a microsecond, where that is known;
/// `by_addresses` how many set-ups of unknown initiators a second the addresses allow.
pub(super) fn rows(plan: &LabPlan, mhz: Option<f64>, by_addresses: Option<Figure>) -> Vec<Row> {
    let groups = if plan.quick { 20 } else { 1_000 };
    let mut parts: Vec<Vec<Parts>> = vec![Vec::new(); Mode::ALL.len()];
    let (mut sealed, mut summed) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        for (mode, parts) in Mode::ALL.into_iter().zip(&mut parts) {
            parts.extend(Roles::new().and_then(|mut roles| roles.measure(mode, groups)));
        }
        sealed.extend(Roles::new().and_then(|mut roles| roles.authentication(groups)));
        summed.extend(paper_message::message(groups));
    }
    let case = Mode::Known.case();
    let mut rows = Vec::new();
    let mut step = |what: &str, nanoseconds: Vec<f64>, paper| {
        let row = match mhz {
            Some(mhz) => {
                let cycles = Figure::of(nanoseconds.iter().map(|time| time * mhz / 1e3));
                Row::alone(case, what, "cycles", cycles, paper)
            }
            None => Row::absent(case, what, "the system does not tell the processor's clock"),
        };
        rows.push(row);
    };
    for Step { what, parts: of, paper } in STEPS {
        let sum = |all: &Parts| of.iter().map(|part| all[*part as usize]).sum();
        let goal = if paper.is_none() { format!("{what} (goal: {GOAL:.0})") } else { what.to_owned() };
        step(&goal, parts[0].iter().map(sum).collect(), paper);
    }
    let [seal, open] = [0, 1].map(|way| sealed.iter().map(|both: &[f64; 2]| both[way]).collect::<Vec<_>>());
    step("authentication of a control message: seal", seal, Some(PAPER_SUM));
    step("authentication of a control message: open", open, Some(PAPER_SUM));
    let [seal, open] = [0, 1].map(|way| summed.iter().map(|both| both[way]).collect::<Vec<_>>());
    step("authentication as in the paper, by MD5: seal", seal, Some(PAPER_SUM));
    step("authentication as in the paper, by MD5: open", open, Some(PAPER_SUM));
    for (mode, parts) in Mode::ALL.into_iter().zip(parts) {
        let rate = Figure::of(parts.iter().map(|all| 1e9 / all.iter().sum::<f64>()));
        let paper = (mode == Mode::Known).then_some(PAPER_KNOWN);
        rows.push(Row::alone(mode.case(), "a second of a processor", "1/s", rate, paper));
    }
    let what = format!("a second by {ADDRESSES} addresses, simulated");
    rows.push(Row::alone(Mode::Unknown.case(), &what, "1/s", by_addresses, Some(PAPER_BOUND)));
    rows
}

/// A name server and a waypoint with a tunnel between them.
struct Roles {
    name_server: NameServer,
    asker: SetUpAsker,
    gateway: Arc<str>,
    tunnels: [Tunnel; 2],
    owner: ControlOwner,
    waypoint: Waypoint,
    hosts: HashMap<(Arc<str>, Ipv4Addr), Responder>,
    entries: PathEntries,
    now: u64,
    clients: u32,
}

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + number)
}

fn zone() -> Option<Zone> {
    let mut description = ZoneDescription::new(ZONE.to_owned());
    let name = "ns.other.example.".to_owned();
    description.name_servers = vec![NameServerDescription { name, addresses: Vec::new() }];
    let named = |number: u32| NameDescription {
        name: format!("h{number}"),
        responder: number,
        services: vec!["tcp/22".to_owned()],
        ipv6: Some(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number + 1))),
        ipv4: Ipv4Mode::PerInitiator,
        https: None,
    };
    description.names = (0..HOSTS).map(named).collect();
    Zone::new(&description).ok()
}

impl Roles {
    fn new() -> Option<Roles> {
        let secrets = CookieSecrets { current: [7; 16], previous: None };
        let policy = DnsPolicy {
            clients: vec![(Ipv4Addr::new(20, 0, 0, 0), 6)],
            replies_per_second: 0,
            ..DnsPolicy::default()
        };
        let part = |first: u32, count: u32| (first..first + count).map(Ipv4Addr::from_bits).collect();
        let pool = AddressPool { known: part(0xcb00_7100, KNOWN), unknown: part(0xc633_6400, UNKNOWN) };
        let gateway: Arc<str> = "home".into();
        let hosts = (0..HOSTS).map(|number| ((gateway.clone(), host(number)), Responder(number))).collect();
        Some(Roles {
            name_server: NameServer::new(zone()?, policy, secrets),
            asker: SetUpAsker::new(1, [PEER]),
            gateway,
            tunnels: super::by_size::pair()?,
            owner: ControlOwner::new(1),
            waypoint: Waypoint::new(pool).ok()?.holding(Hold::Measured),
            hosts,
            entries: PathEntries::new(MOST_ENTRIES),
            now: SECOND,
            clients: 0,
        })
    }

    fn answer(&mut self, (bytes, from): &(Vec<u8>, SocketAddr), out: &mut Vec<u8>) -> DnsAnswer {
        let at = DnsMoment { now: self.now, unix: UNIX };
        let (from, transport) = (*from, DnsTransport::Udp);
        self.name_server.answer(&Arrival { bytes, from, transport, at, under_load: false }, out)
    }

    /// The next client's query, with the cookie that it has got.
    fn ask(&mut self, mode: Mode) -> Option<(Vec<u8>, SocketAddr)> {
        let client = self.clients;
        self.clients += 1;
        // The first bits are those of clients that ask for themselves, or those of resolvers.
        let first = if mode == Mode::Known { 20 << 24 } else { 60 << 24 };
        let from = SocketAddr::new(
            Ipv4Addr::from_bits(first + client.wrapping_mul(0x1_0101) % (1 << 26)).into(),
            4_000,
        );
        let half = half_cookie(client);
        let kind = if mode == Mode::Stable { AAAA } else { A };
        let mut told = Told { cookie: half.clone(), network: None };
        let mut out = Vec::new();
        self.answer(&(query(0, "h0", AAAA, &told), from), &mut out);
        told.cookie = whole_cookie(&half, &out)?;
        if mode == Mode::Network {
            told.network = Some(Ipv4Addr::from_bits((100 << 24) + ((client % (1 << 15)) << 8)));
        }
        Some((query(client as u16, &format!("h{}", client % HOSTS), kind, &told), from))
    }

    /// The time of each part for a set-up; none where a client gets no address.
    fn measure(&mut self, mode: Mode, groups: u32) -> Option<Parts> {
        let mut sum = [Duration::ZERO; 5];
        for group in 0..=groups {
            let queries: Option<Vec<_>> = (0..GROUP).map(|_| self.ask(mode)).collect();
            let took = match mode {
                Mode::Stable => self.stable(&queries?)?,
                _ => self.group(&queries?)?,
            };
            self.now += mode.pause() * u64::from(GROUP);
            // The first group warms up.
            if group > 0 {
                sum.iter_mut().zip(took).for_each(|(sum, took)| *sum += took);
            }
        }
        Some(sum.map(|sum| sum.as_nanos() as f64 / f64::from(groups * GROUP)))
    }

    fn stable(&mut self, queries: &[(Vec<u8>, SocketAddr)]) -> Option<[Duration; 5]> {
        let mut out = Vec::new();
        let mut took = [Duration::ZERO; 5];
        let begin = ThreadTime::now();
        for query in queries {
            self.answer(query, &mut out);
            if queries::outcome(&out)? != (0, 1) {
                return None;
            }
        }
        took[Part::Query as usize] = begin.elapsed();
        Some(took)
    }

    fn group(&mut self, queries: &[(Vec<u8>, SocketAddr)]) -> Option<[Duration; 5]> {
        let now = self.now;
        let (mut out, mut message) = (Vec::new(), Vec::new());
        let mut begin = ThreadTime::now();
        let mut took = [Duration::ZERO; 5];
        let mut ends = |part: Part| {
            took[part as usize] = begin.elapsed();
            begin = ThreadTime::now();
        };
        let mut held = Vec::with_capacity(queries.len());
        for query in queries {
            let DnsAnswer::Hold(number, ask) = self.answer(query, &mut out) else { return None };
            held.push((number, ask));
        }
        ends(Part::Query);
        let mut waiting = HashMap::with_capacity(held.len());
        for (number, ask) in held {
            let place = host(ask.responder.0);
            let question = self.asker.ask(SetUp::of(ask, self.gateway.clone(), place), now);
            waiting.insert(question, number);
        }
        let mut setups = Vec::with_capacity(queries.len());
        while let Some(SetUpAction::Send(_, ask)) = self.asker.poll(now) {
            message.clear();
            encode(&ControlMessage::Ask(ask), &mut message);
            setups.push(self.seal(0, &message)?);
        }
        ends(Part::SetUp);
        let mut accepts = Vec::with_capacity(queries.len());
        for mut setup in setups {
            let ControlMessage::Ask(ask) = self.open(1, &mut setup)? else { return None };
            let Roles { owner, waypoint, hosts, entries, .. } = self;
            let answer = owner.heard(PEER, &ask, now, |body| carry_out(body, waypoint, hosts, entries, now));
            message.clear();
            encode(&ControlMessage::Answer(answer.ok()?), &mut message);
            accepts.push(self.seal(1, &message)?);
        }
        ends(Part::Accept);
        let mut settled = Vec::with_capacity(queries.len());
        for mut accept in accepts {
            let ControlMessage::Answer(answer) = self.open(0, &mut accept)? else { return None };
            if !self.asker.heard(PEER, &answer, now) {
                return None;
            }
        }
        while let Some(SetUpAction::Settled(question, SetUpOutcome::Promised(address))) = self.asker.poll(now)
        {
            settled.push((waiting.remove(&question)?, address));
        }
        ends(Part::Accepted);
        let answered = settled.len();
        for (number, address) in settled {
            self.name_server.resume(number, Ok(address), &mut out)?;
            if queries::outcome(&out)? != (0, 1) {
                return None;
            }
        }
        ends(Part::Reply);
        (answered == queries.len()).then_some(took)
    }

    fn seal(&mut self, from: usize, message: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; ROOM];
        match self.tunnels[from].send(SECOND, PeerId(0), TunnelPayload::Control(message), &mut out).ok()? {
            SendOutcome::Sealed(sealed) => out.truncate(sealed.length),
            SendOutcome::Queued => return None,
        }
        Some(out)
    }

    fn open(&mut self, at: usize, datagram: &mut [u8]) -> Option<ControlMessage> {
        let from = super::by_size::address(2 - at as u8);
        let Ok(Received::Control(_, range)) = self.tunnels[at].receive(SECOND, from, datagram) else {
            return None;
        };
        decode(&datagram[range]).ok()
    }

    /// Nanoseconds to seal a SETUP, and to open it.
    fn authentication(&mut self, groups: u32) -> Option<[f64; 2]> {
        let mut spent = [Duration::ZERO; 2];
        let setup = self.setup()?;
        for group in 0..=groups {
            let mut buffers = vec![[0; ROOM]; GROUP as usize];
            let mut lengths = [0; GROUP as usize];
            let begin = ThreadTime::now();
            for (buffer, length) in buffers.iter_mut().zip(&mut lengths) {
                let payload = TunnelPayload::Control(&setup);
                match self.tunnels[0].send(SECOND, PeerId(0), payload, buffer).ok()? {
                    SendOutcome::Sealed(sealed) => *length = sealed.length,
                    SendOutcome::Queued => return None,
                }
            }
            let sealing = begin.elapsed();
            let begin = ThreadTime::now();
            for (buffer, length) in buffers.iter_mut().zip(lengths) {
                self.tunnels[1].receive(SECOND, super::by_size::address(1), &mut buffer[..length]).ok()?;
            }
            if group > 0 {
                spent[0] += sealing;
                spent[1] += begin.elapsed();
            }
        }
        Some(spent.map(|spent| spent.as_nanos() as f64 / f64::from(groups * GROUP)))
    }

    /// A SETUP as bytes.
    fn setup(&mut self) -> Option<Vec<u8>> {
        let query = self.ask(Mode::Known)?;
        let mut out = Vec::new();
        let DnsAnswer::Hold(_, ask) = self.answer(&query, &mut out) else { return None };
        self.asker.ask(SetUp::of(ask, self.gateway.clone(), host(0)), self.now);
        let SetUpAction::Send(_, ask) = self.asker.poll(self.now)? else { return None };
        out.clear();
        encode(&ControlMessage::Ask(ask), &mut out);
        Some(out)
    }
}

/// What a waypoint does for an ask: it promises an address, and says which entries packets need for it.
fn carry_out(
    body: &AskBody,
    waypoint: &mut Waypoint,
    hosts: &HashMap<(Arc<str>, Ipv4Addr), Responder>,
    entries: &mut PathEntries,
    now: u64,
) -> AnswerBody {
    let AskBody::SetUp(wanted) = body else { return AnswerBody::Reject(Rejection::Unsupported) };
    let Some(responder) = hosts.get(&(wanted.gateway.clone(), wanted.host)) else {
        return AnswerBody::Reject(Rejection::UnknownResponder);
    };
    let ask = wanted.ask(*responder);
    let promise = match waypoint.set_up(&ask, now) {
        Ok(promise) => promise,
        Err(why) => return AnswerBody::Reject(Rejection::SetUp(why)),
    };
    let mut changes = Vec::new();
    let promised = (promise.address, &ask.services, promise.initiators);
    if entries.follow(waypoint, promised, now, &mut changes).is_err() {
        return AnswerBody::Reject(Rejection::NoRoom);
    }
    let exclusive = (promise.exclusive_until - now) / 1_000;
    AnswerBody::Accept(promise.address, exclusive as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_of_each_mode_gets_an_address() {
        for mode in Mode::ALL {
            // More clients than there are addresses.
            let parts = Roles::new()
                .and_then(|mut roles| roles.measure(mode, 20))
                .unwrap_or_else(|| panic!("{mode:?}"));
            assert!(parts[Part::Query as usize] > 0.0, "{mode:?}");
            assert_eq!(parts[Part::Accept as usize] > 0.0, mode != Mode::Stable, "{mode:?}");
        }
        assert!(Roles::new().and_then(|mut roles| roles.authentication(1)).is_some());
    }

    #[test]
    fn the_parts_of_the_paper_are_the_whole() {
        let whole = STEPS.iter().find(|step| step.what == "whole look-up").expect("is there");
        let three: Vec<Part> = STEPS[..3].iter().flat_map(|step| step.parts).copied().collect();
        assert_eq!(three, whole.parts);
    }
}
