//! Devices on the command line: the doctor's report, and back ends that are not there.

use assert_cmd::Command;
use serde_json::Value;

fn ravelin() -> Command {
    Command::cargo_bin("ravelin").expect("the binary is built")
}

#[test]
fn the_doctor_tries_every_device_and_says_what_is_missing() {
    let output = ravelin().args(["doctor", "gpu", "--json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let parts = report["parts"].as_array().expect("it has parts");
    assert_eq!(parts.len(), 3);
    for part in parts {
        assert_ne!(part["found"].is_null(), part["missing"].is_null(), "{part}");
        assert!(part["missing"].as_str().is_none_or(|missing| missing.contains(": ")), "{part}");
    }
    let devices = report["devices"].as_array().expect("it has devices");
    let processor = devices.iter().find(|device| device["accelerator"] == false).expect("there is PoCL");
    assert_eq!(processor["back_end"], "opencl");
    assert!(processor["packets"].as_u64() > Some(50_000) && processor["wrong"] == 0, "{processor}");
    assert!(processor["round_trip_median_us"].as_f64() > Some(0.0), "{processor}");
    assert!(processor["memory_bytes"].as_u64() > Some(1 << 28), "{processor}");
}

#[test]
fn a_device_that_is_not_there_is_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let capture = folder.path().join("in.pcap");
    let made =
        ravelin().args(["generate", "--preset", "sample1", "--packets", "100"]).output().expect("it runs");
    std::fs::write(&capture, made.stdout).expect("it can be written");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/firewall.rav");
    let run = |back_end: &str| {
        let mut command = ravelin();
        // A folder without drivers, so that no device is found by OpenCL.
        command.env("OCL_ICD_VENDORS", folder.path()).args(["run", program, "--back-end", back_end, "--in"]);
        command.arg(&capture).output().expect("it runs")
    };
    let opencl = run("opencl");
    let sentence = String::from_utf8_lossy(&opencl.stderr).into_owned();
    assert_eq!(opencl.status.code(), Some(1), "{sentence}");
    assert!(sentence.contains("OpenCL") && sentence.contains("install"), "{sentence}");
    let cuda = run("cuda");
    let sentence = String::from_utf8_lossy(&cuda.stderr).into_owned();
    let right = match cuda.status.code() {
        Some(0) => true,
        code => code == Some(1) && sentence.contains("CUDA") && !sentence.contains("panicked"),
    };
    assert!(right, "{sentence}");
    assert_eq!(run("auto").status.code(), Some(0));
}
