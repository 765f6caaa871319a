//! `ravelin naming init` and `naming demo`: the files, and a small internet whose captures are judged by
//! scapy.

mod net;

use assert_cmd::Command;
use net::{binary, installed, text};
use serde_json::Value;
use std::path::Path;

fn init(directory: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args(["naming", "init", &directory.display().to_string(), "--zone", "home.example"]);
    command.args(["--machine", "192.0.2.34", "--public", "eth0", "--pool", "198.51.100.0/29"]);
    command.args(["--known", "198.51.100.2/31", "--unknown", "198.51.100.4/30", "--lan", "eth1"]);
    command.args(["--router", "02:00:5e:00:00:fe", "--lan-address", "10.0.0.1"]);
    command.args(["--lan-network", "10.0.0.0/24"]);
    command
}

/// With IPv6, all of it or nothing.
fn init_with_ipv6(directory: &Path) -> Command {
    let mut command = init(directory);
    command.args(["--pool6", "2001:db8:100::/64", "--lan-network6", "fd00:10::/64"]);
    command
}

#[test]
fn files_of_all_roles_are_right_and_never_written_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let said = init(directory.path()).assert().success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.contains("delegate home.example to ns1.home.example, 192.0.2.34."), "{said}");
    for file in ["waypoint/waypoint.toml", "gateway/gateway.toml"] {
        let path = directory.path().join(file);
        Command::new(binary()).arg("check").arg(&path).assert().success();
    }
    let six = tempfile::tempdir().expect("a directory");
    init_with_ipv6(six.path()).assert().failure();
    init_with_ipv6(six.path()).args(["--lan-address6", "fd00:10::1"]).assert().success();
    for file in ["waypoint/waypoint.toml", "gateway/gateway.toml"] {
        Command::new(binary()).arg("check").arg(six.path().join(file)).assert().success();
    }
    let three = tempfile::tempdir().expect("a directory");
    init(three.path()).args(["--name-server", "192.0.2.53"]).assert().success();
    for file in ["waypoint/waypoint.toml", "gateway/gateway.toml", "name-server/name-server.toml"] {
        Command::new(binary()).arg("check").arg(three.path().join(file)).assert().success();
    }
    // A name server is no waypoint to the programs of the others.
    for (file, peers) in [("waypoint/waypoint.toml", 1), ("gateway/gateway.toml", 1)] {
        let text = std::fs::read_to_string(three.path().join(file)).expect("it is there");
        let (_, name_server) = text.split_once("name = \"ns1\"").expect("it is a peer");
        assert_eq!(name_server.lines().take(4).filter(|line| *line == "packets = false").count(), peers);
    }
    init(six.path()).args(["--name-server", "192.0.2.53", "--shared", "198.51.100.1"]).assert().failure();
    let before = std::fs::read(directory.path().join("waypoint/waypoint.key")).expect("a key");
    init(directory.path()).assert().failure();
    assert_eq!(std::fs::read(directory.path().join("waypoint/waypoint.key")).expect("a key"), before);
}

#[test]
fn programs_that_are_missing_are_all_named_before_anything_is_built() {
    let empty = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(binary());
    let output = command.args(["naming", "demo"]).env("PATH", empty.path()).output().expect("it runs");
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    for name in ["nginx", "sshd", "traceroute", "apt-get install iproute2", "bind9-dnsutils"] {
        assert!(said.contains(name), "{name}: {said}");
    }
}

#[test]
fn every_check_of_the_demonstration_holds_and_a_judge_of_captures_agrees() {
    let test = "every_check_of_the_demonstration_holds_and_a_judge_of_captures_agrees";
    let needed = [
        "nft",
        "nginx",
        "curl",
        "sshd",
        "ssh",
        "ssh-keygen",
        "dig",
        "dnsmasq",
        "iperf3",
        "ping",
        "traceroute",
        "tcpdump",
        "scapy3",
    ];
    if !installed(test, &needed) {
        return;
    }
    if rig::Namespace::new().is_err() {
        eprintln!("{test}: not run, since network namespaces cannot be made here");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let captures = directory.path().join("captures");
    let output = std::process::Command::new(binary())
        .args(["naming", "demo", "--json", "--captures", &captures.display().to_string()])
        .output()
        .expect("ravelin runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let checks = report["checks"].as_array().unwrap_or_else(|| panic!("{}", text(&output)));
    let failed: Vec<&Value> = checks.iter().filter(|check| check["ok"] != true).collect();
    assert!(failed.is_empty() && output.status.success(), "{failed:#?}");
    assert!(checks.len() >= 26, "{report}");

    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/names_judge.py");
    let judged = std::process::Command::new("/usr/bin/python3")
        .arg(judge)
        .arg(&captures)
        .output()
        .expect("python runs");
    let report: Value =
        serde_json::from_slice(&judged.stdout).unwrap_or_else(|_| panic!("{}", text(&judged)));
    for (invariant, least) in [
        ("I1", 50),
        ("I2", 50),
        ("I4", 1_000),
        ("I5", 50),
        ("I5 back", 50),
        ("I6", 1),
        ("I8", 1_000),
        ("I8 quotes", 2),
        ("F9", 4),
        ("F9 translated", 5),
        ("I1 of IPv6", 50),
        ("I4 of IPv6", 1_000),
        ("I5 back of IPv6", 50),
        ("I8 of IPv6", 1_000),
        ("I8 quotes of IPv6", 3),
    ] {
        let looked = report["looked"][invariant].as_u64().unwrap_or(0);
        assert!(looked >= least, "{invariant} was looked at {looked} times: {report}");
    }
    assert_eq!(report["wrong"].as_object().map(serde_json::Map::len), Some(0), "{report}");
}
