//! Routes by BGP, ten thousand at once: bgpd and zebra of FRR run unmodified behind a port, and whatever
//! becomes of them, of their peer and of its cable, the gateway has the routes that the kernel has, and
//! packets of other routes pass.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, the test says so and ends.

mod net;

use net::frr::{folder, frr};
use net::{HOSTED_PORTS, Net, Running, program, text};
use rig::{AnnouncedPrefix, BgpSpeaker, Namespace, NumberedFlow, zebra_socket};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread;
use std::time::{Duration, Instant};

const ROUTES: u32 = 10_000;
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two packets that nothing may happen to.
const EVERY: Duration = Duration::from_millis(2);
/// Next hops on the link of host `b`.
const HOPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 2, 2), Ipv4Addr::new(10, 0, 2, 3)];
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);

const BGPD: &str = "router bgp 65001
 bgp router-id 10.0.2.1
 no bgp ebgp-requires-policy
 neighbor 10.0.2.2 remote-as 65002
 neighbor 10.0.2.2 passive
 address-family ipv6 unicast
  neighbor 10.0.2.2 activate
 exit-address-family
";

/// Where every prefix that BGP tells of leads, as text.
type Table = BTreeMap<String, String>;

/// Prefixes of this number and the following ones: 20.0.0.0/24, 20.0.1.0/24 and so on.
fn prefixes(numbers: std::ops::Range<u32>) -> Vec<AnnouncedPrefix> {
    numbers.map(|number| (Ipv4Addr::from(0x1400_0000 + (number << 8)), 24)).collect()
}

fn table(prefixes: &[AnnouncedPrefix], hop: Ipv4Addr) -> Table {
    prefixes.iter().map(|(address, length)| (format!("{address}/{length}"), hop.to_string())).collect()
}

/// The routes of the kernel in the gateway's namespace that BGP tells of.
fn kernel(net: &Net) -> Table {
    let shown = text(&net.run("g", "ip", &["route", "show", "root", "20.0.0.0/8"]));
    let word = |line: &str, before: &str| {
        line.split_whitespace().skip_while(|word| *word != before).nth(1).map(str::to_owned)
    };
    let route = |line: &str| Some((line.split_whitespace().next()?.to_owned(), word(line, "via")?));
    shown.lines().filter_map(route).collect()
}

/// The same of the program in the gateway, with the numbers of next hops.
fn gateway(net: &Net) -> Table {
    let control = net.path("control.sock").display().to_string();
    let shown = text(&net.ravelin(&["table", "show", "routes", "--control", &control]));
    let entry = |line: &str| line.split_once(" => ").map(|(prefix, hop)| (prefix.to_owned(), hop.to_owned()));
    shown.lines().filter_map(entry).filter(|(prefix, _)| prefix.starts_with("20.")).collect()
}

/// What the same prefixes lead to in both, pair by pair.
fn pairs(kernel: &Table, gateway: &Table) -> BTreeSet<(String, String)> {
    kernel.iter().filter_map(|(prefix, via)| Some((via.clone(), gateway.get(prefix)?.clone()))).collect()
}

/// Whether both have the same prefixes, each next hop of the kernel with one number of its own.
fn agree(kernel: &Table, gateway: &Table) -> bool {
    let pairs = pairs(kernel, gateway);
    let (hops, numbers): (BTreeSet<_>, BTreeSet<_>) = pairs.iter().cloned().unzip();
    kernel.keys().eq(gateway.keys()) && hops.len() == pairs.len() && numbers.len() == pairs.len()
}

/// Waits until the kernel has these routes and no others, and the gateway the kernel's.
fn settles(net: &Net, when: &str, wanted: &Table) {
    settles_as(net, when, wanted, |kernel| kernel == wanted);
}

/// The same, with what else the kernel may have.
fn settles_as(net: &Net, when: &str, wanted: &Table, is_well: impl Fn(&Table) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let (kernel, gateway) = (kernel(net), gateway(net));
        if is_well(&kernel) && agree(&kernel, &gateway) {
            return;
        }
        let log = std::fs::read_to_string(folder(net, "g").join("bgpd.log")).unwrap_or_default();
        assert!(
            Instant::now() < end,
            "{when}: {} routes wanted, the kernel has {}, the gateway {}, which lead {:?}; bgpd says {log}",
            wanted.len(),
            kernel.len(),
            gateway.len(),
            pairs(&kernel, &gateway)
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// Both daemons of the gateway's machine.
struct Daemons<'a> {
    net: &'a Net,
    zebra: Option<Running>,
    bgpd: Option<Running>,
}

impl Daemons<'_> {
    fn zebra(&mut self) {
        // One that was killed has left it.
        let _ = std::fs::remove_file(zebra_socket(&folder(self.net, "g")));
        self.zebra = Some(frr(self.net, "g", "zebra", ""));
        let (socket, end) = (zebra_socket(&folder(self.net, "g")), Instant::now() + PATIENCE);
        while !socket.exists() {
            assert!(Instant::now() < end, "zebra does not begin");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts bgpd, and opens a session to it.
    fn bgpd(&mut self) -> BgpSpeaker {
        self.bgpd = Some(frr(self.net, "g", "bgpd", BGPD));
        self.session()
    }

    /// Opens a session to bgpd, as host `b`.
    fn session(&self) -> BgpSpeaker {
        let from = Namespace::named(&self.net.name("b")).expect("it is there");
        BgpSpeaker::open(&from, 65002, GATEWAY, PATIENCE).expect("a session")
    }
}

#[test]
fn ten_thousand_routes_by_bgp_are_the_kernel_s_whatever_becomes_of_the_daemons() {
    let test = "ten_thousand_routes_by_bgp";
    if !net::installed(test, &["zebra", "bgpd"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    let ip = |net: &Net, host: &str, words: &str| {
        net.ip(&[&["-n", &net.name(host)], &words.split(' ').collect::<Vec<_>>()[..]].concat());
    };
    for address in ["10.0.2.3/24 dev eth0", "198.51.100.1/32 dev lo"] {
        ip(&net, "b", &format!("address add {address}"));
    }
    let ports = format!("{HOSTED_PORTS}host_interface = \"uplink\"\n");
    net.serve_ports(&program("router.rav"), &ports);
    // A route that nothing happens to, and packets by it, from before the first route to behind the last.
    ip(&net, "g", "route add 198.51.100.0/24 via 10.0.2.2 dev uplink");
    let end = Instant::now() + PATIENCE;
    while !net.run("a", "ping", &["-c", "1", "-W", "1", "198.51.100.1"]).status.success() {
        assert!(Instant::now() < end, "the hosts do not reach each other");
    }
    let [a, b] = ["a", "b"].map(|host| Namespace::named(&net.name(host)).expect("it is there"));
    let flow = NumberedFlow::start(&a, &b, ([198, 51, 100, 1], 7000).into(), EVERY).expect("a flow");

    let all = prefixes(0..ROUTES);
    let (first, others) = all.split_at(all.len() * 3 / 10);
    let mut daemons = Daemons { net: &net, zebra: None, bgpd: None };
    daemons.zebra();
    let mut peer = daemons.bgpd();
    peer.announce(&all, HOPS[0]).expect("the session stands");
    settles(&net, "after all were announced", &table(&all, HOPS[0]));
    peer.withdraw(first).expect("the session stands");
    settles(&net, "after some were withdrawn", &table(others, HOPS[0]));
    // A burst: some come again, and others get another next hop.
    peer.announce(first, HOPS[0]).expect("the session stands");
    peer.announce(others, HOPS[1]).expect("the session stands");
    let mut mixed = table(first, HOPS[0]);
    mixed.extend(table(others, HOPS[1]));
    settles(&net, "with other next hops", &mixed);

    daemons.bgpd = None;
    settles(&net, "after bgpd was killed", &Table::new());
    drop(peer);
    let mut peer = daemons.bgpd();
    peer.announce(&all, HOPS[1]).expect("the session stands");
    settles(&net, "after bgpd began again", &table(&all, HOPS[1]));

    // What zebra had put into the kernel stays there without it. The next one takes that out, but not always
    // all of it: then the gateway has the rest, too.
    daemons.zebra = None;
    settles(&net, "after zebra was killed", &table(&all, HOPS[1]));
    daemons.bgpd = None;
    daemons.zebra();
    drop(peer);
    let mut peer = daemons.bgpd();
    let fewer = &all[..all.len() / 2];
    peer.announce(fewer, HOPS[0]).expect("the session stands");
    let fewer = table(fewer, HOPS[0]);
    settles_as(&net, "after both began again", &fewer, |kernel| {
        fewer.iter().all(|(prefix, hop)| kernel.get(prefix) == Some(hop))
    });

    let flowed = flow.stop().expect("the flow ends");
    let said = net.ask(&["show", "drops", "--total"]);
    assert!(flowed.sent > 500, "{}", flowed.sent);
    assert_eq!((flowed.missing, flowed.doubled), (vec![], 0), "of {}: {said}", flowed.sent);
    drop((daemons, peer));
    net.stop();
}

/// Prefixes of IPv6: 2001:db8:0:0::/64, 2001:db8:0:1::/64 and so on.
fn prefixes6(count: u16) -> Vec<(Ipv6Addr, u8)> {
    (0..count).map(|number| (Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0), 64)).collect()
}

/// How many prefixes of IPv6 that BGP tells of the kernel has by a router, and the gateway by the same.
fn counted6(net: &Net) -> [usize; 2] {
    let kernel = text(&net.run("g", "ip", &["-6", "route", "show", "root", "2001:db8::/48"]));
    let shown = net.ask(&["show", "routes"]);
    let by_b = |route: &&serde_json::Value| {
        let to = route["to"].as_str().is_some_and(|to| to.starts_with("2001:db8:"));
        to && route["via"] == "fd00:2::2" && route["used"] == true && route["installed"] == true
    };
    let gateway = shown["routes"].as_array().into_iter().flatten().filter(by_b).count();
    [kernel.lines().filter(|line| line.contains("via fd00:2::2")).count(), gateway]
}

/// A cable is pulled behind which a thousand routes of each family lead, and put in again: they go, and come
/// back by the next session, while packets by another port are not lost.
#[test]
fn routes_of_both_families_by_bgp_go_with_their_link_and_come_back_and_others_stay() {
    let test = "routes_of_both_families_by_bgp";
    if !net::installed(test, &["zebra", "bgpd"]) {
        return;
    }
    let Some(mut net) = Net::routed(test) else { return };
    let ip = |net: &Net, host: &str, words: &str| {
        net.ip(&[&["-n", &net.name(host)], &words.split(' ').collect::<Vec<_>>()[..]].concat());
    };
    ip(&net, "g", &format!("link add to-3 type veth peer name eth3 netns {}", net.name("b")));
    ip(&net, "g", "link set to-3 up");
    for words in
        ["link set eth3 up", "address add 10.0.3.2/24 dev eth3", "address add 198.51.100.1/32 dev lo"]
    {
        ip(&net, "b", words);
    }
    // So that answers come by the port that their sender is behind.
    ip(&net, "b", "route add 10.0.1.0/24 via 10.0.3.1 dev eth3");
    let two = HOSTED_PORTS.replace("\"10.0.2.1/24\"", "\"10.0.2.1/24\", \"fd00:2::1/64\"");
    let three = "[[port]]\ninterface = \"to-3\"\naddresses = [\"10.0.3.1/24\"]\nhost = true\n";
    net.serve_ports(&program("router.rav"), &format!("{two}{three}"));
    ip(&net, "g", "route add 198.51.100.0/24 via 10.0.3.2 dev h-to-3");
    let end = Instant::now() + PATIENCE;
    while !net.run("a", "ping", &["-c", "1", "-W", "1", "198.51.100.1"]).status.success() {
        assert!(Instant::now() < end, "the hosts do not reach each other");
    }
    let [a, b] = ["a", "b"].map(|host| Namespace::named(&net.name(host)).expect("it is there"));
    let flow = NumberedFlow::start(&a, &b, ([198, 51, 100, 1], 7000).into(), EVERY).expect("a flow");

    let (four, six) = (prefixes(0..1000), prefixes6(1000));
    let settles6 = |when: &str, wanted: usize| {
        let end = Instant::now() + PATIENCE;
        while counted6(&net) != [wanted; 2] {
            assert!(Instant::now() < end, "{when}: {wanted} of IPv6 wanted, {:?}", counted6(&net));
            thread::sleep(Duration::from_millis(100));
        }
    };
    let mut daemons = Daemons { net: &net, zebra: None, bgpd: None };
    daemons.zebra();
    let mut peer = daemons.bgpd();
    for round in 0..2 {
        peer.announce(&four, HOPS[0]).expect("the session stands");
        peer.announce6(&six, "fd00:2::2".parse().expect("an address")).expect("the session stands");
        settles(&net, &format!("round {round}: announced"), &table(&four, HOPS[0]));
        settles6(&format!("round {round}: announced"), six.len());
        ip(&net, "b", "link set eth0 down");
        settles(&net, &format!("round {round}: a cable was pulled"), &Table::new());
        settles6(&format!("round {round}: a cable was pulled"), 0);
        ip(&net, "b", "link set eth0 up");
        // Linux took its address of IPv6 with the link.
        ip(&net, "b", "address replace fd00:2::2/64 dev eth0 nodad");
        drop(peer);
        peer = daemons.session();
    }
    peer.announce(&four, HOPS[0]).expect("the session stands");
    settles(&net, "after all", &table(&four, HOPS[0]));

    let flowed = flow.stop().expect("the flow ends");
    let said = net.ask(&["show", "drops", "--total"]);
    assert!(flowed.sent > 500, "{}", flowed.sent);
    assert_eq!((flowed.missing, flowed.doubled), (vec![], 0), "of {}: {said}", flowed.sent);
    drop((daemons, peer));
    net.stop();
}
