//! What is to be known about the graphics card of a machine, measured by a binary that may have been built
//! elsewhere: `ravelin lab gpu`, with the files into `docs/results/`. A machine without an NVIDIA device is
//! told so, and nothing is written.

use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the files go.
const RESULTS: &str = "docs/results";
/// The binary, unless another one is named.
const BINARY: &str = "target/release/ravelin";
/// Seconds that it may take: eight minutes with some room for what begins late.
const BUDGET: &str = "450";
/// What there is where a driver of NVIDIA's runs: on Linux itself, and on Linux within Windows.
const NODES: [&str; 2] = ["/dev/nvidiactl", "/dev/dxg"];

/// Measures the device, if there is one. False, if a program did something else there than the interpreter.
///
/// # Errors
/// The arguments are wrong, or there may be a device but no binary to ask.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    let binary = match arguments {
        [] => root.join(BINARY),
        ["--binary", path] => PathBuf::from(path),
        _ => bail!("`cargo xtask gpu [--binary PATH]` takes nothing else"),
    };
    if !binary.is_file() {
        if !NODES.iter().any(|node| Path::new(node).exists()) {
            println!(
                "no NVIDIA device: there is no driver's node ({}); nothing is measured",
                NODES.join(", ")
            );
            return Ok(true);
        }
        bail!(
            "there is no {}: build it by `cargo build --release -p cli`, or name one by --binary",
            binary.display()
        );
    }
    let asked = Command::new(&binary).args(["doctor", "gpu", "--json"]).output();
    let asked = asked.with_context(|| format!("cannot run {}", binary.display()))?;
    let report: Value = serde_json::from_slice(&asked.stdout)
        .with_context(|| format!("{} doctor gpu --json does not answer in JSON", binary.display()))?;
    let back_end = match usable(&report) {
        Ok(back_end) => back_end,
        Err(why) => {
            println!("no NVIDIA device that can be used; nothing is measured: {why}");
            return Ok(true);
        }
    };
    let mut command = Command::new(&binary);
    command.args(["lab", "gpu", "--device", back_end, "--budget", BUDGET, "--out"]).arg(root.join(RESULTS));
    let status = command.status().with_context(|| format!("cannot run {}", binary.display()))?;
    Ok(status.success())
}

/// By which back end an NVIDIA device can be used; CUDA before OpenCL.
fn usable(report: &Value) -> Result<&'static str, String> {
    let devices = report["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_nvidia = |device: &&Value| {
        let name = device["name"].as_str().unwrap_or_default();
        device["back_end"] == "cuda" || device["accelerator"] == true && name.contains("NVIDIA")
    };
    let found: Vec<&Value> = devices.iter().filter(is_nvidia).collect();
    for back_end in ["cuda", "opencl"] {
        if found.iter().any(|device| device["back_end"] == back_end && device["failure"].is_null()) {
            return Ok(back_end);
        }
    }
    let failures = found.iter().filter_map(|device| device["failure"].as_str());
    let parts = report["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let missing = parts.iter().filter_map(|part| part["missing"].as_str());
    let said: Vec<&str> = failures.chain(missing).collect();
    Err(if said.is_empty() { "the doctor knows none".to_owned() } else { said.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("xtask-gpu-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder can be made");
            Folder(path)
        }

        /// A binary whose doctor says this, and which notes down what else it is asked for.
        fn binary(&self, report: &str, code: u8) -> String {
            let path = self.0.join("ravelin");
            let notes = self.0.join("notes").display().to_string();
            let text = format!(
                "#!/bin/sh\nif [ \"$1\" = doctor ]; then echo '{report}'; else echo \"$@\" > '{notes}'; exit {code}; fi\n"
            );
            // Another process writes it: what this one opens for writing, a process that another test starts
            // at that moment holds open as well, and then it cannot be run.
            let write = r#"printf %s "$1" > "$2" && chmod 755 "$2""#;
            let mut shell = Command::new("sh");
            let written = shell.args(["-c", write, "sh", &text]).arg(&path).status();
            assert!(written.expect("a shell runs").success());
            path.display().to_string()
        }

        fn files(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("it can be read");
            let mut names: Vec<String> = entries
                .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn without_an_nvidia_device_nothing_is_run_and_nothing_written() {
        let folder = Folder::new("none");
        let others = [
            r#"{"parts":[{"part":"CUDA driver","found":null,"missing":"there is no CUDA driver: install it"}],"devices":[]}"#,
            r#"{"parts":[],"devices":[{"back_end":"opencl","name":"cpu (PoCL)","accelerator":false,"failure":null}]}"#,
            r#"{"parts":[],"devices":[{"back_end":"cuda","name":"NVIDIA H200","accelerator":true,"failure":"no compiler"}]}"#,
        ];
        for report in others {
            let binary = folder.binary(report, 0);
            assert!(run(&folder.0, &["--binary", &binary]).expect("it says so"), "{report}");
            assert_eq!(folder.files(), ["ravelin"], "{report}");
        }
        if !NODES.iter().any(|node| Path::new(node).exists()) {
            fs::remove_file(folder.0.join("ravelin")).expect("it is there");
            assert!(run(&folder.0, &[]).expect("it says so"));
            assert!(folder.files().is_empty());
        }
        assert!(run(&folder.0, &["--fast"]).is_err());
    }

    #[test]
    fn with_one_the_lab_is_run_on_it_and_its_end_is_ours() {
        let folder = Folder::new("one");
        let cuda =
            r#"{"parts":[],"devices":[{"back_end":"cuda","name":"H200","accelerator":true,"failure":null}]}"#;
        let opencl = r#"{"parts":[],"devices":[{"back_end":"opencl","name":"NVIDIA H200","accelerator":true,"failure":null}]}"#;
        for (report, back_end, code) in [(cuda, "cuda", 0), (opencl, "opencl", 1)] {
            let binary = folder.binary(report, code);
            assert_eq!(run(&folder.0, &["--binary", &binary]).expect("it runs"), code == 0);
            let notes = fs::read_to_string(folder.0.join("notes")).expect("it was asked");
            let out = folder.0.join(RESULTS).display().to_string();
            assert_eq!(notes.trim(), format!("lab gpu --device {back_end} --budget 450 --out {out}"));
        }
    }
}
