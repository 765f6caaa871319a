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

#[test]
fn what_a_device_leaves_to_the_processor_is_said_and_done_there() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (capture, program) = (folder.path().join("in.pcap"), folder.path().join("last.rav"));
    let made =
        ravelin().args(["generate", "--preset", "sample1", "--packets", "500"]).output().expect("it runs");
    std::fs::write(&capture, made.stdout).expect("it can be written");
    // Each packet writes what the next one reads, so no device can finish any.
    const LAST: &str = "register seen: u32\nstart stage all() {\n    set seen = seen +% 1\n    flood\n}\n";
    std::fs::write(&program, LAST).expect("it can be written");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/arp_responder.rav");
    let run = |program: &std::path::Path, back_end: &str| {
        let mut command = ravelin();
        command.args(["run", "--json", "--back-end", back_end, "--in"]).arg(&capture).arg(program);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        (serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON"), said)
    };
    for (program, note) in [(program.as_path(), "register"), (shipped.as_ref(), "made packet")] {
        let (here, quiet) = run(program, "native");
        let (there, said) = run(program, "host");
        assert!(quiet.is_empty() && said.contains("runs on the processor") && said.contains(note), "{said}");
        assert_eq!(here["forwarded"], there["forwarded"]);
        assert_eq!(here["drops"], there["drops"]);
        assert_eq!(there["device"].is_null(), note == "register", "{there}");
    }
}
