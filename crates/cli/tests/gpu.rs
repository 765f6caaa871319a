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
    let doctor = ravelin().args(["doctor", "gpu", "--json"]).output().expect("it runs").stdout;
    let found: Value = serde_json::from_slice(&doctor).expect("it is JSON");
    let has_card =
        found["devices"].as_array().is_some_and(|all| all.iter().any(|one| one["accelerator"] == true));
    let (_, said) = run(&program, "auto");
    assert_eq!(said.is_empty(), !has_card, "where there is no device nobody has asked for one: {said}");
}

#[test]
fn all_about_a_device_is_written_into_files_with_what_was_left_out() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../suite/tests/cuda/driver.c");
    for library in ["libcuda.so", "libnvrtc.so"] {
        let mut cc = std::process::Command::new("cc");
        cc.args(["-w", "-O1", "-fPIC", "-shared", "-o"]).arg(folder.path().join(library)).arg(source);
        let Ok(built) = cc.status() else {
            println!("skipped: there is no `cc` (on Debian: apt-get install gcc g++)");
            return;
        };
        assert!(built.success(), "{library} does not build");
    }
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).expect("a folder can be made");
    for name in ["lpm.rav", "mac_switch.rav"] {
        let shipped = format!("{}/../../programs/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(shipped, programs.join(name)).expect("it can be copied");
    }
    let out = folder.path().join("out");
    let mut command = ravelin();
    command.env("LD_LIBRARY_PATH", folder.path()).env("RAVELIN_CUDA_FOLDER", folder.path());
    command.args(["lab", "gpu", "--quick", "--device", "cuda", "--budget", "12", "--out"]).arg(&out);
    let output = command.arg("--programs").arg(&programs).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let written = std::fs::read(out.join("gpu-imitation.json")).expect("it was written");
    let survey: Value = serde_json::from_slice(&written).expect("it is JSON");
    assert_eq!(survey["device"], "Imitation (CUDA 13.0)");
    assert_eq!(survey["wrong"], 0);
    let experiments = survey["experiments"].as_array().expect("there are some");
    let names: Vec<&Value> = experiments.iter().map(|experiment| &experiment["experiment"]).collect();
    assert_eq!(names.first().and_then(|name| name.as_str()), Some("agreement"));
    assert_eq!(names.last().and_then(|name| name.as_str()), Some("crossover"));
    // It is measured unless the machine was too slow for it to begin.
    if let Some(kept) = experiments.iter().find(|experiment| experiment["experiment"] == "persistent") {
        let rows = kept["rows"].as_array().expect("there are rows");
        let word = |row: &&Value| {
            row["case"] == "a word in mapped memory" && row["ours"]["median"].as_f64() > Some(0.0)
        };
        assert_eq!(rows.iter().filter(word).count(), 3, "{rows:#?}");
        let refused: Vec<&Value> =
            rows.iter().filter(|row| row["unit"] != "" && row["ours"].is_null()).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
    let agreement = experiments[0]["rows"].as_array().expect("there are rows");
    let finished = |row: &&Value| row["what"] == "finished by the device";
    let compared = agreement.iter().filter(finished).count();
    // What does not go into twelve seconds is named, on a slow machine also one of the two programs.
    let left_out = survey["left_out"].as_array().expect("there is a list");
    let later = |what: &&Value| what.as_str().is_some_and(|what| what.starts_with("comparing "));
    assert_eq!(compared + left_out.iter().filter(later).count(), 2, "{left_out:?}");
    assert!(compared > 0);
    assert_eq!(survey["compared"].as_u64(), Some(10_000 * compared as u64));
    assert!(survey["took_s"].as_f64() < Some(12.0) || !left_out.is_empty());
    let summary = std::fs::read_to_string(out.join("gpu-imitation.txt")).expect("it was written");
    assert!(summary.contains("0 programs with differences"), "{summary}");
    let page = std::fs::read_to_string(out.join("gpu-imitation.html")).expect("it was written");
    assert!(page.contains("<html"));
    let again = out.join("again.html");
    let report = out.join("gpu-imitation.json");
    ravelin().args(["lab", "--draw"]).arg(report).arg("--html").arg(&again).assert().success();
    let drawn = std::fs::read_to_string(&again).expect("it was written");
    for part in ["<svg", "<tr", "<h2"] {
        assert_eq!(
            drawn.matches(part).count(),
            page.matches(part).count(),
            "{part}: the report is drawn as it was"
        );
    }
    // Without a folder to write to nothing begins.
    assert_eq!(ravelin().args(["lab", "gpu"]).output().expect("it runs").status.code(), Some(2));
}

#[test]
fn warps_go_to_devices_and_a_schedule_without_one_is_told_of() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let capture = folder.path().join("in.pcap");
    let made =
        ravelin().args(["generate", "--preset", "sample1", "--packets", "1000"]).output().expect("it runs");
    std::fs::write(&capture, made.stdout).expect("it can be written");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/mac_switch.rav");
    let run = |back_end: &str| {
        let mut command = ravelin();
        command.args(["run", program, "--json", "--schedule", "hermes:1", "--back-end", back_end, "--in"]);
        let output = command.arg(&capture).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        (report, said)
    };
    let (judge, said) = run("interpreter");
    assert!(judge["device"].is_null() && said.contains("--schedule is for devices"), "{said}");
    let (report, said) = run("auto");
    assert_eq!(report["device"].is_null(), said.contains("--schedule is for devices"), "{said}");
    for back_end in ["host", "opencl"] {
        let (report, said) = run(back_end);
        assert!(!said.contains("--schedule"), "{said}");
        let device = &report["device"];
        let told = ["finished", "handed_back", "run_again", "not_asked"].map(|what| device[what].as_u64());
        assert_eq!(told.iter().flatten().sum::<u64>(), 1000, "{back_end}: {device}");
        assert!(device["handed_over"].as_u64() > Some(0), "{back_end}: {device}");
        assert_eq!((device["given_up"].as_u64(), device["taken_back"].as_u64()), (Some(0), Some(0)));
        for what in ["forwarded", "drops", "tables"] {
            assert_eq!(report[what], judge[what], "{back_end}: {what}");
        }
    }
}
