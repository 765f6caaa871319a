//! Dumps are kept whole for the chain that is wanted, or refused by line and column.

use super::*;
use crate::Naming;
use crate::address::AddressFamily;
use proptest::prelude::*;
use tables::rules::RuleField;

fn dump(rules: &str) -> String {
    format!("*filter\n:FORWARD DROP [1:2]\n:x - [0:0]\n{rules}\nCOMMIT\n")
}

fn kept(rules: &str) -> ImportedRules {
    read(dump(rules).as_bytes(), &ChainOptions::default()).expect(rules)
}

fn refused(rules: &str) -> ImportError {
    read(dump(rules).as_bytes(), &ChainOptions::default()).expect_err(rules)
}

/// The only rule's fields in the columns with these names.
fn fields(rules: &str, names: &[&str]) -> Vec<Vec<RuleField>> {
    let set = kept(rules);
    let columns: Vec<usize> = names.iter().map(|name| set.column(name).expect(name)).collect();
    set.rules.iter().map(|rule| columns.iter().map(|column| rule.rule.fields[*column]).collect()).collect()
}

#[test]
fn each_match_has_its_column() {
    use RuleField::{Any, Exact, Prefix, Range, Ternary};
    let range = |low, high| Range { low, high };
    for (rule, names, expected) in [
        ("-s 10.0.0.0/8", &["src"][..], vec![vec![Prefix { value: 0x0a00_0000, length: 8 }]]),
        ("-d 10.0.0.1", &["dst"], vec![vec![Exact(0x0a00_0001)]]),
        ("-d 10.9.0.0/255.0.0.0", &["dst"], vec![vec![Prefix { value: 0x0a00_0000, length: 8 }]]),
        ("-s 10.0.0.1/255.0.0.255", &["src"], vec![vec![Ternary { value: 0x0a00_0001, mask: 0xff00_00ff }]]),
        ("! -s 0.0.0.0/1", &["src"], vec![vec![Prefix { value: 0x8000_0000, length: 1 }]]),
        ("-m iprange --src-range 10.0.0.1-10.0.0.6", &["src"], vec![vec![range(0x0a00_0001, 0x0a00_0006)]]),
        ("-p tcp", &["proto"], vec![vec![Exact(6)]]),
        ("-p all", &["proto"], vec![vec![Any]]),
        ("! -p udp", &["proto"], vec![vec![range(0, 16)], vec![range(18, 255)]]),
        ("-p tcp -m tcp --dport 80", &["proto", "dport"], vec![vec![Exact(6), Exact(80)]]),
        ("-p udp --sport 1024:", &["sport"], vec![vec![range(1024, 65535)]]),
        ("-p tcp ! --dport 80", &["dport"], vec![vec![range(0, 79)], vec![range(81, 65535)]]),
        ("-p tcp -m multiport --dports 22,80:81", &["dport"], vec![vec![Exact(22)], vec![range(80, 81)]]),
        (
            "-p tcp -m multiport --ports 22",
            &["sport", "dport"],
            vec![vec![Exact(22), Any], vec![Any, Exact(22)]],
        ),
        ("-p tcp -m multiport ! --dports 1,65535", &["dport"], vec![vec![Exact(0)], vec![range(2, 65534)]]),
        ("-p tcp --syn", &["tcp_flags"], vec![vec![Ternary { value: 2, mask: 0x17 }]]),
        ("-p tcp --tcp-flags SYN,ACK ACK", &["tcp_flags"], vec![vec![Ternary { value: 0x10, mask: 0x12 }]]),
        (
            "-p tcp ! --tcp-flags SYN,ACK ACK",
            &["tcp_flags"],
            vec![vec![Ternary { value: 0, mask: 0x10 }], vec![Ternary { value: 0x12, mask: 0x12 }]],
        ),
        ("-p icmp -m icmp --icmp-type 3/4", &["icmp_type", "icmp_code"], vec![vec![Exact(3), Exact(4)]]),
        ("-p icmp --icmp-type echo-request", &["icmp_type"], vec![vec![Exact(8)]]),
        ("-i eth0 -o ppp0", &["in_port", "out_port"], vec![vec![Exact(1), Exact(2)]]),
        ("-m mac --mac-source 02:00:00:00:00:0a", &["src_mac"], vec![vec![Exact(0x0200_0000_000a)]]),
        ("-m comment --comment \"a \\\" -j DROP\"", &["src"], vec![vec![Any]]),
    ] {
        assert_eq!(fields(&format!("-A FORWARD {rule} -j ACCEPT"), names), expected, "{rule}");
        assert_eq!(fields(&format!("[3:4] -A FORWARD {rule} -j ACCEPT"), names), expected, "{rule}");
    }
}

#[test]
fn what_can_never_fit_makes_no_rule() {
    for never in ["-p tcp --tcp-flags SYN ACK", "-p tcp -m multiport --dports 1 ! --dport 1", "! -i eth+"] {
        let interfaces = Naming::Themselves(vec!["eth0".to_owned()]);
        let options = ChainOptions { interfaces, ..ChainOptions::default() };
        let rules = read(dump(&format!("-A FORWARD {never} -j ACCEPT")).as_bytes(), &options).unwrap();
        let expected = usize::from(never == "! -i eth+");
        assert_eq!(
            rules.rules.iter().filter(|rule| rule.allow == Some(true)).count() - expected,
            expected,
            "{never}"
        );
    }
}

#[test]
fn interfaces_with_a_plus_are_those_that_are_named() {
    let interfaces = Naming::Themselves(["eth0", "lo", "eth1"].map(str::to_owned).to_vec());
    let options = ChainOptions { interfaces, ..ChainOptions::default() };
    let rules = read(dump("-A FORWARD -i eth+ -j ACCEPT").as_bytes(), &options).unwrap();
    let column = rules.column("in_port").unwrap();
    let seen: Vec<RuleField> = rules.rules.iter().map(|rule| rule.rule.fields[column]).collect();
    assert_eq!(seen, [RuleField::Exact(1), RuleField::Exact(3)]);
    assert!(refused("-A FORWARD -i eth+ -j ACCEPT").what.contains("all interfaces whose names start so"));
}

#[test]
fn jumps_returns_and_the_policy_decide_together() {
    let rules = kept(
        "-A FORWARD -s 10.0.0.0/8 -j x\n-A FORWARD -p tcp -j ACCEPT\n-A x -d 10.0.0.0/8 -j RETURN\n-A x -p udp -j ACCEPT\n-A x -j REJECT --reject-with icmp-host-prohibited",
    );
    let (inside, outside) = (0x0a00_0001, 0x0b00_0001);
    for (src, dst, proto, allow) in [
        (inside, outside, 17, true),
        (inside, outside, 6, false),
        (inside, inside, 6, true),
        (inside, inside, 17, false),
        (outside, inside, 6, true),
        (outside, inside, 17, false),
    ] {
        assert_eq!(rules.allows(&[src, dst, 0, 0, proto]), Some(allow), "{src:x} {dst:x} {proto}");
    }
    assert_eq!(rules.default, Some(false));
    assert_eq!(rules.rules.iter().map(|rule| rule.line).collect::<Vec<u32>>()[..2], [7, 7]);
}

#[test]
fn the_exact_place_is_named() {
    for (rule, column, part) in [
        (
            "-m state --state NEW -j ACCEPT",
            15,
            "the match `state` asks what is known of the packet's connection",
        ),
        ("-m limit --limit 3/sec -j ACCEPT", 15, "remembers earlier packets"),
        ("-m owner --uid-owner 3 -j ACCEPT", 15, "asks for a process"),
        ("-m string --string x -j ACCEPT", 15, "looks into the packet's bytes"),
        ("-m nothing -j ACCEPT", 15, "no column"),
        ("-j LOG --log-prefix \"a b\"", 15, "the target LOG writes a log"),
        ("-p tcp -j DNAT --to-destination 1.2.3.4", 22, "changes addresses"),
        ("-j y", 15, "no chain or target `y`"),
        ("-g ACCEPT", 15, "no chain or target `ACCEPT`"),
        ("-s 10.0.0.0/8", 25, "only counts packets"),
        ("-s 10.0.0/8 -j ACCEPT", 15, "no IPv4 address or prefix"),
        ("-s ::/0 -j ACCEPT", 15, "no IPv4 address or prefix"),
        ("--dport 80 -j ACCEPT", 20, "the protocol need not have any"),
        ("-p tcp --dport 80:79 -j ACCEPT", 27, "is empty"),
        ("-p tcp --dport 65536 -j ACCEPT", 27, "no port"),
        ("-p tcp --dports 1,,2 -j ACCEPT", 30, "a port is missing"),
        ("-p tcp --tcp-flags SYN,ack SYN -j ACCEPT", 35, "no TCP flag"),
        ("-p tcp --icmp-type 3 -j ACCEPT", 31, "need not be icmp"),
        ("-p nonsense -j ACCEPT", 15, "`nonsense` is not known"),
        ("-m tcp -j ACCEPT", 15, "need not be 6"),
        ("-p udp --syn -j ACCEPT", 19, "need not be 6"),
        ("-p tcp -m u32 --u32 0 -j ACCEPT", 22, "looks into the packet's bytes"),
        ("-p tcp ! -j ACCEPT", 19, "can be turned round"),
        ("! -p all -j ACCEPT", 17, "is no packet at all"),
        ("-i much_too_long_00 -j ACCEPT", 15, "no name of an interface"),
        ("-s 10.0.0.0/8 -s 10.0.0.0/9 -j ACCEPT", 26, "is there twice"),
        ("-p tcp --syn ! --tcp-flags ALL SYN -j ACCEPT", 27, "is there twice"),
        ("-m multiport -j ACCEPT", 15, "asks nothing"),
        ("-m mac -p tcp -j ACCEPT", 15, "asks nothing"),
        ("-j REJECT --reject-with tcp-reset", 36, "need not be TCP"),
        ("-j REJECT --reject-with icmp6-no-route", 36, "no answer to a rejected packet"),
        ("-p", 14, "`-p` has no value"),
        ("-m comment --comment \"open -j ACCEPT", 48, "quotes do not end"),
        ("-m comment --comment x\" -j ACCEPT -m comment --comment y\"", 34, "begins within a word"),
        ("-m comment --comment \"x\"y -j ACCEPT", 36, "behind the quotes"),
    ] {
        let error = refused(&format!("-A FORWARD {rule}"));
        assert_eq!((error.line, error.column), (4, column), "{rule}: {error}");
        assert!(error.what.contains(part), "{rule}: {error}");
    }
}

#[test]
fn no_rule_about_a_header_fits_a_later_fragment() {
    for (rule, of_fragments) in [
        ("-p tcp", RuleField::Any),
        ("-p tcp -m tcp", RuleField::Exact(0)),
        ("-p tcp -m tcp ! --dport 22", RuleField::Exact(0)),
        ("-p udp -m multiport ! --dports 1,2", RuleField::Exact(0)),
        ("-p icmp -m icmp ! --icmp-type 3/4", RuleField::Exact(0)),
        ("-p icmp -m icmp --icmp-type any", RuleField::Exact(0)),
        ("-f", RuleField::Exact(1)),
        ("! -f -p tcp", RuleField::Exact(0)),
    ] {
        let set = kept(&format!("-A FORWARD {rule} -j ACCEPT"));
        let seen = |rule: &crate::ImportedRule| {
            set.column("fragment").map_or(RuleField::Any, |at| rule.rule.fields[at])
        };
        assert!(!set.rules.is_empty() && set.rules.iter().all(|rule| seen(rule) == of_fragments), "{rule}");
    }
    assert!(kept("-A FORWARD -f -p tcp -m tcp --dport 22 -j ACCEPT").rules.is_empty());
}

#[test]
fn type_255_of_icmp_is_any_type_whatever_code_stands_behind_it() {
    for any in ["any", "255", "255/255", "255/0"] {
        let rule = format!("-A FORWARD -p icmp -m icmp --icmp-type {any} -j ACCEPT");
        let set = kept(&rule);
        assert_eq!(set.column("icmp_type"), None, "{any}");
        assert_eq!(set.rules[0].rule.fields[set.column("fragment").unwrap()], RuleField::Exact(0), "{any}");
        assert!(kept(&rule.replace("--icmp", "! --icmp")).rules.is_empty(), "{any}");
    }
    let v6 = ChainOptions { family: AddressFamily::V6, ..ChainOptions::default() };
    let text = dump("-A FORWARD -p ipv6-icmp --icmpv6-type 255/1 -j ACCEPT");
    let set = read(text.as_bytes(), &v6).unwrap();
    assert_eq!(set.rules[0].rule.fields[set.column("icmp_type").unwrap()], RuleField::Exact(255));
}

#[test]
fn another_table_at_the_same_hook_must_let_everything_pass() {
    let with = |mangle: &str| format!("*mangle\n{mangle}\nCOMMIT\n{}", dump("-A FORWARD -j ACCEPT"));
    for kept in [
        ":FORWARD ACCEPT [0:0]",
        ":FORWARD ACCEPT\n-A FORWARD -p tcp --syn -j TCPMSS --clamp-mss-to-pmtu\n-A FORWARD -s 10.0.0.0/8",
        ":INPUT DROP\n:FORWARD ACCEPT\n-A INPUT -j DROP",
        ":x - [0:0]\n:FORWARD ACCEPT\n-A x -j DROP",
        ":x - [0:0]\n:FORWARD ACCEPT\n-A FORWARD -j x\n-A x -j MARK --set-mark 1",
    ] {
        let text = with(kept);
        assert_eq!(read(text.as_bytes(), &ChainOptions::default()).expect(kept).rules.len(), 1);
    }
    for (refused, line) in [
        (":FORWARD DROP [0:0]", 2),
        (":FORWARD ACCEPT\n-A FORWARD -m state --state INVALID -j DROP", 3),
        (":x - [0:0]\n:FORWARD ACCEPT\n-A FORWARD -j x\n-A x -j REJECT", 5),
        (":FORWARD ACCEPT\n-A FORWARD -j NFQUEUE", 3),
        (":FORWARD ACCEPT\n-A y -j ACCEPT", 3),
    ] {
        let error = read(with(refused).as_bytes(), &ChainOptions::default()).expect_err(refused);
        assert_eq!(error.line, line, "{refused}: {error}");
        assert!(error.what.contains("`mangle` decides about the same packets"), "{error}");
    }
}

#[test]
fn what_drops_at_another_hook_that_the_packets_pass_is_refused() {
    let read = |chain: &str, other: &str| {
        let options = ChainOptions { chain: Some(chain.to_owned()), ..ChainOptions::default() };
        read(format!("{other}\nCOMMIT\n*filter\n:{chain} DROP\nCOMMIT\n").as_bytes(), &options)
    };
    for (chain, kept) in [
        (
            "FORWARD",
            "*nat\n:PREROUTING ACCEPT\n:POSTROUTING ACCEPT\n:D - [0:0]\n-A PREROUTING -j D\n-A D -p tcp -j DNAT --to-destination 10.0.0.1\n-A POSTROUTING -j MASQUERADE",
        ),
        (
            "FORWARD",
            "*raw\n:PREROUTING ACCEPT\n:OUTPUT DROP\n-A PREROUTING -p udp -j NOTRACK\n-A OUTPUT -j DROP",
        ),
        ("INPUT", "*mangle\n:POSTROUTING DROP\n:FORWARD DROP"),
        ("OUTPUT", "*mangle\n:PREROUTING DROP\n:INPUT DROP"),
        ("FORWARD", "*mangle\n:PREROUTING ACCEPT\n-A PREROUTING -j TOS --set-tos 0x10"),
    ] {
        assert!(read(chain, kept).is_ok(), "{chain}: {kept}: {:?}", read(chain, kept));
    }
    for (chain, refused, line) in [
        ("FORWARD", "*raw\n:PREROUTING ACCEPT\n-A PREROUTING -s 10.66.0.0/16 -j DROP", 3),
        ("FORWARD", "*raw\n-A PREROUTING -s 10.66.0.0/16 -j DROP", 2),
        ("FORWARD", "*raw\n:PREROUTING - [0:0]\n-A PREROUTING -j DROP", 3),
        ("FORWARD", "*mangle\n:PREROUTING ACCEPT\n-A PREROUTING -j DROP", 3),
        ("FORWARD", "*mangle\n:PREROUTING DROP", 2),
        ("FORWARD", "*mangle\n:POSTROUTING DROP", 2),
        ("FORWARD", "*mangle\n:x - [0:0]\n:POSTROUTING ACCEPT\n-A POSTROUTING -j x\n-A x -j DROP", 5),
        ("FORWARD", "*nat\n:POSTROUTING DROP", 2),
        ("FORWARD", "*mangle\n:PREROUTING ACCEPT\n-A PREROUTING -j TPROXY --on-port 1", 3),
        ("INPUT", "*mangle\n:PREROUTING DROP", 2),
        ("OUTPUT", "*mangle\n:POSTROUTING DROP", 2),
    ] {
        let error = read(chain, refused).expect_err(refused);
        assert_eq!(error.line, line, "{refused}: {error}");
        assert!(error.what.contains("decides about the same packets"), "{error}");
    }
    let mangle = ChainOptions { table: "mangle".to_owned(), ..ChainOptions::default() };
    let own = "*mangle\n:PREROUTING DROP\n:FORWARD ACCEPT\nCOMMIT\n";
    assert_eq!(super::read(own.as_bytes(), &mangle).expect_err("its own table drops").line, 2);
}

#[test]
fn a_dump_must_be_whole() {
    for (text, line, part) in [
        ("-A FORWARD -j ACCEPT\n", 1, "stands in no table"),
        ("*filter\n:FORWARD ACCEPT [0:0]\n", 2, "no `COMMIT`"),
        ("*filter\n:FORWARD ACCEPT [0:0]\n*nat\n", 3, "no `COMMIT`"),
        ("*filter\nCOMMIT\n*filter\nCOMMIT\n", 3, "starts on line 1 already"),
        ("*filter\n:FORWARD QUEUE [0:0]\nCOMMIT\n", 2, "no policy"),
        ("*filter\n:FORWARD DROP 12\nCOMMIT\n", 2, "no counters"),
        ("*filter\n:FORWARD DROP [1:2] x\nCOMMIT\n", 2, "too many"),
        ("*filter\n:FORWARD DROP\n[x] -A FORWARD -j DROP\nCOMMIT\n", 3, "is not `-A`"),
        ("*filter\nCOMMIT x\n", 2, "too many"),
        ("*filter x\nCOMMIT\n", 1, "too many"),
        ("*filter\n:FORWARD DROP\nCOMMIT\n-A FORWARD -j ACCEPT\n", 4, "stands in no table"),
        ("# Generated by ip6tables-save v1.8.9\n*filter\n:FORWARD DROP\nCOMMIT\n", 1, "is of IPv6"),
        ("*filter\n:FORWARD\nCOMMIT\n", 2, "the policy is missing"),
        ("*filter\n:FORWARD DROP\n:FORWARD DROP\nCOMMIT\n", 3, "there twice"),
        ("*filter\n:FORWARD DROP\n-A y -j DROP\nCOMMIT\n", 3, "no chain `y`"),
        ("*filter\n:FORWARD DROP\n-I FORWARD -j DROP\nCOMMIT\n", 3, "`-I` is not `-A`"),
        ("*filter\n:FORWARD DROP\nhello\nCOMMIT\n", 3, "starts no line"),
        ("*filter\n:INPUT DROP\nCOMMIT\n", 1, "no chain `FORWARD`"),
        ("*nat\nCOMMIT\n", 1, "no table `filter`"),
    ] {
        let error = read(text.as_bytes(), &ChainOptions::default()).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn lines_are_left_out_only_if_that_is_wanted() {
    let text = dump("-A FORWARD -m state --state NEW -j ACCEPT\n-A FORWARD -p tcp -j ACCEPT");
    let lenient = ChainOptions { lenient: true, ..ChainOptions::default() };
    let rules = read(text.as_bytes(), &lenient).unwrap();
    assert_eq!((rules.rules.len(), rules.refused.len(), rules.refused[0].line), (1, 1, 4));
    let first = ChainOptions { first_packets: true, ..ChainOptions::default() };
    assert_eq!(read(text.as_bytes(), &first).unwrap().rules.len(), 2);
    let old = text.replace("NEW", "RELATED,ESTABLISHED");
    assert_eq!(read(old.as_bytes(), &first).unwrap().rules.len(), 1);
    let not = old.replace("--state", "! --state");
    assert_eq!(read(not.as_bytes(), &first).unwrap().rules.len(), 2);
}

#[test]
fn the_other_family_has_its_own_addresses() {
    let text = dump("-A FORWARD -s 2001:db8::/32 -p ipv6-icmp --icmpv6-type 128 -j ACCEPT");
    let options = ChainOptions { family: AddressFamily::V6, ..ChainOptions::default() };
    let rules = read(text.as_bytes(), &options).unwrap();
    assert_eq!(rules.widths(), [128, 128, 16, 16, 8, 8, 1]);
    assert_eq!(rules.rules[0].rule.fields[0], RuleField::Prefix { value: 0x2001_0db8 << 96, length: 32 });
}

const SAMPLE: &str = "*filter\n:FORWARD DROP [1:2]\n:x - [0:0]\n-A FORWARD -i lo -p tcp -m multiport --dports 1,2:3 -g x\n-A x -m comment --comment \"a b\" -j RETURN\nCOMMIT\n";

#[test]
fn every_cut_of_a_dump_is_refused_by_line() {
    assert!(read(SAMPLE.as_bytes(), &ChainOptions::default()).is_ok());
    for end in 0..SAMPLE.len() - 1 {
        let error = read(&SAMPLE.as_bytes()[..end], &ChainOptions::default()).unwrap_err();
        assert!(error.line as usize <= SAMPLE[..end].lines().count().max(1), "{end}: {error}");
    }
}

proptest! {
    #[test]
    fn broken_dumps_are_an_answer(at in 0..SAMPLE.len(), byte: u8, other in 0..SAMPLE.len(), lenient: bool) {
        let mut text = SAMPLE.as_bytes().to_vec();
        text[at] = byte;
        text.swap(at, other);
        let options = ChainOptions { lenient, limit: 1000, ..ChainOptions::default() };
        let _ = read(&text, &options);
        let _ = read(&text, &ChainOptions { interfaces: Naming::Ports(vec![("lo".to_owned(), 1)]), ..options });
        let _ = chains(&text);
    }
}
