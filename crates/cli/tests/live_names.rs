//! Names and packets of one process: a client asks for a name, and reaches a host behind a gateway by an
//! address that others share.
//!
//! ```text
//!  a: clients ── waypoint ── cable ── names_gateway ── b: hosts
//!     └─ dig ──► its name server
//! ```
//!
//! `cable` stands for the tunnel: what one end sends to the other's number arrives with its own.

mod net;

use net::{Net, Running, binary, installed, program, text};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const CABLE: &str = "import std.net.{ethernet}
reason no_side \"there are two ends\"
start decoder frame(eth: ethernet) {
    set eth.dst = 02:52:56:00:00:00
    match in_port {
        1 => { set eth.src = 02:52:56:00:00:09  send 2 }
        2 => { set eth.src = 02:52:56:00:00:01  send 1 }
        else => drop no_side
    }
}
";

const WAYPOINT: &str = r#"
[[port]]
interface = "to-a"
[[port]]
interface = "w0"

[set]
ROUTER = "02:00:00:00:00:01"

[names]
listen = ["192.0.2.53:53"]
zone = "home.example"
clients = ["203.0.113.0/24"]
shared_address = "198.51.100.3"

[[names.server]]
name = "ns.other.example."

[[names.gateway]]
name = "home"
networks = ["10.0.0.0/24"]
peer = 1

[[names.host]]
name = "one"
gateway = "home"
address = "10.0.0.80"
services = ["tcp/80", "icmp"]
ipv4 = "per-initiator"

[[names.host]]
name = "two"
gateway = "home"
address = "10.0.0.81"
services = ["tcp/80", "icmp"]
ipv4 = "per-initiator"

[names.waypoint]
known = ["198.51.100.1"]
unknown = ["198.51.100.2"]
"#;

/// Says to each client by which address and port it was reached, and writes down who it was.
const SERVER: &str = r#"
import socket, sys
host, port = sys.argv[1], int(sys.argv[2])
server = socket.create_server((host, port))
while True:
    connection, client = server.accept()
    print('from', client[0])
    connection.settimeout(5)
    try:
        connection.recv(4096)
        said = f'{host} {port}'
        connection.sendall(f'HTTP/1.0 200 OK\r\nContent-Length: {len(said)}\r\n\r\n{said}'.encode())
    except OSError:
        pass
    connection.close()
"#;

/// A gateway that ends with the test.
struct Beside(Child);

impl Beside {
    fn start(net: &Net, name: &str, program: &str, ports: [&str; 2]) -> Beside {
        let control = net.path(&format!("{name}.sock")).display().to_string();
        let ports = ports.map(|port| format!("[[port]]\ninterface = \"{port}\"\n")).concat();
        let file = net.path(&format!("{name}.toml"));
        fs::write(&file, format!("program = \"{program}\"\ncontrol = \"{control}\"\n{ports}"))
            .expect("is written");
        let mut command = net.at("g", binary(), &["serve", "--one-process", &file.display().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let beside = Beside(child);
        let end = Instant::now() + Duration::from_secs(30);
        while !net.ravelin(&["show", "run", "--total", "--control", &control]).status.success() {
            assert!(Instant::now() < end, "{name} does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        beside
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The whole of it.
struct Home {
    net: Net,
    _beside: [Beside; 2],
    _servers: Vec<Running>,
}

impl Home {
    fn new(test: &str) -> Option<Home> {
        Home::with(test, WAYPOINT)
    }

    fn with(test: &str, waypoint: &str) -> Option<Home> {
        if !installed(test, &["dig", "curl", "python3"]) {
            return None;
        }
        let mut net = Net::of_names(test)?;
        let g = net.name("g");
        net.cable(["g", "dns", "192.0.2.53"], ["a", "dns", "192.0.2.1"]);
        net.words(&format!("-n {g} route add 203.0.113.0/24 via 192.0.2.1"));
        for (one, other) in [("w0", "w1"), ("x0", "x1")] {
            net.words(&format!("-n {g} link add {one} type veth peer name {other}"));
            net.words(&format!("-n {g} link set {one} up"));
            net.words(&format!("-n {g} link set {other} up"));
        }
        fs::write(net.path("cable.rav"), CABLE).expect("is written");
        let cable = net.path("cable.rav").display().to_string();
        let inside = program("names_gateway.rav").display().to_string();
        let beside = [
            Beside::start(&net, "cable", &cable, ["w1", "x0"]),
            Beside::start(&net, "gateway", &inside, ["x1", "to-b"]),
        ];
        let servers = [("10.0.0.80", "80"), ("10.0.0.81", "80"), ("10.0.0.81", "8080")];
        let servers = servers.map(|(host, port)| {
            let log = fs::File::create(net.path(&format!("{host}-{port}.log"))).expect("is made");
            let mut server = net.at("b", "python3", &["-u", "-c", SERVER, host, port]);
            server.stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
            Running::of(server.spawn().expect("it starts"))
        });
        net.serve_ports(&program("waypoint.rav"), waypoint);
        let home = Home { net, _beside: beside, _servers: servers.into() };
        // Hosts are there when the servers listen and the gateway has found them.
        for host in ["10.0.0.80", "10.0.0.81"] {
            let end = Instant::now() + Duration::from_secs(20);
            while !home
                .net
                .run("b", "curl", &["-s", "--max-time", "1", &format!("http://{host}/")])
                .status
                .success()
            {
                assert!(Instant::now() < end, "no server at {host}");
            }
        }
        Some(home)
    }

    /// What a client is told of a name.
    fn dig(&self, client: u8, name: &str) -> String {
        let name = format!("{name}.home.example");
        let from = format!("203.0.113.{client}");
        text(&self.net.run("a", "dig", &["-b", &from, "@192.0.2.53", "+short", "+tries=1", &name, "A"]))
            .trim()
            .to_owned()
    }

    /// What a client gets from an address, within some seconds.
    fn get(&self, client: u8, at: &str) -> Option<String> {
        let from = format!("203.0.113.{client}");
        // The first packet asks for the host's card, and TCP sends again after a second.
        let output = self.net.run("a", "curl", &["-s", "--max-time", "6", "--interface", &from, at]);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Lets a name with a shared address lead to a host.
    fn add_pi(&self, host: &str) -> String {
        let to = ["--gateway", "home", "--address", host, "--service", "tcp/8080", "--ipv4", "shared"];
        self.names(&[&["add", "pi"][..], &to].concat())
    }

    fn drops(&self, reason: &str) -> u64 {
        let shown = self.net.ask(&["show", "run", "--total"]);
        let drops = &shown["now"]["report"]["drops"];
        assert!(drops.is_object(), "{shown}");
        drops[reason].as_u64().unwrap_or(0)
    }

    /// What a reload says to another file.
    fn reload_said(&self, waypoint: &str) -> String {
        let control = self.net.path("control.sock").display().to_string();
        let head = format!("program = \"{}\"\ncontrol = \"{control}\"\n", program("waypoint.rav").display());
        fs::write(self.net.path("gateway.toml"), head + waypoint).expect("can be written");
        text(&self.net.ravelin(&["reload", "--control", &control]))
    }

    /// Another file takes effect.
    fn reload(&self, waypoint: &str) {
        let said = self.reload_said(waypoint);
        assert!(said.contains("the program took over"), "{said}");
    }

    /// Waits until all that packets have done until now is in the store.
    fn until_written(&self) {
        let begun = Instant::now();
        loop {
            let passed = begun.elapsed().as_secs_f64();
            let list = self.net.ask(&["names", "list"]);
            match list["store"]["written_seconds"].as_f64() {
                Some(seconds) if seconds < passed => return,
                _ => assert!(passed < 20.0, "{}", list["store"]),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn names(&self, words: &[&str]) -> String {
        let control = self.net.path("control.sock").display().to_string();
        text(&self.net.ravelin(&[&["names"], words, &["--control", &control]].concat()))
    }
}

#[test]
fn clients_reach_hosts_by_the_names_that_they_asked_for() {
    let Some(home) = Home::new("clients_reach_hosts_by_the_names_that_they_asked_for") else { return };
    // Nobody has asked, and the examples in the program's text are gone.
    let before = home.drops("no_expectation");
    assert_eq!(home.get(9, "http://198.51.100.1/"), None);
    assert!(home.drops("no_expectation") > before);
    let why = |client: &str| home.names(&["why", client, "198.51.100.1", "tcp/80"]);
    let said = why("203.0.113.9");
    assert!(said.starts_with("no expectation: ") && said.contains("last dropped: no_expectation"), "{said}");
    // Two clients, one address, one port, two hosts.
    assert_eq!(home.dig(9, "one"), "198.51.100.1");
    assert_eq!(home.dig(10, "two"), "198.51.100.1");
    let said = why("203.0.113.9");
    assert!(said.starts_with("its first packet would reach 10.0.0.80 behind `home`\n"), "{said}");
    assert!(said.contains("promised to others: 10.0.0.81 behind `home` to 203.0.113.10, for "), "{said}");
    assert_eq!(home.get(9, "http://198.51.100.1/"), Some("10.0.0.80 80".to_owned()));
    assert!(why("203.0.113.9").starts_with("it reaches 10.0.0.80 behind `home`\n"));
    assert_eq!(home.get(10, "http://198.51.100.1/"), Some("10.0.0.81 80".to_owned()));
    for (host, client, other) in [("10.0.0.80", 9, 10), ("10.0.0.81", 10, 9)] {
        let log = fs::read_to_string(home.net.path(&format!("{host}-80.log"))).expect("a log");
        assert!(log.contains(&format!("from 203.0.113.{client}\n")), "{log}");
        assert!(!log.contains(&format!("203.0.113.{other}\n")), "{log}");
    }
    // Its only address leads the client elsewhere.
    assert!(!home.dig(9, "two").contains("198.51.100"), "{}", home.dig(9, "two"));
    assert_eq!(home.get(9, "http://198.51.100.1/"), Some("10.0.0.80 80".to_owned()));
    let ping =
        home.net.run("a", "ping", &["-c", "2", "-i", "0.2", "-W", "3", "-I", "203.0.113.9", "198.51.100.1"]);
    assert!(text(&ping).contains("bytes from 198.51.100.1"), "{}", text(&ping));
    // What is promised is there after another program has taken over, and so are bindings.
    assert_eq!(home.dig(11, "two"), "198.51.100.1");
    home.net.ask(&["reload"]);
    assert_eq!(home.get(11, "http://198.51.100.1/"), Some("10.0.0.81 80".to_owned()));
    assert!(!home.dig(9, "two").contains("198.51.100"));
    assert_eq!(home.get(10, "http://198.51.100.1/"), Some("10.0.0.81 80".to_owned()));
    // What the machine itself listens at is kept for it: the name server, and SSH where nothing is said.
    let control = home.net.path("control.sock").display().to_string();
    let kept = text(&home.net.ravelin(&["table", "show", "machine_services", "--control", &control]));
    assert!(["(6, 22)", "(6, 53)", "(17, 53)"].iter().all(|one| kept.contains(one)), "{kept}");
    // Whose time is over is let through no more, and nobody but the gateway changes the table.
    let listed = home.net.ravelin(&[
        "table",
        "add",
        "expectations",
        "(198.51.100.1, 6, 80, _) => (1, 10.0.0.80)",
        "--control",
        &home.net.path("control.sock").display().to_string(),
    ]);
    assert!(text(&listed).contains("what its waypoint has promised"), "{}", text(&listed));
}

#[test]
fn names_that_are_added_and_removed_change_what_packets_do() {
    let Some(home) = Home::new("names_that_are_added_and_removed_change_what_packets_do") else { return };
    let add = ["add", "pi", "--gateway", "home", "--address", "10.0.0.81", "--service", "tcp/8080"];
    let said = home.names(&[&add[..], &["--ipv4", "shared"]].concat());
    assert!(said.contains("pi.home.example leads to 10.0.0.81"), "{said}");
    // It leads there whoever asks, and whether anybody asks.
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), Some("10.0.0.81 8080".to_owned()));
    let said = home.names(&["remove", "pi"]);
    assert!(said.contains("connections that are there go on until they end"), "{said}");
    let before = home.drops("no_expectation");
    assert_eq!(home.get(10, "http://198.51.100.3:8080/"), None);
    assert!(home.drops("no_expectation") > before);
    // Who reached a host there before could mean it by a new connection, or the one that the name has now.
    assert!(home.add_pi("10.0.0.80").contains("leads to 10.0.0.80"));
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), None);
    let said = home.names(&["why", "203.0.113.9", "198.51.100.3", "tcp/8080"]);
    assert!(said.starts_with("ambiguous: it reaches 10.0.0.81 behind `home`, and another host "), "{said}");
    assert!(said.contains("last dropped: ambiguous"), "{said}");
    home.names(&["remove", "pi"]);
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), None);
    assert!(home.names(&["why", "203.0.113.9", "198.51.100.3", "tcp/8080"]).starts_with("ambiguous: "));
    // What it sent for the other host may be sent again, so it takes a minute until it reaches this one.
    assert!(home.add_pi("10.0.0.81").contains("leads to 10.0.0.81"));
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), None);
    assert!(home.names(&["why", "203.0.113.9", "198.51.100.3", "tcp/8080"]).starts_with("ambiguous: "));
    assert_eq!(home.get(10, "http://198.51.100.3:8080/"), Some("10.0.0.81 8080".to_owned()));
    // A promise ends with its name.
    assert_eq!(home.dig(12, "one"), "198.51.100.1");
    home.names(&["remove", "one"]);
    assert_eq!(home.get(12, "http://198.51.100.1/"), None);
    // The next one finds the address free.
    assert_eq!(home.dig(12, "two"), "198.51.100.1");
    assert_eq!(home.get(12, "http://198.51.100.1/"), Some("10.0.0.81 80".to_owned()));
}

/// Connections from several addresses, over which bytes go to and fro while the file is read again.
const FLOWS: &str = r#"
import resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
flows = []
for number in range(1000):
    flow = socket.socket()
    flow.settimeout(20)
    flow.bind((f'203.0.113.{9 + number % 5}', 0))
    flow.connect(('198.51.100.1', 8081))
    flows.append(flow)
print('open', flush=True)
rounds, failed = 0, 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for flow in flows:
        try:
            flow.sendall(b'x')
            failed += flow.recv(1) != b'x'
        except OSError:
            failed += 1
    rounds += 1
print(rounds, failed)
"#;

/// Sends back whatever comes.
const ECHO: &str = r#"
import resource, socketserver
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while said := self.request.recv(4096):
            self.request.sendall(said)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128
Server(('10.0.0.80', 8081), Echo).serve_forever()
"#;

#[test]
fn a_file_that_is_read_again_brings_names_and_takes_names_without_touching_a_flow() {
    let test = "a_file_that_is_read_again_brings_names_and_takes_names_without_touching_a_flow";
    let one = "services = [\"tcp/80\", \"icmp\"]";
    let waypoint = WAYPOINT.replacen(one, "services = [\"tcp/80\", \"tcp/8081\", \"icmp\"]", 1);
    let Some(home) = Home::with(test, &waypoint) else { return };
    let _echo = Running::of(home.net.at("b", "python3", &["-c", ECHO]).spawn().expect("it starts"));
    for client in 9..=13 {
        assert_eq!(home.dig(client, "one"), "198.51.100.1");
    }
    let mut flows = home.net.at("a", "python3", &["-u", "-c", FLOWS, "8"]);
    let mut flows = flows.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(flows.stdout.take().expect("is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("is read");
    assert_eq!(line, "open\n");
    let host = |name: &str, last: u8| {
        format!(
            "[[names.host]]\nname = \"{name}\"\ngateway = \"home\"\naddress = \"10.0.0.{last}\"\nservices = [\"tcp/8080\"]\n[names.waypoint]"
        )
    };
    let two = waypoint.find("[[names.host]]\nname = \"two\"").expect("it is there");
    let without_two =
        waypoint[..two].to_owned() + &waypoint[waypoint.find("[names.waypoint]").expect("it is there")..];
    let with_three = without_two.replace("[names.waypoint]", &host("three", 81));
    for _ in 0..3 {
        home.reload(&with_three);
        assert_eq!(home.dig(9, "three"), "198.51.100.3");
        assert_eq!(home.dig(9, "two"), "");
        home.reload(&waypoint);
        assert_eq!(home.dig(9, "three"), "");
    }
    home.reload(&with_three);
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), Some("10.0.0.81 8080".to_owned()));
    let refused = home.reload_said(&waypoint.replace("198.51.100.2", "198.51.100.4"));
    assert!(refused.contains("other `[names.waypoint]` than the gateway runs with"), "{refused}");
    line.clear();
    said.read_line(&mut line).expect("is read");
    let counts: Vec<u32> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    assert!(counts[0] > 0, "{line}");
    assert_eq!(counts[1], 0, "of {} rounds of 1,000 flows", counts[0]);
    flows.wait().expect("it ends");
}

#[test]
fn a_waypoint_that_was_killed_honours_who_was_bound_and_has_the_names_that_were_added() {
    let test = "a_waypoint_that_was_killed_honours_who_was_bound_and_has_the_names_that_were_added";
    let waypoint = WAYPOINT.replace("zone = ", "store = \"names.store\"\nzone = ");
    let Some(mut home) = Home::with(test, &waypoint) else { return };
    assert_eq!(home.dig(9, "one"), "198.51.100.1");
    assert_eq!(home.get(9, "http://198.51.100.1/"), Some("10.0.0.80 80".to_owned()));
    let add = ["add", "three", "--gateway", "home", "--address", "10.0.0.81", "--service", "tcp/80"];
    let said = home.names(&[&add[..], &["--ipv4", "per-initiator"]].concat());
    assert!(said.contains("three.home.example leads to 10.0.0.81"), "{said}");
    assert!(home.add_pi("10.0.0.81").contains("leads to 10.0.0.81"));
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), Some("10.0.0.81 8080".to_owned()));
    home.until_written();
    let said = home.names(&["list"]);
    assert!(said.contains("the store has what packets did until "), "{said}");
    for _ in 0..2 {
        let mut gateway = home.net.gateway.take().expect("it runs");
        // What runs is `ip netns exec`, which has become the gateway.
        gateway.kill().expect("it runs");
        gateway.wait().expect("it ends");
        home.net.serve_ports(&program("waypoint.rav"), &waypoint);
        // Its only address leads this client to the first host, or nowhere.
        assert!(!home.dig(9, "three").contains("198.51.100"), "{}", home.dig(9, "three"));
        assert!(!home.dig(9, "two").contains("198.51.100"), "{}", home.dig(9, "two"));
    }
    // A shared address leads everybody to another host from now on, but not who has just reached the first.
    home.names(&["remove", "pi"]);
    assert!(home.add_pi("10.0.0.80").contains("leads to 10.0.0.80"));
    assert_eq!(home.get(9, "http://198.51.100.3:8080/"), None);
    let said = home.names(&["why", "203.0.113.9", "198.51.100.3", "tcp/8080"]);
    let quarantined = "quarantined: it has reached 10.0.0.81 behind `home` a short time ago";
    assert!(said.starts_with(quarantined) && said.contains("last dropped: quarantined"), "{said}");
    assert!(said.contains("promised: 10.0.0.80 behind `home` to any, whoever asks"), "{said}");
    assert_eq!(home.dig(9, "one"), "198.51.100.1");
    assert_eq!(home.get(9, "http://198.51.100.1/"), Some("10.0.0.80 80".to_owned()));
    assert_eq!(home.dig(10, "three"), "198.51.100.1");
    assert_eq!(home.get(10, "http://198.51.100.1/"), Some("10.0.0.81 80".to_owned()));
    home.names(&["remove", "three"]);
    home.net.stop();
    home.net.serve_ports(&program("waypoint.rav"), &waypoint);
    assert_eq!(home.dig(11, "three"), "");
}

#[test]
fn a_program_that_carries_no_packets_for_names_is_refused_at_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |program_file: &str, text: &str| {
        let file = directory.path().join("gateway.toml");
        let head = format!("program = \"{}\"\n", program(program_file).display());
        fs::write(&file, head + text).expect("is written");
        let output = Command::new(binary()).args(["check", &file.display().to_string()]).output();
        net::text(&output.expect("it runs"))
    };
    let said = check("wire.rav", &WAYPOINT.replace("ROUTER = \"02:00:00:00:00:01\"\n", ""));
    let wanted = "line 38, column 1: packets of a waypoint need a table `expectations: lpm(";
    assert!(said.contains(wanted) && said.contains("take that program"), "{said}");
    let said = check("waypoint.rav", &WAYPOINT.replace("peer = 1\n", ""));
    let wanted = "line 21, column 8: packets cannot be sent to the gateway `home`: give it `peer = 1`";
    assert!(said.contains(wanted), "{said}");
    let said = check("waypoint.rav", &format!("workers = 2\nstate = \"per-worker\"\n{WAYPOINT}"));
    assert!(said.contains("a waypoint has `workers = 1`"), "{said}");
    let said = check("waypoint.rav", WAYPOINT);
    assert!(said.contains("is right: 2 ports"), "{said}");
}
