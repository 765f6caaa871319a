//! A gateway whose machine is a host at its ports: servers and tools that know nothing of the gateway run in
//! the gateway's namespace, and the hosts on the links talk to them.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use etherparse::PacketBuilder;
use net::capture::Capture;
use net::frr::frr;
use net::lldpd::{self, Lldpd};
use net::sshd::{self, Shell};
use net::{Net, Running, program, text};
use rig::{FrameSender, Namespace, NumberedFlow};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Host `a` is 10.0.1.2, host `b` 10.0.2.2; the gateway's machine is a host in both networks.
const FILE: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
host = true
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
host = true
host_interface = "uplink"
"#;

/// Whoever measures what floods take from other traffic runs with no other test at its side.
static MACHINE: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

fn beside() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

fn served(test: &str, file: &str) -> Option<Net> {
    let mut net = Net::routed(test)?;
    net.serve_ports(&program("router.rav"), file);
    Some(net)
}

/// `ip` in a namespace.
fn ip(net: &Net, host: &str, words: &str) {
    let arguments: Vec<&str> = words.split(' ').collect();
    net.ip(&[&["-n", &net.name(host)], &arguments[..]].concat());
}

fn ping(net: &Net, host: &str, words: &str) -> String {
    let arguments: Vec<&str> = words.split(' ').collect();
    text(&net.run(host, "ping", &[&["-c", "3", "-i", "0.1", "-W", "5"], &arguments[..]].concat()))
}

/// Waits until something is so.
fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_for(20, what, holds);
}

/// The same for so many seconds at most.
fn wait_for(seconds: u64, what: &str, holds: impl FnMut() -> bool) {
    wait_for_or(seconds, || what.to_owned(), holds);
}

/// The same, and says why not.
fn wait_for_or(seconds: u64, what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        assert!(Instant::now() < end, "{}", what());
        thread::sleep(Duration::from_millis(50));
    }
}

/// A server of the machine with a page of 3,000,000 bytes.
fn serve_page(net: &Net) -> Running {
    let root = net.path("served");
    std::fs::create_dir(&root).expect("a directory");
    std::fs::write(root.join("page"), vec![b'x'; 3_000_000]).expect("a file");
    let directory = root.display().to_string();
    let server = ["-m", "http.server", "8080", "--bind", "10.0.1.1", "--directory", &directory];
    Running::start(&mut net.at("g", "python3", &server))
}

/// How many bytes of the page a host gets, as text.
fn fetched(net: &Net, host: &str) -> String {
    let script =
        "import urllib.request as r; print(len(r.urlopen('http://10.0.1.1:8080/page', timeout=10).read()))";
    text(&net.run(host, "python3", &["-c", script])).trim().to_owned()
}

/// How many packets met a fate in the control plane.
fn fate(shown: &Value, name: &str) -> u64 {
    let fates = shown["account"]["fates"].as_array().expect("a list");
    let of = fates.iter().find(|fate| fate["name"] == name);
    of.and_then(|fate| fate["packets"].as_u64()).unwrap_or(0)
}

fn routes(net: &Net) -> String {
    net.ask(&["show", "routes"]).to_string()
}

#[test]
fn linux_answers_behind_the_ports_and_its_addresses_change_while_packets_flow() {
    let _beside = beside();
    let Some(mut net) = served("linux_answers_behind_the_ports", FILE) else { return };
    let shown = text(&net.run("g", "ip", &["-br", "address"]));
    assert!(shown.contains("h-to-a") && shown.contains("uplink"), "{shown}");
    // Each is answered once, by Linux, from whichever host and by whichever port.
    for (host, address) in [
        ("a", "10.0.1.1"),
        ("a", "10.0.2.1"),
        ("b", "10.0.1.1"),
        ("a", "fd00:1::1"),
        ("a", "fd00:2::1"),
        ("a", "10.0.2.2"),
        ("a", "fd00:2::2"),
    ] {
        let said = ping(&net, host, address);
        assert!(said.contains(" 3 received") && !said.contains("DUP"), "{host} {address}: {said}");
    }
    let handed = fate(&net.ask(&["show", "neighbours"]), "for the host");
    assert!(handed >= 15, "{handed}");
    // TCP to a server that knows nothing of the gateway, and back.
    let _server = serve_page(&net);
    wait_until("the page comes", || fetched(&net, "a") == "3000000");
    assert_eq!(fetched(&net, "b"), "3000000");
    // A second address, while packets flow through and to the gateway.
    let mut flow = net.at("a", "ping", &["-i", "0.02", "-c", "150", "-W", "2", "10.0.2.2"]);
    let flow = flow.stdout(Stdio::piped()).spawn().expect("ping runs");
    assert!(ping(&net, "a", "10.0.1.77").contains(" 0 received"), "nobody has it");
    ip(&net, "g", "address add 10.0.1.77/24 dev h-to-a");
    wait_until("it is known", || routes(&net).contains("10.0.1.77/32"));
    assert!(ping(&net, "a", "10.0.1.77").contains(" 3 received"));
    ip(&net, "g", "address add 192.0.2.1/28 dev uplink");
    wait_until("it is known", || routes(&net).contains("192.0.2.0/28"));
    assert!(ping(&net, "a", "192.0.2.1").contains(" 3 received"));
    ip(&net, "g", "address del 10.0.1.77/24 dev h-to-a");
    wait_until("it is known", || !routes(&net).contains("10.0.1.77/32"));
    assert!(ping(&net, "a", "10.0.1.77").contains(" 0 received"), "nobody has it any more");
    let flowed = text(&flow.wait_with_output().expect("ping ends"));
    assert!(flowed.contains("150 received"), "no packet was lost: {flowed}");
    net.stop();
    let shown = text(&net.run("g", "ip", &["-br", "link"]));
    assert!(!shown.contains("h-to-a") && !shown.contains("uplink"), "they go with the gateway: {shown}");
}

#[test]
fn a_program_that_names_from_host_decides_about_what_the_machine_sends() {
    let _beside = beside();
    let Some(mut net) = Net::routed("a_program_that_names_from_host") else { return };
    let router = std::fs::read_to_string(program("router.rav")).expect("the router");
    let start = "start decoder frame(eth: ethernet) {\n";
    assert!(router.contains(start), "the router begins with its frames");
    let decides = "    if from_host { match eth.type { 0x0800 => sent, else => { send in_port } } }\n";
    let sent = "reason unwanted \"the machine may not send this\"\ncounter sent_by_machine\n\
        decoder sent(ip: ipv4) {\n    if ip.ttl == 7 { drop unwanted }\n    count sent_by_machine\n    send in_port\n}\n";
    let changed = net.path("decides.rav");
    let text_of = router.replace(start, &format!("{sent}{start}{decides}"));
    std::fs::write(&changed, text_of).expect("a program");
    net.serve_ports(&changed, FILE);
    for (host, address) in [("g", "10.0.1.2"), ("g", "fd00:1::2"), ("a", "10.0.1.1"), ("a", "10.0.2.2")] {
        let said = ping(&net, host, address);
        assert!(said.contains(" 3 received") && !said.contains("DUP"), "{host} {address}: {said}");
    }
    let forbidden = text(&net.run("g", "ping", &["-c", "3", "-i", "0.1", "-W", "1", "-t", "7", "10.0.1.2"]));
    assert!(forbidden.contains(" 0 received"), "the program drops it: {forbidden}");
    let drops = net.ask(&["show", "drops", "--total"]);
    assert_eq!(drops["now"]["report"]["drops"]["unwanted"], 3, "{drops}");
    // Long segments come to the program as packets, and leave by the port.
    let _server = serve_page(&net);
    wait_until("the page comes", || fetched(&net, "a") == "3000000");
    let report = net.ask(&["show", "drops", "--total"])["now"]["report"].clone();
    let counted = report["counters"]["sent_by_machine"][0]["packets"].as_u64().unwrap_or(0);
    assert!(counted > 3_000_000 / 1500, "{counted} packets of the machine: {}", report["counters"]);
    // The next program does not ask, and is passed by.
    let file = net.path("gateway.toml");
    let before = std::fs::read_to_string(&file).expect("a file");
    let router = program("router.rav").display().to_string();
    std::fs::write(&file, before.replace(&changed.display().to_string(), &router)).expect("a file");
    net.ask(&["reload"]);
    let allowed = text(&net.run("g", "ping", &["-c", "3", "-i", "0.1", "-W", "5", "-t", "7", "10.0.1.2"]));
    assert!(allowed.contains(" 3 received"), "nobody drops it: {allowed}");
    net.stop();
}

#[test]
fn a_host_interface_whose_name_is_taken_is_an_error_at_its_place() {
    let _beside = beside();
    let Some(net) = Net::routed("a_host_interface_whose_name_is_taken") else { return };
    ip(&net, "g", "link add uplink type bridge");
    let file = net.path("gateway.toml");
    let text_of = format!(
        "program = \"{}\"\ncontrol = \"{}\"\n{FILE}",
        program("router.rav").display(),
        net.path("control.sock").display()
    );
    std::fs::File::create(&file).and_then(|mut file| file.write_all(text_of.as_bytes())).expect("a file");
    let said = text(&net.ravelin(&["serve", "--one-process", &file.display().to_string()]));
    assert!(said.contains("line 12, column 18: there is an interface uplink already"), "{said}");
    let shown = text(&net.run("g", "ip", &["-br", "link"]));
    assert!(!shown.contains("h-to-a"), "nothing is half done: {shown}");
    let rules = text(&net.run("g", "nft", &["list", "ruleset"]));
    assert!(!rules.contains("ravelin"), "{rules}");
}

/// A port for each host, at which the gateway's machine is a host; the second has no address yet.
const CLIENT: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24"]
host = true
[[port]]
interface = "to-b"
host = true
"#;

/// What dhclient is to do with a lease: as the script of its distribution, but for the resolver's file, which
/// belongs to the machine.
const LEASE: &str = r#"#!/bin/sh
case "$reason" in
PREINIT) ip link set "$interface" up ;;
BOUND | RENEW | REBIND | REBOOT)
    ip address replace "$new_ip_address/$new_subnet_mask" valid_lft "$new_dhcp_lease_time" \
        preferred_lft "$new_dhcp_lease_time" dev "$interface"
    for router in $new_routers; do ip route replace default via "$router" dev "$interface"; done ;;
EXPIRE | RELEASE | STOP | FAIL) ip -4 address flush dev "$interface" ;;
esac
"#;

/// A DHCP server for a network, at an interface of a host.
fn serve_leases(net: &Net, host: &str, interface: &str, network: &str, more: &[&str]) -> Running {
    let leases = net.path(&format!("leases-{host}")).display().to_string();
    let interface = format!("--interface={interface}");
    let range = format!("--dhcp-range={network}.100,{network}.150,1h");
    let file = format!("--dhcp-leasefile={leases}");
    let fixed = ["--keep-in-foreground", "--conf-file=/dev/null", "--bind-interfaces", "--user=root"];
    let others = ["--no-resolv", "--no-hosts", "--pid-file", &interface, &range, &file];
    Running::start(&mut net.at(host, "dnsmasq", &[&fixed[..], &others, more].concat()))
}

/// `dhclient` for an interface of a host, in the foreground.
fn dhclient(net: &Net, host: &str, interface: &str, more: &[&str]) -> Command {
    use std::os::unix::fs::PermissionsExt;
    let script = net.path("lease-script");
    std::fs::write(&script, LEASE).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it may be run");
    let path = |name: &str| net.path(&format!("{name}-{host}")).display().to_string();
    let script = script.display().to_string();
    let fixed = ["-d", "-cf", "/dev/null", "-sf", &script];
    let files = ["-lf", &path("client-leases"), "-pf", &path("client-pid")];
    net.at(host, "dhclient", &[&fixed[..], &files, more, &[interface]].concat())
}

/// The address of an interface that begins like this.
fn address_of(net: &Net, host: &str, interface: &str, begins: &str) -> Option<String> {
    let shown = text(&net.run(host, "ip", &["-br", "address", "show", "dev", interface]));
    let address = shown.split_whitespace().find(|word| word.starts_with(begins))?;
    Some(address.split('/').next().unwrap_or(address).to_owned())
}

#[test]
fn a_dhcp_client_of_the_machine_gives_the_gateway_its_address_and_its_default_route() {
    let _beside = beside();
    let test = "a_dhcp_client_of_the_machine";
    if !net::installed(test, &["dnsmasq", "dhclient"]) {
        return;
    }
    let Some(mut net) = served(test, CLIENT) else { return };
    ip(&net, "b", "address add 198.51.100.1/32 dev lo");
    let _server = serve_leases(&net, "b", "eth0", "10.0.2", &["--port=0"]);
    // Twice: the second time it is killed and started again, and asks for the address that it has.
    let mut leased = None;
    for _ in 0..2 {
        let client = Running::start(&mut dhclient(&net, "g", "h-to-b", &[]));
        wait_until("a lease", || address_of(&net, "g", "h-to-b", "10.0.2.1").is_some());
        let address = address_of(&net, "g", "h-to-b", "10.0.2.1").expect("is there");
        wait_until("the gateway's", || routes(&net).contains(&format!("{address}/32")));
        let shown = net.until("routes", |shown| shown.to_string().contains("0.0.0.0/0"));
        let all = shown["routes"].as_array().expect("a list");
        let default = all.iter().find(|route| route["to"] == "0.0.0.0/0").expect("is there");
        assert_eq!((&default["via"], &default["interface"]), (&"10.0.2.2".into(), &"to-b".into()));
        assert!(leased.as_ref().is_none_or(|leased| *leased == address), "{leased:?} {address}");
        leased = Some(address);
        drop(client);
    }
    let leased = leased.expect("there is one");
    ip(&net, "b", &format!("route add 10.0.1.0/24 via {leased}"));
    let said = ping(&net, "a", "198.51.100.1");
    assert!(said.contains(" 3 received"), "by the default route of the lease: {said}");
    assert!(ping(&net, "b", &leased).contains(" 3 received"));
    // The lease is given back, and the address with it.
    let released = dhclient(&net, "g", "h-to-b", &["-r"]).output().expect("dhclient runs");
    assert!(released.status.success(), "{}", text(&released));
    wait_until("it is gone", || !routes(&net).contains(&format!("{leased}/32")));
    wait_until("its route, too", || !routes(&net).contains("0.0.0.0/0"));
    net.stop();
}

#[test]
fn a_dhcp_and_dns_server_of_the_machine_serves_the_hosts_on_the_link() {
    let _beside = beside();
    let test = "a_dhcp_and_dns_server_of_the_machine";
    if !net::installed(test, &["dnsmasq", "dhclient", "dig"]) {
        return;
    }
    let Some(mut net) = served(test, FILE) else { return };
    let options = ["--address=/gateway.test/10.0.1.1", "--dhcp-option=option:router,10.0.1.1"];
    let server = serve_leases(&net, "g", "h-to-a", "10.0.1", &options);
    ip(&net, "a", "-4 address flush dev eth0");
    let _client = Running::start(&mut dhclient(&net, "a", "eth0", &[]));
    wait_until("a lease", || address_of(&net, "a", "eth0", "10.0.1.1").is_some());
    assert!(ping(&net, "a", "10.0.2.2").contains(" 3 received"), "by the router of the lease");
    let asked = |net: &Net| text(&net.run("a", "dig", &["+short", "+time=2", "@10.0.1.1", "gateway.test"]));
    assert_eq!(asked(&net).trim(), "10.0.1.1");
    // The server is killed: Linux says that nobody listens. Another one serves again.
    drop(server);
    assert!(!asked(&net).contains("10.0.1.1\n"), "{}", asked(&net));
    let _server = serve_leases(&net, "g", "h-to-a", "10.0.1", &options);
    wait_until("names again", || asked(&net).trim() == "10.0.1.1");
    net.stop();
}

/// What `show ports` says of the host interface of a port, counted from 0.
fn host_figure(net: &Net, port: usize, what: &str) -> u64 {
    net.ask(&["show", "ports", "--total"])["now"]["ports"][port]["host"][what].as_u64().expect("a figure")
}

#[test]
fn a_machine_that_floods_and_one_that_is_flooded_take_nothing_from_what_is_forwarded() {
    let _alone = alone();
    let Some(mut net) = served("a_machine_that_floods", FILE) else { return };
    let flood = "import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begun, rate, sent = time.monotonic(), float(sys.argv[2]), 0
while (passed := time.monotonic() - begun) < 2:
    if sent >= passed * rate:
        continue
    try:
        s.sendto(b'x' * 900, (sys.argv[1], 9)); sent += 1
    except OSError:
        pass
print(sent)";
    // While Linux asks for a link address, it drops packets that nobody here can count.
    for host in ["b", "g"] {
        assert!(ping(&net, host, "10.0.1.2").contains(" 3 received"));
    }
    // The machine sends as fast as it can. The answers to the pings come by the port that the host floods, so
    // the host sends no more than a port receives.
    for (host, to, rate) in [("g", "10.0.1.2", "inf"), ("a", "10.0.1.1", "60000")] {
        let before = host_figure(&net, 0, "sent") + host_figure(&net, 0, "unsent");
        let flooding = net.at(host, "python3", &["-c", flood, to, rate]).stdout(Stdio::piped()).spawn();
        let flooding = flooding.expect("python runs");
        let flow = text(&net.run("b", "ping", &["-i", "0.02", "-c", "80", "-W", "5", "10.0.1.2"]));
        assert!(flow.contains(" 80 received"), "{host}: {flow}");
        let sent = text(&flooding.wait_with_output().expect("it ends"));
        let sent: u64 = sent.trim().parse().expect("a number");
        if host == "g" {
            // Each packet left, or is counted as one that found no room.
            let counted = || host_figure(&net, 0, "sent") + host_figure(&net, 0, "unsent");
            let missing = || format!("{} of {sent} packets are counted", counted() - before);
            wait_for_or(20, missing, || counted() >= before + sent);
        } else {
            // Each packet that the program punted came to control, or is counted as one that found no room;
            // and each that control had for the machine was handed to it or is counted as not taken.
            let figures = || {
                let shown = &net.ask(&["show", "drops", "--total"])["now"];
                let punts = shown["report"]["punts"].as_object().expect("some were punted");
                let punted: u64 = punts.values().filter_map(Value::as_u64).sum();
                let lost = shown["punt_queue_full"].as_u64().expect("a figure");
                let control = net.ask(&["show", "neighbours"]);
                let came = control["account"]["handed"].as_u64().expect("a figure");
                let of_machine = fate(&control, "for the host") + fate(&control, "heard");
                let figures = [(0, "handed"), (0, "refused"), (1, "handed"), (1, "refused")];
                let had: u64 = figures.iter().map(|(port, what)| host_figure(&net, *port, what)).sum();
                [(came + lost, punted), (had, of_machine)]
            };
            let apart = || format!("came or lost of punted, had of those for the machine: {:?}", figures());
            wait_for_or(20, apart, || figures().iter().all(|(counted, all)| counted == all));
        }
    }
    net.stop();
}

/// A datagram from host `a` to an address, by the gateway.
fn datagram(gateway: [u8; 6], to: [u8; 4]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ip = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], gateway).ipv4([10, 0, 1, 2], to, 64);
    ip.udp(7000, 9).write(&mut bytes, &[0x5a; 64]).expect("a vector takes it");
    bytes
}

/// Says back whatever comes.
const ECHO: &str = "import socket
stream = socket.create_server(('10.0.1.1', 179)).accept()[0]
while part := stream.recv(1 << 16):
    stream.sendall(part)";

#[test]
fn an_exchange_of_bgp_goes_on_while_the_machine_has_no_share_for_a_flood() {
    let _alone = alone();
    let Some(mut net) = served("an_exchange_of_bgp_goes_on", FILE) else { return };
    for (host, to) in [("a", "10.0.1.1"), ("a", "10.0.2.2")] {
        assert!(ping(&net, host, to).contains(" 3 received"));
    }
    let told = text(&net.run("a", "ip", &["-json", "neighbour", "show", "10.0.1.1", "dev", "eth0"]));
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let octets = told[0]["lladdr"].as_str().expect("it is known").split(':');
    let octets: Vec<u8> = octets.map(|octet| u8::from_str_radix(octet, 16).expect("hexadecimal")).collect();
    let gateway = octets.try_into().expect("six of them");
    let _echo = Running::start(&mut net.at("g", "python3", &["-c", ECHO]));
    let a = Namespace::named(&net.name("a")).expect("it is there");
    let mut bgp = None;
    wait_until("a connection", || {
        bgp = a
            .inside(|| TcpStream::connect_timeout(&([10, 0, 1, 1], 179).into(), Duration::from_secs(5)))
            .ok();
        bgp.is_some()
    });
    let mut bgp = bgp.expect("it has been made");
    bgp.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    bgp.set_nodelay(true).expect("small messages");
    let sender = FrameSender::new(&a, "eth0").expect("it is there");
    let flood = [datagram(gateway, [10, 0, 1, 1]), datagram(gateway, [10, 0, 2, 2])];
    let flood: Vec<&[u8]> = (0..64).map(|number| &flood[number % 2][..]).collect();
    let lost = |net: &Net, reason: &str| {
        let shown = net.ask(&["show", "drops", "--total"]);
        shown["now"]["punts_lost"][reason].as_u64().unwrap_or(0)
    };
    // Each message is behind as much of the flood as a port holds, so no more of it comes than is carried.
    let (mut messages, end) = (0_u32, Instant::now() + Duration::from_secs(100));
    while messages < 20 || lost(&net, "ours") < 1_000 {
        assert!(Instant::now() < end, "{messages} messages, {} of the flood lost", lost(&net, "ours"));
        for _ in 0..40 {
            let mut sent = 0;
            while sent < flood.len() {
                sent += sender.send(&flood[sent..]).unwrap_or(0);
            }
        }
        messages += 1;
        bgp.write_all(&messages.to_be_bytes()).expect("it is open");
        let mut answer = [0; 4];
        bgp.read_exact(&mut answer).expect("an answer");
        assert_eq!(u32::from_be_bytes(answer), messages);
    }
    assert_eq!(lost(&net, "control"), 0);
    let shown = net.ask(&["show", "drops", "--total"]);
    let punted = shown["now"]["report"]["punts"]["control"].as_u64().unwrap_or(0);
    assert!(punted >= messages.into(), "{shown}");
    net.stop();
}

/// Takes what one client sends, and tells its sum.
const TAKEN: &str = "import hashlib, socket
server = socket.create_server(('10.0.1.1', 9000))
stream, sum = server.accept()[0], hashlib.sha256()
while part := stream.recv(1 << 20):
    sum.update(part)
print(sum.hexdigest())";

/// Sends bytes of which no two parts are alike as soon as somebody takes them, and tells their sum.
const SENT: &str = "import hashlib, random, socket, time
while True:
    try:
        stream = socket.create_connection(('10.0.1.1', 9000))
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
data = random.Random(1).randbytes(8000000)
stream.sendall(data)
stream.close()
print(hashlib.sha256(data).hexdigest())";

#[test]
fn a_stream_comes_to_the_machine_in_segments_and_every_packet_of_it_is_counted() {
    let _beside = beside();
    let Some(mut net) = served("a_stream_comes_to_the_machine_in_segments", FILE) else { return };
    let taking = net.at("g", "python3", &["-c", TAKEN]).stdout(Stdio::piped()).spawn().expect("python runs");
    let sent = text(&net.run("a", "python3", &["-c", SENT]));
    assert_eq!(text(&taking.wait_with_output().expect("it ends")), sent);
    // A packet has 1,448 bytes of the stream at most. The interface counts what was written to it.
    let handed = host_figure(&net, 0, "handed");
    let shown = text(&net.run("g", "ip", &["-json", "-statistics", "link", "show", "dev", "h-to-a"]));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let written = shown[0]["stats64"]["rx"]["packets"].as_u64().expect("a figure");
    assert!(handed >= 8_000_000 / 1448 && written < handed / 2, "{written} for {handed} packets");
    net.stop();
}

#[test]
fn a_host_interface_follows_its_port_and_is_made_again_when_somebody_deletes_it() {
    let _beside = beside();
    let Some(mut net) = served("a_host_interface_follows_its_port", FILE) else { return };
    let shown = |net: &Net| text(&net.run("g", "ip", &["link", "show", "dev", "h-to-a"]));
    ip(&net, "g", "link set to-a mtu 1400");
    wait_until("the MTU", || shown(&net).contains("mtu 1400"));
    ip(&net, "a", "link set eth0 down");
    wait_until("no carrier", || shown(&net).contains("NO-CARRIER"));
    ip(&net, "a", "link set eth0 up");
    wait_until("a carrier", || !shown(&net).contains("NO-CARRIER"));
    wait_until("it answers", || ping(&net, "a", "10.0.1.1").contains(" 3 received"));
    ip(&net, "g", "link delete h-to-a");
    wait_until("it is there again", || address_of(&net, "g", "h-to-a", "10.0.1.1").is_some());
    wait_until("it answers again", || ping(&net, "a", "10.0.1.1").contains(" 3 received"));
    let (_, said) = net.stop_and_hear();
    assert!(said.contains("port 1: its host interface h-to-a has gone"), "{said}");
}

#[test]
fn a_reload_gives_the_machine_the_addresses_of_the_file_and_leaves_those_of_others() {
    let _beside = beside();
    let Some(mut net) = served("a_reload_gives_the_machine", FILE) else { return };
    let addresses = |net: &Net| text(&net.run("g", "ip", &["-br", "address", "show", "dev", "h-to-a"]));
    ip(&net, "g", "address add 10.0.1.77/24 dev h-to-a");
    let file = net.path("gateway.toml");
    let before = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, before.replace("10.0.1.1/24", "10.0.1.50/24")).expect("a file");
    net.ask(&["reload"]);
    wait_until("the gateway's", || {
        let shown = routes(&net);
        shown.contains("10.0.1.50/32") && shown.contains("10.0.1.77/32") && !shown.contains("10.0.1.1/32")
    });
    let shown = addresses(&net);
    assert!(shown.contains("10.0.1.50/24") && shown.contains("10.0.1.77/24"), "{shown}");
    assert!(!shown.contains("10.0.1.1/24") && shown.contains("fd00:1::1/64"), "{shown}");
    assert!(ping(&net, "a", "10.0.1.50").contains(" 3 received"));
    // A file that is refused changes nothing.
    std::fs::write(&file, before.replace("\"uplink\"", "\"other\"")).expect("a file");
    let control = net.path("control.sock").display().to_string();
    let said = text(&net.ravelin(&["reload", "--control", &control]));
    assert!(said.contains("with other settings") && said.contains("nothing has changed"), "{said}");
    assert_eq!(addresses(&net), shown);
    net.stop();
}

#[test]
fn each_question_on_the_link_has_one_answer_and_a_shell_opens_at_the_gateway() {
    let _beside = beside();
    let test = "each_question_on_the_link_has_one_answer";
    if !net::installed(test, &[&sshd::PROGRAMS[..], &["tcpdump", "tshark"]].concat()) {
        return;
    }
    let Some(mut net) = served(test, FILE) else { return };
    let capture = Capture::at(&net, "a", "eth0");
    let ssh = Shell::at(&net, "10.0.1.1");
    let client: Vec<&str> = ssh.client.iter().map(String::as_str).collect();
    let (shell, here) = (|| text(&net.run("a", client[0], &client[1..])), sshd::expected());
    let serve = || Running::start(&mut net.at("g", "sh", &["-c", &ssh.server]));
    let server = serve();
    wait_until("a shell", || shell() == here);
    drop(server);
    assert!(shell().is_empty(), "nobody listens any more");
    let _server = serve();
    wait_until("a shell again", || shell() == here);
    assert!(ping(&net, "a", "fd00:1::1").contains(" 3 received"));
    assert!(ping(&net, "a", "10.0.1.1").contains(" 3 received"));
    net.stop();
    let echoes = "icmp.type == 8 || icmp.type == 0 || icmpv6.type == 128 || icmpv6.type == 129";
    capture.until(echoes, |packets| packets == 12);
    let asked = capture.chosen("arp.opcode == 1 && arp.dst.proto_ipv4 == 10.0.1.1");
    let told = capture.chosen("arp.opcode == 2 && arp.src.proto_ipv4 == 10.0.1.1");
    assert!(asked > 0 && asked == told, "ARP: {asked} questions, {told} answers");
    let asked =
        capture.chosen("icmpv6.type == 135 && icmpv6.nd.ns.target_address == fd00:1::1 && ipv6.src != ::");
    let told = capture.chosen("icmpv6.type == 136 && icmpv6.nd.na.target_address == fd00:1::1");
    assert!(asked > 0 && asked == told, "neighbour discovery: {asked} questions, {told} answers");
    let resets = capture.chosen("tcp.flags.reset == 1 && tcp.srcport == 2222 && tcp.seq == 1");
    assert!(resets > 0, "Linux says that nobody listens");
    assert_eq!(capture.chosen("icmp.type == 3"), 0, "and the gateway says nothing besides");
}

#[test]
fn neighbours_and_the_machine_hear_each_other_s_lldp_each_at_its_own_port() {
    let _beside = beside();
    let test = "neighbours_and_the_machine_hear_each_other_s_lldp";
    if !net::installed(test, &lldpd::PROGRAMS) {
        return;
    }
    let Some(mut net) = served(test, FILE) else { return };
    let [a, b] = ["a", "b"].map(|host| Lldpd::start(&net, host, &["eth0"]));
    {
        let machine = Lldpd::start(&net, "g", &["h-to-a", "uplink"]);
        machine.until_heard(&["h-to-a: eth0 of a", "uplink: eth0 of b"]);
        a.until_heard(&["eth0: h-to-a of g"]);
        b.until_heard(&["eth0: uplink of g"]);
    }
    // Who ends says so.
    a.until_heard(&[]);
    b.until_heard(&[]);
    net.stop();
}

/// Whether an address of an interface is a duplicate of somebody else's.
fn is_duplicate(net: &Net, host: &str, interface: &str) -> bool {
    text(&net.run(host, "ip", &["-6", "address", "show", "dev", interface])).contains("dadfailed")
}

#[test]
fn duplicate_addresses_are_detected_in_both_directions() {
    let _beside = beside();
    let Some(mut net) = served("duplicate_addresses_are_detected", FILE) else { return };
    // Of a host on the link: the machine finds that out, and the gateway does not take the address.
    ip(&net, "g", "address add fd00:1::2/64 dev h-to-a");
    wait_until("a duplicate", || is_duplicate(&net, "g", "h-to-a"));
    assert!(!routes(&net).contains("fd00:1::2/128\",\"source\":\"own"), "{}", routes(&net));
    // One that nobody has becomes the gateway's after the check, and a host that wants it finds that out.
    ip(&net, "g", "address add fd00:1::77/64 dev h-to-a");
    wait_until("it is known", || routes(&net).contains("fd00:1::77/128"));
    ip(&net, "a", "address add fd00:1::77/64 dev eth0");
    wait_until("a duplicate", || is_duplicate(&net, "a", "eth0"));
    net.stop();
}

#[test]
fn router_advertisements_are_made_and_taken_by_daemons_behind_the_ports() {
    let _beside = beside();
    let test = "router_advertisements_are_made_and_taken";
    if !net::installed(test, &["radvd"]) {
        return;
    }
    let Some(mut net) = served(test, CLIENT) else { return };
    ip(&net, "b", "address add 2001:db8:9::1/128 dev lo nodad");
    ip(&net, "b", "address add 2001:db8:5::1/64 dev eth0 nodad");
    for (host, setting) in [
        ("b", "net.ipv6.conf.all.forwarding=1"),
        ("g", "net.ipv6.conf.all.forwarding=1"),
        ("g", "net.ipv6.conf.h-to-b.accept_ra=2"),
        ("a", "net.ipv6.conf.eth0.accept_ra=2"),
    ] {
        assert!(net.run(host, "sysctl", &["-w", setting]).status.success(), "{setting}");
    }
    ip(&net, "a", "-6 route del default");
    ip(&net, "g", "address add 2001:db8:6::1/64 dev h-to-a nodad");
    let advertise = |host: &str, interface: &str, prefix: &str| {
        let file = net.path(&format!("radvd-{host}"));
        let text = format!(
            "interface {interface} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; prefix {prefix} {{ }}; }};\n"
        );
        std::fs::write(&file, text).expect("a file");
        let (file, pid) = (file.display().to_string(), format!("{}.pid", file.display()));
        Running::start(&mut net.at(host, "radvd", &["-n", "-C", &file, "-p", &pid]))
    };
    let upstream = advertise("b", "eth0", "2001:db8:5::/64");
    let own_daemon = advertise("g", "h-to-a", "2001:db8:6::/64");
    wait_until("an address of the gateway", || address_of(&net, "g", "h-to-b", "2001:db8:5:").is_some());
    wait_until("an address of the host", || address_of(&net, "a", "eth0", "2001:db8:6:").is_some());
    let own = address_of(&net, "g", "h-to-b", "2001:db8:5:").expect("is there");
    net.until("routes", |shown| {
        let all = shown["routes"].as_array().expect("a list");
        let own = all.iter().any(|route| route["to"] == format!("{own}/128") && route["source"] == "own");
        own && all.iter().any(|route| route["to"] == "::/0" && route["interface"] == "to-b")
    });
    ip(&net, "b", &format!("-6 route add 2001:db8:6::/64 via {own}"));
    wait_until("by both", || ping(&net, "a", "2001:db8:9::1").contains(" 3 received"));
    // Both are killed: what they told of holds. Those that take their places tell of other networks.
    drop((upstream, own_daemon));
    assert!(ping(&net, "a", "2001:db8:9::1").contains(" 3 received"), "{}", routes(&net));
    ip(&net, "b", "address add 2001:db8:4::1/64 dev eth0 nodad");
    ip(&net, "g", "address add 2001:db8:7::1/64 dev h-to-a nodad");
    let _upstream = advertise("b", "eth0", "2001:db8:4::/64");
    let _own = advertise("g", "h-to-a", "2001:db8:7::/64");
    // From now on the host may send from either network.
    ip(&net, "b", &format!("-6 route add 2001:db8:7::/64 via {own}"));
    wait_until("another address of the gateway", || {
        let other = address_of(&net, "g", "h-to-b", "2001:db8:4:");
        other.is_some_and(|other| routes(&net).contains(&format!("{other}/128")))
    });
    wait_until("another address of the host", || address_of(&net, "a", "eth0", "2001:db8:7:").is_some());
    assert!(ping(&net, "a", "2001:db8:9::1").contains(" 3 received"), "{}", routes(&net));
    net.stop();
}

/// The Ethernet address that the gateway has for an address, and its state.
fn neighbour(net: &Net, address: &str) -> (String, String) {
    let shown = net.ask(&["show", "neighbours"]);
    let of = shown["neighbours"].as_array().expect("a list");
    let of = of.iter().find(|known| known["address"] == address).cloned().unwrap_or_default();
    let word = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
    (word("mac"), word("state"))
}

#[test]
fn neighbours_that_tools_set_are_the_gateway_s_until_they_are_set_no_more() {
    let _beside = beside();
    let Some(mut net) = served("neighbours_that_tools_set", FILE) else { return };
    let link = text(&net.run("b", "cat", &["/sys/class/net/eth0/address"])).trim().to_owned();
    const NOBODY: &str = "02:00:00:00:00:77";
    for (family, to) in [("", "10.0.2.2"), ("-6 ", "fd00:2::2")] {
        let set = |words: &str| ip(&net, "g", &format!("{family}neigh {words} dev uplink"));
        let settles = |mac: &str| {
            wait_for_or(
                20,
                || format!("{to} is {:?}, not {mac}", neighbour(&net, to)),
                || neighbour(&net, to) == (mac.to_owned(), "permanent".to_owned()),
            );
        };
        assert!(ping(&net, "a", to).contains(" 3 received"), "{to}: it answers who asks for it");
        for mac in [NOBODY, &link, NOBODY] {
            set(&format!("replace {to} lladdr {mac} nud permanent"));
            settles(mac);
            // Its host still asks for the gateway, and says where it is: that changes nothing.
            let (wanted, patience) = if mac == link { (" 3 received", "5") } else { (" 0 received", "1") };
            let said = ping(&net, "a", &format!("-W {patience} {to}"));
            assert!(said.contains(wanted), "{to} at {mac}: {said}{:?}", neighbour(&net, to));
        }
        set(&format!("del {to}"));
        wait_for_or(
            20,
            || format!("{to} is {:?}", neighbour(&net, to)),
            || neighbour(&net, to).1 != "permanent",
        );
        assert!(ping(&net, "a", to).contains(" 3 received"), "{to}: it is asked for again");
    }
    net.stop();
}

/// Whether the gateway sends what is for this network to host `b`.
fn leads_to_b(net: &Net, network: &str) -> bool {
    let shown = net.ask(&["show", "routes"]);
    let all = shown["routes"].as_array().expect("a list");
    all.iter().any(|route| route["to"] == network && route["via"] == "10.0.2.2" && route["used"] == true)
}

#[test]
fn routes_that_frr_learns_by_bgp_and_by_ospf_are_the_gateway_s_until_the_daemon_ends() {
    let _beside = beside();
    let test = "routes_that_frr_learns";
    if !net::installed(test, &["zebra", "bgpd", "ospfd"]) {
        return;
    }
    let Some(mut net) = served(test, FILE) else { return };
    ip(&net, "b", "route del default");
    for address in ["198.51.100.1/24", "203.0.113.1/24", "192.0.2.1/32"] {
        ip(&net, "b", &format!("address add {address} dev lo"));
    }
    // Packets of a route that no daemon has, from before the first route of one to behind the last.
    ip(&net, "g", "route add 192.0.2.0/24 via 10.0.2.2 dev uplink");
    wait_until("the flow's route", || leads_to_b(&net, "192.0.2.0/24"));
    for (host, to) in [("a", "10.0.1.1"), ("b", "10.0.2.1")] {
        assert!(ping(&net, host, to).contains(" 3 received"), "both hosts are known");
    }
    let [a, b] = ["a", "b"].map(|host| Namespace::named(&net.name(host)).expect("it is there"));
    let every = Duration::from_millis(2);
    let flow = NumberedFlow::start(&a, &b, ([192, 0, 2, 1], 7000).into(), every).expect("a flow");
    // One of both connects, so that two connections never get in each other's way; and a network is told of
    // without zebra being asked for it.
    let bgp = |own: u16, last: u8, other: u16, network: &str, how: &str| {
        let neighbour = 3 - last;
        format!(
            "router bgp {own}\n bgp router-id 10.0.2.{last}\n no bgp ebgp-requires-policy\n no bgp network import-check\n neighbor 10.0.2.{neighbour} remote-as {other}\n neighbor 10.0.2.{neighbour} {how}\n address-family ipv4 unicast\n  network {network}\n exit-address-family\n"
        )
    };
    let ospf = |interface: &str, network: &str| {
        format!(
            "interface {interface}\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\nrouter ospf\n network 10.0.2.0/24 area 0\n network {network} area 0\n"
        )
    };
    let _zebras = ["g", "b"].map(|host| frr(&net, host, "zebra", ""));
    for host in ["g", "b"] {
        let socket = net.path(&format!("frr-{host}")).join("zserv.api");
        wait_until("the other daemons can register", || socket.exists());
    }
    let _bgp_b = frr(&net, "b", "bgpd", &bgp(65002, 2, 65001, "198.51.100.0/24", "passive"));
    let _ospf_b = frr(&net, "b", "ospfd", &ospf("eth0", "203.0.113.0/24"));
    // OSPF tells of an address of `lo` as of a host.
    for _ in 0..2 {
        // The second time after both daemons were killed.
        let of_gateway = [
            frr(&net, "g", "bgpd", &bgp(65001, 1, 65002, "10.0.1.0/24", "timers connect 1")),
            frr(&net, "g", "ospfd", &ospf("uplink", "10.0.1.0/24")),
        ];
        for (network, host) in [("198.51.100.0/24", "198.51.100.1"), ("203.0.113.1/32", "203.0.113.1")] {
            let log = |host: &str| {
                std::fs::read_to_string(net.path(&format!("frr-{host}")).join("bgpd.log")).unwrap_or_default()
            };
            let seen = || {
                let (kernel, logs) = (text(&net.run("g", "ip", &["route"])), log("g") + &log("b"));
                format!("{network}: Linux has\n{kernel}the gateway has {}\n{logs}", routes(&net))
            };
            wait_for_or(60, seen, || leads_to_b(&net, network));
            wait_for(60, host, || ping(&net, "a", host).contains(" 3 received"));
        }
        drop(of_gateway);
        wait_for(60, "no routes", || {
            !leads_to_b(&net, "198.51.100.0/24") && !leads_to_b(&net, "203.0.113.1/32")
        });
    }
    let flowed = flow.stop().expect("the flow ends");
    let said = net.ask(&["show", "drops", "--total"]);
    assert!(flowed.sent > 500, "{}", flowed.sent);
    assert_eq!((flowed.missing, flowed.doubled), (vec![], 0), "of {}: {said}", flowed.sent);
    net.stop();
}
