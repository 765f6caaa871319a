//! What options and addresses beside a dump of iptables let be kept whole: marks that no rule asks for, sets
//! and kinds of addresses that are not in the file, and routes. The shapes are those of dumps of firewalls.

use import::policies::{ImportedPolicy, PolicyOptions, read};
use policy::{MAPPED, Packet, PacketField, Path, RuleAction, evaluate};

fn options() -> PolicyOptions {
    let interfaces = [("eth0", 1), ("eth1", 2)].map(|(name, port)| (name.to_owned(), port)).to_vec();
    PolicyOptions { interfaces, skip_marks: true, ..PolicyOptions::default() }
}

fn imported(text: &str, options: &PolicyOptions) -> ImportedPolicy {
    read(text.as_bytes(), "iptables", options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The lines that are refused.
fn refused(text: &str, options: &PolicyOptions) -> Vec<u32> {
    imported(text, options).refused.iter().map(|error| error.line).collect()
}

/// What is done about a packet between these addresses that is forwarded from the first to the second port.
fn decided(imported: &ImportedPolicy, source: u128, destination: u128, remembered: bool) -> RuleAction {
    assert_eq!(imported.refused, []);
    let fields = [
        (PacketField::Family, 4),
        (PacketField::Source, MAPPED | source),
        (PacketField::Destination, MAPPED | destination),
        (PacketField::Protocol, 17),
        (PacketField::SourcePort, 1024),
        (PacketField::DestinationPort, 53),
        (PacketField::LaterFragment, 0),
        (PacketField::State, 0),
        (PacketField::InPort, 1),
        (PacketField::OutPort, 2),
    ];
    let packet =
        fields.into_iter().fold(Packet::default(), |packet, (field, value)| packet.with(field, Some(value)));
    evaluate(&imported.policy, Path::Forwarded, &packet, &|_| remembered).expect("it ends").action
}

const MARKS: &str = "\
*mangle
:PREROUTING ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:tunnel - [0:0]
-A PREROUTING -i eth0 -m conntrack --ctstate NEW,RELATED -j CONNMARK --set-xmark 0xa00/0xff00
-A PREROUTING -i eth+ -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
-A FORWARD -j MARK --set-xmark 0x0/0xff
-A FORWARD -o eth1 -j CLASSIFY --set-class 0001:0010
-A PREROUTING -p udp -j tunnel
-A tunnel -m limit --limit 3/min -j MARK --set-xmark 0x2000000/0xffffffff
-A tunnel -j ACCEPT
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -p udp -m udp --dport 53 -j ACCEPT
COMMIT
";

#[test]
fn marks_that_no_rule_asks_for_are_left_aside_on_request() {
    let all = imported(MARKS, &options());
    assert_eq!((all.kept, all.refused.len()), (8, 0));
    assert_eq!(decided(&all, 1, 2, false), RuleAction::Pass);
    // The rules that are left say the same as a file without the others.
    let others: String = MARKS
        .split_inclusive('\n')
        .map(|line| if line.contains("MARK") || line.contains("CLASSIFY") { "\n" } else { line })
        .collect();
    let mut without = imported(&others, &options()).policy;
    // Linux follows connections for a mark of a connection, and so puts fragments together.
    assert_ne!(all.policy.remembers, without.remembers);
    (without.remembers, without.follows_icmp) = (all.policy.remembers, all.policy.follows_icmp);
    assert_eq!(all.policy, without);
    assert_eq!(all.policy.memories, [], "the bucket before a mark decides nothing");
    // Nobody said that they may be left aside.
    let plain = PolicyOptions { skip_marks: false, ..options() };
    assert_eq!(refused(MARKS, &plain), [5, 6, 7, 8, 10]);
    assert!(imported(MARKS, &plain).refused[0].advice.contains("skip_marks"));
}

#[test]
fn a_rule_that_asks_for_a_mark_is_refused_at_its_line() {
    for (asking, lines) in [
        ("-A FORWARD -m mark --mark 0x2000000/0x2000000 -j ACCEPT", vec![15]),
        ("-A FORWARD -m connmark --mark 1 -j ACCEPT", vec![15]),
        // Also where it only marks.
        ("-A FORWARD -m mark --mark 0x0 -j MARK --set-mark 1", vec![15]),
        ("-A FORWARD -i eth0 -j MARK", vec![15]),
        ("-A FORWARD -j MARK --set-mark", vec![15]),
        ("-A FORWARD -j MARK --set-tos 1", vec![15]),
        ("-A FORWARD -j MARK --set-mark 1 --set-mark 2", vec![15]),
        ("-A FORWARD -g MARK --set-mark 1", vec![15]),
        ("-A FORWARD -j MARK --set-mark 1 -j ACCEPT", vec![15]),
        // What changes the packet is no mark.
        ("-A FORWARD -p tcp -m tcp --syn -j TCPMSS --clamp-mss-to-pmtu", vec![15]),
        ("-A FORWARD -p udp -j CHECKSUM --checksum-fill", vec![15]),
    ] {
        let text = MARKS.replace("-A FORWARD -p udp -m udp --dport 53 -j ACCEPT", asking);
        assert_eq!(refused(&text, &options()), lines, "{asking}");
    }
}

/// A dump whose set and whose addresses stand elsewhere.
const ELSEWHERE: &str = "\
*filter
:FORWARD DROP [0:0]
-A FORWARD -m addrtype --dst-type BROADCAST -j DROP
-A FORWARD -p udp -m udp --dport 53 -m set --match-set whitelist src -j ACCEPT
-A FORWARD -m addrtype ! --src-type LOCAL -j DROP
-A FORWARD -p udp -j ACCEPT
COMMIT
";

fn beside(tables: &[(&str, &str)]) -> PolicyOptions {
    let tables = tables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    PolicyOptions { tables, ..options() }
}

#[test]
fn sets_and_kinds_of_addresses_are_given_beside_a_dump() {
    assert_eq!(refused(ELSEWHERE, &options()), [3, 4, 5]);
    let whitelist = ("whitelist", "10.1.0.0/16\n\n192.0.2.7\n");
    let local = ("addrtype:LOCAL", "127.0.0.0/8\n192.0.2.1\n");
    let broadcast = ("addrtype:BROADCAST", "192.0.2.255\n255.255.255.255\n");
    let all = imported(ELSEWHERE, &beside(&[whitelist, local, broadcast]));
    assert_eq!(all.kept, 4);
    for (source, destination, action) in [
        (0x0a01_0203, 1, RuleAction::Pass),
        (0xc000_0207, 1, RuleAction::Pass),
        (0xc000_0207, 0xc000_02ff, RuleAction::Block),
        (0xc000_0206, 1, RuleAction::Block),
        (0xc000_0201, 1, RuleAction::Pass),
        (0x7f00_0001, 1, RuleAction::Pass),
        (0xc000_0201, 0xffff_ffff, RuleAction::Block),
    ] {
        assert_eq!(decided(&all, source, destination, false), action, "{source:x} {destination:x}");
    }
    // A kind without an address holds none.
    let empty = imported(ELSEWHERE, &beside(&[whitelist, ("addrtype:LOCAL", ""), broadcast]));
    assert_eq!(decided(&empty, 0xc000_0201, 1, false), RuleAction::Block);
}

#[test]
fn what_is_given_beside_a_dump_and_is_wrong_is_told_where_a_rule_asks() {
    let local = ("addrtype:LOCAL", "192.0.2.1\n");
    let broadcast = ("addrtype:BROADCAST", "192.0.2.255\n");
    for (text, wanted) in [
        ("10.1.0.0/16\n10.1.0.1/16\n", "line 2 of the table `whitelist`"),
        ("2001:db8::1\n", "is of IPv6"),
        ("home\n", "line 1 of the table `whitelist`"),
    ] {
        let all = imported(ELSEWHERE, &beside(&[("whitelist", text), local, broadcast]));
        assert_eq!(all.refused.len(), 1, "{:?}", all.refused);
        assert_eq!(all.refused[0].line, 4);
        assert!(all.refused[0].what.contains(wanted), "{:?}", all.refused[0]);
    }
    let twice = format!("create whitelist hash:net family inet\nadd whitelist 10.0.0.0/8\n{ELSEWHERE}");
    let all = imported(&twice, &beside(&[("whitelist", "10.0.0.0/8\n"), local, broadcast]));
    assert_eq!(all.refused.len(), 1);
    assert!(all.refused[0].what.contains("and given beside it"), "{:?}", all.refused[0]);
    // Elements that rules ask for have a limit, whichever rule asks: 4,000,000 together.
    let many: String =
        (0..2_000_001_u32).map(|at| format!("10.{}.{}.{}\n", at >> 16, at >> 8 & 255, at & 255)).collect();
    let rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m set --match-set many src -j DROP\n\
                 -A FORWARD -m addrtype --src-type LOCAL -j DROP\nCOMMIT\n";
    let beyond = imported(rules, &beside(&[("many", &many), ("addrtype:LOCAL", &many)])).refused;
    assert_eq!((beyond.len(), beyond[0].line), (1, 4));
    assert!(beyond[0].what.contains("rules ask for more than 4000000"), "{:?}", beyond[0]);
}

#[test]
fn the_way_back_by_routes_is_a_condition_that_may_hold_or_not() {
    let dump = |table: &str, chain: &str, matched: &str| {
        format!(
            "*{table}\n:{chain} ACCEPT [0:0]\n-A {chain} -m rpfilter{matched} -j DROP\nCOMMIT\n\
             *filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
        )
    };
    for matched in ["", " --invert", " --loose --accept-local --invert"] {
        let all = imported(&dump("raw", "PREROUTING", matched), &options());
        assert_eq!(decided(&all, 1, 2, true), RuleAction::Block);
        assert_eq!(decided(&all, 1, 2, false), RuleAction::Pass);
        // A program cannot ask it.
        let reason = all.policy.memories[0].rate.clone().expect_err("it is no rate");
        assert!(reason.contains("routes"), "{reason}");
    }
    // A rule that asks for a mark is refused, and so is one where Linux has no such match.
    assert_eq!(refused(&dump("raw", "PREROUTING", " --validmark"), &options()), [3]);
    for (table, chain) in [("raw", "OUTPUT"), ("mangle", "FORWARD"), ("mangle", "INPUT")] {
        assert_eq!(refused(&dump(table, chain, ""), &options()), [3], "{table} {chain}");
    }
}
