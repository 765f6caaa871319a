//! `ravelin lab trusted` measures a gateway as one process and split into confined ones.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
fn a_split_gateway_is_measured_beside_one_process_and_both_beside_linux() {
    let ravelin = Path::new(env!("CARGO_BIN_EXE_ravelin-launch")).with_file_name("ravelin");
    assert!(
        ravelin.exists(),
        "{} is missing: `cargo build -p cli && cargo build -p ravelin-core` makes it",
        ravelin.display()
    );
    let arguments = ["lab", "trusted", "--quick", "--rounds", "1", "--seconds", "1", "--json"];
    let output = Command::new(ravelin).args(arguments).output().expect("ravelin runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no networks can be made here") || errors.contains("iperf3 is not installed") {
        eprintln!("not run: {errors}");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {errors}"));
    let rows = report["rows"].as_array().expect("rows");
    for way in ["a to b", "b to a"] {
        for alone in ["a cable", "Linux routing without rules"] {
            let mut rows = rows.iter().filter(|row| row["case"] == format!("one stream {way}"));
            let row = rows.find(|row| row["other"]["name"] == alone);
            let row = row.unwrap_or_else(|| panic!("{alone}, {way}: {report}"));
            assert!(row["other"]["median"].as_f64() > Some(0.0), "{row}");
        }
        for policy in ["0 pass all", "1 with state, at both ports"] {
            for (ours, beside) in [
                ("one process with native code", "Linux routing without rules"),
                ("one process with bytecode", "Linux routing without rules"),
                ("T0 with native code", "one process with native code"),
                ("T0 with bytecode", "one process with bytecode"),
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
    assert!(output.status.success(), "{errors}");
}
