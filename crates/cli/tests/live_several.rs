//! A gateway whose kernel or file has routes by several next hops: which flow takes which, while next hops
//! come and go.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, program};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Host `a` is 10.0.1.2; host `b` is 10.0.2.2 at its interface eth0, 10.0.3.2 at eth3 and 10.0.4.2 at eth4.
const FILE: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
host = true
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
host = true
[[port]]
interface = "to-3"
addresses = ["10.0.3.1/24", "fd00:3::1/64"]
host = true
[[port]]
interface = "to-4"
addresses = ["10.0.4.1/24", "fd00:4::1/64"]
host = true
"#;

/// Routes of the file by three ways, of which one has twice the flows of each other.
const ROUTES: &str = r#"
[[route]]
to = "192.0.2.0/24"
via = ["10.0.2.2", "10.0.3.2", { address = "10.0.4.2", weight = 2 }]
[[route]]
to = "2001:db8:7::/48"
via = ["fd00:2::2", "fd00:3::2", { address = "fd00:4::2", weight = 2 }]
"#;

/// How many flows are sent.
const FLOWS: usize = 200;

/// Says by which interfaces UDP of each port of a sender came, once all have come three times; at the latest
/// when nothing came for ten seconds.
const RECEIVER: &str = r#"
import select, socket, sys
opened = {}
for name in ['eth0', 'eth3', 'eth4']:
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    one.bind((name, 0))
    opened[one] = name
print('ready', flush=True)
seen = {}
while len(seen) < int(sys.argv[1]) or min(sum(by.values()) for by in seen.values()) < 3:
    ready = select.select(list(opened), [], [], 10)[0]
    if not ready:
        break
    for one in ready:
        try:
            frame = one.recv(2048)
        except OSError:
            # Its interface is down.
            continue
        kind = frame[12:14]
        udp = 34 if kind == b'\x08\x00' and frame[23] == 17 else 54 if kind == b'\x86\xdd' and frame[20] == 17 else 0
        if udp and frame[udp + 2:udp + 4] == b'\x00\x09':
            by = seen.setdefault(int.from_bytes(frame[udp:udp + 2], 'big'), {})
            by[opened[one]] = by.get(opened[one], 0) + 1
for port, by in sorted(seen.items()):
    for name, count in by.items():
        print(port, name, count)
"#;

/// Sends three packets of each flow to an address.
const SENDER: &str = r#"
import socket, sys, time
for port in range(20000, 20000 + int(sys.argv[1])):
    one = socket.socket(socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(('', port))
    for _ in range(3):
        one.sendto(b'x', (sys.argv[2], 9))
    time.sleep(0.001)
"#;

fn ip(net: &Net, host: &str, words: &str) {
    let arguments: Vec<&str> = words.split(' ').collect();
    net.ip(&[&["-n", &net.name(host)], &arguments[..]].concat());
}

/// The hosts with three ways from the gateway to `b`, whose file has these routes.
fn three_ways(test: &str, routes: &str) -> Option<Net> {
    let mut net = Net::routed(test)?;
    for number in [3, 4] {
        let (port, end, b) = (format!("to-{number}"), format!("eth{number}"), net.name("b"));
        ip(&net, "g", &format!("link add {port} type veth peer name {end} netns {b}"));
        ip(&net, "g", &format!("link set {port} up"));
        ip(&net, "b", &format!("address add 10.0.{number}.2/24 dev {end}"));
        ip(&net, "b", &format!("address add fd00:{number}::2/64 dev {end} nodad"));
        ip(&net, "b", &format!("link set {end} up"));
    }
    net.serve_ports(&program("router.rav"), &format!("{FILE}{routes}"));
    Some(net)
}

/// The kernel's route to a prefix by these of the ways.
fn set_route(net: &Net, to: &str, ways: &[u8]) {
    let v6 = to.contains(':');
    let hop = |way: &u8| {
        let port = if *way == 2 { "h-to-b".to_owned() } else { format!("h-to-{way}") };
        let via = if v6 { format!("fd00:{way}::2") } else { format!("10.0.{way}.2") };
        format!("nexthop via {via} dev {port}")
    };
    let hops: Vec<String> = ways.iter().map(hop).collect();
    let family = if v6 { "-6 " } else { "" };
    ip(net, "g", &format!("{family}route replace {to} {}", hops.join(" ")));
}

/// Waits until a route distributes flows among exactly these ways, which are all known.
fn until(net: &Net, to: &str, ways: &[u8]) {
    let leads = |route: &Value| {
        let used = route["hops"].as_array().into_iter().flatten().filter(|hop| hop["used"] == true);
        used.filter_map(|hop| hop["port"].as_u64()).collect::<BTreeSet<u64>>()
    };
    let wanted: BTreeSet<u64> = ways.iter().map(|way| u64::from(*way)).collect();
    net.until("routes", |shown| {
        let all = shown["routes"].as_array().expect("a list");
        all.iter().any(|route| route["to"] == to && route["used"] == true && leads(route) == wanted)
    });
}

/// By which interface of `b` each flow comes.
fn flows(net: &Net, to: &str) -> BTreeMap<u16, String> {
    let count = FLOWS.to_string();
    let mut receiver = net.at("b", "python3", &["-c", RECEIVER, &count]);
    let receiver = receiver.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut receiver = receiver.expect("python3 runs");
    let mut out = BufReader::new(receiver.stdout.take().expect("its output"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it says that it listens");
    let sent = net.run("a", "python3", &["-c", SENDER, &count, to]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let mut told = String::new();
    out.read_to_string(&mut told).expect("what it saw");
    let _ = receiver.wait();
    let mut flows = BTreeMap::new();
    for line in told.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [port, interface, packets] = words[..] else { panic!("{told}") };
        let before = flows.insert(port.parse().expect("a port"), interface.to_owned());
        assert_eq!((before, packets), (None, "3"), "each flow comes whole by one interface:\n{told}");
    }
    assert_eq!(flows.len(), FLOWS, "{told}\n{}", net.ask(&["show", "routes"]));
    flows
}

/// Asserts that flows came by each of these interfaces, and that only flows from or to one of them moved.
fn assert_moved(
    what: &str,
    before: &BTreeMap<u16, String>,
    after: &BTreeMap<u16, String>,
    by: &[&str],
    one: &str,
) {
    let all: BTreeSet<&str> = after.values().map(String::as_str).collect();
    assert_eq!(all, by.iter().copied().collect(), "{what}");
    for (port, interface) in after {
        let was = &before[port];
        assert!(
            was == interface || was == one || interface == one,
            "{what}: {port} from {was} to {interface}"
        );
    }
}

#[test]
fn several_next_hops_are_used_and_only_flows_of_one_that_goes_move() {
    let Some(mut net) = three_ways("several_next_hops_are_used", "") else { return };
    for (to, host) in [("203.0.113.0/24", "203.0.113.9"), ("2001:db8:9::/48", "2001:db8:9::9")] {
        set_route(&net, to, &[2, 3, 4]);
        until(&net, to, &[2, 3, 4]);
        let all = flows(&net, host);
        assert_moved("each flow stays", &all, &flows(&net, host), &["eth0", "eth3", "eth4"], "");
        // A tool takes one away, and puts it back.
        set_route(&net, to, &[2, 4]);
        until(&net, to, &[2, 4]);
        let two = flows(&net, host);
        assert_moved("a next hop was taken away", &all, &two, &["eth0", "eth4"], "eth3");
        set_route(&net, to, &[2, 3, 4]);
        until(&net, to, &[2, 3, 4]);
        let again = flows(&net, host);
        assert_moved("it is there again", &two, &again, &["eth0", "eth3", "eth4"], "eth3");
        // A cable is pulled.
        ip(&net, "b", "link set eth4 down");
        until(&net, to, &[2, 3]);
        let pulled = flows(&net, host);
        assert_moved("a cable was pulled", &again, &pulled, &["eth0", "eth3"], "eth4");
        ip(&net, "b", "link set eth4 up");
        // Linux took its address of IPv6 with the link.
        ip(&net, "b", "address replace fd00:4::2/64 dev eth4 nodad");
        until(&net, to, &[2, 3, 4]);
        assert_moved("it is back", &pulled, &flows(&net, host), &["eth0", "eth3", "eth4"], "eth4");
        ip(&net, "g", &format!("{}route del {to}", if to.contains(':') { "-6 " } else { "" }));
    }
    net.stop();
}

#[test]
fn a_route_of_the_file_uses_its_next_hops_by_weight_and_a_link_that_goes_moves_only_its_flows() {
    let Some(mut net) = three_ways("a_route_of_the_file_uses_its_next_hops", ROUTES) else { return };
    for (to, host) in [("192.0.2.0/24", "192.0.2.9"), ("2001:db8:7::/48", "2001:db8:7::9")] {
        until(&net, to, &[2, 3, 4]);
        let all = flows(&net, host);
        assert_moved("each flow stays", &all, &flows(&net, host), &["eth0", "eth3", "eth4"], "");
        let by = |name: &str| all.values().filter(|interface| *interface == name).count();
        // Half of 200 flows, by hash; the deviation of a fair choice is 7.
        assert!((60..140).contains(&by("eth4")), "{} flows by the one with weight 2", by("eth4"));
        ip(&net, "b", "link set eth4 down");
        until(&net, to, &[2, 3]);
        let pulled = flows(&net, host);
        assert_moved("a cable was pulled", &all, &pulled, &["eth0", "eth3"], "eth4");
        ip(&net, "b", "link set eth4 up");
        // Linux took its address of IPv6 with the link.
        ip(&net, "b", "address replace fd00:4::2/64 dev eth4 nodad");
        until(&net, to, &[2, 3, 4]);
    }
    net.stop();
}

#[test]
fn a_next_hop_that_does_not_answer_has_no_share() {
    let Some(mut net) = three_ways("a_next_hop_that_does_not_answer", "") else { return };
    ip(&net, "b", "link set dev eth3 arp off");
    set_route(&net, "203.0.113.0/24", &[2, 3, 4]);
    until(&net, "203.0.113.0/24", &[2, 4]);
    let by: BTreeSet<String> = flows(&net, "203.0.113.9").into_values().collect();
    assert_eq!(by.into_iter().collect::<Vec<_>>(), ["eth0", "eth4"]);
    // It is asked again and again.
    ip(&net, "b", "link set dev eth3 arp on");
    until(&net, "203.0.113.0/24", &[2, 3, 4]);
    // Next hops with numbers are used as well.
    for words in [
        "nexthop add id 1 via 10.0.2.2 dev h-to-b",
        "nexthop add id 2 via 10.0.4.2 dev h-to-4",
        "nexthop add id 9 group 1/2",
        "route add 198.51.100.0/24 nhid 9",
    ] {
        ip(&net, "g", words);
    }
    until(&net, "198.51.100.0/24", &[2, 4]);
    let by: BTreeSet<String> = flows(&net, "198.51.100.9").into_values().collect();
    assert_eq!(by.into_iter().collect::<Vec<_>>(), ["eth0", "eth4"]);
    net.stop();
}
