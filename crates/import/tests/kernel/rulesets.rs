//! Linux decides about packets as the policy does that was read of its ruleset: made rulesets with several
//! chains at each hook, maps, sets and jumps.

use super::random::Random;
use super::router::Router;
use super::{made, rounds, seed};
use import::address::AddressFamily;
use import::policies::{ImportedPolicy, PolicyOptions, read};
use policy::{Path, evaluate};

/// What a rule may ask in a table of `inet`; those with `ip` or `icmp` also in one of `ip`.
pub(crate) const MATCHES: [&str; 44] = [
    "tcp dport 22",
    "tcp dport != 22",
    "tcp sport { 0, 53, 1000-2000 }",
    "udp dport != { 22, 80, 1024-2048 }",
    "tcp dport vmap { 22 : accept, 53 : jump x, 80-1023 : drop }",
    "tcp dport vmap @verdicts",
    "meta l4proto . th dport vmap { tcp . 22 : jump y, udp . 53 : accept, udp . 0-21 : drop }",
    "meta l4proto vmap { tcp : jump x, udp : continue, icmp : accept, 47 : drop, * : jump y }",
    "ip saddr 10.0.0.0/8",
    "ip saddr != 10.0.0.0/16",
    "ip saddr @some",
    "ip saddr != @some",
    "ip saddr . tcp dport @pairs",
    "ip saddr . tcp dport != { 10.0.0.1 . 22, 10.0.0.2 . 80 }",
    "ip saddr & 255.0.0.255 == 10.0.0.1",
    "ip daddr { 192.0.2.1, 8.8.8.8 }",
    "ip6 saddr 2001:db8::a00:0/112",
    "ip6 daddr != 2001:db8::808:808",
    "ip protocol { 47, 89 }",
    "ip frag-off & 0x1fff != 0",
    "ip frag-off & 0x1fff == 0 tcp dport 80",
    "meta nfproto ipv6",
    "meta nfproto != ipv6",
    "meta protocol ip",
    "meta l4proto { tcp, udp } th dport 80-1024",
    "meta l4proto != tcp",
    "meta length 40-60",
    "meta length > 60",
    "ip length < 60",
    "ip6 length != 24",
    "ip ttl < 60",
    "ip ttl 63",
    "ip6 hoplimit != 63",
    "ip dscp ef",
    "ip dscp != { cs1, 10 }",
    "ip6 dscp { ef, af11 }",
    "tcp flags & (syn | ack) == syn",
    "tcp flags syn,ack / syn,ack,rst",
    "tcp flags != syn",
    "tcp flags fin,rst",
    "icmp type { echo-reply, echo-request }",
    "icmpv6 type != echo-request",
    "meta pkttype host",
    "iifname \"from-in\" oifname != \"from-in\"",
];

/// What a rule does; those without a decision go on.
pub(crate) const TARGETS: [&str; 12] = [
    "accept",
    "drop",
    "accept",
    "drop",
    "return",
    "jump x",
    "goto y",
    "counter",
    "log prefix \"a\" counter accept",
    "reject",
    "reject with tcp reset",
    "counter drop",
];

fn rules(random: &mut Random, count: usize, deeper: &[&str], excluded: &[&str]) -> String {
    some_rules(random, count, &MATCHES, &TARGETS, deeper, excluded)
}

/// Rules that each ask one or two of these matches. They lead to the chains of `deeper` alone, and have none
/// of the excluded words.
pub(crate) fn some_rules(
    random: &mut Random,
    count: usize,
    matches: &[&str],
    targets: &[&str],
    deeper: &[&str],
    excluded: &[&str],
) -> String {
    let mut text = String::new();
    while text.lines().count() < count {
        let (one, other) = (random.one(matches), random.one(matches));
        let target = random.one(targets);
        let both = if one.contains("vmap") {
            one.to_owned()
        } else if random.once_in(3) && !other.contains("vmap") {
            format!("{one} counter {other} {target}")
        } else {
            format!("{one} {target}")
        };
        let leads =
            |name: &str| both.contains(&format!("jump {name}")) || both.contains(&format!("goto {name}"));
        let is_allowed = ["x", "y"].iter().all(|name| !leads(name) || deeper.contains(name));
        // nft 1.0.6 prints no family beside such a reject, though Linux asks for it, and compares no family
        // beside ICMP of the other one.
        let both_of = |one: &str, others: &[&str]| {
            both.contains(one) && others.iter().any(|other| both.contains(other))
        };
        let is_printed = !both_of("tcp reset", &["nfproto", "meta protocol"])
            && !both_of(
                "icmpv6",
                &[
                    "ip saddr",
                    "ip daddr",
                    "ip protocol",
                    "ip frag",
                    "ip length",
                    "ip ttl",
                    "ip dscp",
                    "meta protocol",
                    "th ",
                    "icmp ",
                ],
            )
            && !both_of("icmp type", &["ip6", "th ", "nfproto"])
            // nft ends itself where it prints this.
            && !both_of("l4proto 89", &["th "]);
        if is_allowed && is_printed && !excluded.iter().any(|word| both.contains(word)) {
            text += &format!("        {both}\n");
        }
    }
    text
}

/// A ruleset of which nft may refuse rules that contradict themselves.
fn ruleset(random: &mut Random) -> String {
    let policies = [random.one(&["accept", "drop"]), random.one(&["accept", "accept", "drop"])];
    let [first, second] = policies;
    let early = ["oifname", "pkttype", "ttl", "hoplimit", "jump", "goto"];
    let of_ip = ["ip6", "icmpv6", "nfproto", "vmap @", "@some", "@pairs", "jump", "goto", "meta protocol"];
    let (y, x) = (rules(random, 3, &[], &["return"]), rules(random, 4, &["y"], &[]));
    let (forward, before) = (rules(random, 8, &["x", "y"], &[]), rules(random, 2, &[], &early));
    let other = rules(random, 3, &[], &of_ip);
    format!(
        "table inet one {{
    set some {{ type ipv4_addr; flags interval; elements = {{ 10.0.0.1, 172.16.0.0/12 }} }}
    set pairs {{ type ipv4_addr . inet_service; flags interval; elements = {{ 10.0.0.0/24 . 20-30, 192.0.2.7 . 80 }} }}
    map verdicts {{ type inet_service : verdict; flags interval; elements = {{ 22 : accept, 80-1023 : drop }} }}
    chain y {{
{y}    }}
    chain x {{
{x}    }}
    chain late {{
        type filter hook forward priority 0; policy {first};
{forward}    }}
    chain before {{
        type filter hook prerouting priority -150; policy accept;
{before}    }}
}}
table ip two {{
    chain early {{
        type filter hook forward priority -10; policy {second};
{other}    }}
}}
"
    )
}

/// Loads a ruleset without the lines that nft refuses, and gives it without them.
pub(crate) fn loaded(router: &mut Router, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    loop {
        let loaded = router.try_load(&lines.join("\n"));
        let Err(said) = loaded else { break };
        let place =
            said.split("/dev/stdin:").nth(1).and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
        let line = place.unwrap_or_else(|| panic!("{said}\n{text}"));
        // The first line is the command that removes the ruleset before.
        let line = line - 2;
        assert!(
            lines[line].starts_with("        ") && !lines[line].contains("type filter"),
            "{said}\n{text}"
        );
        lines.remove(line);
    }
    lines.join("\n")
}

/// Loads a ruleset, without the lines that nft refuses, and reads what Linux has of it then.
pub(crate) fn load(router: &mut Router, text: &str) -> ImportedPolicy {
    loaded(router, text);
    let interfaces = vec![("from-in".to_owned(), 1), ("to-out".to_owned(), 2)];
    let options = PolicyOptions { interfaces, ..PolicyOptions::default() };
    let read =
        read(router.listed().as_bytes(), "nft", &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read.refused, [], "{text}");
    read
}

#[test]
fn whole_rulesets_of_nftables_decide_as_linux_does() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    let mut random = Random(seed());
    let (mut count, mut passing, mut later, mut kept) = (0, 0, 0, 0);
    for _ in 0..rounds() {
        let text = ruleset(&mut random);
        let policy = load(&mut router, &text);
        kept += policy.kept;
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let mut packets = made(&mut random, 250, family);
            for packet in &mut packets {
                packet.hops = random.one(&[64, 64, 5]);
                packet.code_point = random.one(&[0, 46, 10, 8]);
                packet.congestion = random.below(4) as u8;
                packet.there = random.one(&[24, 24, 24, 0]);
            }
            let wanted: Vec<bool> = packets.iter().map(|packet| packet.passes(&policy.policy)).collect();
            let passed = router.passes(&packets, &wanted);
            for ((packet, passed), own) in packets.iter().zip(passed).zip(wanted) {
                // Linux compares the payload of later fragments; what passes here passes there.
                let agrees = if packet.is_later() { !own || passed } else { own == passed };
                assert!(
                    agrees,
                    "Linux says {passed} of {packet:?}\n{text}\n{:#?}",
                    evaluate(&policy.policy, Path::Forwarded, &packet.fields(), &|_| false)
                );
                router.judged.stricter += usize::from(own != passed);
                later += usize::from(packet.is_later() && own == passed);
                passing += usize::from(own);
                count += 1;
            }
        }
    }
    println!("{count} packets, {passing} pass; of {later} later fragments both say the same; {kept} rules");
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count} pass");
    assert!(later > count / 10 && kept > 10 * rounds());
}
