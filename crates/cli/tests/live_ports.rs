//! Every kind of port between two hosts, used by programs that know nothing of it.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::process::Stdio;
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

/// Brings 8 MiB by TCP from `a` to a host, or back, however long it takes.
fn transfer(net: &Net, host: &str, address: &str, direction: &[&str]) {
    let mut server = net
        .at(host, "timeout", &["60", "iperf3", "-s", "-1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("iperf3 runs");
    let client = ["50", "iperf3", "-n", "8M", "-c", address];
    let brought = (0..20).any(|_| {
        std::thread::sleep(Duration::from_millis(300));
        net.run("a", "timeout", &[&client, direction].concat()).status.success()
    });
    assert!(brought, "no TCP with {address} {direction:?}");
    server.wait().expect("the server ends");
}

/// The same for `a` and a host that has the addresses of `b`.
fn reaches(net: &Net, host: &str) {
    assert_eq!(net.pings("10.0.0.2"), 20);
    assert_eq!(net.pings("fd00::2"), 20);
    for (address, direction) in [("10.0.0.2", &[][..]), ("10.0.0.2", &["-R"]), ("fd00::2", &[])] {
        transfer(net, host, address, direction);
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
fn af_xdp_and_af_packet_are_one_cable() {
    let Some(mut net) = Net::new("af_xdp_and_af_packet") else { return };
    net.serve_ports(&program("mac_switch.rav"), &ports(DRIVER, ""));
    reach_each_other(&net);
    let now = net.ask(&["show", "ports", "--total"]);
    for port in [1, 2] {
        for what in ["too_long", "refused", "unreadable"] {
            assert_eq!(at_port(&now, port, what), 0, "segments are cut for port 1: {now}");
        }
    }
    net.stop();
}

/// How many packets an interface of a host has sent, and how many it has received, as its kernel counts.
fn counted(net: &Net, host: &str) -> (u64, u64) {
    let output = net.run(host, "ip", &["-s", "-j", "link", "show", "eth0"]);
    let links: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packets = |way: &str| links[0]["stats64"][way]["packets"].as_u64().expect("is counted");
    (packets("tx"), packets("rx"))
}

#[test]
fn every_packet_that_the_hosts_count_is_in_the_account() {
    let Some(mut net) = Net::new("every_packet_that_the_hosts_count") else { return };
    // The gateway's own kernel says something by these interfaces, too, now and then.
    let silent = ["-w", "net.ipv6.conf.all.disable_ipv6=1"];
    assert!(net.run("g", "sysctl", &silent).status.success());
    for kinds in [(DRIVER, DRIVER), (DRIVER, ""), ("", DRIVER)] {
        net.serve_ports(&program("mac_switch.rav"), &ports(kinds.0, kinds.1));
        net.wait_for_pings();
        let figures = || {
            let now = net.ask(&["show", "ports", "--total"]);
            let [at_a, at_b] = [1, 2].map(|port| {
                let [ring_full, too_long] = ["ring_full", "too_long"].map(|what| at_port(&now, port, what));
                let [busy, refused] = ["busy", "refused"].map(|what| at_port(&now, port, what));
                let port = &now["now"]["report"]["ports"][port - 1];
                let packets = |what: &str| port[what].as_u64().expect("is counted");
                [packets("received") + ring_full + too_long, packets("transmitted") - busy - refused]
            });
            let [(a_sent, a_received), (b_sent, b_received)] = ["a", "b"].map(|host| counted(&net, host));
            [a_sent - at_a[0], b_sent - at_b[0], a_received - at_a[1], b_received - at_b[1]]
        };
        // Between two questions packets come that nobody sent for the test; then it is asked again. What came
        // before the gateway did stays the same.
        let quiet = || {
            let mut last = figures();
            for _ in 0..50 {
                let next = figures();
                if next == last {
                    return next;
                }
                last = next;
            }
            panic!("the hosts are never quiet: {last:?}");
        };
        let before = quiet();
        let mut server = net
            .at("b", "timeout", &["20", "iperf3", "-s", "-1"])
            .stdout(Stdio::null())
            .spawn()
            .expect("iperf3 runs");
        std::thread::sleep(Duration::from_millis(500));
        for off in ["tso", "gso"] {
            // With segments a host counts one packet where the port has several.
            assert!(net.run("a", "ethtool", &["-K", "eth0", off, "off"]).status.success());
        }
        let udp = ["10", "iperf3", "-c", "10.0.0.2", "-u", "-b", "300M", "-l", "1000", "-t", "2"];
        assert!(net.run("a", "timeout", &udp).status.success());
        server.wait().expect("ends");
        assert_eq!(quiet(), before, "{kinds:?}");
        net.stop();
    }
}

#[test]
fn queues_are_served_by_one_worker_or_by_one_each() {
    let Some(mut net) = Net::new("queues_are_served") else { return };
    for (host, gateway) in [("a", "to-a"), ("b", "to-b")] {
        assert!(net.run("g", "ethtool", &["-L", gateway, "rx", "2", "tx", "2"]).status.success());
        assert!(net.run(host, "ethtool", &["-L", "eth0", "rx", "2", "tx", "2"]).status.success());
    }
    for (head, wanted) in [("", "2 queues,"), ("workers = 2\n", "2 queues on 2 workers,")] {
        let file = head.to_owned() + &ports(DRIVER, DRIVER);
        net.serve_ports(&program("hub.rav"), &file);
        let now = net.ask(&["show", "ports", "--total"]);
        assert!(mode(&now, 1).contains(wanted), "{now}");
        net.wait_for_pings();
        // The hash of each connection chooses its queues.
        for direction in [&[][..], &["-R"], &[], &["-R"]] {
            transfer(&net, "b", "10.0.0.2", direction);
        }
        net.stop();
    }
}

#[test]
fn queues_that_are_not_served_are_kept_from_the_kernel_on_request() {
    let Some(mut net) = Net::new("queues_that_are_not_served") else { return };
    let gateway = net.name("g");
    assert!(net.run("g", "ethtool", &["-L", "to-a", "rx", "2", "tx", "2"]).status.success());
    assert!(net.run("a", "ethtool", &["-L", "eth0", "rx", "2", "tx", "2"]).status.success());
    let output = net.run("g", "cat", &["/sys/class/net/to-a/address"]);
    let link = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // For each address a hash chooses the queue.
    let addresses: Vec<_> = (100..116).map(|last| format!("10.0.0.{last}")).collect();
    for address in &addresses {
        net.ip(&["-n", &gateway, "address", "add", &format!("{address}/24"), "dev", "to-a"]);
        net.ip(&["-n", &net.name("a"), "neighbour", "replace", address, "lladdr", &link, "dev", "eth0"]);
    }
    let neighbour = ["neighbour", "replace", "10.0.0.1", "lladdr", "02:00:00:00:00:01", "dev", "to-a"];
    net.ip(&[&["-n", &gateway], &neighbour[..]].concat());
    let answered = |net: &Net| {
        let ping =
            |address: &&String| net.run("a", "ping", &["-c", "1", "-W", "0.3", address]).status.success();
        addresses.iter().filter(ping).count()
    };
    assert_eq!(answered(&net), 16);
    for (kept, wanted) in [("", 1..16), ("\nkeep_from_kernel = true", 0..1)] {
        let port = format!("[[port]]\ninterface = \"to-a\"\n{DRIVER}\nqueues = [0]{kept}\n");
        net.serve_ports(&program("hub.rav"), &port);
        let answered = answered(&net);
        assert!(wanted.contains(&answered), "{answered} of 16 pings were answered by the kernel{kept}");
        let mode = mode(&net.ask(&["show", "ports", "--total"]), 1);
        assert_eq!(mode.ends_with(", other queues kept from the kernel"), !kept.is_empty(), "{mode}");
        net.stop();
    }
}

#[test]
fn what_af_xdp_cannot_do_is_said() {
    let Some(mut net) = Net::new("what_af_xdp_cannot_do") else { return };
    net.serve_ports(&program("hub.rav"), &ports(DRIVER, DRIVER));
    let pid = net.gateway.as_ref().expect("was started").id();
    let refused = |net: &Net, head: &str, ports: &str, wanted: &str| {
        let file = net.path("other.toml");
        let (program, control) = (program("hub.rav"), net.path("other.sock"));
        let text = format!("program = {:?}\ncontrol = {:?}\n{head}{ports}", program, control);
        std::fs::write(&file, text).expect("can be written");
        let output = net.ravelin(&["serve", "--one-process", &file.display().to_string()]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(wanted), "{errors}");
    };
    let one = |queue: u32| format!("[[port]]\ninterface = \"to-a\"\n{DRIVER}\nqueues = [{queue}]\n");
    refused(
        &net,
        "",
        &one(0),
        &format!("port 1: queue 0 of interface to-a is in use by process {pid} (ravelin)"),
    );
    net.stop();
    // Two gateways at queues of their own: they would be no trouble for each other, but an interface has one
    // program.
    assert!(net.run("g", "ethtool", &["-L", "to-a", "rx", "2"]).status.success());
    refused(&net, "", &one(1), "to-a has 1 queue(s) to send by, so nothing would leave by queue 1");
    assert!(net.run("g", "ethtool", &["-L", "to-a", "tx", "2"]).status.success());
    net.serve_ports(&program("hub.rav"), &one(1));
    let pid = net.gateway.as_ref().expect("was started").id();
    let wanted = format!("port 1: interface to-a has an XDP program of process {pid} (ravelin) already");
    refused(&net, "", &one(0), &wanted);
    net.stop();
    // The kernel frees a queue a moment after its socket.
    let end = Instant::now() + Duration::from_secs(20);
    while !net.run("g", "ethtool", &["-L", "to-a", "rx", "1"]).status.success() {
        assert!(Instant::now() < end, "the queue stays in use");
        std::thread::sleep(Duration::from_millis(20));
    }
    let port = |rest: &str| format!("[[port]]\ninterface = \"to-a\"\n{rest}\n");
    // Without the right to lock memory: as root who has given it up.
    let drop =
        ["--bounding-set=-ipc_lock", "--inh-caps=-all", "prlimit", "--memlock=65536:65536", net::binary()];
    let file = net.path("other.toml").display().to_string();
    refused(&net, "", &port("kind = \"af_xdp\"\nqueues = [7]"), "port 1: interface to-a has no queue 7");
    let text = std::fs::read_to_string(&file).expect("was written").replace("queues = [7]", "");
    std::fs::write(&file, text).expect("can be written");
    let output = net.run("g", "setpriv", &[&drop[..], &["serve", "--one-process", &file]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("this process may lock 64 KiB: raise that (`ulimit -l`"), "{errors}");
    refused(&net, "", &port("kind = \"af_xdp\"\nqueues = [7]"), "port 1: interface to-a has no queue 7");
    refused(&net, "workers = 2\n", &port(DRIVER), "interface to-a has 1 receive queue(s) for 2 workers");
    refused(&net, "", &port("kind = \"af_xdp\"\nzero_copy = true"), "cannot use frames in place");
    net.ip(&["-n", &net.name("g"), "link", "set", "to-a", "mtu", "9000"]);
    refused(&net, "", &port(DRIVER), "has an MTU of 9000, and AF_XDP takes at most");
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

/// Asks for the ports until the third is as it should be.
fn third_port(net: &Net, what: &str, there: &dyn Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let port = net.ask(&["show", "ports", "--total"])["now"]["ports"][2].clone();
        if there(&port) {
            return port;
        }
        assert!(Instant::now() < end, "{what}: {port}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A third host, `c`, in the namespace of the gateway, with a cable to it.
fn third_host(net: &Net) {
    let gateway = net.name("g");
    let ip = |arguments: &[&str]| net.ip(&[&["-n", &gateway], arguments].concat());
    ip(&["link", "add", "to-c", "type", "veth", "peer", "name", "c"]);
    ip(&["link", "set", "c", "address", "02:00:00:00:00:03"]);
    for interface in ["to-c", "c"] {
        ip(&["link", "set", interface, "up"]);
    }
    ip(&["address", "add", "10.0.0.3/24", "dev", "c"]);
}

/// Waits until `a` reaches it by 20 pings of 20.
fn wait_for_third(net: &Net, what: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while net.pings("10.0.0.3") < 20 {
        assert!(Instant::now() < end, "{what}: {}", net.ask(&["show", "ports", "--total"]));
    }
}

/// Whether an XDP program is at an interface of a host.
fn has_program(net: &Net, host: &str, interface: &str) -> bool {
    let link = net.run(host, "ip", &["link", "show", interface]);
    String::from_utf8_lossy(&link.stdout).contains("prog/xdp")
}

#[test]
fn an_interface_that_vanished_is_used_again_and_the_others_go_on() {
    for (kind, mode) in [
        (DRIVER, "af_xdp, driver mode, copies"),
        (GENERIC, "af_xdp, generic mode, copies"),
        ("", "af_packet"),
    ] {
        let Some(mut net) = Net::new("an_interface_that_vanished") else { return };
        let (gateway, b) = (net.name("g"), net.name("b"));
        third_host(&net);
        let third = format!("[[port]]\ninterface = \"to-c\"\n{kind}\n");
        net.serve_ports(&program("hub.rav"), &(ports(DRIVER, DRIVER) + &third));
        assert_eq!((net.pings("10.0.0.2"), net.pings("10.0.0.3")), (20, 20));
        let ping = net
            .at("a", "ping", &["-c", "300", "-i", "0.01", "-W", "2", "10.0.0.2"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("ping runs");

        // Deleted, and made again.
        net.ip(&["-n", &gateway, "link", "delete", "to-c"]);
        let port = third_port(&net, "it is missed", &|port| port["gone_seconds"].as_f64().is_some());
        assert_eq!(port["vanished"], 1);
        third_port(&net, "what is sent meanwhile is counted", &|port| port["down"].as_u64() > Some(0));
        third_host(&net);
        let port = third_port(&net, "it is back", &|port| port["gone_seconds"].is_null());
        assert!(port["mode"].as_str().is_some_and(|now| now.starts_with(mode)), "{port}");
        wait_for_third(&net, "it is used again");

        // Elsewhere for a while: nothing of the gateway stays with it.
        net.ip(&["-n", &gateway, "link", "set", "to-c", "netns", &b]);
        let port = third_port(&net, "it is missed", &|port| port["gone_seconds"].as_f64().is_some());
        assert_eq!((&port["vanished"], has_program(&net, "b", "to-c")), (&Value::from(2), false));
        let comes_back = || {
            net.ip(&["-n", &b, "link", "set", "to-c", "netns", &gateway]);
            net.ip(&["-n", &gateway, "link", "set", "to-c", "up"]);
        };
        comes_back();
        third_port(&net, "it is back", &|port| port["gone_seconds"].is_null());
        wait_for_third(&net, "it is used again");

        // Elsewhere for a moment: it may have the number that it had.
        net.ip(&["-n", &gateway, "link", "set", "to-c", "netns", &b]);
        comes_back();
        third_port(&net, "it was missed", &|port| port["vanished"] == 3 && port["gone_seconds"].is_null());
        wait_for_third(&net, "it is used again");

        // Off and on: it was there all the time.
        net.ip(&["-n", &gateway, "link", "set", "to-c", "down"]);
        assert_eq!(net.pings("10.0.0.3"), 0);
        net.ip(&["-n", &gateway, "link", "set", "to-c", "up"]);
        wait_for_third(&net, "it is used again");
        assert_eq!(third_port(&net, "asked", &|_| true)["vanished"], 3);

        let output = ping.wait_with_output().expect("ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.matches("bytes from").count(), 300, "the others go on: {text}");
        assert_eq!(has_program(&net, "g", "to-c"), !kind.is_empty());
        let (_, said) = net.stop_and_hear();
        assert_eq!(said.matches(&format!("port 3 is there again: to-c, {mode}")).count(), 3, "{said}");
        assert!(!["to-a", "to-b", "to-c"].iter().any(|port| has_program(&net, "g", port)));
    }
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
    // It has another address of its own now.
    net.ip(&["-n", &net.name("a"), "neighbour", "flush", "dev", "eth0"]);
    net.wait_for_pings();
    net.stop();
    assert!(!net.run("g", "ip", &["link", "show", "machine"]).status.success(), "it goes with the gateway");
}
