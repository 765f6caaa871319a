//! A gateway whose machine is a host at its ports: servers and tools that know nothing of the gateway run in
//! the gateway's namespace, and the hosts on the links talk to them.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, program, text};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Host `a` is 10.0.1.2, host `b` 10.0.2.2; the gateway's machine is a host in both networks.
const FILE: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
host = true
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
host = true
host_interface = "uplink"
"#;

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.expect("the program starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn served(test: &str, file: &str) -> Option<Net> {
    let mut net = Net::routed(test)?;
    net.serve_ports(&program("router.rav"), file);
    Some(net)
}

/// `ip` in a namespace.
fn ip(net: &Net, host: &str, words: &str) {
    let arguments: Vec<&str> = words.split(' ').collect();
    net.ip(&[&["-n", &net.name(host)], &arguments[..]].concat());
}

fn ping(net: &Net, host: &str, words: &str) -> String {
    let arguments: Vec<&str> = words.split(' ').collect();
    text(&net.run(host, "ping", &[&["-c", "3", "-i", "0.1", "-W", "5"], &arguments[..]].concat()))
}

/// Waits until something is so.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// How many packets met a fate in the control plane.
fn fate(shown: &Value, name: &str) -> u64 {
    let fates = shown["account"]["fates"].as_array().expect("a list");
    let of = fates.iter().find(|fate| fate["name"] == name);
    of.and_then(|fate| fate["packets"].as_u64()).unwrap_or(0)
}

fn routes(net: &Net) -> String {
    net.ask(&["show", "routes"]).to_string()
}

#[test]
fn linux_answers_behind_the_ports_and_its_addresses_change_while_packets_flow() {
    let Some(mut net) = served("linux_answers_behind_the_ports", FILE) else { return };
    let shown = text(&net.run("g", "ip", &["-br", "address"]));
    assert!(shown.contains("h-to-a") && shown.contains("uplink"), "{shown}");
    // Each is answered once, by Linux, from whichever host and by whichever port.
    for (host, address) in [
        ("a", "10.0.1.1"),
        ("a", "10.0.2.1"),
        ("b", "10.0.1.1"),
        ("a", "fd00:1::1"),
        ("a", "fd00:2::1"),
        ("a", "10.0.2.2"),
        ("a", "fd00:2::2"),
    ] {
        let said = ping(&net, host, address);
        assert!(said.contains(" 3 received") && !said.contains("DUP"), "{host} {address}: {said}");
    }
    let handed = fate(&net.ask(&["show", "neighbours"]), "for the host");
    assert!(handed >= 15, "{handed}");
    // TCP to a server that knows nothing of the gateway, and back.
    let root = net.path("served");
    std::fs::create_dir(&root).expect("a directory");
    std::fs::write(root.join("page"), vec![b'x'; 3_000_000]).expect("a file");
    let directory = root.display().to_string();
    let server = ["-m", "http.server", "8080", "--bind", "10.0.1.1", "--directory", &directory];
    let _server = Running::start(&mut net.at("g", "python3", &server));
    let fetch = |host: &str| {
        let script = "import sys, urllib.request as r; print(len(r.urlopen('http://10.0.1.1:8080/page', timeout=10).read()))";
        text(&net.run(host, "python3", &["-c", script]))
    };
    wait_until("the page comes", || fetch("a").trim() == "3000000");
    assert_eq!(fetch("b").trim(), "3000000");
    // A second address, while packets flow through and to the gateway.
    let mut flow = net.at("a", "ping", &["-i", "0.02", "-c", "150", "-W", "2", "10.0.2.2"]);
    let flow = flow.stdout(Stdio::piped()).spawn().expect("ping runs");
    assert!(ping(&net, "a", "10.0.1.77").contains(" 0 received"), "nobody has it");
    ip(&net, "g", "address add 10.0.1.77/24 dev h-to-a");
    wait_until("it is known", || routes(&net).contains("10.0.1.77/32"));
    assert!(ping(&net, "a", "10.0.1.77").contains(" 3 received"));
    ip(&net, "g", "address add 192.0.2.1/28 dev uplink");
    wait_until("it is known", || routes(&net).contains("192.0.2.0/28"));
    assert!(ping(&net, "a", "192.0.2.1").contains(" 3 received"));
    ip(&net, "g", "address del 10.0.1.77/24 dev h-to-a");
    wait_until("it is known", || !routes(&net).contains("10.0.1.77/32"));
    assert!(ping(&net, "a", "10.0.1.77").contains(" 0 received"), "nobody has it any more");
    let flowed = text(&flow.wait_with_output().expect("ping ends"));
    assert!(flowed.contains("150 received"), "no packet was lost: {flowed}");
    net.stop();
    let shown = text(&net.run("g", "ip", &["-br", "link"]));
    assert!(!shown.contains("h-to-a") && !shown.contains("uplink"), "they go with the gateway: {shown}");
}

#[test]
fn a_host_interface_whose_name_is_taken_is_an_error_at_its_place() {
    let Some(net) = Net::routed("a_host_interface_whose_name_is_taken") else { return };
    ip(&net, "g", "link add uplink type bridge");
    let file = net.path("gateway.toml");
    let text_of = format!(
        "program = \"{}\"\ncontrol = \"{}\"\n{FILE}",
        program("router.rav").display(),
        net.path("control.sock").display()
    );
    std::fs::File::create(&file).and_then(|mut file| file.write_all(text_of.as_bytes())).expect("a file");
    let said = text(&net.ravelin(&["serve", &file.display().to_string()]));
    assert!(said.contains("line 12, column 18: there is an interface uplink already"), "{said}");
    let shown = text(&net.run("g", "ip", &["-br", "link"]));
    assert!(!shown.contains("h-to-a"), "nothing is half done: {shown}");
    let rules = text(&net.run("g", "nft", &["list", "ruleset"]));
    assert!(!rules.contains("ravelin"), "{rules}");
}
