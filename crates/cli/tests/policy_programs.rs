//! `ravelin policy` about the policies of programs, as its users call it.

mod policy_desk;

use policy_desk::{Desk, document};

const OLD: &str = r#"// Passes what the policy lets pass.
import std.net.{ethernet, ipv4, tcp}
reason blocked "a rule of the policy, or its default"
const LAN: port = 1

policy edge(src: ip4, proto: u8, dport: u16 absent, in_port: port) {
    hook forward { group lines default block }
    pass => flood
    block => drop blocked

    // expect pass tcp 10.0.0.1 > any:80 in LAN
    // expect block tcp 192.0.2.1 > any:80
    group lines {
        block dport 22
        jump web src 10.0.0.0/8, in_port LAN
        pass src 10.0.0.7, proto 6, dport 80, in_port LAN
    }
    group web {
        pass proto 6, dport 80 | 443
    }
}

start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => drop blocked } }
decoder packet(ip: ipv4) {
    if ip.proto == 6 && ip.frag == 0 { goto segment }
    goto edge.forward(ip.src, ip.proto, 0, false, in_port)
}
decoder segment(t: tcp) { goto edge.forward(ip.src, ip.proto, t.dst, true, in_port) }
"#;

/// A directory with the old program and a new one.
fn desk() -> Desk {
    let new = OLD.replace("80 | 443", "80..81").replace("block dport 22", "pass dport 22");
    Desk::new(&[("old.rav", OLD), ("new.rav", &new)], &[])
}

#[test]
fn rules_of_a_program_are_told_by_their_lines() {
    let desk = desk();
    let (told, _) = desk.run(&["check", "old.rav"], 1);
    let begin = "old.rav:16: pass src 10.0.0.7, proto 6, dport 80, in_port LAN
  never decides: these decide about all of its packets, and do the same:
    old.rav:19: pass proto 6, dport 80 | 443
old.rav:14: block dport 22
  redundant: without it, these decide about all of its packets, and do the same:
    old.rav:7: the default of lines: block
";
    assert!(told.starts_with(begin), "{told}");
    assert!(
        told.contains("old.rav: policy edge: 4 rules; 1 never decide, 1 redundant, 0 pairs correlated, "),
        "{told}"
    );
    let found = document(&desk.run(&["check", "old.rav", "--json"], 1).0);
    assert_eq!((&found["policy"], &found["unreached"]["count"]), (&"edge".into(), &1.into()));
    assert_eq!(
        desk.run(&["why", "old.rav", "tcp 10.0.0.1:1024 > 192.0.2.1:443 in LAN out 2"], 0).0,
        "tcp 10.0.0.1:1024 > 192.0.2.1:443 in LAN out 2
  jump to web: old.rav:15: jump web src 10.0.0.0/8, in_port LAN
  pass: old.rav:19: pass proto 6, dport 80 | 443
  pass
"
    );
}

#[test]
fn two_programs_are_compared_and_a_program_with_the_dump_that_it_came_from() {
    let desk = desk();
    let (told, _) = desk.run(&["diff", "old.rav", "new.rav"], 1);
    let all = "3 cases: 2 opened, 1 closed, 0 dropped in another way\n";
    assert!(
        told.contains("  old: block by old.rav:14: block dport 22\n  new: pass by new.rav:14: pass dport 22"),
        "{told}"
    );
    assert!(told.ends_with(all), "{told}");
    assert_eq!(desk.run(&["diff", "old.rav", "old.rav"], 0).0, "every packet is treated alike\n");
    desk.write(
        "dump",
        "*filter
:FORWARD DROP [0:0]
-A FORWARD -p tcp -m tcp --dport 22 -j DROP
-A FORWARD -s 10.0.0.0/8 -i lan -p tcp -m multiport --dports 80,443 -j ACCEPT
COMMIT
",
    );
    let bound = ["--interface", "lan=1"];
    let (told, _) = desk.run(&[&["diff", "dump", "old.rav"][..], &bound].concat(), 0);
    assert_eq!(told, "every packet is treated alike\n");
    let (told, _) = desk.run(&[&["diff", "dump", "new.rav"][..], &bound].concat(), 1);
    assert!(told.contains("old: block by dump:3:") && told.contains("new: pass by new.rav:14:"), "{told}");
}

#[test]
fn tests_in_comments_of_a_program_are_run() {
    let desk = desk();
    assert_eq!(desk.run(&["test", "old.rav"], 0).0, "old.rav: policy edge: 2 tests, 0 failed\n");
    desk.write("wrong.rav", &OLD.replace("10.0.0.1 > any:80", "10.0.0.1 > any:22"));
    assert_eq!(
        desk.run(&["test", "wrong.rav"], 1).0,
        "wrong.rav:11: pass tcp 10.0.0.1 > any:22 in LAN
  tcp 10.0.0.1:49152 > 198.51.100.0:22 in LAN out LAN
  block by wrong.rav:14: block dport 22
wrong.rav: policy edge: 2 tests, 1 failed
"
    );
}

#[test]
fn of_several_policies_each_is_told_and_one_can_be_named() {
    let desk = desk();
    let second =
        "\npolicy other(proto: u8) { hook in { group all default pass } pass => flood group all { } }
stage more() { goto other.in(6) }\n";
    let both =
        format!("{}{second}", OLD.replace("_ => ", "").replace("else => drop blocked", "else => more"));
    desk.write("both.rav", &both);
    let (told, _) = desk.run(&["check", "both.rav"], 1);
    assert!(told.contains("both.rav: policy other: 0 rules; 0 never decide, 0 redundant, "), "{told}");
    assert_eq!(document(&desk.run(&["check", "both.rav", "--json"], 1).0)["policies"][1]["policy"], "other");
    desk.run(&["check", "both.rav", "--policy", "other"], 0);
    let (_, told) = desk.run(&["check", "both.rav", "--policy", "wan"], 1);
    assert!(told.contains("both.rav: the program has no policy `wan`; it has edge, other"), "{told}");
    assert_eq!(desk.run(&["diff", "both.rav", "both.rav"], 0).0, "every packet is treated alike\n".repeat(2));
    let (_, told) = desk.run(&["diff", "old.rav", "both.rav"], 1);
    assert!(
        told.contains("both.rav: policy other is to be compared with one of: old.rav: policy edge"),
        "{told}"
    );
    desk.run(&["diff", "old.rav", "both.rav", "--policy", "edge"], 0);
}

#[test]
fn a_policy_over_other_columns_than_fields_is_refused_with_what_to_write() {
    let desk = desk();
    desk.write("zones.rav", &OLD.replace("in_port: port)", "zone: port)").replace("in_port LAN", "zone LAN"));
    let (told, refused) = desk.run(&["check", "zones.rav"], 1);
    assert!(told.is_empty(), "{told}");
    assert!(
        refused
            .contains("zones.rav: policy edge cannot be analysed: the column `zone` has no name of a field"),
        "{refused}"
    );
    desk.write("none.rav", "start stage all() { flood }\n");
    let (_, refused) = desk.run(&["test", "none.rav"], 1);
    assert!(refused.contains("none.rav: the program declares no policy"), "{refused}");
}

const FIREWALL: &str = include_str!("../../../programs/rules/firewall.rav");
const RULES: &str = include_str!("../../../programs/rules/rules.v4");

#[test]
fn a_program_whose_rules_come_from_a_file_is_told_by_the_lines_of_the_file() {
    let rules = format!("# expect pass tcp 192.0.2.9 > 10.0.0.80:80 in ext0\n{RULES}");
    let desk = Desk::new(&[("firewall.rav", FIREWALL), ("rules.v4", &rules)], &[]);
    let packet = "tcp 192.0.2.9:1024 > 10.0.0.80:80 in ext0";
    let (told, _) = desk.run(&["why", "firewall.rav", packet], 0);
    assert!(
        told.contains("rules.v4:16: -A services -p tcp -m multiport --dports 80,443 -j ACCEPT"),
        "{told}"
    );
    let (told, _) = desk.run(&["check", "firewall.rav"], 0);
    assert!(
        told.ends_with(
            "  these rules drop some packets of IPv4, and none of IPv6: add rules for IPv6, or drop it\n"
        ),
        "{told}"
    );
    assert_eq!(desk.run(&["test", "firewall.rav"], 0).0, "rules.v4: policy edge: 1 test, 0 failed\n");
    desk.write("rules.v4", &rules.replace("80,443", "443"));
    assert!(
        desk.run(&["test", "firewall.rav"], 1).0.contains("rules.v4:1: pass tcp 192.0.2.9 > 10.0.0.80:80")
    );
    // A test in the program would be about lines that stand elsewhere.
    desk.write(
        "firewall.rav",
        &FIREWALL.replace("    hook in\n", "    // expect block udp any > any\n    hook in\n"),
    );
    let (_, told) = desk.run(&["check", "firewall.rav"], 1);
    assert!(told.contains("so do its tests: write them as comments there"), "{told}");
}

#[test]
fn a_title_that_a_program_skips_is_told() {
    let program = "policy edge(family: u8) {
    from \"rules.npf\" as npf skip_title
    hook in
    hook out
    pass => flood
    block => drop blocked
}
reason blocked \"blocked\"
start stage all() { goto edge.in(4) }
";
    let rules = "group default {\n\tpass all\n}\n";
    let titled = format!("rules of a gateway\n{rules}");
    let desk = Desk::new(&[("edge.rav", program), ("rules.npf", &titled)], &[]);
    let (_, told) = desk.ravelin(&["check", "edge.rav"], 0);
    assert!(told.contains("W0410") && told.contains("rules.npf:1:1"), "{told}");
    desk.write("rules.npf", rules);
    let (_, told) = desk.ravelin(&["check", "edge.rav"], 0);
    assert!(!told.contains("W0410"), "{told}");
}
