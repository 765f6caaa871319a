//! Two gateways with a tunnel between them, through a NAT, between hosts that know nothing of it.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::script::Script;
use net::{Net, binary, installed, new_key, program, text};
use serde_json::Value;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What comes from the host goes to peer 1, and the other way round.
const PROGRAM: &str = "
import std.net.{ethernet}
settable const HOST: mac = 02:00:00:00:00:01
reason other \"neither IP nor of peer 1\"
start decoder frame(eth: ethernet) {
    if eth.type != 0x0800 && eth.type != 0x86dd { drop other }
    match in_port {
        1 => to_peer
        else => to_host
    }
}
stage to_peer() requires eth {
    set eth.dst = 02:52:56:00:00:01
    send 2
}
stage to_host() requires eth {
    if eth.src != 02:52:56:00:00:01 || eth.dst != 02:52:56:00:00:00 { drop other }
    set eth.src = 02:00:00:00:00:99
    set eth.dst = HOST
    send 1
}
";

/// Ports of datagrams at 127.0.0.1: of each gateway, and of the NAT in front of the second.
const FIRST: u16 = 5001;
const SECOND: u16 = 5002;
const NAT: u16 = 6001;

/// A gateway of one host.
struct Gateway {
    child: Child,
    file: PathBuf,
    control: String,
    key: String,
}

impl Gateway {
    fn ask(&self, net: &Net, arguments: &[&str]) -> Value {
        let output = net.ravelin(&[arguments, &["--json", "--control", &self.control]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// What the tunnel shows.
    fn tunnel(&self, net: &Net) -> Value {
        self.ask(net, &["show", "ports", "--total"])["now"]["ports"][1]["tunnel"].clone()
    }

    fn reload(&self, net: &Net, file: &str) -> String {
        fs::write(&self.file, file).expect("can be written");
        text(&net.ravelin(&["reload", "--control", &self.control]))
    }

    /// Ends it; every packet is in its account.
    fn stop(mut self, net: &Net) -> Value {
        self.ask(net, &["stop"]);
        let mut said = String::new();
        let out = self.child.stdout.take().expect("is piped");
        std::io::Read::read_to_string(&mut BufReader::new(out), &mut said).expect("is read");
        let report: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        let sum = |what: &str| -> u64 {
            report[what].as_object().into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
        };
        let packets = |what: &str| report[what]["packets"].as_u64().unwrap_or(0);
        assert_eq!(packets("received"), packets("forwarded") + sum("drops") + sum("punts"), "{report}");
        report
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The gateway's file without peers.
fn head(net: &Net, host: &str, listen: u16) -> String {
    let last = if host == "a" { 1 } else { 2 };
    format!(
        "program = \"{}\"\ncontrol = \"{}\"\n[set]\nHOST = \"02:00:00:00:00:0{last}\"\n\
         [[port]]\ninterface = \"to-{host}\"\n\
         [[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:{listen}\"\nkey = \"{host}.key\"\n",
        net.path("program.rav").display(),
        net.path(&format!("{host}.sock")).display(),
    )
}

fn peer(name: &str, number: u32, key: &str, more: &str) -> String {
    format!("[[port.peer]]\nname = \"{name}\"\nnumber = {number}\nkey = \"{key}\"\n{more}")
}

/// Starts a gateway with this file, and waits until it answers.
fn start(net: &Net, host: &str, file: &str, key: String) -> Gateway {
    let path = net.path(&format!("{host}.toml"));
    fs::write(&path, file).expect("can be written");
    let mut command =
        net.at("g", binary(), &["serve", "--one-process", &path.display().to_string(), "--json"]);
    let errors = net.path(&format!("{host}.errors"));
    let said = fs::File::create(&errors).expect("can be written");
    let child = command.stdout(Stdio::piped()).stderr(said).spawn().expect("ravelin runs");
    let control = net.path(&format!("{host}.sock")).display().to_string();
    let mut gateway = Gateway { child, file: path, control, key };
    let end = Instant::now() + Duration::from_secs(30);
    while !net.ravelin(&["show", "run", "--total", "--control", &gateway.control]).status.success() {
        assert!(Instant::now() < end, "the gateway does not answer");
        let ended = gateway.child.try_wait().is_ok_and(|ended| ended.is_some());
        assert!(!ended, "the gateway ended: {:?}", fs::read_to_string(&errors));
        thread::sleep(Duration::from_millis(50));
    }
    gateway
}

/// The NAT, and how it is told what to do.
struct Relay(Script);

impl Relay {
    fn start(net: &Net) -> Relay {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/relay.py");
        let (script, inside, target) = (script.display().to_string(), NAT.to_string(), SECOND.to_string());
        let mut command = net.at("g", "python3", &[&script, &inside, &target]);
        let mut relay = Relay(Script::start(&mut command));
        relay.tell("pass");
        relay
    }

    /// Says how many datagrams were changed so far.
    fn tell(&mut self, what: &str) -> u64 {
        self.0.ask(what).parse().expect("a number")
    }
}

/// The hosts, the NAT and both gateways; the first finds the second, which is only answered.
fn joined(test: &str) -> Option<(Net, Relay, [Gateway; 2])> {
    if !installed(test, &["iperf3", "python3"]) {
        return None;
    }
    let net = Net::new(test)?;
    net.ip(&["-n", &net.name("g"), "link", "set", "lo", "up"]);
    for (host, other, last) in [("a", "02:00:00:00:00:02", 2), ("b", "02:00:00:00:00:01", 1)] {
        let name = net.name(host);
        net.ip(&["-n", &name, "link", "set", "eth0", "mtu", "1420"]);
        for address in [format!("10.0.0.{last}"), format!("fd00::{last}")] {
            net.ip(&[
                "-n",
                &name,
                "neigh",
                "replace",
                &address,
                "lladdr",
                other,
                "dev",
                "eth0",
                "nud",
                "permanent",
            ]);
        }
    }
    fs::write(net.path("program.rav"), PROGRAM).expect("can be written");
    let keys = ["a", "b"].map(|host| new_key(&net.path(&format!("{host}.key"))));
    let relay = Relay::start(&net);
    let endpoint = format!("endpoint = \"127.0.0.1:{NAT}\"\n");
    let [first_key, second_key] = keys;
    let second_file = head(&net, "b", SECOND) + &peer("home", 1, &first_key, "");
    let second = start(&net, "b", &second_file, second_key);
    let first_file = head(&net, "a", FIRST) + &peer("away", 1, &second.key, &endpoint);
    let first = start(&net, "a", &first_file, first_key);
    net.wait_for_pings();
    Some((net, relay, [first, second]))
}

fn drops(tunnel: &Value) -> u64 {
    tunnel["drops"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
}

fn wait_until(what: &str, mut found: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(seen) = found() {
        assert!(Instant::now() < end, "{what}: {seen}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn hosts_reach_each_other_through_a_tunnel() {
    let Some((net, _relay, gateways)) = joined("hosts_reach_each_other_through_a_tunnel") else { return };
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    for direction in [&[][..], &["-R"]] {
        let stream = net.tcp("10.0.0.2", direction);
        let received = stream["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(received > 1_000_000, "{stream}");
    }
    // Longer than the MTU: what does not fit is counted, and nothing of it comes.
    net.ip(&["-n", &net.name("a"), "link", "set", "eth0", "mtu", "1500"]);
    assert!(
        text(&net.run("a", "ping", &["-c", "3", "-i", "0.1", "-W", "1", "-s", "1440", "10.0.0.2"]))
            .contains(" 0 received")
    );
    let [first, second] = &gateways;
    let tunnel = first.tunnel(&net);
    assert_eq!(tunnel["refusals"]["too_long"], 3, "{tunnel}");
    let known = |gateway: &Gateway| gateway.tunnel(&net)["peers"][0].clone();
    let (away, home) = (known(first), known(second));
    for peer in [&away, &home] {
        assert_eq!(peer["number"], 1);
        assert!(peer["handshake_seconds"].is_number() && peer["cipher"].is_string(), "{peer}");
        for what in ["received", "received_bytes", "sent", "sent_bytes"] {
            assert!(peer[what].as_u64() > Some(1_000), "{what}: {peer}");
        }
    }
    assert_eq!((drops(&first.tunnel(&net)), drops(&second.tunnel(&net))), (0, 0));
    for gateway in gateways {
        let report = gateway.stop(&net);
        assert_eq!(report["drops"].get("other").and_then(Value::as_u64).unwrap_or(0), 0, "{report}");
    }
}

/// Each byte of datagrams is changed in turn: every one is a counted drop, and no packet comes out.
#[test]
fn a_changed_datagram_is_a_counted_drop_and_nothing_comes_of_it() {
    let test = "a_changed_datagram_is_a_counted_drop_and_nothing_comes_of_it";
    let Some((net, mut relay, [first, second])) = joined(test) else { return };
    let before = second.tunnel(&net);
    let flipped = relay.tell("flip");
    // A datagram of a ping has 116 bytes.
    let said = text(&net.run("a", "ping", &["-c", "250", "-i", "0.005", "-W", "1", "10.0.0.2"]));
    assert!(said.contains(" 0 received"), "{said}");
    let flipped = relay.tell("pass") - flipped;
    assert!(flipped >= 250, "{flipped}");
    wait_until("each is counted", || {
        let after = second.tunnel(&net);
        let more = drops(&after) - drops(&before);
        if more == flipped { Ok(()) } else { Err(format!("{more} of {flipped}: {after}")) }
    });
    let after = second.tunnel(&net);
    for what in ["received", "received_bytes", "endpoint"] {
        assert_eq!(after["peers"][0][what], before["peers"][0][what], "{what}");
    }
    for reason in ["malformed", "unknown_session", "forged_data"] {
        assert!(after["drops"][reason].as_u64().unwrap_or(0) > 0, "{reason}: {after}");
    }
    assert_eq!(net.pings("10.0.0.2"), 20);
    for gateway in [first, second] {
        gateway.stop(&net);
    }
}

/// Peers come and go by `reload` while a session of another goes on, one roams, and a revoked one is cut off.
#[test]
fn a_peer_roams_and_is_cut_off_when_it_is_revoked() {
    let Some((net, mut relay, [first, second])) = joined("a_peer_roams_and_is_cut_off_when_it_is_revoked")
    else {
        return;
    };
    let home = || second.tunnel(&net)["peers"][0].clone();
    let before = home();
    relay.tell("move");
    assert_eq!(net.pings("10.0.0.2"), 20);
    let after = home();
    assert!(before["endpoint"].is_string() && before["endpoint"] != after["endpoint"], "{before} {after}");
    // Another peer comes and goes; the session is still that of the beginning.
    let own = head(&net, "b", SECOND) + &peer("home", 1, &first.key, "");
    let other = new_key(&net.path("other.key"));
    let said = second.reload(&net, &format!("{own}{}", peer("other", 2, &other, "")));
    assert!(said.contains("the program took over"), "{said}");
    assert_eq!(second.tunnel(&net)["peers"].as_array().map(Vec::len), Some(2));
    let said = second.reload(&net, &own);
    assert!(said.contains("the program took over"), "{said}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    let session = |peer: &Value| peer["handshake_seconds"].as_f64().expect("a session");
    assert!(session(&home()) >= session(&before));
    // A file that cannot be is refused, and nothing changes.
    let twice = second.reload(&net, &format!("{own}{}", peer("b", 2, &first.key, "")));
    assert!(twice.contains("has the key") && twice.contains("nothing has changed"), "{twice}");
    let own_key = second.reload(&net, &format!("{own}{}", peer("b", 2, &second.key, "")));
    assert!(own_key.contains("holds the key of the peer `b`"), "{own_key}");
    fs::set_permissions(net.path("b.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("is changed");
    let open = second.reload(&net, &own);
    assert!(open.contains("may be read or written by others"), "{open}");
    fs::set_permissions(net.path("b.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("is changed");
    assert_eq!(net.pings("10.0.0.2"), 20);
    // Nothing of a revoked peer comes through once the reload has been answered.
    let said = second.reload(&net, &head(&net, "b", SECOND));
    assert!(said.contains("the program took over"), "{said}");
    let before = drops(&second.tunnel(&net));
    assert_eq!(net.pings("10.0.0.2"), 0);
    let after = second.tunnel(&net);
    assert!(drops(&after) >= before + 20 && after["peers"].as_array().is_some_and(Vec::is_empty), "{after}");
    // It is let in again.
    let said = second.reload(&net, &own);
    assert!(said.contains("the program took over"), "{said}");
    net.wait_for_pings();
    for gateway in [first, second] {
        gateway.stop(&net);
    }
}

/// The names that lead to hosts, as the waypoint tells.
fn registered(net: &Net, waypoint: &Gateway) -> Vec<String> {
    let view = waypoint.ask(net, &["names", "list"]);
    let hosts = view["hosts"].as_array().expect("a list");
    hosts
        .iter()
        .filter_map(|host| Some(format!("{} {}", host["name"].as_str()?, host["address"].as_str()?)))
        .collect()
}

/// A gateway registers names over the tunnel: they come, change and go with it, and end with its lease.
#[test]
fn names_of_a_gateway_come_and_go_with_its_registration() {
    let test = "names_of_a_gateway_come_and_go_with_its_registration";
    let Some((net, _relay, [mut home, waypoint])) = joined(test) else { return };
    let zone = "[names]\nlisten = [\"127.0.0.1:5353\"]\nzone = \"home.example\"\nshared_address = \"198.51.100.7\"\n\
                [[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\"]\n\
                [[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/24\"]\npeer = 1\n\
                names = [\"nas\", \"tv\", \"far\"]\n\
                [names.waypoint]\nunknown = [\"198.51.100.1\"]\n";
    let peer_of_waypoint = peer("home", 1, &home.key, "");
    // Its packets follow the names, so a registration that ends changes what they do.
    let without_peer = format!(
        "program = \"{}\"\ncontrol = \"{}\"\n[set]\nROUTER = \"02:00:00:00:00:02\"\n\
         [[port]]\ninterface = \"to-b\"\n\
         [[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:{SECOND}\"\nkey = \"b.key\"\n",
        program("waypoint.rav").display(),
        net.path("b.sock").display()
    );
    let waypoint_file = without_peer.clone() + &peer_of_waypoint + zone;
    let key = waypoint.key.clone();
    waypoint.stop(&net);
    let waypoint = start(&net, "b", &waypoint_file, key);
    let file = head(&net, "a", FIRST)
        + &peer("away", 1, &waypoint.key, &format!("endpoint = \"127.0.0.1:{NAT}\"\n"));
    let host = |name: &str, last: u8, service: &str| {
        format!(
            "[[register.host]]\nname = \"{name}\"\naddress = \"10.0.0.{last}\"\nservices = [\"{service}\"]\n"
        )
    };
    let register = |hosts: &str| format!("{file}[register]\nwaypoints = [\"away\"]\n{hosts}");
    let leads = |wanted: &[&str]| {
        wait_until(&format!("names are {wanted:?}"), || {
            let seen = registered(&net, &waypoint);
            if seen == wanted { Ok(()) } else { Err(format!("{seen:?}")) }
        });
    };
    // One is of another zone, one not behind this gateway, and one is not given to it.
    let all = register(
        &[
            host("nas.home.example", 80, "tcp/22"),
            host("tv.home.example", 81, "tcp/443"),
            host("nas.away.example", 82, "tcp/80"),
            host("pi.home.example", 82, "tcp/80"),
        ]
        .concat(),
    ) + "[[register.host]]\nname = \"far.home.example\"\naddress = \"10.9.0.1\"\nservices = [\"icmp\"]\n";
    let said = home.reload(&net, &all);
    assert!(said.contains("the program took over"), "{said}");
    leads(&["nas.home.example 10.0.0.80", "tv.home.example 10.0.0.81"]);
    let leases =
        |gateway: &Gateway| gateway.ask(&net, &["show", "leases", "--total"])["now"]["leases"].clone();
    wait_until("both ends show the registration", || {
        let (own, there) = (leases(&home), leases(&waypoint));
        let (own, there) = (&own["waypoints"][0], &there["gateways"][0]);
        let refused = serde_json::json!(["pi.home.example", "far.home.example", "nas.away.example"]);
        let shown =
            own["name"] == "away" && own["names"] == 5 && own["leased"] == true && own["refused"] == refused;
        if shown && there["name"] == "home" && there["names"] == 2 {
            Ok(())
        } else {
            Err(format!("{own} {there}"))
        }
    });
    // Another host by one name, and one name less.
    home.reload(&net, &register(&host("nas.home.example", 90, "tcp/22")));
    leads(&["nas.home.example 10.0.0.90"]);
    // A file that registers nothing takes all away, and the next one brings them back.
    home.reload(&net, &file);
    leads(&[]);
    home.reload(&net, &register(&host("nas.home.example", 90, "tcp/22")));
    leads(&["nas.home.example 10.0.0.90"]);
    // A gateway that starts anew registers again, whatever became of the one before.
    home.child.kill().expect("it runs");
    home.child.wait().expect("it ends");
    let key = home.key.clone();
    home = start(&net, "a", &register(&host("tv.home.example", 81, "tcp/443")), key);
    wait_until("the name of the new start is there", || {
        let seen = registered(&net, &waypoint);
        if seen.iter().any(|name| name.starts_with("tv.")) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    // One that ends in order takes its names along, also those of the start before.
    let key = home.key.clone();
    home.stop(&net);
    leads(&[]);
    // A revoked one has none.
    let home = start(&net, "a", &register(&host("nas.home.example", 80, "tcp/22")), key);
    leads(&["nas.home.example 10.0.0.80"]);
    fs::write(&waypoint.file, without_peer + zone).expect("can be written");
    // It ends the registration and the program at once, and neither waits for the other.
    let reload = ["60", binary(), "reload", "--control", &waypoint.control];
    let said = text(&Command::new("timeout").args(reload).output().expect("it runs"));
    assert!(said.contains("the program took over"), "{said}");
    leads(&[]);
    for gateway in [home, waypoint] {
        gateway.stop(&net);
    }
}

/// A host behind a gateway behind a NAT answers at the waypoint's address, and sees who asks: the programs of
/// names at both ends of the tunnel, with what their texts promise.
#[test]
fn an_initiator_reaches_a_host_by_the_address_of_a_waypoint() {
    let test = "an_initiator_reaches_a_host_by_the_address_of_a_waypoint";
    if !installed(test, &["iperf3", "python3"]) {
        return;
    }
    let Some(net) = Net::new(test) else { return };
    net.ip(&["-n", &net.name("g"), "link", "set", "lo", "up"]);
    let at = |host: &str, arguments: &[&str]| net.ip(&[&["-n", &net.name(host)], arguments].concat());
    at("a", &["address", "flush", "dev", "eth0"]);
    at("a", &["address", "add", "10.0.0.80/24", "dev", "eth0"]);
    at("a", &["route", "add", "default", "via", "10.0.0.1"]);
    at("b", &["address", "flush", "dev", "eth0"]);
    at("b", &["address", "add", "203.0.113.9/32", "dev", "eth0"]);
    at("b", &["route", "add", "198.51.100.0/28", "dev", "eth0", "src", "203.0.113.9"]);
    let _relay = Relay::start(&net);
    let keys = ["a", "b"].map(|host| new_key(&net.path(&format!("{host}.key"))));
    let head = |name: &str, host: &str| {
        let (program, socket) = (program(name), net.path(&format!("{host}.sock")));
        format!("program = \"{}\"\ncontrol = \"{}\"\n", program.display(), socket.display())
    };
    let (cable, tunnel) = (
        |host: &str| format!("[[port]]\ninterface = \"to-{host}\"\npromiscuous = true\n"),
        |host: &str, listen: u16| {
            format!("[[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:{listen}\"\nkey = \"{host}.key\"\n")
        },
    );
    let [home_key, waypoint_key] = keys;
    let waypoint_file = head("waypoint.rav", "b")
        + "[set]\nROUTER = \"02:00:00:00:00:02\"\n"
        + &cable("b")
        + &tunnel("b", SECOND)
        + &peer("home", 1, &home_key, "");
    let waypoint = start(&net, "b", &waypoint_file, waypoint_key);
    let home_file = head("names_gateway.rav", "a")
        + &tunnel("a", FIRST)
        + &peer("waypoint", 9, &waypoint.key, &format!("endpoint = \"127.0.0.1:{NAT}\"\n"))
        + &cable("a");
    let home = start(&net, "a", &home_file, home_key);
    wait_until("the host answers pings to the waypoint", || {
        let said = text(&net.run("b", "ping", &["-c", "5", "-i", "0.2", "-W", "2", "198.51.100.1"]));
        if said.contains("5 received") { Ok(()) } else { Err(said) }
    });
    let serve = ["30", "iperf3", "-s", "-1", "-p", "80"];
    let server = net.at("a", "timeout", &serve).stdout(Stdio::piped()).spawn().expect("iperf3 runs");
    let mut stream = Value::Null;
    wait_until("the host takes a connection", || {
        let client = ["20", "iperf3", "-c", "198.51.100.1", "-p", "80", "-t", "2", "-J"];
        let output = net.run("b", "timeout", &client);
        stream = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // `iperf3 -J` ends well also where nobody listens yet.
        if output.status.success() && stream["error"].is_null() { Ok(()) } else { Err(text(&output)) }
    });
    assert!(stream["end"]["sum_received"]["bytes"].as_u64() > Some(1_000_000), "{stream}");
    let said = text(&server.wait_with_output().expect("the server ends"));
    assert!(said.contains("Accepted connection from 203.0.113.9"), "{said}");
    // Nobody is promised anything else, and nothing else was there.
    let refused = text(&net.run("b", "ping", &["-c", "2", "-i", "0.2", "-W", "1", "198.51.100.5"]));
    assert!(refused.contains(" 0 received"), "{refused}");
    let report = waypoint.stop(&net);
    assert_eq!(report["drops"]["no_expectation"], 2, "{report}");
    home.stop(&net);
}
