//! Ports that come and go by `reload`, while packets flow by the others.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, installed, program, text};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

/// A third cable, from `to-c` of the gateway to `eth0` of a namespace of its own, with this address. Returns
/// the namespace, which goes with it.
fn cable(net: &Net, address: &str) -> Third {
    let (near, third) = (net.name("g"), Third(net.name("c")));
    let far = third.0.as_str();
    net.ip(&["netns", "add", far]);
    net.ip(&["-n", &near, "link", "add", "to-c", "type", "veth", "peer", "name", "eth0", "netns", far]);
    for (namespace, link) in [(near.as_str(), "to-c"), (far, "eth0"), (far, "lo")] {
        net.ip(&["-n", namespace, "link", "set", link, "up"]);
    }
    net.ip(&["-n", far, "address", "add", address, "dev", "eth0"]);
    third
}

struct Third(String);

impl Drop for Third {
    fn drop(&mut self) {
        // Its cable goes with it.
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

/// Writes the gateway's file with these ports behind its first two, and reloads; returns what was said.
fn reload(net: &Net, before: &str, more: &str) -> String {
    fs::write(net.path("gateway.toml"), format!("{before}{more}")).expect("can be written");
    let control = net.path("control.sock").display().to_string();
    text(&net.ravelin(&["reload", "--control", &control]))
}

fn file(net: &Net) -> String {
    fs::read_to_string(net.path("gateway.toml")).expect("is there")
}

fn names(net: &Net) -> Vec<String> {
    let shown = net.ask(&["show", "ports", "--total"]);
    let ports = shown["now"]["ports"].as_array().expect("a list");
    ports.iter().map(|port| port["interface"].as_str().unwrap_or_default().to_owned()).collect()
}

fn wait_until(what: &str, mut found: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(seen) = found() {
        assert!(Instant::now() < end, "{what}: {seen}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// UDP at a steady rate between `a` and `b`, while a third port comes and goes.
#[test]
fn no_datagram_is_lost_or_overtaken_while_another_port_comes_and_goes() {
    let test = "no_datagram_is_lost_or_overtaken_while_another_port_comes_and_goes";
    if !installed(test, &["iperf3"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    let third = cable(&net, "10.0.0.3/24");
    net.serve_ports(&program("mac_switch.rav"), PORTS);
    net.wait_for_pings();
    let before = file(&net);
    let server = net
        .at("b", "timeout", &["60", "iperf3", "-s", "-1", "-J"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("iperf3 runs");
    thread::sleep(Duration::from_millis(500));
    let load = ["30", "iperf3", "-c", "10.0.0.2", "-u", "-b", "20M", "-l", "200", "-t", "8", "-w", "4M"];
    let mut client = net.at("a", "timeout", &load).stdout(Stdio::null()).spawn().expect("iperf3 runs");
    let mut changes = 0;
    while client.try_wait().expect("is known").is_none() {
        let said = reload(&net, &before, "[[port]]\ninterface = \"to-c\"\n");
        assert!(said.contains("port 3 (to-c) came"), "{said}");
        let said = reload(&net, &before, "");
        assert!(said.contains("port 3 (to-c) went"), "{said}");
        changes += 2;
    }
    assert!(client.wait().expect("ends").success());
    let output = server.wait_with_output().expect("ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(changes >= 2, "{changes} changes of ports");
    let stream = &report["end"]["streams"][0]["udp"];
    assert_eq!(stream["out_of_order"], 0, "{stream}");
    // On a busy machine the receiver may be too slow, or the gateway not on a processor for longer than its
    // ring lasts: both are counted.
    let snmp = text(&net.run("b", "cat", &["/proc/net/snmp"]));
    let udp: Vec<&str> = snmp.lines().filter_map(|line| line.strip_prefix("Udp: ")).collect();
    let column = udp[0].split(' ').position(|name| name == "RcvbufErrors").expect("is counted");
    let at_receiver: u64 =
        udp[1].split(' ').nth(column).and_then(|count| count.parse().ok()).expect("a number");
    let ports = net.ask(&["show", "ports", "--total"])["now"]["ports"].clone();
    let in_ring = |port: usize| ports[port]["since_attached"]["ring_full"].as_u64().expect("is counted");
    let elsewhere = at_receiver + in_ring(0) + in_ring(1);
    let lost = stream["lost_packets"].as_u64().expect("a number");
    assert!(lost <= elsewhere, "{lost} datagrams are lost, of which {elsewhere} elsewhere: {stream}");
    // The port carries packets as long as it is there, and none afterwards.
    let pings = |count: &str| {
        let arguments = ["netns", "exec", &third.0, "ping", "-c", count, "-i", "0.2", "-W", "2", "10.0.0.1"];
        text(&Command::new("ip").args(arguments).output().expect("ping runs"))
    };
    assert!(pings("2").contains(" 0 received"));
    reload(&net, &before, "[[port]]\ninterface = \"to-c\"\n");
    wait_until("the third host reaches the first", || {
        let said = pings("3");
        if said.contains(" 3 received") { Ok(()) } else { Err(said) }
    });
    assert_eq!(names(&net), ["to-a", "to-b", "to-c"]);
    reload(&net, &before, "");
    assert_eq!(names(&net), ["to-a", "to-b"]);
    assert!(pings("2").contains(" 0 received"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

/// The descriptors, the rings and the threads of the gateway.
fn held(net: &Net) -> (usize, usize, usize) {
    let process = net.gateway.as_ref().map(|gateway| gateway.id()).expect("runs");
    let list = |what: &str| fs::read_dir(format!("/proc/{process}/{what}")).map_or(0, |all| all.count());
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    (list("fd"), maps.lines().filter(|line| line.contains("socket:")).count(), list("task"))
}

/// The same, once threads of what has just gone have ended.
fn settled(net: &Net) -> (usize, usize, usize) {
    let mut last = held(net);
    let mut same = 0;
    wait_until("nothing changes for a second", || {
        let now = held(net);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same >= 20 { Ok(()) } else { Err(format!("{last:?} descriptors, rings and threads")) }
    });
    last
}

fn no_more_than(net: &Net, wanted: (usize, usize, usize)) {
    wait_until("everything is closed", || match held(net) {
        now if now.0 <= wanted.0 && now.1 <= wanted.1 && now.2 <= wanted.2 => Ok(()),
        now => Err(format!("{now:?} descriptors, rings and threads, {wanted:?} before")),
    });
}

/// Whatever was opened is closed again, also after a reload that fails half way.
#[test]
fn a_hundred_changes_of_ports_leave_nothing_open() {
    let Some(mut net) = Net::new("a_hundred_changes_of_ports_leave_nothing_open") else { return };
    let _third = cable(&net, "10.0.0.3/24");
    let hub = net.path("hub.rav");
    fs::write(&hub, "start stage all() { flood }\n").expect("can be written");
    net.serve_ports(&hub, &format!("workers = 2\n{PORTS}"));
    let before = file(&net);
    // Whatever is made once is made by the first change.
    let (packet, tagged) = ("[[port]]\ninterface = \"to-c\"\n", "[[port]]\non = \"to-c\"\nvlan = 7\n");
    let tap = "[[port]]\ninterface = \"tap7\"\nkind = \"tap\"\n";
    let traced = format!("{packet}trace = \"{}\"\n", net.path("c.pcapng").display());
    let kinds = [packet, &format!("{tagged}[[port]]\ninterface = \"to-c\"\n{tap}"), tap, &traced];
    for more in kinds {
        let said = reload(&net, &before, more);
        assert!(said.contains(" came: "), "{more}: {said}");
        let said = reload(&net, &before, "");
        assert!(said.contains(" went"), "{more}: {said}");
    }
    let at_first = settled(&net);
    for round in 0..23 {
        let said = reload(&net, &before, kinds[round % kinds.len()]);
        assert!(said.contains(" came: "), "{said}");
        let said = reload(&net, &before, "");
        assert!(said.contains(" went"), "{said}");
        for (more, wanted) in [
            ("[[port]]\ninterface = \"nowhere\"\n", "line 9, column 13: there is no interface nowhere here"),
            (
                "[[port]]\ninterface = \"to-c\"\n[[port]]\ninterface = \"nowhere\"\n",
                "there is no interface nowhere",
            ),
        ] {
            let said = reload(&net, &before, more);
            assert!(said.contains(wanted) && said.contains("nothing has changed"), "{said}");
        }
    }
    assert_eq!(names(&net), ["to-a", "to-b"]);
    no_more_than(&net, at_first);
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

/// A port with addresses and a host interface comes, goes and comes again at a router.
#[test]
fn a_router_gets_another_network_and_forgets_it() {
    let Some(mut net) = Net::routed("a_router_gets_another_network_and_forgets_it") else { return };
    let third = cable(&net, "10.0.3.2/24");
    net.ip(&["-n", &third.0, "route", "add", "default", "via", "10.0.3.1"]);
    net.serve_ports(
        &program("router.rav"),
        "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\"]\n\
         [[port]]\ninterface = \"to-b\"\naddresses = [\"10.0.2.1/24\"]\nhost = true\n",
    );
    let before = file(&net);
    let reaches = |address: &str| {
        wait_until(&format!("{address} answers"), || match net.pings(address) {
            20 => Ok(()),
            few => Err(format!("{few} of 20: {}", net.ask(&["show", "ports", "--total"]))),
        });
    };
    reaches("10.0.2.2");
    let routes = || net.ask(&["show", "routes"]).to_string();
    let links = || text(&net.run("g", "ip", &["-br", "link"]));
    let mut at_first = None;
    for kind in ["af_packet", "af_xdp", "af_packet", "af_xdp"] {
        let more = format!(
            "[[port]]\ninterface = \"to-c\"\nkind = \"{kind}\"\naddresses = [\"10.0.3.1/24\"]\nhost = true\n"
        );
        let said = reload(&net, &before, &more);
        assert!(said.contains("port 3 (to-c) came"), "{said}");
        reaches("10.0.3.2");
        reaches("10.0.3.1");
        reaches("10.0.2.2");
        assert!(links().contains("h-to-c") && routes().contains("10.0.3.0/24"), "{}{}", links(), routes());
        let said = reload(&net, &before, "");
        assert!(said.contains("port 3 (to-c) went"), "{said}");
        assert!(!links().contains("h-to-c") && !routes().contains("10.0.3.0/24"), "{}{}", links(), routes());
        let neighbours = net.ask(&["show", "neighbours"]).to_string();
        assert!(!neighbours.contains("10.0.3.2"), "{neighbours}");
        assert_eq!(net.pings("10.0.2.2"), 20);
        if kind == "af_xdp" {
            match at_first {
                None => at_first = Some(settled(&net)),
                Some(at_first) => no_more_than(&net, at_first),
            }
        }
    }
    assert_eq!(net.pings("10.0.3.2"), 0);
    net.stop();
}
