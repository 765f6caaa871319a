//! Rulesets become policies that decide as they say, or are refused at the place.

use super::*;
use crate::policies::segment::first_segment;
use policy::{Packet, PacketField, Path, PolicyVerdict, Reject, State, Step, Unreachable, evaluate};

/// A ruleset of these objects, a line each.
fn json(objects: &[String]) -> String {
    format!("{{\"nftables\": [\n{}\n]}}\n", objects.join(",\n"))
}

fn base(family: &str, table: &str, hook: &str, priority: i64, policy: &str) -> String {
    format!(
        "{{\"chain\": {{\"family\": \"{family}\", \"table\": \"{table}\", \"name\": \"{hook}\", \"type\": \"filter\", \"hook\": \"{hook}\", \"prio\": {priority}, \"policy\": \"{policy}\"}}}}"
    )
}

fn chain(table: &str, name: &str) -> String {
    format!("{{\"chain\": {{\"family\": \"inet\", \"table\": \"{table}\", \"name\": \"{name}\"}}}}")
}

fn rule(family: &str, table: &str, chain: &str, statements: &str) -> String {
    format!(
        "{{\"rule\": {{\"family\": \"{family}\", \"table\": \"{table}\", \"chain\": \"{chain}\", \"expr\": [{statements}]}}}}"
    )
}

fn forward(statements: &str) -> String {
    rule("inet", "t", "forward", statements)
}

fn matching(left: &str, operator: &str, right: &str) -> String {
    format!("{{\"match\": {{\"op\": \"{operator}\", \"left\": {left}, \"right\": {right}}}}}")
}

const ACCEPT: &str = r#"{"accept": null}"#;
const DROP: &str = r#"{"drop": null}"#;
const STATE: &str = r#"{"ct": {"key": "state"}}"#;
const DPORT: &str = r#"{"payload": {"protocol": "tcp", "field": "dport"}}"#;
const SADDR: &str = r#"{"payload": {"protocol": "ip", "field": "saddr"}}"#;

fn read_all(objects: &[String]) -> ImportedPolicy {
    let options = PolicyOptions { interfaces: vec![("eth0".to_owned(), 1)], ..PolicyOptions::default() };
    read(json(objects).as_bytes(), &options).expect("it is a ruleset")
}

/// The policy of a ruleset of which nothing is refused.
fn whole(objects: &[String]) -> Policy {
    let read = read_all(objects);
    assert_eq!(read.refused, []);
    read.policy
}

/// One chain of `inet` at `forward` with the policy drop, and these rules.
fn one_chain(rules: &[String]) -> Vec<String> {
    [&[base("inet", "t", "forward", 0, "drop")], rules].concat()
}

/// A later fragment.
fn fragment() -> Packet {
    [PacketField::SourcePort, PacketField::DestinationPort, PacketField::TcpFlags]
        .into_iter()
        .fold(first_segment(0), |packet, field| packet.with(field, None))
        .with(PacketField::LaterFragment, Some(1))
}

fn verdict(policy: &Policy, packet: &Packet) -> PolicyVerdict {
    evaluate(policy, Path::Forwarded, packet, &|_| false).expect("it ends")
}

fn decides(policy: &Policy, packet: &Packet) -> RuleAction {
    verdict(policy, packet).action
}

#[test]
fn a_packet_passes_all_chains_by_priority() {
    let policy = whole(&[
        base("inet", "t", "forward", 10, "drop"),
        base("ip", "u", "forward", -5, "accept"),
        forward(&format!("{}, {ACCEPT}", matching(STATE, "in", r#"["established", "related"]"#))),
        forward(&format!(
            r#"{{"vmap": {{"key": {DPORT}, "data": {{"set": [[22, {ACCEPT}], [{{"range": [80, 90]}}, {DROP}], ["*", {{"jump": {{"target": "x"}}}}]]}}}}}}"#
        )),
        forward(ACCEPT),
        chain("t", "x"),
        rule("inet", "t", "x", &format!("{}, {DROP}", matching(DPORT, "==", "25"))),
        rule("ip", "u", "forward", &format!("{}, {DROP}", matching(SADDR, "==", r#""10.0.0.9""#))),
    ]);
    let ports = [22, 80, 90, 91, 25].map(|port| decides(&policy, &first_segment(port)));
    use RuleAction::{Block, Pass};
    assert_eq!(ports, [Pass, Block, Block, Pass, Block]);
    let known = first_segment(80).with(PacketField::State, Some(State::Related as u128));
    assert_eq!(decides(&policy, &known), Pass);
    // The chain of the other table comes first, and accepting there is not the end.
    let stray = first_segment(22).with(PacketField::Source, Some(0xffff_0a00_0009));
    assert_eq!(verdict(&policy, &stray).steps, [Step::Rule(1, 1)]);
    assert_eq!(policy.remembers, Remembers::Passed);
    // A table of `ip` says nothing of IPv6.
    let six = first_segment(22).with(PacketField::Family, Some(6)).with(PacketField::Source, Some(7));
    assert_eq!(verdict(&policy, &six).steps[0], Step::Rule(1, 0));
    assert_eq!(decides(&policy, &six), Pass);
}

#[test]
fn states_are_compared_by_their_bits() {
    use State::{Established, Invalid, New, Related, Untracked};
    let masked = format!(r#"{{"&": [{STATE}, ["new", "related"]]}}"#);
    let cases: [(&str, &str, &str, &[State]); 9] = [
        (STATE, "in", r#"["established", "related"]"#, &[Established, Related]),
        (STATE, "in", r#""new""#, &[New]),
        (STATE, "==", r#"{"set": ["new", "invalid"]}"#, &[New, Invalid]),
        (STATE, "!=", r#"{"set": ["new", "invalid"]}"#, &[Established, Related, Untracked]),
        (STATE, "!=", r#""new""#, &[Established, Related, Invalid, Untracked]),
        (STATE, "!", r#"["established", "related"]"#, &[New, Invalid, Untracked]),
        // A packet has one state, not two.
        (STATE, "==", r#"["established", "related"]"#, &[]),
        (&masked, "==", "0", &[Established, Invalid, Untracked]),
        (&masked, "!=", "0", &[New, Related]),
    ];
    for (left, operator, right, wanted) in cases {
        let rule = forward(&format!("{}, {ACCEPT}", matching(left, operator, right)));
        let policy = whole(&one_chain(&[rule]));
        for state in [New, Established, Related, Invalid, Untracked] {
            let packet = first_segment(1).with(PacketField::State, Some(state as u128));
            let passes = decides(&policy, &packet) == RuleAction::Pass;
            assert_eq!(passes, wanted.contains(&state), "{left} {operator} {right}: {state:?}");
        }
    }
}

#[test]
fn fields_hold_as_nftables_compares_them() {
    let payload = |protocol: &str, field: &str| {
        format!(r#"{{"payload": {{"protocol": "{protocol}", "field": "{field}"}}}}"#)
    };
    let meta = |key: &str| format!(r#"{{"meta": {{"key": "{key}"}}}}"#);
    let concat = format!(r#"{{"concat": [{SADDR}, {DPORT}]}}"#);
    for (left, operator, right, fits) in [
        // At `forward` one is taken away already.
        (payload("ip", "ttl"), "==", "63", true),
        (payload("ip", "ttl"), "<", "64", true),
        (payload("ip", "ttl"), "!=", "63", false),
        (payload("ip6", "hoplimit"), "==", "63", false),
        (payload("ip", "dscp"), "==", r#""ef""#, true),
        (payload("ip", "dscp"), "!=", r#"{"set": ["cs1", 46]}"#, false),
        (payload("ip6", "dscp"), "!=", r#""cs1""#, false),
        (meta("length"), "==", r#"{"range": [40, 60]}"#, true),
        (payload("ip", "length"), ">", "60", false),
        (meta("nfproto"), "!=", r#""ipv6""#, true),
        (meta("protocol"), "==", r#"{"set": ["arp", "ip"]}"#, true),
        (payload("ip", "version"), "==", "4", true),
        (meta("pkttype"), "==", r#""host""#, true),
        (meta("pkttype"), "!=", r#""host""#, false),
        (meta("iifname"), "==", r#""eth*""#, true),
        (meta("iifname"), "!=", r#"{"set": ["eth0", "lo"]}"#, false),
        (meta("iif"), "==", r#""lo""#, false),
        (meta("oifname"), "!=", r#""eth0""#, true),
        (
            concat.clone(),
            "==",
            r#"{"set": [{"concat": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, {"range": [20, 30]}]}]}"#,
            true,
        ),
        (concat.clone(), "!=", r#"{"set": [{"concat": ["10.0.0.1", 22]}]}"#, false),
        (concat, "!=", r#"{"set": [{"concat": ["10.0.0.1", 23]}]}"#, true),
        (payload("udp", "dport"), "!=", "23", false),
        (payload("icmp", "type"), "!=", r#""echo-request""#, false),
        (format!(r#"{{"&": [{SADDR}, "255.0.0.255"]}}"#), "==", r#""10.0.0.1""#, true),
        (payload("tcp", "flags"), "in", r#"["syn", "ack"]"#, true),
        (payload("tcp", "flags"), "!", r#""syn""#, false),
    ] {
        let rule = forward(&format!("{}, {ACCEPT}", matching(&left, operator, right)));
        let policy = whole(&one_chain(&[rule]));
        let passes = decides(&policy, &first_segment(22)) == RuleAction::Pass;
        assert_eq!(passes, fits, "{left} {operator} {right}");
    }
}

#[test]
fn an_interface_that_there_is_not_is_another() {
    let iif = r#"{"meta": {"key": "iifname"}}"#;
    let rules = [rule("inet", "t", "output", &format!("{}, {DROP}", matching(iif, "!=", r#""eth0""#)))];
    let policy = whole(&[&[base("inet", "t", "output", 0, "accept")], &rules[..]].concat());
    let own = first_segment(22).with(PacketField::InPort, None);
    let said = evaluate(&policy, Path::FromGateway, &own, &|_| false).expect("it ends");
    assert_eq!(said.action, RuleAction::Block);
}

#[test]
fn what_comes_before_a_match_is_done_before_it() {
    let counted = r#"{"counter": {"packets": 0, "bytes": 0}}"#;
    let asks_state = forward(&format!("{}, {DROP}", matching(STATE, "in", r#""invalid""#)));
    let policy = whole(&one_chain(&[
        asks_state,
        forward(&format!(
            r#"{counted}, {}, {{"limit": {{"rate": 5, "per": "second"}}}}, {{"log": {{"prefix": "x"}}}}, {{"reject": {{"type": "icmpx", "expr": "admin-prohibited"}}}}"#,
            matching(DPORT, "==", "22")
        )),
    ]));
    let [_, first, second] = &policy.groups[0].rules[..] else { panic!("{:?}", policy.groups) };
    assert_eq!((first.action, first.count, first.log), (RuleAction::Continue, true, false));
    assert_eq!(second.action, RuleAction::Reject(Reject::Unreachable(Unreachable::Prohibited)));
    assert!(second.log && !second.count);
    assert!(policy.memories[0].text.contains("limit"));
}

#[test]
fn what_is_not_exactly_known_is_refused_at_its_place() {
    let set = r#"{"set": {"family": "inet", "table": "t", "name": "s", "type": "ipv4_addr", "flags": ["timeout"], "elem": [{"elem": {"val": "10.0.0.1", "timeout": 60, "expires": 5}}]}}"#;
    for (statements, what) in [
        (r#"{"masquerade": null}"#.to_owned(), "NAT is not read yet"),
        (r#"{"notrack": null}"#.to_owned(), "tells how connections are followed"),
        (r#"{"mangle": {"key": {"meta": {"key": "mark"}}, "value": 1}}"#.to_owned(), "changes the packet"),
        (r#"{"queue": {"num": 1}}"#.to_owned(), "leaves the decision to a process"),
        (
            matching(r#"{"payload": {"base": "nh", "offset": 0, "len": 8}}"#, "==", "69"),
            "by their place in the packet",
        ),
        (
            r#"{"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": "tcp", "foo": 1}}"#
                .to_owned(),
            "what `foo` means in a match",
        ),
        (matching(r#"{"meta": {"key": "mark"}}"#, "==", "1"), "`meta mark`"),
        (matching(r#"{"fib": {"result": "oif", "flags": ["saddr"]}}"#, "==", "false"), "asks this machine"),
        (matching(r#"{"socket": {"key": "transparent"}}"#, "==", "1"), "asks this machine"),
        (matching(r#"{"ct": {"key": "mark"}}"#, "==", "1"), "`ct mark`"),
        (matching(r#"{"ct": {"key": "status"}}"#, "in", r#"["assured", "dnat"]"#), "NAT is not read yet"),
        (matching(r#"{"ct": {"key": "status"}}"#, "==", "8"), "a status is one of"),
        (matching(r#"{"ct": {"key": "direction"}}"#, "==", "2"), "original or reply"),
        (matching(r#"{"ct": {"key": "bytes"}}"#, ">", r#""many""#), "`ct bytes`"),
        (matching(r#"{"ct": {"key": "proto-dst", "dir": "original"}}"#, "==", "22"), "need not have any"),
        (
            matching(r#"{"payload": {"protocol": "ip", "field": "checksum"}}"#, "==", "6"),
            "`ip checksum` is not yet, or no more, what the packet has",
        ),
        (matching(r#"{"payload": {"protocol": "tcp", "field": "reserved"}}"#, "==", "0"), "`tcp reserved`"),
        (
            matching(r#"{"payload": {"protocol": "tcp", "field": "window"}}"#, "==", "65536"),
            "no value of window",
        ),
        (
            matching(r#"{"payload": {"protocol": "icmp", "field": "id"}}"#, "==", "65536"),
            "no value of icmp_rest",
        ),
        (
            matching(r#"{"payload": {"protocol": "dccp", "field": "type"}}"#, "==", r#""syn""#),
            "no value of dccp_type",
        ),
        (matching(r#"{"exthdr": {"name": "rt0", "field": "addr"}}"#, "==", r#""::1""#), "`rt0 addr`"),
        (matching(r#"{"exthdr": {"name": "ah"}}"#, "==", "true"), "no field"),
        (matching(r#"{"payload": {"protocol": "th", "field": "dport"}}"#, "==", "6"), "need not have any"),
        (matching(r#"{"meta": {"key": "iifname"}}"#, "==", r#""eth1""#), "is bound to no port"),
        (matching(SADDR, "==", r#""@s""#), "go after a time"),
        (matching(SADDR, "==", r#""@none""#), "there is no set"),
        (r#"{"jump": {"target": "forward"}}"#.to_owned(), "no chain `forward` to jump to"),
        (format!("{DROP}, {ACCEPT}"), "behind the decision"),
    ] {
        let rules = [set.to_owned(), forward(&statements), forward(DROP)];
        let read = read_all(&one_chain(&rules));
        let [refused] = &read.refused[..] else { panic!("{statements}: {:?}", read.refused) };
        assert!(refused.line == 4 && refused.what.contains(what), "{statements}: {refused}");
        assert_eq!(read.kept, 1);
    }
    let out = [
        base("inet", "t", "output", 0, "accept"),
        rule(
            "inet",
            "t",
            "output",
            &format!(
                "{}, {DROP}",
                matching(r#"{"payload": {"protocol": "udp", "field": "checksum"}}"#, "==", "0")
            ),
        ),
    ];
    assert!(read_all(&out).refused[0].what.contains("`udp checksum` is not yet"));
    let four = [
        base("ip", "t", "forward", 0, "accept"),
        rule(
            "ip",
            "t",
            "forward",
            &format!("{}, {DROP}", matching(r#"{"exthdr": {"name": "rt", "field": "type"}}"#, "==", "0")),
        ),
    ];
    assert!(read_all(&four).refused[0].what.contains("no packet of the table's family has a header `rt`"));
    let early = [
        base("inet", "t", "prerouting", -300, "accept"),
        rule("inet", "t", "prerouting", &format!("{}, {DROP}", matching(STATE, "in", r#""invalid""#))),
    ];
    assert!(read_all(&early).refused[0].what.contains("before connections are looked up"));
    for hook in ["ingress", "egress"] {
        let read = read_all(&[base("netdev", "d", hook, 0, "drop")]);
        assert!(read.refused[0].what.contains("where no policy can"), "{:?}", read.refused);
    }
    let circle = [
        base("inet", "t", "forward", 0, "drop"),
        chain("t", "x"),
        forward(r#"{"jump": {"target": "x"}}"#),
        rule("inet", "t", "x", r#"{"goto": {"target": "x"}}"#),
    ];
    let fault = read(json(&circle).as_bytes(), &PolicyOptions::default()).expect_err("it never ends");
    assert!(fault.line == 5 && fault.what.contains("circle"), "{fault}");
}

#[test]
fn sets_that_packets_change_are_remembered() {
    let add = format!(r#"{{"set": {{"op": "add", "elem": {SADDR}, "set": "@s"}}}}"#);
    let policy = whole(&one_chain(&[
        r#"{"set": {"family": "inet", "table": "t", "name": "s", "type": "ipv4_addr", "flags": ["timeout"], "timeout": 60}}"#.to_owned(),
        forward(&format!("{}, {add}", matching(DPORT, "==", "22"))),
        forward(&format!("{}, {ACCEPT}", matching(SADDR, "==", r#""@s""#))),
    ]));
    assert_eq!(policy.memories.len(), 2);
    for known in [false, true] {
        let said = evaluate(&policy, Path::Forwarded, &first_segment(1), &|index| index == 1 && known);
        assert_eq!(said.expect("it ends").action == RuleAction::Pass, known);
    }
}

#[test]
fn every_packet_of_a_connection_goes_in_one_direction_or_the_other() {
    let both = r#"{"set": ["original", "reply"]}"#;
    for (operator, wanted) in [("==", [true, true, true, false, false]), ("!=", [false; 5])] {
        let asked = matching(r#"{"ct": {"key": "direction"}}"#, operator, both);
        let policy = whole(&one_chain(&[forward(&format!("{asked}, {ACCEPT}"))]));
        assert_eq!((policy.remembers, policy.memories.len()), (Remembers::Passed, 0));
        let passes = State::ALL.map(|state| {
            let packet = first_segment(1).with(PacketField::State, Some(state as u128));
            decides(&policy, &packet) == RuleAction::Pass
        });
        assert_eq!(passes, wanted, "{operator}");
    }
}

#[test]
fn a_new_packet_says_of_its_connection_what_later_ones_are_remembered_by() {
    let original = r#"{"ct": {"key": "ip saddr", "dir": "original"}}"#;
    let reply = r#"{"ct": {"key": "ip saddr", "dir": "reply"}}"#;
    let direction = r#"{"ct": {"key": "direction"}}"#;
    let states = [State::New, State::Established, State::Related, State::Invalid, State::Untracked];
    // What passes in each state where earlier packets have said so, and where they have not.
    for (left, operator, right, remembered, not) in [
        (
            direction,
            "==",
            r#""original""#,
            [true, true, true, false, false],
            [true, false, false, false, false],
        ),
        (direction, "!=", r#""original""#, [false, true, true, false, false], [false; 5]),
        (
            r#"{"ct": {"key": "status"}}"#,
            "==",
            r#"{"set": ["assured", "confirmed"]}"#,
            [true, true, true, false, false],
            [false; 5],
        ),
        (
            original,
            "==",
            r#""10.0.0.1""#,
            [true, true, true, false, false],
            [true, false, false, false, false],
        ),
        (original, "!=", r#""10.0.0.1""#, [false, true, true, false, false], [false; 5]),
        (reply, "==", r#""192.0.2.1""#, [true, true, true, false, false], [true, false, false, false, false]),
        (r#"{"ct": {"key": "bytes"}}"#, ">", "100", [true, true, true, false, false], [false; 5]),
        (r#"{"ct": {"key": "status"}}"#, "in", r#""assured""#, [true, true, true, false, false], [false; 5]),
    ] {
        let statements = format!("{}, {ACCEPT}", matching(left, operator, right));
        let policy = whole(&one_chain(&[forward(&statements)]));
        assert_eq!((policy.remembers, policy.memories.len()), (Remembers::Passed, 1));
        let pass = |remembered: bool| {
            states.map(|state| {
                let packet = first_segment(22).with(PacketField::State, Some(state as u128));
                let said = evaluate(&policy, Path::Forwarded, &packet, &|_| remembered).expect("it ends");
                said.action == RuleAction::Pass
            })
        };
        assert_eq!([pass(true), pass(false)], [remembered, not], "{left} {operator} {right}");
    }
}

#[test]
fn sets_of_one_element_and_of_none_hold_what_they_say() {
    let set = |elements: &str| {
        format!(
            r#"{{"set": {{"family": "inet", "table": "t", "name": "s", "type": "inet_service"{elements}}}}}"#
        )
    };
    let asks = || forward(&format!("{}, {ACCEPT}", matching(DPORT, "==", r#""@s""#)));
    for (elements, action) in [
        (r#", "elem": 22"#, RuleAction::Pass),
        (r#", "elem": [22]"#, RuleAction::Pass),
        (r#", "elem": []"#, RuleAction::Block),
        ("", RuleAction::Block),
    ] {
        let policy = whole(&one_chain(&[set(elements), asks()]));
        assert_eq!(decides(&policy, &first_segment(22)), action, "{elements}");
    }
    let twice = read(json(&one_chain(&[set(""), set("")])).as_bytes(), &PolicyOptions::default());
    assert!(twice.expect_err("there twice").what.contains("there twice"));
}

#[test]
fn later_fragments_pass_only_where_no_header_could_block_them() {
    let port = |operator: &str, statement: &str| {
        forward(&format!("{}, {statement}", matching(DPORT, operator, "22")))
    };
    let followed = forward(&format!("{}, {DROP}", matching(STATE, "in", r#""invalid""#)));
    use RuleAction::{Block, Pass};
    for (rules, wanted) in [
        (vec![port("==", ACCEPT)], Block),
        (vec![port("==", DROP), forward(ACCEPT)], Block),
        (vec![port("!=", DROP), forward(ACCEPT)], Block),
        (vec![port("!=", r#"{"jump": {"target": "x"}}"#), forward(ACCEPT)], Pass),
        (vec![port("!=", r#"{"goto": {"target": "x"}}"#), forward(ACCEPT)], Block),
        (vec![port("==", r#"{"counter": null}"#), forward(ACCEPT)], Pass),
        // Where connections are followed, a fragment shares the fate of its packet.
        (vec![followed, port("==", DROP), forward(ACCEPT)], Pass),
    ] {
        let objects = [one_chain(&rules), vec![chain("t", "x"), rule("inet", "t", "x", ACCEPT)]].concat();
        assert_eq!(decides(&whole(&objects), &fragment()), wanted, "{rules:?}");
    }
}

#[test]
fn a_chain_may_block_where_one_that_it_leads_to_does() {
    let jump = |to: &str| format!(r#"{{"jump": {{"target": "{to}"}}}}"#);
    let leads = |from: &str, to: &str| rule("inet", "t", from, &jump(to));
    for (last, wanted) in [(ACCEPT, RuleAction::Pass), (DROP, RuleAction::Block)] {
        let to_first = forward(&format!("{}, {}", matching(DPORT, "==", "22"), jump("a")));
        let mut objects = one_chain(&[to_first, forward(ACCEPT)]);
        objects.extend(["a", "b", "c", "d"].map(|name| chain("t", name)));
        objects.extend([leads("a", "b"), leads("a", "d"), leads("b", "c"), rule("inet", "t", "c", last)]);
        objects.push(rule("inet", "t", "d", ACCEPT));
        assert_eq!(decides(&whole(&objects), &fragment()), wanted, "{last}");
    }
}

#[test]
fn chains_that_many_rules_lead_to_are_noted_once() {
    let map = r#"{"map": {"family": "inet", "table": "t", "name": "m", "type": "inet_service", "map": "verdict", "elem": [[22, {"jump": {"target": "x"}}], [23, {"goto": {"target": "x"}}]]}}"#;
    let asks = forward(&format!(r#"{{"vmap": {{"key": {DPORT}, "data": "@m"}}}}"#));
    let jumps = forward(r#"{"jump": {"target": "x"}}"#);
    let rules = [vec![map.to_owned(), chain("t", "x")], vec![asks; 50], vec![jumps; 50]].concat();
    let text = json(&one_chain(&rules));
    let lines = Lines::of(text.as_bytes());
    let source = Source::new(&text, &lines);
    let document = document(&text).expect("JSON");
    let ruleset = Ruleset::read(source, &document).expect("a ruleset");
    assert_eq!(ruleset.leads.iter().map(|leads| leads.len()).sum::<usize>(), 1);
}

/// Elements of a map, by turns with one verdict and the other.
fn by_turns(count: usize) -> String {
    (0..count)
        .map(|at| format!("[{at}, {}]", if at % 2 == 0 { ACCEPT } else { DROP }))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn conditions_that_maps_copy_count_for_each_copy() {
    let addresses: Vec<String> = (0..10_000).map(|at| format!("\"10.0.{}.{}\"", at >> 8, at & 255)).collect();
    let set = matching(SADDR, "==", &format!(r#"{{"set": [{}]}}"#, addresses.join(", ")));
    let length = r#"{"meta": {"key": "length"}}"#;
    let map = |count| {
        let elements = by_turns(count);
        format!(r#"{{"vmap": {{"key": {length}, "data": {{"set": [{elements}]}}}}}}"#)
    };
    for (count, fits) in [(300, true), (401, false)] {
        let read = read_all(&one_chain(&[forward(&format!("{set}, {}", map(count)))]));
        assert_eq!(read.refused.is_empty(), fits, "{count}: {:?}", read.refused);
        assert!(fits || read.refused[0].what.contains("hold more than 4000000 values"), "{:?}", read.refused);
    }
    // What stands before each counter is copied for it; a comparison with no value takes memory as well.
    let none = r#"{"set": {"family": "inet", "table": "t", "name": "s", "type": "ipv4_addr"}}"#.to_owned();
    let asks = format!(r#"{{"counter": null}}, {}"#, matching(SADDR, "==", r#""@s""#));
    let many = vec![asks; 3_000].join(", ");
    let read = read_all(&one_chain(&[none, forward(&many)]));
    assert!(read.refused[0].what.contains("hold more than 4000000 values"), "{:?}", read.refused);
}

#[test]
fn a_ruleset_becomes_no_more_rules_than_a_policy_has() {
    let elements = by_turns(60_000);
    let map = format!(
        r#"{{"map": {{"family": "inet", "table": "t", "name": "m", "type": "integer", "map": "verdict", "elem": [{elements}]}}}}"#
    );
    let length = r#"{"meta": {"key": "length"}}"#;
    let asks = forward(&format!(r#"{{"vmap": {{"key": {length}, "data": "@m"}}}}"#));
    let rules = [vec![map], vec![asks; 17]].concat();
    let fault = read(json(&one_chain(&rules)).as_bytes(), &PolicyOptions::default()).expect_err("too many");
    assert!(fault.line == 20 && fault.what.contains("more than 1000000 rules"), "{fault}");
}

#[test]
fn rejecting_says_how_and_to_whom() {
    for (reject, wanted) in [
        ("null", Some(Reject::Unreachable(Unreachable::Port))),
        (r#"{"type": "tcp reset"}"#, Some(Reject::TcpReset)),
        (r#"{"type": "icmp", "expr": "host-prohibited"}"#, Some(Reject::Icmp(10))),
        (r#"{"type": "icmpv6", "expr": "no-route"}"#, None),
        (r#"{"type": "icmpx", "expr": "no-route"}"#, Some(Reject::Unreachable(Unreachable::NoRoute))),
    ] {
        let policy = whole(&one_chain(&[forward(&format!(r#"{{"reject": {reject}}}"#))]));
        assert_eq!(decides(&policy, &first_segment(1)), wanted.map_or(RuleAction::Block, RuleAction::Reject));
    }
}

#[test]
fn tables_are_made_anew_before_all_other_objects_alone() {
    let table = r#"{"table": {"family": "inet", "name": "t"}}"#;
    let command = |word: &str, object: &str| format!("{{\"{word}\": {object}}}");
    let [add, delete] = ["add", "delete"].map(|word| command(word, table));
    let rules = one_chain(&[forward(ACCEPT)]);
    let anew = [&[add.clone(), delete.clone(), add.clone()][..], &rules].concat();
    assert_eq!(whole(&anew).groups.len(), whole(&rules).groups.len());
    let dormant = table.replace("\"t\"", "\"t\", \"flags\": \"dormant\"");
    for (objects, line) in [
        ([&rules[..], std::slice::from_ref(&delete)].concat(), 4),
        (vec![dormant.clone(), delete, add.clone()], 3),
        (vec![command("add", &dormant)], 2),
        (vec![add, command("delete", &chain("t", "forward"))], 3),
    ] {
        let error = read(json(&objects).as_bytes(), &PolicyOptions::default()).err();
        let error = error.expect("it is no ruleset that is printed");
        assert!(error.line == line && error.what.contains("without flags"), "{error}");
    }
}
