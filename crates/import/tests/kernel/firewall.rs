//! The shipped firewalls whose rules come from a file treat conversations as Linux does with these rules:
//! states of connections in both directions, and errors about them; and the one that follows TCP also
//! segments whose numbers or flags do not fit.
//!
//! Left out is what the firewalls say they do otherwise: fragments are not put together, and what
//! `std.connections` has otherwise than Linux. Linux is told that TCP begins by a SYN, as they have it.

use super::conversations::{Carried, Conversation, End, Message};
use super::random::Random;
use super::router::Router;
use super::rulesets::{load, some_rules};
use super::{rounds, seed};
use exec::{Backend, BackendKind, Outputs, load as load_program};
use import::address::AddressFamily;
use import::policies::RULES_READER;
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, Verdict};
use policy::State;
use std::fs;
use std::path::Path;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// What a rule asks.
const MATCHES: [&str; 20] = [
    "ct state new",
    "ct state established,related",
    "ct state established",
    "ct state related",
    "ct state invalid",
    "ct state != { new, invalid }",
    "ct state related meta l4proto { icmp, ipv6-icmp }",
    "tcp dport 22 ct state new",
    "tcp flags & (fin | syn | rst | ack) == syn",
    "tcp flags rst ct state established",
    "udp sport 53 ct state established",
    "udp dport { 53, 1000-2000 }",
    "icmp type { echo-request, echo-reply }",
    "icmpv6 type { echo-request, destination-unreachable }",
    "ip saddr 100.64.0.0/10 ct state new",
    "ip6 saddr 2001:db8::6440:0/106 ct state new",
    "meta l4proto 89",
    "meta length > 60",
    "iifname \"from-in\"",
    "iifname \"to-out\" ct state new",
];

const TARGETS: [&str; 7] = ["accept", "accept", "accept", "drop", "jump x", "return", "counter"];

fn ruleset(random: &mut Random) -> String {
    let x = some_rules(random, 3, &MATCHES, &TARGETS, &[], &["jump"]);
    let forward = some_rules(random, 6, &MATCHES, &TARGETS, &["x"], &[]);
    let before = some_rules(random, 1, &MATCHES, &["drop", "counter", "accept"], &[], &[]);
    let policy = random.one(&["accept", "drop"]);
    format!(
        "table inet one {{
    chain x {{
{x}    }}
    chain late {{
        type filter hook forward priority 0; policy {policy};
{forward}    }}
    chain before {{
        type filter hook prerouting priority -150; policy accept;
{before}    }}
}}
"
    )
}

/// A firewall of this name by these rules.
fn firewall(name: &str, rules: &str) -> Box<dyn Backend> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/rules");
    let text = fs::read_to_string(folder.join(name)).expect("it is there");
    let text = &text[..text.find("\ntest ").expect("it has tests")];
    let from = "from \"rules.v4\" as iptables interfaces { int0 = INSIDE ext0 = OUTSIDE }";
    assert_eq!(text.matches(from).count(), 1);
    let own = "from \"rules.json\" as nft interfaces { \"from-in\" = INSIDE \"to-out\" = OUTSIDE }";
    let files = |path: &str| (path == "rules.json").then(|| rules.to_owned());
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile(name, &text.replace(from, own), &files, &options);
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}\n{rules}", compiled.diagnostics));
    load_program(&program, BackendKind::Native, 2, 1).expect("it loads")
}

/// Whether the firewall sends on a packet that comes in by a port.
fn sends(firewall: &mut dyn Backend, packet: &[u8], port: u16, now: &mut u64) -> bool {
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let mut bytes = [&[0; 12][..], &kind, packet].concat();
    let length = bytes.len() as u32;
    bytes.resize(512, 0);
    let mut batch = Batch::new();
    *now += 1_000;
    batch.push(0, length, length, port, *now);
    firewall.run(&mut bytes, &mut batch, &mut Outputs::default());
    batch.verdict[0] == Verdict::send(3 - port)
}

/// Whether the firewall says of itself that it follows it.
fn is_followed(conversation: &Conversation) -> bool {
    conversation.steps.iter().all(|(_, message)| !matches!(message, Message::Datagram(_, true)))
}

/// A connection of TCP on which some segments have numbers or flags that do not fit. None of them changes
/// what Linux knows of it; what would is the last one.
fn connection(random: &mut Random, family: AddressFamily, number: u32) -> Conversation {
    use End::{Client, Server};
    use Message::Segment;
    // Linux lets pass as established, and changes nothing by, what begins less than a window behind one.
    const FAR: u32 = 140_000;
    let mut steps = vec![
        (Client, Segment(SYN, 1000, 0, 0)),
        (Server, Segment(SYN | ACK, 5000, 1001, 0)),
        (Client, Segment(ACK, 1001, 5001, 0)),
    ];
    // What each end sends next.
    let (mut client, mut server) = (1001u32, 5001u32);
    for _ in 0..2 + random.below(6) {
        let end = random.one(&[Client, Server]);
        let (own, other) = if end == Client { (client, server) } else { (server, client) };
        let away = FAR + random.below(1 << 20) as u32;
        let segment = match random.below(9) {
            0 => Segment(ACK | PSH, own + away, other, 5),
            1 => Segment(RST, own + away, 0, 0),
            2 => Segment(RST | ACK, own + away, other, 0),
            3 => Segment(ACK, own, other + away, 0),
            4 => Segment(random.one(&[SYN | FIN, 0, FIN, SYN | RST, ACK | SYN | FIN]), own, other, 0),
            5 => Segment(RST, own.wrapping_sub(away + FAR), 0, 0),
            6 => Segment(ACK, own, other, 0),
            _ => {
                let length = 1 + random.below(20) as usize;
                *if end == Client { &mut client } else { &mut server } += length as u32;
                Segment(ACK | PSH, own, other, length)
            }
        };
        steps.push((end, segment));
    }
    steps.extend([(Client, Segment(ACK, client, server, 0)), (Server, Segment(ACK, server, client, 0))]);
    match random.below(4) {
        0 => steps.push((Server, Segment(RST, server, 0, 0))),
        1 => steps.push((Client, Segment(RST, client, 0, 0))),
        // In the window, and not exact: it belongs to the connection.
        2 => steps.push((Server, Segment(RST, server + 9, 0, 0))),
        _ => steps.extend([
            (Client, Segment(FIN | ACK, client, server, 0)),
            (Server, Segment(FIN | ACK, server, client + 1, 0)),
            (Client, Segment(ACK, client + 1, server + 1, 0)),
        ]),
    }
    Conversation { steps, ..Conversation::made(random, family, number) }
}

#[test]
fn the_firewall_by_rules_from_a_file_treats_conversations_as_linux_does() {
    let Some(carried) = agrees("firewall.rav", Carried::only(is_followed)) else { return };
    assert!(carried.passed > carried.dropped / 5 && carried.dropped > carried.passed / 5, "{carried:?}");
}

#[test]
fn the_firewall_that_follows_tcp_treats_segments_as_linux_does() {
    let Some(carried) = agrees("tracking.rav", Carried::only(is_followed)) else { return };
    assert!(carried.passed > carried.dropped / 5 && carried.dropped > carried.passed / 5, "{carried:?}");
    let Some(carried) = agrees("tracking.rav", Carried::default().made(connection)) else { return };
    assert!(carried.passed > carried.dropped / 5 && carried.dropped > carried.passed / 5, "{carried:?}");
}

/// Carries on conversations through Linux and a firewall, by random rules; `None` where Linux is not asked.
fn agrees(name: &str, mut carried: Carried) -> Option<Carried> {
    let mut router = Router::new(&["nft"])?;
    router.knows_clients();
    let strict = "echo 0 > /proc/sys/net/netfilter/nf_conntrack_tcp_loose\n";
    let mut random = Random(seed());
    for _ in 0..rounds() {
        let text = ruleset(&mut random);
        let policy = load(&mut router, &text).policy;
        // There is such a setting where connections are followed.
        let told = router.run("sh", &["-e"], strict).expect("sh runs");
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let rules = router.listed();
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let decider = || {
                let (mut firewall, mut now) = (firewall(name, &rules), 0);
                move |_: usize, conversation: &Conversation, step: usize| {
                    let port = if conversation.steps[step].0 == End::Client { 1 } else { 2 };
                    let [packet] = &conversation.packets(step, 7)[..] else { panic!("a whole packet") };
                    (sends(firewall.as_mut(), packet, port, &mut now), State::New)
                }
            };
            carried
                .agree_with(&mut router, &decider, family, &mut random)
                .unwrap_or_else(|differs| panic!("{text}\n{policy:#?}\n{differs}"));
        }
    }
    println!("{name}: {carried:?}");
    Some(carried)
}
