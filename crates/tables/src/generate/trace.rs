//! Generates traces for rule sets: headers that match rules, repeated as in real traffic, and some headers
//! that were made without regard to the rules.

use std::fmt;

use super::Random;
use super::rules::{FlowRule, GeneratedRules, Network, RuleFlow};

/// What headers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSpec {
    /// How many.
    pub count: usize,
    /// The most times that a header comes in a row; how often it does follows a Pareto distribution of shape
    /// 1 (as in ClassBench), so 1 is no locality at all and 100 means a mean of about 5.
    pub repeats: u64,
    /// Headers made without the rules, in percent; 5 is usual.
    pub random: u64,
    /// Chooses the headers.
    pub seed: u64,
}

/// A header and the rule that it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The five fields.
    pub flow: RuleFlow,
    /// The rule it lies in, though another one may come first; `None` for one made without the rules.
    pub made_for: Option<u32>,
}

/// Headers in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedTrace {
    /// The headers.
    pub headers: Vec<TraceHeader>,
}

impl GeneratedTrace {
    /// The headers of a spec for these rules.
    pub fn new(rules: &GeneratedRules, spec: &TraceSpec) -> GeneratedTrace {
        let mut random = Random::new(spec.seed);
        let mut headers = Vec::with_capacity(spec.count);
        while headers.len() < spec.count {
            let rule = random.below(rules.rules.len() as u64) as usize;
            let header = match rules.rules.get(rule) {
                Some(chosen) if !random.chance(spec.random) => {
                    TraceHeader { flow: inside(chosen, &mut random), made_for: Some(rule as u32) }
                }
                _ => TraceHeader { flow: any(&mut random), made_for: None },
            };
            // Without rules come no repeats, or the share of random headers would not be what was asked for.
            let repeats = if header.made_for.is_some() { random.pareto(spec.repeats) as usize } else { 1 };
            let left = spec.count - headers.len();
            headers.extend(std::iter::repeat_n(header, repeats.min(left)));
        }
        GeneratedTrace { headers }
    }

    /// A line a header: source, destination, ports, protocol, the rule it was made for and the first that
    /// matches it, from 0, or -1. Finds the latter by looking at one rule after the other.
    pub fn write(&self, rules: &GeneratedRules, out: &mut impl fmt::Write) -> fmt::Result {
        let mut last: Option<(RuleFlow, Option<usize>)> = None;
        let number = |rule: Option<usize>| rule.map_or(-1, |rule| rule as i64);
        for TraceHeader { flow, made_for } in &self.headers {
            let first = match last {
                Some((before, first)) if before == *flow => first,
                _ => rules.first_match(flow),
            };
            last = Some((*flow, first));
            let source = std::net::Ipv4Addr::from_bits(flow.source);
            let destination = std::net::Ipv4Addr::from_bits(flow.destination);
            let made_for = number(made_for.map(|rule| rule as usize));
            let (from, to, protocol) = (flow.source_port, flow.destination_port, flow.protocol);
            let first = number(first);
            writeln!(out, "{source}\t{destination}\t{from}\t{to}\t{protocol}\t{made_for}\t{first}")?;
        }
        Ok(())
    }
}

/// A header in the rule: at its edges in half of the cases, anywhere in it in the others.
fn inside(rule: &FlowRule, random: &mut Random) -> RuleFlow {
    let address = |network: Network, random: &mut Random| {
        let free = !network.mask();
        let bits = match random.below(4) {
            0 => 0,
            1 => free,
            _ => random.word() as u32 & free,
        };
        network.address | bits
    };
    let port = |(low, high): (u16, u16), random: &mut Random| match random.below(4) {
        0 => low,
        1 => high,
        _ => random.between(u64::from(low), u64::from(high)) as u16,
    };
    RuleFlow {
        source: address(rule.source, random),
        destination: address(rule.destination, random),
        source_port: port(rule.source_ports, random),
        destination_port: port(rule.destination_ports, random),
        protocol: rule.protocol.unwrap_or_else(|| protocol(random)),
    }
}

fn any(random: &mut Random) -> RuleFlow {
    let (addresses, ports) = (random.word(), random.word());
    RuleFlow {
        source: addresses as u32,
        destination: (addresses >> 32) as u32,
        source_port: ports as u16,
        destination_port: (ports >> 16) as u16,
        protocol: protocol(random),
    }
}

/// TCP, UDP, ICMP or any other.
fn protocol(random: &mut Random) -> u8 {
    match random.below(100) {
        0..75 => 6,
        75..95 => 17,
        95..99 => 1,
        _ => random.word() as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::rules::{Flavour, RuleSetSpec};

    fn made(count: usize, repeats: u64, random: u64) -> (GeneratedRules, GeneratedTrace) {
        let rules = GeneratedRules::new(&RuleSetSpec { flavour: Flavour::Firewall, count: 300, seed: 4 });
        let trace = GeneratedTrace::new(&rules, &TraceSpec { count, repeats, random, seed: 5 });
        (rules, trace)
    }

    #[test]
    fn headers_lie_in_the_rules_they_were_made_for() {
        let (rules, trace) = made(5000, 1, 5);
        let mut without = 0;
        for header in &trace.headers {
            match header.made_for {
                Some(rule) => {
                    assert!(rules.rules[rule as usize].matches(&header.flow));
                    assert!(rules.first_match(&header.flow).is_some_and(|first| first <= rule as usize));
                }
                None => without += 1,
            }
        }
        assert!((175..325).contains(&without), "{without} of 5000 without a rule");
    }

    #[test]
    fn locality_repeats_headers() {
        let changes =
            |trace: &GeneratedTrace| trace.headers.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes(&made(10_000, 1, 5).1) > 9_900);
        assert!(changes(&made(10_000, 100, 5).1) < 4_000);
    }

    #[test]
    fn lines_name_the_first_match() {
        let (rules, trace) = made(50, 1, 50);
        let mut text = String::new();
        trace.write(&rules, &mut text).expect("strings take all");
        assert_eq!(text.lines().count(), 50);
        for (line, header) in text.lines().zip(&trace.headers) {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 7);
            let first = rules.first_match(&header.flow).map_or("-1".into(), |rule| rule.to_string());
            assert_eq!(columns[6], first);
            assert_eq!(columns[0], std::net::Ipv4Addr::from_bits(header.flow.source).to_string());
        }
    }

    #[test]
    fn without_rules_all_headers_are_random() {
        let trace = GeneratedTrace::new(
            &GeneratedRules { rules: Vec::new() },
            &TraceSpec { count: 9, repeats: 5, random: 0, seed: 1 },
        );
        assert!(trace.headers.iter().all(|header| header.made_for.is_none()));
        assert_eq!(trace.headers.len(), 9);
    }
}
