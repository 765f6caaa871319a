//! Rulesets are kept whole for the chain that is wanted, or refused by place; what is written is read again.

use super::*;
use crate::address::AddressFamily;
use crate::region::{Region, Set};
use crate::ruleset::{Decision, ImportedRules, Part};
use crate::{ImportError, Naming, address};
use proptest::prelude::*;
use tables::rules::RuleField;
use tables::rules::RuleField::{Any, Exact, Prefix, Range, Ternary};

fn ruleset(family: &str, rules: &[String]) -> String {
    let mut text = format!(
        "{{\"nftables\": [{{\"metainfo\": {{\"json_schema_version\": 1}}}},\n\
         {{\"table\": {{\"family\": \"{family}\", \"name\": \"filter\", \"handle\": 1}}}},\n\
         {{\"chain\": {{\"family\": \"{family}\", \"table\": \"filter\", \"name\": \"x\", \"handle\": 1}}}},\n\
         {{\"set\": {{\"family\": \"{family}\", \"table\": \"filter\", \"name\": \"s\", \"type\": \"ipv4_addr\", \"elem\": [{{\"prefix\": {{\"addr\": \"10.0.0.0\", \"len\": 8}}}}, {{\"elem\": {{\"val\": \"192.0.2.1\", \"comment\": \"c\"}}}}]}}}},\n\
         {{\"chain\": {{\"family\": \"{family}\", \"table\": \"filter\", \"name\": \"forward\", \"handle\": 1, \"type\": \"filter\", \"hook\": \"forward\", \"prio\": 0, \"policy\": \"drop\"}}}}"
    );
    for rule in rules {
        text += ",\n";
        text += rule;
    }
    text + "\n]}\n"
}

fn rule(chain: &str, statements: &str) -> String {
    format!(
        "{{\"rule\": {{\"family\": \"inet\", \"table\": \"filter\", \"chain\": \"{chain}\", \"handle\": 9, \"expr\": [{statements}]}}}}"
    )
}

fn matching(left: &str, op: &str, right: &str) -> String {
    rule(
        "forward",
        &format!(
            "{{\"match\": {{\"op\": \"{op}\", \"left\": {left}, \"right\": {right}}}}}, {{\"accept\": null}}"
        ),
    )
}

fn read_rules(rules: &[String], options: &ChainOptions) -> Result<ImportedRules, ImportError> {
    read(ruleset("inet", rules).as_bytes(), options)
}

const SADDR: &str = r#"{"payload": {"protocol": "ip", "field": "saddr"}}"#;
const DPORT: &str = r#"{"payload": {"protocol": "tcp", "field": "dport"}}"#;
const ANY_DPORT: &str = r#"{"payload": {"protocol": "th", "field": "dport"}}"#;
const FLAGS: &str = r#"{"payload": {"protocol": "tcp", "field": "flags"}}"#;
const PROTOCOL: &str = r#"{"meta": {"key": "l4proto"}}"#;

/// The sides of a match about its operator, names of columns, and what each rule made of it has there.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], Vec<Vec<RuleField>>);

#[test]
fn each_match_has_its_column() {
    let range = |low, high| Range { low, high };
    let masked = format!(r#"{{"&": [{SADDR}, "255.0.0.255"]}}"#);
    let masked_flags = format!(r#"{{"&": [{FLAGS}, ["fin", "syn", "rst", "ack"]]}}"#);
    let concat = format!(r#"{{"concat": [{SADDR}, {DPORT}]}}"#);
    let ether = r#"{"payload": {"protocol": "ether", "field": "saddr"}}"#;
    let icmp = r#"{"payload": {"protocol": "icmp", "field": "type"}}"#;
    let fragment = r#"{"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]}"#;
    let either = format!(r#"{{"concat": [{PROTOCOL}, {ANY_DPORT}]}}"#);
    let cases: [Case<'_>; 24] = [
        (SADDR, "==", r#""10.0.0.1""#, &["src"], vec![vec![Exact(0x0a00_0001)]]),
        (
            SADDR,
            "==",
            r#"{"prefix": {"addr": "10.0.0.0", "len": 8}}"#,
            &["src"],
            vec![vec![Prefix { value: 0x0a00_0000, length: 8 }]],
        ),
        (
            SADDR,
            "==",
            r#"{"range": ["10.0.0.1", "10.0.0.6"]}"#,
            &["src"],
            vec![vec![range(0x0a00_0001, 0x0a00_0006)]],
        ),
        (
            SADDR,
            "==",
            r#""@s""#,
            &["src"],
            vec![vec![Prefix { value: 0x0a00_0000, length: 8 }], vec![Exact(0xc000_0201)]],
        ),
        (
            &masked,
            "==",
            r#""10.0.0.1""#,
            &["src"],
            vec![vec![Ternary { value: 0x0a00_0001, mask: 0xff00_00ff }]],
        ),
        (DPORT, "==", "80", &["proto", "dport"], vec![vec![Exact(6), Exact(80)]]),
        (
            DPORT,
            "!=",
            "80",
            &["proto", "dport"],
            vec![vec![Exact(6), range(0, 79)], vec![Exact(6), range(81, 65535)]],
        ),
        (
            DPORT,
            "==",
            r#"{"set": [22, {"range": [80, 90]}]}"#,
            &["dport"],
            vec![vec![Exact(22)], vec![range(80, 90)]],
        ),
        (DPORT, ">=", "1024", &["dport"], vec![vec![range(1024, 65535)]]),
        (DPORT, "<", "1024", &["dport"], vec![vec![range(0, 1023)]]),
        (DPORT, "!=", "80", &["fragment"], vec![vec![Exact(0)], vec![Exact(0)]]),
        (fragment, "!=", "0", &["fragment"], vec![vec![Exact(1)]]),
        (fragment, "==", "0", &["fragment"], vec![vec![Exact(0)]]),
        (
            &either,
            "==",
            r#"{"set": [{"concat": ["tcp", 53]}, {"concat": [17, 54]}]}"#,
            &["proto", "dport"],
            vec![vec![Exact(6), Exact(53)], vec![Exact(17), Exact(54)]],
        ),
        (PROTOCOL, "==", r#"{"set": ["tcp", 17]}"#, &["proto"], vec![vec![Exact(6)], vec![Exact(17)]]),
        (&masked_flags, "==", r#""syn""#, &["tcp_flags"], vec![vec![Ternary { value: 2, mask: 0x17 }]]),
        (
            FLAGS,
            "in",
            r#"["syn", "ack"]"#,
            &["tcp_flags"],
            vec![vec![Ternary { value: 2, mask: 2 }], vec![Ternary { value: 16, mask: 16 }]],
        ),
        (FLAGS, "!", r#"["syn", "ack"]"#, &["tcp_flags"], vec![vec![Ternary { value: 0, mask: 18 }]]),
        (FLAGS, "==", r#"{"|": ["syn", "ack"]}"#, &["tcp_flags"], vec![vec![Exact(18)]]),
        (
            &concat,
            "==",
            r#"{"set": [{"concat": ["10.0.0.1", 80]}, {"concat": [{"prefix": {"addr": "11.0.0.0", "len": 8}}, {"range": [1, 9]}]}]}"#,
            &["src", "dport"],
            vec![
                vec![Exact(0x0a00_0001), Exact(80)],
                vec![Prefix { value: 0x0b00_0000, length: 8 }, range(1, 9)],
            ],
        ),
        (ether, "==", r#""02:00:00:00:00:01""#, &["src_mac"], vec![vec![Exact(0x0200_0000_0001)]]),
        (icmp, "==", r#""echo-request""#, &["proto", "icmp_type"], vec![vec![Exact(1), Exact(8)]]),
        (
            r#"{"meta": {"key": "iifname"}}"#,
            "==",
            r#"{"set": ["b", "a"]}"#,
            &["in_port"],
            vec![vec![Exact(1)], vec![Exact(2)]],
        ),
        (r#"{"meta": {"key": "nfproto"}}"#, "==", r#""ipv4""#, &["src"], vec![vec![Any]]),
    ];
    for (left, op, right, names, expected) in cases {
        let set = read_rules(&[matching(left, op, right)], &ChainOptions::default()).unwrap();
        let columns: Vec<usize> = names.iter().map(|name| set.column(name).expect(name)).collect();
        let seen: Vec<Vec<RuleField>> = set
            .rules
            .iter()
            .map(|rule| columns.iter().map(|column| rule.rule.fields[*column]).collect())
            .collect();
        assert_eq!(seen, expected, "{left} {op} {right}");
    }
}

#[test]
fn a_set_that_rules_of_another_chain_change_is_refused() {
    let set = r#"{"set": {"family": "inet", "table": "filter", "name": "seen", "type": "ipv4_addr"}}"#;
    let adds = format!(r#"{{"set": {{"op": "add", "elem": {SADDR}, "set": "@seen"}}}}"#);
    let asks = matching(SADDR, "==", r#""@seen""#);
    let options = ChainOptions::default();
    let still = read_rules(&[set.to_owned(), asks.clone()], &options).expect("nothing changes it");
    assert_eq!(still.rules.len(), 0);
    let error = read_rules(&[set.to_owned(), rule("x", &adds), asks], &options).expect_err("it changes");
    assert!(error.what.contains("changes by itself"), "{error}");
    let error = read_rules(&[set.to_owned(), set.to_owned()], &options).expect_err("there twice");
    assert!(error.what.contains("there twice"), "{error}");
}

#[test]
fn headers_of_the_other_family_never_fit() {
    let six = r#"{"payload": {"protocol": "ip6", "field": "saddr"}}"#;
    let rules = [
        matching(six, "!=", r#""2001:db8::1""#),
        matching(r#"{"meta": {"key": "nfproto"}}"#, "==", r#""ipv6""#),
    ];
    assert_eq!(read_rules(&rules, &ChainOptions::default()).unwrap().rules.len(), 0);
    let options = ChainOptions { family: AddressFamily::V6, ..ChainOptions::default() };
    assert_eq!(read_rules(&rules, &options).unwrap().rules.len(), 3);
    assert_eq!(read_rules(&[matching(SADDR, "==", r#""10.0.0.1""#)], &options).unwrap().rules.len(), 0);
}

#[test]
fn a_reject_is_of_the_family_and_protocol_of_its_message() {
    let of = |message: &str, family: AddressFamily| {
        let rules = [rule("forward", &format!("{{\"reject\": {message}}}"))];
        let set = read_rules(&rules, &ChainOptions { family, ..ChainOptions::default() }).unwrap();
        set.rules.iter().map(|rule| rule.rule.fields[4]).collect::<Vec<RuleField>>()
    };
    for (message, v4, v6) in [
        ("null", vec![Any], vec![Any]),
        (r#"{"type": "icmpx", "expr": "admin-prohibited"}"#, vec![Any], vec![Any]),
        (r#"{"type": "icmp", "expr": "port-unreachable"}"#, vec![Any], vec![]),
        (r#"{"type": "icmpv6", "expr": "no-route"}"#, vec![], vec![Any]),
        (r#"{"type": "tcp reset"}"#, vec![Exact(6)], vec![Exact(6)]),
    ] {
        assert_eq!((of(message, AddressFamily::V4), of(message, AddressFamily::V6)), (v4, v6), "{message}");
    }
}

#[test]
fn another_chain_at_the_hook_must_let_everything_pass() {
    let chain = |family: &str, table: &str, name: &str, policy: &str| {
        format!(
            "{{\"chain\": {{\"family\": \"{family}\", \"table\": \"{table}\", \"name\": \"{name}\", \"type\": \"filter\", \"hook\": \"forward\", \"prio\": 5, \"policy\": \"{policy}\"}}}}"
        )
    };
    let of = |family: &str, table: &str, statements: &str| {
        rule("late", statements).replace("\"inet\"", &format!("\"{family}\"")).replace("filter", table)
    };
    let mss = r#"{"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": 1}}, {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": {"rt": {"key": "mtu"}}}}"#;
    for (rules, line) in [
        (vec![chain("inet", "filter", "late", "accept")], None),
        (vec![chain("ip", "other", "late", "accept"), of("ip", "other", mss)], None),
        (vec![chain("ip6", "other", "late", "drop")], None),
        (vec![chain("inet", "filter", "late", "drop")], Some(6)),
        (vec![chain("ip", "other", "late", "drop")], Some(6)),
        (vec![chain("inet", "filter", "late", "accept"), rule("late", "{\"drop\": null}")], Some(7)),
        (vec![chain("ip", "other", "late", "accept"), of("ip", "other", "{\"reject\": null}")], Some(7)),
        (vec![chain("ip", "other", "late", "accept"), of("ip", "other", "{\"vmap\": {}}")], Some(7)),
        (
            vec![
                chain("inet", "filter", "late", "accept"),
                rule("late", "{\"jump\": {\"target\": \"x\"}}"),
                rule("x", "{\"queue\": null}"),
            ],
            Some(8),
        ),
    ] {
        let read = read_rules(&rules, &ChainOptions::default());
        assert_eq!(read.as_ref().err().map(|error| error.line), line, "{rules:?}: {read:?}");
        assert!(
            read.is_ok() || read.is_err_and(|error| error.what.contains("decides about the same packets"))
        );
    }
}

#[test]
fn what_other_hooks_drop_or_change_is_refused() {
    let chain = |family: &str, kind: &str, hook: &str, policy: &str| {
        format!(
            "{{\"chain\": {{\"family\": \"{family}\", \"table\": \"other\", \"name\": \"late\", \"type\": \"{kind}\", \"hook\": \"{hook}\", \"prio\": -10, \"policy\": \"{policy}\"}}}}"
        )
    };
    let of = |family: &str, statements: &str| {
        rule("late", statements).replace("\"inet\"", &format!("\"{family}\"")).replace("filter", "other")
    };
    let read = |family: &str, kind: &str, hook: &str, policy: &str, statements: &str| {
        read_rules(&[chain(family, kind, hook, policy), of(family, statements)], &ChainOptions::default())
    };
    let drop = "{\"drop\": null}";
    for (family, hook, is_passed) in [
        ("inet", "prerouting", true),
        ("ip", "postrouting", true),
        ("inet", "ingress", true),
        ("netdev", "ingress", true),
        ("netdev", "egress", true),
        ("bridge", "prerouting", true),
        ("bridge", "forward", false),
        ("ip6", "prerouting", false),
        ("ip", "input", false),
        ("ip", "output", false),
    ] {
        for (policy, statement, line) in [("drop", "", 6), ("accept", drop, 7)] {
            let read = read(family, "filter", hook, policy, statement);
            let refused = read.as_ref().err().map(|error| error.line);
            assert_eq!(refused, is_passed.then_some(line), "{family} {hook} {policy}: {read:?}");
        }
    }
    for (kind, hook, policy, statement, is_kept) in [
        ("nat", "prerouting", "accept", "{\"dnat\": {\"addr\": \"10.0.0.1\"}}", true),
        ("nat", "postrouting", "accept", "{\"masquerade\": null}", true),
        ("nat", "postrouting", "drop", "{\"masquerade\": null}", false),
        ("nat", "prerouting", "accept", drop, false),
        ("filter", "prerouting", "accept", "{\"notrack\": null}", true),
        ("filter", "prerouting", "accept", "{\"queue\": null}", false),
    ] {
        let read = read("ip", kind, hook, policy, statement);
        assert_eq!(read.is_ok(), is_kept, "{kind} {hook} {policy} {statement}: {read:?}");
    }
    let payload = |protocol: &str, field: &str| {
        format!("{{\"payload\": {{\"protocol\": \"{protocol}\", \"field\": \"{field}\"}}}}")
    };
    for (key, is_kept) in [
        ("{\"meta\": {\"key\": \"mark\"}}".to_owned(), true),
        ("{\"ct\": {\"key\": \"mark\"}}".to_owned(), true),
        ("{\"tcp option\": {\"name\": \"maxseg\", \"field\": \"size\"}}".to_owned(), true),
        (payload("ip", "dscp"), true),
        (payload("ip6", "dscp"), true),
        (payload("ip", "saddr"), false),
        (payload("ip", "daddr"), false),
        (payload("ip", "protocol"), false),
        (payload("tcp", "dport"), false),
        (payload("th", "sport"), false),
        (payload("tcp", "flags"), false),
        (payload("icmp", "type"), false),
        (payload("ether", "saddr"), false),
        (payload("tcp", "dscp"), false),
        ("{\"payload\": {\"base\": \"nh\", \"offset\": 128, \"len\": 32}}".to_owned(), false),
        ("{\"meta\": {\"key\": \"pkttype\"}}".to_owned(), false),
    ] {
        let statement = format!("{{\"mangle\": {{\"key\": {key}, \"value\": 22}}}}");
        for hook in ["forward", "prerouting"] {
            let read = read("ip", "filter", hook, "accept", &statement);
            assert_eq!(
                read.as_ref().err().map(|error| error.line),
                (!is_kept).then_some(7),
                "{key}: {read:?}"
            );
        }
    }
    assert!(read("ip", "filter", "forward", "accept", "{\"mangle\": {}}").is_err());
}

#[test]
fn jumps_and_returns_decide_together() {
    let inside = r#"{"prefix": {"addr": "10.0.0.0", "len": 8}}"#;
    let from = |verdict: &str| {
        format!("{{\"match\": {{\"op\": \"==\", \"left\": {SADDR}, \"right\": {inside}}}}}, {verdict}")
    };
    let rules = [
        rule(
            "x",
            "{\"match\": {\"op\": \"==\", \"left\": {\"meta\": {\"key\": \"l4proto\"}}, \"right\": \"udp\"}}, {\"return\": null}",
        ),
        rule(
            "x",
            "{\"counter\": {\"packets\": 1, \"bytes\": 2}}, {\"log\": null}, {\"reject\": {\"type\": \"tcp reset\"}}",
        ),
        rule("forward", &from("{\"jump\": {\"target\": \"x\"}}")),
        rule("forward", "{\"accept\": null}"),
    ];
    let set = read_rules(&rules, &ChainOptions::default()).unwrap();
    let (inside, outside) = (0x0a00_0001, 0x0b00_0001);
    for (src, proto, allow) in [(inside, 6, false), (inside, 17, true), (outside, 6, true)] {
        assert_eq!(set.allows(&[src, 0, 0, 0, proto]), Some(allow));
    }
    assert!(set.rules[0].log && set.rules[0].line == 7);
    assert_eq!(set.default, Some(false));
}

#[test]
fn the_exact_place_is_named() {
    let statement = |text: &str| rule("forward", text);
    for (rule, part) in [
        (
            matching(r#"{"ct": {"key": "state"}}"#, "in", r#""new""#),
            "what is known of the packet's connection",
        ),
        (matching(r#"{"meta": {"key": "mark"}}"#, "==", "1"), "`meta mark`"),
        (matching(r#"{"payload": {"protocol": "ip", "field": "ttl"}}"#, "==", "1"), "`ip ttl`"),
        (matching(r#"{"fib": {"result": "oif"}}"#, "==", "1"), "asks this machine"),
        (matching(r#"{"meta": {"key": "iifname"}}"#, "==", r#""eth*""#), "names start so"),
        (matching(SADDR, "==", r#""@t""#), "no set `t`"),
        (matching(SADDR, "==", r#""::1""#), "is no value of src"),
        (matching(DPORT, "==", "65536"), "is no value of dport"),
        (matching(DPORT, ">", "65535"), "no value of dport"),
        (matching(DPORT, "~", "1"), "operator `~`"),
        (matching(ANY_DPORT, "==", "53"), "the protocol need not have any"),
        (matching(r#"{"payload": {"protocol": "ip", "field": "frag-off"}}"#, "==", "0"), "`ip frag-off`"),
        (
            matching(r#"{"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 16383]}"#, "==", "0"),
            "the offset alone",
        ),
        (
            matching(r#"{"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]}"#, "==", "7"),
            "only whether it is 0",
        ),
        (
            statement(
                r#"{"match": {"op": "!=", "left": {"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]}, "right": 0}},
                {"match": {"op": "!=", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 80}}, {"accept": null}"#,
            ),
            "in later fragments, which have none",
        ),
        (matching(r#"{"meta": {"key": "iif"}}"#, "==", "3"), "by its name alone"),
        (matching(r#"{"meta": {"key": "iif"}}"#, "<", "3"), "with no number"),
        (matching(r#"{"meta": {"key": "protocol"}}"#, "==", r#""0x88cc""#), "no family"),
        (matching(SADDR, "==", r#"{"set": [{"elem": {"val": "10.0.0.1", "timeout": 3}}]}"#), "has `timeout`"),
        (statement("{\"reject\": {\"type\": \"other\"}}"), "`reject with other`"),
        (statement("{\"accept\": null, \"drop\": null}"), "not one member"),
        (statement("{}"), "not one member"),
        (statement("{\"limit\": {\"rate\": 3}}, {\"accept\": null}"), "remembers earlier packets"),
        (statement("{\"masquerade\": null}"), "changes addresses"),
        (statement("{\"vmap\": {}}"), "decides by a map"),
        (statement("{\"counter\": {}}"), "only counts packets"),
        (statement("{\"log\": null}"), "writes a log and decides nothing"),
        (statement("{\"accept\": null}, {\"drop\": null}"), "behind the decision"),
        (statement("{\"jump\": {\"target\": \"y\"}}"), "no chain `y`"),
        (statement("7"), "this is no statement"),
    ] {
        let error = read_rules(std::slice::from_ref(&rule), &ChainOptions::default()).expect_err(&rule);
        assert_eq!(error.line, 6, "{rule}: {error}");
        let start = rule.find("\"expr\": [").unwrap() + 10;
        assert!(
            error.column as usize >= start
                || ["only counts", "writes a log", "need not have any", "in later fragments"]
                    .iter()
                    .any(|own| part.contains(own)),
            "{error}"
        );
        assert!(error.what.contains(part), "{rule}: {error}");
    }
    for (text, part) in [
        ("", "no ruleset"),
        ("[]", "no ruleset"),
        ("{\"nftables\": [7]}", "no object"),
        ("{\"nftables\": []}", "no chain `forward`"),
        ("{\"nftables\": [{\"flush\": {\"ruleset\": null}}]}", "`flush` is no object"),
        ("{\"nftables\": [{\"add\": {\"rule\": {}}}]}", "`add` is no object"),
        ("{\"nftables\": [{\"element\": {}}]}", "`element` is no object"),
        ("{\"nftables\": [{}]}", "not one member"),
        (
            "{\"nftables\": [{\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"c\", \"policy\": \"queue\"}}]}",
            "no policy",
        ),
        (
            "{\"nftables\": [{\"chain\": {\"family\": \"ip\", \"table\": \"t\", \"name\": \"c\", \"pilocy\": \"drop\"}}]}",
            "unknown field",
        ),
        (
            "{\"nftables\": [{\"table\": {\"family\": \"ip\", \"name\": \"filter\", \"flags\": \"dormant\"}}]}",
            "dormant",
        ),
        (
            "{\"nftables\": [{\"chain\": {\"family\": \"ip\", \"table\": \"filter\", \"name\": \"forward\"}}]}",
            "no filter at the hook",
        ),
        (
            "{\"nftables\": [{\"chain\": {\"family\": \"ip\", \"table\": \"filter\", \"name\": \"forward\", \"type\": \"filter\", \"hook\": \"input\", \"policy\": \"drop\"}}]}",
            "no filter at the hook",
        ),
    ] {
        let error = read(text.as_bytes(), &ChainOptions::default()).expect_err(text);
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn rules_are_left_out_only_if_that_is_wanted() {
    let rules = [
        matching(r#"{"ct": {"key": "state"}}"#, "in", r#"["established", "related"]"#),
        matching(DPORT, "==", "80"),
    ];
    let lenient = read_rules(&rules, &ChainOptions { lenient: true, ..ChainOptions::default() }).unwrap();
    assert_eq!((lenient.rules.len(), lenient.refused.len()), (1, 1));
    let first = read_rules(&rules, &ChainOptions { first_packets: true, ..ChainOptions::default() }).unwrap();
    assert_eq!((first.rules.len(), first.refused.len()), (1, 0));
}

#[test]
fn every_cut_of_a_ruleset_is_refused() {
    let text = ruleset("inet", &[matching(DPORT, "==", "80")]);
    let end = text.trim_end().len();
    for end in 0..end {
        let error = read(&text.as_bytes()[..end], &ChainOptions::default()).unwrap_err();
        assert!(error.line as usize <= text[..end].split('\n').count(), "{end}: {error}");
    }
}

/// Addresses, ports, a protocol, a byte under a mask, an interface, and whether the packet may pass.
type Draft = (
    Option<(u32, u8, bool)>,
    Option<(u32, u8, bool)>,
    Option<(u16, u16)>,
    Option<(u16, u16)>,
    u8,
    (u8, u8),
    Option<u8>,
    bool,
);

/// Rules with every column that nftables knows.
fn rule_sets() -> impl Strategy<Value = ImportedRules> {
    let port = || prop::option::of((any::<u16>(), any::<u16>()));
    let address = || prop::option::of((any::<u32>(), 0u8..=32, any::<bool>()));
    let kind = 0u8..5;
    let one = (
        address(),
        address(),
        port(),
        port(),
        kind,
        any::<(u8, u8)>(),
        prop::option::of(0u8..4),
        any::<bool>(),
    );
    let region = |(src, dst, sport, dport, kind, (value, mask), interface, allow): Draft| {
        let mut region = Region::any(AddressFamily::V4);
        let prefix = |(bits, length, under_mask): (u32, u8, bool)| {
            let mask = if under_mask { 0xff00_00ff } else { !(address::host_mask(32, length) as u32) };
            Set::masked(32, (bits & mask).into(), mask.into())
        };
        let range =
            |(one, other): (u16, u16)| Set::Range { low: one.min(other).into(), high: one.max(other).into() };
        for (part, set) in [
            (Part::Source, src.map(prefix)),
            (Part::Destination, dst.map(prefix)),
            (Part::SourcePort, sport.map(range)),
            (Part::DestinationPort, dport.map(range)),
            (Part::Protocol, [None, Some(6), Some(17), Some(1), Some(89)][usize::from(kind)].map(Set::exact)),
            (Part::Fragment, (value & 3 == 3).then(|| Set::exact((mask & 1).into()))),
            (Part::TcpFlags, (kind < 2).then(|| Set::masked(8, (value & mask).into(), mask.into()))),
            (Part::IcmpType, (kind == 3).then(|| Set::exact(value.into()))),
            (Part::IcmpCode, (kind == 3).then(|| Set::Range { low: 0, high: mask.into() })),
            (
                Part::InPort,
                interface.map(|number| {
                    if number == 3 {
                        Set::Range { low: 0, high: 1 }
                    } else {
                        Set::exact(u128::from(number) + 1)
                    }
                }),
            ),
        ] {
            if let Some(set) = set {
                region = region.with(part, set);
            }
        }
        (region, allow)
    };
    (prop::collection::vec(one.prop_map(region), 1..8), any::<bool>()).prop_map(|(regions, default)| {
        let decision = |(line, (region, allow))| Decision {
            region,
            allow: Some(allow),
            log: false,
            line,
            text: "".into(),
        };
        let mut rules =
            ImportedRules::of(AddressFamily::V4, (1..).zip(regions).map(decision).collect(), Some(default));
        rules.interfaces =
            [("eth0", 1), ("lo", 2), ("ppp0", 3)].map(|(name, port)| (name.to_owned(), port)).to_vec();
        rules
    })
}

proptest! {
    #[test]
    fn what_is_written_decides_the_same_when_it_is_read(rules in rule_sets(), keys in prop::collection::vec(any::<[u32; 6]>(), 40)) {
        let json = write_json(&rules, &ExportLayout::default()).unwrap();
        let again = read(json.as_bytes(), &ChainOptions { interfaces: Naming::Ports(rules.interfaces.clone()), ..ChainOptions::default() }).unwrap();
        for key in keys {
            let key = |set: &ImportedRules| -> Vec<u128> {
                let (proto, later) = ([6, 17, 1, 89, 132][key[3] as usize % 5], (key[3] >> 8) % 3 / 2);
                // What a header holds is 0 where there is none.
                let of = |protocols: &[u32], value: u32| if later == 0 && protocols.contains(&proto) { value } else { 0 };
                let value = |name: &str| match name {
                    "src" => key[0],
                    "dst" => key[1],
                    "sport" => of(&[6, 17, 132], key[2] & 0xffff),
                    "dport" => of(&[6, 17, 132], key[2] >> 16),
                    "proto" => proto,
                    "in_port" => key[4] % 4,
                    "tcp_flags" => of(&[6], key[5] & 0xff),
                    "fragment" => later,
                    _ => of(&[1], key[5] & 0xff),
                };
                set.columns.iter().map(|column| value(column.name).into()).collect()
            };
            prop_assert_eq!(rules.allows(&key(&rules)), again.allows(&key(&again)));
        }
    }

    #[test]
    fn broken_rulesets_are_an_answer(at: prop::sample::Index, byte in 32u8..127) {
        let text = ruleset("inet", &[matching(DPORT, "==", r#"{"set": [22, {"range": [80, 90]}]}"#), matching(SADDR, "==", r#""@s""#)]);
        let mut text = text.into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let _ = read(&text, &ChainOptions { lenient: true, limit: 1000, ..ChainOptions::default() });
    }
}

#[test]
fn what_nftables_cannot_say_is_refused_by_line() {
    let filters = b"@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n";
    let rules = crate::classbench::read(filters, &Default::default()).unwrap();
    let error = |rules: &ImportedRules| write_text(rules, &ExportLayout::default()).unwrap_err().what;
    assert!(error(&rules).contains("a packet that none fits"));
    let mut rules = ImportedRules { default: Some(true), ..rules };
    assert!(error(&rules).contains("does not say whether its packets may pass"));
    rules.rules[0].allow = Some(true);
    assert!(
        write_text(&rules, &ExportLayout::default()).unwrap().contains("\n\t\taccept comment \"line 1\"\n")
    );
    let bad = ImportedRules { interfaces: vec![("a\" accept #".to_owned(), 1)], ..rules.clone() };
    assert!(error(&bad).contains("no name of an interface"));
    let layout = ExportLayout { table: "x y".to_owned(), ..ExportLayout::default() };
    assert!(write_json(&rules, &layout).unwrap_err().what.contains("no name for nftables"));
}
