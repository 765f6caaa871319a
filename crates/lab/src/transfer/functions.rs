//! The functions of the original study, each as a program with its tables full and its packets.

use crate::device_workload::{DeviceWorkload, PORTS, Packets};
use crate::measure::SEED;
use crate::programs::compile;
use crate::router::packets::{Flow, made};
use exec::kernel::KernelOptions;
use ir::{ColumnKind, Entry, Match, Program, Table};
use lang::pipeline::Decode;
use packet::Verdict;
use tables::generate::routes::{GeneratedRoutes, Route, RoutesSpec};
use tables::generate::rules::{Flavour, FlowRule, GeneratedRules, Network, RuleSetSpec};
use tables::generate::{Random, Version, Weighted, addresses};

/// Rules, as many as in the original.
const RULES: usize = 100;
/// Different packets: the largest batch.
pub(crate) const PACKETS: usize = 65_536;

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The longest prefix of the destination.
    Lpm,
    /// The first of 100 rules over five fields.
    Firewall,
    /// Rules, then the route of what passes.
    Both,
}

impl Function {
    /// All, in the order of the report.
    pub(crate) const ALL: [Function; 3] = [Function::Lpm, Function::Firewall, Function::Both];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::Lpm => "LPM",
            Function::Firewall => "firewall",
            Function::Both => "both",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Function::Lpm => include_str!("lpm.rav"),
            Function::Firewall => include_str!("firewall.rav"),
            Function::Both => include_str!("both.rav"),
        }
    }

    /// The same for packets that are known to be IPv4 in Ethernet without options, as the original took them.
    fn bare_text(self) -> Option<&'static str> {
        match self {
            Function::Lpm => Some(include_str!("address.rav")),
            Function::Firewall => Some(include_str!("key.rav")),
            Function::Both => None,
        }
    }
}

/// A function on its data.
pub(crate) struct FunctionData {
    pub(crate) function: Function,
    pub(crate) whole: DeviceWorkload,
    /// The same packets and verdicts, by a program that does not check what packets are.
    pub(crate) bare: Option<DeviceWorkload>,
    pub(super) routes: Vec<Route>,
    /// Rules, and whether what fits them passes.
    pub(super) rules: Vec<(FlowRule, bool)>,
    pub(super) no_route: Verdict,
    pub(super) denied: Verdict,
    /// What is said where rules let a packet pass and nothing else is asked.
    pub(super) passed: Verdict,
}

impl FunctionData {
    /// Makes it, with so many routes, and lets the interpreter judge every packet.
    pub(crate) fn new(function: Function, routes: usize) -> Result<FunctionData, String> {
        let spec = RoutesSpec { version: Version::V4, count: routes, next_hops: PORTS.into(), seed: SEED };
        let mut routes = GeneratedRoutes::new(&spec);
        for route in &mut routes.routes {
            route.next_hop = 1 + route.next_hop % u32::from(PORTS);
        }
        let rules = rules();
        let frames = made(flows(&rules, &addresses::inside(&routes, PACKETS, SEED)).into_iter());
        let packets = Packets::by_port_1(frames);
        let judged = |text: &str| -> Result<DeviceWorkload, String> {
            let mut program = compile(function.name(), text, Decode::Lazy)?;
            for table in &mut program.tables {
                table.entries = match table.name.as_str() {
                    "routes" => routes.routes.iter().map(route_entry).collect(),
                    _ => rule_entries(table, &rules)?,
                };
            }
            DeviceWorkload::new(function.name(), program, KernelOptions::default(), packets.clone())
        };
        let whole = judged(function.text())?;
        let bare = function.bare_text().map(judged).transpose()?;
        if let Some(bare) = &bare {
            let said = |judged: &DeviceWorkload, place: usize| told(&judged.program, judged.right[0][place]);
            if let Some(place) = (0..PACKETS).find(|place| said(&whole, *place) != said(bare, *place)) {
                return Err(format!(
                    "both programs of {} say another thing on packet {place}",
                    function.name()
                ));
            }
        }
        let program = &whole.program;
        let dropped = |name: &str| {
            let place = program.reasons.iter().position(|reason| reason.name == name);
            place.map_or(Verdict::PENDING, |place| Verdict::drop(place as u16))
        };
        let (no_route, denied) = (dropped("no_route"), dropped("denied"));
        let passed = Verdict::send(2);
        Ok(FunctionData { function, whole, bare, routes: routes.routes, rules, no_route, denied, passed })
    }

    /// The program whose packets are known to be what they are, where `is_bare` and there is one.
    pub(crate) fn workload(&self, is_bare: bool) -> &DeviceWorkload {
        self.bare.as_ref().filter(|_| is_bare).unwrap_or(&self.whole)
    }
}

/// Rules with the addresses and ports of access lists and the original's mix of protocols; every other one
/// denies.
fn rules() -> Vec<(FlowRule, bool)> {
    let mut random = Random::new(SEED);
    // TCP, UDP, ICMP, any, another one.
    let mix = Weighted::new(&[75, 14, 4, 6, 1]);
    let set = GeneratedRules::new(&RuleSetSpec { flavour: Flavour::AccessList, count: RULES, seed: SEED });
    let drawn = |(number, mut rule): (usize, FlowRule)| {
        rule.protocol = [Some(6), Some(17), Some(1), None, Some(47)][mix.draw(&mut random)];
        if !matches!(rule.protocol, Some(6 | 17)) {
            (rule.source_ports, rule.destination_ports) = ((0, u16::MAX), (0, u16::MAX));
        }
        (rule, number % 2 == 0)
    };
    set.rules.into_iter().enumerate().map(drawn).collect()
}

/// Packets: in turn one that fits a rule drawn at random (unless an earlier one fits, too), and one with
/// random fields that has a route.
fn flows(rules: &[(FlowRule, bool)], inside: &[u128]) -> Vec<Flow> {
    let mut random = Random::new(SEED + 1);
    let mut flow = |(number, dst): (usize, &u128)| {
        let proto = [6, 17, 1][random.below(3) as usize];
        let mut flow = Flow { src: random.word() as u32, dst: *dst as u32, ports: [0; 2], proto };
        let mut ranges = [(0, u16::MAX); 2];
        if let (0, Some((rule, _))) = (number % 2, random.pick(rules)) {
            let mut address = |network: &Network| network.address | random.word() as u32 & !network.mask();
            (flow.src, flow.dst) = (address(&rule.source), address(&rule.destination));
            flow.proto = rule.protocol.unwrap_or(proto);
            ranges = [rule.source_ports, rule.destination_ports];
        }
        flow.ports = ranges.map(|(low, high)| random.between(low.into(), high.into()) as u16);
        flow
    };
    inside.iter().take(PACKETS).enumerate().map(&mut flow).collect()
}

/// What a verdict says, whatever numbers a program's reasons have.
fn told(program: &Program, verdict: Verdict) -> (String, u32) {
    match program.reasons.iter().enumerate().find(|(place, _)| Verdict::drop(*place as u16) == verdict) {
        Some((_, reason)) => (reason.name.clone(), 0),
        None => (String::new(), verdict.bits()),
    }
}

/// A program's entries of rules.
fn rule_entries(table: &Table, rules: &[(FlowRule, bool)]) -> Result<Vec<Entry>, String> {
    let names = match table.values.first().map(|column| &column.kind) {
        Some(ColumnKind::Names(names)) => names.as_slice(),
        _ => &[],
    };
    let value = |name: &str| names.iter().find(|(_, known)| known == name).map(|(value, _)| *value);
    let (Some(permit), Some(deny)) = (value("permit"), value("deny")) else {
        return Err(format!("the rules of {} decide nothing", table.name));
    };
    Ok(rules.iter().map(|(rule, permits)| rule_entry(rule, if *permits { permit } else { deny })).collect())
}

fn route_entry(route: &Route) -> Entry {
    let key = match route.length {
        0 => Match::Any,
        32 => Match::Exact(route.bits),
        length => Match::Prefix { value: route.bits, length },
    };
    Entry { key: vec![key], value: vec![route.next_hop.into()], priority: 0 }
}

fn rule_entry(rule: &FlowRule, value: u128) -> Entry {
    let network = |network: &Network| match network.length {
        0 => Match::Any,
        32 => Match::Exact(network.address.into()),
        length => Match::Prefix { value: network.address.into(), length },
    };
    let ports = |(low, high): (u16, u16)| match (low, high) {
        (0, u16::MAX) => Match::Any,
        (low, high) if low == high => Match::Exact(low.into()),
        (low, high) => Match::Range { low: low.into(), high: high.into() },
    };
    let key = vec![
        network(&rule.source),
        network(&rule.destination),
        ports(rule.source_ports),
        ports(rule.destination_ports),
        rule.protocol.map_or(Match::Any, |proto| Match::Exact(proto.into())),
    ];
    Entry { key, value: vec![value], priority: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_the_protocols_of_the_original() {
        let rules = rules();
        assert_eq!(rules.len(), RULES);
        let of = |protocol| rules.iter().filter(|(rule, _)| rule.protocol == protocol).count() as f64;
        // Drawn at random: within three standard deviations.
        for (protocol, share) in
            [(Some(6), 0.75), (Some(17), 0.14), (Some(1), 0.04), (None, 0.06), (Some(47), 0.01)]
        {
            let (wanted, found) = (share * RULES as f64, of(protocol));
            let deviation = (wanted * (1.0 - share)).sqrt();
            assert!((found - wanted).abs() <= 3.0 * deviation, "{protocol:?}: {found} for {wanted}");
        }
    }
}
