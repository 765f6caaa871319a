//! Whole dumps mean at each hook what Linux makes of them, or are refused by line.

use super::*;
use policy::{Packet, Path, PolicyVerdict, Reject, State, Step, evaluate};

const MAPPED: u128 = 0xffff_0000_0000;

fn options() -> PolicyOptions {
    let interfaces = [("eth0", 1), ("eth1", 2), ("tun0", 3), ("tun1", 4)];
    let interfaces = interfaces.map(|(name, port)| (name.to_owned(), port)).to_vec();
    PolicyOptions { interfaces, ..PolicyOptions::default() }
}

fn dump(rules: &str) -> String {
    format!(
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [1:2]\n:OUTPUT ACCEPT\n:x - [0:0]\n{rules}\nCOMMIT\n"
    )
}

fn read_as(text: &str, family: AddressFamily) -> ImportedPolicy {
    read(text.as_bytes(), &PolicyOptions { family, ..options() })
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn whole(text: &str) -> Policy {
    let imported = read_as(text, AddressFamily::V4);
    assert_eq!(imported.refused, [], "{text}");
    imported.policy
}

fn kept(rules: &str) -> Policy {
    whole(&dump(rules))
}

/// The only refusal.
fn refused(rules: &str) -> ImportError {
    let imported = read_as(&dump(rules), AddressFamily::V4);
    assert_eq!(imported.refused.len(), 1, "{rules}: {:?}", imported.refused);
    imported.refused[0].clone()
}

/// A segment of TCP from port to port.
fn packet(sport: u128, dport: u128) -> Packet {
    let fields = [
        (PacketField::Family, 4),
        (PacketField::Source, MAPPED | 0x0a00_0001),
        (PacketField::Destination, MAPPED | 0xc000_0201),
        (PacketField::Protocol, 6),
        (PacketField::SourcePort, sport),
        (PacketField::DestinationPort, dport),
        (PacketField::TcpFlags, 2),
        (PacketField::LaterFragment, 0),
        (PacketField::InPort, 1),
        (PacketField::OutPort, 2),
        (PacketField::Dscp, 46),
        (PacketField::TimeToLive, 64),
        (PacketField::Length, 60),
        (PacketField::State, State::New as u128),
        (PacketField::SourceMac, 0x0200_0000_000a),
    ];
    fields.into_iter().fold(Packet::default(), |packet, (field, value)| packet.with(field, Some(value)))
}

fn verdict(policy: &Policy, path: Path, packet: &Packet) -> PolicyVerdict {
    evaluate(policy, path, packet, &|_| false).expect("it ends")
}

fn forwarded(policy: &Policy, packet: &Packet) -> RuleAction {
    verdict(policy, Path::Forwarded, packet).action
}

/// Whether a rule with these matches fits the packet.
fn fits(matches: &str, packet: &Packet) -> bool {
    forwarded(&kept(&format!("-A FORWARD {matches} -j ACCEPT")), packet) == RuleAction::Pass
}

#[test]
fn states_logs_and_jumps_decide_together() {
    let policy = kept(
        "-A FORWARD -m state --state RELATED,ESTABLISHED -j ACCEPT\n\
         -A FORWARD -m conntrack ! --ctstate NEW,UNTRACKED -j LOG --log-prefix \"odd: \"\n\
         -A FORWARD -p tcp\n\
         -A FORWARD -i eth0 -j x\n\
         -A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n\
         -A x -p tcp -m tcp --dport 80 -j ACCEPT\n\
         -A x -p tcp -m tcp --dport 81 -j RETURN\n\
         -A x -p udp -j ACCEPT",
    );
    assert_eq!(policy.remembers, Remembers::Passed);
    let with = |packet: &Packet, state: State| packet.clone().with(PacketField::State, Some(state as u128));
    let web = packet(1024, 80);
    assert_eq!(forwarded(&policy, &web), RuleAction::Pass);
    let reset = RuleAction::Reject(Reject::TcpReset);
    for port in [81, 82] {
        assert_eq!(forwarded(&policy, &packet(1024, port)), reset);
        let known = with(&packet(1024, port), State::Established);
        assert_eq!(forwarded(&policy, &known), RuleAction::Pass);
    }
    let odd = verdict(&policy, Path::Forwarded, &with(&web, State::Invalid));
    let forward = policy.groups.iter().position(|group| group.name == "filter/FORWARD").expect("a group");
    let logged = |step: &Step| matches!(step, Step::Rule(group, 1) if *group == forward);
    assert!(odd.steps.iter().any(logged) && policy.groups[forward].rules[1].log);
    assert!(policy.groups[forward].rules[2].count && !policy.groups[forward].rules[0].count);
    let untracked = verdict(&policy, Path::Forwarded, &with(&web, State::Untracked));
    assert!(!untracked.steps.iter().any(logged));
}
