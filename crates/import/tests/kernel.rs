//! The kernel decides about packets as the rules do that were read for it or written from: packets of all
//! kinds, later fragments and protocols without ports among them, are sent through a router in a network
//! namespace and looked for at its other side.
//!
//! `RAVELIN_SEED=n` asks for other rules and packets; a failure prints the seed. `RAVELIN_ROUNDS=n`
//! asks for so many files of a kind, `RAVELIN_TIMES=n` for so many times as many packets through each.

#[path = "policies_of_programs/asking.rs"]
mod asking;
#[path = "kernel/conversations.rs"]
mod conversations;
#[path = "kernel/dumps.rs"]
mod dumps;
#[path = "kernel/exported.rs"]
mod exported;
#[path = "export/files.rs"]
mod files;
#[path = "kernel/firewall.rs"]
mod firewall;
#[path = "kernel/gateway.rs"]
mod gateway;
#[path = "kernel/headers.rs"]
mod headers;
#[path = "kernel/judged.rs"]
mod judged;
#[path = "kernel/kept.rs"]
mod kept;
#[path = "kernel/limits.rs"]
mod limits;
#[path = "export/made.rs"]
mod made_policies;
#[path = "kernel/packets.rs"]
mod packets;
#[path = "kernel/random.rs"]
mod random;
#[path = "kernel/rejections.rs"]
mod rejections;
#[path = "kernel/router.rs"]
mod router;
#[path = "kernel/rulesets.rs"]
mod rulesets;
#[path = "kernel/states.rs"]
mod states;

use exec::{BackendKind, Outputs, load};
use import::address::AddressFamily;
use import::nft::{ExportLayout, PORTS_OF_PROGRAMS, write_text};
use import::{ImportedRule, ImportedRules, Naming, RuleColumn, iptables, nft};
use packet::{Batch, Frames, VerdictKind};
use packets::{FLAGS, PORTS, Packet, Piece, SOURCES, TARGETS, address};
use random::Random;
use router::Router;
use tables::rules::{Rule, RuleField};

/// All protocols whose ports files of rules may ask for.
const ALL_PORTS: &[u8] = &[6, 17, 33, 132, 136];

fn seed() -> u64 {
    let seed = std::env::var("RAVELIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(14);
    println!("RAVELIN_SEED={seed}");
    seed
}

/// How many files are made for a test: `RAVELIN_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("RAVELIN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}

/// How many times as many packets as usual go through the rules of a file: `RAVELIN_TIMES` says it.
fn times() -> usize {
    std::env::var("RAVELIN_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// So many packets, times [`times`].
fn made(random: &mut Random, count: usize, family: AddressFamily) -> Vec<Packet> {
    (0..count * times()).map(|_| Packet::made(random, family)).collect()
}

/// A set of rules over these columns besides the five, as random as a table may be.
fn rules(random: &mut Random, family: AddressFamily, more: &[&str]) -> ImportedRules {
    let names = ["src", "dst", "sport", "dport", "proto"];
    let columns: Vec<RuleColumn> =
        names.iter().chain(more).map(|name| RuleColumn::named(name, family).expect("a column")).collect();
    let field = |random: &mut Random, name: &str| {
        if random.once_in(2) {
            return RuleField::Any;
        }
        let width = family.width();
        match name {
            "src" | "dst" => {
                let value = address(family, random.one(if name == "src" { &SOURCES } else { &TARGETS }));
                let length = width - random.one(&[0, 8, 16, 24]);
                let ones = if width == 32 { 0xffff_ffff } else { u128::MAX };
                let host = (1u128 << (width - length)) - 1;
                match random.below(4) {
                    0 => RuleField::Ternary { value: value & !0xff00, mask: ones & !0xff00 },
                    1 => RuleField::Exact(value),
                    _ => RuleField::Prefix { value: value & !host, length },
                }
            }
            "sport" | "dport" => {
                let (one, other) = (random.one(&PORTS).into(), random.one(&PORTS).into());
                if random.once_in(3) {
                    RuleField::Exact(one)
                } else {
                    RuleField::Range { low: one.min(other), high: one.max(other) }
                }
            }
            "proto" => match random.below(6) {
                0 => RuleField::Range { low: 1, high: 17 },
                1 => RuleField::Range { low: 7, high: 255 },
                _ => RuleField::Exact(random.one(&[6, 6, 17, 1, 58, 132, 47])),
            },
            "tcp_flags" => {
                let mask = random.one(&[0x02, 0x12, 0x17, 0x40]);
                RuleField::Ternary { value: u128::from(random.one(&FLAGS)) & mask, mask }
            }
            "fragment" => RuleField::Exact(random.below(2).into()),
            _ => RuleField::Exact(random.one(&[0, 3, 4, 8, 128])),
        }
    };
    let rule = |random: &mut Random, line: u32| ImportedRule {
        rule: Rule { fields: columns.iter().map(|column| field(random, column.name)).collect() },
        allow: Some(random.once_in(2)),
        log: false,
        line,
        text: "".into(),
    };
    let rules = (1..=12).map(|line| rule(random, line)).collect();
    ImportedRules {
        columns,
        rules,
        default: Some(random.once_in(2)),
        bound: true,
        ..ImportedRules::default()
    }
}

fn allows(rules: &ImportedRules, packet: &Packet, with_ports: &[u8]) -> bool {
    let key: Vec<u128> = rules.columns.iter().map(|column| packet.column(column.name, with_ports)).collect();
    rules.allows(&key).expect("everything is decided")
}

/// Asks the kernel, and says of how many packets it decides otherwise; the first of them is shown.
fn differences(router: &mut Router, packets: &[Packet], wanted: &[bool], what: &str) -> usize {
    let passed = router.passes(packets, wanted);
    let differ: Vec<usize> = (0..packets.len()).filter(|&index| passed[index] != wanted[index]).collect();
    if let Some(&first) = differ.first() {
        let (packet, wanted) = (&packets[first], wanted[first]);
        println!("{} of {} differ, first {packet:?}: wanted {wanted}\n{what}", differ.len(), packets.len());
    }
    differ.len()
}

#[test]
fn without_rules_every_packet_passes() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    for family in [AddressFamily::V4, AddressFamily::V6] {
        let packets = made(&mut random, 500, family);
        router.load("nft", &["-f", "-"], "");
        assert_eq!(differences(&mut router, &packets, &vec![true; packets.len()], ""), 0);
    }
}

#[test]
fn exported_rules_decide_as_the_table_does() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let (mut count, mut differ, mut passing) = (0, 0, 0);
    let shapes: [(&[&str], &[u8]); 5] = [
        (&[], PORTS_OF_PROGRAMS),
        (&["fragment"], PORTS_OF_PROGRAMS),
        (&[], ALL_PORTS),
        (&["icmp_type", "icmp_code", "tcp_flags", "fragment"], PORTS_OF_PROGRAMS),
        (&["icmp_type", "tcp_flags"], ALL_PORTS),
    ];
    for family in [AddressFamily::V4, AddressFamily::V6] {
        for (more, with_ports) in shapes.iter().chain(&shapes) {
            let rules = rules(&mut random, family, more);
            let packets = made(&mut random, 1000, family);
            let text = write_text(&rules, &ExportLayout { with_ports, ..ExportLayout::default() })
                .expect("nftables can say this");
            router.load("nft", &["-f", "-"], &text);
            let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, with_ports)).collect();
            passing += wanted.iter().filter(|pass| **pass).count();
            differ += differences(&mut router, &packets, &wanted, &text);
            count += packets.len();
        }
    }
    println!("{count} packets, of which {passing} pass: {differ} differ");
    assert_eq!(differ, 0);
    assert!(count == 20_000 * times() && passing > count / 5 && passing < count * 4 / 5);
}

/// Which of these packets a program sends on, on either back end.
fn sent(program: &ir::Program, packets: &[Packet]) -> Vec<bool> {
    let ways = BackendKind::ALL.map(|back_end| {
        let mut backend = load(program, back_end, 2, 1).expect("it can be loaded");
        let mut one = |packet: &Packet| {
            let (mut frames, mut batch, frame) =
                (Frames::new(), Batch::new(), packet.frame(0, [2; 6], [4; 6]));
            frames.push(&frame, frame.len() as u32, 0);
            frames.fill(&mut batch, 0..1);
            batch.port[0] = 1;
            backend.run(frames.memory_mut(), &mut batch, &mut Outputs::default());
            batch.verdict[0].kind() == VerdictKind::Send
        };
        packets.iter().map(&mut one).collect::<Vec<bool>>()
    });
    assert_eq!(ways[0], ways[1], "the back ends differ");
    ways[0].clone()
}

/// The shipped firewall with other entries.
fn firewall(rules: &ImportedRules) -> ir::Program {
    const FIREWALL: &str = include_str!("../../../programs/firewall_rules.rav");
    let field = |field: &RuleField, name: &str| {
        let value = |value: u128| {
            if matches!(name, "src" | "dst") {
                import::address::print(AddressFamily::V4, value)
            } else {
                value.to_string()
            }
        };
        match field {
            RuleField::Any => "_".to_owned(),
            RuleField::Exact(exact) => value(*exact),
            RuleField::Prefix { value, length } => {
                import::address::print_prefix(AddressFamily::V4, *value, *length)
            }
            RuleField::Ternary { value: bits, mask } => format!("{} mask {}", value(*bits), value(*mask)),
            RuleField::Range { low, high } => format!("{low}..{high}"),
        }
    };
    let mut entries = String::new();
    for rule in &rules.rules {
        let parts: Vec<String> = rule
            .rule
            .fields
            .iter()
            .zip(&rules.columns)
            .map(|(own, column)| field(own, column.name))
            .collect();
        entries += &format!(
            "({}) => {}\n",
            parts.join(", "),
            if rule.allow == Some(true) { "permit" } else { "deny" }
        );
    }
    let start = FIREWALL.find("entries {").expect("it has entries") + "entries {".len();
    let end = start + FIREWALL[start..].find('}').expect("they end");
    let default = if rules.default == Some(true) { "permit" } else { "deny" };
    let text = format!("{}\n{entries}}}\ndefault => {default}{}", &FIREWALL[..start], &FIREWALL[end + 1..]);
    let compiled = lang::pipeline::compile("firewall_rules.rav", &text, &|_| None, &Default::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}\n{text}", compiled.diagnostics))
}

#[test]
fn the_kernel_with_exported_rules_decides_as_the_program_does() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let mut differ = 0;
    for _ in 0..3 {
        let rules = rules(&mut random, AddressFamily::V4, &[]);
        let packets = made(&mut random, 1000, AddressFamily::V4);
        let wanted = sent(&firewall(&rules), &packets);
        let text =
            write_text(&rules, &ExportLayout { with_ports: PORTS_OF_PROGRAMS, ..ExportLayout::default() })
                .expect("it can be said");
        router.load("nft", &["-f", "-"], &text);
        differ += differences(&mut router, &packets, &wanted, &text);
    }
    assert_eq!(differ, 0);
}

const DUMP: &str = "*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:x - [0:0]
-A FORWARD -s 10.255.0.0/16 -f -j ACCEPT
-A FORWARD -s 192.0.2.0/24 -p tcp -m tcp ! --dport 22 -j ACCEPT
-A FORWARD -s 192.0.2.0/24 -p udp -m multiport ! --dports 53,80 -j DROP
-A FORWARD -s 172.16.0.0/12 -p tcp -m tcp -j ACCEPT
-A FORWARD -s 172.16.0.0/12 -p icmp -m icmp --icmp-type 255 -j ACCEPT
-A FORWARD -s 10.0.0.1/32 -p icmp -m icmp --icmp-type 3/4 -j ACCEPT
-A FORWARD -s 10.0.0.1/32 -p icmp -m icmp ! --icmp-type 8 -j DROP
-A FORWARD -s 10.0.0.1/32 ! -f -p sctp -m sctp --dport 22 -j ACCEPT
-A FORWARD -s 10.0.0.1/32 -j x
-A FORWARD -s 10.0.0.2/32 ! -f -j ACCEPT
-A FORWARD -i from-in ! -o from-in -p udp -m udp --sport 1024:65535 -j ACCEPT
-A x -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j RETURN
-A x -p tcp -m tcp --sport 1024:65535 -j REJECT --reject-with tcp-reset
-A x -p 47 -j ACCEPT
-A x -d 192.0.2.0/24 -g y
-A x -j ACCEPT
-A y -p udp -m udp --dport 0:1023 -j RETURN
-A y -p udp -j ACCEPT
COMMIT
";

/// Names of the router's interfaces as ports: packets come in by the first and leave by the second.
fn ports() -> Naming {
    Naming::Ports(vec![("from-in".to_owned(), 1), ("to-out".to_owned(), 2)])
}

#[test]
fn dumps_of_iptables_are_read_as_the_kernel_means_them() {
    let (Some(mut router), Some(mut other)) = (Router::with_iptables(&[]), Router::with_iptables(&[])) else {
        return;
    };
    let mut random = Random(seed());
    let dump = DUMP.replace(":x - [0:0]\n", ":x - [0:0]\n:y - [0:0]\n");
    let options = iptables::ChainOptions { interfaces: ports(), ..iptables::ChainOptions::default() };
    let rules = iptables::read(dump.as_bytes(), &options).expect("the dump can be kept");
    let packets = made(&mut random, 4000, AddressFamily::V4);
    let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, ALL_PORTS)).collect();
    // Not iptables-nft, which says most matches in the words of nftables.
    router.load("iptables-legacy-restore", &[], &dump);
    assert_eq!(differences(&mut router, &packets, &wanted, &dump), 0);
    // And what the dump becomes in nftables.
    let text = write_text(&rules, &ExportLayout::default()).expect("nftables can say this");
    other.load("nft", &["-f", "-"], &text);
    assert_eq!(differences(&mut other, &packets, &wanted, &text), 0);
}

/// A dump of chains that jump to one another, made of matches of all kinds.
fn made_dump(random: &mut Random) -> String {
    const MATCHES: [&str; 26] = [
        "-p tcp",
        "! -p udp",
        "-p tcp -m tcp",
        "-p tcp -m tcp --dport 22",
        "-p tcp -m tcp ! --sport 1024:65535",
        "-p udp -m udp --dport 0:1023",
        "-p udp -m udp ! --dport 53",
        "-p tcp -m multiport ! --dports 22,80",
        "-p udp -m multiport --ports 0,53",
        "-p sctp -m sctp ! --dport 80",
        "-p dccp -m dccp --sport 0:80",
        "-p icmp -m icmp --icmp-type 8",
        "-p icmp -m icmp ! --icmp-type 3/4",
        "-p icmp -m icmp --icmp-type any",
        "-p tcp -m tcp --tcp-flags SYN,ACK SYN",
        "-p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN",
        "-p tcp -m tcp --tcp-flags ALL NONE",
        "-f",
        "! -f",
        "! -f -p udp",
        "-s 10.0.0.0/8",
        "! -s 10.0.0.0/16",
        "-m iprange --src-range 10.0.0.2-172.16.0.1",
        "! -d 192.0.2.0/24",
        "-i from-in ! -o from-in",
        "-i +",
    ];
    const TARGETS: [&str; 8] = ["ACCEPT", "DROP", "ACCEPT", "REJECT", "RETURN", "y", "z", "y"];
    let mut lines = String::new();
    for (chain, deeper) in [("FORWARD", 3), ("x", 2), ("y", 1), ("z", 0)] {
        for _ in 0..6 {
            let matches = random.one(&MATCHES);
            let target = match (random.one(&TARGETS), deeper) {
                ("RETURN", 3) => "-j x",
                ("y" | "z", 3) => "-g x",
                ("y", 2) => "-j y",
                ("z", 1 | 2) => "-g z",
                ("y" | "z", _) => "-j RETURN",
                ("REJECT", _) => "-j REJECT --reject-with icmp-port-unreachable",
                ("ACCEPT", _) => "-j ACCEPT",
                ("DROP", _) => "-j DROP",
                _ => "-j RETURN",
            };
            lines += &format!("-A {chain} {matches} {target}\n");
        }
    }
    let policy = random.one(&["ACCEPT", "DROP"]);
    format!(
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD {policy} [0:0]\n:OUTPUT ACCEPT [0:0]\n:x - [0:0]\n:y - [0:0]\n:z - [0:0]\n{lines}COMMIT\n"
    )
}

#[test]
fn made_dumps_are_read_and_exported_as_the_kernel_means_them() {
    let (Some(mut router), Some(mut other)) = (Router::with_iptables(&[]), Router::with_iptables(&[])) else {
        return;
    };
    let mut random = Random(seed());
    let (mut passing, mut count) = (0, 0);
    for _ in 0..8 {
        let dump = made_dump(&mut random);
        let options = iptables::ChainOptions { interfaces: ports(), ..iptables::ChainOptions::default() };
        let rules =
            iptables::read(dump.as_bytes(), &options).unwrap_or_else(|error| panic!("{error}\n{dump}"));
        let packets = made(&mut random, 600, AddressFamily::V4);
        let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, ALL_PORTS)).collect();
        (passing, count) = (passing + wanted.iter().filter(|pass| **pass).count(), count + packets.len());
        router.load("iptables-legacy-restore", &[], &dump);
        assert_eq!(differences(&mut router, &packets, &wanted, &dump), 0);
        let text = write_text(&rules, &ExportLayout::default()).expect("nftables can say this");
        other.load("nft", &["-f", "-"], &text);
        assert_eq!(differences(&mut other, &packets, &wanted, &text), 0);
    }
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count} pass");
}

/// A program whose table has as many columns as a key has room for.
const WHOLE: &str = "
import std.net.{ethernet, ipv4}
layout ports { src: u16 dst: u16 }
layout segment_header { src: u16 dst: u16 sequence: u32 acknowledged: u32 size: u8 flags: u8 }
layout message_header { kind: u8 }
table acl: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8, icmp_type: u8, tcp_flags: u8, fragment: bool) -> { permit, deny } {
    capacity 4k
    from \"dump\" as iptables
}
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet else => drop other } }
decoder packet(ip: ipv4) {
    if ip.frag != 0 { goto ask(0, 0, 0, 0, true) }
    match ip.proto { 6 => segment 17 => datagram 1 => message else => ask(0, 0, 0, 0, false) }
}
decoder segment(t: segment_header) { goto ask(t.src, t.dst, 0, t.flags, false) }
decoder datagram(u: ports) { goto ask(u.src, u.dst, 0, 0, false) }
decoder message(m: message_header) { goto ask(0, 0, m.kind, 0, false) }
stage ask(sport: u16, dport: u16, kind: u8, flags: u8, later: bool) requires ip {
    match acl[ip.src, ip.dst, sport, dport, ip.proto, kind, flags, later] {
        some permit => send 2
        some deny => drop denied
        none => drop denied
    }
}
";

#[test]
fn a_program_filled_from_a_dump_decides_as_the_kernel_does() {
    let Some(mut router) = Router::new(&["nft", "iptables-legacy-restore"]) else { return };
    if !router.run("iptables-legacy-save", &[], "").is_ok_and(|output| output.status.success()) {
        println!("this kernel has no iptables of its own: nothing was judged");
        return;
    }
    let mut random = Random(seed());
    // What this program has no column for, and ports of SCTP, which no program looks up.
    let dump = DUMP
        .replace(":x - [0:0]\n", ":x - [0:0]\n:y - [0:0]\n")
        .replace("-i from-in ! -o from-in ", "")
        .replace("3/4", "3");
    let dump: String =
        dump.lines().filter(|line| !line.contains("sctp")).map(|line| format!("{line}\n")).collect();
    for dump in [dump.clone(), dump.replace(":FORWARD DROP", ":FORWARD ACCEPT")] {
        let compiled = lang::pipeline::compile("whole.rav", WHOLE, &|_| None, &Default::default());
        let mut program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let table = &mut program.tables[0];
        let file = table.file.clone().expect("it has a file");
        let contents = import::entries::read(dump.as_bytes(), &file.format, &file.options, table);
        let contents = contents.expect("the dump can be kept");
        (table.entries, table.default) = (contents.entries, contents.default.map(|default| default.value));
        let packets = made(&mut random, 2000, AddressFamily::V4);
        let wanted = sent(&program, &packets);
        router.load("iptables-legacy-restore", &[], &dump);
        assert_eq!(differences(&mut router, &packets, &wanted, &dump), 0);
    }
}

const RULESET: &str = "table inet filter {
    set some { type ipv4_addr; flags interval; elements = { 10.0.0.1, 172.16.0.0/12 } }
    chain x { meta l4proto { 47, 132 } accept; tcp flags & (syn | ack) == syn return; tcp sport 1024-65535 reject with tcp reset; }
    chain forward {
        type filter hook forward priority filter; policy drop;
        meta l4proto 47 reject with icmpv6 type no-route
        meta l4proto 89 reject with icmp type host-prohibited
        meta l4proto { 47, 89 } accept
        ip daddr 8.8.8.8 accept
        ip6 daddr 2001:db8::808:808 tcp dport != 22 accept
        udp dport 53 reject with icmpv6 type admin-prohibited
        icmp type { echo-reply, echo-request } accept
        icmpv6 type != echo-request accept
        ip saddr @some jump x
        meta nfproto ipv6 meta l4proto { tcp, udp } th dport 80-1024 accept
        iifname \"from-in\" oifname != \"from-in\" ip saddr . tcp dport { 10.0.0.2 . 22, 192.0.2.7 . 80 } accept
        ip frag-off & 0x1fff != 0 accept
        udp sport >= 1024 accept
    }
}
";

#[test]
fn rulesets_of_nftables_are_read_as_the_kernel_means_them() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    router.load("nft", &["-f", "-"], RULESET);
    let listed = router.listed();
    for family in [AddressFamily::V4, AddressFamily::V6] {
        let options = nft::ChainOptions { interfaces: ports(), family, ..nft::ChainOptions::default() };
        let rules = nft::read(listed.as_bytes(), &options).expect("the ruleset can be kept");
        // Without connection tracking the kernel compares what later fragments have in the place of a header.
        let packets: Vec<Packet> = made(&mut random, 4000, family)
            .into_iter()
            .filter(|packet| !matches!(packet.piece, Piece::Later(_)))
            .collect();
        let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, ALL_PORTS)).collect();
        assert_eq!(differences(&mut router, &packets, &wanted, RULESET), 0);
    }
}

/// Matches on a header behind that of IP, turned round and not, and such as every packet has.
const HEADERS: &str = "table inet filter {
    chain forward {
        type filter hook forward priority filter; policy drop;
        ip saddr 10.0.0.1 GUARD tcp dport != 22 accept
        ip6 saddr 2001:db8::a00:1 tcp dport != 22 accept
        ip saddr 10.0.0.2 GUARD udp dport 53 drop
        meta l4proto { tcp, udp } GUARD th sport 1024-65535 accept
        ip saddr 172.16.0.0/12 meta l4proto tcp accept
        ip protocol 47 accept
        ip daddr 8.8.8.8 GUARD tcp flags & (syn | ack) != syn accept
        ip saddr 10.0.0.0/8 GUARD icmp type != 8 accept
        ip daddr 192.0.2.1 GUARD tcp sport . tcp dport != { 22 . 80 } drop
        ip daddr 192.0.2.1 GUARD sctp dport != { 22, 80 } drop
        meta l4proto { tcp, sctp } accept
    }
}
";

/// Reads a ruleset as the kernel prints it.
fn imported(router: &Router, family: AddressFamily) -> ImportedRules {
    let options = nft::ChainOptions { interfaces: ports(), family, ..nft::ChainOptions::default() };
    nft::read(router.listed().as_bytes(), &options).expect("the ruleset can be kept")
}

#[test]
fn rules_that_leave_out_later_fragments_decide_about_them_as_the_kernel_does() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let text = HEADERS.replace("GUARD", "ip frag-off & 0x1fff == 0");
    let fragments = "ip saddr 11.0.0.0/8 ip frag-off & 0x1fff != 0 accept\n        ip protocol 47";
    let text = text.replace("ip protocol 47", fragments);
    router.load("nft", &["-f", "-"], &text);
    let rules = imported(&router, AddressFamily::V4);
    let packets = made(&mut random, 4000, AddressFamily::V4);
    let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, ALL_PORTS)).collect();
    let later = packets.iter().zip(&wanted).filter(|(packet, _)| packet.is_later());
    let passing = later.clone().filter(|(_, passes)| **passes).count();
    assert!(passing > 200 && later.count() > passing + 200, "{passing} pass");
    assert_eq!(differences(&mut router, &packets, &wanted, &text), 0);
}

#[test]
fn no_rule_about_a_header_fits_a_packet_that_ends_before_it() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let text = HEADERS.replace("GUARD ", "");
    router.load("nft", &["-f", "-"], &text);
    for family in [AddressFamily::V4, AddressFamily::V6] {
        let rules = imported(&router, family);
        let whole = made(&mut random, 2000, family).into_iter().filter(|packet| !packet.is_later());
        let packets: Vec<Packet> = whole.map(|packet| packet.cut(&mut random)).collect();
        let wanted: Vec<bool> = packets.iter().map(|packet| allows(&rules, packet, ALL_PORTS)).collect();
        let passing = wanted.iter().filter(|passes| **passes).count();
        assert!(passing > 200 && passing + 200 < wanted.len(), "{passing} of {} pass", wanted.len());
        assert_eq!(differences(&mut router, &packets, &wanted, &text), 0);
    }
}
