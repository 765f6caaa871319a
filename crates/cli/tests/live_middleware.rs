//! What stands between a program and a port, seen from the hosts on both sides.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The host that is 10.0.0.2, behind a port of some kind.
#[derive(Clone, Copy, Debug)]
struct Far {
    /// What the gateway's file says of the port.
    port: &'static str,
    host: &'static str,
    /// The host's own interface, and its address.
    interface: &'static str,
    link: &'static str,
}

const AF_PACKET: Far =
    Far { port: "interface = \"to-b\"", host: "b", interface: "eth0", link: "02:00:00:00:00:02" };
const DRIVER: Far = Far { port: "interface = \"to-b\"\nkind = \"af_xdp\"\nmode = \"driver\"", ..AF_PACKET };
const GENERIC: Far = Far { port: "interface = \"to-b\"\nkind = \"af_xdp\"\nmode = \"generic\"", ..AF_PACKET };
/// The machine that the gateway runs on.
const TAP: Far = Far {
    port: "interface = \"machine\"\nkind = \"tap\"",
    host: "g",
    interface: "machine",
    link: "02:00:00:00:00:22",
};

impl Far {
    /// Starts a gateway between `a` and this host, before whose port stands what these lines say.
    fn serve(self, net: &mut Net, program: &Path, lines: &str) {
        let ports = format!("[[port]]\ninterface = \"to-a\"\n[[port]]\n{}\n{lines}\n", self.port);
        net.serve_ports(program, &ports);
        if self.host == "g" {
            let gateway = net.name("g");
            net.ip(&["-n", &gateway, "link", "set", self.interface, "address", self.link]);
            net.ip(&["-n", &gateway, "address", "add", "10.0.0.2/24", "dev", self.interface]);
        }
    }

    /// Only what a test sends is on the lines from now on.
    fn quiet(self, net: &Net) {
        for (host, interface) in
            [("a", "eth0"), (self.host, self.interface), ("g", "to-a"), ("b", "eth0"), ("g", "to-b")]
        {
            let setting = format!("net.ipv6.conf.{interface}.disable_ipv6=1");
            assert!(net.run(host, "sysctl", &["-q", "-w", &setting]).status.success());
        }
        let known = [("a", "eth0", "10.0.0.2", self.link), (self.host, self.interface, "10.0.0.1", A)];
        for (host, interface, address, link) in known {
            let known = ["neighbour", "replace", address, "lladdr", link, "dev", interface];
            assert!(net.run(host, "ip", &known).status.success());
        }
    }

    /// How many packets its interface has received so far.
    fn seen(self, net: &Net) -> u64 {
        let file = format!("/sys/class/net/{}/statistics/rx_packets", self.interface);
        let output = net.run(self.host, "cat", &[&file]);
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
    }
}

/// The address of host `a`'s interface.
const A: &str = "02:00:00:00:00:01";

/// The round trips of pings from `a` to `b`, in milliseconds, after one that lets the hosts find each other.
fn round_trips(net: &Net, count: usize) -> Vec<f64> {
    net.run("a", "ping", &["-c", "1", "-W", "5", "10.0.0.2"]);
    let count = count.to_string();
    let output = net.run("a", "ping", &["-c", &count, "-i", "0.01", "-W", "5", "-w", "30", "10.0.0.2"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let times = text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    times.collect()
}

/// What the gateway counted, once nothing waits any more.
fn at_rest(net: &Net) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let view = net.ask(&["show", "ports", "--total"]);
        if port_count(&view, 2, "waiting") == 0 {
            return view;
        }
        assert!(Instant::now() < end, "something waits for ever: {view}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn port_count(view: &Value, port: usize, what: &str) -> u64 {
    view["now"]["ports"][port - 1][what].as_u64().unwrap_or_else(|| panic!("{what} in {view}"))
}

fn sent_by(view: &Value, port: usize) -> u64 {
    view["now"]["report"]["ports"][port - 1]["transmitted"].as_u64().expect("a count")
}

#[test]
fn a_delay_is_waited_for_in_each_direction() {
    for far in [AF_PACKET, DRIVER, GENERIC, TAP] {
        let Some(mut net) = Net::new("a_delay_is_waited_for") else { return };
        let impair = "impair = { delay = \"20ms\", direction = \"both\" }";
        far.serve(&mut net, &program("mac_switch.rav"), impair);
        let times = round_trips(&net, 20);
        assert_eq!(times.len(), 20, "nothing is lost: {far:?}");
        assert!(times.iter().all(|&time| time >= 40.0), "{far:?}: {times:?}");
        let ports = net.ask(&["show", "ports", "--total"]);
        let mode = ports["now"]["ports"][1]["mode"].as_str().unwrap_or_default().to_owned();
        assert!(mode.ends_with("impaired in both directions"), "{mode}");
        net.stop();
    }
}

#[test]
fn every_packet_that_impairment_takes_or_makes_is_counted() {
    for far in [AF_PACKET, DRIVER, GENERIC, TAP] {
        let Some(mut net) = Net::new("every_packet_that_impairment") else { return };
        let lines =
            "impair = { delay = \"1ms\", jitter = \"500us\", loss = \"20%\", duplicate = \"10%\", seed = 3 }";
        far.serve(&mut net, &program("hub.rav"), lines);
        far.quiet(&net);
        let start = at_rest(&net);
        let before = far.seen(&net);
        net.run("a", "ping", &["-c", "500", "-i", "0.002", "-W", "1", "10.0.0.2"]);
        let end = at_rest(&net);
        let grown = |what: &str| port_count(&end, 2, what) - port_count(&start, 2, what);
        let sent = sent_by(&end, 2) - sent_by(&start, 2);
        assert_eq!(sent, 500, "{far:?}");
        assert_eq!(far.seen(&net) - before, sent - grown("impaired") + grown("doubled"), "{far:?}: {end}");
        // Five deviations around what was asked for.
        assert!((55..=145).contains(&grown("impaired")), "{end}");
        assert!((17..=83).contains(&grown("doubled")), "{end}");
        net.stop();
    }
}

#[test]
fn a_shaped_port_lets_no_more_through_than_its_rate() {
    for far in [AF_PACKET, DRIVER, TAP] {
        let Some(mut net) = Net::new("a_shaped_port") else { return };
        let shape = "shape = { rate = \"20Mbit\", burst = \"16KiB\", queue = \"128KiB\" }";
        far.serve(&mut net, &program("mac_switch.rav"), shape);
        net.wait_for_pings();
        // Offloads are on: what counts are the packets that segments become.
        let start = Instant::now();
        let report = net.tcp_with(far.host, "10.0.0.2", &[]);
        let seconds = start.elapsed().as_secs_f64();
        let bytes = report["end"]["sum_received"]["bytes"].as_f64().unwrap_or(0.0);
        assert!(bytes <= 20e6 / 8.0 * seconds + f64::from(16 << 10), "{far:?}: {bytes} bytes in {seconds} s");
        assert!(bytes > 500_000.0, "only {bytes} bytes came over: {report}");
        net.stop();
    }
}

#[test]
fn a_shaped_port_counts_what_its_queue_does_not_hold() {
    for far in [AF_PACKET, DRIVER, TAP] {
        let Some(mut net) = Net::new("a_shaped_port_counts") else { return };
        let shape = "shape = { rate = \"100kbit\", burst = \"2KiB\", queue = \"4KiB\" }";
        far.serve(&mut net, &program("hub.rav"), shape);
        far.quiet(&net);
        let start = at_rest(&net);
        let before = far.seen(&net);
        net.run("a", "ping", &["-c", "200", "-s", "958", "-i", "0.002", "-W", "1", "10.0.0.2"]);
        let end = at_rest(&net);
        let sent = sent_by(&end, 2) - sent_by(&start, 2);
        let shaped = port_count(&end, 2, "shaped") - port_count(&start, 2, "shaped");
        assert_eq!(sent, 200, "{far:?}");
        assert!(shaped > 0, "200 KB within some seconds do not fit");
        assert_eq!(far.seen(&net) - before, sent - shaped, "{far:?}: {end}");
        net.stop();
    }
}

#[test]
fn a_trace_shows_what_passed_and_which_way() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return eprintln!("a_trace_shows: not run, since tshark is not installed");
    }
    for far in [AF_PACKET, DRIVER, GENERIC, TAP] {
        let Some(mut net) = Net::new("a_trace_shows") else { return };
        let file = net.path("far.pcapng");
        far.serve(&mut net, &program("mac_switch.rav"), &format!("trace = \"{}\"", file.display()));
        assert_eq!(net.pings("10.0.0.2"), 20, "{far:?}");
        net.stop();
        let seen = |filter: &str| {
            let output = Command::new("tshark")
                .arg("-r")
                .arg(&file)
                .args(["-Y", filter])
                .output()
                .expect("tshark runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout.iter().filter(|&&byte| byte == b'\n').count()
        };
        let icmp = |direction, kind| {
            seen(&format!("frame.packet_flags_direction == {direction} && icmp.type == {kind}"))
        };
        let (incoming, outgoing) = (1, 2);
        let there_and_back = (icmp(outgoing, 8), icmp(incoming, 0));
        assert_eq!(there_and_back, (20, 20), "requests go there, answers come from there: {far:?}");
        assert_eq!((icmp(incoming, 8), icmp(outgoing, 0)), (0, 0));
        let name = if far.host == "g" { "machine" } else { "to-b" };
        assert_eq!(seen(&format!("frame.interface_name == \"{name}\"")), seen("frame"));
    }
}
