//! The kernel with a dump, and the policy that the dump is read as: whole conversations where it asks for
//! states, and packets one by one where it does not.

use super::conversations::Carried;
use super::random::Random;
use super::router::Router;
use super::{differences, made, rounds, seed};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read};

/// A dump of chains in four tables, made of matches of all kinds.
fn made_dump(random: &mut Random) -> String {
    // What is dropped in `raw` is not seen by what remembers connections: whole conversations are, or none of
    // their packets.
    const RAW: [&str; 7] = [
        "-m tos --tos 0x01/0x03",
        "-m dscp --dscp 0x2e",
        "-m dscp ! --dscp-class AF11",
        "-m tos ! --tos 0x28/0xfc",
        "-p tcp",
        "! -p udp",
        "-p 89 -m ttl --ttl-gt 64",
    ];
    const EARLY: [&str; 18] = [
        "-m tos --tos 0x29",
        "-m tos ! --tos Normal-Service",
        "-m ecn --ecn-ip-ect 1",
        "-p tcp -m tcp -m ecn ! --ecn-tcp-ece --ecn-ip-ect 0",
        "-m tcp --dport 80 -p tcp",
        "-p tcp -m tcp --dport 22",
        "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN",
        "-p tcp -m tcp ! --tcp-flags ALL ACK",
        "-p udp -m udp ! --dport 53",
        "-p tcp -m multiport ! --ports 22,80",
        "-p icmp -m icmp --icmp-type 3/3",
        "-p icmp -m icmp ! --icmp-type 8",
        "-m length --length 40:60",
        "-m length ! --length :48",
        "-m dscp --dscp 0x2e",
        "-m dscp ! --dscp-class AF11",
        "-m tos --tos 0x28/0xfc",
        "-s 100.64.0.0/10",
    ];
    const LATER: [&str; 21] = [
        "-m conntrack --ctstate NEW --ctproto 6",
        "-m conntrack --ctstate NEW,ESTABLISHED ! --ctproto 17",
        "-m conntrack --ctstate NEW --ctorigsrc 100.64.0.0/10",
        "-p tcp -m conntrack --ctstate NEW --ctorigdstport 80 --ctreplsrc 192.0.2.0/25",
        "-m state --state NEW",
        "-m state --state RELATED,ESTABLISHED",
        "-m state --state INVALID",
        "-m conntrack --ctstate ESTABLISHED",
        "-m conntrack ! --ctstate NEW",
        "-m conntrack ! --ctstate INVALID,RELATED",
        "-m conntrack --ctstate UNTRACKED",
        "-p tcp -m conntrack --ctstate NEW -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN",
        "-p udp -m state --state ESTABLISHED -m udp --sport 53",
        "-p icmp -m state --state RELATED",
        "-m conntrack --ctdir ORIGINAL",
        "-m conntrack --ctdir REPLY",
        "-m conntrack --ctorigsrc 100.64.0.0/10",
        "-m conntrack ! --ctrepldst 192.0.2.0/24",
        "-m conntrack --ctstate NEW,ESTABLISHED --ctorigdst 192.0.2.0/25",
        "-p tcp -m conntrack --ctstate ESTABLISHED,RELATED --ctreplsrc 192.0.2.0/25",
        "-f",
    ];
    const OF_HOOKS: [&str; 6] = [
        "-m ttl --ttl-eq 63",
        "-m ttl --ttl-lt 3",
        "-m ttl ! --ttl-eq 63",
        "-o to-out",
        "! -o to-out",
        "! -i from-in -m state --state NEW",
    ];
    let mut text = String::new();
    for (table, chains) in [
        ("raw", &["PREROUTING"][..]),
        ("mangle", &["PREROUTING", "FORWARD", "POSTROUTING"]),
        ("filter", &["FORWARD", "x", "y"]),
        ("security", &["FORWARD"]),
    ] {
        let mut lines = String::new();
        text += &format!("*{table}\n");
        for chain in chains {
            let is_filter = table == "filter";
            let policy = if is_filter && random.once_in(2) { "DROP" } else { "ACCEPT" };
            let base = chain.len() > 1;
            text += &format!(":{chain} {} [0:0]\n", if base { policy } else { "-" });
            for _ in 0..if is_filter { 5 } else { 2 } {
                let matches = match random.below(3) {
                    0 if table != "raw" => random.one(&LATER),
                    1 if table != "raw" && chain.len() <= 7 => random.one(&OF_HOOKS),
                    2 if is_filter => random.one(&LATER),
                    _ if table == "raw" => random.one(&RAW),
                    _ => random.one(&EARLY),
                };
                let target = match (random.below(8), *chain, is_filter) {
                    (0 | 1, "FORWARD", true) => "-j x",
                    (2, "FORWARD", true) => "-g y",
                    (0, "x", _) => "-j y",
                    (1, "x", _) => "-g y",
                    (2, ..) => "-j RETURN",
                    (3, _, true) => "-j REJECT",
                    (3, ..) => "-j DROP",
                    (4, ..) => "-j LOG --log-prefix \"seen: \"",
                    (5, ..) => "",
                    (6, _, true) => "-j DROP",
                    _ => "-j ACCEPT",
                };
                lines += &format!("-A {chain} {matches} {target}\n");
            }
        }
        text += &format!("{lines}COMMIT\n");
    }
    // Without a rule about states Linux remembers nothing.
    text.replace("*filter\n", "*filter\n:z - [0:0]\n")
        .replace("COMMIT\n*security", "-A z -m state --state NEW -j DROP\nCOMMIT\n*security")
}

/// The same for IPv6.
fn of_ipv6(dump: &str) -> String {
    let lines = dump.lines().filter(|line| !line.contains(" -f "));
    let words = [
        ("-p icmp -m icmp --icmp-type 3/3", "-p ipv6-icmp -m icmp6 --icmpv6-type 1/3"),
        ("-p icmp -m icmp ! --icmp-type 8", "-p ipv6-icmp -m icmp6 ! --icmpv6-type 128"),
        ("-p icmp", "-p ipv6-icmp"),
        ("-m ttl", "-m hl"),
        ("--ttl", "--hl"),
        ("100.64.0.0/10", "2001:db8::6440:0/106"),
        ("192.0.2.0/24", "2001:db8::c000:200/120"),
        ("192.0.2.0/25", "2001:db8::c000:200/121"),
    ];
    let replace = |line: &str| words.iter().fold(line.to_owned(), |line, (old, new)| line.replace(old, new));
    lines.map(|line| replace(line) + "\n").collect()
}

#[test]
fn conversations_go_through_a_policy_as_through_the_kernel() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    router.knows_clients();
    let mut random = Random(seed());
    let mut carried = Carried::default();
    for round in 0..rounds() {
        let dump = made_dump(&mut random);
        let (family, program, dump) = match round % 3 {
            2 => (AddressFamily::V6, "ip6tables-legacy-restore", of_ipv6(&dump)),
            _ => (AddressFamily::V4, "iptables-legacy-restore", dump),
        };
        let imported = read(dump.as_bytes(), "iptables", &PolicyOptions { family, ..options() });
        let imported = imported.unwrap_or_else(|error| panic!("{error}\n{dump}"));
        assert_eq!(imported.refused, [], "{dump}");
        router.load(program, &[], &dump);
        let agrees = carried.agree(&mut router, &imported.policy, family, &mut random);
        agrees.unwrap_or_else(|differs| panic!("{differs}\n{dump}"));
    }
    let Carried { passed, dropped, .. } = carried;
    println!("{passed} packets passed, {dropped} did not");
    assert!(passed > dropped / 9 && dropped > passed / 9, "{passed} passed, {dropped} did not");
}

/// The names of the router's interfaces as ports.
pub(crate) fn options() -> PolicyOptions {
    let interfaces = [("from-in", 1), ("to-out", 2)].map(|(name, port)| (name.to_owned(), port)).to_vec();
    PolicyOptions { interfaces, ..PolicyOptions::default() }
}

/// A dump that asks for no state, so that Linux leaves fragments as they are.
pub(crate) fn made_without_states(random: &mut Random, family: AddressFamily) -> String {
    const BOTH: [&str; 23] = [
        "-p udp -m udp ! --dport 60000:29",
        "-m tos --tos 0xb9/0xff",
        "-m tos ! --tos 0x02/0x03",
        "-m ecn ! --ecn-ip-ect 3",
        "-p tcp -m tcp -m ecn --ecn-tcp-cwr ! --ecn-tcp-ece",
        "-p esp -m esp",
        "! -p esp",
        "-p tcp",
        "! -p udp",
        "-p tcp -m tcp",
        "-p tcp -m tcp ! --dport 22",
        "-p udp -m udp --sport 1024:",
        "-p udp -m multiport ! --dports 53,80",
        "-p tcp -m multiport --ports 22,1023:1024",
        "-p sctp -m sctp --dport 0:80",
        "-p dccp -m dccp ! --sport 80",
        "-p tcp -m tcp --tcp-flags SYN,ACK SYN",
        "-p tcp -m tcp ! --syn",
        "-m length --length :44",
        "-m length ! --length 64:70",
        "-m dscp ! --dscp 0",
        "-m mac --mac-source 02:00:00:00:00:01",
        "-p 47",
    ];
    const V4: [&str; 12] = [
        "-p ah -m ah",
        "! -p ah",
        "-m addrtype --dst-type MULTICAST",
        "-m addrtype ! --src-type UNSPEC ! --dst-type UNSPEC",
        "-f",
        "! -f",
        "-s 10.0.0.0/8",
        "! -d 192.0.2.0/255.255.0.255",
        "-p icmp -m icmp --icmp-type 3/4",
        "-p icmp -m icmp ! --icmp-type 8",
        "-p icmp -m icmp --icmp-type any",
        "-m iprange ! --src-range 10.0.0.2-172.16.0.1",
    ];
    const V6: [&str; 8] = [
        "-s 2001:db8::a00:0/104",
        "! -d 2001:db8::c000:201",
        "-p ipv6-icmp -m icmp6 --icmpv6-type 128",
        "-p ipv6-icmp -m icmp6 ! --icmpv6-type 3/4",
        "-p ipv6-icmp",
        "-m iprange --dst-range 2001:db8::a00:0-2001:db8::aff:ffff",
        "! -p ipv6-icmp",
        "-s ffff:ffff::/0",
    ];
    let (own, time, reject) = match family {
        AddressFamily::V4 => (&V4[..], "-m ttl --ttl", "icmp-admin-prohibited"),
        AddressFamily::V6 => (&V6[..], "-m hl --hl", "icmp6-adm-prohibited"),
    };
    let mut text = String::new();
    for (table, chains) in [("raw", &["PREROUTING"][..]), ("filter", &["FORWARD", "x"])] {
        text += &format!("*{table}\n");
        for chain in chains {
            let policy = random.one(&["ACCEPT", "DROP"]);
            text += &format!(
                ":{chain} {}\n",
                match *chain {
                    "x" => "-",
                    "FORWARD" => policy,
                    _ => "ACCEPT",
                }
            );
        }
        for chain in chains {
            for _ in 0..if *chain == "PREROUTING" { 2 } else { 6 } {
                let matches = match random.below(5) {
                    0 => format!("{time}-{} {}", random.one(&["eq", "lt", "gt"]), random.one(&[62, 63, 64])),
                    1 | 2 => random.one(own).to_owned(),
                    _ => random.one(&BOTH).to_owned(),
                };
                let target = match (random.below(6), *chain) {
                    (0 | 1, "FORWARD") => "-j x".to_owned(),
                    (0, _) => "-j RETURN".to_owned(),
                    (1 | 2, "x") => format!("-j REJECT --reject-with {reject}"),
                    (3, _) => "-j DROP".to_owned(),
                    (4, _) => "-j NFLOG --nflog-group 9".to_owned(),
                    _ => "-j ACCEPT".to_owned(),
                };
                text += &format!("-A {chain} {matches} {target}\n");
            }
        }
        text += "COMMIT\n";
    }
    text
}

#[test]
fn dumps_without_states_decide_about_each_fragment_as_the_kernel_does() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    let mut random = Random(seed());
    let (mut passing, mut count) = (0, 0);
    for round in 0..rounds() {
        let (family, program) = match round % 2 {
            0 => (AddressFamily::V6, "ip6tables-legacy-restore"),
            _ => (AddressFamily::V4, "iptables-legacy-restore"),
        };
        let dump = made_without_states(&mut random, family);
        let imported = read(dump.as_bytes(), "iptables", &PolicyOptions { family, ..options() });
        let imported = imported.unwrap_or_else(|error| panic!("{error}\n{dump}"));
        assert_eq!(imported.refused, [], "{dump}");
        let mut packets = made(&mut random, 400, family);
        for packet in &mut packets {
            packet.code_point = random.one(&[0, 0, 46]);
            packet.congestion = random.below(4) as u8;
            // To IPv6 the authentication header is an extension.
            let security = if family == AddressFamily::V4 { random.one(&[50, 51]) } else { 50 };
            packet.proto = if random.once_in(6) { security } else { packet.proto };
        }
        let wanted: Vec<bool> = packets.iter().map(|packet| packet.passes(&imported.policy)).collect();
        (passing, count) = (passing + wanted.iter().filter(|pass| **pass).count(), count + packets.len());
        router.load(program, &[], &dump);
        assert_eq!(differences(&mut router, &packets, &wanted, &dump), 0);
    }
    println!("{passing} of {count} packets passed");
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count} pass");
}
