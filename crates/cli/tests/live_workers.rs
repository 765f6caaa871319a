//! Gateways with several workers, and programs that take over under load, between hosts in network namespaces
//! of their own.

mod net;

use net::udp_stream::UdpStream;
use net::{Net, program, text};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

/// Pings and many streams of TCP pass in both directions.
fn reach_each_other(net: &Net) {
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    for direction in [&["-P", "8"][..], &["-P", "8", "-R"]] {
        let report = net.tcp("10.0.0.2", direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 10_000_000, "only {bytes} bytes came over: {report}");
    }
}

#[test]
fn hosts_reach_each_other_through_several_workers() {
    let Some(mut net) = Net::new("hosts_reach_each_other_through_several_workers") else { return };
    net.serve_ports(&program("mac_switch.rav"), &format!("workers = 3\nstate = \"per-worker\"\n{PORTS}"));
    reach_each_other(&net);
    let reload = net.ask(&["reload"]);
    assert!(reload["done"].as_str().is_some_and(|text| text.contains("took over")), "{reload}");
    let now = net.ask(&["show", "tables", "--total"])["now"].clone();
    assert_eq!((&now["workers"], &now["generation"]), (&3.into(), &2.into()));
    let hosts = now["report"]["tables"]["hosts"]["entries"].as_u64().unwrap_or(0);
    assert!((2..=6).contains(&hosts), "every worker has learned hosts for itself: {hosts}");
    net.stop();
}

/// A program that steers needs no word: both directions of a connection meet at one worker, by whichever
/// they come in.
#[test]
fn connections_pass_through_several_workers_as_through_one() {
    let Some(mut net) = Net::new("connections_pass_through_several_workers_as_through_one") else { return };
    net.serve_ports(&program("stateful.rav"), &format!("workers = 2\n{PORTS}"));
    reach_each_other(&net);
    let report = net.ask(&["show", "tables", "--total"])["now"]["report"].clone();
    let drops = report["drops"].as_object().expect("by reason");
    let of = |reason: &str| drops.get(reason).map_or(0, |count| count.as_u64().expect("a number"));
    for reason in ["no_connection", "unasked", "wrong_port", "tcp_state"] {
        assert_eq!(of(reason), 0, "{reason}: {report}");
    }
    let from_b = text(&net.run("b", "ping", &["-c", "2", "-i", "0.2", "-W", "1", "10.0.0.1"]));
    assert!(from_b.contains(" 0 received"), "nobody outside begins a connection: {from_b}");
    let report = net.ask(&["show", "tables", "--total"])["now"]["report"].clone();
    assert_eq!(report["drops"]["unasked"], 2, "{report}");
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
        let output = net.ravelin(&[&["serve", "--one-process", &file.display().to_string()], check].concat());
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
    let mut stream = UdpStream::begin(&net, "10.0.0.2", 5);
    let mut programs = 0;
    while stream.flows() {
        let began = Instant::now();
        net.ask(&["reload"]);
        programs += 1;
        thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
    }
    assert!(programs >= 5, "{programs} programs took over");
    stream.arrives_whole(&net, &[&|| net.ask(&["show", "ports", "--total"])]);
    net.stop();
}
