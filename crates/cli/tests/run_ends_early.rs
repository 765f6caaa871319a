//! Runs that end before their capture does, or cannot write all that leaves: what had run by then is
//! reported.

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn ravelin() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

/// A capture of 300 packets.
fn capture(directory: &tempfile::TempDir) -> PathBuf {
    let path = directory.path().join("traffic.pcap");
    let made = ravelin().args(["generate", "--packets", "300", "--seed", "7", "-o"]).arg(&path).status();
    assert!(made.expect("runs").success());
    path
}

#[test]
fn ctrl_c_ends_a_run_with_the_account_so_far_and_whole_captures() {
    let directory = tempfile::tempdir().expect("a directory");
    let bytes = fs::read(capture(&directory)).expect("was made");
    let out = directory.path().join("sent");
    let mut child = ravelin()
        .args(["run", "programs/mac_switch.rav", "--in", "-", "--json", "--out"])
        .arg(&out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    // The records of a capture without end; it ends when nobody reads it any more.
    let writer = std::thread::spawn(move || {
        let (header, records) = bytes.split_at(24);
        let mut written = input.write_all(header);
        while written.is_ok() {
            written = input.write_all(records);
        }
    });
    // Its output is there once it runs.
    let begun = || fs::metadata(out.join("dropped.pcapng")).is_ok_and(|file| file.len() > 1_000_000);
    while !begun() {
        assert!(child.try_wait().expect("can be asked").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("runs").success());
    let output = child.wait_with_output().expect("ends");
    writer.join().expect("ends too");
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let received = report["received"]["packets"].as_u64().expect("a number");
    let told = report["error"]["message"].as_str().expect("a message");
    assert!(received > 0 && told.starts_with("interrupted"), "{report}");
    // Every record that was begun is whole.
    let files = fs::read_dir(&out).expect("is there").map(|entry| entry.expect("a file").path());
    let mut records = 0;
    for file in files {
        let mut capture =
            captures::Capture::open(fs::File::open(&file).expect("is there")).expect("a capture");
        while capture.next().expect("whole records").is_some() {
            records += 1;
        }
    }
    let left = |what: &str| report[what]["packets"].as_u64().expect("a number");
    let dropped: u64 = report["drops"].as_object().expect("reasons").values().filter_map(Value::as_u64).sum();
    assert_eq!(records, left("transmitted") + dropped);
}

#[test]
fn a_full_disk_is_named_behind_the_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = capture(&directory);
    let out = directory.path().join("sent");
    fs::create_dir(&out).expect("can be made");
    // Every write to this device finds no room (full(4)).
    std::os::unix::fs::symlink("/dev/full", out.join("port1.pcapng")).expect("can be made");
    let run = |json: &[&str]| {
        let mut command = ravelin();
        command.args(["run", "programs/hub.rav", "--in"]).arg(&path).arg("--out").arg(&out).args(json);
        command.output().expect("runs")
    };
    let output = run(&[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(text.contains("What happened"), "{text}");
    assert!(errors.contains("port1.pcapng: No space left on device"), "{errors}");
    let report: Value = serde_json::from_slice(&run(&["--json"]).stdout).expect("one document");
    assert_eq!(report["received"]["packets"], 300);
    assert!(report["error"]["message"].as_str().expect("a message").contains("port1.pcapng"));
}
