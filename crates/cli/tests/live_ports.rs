//! Every kind of port between two hosts, used by programs that know nothing of it.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Ports of these kinds, as a gateway's file tells of them.
fn ports(first: &str, second: &str) -> String {
    format!("[[port]]\ninterface = \"to-a\"\n{first}\n[[port]]\ninterface = \"to-b\"\n{second}\n")
}

const DRIVER: &str = "kind = \"af_xdp\"\nmode = \"driver\"";
const GENERIC: &str = "kind = \"af_xdp\"\nmode = \"generic\"";

/// What a port has of something, since it was attached.
fn at_port(now: &Value, port: usize, what: &str) -> u64 {
    now["now"]["ports"][port - 1][what].as_u64().unwrap_or_else(|| panic!("no {what} of port {port}: {now}"))
}

/// The mode of a port.
fn mode(now: &Value, port: usize) -> String {
    now["now"]["ports"][port - 1]["mode"].as_str().unwrap_or_default().to_owned()
}

/// The hosts reach each other by ICMP over IPv4 and IPv6, and by TCP both ways.
fn reach_each_other(net: &Net) {
    reaches(net, "b");
}

/// The same for `a` and a host that has the addresses of `b`.
fn reaches(net: &Net, host: &str) {
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    for (address, direction) in [("10.0.0.2", &[][..]), ("10.0.0.2", &["-R"]), ("fd00::2", &[])] {
        let report = net.tcp_with(host, address, direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 5_000_000, "only {bytes} bytes came over: {report}");
    }
}

#[test]
fn af_xdp_in_the_driver_needs_nothing_of_the_hosts() {
    let Some(mut net) = Net::new("af_xdp_in_the_driver") else { return };
    net.serve_ports(&program("mac_switch.rav"), &ports(DRIVER, DRIVER));
    let now = net.ask(&["show", "ports", "--total"]);
    assert!(mode(&now, 1).starts_with("af_xdp, driver mode, copies, 1 queue"), "{now}");
    reach_each_other(&net);
    let now = net.ask(&["show", "ports", "--total"]);
    for port in [1, 2] {
        assert_eq!(at_port(&now, port, "too_long"), 0, "the kernel cuts segments for such a port: {now}");
    }
    net.stop();
}

#[test]
fn af_xdp_behind_the_driver_takes_what_is_no_longer_than_a_frame() {
    let Some(mut net) = Net::new("af_xdp_behind_the_driver") else { return };
    net.serve_ports(&program("mac_switch.rav"), &ports(GENERIC, GENERIC));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.tcp("10.0.0.2", &[]);
    let now = net.ask(&["show", "ports", "--total"]);
    assert!(mode(&now, 1).starts_with("af_xdp, generic mode"), "{now}");
    assert!(at_port(&now, 1, "too_long") > 0, "long segments are lost and counted: {now}");
    for host in ["a", "b"] {
        assert!(net.run(host, "ethtool", &["-K", "eth0", "tso", "off", "gso", "off"]).status.success());
    }
    reach_each_other(&net);
    net.stop();
}

#[test]
fn a_killed_af_xdp_gateway_leaves_nothing_behind() {
    let Some(mut net) = Net::new("a_killed_af_xdp_gateway") else { return };
    for kind in [DRIVER, GENERIC] {
        net.serve_ports(&program("mac_switch.rav"), &ports(kind, kind));
        assert_eq!(net.pings("10.0.0.2"), 20);
        let mut gateway = net.gateway.take().expect("was started");
        gateway.kill().expect("can be killed");
        gateway.wait().expect("ends");
    }
    net.serve_ports(&program("mac_switch.rav"), &ports(DRIVER, DRIVER));
    net.wait_for_pings();
    net.stop();
    let links = net.run("g", "ip", &["link"]);
    assert!(!String::from_utf8_lossy(&links.stdout).contains("xdp"), "no program is left at an interface");
}

#[test]
fn the_machine_itself_is_behind_a_tap() {
    let Some(mut net) = Net::new("the_machine_itself") else { return };
    let ports = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"machine\"\nkind = \"tap\"\n";
    let address = |net: &Net| {
        // Hosts remember the Ethernet address for half a minute.
        net.ip(&["-n", &net.name("g"), "link", "set", "machine", "address", "02:00:00:00:00:22"]);
        net.ip(&["-n", &net.name("g"), "address", "add", "10.0.0.2/24", "dev", "machine"]);
        net.ip(&["-n", &net.name("g"), "address", "add", "fd00::2/64", "dev", "machine", "nodad"]);
    };
    net.serve_ports(&program("mac_switch.rav"), ports);
    address(&net);
    let now = net.ask(&["show", "ports", "--total"]);
    assert!(mode(&now, 2).starts_with("tap, 1 queue, whole segments"), "{now}");
    reaches(&net, "g");
    let now = net.ask(&["show", "ports", "--total"]);
    assert_eq!((at_port(&now, 2, "refused"), at_port(&now, 2, "down")), (0, 0), "{now}");
    net.ip(&["-n", &net.name("g"), "link", "delete", "machine"]);
    let made_again = || net.run("g", "ip", &["link", "show", "machine"]).status.success();
    let end = Instant::now() + Duration::from_secs(10);
    while !made_again() {
        assert!(Instant::now() < end, "a device that is gone is made again");
    }
    address(&net);
    net.wait_for_pings();
    net.stop();
    assert!(!net.run("g", "ip", &["link", "show", "machine"]).status.success(), "it goes with the gateway");
}
