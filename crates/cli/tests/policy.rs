//! `ravelin policy`, as its users call it.

mod policy_desk;

use policy_desk::{Desk, document};
use serde_json::Value;

const OLD: &str = "*filter
:FORWARD DROP [0:0]
:web - [0:0]
# expect pass tcp 10.1.2.3:1024 > 192.0.2.1:80 in lan
# expect block tcp 192.0.2.9 > 192.0.2.1:80
-A FORWARD -s 10.0.0.0/8 -j web
-A FORWARD -p tcp -m tcp --dport 22 -j DROP
-A FORWARD -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j DROP
-A FORWARD -p udp -m udp --dport 53 -j ACCEPT
-A web -p tcp -m tcp --dport 80 -j ACCEPT
-A web -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
";

/// A directory with the old policy and a new one.
fn desk() -> Desk {
    let new = OLD.replace("--dport 53 ", "--dport 53:54 ").replace("22 -j DROP", "22 -j ACCEPT");
    Desk::new(&[("old", OLD), ("new", &new)], &["--interface", "lan=1"])
}

#[test]
fn rules_that_never_decide_are_told_with_those_that_do_and_with_what_these_do() {
    let desk = desk();
    let (told, _) = desk.run(&["check", "old"], 1);
    assert_eq!(
        told,
        "old:8: -A FORWARD -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j DROP
  never decides: these decide about all of its packets, and do the opposite:
    old:10: -A web -p tcp -m tcp --dport 80 -j ACCEPT
old:11: -A web -d 192.0.2.1/32 -p tcp -m tcp --dport 80 -j ACCEPT
  never decides: these decide about all of its packets, and do the same:
    old:10: -A web -p tcp -m tcp --dport 80 -j ACCEPT
old:7: -A FORWARD -p tcp -m tcp --dport 22 -j DROP
  redundant: without it, these decide about all of its packets, and do the same:
    old:2: the default of filter/FORWARD: block
old: 6 rules; 2 never decide, 1 redundant, 0 pairs correlated, 0 exceptions
  these rules drop some packets of IPv4, and none of IPv6: add rules for IPv6, or drop it
"
    );
    let found = document(&desk.run(&["check", "old", "--json", "--most", "1"], 1).0);
    assert_eq!(
        (&found["unreached"]["count"], &found["unreached"]["shown"][0]["effect"]),
        (&2.into(), &"opposite".into())
    );
    assert_eq!(found["redundant"]["shown"][0]["rule"]["line"], 7);
    desk.write("sound", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\nCOMMIT\n");
    desk.run(&["check", "sound"], 0);
}

#[test]
fn a_line_that_became_several_rules_is_told_once_and_only_if_none_of_them_decides() {
    let desk = desk();
    // A reset for packets that are no TCP is impossible, and no fault of the line.
    desk.write("pf.conf", "block return-rst proto tcp\n");
    let (told, _) = desk.run(&["check", "pf.conf", "--as", "pf"], 0);
    assert_eq!(told, "pf.conf: 1 rule; 0 never decide, 0 redundant, 0 pairs correlated, 0 exceptions\n");
    desk.write("pf.conf", "block return-rst proto tcp\nblock quick\nblock return proto tcp\n");
    let (told, _) = desk.run(&["check", "pf.conf", "--as", "pf"], 1);
    assert_eq!(told.matches("pf.conf:1: ").count(), 1, "{told}");
    assert!(told.contains("pf.conf: 3 rules; 2 never decide"), "{told}");
}

#[test]
fn pairs_whose_order_decides_are_told_with_a_packet_and_exit_with_0() {
    let desk = desk();
    let rules = "*filter\n:FORWARD ACCEPT [0:0]
-A FORWARD -s 10.0.0.0/8 -p tcp -j ACCEPT
-A FORWARD -d 192.0.2.0/24 -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -d 192.0.2.0/24 -j DROP
COMMIT\n";
    desk.write("web", rules);
    let (told, _) = desk.run(&["check", "web"], 0);
    assert_eq!(
        told,
        "web:3: -A FORWARD -s 10.0.0.0/8 -p tcp -j ACCEPT
web:5: -A FORWARD -d 192.0.2.0/24 -j DROP
  correlated: both match this packet and do the opposite: tcp 10.0.0.0:49152 > 192.0.2.0:0 in lan out lan
web: 3 rules; 0 never decide, 0 redundant, 1 pair correlated, 1 exception
  these rules drop some packets of IPv4, and none of IPv6: add rules for IPv6, or drop it
"
    );
    let (told, _) = desk.run(&["check", "web", "--exceptions"], 0);
    assert!(told.contains("web:4") && told.contains("  exception: "), "{told}");
    let found = document(&desk.run(&["check", "web", "--json", "--most", "0"], 0).0);
    assert_eq!(
        (&found["correlated"]["count"], &found["correlated"]["shown"]),
        (&1.into(), &serde_json::json!([]))
    );
}

#[test]
fn beyond_their_limit_pairs_are_said_to_be_not_looked_for_and_other_answers_stand() {
    use std::fmt::Write;
    let desk = desk();
    let mut rules = String::from("*filter\n:FORWARD ACCEPT [0:0]\n");
    for number in 0..320 {
        let _ = writeln!(rules, "-A FORWARD -s 10.0.{}.{} -j DROP", number / 256, number % 256);
    }
    for port in 1..=320 {
        let _ = writeln!(rules, "-A FORWARD -p udp -m udp --dport {port} -j ACCEPT");
    }
    rules.push_str("-A FORWARD -p udp -m udp --dport 7 -j DROP\n-A FORWARD -p udp -j DROP\nCOMMIT\n");
    desk.write("many", &rules);
    let (told, _) = desk.run(&["check", "many"], 1);
    assert!(told.starts_with("many:643: "), "{told}");
    let end = "many: 642 rules; 1 never decide, 0 redundant
  these rules drop some packets of IPv4, and none of IPv6: add rules for IPv6, or drop it
  pairs were not looked for: more than 100000 pairs of its rules overlap and do the opposite: ask about a part of it
";
    assert!(told.ends_with(end), "{told}");
    let found = document(&desk.run(&["check", "many", "--json"], 1).0);
    assert_eq!(found["unreached"]["count"], 1);
    assert_eq!(found["correlated"]["count"], serde_json::Value::Null);
    assert!(found["exceptions"]["not_looked_for"].is_string(), "{found}");
}

#[test]
fn what_a_change_opens_is_told_with_the_lines_of_both_files_and_a_packet() {
    let desk = desk();
    let (told, _) = desk.run(&["diff", "old", "new"], 1);
    for part in [
        "opened: tcp 192.0.2.0:49152 > 198.51.100.0:22",
        "  old: block by old:7: -A FORWARD -p tcp -m tcp --dport 22 -j DROP",
        "  new: pass by new:7: -A FORWARD -p tcp -m tcp --dport 22 -j ACCEPT",
        "  old: block by old:2: the default of filter/FORWARD: block",
        "  packets: forwarded, family 4, proto udp, fragment 0, dport 54",
        "packets are treated otherwise in 2 cases: 2 opened, 0 closed, 0 dropped in another way",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    let found = document(&desk.run(&["diff", "new", "old", "--json"], 1).0);
    assert_eq!((&found["opened"], &found["closed"]), (&0.into(), &2.into()));
    assert_eq!(desk.run(&["diff", "old", "old"], 0).0, "every packet is treated alike\n");
}

#[test]
fn the_line_that_decides_about_a_packet_is_told() {
    let desk = desk();
    let (told, _) = desk.run(&["why", "old", "tcp 10.1.2.3:1024 > 192.0.2.1:80 in lan"], 0);
    assert!(told.contains("old:10: -A web -p tcp -m tcp --dport 80 -j ACCEPT"), "{told}");
    let answers = document(&desk.run(&["why", "old", "tcp 10.1.2.3 > 192.0.2.1", "--json"], 0).0);
    assert_eq!(answers["answers"].as_array().map(Vec::len), Some(3), "{answers}");
    assert!(desk.run(&["why", "old", "tcp 10.1.2.3 > 192.0.2.300"], 2).1.contains("is no address"));
    assert!(desk.run(&["why", "old", "tcp 10.1.2.3 > ::1"], 2).1.contains("there are no such packets"));
}

#[test]
fn tests_beside_the_rules_pass_or_name_a_packet() {
    let desk = desk();
    assert_eq!(desk.run(&["test", "old"], 0).0, "old: 2 tests, 0 failed\n");
    desk.write(
        "more",
        "expect pass udp any > 192.0.2.1:53\n# all of them\nexpect block tcp 192.0.2.0/24 > any:1-2\n",
    );
    assert!(desk.run(&["test", "old", "--tests", "more"], 1).1.contains("more:3"));
    desk.write("more", "expect pass udp any > 192.0.2.1:53\nexpect block udp any > 192.0.2.1\n");
    let (told, _) = desk.run(&["test", "old", "--tests", "more"], 1);
    assert!(
        told.contains("more:2") && told.contains("old:9") && told.contains("4 tests, 1 failed"),
        "{told}"
    );
    desk.write("none", "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n");
    assert!(desk.run(&["test", "none"], 1).1.contains("there are no tests"));
}

#[test]
fn a_policy_is_written_as_npf_and_decides_the_same() {
    let desk = desk();
    desk.write("pf.conf", "block\npass in quick inet proto tcp from 192.0.2.0/24 to any port 22 no state\n");
    let export = |arguments: &[&str], code| desk.ravelin(&[&["export", "npf"], arguments].concat(), code);
    let (written, _) = export(&["pf.conf", "--as", "pf"], 0);
    desk.write("npf.conf", &written);
    let same = ["diff", "pf.conf", "npf.conf", "--as", "pf", "--as", "npf"];
    assert_eq!(desk.run(&same, 0).0, "every packet is treated alike\n", "{written}");
    desk.write("pf.conf", "block flags S/SA\n");
    assert!(export(&["pf.conf", "--as", "pf"], 1).1.contains("pf.conf: line 1"));
    assert!(export(&["old", "--as", "pf", "--json"], 2).1.contains("--as-json"));
}

#[test]
fn a_policy_is_written_as_a_ruleset_of_nftables_and_decides_the_same() {
    let desk = desk();
    let export = |arguments: &[&str], code| desk.ravelin(&[&["export", "ruleset"], arguments].concat(), code);
    desk.write("written", &export(&["old", "--as-json"], 0).0);
    assert_eq!(desk.run(&["diff", "old", "written"], 0).0, "every packet is treated alike\n");
    let (text, _) = export(&["old"], 0);
    let jump = "\t\tip saddr 10.0.0.0/8 jump group_filter_web comment \"line 6\"\n";
    assert!(text.contains(jump) && text.contains("hook forward priority 0; policy drop;"), "{text}");
    desk.write("limited", &OLD.replace("-j web", "-m limit --limit 5/sec -j web"));
    assert!(export(&["limited"], 1).1.contains("limited: line 6"));
}

#[test]
fn nothing_is_said_of_a_file_whose_lines_are_not_all_kept() {
    let desk = desk();
    desk.write("owned", &OLD.replace("-j web", "-m owner --uid-owner 0 -j web"));
    let (_, why) = desk.run(&["check", "owned"], 1);
    assert!(why.contains("refused: owned: line 6") && why.contains("1 line refused"), "{why}");
    let (told, why) = desk.run(&["check", "owned", "--lenient"], 1);
    assert!(why.contains("left out: owned: line 6"), "{why}");
    assert!(told.contains("never decides: no packet comes to filter/web"), "{told}");
    desk.write("unclear", "pass in all\n");
    assert!(desk.run(&["check", "unclear"], 2).1.contains("--as"));
}

#[test]
fn no_weaker_policy_is_written() {
    let desk = desk();
    let owned = OLD.replace("-j DROP", "-m owner --uid-owner 0 -j DROP");
    assert_ne!(owned, OLD);
    desk.write("owned", &owned);
    for format in ["ruleset", "npf", "nft"] {
        for (more, code, why) in [(&["--lenient"][..], 2, "leave --lenient out"), (&[], 1, "owned: line")] {
            let (written, said) = desk.ravelin(&[&["export", format, "owned"], more].concat(), code);
            assert!(written.is_empty() && said.contains(why), "{said}");
        }
    }
}

#[test]
fn a_chain_of_a_dump_is_written_at_its_own_hook_and_one_of_nftables_only_as_a_whole() {
    let desk = desk();
    let dump = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:web - [0:0]
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n";
    desk.write("dump", dump);
    let export = |arguments: &[&str], code| desk.ravelin(&[&["export", "nft"], arguments].concat(), code);
    for (chain, hook) in [("INPUT", "input"), ("OUTPUT", "output"), ("FORWARD", "forward")] {
        let (text, _) = export(&["dump", "--chain", chain], 0);
        let place = format!("chain {hook} {{\n\t\ttype filter hook {hook} priority filter;");
        assert!(text.contains(&place), "{text}");
    }
    desk.write(
        "both",
        r#"{"nftables": [{"table": {"family": "inet", "name": "filter"}},
{"chain": {"family": "inet", "table": "filter", "name": "forward", "type": "filter", "hook": "forward", "prio": 0, "policy": "accept"}},
{"rule": {"family": "inet", "table": "filter", "chain": "forward", "expr": [{"match": {"op": "==",
"left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 22}}, {"drop": null}]}}]}
"#,
    );
    for arguments in
        [&["dump", "--chain", "web"][..], &["dump", "--table", "mangle", "--chain", "INPUT"], &["both"]]
    {
        let (text, told) = export(arguments, 2);
        assert!(text.is_empty() && told.contains("`ravelin export ruleset` writes all"), "{told}");
    }
    desk.write("written", &desk.ravelin(&["export", "ruleset", "both", "--as-json"], 0).0);
    assert_eq!(desk.run(&["diff", "both", "written"], 0).0, "every packet is treated alike\n");
}

#[test]
fn no_chain_of_another_table_than_filter_is_written_by_itself() {
    let desk = desk();
    desk.write("mangled", "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -j DROP\nCOMMIT\n");
    for arguments in [&["--table", "mangle"][..], &["--table", "mangle", "--chain", "FORWARD"]] {
        let (text, told) = desk.ravelin(&[&["export", "nft", "mangled"], arguments].concat(), 2);
        assert!(text.is_empty() && told.contains("only chains of the table `filter`"), "{told}");
    }
}

#[test]
fn each_way_on_which_a_version_passes_is_told() {
    let desk = desk();
    let chain = |family: &str, hook: &str| {
        format!(
            r#"{{"table": {{"family": "{family}", "name": "f"}}}}, {{"chain": {{"family": "{family}", "table": "f",
"name": "c", "type": "filter", "hook": "{hook}", "prio": 0, "policy": "drop"}}}}"#
        )
    };
    let chains = [chain("ip", "forward"), chain("ip6", "input")].join(", ");
    desk.write("ways", &format!("{{\"nftables\": [{chains}]}}\n"));
    let (told, _) = desk.run(&["check", "ways"], 0);
    for line in [
        "  these rules drop some packets of IPv4 that are forwarded, and none of IPv6: add rules for IPv6, or drop it\n",
        "  these rules drop some packets of IPv6 for the gateway itself, and none of IPv4: add rules for IPv4, or drop it\n",
    ] {
        assert!(told.contains(line), "{told}");
    }
    let found = document(&desk.run(&["check", "ways", "--json"], 0).0);
    let passing =
        serde_json::json!([{ "path": "forwarded", "version": 6 }, { "path": "to gateway", "version": 4 }]);
    assert_eq!((&found["passing_families"], &found["family_that_passes"]), (&passing, &Value::Null));
}

#[test]
fn every_line_that_is_refused_or_left_out_is_told() {
    use std::fmt::Write;
    let desk = desk();
    let mut rules = String::from("*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\n");
    for user in 0..30 {
        let _ = writeln!(rules, "-A FORWARD -m owner --uid-owner {user} -j ACCEPT");
    }
    desk.write("owned", &(rules + "COMMIT\n"));
    let (_, told) = desk.run(&["check", "owned"], 1);
    assert_eq!(told.matches("refused: owned: line ").count(), 30, "{told}");
    let (_, told) = desk.run(&["check", "owned", "--lenient"], 0);
    assert_eq!(told.matches("left out: owned: line ").count(), 30, "{told}");
    let found = document(&desk.run(&["check", "owned", "--lenient", "--json"], 0).0);
    let left_out = found["left_out"].as_array().map(Vec::len);
    assert_eq!((left_out, &found["left_out"][29]["line"]), (Some(30), &33.into()));
}

#[test]
fn rules_about_lo_are_about_packets() {
    let desk = desk();
    let open = "*filter\n:INPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n";
    desk.write("open", open);
    desk.write("closed", &open.replace("-A INPUT -i lo -j ACCEPT\n", ""));
    desk.run(&["check", "open"], 0);
    let (told, _) = desk.run(&["diff", "open", "closed"], 1);
    assert!(told.contains("1 case: 0 opened, 1 closed") && told.contains(" in lo"), "{told}");
    let (told, _) = desk.run(&["why", "open", "icmp 127.0.0.1 > 127.0.0.1 in lo to gateway"], 0);
    assert!(told.contains("pass: open:3: -A INPUT -i lo -j ACCEPT"), "{told}");
    assert!(desk.ravelin(&["export", "ruleset", "open"], 0).0.contains("iifname \"lo\" accept"));
}

/// The numbered lines of the first text of the documentation.
fn documented_file(text: &str) -> String {
    let block = text.split("```text\n").nth(1).and_then(|block| block.split("```").next()).expect("a file");
    let line = |line: &str| line.trim_start().split_once('\t').map_or("", |(_, words)| words).to_owned();
    block.lines().map(|words| line(words) + "\n").collect()
}

/// The words of a command, with texts in single quotes.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(
            |(number, part)| if number % 2 == 1 { vec![part] } else { part.split_whitespace().collect() },
        )
        .collect()
}

#[test]
fn sessions_of_the_documentation_are_true_as_they_are_typed() {
    const TEXT: &str = include_str!("../../../docs/policy.md");
    let old = documented_file(TEXT);
    assert_eq!(old, OLD);
    let new = old.replace("--dport 53 ", "--dport 53:54 ").replace("22 -j DROP", "22 -j ACCEPT");
    let dump = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i lan -p udp -j ACCEPT\nCOMMIT\n";
    let program = "reason blocked \"a rule, or the default\"
policy edge(src: ip4, proto: u8, in_port: port) {
    hook forward { group lines default block }
    pass => flood
    block => drop blocked
    group lines { pass proto 17, in_port 1 }
}
start stage all() { goto edge.forward(0.0.0.0, 0, in_port) }
";
    let files = [("old", &*old), ("new", &new), ("rules.v4", dump), ("edge.rav", program)];
    let desk = Desk::new(&files, &[]);
    let mut replayed = Vec::new();
    for block in TEXT.split("```text\n").skip(1).filter_map(|block| block.split("```").next()) {
        for session in format!("\n{block}").split("\n$ ravelin ").skip(1) {
            let (command, expected) = session.split_once('\n').expect("a command");
            let words = words(command);
            let differs = matches!(words[1], "check" | "diff") && !expected.contains("alike");
            let (told, _) = desk.ravelin(&words, i32::from(differs));
            assert_eq!(told.trim_end(), expected.trim_end(), "{command}");
            replayed.push(words[..2].join(" "));
        }
    }
    let all = ["policy check", "policy diff", "policy why", "policy test", "export ruleset", "policy diff"];
    assert_eq!(replayed, all);
}

#[test]
fn tests_behind_rules_are_run_too() {
    let desk = desk();
    let rules = "block all\npass in quick proto tcp from any to any port 22 no state # expect pass tcp any > any:22\n\
                 pass out quick no state\n# expect block udp any > any\n";
    desk.write("pf.conf", rules);
    assert_eq!(desk.run(&["test", "pf.conf", "--as", "pf"], 0).0, "pf.conf: 2 tests, 0 failed\n");
    desk.write("pf.conf", &rules.replace("pass tcp any > any:22", "block tcp any > any:22"));
    assert!(desk.run(&["test", "pf.conf", "--as", "pf"], 1).0.contains("pf.conf:2: block tcp any > any:22"));
}

#[test]
fn what_reads_as_a_test_behind_a_rule_is_not_passed_over() {
    let desk = desk();
    for (line, part) in [
        ("pass all no state#expect block udp any > any", "pf.conf:1: block udp any > any"),
        ("pass all no state#expect blcok udp any > any", "`blcok` is nothing to expect"),
        ("pass all no state label \"# expect block udp any > any\"", "pf.conf:1: "),
    ] {
        desk.write("pf.conf", &format!("{line}\n# expect pass udp any > any\n"));
        let (shown, told) = desk.run(&["test", "pf.conf", "--as", "pf"], 1);
        assert!((shown + &told).contains(part), "{line}: {told}");
    }
}

#[test]
fn a_change_before_a_rate_is_said_to_leave_it_more_for_others() {
    let desk = desk();
    let rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m limit --limit 5/sec -j ACCEPT\nCOMMIT\n";
    desk.write("first", rules);
    desk.write("then", &rules.replace("-A FORWARD -m", "-A FORWARD -p udp -j DROP\n-A FORWARD -m"));
    desk.write("moved", &format!("# the same rules\n{rules}"));
    let said = "rules with rates, or other conditions on earlier packets, may hold for other packets";
    assert!(desk.run(&["diff", "first", "then"], 1).0.contains(said));
    assert!(document(&desk.run(&["diff", "first", "then", "--json"], 1).0)["left_over"].is_string());
    assert_eq!(desk.run(&["diff", "first", "moved"], 0).0, "every packet is treated alike\n");
}

#[test]
fn where_a_limit_may_be_asked_about_other_packets_nothing_is_called_alike() {
    let desk = desk();
    const LIMIT: &str = r#"{"limit": {"rate": 5, "per": "second"}}"#;
    const DOMAIN: &str =
        r#"{"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 53}}"#;
    let rules = |parts: [&str; 2]| {
        format!(
            r#"{{"nftables": [{{"table": {{"family": "inet", "name": "f"}}}},
{{"chain": {{"family": "inet", "table": "f", "name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}}},
{{"rule": {{"family": "inet", "table": "f", "chain": "c", "expr": [{}, {{"accept": null}}]}}}}]}}
"#,
            parts.join(", ")
        )
    };
    desk.write("first", &rules([LIMIT, DOMAIN]));
    desk.write("last", &rules([DOMAIN, LIMIT]));
    let said = "rules with rates, or other conditions on earlier packets, may hold for other packets: \
                rules have changed\n";
    assert_eq!(desk.run(&["diff", "first", "last"], 1).0, said);
    let found = document(&desk.run(&["diff", "first", "last", "--json"], 1).0);
    assert_eq!((&found["opened"], &found["closed"], &found["other"]), (&0.into(), &0.into(), &0.into()));
    assert!(found["left_over"].is_string());
    assert_eq!(desk.run(&["diff", "first", "first"], 0).0, "every packet is treated alike\n");
}
