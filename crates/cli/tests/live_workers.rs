//! Gateways with several workers, and programs that take over under load, between hosts in network namespaces
//! of their own.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

#[test]
fn hosts_reach_each_other_through_several_workers() {
    let Some(mut net) = Net::new("hosts_reach_each_other_through_several_workers") else { return };
    net.serve_ports(&program("mac_switch.rav"), &format!("workers = 3\nstate = \"per-worker\"\n{PORTS}"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    for direction in [&["-P", "8"][..], &["-P", "8", "-R"]] {
        let report = net.tcp("10.0.0.2", direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 10_000_000, "only {bytes} bytes came over: {report}");
    }
    let reload = net.ask(&["reload"]);
    assert!(reload["done"].as_str().is_some_and(|text| text.contains("took over")), "{reload}");
    let now = net.ask(&["show", "tables", "--total"])["now"].clone();
    assert_eq!((&now["workers"], &now["generation"]), (&3.into(), &2.into()));
    let hosts = now["report"]["tables"]["hosts"]["entries"].as_u64().unwrap_or(0);
    assert!((2..=6).contains(&hosts), "every worker has learned hosts for itself: {hosts}");
    net.stop();
}

#[test]
fn a_program_that_remembers_needs_a_word_for_several_workers() {
    let Some(net) = Net::new("a_program_that_remembers") else { return };
    let file = net.path("gateway.toml");
    let path = program("mac_switch.rav");
    fs::write(&file, format!("program = \"{}\"\nworkers = 2\n{PORTS}", path.display()))
        .expect("can be written");
    for check in [&["--check"][..], &[]] {
        let output = net.ravelin(&[&["serve", &file.display().to_string()], check].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("line 2, column 11: with 2 workers each has table `hosts` for itself"),
            "{errors}"
        );
    }
}

/// UDP at a steady rate, while another program takes over ten times a second: none of the datagrams is lost
/// in the gateway, none overtakes another.
#[test]
fn no_datagram_is_lost_or_overtaken_while_programs_take_over() {
    let Some(mut net) = Net::new("no_datagram_is_lost_or_overtaken") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    let server = net
        .at("b", "timeout", &["60", "iperf3", "-s", "-1", "-J"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("iperf3 runs");
    thread::sleep(Duration::from_millis(500));
    let load = ["30", "iperf3", "-c", "10.0.0.2", "-u", "-b", "20M", "-l", "200", "-t", "5", "-w", "4M"];
    let mut client = net.at("a", "timeout", &load).stdout(Stdio::null()).spawn().expect("iperf3 runs");
    let mut programs = 0;
    while client.try_wait().expect("is known").is_none() {
        let began = Instant::now();
        net.ask(&["reload"]);
        programs += 1;
        thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
    }
    assert!(client.wait().expect("ends").success());
    let output = server.wait_with_output().expect("ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(programs >= 5, "{programs} programs took over");
    let stream = &report["end"]["streams"][0]["udp"];
    assert_eq!(stream["out_of_order"], 0, "{stream}");
    // On a busy machine the receiver may be too slow, or the gateway not on a processor for longer than its
    // ring lasts: both are counted.
    let snmp = String::from_utf8_lossy(&net.run("b", "cat", &["/proc/net/snmp"]).stdout).into_owned();
    let udp: Vec<&str> = snmp.lines().filter_map(|line| line.strip_prefix("Udp: ")).collect();
    let column = udp[0].split(' ').position(|name| name == "RcvbufErrors").expect("is counted");
    let at_receiver: u64 =
        udp[1].split(' ').nth(column).and_then(|count| count.parse().ok()).expect("a number");
    let ports = net.ask(&["show", "ports", "--total"])["now"]["ports"].clone();
    let in_ring = |port: usize| ports[port]["since_attached"]["ring_full"].as_u64().expect("is counted");
    let elsewhere = at_receiver + in_ring(0) + in_ring(1);
    let lost = stream["lost_packets"].as_u64().expect("a number");
    assert!(lost <= elsewhere, "{lost} datagrams are lost, of which {elsewhere} elsewhere: {stream}");
    net.stop();
}
