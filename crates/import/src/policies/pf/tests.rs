//! What becomes of single lines of pf.

use crate::policies::segment::first_segment;
use crate::policies::{ImportedPolicy, PolicyOptions, read};
use policy::{Packet, PacketField, Path, Reject, Remembers, RuleAction, State, Step, Unreachable, evaluate};

fn options() -> PolicyOptions {
    PolicyOptions {
        interfaces: vec![("em0".to_owned(), 1), ("em1".to_owned(), 2)],
        tables: vec![("given".to_owned(), "# none\n192.0.2.0/24\n!192.0.2.128/25\n2001:db8::1\n".to_owned())],
        ..PolicyOptions::default()
    }
}

fn imported(text: &str) -> ImportedPolicy {
    read(text.as_bytes(), "pf", &options()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn kept(text: &str) -> ImportedPolicy {
    let imported = imported(&format!("{text}\n"));
    assert_eq!(imported.refused, [], "{text}");
    imported
}

const SYN: u128 = 2;
const ACK: u128 = 16;

fn segment(port: u128, flags: u128) -> Packet {
    first_segment(port).with(PacketField::TcpFlags, Some(flags))
}

fn decided(imported: &ImportedPolicy, packet: &Packet) -> RuleAction {
    evaluate(&imported.policy, Path::Forwarded, packet, &|_| false).expect("ends").action
}

#[test]
fn the_last_rule_decides_or_the_first_quick_one_and_without_one_all_pass() {
    for (text, action) in [
        ("", RuleAction::Pass),
        ("block", RuleAction::Block),
        ("block all\npass", RuleAction::Keep),
        ("block quick\npass", RuleAction::Block),
        ("pass\nblock out on em1", RuleAction::Block),
        ("pass\nblock in on em1", RuleAction::Keep),
        ("block on ! em0\npass in", RuleAction::Block),
        ("block on { em0 em1 }", RuleAction::Block),
        ("block\nmatch log all\npass no state", RuleAction::Pass),
        ("block\nmatch log all", RuleAction::Block),
        ("set skip on { lo em0, em1 }\nblock", RuleAction::Pass),
        ("set skip on em0\nblock", RuleAction::Block),
        ("block\nanchor \"a\" in {\n pass\n}\npass out no state", RuleAction::Keep),
        ("block\nanchor out on em0 {\n pass\n}", RuleAction::Block),
        ("anchor proto tcp {\n block quick\n}\npass", RuleAction::Block),
        ("anchor proto tcp {\n block\n anchor {\n pass\n }\n}\npass out", RuleAction::Keep),
        ("anchor proto udp {\n block quick\n}\npass no state", RuleAction::Pass),
    ] {
        assert_eq!(decided(&kept(text), &segment(22, SYN)), action, "{text}");
    }
    let logged = kept("match log proto tcp\npass no state");
    let rule = &logged.policy.groups[0].rules[0];
    assert!(rule.log && rule.action == RuleAction::Continue);
    assert_eq!((logged.kept, rule.place.line, &*rule.text), (2, 1, "match log proto tcp"));
}

#[test]
fn what_passes_is_remembered_in_its_direction() {
    let text = "block\npass in on em0 proto tcp to port 22\npass out on em1 proto tcp to port 22\n";
    let imported = kept(text);
    assert_eq!(imported.policy.remembers, Remembers::KeptByDirection);
    assert_eq!(decided(&imported, &segment(22, SYN)), RuleAction::Keep);
    assert_eq!(decided(&imported, &segment(22, SYN | ACK)), RuleAction::Block);
    assert_eq!(decided(&imported, &segment(22, SYN | 4)), RuleAction::Keep, "only SYN and ACK are looked at");
    let known = Some(State::Established as u128);
    let half = segment(22, ACK).with(PacketField::State, known);
    assert_eq!(decided(&imported, &half), RuleAction::Block);
    assert_eq!(decided(&imported, &half.with(PacketField::OutState, known)), RuleAction::Pass);
    for (text, flags, action) in [
        ("pass flags any", ACK, RuleAction::Keep),
        ("pass flags A/A", ACK, RuleAction::Keep),
        ("pass proto tcp flags /SF modulate state", ACK, RuleAction::Keep),
        ("pass proto { tcp, udp } keep state", ACK, RuleAction::Block),
        ("pass no state", ACK, RuleAction::Pass),
        ("pass proto tcp flags S/SA no state", ACK, RuleAction::Block),
    ] {
        assert_eq!(decided(&kept(&format!("block\n{text}")), &segment(22, flags)), action, "{text}");
    }
    assert_eq!(kept("set state-policy if-bound\npass").policy.remembers, Remembers::KeptAtPort);
    assert_eq!(kept("pass no state").policy.remembers, Remembers::Nothing);
}

#[test]
fn senders_are_told() {
    let udp = segment(22, 0).with(PacketField::Protocol, Some(17)).with(PacketField::TcpFlags, None);
    let port = RuleAction::Reject(Reject::Unreachable(Unreachable::Port));
    let (reset, by) = (RuleAction::Reject(Reject::TcpReset), RuleAction::Reject(Reject::ByProtocol));
    for (text, actions) in [
        ("block drop", [RuleAction::Block; 2]),
        ("block return", [by; 2]),
        ("block return-rst", [reset, RuleAction::Block]),
        ("block return-icmp", [port; 2]),
        ("set block-policy return\nblock", [by; 2]),
        ("set block-policy return\nblock drop", [RuleAction::Block; 2]),
    ] {
        assert_eq!([&segment(22, SYN), &udp].map(|packet| decided(&kept(text), packet)), actions, "{text}");
    }
    let of_v6 = udp.clone().with(PacketField::Family, Some(6));
    for (text, v4, v6) in [
        ("block return-icmp(host-prohib)", 10, 4),
        ("block return-icmp(5, addr-unr)", 5, 3),
        ("block return-icmp6 (admin-unr)", 3, 1),
    ] {
        let codes = [Reject::Icmp(v4), Reject::Icmpv6(v6)].map(RuleAction::Reject);
        assert_eq!([&udp, &of_v6].map(|packet| decided(&kept(text), packet)), codes, "{text}");
    }
}

#[test]
fn rules_ask_for_what_pf_asks() {
    let packet = segment(80, SYN);
    let tables = "table <own> const { 10/8, !10.0.0.0/16, 10.0.0.1 }\ntable <none> { }\n\
                  table <given> persist file \"/etc/given\"\n";
    for (rule, matches) in [
        ("from any to any", true),
        ("from 10/8 to 192.0.2.1", true),
        ("from 10.9.9.9/8", true),
        ("from 10.0.0.0 - 10.0.0.9", true),
        ("from 10.0.0.2 - 10.0.0.9", false),
        ("from ! 10/8", false),
        ("from ! 2001:db8::/32", false),
        ("from { 11/8, ! 12/8 }", true),
        ("from { 11/8 12/8 }", false),
        ("from { 11/8, any }", true),
        ("from { 11/8, { 12/8, 10/8 } }", true),
        ("inet from { 2001:db8::1, 10.0.0.1 }", true),
        ("inet6", false),
        ("from <own>", true),
        ("from { <own> 11/8 }", true),
        ("from ! <own>", false),
        ("to <own>", false),
        ("to ! <own>", true),
        ("from <none>", false),
        ("from ! <none>", true),
        ("to <given>", true),
        ("from 0.0.0.0/0", true),
        ("from ::/0", false),
        ("proto tcp to port 80", true),
        ("proto tcp to port = http", true),
        ("proto tcp from any port != 1234", false),
        ("proto tcp to port < 80", false),
        ("proto tcp to port <= 80", true),
        ("proto tcp to port > 79", true),
        ("proto { udp tcp } to port >= 81", false),
        ("proto tcp to port 79 >< 81", true),
        ("proto tcp to port 80 >< 82", false),
        ("proto tcp to port 80 <> 81", false),
        ("proto tcp to port 81 <> 90", true),
        ("proto tcp to port { 22, 70:80 }", true),
        ("proto icmp icmp-type { echoreq code 0, unreach }", false),
        ("proto { icmp icmp6 }", false),
    ] {
        for (text, action) in [
            (format!("block\npass {rule} no state"), RuleAction::Pass),
            (format!("block {rule}"), RuleAction::Block),
        ] {
            let text = format!("{tables}{text}");
            assert_eq!(decided(&kept(&text), &packet) == action, matches, "{text}");
        }
    }
    let neighbour = packet.clone().with(PacketField::Source, Some(0xffff_0a00_0002));
    assert_eq!(decided(&kept(&format!("{tables}block from <own>")), &neighbour), RuleAction::Pass);
    let later = [PacketField::SourcePort, PacketField::DestinationPort, PacketField::TcpFlags]
        .into_iter()
        .fold(packet, |packet, field| packet.with(field, None));
    for rule in
        ["proto tcp to port 0:65535 no state", "proto tcp to port != 1 no state", "", "flags S/S no state"]
    {
        assert_eq!(decided(&kept(&format!("block\npass {rule}")), &later), RuleAction::Block, "{rule}");
    }
}

#[test]
fn macros_are_read_where_they_are_used() {
    let text = "ext = \"em0\"\nhosts = \"{ 10.0.0.1, 10.0.0.2 }\"\nboth = \"{\" $hosts 10.0.0.3 \"}\"\nports = 22\n\
                set limit { states 10,\n frags 20 }\nblock return log\n\
                pass in quick on $ext inet proto tcp from $both \\\n to any port $ports \\\n flags S/SA keep state label \"in\"\n\
                pass out no state\n";
    let imported = kept(text);
    let verdict = evaluate(&imported.policy, Path::Forwarded, &segment(22, SYN), &|_| false).expect("ends");
    assert_eq!(
        (verdict.action, verdict.steps),
        (RuleAction::Keep, vec![Step::Rule(0, 0), Step::Rule(0, 1), Step::Rule(1, 0), Step::Rule(1, 1)])
    );
    assert_eq!(imported.policy.groups[0].rules[1].place.line, 8);
}

#[test]
fn what_is_not_understood_exactly_is_refused_at_its_place() {
    for (text, line, column, why) in [
        ("pass out on em0 nat-to 192.0.2.1", 1, 17, "the edge router does NAT"),
        ("pass in rdr-to 10.0.0.1", 1, 9, "the edge router does NAT"),
        ("nat on em0 from any to any -> 192.0.2.1", 1, 1, "the edge router does NAT"),
        ("scrub in all", 1, 1, "`scrub` changes packets"),
        ("match in scrub (no-df)", 1, 10, "`scrub` changes packets"),
        ("pass out queue web", 1, 10, "chooses a queue"),
        ("pass from any os \"Linux\"", 1, 15, "guesses"),
        ("pass user root", 1, 6, "owner of a socket"),
        ("pass tag X", 1, 6, "marks packets"),
        ("pass in route-to 10.0.0.1", 1, 9, "chooses a route"),
        ("pass synproxy state", 1, 6, "in the place of the server"),
        ("pass keep state (max 10)", 1, 17, "has options"),
        ("block keep state", 1, 7, "only what passes"),
        ("block return-rst (ttl 3)", 1, 7, "has options"),
        ("block return-icmp (nosuch)", 1, 20, "no type or code"),
        ("pass log (all)", 1, 6, "has options"),
        ("pass on em9", 1, 9, "`em9` is bound to no port"),
        ("set skip on em9", 1, 13, "`em9` is bound to no port"),
        ("set reassemble no", 1, 5, "`set reassemble` is not done"),
        ("set block-policy maybe", 1, 18, "is no policy"),
        ("pass from em0:network", 1, 11, "no address"),
        ("pass from (em0)", 1, 11, "an address is due"),
        ("pass from www.example.org", 1, 11, "no address"),
        ("pass from 10/33", 1, 11, "no address"),
        ("pass from ! { 10/8 }", 1, 11, "before a list"),
        ("pass from { }", 1, 11, "the list is empty"),
        ("pass from <x>", 1, 11, "there is no table"),
        ("table <x> persist\npass from <x>", 2, 11, "is not known"),
        ("pass from 10.0.0.1 to 2001:db8::1", 1, 23, "the families"),
        ("pass inet6 from 10.0.0.1", 1, 17, "the families"),
        ("pass to port 22", 1, 9, "of protocols that have none"),
        ("pass proto { tcp icmp } to port 22", 1, 28, "of protocols that have none"),
        ("pass proto udp flags S/SA", 1, 16, "of protocols that have none"),
        ("pass proto tcp flags S", 1, 22, "has no `/`"),
        ("pass proto tcp flags SA/S", 1, 22, "matches no packet"),
        ("pass proto tcp to port 9:1", 1, 24, "no port is from"),
        ("pass proto tcp to port 5 >< 6", 1, 24, "these are no ports"),
        ("pass proto nosuch", 1, 12, "no protocol"),
        ("pass proto icmp icmp-type nosuch", 1, 27, "no type or code"),
        ("pass $x", 1, 6, "no value yet"),
        ("a = \"$b\"", 1, 5, "quotation marks"),
        ("anchor \"ftp-proxy/*\"", 1, 1, "outside of the file"),
        ("anchor { pass\n}", 1, 1, "begin in its line"),
        ("antispoof for em0", 1, 1, "addresses of interfaces"),
        ("pass in on em0 inet all divert-to 127.0.0.1", 1, 25, "to a process"),
        ("drop all", 1, 1, "begins no line"),
        ("}", 1, 1, "closes nothing"),
    ] {
        let refused = imported(&format!("{text}\n")).refused;
        assert_eq!(refused.len(), 1, "{text}: {refused:?}");
        assert_eq!((refused[0].line, refused[0].column), (line, column), "{text}: {}", refused[0]);
        assert!(refused[0].to_string().contains(why), "{text}: {}", refused[0]);
    }
    for (text, line, column) in
        [("pass from { 10/8\n", 1, 11), ("block\nanchor {\n pass\n", 2, 1), ("pass", 1, 5)]
    {
        let error = read(text.as_bytes(), "pf", &options()).expect_err("cut off");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
}

#[test]
fn macros_and_anchors_do_not_grow_without_limit() {
    let mut text = "a0 = \"1 2 3 4 5 6 7 8 9 10\"\n".to_owned();
    for step in 1..8 {
        text.push_str(&format!("a{step} ={}\n", format!(" $a{}", step - 1).repeat(10)));
    }
    let refused = imported(&text).refused;
    assert!(refused[0].what.contains("more than 1000000 words"), "{refused:?}");
    let deep = |depth: usize| format!("{}pass\n{}", "anchor {\n".repeat(depth), "}\n".repeat(depth));
    assert_eq!(imported(&deep(32)).refused, []);
    let error = read(deep(33).as_bytes(), "pf", &options()).expect_err("too deep");
    assert_eq!((error.line, error.what.contains("more than 32 anchors")), (33, true), "{error}");
    let deepest = kept(deep(32).trim_end());
    assert_eq!(decided(&deepest, &segment(22, SYN)), RuleAction::Keep);
    let entries = |mark: &str| {
        (0..2_500).map(|at| format!("{mark}10.{}.{}.0/24 ", at >> 8, at & 255)).collect::<String>()
    };
    let text = format!("table <t> {{ {} {} }}\npass from <t>\npass\n", entries(""), entries("!"));
    let refused = imported(&text).refused;
    assert_eq!((refused.len(), refused[0].line, refused[0].column), (1, 2, 11), "{refused:?}");
    assert!(refused[0].what.contains("more than 4000000 ranges"), "{refused:?}");
}
