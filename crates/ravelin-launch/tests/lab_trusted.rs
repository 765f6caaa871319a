//! `ravelin lab trusted` measures a gateway as one process, split into confined ones, and with its router in
//! a container or a virtual machine; `ravelin lab availability` what disturbs it.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The report of an experiment; `None` where it cannot be run here.
fn report(arguments: &[&str]) -> Option<Value> {
    let ravelin = Path::new(env!("CARGO_BIN_EXE_ravelin-launch")).with_file_name("ravelin");
    assert!(
        ravelin.exists(),
        "{} is missing: `cargo build -p cli -p redteam && cargo build -p ravelin-core` makes it",
        ravelin.display()
    );
    let output = Command::new(ravelin).arg("lab").args(arguments).arg("--json").output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no networks can be made here") || errors.contains("iperf3 is not installed") {
        eprintln!("not run: {errors}");
        return None;
    }
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {errors}"));
    assert!(output.status.success(), "{errors}{report}");
    Some(report)
}

#[test]
fn a_stream_goes_on_whatever_happens_around_the_core() {
    let arguments =
        ["availability", "--quick", "--rounds", "1", "--seconds", "1", "--gateway", "T1 with bytecode"];
    let Some(report) = report(&arguments) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let ratios = rows.iter().filter(|row| row["unit"] == "times");
    let ratios: Vec<_> = ratios.map(|row| row["ours"]["median"].as_f64().unwrap_or(0.0)).collect();
    assert!(ratios.len() == 10 && ratios.iter().all(|ratio| *ratio > 0.0), "{report}");
}

#[test]
fn a_split_gateway_is_measured_beside_one_process_and_both_beside_linux() {
    let Some(report) = report(&["trusted", "--quick", "--rounds", "1", "--seconds", "1"]) else { return };
    let rows = report["rows"].as_array().expect("rows");
    for way in ["a to b", "b to a", "a to router", "router to a"] {
        for alone in ["a cable", "Linux routing without rules"] {
            if alone == "a cable" && way.contains("router") {
                continue;
            }
            let mut rows = rows.iter().filter(|row| row["case"] == format!("one stream {way}"));
            let row = rows.find(|row| row["other"]["name"] == alone);
            let row = row.unwrap_or_else(|| panic!("{alone}, {way}: {report}"));
            assert!(row["other"]["median"].as_f64() > Some(0.0), "{row}");
        }
        for policy in ["0 pass all", "1 with state, at all ports"] {
            for (ours, beside) in [
                ("one process with native code", "Linux routing without rules"),
                ("one process with bytecode", "Linux routing without rules"),
                ("T0 with native code", "one process with native code"),
                ("T0 with bytecode", "one process with bytecode"),
                ("T1 with native code", "T0 with native code"),
                ("T1 with bytecode", "T0 with bytecode"),
            ] {
                let case = format!("one stream {way}, {policy}, {ours}");
                let row = rows.iter().find(|row| row["case"] == case.as_str());
                let row = row.unwrap_or_else(|| panic!("{case}: {report}"));
                assert_eq!(row["other"]["name"], beside, "{row}");
                let figures = ["ours", "other"].map(|who| row[who]["median"].as_f64().unwrap_or(0.0));
                assert!(figures.iter().all(|figure| *figure > 0.0), "{row}");
            }
        }
    }
}

#[test]
fn a_router_in_a_virtual_machine_is_measured_by_both_links_beside_one_in_a_container() {
    let test = "a_router_in_a_virtual_machine_is_measured";
    let target =
        Path::new(env!("CARGO_BIN_EXE_ravelin-launch")).parent().and_then(Path::parent).expect("a folder");
    let guest = target.join("debian");
    if !guest.join("boot").exists() {
        assert!(std::env::var_os("CI").is_none(), "{test}: `cargo xtask test --only packages` gets a Linux");
        eprintln!("{test}: not run: there is no Linux in {}", guest.display());
        return;
    }
    let quick = ["trusted", "--quick", "--rounds", "1", "--seconds", "1", "--guest"];
    let guest = guest.to_str().expect("a path in UTF-8");
    let gateways = ["--gateway", "T1 with native code", "--gateway", "T2"];
    let Some(report) = report(&[&quick[..], &[guest], &gateways].concat()) else { return };
    let rows = report["rows"].as_array().expect("rows");
    for way in ["a to b", "b to a", "a to router", "router to a"] {
        for policy in ["0 pass all", "1 with state, at all ports"] {
            for link in ["TAP", "vhost-user"] {
                let case = format!("one stream {way}, {policy}, T2 by {link} with native code");
                let row = rows.iter().find(|row| row["case"] == case.as_str());
                let row = row.unwrap_or_else(|| panic!("{case}: {report}"));
                assert_eq!(row["other"]["name"], "T1 with native code", "{row}");
                // A link that carries segments only when they are sent again comes to a thousandth of this.
                assert!(row["ours"]["median"].as_f64() > Some(0.01), "{row}");
            }
        }
    }
}
