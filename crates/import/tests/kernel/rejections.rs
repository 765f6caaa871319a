//! What the sender of a rejected packet is told: by the router, and by the policy that its rules are read as.

use super::conversations::{Connection, Conversation, Message};
use super::random::Random;
use super::router::{Answer, Router};
use super::rulesets::{load, some_rules};
use super::states::MATCHES;
use super::{rounds, seed, times};
use import::address::AddressFamily;
use import::policies::{PolicyOptions, read};
use policy::{PacketField, Path, Policy, Reject, RuleAction, Unreachable, evaluate};
use std::collections::HashMap;
use std::net::IpAddr;

/// Packets that are under way at once.
const TOGETHER: u32 = 48;

const TARGETS: [&str; 18] = [
    "accept",
    "drop",
    "jump x",
    "reject",
    "reject with tcp reset",
    "reject with icmpx admin-prohibited",
    "reject with icmpx no-route",
    "reject with icmpx host-unreachable",
    "reject with icmp net-unreachable",
    "reject with icmp host-unreachable",
    "reject with icmp prot-unreachable",
    "reject with icmp net-prohibited",
    "reject with icmp host-prohibited",
    "reject with icmpv6 admin-prohibited",
    "reject with icmpv6 addr-unreachable",
    "reject with icmpv6 policy-fail",
    "reject with icmpv6 reject-route",
    "return",
];

fn ruleset(random: &mut Random) -> String {
    let x = some_rules(random, 4, &MATCHES, &TARGETS, &[], &["vmap", "frag-off", "jump"]);
    let forward = some_rules(random, 8, &MATCHES, &TARGETS, &["x"], &["vmap", "frag-off"]);
    format!(
        "table inet one {{
    set some {{ type ipv4_addr; flags interval; elements = {{ 192.0.2.0/25, 100.64.0.0/12 }} }}
    chain x {{
{x}    }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
{forward}        ct state new meta l4proto tcp reject with tcp reset
        counter reject
    }}
}}
"
    )
}

/// The kinds of `REJECT`, as iptables and ip6tables name them.
const V4_KINDS: [&str; 8] = [
    "icmp-net-unreachable",
    "icmp-host-unreachable",
    "icmp-proto-unreachable",
    "icmp-port-unreachable",
    "icmp-net-prohibited",
    "icmp-host-prohibited",
    "icmp-admin-prohibited",
    "tcp-reset",
];
const V6_KINDS: [&str; 7] = [
    "icmp6-no-route",
    "icmp6-adm-prohibited",
    "icmp6-addr-unreachable",
    "icmp6-port-unreachable",
    "icmp6-policy-fail",
    "icmp6-reject-route",
    "tcp-reset",
];

fn dump(random: &mut Random, family: AddressFamily) -> String {
    let kinds = if family == AddressFamily::V4 { &V4_KINDS[..] } else { &V6_KINDS };
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m state --state INVALID -j DROP\n".to_owned();
    for port in [22, 53, 80, 1024, 60_000] {
        for protocol in ["tcp", "udp"] {
            let kind = random.one(kinds);
            if kind != "tcp-reset" || protocol == "tcp" {
                text += &format!(
                    "-A FORWARD -p {protocol} -m {protocol} --dport {port} -j REJECT --reject-with {kind}\n"
                );
            }
        }
    }
    text + "-A FORWARD -p 89 -j REJECT\nCOMMIT\n"
}

/// What a router tells the sender of a packet that is rejected so.
fn answer(reject: Reject, packet: &policy::Packet) -> Option<Answer> {
    let six = packet.get(PacketField::Family) == Some(6);
    let code = match reject {
        // Nobody answers a reset with a reset (RFC 9293, 3.10.7.1).
        Reject::TcpReset => {
            let resets = packet.get(PacketField::TcpFlags).is_some_and(|flags| flags & 4 != 0);
            return (!resets).then_some(Answer::Reset);
        }
        Reject::Icmp(code) | Reject::Icmpv6(code) => code,
        Reject::Unreachable(Unreachable::NoRoute) => 0,
        Reject::Unreachable(Unreachable::Host) => [1, 3][usize::from(six)],
        Reject::Unreachable(Unreachable::Port) => [3, 4][usize::from(six)],
        Reject::Unreachable(Unreachable::Prohibited) => [13, 1][usize::from(six)],
        Reject::ByProtocol => panic!("Linux has no such kind"),
    };
    Some(Answer::Message([3, 1][usize::from(six)], code))
}

/// Sends the first packets of conversations that follow from `random`, and says where the router's answers
/// differ from those of the policy; counts the answers by their kind.
fn differs(
    router: &mut Router,
    policy: &Policy,
    family: AddressFamily,
    random: &mut Random,
    first: u32,
    answers: &mut HashMap<Answer, usize>,
) -> Option<String> {
    let (mut packets, mut wanted) = (Vec::new(), Vec::new());
    for number in first..first + TOGETHER {
        let conversation = Conversation::made(random, family, number);
        let (end, message) = &conversation.steps[0];
        if matches!(message, Message::Datagram(_, true)) {
            continue;
        }
        let state = Connection::default().state(*end, message);
        let packet = conversation.fields(0, state);
        let verdict = evaluate(policy, Path::Forwarded, &packet, &|_| false).expect("it ends");
        let answer = match verdict.action {
            RuleAction::Reject(reject) => answer(reject, &packet),
            _ => None,
        };
        if let Some(answer) = answer {
            *answers.entry(answer).or_default() += 1;
        }
        packets.extend(conversation.packets(0, 1));
        wanted.push((conversation.client, answer, conversation));
    }
    let came: HashMap<IpAddr, Answer> = router.answers(&packets);
    let mut wanted = wanted.into_iter();
    let differs = wanted
        .find(|(client, answer, _)| came.get(client) != answer.as_ref())
        .map(|(client, answer, asked)| format!("wanted {answer:?}, came {:?}: {asked:?}", came.get(&client)));
    if differs.is_none() {
        router.judged.packets += packets.len();
    }
    differs
}

/// Asks three times before it takes a difference for one; a busy machine loses frames.
fn agree(
    router: &mut Router,
    policy: &Policy,
    family: AddressFamily,
    random: &mut Random,
    number: &mut u32,
    answers: &mut HashMap<Answer, usize>,
    text: &str,
) {
    'next: for _ in 0..times() {
        let made = random.below(u64::MAX >> 33);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            *number += TOGETHER;
            match differs(router, policy, family, &mut Random(made), *number, answers) {
                Some(differs) => seen.push(differs),
                None => continue 'next,
            }
        }
        panic!("{family:?}: {seen:#?}\n{text}");
    }
}

#[test]
fn senders_are_told_what_nftables_tells_them() {
    let Some(mut router) = Router::new(&["nft"]) else { return };
    router.knows_clients();
    let (mut random, mut number, mut answers) = (Random(seed()), 0, HashMap::new());
    for _ in 0..rounds() {
        let text = ruleset(&mut random);
        let policy = load(&mut router, &text).policy;
        for family in [AddressFamily::V4, AddressFamily::V6] {
            agree(&mut router, &policy, family, &mut random, &mut number, &mut answers, &text);
        }
    }
    println!("{answers:?}");
    assert!(answers.len() > 6, "{answers:?}");
}

#[test]
fn senders_are_told_what_iptables_tells_them() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    router.knows_clients();
    let (mut random, mut number, mut answers) = (Random(seed()), 0, HashMap::new());
    for _ in 0..rounds() {
        for (family, program) in
            [(AddressFamily::V4, "iptables-legacy-restore"), (AddressFamily::V6, "ip6tables-legacy-restore")]
        {
            let text = dump(&mut random, family);
            let options = PolicyOptions { family, ..PolicyOptions::default() };
            let imported = read(text.as_bytes(), "iptables", &options).expect("it is a dump");
            assert_eq!(imported.refused, [], "{text}");
            router.load(program, &[], &text);
            agree(&mut router, &imported.policy, family, &mut random, &mut number, &mut answers, &text);
        }
    }
    println!("{answers:?}");
    assert!(answers.len() > 8, "{answers:?}");
}
