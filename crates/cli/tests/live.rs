//! A gateway between two hosts in network namespaces of their own, used by programs that know nothing of it.
//!
//! Nothing but those namespaces is ever addressed, and they go with the test. Where the rights for them are missing, a test says so and ends.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Two hosts, `a` (10.0.0.1) and `b` (10.0.0.2), each with a virtual cable to a gateway.
struct Net {
    prefix: String,
    directory: tempfile::TempDir,
    gateway: Option<Child>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Net {
    /// Makes the namespaces; `None` where that is not allowed here.
    fn new(test: &str) -> Option<Net> {
        let prefix = format!("rv{}x{}", std::process::id() % 100_000, COUNT.fetch_add(1, Ordering::Relaxed));
        let net = Net { prefix, directory: tempfile::tempdir().expect("directory"), gateway: None };
        let made = Command::new("ip").args(["netns", "add", &net.name("g")]).output();
        if !made.is_ok_and(|output| output.status.success()) {
            eprintln!("{test}: not run, since network namespaces cannot be made here");
            return None;
        }
        for host in ["a", "b"] {
            net.ip(&["netns", "add", &net.name(host)]);
            let name = net.name(host);
            let (gateway, port) = (net.name("g"), format!("to-{host}"));
            net.ip(&[
                "-n", &gateway, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &name,
            ]);
            net.ip(&["-n", &gateway, "link", "set", &port, "up"]);
        }
        for (host, last) in [("a", 1), ("b", 2)] {
            let name = net.name(host);
            net.ip(&["-n", &name, "link", "set", "lo", "up"]);
            net.ip(&["-n", &name, "link", "set", "eth0", "address", &format!("02:00:00:00:00:0{last}")]);
            net.ip(&["-n", &name, "address", "add", &format!("10.0.0.{last}/24"), "dev", "eth0"]);
            net.ip(&["-n", &name, "address", "add", &format!("fd00::{last}/64"), "dev", "eth0", "nodad"]);
            net.ip(&["-n", &name, "link", "set", "eth0", "up"]);
        }
        Some(net)
    }

    fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    fn ip(&self, arguments: &[&str]) {
        let output = Command::new("ip").args(arguments).output().expect("ip runs");
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A command in the namespace of a host.
    fn at(&self, host: &str, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host), program]).args(arguments);
        command
    }

    fn run(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        self.at(host, program, arguments).output().expect("the program runs")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn ravelin(&self, arguments: &[&str]) -> Output {
        self.run("g", binary(), arguments)
    }

    /// Starts a gateway with this program between the hosts, and waits until it answers.
    fn serve(&mut self, program: &Path) {
        let control = self.path("control.sock").display().to_string();
        let text = format!(
            "program = \"{}\"\ncontrol = \"{control}\"\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n",
            program.display()
        );
        let file = self.path("gateway.toml");
        fs::write(&file, text).expect("can be written");
        let mut command = self.at("g", binary(), &["serve", &file.display().to_string(), "--json"]);
        self.gateway =
            Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ravelin runs"));
        let end = Instant::now() + Duration::from_secs(30);
        while !self.ravelin(&["show", "run", "--total", "--control", &control]).status.success() {
            assert!(Instant::now() < end, "the gateway does not answer");
            let ended = self.gateway.as_mut().and_then(|gateway| gateway.try_wait().ok().flatten());
            assert!(ended.is_none(), "the gateway ended: {:?}", self.ended());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A question to the gateway, with the answer as JSON.
    fn ask(&self, arguments: &[&str]) -> Value {
        let control = self.path("control.sock").display().to_string();
        let output = self.ravelin(&[arguments, &["--json", "--control", &control]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What the gateway said at its end.
    fn ended(&mut self) -> (String, String) {
        let output = self.gateway.take().expect("was started").wait_with_output().expect("ends");
        (String::from_utf8_lossy(&output.stdout).into(), String::from_utf8_lossy(&output.stderr).into())
    }

    /// Stops the gateway and returns its account, of which every packet is in.
    fn stop(&mut self) -> Value {
        self.ask(&["stop"]);
        let (said, errors) = self.ended();
        let report: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{errors}"));
        let sum = |what: &str| -> u64 {
            report[what].as_object().into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
        };
        let packets = |what: &str| report[what]["packets"].as_u64().unwrap_or(0);
        assert_eq!(packets("received"), packets("forwarded") + sum("drops") + sum("punts"), "{report}");
        report
    }

    /// How many of 20 pings, 20 ms apart, from `a` to an address are answered.
    fn pings(&self, address: &str) -> usize {
        let output = self.run("a", "ping", &["-c", "20", "-i", "0.02", "-W", "2", "-w", "5", address]);
        String::from_utf8_lossy(&output.stdout).matches("bytes from").count()
    }

    /// Waits until 20 pings of 20 are answered: a host that has given its neighbour up looks for it again once a second.
    fn wait_for_pings(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.pings("10.0.0.2") < 20 {
            assert!(Instant::now() < end, "the hosts do not find each other again");
        }
    }

    /// Bits a second and packets sent again of one TCP stream of two seconds.
    fn tcp(&self, address: &str, direction: &[&str]) -> Value {
        let mut server = self
            .at("b", "timeout", &["30", "iperf3", "-s", "-1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("iperf3 runs");
        let mut client = None;
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(300));
            let output = self.run(
                "a",
                "timeout",
                &[&["10", "iperf3", "-c", address, "-t", "2", "-J"], direction].concat(),
            );
            if output.status.success() {
                client = Some(output);
                break;
            }
        }
        let output = client.expect("iperf3 reaches the other host");
        server.wait().expect("the server ends");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            // It may have ended by itself.
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        for host in ["a", "b", "g"] {
            // One that was never made is no matter.
            let _ = Command::new("ip").args(["netns", "delete", &self.name(host)]).output();
        }
    }
}

fn binary() -> &'static str {
    assert_cmd::cargo::cargo_bin!("ravelin").to_str().expect("a path of text")
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(name)
}

#[test]
fn hosts_reach_each_other_and_every_packet_is_in_the_account() {
    let Some(mut net) = Net::new("hosts_reach_each_other") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    // Offloads are on, as they are on every new virtual cable: long segments pass whole, their checksums unfinished.
    for (address, direction) in [("10.0.0.2", &[][..]), ("10.0.0.2", &["-R"]), ("fd00::2", &[])] {
        let report = net.tcp(address, direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 10_000_000, "only {bytes} bytes came over: {report}");
    }
    let now = net.ask(&["show", "tables", "--total"]);
    assert_eq!(now["now"]["report"]["tables"]["hosts"]["entries"], 2);
    let report = net.stop();
    let longest = report["received"]["bytes"].as_u64().unwrap_or(0)
        / report["received"]["packets"].as_u64().unwrap_or(1);
    assert!(
        longest > 1514,
        "segments passed whole, so packets are longer than the MTU on average: {longest}"
    );
}

#[test]
fn hosts_without_offloads_reach_each_other() {
    let Some(mut net) = Net::new("hosts_without_offloads") else { return };
    for host in ["a", "b"] {
        let off =
            ["-K", "eth0", "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off", "sg", "off"];
        assert!(net.run(host, "ethtool", &off).status.success());
    }
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    let bytes = net.tcp("10.0.0.2", &[])["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
    assert!(bytes > 10_000_000, "only {bytes} bytes came over");
    let report = net.stop();
    let average = report["received"]["bytes"].as_u64().unwrap_or(0)
        / report["received"]["packets"].as_u64().unwrap_or(1);
    assert!(average <= 1514, "nothing is longer than the MTU: {average}");
}

#[test]
fn no_ping_is_lost_while_programs_take_over() {
    let Some(mut net) = Net::new("no_ping_is_lost") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    let ping = net
        .at("a", "ping", &["-c", "400", "-i", "0.005", "-W", "2", "10.0.0.2"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ping runs");
    for _ in 0..10 {
        let answer = net.ask(&["reload"]);
        let text = answer["done"].as_str().unwrap_or_default().to_owned();
        assert!(text.ends_with("2 entries went over"), "{text}");
    }
    let output = ping.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("bytes from").count(), 400, "{text}");
    assert_eq!(net.ask(&["show", "run", "--total"])["now"]["generation"], 11);
    net.stop();
}

#[test]
fn a_killed_gateway_starts_again() {
    let Some(mut net) = Net::new("a_killed_gateway") else { return };
    net.serve(&program("mac_switch.rav"));
    let mut gateway = net.gateway.take().expect("was started");
    gateway.kill().expect("can be killed");
    gateway.wait().expect("ends");
    assert_eq!(net.pings("10.0.0.2"), 0);
    net.serve(&program("mac_switch.rav"));
    net.wait_for_pings();
    net.stop();
}

#[test]
fn an_interface_that_was_off_is_used_again() {
    let Some(mut net) = Net::new("an_interface_that_was_off") else { return };
    net.serve(&program("mac_switch.rav"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "down"]);
    assert_eq!(net.pings("10.0.0.2"), 0);
    let refused = |now: &Value| now["now"]["ports"][1]["refused"].as_u64().unwrap_or(0);
    assert!(refused(&net.ask(&["show", "ports", "--total"])) > 0, "what was sent meanwhile is counted");
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "up"]);
    net.wait_for_pings();
    net.stop();
}

#[test]
fn a_program_that_is_wrong_does_not_take_over() {
    let Some(mut net) = Net::new("a_program_that_is_wrong") else { return };
    let copy = net.path("program.rav");
    fs::copy(program("mac_switch.rav"), &copy).expect("can be copied");
    net.serve(&copy);
    let control = net.path("control.sock").display().to_string();
    fs::write(&copy, "program").expect("can be written");
    let output = net.ravelin(&["reload", "--control", &control]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("nothing has changed"), "{errors}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.ask(&["show", "run", "--total"])["now"]["generation"], 1);
    net.stop();
}

#[test]
fn what_cannot_be_a_port_is_said() {
    let Some(mut net) = Net::new("what_cannot_be_a_port") else { return };
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "down"]);
    let file = net.path("gateway.toml");
    let write = |second: &str| {
        let (program, control) = (program("hub.rav"), net.path("control.sock"));
        let text = format!(
            "program = \"{}\"\ncontrol = \"{}\"\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"{second}\"\n",
            program.display(),
            control.display()
        );
        fs::write(&file, text).expect("can be written");
    };
    let cases = [
        ("none", "port 2: there is no interface none here"),
        ("to-b", "port 2: interface to-b is switched off"),
        ("to-a", "line 6, column 13: interface `to-a` is port 1 already"),
    ];
    for (second, wanted) in cases {
        write(second);
        let output = net.ravelin(&["serve", &file.display().to_string()]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(wanted), "{errors}");
    }
    net.gateway = None;
}
