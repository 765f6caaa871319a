//! Rulesets are kept whole for the chain that is wanted, or refused by place; what is written is read again.

use super::*;
use crate::address::Family;
use crate::region::{Region, Set};
use crate::ruleset::{Decision, Part, RuleSet};
use crate::{ImportError, address};
use proptest::prelude::*;
use tables::rules::Field;
use tables::rules::Field::{Any, Exact, Prefix, Range, Ternary};

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

fn read_rules(rules: &[String], options: &Options) -> Result<RuleSet, ImportError> {
    read(ruleset("inet", rules).as_bytes(), options)
}

const SADDR: &str = r#"{"payload": {"protocol": "ip", "field": "saddr"}}"#;
const DPORT: &str = r#"{"payload": {"protocol": "tcp", "field": "dport"}}"#;
const ANY_DPORT: &str = r#"{"payload": {"protocol": "th", "field": "dport"}}"#;
const FLAGS: &str = r#"{"payload": {"protocol": "tcp", "field": "flags"}}"#;
const PROTOCOL: &str = r#"{"meta": {"key": "l4proto"}}"#;

/// The sides of a match about its operator, names of columns, and what each rule made of it has there.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], Vec<Vec<Field>>);

#[test]
fn each_match_has_its_column() {
    let range = |low, high| Range { low, high };
    let masked = format!(r#"{{"&": [{SADDR}, "255.0.0.255"]}}"#);
    let masked_flags = format!(r#"{{"&": [{FLAGS}, ["fin", "syn", "rst", "ack"]]}}"#);
    let concat = format!(r#"{{"concat": [{SADDR}, {DPORT}]}}"#);
    let ether = r#"{"payload": {"protocol": "ether", "field": "saddr"}}"#;
    let icmp = r#"{"payload": {"protocol": "icmp", "field": "type"}}"#;
    let cases: [Case<'_>; 21] = [
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
        (ANY_DPORT, "==", "53", &["proto", "dport"], vec![vec![Any, Exact(53)]]),
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
        let set = read_rules(&[matching(left, op, right)], &Options::default()).unwrap();
        let columns: Vec<usize> = names.iter().map(|name| set.column(name).expect(name)).collect();
        let seen: Vec<Vec<Field>> = set
            .rules
            .iter()
            .map(|rule| columns.iter().map(|column| rule.rule.fields[*column]).collect())
            .collect();
        assert_eq!(seen, expected, "{left} {op} {right}");
    }
}

#[test]
fn headers_of_the_other_family_never_fit() {
    let six = r#"{"payload": {"protocol": "ip6", "field": "saddr"}}"#;
    let rules = [
        matching(six, "!=", r#""2001:db8::1""#),
        matching(r#"{"meta": {"key": "nfproto"}}"#, "==", r#""ipv6""#),
    ];
    assert_eq!(read_rules(&rules, &Options::default()).unwrap().rules.len(), 0);
    let options = Options { family: Family::V6, ..Options::default() };
    assert_eq!(read_rules(&rules, &options).unwrap().rules.len(), 3);
    assert_eq!(read_rules(&[matching(SADDR, "==", r#""10.0.0.1""#)], &options).unwrap().rules.len(), 0);
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
    let set = read_rules(&rules, &Options::default()).unwrap();
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
        (statement("{\"limit\": {\"rate\": 3}}, {\"accept\": null}"), "remembers earlier packets"),
        (statement("{\"masquerade\": null}"), "changes addresses"),
        (statement("{\"vmap\": {}}"), "decides by a map"),
        (statement("{\"counter\": {}}"), "only counts packets"),
        (statement("{\"log\": null}"), "writes a log and decides nothing"),
        (statement("{\"accept\": null}, {\"drop\": null}"), "behind the decision"),
        (statement("{\"jump\": {\"target\": \"y\"}}"), "no chain `y`"),
        (statement("7"), "this is no statement"),
    ] {
        let error = read_rules(std::slice::from_ref(&rule), &Options::default()).expect_err(&rule);
        assert_eq!(error.line, 6, "{rule}: {error}");
        let start = rule.find("\"expr\": [").unwrap() + 10;
        assert!(
            error.column as usize >= start || part.contains("only counts") || part.contains("writes a log"),
            "{error}"
        );
        assert!(error.what.contains(part), "{rule}: {error}");
    }
    for (text, part) in [
        ("", "no ruleset"),
        ("[]", "no ruleset"),
        ("{\"nftables\": [7]}", "no object"),
        ("{\"nftables\": []}", "no chain `forward`"),
    ] {
        let error = read(text.as_bytes(), &Options::default()).expect_err(text);
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn rules_are_left_out_only_if_that_is_wanted() {
    let rules = [
        matching(r#"{"ct": {"key": "state"}}"#, "in", r#"["established", "related"]"#),
        matching(DPORT, "==", "80"),
    ];
    let lenient = read_rules(&rules, &Options { lenient: true, ..Options::default() }).unwrap();
    assert_eq!((lenient.rules.len(), lenient.refused.len()), (1, 1));
    let first = read_rules(&rules, &Options { first_packets: true, ..Options::default() }).unwrap();
    assert_eq!((first.rules.len(), first.refused.len()), (1, 0));
}

#[test]
fn every_cut_of_a_ruleset_is_refused() {
    let text = ruleset("inet", &[matching(DPORT, "==", "80")]);
    let end = text.trim_end().len();
    for end in 0..end {
        let error = read(&text.as_bytes()[..end], &Options::default()).unwrap_err();
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
fn rule_sets() -> impl Strategy<Value = RuleSet> {
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
        let mut region = Region::any(Family::V4);
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
            (Part::TcpFlags, (kind == 1).then(|| Set::masked(8, (value & mask).into(), mask.into()))),
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
            // Ports and ICMP fields share their bytes in a packet, so no rule asks for both.
            let ports = matches!(part, Part::SourcePort | Part::DestinationPort);
            if let Some(set) = set.filter(|_| !(ports && kind == 3)) {
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
        let mut rules = RuleSet::of(Family::V4, (1..).zip(regions).map(decision).collect(), Some(default));
        rules.interfaces = ["eth0", "lo", "ppp0"].map(str::to_owned).to_vec();
        rules
    })
}

proptest! {
    #[test]
    fn what_is_written_decides_the_same_when_it_is_read(rules in rule_sets(), keys in prop::collection::vec(any::<[u32; 6]>(), 40)) {
        let json = write_json(&rules, &Layout::default()).unwrap();
        let again = read(json.as_bytes(), &Options { interfaces: rules.interfaces.clone(), ..Options::default() }).unwrap();
        for key in keys {
            let key = |set: &RuleSet| -> Vec<u128> {
                let value = |name: &str| match name {
                    "src" => key[0],
                    "dst" => key[1],
                    "sport" => key[2] & 0xffff,
                    "dport" => key[2] >> 16,
                    "proto" => [6, 17, 1, 89, 7][key[3] as usize % 5],
                    "in_port" => key[4] % 4,
                    _ => key[5] & 0xff,
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
        let _ = read(&text, &Options { lenient: true, limit: 1000, ..Options::default() });
    }
}

#[test]
fn what_nftables_cannot_say_is_refused_by_line() {
    let filters = b"@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n";
    let rules = crate::classbench::read(filters, &Default::default()).unwrap();
    let error = |rules: &RuleSet| write_text(rules, &Layout::default()).unwrap_err().what;
    assert!(error(&rules).contains("a packet that none fits"));
    let mut rules = RuleSet { default: Some(true), ..rules };
    assert!(error(&rules).contains("does not say whether its packets may pass"));
    rules.rules[0].allow = Some(true);
    assert!(write_text(&rules, &Layout::default()).unwrap().contains("\n\t\taccept comment \"line 1\"\n"));
    let bad = RuleSet { interfaces: vec!["a\" accept #".to_owned()], ..rules.clone() };
    assert!(error(&bad).contains("no name of an interface"));
    let layout = Layout { table: "x y".to_owned(), ..Layout::default() };
    assert!(write_json(&rules, &layout).unwrap_err().what.contains("no name for nftables"));
}
