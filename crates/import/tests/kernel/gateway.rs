//! Packets for the router itself, and packets that it sends itself, decided by its rules and by the policies
//! that these are read as.

use super::dumps::{made_without_states, options};
use super::packets::{Packet, Piece};
use super::random::Random;
use super::router::Router;
use super::rulesets::{MATCHES, TARGETS, load, some_rules};
use super::{made, rounds, seed};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read};
use policy::{PacketField, Path, Policy, RuleAction, evaluate};

/// A watch behind all rules for packets of the router itself: it remembers by what they are known again.
const WATCH: &str = "table inet watch {
    set four { typeof ip id; flags dynamic; size 4096; }
    set six { typeof ip6 flowlabel; flags dynamic; size 4096; }
    chain seen {
        type filter hook input priority 2000;
        add @four { ip id }
        add @six { ip6 flowlabel }
    }
}
";

/// Which way the packets of a test go.
const WAYS: [Path; 2] = [Path::ToGateway, Path::FromGateway];

fn ruleset(random: &mut Random, path: Path) -> String {
    let (early, hook, unknown) = match path {
        Path::ToGateway => {
            ("prerouting", "input", &["oifname", "pkttype", "@some", "@pairs", "@verdicts"][..])
        }
        // A chain behind others that may be of forwarded packets cannot tell their times to live.
        _ => (
            "output",
            "postrouting",
            &["iifname", "pkttype", "@some", "@pairs", "@verdicts", "ttl", "hoplimit"][..],
        ),
    };
    let more = ["iifname \"from-in\"", "iifname != \"from-in\"", "oifname \"to-out\"", "iifname \"lo\""];
    let matches = [&MATCHES[..], &more].concat();
    let x = some_rules(random, 3, &matches, &TARGETS, &[], &[unknown, &["reject", "jump", "goto"]].concat());
    let first = some_rules(random, 3, &matches, &TARGETS, &[], &[unknown, &["reject", "oifname"]].concat());
    let second = some_rules(random, 6, &matches, &TARGETS, &["x"], &[unknown, &["reject", "goto"]].concat());
    let policy = random.one(&["accept", "drop"]);
    format!(
        "table inet one {{
    chain x {{
{x}    }}
    chain early {{
        type filter hook {early} priority -10; policy accept;
{first}    }}
    chain late {{
        type filter hook {hook} priority 10; policy {policy};
{second}    }}
}}
"
    )
}

/// Whole packets on this way.
fn on_the_way(random: &mut Random, family: AddressFamily, path: Path) -> Vec<Packet> {
    let mut packets = made(random, 100, family);
    for packet in &mut packets {
        packet.piece = Piece::Whole;
        packet.hops = random.one(&[64, 64, 5]);
        packet.code_point = random.one(&[0, 46, 10, 8]);
        packet.congestion = random.below(4) as u8;
        match (path, family) {
            (Path::ToGateway, AddressFamily::V4) => packet.dst = 0xc612_0001,
            (Path::ToGateway, AddressFamily::V6) => packet.dst = 0xfd00_0001 << 96 | 1,
            _ => {}
        }
    }
    packets
}

fn passes(policy: &Policy, packet: &Packet, path: Path) -> bool {
    let fields = match path {
        Path::ToGateway => packet.fields().with(PacketField::OutPort, None),
        _ => packet.fields().with(PacketField::InPort, None).with(PacketField::SourceMac, None),
    };
    let verdict = evaluate(policy, path, &fields, &|_| false).expect("every way ends");
    matches!(verdict.action, RuleAction::Pass | RuleAction::Keep)
}

/// Asks the router about packets on this way, and says how many pass.
fn judged(router: &mut Router, policy: &Policy, path: Path, packets: &[Packet], text: &str) -> usize {
    let wanted: Vec<bool> = packets.iter().map(|packet| passes(policy, packet, path)).collect();
    let passed = match path {
        Path::ToGateway => {
            let watched = router.run("nft", &["-f", "-"], WATCH).expect("nft runs");
            assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
            router.reaches(packets, &wanted)
        }
        _ => router.leaves(packets, &wanted),
    };
    let mut passing = 0;
    for ((packet, passed), own) in packets.iter().zip(passed).zip(wanted) {
        assert_eq!(own, passed, "{path:?}, Linux says {passed} of {packet:?}\n{text}");
        passing += usize::from(own);
    }
    passing
}

#[test]
fn packets_of_the_router_itself_meet_the_rules_of_nftables() {
    let Some(mut router) = Router::new(&["nft", "python3"]) else { return };
    let mut random = Random(seed());
    let (mut count, mut passing) = (0, 0);
    for _ in 0..rounds().div_ceil(3) {
        for path in WAYS {
            let text = ruleset(&mut random, path);
            for family in [AddressFamily::V4, AddressFamily::V6] {
                let policy = load(&mut router, &text).policy;
                let packets = on_the_way(&mut random, family, path);
                count += packets.len();
                passing += judged(&mut router, &policy, path, &packets, &text);
            }
        }
    }
    println!("{count} packets, {passing} pass");
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count} pass");
}

#[test]
fn packets_of_the_router_itself_meet_the_rules_of_iptables() {
    let Some(mut router) = Router::with_iptables(&["python3"]) else { return };
    let mut random = Random(seed());
    let (mut count, mut passing) = (0, 0);
    for _ in 0..rounds().div_ceil(3) {
        for (family, program) in
            [(AddressFamily::V4, "iptables-legacy-restore"), (AddressFamily::V6, "ip6tables-legacy-restore")]
        {
            for path in WAYS {
                let text = made_without_states(&mut random, family);
                let text = match path {
                    Path::ToGateway => text.replace("FORWARD", "INPUT"),
                    // Nobody asks for the station that sent a packet of the router itself.
                    _ => text
                        .replace("FORWARD", "OUTPUT")
                        .replace("PREROUTING", "OUTPUT")
                        .replace("-m mac --mac-source 02:00:00:00:00:01", "-o to-out"),
                };
                let imported = read(text.as_bytes(), "iptables", &PolicyOptions { family, ..options() })
                    .expect("a dump");
                assert_eq!(imported.refused, [], "{text}");
                router.load(program, &[], &text);
                let packets = on_the_way(&mut random, family, path);
                count += packets.len();
                passing += judged(&mut router, &imported.policy, path, &packets, &text);
            }
        }
    }
    println!("{count} packets, {passing} pass");
    assert!(passing > count / 10 && passing < count * 9 / 10, "{passing} of {count} pass");
}
