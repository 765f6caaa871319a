//! Whole conversations through the kernel with a dump of states, and through the policy that the dump is read
//! as.

use super::conversations::{Connection, Conversation, End, OnTheWay};
use super::random::Random;
use super::router::Router;
use super::seed;
use import::policies::{PolicyOptions, read};
use policy::{Path, Policy, RuleAction, evaluate};
use std::net::Ipv4Addr;

/// Conversations that are carried on together, a step of each at a time.
const TOGETHER: u32 = 48;

/// A dump of chains in four tables, made of matches of all kinds.
fn made_dump(random: &mut Random) -> String {
    // What is dropped in `raw` is not seen by what remembers connections: whole conversations are, or none of
    // their packets.
    const RAW: [&str; 6] = [
        "-m dscp --dscp 0x2e",
        "-m dscp ! --dscp-class AF11",
        "-m tos ! --tos 0x28/0xfc",
        "-p tcp",
        "! -p udp",
        "-p 89 -m ttl --ttl-gt 64",
    ];
    const EARLY: [&str; 13] = [
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
    const LATER: [&str; 15] = [
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

/// Carries on these conversations, and says at which step the first one differs.
fn differs(
    router: &mut Router,
    policy: &Policy,
    conversations: &[Conversation],
    passing: &mut [usize; 2],
) -> Option<String> {
    let mut connections = vec![Connection::default(); conversations.len()];
    let longest = conversations.iter().map(|conversation| conversation.steps.len()).max()?;
    let mut differs = None;
    for step in 0..longest {
        let (mut frames, mut on_the_way, mut wanted) = (Vec::new(), OnTheWay::new(), Vec::new());
        for (index, conversation) in conversations.iter().enumerate() {
            let Some((end, message)) = conversation.steps.get(step) else { continue };
            let state = connections[index].state(*end, message);
            let packet = conversation.fields(step, state);
            let verdict = evaluate(policy, Path::Forwarded, &packet, &|_| false).expect("it ends");
            let passes = verdict.action == RuleAction::Pass;
            if passes {
                connections[index].passed(*end, state);
            }
            let identification = index as u16 + 1;
            let packets = conversation.packets(step, identification);
            let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|byte| packets[0][at + byte]));
            on_the_way.insert(identification, (address(12), address(16)));
            frames.extend(packets.into_iter().map(|packet| (*end == End::Server, packet)));
            wanted.push((index, identification, passes, state));
            passing[usize::from(passes)] += 1;
        }
        let came = router.exchange(&frames, &on_the_way);
        for (index, identification, passes, state) in wanted {
            if came.contains(&identification) != passes && differs.is_none() {
                let conversation = &conversations[index];
                differs = Some(format!("step {step}, {state:?}, wanted {passes}: {conversation:?}"));
            }
        }
    }
    differs
}

#[test]
fn conversations_go_through_a_policy_as_through_the_kernel() {
    let Some(mut router) = Router::new(&["nft", "iptables-legacy-restore"]) else { return };
    if !router.run("iptables-legacy-save", &[], "").is_ok_and(|output| output.status.success()) {
        println!("this kernel has no iptables of its own: nothing was judged");
        return;
    }
    router.knows_clients();
    let interfaces = [("from-in", 1), ("to-out", 2)].map(|(name, port)| (name.to_owned(), port)).to_vec();
    let options = PolicyOptions { interfaces, ..PolicyOptions::default() };
    let mut random = Random(seed());
    let (mut number, mut passing) = (0, [0; 2]);
    for _ in 0..rounds() {
        let dump = made_dump(&mut random);
        let imported =
            read(dump.as_bytes(), "iptables", &options).unwrap_or_else(|error| panic!("{error}\n{dump}"));
        assert_eq!(imported.refused, [], "{dump}");
        router.load("iptables-legacy-restore", &[], &dump);
        let made = Random(random.below(u64::MAX >> 33));
        // A frame that a busy machine lost is lost once; what the kernel decides it decides again.
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let mut random = Random(made.0);
            let conversations: Vec<Conversation> =
                (number..number + TOGETHER).map(|number| Conversation::made(&mut random, number)).collect();
            number += TOGETHER;
            match differs(&mut router, &imported.policy, &conversations, &mut passing) {
                Some(differs) => seen.push(differs),
                None => break,
            }
        }
        assert!(seen.len() < 3, "{seen:#?}\n{dump}");
    }
    let [dropped, passed] = passing;
    println!("{passed} packets passed, {dropped} did not");
    assert!(passed > dropped / 9 && dropped > passed / 9, "{passed} passed, {dropped} did not");
}

/// How many dumps are tried: `RAVELIN_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("RAVELIN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}
