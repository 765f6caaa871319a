//! Whole dumps mean at each hook what Linux makes of them, or are refused by line.

use super::*;
use crate::policies::segment::first_segment;
use policy::Policy;
use policy::{MAPPED, Packet, Path, PolicyVerdict, Reject, State, Step, evaluate};

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
    first_segment(dport).with(PacketField::SourcePort, Some(sport))
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
    let logged = |step: &Step| matches!(step, Step::Rule(group, 2) if *group == forward);
    assert!(odd.steps.iter().any(logged) && policy.groups[forward].rules[2].log);
    assert!(policy.groups[forward].rules[3].count && !policy.groups[forward].rules[1].count);
    let untracked = verdict(&policy, Path::Forwarded, &with(&web, State::Untracked));
    assert!(!untracked.steps.iter().any(logged));
}

#[test]
fn each_match_means_a_field() {
    let known = |state: State| packet(1024, 80).with(PacketField::State, Some(state as u128));
    let segment = packet(1024, 80);
    let no_ports =
        segment.clone().with(PacketField::SourcePort, None).with(PacketField::DestinationPort, None);
    let later = no_ports.clone().with(PacketField::TcpFlags, None).with(PacketField::LaterFragment, Some(1));
    let message = no_ports
        .clone()
        .with(PacketField::TcpFlags, None)
        .with(PacketField::Protocol, Some(1))
        .with(PacketField::IcmpType, Some(3))
        .with(PacketField::IcmpCode, Some(4));
    let own = segment.clone().with(PacketField::InPort, None);
    let secured = |protocol: u128, index: u128| {
        let packet = no_ports.clone().with(PacketField::TcpFlags, None);
        let packet = packet.with(PacketField::Protocol, Some(protocol));
        packet.with(PacketField::SecurityIndex, Some(index))
    };
    let datagram = segment.clone().with(PacketField::TcpFlags, None).with(PacketField::Protocol, Some(17));
    for (matches, packet, expected) in [
        ("-s 10.0.0.0/8", &segment, true),
        ("! -s 10.0.0.0/8", &segment, false),
        ("-d 192.0.2.0/255.255.0.255", &segment, false),
        ("-m iprange --dst-range 192.0.2.0-192.0.2.1", &segment, true),
        ("-p tcp", &later, true),
        ("-p tcp -m tcp", &later, false),
        ("-p tcp -m tcp ! --dport 22", &segment, true),
        ("-p tcp -m tcp ! --dport 22", &later, false),
        ("-p tcp -m multiport --ports 80,81", &segment, true),
        ("-p tcp -m multiport ! --ports 80,81", &segment, false),
        ("-p tcp -m tcp --tcp-flags SYN,ACK SYN", &segment, true),
        ("-p tcp -m tcp ! --syn", &segment, false),
        ("-p tcp -m tcp --tcp-flags SYN ACK", &segment, false),
        ("-f", &later, true),
        ("! -f", &later, false),
        ("-p icmp -m icmp --icmp-type 3/4", &message, true),
        ("-p icmp -m icmp ! --icmp-type 3/4", &message, false),
        ("-p icmp -m icmp --icmp-type any", &message, true),
        ("-m mac --mac-source 02:00:00:00:00:0a", &segment, true),
        ("-m state --state NEW,RELATED", &known(State::Established), false),
        ("-m state ! --state NEW,RELATED", &known(State::Established), true),
        ("-m conntrack --ctstate UNTRACKED", &known(State::Untracked), true),
        ("-m conntrack --ctproto 6 --ctstate NEW,ESTABLISHED", &segment, true),
        ("-m conntrack --ctstate NEW ! --ctproto tcp", &segment, false),
        ("-m conntrack --ctstate NEW --ctorigsrc 10.0.0.1 --ctreplsrc 192.0.2.1", &segment, true),
        ("-m conntrack --ctstate NEW ! --ctrepldst 10.0.0.1", &segment, false),
        ("-p tcp -m conntrack --ctstate NEW --ctorigdstport 80 --ctorigsrcport 1000:", &segment, true),
        ("-m conntrack --ctstate NEW --ctorigdstport 80 --ctproto 6", &segment, true),
        ("-m conntrack --ctstate NEW --ctdir REPLY", &segment, false),
        ("-m dscp --dscp 46", &segment, true),
        ("-m dscp ! --dscp-class ef", &segment, false),
        ("-m dscp --dscp-class AF43", &segment.clone().with(PacketField::Dscp, Some(38)), true),
        ("-m tos --tos 0xb8/0xfc", &segment, true),
        ("-m tos ! --tos 0x08/0x0c", &segment, false),
        ("-m tos --tos 0xff/0xfc", &segment, false),
        ("-m tos --tos Minimize-Delay", &segment, false),
        ("-m tos --tos 0xba", &segment, true),
        ("-m tos ! --tos 0xb9", &segment, true),
        ("-m tos --tos 0x02/0x03", &segment, true),
        ("-m tos ! --tos 0x02/0x03", &segment, false),
        ("-m tos --tos Normal-Service", &segment.clone().with(PacketField::Dscp, Some(48)), false),
        (
            "-m tos --tos Normal-Service",
            &segment.clone().with(PacketField::Dscp, Some(48)).with(PacketField::Ecn, Some(0)),
            true,
        ),
        ("-m ecn --ecn-ip-ect 2", &segment, true),
        ("-m ecn ! --ecn-ip-ect 2", &segment, false),
        ("-p tcp -m tcp -m ecn --ecn-tcp-cwr", &segment, false),
        ("-p tcp -m tcp -m ecn ! --ecn-tcp-cwr ! --ecn-tcp-ece", &segment, true),
        (
            "-p tcp -m tcp -m ecn --ecn-tcp-cwr ! --ecn-tcp-ece",
            &segment.clone().with(PacketField::TcpFlags, Some(0x82)),
            true,
        ),
        ("-m addrtype --src-type UNSPEC", &segment, false),
        ("-m addrtype ! --src-type UNSPEC", &segment, true),
        ("-m addrtype ! --src-type UNSPEC --dst-type MULTICAST", &segment, false),
        (
            "-m addrtype --dst-type MULTICAST",
            &segment.clone().with(PacketField::Destination, Some(MAPPED | 0xefff_fffa)),
            true,
        ),
        ("-p esp -m esp", &segment.clone().with(PacketField::Protocol, Some(50)), true),
        ("-p esp -m esp --espspi 0:", &later.clone().with(PacketField::Protocol, Some(50)), false),
        ("-p ah -m ah --ahspi 0:4294967295", &secured(51, 9), true),
        ("-p ah -m ah --ahspi 7:", &secured(51, 6), false),
        ("-p esp -m esp --espspi 7", &secured(50, 7), true),
        ("-p esp -m esp --espspi :7", &secured(50, 8), false),
        ("-p esp -m esp ! --espspi 7:9", &secured(50, 8), false),
        ("-p esp -m esp ! --espspi 7:9", &secured(50, 10), true),
        ("-p esp -m esp ! --espspi 0:4294967295", &secured(50, 7), false),
        ("-m tcp --dport 80 -p tcp", &segment, true),
        ("-p udp -m udp --dport 60000:29", &datagram, false),
        ("-p udp -m udp ! --dport 60000:29", &datagram, true),
        ("-p udp -m udp ! --dport 60000:29", &later.clone().with(PacketField::Protocol, Some(17)), false),
        ("-m tcp --dport http -p 6", &segment, true),
        ("-m length --length 60", &segment, true),
        ("-m length ! --length 61:", &segment, true),
        // Linux has taken one away when it forwards.
        ("-m ttl --ttl-eq 63", &segment, true),
        ("-m ttl --ttl-lt 63", &segment, false),
        ("-m ttl --ttl-gt 62", &segment, true),
        ("-m ttl ! --ttl-eq 255", &segment, true),
        ("-i eth0 ! -o eth0", &segment, true),
        ("-i tun+", &segment, false),
        ("-i tun+", &segment.clone().with(PacketField::InPort, Some(4)), true),
        ("! -i eth0", &own, true),
        ("-i +", &own, true),
        ("-i lo", &segment, false),
        ("! -i lo", &segment, true),
    ] {
        assert_eq!(fits(matches, packet), expected, "{matches}");
    }
}

#[test]
fn a_time_to_live_is_what_it_was_when_the_packet_came() {
    let text = "*filter\n:INPUT DROP\n:FORWARD DROP\n:OUTPUT DROP\n:x - [0:0]\n-A INPUT -m ttl --ttl-eq 64 -j ACCEPT\n\
                -A FORWARD -m ttl --ttl-eq 64 -j ACCEPT\n-A OUTPUT -j x\n-A x -m ttl --ttl-eq 64 -j ACCEPT\nCOMMIT\n";
    let policy = whole(text);
    let with = |time: u128| packet(1, 2).with(PacketField::TimeToLive, Some(time));
    for (path, time) in [(Path::ToGateway, 64), (Path::Forwarded, 65), (Path::FromGateway, 64)] {
        assert_eq!(verdict(&policy, path, &with(time)).action, RuleAction::Pass, "{path:?}");
        assert_eq!(verdict(&policy, path, &with(time ^ 1)).action, RuleAction::Block, "{path:?}");
    }
    let both = text.replace("-A OUTPUT -j x", "-A OUTPUT -j x\n-A FORWARD -j x");
    let imported = read_as(&both, AddressFamily::V4);
    assert_eq!((imported.refused.len(), imported.refused[0].line), (1, 10), "{:?}", imported.refused);
}

#[test]
fn what_remembers_earlier_packets_keeps_its_words_and_its_place() {
    let policy = kept(
        "-A FORWARD -p tcp -m limit --limit 3/min --limit-burst 9 -m tcp --dport 80 -j ACCEPT\n\
         -A FORWARD -m recent ! --rcheck --seconds 60 --name \"a b\" --rsource -j ACCEPT\n\
         -A FORWARD -m connlimit --connlimit-above 2 -j ACCEPT",
    );
    let texts: Vec<&str> = policy.memories.iter().map(|memory| &*memory.text).collect();
    assert_eq!(
        texts,
        [
            "limit --limit 3/min --limit-burst 9",
            "recent ! --rcheck --seconds 60 --name \"a b\" --rsource",
            "connlimit --connlimit-above 2"
        ]
    );
    assert_eq!((policy.memories[0].place.line, policy.memories[0].place.column), (6, 22));
    assert_eq!(policy.remembers, Remembers::Passed, "limits of connections need them");
    let asked = std::cell::Cell::new(0);
    let remembered = |index: usize| {
        asked.set(asked.get() | 1 << index);
        index == 0
    };
    let other = packet(1, 81);
    let verdict = evaluate(&policy, Path::Forwarded, &other, &remembered).expect("it ends");
    // A segment to another port is counted by the limit, which stands before the port.
    assert_eq!((verdict.action, asked.get()), (RuleAction::Block, 0b111));
    let verdict = evaluate(&policy, Path::Forwarded, &packet(1, 80), &remembered).expect("it ends");
    assert_eq!(verdict.action, RuleAction::Pass);
}

#[test]
fn labels_and_helpers_are_those_of_connections_and_chance_is_free() {
    let policy = kept(
        "-A FORWARD -m connlabel --label 40 -j ACCEPT\n\
         -A FORWARD -m helper ! --helper ftp -j REJECT\n\
         -A FORWARD -m statistic --mode random --probability 0.25 -j ACCEPT\n\
         -A FORWARD -m rateest --rateest-delta --rateest R --rateest-bps1 8bit ! --rateest-lt --rateest-bps2 16bit -j ACCEPT",
    );
    assert_eq!((policy.memories.len(), policy.remembers), (4, Remembers::Passed));
    let said = |state: State, holds: usize| {
        let packet = packet(1024, 80).with(PacketField::State, Some(state as u128));
        let remembered = |index: usize| index == holds;
        evaluate(&policy, Path::Forwarded, &packet, &remembered).expect("it ends").action
    };
    // What has no connection has no label, and no helper expected it.
    assert_eq!(said(State::Established, 0), RuleAction::Pass);
    let reject = RuleAction::Reject(Reject::Icmp(3));
    for state in [State::Invalid, State::Untracked] {
        assert_eq!(said(state, 0), reject);
        assert_eq!(said(state, 2), reject);
    }
    assert_eq!(said(State::New, 2), reject, "a connection that a helper expected is no new one");
    for (holds, action) in [(1, reject), (2, RuleAction::Pass), (3, RuleAction::Pass), (4, RuleAction::Block)]
    {
        assert_eq!(said(State::Established, holds), action, "{holds}");
    }
    let raw = "*raw\n:PREROUTING ACCEPT\n-A PREROUTING -m helper --helper ftp -j DROP\nCOMMIT\n";
    let imported = read_as(raw, AddressFamily::V4);
    assert!(imported.refused[0].what.contains("no connection is known yet"), "{:?}", imported.refused);
}

#[test]
fn tables_and_hooks_are_asked_in_the_order_of_linux() {
    let policy = whole(
        "*security\n:FORWARD DROP\nCOMMIT\n*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT DROP\n-A FORWARD -j LOG\nCOMMIT\n\
         *nat\n:PREROUTING ACCEPT\n:POSTROUTING ACCEPT\nCOMMIT\n\
         *mangle\n:PREROUTING ACCEPT\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:POSTROUTING ACCEPT\n-A POSTROUTING -p udp -j DROP\nCOMMIT\n\
         *raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n-A PREROUTING -p tcp -m tcp --dport 80 -j ACCEPT\n-A PREROUTING -j DROP\nCOMMIT\n",
    );
    let hooks: Vec<(HookPoint, &str)> =
        policy.hooks.iter().map(|hook| (hook.point, &*policy.groups[hook.group].name)).collect();
    let forward: Vec<&str> =
        hooks.iter().filter(|(point, _)| *point == HookPoint::Forward).map(|(_, name)| *name).collect();
    assert_eq!(forward, ["mangle/FORWARD", "filter/FORWARD", "security/FORWARD"]);
    let incoming = hooks.iter().filter(|(point, _)| *point == HookPoint::In).map(|(_, name)| *name);
    assert_eq!(incoming.collect::<Vec<&str>>(), ["raw/PREROUTING", "mangle/PREROUTING"]);
    let said = |path, port| verdict(&policy, path, &packet(1, port));
    assert_eq!(said(Path::Forwarded, 81).steps.len(), 1, "the table raw has dropped it");
    assert_eq!(said(Path::Forwarded, 80).action, RuleAction::Block);
    assert_eq!(said(Path::Forwarded, 80).steps.len(), 6);
    assert_eq!(said(Path::ToGateway, 80).action, RuleAction::Pass);
    assert_eq!(said(Path::FromGateway, 80).action, RuleAction::Block);
}

#[test]
fn nat_is_left_aside_if_that_is_wanted_and_only_nat() {
    let skipping = |text: &str| {
        read(text.as_bytes(), &PolicyOptions { skip_nat: true, ..options() }).expect("it is a dump")
    };
    let nat = "*nat\n:PREROUTING ACCEPT\n:POSTROUTING ACCEPT\n:x - [0:0]\n\
               -A PREROUTING -i eth0 -p tcp -m tcp --dport 80 -j DNAT --to-destination 192.0.2.1:8080\n\
               -A POSTROUTING -o eth1 -j x\n-A x -s 10.0.0.0/8 -j MASQUERADE\nCOMMIT\n";
    let filter = dump("-A FORWARD -p tcp -m tcp --dport 8080 -j ACCEPT");
    let refused = read_as(&format!("{nat}{filter}"), AddressFamily::V4).refused;
    assert_eq!(refused.iter().map(|error| error.line).collect::<Vec<u32>>(), [5, 6, 7]);
    assert!(refused[0].advice.contains("skip_nat"), "{:?}", refused[0]);
    let imported = skipping(&format!("{nat}{filter}"));
    assert_eq!((imported.refused.len(), imported.kept), (0, 1));
    assert_eq!(imported.policy, {
        let alone = whole(&format!("{}{filter}", "\n".repeat(8)));
        assert_eq!(forwarded(&alone, &packet(1, 8080)), RuleAction::Pass);
        alone
    });
    // A table that drops is more than a translation, and so is a mark.
    for (old, new, line) in [
        (":PREROUTING ACCEPT", ":PREROUTING DROP", 2),
        ("-j MASQUERADE", "-j DROP", 7),
        ("-j MASQUERADE", "-j MARK --set-mark 1", 7),
    ] {
        let refused = skipping(&format!("{}{filter}", nat.replace(old, new))).refused;
        assert_eq!(refused.iter().map(|error| error.line).collect::<Vec<u32>>(), [line], "{new}");
    }
    // What comes before the translation sees another destination.
    let early = "*mangle\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n:y - [0:0]\n\
                 -A PREROUTING -s 10.0.0.0/8 -p tcp -j y\n-A POSTROUTING -d 192.0.2.1 -j ACCEPT\n\
                 -A y -m ttl --ttl-eq 64 -m tcp --dport 80 -p tcp -j DROP\n-A OUTPUT ! -d 192.0.2.1 -j DROP\n\
                 -A PREROUTING -m conntrack --ctstate NEW --ctreplsrc 192.0.2.1 -j DROP\nCOMMIT\n";
    let refused = skipping(&format!("{early}{nat}{filter}")).refused;
    assert_eq!(refused.iter().map(|error| error.line).collect::<Vec<u32>>(), [8, 9, 10]);
    assert_eq!(skipping(&format!("{early}{filter}")).refused, [], "nothing is translated");
    let original = dump("-A FORWARD -m conntrack --ctstate NEW --ctorigdst 192.0.2.1 -j ACCEPT");
    let refused = skipping(&format!("{nat}{original}")).refused;
    assert!(refused[0].what.contains("before the table `nat`"), "{refused:?}");
}

#[test]
fn rejections_keep_their_kinds() {
    for (family, with, kind) in [
        (AddressFamily::V4, "", Reject::Icmp(3)),
        (AddressFamily::V4, " --reject-with icmp-admin-prohibited", Reject::Icmp(13)),
        (AddressFamily::V4, " --reject-with host-prohib", Reject::Icmp(10)),
        (AddressFamily::V4, " --reject-with tcp-reset", Reject::TcpReset),
        (AddressFamily::V6, "", Reject::Icmpv6(4)),
        (AddressFamily::V6, " --reject-with icmp6-adm-prohibited", Reject::Icmpv6(1)),
    ] {
        let imported = read_as(&dump(&format!("-A FORWARD -p tcp -j REJECT{with}")), family);
        assert_eq!(imported.policy.groups[1].rules[1].action, RuleAction::Reject(kind), "{with}");
    }
}

#[test]
fn the_other_family_has_hop_limits_and_types_of_its_own() {
    let text = dump(
        "-A FORWARD -s 2001:db8::/32 -p ipv6-icmp -m icmp6 --icmpv6-type 128 -m hl --hl-eq 63 -j ACCEPT",
    );
    let imported = read_as(&text, AddressFamily::V6);
    assert_eq!(imported.refused, []);
    let echo = packet(1, 2)
        .with(PacketField::Family, Some(6))
        .with(PacketField::Source, Some(0x2001_0db8 << 96))
        .with(PacketField::Protocol, Some(58))
        .with(PacketField::IcmpType, Some(128));
    assert_eq!(forwarded(&imported.policy, &echo), RuleAction::Pass);
    let other = echo.with(PacketField::Family, Some(4));
    assert_eq!(forwarded(&imported.policy, &other), RuleAction::Pass, "no rule is about it");
}

#[test]
fn what_no_policy_says_is_refused_at_its_place() {
    for (rule, column, part) in [
        ("-m owner --uid-owner 3 -j ACCEPT", 15, "asks for a process"),
        ("-m addrtype --dst-type LOCAL -j ACCEPT", 15, "this machine's own addresses"),
        ("-m mark --mark 1 -j ACCEPT", 15, "what was done to the packet before"),
        ("-m set --match-set x src -j ACCEPT", 31, "`x` is nowhere"),
        ("-p tcp -j DNAT --to-destination 1.2.3.4", 22, "changes addresses (NAT)"),
        ("-j MARK --set-mark 1", 15, "marks the packet"),
        ("-i eth7 -j ACCEPT", 15, "bound to no port"),
        ("-m state --state NEW,SNAT -j ACCEPT", 33, "address translation (NAT)"),
        ("-m state --state new -j ACCEPT", 29, "no state of a connection"),
        ("-m state -j ACCEPT", 15, "asks nothing"),
        ("-m conntrack -j ACCEPT", 15, "asks nothing"),
        ("-m conntrack --ctproto tcp --ctstate NEW,INVALID -j ACCEPT", 25, "without a connection"),
        ("-m conntrack ! --ctstate INVALID --ctorigsrc 10.0.0.1 -j ACCEPT", 45, "without a connection"),
        ("-m conntrack --ctorigdstport 80 -j ACCEPT", 41, "need not have any"),
        ("-m conntrack ! --ctdir REPLY -j ACCEPT", 27, "turned round"),
        ("-m conntrack --ctstate NEW --ctorigdstport 80 -j ACCEPT", 55, "need not have any"),
        ("-m conntrack --ctstate NEW --ctstatus SNAT -j ACCEPT", 50, "no status of a connection"),
        ("-m conntrack --ctexpire 5:x -j ACCEPT", 38, "time in seconds"),
        ("-m ecn --ecn-ip-ect 4 -j ACCEPT", 32, "no value of ECN"),
        ("-m ecn -j ACCEPT", 15, "asks nothing"),
        ("-m ecn --ecn-tcp-cwr -j ACCEPT", 19, "need not be 6"),
        ("-p tcp -m ecn --ecn-tcp-cwr -j ACCEPT", 26, "payload of later fragments"),
        ("-m addrtype -j ACCEPT", 15, "asks nothing"),
        ("-m addrtype --src-type UNSPEC --src-type MULTICAST -j ACCEPT", 42, "is there twice"),
        ("-m addrtype --src-type MULTICAST --limit-iface-in -j ACCEPT", 15, "this machine's own addresses"),
        ("-m addrtype --src-type SOME -j ACCEPT", 35, "no kind of address"),
        ("-m esp -j ACCEPT", 15, "need not be 50"),
        ("-p esp -m esp --espspi 7:6 -j ACCEPT", 35, "7 is above 6"),
        ("-p ah -m ah --ahspi 4294967296 -j ACCEPT", 32, "security parameters index"),
        ("-m tcp --dport 80 ! -p tcp -j ACCEPT", 15, "need not be 6"),
        ("-p udp -m tcp --dport 80 -j ACCEPT", 22, "need not be 6"),
        ("-m tcp --dport 80 -m comment --comment -p -j ACCEPT", 15, "need not be 6"),
        ("-m recent --rcheck --hitcount 256 -j ACCEPT", 42, "no value of `--hitcount`"),
        ("-m connlabel --label 128 -j ACCEPT", 33, "no value of `--label`"),
        ("-m connlabel --label web -j ACCEPT", 33, "no value of `--label`"),
        ("-m helper -j ACCEPT", 15, "is without `--helper`"),
        ("-m rateest --rateest R --rateest-lt -j ACCEPT", 15, "beside `--rateest-bps`"),
        ("-m rateest --rateest R --rateest-pps 5 -j ACCEPT", 15, "is without `--rateest-lt`"),
        ("-m rateest --rateest-lt --rateest-pps 5 -j ACCEPT", 15, "is without `--rateest`"),
        (
            "-m rateest --rateest R --rateest-lt --rateest-bps 5kilo -j ACCEPT",
            62,
            "no value of `--rateest-bps`",
        ),
        (
            "-m rateest --rateest R --rateest-lt --rateest-bps 40gbit -j ACCEPT",
            62,
            "no value of `--rateest-bps`",
        ),
        ("-p tcp -m tcp --dport 80,81 -j ACCEPT", 34, "no port or range"),
        ("-p tcp -m tcp --dport 80:22 -j ACCEPT", 34, "is empty"),
        ("-p udp -m multiport --dports 80:22 -j ACCEPT", 41, "is empty"),
        ("-p udp -m conntrack --ctorigdstport 80:22 -j ACCEPT", 48, "is empty"),
        ("-m conntrack --ctstate NEW --ctproto 6 -m tcp --dport 80 -j ACCEPT", 54, "need not be 6"),
        ("-m dscp --dscp 64 -j ACCEPT", 27, "no code point"),
        // To iptables these are octal.
        ("-s 10.0.0.0/010 -j ACCEPT", 15, "no IPv4 address or prefix"),
        ("-s 10.0.0.0/+8 -j ACCEPT", 15, "no IPv4 address or prefix"),
        ("-p tcp -m tcp --dport 010 -j ACCEPT", 34, "begins with 0"),
        ("-p 06 -j ACCEPT", 15, "`06` is not known"),
        ("-p icmp -m icmp --icmp-type 3/04 -j ACCEPT", 42, "begins with 0"),
        ("-m ttl --ttl-lt 010 -j ACCEPT", 28, "begins with 0"),
        ("-m length --length 010:20 -j ACCEPT", 31, "begins with 0"),
        ("-m conntrack --ctstate NEW --ctproto 06 -j ACCEPT", 49, "begins with 0"),
        ("-m limit --limit 010/sec -j ACCEPT", 29, "no value of `--limit`"),
        ("-m dscp --dscp 1 --dscp-class EF -j ACCEPT", 29, "is there twice"),
        ("-m dscp --dscp-class AF51 -j ACCEPT", 33, "no class of code points"),
        ("-m length --length 3:2 -j ACCEPT", 31, "is empty"),
        ("-m ttl ! --ttl-gt 3 -j ACCEPT", 21, "cannot be turned round"),
        ("-m comment ! --comment x -j ACCEPT", 25, "cannot be turned round"),
        ("-m ttl --ttl-gt 255 -j ACCEPT", 28, "above 255"),
        ("-m hl --hl-eq 3 -j ACCEPT", 15, "no column"),
        ("-m limit --limit 0/sec -j ACCEPT", 29, "no value of `--limit`"),
        ("-m limit --limit 1/week -j ACCEPT", 29, "no value of `--limit`"),
        ("-m limit ! --limit 1/sec -j ACCEPT", 23, "cannot be turned round"),
        ("-m limit --limit 1/sec --limit 2/sec -j ACCEPT", 35, "is there twice"),
        ("-m recent --name x -j ACCEPT", 15, "is without `--set`"),
        ("-m recent --set --seconds 3 -j ACCEPT", 15, "beside `--rcheck`"),
        ("-m recent --set --rcheck -j ACCEPT", 15, "more than one of"),
        (
            "-m connlimit --connlimit-above 1 --connlimit-saddr --connlimit-daddr -j DROP",
            15,
            "more than one of",
        ),
        ("-m hashlimit --hashlimit-upto 1/sec -j ACCEPT", 15, "is without `--hashlimit-name`"),
        ("-m statistic --mode random --probability 1.5 -j ACCEPT", 53, "no value of `--probability`"),
        ("-m statistic --mode nth --probability 0.5 -j ACCEPT", 32, "the mode `nth`"),
        ("-m statistic --mode random --every 3 --packet 1 -j ACCEPT", 32, "the mode `random`"),
        ("-m statistic --mode nth --every 3 -j ACCEPT", 15, "beside `--packet`"),
        ("-m statistic --mode nth --every 3 --packet 3 -j ACCEPT", 55, "no packet 3 of 3"),
        ("-j LOG --log-level loud", 31, "no value of `--log-level`"),
        ("-j LOG --log-prefix", 31, "has no value"),
        ("-g LOG", 15, "writes a log"),
        ("-j INPUT", 15, "no chain or target `INPUT`"),
        ("-m ! tcp -j ACCEPT", 15, "no column"),
    ] {
        let error = refused(&format!("-A FORWARD {rule}"));
        assert_eq!((error.line, error.column), (6, column), "{rule}: {error}");
        assert!(error.what.contains(part), "{rule}: {error}");
    }
    for (rule, column, part) in [
        ("-A OUTPUT -i eth0 -j ACCEPT", 11, "packets have not at this hook"),
        ("-A INPUT ! -o eth0 -j ACCEPT", 12, "packets have not at this hook"),
        ("-A x -j x", 1, "leads in a circle"),
    ] {
        let error = refused(rule);
        assert_eq!((error.line, error.column), (6, column), "{rule}: {error}");
        assert!(error.what.contains(part), "{rule}: {error}");
    }
}

#[test]
fn a_text_that_looks_like_a_jump_hides_none() {
    for (rules, line, part) in [
        ("-A x -m comment --comment \"-j\" -j x", 6, "leads in a circle"),
        (
            "-A OUTPUT -m comment --comment -g -j x\n-A OUTPUT -p udp -j LOG --log-prefix -j\n-A FORWARD -j x\n-A x -m ttl --ttl-eq 9",
            9,
            "one less here",
        ),
    ] {
        let error = refused(rules);
        assert_eq!(error.line, line, "{rules}: {error}");
        assert!(error.what.contains(part), "{rules}: {error}");
    }
    let policy = kept("-A FORWARD -m comment --comment \"-j\" -j x\n-A x -m ttl --ttl-eq 63 -j ACCEPT");
    assert_eq!(forwarded(&policy, &packet(1, 2)), RuleAction::Pass, "Linux has taken one away");
}

#[test]
fn a_dump_that_asks_for_states_sees_no_fragments() {
    let later = packet(1, 2).with(PacketField::LaterFragment, Some(1));
    let states = "-A FORWARD -m state --state INVALID -j DROP";
    for (rule, passes) in
        [("-f", false), ("! -f", true), ("! -f -s 10.0.0.0/8", true), ("-p tcp -m tcp", false)]
    {
        let policy = kept(&format!("-A FORWARD {rule} -j ACCEPT\n{states}"));
        assert_eq!(forwarded(&policy, &later) == RuleAction::Pass, passes, "{rule}");
    }
}

#[test]
fn packets_of_the_other_family_pass() {
    let own = packet(1, 2);
    let other = own.clone().with(PacketField::Family, Some(6));
    let text = "*mangle\n:PREROUTING DROP\nCOMMIT\n*filter\n:INPUT DROP\n:FORWARD DROP\n:OUTPUT DROP\n-A FORWARD -j DROP\nCOMMIT\n";
    for (family, passes, blocked) in [(AddressFamily::V4, &other, &own), (AddressFamily::V6, &own, &other)] {
        let imported = read_as(text, family);
        assert_eq!((imported.kept, imported.refused.len()), (1, 0));
        for path in [Path::ToGateway, Path::Forwarded, Path::FromGateway] {
            assert_eq!(
                verdict(&imported.policy, path, passes).action,
                RuleAction::Pass,
                "{family:?} {path:?}"
            );
            assert_eq!(
                verdict(&imported.policy, path, blocked).action,
                RuleAction::Block,
                "{family:?} {path:?}"
            );
        }
    }
}

const SETS: &str = "create friends hash:net family inet hashsize 1024 maxelem 65536 comment\n\
                    add friends 10.0.0.0/31 comment \"two of them\"\nadd friends 192.0.2.7\n\
                    create six hash:ip family inet6\nadd six 2001:db8::1\n\
                    create late hash:ip timeout 300\nadd late 10.0.0.1 timeout 7\n\
                    create ports hash:ip,port\nadd ports 10.0.0.1,tcp:80\n\
                    create odd hash:net\nadd odd 10.0.0.0/8 nomatch\n";

#[test]
fn sets_before_the_tables_are_what_rules_ask_for() {
    let policy = |rule: &str| whole(&format!("{SETS}{}", dump(&format!("-A FORWARD {rule} -j ACCEPT"))));
    let from = |address: u128| packet(1, 2).with(PacketField::Source, Some(MAPPED | address));
    for (rule, address, passes) in [
        ("-m set --match-set friends src", 0x0a00_0001, true),
        ("-m set --match-set friends src", 0x0a00_0002, false),
        ("-m set --match-set friends src", 0xc000_0207, true),
        ("-m set ! --match-set friends src", 0x0a00_0001, false),
        ("-m set ! --match-set friends src", 0x0a00_0002, true),
        ("-m set --match-set friends dst", 0x0a00_0001, false),
        ("-m set --match-set friends src -m set ! --match-set friends dst", 0x0a00_0000, true),
    ] {
        let action = forwarded(&policy(rule), &from(address));
        assert_eq!(action == RuleAction::Pass, passes, "{rule} {address:x}");
    }
    for (set, line, part) in [
        ("six", 17, "is of IPv6"),
        ("late", 6, "`timeout` says of a set"),
        ("ports", 8, "no plain addresses"),
        ("odd", 11, "`nomatch` says of an element"),
        ("friends,x", 17, "is nowhere"),
    ] {
        let text = format!("{SETS}{}", dump(&format!("-A FORWARD -m set --match-set {set} src -j ACCEPT")));
        let imported = read_as(&text, AddressFamily::V4);
        assert_eq!(imported.refused.len(), 1, "{set}: {:?}", imported.refused);
        let error = &imported.refused[0];
        assert!(error.line == line && error.what.contains(part), "{set}: {error}");
    }
    for (text, part) in [
        ("add friends 10.0.0.1\n", "no set `friends`"),
        ("create x hash:ip\ncreate x hash:ip\n", "is there twice"),
        ("create x\n", "not the words of a set"),
        ("*filter\nCOMMIT\ncreate x hash:ip\n", "stands in no table"),
    ] {
        let error = read(text.as_bytes(), &options()).expect_err(text);
        assert!(error.what.contains(part), "{text}: {error}");
    }
}

#[test]
fn tables_keep_what_linux_lets_them_have() {
    for (text, line, part) in [
        ("*nat\n:PREROUTING ACCEPT\n-A PREROUTING -j ACCEPT\nCOMMIT\n", 3, "`nat` (NAT)"),
        ("*nat\n:POSTROUTING DROP\nCOMMIT\n", 2, "`nat` drops packets"),
        ("*broute\n:BROUTING ACCEPT\nCOMMIT\n", 1, "`broute` is not known"),
        (
            "*raw\n:PREROUTING ACCEPT\n-A PREROUTING -m state --state NEW -j DROP\nCOMMIT\n",
            3,
            "in the table `raw`",
        ),
        (
            "*raw\n:PREROUTING ACCEPT\n-A PREROUTING -j REJECT\nCOMMIT\n",
            3,
            "rejects nothing in the table `raw`",
        ),
        (
            "*raw\n:PREROUTING ACCEPT\n:x -\n-A PREROUTING -j x\n-A x -o eth0\nCOMMIT\n",
            5,
            "have not at this hook",
        ),
        ("*mangle\n:POSTROUTING ACCEPT\n-A POSTROUTING -m ttl --ttl-eq 1\nCOMMIT\n", 3, "one less here"),
        ("*filter\n:PREROUTING ACCEPT\nCOMMIT\n", 2, "calls no chain `PREROUTING`"),
        ("*filter\n:x ACCEPT\nCOMMIT\n", 2, "calls no chain `x`"),
        ("*filter\n:INPUT - [0:0]\nCOMMIT\n", 1, "has no policy"),
    ] {
        let imported = read_as(text, AddressFamily::V4);
        assert_eq!(imported.refused.len(), 1, "{text}: {:?}", imported.refused);
        assert_eq!(imported.refused[0].line, line, "{text}: {}", imported.refused[0]);
        assert!(imported.refused[0].what.contains(part), "{text}: {}", imported.refused[0]);
    }
    assert!(read(b"*filter\n:INPUT ACCEPT\n", &options()).is_err(), "the dump is cut");
}

#[test]
fn jumps_in_circles_and_deeper_than_limits_are_refused() {
    let chain = |depth: usize| {
        let names: String = (0..depth).map(|number| format!(":c{number} - [0:0]\n")).collect();
        let jumps: String = (1..depth).map(|number| format!("-A c{} -j c{number}\n", number - 1)).collect();
        format!("*filter\n:FORWARD DROP\n{names}-A FORWARD -j c0\n{jumps}COMMIT\n")
    };
    let deepest = whole(&chain(DEEPEST_JUMPS - 1));
    assert_eq!(forwarded(&deepest, &packet(1, 2)), RuleAction::Block);
    let imported = read_as(&chain(DEEPEST_JUMPS), AddressFamily::V4);
    assert_eq!(imported.refused.len(), 1, "{:?}", imported.refused);
    let circle = "*filter\n:FORWARD DROP\n:a -\n:b -\n-A FORWARD -j a\n-A a -j b\n-A b -g a\nCOMMIT\n";
    let imported = read_as(circle, AddressFamily::V4);
    assert_eq!((imported.refused.len(), imported.refused[0].line, imported.kept), (1, 7, 2));
}

const SAMPLE: &str = "*filter\n:FORWARD DROP [1:2]\n:x - [0:0]\n-A FORWARD -i lo -m state ! --state NEW -g x\n\
                      -A x -m recent --set --name \"a b\" -j LOG --log-prefix \"c d\"\n-A x -m ttl --ttl-lt 3\nCOMMIT\n";

proptest::proptest! {
    #[test]
    fn broken_dumps_are_an_answer(at in 0..SAMPLE.len(), byte: u8, other in 0..SAMPLE.len()) {
        let mut text = SAMPLE.as_bytes().to_vec();
        text[at] = byte;
        text.swap(at, other);
        if let Ok(imported) = read(&text, &options()) {
            let _ = evaluate(&imported.policy, Path::Forwarded, &packet(1, 2), &|_| true);
        }
    }
}

#[test]
fn a_new_packet_says_of_its_connection_what_later_ones_are_remembered_by() {
    let states = [State::New, State::Established, State::Related, State::Invalid, State::Untracked];
    // What passes in each state where earlier packets have said so, and where they have not.
    for (matches, remembered, not) in [
        ("--ctdir ORIGINAL", [true, true, true, false, false], [true, false, false, false, false]),
        ("--ctdir REPLY", [false, true, true, false, false], [false; 5]),
        ("--ctorigsrc 10.0.0.0/8", [true, true, true, false, false], [true, false, false, false, false]),
        ("! --ctorigsrc 10.0.0.0/8", [false, true, true, false, false], [false; 5]),
        ("--ctrepldst 11.0.0.1", [false, true, true, false, false], [false; 5]),
        ("--ctproto tcp", [true, true, true, false, false], [true, true, false, false, false]),
        ("! --ctproto tcp", [false, false, true, false, false], [false; 5]),
        ("--ctproto 6 --ctstate RELATED", [false, false, true, false, false], [false; 5]),
        (
            "--ctstate NEW,ESTABLISHED --ctorigsrc 10.0.0.1",
            [true, true, false, false, false],
            [true, false, false, false, false],
        ),
        ("--ctstatus SEEN_REPLY,ASSURED", [true, true, true, false, false], [false; 5]),
        ("--ctexpire 1:60", [true, true, true, false, false], [false; 5]),
    ] {
        let text = format!("*filter\n:FORWARD DROP\n-A FORWARD -m conntrack {matches} -j ACCEPT\nCOMMIT\n");
        let read = read(text.as_bytes(), &PolicyOptions::default()).expect("it is a dump");
        assert_eq!((read.refused, read.policy.memories.len()), (Vec::new(), 1), "{matches}");
        let pass = |remembered: bool| {
            states.map(|state| {
                let packet = first_segment(22).with(PacketField::State, Some(state as u128));
                let said = evaluate(&read.policy, Path::Forwarded, &packet, &|_| remembered);
                said.expect("it ends").action == RuleAction::Pass
            })
        };
        assert_eq!([pass(true), pass(false)], [remembered, not], "{matches}");
    }
}

#[test]
fn the_opposite_of_a_set_has_as_many_values_as_the_set() {
    let set = "create x hash:net family inet\nadd x 10.0.0.1\nadd x 10.2.0.0/16\nadd x 192.0.2.7\n";
    let rules = "*filter\n:FORWARD DROP\n-A FORWARD -m set ! --match-set x src -j ACCEPT\nCOMMIT\n";
    let imported = read(format!("{set}{rules}").as_bytes(), &PolicyOptions::default()).expect("a dump");
    assert_eq!(imported.refused, []);
    fn values(condition: &RuleCondition) -> usize {
        match condition {
            RuleCondition::Holds(PacketField::Source, values) => values.len(),
            RuleCondition::All(each) | RuleCondition::Any(each) => each.iter().map(values).sum(),
            RuleCondition::Not(inner) => values(inner),
            _ => 0,
        }
    }
    let conditions = imported.policy.groups.iter().flat_map(|group| &group.rules);
    assert_eq!(conditions.map(|rule| values(&rule.condition)).sum::<usize>(), 3);
    for (source, passes) in [(0x0a00_0001, false), (0x0a02_ff00, false), (0x0a03_0000, true)] {
        let packet = first_segment(80).with(PacketField::Source, Some(MAPPED | source));
        let said = evaluate(&imported.policy, Path::Forwarded, &packet, &|_| false).expect("it ends");
        assert_eq!(said.action == RuleAction::Pass, passes, "{source:x}");
    }
}

#[test]
fn a_dump_without_a_table_is_none() {
    for text in ["", "# nothing\n"] {
        let error = read(text.as_bytes(), &PolicyOptions::default()).expect_err("there is no table");
        assert_eq!((error.line, &*error.what), (1, "the dump has no table"));
    }
}
