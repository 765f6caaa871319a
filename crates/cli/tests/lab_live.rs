//! The experiments over network interfaces run, and answer for everybody who was to take part.

use serde_json::Value;
use std::process::Command;

fn lab(arguments: &[&str]) -> Option<Value> {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"))
        .args(["lab"])
        .args(arguments)
        .args(["--json"])
        .output()
        .expect("ravelin runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no networks can be made here") {
        eprintln!("not run, since networks cannot be made here: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn every_gateway_is_measured_or_named_as_absent() {
    let gateways = ["wire over af_packet", "router over af_packet", "Linux routing"];
    let named = gateways.iter().flat_map(|name| ["--gateway", name]);
    let arguments: Vec<&str> =
        ["forwarding", "--rounds", "1", "--seconds", "0.2"].into_iter().chain(named).collect();
    let Some(report) = lab(&arguments) else { return };
    let rows = report["rows"].as_array().expect("rows");
    let mode = report["machine"]["mode"].as_str().expect("text");
    assert!(mode.ends_with("absent: nobody"), "{mode}");
    for case in ["TCP with offloads on", "TCP with offloads off", "UDP of 64 bytes", "ping"] {
        for program in ["wire", "router"] {
            let found = rows.iter().find(|row| {
                let name = row["case"].as_str().unwrap_or_default();
                name.starts_with(case) && name.contains(program) && row["other"]["name"] == "Linux routing"
            });
            let row = found.unwrap_or_else(|| panic!("no row for {case}, {program}: {report}"));
            assert!(
                row["ours"]["median"].as_f64() > Some(0.0) && row["other"]["median"].as_f64() > Some(0.0),
                "{row}"
            );
        }
    }
}
