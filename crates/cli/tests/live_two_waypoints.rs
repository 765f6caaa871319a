//! Two waypoints, a name server and a gateway, each a process of its own: one waypoint is killed while flows
//! pass both.
//!
//! ```text
//!     ┌──── g: first waypoint ══╗
//!  a: clients                   ╠══ g: names_gateway ──── b: hosts
//!     ├──── e: second waypoint ═╝
//!     └──── d: name server ═════ tunnels to all three
//! ```

mod net;

use net::script::Script;
use net::small_internet::either;
use net::{Net, Running, binary, installed, new_key, program, text};
use serde_json::Value;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A waypoint without a name server: `PORT` is the interface to its clients, `ADDRESS` its only address.
const WAYPOINT: &str = r#"
[[port]]
interface = "PORT"
[[port]]
kind = "tunnel"
listen = "0.0.0.0:5282"
key = "OWN.key"
[[port.peer]]
name = "home"
number = 1
key = "HOME"
[[port.peer]]
name = "ns1"
number = 9
key = "NS1"
packets = false

[set]
ROUTER = "02:00:00:00:00:01"
POOL = "ADDRESS/32"

[names]
zone = "home.example"
store = "OWN.store"
name_servers = ["ns1"]

[[names.server]]
name = "ns1"
addresses = ["192.0.2.53"]

[[names.gateway]]
name = "home"
networks = ["10.0.0.0/24"]
peer = 1

[names.waypoint]
known = ["ADDRESS"]
"#;

/// The gateway, which dials both.
const HOME: &str = r#"
[[port]]
kind = "tunnel"
listen = "0.0.0.0:5283"
key = "home.key"
[[port.peer]]
name = "w1"
number = 1
key = "W1"
endpoint = "127.0.0.1:5282"
[[port.peer]]
name = "w2"
number = 2
key = "W2"
endpoint = "10.9.1.2:5282"
[[port]]
interface = "to-b"
"#;

/// The name server, which asks the first waypoint before the second.
const NAME_SERVER: &str = r#"
[names]
listen = ["192.0.2.53:53"]
zone = "home.example"
clients = ["203.0.113.0/24"]
replies_per_second = 0
waypoints = ["w1", "w2"]

[[names.server]]
name = "ns1"
addresses = ["192.0.2.53"]

[[names.gateway]]
name = "home"
networks = ["10.0.0.0/24"]

[[names.host]]
name = "one"
gateway = "home"
address = "10.0.0.80"
services = ["udp/7", "tcp/7", "tcp/8"]
[[names.host]]
name = "two"
gateway = "home"
address = "10.0.0.81"
services = ["udp/7", "tcp/7", "tcp/8"]

[tunnel]
listen = "0.0.0.0:5282"
key = "ns1.key"
[[tunnel.peer]]
name = "w1"
number = 1
key = "W1"
endpoint = "10.9.0.1:5282"
[[tunnel.peer]]
name = "w2"
number = 2
key = "W2"
endpoint = "10.9.2.2:5282"
"#;

/// Sends back whatever comes, by UDP and TCP, with its own address in front. At port 8 it goes on speaking by
/// itself, so the gateway sees that nobody answers any more.
const ECHO: &str = r#"
import socketserver, sys, threading, time
own = sys.argv[1].encode()
class Stream(socketserver.BaseRequestHandler):
    def handle(self):
        while said := self.request.recv(4096):
            self.request.sendall(own + b' ' + said)
class Datagram(socketserver.BaseRequestHandler):
    def handle(self):
        said, server = self.request
        server.sendto(own + b' ' + said, self.client_address)
class Clock(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.send(b'.'):
            time.sleep(0.2)
class Streams(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 256
for port, kind in ((7, Stream), (8, Clock)):
    threading.Thread(target=Streams((sys.argv[1], port), kind).serve_forever, daemon=True).start()
socketserver.UDPServer((sys.argv[1], 7), Datagram).serve_forever()
"#;

/// Flows of four clients to one address, as many of UDP as of TCP. For each line on its input it says
/// something on each flow and waits for the answer, and prints how many flows were answered rightly. By UDP
/// nothing is said again, so an answer that does not come was lost on the way.
const FLOWS: &str = r#"
import socket, sys
at, host, patience, of_kind = sys.argv[1], sys.argv[2].encode(), float(sys.argv[3]), int(sys.argv[4])
flows = []
for client in range(9, 13):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        for _ in range(of_kind):
            flow = socket.socket(socket.AF_INET, kind)
            flow.settimeout(20)
            flow.bind(('203.0.113.%d' % client, 0))
            flow.connect((at, 7))
            flows.append(flow)
count = 0
for _ in sys.stdin:
    count += 1
    said, answered = b'%d' % count, 0
    for flow in flows:
        flow.settimeout(patience)
        try:
            flow.send(said)
            # What is late answers an earlier line.
            while not flow.recv(4096).endswith(host + b' ' + said):
                pass
            answered += 1
        except OSError:
            pass
    print(answered, flush=True)
"#;

/// Listens to port 8.
const LISTENER: &str = r#"
import socket, sys
clock = socket.create_connection((sys.argv[1], 8), source_address=('203.0.113.9', 0))
while clock.recv(100):
    pass
"#;

/// Flows of one client and one kind in the script above, and all.
fn of_kind() -> usize {
    either(10, 25)
}
fn all_flows() -> usize {
    4 * 2 * of_kind()
}

/// Flows that go on as they are told.
struct Flows(Script);

impl Flows {
    fn begin(net: &Net, at: &str, host: &str) -> Flows {
        let of_kind = of_kind().to_string();
        let mut command = net.at("a", "python3", &["-u", "-c", FLOWS, at, host, "20", &of_kind]);
        Flows(Script::start(&mut command))
    }

    /// Lets each flow say something, and counts those that were answered.
    fn round(&mut self) -> usize {
        let line = self.0.ask("");
        line.parse().unwrap_or_else(|_| panic!("not all flows could begin: {line}"))
    }

    /// Lets all speak until each is answered: the first packet to a host that the gateway does not know may
    /// be lost.
    fn all_are_answered(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.round() < all_flows() {
            assert!(Instant::now() < end, "not all flows get through");
        }
    }
}

/// The whole of it.
struct Waypoints {
    /// The waypoints, the gateway and the name server, by their names.
    roles: Vec<(&'static str, Running)>,
    _servers: Vec<Running>,
    net: Net,
}

impl Waypoints {
    fn new(test: &str) -> Option<Waypoints> {
        if !installed(test, &["dig", "python3"]) {
            return None;
        }
        let net = Net::of_names(test)?;
        for more in ["d", "e"] {
            net.ip(&["netns", "add", &net.name(more)]);
        }
        for (one, other) in [
            (["d", "dns", "192.0.2.53"], ["a", "dns", "192.0.2.1"]),
            (["d", "w1", "10.9.0.2"], ["g", "ns1", "10.9.0.1"]),
            (["d", "w2", "10.9.2.1"], ["e", "ns1", "10.9.2.2"]),
            (["e", "home", "10.9.1.2"], ["g", "w2", "10.9.1.1"]),
        ] {
            net.cable(one, other);
        }
        let [a, d, e, g] = ["a", "d", "e", "g"].map(|name| net.name(name));
        net.words(&format!("-n {e} link add to-a type veth peer name eth1 netns {a}"));
        net.words(&format!("-n {e} link set to-a up"));
        net.words(&format!("-n {a} link set eth1 address 02:00:00:00:00:01"));
        net.words(&format!("-n {a} link set eth1 up"));
        net.words(&format!("-n {a} route add 198.51.101.0/28 dev eth1"));
        net.words(&format!("-n {d} route add 203.0.113.0/24 via 192.0.2.1"));
        for name in [&d, &e, &g] {
            net.words(&format!("-n {name} link set lo up"));
        }
        let keys = ["W1", "W2", "HOME", "NS1"].map(|name| {
            let file = net.path(&format!("{}.key", name.to_lowercase()));
            (format!("\"{name}\""), format!("\"{}\"", new_key(&file)))
        });
        let keyed =
            |file: &str| keys.iter().fold(file.to_owned(), |file, (name, key)| file.replace(name, key));
        let program = |name: &str| format!("program = \"{}\"\n", program(name).display());
        for (own, port, address) in [("w1", "to-a", "198.51.100.1"), ("w2", "to-a", "198.51.101.1")] {
            let file = WAYPOINT.replace("OWN", own).replace("PORT", port).replace("ADDRESS", address);
            net.write(own, &(program("waypoint.rav") + &keyed(&file)));
        }
        net.write("home", &(program("names_gateway.rav") + &keyed(HOME)));
        net.write("ns1", &keyed(NAME_SERVER));
        let servers = ["10.0.0.80", "10.0.0.81"]
            .map(|host| Running::start(&mut net.at("b", "python3", &["-u", "-c", ECHO, host])));
        let mut waypoints = Waypoints { roles: Vec::new(), _servers: servers.into(), net };
        for (role, host) in [("w1", "g"), ("w2", "e"), ("home", "g"), ("ns1", "d")] {
            waypoints.start(role, host);
        }
        Some(waypoints)
    }

    /// Starts a role, and waits until it answers.
    fn start(&mut self, role: &'static str, host: &str) {
        let errors = fs::File::create(self.net.path(&format!("{role}.errors"))).expect("is made");
        let file = self.net.path(&format!("{role}.toml")).display().to_string();
        let mut command = self.net.at(host, binary(), &["serve", "--one-process", &file]);
        let child = command.stdout(Stdio::null()).stderr(errors).spawn().expect("it starts");
        self.roles.push((role, Running::of(child)));
        let what: &[&str] = if role == "ns1" { &["names", "list"] } else { &["show", "run", "--total"] };
        self.until(&format!("the {role} answers"), |all| {
            let said = all.asked(role, what);
            said.is_object() && said["error"].is_null()
        });
    }

    /// Kills a role, at once.
    fn kill(&mut self, role: &str) {
        let place = self.roles.iter().position(|(name, _)| *name == role).expect("it runs");
        // What runs is `ip netns exec`, which has become the role.
        drop(self.roles.remove(place));
    }

    fn until(&self, what: &str, holds: impl Fn(&Waypoints) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < end, "it does not come about that {what}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a role says, as data.
    fn asked(&self, role: &str, words: &[&str]) -> Value {
        let control = self.net.path(&format!("{role}.sock")).display().to_string();
        let output = self.net.ravelin(&[words, &["--json", "--control", &control]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// What a client is told of a name: the address, or nothing where no waypoint has promised it in time.
    fn dig(&self, client: u8, name: &str) -> Option<Ipv4Addr> {
        let (name, from) = (format!("{name}.home.example"), format!("203.0.113.{client}"));
        let query = ["-b", &from, "@192.0.2.53", &name, "A", "+short", "+tries=1", "+timeout=20"];
        let output = self.net.run("a", "dig", &query);
        text(&output).lines().last().and_then(|line| line.parse().ok())
    }

    /// The first address that a client is told of a name, however often it has to ask.
    fn dig_until_told(&self, client: u8, name: &str) -> Ipv4Addr {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(address) = self.dig(client, name) {
                return address;
            }
            assert!(Instant::now() < end, "{client} is told nothing of {name}");
        }
    }

    /// Asks until a waypoint of this address has promised it.
    fn dig_until(&self, client: u8, name: &str, address: Ipv4Addr) {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.dig(client, name);
            if said == Some(address) {
                return;
            }
            assert!(Instant::now() < end, "{name} for {client}: {said:?} and not {address}");
        }
    }

    /// Whether the first waypoint has stored that a client reaches a service by its address: by the key of a
    /// binding, which `naming::store` describes.
    fn has_stored(&self, client: u8, address: Ipv4Addr, protocol: u8, port: u8) -> bool {
        let key = [&[203, 0, 113, client], &address.octets()[..], &[protocol, 0, port]].concat();
        let store = fs::read(self.net.path("w1.store")).expect("is there");
        store.windows(key.len()).any(|bytes| bytes == key)
    }

    /// How many packets were lost since a process was too slow to take them: by sockets of UDP, and on the
    /// way to the programs by which flows of the second waypoint go.
    fn overflows(&self) -> u64 {
        let by_sockets = ["a", "b", "e", "g"].map(|host| {
            let said = text(&self.net.run(host, "cat", &["/proc/net/snmp"]));
            let mut lines = said.lines().filter_map(|line| line.strip_prefix("Udp: "));
            let (names, counts) = (lines.next().expect("names"), lines.next().expect("counts"));
            let mut both = names.split(' ').zip(counts.split(' '));
            let found = both.find(|(name, _)| *name == "RcvbufErrors").expect("is counted");
            found.1.parse::<u64>().expect("a number")
        });
        let by_ports = ["w2", "home"].map(|role| {
            let shown = self.asked(role, &["show", "ports", "--total"]);
            let ports = shown["now"]["ports"].as_array().expect("all ports");
            ports.iter().map(|port| port["ring_full"].as_u64().expect("is counted")).sum::<u64>()
        });
        by_sockets.into_iter().chain(by_ports).sum()
    }
}

impl Net {
    /// Writes the file of a role, which can be asked at `ROLE.sock`.
    fn write(&self, role: &str, text: &str) {
        let control = self.path(&format!("{role}.sock")).display().to_string();
        fs::write(self.path(&format!("{role}.toml")), format!("control = \"{control}\"\n{text}"))
            .expect("is written");
    }
}

#[test]
fn one_of_two_waypoints_is_killed_and_only_what_passed_it_is_lost() {
    let test = "one_of_two_waypoints_is_killed_and_only_what_passed_it_is_lost";
    let Some(mut all) = Waypoints::new(test) else { return };
    let (first, second) = (Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 101, 1));
    // The first waypoint has no second address for a client, so its next name is by the second waypoint.
    let [by_first, mut by_second] =
        [("one", first, "10.0.0.80"), ("two", second, "10.0.0.81")].map(|(name, at, host)| {
            (9..=12).for_each(|client| all.dig_until(client, name, at));
            let mut flows = Flows::begin(&all.net, &at.to_string(), host);
            flows.all_are_answered();
            flows
        });
    let _listener = Running::start(&mut all.net.at("a", "python3", &["-c", LISTENER, &first.to_string()]));
    all.until("the store has what packets have done", |all| {
        let of_flows = (9..=12).flat_map(|client| [(client, 17, 7), (client, 6, 7)]);
        of_flows
            .chain([(9, 6, 8)])
            .all(|(client, protocol, port)| all.has_stored(client, first, protocol, port))
    });
    let overflows = all.overflows();
    let enough = Arc::new(AtomicBool::new(false));
    let ends = enough.clone();
    let going_on = thread::spawn(move || {
        let mut counts = Vec::new();
        while !ends.load(Ordering::Relaxed) || counts.len() < 5 {
            counts.push(by_second.round());
        }
        (by_second, counts)
    });
    all.kill("w1");
    // Who asks for a host of the dead waypoint is led by the other, and at most gets an error before.
    assert_eq!(all.dig_until_told(9, "two"), second);
    enough.store(true, Ordering::Relaxed);
    let (mut by_second, counts) = going_on.join().expect("it ends");
    let unanswered: usize = counts.iter().map(|answered| all_flows() - answered).sum();
    let overflows = all.overflows() - overflows;
    assert!(
        unanswered as u64 <= overflows,
        "flows of the second waypoint lose nothing: {counts:?}, {overflows}"
    );
    assert_eq!(all.dig_until_told(13, "one"), second, "a new client is led by the second waypoint");
    assert_eq!(all.asked("ns1", &["names", "list"])["waypoints"][0]["silent"], true);

    all.start("w1", "g");
    all.until("the gateway has dialled the first waypoint again", |all| {
        let shown = all.asked("w1", &["show", "ports", "--total"]);
        let peers = shown["now"]["ports"][1]["tunnel"]["peers"].as_array().cloned().unwrap_or_default();
        peers.iter().any(|peer| peer["name"] == "home" && !peer["handshake_seconds"].is_null())
    });
    // It is asked again, and leads who was led there before to the same host only.
    all.dig_until(9, "one", first);
    for client in 9..=12 {
        all.dig_until(client, "one", first);
        assert_ne!(all.dig_until_told(client, "two"), first, "{client}");
    }
    Flows::begin(&all.net, &first.to_string(), "10.0.0.80").all_are_answered();
    by_second.all_are_answered();
    drop(by_first);
}
