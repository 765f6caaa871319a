//! A gateway whose program runs on a device, between two hosts that know nothing of it.
//!
//! The devices are PoCL, an OpenCL driver that runs on the processor, and threads that stand in for one.
//! Where the rights for network namespaces are missing, a test says so and ends.

mod net;

use net::{Net, program};
use std::process::Stdio;

/// Two ports.
const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

#[test]
fn hosts_reach_each_other_through_a_device() {
    let Some(mut net) = Net::new("hosts_reach_each_other_through_a_device") else { return };
    for (back_end, schedule) in [
        ("opencl", "timeout:200us"),
        ("opencl", "batch:2"),
        ("opencl", "cost"),
        ("opencl", "hermes"),
        ("host", "hermes:1"),
        ("host", "deadline:2ms"),
        ("auto", "timeout:1ms:64"),
    ] {
        let case = format!("{back_end}, {schedule}");
        net.serve_with(&program("wire.rav"), PORTS, &["--back-end", back_end, "--schedule", schedule]);
        // With pairs that wait for each other, the second ping brings the first one there.
        let answered = net.pings("10.0.0.2");
        assert!(answered == 20 || schedule == "batch:2" && answered >= 18, "{case}: {answered}");
        if schedule != "batch:2" {
            let bytes = net.tcp("10.0.0.2", &[])["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
            assert!(bytes > 1_000_000, "{case}: only {bytes} bytes came over");
        }
        let report = net.stop();
        if back_end != "auto" {
            let device = &report["device"];
            assert!(device["failure"].is_null(), "{case}: {report}");
            // Threads that stand in for a device are slow: what would be late there is not given to them.
            let least = if schedule.starts_with("timeout") || schedule.starts_with("batch") { 30 } else { 0 };
            assert!(schedule == "cost" || device["finished"].as_u64() > Some(least), "{case}: {report}");
        }
    }
}

#[test]
fn no_ping_is_lost_while_programs_on_a_device_take_over() {
    let Some(mut net) = Net::new("no_ping_is_lost_on_a_device") else { return };
    net.serve_with(&program("mac_switch.rav"), PORTS, &["--back-end", "opencl"]);
    assert_eq!(net.pings("10.0.0.2"), 20);
    let ping = net
        .at("a", "ping", &["-c", "200", "-i", "0.01", "-W", "2", "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ping runs");
    for _ in 0..5 {
        let answer = net.ask(&["reload"]);
        let text = answer["done"].as_str().unwrap_or_default().to_owned();
        assert!(text.ends_with("2 entries went over"), "{text}");
    }
    let output = ping.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("bytes from").count(), 200, "{text}");
    let now = net.ask(&["show", "run", "--total"])["now"].clone();
    assert_eq!(now["generation"], 6);
    assert!(now["report"]["device"]["finished"].as_u64() > Some(0), "{now}");
    let control = net.path("control.sock").display().to_string();
    let shown = net.ravelin(&["show", "run", "--total", "--control", &control]).stdout;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.contains("finished") && shown.contains("did not go to it"), "{shown}");
    // A packet whose steps are wanted goes the processor's way.
    let ping = net.at("a", "ping", &["-c", "40", "-i", "0.05", "10.0.0.2"]).stdout(Stdio::piped()).spawn();
    let trace = net.ravelin(&["trace", "--live", "icmp", "--count", "2", "--control", &control]);
    let steps = String::from_utf8_lossy(&trace.stdout).into_owned();
    assert!(trace.status.success() && steps.contains("hosts"), "{steps}{trace:?}");
    ping.expect("ping runs").wait_with_output().expect("ends");
    net.stop();
}
