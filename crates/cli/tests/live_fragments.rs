//! Fragments through running gateways, between hosts in network namespaces of their own: in whatever order
//! they come, their receiver gets the datagram that was sent.

mod net;

use net::{Net, installed, program, text};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";
const B: &str = "02:00:00:00:00:02";

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/fragments.py").display().to_string()
}

/// Sends a datagram from `a` in this order of its fragments.
fn send(net: &Net, order: &str, from: &str, to: &str) {
    let output = net.run("a", "python3", &[&script(), "send", "eth0", order, from, to, B]);
    assert!(output.status.success(), "{}", text(&output));
}

/// A receiver at `b` that waits for so many datagrams; it is ready.
fn receiver(net: &Net, count: usize, addresses: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = net.at("b", "python3", &[&script(), "receive", &count.to_string()]);
    let mut child = command.args(addresses).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    assert_eq!(line, "ready\n");
    (child, said)
}

/// Sends datagrams, and what `b` says of each once it has it.
fn sent(net: &Net, orders: &[&str], ends: &[(&str, &str)]) -> Vec<String> {
    let addresses: Vec<&str> = ends.iter().map(|(_, to)| *to).collect();
    let (mut child, mut said) = receiver(net, orders.len() * ends.len(), &addresses);
    let mut all = Vec::new();
    for order in orders {
        for (from, to) in ends {
            send(net, order, from, to);
            let mut line = String::new();
            said.read_line(&mut line).expect("it says something");
            all.push(line.trim().to_owned());
        }
    }
    assert!(child.wait().expect("it ends").success());
    all
}

#[test]
fn a_stateful_gateway_lets_datagrams_through_whatever_fragment_comes_first() {
    const TEST: &str = "a_stateful_gateway_lets_datagrams_through_whatever_fragment_comes_first";
    if !installed(TEST, &["python3"]) {
        return;
    }
    for workers in [1, 2] {
        let Some(mut net) = Net::new(TEST) else { return };
        net.serve_ports(&program("stateful.rav"), &format!("workers = {workers}\n{PORTS}"));
        let ends = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")];
        let said = sent(&net, &["210", "120", "201", "012", "021", "102"], &ends);
        assert_eq!(said, ["10.0.0.1 whole", "fd00::1 whole"].repeat(6), "{workers} workers");
        let report = net.stop();
        assert!(report["drops"]["fragment_without_first"].is_null(), "{report}");
    }
}

#[test]
fn a_translation_translates_datagrams_whatever_fragment_comes_first() {
    const TEST: &str = "a_translation_translates_datagrams_whatever_fragment_comes_first";
    if !installed(TEST, &["python3"]) {
        return;
    }
    let Some(mut net) = Net::new(TEST) else { return };
    net.ip(&["-n", &net.name("b"), "address", "add", "192.0.2.9/24", "dev", "eth0"]);
    net.ip(&["-n", &net.name("b"), "route", "add", "default", "dev", "eth0"]);
    net.serve_ports(&program("nat44.rav"), PORTS);
    let said = sent(&net, &["210"], &[("10.0.0.1", "192.0.2.9")]);
    assert_eq!(said, ["198.51.100.4 whole"]);
    let report = net.stop();
    assert!(report["drops"]["later_fragment"].is_null(), "{report}");
}

#[test]
fn fragments_without_a_first_are_dropped_by_their_reason_after_a_second_and_at_the_end() {
    const TEST: &str = "fragments_without_a_first_are_dropped_by_their_reason_after_a_second_and_at_the_end";
    if !installed(TEST, &["python3"]) {
        return;
    }
    let Some(mut net) = Net::new(TEST) else { return };
    net.serve_ports(&program("stateful.rav"), PORTS);
    send(&net, "21", "10.0.0.1", "10.0.0.2");
    let dropped = |shown: &serde_json::Value| {
        shown["now"]["report"]["drops"]["fragment_without_first"].as_u64().unwrap_or(0)
    };
    net.until("tables", |shown| dropped(shown) == 2);
    // This one has no second to wait: the gateway ends once a fragment behind it has come.
    send(&net, "1", "10.0.0.1", "10.0.0.2");
    send(&net, "0", "10.0.0.1", "10.0.0.2");
    net.until("tables", |shown| shown["now"]["report"]["tables"]["fragments"]["entries"] == 1);
    let report = net.stop();
    assert_eq!(report["drops"]["fragment_without_first"], 3, "{report}");
}
