//! What the doctor says of this machine and trusted gateways.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::process::{Command, Output};

/// The doctor, asked about trust.
fn doctor(arguments: &[&str]) -> Output {
    let program = assert_cmd::cargo::cargo_bin!("ravelin");
    Command::new(program).args(["doctor", "trust"]).args(arguments).output().expect("it runs")
}

#[test]
fn the_doctor_tries_each_layer_and_says_which_tier_is_reached_and_what_the_next_one_lacks() {
    let output = doctor(&["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let layers = report["layers"].as_array().expect("a list");
    let names: Vec<&str> = layers.iter().filter_map(|layer| layer["layer"].as_str()).collect();
    let all = [
        "user-namespace",
        "network-namespace",
        "mount-namespace",
        "ipc-namespace",
        "pid-namespace",
        "uts-namespace",
        "no-new-privileges",
        "capabilities",
        "landlock",
        "non-dumpable",
        "limits",
        "seccomp",
    ];
    assert_eq!(names, all);
    let missing = layers.iter().filter(|layer| !layer["missing"].is_null()).count();
    assert_eq!(report["tiers"][0]["reached"], missing == 0, "{report}");
    let tiers = report["tiers"].as_array().expect("a list");
    let reached = tiers.iter().take_while(|tier| tier["reached"] == true).count();
    assert!(tiers[reached..].iter().all(|tier| tier["reached"] == false), "{report}");
    let highest = reached.checked_sub(1).map_or(Value::Null, |last| tiers[last]["tier"].clone());
    assert_eq!(report["reaches"], highest);
    assert!(!tiers[reached]["missing"].as_array().expect("a list").is_empty(), "{report}");
    assert_eq!(output.status.code(), Some(i32::from(reached == 0)));
    // Where the checks have to be complete, the tests of confined processes run, so that the layers are
    // there.
    if std::env::var("CI").as_deref() == Ok("true") {
        assert_eq!(missing, 0, "{report}");
    }

    let text = String::from_utf8(doctor(&[]).stdout).expect("text");
    let said = format!("\nThis machine reaches {}.", report["reaches"].as_str().unwrap_or("no tier"));
    assert!(text.contains(&said), "{text}");
    for lack in tiers.iter().flat_map(|tier| tier["missing"].as_array().expect("a list")) {
        assert!(text.contains(lack.as_str().expect("text")), "{text}");
    }
}

#[test]
fn a_program_on_the_path_is_what_a_virtual_machine_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let look = || {
        let program = assert_cmd::cargo::cargo_bin!("ravelin");
        let output =
            Command::new(program).args(["doctor", "trust", "--json"]).env("PATH", folder.path()).output();
        let report: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("it is JSON");
        report["tiers"][2]["missing"].as_array().expect("a list").len()
    };
    assert_eq!(look(), 1);
    let qemu = folder.path().join("qemu-system-x86_64");
    std::fs::write(&qemu, "").expect("it is written");
    assert_eq!(look(), 1, "a file that is no program");
    std::fs::remove_file(&qemu).expect("it is there");
    std::os::unix::fs::symlink("/bin/true", &qemu).expect("a link");
    assert_eq!(look(), 0);
}
