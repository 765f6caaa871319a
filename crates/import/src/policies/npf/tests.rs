//! What becomes of single lines of NPF.

use crate::policies::segment::first_segment;
use crate::policies::{ImportedPolicy, PolicyOptions, read};
use policy::{
    Packet, PacketField, Path, PolicyVerdict, Reject, Remembers, RuleAction, State, Unreachable, evaluate,
};

fn options() -> PolicyOptions {
    PolicyOptions {
        interfaces: vec![("NW".to_owned(), 1), ("imx6q-fec".to_owned(), 2)],
        tables: vec![("bad".to_owned(), "# none\n192.0.2.0/24\n2001:db8::1\n".to_owned())],
        ..PolicyOptions::default()
    }
}

fn imported(text: &str) -> ImportedPolicy {
    read(text.as_bytes(), "npf", &options()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Rules of `group default`.
fn kept(rules: &str) -> ImportedPolicy {
    let imported = imported(&format!("table <bad> type lpm\ngroup default {{\n{rules}\n}}\n"));
    assert_eq!(imported.refused, [], "{rules}");
    imported
}

/// Where and why a line is refused.
fn refused(text: &str) -> (u32, u32, String) {
    let refused = imported(text).refused;
    assert_eq!(refused.len(), 1, "{text}: {refused:?}");
    (refused[0].line, refused[0].column, refused[0].to_string())
}

fn segment(port: u128, flags: u128) -> Packet {
    first_segment(port).with(PacketField::TcpFlags, Some(flags))
}

fn decided(imported: &ImportedPolicy, packet: &Packet) -> PolicyVerdict {
    evaluate(&imported.policy, Path::Forwarded, packet, &|_| false).expect("ends")
}

const SYN: u128 = 2;
const ACK: u128 = 16;

#[test]
fn the_first_group_with_a_match_decides_and_there_the_last_match() {
    let file = |nw: &str| {
        let text = format!("group default {{\n pass all\n}}\ngroup \"nw\" in on NW {{\n{nw}\n}}\n");
        let imported = imported(&text);
        assert_eq!(imported.refused, [], "{text}");
        imported
    };
    let to_22 = segment(22, SYN);
    for (rules, action) in [
        ("block all", RuleAction::Block),
        ("block all\npass proto tcp to any port 22", RuleAction::Pass),
        ("block final all\npass proto tcp to any port 22", RuleAction::Block),
        ("block proto udp all", RuleAction::Pass),
        ("block out all", RuleAction::Pass),
        ("block on imx6q-fec all", RuleAction::Pass),
        ("block on \"NW\" all; pass final all", RuleAction::Pass),
    ] {
        assert_eq!(decided(&file(rules), &to_22).action, action, "{rules}");
    }
    // On the way out nothing but the default group is asked.
    let elsewhere = to_22.clone().with(PacketField::InPort, Some(2)).with(PacketField::OutPort, Some(1));
    assert_eq!(decided(&file("block all"), &elsewhere).action, RuleAction::Pass);
}

#[test]
fn a_stateful_rule_takes_the_first_segment_and_its_state_is_where_it_stands() {
    let text = "group \"nw\" on NW { pass stateful in final proto tcp to any port 22; block all }\n\
                group default { pass all }";
    let imported = imported(text);
    assert_eq!((imported.kept, imported.policy.remembers), (3, Remembers::KeptAtPort));
    assert_eq!(decided(&imported, &segment(22, SYN)).action, RuleAction::Keep);
    assert_eq!(decided(&imported, &segment(22, SYN | ACK)).action, RuleAction::Block);
    assert_eq!(decided(&imported, &segment(22, SYN | 64)).action, RuleAction::Keep, "ECE is not looked at");
    let known = Some(State::Established as u128);
    let later = segment(22, ACK).with(PacketField::State, known);
    assert_eq!(decided(&imported, &later).action, RuleAction::Pass);
    let answer = segment(1234, ACK).with(PacketField::InPort, Some(2)).with(PacketField::OutPort, Some(1));
    assert_eq!(decided(&imported, &answer).action, RuleAction::Block);
    assert_eq!(decided(&imported, &answer.with(PacketField::OutState, known)).action, RuleAction::Pass);
    // Without a protocol only TCP is asked for its flags, and flags that are written replace these.
    let all = kept("pass stateful all");
    assert_eq!(decided(&all, &segment(22, ACK)).action, RuleAction::Block);
    assert_eq!(
        decided(&all, &segment(22, ACK).with(PacketField::Protocol, Some(17))).action,
        RuleAction::Keep
    );
    let any = kept("pass stateful proto tcp flags A/A all");
    assert_eq!(decided(&any, &segment(22, ACK)).action, RuleAction::Keep);
    assert_eq!(kept("pass stateful-all all").policy.remembers, Remembers::Kept);
}

#[test]
fn errors_and_echoes_follow_connections_where_the_file_says_so() {
    let rules = "group default { pass stateful out all; block in all }";
    let known = Some(State::Related as u128);
    let error = segment(1, 0).with(PacketField::Protocol, Some(1)).with(PacketField::State, known);
    for (text, action) in
        [(rules.to_owned(), RuleAction::Block), (format!("alg \"icmp\"\n{rules}"), RuleAction::Keep)]
    {
        assert_eq!(decided(&imported(&text), &error).action, action, "{text}");
    }
}

#[test]
fn senders_are_told_by_protocol() {
    let udp = segment(22, 0).with(PacketField::Protocol, Some(17)).with(PacketField::TcpFlags, None);
    let gre = udp.clone().with(PacketField::Protocol, Some(47));
    let reset = RuleAction::Reject(Reject::TcpReset);
    let prohibited = RuleAction::Reject(Reject::Unreachable(Unreachable::Prohibited));
    for (rule, actions) in [
        ("block return all", [reset, prohibited, RuleAction::Block]),
        ("block return-rst from any", [reset, RuleAction::Block, RuleAction::Block]),
        ("block return-icmp all", [RuleAction::Block, prohibited, RuleAction::Block]),
    ] {
        let imported = kept(rule);
        assert_eq!([&segment(22, SYN), &udp, &gre].map(|packet| decided(&imported, packet).action), actions);
    }
}

#[test]
fn rules_ask_for_what_npf_asks() {
    let packet = segment(80, SYN);
    for (rule, matches) in [
        ("from 10.0.0.0/8 to 192.0.2.1", true),
        ("from 10.0.0.0/255.0.0.0", true),
        ("from ! 10.0.0.0/8", false),
        ("from ! 2001:db8::/32", false),
        ("from { 10.0.0.1, 10.0.0.2 } port 1000-2000 to any port { 22, http }", true),
        ("to <bad>", true),
        ("to ! <bad>", false),
        ("from ! <bad>", true),
        ("from 0.0.0.0/0", true),
        ("to any port 81-0x60", false),
        ("proto tcp flags S/SA all", true),
        ("proto tcp flags S all", true),
        ("proto tcp flags A all", false),
        ("proto \"tcp\" from any port 1234", true),
        ("proto 17 from any port 1234", false),
        ("proto icmp icmp-type echo code 0 all", false),
        ("family inet6 all", false),
        ("family inet4 proto tcp to <bad>", true),
    ] {
        let imported = kept(&format!("pass {rule}"));
        assert_eq!(decided(&imported, &packet).action == RuleAction::Pass, matches, "{rule}");
        // The same rule blocks the same packets.
        let imported = kept(&format!("pass all\nblock {rule}"));
        assert_eq!(decided(&imported, &packet).action == RuleAction::Block, matches, "{rule}");
    }
    let later = [PacketField::SourcePort, PacketField::DestinationPort, PacketField::TcpFlags]
        .into_iter()
        .fold(packet, |packet, field| packet.with(field, None));
    for rule in ["pass to any port 0-65535", "pass stateful all", "pass proto tcp flags S/S all"] {
        assert_eq!(decided(&kept(rule), &later).action, RuleAction::Block, "{rule}");
    }
}

#[test]
fn variables_are_lists_and_procedures_log() {
    let text = "$if = \"NW\"\n$all_if = { inet4(NW) }\n$web = { http, https, 8000-8010 }\n$ports = { ssh, $web }\n\
                procedure \"log\" {\n log: npflog0\n}\nalg \"icmp\"\n\
                group \"a\" on $if {\n pass in final on $all_if proto tcp \\\n  to any port $ports apply \"log\"\n}\n\
                group default { block all }\n";
    let imported = imported(text);
    assert_eq!((imported.refused, imported.kept), (vec![], 2));
    let rule = &imported.policy.groups[1].rules[0];
    assert!(rule.log && rule.decides_at_once);
    assert_eq!((rule.place.line, rule.place.column), (10, 2));
    assert!(rule.text.starts_with("pass in final") && rule.text.ends_with("apply \"log\""), "{}", rule.text);
    assert_eq!(imported.policy.interfaces, options().interfaces);
}

#[test]
fn a_title_is_skipped_where_that_is_asked_for() {
    let text = "b. reduce specs\n\ngroup default {\n  pass all\n}";
    let (line, column, why) = refused(text);
    assert_eq!((line, column), (1, 1));
    assert!(why.contains("`b.` begins no statement"), "{why}");
    let options = PolicyOptions { skip_first_line: true, ..options() };
    let skipped = read(text.as_bytes(), "npf", &options).expect("NPF");
    assert_eq!((skipped.refused, skipped.skipped.as_deref()), (vec![], Some("b. reduce specs")));
    assert_eq!(skipped.policy.hooks[0].place.line, 3);
    for text in
        ["group default { pass all }", "# none\ngroup default { pass all }", "\ngroup default { pass all }"]
    {
        let whole = read(text.as_bytes(), "npf", &options).expect("NPF");
        assert_eq!((whole.refused, whole.skipped, whole.kept), (vec![], None, 1), "{text}");
    }
}

#[test]
fn what_is_not_understood_exactly_is_refused_at_its_place() {
    let rule =
        |rule: &str| format!("table <bad> type lpm\ntable <new> type ipset\ngroup default {{\n{rule}\n}}\n");
    for (rule_text, column, why) in [
        ("pass in stateful all", 9, "`stateful` stands where"),
        ("pass", 5, "the end of the line stands where"),
        ("drop all", 1, "`drop` begins no rule"),
        ("pass on eth9 all", 9, "`eth9` is bound to no port"),
        ("pass from 10.0.0.1/8", 11, "bits behind its length"),
        ("pass from 10.0.0.0/255.0.255.0", 11, "no length"),
        ("pass from { 10.0.0.1, 2001:db8::1 }", 23, "the other family"),
        ("pass from 10.0.0.1 to 2001:db8::1", 23, "the other family"),
        ("pass family inet6 from 10.0.0.1", 24, "the other family"),
        ("pass from { 10.0.0.1, <bad> }", 11, "not both"),
        ("pass from { 10.0.0.1, 0.0.0.0/0 }", 23, "does not compare"),
        ("pass from ! any", 13, "matches no packet"),
        ("pass from <none>", 11, "there is no table"),
        ("pass from <new>", 11, "is not known"),
        ("pass from inet4(NW)", 17, "addresses of the interface"),
        ("pass from $x", 11, "no value yet"),
        ("pass proto gre to any port 1", 23, "ports of TCP and UDP only"),
        ("pass proto tcp to any port 9-1", 28, "no port is from 9 to 1"),
        ("pass proto tcp to any port nosuch", 28, "is no port"),
        ("pass proto tcp flags SA/S all", 22, "matches no packet"),
        ("pass proto tcp flags X/S all", 22, "no flag of TCP"),
        ("pass proto nosuch all", 12, "is no protocol"),
        ("pass proto icmp icmp-type nosuch all", 27, "is no type"),
        ("pass all apply \"norm\"", 16, "there is no procedure"),
        ("pass out final pcap-filter \"tcp\"", 16, "language of its own"),
        ("pass all keep", 10, "is not understood here"),
        ("group \"b\" {\n pass all\n}", 1, "within a group"),
        ("ruleset \"b\"", 1, "within a group"),
    ] {
        let (line, at, error) = refused(&rule(rule_text));
        assert_eq!((line, at), (4, column), "{rule_text}: {error}");
        assert!(error.contains(why), "{rule_text}: {error}");
    }
    for (text, line, column, why) in [
        ("map NW dynamic 10.0.0.0/8 -> 192.0.2.1", 1, 1, "the edge router does NAT"),
        ("alg \"pptp\"", 1, 1, "`alg`"),
        ("set bpf.jit on", 1, 1, "`set`"),
        ("pass all", 1, 1, "outside of a group"),
        ("}", 1, 1, "closes nothing"),
        ("group \"a\" on NW", 1, 1, "no `{`"),
        ("group \"a\" on eth9 {\n block all\n}", 1, 14, "`eth9` is bound to no port"),
        ("group (name \"a\") { block all }", 1, 7, "no name of a group"),
        ("group \"a\" forw { block all }", 1, 11, "`forw`"),
        ("group default { block all }", 2, 7, "already"),
        ("procedure \"n\" { normalize: \"random-id\" }", 1, 17, "more than to log"),
        ("procedure \"n\" { log: npflog0 normalize: \"no-df\" }", 1, 30, "`normalize:` stands behind"),
        ("procedure \"n\" { log x y z }", 1, 17, "`log` in a procedure"),
        ("procedure \"n\" { log: }", 1, 17, "names no interface"),
        ("procedure \"n\" { log: $x }", 1, 22, "`$x` is no name"),
        ("$a = 1; $a = 2", 1, 9, "there twice"),
        ("table <x> type trie", 1, 16, "no type of a table"),
    ] {
        let (at, column_at, error) = refused(&format!("{text}\ngroup default {{ pass all }}\n"));
        assert_eq!((at, column_at), (line, column), "{text}: {error}");
        assert!(error.contains(why), "{text}: {error}");
    }
    let (line, _, error) =
        refused("table <bad> type ipset\ngroup default {\n pass from <bad>\n block all\n}\n");
    assert!(line == 3 && error.contains("has prefixes, which none of type ipset"), "{error}");
    let both = "group default {\n pass stateful all\n pass stateful-all all\n}\n";
    assert_eq!(refused(both).0, 3);
    let (line, column, error) = refused("group \"a\" { block all }\n");
    assert!(error.contains("no `group default`"), "{error}");
    assert_eq!((line, column), (2, 1));
    let cut = read(b"group default {\n pass all\n", "npf", &options()).expect_err("cut off");
    assert_eq!((cut.line, cut.column), (1, 1));
}

#[test]
fn lists_do_not_grow_without_limit() {
    let mut text = "$a0 = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }\n".to_owned();
    for step in 1..8 {
        let list = vec![format!("$a{}", step - 1); 10].join(", ");
        text.push_str(&format!("$a{step} = {{ {list} }}\n"));
    }
    text.push_str("group default { pass all }\n");
    let refused = imported(&text).refused;
    // The sixth has a million words; the seventh, and the eighth after it, are too long.
    assert!(refused[0].what.contains("more than 1000000 words"), "{refused:?}");
    let many: String =
        (0..70_000).map(|at| format!("10.{}.{}.{}\n", at >> 16, at >> 8 & 255, at & 255)).collect();
    let options = PolicyOptions { tables: vec![("big".to_owned(), many)], ..options() };
    let rules = "pass from <big>\n".repeat(60);
    let text = format!("table <big> type lpm\ngroup default {{\n{rules}}}\n");
    let read = read(text.as_bytes(), "npf", &options).expect("NPF");
    assert_eq!((read.kept, read.refused.len(), read.refused[0].line), (57, 3, 60));
}
