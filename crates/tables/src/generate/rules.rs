//! Generates rule sets over the five fields of a flow, similar to access lists, firewalls and chains of a
//! Linux gateway.
//!
//! The idea: addresses come from two pools of prefixes, smaller than the rule set by a factor that the
//! flavour sets, so that rules share them as in real sets; ports come in the five classes of Taylor and
//! Turner ("ClassBench: a packet classification benchmark", 2007): any, 0 to 1023, 1024 to 65535, another
//! range, one port. Narrow rules mostly stand before wide ones. All shares are rounded from that paper and
//! from Gupta and McKeown ("Packet classification on multiple fields", 1999).

use std::collections::HashSet;
use std::fmt;

use super::{Random, Weighted};

/// The most rules that are made.
pub const MAX_RULES: usize = 1 << 20;

/// What a rule set is modelled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Access lists: most sources and destinations are hosts, source ports are free.
    AccessList,
    /// Firewalls: one side is often any address or half of all, services on both sides.
    Firewall,
    /// Chains of a Linux gateway: networks and hosts, many rules for any protocol.
    Chains,
}

/// What rules are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSetSpec {
    /// What the set is modelled on.
    pub flavour: Flavour,
    /// How many; at most [`MAX_RULES`].
    pub count: usize,
    /// Chooses the set.
    pub seed: u64,
}

/// A prefix of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    /// The address, zero behind `length`.
    pub address: u32,
    /// Bits of the prefix.
    pub length: u8,
}

impl Network {
    /// Whether an address lies in it.
    #[inline]
    pub fn contains(&self, address: u32) -> bool {
        (address ^ self.address) & self.mask() == 0
    }

    /// Ones where the prefix is.
    #[inline]
    pub fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0)
    }
}

/// One rule: it matches what lies in all five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowRule {
    /// Source addresses.
    pub source: Network,
    /// Destination addresses.
    pub destination: Network,
    /// Lowest and highest source port.
    pub source_ports: (u16, u16),
    /// Lowest and highest destination port.
    pub destination_ports: (u16, u16),
    /// The protocol; `None` for any.
    pub protocol: Option<u8>,
}

/// The five fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleFlow {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Protocol.
    pub protocol: u8,
}

impl FlowRule {
    /// Whether a packet lies in all five.
    pub fn matches(&self, flow: &RuleFlow) -> bool {
        let between = |(low, high): (u16, u16), port| low <= port && port <= high;
        self.source.contains(flow.source)
            && self.destination.contains(flow.destination)
            && between(self.source_ports, flow.source_port)
            && between(self.destination_ports, flow.destination_port)
            && self.protocol.is_none_or(|protocol| protocol == flow.protocol)
    }
}

/// Different rules; the first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedRules {
    /// In order.
    pub rules: Vec<FlowRule>,
}

impl GeneratedRules {
    /// The rules of a spec. There are fewer than asked for only past [`MAX_RULES`].
    pub fn new(spec: &RuleSetSpec) -> GeneratedRules {
        let count = spec.count.min(MAX_RULES);
        let mut maker = Maker::new(spec.flavour, count, Random::new(spec.seed));
        let mut taken = HashSet::with_capacity(count);
        let mut rules: Vec<(u64, FlowRule)> = Vec::with_capacity(count);
        while rules.len() < count {
            let mut rule = maker.rule();
            // A small pool may not hold so many different rules; then a host takes the place of the
            // destination.
            if !taken.insert(rule) {
                rule.destination = Network { address: maker.random.word() as u32, length: 32 };
                if !taken.insert(rule) {
                    continue;
                }
            }
            rules.push((maker.rank(&rule), rule));
        }
        rules.sort_by_key(|(rank, _)| *rank);
        GeneratedRules { rules: rules.into_iter().map(|(_, rule)| rule).collect() }
    }

    /// The number of the first rule that matches; looks at one after the other.
    pub fn first_match(&self, flow: &RuleFlow) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches(flow))
    }

    /// A line a rule, in the format of ClassBench's filter sets.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for rule in &self.rules {
            let (source, destination) = (rule.source, rule.destination);
            write!(out, "@{}/{}\t", std::net::Ipv4Addr::from_bits(source.address), source.length)?;
            write!(out, "{}/{}\t", std::net::Ipv4Addr::from_bits(destination.address), destination.length)?;
            write!(out, "{} : {}\t", rule.source_ports.0, rule.source_ports.1)?;
            write!(out, "{} : {}\t", rule.destination_ports.0, rule.destination_ports.1)?;
            let mask = if rule.protocol.is_some() { 0xff } else { 0 };
            writeln!(out, "0x{:02x}/0x{mask:02X}\t0x0000/0x0000", rule.protocol.unwrap_or(0))?;
        }
        Ok(())
    }
}

/// Shares of prefix lengths of one side.
type Lengths = &'static [(u8, u64)];

/// The numbers that make a flavour.
struct Shape {
    source_lengths: Lengths,
    destination_lengths: Lengths,
    /// Size of the pools, in percent of the rules.
    source_pool: usize,
    destination_pool: usize,
    /// Shares of the classes any, low, high, another range, one port, of rules for TCP and UDP.
    source_classes: [u64; 5],
    destination_classes: [u64; 5],
}

const HOSTS: Lengths =
    &[(32, 66), (31, 8), (30, 7), (29, 2), (25, 2), (24, 6), (23, 5), (22, 2), (16, 1), (0, 1)];
const SERVERS: Lengths = &[(32, 64), (31, 12), (30, 5), (28, 3), (24, 7), (22, 4), (21, 2), (16, 2), (0, 1)];
const OUTSIDE: Lengths = &[(0, 50), (1, 8), (32, 25), (31, 6), (30, 4), (28, 4), (24, 3)];
const INSIDE: Lengths = &[(32, 52), (31, 12), (0, 20), (30, 5), (28, 3), (24, 4), (22, 2), (16, 2)];
const NETWORKS: Lengths =
    &[(32, 30), (24, 26), (25, 10), (23, 9), (26, 6), (22, 4), (27, 4), (16, 5), (0, 6)];
const NETWORKS_AND_HOSTS: Lengths =
    &[(32, 42), (24, 20), (25, 10), (26, 7), (23, 6), (28, 4), (16, 5), (0, 6)];

/// Ports that services are known by, the most frequent in rules first (IANA's registry).
const SERVICES: [u16; 32] = [
    80, 53, 25, 443, 22, 21, 123, 161, 23, 110, 143, 389, 69, 514, 1521, 3306, 8080, 445, 139, 137, 138,
    1433, 5060, 179, 993, 995, 3389, 162, 88, 111, 500, 2049,
];
/// ICMP, then protocols that are neither TCP nor UDP: GRE, ESP, AH, OSPF, PIM, SCTP.
const OTHERS: [u8; 6] = [47, 50, 51, 89, 103, 132];

impl Flavour {
    fn shape(self) -> Shape {
        match self {
            Flavour::AccessList => Shape {
                source_lengths: HOSTS,
                destination_lengths: SERVERS,
                source_pool: 45,
                destination_pool: 10,
                source_classes: [100, 0, 0, 0, 0],
                destination_classes: [18, 0, 4, 13, 65],
            },
            Flavour::Firewall => Shape {
                source_lengths: OUTSIDE,
                destination_lengths: INSIDE,
                source_pool: 40,
                destination_pool: 60,
                source_classes: [80, 0, 6, 1, 13],
                destination_classes: [22, 0, 8, 1, 69],
            },
            Flavour::Chains => Shape {
                source_lengths: NETWORKS,
                destination_lengths: NETWORKS_AND_HOSTS,
                source_pool: 12,
                destination_pool: 30,
                source_classes: [77, 0, 1, 3, 19],
                destination_classes: [28, 0, 9, 5, 58],
            },
        }
    }
}

struct Maker {
    random: Random,
    sources: Vec<Network>,
    destinations: Vec<Network>,
    services: Weighted,
    source_classes: Weighted,
    destination_classes: Weighted,
    protocols: Weighted,
}

impl Maker {
    fn new(flavour: Flavour, count: usize, mut random: Random) -> Maker {
        let shape = flavour.shape();
        Maker {
            sources: pool(&mut random, shape.source_lengths, count * shape.source_pool / 100),
            destinations: pool(&mut random, shape.destination_lengths, count * shape.destination_pool / 100),
            services: Weighted::zipf(SERVICES.len() as u32),
            source_classes: Weighted::new(&shape.source_classes),
            destination_classes: Weighted::new(&shape.destination_classes),
            // TCP, UDP, ICMP, any, others.
            protocols: Weighted::new(&[75, 14, 4, 6, 1]),
            random,
        }
    }

    fn rule(&mut self) -> FlowRule {
        let random = &mut self.random;
        let (protocol, has_ports) = match self.protocols.draw(random) {
            0 => (Some(6), true),
            1 => (Some(17), true),
            2 => (Some(1), false),
            3 => (None, false),
            _ => (random.pick(&OTHERS).copied(), false),
        };
        // Of two draws the lower place is taken, so early members of a pool are shared by more rules than
        // late ones.
        let favoured = |random: &mut Random, pool: &[Network]| {
            let place = random.below(pool.len() as u64).min(random.below(pool.len() as u64));
            pool[place as usize]
        };
        let source = favoured(random, &self.sources);
        let destination = favoured(random, &self.destinations);
        let (mut source_ports, mut destination_ports) = ((0, u16::MAX), (0, u16::MAX));
        if has_ports {
            source_ports = ports(self.source_classes.draw(random), &self.services, random);
            destination_ports = ports(self.destination_classes.draw(random), &self.services, random);
        }
        FlowRule { source, destination, source_ports, destination_ports, protocol }
    }

    /// Narrow rules come first, give or take a quarter of the scale.
    fn rank(&mut self, rule: &FlowRule) -> u64 {
        let free_bits =
            |(low, high): (u16, u16)| u64::from((high - low).checked_ilog2().map_or(0, |bits| bits + 1));
        let width = 64 - u64::from(rule.source.length) - u64::from(rule.destination.length)
            + free_bits(rule.source_ports)
            + free_bits(rule.destination_ports);
        width + self.random.below(26)
    }
}

/// So many prefixes, 4 at least; half of them lie in a network of 16 bits that another one lies in too.
fn pool(random: &mut Random, lengths: Lengths, count: usize) -> Vec<Network> {
    let shares: Vec<u64> = lengths.iter().map(|(_, share)| *share).collect();
    let shares = Weighted::new(&shares);
    let mut pool: Vec<Network> = Vec::with_capacity(count.max(4));
    while pool.len() < count.max(4) {
        let length = lengths[shares.draw(random)].0;
        let near = random.pick(&pool).copied().filter(|_| random.chance(50));
        let any = random.word() as u32;
        let address = match near {
            // Nearer than 16 bits in half of these cases: in the same 24.
            Some(near) if near.length >= 24 && random.chance(50) => near.address & !0xff | any & 0xff,
            Some(near) => near.address & !0xffff | any & 0xffff,
            None => any,
        };
        let mut network = Network { address, length };
        network.address &= network.mask();
        pool.push(network);
    }
    pool
}

/// A port range of a class: any, low, high, another range, one port.
fn ports(class: usize, services: &Weighted, random: &mut Random) -> (u16, u16) {
    match class {
        0 => (0, u16::MAX),
        1 => (0, 1023),
        2 => (1024, u16::MAX),
        3 => {
            // Ranges in use begin at a round number and are ten to a few thousand ports long.
            let length = [9, 19, 49, 99, 199, 999, 4999][random.below(7) as usize];
            let low = 1000 + 10 * random.below(5_900) as u16;
            (low, low.saturating_add(length))
        }
        _ => {
            let service = SERVICES[services.draw(random)];
            let port = if random.chance(85) { service } else { random.between(1024, 65_535) as u16 };
            (port, port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAVOURS: [Flavour; 3] = [Flavour::AccessList, Flavour::Firewall, Flavour::Chains];

    fn set(flavour: Flavour, count: usize, seed: u64) -> GeneratedRules {
        GeneratedRules::new(&RuleSetSpec { flavour, count, seed })
    }

    #[test]
    fn the_mix_of_protocols_holds_for_every_flavour() {
        for flavour in FLAVOURS {
            let rules = set(flavour, 20_000, 1).rules;
            let share = |protocol: Option<u8>| {
                rules.iter().filter(|rule| rule.protocol == protocol).count() as f64 / rules.len() as f64
                    * 100.0
            };
            for (protocol, expected) in [(Some(6), 75.0), (Some(17), 14.0), (Some(1), 4.0), (None, 6.0)] {
                let found = share(protocol);
                assert!((found - expected).abs() < 1.5, "{flavour:?} {protocol:?}: {found} %");
            }
        }
    }

    #[test]
    fn rules_are_different_valid_and_share_addresses() {
        for flavour in FLAVOURS {
            for count in [0, 1, 1000, 5000] {
                let rules = set(flavour, count, 2).rules;
                assert_eq!(rules.len(), count);
                assert_eq!(rules.iter().collect::<HashSet<_>>().len(), count);
                for rule in &rules {
                    assert_eq!(rule.source.address & !rule.source.mask(), 0);
                    assert!(rule.source_ports.0 <= rule.source_ports.1);
                    assert!(rule.destination_ports.0 <= rule.destination_ports.1);
                }
                let sources: HashSet<Network> = rules.iter().map(|rule| rule.source).collect();
                assert!(count < 1000 || sources.len() < count / 2, "{flavour:?}: {} sources", sources.len());
            }
        }
    }

    #[test]
    fn flavours_differ_where_real_sets_do() {
        let wide = |flavour| {
            let rules = set(flavour, 10_000, 3).rules;
            rules.iter().filter(|rule| rule.source.length <= 1).count()
        };
        assert!(wide(Flavour::Firewall) > 4000);
        assert!(wide(Flavour::AccessList) < 500);
        let free =
            set(Flavour::AccessList, 1000, 3).rules.iter().all(|rule| rule.source_ports == (0, u16::MAX));
        assert!(free);
        assert_eq!(set(Flavour::Chains, 100, 9), set(Flavour::Chains, 100, 9));
        assert_ne!(set(Flavour::Chains, 100, 9), set(Flavour::Chains, 100, 10));
    }

    #[test]
    fn a_line_has_the_fields_of_classbench() {
        let rule = FlowRule {
            source: Network { address: 0xc000_0200, length: 24 },
            destination: Network { address: 0, length: 0 },
            source_ports: (0, 65_535),
            destination_ports: (53, 53),
            protocol: Some(17),
        };
        let rules = vec![rule, FlowRule { protocol: None, ..rule }];
        let mut text = String::new();
        GeneratedRules { rules }.write(&mut text).expect("strings take all");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "@192.0.2.0/24\t0.0.0.0/0\t0 : 65535\t53 : 53\t0x11/0xFF\t0x0000/0x0000");
        assert_eq!(lines[1], "@192.0.2.0/24\t0.0.0.0/0\t0 : 65535\t53 : 53\t0x00/0x00\t0x0000/0x0000");
    }
}
