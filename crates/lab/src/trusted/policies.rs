//! The policies of `lab trusted`, in the language of NPF: nine that differ along the five axes of the
//! evaluation of TrustedGateway (RAID 2022), and one of them with many more rules. The axes are: state, the
//! number of rules, the fields of a rule, groups, and at which ports and in which directions rules stand.
//!
//! ```text
//! 0 pass all
//! 1 the hosts' traffic with state, at all ports ───── 2 the same without state
//! 3 at one port, with state ───────────────────────── 4 at one port, without state
//!                                                        ├─ 5 more rules
//!                                                        ├─ 6 fewer fields
//!                                                        ├─ 7 its group in two, one for each direction
//!                                                        └─ 8 without the rules for the router's own services
//! ```
//!
//! The policies are written for this experiment; only the axes are those of the publication. Where it has its
//! rules at the router's VNIC, 3 to 8 have them at the first port, where the hosts' packets pass, too.

use std::fmt::Write;

/// The names of the ports in the policies, in the order of the ports.
pub(super) const INTERFACES: [&str; 3] = ["lan0", "wan0", "router0"];

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// What it is, in reports.
    pub(super) name: String,
    /// The file of NPF.
    pub(super) text: String,
    /// Whether hosts reach the router's services.
    pub(super) has_services: bool,
}

/// A rule that lets something pass: its direction and what stands behind `final`.
type Pass = (&'static str, String);

const LAN: &str = "10.0.1.0/24";
const WAN: &str = "10.0.2.0/24";
const ROUTER: &str = "10.0.1.253";
/// The port of iperf3.
const SERVICE: u16 = 5201;

/// All nine, in order.
pub(super) fn nine() -> Vec<Policy> {
    let both = |stateful: bool| {
        let groups = [
            ("lan0", [services(stateful, "in", "out"), lan(stateful)].concat()),
            ("wan0", wan(stateful)),
            ("router0", services(stateful, "out", "in")),
        ];
        groups.iter().map(|(interface, rules)| group(interface, "", interface, stateful, rules)).collect()
    };
    let one = |stateful: bool, rules: &[Pass]| group("lan0", "", "lan0", stateful, rules);
    let (a, more) = (lan(false), [lan(false), further(8)].concat());
    let services_and = |stateful, rules: Vec<Pass>| [services(stateful, "in", "out"), rules].concat();
    let fewer: Vec<Pass> = ["in", "out"].map(|way| (way, "proto tcp all".to_owned())).to_vec();
    let split: String = ["in", "out"]
        .iter()
        .map(|way| {
            let rules: Vec<Pass> =
                services_and(false, a.clone()).into_iter().filter(|rule| rule.0 == *way).collect();
            group(&format!("lan0 {way}"), way, "lan0", false, &rules)
        })
        .collect();
    let policies: [(&str, String, &str); 9] = [
        ("0 pass all", String::new(), "pass"),
        ("1 with state, at all ports", both(true), "block"),
        ("2 without state, at all ports", both(false), "block"),
        ("3 with state, at one port", one(true, &services_and(true, lan(true))), "pass"),
        ("4 without state, at one port", one(false, &services_and(false, a.clone())), "pass"),
        ("5 as 4, with more rules", one(false, &services_and(false, more)), "pass"),
        ("6 as 4, with fewer fields", one(false, &services_and(false, fewer)), "pass"),
        ("7 as 4, a group for each direction", split, "pass"),
        ("8 as 4, without the router's services", one(false, &a), "pass"),
    ];
    policies.into_iter().map(|(name, groups, others)| policy(name, &groups, others)).collect()
}

/// Policy 4, with so many rules more that match none of the streams and stand before those that do.
pub(super) fn with_rules(count: usize) -> Policy {
    let rules = [further(count), lan(false)].concat();
    policy(&format!("as 4, with {count} rules more"), &group("lan0", "", "lan0", false, &rules), "pass")
}

fn policy(name: &str, groups: &str, others: &str) -> Policy {
    let text = format!("{groups}group default {{\n    {others} all\n}}\n");
    // What has rules at the first port blocks the others there.
    let has_services = groups.is_empty() || groups.contains(ROUTER) || groups.contains("proto tcp all");
    Policy { name: name.to_owned(), text, has_services }
}

/// A group that blocks what none of its rules lets pass.
fn group(name: &str, way: &str, interface: &str, stateful: bool, rules: &[Pass]) -> String {
    let space = if way.is_empty() { "" } else { " " };
    let mut text = format!("group \"{name}\"{space}{way} on {interface} {{\n");
    let stateful = if stateful { " stateful" } else { "" };
    for (way, rule) in rules {
        // Writing to a string does not fail.
        let _ = writeln!(text, "    pass{stateful} {way} final {rule}");
    }
    text + "    block all\n}\n"
}

/// What the hosts say to each other, as it is seen at the first port.
fn lan(stateful: bool) -> Vec<Pass> {
    streams(stateful, "in", "out")
}

/// The same as it is seen at the second port.
fn wan(stateful: bool) -> Vec<Pass> {
    streams(stateful, "out", "in")
}

/// Connections of both hosts to each other; without state their answers have rules, too. `there` is the way
/// of what the first host sends.
fn streams(stateful: bool, there: &'static str, back: &'static str) -> Vec<Pass> {
    let mut rules = vec![
        (there, format!("family inet4 proto tcp from {LAN} to {WAN} port {SERVICE}")),
        (back, format!("family inet4 proto tcp from {WAN} to {LAN} port {SERVICE}")),
    ];
    if !stateful {
        rules.push((back, format!("family inet4 proto tcp from {WAN} port {SERVICE} to {LAN}")));
        rules.push((there, format!("family inet4 proto tcp from {LAN} port {SERVICE} to {WAN}")));
    }
    rules
}

/// What hosts say to the router's services, of which iperf3 is one. `there` is the way of what they send.
fn services(stateful: bool, there: &'static str, back: &'static str) -> Vec<Pass> {
    let mut rules = Vec::new();
    for port in [22, 80, 443, SERVICE] {
        rules.push((there, format!("family inet4 proto tcp from {LAN} to {ROUTER} port {port}")));
        if !stateful {
            rules.push((back, format!("family inet4 proto tcp from {ROUTER} port {port} to {LAN}")));
        }
    }
    rules
}

/// Rules for other sources and ports.
fn further(count: usize) -> Vec<Pass> {
    let rule = |number: usize| {
        let source = format!("172.16.{}.{}", number / 250 % 250, 1 + number % 250);
        ("in", format!("family inet4 proto tcp from {source} to {WAN} port {}", 1024 + number % 4096))
    };
    (0..count).map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::compile_with_rules;
    use exec::BackendKind;
    use packet::batch::Batch;
    use packet::verdict::Verdict;

    /// The hosts and the router: each by its port.
    const ADDRESSES: [[u8; 4]; 3] = [[10, 0, 1, 1], [10, 0, 2, 1], [10, 0, 1, 253]];
    const HOST_A: u16 = 1;
    const HOST_B: u16 = 2;
    const THE_ROUTER: u16 = 3;

    /// A packet: who sends it to whom, from which port to which, and its flags.
    type Segment = (u16, u16, (u16, u16), u8);

    fn segment((from, to, ports, flags): Segment) -> Vec<u8> {
        let of = |host: u16| ADDRESSES[usize::from(host) - 1];
        let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
        let mut frame = [&[2; 12][..], &[8, 0], &ip, &of(from), &of(to)].concat();
        frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
        frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        frame.resize(60, 0);
        frame
    }

    /// Which of some packets a policy lets pass.
    fn passes(policy: &Policy, packets: &[Segment]) -> Vec<bool> {
        let text = super::super::gateways::program().expect("the program has a place for rules");
        let load = |path: &str| (path == "rules.npf").then(|| policy.text.clone());
        let program = compile_with_rules(&text, &load);
        let program = program.unwrap_or_else(|error| panic!("{}: {error}\n{}", policy.name, policy.text));
        let mut loaded = exec::load(&program, BackendKind::Interpreter, 3, 1).expect("it loads");
        let mut judged = Vec::new();
        for &packet in packets {
            let (mut batch, mut outputs) = (Batch::new(), exec::outputs::Outputs::default());
            let mut memory = batch.hold_one(&segment(packet), 60, packet.0, 0);
            loaded.run(&mut memory, &mut batch, &mut outputs);
            judged.push(batch.verdicts()[0] == Verdict::send(packet.1));
        }
        judged
    }

    #[test]
    fn each_policy_lets_streams_of_hosts_and_router_pass_and_no_two_are_alike() {
        let (begins, answers, goes_on) = (0x02, 0x12, 0x10);
        let packets = [
            (HOST_A, HOST_B, (40_000, SERVICE), begins),
            (HOST_B, HOST_A, (SERVICE, 40_000), answers),
            (HOST_A, HOST_B, (40_000, SERVICE), goes_on),
            (HOST_B, HOST_A, (40_001, SERVICE), begins),
            (HOST_A, HOST_B, (SERVICE, 40_001), answers),
            // A service of the router.
            (HOST_A, THE_ROUTER, (40_000, SERVICE), begins),
            (THE_ROUTER, HOST_A, (SERVICE, 40_000), answers),
            (HOST_A, THE_ROUTER, (40_000, SERVICE), goes_on),
            // Another service, and an answer to nothing.
            (HOST_A, HOST_B, (40_002, 25), begins),
            (HOST_B, HOST_A, (SERVICE, 40_003), answers),
        ];
        let all: Vec<Policy> = nine().into_iter().chain([with_rules(100)]).collect();
        assert_eq!(all.len(), 10);
        for (place, policy) in all.iter().enumerate() {
            let passed = passes(policy, &packets);
            assert_eq!(passed[..5], [true; 5], "{}", policy.name);
            assert_eq!(passed[5..8], [policy.has_services; 3], "{}", policy.name);
            // Policy 0 blocks nothing, policy 6 asks for no port.
            assert_eq!(passed[8], [0, 6].contains(&place), "{}", policy.name);
            assert_eq!(passed[9], ![1, 3].contains(&place), "{}", policy.name);
            assert_eq!(all.iter().filter(|other| other.text == policy.text).count(), 1, "{}", policy.name);
        }
    }
}
