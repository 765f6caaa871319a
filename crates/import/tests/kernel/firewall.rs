//! The shipped firewall whose rules come from a file treats conversations as Linux does with these rules:
//! states of connections in both directions, and errors about them.
//!
//! Left out is what the firewall says it does otherwise: fragments are not put together. Linux is told that
//! TCP begins by a SYN, as the firewall has it.

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

/// The firewall by these rules.
fn firewall(rules: &str) -> Box<dyn Backend> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/rules");
    let text = fs::read_to_string(folder.join("firewall.rav")).expect("it is there");
    let text = &text[..text.find("\ntest ").expect("it has tests")];
    let from = "from \"rules.v4\" as iptables interfaces { int0 = INSIDE ext0 = OUTSIDE }";
    assert_eq!(text.matches(from).count(), 1);
    let own = "from \"rules.json\" as nft interfaces { \"from-in\" = INSIDE \"to-out\" = OUTSIDE }";
    let files = |path: &str| (path == "rules.json").then(|| rules.to_owned());
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile("firewall.rav", &text.replace(from, own), &files, &options);
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

#[test]
fn the_firewall_by_rules_from_a_file_treats_conversations_as_linux_does() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    router.knows_clients();
    let strict = "echo 0 > /proc/sys/net/netfilter/nf_conntrack_tcp_loose\n";
    let mut random = Random(seed());
    let mut carried = Carried::only(is_followed);
    for _ in 0..rounds() {
        let text = ruleset(&mut random);
        let policy = load(&mut router, &text).policy;
        // There is such a setting where connections are followed.
        let told = router.run("sh", &["-e"], strict).expect("sh runs");
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let listed = router.run("nft", &["-j", "list", "ruleset"], "").expect("nft runs");
        let rules = String::from_utf8(listed.stdout).expect("nft prints text");
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let decider = || {
                let (mut firewall, mut now) = (firewall(&rules), 0);
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
    println!("{carried:?}");
    assert!(carried.passed > carried.dropped / 5 && carried.dropped > carried.passed / 5, "{carried:?}");
}
