//! Files of other firewalls in programs and gateways: their policy, their interfaces, and what cannot be
//! meant exactly.

use assert_cmd::Command;
use std::fs;

/// Runs `ravelin` in a directory to the expected exit code: standard output, standard error.
fn run(directory: &tempfile::TempDir, arguments: &[&str], code: i32) -> (String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    let output =
        command.current_dir(directory.path()).args(arguments).assert().code(code).get_output().clone();
    (String::from_utf8(output.stdout).expect("text"), String::from_utf8(output.stderr).expect("text"))
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file can be written");
    }
    directory
}

const ROUTER: &str = include_str!("../../../programs/router.rav");

/// The shipped router, whose `acl` is filled from a dump; its own default is kept or not.
fn router(default: bool) -> String {
    let start = ROUTER.find("table acl:").expect("it has rules");
    let end = start + ROUTER[start..].find("\n}\n").expect("the table ends");
    let own = if default { "default => permit" } else { "" };
    let table =
        "table acl: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8) -> { permit, deny } {";
    format!(
        "{}{table}\n capacity 128\n from \"dump\" as iptables\n {own}{}",
        &ROUTER[..start],
        &ROUTER[end..]
    )
}

const DUMP: &str = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 10.9.0.0/16 -j ACCEPT\nCOMMIT\n";

#[test]
fn a_dump_that_drops_does_not_open_a_router() {
    let files = directory(&[("dump", DUMP), ("own.rav", &router(true)), ("free.rav", &router(false))]);
    let (_, told) = run(&files, &["check", "own.rav"], 1);
    for part in [
        "dump: line 2: the chain FORWARD has the policy DROP, and the program gives table `acl` the default `permit`",
        "take `default => …` out of the program",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let (printed, _) = run(&files, &["check", "free.rav"], 0);
    let wanted = "table `acl` has 1 line of dump; what no entry fits finds `deny`: the chain FORWARD has the policy DROP (dump:2)";
    assert!(printed.contains(wanted), "{printed}");
    let (printed, _) = run(&files, &["check", "free.rav", "--json"], 0);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(document["programs"][0]["filled"][0]["default"], "deny");
    let accept = directory(&[("dump", &DUMP.replace("DROP", "ACCEPT")), ("own.rav", &router(true))]);
    run(&accept, &["check", "own.rav"], 0);
}

const FIREWALL: &str = "// Lets through what a dump permits.
import std.net.{ethernet, ipv4}
table acl: rules(src: ip4, in_port: port) -> { permit, deny } {
    capacity 64
    from \"dump\" as iptables interfaces { eth0 = 2, \"eth1\" = 1 }
}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet else => drop other }
}
decoder packet(ip: ipv4) {
    match acl[ip.src, in_port] {
        some permit => flood
        some deny => drop denied
        none => flood
    }
}
test \"the policy of the chain decides what no line fits, and names are ports\" {
    ports 2
    packet 2 { ethernet / ipv4(src 10.9.0.1) } expect flood
    packet 1 { ethernet / ipv4(src 10.9.0.1) } expect drop denied
    packet 1 { ethernet / ipv4(src 10.8.0.1) } expect flood
    packet 2 { ethernet / ipv4(src 10.7.0.1) } expect drop denied
}
";

const WITH_INTERFACES: &str = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -s 10.8.0.0/16 -i eth1 -j ACCEPT\n-A FORWARD -s 10.9.0.0/16 -i eth0 -j ACCEPT\nCOMMIT\n";

#[test]
fn policy_and_interfaces_of_a_dump_decide_on_every_back_end() {
    let files = directory(&[("dump", WITH_INTERFACES), ("firewall.rav", FIREWALL)]);
    let (printed, _) = run(&files, &["test", "firewall.rav"], 0);
    assert!(printed.contains("3 passed, 0 failed"), "{printed}");
    for (from, line, what) in [
        ("\"eth1\" = 1", 3, "the interface `eth1` is bound to no port"),
        ("eth0 = 2,", 4, "the interface `eth0` is bound to no port"),
    ] {
        let files = directory(&[("dump", WITH_INTERFACES), ("firewall.rav", &FIREWALL.replace(from, ""))]);
        let (_, told) = run(&files, &["check", "firewall.rav"], 1);
        assert!(told.contains(&format!("dump: line {line}")) && told.contains(what), "{told}");
    }
}

#[test]
fn a_gateway_binds_interfaces_and_takes_the_policy_of_the_file() {
    let gateway = |more: &str| {
        format!(
            "program = \"firewall.rav\"\n[[port]]\ninterface = \"lan0\"\n[[port]]\ninterface = \"eth1\"\n\
             [[table]]\nname = \"acl\"\nfrom = \"other\"\nas = \"iptables\"\n{more}"
        )
    };
    let program = FIREWALL
        .replace("from \"dump\" as iptables interfaces { eth0 = 2, \"eth1\" = 1 }", "default => permit");
    let other = WITH_INTERFACES.replace("eth0", "lan0");
    let files = directory(&[("other", &other), ("firewall.rav", &program), ("g.toml", &gateway(""))]);
    let (printed, _) = run(&files, &["check", "g.toml"], 0);
    assert!(printed.contains("table `acl` has 2 lines of"), "{printed}");
    assert!(printed.contains("finds `deny`: the chain FORWARD has the policy DROP ("), "{printed}");
    let bound = gateway("interfaces = { lan0 = 2 }\n");
    let files = directory(&[("other", &other), ("firewall.rav", &program), ("g.toml", &bound)]);
    let (_, told) = run(&files, &["check", "g.toml"], 1);
    assert!(told.contains("line 3") && told.contains("the interface `eth1` is bound to no port"), "{told}");
}

#[test]
fn a_file_without_a_policy_leaves_the_default_that_another_file_gave() {
    let gateway = "program = \"firewall.rav\"\n[[port]]\ninterface = \"lan0\"\n[[port]]\ninterface = \"eth1\"\n\
                   [[table]]\nname = \"acl\"\nfrom = \"other\"\n";
    let other = "(10.0.0.0/8, _) => deny\n";
    let files =
        [("dump", WITH_INTERFACES), ("firewall.rav", FIREWALL), ("other", other), ("g.toml", gateway)];
    let files = directory(&files);
    let (printed, _) = run(&files, &["check", "g.toml"], 0);
    let kept = "finds `deny`: the chain FORWARD has the policy DROP (dump:2)";
    assert!(printed.contains("table `acl` has 1 line of") && printed.contains(kept), "{printed}");
}

#[test]
fn entries_of_a_file_that_are_never_found_are_told_at_their_lines() {
    let dump = |count: usize| {
        let lines = (0..count).map(|host| format!("-A FORWARD -s 10.9.0.{host}/32 -i eth0 -j DROP\n"));
        DUMP.replace("COMMIT\n", "") + &lines.collect::<String>() + "COMMIT\n"
    };
    let files = directory(&[("dump", &dump(61)), ("firewall.rav", FIREWALL)]);
    let (printed, told) = run(&files, &["check", "firewall.rav"], 0);
    assert!(printed.contains("it runs, with 21 warnings"), "{printed}");
    assert!(told.contains("61 entries of `acl` are never found, of which 20 are told"), "{told}");
    for part in [
        "dump:4:1",
        "dump:23:1",
        "3 | -A FORWARD -s 10.9.0.0/16 -j ACCEPT",
        "-A FORWARD -s 10.9.0.7/32 -i eth0 -j DROP",
        "for example for src 10.9.0.7",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let (_, told) = run(&files, &["check", "firewall.rav", "--format", "short"], 0);
    assert_eq!(told.matches("W0409").count(), 21, "{told}");
    let files = directory(&[("dump", &dump(20)), ("firewall.rav", FIREWALL)]);
    let (printed, told) = run(&files, &["check", "firewall.rav"], 0);
    assert!(printed.contains("with 20 warnings") && !told.contains("of which"), "{printed}{told}");
    let own = FIREWALL.replace("as iptables interfaces { eth0 = 2, \"eth1\" = 1 }", "");
    let entries = "(10.9.0.0/16, _) => permit,\n\n(10.9.1.0/24, 1) => deny, (10.8.0.0/16, _) => deny\n(10.8.0.1, 2) => deny\n";
    let files = directory(&[("dump", entries), ("firewall.rav", &own)]);
    let (_, told) = run(&files, &["check", "firewall.rav"], 0);
    assert!(told.contains("dump:3:1") && told.contains("dump:4:1") && !told.contains("dump:2:1"), "{told}");
}
