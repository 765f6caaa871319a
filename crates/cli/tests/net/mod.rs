//! A gateway between two hosts in network namespaces of their own, for tests that use programs that know
//! nothing of it.
//!
//! Nothing but those namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

#![allow(dead_code, reason = "every test uses another part")]

pub(crate) mod capture;
pub(crate) mod frr;
pub(crate) mod lldpd;
pub(crate) mod script;
pub(crate) mod small_internet;
pub(crate) mod sshd;
pub(crate) mod udp_stream;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The ports of a gateway whose machine is a host in the networks of `a` (10.0.1.2) and `b` (10.0.2.2).
pub(crate) const HOSTED_PORTS: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24"]
host = true
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24"]
host = true
"#;

/// The public half of the key in a file, which is made.
pub(crate) fn new_key(file: &Path) -> String {
    let output = Command::new(binary()).args(["naming", "key", "new"]).arg(file).output().expect("runs");
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Two hosts, `a` (10.0.0.1) and `b` (10.0.0.2), each with a virtual cable to a gateway.
pub(crate) struct Net {
    prefix: String,
    directory: tempfile::TempDir,
    /// The gateway while it runs.
    pub(crate) gateway: Option<Child>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Net {
    /// Makes the namespaces; `None` where that is not allowed here.
    pub(crate) fn new(test: &str) -> Option<Net> {
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

    /// The same with a gateway that runs the program of this text and finds the hosts.
    pub(crate) fn served(test: &str, program: &str, more: &str) -> Option<Net> {
        let mut net = Net::new(test)?;
        let file = net.path("program.rav");
        fs::write(&file, program).expect("can be written");
        net.serve_ports(
            &file,
            &format!("{more}[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n"),
        );
        net.wait_for_pings();
        Some(net)
    }

    /// Namespaces with the hosts in different networks: `a` is 10.0.1.2 and fd00:1::2, `b` 10.0.2.2 and
    /// fd00:2::2, and each sends what is not for its own network to address 1 there.
    pub(crate) fn routed(test: &str) -> Option<Net> {
        let net = Net::new(test)?;
        for (host, number) in [("a", 1), ("b", 2)] {
            let name = net.name(host);
            let ip = |arguments: &[&str]| net.ip(&[&["-n", name.as_str()], arguments].concat());
            ip(&["address", "flush", "dev", "eth0", "scope", "global"]);
            ip(&["address", "add", &format!("10.0.{number}.2/24"), "dev", "eth0"]);
            ip(&["address", "add", &format!("fd00:{number}::2/64"), "dev", "eth0", "nodad"]);
            ip(&["route", "add", "default", "via", &format!("10.0.{number}.1")]);
            ip(&["-6", "route", "add", "default", "via", &format!("fd00:{number}::1")]);
        }
        Some(net)
    }

    /// Namespaces as names have them: `a` has the clients 203.0.113.9 to 13, which reach 198.51.100.0/28 on
    /// the link, and `b` the hosts 10.0.0.80 and 81 behind 10.0.0.1.
    pub(crate) fn of_names(test: &str) -> Option<Net> {
        let net = Net::new(test)?;
        let [a, b] = ["a", "b"].map(|name| net.name(name));
        for name in [&a, &b] {
            net.words(&format!("-n {name} address flush dev eth0 scope global"));
        }
        for client in 9..=13 {
            net.words(&format!("-n {a} address add 203.0.113.{client}/24 dev eth0"));
        }
        net.words(&format!("-n {a} route add 198.51.100.0/28 dev eth0"));
        for host in [80, 81] {
            net.words(&format!("-n {b} address add 10.0.0.{host}/24 dev eth0"));
        }
        net.words(&format!("-n {b} route add default via 10.0.0.1"));
        Some(net)
    }

    pub(crate) fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    pub(crate) fn ip(&self, arguments: &[&str]) {
        let output = Command::new("ip").args(arguments).output().expect("ip runs");
        assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs `ip` with the words of a line.
    pub(crate) fn words(&self, line: &str) {
        self.ip(&line.split(' ').collect::<Vec<_>>());
    }

    /// Lays a cable between two namespaces: the name of each, of its interface, and its address (/24).
    pub(crate) fn cable(&self, one: [&str; 3], other: [&str; 3]) {
        let [at, there] = [one, other].map(|[host, ..]| self.name(host));
        self.words(&format!("-n {at} link add {} type veth peer name {} netns {there}", one[1], other[1]));
        for (name, [_, link, address]) in [(&at, one), (&there, other)] {
            self.words(&format!("-n {name} address add {address}/24 dev {link}"));
            self.words(&format!("-n {name} link set {link} up"));
        }
    }

    /// A command in the namespace of a host.
    pub(crate) fn at(&self, host: &str, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host), program]).args(arguments);
        command
    }

    pub(crate) fn run(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        self.at(host, program, arguments).output().expect("the program runs")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn ravelin(&self, arguments: &[&str]) -> Output {
        self.run("g", binary(), arguments)
    }

    /// Starts a gateway with this program between the hosts, and waits until it answers.
    pub(crate) fn serve(&mut self, program: &Path) {
        self.serve_ports(program, "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n");
    }

    /// The same with these ports, as the gateway's file tells of them; more of the file may follow.
    pub(crate) fn serve_ports(&mut self, program: &Path, ports: &str) {
        self.serve_with(program, ports, &[]);
    }

    /// The same, with further options on the command line.
    pub(crate) fn serve_with(&mut self, program: &Path, ports: &str, options: &[&str]) {
        let control = self.path("control.sock").display().to_string();
        let text = format!("program = \"{}\"\ncontrol = \"{control}\"\n{ports}", program.display());
        let file = self.path("gateway.toml");
        fs::write(&file, text).expect("can be written");
        let mut command =
            self.at("g", binary(), &["serve", "--one-process", &file.display().to_string(), "--json"]);
        command.args(options);
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
    pub(crate) fn ask(&self, arguments: &[&str]) -> Value {
        let control = self.path("control.sock").display().to_string();
        let output = self.ravelin(&[arguments, &["--json", "--control", &control]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Asks until what the gateway shows is as wanted.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let shown = self.ask(&["show", what]);
            if wanted(&shown) {
                return shown;
            }
            assert!(Instant::now() < end, "{what}: {shown}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the gateway said at its end.
    pub(crate) fn ended(&mut self) -> (String, String) {
        let output = self.gateway.take().expect("was started").wait_with_output().expect("ends");
        (String::from_utf8_lossy(&output.stdout).into(), String::from_utf8_lossy(&output.stderr).into())
    }

    /// Stops the gateway and returns its account, of which every packet is in.
    pub(crate) fn stop(&mut self) -> Value {
        self.stop_and_hear().0
    }

    /// The same, with what it said while it ran.
    pub(crate) fn stop_and_hear(&mut self) -> (Value, String) {
        self.ask(&["stop"]);
        let (said, errors) = self.ended();
        let report: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{errors}"));
        let sum = |what: &str| -> u64 {
            report[what].as_object().into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
        };
        let packets = |what: &str| report[what]["packets"].as_u64().unwrap_or(0);
        assert_eq!(packets("received"), packets("forwarded") + sum("drops") + sum("punts"), "{report}");
        (report, errors)
    }

    /// How many of 20 pings, 20 ms apart, from `a` to an address are answered; each second answer to one
    /// counts besides.
    pub(crate) fn pings(&self, address: &str) -> usize {
        let output = self.run("a", "ping", &["-c", "20", "-i", "0.02", "-W", "2", "-w", "5", address]);
        let text = String::from_utf8_lossy(&output.stdout);
        let doubled = text.matches("(DUP!)").count();
        // With a deadline ping goes on sending until 20 answers have come, and one more may come by then.
        (text.matches("bytes from").count() - doubled).min(20) + doubled
    }

    /// Waits until 20 pings of 20 are answered: a host that has given its neighbour up looks for it again
    /// once a second.
    pub(crate) fn wait_for_pings(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.pings("10.0.0.2") < 20 {
            assert!(Instant::now() < end, "the hosts do not find each other again");
        }
    }

    /// Bits a second and packets sent again of one TCP stream of two seconds between `a` and `b`.
    pub(crate) fn tcp(&self, address: &str, direction: &[&str]) -> Value {
        self.tcp_with("b", address, direction)
    }

    /// The same between `a` and another host.
    pub(crate) fn tcp_with(&self, host: &str, address: &str, direction: &[&str]) -> Value {
        let mut server = self
            .at(host, "timeout", &["30", "iperf3", "-s", "-1"])
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
        for host in ["a", "b", "g", "d", "e"] {
            // One that was never made is no matter.
            let _ = Command::new("ip").args(["netns", "delete", &self.name(host)]).output();
        }
    }
}

/// A process that ends with the test.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.expect("the program starts"))
    }

    /// A process that has started.
    pub(crate) fn of(child: Child) -> Running {
        Running(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a program said on both its outputs.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The command under test.
pub(crate) fn binary() -> &'static str {
    assert_cmd::cargo::cargo_bin!("ravelin").to_str().expect("a path of text")
}

/// A program of the repository.
pub(crate) fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(name)
}

/// Whether these programs are there. Where they have to be (`CI=true`), it is an error if not.
pub(crate) fn installed(test: &str, programs: &[&str]) -> bool {
    let there = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<_> = programs.iter().filter(|program| !there(program)).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: {missing:?} are not installed");
    eprintln!("{test}: not run, since {missing:?} are not installed (`cargo xtask test --only packages`)");
    false
}
