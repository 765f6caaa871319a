//! Rules about `lo` are kept: what a machine sends to itself is decided as the file says, in what is written
//! of it, too.

use import::policies::{PolicyOptions, read, write_nft, write_nft_json, write_npf};
use policy::{LOOPBACK, MAPPED, Packet, PacketField, Path, Policy, RuleAction, State, difference, evaluate};

fn options(interfaces: &[(&str, u16)]) -> PolicyOptions {
    let interfaces = interfaces.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
    PolicyOptions { interfaces, ..PolicyOptions::default() }
}

fn policy(text: &str, format: &str) -> Policy {
    let read = read(text.as_bytes(), format, &options(&[("eth0", 1)])).expect(text);
    assert_eq!(read.refused, [], "{text}");
    read.policy
}

/// An echo request from 127.0.0.1 to itself, that comes in by a port.
fn echo(port: u16) -> Packet {
    let local = MAPPED | 0x7f00_0001;
    let fields = [
        (PacketField::Family, 4),
        (PacketField::Source, local),
        (PacketField::Destination, local),
        (PacketField::Protocol, 1),
        (PacketField::IcmpType, 8),
        (PacketField::IcmpCode, 0),
        (PacketField::LaterFragment, 0),
        (PacketField::InPort, port.into()),
        (PacketField::State, State::New as u128),
        (PacketField::TimeToLive, 64),
        (PacketField::Length, 84),
    ];
    fields.into_iter().fold(Packet::default(), |packet, (field, value)| packet.with(field, Some(value)))
}

fn passes(policy: &Policy, port: u16) -> bool {
    let verdict = evaluate(policy, Path::ToGateway, &echo(port), &|_| false).expect("it ends");
    matches!(verdict.action, RuleAction::Pass | RuleAction::Keep)
}

fn nft(policy: &str, expression: &str) -> String {
    format!(
        r#"{{"nftables": [{{"table": {{"family": "inet", "name": "f"}}}},
{{"chain": {{"family": "inet", "table": "f", "name": "i", "type": "filter", "hook": "input", "prio": 0, "policy": "{policy}"}}}},
{{"rule": {{"family": "inet", "table": "f", "chain": "i", "expr": [{expression}]}}}}]}}
"#
    )
}

fn dump(default: &str, rule: &str) -> String {
    format!("*filter\n:INPUT {default} [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rule}COMMIT\n")
}

/// A file, its format, and whether it passes packets by `lo` and by `eth0`.
fn files() -> Vec<(String, &'static str, bool, bool)> {
    let named = |key: &str, name: &str| {
        format!(
            r#"{{"match": {{"op": "==", "left": {{"meta": {{"key": "{key}"}}}}, "right": "{name}"}}}}, {{"accept": null}}"#
        )
    };
    vec![
        (dump("DROP", "-A INPUT -i lo -j ACCEPT\n"), "iptables", true, false),
        (dump("ACCEPT", "-A INPUT -i lo -p icmp -j DROP\n"), "iptables", false, true),
        (dump("DROP", "-A INPUT ! -i lo -j ACCEPT\n"), "iptables", false, true),
        (dump("DROP", "-A INPUT ! -i eth0 -j ACCEPT\n"), "iptables", true, false),
        (dump("DROP", "-A INPUT -i lo+ -j ACCEPT\n"), "iptables", true, false),
        (nft("drop", &named("iifname", "lo")), "nft", true, false),
        (nft("drop", &named("iif", "lo")), "nft", true, false),
        (nft("drop", &named("iifname", "l*")), "nft", true, false),
        ("set skip on lo\nblock in\n".to_owned(), "pf", true, false),
        ("set skip on lo0\nblock in\n".to_owned(), "pf", true, false),
        ("block in on lo0\n".to_owned(), "pf", false, true),
        ("block in on ! lo\n".to_owned(), "pf", true, false),
        ("group default {\n\tpass in final on lo0 all\n\tblock all\n}\n".to_owned(), "npf", true, false),
    ]
}

#[test]
fn packets_by_lo_are_decided_as_the_file_says_and_as_what_is_written_of_it() {
    for (text, format, by_lo, by_port) in files() {
        let own = policy(&text, format);
        assert_eq!((passes(&own, LOOPBACK), passes(&own, 1)), (by_lo, by_port), "{text}");
        let written = policy(&write_nft_json(&own).expect(&text), "nft");
        assert_eq!((passes(&written, LOOPBACK), passes(&written, 1)), (by_lo, by_port), "{text}");
        assert!(write_nft(&own).expect(&text).contains("iifname"), "{text}");
    }
}

#[test]
fn a_rule_about_lo_is_a_difference() {
    let drops = |rule: &str| policy(&dump("DROP", rule), "iptables");
    let found = difference(&drops(""), &drops("-A INPUT -i lo -j ACCEPT\n"), 9).expect("small");
    assert_eq!((found.opened, found.closed), (1, 0));
    let skips = |line: &str| policy(&format!("{line}block in\n"), "pf");
    let found = difference(&skips("set skip on lo\n"), &skips(""), 9).expect("small");
    assert!(found.opened == 0 && found.closed > 0);
}

#[test]
fn npf_is_written_with_the_name_of_its_loopback() {
    let own = policy("block in\npass in quick on lo0 no state\n", "pf");
    let text = write_npf(&own).expect("NPF can say it");
    assert!(text.contains("on \"lo0\"") || text.contains("on lo0"), "{text}");
    let back = policy(&text, "npf");
    assert_eq!((passes(&back, LOOPBACK), passes(&back, 1)), (true, false), "{text}");
    // Where that name means another port, NPF has none for the loopback interface.
    let bound = |name: &str| Policy { interfaces: vec![(name.to_owned(), 4)], ..own.clone() };
    assert_eq!(write_npf(&bound("lo1")), Ok(text));
    let error = write_npf(&bound("lo0")).expect_err("its name is taken");
    assert!(error.what.contains("an interface without a name"), "{error}");
}

#[test]
fn a_name_that_is_bound_means_its_port_and_no_other_name_means_lo() {
    let text = dump("DROP", "-A INPUT -i lo -j ACCEPT\n");
    let bound = read(text.as_bytes(), "iptables", &options(&[("lo", 9)])).expect("a dump").policy;
    assert_eq!((passes(&bound, 9), passes(&bound, LOOPBACK)), (true, false));
    let error = read(text.as_bytes(), "iptables", &options(&[("eth0", LOOPBACK)])).expect_err("reserved");
    assert!(error.what.contains("`eth0` is bound to 65535"), "{error}");
    let refused = read(b"set skip on lo1\nblock in\n", "pf", &options(&[])).expect("pf").refused;
    assert!(refused[0].what.contains("`lo1` is bound to no port"), "{refused:?}");
}

#[test]
fn the_group_of_all_loopback_interfaces_of_pf_is_refused_where_another_one_is_bound() {
    for text in ["block in on lo\n", "block in on ! lo\n", "set skip on lo\nblock in\n"] {
        for bound in [&[("lo1", 5)][..], &[("lo0", 4), ("lo1", 5)], &[("lo", 9), ("lo0", 4)]] {
            let refused = read(text.as_bytes(), "pf", &options(bound)).expect("pf").refused;
            assert_eq!(refused.len(), 1, "{text} {bound:?}");
            assert!(refused[0].what.contains("of them is bound as well"), "{text} {bound:?}: {refused:?}");
        }
        for bound in [&[("lo0", 4)][..], &[("lo", 9)], &[("local", 5)]] {
            assert_eq!(read(text.as_bytes(), "pf", &options(bound)).expect("pf").refused, [], "{text}");
        }
    }
}

#[test]
fn a_mark_has_bits_for_the_ports_where_a_connection_may_be_kept() {
    let names: Vec<String> = (1..=9).map(|port| format!("e{port}")).collect();
    let bound: Vec<(&str, u16)> = names.iter().map(String::as_str).zip(1..).collect();
    let written = |rules: &str| {
        let text = format!("set state-policy if-bound\nblock in\n{rules}");
        let read = read(text.as_bytes(), "pf", &options(&bound)).expect("pf");
        assert_eq!(read.refused, [], "{text}");
        write_nft(&read.policy)
    };
    for rules in [
        "pass in on { e1 e9 } keep state\n",
        "pass in on lo0 no state\npass in on e8 keep state\n",
        "pass in on lo0 keep state\n",
        "pass in on lo0 keep state\npass out on { e1 e2 e3 e4 e5 e6 e9 } keep state\n",
        "pass in on { e1 e2 e3 e4 } keep state\npass out on { e5 e6 e7 e8 } keep state\n",
    ] {
        assert!(written(rules).is_ok(), "{rules}");
    }
    for rules in [
        "pass in keep state\n",
        "pass in on ! e1 keep state\n",
        "pass in on lo0 keep state\npass out on { e1 e2 e3 e4 e5 e6 e7 e8 } keep state\n",
        "pass in on { e1 e2 e3 e4 e5 } keep state\npass out on { e5 e6 e7 e8 e9 } keep state\n",
    ] {
        let error = written(rules).expect_err(rules);
        assert!(error.what.contains("at more than 8 ports"), "{error}");
    }
}
