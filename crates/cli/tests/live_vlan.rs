//! Ports of VLANs: several ports at one interface, told apart by the tags of frames.
//!
//! ```text
//! a ── to-a │ gateway │ trunk ══ frames with tags ══ trunk │ another gateway │ to-b ── b
//! ```
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, binary, installed, program, text};
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other gateway, a switch in a namespace of its own between the first one and host `b`.
struct Beyond {
    namespace: String,
    gateway: Option<Running>,
}

impl Beyond {
    /// Starts it with these ports, of which `trunk` and `to-b` are the interfaces.
    fn serve(net: &Net, ports: &str) -> Beyond {
        let (near, namespace) = (net.name("g"), net.name("h"));
        net.ip(&["netns", "add", &namespace]);
        let mut beyond = Beyond { namespace, gateway: None };
        let far = beyond.namespace.as_str();
        net.ip(&["-n", &near, "link", "set", "to-b", "netns", far]);
        net.ip(&["-n", &near, "link", "add", "trunk", "type", "veth", "peer", "name", "trunk", "netns", far]);
        for (namespace, link) in [(near.as_str(), "trunk"), (far, "trunk"), (far, "to-b")] {
            net.ip(&["-n", namespace, "link", "set", link, "up"]);
        }
        let (control, file) = (net.path("beyond.sock").display().to_string(), net.path("beyond.toml"));
        let switch = program("mac_switch.rav");
        let text = format!("program = \"{}\"\ncontrol = \"{control}\"\n{ports}", switch.display());
        fs::write(&file, text).expect("can be written");
        let mut command = net.at("h", binary(), &["serve", &file.display().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ravelin runs");
        beyond.gateway = Some(Running(child));
        let end = Instant::now() + Duration::from_secs(30);
        while !net.run("h", binary(), &["show", "ports", "--control", &control]).status.success() {
            assert!(Instant::now() < end, "the other gateway does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        beyond
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        self.gateway = None;
        // Its cables go with it.
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).output();
    }
}

/// The capture that tshark makes of the cable between the gateways, until it is dropped.
fn capture(net: &Net, at: &str, interface: &str, file: &str) -> Running {
    let file = net.path(file);
    // The beginnings of frames are enough.
    let path = file.display().to_string();
    let mut command = net.at(at, "tshark", &["-q", "-s", "128", "-i", interface, "-w", &path]);
    let capture = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tshark runs");
    let end = Instant::now() + Duration::from_secs(30);
    while !fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
        assert!(Instant::now() < end, "tshark does not begin");
        thread::sleep(Duration::from_millis(50));
    }
    Running(capture)
}

/// How many frames of a capture fit a filter of tshark.
fn frames(net: &Net, file: &str, filter: &str) -> usize {
    let file = net.path(file).display().to_string();
    let output: Output = net.run("g", "tshark", &["-r", &file, "-Y", filter]);
    String::from_utf8_lossy(&output.stdout).lines().count()
}

/// Brings 4 MiB by TCP from `a` to `b`, or back, however long it takes.
fn transfer(net: &Net, address: &str, direction: &[&str]) {
    let server = net.at("b", "timeout", &["120", "iperf3", "-s", "-1"]).stdout(Stdio::null()).spawn();
    let mut server = Running(server.expect("iperf3 runs"));
    let client = ["50", "iperf3", "-n", "4M", "-c", address];
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let output = net.run("a", "timeout", &[&client, direction].concat());
        if output.status.success() {
            break;
        }
        assert!(Instant::now() < end, "no TCP with {address} {direction:?}: {}", text(&output));
        thread::sleep(Duration::from_millis(300));
    }
    server.0.wait().expect("the server ends");
}

/// What the gateway shows of a port.
fn port_of(shown: &Value, name: &str) -> Value {
    let ports = shown["now"]["ports"].as_array().expect("a list");
    let found = ports.iter().find(|port| port["interface"] == name);
    found.unwrap_or_else(|| panic!("no port {name}: {shown}")).clone()
}

/// The gateway routes between `a` and VLAN 20 of the cable, where `b` is, and is a host in both networks.
fn routed_over_a_tag(test: &str, kind: &str) {
    if !installed(test, &["tshark", "iperf3"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    let switch = "[[port]]\non = \"trunk\"\nvlan = 20\n[[port]]\ninterface = \"to-b\"\n";
    let _beyond = Beyond::serve(&net, switch);
    let trace = net.path("port.pcapng");
    net.serve_ports(
        &program("router.rav"),
        &format!(
            "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\", \"fd00:1::1/64\"]\nhost = true\n\
             [[port]]\non = \"trunk\"\nvlan = 30\n{kind}\naddresses = [\"10.0.3.1/24\"]\n\
             [[port]]\non = \"trunk\"\nvlan = 20\naddresses = [\"10.0.2.1/24\", \"fd00:2::1/64\"]\nhost = true\n\
             mtu = 1400\ntrace = \"{}\"\n",
            trace.display()
        ),
    );
    let seen = capture(&net, "h", "trunk", "trunk.pcapng");
    for address in ["10.0.2.2", "fd00:2::2", "10.0.2.1", "fd00:2::1"] {
        let end = Instant::now() + Duration::from_secs(20);
        while net.pings(address) < 20 {
            let shown = net.ask(&["show", "ports", "--total"]);
            assert!(Instant::now() < end, "{address} does not answer: {shown}");
        }
    }
    // By the host interface of the VLAN the machine itself reaches `b`, too.
    let output =
        text(&net.run("g", "ping", &["-c", "3", "-i", "0.1", "-W", "5", "-I", "h-trunk.20", "10.0.2.2"]));
    assert!(output.contains(" 3 received"), "{output}");
    for (address, direction) in [("10.0.2.2", &[][..]), ("10.0.2.2", &["-R"]), ("fd00:2::2", &[])] {
        transfer(&net, address, direction);
    }
    // What has no tag, and what has another one.
    let (from_b, script) = (net.path("tagged.py").display().to_string(), include_str!("net/tagged.py"));
    fs::write(&from_b, script).expect("can be written");
    for (tag, times) in [("0", "3"), ("21", "5"), ("30", "7")] {
        let output = net.run("h", "python3", &[&from_b, "trunk", tag, times]);
        assert!(output.status.success(), "{}", text(&output));
    }
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let shown = net.ask(&["show", "ports", "--total"]);
        let lost = |what: &str| port_of(&shown, "trunk.30")[what].as_u64().unwrap_or(0);
        // The other machine's kernel sends something without a tag, too, now and then.
        if lost("other_vlan") == 5 && lost("untagged") >= 3 {
            break;
        }
        assert!(Instant::now() < end, "what has no port is not counted: {shown}");
        thread::sleep(Duration::from_millis(50));
    }
    let (shown, traced) = (net.ask(&["show", "ports", "--total"]), trace.display().to_string());
    let mode = port_of(&shown, "trunk.20")["mode"].as_str().unwrap_or_default().to_owned();
    assert!(mode.contains("VLAN 20") && mode.contains(&traced), "{mode}");
    let received = |port: usize| shown["now"]["report"]["ports"][port]["received"].as_u64().unwrap_or(0);
    assert_eq!(received(1), 7, "frames of VLAN 30: {shown}");
    drop(seen);
    net.stop();
    let ours = "eth.src == 02:00:00:00:00:01 || ip.addr == 10.0.2.1 || ip.addr == 10.0.1.2 || ipv6.addr == fd00:1::2";
    let all = frames(&net, "trunk.pcapng", ours);
    let tagged = frames(&net, "trunk.pcapng", &format!("({ours}) && vlan.id == 20 && vlan.priority == 0"));
    assert!(all > 100 && all == tagged, "{tagged} of {all} frames on the cable have the tag");
    // The program and what stands before it see no tags, and packets of this port alone.
    let (packets, with) = (frames(&net, "port.pcapng", "ip || ipv6"), frames(&net, "port.pcapng", "vlan"));
    assert!(packets > 1_000 && with == 0, "{packets} packets in the trace, {with} with a tag");
    assert_eq!(
        frames(&net, "port.pcapng", "eth.type == 0x88b5"),
        0,
        "frames of VLAN 30 in the trace of VLAN 20"
    );
}

#[test]
fn a_router_has_a_network_behind_a_tag_by_af_packet() {
    routed_over_a_tag("a_router_has_a_network_behind_a_tag_by_af_packet", "kind = \"af_packet\"");
}

#[test]
fn a_router_has_a_network_behind_a_tag_by_af_xdp() {
    routed_over_a_tag("a_router_has_a_network_behind_a_tag_by_af_xdp", "kind = \"af_xdp\"");
}

/// Behind a TAP device is the machine itself: it sends and receives frames with tags by a packet socket.
#[test]
fn frames_of_a_tap_device_come_to_the_ports_of_their_tags() {
    let test = "frames_of_a_tap_device_come_to_the_ports_of_their_tags";
    let Some(mut net) = Net::new(test) else { return };
    let crossed = net.path("crossed.rav");
    // What comes by one VLAN leaves by the other, what has no tag stays without.
    let text = "import std.net.ethernet\nstart decoder d(e: ethernet) { match in_port { 1 => send 2, 2 => send 1, else => send in_port } }\n";
    fs::write(&crossed, text).expect("can be written");
    let ports = "[[port]]\non = \"tap0\"\nvlan = 20\nkind = \"tap\"\n[[port]]\non = \"tap0\"\nvlan = 4094\n[[port]]\ninterface = \"tap0\"\n";
    net.serve_ports(&crossed, ports);
    let script = net.path("tagged.py").display().to_string();
    fs::write(&script, include_str!("net/tagged.py")).expect("can be written");
    for (sent, back) in [("20", "4094"), ("4094", "20"), ("0", "0"), ("priority", "0"), ("21", "none")] {
        let output = net.run("g", "python3", &[&script, "tap0", sent, "3", back]);
        let shown = net.ask(&["show", "ports", "--total"]);
        assert!(output.status.success(), "{sent} to {back}: {}{shown}", net::text(&output));
    }
    let shown = net.ask(&["show", "ports", "--total"]);
    assert_eq!(port_of(&shown, "tap0.20")["other_vlan"], 3, "{shown}");
    net.stop();
}
