//! A name server and a waypoint in two processes of two machines: what the one answers the other lets
//! through, in a bad network, when the name server is killed, and whatever is repeated or forged between
//! them.
//!
//! ```text
//!  a: clients ──── g: waypoint ══tunnel══ names_gateway ──── b: hosts
//!     │                ║ tunnel                ║
//!     └─ dig ──── d: name server ══════════════╝
//! ```

mod net;

use net::script::Script;
use net::{Net, Running, binary, installed, new_key, program, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The waypoint, without a name server.
const WAYPOINT: &str = r#"
[[port]]
interface = "to-a"
[[port]]
kind = "tunnel"
listen = "0.0.0.0:5282"
key = "w.key"
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

[names]
zone = "home.example"
name_servers = ["ns1"]

[[names.server]]
name = "ns1"
addresses = ["192.0.2.53"]

[[names.gateway]]
name = "home"
networks = ["10.0.0.0/24"]
peer = 1

[names.waypoint]
known = ["198.51.100.1"]
unknown = ["198.51.100.2"]
"#;

/// The gateway, which is known to both.
const HOME: &str = r#"
[[port]]
kind = "tunnel"
listen = "0.0.0.0:5283"
key = "home.key"
[[port.peer]]
name = "w"
number = 1
key = "W"
endpoint = "127.0.0.1:5282"
[[port.peer]]
name = "ns1"
number = 2
key = "NS1"
endpoint = "10.9.0.2:5282"
[[port]]
interface = "to-b"

[register]
waypoints = ["ns1"]
[[register.host]]
name = "three.home.example"
address = "10.0.0.81"
services = ["tcp/80"]
"#;

/// The name server, which has no ports.
const NAME_SERVER: &str = r#"
[names]
listen = ["192.0.2.53:53"]
zone = "home.example"
clients = ["203.0.113.0/24"]
replies_per_second = 0
waypoints = ["w"]

[[names.server]]
name = "ns1"
addresses = ["192.0.2.53"]

[[names.gateway]]
name = "home"
networks = ["10.0.0.0/24"]
names = ["*.@"]
[[names.gateway]]
name = "unknown"
networks = ["10.0.0.0/24"]

[[names.host]]
name = "one"
gateway = "home"
address = "10.0.0.80"
services = ["tcp/80"]
[[names.host]]
name = "two"
gateway = "home"
address = "10.0.0.81"
services = ["tcp/80"]
[[names.host]]
name = "nowhere"
gateway = "unknown"
address = "10.0.0.80"
services = ["tcp/80"]

[tunnel]
listen = "0.0.0.0:5282"
key = "ns1.key"
[[tunnel.peer]]
name = "w"
number = 1
key = "W"
endpoint = "127.0.0.1:6001"
[[tunnel.peer]]
name = "home"
number = 2
key = "HOME"
"#;

/// Answers each connection with its own address.
const SERVER: &str = r#"
import socket, sys
server = socket.create_server((sys.argv[1], 80))
while True:
    connection, client = server.accept()
    connection.settimeout(5)
    try:
        connection.recv(4096)
        said = f'{sys.argv[1]} from {client[0]}'
        connection.sendall(f'HTTP/1.0 200 OK\r\nContent-Length: {len(said)}\r\n\r\n{said}'.encode())
    except OSError:
        pass
    connection.close()
"#;

/// The network between name server and waypoint, and how it is told what to do.
struct BadNetwork(Script);

impl BadNetwork {
    fn start(net: &Net) -> BadNetwork {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/bad_network.py");
        let script = script.display().to_string();
        let mut command = net.at("d", "python3", &["-u", &script, "6001", "10.9.0.1", "5282"]);
        BadNetwork(Script::start(&mut command))
    }

    /// Says how many datagrams have gone to the waypoint so far.
    fn tell(&mut self, what: &str) -> u64 {
        self.0.ask(what).parse().expect("a number")
    }
}

/// The whole of it.
struct Roles {
    name_server: Option<Running>,
    bad_network: BadNetwork,
    _gateway: Running,
    _servers: Vec<Running>,
    net: Net,
}

impl Roles {
    fn new(test: &str) -> Option<Roles> {
        if !installed(test, &["dig", "curl", "python3"]) {
            return None;
        }
        let mut net = Net::of_names(test)?;
        net.ip(&["netns", "add", &net.name("d")]);
        let [g, d] = ["g", "d"].map(|name| net.name(name));
        net.cable(["d", "dns", "192.0.2.53"], ["a", "dns", "192.0.2.1"]);
        net.cable(["d", "tunnel", "10.9.0.2"], ["g", "tunnel", "10.9.0.1"]);
        net.words(&format!("-n {d} link set lo up"));
        net.words(&format!("-n {g} link set lo up"));
        net.words(&format!("-n {d} route add 203.0.113.0/24 via 192.0.2.1"));
        let [w, home, ns1] = ["w", "home", "ns1"].map(|role| new_key(&net.path(&format!("{role}.key"))));
        let keyed = |file: &str| {
            let file = file.replace("\"HOME\"", &format!("\"{home}\"")).replace("\"W\"", &format!("\"{w}\""));
            file.replace("\"NS1\"", &format!("\"{ns1}\""))
        };
        let servers = ["10.0.0.80", "10.0.0.81"].map(|host| {
            let mut server = net.at("b", "python3", &["-u", "-c", SERVER, host]);
            Running::start(&mut server)
        });
        net.serve_ports(&program("waypoint.rav"), &keyed(WAYPOINT));
        let inside = format!("program = \"{}\"\n", program("names_gateway.rav").display());
        let gateway = serve(&net, "g", "home", &(inside + &keyed(HOME)));
        fs::write(net.path("ns1.text"), keyed(NAME_SERVER)).expect("is written");
        let bad_network = BadNetwork::start(&net);
        let servers = servers.into();
        let mut roles = Roles { name_server: None, bad_network, _gateway: gateway, _servers: servers, net };
        roles.start_name_server();
        Some(roles)
    }

    fn start_name_server(&mut self) {
        let file = fs::read_to_string(self.net.path("ns1.text")).expect("was written");
        self.name_server = Some(serve(&self.net, "d", "ns1", &file));
        let end = Instant::now() + Duration::from_secs(20);
        while self.names(&["list"])["zone"] != "home.example" {
            assert!(Instant::now() < end, "the name server does not answer");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the name server is told of its names.
    fn names(&self, words: &[&str]) -> Value {
        let control = self.net.path("ns1.sock").display().to_string();
        let output = self.net.ravelin(&[&["names"], words, &["--json", "--control", &control]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// The promises of the waypoint: address, host and initiators of each, in order, and the longest time
    /// that one lasts, in seconds.
    fn promises(&self) -> (Vec<[String; 3]>, f64) {
        let view = self.net.ask(&["names", "bindings"]);
        let promises = view["promises"].as_array().expect("promises");
        let word = |one: &Value, what: &str| one[what].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = promises
            .iter()
            .map(|one| ["address", "host", "initiators"].map(|what| word(one, what)))
            .collect();
        all.sort();
        let longest = promises.iter().filter_map(|one| one["seconds"].as_f64()).fold(0.0, f64::max);
        (all, longest)
    }

    fn query(&self, client: u8, name: &str, options: &[&str]) -> Command {
        let (name, from) = (format!("{name}.home.example"), format!("203.0.113.{client}"));
        let query = ["-b", &from, "@192.0.2.53", &name, "A"];
        self.net.at("a", "dig", &[&query, options].concat())
    }

    /// What a client is told of a name. It asks again where it gets an error, as a resolver does.
    fn dig(&self, client: u8, name: &str) -> String {
        let ask =
            || self.query(client, name, &["+short", "+tries=3", "+timeout=4"]).output().expect("dig runs");
        let mut answers = std::iter::repeat_with(|| last_line(&ask())).take(4);
        answers.find(|answer| !answer.is_empty()).unwrap_or_default()
    }

    /// What a client gets from an address, within some seconds.
    fn get(&self, client: u8, at: &str) -> String {
        let from = format!("203.0.113.{client}");
        let url = format!("http://{at}/");
        // The first packet asks for the host's card, and TCP sends again after a second.
        text(&self.net.run("a", "curl", &["-sS", "--max-time", "10", "--interface", &from, &url]))
    }
}

/// The last thing that `dig` said: before that it tells of queries that nobody answered.
fn last_line(output: &Output) -> String {
    text(output).lines().last().unwrap_or_default().to_owned()
}

/// A process of this file, which can be asked at `NAME.sock`.
fn serve(net: &Net, host: &str, name: &str, text: &str) -> Running {
    let control = net.path(&format!("{name}.sock")).display().to_string();
    let file = net.path(&format!("{name}.toml"));
    fs::write(&file, format!("control = \"{control}\"\n{text}")).expect("is written");
    let errors = fs::File::create(net.path(&format!("{name}.errors"))).expect("is made");
    let mut command = net.at(host, binary(), &["serve", "--one-process", &file.display().to_string()]);
    Running::of(command.stdout(Stdio::null()).stderr(errors).spawn().expect("it starts"))
}

#[test]
fn a_name_server_elsewhere_has_its_answers_let_through() {
    let Some(roles) = Roles::new("a_name_server_elsewhere_has_its_answers_let_through") else { return };
    // One client, two hosts, one port; what was registered at the name server is one of its names.
    assert_eq!(roles.dig(9, "one"), "198.51.100.1", "{:?}", fs::read_to_string(roles.net.path("ns1.errors")));
    assert_eq!(roles.get(9, "198.51.100.1"), "10.0.0.80 from 203.0.113.9");
    assert_eq!(roles.dig(10, "two"), "198.51.100.1");
    assert_eq!(roles.get(10, "198.51.100.1"), "10.0.0.81 from 203.0.113.10");
    let end = Instant::now() + Duration::from_secs(20);
    while roles.names(&["list"])["host_count"] != 4 {
        assert!(Instant::now() < end, "nothing is registered: {}", roles.names(&["list"]));
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(roles.dig(11, "three"), "198.51.100.1");
    assert_eq!(roles.get(11, "198.51.100.1"), "10.0.0.81 from 203.0.113.11");
    // A client that reaches a host by the only address gets an error for the other.
    let said = text(&roles.query(9, "two", &["+tries=1", "+timeout=10"]).output().expect("dig runs"));
    assert!(said.contains("status: SERVFAIL") && said.contains("leads this client elsewhere"), "{said}");
    // The waypoint knows no such gateway.
    let said = text(&roles.query(9, "nowhere", &["+tries=1", "+timeout=10"]).output().expect("dig runs"));
    assert!(said.contains("status: SERVFAIL") && said.contains("no waypoint leads to this host"), "{said}");
    let listed = roles.names(&["list"]);
    assert_eq!(listed["waypoints"], serde_json::json!([{ "name": "w", "silent": false }]));
}

#[test]
fn a_name_server_is_killed_in_a_bad_network_and_clients_only_ask_again() {
    let test = "a_name_server_is_killed_in_a_bad_network_and_clients_only_ask_again";
    let Some(mut roles) = Roles::new(test) else { return };
    roles.bad_network.tell("bad 20 30 200");
    for client in 9..=11 {
        assert_eq!(roles.dig(client, "one"), "198.51.100.1", "{client}");
    }
    assert_eq!(roles.get(11, "198.51.100.1"), "10.0.0.80 from 203.0.113.11");
    // Everything between both is lost, so the next query waits. Its name server is killed meanwhile.
    roles.bad_network.tell("bad 100 0 0");
    let mut waits = roles.query(12, "two", &["+short", "+tries=12", "+timeout=2"]);
    let waits = waits.stdout(Stdio::piped()).spawn().expect("dig runs");
    let end = Instant::now() + Duration::from_secs(20);
    while roles.names(&["list"])["held"] != 1 {
        assert!(Instant::now() < end, "the query does not wait: {}", roles.names(&["list"]));
        thread::sleep(Duration::from_millis(10));
    }
    roles.name_server = None;
    roles.bad_network.tell("bad 5 30 100");
    roles.start_name_server();
    let answer = waits.wait_with_output().expect("dig ends");
    assert_eq!(last_line(&answer), "198.51.100.1");
    assert_eq!(roles.get(12, "198.51.100.1"), "10.0.0.81 from 203.0.113.12");
    // What came twice was promised once, and nothing for longer than a promise lasts.
    let (promises, longest) = roles.promises();
    let of = |client: u8, host: &str| ["198.51.100.1".into(), host.into(), format!("203.0.113.{client}")];
    let mut wanted = vec![of(9, "10.0.0.80"), of(10, "10.0.0.80"), of(11, "10.0.0.80"), of(12, "10.0.0.81")];
    wanted.sort();
    assert_eq!(promises, wanted);
    assert!(longest <= 65.0, "{longest}");
}

#[test]
fn what_is_repeated_cut_or_forged_between_both_changes_nothing() {
    let test = "what_is_repeated_cut_or_forged_between_both_changes_nothing";
    let Some(mut roles) = Roles::new(test) else { return };
    assert_eq!(roles.dig(9, "one"), "198.51.100.1");
    let drops = |roles: &Roles| -> u64 {
        let shown = roles.net.ask(&["show", "ports", "--total"]);
        let drops = &shown["now"]["ports"][1]["tunnel"]["drops"];
        drops.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
    };
    for restart in [false, true] {
        if restart {
            roles.name_server = None;
            roles.start_name_server();
            assert_eq!(roles.dig(10, "two"), "198.51.100.1");
        }
        let (promises, left) = roles.promises();
        for attack in ["replay", "cut", "forge"] {
            let before = drops(&roles);
            let count = roles.bad_network.tell(attack);
            assert!(count > 2, "there is something to repeat");
            let end = Instant::now() + Duration::from_secs(20);
            while drops(&roles) < before + count {
                assert!(Instant::now() < end, "{attack}: {} of {count} were dropped", drops(&roles) - before);
                thread::sleep(Duration::from_millis(50));
            }
            let (now, later) = roles.promises();
            assert_eq!(now, promises, "{attack}");
            assert!(later <= left, "{attack} made a promise longer");
        }
    }
    // The true ones still speak to each other.
    assert_eq!(roles.dig(11, "two"), "198.51.100.1");
    assert_eq!(roles.get(11, "198.51.100.1"), "10.0.0.81 from 203.0.113.11");
}
