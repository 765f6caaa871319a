//! What stands between a program and a port, seen from the hosts on both sides.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Both ports; the second is as these lines say.
fn second(lines: &str) -> String {
    format!("[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n{lines}\n")
}

/// The round trips of pings from `a` to `b`, in milliseconds, after one that lets the hosts find each other.
fn round_trips(net: &Net, count: usize) -> Vec<f64> {
    net.run("a", "ping", &["-c", "1", "-W", "5", "10.0.0.2"]);
    let count = count.to_string();
    let output = net.run("a", "ping", &["-c", &count, "-i", "0.01", "-W", "5", "-w", "30", "10.0.0.2"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times = text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    times.collect()
}

/// Only what a test sends is on the lines from now on.
fn quiet(net: &Net) {
    for (host, interface) in [("a", "eth0"), ("b", "eth0"), ("g", "to-a"), ("g", "to-b")] {
        let setting = format!("net.ipv6.conf.{interface}.disable_ipv6=1");
        assert!(net.run(host, "sysctl", &["-q", "-w", &setting]).status.success());
    }
    for (host, other) in [("a", "2"), ("b", "1")] {
        let (address, link) = (format!("10.0.0.{other}"), format!("02:00:00:00:00:0{other}"));
        let known = ["neighbour", "replace", &address, "lladdr", &link, "dev", "eth0"];
        assert!(net.run(host, "ip", &known).status.success());
    }
}

/// What the gateway counted, once nothing waits any more.
fn at_rest(net: &Net) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let picture = net.ask(&["show", "ports", "--total"]);
        if port_count(&picture, 2, "waiting") == 0 {
            return picture;
        }
        assert!(Instant::now() < end, "something waits for ever: {picture}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn port_count(picture: &Value, port: usize, what: &str) -> u64 {
    picture["now"]["ports"][port - 1][what].as_u64().unwrap_or_else(|| panic!("{what} in {picture}"))
}

fn sent_by(picture: &Value, port: usize) -> u64 {
    picture["now"]["report"]["ports"][port - 1]["transmitted"].as_u64().expect("a count")
}

/// How many packets the interface of host `b` has received so far.
fn seen_by_b(net: &Net) -> u64 {
    let output = net.run("b", "cat", &["/sys/class/net/eth0/statistics/rx_packets"]);
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[test]
fn a_delay_is_waited_for_in_each_direction() {
    let Some(mut net) = Net::new("a_delay_is_waited_for") else { return };
    net.serve_ports(
        &program("mac_switch.rav"),
        &second("impair = { delay = \"20ms\", direction = \"both\" }"),
    );
    let times = round_trips(&net, 20);
    assert_eq!(times.len(), 20, "nothing is lost");
    assert!(times.iter().all(|&time| time >= 40.0), "{times:?}");
    let ports = net.ask(&["show", "ports", "--total"]);
    let mode = ports["now"]["ports"][1]["mode"].as_str().unwrap_or_default().to_owned();
    assert!(mode.ends_with("impaired in both directions"), "{mode}");
    net.stop();
}

#[test]
fn every_packet_that_impairment_takes_or_makes_is_counted() {
    let Some(mut net) = Net::new("every_packet_that_impairment") else { return };
    quiet(&net);
    let lines =
        "impair = { delay = \"1ms\", jitter = \"500us\", loss = \"20%\", duplicate = \"10%\", seed = 3 }";
    net.serve_ports(&program("hub.rav"), &second(lines));
    let before = seen_by_b(&net);
    let start = net.ask(&["show", "ports", "--total"]);
    net.run("a", "ping", &["-c", "500", "-i", "0.002", "-W", "1", "10.0.0.2"]);
    let end = at_rest(&net);
    let grown = |what: &str| port_count(&end, 2, what) - port_count(&start, 2, what);
    let sent = sent_by(&end, 2) - sent_by(&start, 2);
    assert_eq!(sent, 500);
    assert_eq!(seen_by_b(&net) - before, sent - grown("impaired") + grown("doubled"));
    // Five deviations around what was asked for.
    assert!((55..=145).contains(&grown("impaired")), "{end}");
    assert!((17..=83).contains(&grown("doubled")), "{end}");
    net.stop();
}

#[test]
fn a_shaped_port_lets_no_more_through_than_its_rate() {
    let Some(mut net) = Net::new("a_shaped_port") else { return };
    net.serve_ports(
        &program("mac_switch.rav"),
        &second("shape = { rate = \"20Mbit\", burst = \"16KiB\", queue = \"128KiB\" }"),
    );
    net.wait_for_pings();
    // Offloads are on: what counts are the packets that segments become.
    let start = Instant::now();
    let report = net.tcp("10.0.0.2", &[]);
    let seconds = start.elapsed().as_secs_f64();
    let bytes = report["end"]["sum_received"]["bytes"].as_f64().unwrap_or(0.0);
    assert!(bytes <= 20e6 / 8.0 * seconds + f64::from(16 << 10), "{bytes} bytes in {seconds} s");
    assert!(bytes > 500_000.0, "only {bytes} bytes came over: {report}");
    net.stop();
}

#[test]
fn a_shaped_port_counts_what_its_queue_does_not_hold() {
    let Some(mut net) = Net::new("a_shaped_port_counts") else { return };
    quiet(&net);
    net.serve_ports(
        &program("hub.rav"),
        &second("shape = { rate = \"100kbit\", burst = \"2KiB\", queue = \"4KiB\" }"),
    );
    let (before, start) = (seen_by_b(&net), net.ask(&["show", "ports", "--total"]));
    net.run("a", "ping", &["-c", "200", "-s", "958", "-i", "0.002", "-W", "1", "10.0.0.2"]);
    let end = at_rest(&net);
    let (sent, shaped) = (sent_by(&end, 2) - sent_by(&start, 2), port_count(&end, 2, "shaped"));
    assert_eq!(sent, 200);
    assert!(shaped > 0, "200 KB within some seconds do not fit");
    assert_eq!(seen_by_b(&net) - before, sent - shaped);
    net.stop();
}

#[test]
fn a_trace_shows_what_passed_and_which_way() {
    let Some(mut net) = Net::new("a_trace_shows") else { return };
    if Command::new("tshark").arg("--version").output().is_err() {
        return eprintln!("a_trace_shows: not run, since tshark is not installed");
    }
    let file = net.path("to-b.pcapng");
    net.serve_ports(&program("mac_switch.rav"), &second(&format!("trace = \"{}\"", file.display())));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
    let seen = |filter: &str| {
        let output =
            Command::new("tshark").arg("-r").arg(&file).args(["-Y", filter]).output().expect("tshark runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout.iter().filter(|&&byte| byte == b'\n').count()
    };
    let icmp = |direction, kind| {
        seen(&format!("frame.packet_flags_direction == {direction} && icmp.type == {kind}"))
    };
    let (incoming, outgoing) = (1, 2);
    assert_eq!((icmp(outgoing, 8), icmp(incoming, 0)), (20, 20), "requests go to b, answers come from there");
    assert_eq!((icmp(incoming, 8), icmp(outgoing, 0)), (0, 0));
    assert_eq!(seen("frame.interface_name == \"to-b\""), seen("frame"));
}
