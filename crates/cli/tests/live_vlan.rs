//! Ports of VLANs: several ports at one interface, told apart by the tags of frames.
//!
//! ```text
//! a ── to-a │ gateway │ trunk ══ frames with tags ══ trunk │ another gateway │ to-b ── b
//! ```
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::udp_stream::UdpStream;
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
    control: String,
    gateway: Option<Running>,
}

impl Beyond {
    /// Starts it with these ports, of which `trunk` and `to-b` are the interfaces.
    fn serve(net: &Net, ports: &str) -> Beyond {
        let (near, namespace) = (net.name("g"), net.name("h"));
        net.ip(&["netns", "add", &namespace]);
        let control = net.path("beyond.sock").display().to_string();
        let mut beyond = Beyond { namespace, control: control.clone(), gateway: None };
        let far = beyond.namespace.as_str();
        net.ip(&["-n", &near, "link", "set", "to-b", "netns", far]);
        net.ip(&["-n", &near, "link", "add", "trunk", "type", "veth", "peer", "name", "trunk", "netns", far]);
        for (namespace, link) in [(near.as_str(), "trunk"), (far, "trunk"), (far, "to-b")] {
            net.ip(&["-n", namespace, "link", "set", link, "up"]);
        }
        let file = net.path("beyond.toml");
        let switch = program("mac_switch.rav");
        let text = format!("program = \"{}\"\ncontrol = \"{control}\"\n{ports}", switch.display());
        fs::write(&file, text).expect("can be written");
        let mut command = net.at("h", binary(), &["serve", "--one-process", &file.display().to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ravelin runs");
        beyond.gateway = Some(Running(child));
        let end = Instant::now() + Duration::from_secs(30);
        while !net.run("h", binary(), &["show", "ports", "--control", &control]).status.success() {
            assert!(Instant::now() < end, "the other gateway does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        beyond
    }

    /// What it shows of its ports.
    fn ports(&self, net: &Net) -> Value {
        let output =
            net.run("h", binary(), &["show", "ports", "--total", "--json", "--control", &self.control]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
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

/// Ends a capture: the file is whole when tshark has ended its helper and then itself. Killing it leaves the
/// helper writing.
fn end_capture(mut capture: Running) {
    let id = capture.0.id().to_string();
    let asked = Command::new("kill").args(["-INT", &id]).output().expect("kill runs");
    assert!(asked.status.success(), "tshark has ended before: {}", text(&asked));
    capture.0.wait().expect("tshark ends");
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
    end_capture(seen);
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
fn checksums_stay_open_through_ports_of_tags_in_both_directions() {
    let test = "open checksums through tags";
    if !installed(test, &["iperf3"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    let switch = "[[port]]\non = \"trunk\"\nvlan = 20\n[[port]]\ninterface = \"to-b\"\n";
    let _beyond = Beyond::serve(&net, switch);
    net.serve_ports(
        &program("router.rav"),
        "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\"]\n\
         [[port]]\non = \"trunk\"\nvlan = 20\naddresses = [\"10.0.2.1/24\"]\n",
    );
    for direction in [&[][..], &["-R"]] {
        transfer(&net, "10.0.2.2", direction);
    }
    let now = net.ask(&["show", "run", "--total"])["now"].clone();
    let left = now["checksums_left_open"].as_u64().expect("a figure");
    let received = [0, 1].map(|port| now["report"]["ports"][port]["received"].as_u64().expect("a figure"));
    // All but what finds out addresses.
    assert!(received.iter().all(|packets| *packets > 1_000), "{received:?}");
    assert!(left + 100 > received.iter().sum(), "{left} of {received:?} left open");
}

#[test]
fn a_router_has_a_network_behind_a_tag_by_af_packet() {
    routed_over_a_tag("a_router_has_a_network_behind_a_tag_by_af_packet", "kind = \"af_packet\"");
}

#[test]
fn a_router_has_a_network_behind_a_tag_by_af_xdp() {
    routed_over_a_tag("a_router_has_a_network_behind_a_tag_by_af_xdp", "kind = \"af_xdp\"");
}

/// Ports of a cable come and go one by one, also the one that has its sockets, while the gateway routes to a
/// network behind another tag of the cable: of numbered datagrams none is lost or overtaken.
fn one_by_one(test: &str, kind: &str) {
    if !installed(test, &["iperf3"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    let switch = "[[port]]\non = \"trunk\"\nvlan = 20\n[[port]]\ninterface = \"to-b\"\n";
    let beyond = Beyond::serve(&net, switch);
    let first = "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\"]\n";
    let used = "on = \"trunk\"\nvlan = 20\naddresses = [\"10.0.2.1/24\"]\n";
    let ports = |second: &str, third: &str, more: &str| {
        format!("{first}[[port]]\n{second}[[port]]\n{used}{third}{more}")
    };
    let thirty = format!("on = \"trunk\"\nvlan = 30\n{kind}");
    let without = format!("interface = \"trunk\"\n{kind}");
    let forty = "[[port]]\non = \"trunk\"\nvlan = 40\n";
    net.serve_ports(&program("router.rav"), &ports(&thirty, "", ""));
    let file = fs::read_to_string(net.path("gateway.toml")).expect("is there");
    let head = file.split("[[port]]").next().unwrap_or_default();
    let control = net.path("control.sock").display().to_string();
    let reload = |ports: String| {
        fs::write(net.path("gateway.toml"), format!("{head}{ports}")).expect("can be written");
        text(&net.ravelin(&["reload", "--control", &control]))
    };
    let script = net.path("tagged.py").display().to_string();
    fs::write(&script, include_str!("net/tagged.py")).expect("can be written");
    let sends = |tag: &str, times: &str| {
        let output = net.run("h", "python3", &[&script, "trunk", tag, times]);
        assert!(output.status.success(), "{}", text(&output));
    };
    let total = |name: &str, what: &str, at_least: u64| {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let shown = net.ask(&["show", "ports", "--total"]);
            let ports = shown["now"]["ports"].as_array().expect("a list");
            let at = ports.iter().position(|port| port["interface"] == name).expect("is there");
            let row = &shown["now"]["report"]["ports"][at];
            let seen = ports[at][what].as_u64().or_else(|| row[what].as_u64()).unwrap_or(0);
            if seen >= at_least {
                return;
            }
            assert!(Instant::now() < end, "{name} has {seen} of {at_least} {what}: {shown}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    let reaches = || {
        let end = Instant::now() + Duration::from_secs(20);
        while net.pings("10.0.2.2") < 20 {
            assert!(Instant::now() < end, "b does not answer: {}", net.ask(&["show", "ports", "--total"]));
        }
    };
    reaches();
    let mut stream = UdpStream::begin(&net, "10.0.2.2", 8);
    let mut rounds = 0;
    while rounds < 3 || stream.flows() {
        rounds += 1;
        // The first port at the cable goes; the next one has its sockets then, and tells what is lost.
        let said = reload(ports("empty = true\n", kind, ""));
        assert!(said.contains("; port 2 (trunk.30) went") && !said.contains("came"), "{said}");
        assert_eq!(net.pings("10.0.2.2"), 20, "{}", net.ask(&["show", "ports", "--total"]));
        sends("30", "4");
        total("trunk.20", "other_vlan", 4);
        // Another takes its number, and one more comes behind.
        let said = reload(ports(&without, "", forty));
        assert!(said.contains("; port 2 (trunk) came") && said.contains("port 4 (trunk.40) came"), "{said}");
        assert_eq!(net.pings("10.0.2.2"), 20);
        sends("40", "5");
        total("trunk.40", "received", 5);
        sends("0", "6");
        total("trunk", "received", 6);
        let said = reload(ports("empty = true\n", kind, ""));
        assert!(said.contains("port 2 (trunk) went; port 4 (trunk.40) went"), "{said}");
        let said = reload(ports(&thirty, "", ""));
        assert!(said.contains("; port 2 (trunk.30) came"), "{said}");
        assert_eq!(net.pings("10.0.2.2"), 20);
        sends("30", "7");
        total("trunk.30", "received", 7);
        // A number goes from one port to another by two reloads.
        let said = reload(ports(&without, "", ""));
        assert!(said.contains("port 2 of the running gateway is trunk.30, and a number goes"), "{said}");
        let said = reload(ports(&thirty, "", ""));
        assert!(said.contains("took over") && !said.contains("came"), "{said}");
    }
    stream.arrives_whole(&net, &[&|| net.ask(&["show", "ports", "--total"]), &|| beyond.ports(&net)]);
    net.stop();
}

#[test]
fn ports_of_a_cable_come_and_go_one_by_one_by_af_packet() {
    one_by_one("ports_of_a_cable_come_and_go_one_by_one_by_af_packet", "kind = \"af_packet\"\n");
}

#[test]
fn ports_of_a_cable_come_and_go_one_by_one_by_af_xdp() {
    one_by_one("ports_of_a_cable_come_and_go_one_by_one_by_af_xdp", "kind = \"af_xdp\"\n");
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
