//! Whole conversations through made rulesets of nftables that ask for the states of connections: chains
//! before connections are looked up, at each hook behind that, maps of states, and packets of both families.

use super::conversations::Carried;
use super::random::Random;
use super::router::Router;
use super::rulesets::{load, some_rules};
use super::{rounds, seed};
use import::address::AddressFamily;

/// What a chain before connections are looked up may ask: of all packets of a conversation, or of none.
const EARLY: [&str; 5] =
    ["ip dscp ef", "ip dscp != af11", "ip6 dscp ef", "meta l4proto tcp", "meta l4proto { 89, 17 } ip ttl 3"];

/// What a chain behind that may ask.
pub(crate) const MATCHES: [&str; 39] = [
    "ct state new",
    "ct state established,related",
    "ct state { established, related }",
    "ct state != { new, invalid }",
    "ct state invalid",
    "ct state != established",
    "ct state & (new | related) == new",
    "ct state untracked",
    "ct state vmap { established : accept, related : jump x, invalid : drop }",
    "ct state vmap { new : jump x, established : accept, * : drop }",
    "ct state . meta l4proto { new . tcp, established . udp, related . icmp }",
    "ct state . tcp dport vmap { new . 22 : jump y, established . 1024-65535 : accept }",
    "tcp dport 22 ct state new",
    "tcp flags & (fin | syn | rst | ack) == syn ct state new",
    "tcp flags & (fin | syn | rst | ack) != syn ct state new",
    "tcp flags rst ct state established",
    "udp sport 53 ct state established",
    "udp dport { 53, 1000-2000 }",
    "icmp type { echo-request, echo-reply }",
    "icmpv6 type { echo-request, destination-unreachable }",
    "icmp type destination-unreachable ct state != related",
    "ip saddr 100.64.0.0/10 ct state new",
    "ip6 saddr 2001:db8::6440:0/106 ct state new",
    "ip daddr @some",
    "meta nfproto ipv6 ct state established",
    "meta l4proto 89",
    "meta length > 60",
    "ip frag-off & 0x1fff != 0",
    "th sport 1024-65535 meta l4proto { tcp, udp }",
    "iifname \"from-in\"",
    "iifname \"to-out\" ct state new",
    "ip ttl < 4",
    "ct direction original",
    "ct direction reply",
    "ct direction != reply",
    "ct original ip saddr 100.64.0.0/10",
    "ct reply ip daddr != 192.0.2.0/24",
    "ct original ip daddr 192.0.2.0/25",
    "ct reply ip6 saddr 2001:db8::c000:200/121",
];

const TARGETS: [&str; 14] = [
    "accept",
    "accept",
    "drop",
    "drop",
    "return",
    "jump x",
    "jump y",
    "goto y",
    "counter",
    "log prefix \"seen \"",
    "reject",
    "reject with icmpx admin-prohibited",
    "counter accept",
    "continue",
];

fn ruleset(random: &mut Random) -> String {
    let early = some_rules(random, 2, &EARLY, &["drop", "counter", "accept"], &[], &[]);
    let without = ["reject", "ttl"];
    let y = some_rules(random, 3, &MATCHES, &TARGETS, &[], &["return", "reject", "ttl"]);
    let x = some_rules(random, 4, &MATCHES, &TARGETS, &["y"], &without);
    let before = some_rules(random, 2, &MATCHES, &TARGETS, &["x", "y"], &without);
    let forward = some_rules(random, 6, &MATCHES, &TARGETS, &["x", "y"], &[]);
    let late = some_rules(random, 2, &MATCHES, &TARGETS, &[], &without);
    let of_six = ["ip saddr", "ip daddr", "icmp type", "ip ttl", "ip frag", "@some", "nfproto", "icmpx"];
    let other = some_rules(random, 3, &MATCHES, &TARGETS, &[], &of_six);
    let policies = [random.one(&["accept", "drop"]), random.one(&["accept", "accept", "drop"])];
    let [first, second] = policies;
    format!(
        "table inet one {{
    set some {{ type ipv4_addr; flags interval; elements = {{ 192.0.2.0/25, 100.64.0.0/12 }} }}
    chain y {{
{y}    }}
    chain x {{
{x}    }}
    chain early {{
        type filter hook prerouting priority raw; policy accept;
{early}    }}
    chain before {{
        type filter hook prerouting priority mangle; policy accept;
{before}    }}
    chain forward {{
        type filter hook forward priority filter; policy {first};
{forward}    }}
    chain late {{
        type filter hook postrouting priority 10; policy accept;
{late}    }}
}}
table ip6 two {{
    chain forward {{
        type filter hook forward priority filter - 5; policy {second};
{other}    }}
}}
"
    )
}

#[test]
fn conversations_go_through_a_ruleset_of_nftables_as_through_the_kernel() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    router.knows_clients();
    let mut random = Random(seed());
    let mut carried = Carried::default();
    for _ in 0..rounds() {
        let text = ruleset(&mut random);
        let policy = load(&mut router, &text).policy;
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let agrees = carried.agree(&mut router, &policy, family, &mut random);
            agrees.unwrap_or_else(|differs| panic!("{family:?}: {differs}\n{text}"));
        }
    }
    let Carried { passed, dropped, .. } = carried;
    println!("{passed} packets passed, {dropped} did not");
    assert!(passed > dropped / 9 && dropped > passed / 9, "{passed} passed, {dropped} did not");
}
