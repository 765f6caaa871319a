//! Makes packets by a profile and a seed: the same seed gives the same bytes, on every machine.

mod connection;
mod frame;
mod plan;
mod profile;

#[cfg(test)]
mod tests;

pub use connection::TcpStep;
pub use profile::{Profile, ProfileError};

use frame::{Host, LONGEST, Lower, Tcp};
use plan::{Class, Kind};
use rand_distr::{Distribution, Zipf};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// The time of the first packet: 2024-01-01 00:00:00 UTC, in nanoseconds since 1970.
const START: u64 = 1_704_067_200_000_000_000;

/// How many client ports each client has, from [`FIRST_CLIENT_PORT`] on.
const CLIENT_PORTS: u64 = 55_000;
const FIRST_CLIENT_PORT: u64 = 10_000;

const SYN: u8 = 0x02;
const PSH_ACK: u8 = 0x18;
const ACK: u8 = 0x10;

/// Makes the packets of a profile, one after the other, in memory that grows only with the number of flows.
///
/// ```
/// use captures::generate::{Generator, Profile};
///
/// let mut generator = Generator::new(&Profile::demo(), 1)?;
/// let mut bytes = Vec::new();
/// let mut packets = 0;
/// while let Some(stamp) = generator.next(&mut bytes) {
///     assert!(stamp.wire as usize >= bytes.len());
///     packets += 1;
/// }
/// assert_eq!(packets, 2_000);
/// # Ok::<(), captures::generate::ProfileError>(())
/// ```
pub struct Generator {
    random: Random,
    classes: Vec<Class>,
    popularity: Vec<Option<Zipf<f64>>>,
    sequences: Vec<[u32; 2]>,
    open_fragment: Vec<Option<Fragment>>,
    clients: u32,
    servers: u32,
    packets: u64,
    made: u64,
    snap: usize,
    cut_left: u64,
    damaged_left: u64,
    duration: u64,
    bidirectional: bool,
    peer_share: f64,
    /// How many bytes too few web requests have had so far, and all packets together.
    missing_requests: f64,
    missing: f64,
    payload: Vec<u8>,
}

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The length on the wire, in bytes.
    pub wire: u32,
    /// The time of arrival, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
}

/// A UDP packet of which the first fragment has been made.
struct Fragment {
    lower: Lower,
    payload: Vec<u8>,
    first: usize,
}

/// The two ends of a flow.
struct Ends {
    client: Host,
    server: Host,
    ports: [u16; 2],
}

struct Random(Pcg64Mcg);

impl Random {
    /// A number from 0 up to but without `n`; 0 where `n` is 0.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    fn chance(&mut self, probability: f64) -> bool {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }
}

/// How many of a number of hosts are clients.
fn clients(hosts: u32) -> u32 {
    (hosts / 4).max(1)
}

impl Generator {
    /// Starts to make the packets of a profile.
    pub fn new(profile: &Profile, seed: u64) -> Result<Generator, ProfileError> {
        profile.check()?;
        let classes = plan::classes(profile);
        let popularity =
            classes.iter().map(|class| Zipf::new(class.flows as f64, profile.zipf_exponent).ok()).collect();
        let mut random = Random(Pcg64Mcg::new(u128::from(seed) << 64 | 0xda3e_39cb_94b9_5bdb));
        // The first numbers of seeds near each other are alike.
        for _ in 0..16 {
            random.0.next_u64();
        }
        let sequences = (0..classes.iter().map(|class| class.flows).sum())
            .map(|_| {
                let number = random.0.next_u64();
                [number as u32, (number >> 32) as u32]
            })
            .collect();
        let clients = clients(profile.hosts);
        let part = |share: f64| (profile.packets as f64 * share).round() as u64;
        Ok(Generator {
            random,
            popularity,
            sequences,
            open_fragment: classes.iter().map(|_| None).collect(),
            classes,
            clients,
            servers: profile.hosts - clients,
            packets: profile.packets,
            made: 0,
            snap: profile.snap_bytes as usize,
            cut_left: part(profile.cut_share),
            damaged_left: part(profile.damaged_share),
            duration: profile.duration_ns,
            bidirectional: profile.bidirectional,
            peer_share: profile.peer_share,
            missing_requests: 0.0,
            missing: 0.0,
            payload: Vec::with_capacity(LONGEST),
        })
    }

    /// How many packets there are in all.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Puts the captured bytes of the next packet into `out`, in place of what it holds; `None` after the
    /// last.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Option<Stamp> {
        let left = self.packets - self.made;
        if left == 0 {
            out.clear();
            return None;
        }
        let index = self.draw_class();
        self.make(index, out);
        if self.random.below(left) < self.damaged_left {
            self.damaged_left -= 1;
            self.damage(index, out);
        }
        self.missing -= out.len() as f64;
        let wire = out.len() as u32;
        out.truncate(self.snap);
        if self.random.below(left) < self.cut_left {
            self.cut_left -= 1;
            out.truncate(20 + self.random.below(40) as usize);
        }
        let stamp = Stamp { wire, time: self.time() };
        self.made += 1;
        Some(stamp)
    }

    /// Draws a class by how many packets each has left.
    fn draw_class(&mut self) -> usize {
        let mut ticket = self.random.below(self.packets - self.made);
        for (index, class) in self.classes.iter().enumerate() {
            match ticket.checked_sub(class.left) {
                Some(rest) => ticket = rest,
                None => return index,
            }
        }
        0
    }

    /// Evenly spaced, each packet up to one space late.
    fn time(&mut self) -> u64 {
        let last = u128::from(self.packets - 1).max(1);
        let even = (u128::from(self.duration) * u128::from(self.made) / last) as u64;
        let space = self.duration / self.packets.max(1);
        let late = if self.made == 0 || self.made + 1 == self.packets { 0 } else { self.random.below(space) };
        (START + even + late).min(START + self.duration)
    }

    fn make(&mut self, index: usize, out: &mut Vec<u8>) {
        if let Some(fragment) = self.open_fragment[index].take() {
            self.classes[index].left -= 1;
            self.classes[index].forward_left -= 1;
            self.missing += self.classes[index].mean[0];
            fragment.lower.last_fragment(out, &fragment.payload, fragment.first);
            return;
        }
        let begins = self.classes[index].begins_flow();
        let flow = self.draw_flow(index, begins);
        let forward = self.draw_direction(index, begins);
        let class = &self.classes[index];
        let (kind, vlan, ipv6) = (class.kind, class.vlan, class.ipv6);
        let shortest = class.shortest();
        let mean = class.mean[usize::from(!forward)];
        let ends = self.ends(kind, flow);
        let (source, destination) =
            if forward { (ends.client, ends.server) } else { (ends.server, ends.client) };
        let identification = self.random.0.next_u64() as u16;
        let lower = Lower { source, destination, vlan: vlan.then_some(100), ipv6, identification };
        let length = self.draw_length(kind, forward, begins, shortest, mean);
        let room = |header: usize| length.saturating_sub(lower.header() + header);
        let ports = if forward { ends.ports } else { [ends.ports[1], ends.ports[0]] };
        match kind {
            Kind::Web | Kind::Tcp => self.tcp(out, &lower, ports, flow, forward, begins, room(20)),
            Kind::Udp => {
                self.fill_payload(room(8), &ports, forward);
                lower.udp(out, ports, &self.payload);
            }
            Kind::Fragment => {
                let first = (room(0) & !7).max(16);
                self.fill_payload(first - 8 + room(0), &ports, forward);
                lower.first_fragment(out, ports, &self.payload, first);
                self.open_fragment[index] = Some(Fragment { lower, payload: self.payload.clone(), first });
            }
            Kind::Icmp => {
                self.fill_payload(room(8), &[0; 2], forward);
                lower.echo(out, !forward, self.made as u16, &self.payload);
            }
            Kind::Arp => lower.arp(out, !forward),
            Kind::Other => {
                self.fill_payload(40, &[0; 2], forward);
                lower.loopback(out, &self.payload);
            }
        }
    }

    /// The flow of the next packet: a new one when it is time for that, else one that has begun, by
    /// popularity.
    fn draw_flow(&mut self, index: usize, begins: bool) -> u64 {
        let class = &mut self.classes[index];
        if begins {
            class.begun += 1;
            return class.first_flow + class.begun - 1;
        }
        match &self.popularity[index] {
            Some(popularity) if class.begun > 0 => {
                let rank = popularity.sample(&mut self.random.0) as u64;
                class.first_flow + rank.saturating_sub(1) % class.begun
            }
            _ => self.random.below(u64::from(self.servers) * u64::from(self.clients)),
        }
    }

    /// Whether the next packet goes from client to server; the first of a flow does.
    fn draw_direction(&mut self, index: usize, begins: bool) -> bool {
        let class = &mut self.classes[index];
        let forward =
            class.forward_left > 0 && (begins || self.random.below(class.left) < class.forward_left);
        class.left -= 1;
        if forward {
            class.forward_left -= 1;
        }
        forward
    }

    /// The ends of a flow, by its number: no two flows have the same client and port.
    fn ends(&self, kind: Kind, flow: u64) -> Ends {
        let clients = u64::from(self.clients);
        let scattered = scatter(flow);
        let port = FIRST_CLIENT_PORT + (flow / clients) * 7 % CLIENT_PORTS;
        let choices: &[u16] = match kind {
            Kind::Web => &[443, 443, 443, 80, 80],
            Kind::Tcp => &[22, 25, 102, 502, 993, 3306, 5432, 8883],
            Kind::Udp => &[53, 53, 53, 123, 161, 3478, 4500, 5060],
            Kind::Fragment => &[2049],
            Kind::Icmp | Kind::Arp | Kind::Other => &[0],
        };
        let client = flow % clients;
        // Other bits of the hash than those that choose the server decide whether it is a peer.
        let peer = kind == Kind::Web
            && clients > 1
            && ((scattered >> 16) as u16 as f64) < self.peer_share * 65_536.0;
        let server = if peer {
            Host { number: ((client + 1 + scattered % (clients - 1)) % clients) as u32, server: false }
        } else {
            Host { number: (scattered % u64::from(self.servers)) as u32, server: true }
        };
        Ends {
            client: Host { number: client as u32, server: false },
            server,
            ports: [port as u16, choices[(scattered >> 32) as usize % choices.len()]],
        }
    }

    /// Draws a length around the mean of the class, corrected by what is missing so far. Short means give
    /// short lengths all alike; longer ones short packets and full ones, as in real traffic.
    fn draw_length(&mut self, kind: Kind, forward: bool, begins: bool, shortest: usize, mean: f64) -> usize {
        self.missing += mean;
        let request = kind == Kind::Web && forward && self.bidirectional;
        let least = shortest as f64;
        let target = match kind {
            Kind::Web if request => {
                self.missing_requests += mean;
                self.missing_requests
            }
            Kind::Web | Kind::Tcp | Kind::Udp => mean + (self.missing - mean) / 4.0,
            _ => mean,
        };
        let target = target.clamp(least, LONGEST as f64 - 20.0);
        let opening = begins && forward && matches!(kind, Kind::Web | Kind::Tcp);
        let length = if opening {
            shortest
        } else if target - least <= 60.0 {
            shortest + self.random.below(2 * (target - least) as u64 + 1) as usize
        } else {
            // A long packet is full four times out of five.
            let long = 0.8 * LONGEST as f64 + 0.1 * (least + LONGEST as f64);
            let short = least + 40.0;
            if !self.random.chance((target - short) / (long - short)) {
                shortest + self.random.below(81) as usize
            } else if self.random.below(5) < 4 {
                LONGEST
            } else {
                shortest + self.random.below((LONGEST - shortest) as u64 + 1) as usize
            }
        };
        if request {
            self.missing_requests -= length as f64;
        }
        length
    }

    #[expect(clippy::too_many_arguments, reason = "what a TCP packet consists of")]
    fn tcp(
        &mut self,
        out: &mut Vec<u8>,
        lower: &Lower,
        ports: [u16; 2],
        flow: u64,
        forward: bool,
        begins: bool,
        room: usize,
    ) {
        let opening = begins && forward;
        self.fill_payload(if opening { 0 } else { room }, &ports, forward);
        let sequences = &mut self.sequences[flow as usize];
        let (own, other) = (usize::from(!forward), usize::from(forward));
        let flags = match (opening, self.payload.is_empty()) {
            (true, _) => SYN,
            (false, true) => ACK,
            (false, false) => PSH_ACK,
        };
        let tcp = Tcp {
            source: ports[0],
            destination: ports[1],
            sequence: sequences[own],
            acknowledgement: if opening { 0 } else { sequences[other] },
            flags,
        };
        let advance = self.payload.len() as u32 + u32::from(opening);
        sequences[own] = sequences[own].wrapping_add(advance);
        lower.tcp(out, tcp, &self.payload);
    }

    /// Fills the payload: something that looks like the service at its start, then random bytes.
    fn fill_payload(&mut self, length: usize, ports: &[u16; 2], forward: bool) {
        self.payload.clear();
        while self.payload.len() < length {
            self.payload.extend(self.random.0.next_u64().to_le_bytes());
        }
        self.payload.truncate(length);
        let service = if forward { ports[1] } else { ports[0] };
        let record_length = (length.saturating_sub(5) as u16).to_be_bytes();
        let tls = [0x17, 3, 3, record_length[0], record_length[1]];
        let start: &[u8] = match (service, forward) {
            (80, true) => b"GET / HTTP/1.1\r\nHost: example.org\r\n",
            (80, false) => b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n",
            (443, _) => &tls,
            (53, true) => {
                b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01"
            }
            (53, false) => {
                b"\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01"
            }
            _ => &[],
        };
        let n = start.len().min(length);
        self.payload[..n].copy_from_slice(&start[..n]);
    }

    /// Makes a header wrong, or the packet too short for one.
    fn damage(&mut self, index: usize, out: &mut Vec<u8>) {
        let class = &self.classes[index];
        let ip = if class.vlan { 18 } else { 14 };
        let is_ipv4 = !class.ipv6 && !matches!(class.kind, Kind::Arp | Kind::Other);
        let has_tcp = matches!(class.kind, Kind::Web | Kind::Tcp);
        match self.random.below(6) {
            // The version of IP.
            0 if is_ipv4 => out[ip] = 0x55,
            // A header length below the least.
            1 if is_ipv4 => out[ip] = 0x43,
            // A total length beyond the end of the frame.
            2 if is_ipv4 => out[ip + 2] = 0x7f,
            // A wrong header checksum.
            3 if is_ipv4 => out[ip + 10] ^= 0x55,
            // A data offset below the least.
            4 if is_ipv4 && has_tcp => out[ip + 32] = 0x20,
            _ => out.truncate(8 + self.random.below(30) as usize),
        }
    }
}

/// Spreads numbers that follow each other (the finaliser of SplitMix64, Steele, Lea and Flood, 2014).
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
