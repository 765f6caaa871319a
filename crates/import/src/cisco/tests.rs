//! Access lists and forwarding tables are kept whole, or refused by line and column.

use super::*;
use crate::ImportError;
use crate::ruleset::ImportedRules;
use proptest::prelude::*;
use tables::rules::RuleField;
use tables::rules::RuleField::{Any, Exact, Prefix, Range, Ternary};

fn kept(line: &str) -> ImportedRules {
    let lists = access_lists(
        format!("hostname x\naccess-list 101 {line}\nend").as_bytes(),
        &AccessListOptions::default(),
    );
    lists.expect(line).remove(0).rules
}

fn refused(text: &str) -> ImportError {
    access_lists(text.as_bytes(), &AccessListOptions::default()).expect_err(text)
}

/// A line, names of columns, and what each rule made of it has there.
type Case = (&'static str, &'static [&'static str], Vec<Vec<RuleField>>);

#[test]
fn each_word_of_an_extended_line_has_its_column() {
    let range = |low, high| Range { low, high };
    let cases: [Case; 13] = [
        ("permit ip any any", &["src", "dst", "proto"], vec![vec![Any, Any, Any]]),
        ("permit ip host 10.0.0.1 any", &["src"], vec![vec![Exact(0x0a00_0001)]]),
        (
            "deny ip 10.0.0.9 0.255.255.255 any",
            &["src"],
            vec![vec![Prefix { value: 0x0a00_0000, length: 8 }]],
        ),
        (
            "deny ip any 10.0.0.1 0.0.255.0",
            &["dst"],
            vec![vec![Ternary { value: 0x0a00_0001, mask: 0xffff_00ff }]],
        ),
        ("deny tcp any any eq www", &["proto", "dport"], vec![vec![Exact(6), Exact(80)]]),
        (
            "deny tcp any eq 22 443 any",
            &["sport", "dport"],
            vec![vec![Exact(22), Any], vec![Exact(443), Any]],
        ),
        (
            "deny udp any gt netbios-ss any lt 9",
            &["sport", "dport"],
            vec![vec![range(140, 65535), range(0, 8)]],
        ),
        ("deny udp any any neq 9", &["dport"], vec![vec![range(0, 8)], vec![range(10, 65535)]]),
        ("deny tcp any any range 139 137 log", &["dport"], vec![vec![range(137, 139)]]),
        (
            "deny tcp any any established",
            &["tcp_flags"],
            vec![vec![Ternary { value: 0x10, mask: 0x10 }], vec![Ternary { value: 4, mask: 4 }]],
        ),
        ("deny icmp any any echo-reply", &["icmp_type"], vec![vec![Exact(0)]]),
        ("deny icmp any any 3 4", &["icmp_type", "icmp_code"], vec![vec![Exact(3), Exact(4)]]),
        ("permit 89 any any", &["proto"], vec![vec![Exact(89)]]),
    ];
    for (line, names, expected) in cases {
        let set = kept(line);
        let columns: Vec<usize> = names.iter().map(|name| set.column(name).expect(name)).collect();
        let seen: Vec<Vec<RuleField>> = set
            .rules
            .iter()
            .map(|rule| columns.iter().map(|column| rule.rule.fields[*column]).collect())
            .collect();
        assert_eq!(seen, expected, "{line}");
        assert!(
            set.rules.iter().all(|rule| rule.allow == Some(line.starts_with("permit")) && rule.line == 2)
        );
        assert!(set.rules.iter().all(|rule| rule.log == line.ends_with("log")));
        assert_eq!(set.default, Some(false));
    }
}

#[test]
fn lists_are_told_apart_by_number_and_name() {
    let text = "access-list 3 permit 10.0.0.0 0.0.0.255\naccess-list 101 remark x\naccess-list 3 deny any\n\
                ip access-list extended in\n 10 permit ip any any\n!\nexit\nipv6 access-list six\n permit ipv6 any any\n\
                ip access-list standard out\n permit host 10.0.0.1 log\n permit 10.0.0.2\n";
    let lists = access_lists(text.as_bytes(), &AccessListOptions::default()).unwrap();
    let seen: Vec<(&str, bool, u32, usize)> =
        lists.iter().map(|list| (&*list.name, list.extended, list.line, list.rules.rules.len())).collect();
    assert_eq!(seen, [("3", false, 1, 2), ("101", true, 2, 0), ("in", true, 4, 1), ("out", false, 10, 2)]);
}

#[test]
fn the_exact_place_is_named() {
    for (text, line, column, part) in [
        ("access-list\n", 1, 12, "number of the list is missing"),
        ("access-list 2700 permit any\n", 1, 13, "none of IP"),
        ("access-list x permit any\n", 1, 13, "no number of an access list"),
        ("access-list 101\n", 1, 16, "`permit` or `deny` is missing"),
        ("access-list 101 allow ip any any\n", 1, 17, "neither `permit` nor `deny`"),
        ("\naccess-list 101 permit ip any\n", 2, 30, "an address is missing"),
        ("access-list 101 permit ip 10.0.0.0 any\n", 1, 36, "no IPv4 address"),
        ("access-list 101 permit ip any eq 80 any\n", 1, 31, "neither tcp nor udp"),
        ("access-list 101 permit tcp any any eq smpt\n", 1, 39, "no port"),
        ("access-list 101 permit tcp any any gt 65535\n", 1, 39, "above 65535"),
        ("access-list 101 permit tcp any any reflect x\n", 1, 36, "no column"),
        ("access-list 101 permit udp any any established\n", 1, 36, "no column"),
        ("access-list 3 permit any any\n", 1, 26, "too many"),
        ("ip access-list extended\n", 1, 24, "has not the words"),
        ("ip access-list fancy x\n", 1, 16, "no kind"),
        ("ip access-list standard x\nip access-list extended x\n", 2, 25, "other kind on line 1"),
        ("access-list 101 permit ip any any", 1, 34, "cut off"),
    ] {
        let error = refused(text);
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn lines_of_a_list_are_read_however_they_stand() {
    let plain = "ip access-list extended in\n permit tcp any any\n deny udp any any\n permit ip any any\nhostname x\n";
    let wanted = access_lists(plain.as_bytes(), &AccessListOptions::default()).unwrap().remove(0).rules;
    let shape = |rules: &ImportedRules| -> Vec<(Vec<RuleField>, Option<bool>)> {
        rules.rules.iter().map(|rule| (rule.rule.fields.clone(), rule.allow)).collect()
    };
    for other in [
        plain.replace("\n ", "\n"),
        plain.replace("\n ", "\n\t"),
        plain.replace("\n ", "\n!\n remark x\n "),
        plain.replace(" permit tcp", " 30 permit tcp").replace(" deny", " 40 deny"),
        "ip access-list extended in\n 30 permit ip any any\n 20 deny udp any any\n10 permit tcp any any\n"
            .to_owned(),
        format!("no ip access-list extended in\n{plain}"),
        format!(
            "IP ACCESS-LIST log-update threshold 5\n{}",
            plain.replace("ip access-list", "IP Access-List")
        ),
    ] {
        let lists = access_lists(other.as_bytes(), &AccessListOptions::default()).expect(&other);
        assert_eq!(lists.len(), 1, "{other}");
        assert_eq!(shape(&lists[0].rules), shape(&wanted), "{other}");
    }
    let empty =
        access_lists(b"ip access-list extended in\n remark x\n", &AccessListOptions::default()).unwrap();
    assert_eq!(empty[0].rules.default, None, "what a list without lines means is not said by denying");
}

#[test]
fn no_line_of_a_list_goes_unread() {
    for (text, line, column, part) in [
        ("permit ip any any\n", 1, 1, "stands in no list"),
        ("\tpermit ip any any\n", 1, 2, "stands in no list"),
        ("interface e0\n 10 deny ip any any\n", 2, 2, "stands in no list"),
        ("ip access-list extended x\n permit ip any any\nexit\npermit udp any any\n", 4, 1, "in no list"),
        ("ip access-list extended x\n permit nothing\n", 2, 9, "no protocol"),
        ("ip access-list extended x\n allow ip any any\n", 2, 2, "neither `permit`"),
        (
            "ip access-list extended x\n 10 permit ip any any\n 10 deny ip any any\n",
            3,
            2,
            "a line 10 already",
        ),
        ("ip access-list extended x\n no permit ip any any\n", 2, 2, "no line above"),
        ("ip access-list extended x\nno 10\n", 2, 1, "no line above"),
        ("access-list 101 permit ip any any\nno access-list 101 permit ip any any\n", 2, 1, "takes away"),
        ("ip access-list extended x\n!\ndefault ip access-list extended x\n", 3, 1, "takes away"),
        ("access-l 101 permit ip any any\n", 1, 1, "may mean `access-list`"),
        ("ip acc ext x\n", 1, 4, "may mean `access-list`"),
        ("access-list 101 permit ip any any\nno access-li 101\n", 2, 4, "may mean `access-list`"),
        ("access-list 101 permit ip any any\nno ip access-l extended 101\n", 2, 7, "may mean `access-list`"),
        ("ip access-list extended x\n permit ip any any\nden tcp any any eq 22\n", 3, 1, "may mean `deny`"),
        ("ip access-list extended x\np ip any any\n", 2, 1, "may mean `permit`"),
        ("ip access-list resequence x 10 10\n", 1, 27, "no list `x`"),
        ("access-list 101 10 permit ip any any\n", 1, 17, "neither `permit`"),
        ("ip access-list extended x\n permit tcp object-group g any eq 80\n", 2, 26, "no object group `g`"),
        ("ip access-list extended x\n permit tcp any any eq 80 fragments\n", 2, 27, "behind ports"),
        ("ip access-list extended x\n permit ip any any time-range t\n", 2, 20, "no column"),
    ] {
        let error = refused(text);
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn later_fragments_are_permitted_by_addresses_and_denied_by_no_port() {
    let decide = |line: &str, dport: u128, later: u128| {
        let set = kept(line);
        let key: Vec<u128> = (set.columns.iter())
            .map(|column| match column.name {
                "proto" => 6,
                "dport" => dport,
                "fragment" => later,
                _ => 0,
            })
            .collect();
        set.first(&key).is_some()
    };
    for (line, whole, other, piece) in [
        ("permit tcp any any eq 80", true, false, true),
        ("deny tcp any any eq 80", true, false, false),
        ("deny tcp any any", true, true, true),
        ("permit tcp any any fragments", false, false, true),
    ] {
        assert_eq!(
            (decide(line, 80, 0), decide(line, 81, 0), decide(line, 0, 1)),
            (whole, other, piece),
            "{line}"
        );
    }
}

#[test]
fn lines_are_left_out_only_if_that_is_wanted() {
    let text = "access-list 101 permit tcp any any reflect x\naccess-list 101 permit ip any any\nend";
    let lists = access_lists(text.as_bytes(), &AccessListOptions { lenient: true }).unwrap();
    assert_eq!((lists[0].rules.rules.len(), lists[0].rules.refused.len()), (1, 1));
}

const TABLE: &str = "Prefix      Next Hop       Interface\n10.0.0.0/8  10.1.1.1 Vlan2  \n            10.1.1.2 Vlan3\n0.0.0.0/8 drop\n11.0.0.0/8 attached Null0\n12.0.0.0/8 drop\n";

#[test]
fn a_forwarding_table_keeps_all_ways() {
    let routes = forwarding_table(TABLE.as_bytes()).unwrap();
    assert_eq!(routes.next_hops, ["10.1.1.1 Vlan2, 10.1.1.2 Vlan3", "drop", "attached Null0"]);
    assert_eq!(routes.entries.iter().map(|(_, hop)| *hop).collect::<Vec<u32>>(), [0, 1, 2, 1]);
    assert_eq!(routes.lines, [2, 4, 5, 6]);
    for (from, to, line, part) in [
        ("Prefix ", "Praefix ", 1, "heading is missing"),
        ("10.0.0.0/8  10.1.1.1 Vlan2", "", 3, "no prefix above"),
        ("11.0.0.0/8", "11.0.0.1/8", 5, "behind its length"),
        ("11.0.0.0/8", "0.0.0.0/8", 5, "goes to attached Null0 here and to drop on line 4"),
        ("attached Null0", "attached Null0 x", 5, "too many"),
        ("attached Null0", "", 5, "next hop is missing"),
        ("11.0.0.0/8", "::/8", 5, "IPv6"),
    ] {
        let error = forwarding_table(TABLE.replace(from, to).as_bytes()).unwrap_err();
        assert_eq!(error.line, line, "{to}: {error}");
        assert!(error.what.contains(part), "{to}: {error}");
    }
}

const CONFIGURATION: &str = "access-list 101 permit tcp 10.0.0.0 0.0.0.255 eq 22 443 any range 1 9 established log\nip access-list extended in\n 10 deny icmp any host 10.0.0.1 3 4\n!\nend";

proptest! {
    #[test]
    fn broken_configurations_are_an_answer(at in 0..CONFIGURATION.len(), byte: u8, other in 0..CONFIGURATION.len(), lenient: bool) {
        let mut text = CONFIGURATION.as_bytes().to_vec();
        text[at] = byte;
        text.swap(at, other);
        let _ = access_lists(&text, &AccessListOptions { lenient });
        let _ = access_lists(&text[..at], &AccessListOptions { lenient });
        let mut table = TABLE.as_bytes().to_vec();
        let at = at % table.len();
        table[at] = byte;
        let _ = forwarding_table(&table);
        let _ = forwarding_table(&table[..at]);
    }
}
