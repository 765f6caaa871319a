//! A name server at addresses of the loopback interface, asked within its limits and beyond them.

use super::*;
use crate::config::ProcessConfig;
use crate::config::names::{GatewayDescription, HostPlace, Hosts};
use crate::limits::{ASKED_HOSTS, NAMED_HOSTS};
use crate::limits::{DNS_CONNECTION_BYTES, DNS_CONNECTIONS_OF_NETWORK, DNS_QUERY, NAME_SERVER_ADDRESSES};
use crate::names::asking::{Asking, WaypointLink};
use crate::names::elsewhere::WaypointWays;
use crate::names::packet_tables::PacketTables;
use crate::names::packets::{KeyState, PathRefusal, Reached, Row, Target};
use crate::names::packets_of_test::PacketsOfTest;
use crate::names::parts::Amount;
use crate::names::path::PacketPath;
use crate::names::stable::{StableEntry, StableHost};
use crate::names::waypoint::LocalWaypoint;
use naming::control::{AnswerBody, AskBody, ControlAsk, OwnerAnswer, Peer, Rejection, SetUp};
use naming::dns::Ipv4Mode;
use naming::limits::TAIL;
use naming::{AddressPool, BindingKey, Initiators, PathKey, Service, Services, SetUpError, StableNetwork};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ZONE: &str = "zone = \"home.example\"\n[[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\"]\n\
    [[names.record]]\nkind = \"A\"\nname = \"www\"\naddress = \"192.0.2.80\"\n";

fn read(names: &str) -> Result<NamesConfig, String> {
    match ProcessConfig::read(&format!("[names]\n{names}"), Path::new("")) {
        Ok(ProcessConfig::Names(config)) => Ok(config.names),
        Ok(ProcessConfig::Gateway(_)) => panic!("no port is there"),
        Err(error) => Err(error.to_string()),
    }
}

/// A name server that runs.
struct Running {
    names: Arc<Names>,
    at: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Running {
    fn new() -> Running {
        Running::with(ZONE, |_| ())
    }

    /// With this zone, and prepared before anybody is answered.
    fn with(zone: &str, prepare: fn(&mut Answering)) -> Running {
        // A port that is free for UDP may be taken for TCP.
        let open = || {
            let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
            let config =
                read(&format!("listen = [\"{free}\"]\nreplies_per_second = 0\n{zone}")).expect("is right");
            Names::open(&config).ok().map(|names| (names, free))
        };
        let (names, at) = std::iter::repeat_with(open).take(100).flatten().next().expect("a free port");
        prepare(&mut names.answering());
        let (names, ended) = (Arc::new(names), Arc::default());
        names.start(&ended).expect("threads");
        Running { names, at, ended }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream
    }

    /// Waits until something is to be seen.
    fn until(&self, what: &str, seen: impl Fn(&NamesView) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !seen(&self.names.view()) {
            assert!(Instant::now() < end, "{what} is not to be seen: {:?}", self.names.view());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn dropped(&self, reason: &str) -> u64 {
        self.names.view().drops.get(reason).copied().unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// A query for the address of `www.home.example`, with this number.
fn query(number: u16) -> Vec<u8> {
    query_for("www", number)
}

fn query_for(host: &str, number: u16) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in [host, "home", "example", ""] {
        bytes.push(label.len() as u8);
        bytes.extend(label.bytes());
    }
    bytes.extend([0, 1, 0, 1]);
    bytes
}

fn by_tcp(stream: &mut TcpStream, query: &[u8]) -> Vec<u8> {
    stream.write_all(&[&(query.len() as u16).to_be_bytes()[..], query].concat()).expect("is taken");
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a length");
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply).expect("a reply");
    reply
}

/// The number of a reply, and the address at its end.
fn answer(reply: &[u8]) -> (u16, [u8; 4]) {
    let (number, address) = (reply.first_chunk().expect("a header"), reply.last_chunk().expect("an address"));
    (u16::from_be_bytes(*number), *address)
}

#[test]
fn queries_are_answered_whoever_comes_with_them() {
    let running = Running::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let mut reply = [0; 512];
    // More than one batch, and not more than a socket keeps.
    for number in 0..100 {
        socket.send_to(&query(number), running.at).expect("is sent");
    }
    let mut numbers: Vec<u16> = (0..100)
        .map(|_| {
            let (length, from) = socket.recv_from(&mut reply).expect("a reply");
            assert_eq!(from, running.at);
            let (number, address) = answer(&reply[..length]);
            assert_eq!(address, [192, 0, 2, 80]);
            number
        })
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..100));
    let mut stream = running.connect();
    for number in 0..10 {
        assert_eq!(answer(&by_tcp(&mut stream, &query(number))), (number, [192, 0, 2, 80]));
    }
    // Byte by byte, with the next query behind it.
    let whole = [&[0, query(1).len() as u8][..], &query(1)].concat();
    for byte in [&whole[..], &whole].concat() {
        stream.write_all(&[byte]).expect("is taken");
    }
    let mut replies = vec![0; 2 * 52];
    stream.read_exact(&mut replies).expect("two replies");
    let view = running.names.view();
    assert_eq!((view.queries["udp"], view.queries["tcp"], view.replies), (100, 12, 112));
}

#[test]
fn what_is_no_query_gets_no_answer_and_is_counted() {
    let running = Running::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let mut reply = query(1);
    reply[2] |= 0x80;
    socket.send_to(&reply, running.at).expect("is sent");
    socket.send_to(&[], running.at).expect("is sent");
    socket.send_to(&vec![0; DNS_QUERY + 1], running.at).expect("is sent");
    let long = format!("longer than {DNS_QUERY} bytes");
    running.until("three drops", |view| view.drops.values().sum::<u64>() == 3);
    assert_eq!(running.dropped(&long), 1);
    let mut stream = running.connect();
    stream.write_all(&((DNS_QUERY + 1) as u16).to_be_bytes()).expect("is taken");
    assert_eq!(stream.read(&mut [0; 1]).expect("it is closed"), 0);
    assert_eq!(running.dropped(&long), 2);
    // It goes on.
    assert_eq!(answer(&by_tcp(&mut running.connect(), &query(9))).0, 9);
}

#[test]
fn a_network_has_so_many_connections_and_each_so_many_bytes() {
    let running = Running::new();
    let mut all: Vec<TcpStream> = (0..DNS_CONNECTIONS_OF_NETWORK).map(|_| running.connect()).collect();
    running.until("all connections", |view| view.connections == DNS_CONNECTIONS_OF_NETWORK as u64);
    let mut more = running.connect();
    // It is closed, or reset since it was closed before its query was read.
    assert!(more.read(&mut [0; 1]).map_or(true, |length| length == 0));
    assert_eq!(running.dropped("too many connections of a network"), 1);
    for stream in &mut all {
        assert_eq!(answer(&by_tcp(stream, &query(3))).0, 3);
    }
    all.truncate(1);
    running.until("the end of the others", |view| view.connections == 1);
    // Padding after the question makes the query one of the wrong form, which is answered.
    let mut long = query(4);
    long.resize(DNS_QUERY, 0);
    let stream = &mut all[0];
    for _ in 0..DNS_CONNECTION_BYTES / DNS_QUERY {
        by_tcp(stream, &long);
    }
    assert!(stream.read(&mut [0; 1]).map_or(true, |length| length == 0), "it has had its share");
    running.until("the end of the last one", |view| view.connections == 0);
}

#[test]
fn what_is_wrong_in_the_file_is_shown_at_its_place() {
    let many = |count: usize| {
        let mut text = "listen = [".to_owned();
        (0..count).for_each(|port| write!(text, "\"127.0.0.1:{}\", ", port + 1).expect("a string"));
        format!("{text}]\n{ZONE}")
    };
    assert!(read(&many(NAME_SERVER_ADDRESSES)).is_ok());
    for (text, said) in [
        (many(NAME_SERVER_ADDRESSES + 1), "line 2, column 10: `listen` has 1 to 16 addresses"),
        (many(0), "line 2, column 10: `listen` has 1 to 16 addresses"),
        (format!("listen = [\"x\"]\n{ZONE}"), "line 2, column 11: `x` is not an address with a port"),
        (format!("listen = [\"0.0.0.0:53\"]\n{ZONE}"), "line 2, column 11: 0.0.0.0:53 is every address"),
        (format!("listen = [\"[::]:53\"]\n{ZONE}"), "line 2, column 11: [::]:53 is every address"),
        (
            format!("listen = [\"127.0.0.1:1\", \"127.0.0.1:1\"]\n{ZONE}"),
            "line 2, column 26: 127.0.0.1:1 stands here twice",
        ),
        (
            "listen = [\"127.0.0.1:1\"]\nzone = \"a b\"\n[[names.server]]\nname = \"x.y.\"\n".to_owned(),
            "line 3, column 8: `a b` is not a name",
        ),
        (
            "listen = [\"127.0.0.1:1\"]\nzone = \"a.b\"\n".to_owned(),
            "line 3, column 8: the zone needs a name server",
        ),
        (
            "listen = [\"127.0.0.1:1\"]\nzone = \"a.b\"\n[[names.server]]\nname = \"x.y.\"\n[[names.server]]\nname = \"z\"\n"
                .to_owned(),
            "line 6, column 1: z.a.b is a name server in its own zone and has no address",
        ),
        (
            format!("listen = [\"127.0.0.1:1\"]\n{ZONE}[[names.record]]\nkind = \"A\"\nname = \"x.y.\"\naddress = \"192.0.2.1\"\n"),
            "line 11, column 1: x.y is not in the zone home.example",
        ),
        (format!("listen = [\"127.0.0.1:1\"]\nwhat = 1\n{ZONE}"), "line 3, column 1: unknown field `what`"),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.starts_with(said), "{error}\n{text}");
    }
}

const HOSTS: &str = "[[names.gateway]]\nname = \"home\"\nnetworks = [\"192.168.1.0/24\"]\n\
    [[names.host]]\nname = \"nas\"\ngateway = \"home\"\naddress = \"192.168.1.10\"\nservices = [\"tcp/22\"]\n\
    [[names.host]]\nname = \"tv\"\ngateway = \"home\"\naddress = \"192.168.1.11\"\nservices = [\"tcp/22\"]\n";

const POOL: &str = "[names.waypoint]\nknown = [\"203.0.113.16/31\"]\nunknown = [\"203.0.113.32/31\"]\n";

#[test]
fn names_for_hosts_get_addresses_of_the_waypoint() {
    let zone = format!("clients = [\"127.0.0.0/8\"]\n{ZONE}{HOSTS}{POOL}");
    let running = Running::with(&zone, |_| ());
    let mut stream = running.connect();
    let mut promised = |host| answer(&by_tcp(&mut stream, &query_for(host, 1))).1;
    let (nas, tv) = (promised("nas"), promised("tv"));
    let pool = [[203, 0, 113, 16], [203, 0, 113, 17]];
    assert!(nas != tv && pool.contains(&nas) && pool.contains(&tv), "{nas:?} {tv:?}");
    assert_eq!(promised("nas"), nas, "an initiator that is known keeps its address");
    let view = running.names.view();
    let promises = view.promises.iter();
    let mut promises: Vec<_> =
        promises.map(|one| (one.to.host.octets(), one.address.octets(), one.initiators.as_str())).collect();
    promises.sort_unstable();
    assert_eq!(promises, [([192, 168, 1, 10], nas, "127.0.0.1"), ([192, 168, 1, 11], tv, "127.0.0.1")]);
    let hosts: Vec<_> = view.hosts.iter().map(|host| (host.name.as_str(), host.ipv4.as_str())).collect();
    assert_eq!(hosts, [("nas.home.example", "per initiator"), ("tv.home.example", "per initiator")]);
    assert_eq!((view.held, view.replies), (0, 3));
}

/// With addresses of IPv6: one behind the gateway, one that everybody reaches.
fn with_ipv6() -> String {
    let hosts = HOSTS.replace("1.0/24\"", "1.0/24\", \"fd00:10::/64\"");
    let hosts = hosts.replace("1.10\"", "1.10\"\nipv6 = \"fd00:10::10\"");
    let hosts = hosts.replace("1.11\"", "1.11\"\nipv6 = \"2001:db8:9::11\"");
    format!("{ZONE}{hosts}{POOL}ipv6 = \"2001:db8:100::/64\"\n")
}

#[test]
fn hosts_behind_gateways_have_an_address_of_ipv6_for_everybody() {
    let running = Running::with(&with_ipv6(), |_| ());
    let mut stream = running.connect();
    let mut aaaa = |host: &str| {
        let mut query = query_for(host, 1);
        let kind = query.len() - 3;
        query[kind] = 28;
        let reply = by_tcp(&mut stream, &query);
        Ipv6Addr::from(*reply.last_chunk::<16>().expect("an address"))
    };
    let inside: Ipv6Addr = "fd00:10::10".parse().expect("an address");
    let network = StableNetwork::of("2001:db8:100::".parse().expect("an address"));
    assert_eq!(aaaa("nas"), network.address("home", inside));
    assert_eq!(aaaa("tv"), "2001:db8:9::11".parse::<Ipv6Addr>().expect("an address"));
    let wish = NameWish {
        name: "pi".to_owned(),
        place: HostPlace { gateway: "home".to_owned(), address: [192, 168, 1, 12].into() },
        services: vec!["tcp/22".to_owned()],
        ipv4: Ipv4Mode::Automatic,
        ipv6: "fd00:10::12".parse().ok(),
    };
    running.names.answering().add(&wish).expect("it is free");
    assert_eq!(aaaa("pi"), network.address("home", "fd00:10::12".parse().expect("an address")));
    let hosts = running.names.view().hosts;
    let shown: Vec<_> =
        hosts.iter().map(|host| (host.ipv6.map(|at| network.contains(at)), host.ipv6_host)).collect();
    assert_eq!(shown, [(Some(true), Some(inside)), (Some(true), wish.ipv6), (Some(false), None)]);
    let four = Ipv4Addr::new(192, 168, 1, 13).to_ipv6_mapped();
    let old = NameWish { name: "old".to_owned(), ipv6: Some(four), ..wish.clone() };
    running.names.answering().add(&old).expect("its gateway translates");
    assert_eq!(aaaa("old"), network.address("home", four));
    let stranger =
        NameWish { name: "own".to_owned(), ipv6: "::ffff:192.168.2.1".parse().ok(), ..wish.clone() };
    let error = running.names.answering().add(&stranger).expect_err("nobody serves it");
    assert!(error.starts_with("nobody serves ::ffff:192.168.2.1"), "{error}");
    let elsewhere = NameWish { name: "own".to_owned(), ipv6: "2001:db8:9::12".parse().ok(), ..wish.clone() };
    let error = running.names.lease(&elsewhere).expect_err("a gateway brings hosts behind itself only");
    assert_eq!(error, (Rejection::NotAllowed, "2001:db8:9::12 is not behind the gateway `home`".to_owned()));
    let own = NameWish { name: "own".to_owned(), ipv6: Some(network.address("x", inside)), ..wish };
    let error = running.names.answering().add(&own).expect_err("nobody has it");
    assert!(error.contains("is of the waypoint's own network"), "{error}");
}

/// A waypoint that never answers.
struct Silent;

impl WaypointLink for Silent {
    fn carry(&mut self, _: &[(Peer, ControlAsk)], _: u64) -> Vec<(Peer, OwnerAnswer)> {
        Vec::new()
    }
}

#[test]
fn a_waypoint_that_says_nothing_makes_an_error_and_not_silence() {
    let zone = format!("{ZONE}{HOSTS}{POOL}");
    let running =
        Running::with(&zone, |answering| answering.asking = Asking::new(1, [Peer(0)], Box::new(Silent)));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    socket.send_to(&query_for("nas", 7), running.at).expect("is sent");
    running.until("one that waits", |view| view.held == 1);
    // What needs no waypoint is answered meanwhile.
    assert_eq!(answer(&by_tcp(&mut running.connect(), &query(1))).1, [192, 0, 2, 80]);
    let by_tcp = by_tcp(&mut running.connect(), &query_for("tv", 8));
    let mut reply = [0; 512];
    let (length, _) = socket.recv_from(&mut reply).expect("a reply");
    for (number, reply) in [(7, &reply[..length]), (8, &by_tcp[..])] {
        const SERVFAIL: u8 = 2;
        assert_eq!((reply[1], reply[3] & 0xf), (number, SERVFAIL));
    }
    running.until("the end of all that waited", |view| view.held == 0 && view.replies == 3);
}

/// A waypoint that answers when it is asked for the third time.
struct Slow(WaypointWays, u32);

impl WaypointLink for Slow {
    fn carry(&mut self, asks: &[(Peer, ControlAsk)], now: u64) -> Vec<(Peer, OwnerAnswer)> {
        self.1 += 1;
        if self.1 < 3 { Vec::new() } else { self.0.carry(asks, now) }
    }
}

#[test]
fn a_waypoint_that_is_slow_is_asked_again() {
    let zone = format!("{ZONE}{HOSTS}{POOL}");
    let slow = |answering: &mut Answering| {
        let pool = AddressPool { known: Vec::new(), unknown: vec![[203, 0, 113, 40].into()] };
        let mut hosts = Hosts::default();
        hosts.number(HostPlace { gateway: "home".into(), address: [192, 168, 1, 10].into() });
        let hosts = Arc::new(Mutex::new(hosts));
        let waypoint = LocalWaypoint::new(1, pool, hosts).expect("a pool");
        let own = Some(Arc::new(Mutex::new(waypoint)));
        let ways = WaypointWays { own, elsewhere: Vec::new(), ways: Arc::default() };
        answering.asking = Asking::new(1, [Peer(0)], Box::new(Slow(ways, 0)));
    };
    let running = Running::with(&zone, slow);
    let reply = by_tcp(&mut running.connect(), &query_for("nas", 1));
    assert_eq!(answer(&reply).1, [203, 0, 113, 40]);
}

#[test]
fn hosts_that_nobody_serves_and_addresses_with_two_owners_are_shown_at_their_place() {
    let head = format!("listen = [\"127.0.0.1:1\"]\n{ZONE}");
    assert!(read(&format!("{head}{HOSTS}{POOL}")).is_ok());
    let changed = |from: &str, to: &str| {
        let text = format!("{head}{HOSTS}{POOL}");
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (text, said) in [
        (
            changed("192.168.1.10", "192.168.2.10"),
            "line 17, column 11: nobody serves 192.168.2.10: behind the gateway `home` there is 192.168.1.0/24",
        ),
        (changed("gateway = \"home\"", "gateway = \"h\""), "line 16, column 11: there is no gateway `h`"),
        (
            changed("192.168.1.0/24", "192.168.1.1/24"),
            "line 13, column 13: `192.168.1.1/24` is not a network",
        ),
        (
            changed("networks = [\"192.168.1.0/24\"]", "networks = [\"192.168.1.0/24\"]\nnames = [\"n*s\"]"),
            "line 14, column 10: `n*s` is no name: write a name such as `nas`, or `*.` and a name",
        ),
        (
            changed(
                "networks = [\"192.168.1.0/24\"]",
                "networks = [\"192.168.1.0/24\"]\nnames = [\"*.example.\"]",
            ),
            "line 14, column 10: example is not in the zone home.example",
        ),
        (
            format!("{head}{HOSTS}{POOL}server_names = [\"tcp/443\", \"udp/443\"]\n"),
            "line 27, column 28: `udp/443` is not of TCP: a server name stands in the first message of TLS",
        ),
        (
            format!(
                "{head}{HOSTS}{POOL}server_names = [{}]\n",
                (1..=17).map(|port| format!("\"tcp/{port}\", ")).collect::<String>()
            ),
            "line 27, column 168: there are at most 16 `server_names`",
        ),
        (
            format!("resolvers = [\"0.0.0.0/0\"]\n{head}{HOSTS}{POOL}"),
            "line 2, column 14: whoever asks would be believed about other clients",
        ),
        (
            format!("resolvers = [\"192.0.2.1/24\"]\n{head}{HOSTS}{POOL}"),
            "line 2, column 14: `192.0.2.1/24` is not an address or a network of resolvers",
        ),
        (
            format!("binding_ttl = 5\n{head}{HOSTS}{POOL}hold = \"measured\"\n"),
            "line 28, column 8: `hold = \"measured\"` counts from the answer",
        ),
        (
            format!(
                "shared_address = \"127.0.0.1\"\n{head}{}",
                HOSTS.replace("tcp/22\"]", "tcp/22\"]\nipv4 = \"shared\"")
            ),
            "line 15, column 1: nas.home.example offers tcp/22, and the machine itself listens there at 127.0.0.1",
        ),
        (
            format!(
                "shared_address = \"127.0.0.1\"\n{head}{}",
                HOSTS.replace("tcp/22\"]", "udp/1\"]\nipv4 = \"shared\"")
            ),
            "line 15, column 1: nas.home.example offers udp/1, and the machine itself listens there at 127.0.0.1",
        ),
        (changed("203.0.113.32/31", "127.0.0.0/30"), "line 24, column 1: 127.0.0.1 in the pool"),
        (format!("machine_services = [\"ssh\"]\n{head}"), "line 2, column 21: `ssh` is not a service"),
        (changed("[names.waypoint]", "[names.x]"), "line 24, column 8: unknown field `x`"),
        (
            format!("listen = [\"127.0.0.1:1\"]\n{}", with_ipv6())
                .replace("ipv6 = \"2001:db8:100::/64\"", ""),
            "line 18, column 8: fd00:10::10 is behind the gateway `home`, and nobody leads there",
        ),
        (
            format!("listen = [\"127.0.0.1:1\"]\n{}", with_ipv6()).replace("100::/64", "100::/56"),
            "line 29, column 8: `2001:db8:100::/56` is not a network of IPv6 with 64 bits",
        ),
        (
            format!("{head}{HOSTS}"),
            "line 14, column 1: nas needs an address for each initiator, and nobody promises any",
        ),
        (
            changed("known = [\"203.0.113.16/31\"]", "known = [\"10.0.0.0/21\"]"),
            "line 25, column 10: 10.0.0.0/21 has 2048",
        ),
        (
            changed("203.0.113.32/31", "203.0.113.17"),
            "line 24, column 1: 203.0.113.17 stands twice in the pool",
        ),
        (
            changed("known = [\"203.0.113.16/31\"]\nunknown = [\"203.0.113.32/31\"]\n", ""),
            "line 24, column 1: a waypoint has addresses",
        ),
        (
            format!("shared_address = \"203.0.113.16\"\n{head}{HOSTS}{POOL}"),
            "line 2, column 18: 203.0.113.16 is in the pool",
        ),
        (
            changed(
                "services = [\"tcp/22\"]",
                "services = [\"tcp/22\"]\nipv4 = { dedicated = \"203.0.113.33\" }",
            ),
            "line 14, column 1: 203.0.113.33 is in the pool",
        ),
        (
            format!(
                "shared_address = \"203.0.113.9\"\n{head}{}",
                HOSTS.replace("[\"tcp/22\"]", "[\"tcp/22\"]\nipv4 = \"shared\"")
            ),
            "line 21, column 1: tv.home.example and nas.home.example offer the same service at the shared address",
        ),
        (
            format!(
                "{head}{}",
                HOSTS.replace("[\"tcp/22\"]", "[\"tcp/22\"]\nipv4 = { dedicated = \"203.0.113.9\" }")
            ),
            "line 20, column 1: 203.0.113.9 is not for tv.home.example alone: nas.home.example has it already",
        ),
        (
            changed("name = \"tv\"", "name = \"nas\""),
            "line 19, column 1: nas.home.example leads to a host already",
        ),
        (changed("tcp/22", "tcp/0"), "line 14, column 1: nas.home.example: `tcp/0` is not a service"),
        (
            changed(
                "services = [\"tcp/22\"]",
                "services = [\"tcp/22\"]\n[[names.gateway]]\nname = \"home\"\nnetworks = []",
            ),
            "line 20, column 8: gateway `home` stands above",
        ),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.starts_with(said), "{error}\nnot {said}\n{text}");
    }
}

#[test]
fn names_are_added_and_removed_with_the_checks_of_the_file() {
    let running = Running::with(&format!("{ZONE}{HOSTS}{POOL}"), |_| ());
    let wish = |name: &str, gateway: &str, address: [u8; 4]| NameWish {
        name: name.to_owned(),
        place: HostPlace { gateway: gateway.to_owned(), address: address.into() },
        services: vec!["udp/53".to_owned()],
        ipv4: Ipv4Mode::Automatic,
        ipv6: None,
    };
    let pi = wish("pi", "home", [192, 168, 1, 12]);
    let add = |wish: &NameWish| running.names.answering().add(wish);
    let serial = running.names.figures().serial;
    for (wish, said) in [
        (wish("pi", "elsewhere", [192, 168, 1, 12]), "there is no gateway `elsewhere`"),
        (wish("pi", "home", [192, 168, 2, 12]), "nobody serves 192.168.2.12"),
        (wish("nas", "home", [192, 168, 1, 12]), "nas.home.example leads to a host already"),
        (wish("x.y.", "home", [192, 168, 1, 12]), "x.y is not in the zone"),
        (NameWish { ipv4: Ipv4Mode::Shared, ..pi.clone() }, "pi.home.example wants the shared address"),
        (
            NameWish { ipv4: Ipv4Mode::Dedicated([203, 0, 113, 16].into()), ..pi.clone() },
            "203.0.113.16 is in the pool",
        ),
        (
            NameWish { services: vec!["tcp".to_owned()], ..pi.clone() },
            "pi.home.example: `tcp` is not a service",
        ),
    ] {
        let error = add(&wish).expect_err(said);
        assert!(error.starts_with(said), "{error}");
    }
    assert_eq!(running.names.figures().serial, serial);
    let mut stream = running.connect();
    const NXDOMAIN: u8 = 3;
    assert_eq!(by_tcp(&mut stream, &query_for("pi", 1))[3] & 0xf, NXDOMAIN);
    add(&pi).expect("it is free");
    assert_eq!(answer(&by_tcp(&mut stream, &query_for("pi", 1))).1[..3], [203, 0, 113]);
    assert_eq!(running.names.view().promises[0].to.host, Ipv4Addr::from([192, 168, 1, 12]));
    let remove = |name: &str| running.names.answering().remove(name);
    remove("PI.home.example.").expect("it is there");
    assert_eq!(by_tcp(&mut stream, &query_for("pi", 1))[3] & 0xf, NXDOMAIN);
    assert_eq!(remove("pi"), Err("pi.home.example leads to no host of this zone".to_owned()));
    assert_eq!(running.names.figures().serial, serial + 2);
    assert_eq!(running.names.view().hosts.len(), 2);
    // A waypoint that is not there promises nothing, and the zone is then as it was.
    let alone =
        Running::with(&format!("{ZONE}{}", HOSTS.replace("[\"tcp/22\"]", "[]\nipv4 = \"none\"")), |_| ());
    let error = alone.names.answering().add(&pi).expect_err("no waypoint");
    assert!(error.starts_with("pi needs an address for each initiator"), "{error}");
    assert_eq!(by_tcp(&mut alone.connect(), &query_for("pi", 1))[3] & 0xf, NXDOMAIN);
}

#[test]
fn hosts_have_numbers_for_good_and_there_are_so_many() {
    let running =
        Running::with(&format!("{ZONE}{}{POOL}", HOSTS.replace("192.168.1.0/24", "0.0.0.0/0")), |_| ());
    let mut answering = running.names.answering();
    let wish = |number: usize| NameWish {
        name: "pi".to_owned(),
        place: HostPlace { gateway: "home".to_owned(), address: Ipv4Addr::from_bits(number as u32) },
        services: Vec::new(),
        ipv4: Ipv4Mode::None,
        ipv6: None,
    };
    // Two stand in the file.
    for number in 2..NAMED_HOSTS {
        answering.add(&wish(number)).expect("there is room");
        answering.remove("pi").expect("it is there");
    }
    let error = answering.add(&wish(1)).expect_err("no room");
    assert!(error.contains("start anew"), "{error}");
}

#[test]
fn a_name_server_elsewhere_has_its_part_of_the_hosts_and_what_nothing_leads_to_is_free_again() {
    let pool = AddressPool { known: vec![[203, 0, 113, 1].into()], unknown: Vec::new() };
    let hosts = Arc::new(Mutex::new(Hosts::default()));
    let waypoint = LocalWaypoint::new(1, pool, hosts.clone()).expect("a pool");
    let (mut waypoint, part) = (waypoint.asked_by(16), ASKED_HOSTS / 16);
    let home = GatewayDescription {
        name: "home".to_owned(),
        networks: Vec::new(),
        names: Vec::new(),
        peer: Some(7),
    };
    waypoint.carry(&tables(ASKED_HOSTS), &[home], &BTreeSet::new(), [1, 2]);
    let mut serial = 0;
    // Each client asks for a host of its own; who is not known finds no address.
    let mut asked = |waypoint: &mut LocalWaypoint, server, host: usize, known: bool, now| {
        serial += 1;
        let address = Ipv4Addr::from_bits(0x0a00_0000 + host as u32);
        let body = AskBody::SetUp(SetUp {
            gateway: "home".into(),
            host: address,
            services: Services::new([Service { protocol: 6, port: 22 }]).expect("one"),
            initiators: if known { Initiators::Exact(address) } else { Initiators::Any },
            resolver: address.into(),
            is_verified: true,
        });
        let ask = ControlAsk { epoch: 1, serial, body };
        match waypoint.heard(Peer(server), &ask, true, now).expect("an answer").body {
            AnswerBody::Accept(..) => Ok(()),
            AnswerBody::Reject(why) => Err(why),
            AnswerBody::Lease(_) => panic!("of nothing"),
        }
    };
    for host in 0..part {
        let full = Err(Rejection::SetUp(SetUpError::Full));
        assert_eq!(asked(&mut waypoint, 3, part + host, false, 5), full, "and its host has no number");
        assert_eq!(asked(&mut waypoint, 3, host, true, 5), Ok(()));
    }
    assert_eq!(asked(&mut waypoint, 3, part, true, 6), Err(Rejection::NoRoom));
    // Others have their own part, and who has a number keeps it.
    assert_eq!(asked(&mut waypoint, 4, part, true, 6), Ok(()));
    assert_eq!(asked(&mut waypoint, 3, part, true, 6), Ok(()), "it has one by now");
    let place = |host: usize| HostPlace {
        gateway: "home".to_owned(),
        address: Ipv4Addr::from_bits(0x0a00_0000 + host as u32),
    };
    let number = |host| hosts.lock().expect("no panic").known(&place(host));
    assert_eq!(number(part - 1), Some(part as u32), "who was refused has used up none");
    let (named, bound) = (number(0).expect("one"), number(1).expect("one"));
    assert_eq!(hosts.lock().expect("no panic").number(place(0)), named, "a name leads to it now");
    let address = |one: Ipv4Addr| u128::from(one.to_bits());
    let client = address(place(1).address);
    waypoint.heed(&[client, address([203, 0, 113, 1].into()), 6, 22, 7, client], false, 7);
    // Promises are over, and a minute has passed since it was looked for numbers that are free.
    let later = 6 + TAIL;
    while waypoint.turn(later).is_some_and(|due| due <= later) {}
    for host in 0..part - 1 {
        assert_eq!(asked(&mut waypoint, 3, 2 * part + host, true, later), Ok(()));
    }
    assert_eq!(asked(&mut waypoint, 3, 4 * part, true, later), Err(Rejection::NoRoom));
    assert_eq!((number(0), number(1), number(2)), (Some(named), Some(bound), None));
}

/// Tables with room for so many expectations.
pub(super) fn tables(room: usize) -> PacketTables {
    let (bound, stable) = ([1, 2, 4, 5], None);
    PacketTables {
        expectations: 0,
        room,
        bound,
        young: 4,
        quarantine: 3,
        machine: 6,
        cookie_keys: None,
        stable,
        server_names: None,
    }
}

#[test]
fn a_gateway_registers_no_more_than_its_part() {
    let gateways = ["home", "other"].map(|name| {
        format!("[[names.gateway]]\nname = \"{name}\"\nnetworks = [\"10.0.0.0/8\"]\nnames = [\"*.{name}\"]\n")
    });
    let file = "[[names.host]]\nname = \"nas\"\ngateway = \"home\"\naddress = \"10.0.0.1\"\n\
        services = [\"tcp/22\", \"tcp/80\"]\n";
    let zone = format!("shared_address = \"203.0.113.9\"\n{ZONE}{}{file}{POOL}", gateways.concat());
    let running = Running::with(&zone, |answering| {
        // Two gateways share what the name of the file leaves: 4 hosts and 6 services.
        answering.parts.divide(Amount { hosts: 5, standing: 8, stable: 0 }).expect_err("none for IPv6");
        answering.parts.divide(Amount { hosts: 5, standing: 8, stable: 8 }).expect("enough");
    });
    let lease = |gateway: &str, number: u8, services: &[u16]| {
        let wish = NameWish {
            name: format!("n{number}.{gateway}"),
            place: HostPlace { gateway: gateway.to_owned(), address: [10, 0, 0, number].into() },
            services: services.iter().map(|port| format!("tcp/{port}")).collect(),
            ipv4: Ipv4Mode::Automatic,
            ipv6: None,
        };
        running.names.lease(&wish)
    };
    let no_room = |what: &str| Err((Rejection::NoRoom, format!("the gateway `home` has its part of {what}")));
    lease("home", 2, &[1000, 1001]).expect("two of three services");
    let standing = "services at addresses that always lead to one host, which is 5";
    assert_eq!(lease("home", 3, &[1002, 1003]), no_room(standing));
    lease("home", 3, &[1002]).expect("three of three");
    assert_eq!(lease("home", 4, &[]), no_room("hosts, which is 3"));
    // What another gateway may have is not touched by it, and what is given back may be had again.
    lease("other", 5, &[1003, 1004, 1005]).expect("its own part");
    running.names.end_lease("n2.home");
    lease("home", 2, &[1000, 1001]).expect("it is free again");
}

/// Files of a zone with two gateways, in part.
fn gateway_part(name: &str, names: &str, peer: u32) -> String {
    format!(
        "[[names.gateway]]\nname = \"{name}\"\nnetworks = [\"10.0.0.0/8\"]\nnames = [{names}]\npeer = {peer}\n"
    )
}

fn host_part(name: &str, gateway: &str, last: u8, service: &str) -> String {
    format!(
        "[[names.host]]\nname = \"{name}\"\ngateway = \"{gateway}\"\naddress = \"10.0.0.{last}\"\nservices = [\"{service}\"]\n"
    )
}

#[test]
fn a_file_that_is_read_again_changes_its_names_and_touches_no_others() {
    let head = format!("shared_address = \"203.0.113.9\"\n{ZONE}");
    let nas = host_part("nas", "home", 1, "tcp/22");
    let home = gateway_part("home", "\"*.lab\"", 1);
    let before = format!(
        "{head}{home}{nas}{}{}{POOL}",
        host_part("tv", "home", 2, "tcp/80"),
        host_part("pi", "home", 3, "udp/1")
    );
    let after = format!(
        "{head}{}{}{nas}{}{}{POOL}",
        gateway_part("home", "", 1),
        gateway_part("far", "", 2),
        host_part("pi", "home", 3, "udp/2"),
        host_part("cam", "far", 4, "tcp/443")
    );
    let file = |text: &str| read(&format!("listen = [\"127.0.0.1:1\"]\n{text}")).expect("it is right");
    let running = Running::with(&before, |answering| {
        let waypoint = answering.waypoint.clone().expect("it is one");
        locked(&waypoint).carry(&tables(64), answering.gateways(), &BTreeSet::new(), [1, 2]);
        answering.stand().expect("there is room");
    });
    let waypoint = running.names.waypoint().expect("it is one");
    let told: Arc<Mutex<Vec<Row>>> = Arc::default();
    locked(&waypoint).begin(Box::new(Faster(Arc::clone(&told), None)));
    let wish = |name: &str, gateway: &str, last: u8| NameWish {
        name: name.to_owned(),
        place: HostPlace { gateway: gateway.to_owned(), address: [10, 0, 0, last].into() },
        services: vec![format!("tcp/{}", 9000 + u16::from(last))],
        ipv4: Ipv4Mode::Automatic,
        ipv6: None,
    };
    running.names.lease(&wish("x.lab", "home", 7)).expect("it is given");
    running.names.answering().add(&wish("own", "home", 8)).expect("it is free");
    let mut stream = running.connect();
    let mut is_there = |name: &str| by_tcp(&mut stream, &query_for(name, 1))[3] & 0xf == 0;
    told.lock().expect("no panic").clear();

    // The same file changes nothing.
    assert_eq!(running.names.follow(&file(&before), None), Vec::<String>::new());
    assert_eq!(*told.lock().expect("no panic"), []);
    let said = running.names.follow(&file(&after), None);
    assert_eq!(
        said,
        ["`x.lab.home.example` is gone: the file does not give it to the gateway `home` any more"]
    );
    let there = ["nas", "tv", "pi", "cam", "own"].map(&mut is_there);
    assert_eq!(there, [true, false, true, true, true]);
    let rows = std::mem::take(&mut *told.lock().expect("no panic"));
    let shown = |(key, to): &Row| {
        let Service { protocol, port } = key.service;
        (protocol, port, to.map(|to| (to.peer, to.host.octets()[3])))
    };
    let mut changes: Vec<_> = rows.iter().map(shown).collect();
    changes.sort_unstable();
    // What leads to `nas` and to what was added is as it was.
    let wanted =
        [(6, 80, None), (6, 443, Some((2, 4))), (6, 9007, None), (17, 1, None), (17, 2, Some((1, 3)))];
    assert_eq!(changes, wanted);

    // What was added at a gateway that goes is in the way.
    running.names.answering().add(&wish("own2", "far", 9)).expect("it is free");
    let error = running.names.can_follow(&file(&before)).expect_err("its gateway goes");
    assert!(error.starts_with("`own2.home.example`, which `ravelin names add` has added"), "{error}");
    running.names.answering().remove("own2").expect("it is there");
    // Whoever was bound to a host behind the gateway `far` would reach one of this.
    let taken = format!("{head}{home}{}{POOL}", gateway_part("near", "", 2));
    let error = running.names.can_follow(&file(&taken)).expect_err("the number has bindings");
    assert!(error.starts_with("`peer` of the gateway `near` is the number that `far` has had"), "{error}");
    // What has the place of a leased name does not go with the lease.
    running.names.answering().add(&wish("x.lab", "home", 7)).expect("it is free");
    running.names.end_lease("x.lab.home.example");
    assert!(running.names.answering().remove("x.lab").is_ok(), "it was removed with the lease");
    assert_eq!(running.names.can_follow(&file(&before)), Ok(()));
    assert_eq!(running.names.follow(&file(&before), None), Vec::<String>::new());
    assert_eq!(["nas", "tv", "pi", "cam", "own"].map(&mut is_there), [true, true, true, false, true]);
}

#[test]
fn a_list_of_names_beside_asks_waits_for_nobody_for_ever() {
    let running = Running::with(&format!("{ZONE}{HOSTS}{POOL}"), |_| ());
    let waypoint = running.names.waypoint().expect("it is one");
    let (done, all_done) = std::sync::mpsc::channel();
    let (names, finished) = (running.names.clone(), done.clone());
    let listed = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&listed);
    let list = move || {
        (0..5_000).for_each(|_| assert_eq!(names.view().host_count, 2));
        listed.store(true, Ordering::SeqCst);
        finished.send(5_000)
    };
    // As the thread that follows packets does, it takes the waypoint without the name server.
    let ask = move || {
        let mut serial = 0;
        while !until.load(Ordering::SeqCst) {
            serial += 1;
            let body = AskBody::SetUp(SetUp {
                gateway: "home".into(),
                host: [192, 168, 1, 10].into(),
                services: Services::new([Service { protocol: 6, port: 22 }]).expect("one"),
                initiators: Initiators::Any,
                resolver: Ipv4Addr::new(192, 0, 2, 53).into(),
                is_verified: true,
            });
            let ask = ControlAsk { epoch: 1, serial, body };
            locked(&waypoint).heard(Peer(3), &ask, true, serial).expect("an answer");
        }
        done.send(serial)
    };
    thread::spawn(list);
    thread::spawn(ask);
    for _ in 0..2 {
        let count = all_done.recv_timeout(Duration::from_secs(60)).expect("each waits for the other");
        assert!(count > 0);
    }
}

/// Packets that have bound an initiator before the waypoint hears of it.
struct Faster(Arc<Mutex<Vec<Row>>>, Option<Reached>);

/// Packets that take note of what leads to hosts by IPv6.
struct Led(Arc<Mutex<Vec<StableEntry>>>);

impl PacketsOfTest for Led {
    fn lead(&mut self, gone: Vec<StableEntry>, new: Vec<StableEntry>) -> Result<(), String> {
        let mut led = self.0.lock().expect("no panic");
        led.retain(|entry| !gone.contains(entry));
        led.extend(new);
        Ok(())
    }
}

#[test]
fn what_leads_to_a_host_by_ipv6_stays_as_long_as_a_name_has_it() {
    let six = |text: &str| text.parse::<Ipv6Addr>().expect("an address");
    let gateway = |name: &str, peer| GatewayDescription {
        name: name.into(),
        networks: Vec::new(),
        names: Vec::new(),
        peer,
    };
    let mut path = PacketPath::new(
        &tables(8),
        &[gateway("home", Some(7)), gateway("other", Some(8))],
        &BTreeSet::new(),
        [1, 2],
    );
    let led = Arc::default();
    path.begin(Box::new(Led(Arc::clone(&led))));
    let count = || led.lock().expect("no panic").len();
    let host = |services: &[&str], gateway: &str| StableHost {
        at: six("2001:db8:100::1"),
        gateway: gateway.to_owned(),
        host: six("fd00:10::10"),
        services: Services::new(services.iter().map(|text| text.parse().expect("a service"))).expect("few"),
    };
    let (web, both) = (host(&["tcp/80"], "home"), host(&["tcp/80", "icmp"], "home"));
    path.lead(&web).expect("there is room");
    path.lead(&both).expect("there is room");
    let echo = Service { protocol: 58, port: 0 };
    let wanted = StableEntry { at: web.at, service: echo, peer: 7, host: web.host };
    assert_eq!((count(), led.lock().expect("no panic")[1]), (2, wanted));
    let error = path.lead(&host(&["tcp/80"], "other")).expect_err("it leads elsewhere");
    assert!(error.contains("behind another gateway already"), "{error}");
    path.forsake(&web);
    assert_eq!(count(), 2, "the other name has the service, too");
    path.forsake(&both);
    assert_eq!(count(), 0);
    assert!(path.lead(&host(&["tcp/80"], "other")).is_ok(), "it is free again");
    assert!(path.lead(&host(&["tcp/80"], "nobody")).is_err());
}

impl PacketsOfTest for Faster {
    fn change(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal> {
        if rows.iter().any(|(key, to)| to.is_some() && Some(key.address) == self.1.map(|one| one.key.address))
        {
            return Err(PathRefusal::Reached(self.1.take().into_iter().collect()));
        }
        self.0.lock().expect("no panic").extend(rows);
        Ok(())
    }

    fn reached(&mut self) -> Option<Vec<Reached>> {
        Some(Vec::new())
    }

    fn hold(&mut self, keys: &[BindingKey]) -> Option<Vec<bool>> {
        Some(vec![true; keys.len()])
    }
}

#[test]
fn more_bindings_of_an_earlier_life_than_there_is_room_for_are_those_that_ended_last() {
    let text =
        "table quarantine: exact(initiator: ip4, at: ip4, proto: u8, number: u16) -> (u24, ip4, time, time) {
        capacity 4 age 120s evict refuse
    }
    start stage all() { match quarantine[1.1.1.1, 2.2.2.2, 6, 22] { some _ => flood, none => flood } }";
    let options = lang::pipeline::CompileOptions::default();
    let compiled = lang::pipeline::compile("p.rav", text, &|_| None, &options);
    let program = compiled.program.expect("compiles");
    let mut backend = exec::load(&program, exec::BackendKind::Interpreter, 1, 0).expect("it loads");
    let tables = PacketTables {
        expectations: 9,
        room: 0,
        bound: [9; 4],
        young: 0,
        quarantine: 0,
        machine: 9,
        cookie_keys: None,
        stable: None,
        server_names: None,
    };
    let stored = |number: u8| {
        let service = Service { protocol: 6, port: 22 };
        let key = BindingKey { initiator: [203, 0, 113, number].into(), address: [1; 4].into(), service };
        StoredBinding { key, gateway: 1, host: [10, 0, 0, 1].into(), ago: u64::from(100 - number) }
    };
    let earlier: Vec<StoredBinding> = (0..10).map(stored).collect();
    let (count, _) = quarantine_earlier(backend.as_mut(), &tables, &earlier, 1).expect_err("too many");
    assert_eq!(count, 4);
    let (entries, _) = backend.entries_part(0, exec::EntryPlace::default(), 100);
    let mut kept: Vec<u8> = Vec::new();
    for entry in &entries {
        let ir::Match::Exact(initiator) = entry.key[0] else { panic!("{entry:?}") };
        kept.push(initiator as u8);
    }
    kept.sort_unstable();
    assert_eq!(kept, [6, 7, 8, 9]);
    assert!(quarantine_earlier(backend.as_mut(), &tables, &earlier[7..], 1).is_ok());
}

#[test]
fn a_promise_that_packets_have_no_room_for_is_taken_back() {
    let address = |last| Ipv4Addr::new(198, 51, 100, last);
    let mut hosts = Hosts::default();
    for last in [10, 11, 12] {
        hosts.number(HostPlace { gateway: "home".into(), address: [192, 168, 1, last].into() });
    }
    let pool = AddressPool { known: Vec::new(), unknown: (1..=4).map(address).collect() };
    let mut waypoint = LocalWaypoint::new(1, pool, Arc::new(Mutex::new(hosts))).expect("a pool");
    let gateway =
        GatewayDescription { name: "home".into(), networks: Vec::new(), names: Vec::new(), peer: Some(7) };
    waypoint.carry(&tables(3), &[gateway], &BTreeSet::new(), [1, 2]);
    let told = Arc::default();
    waypoint.begin(Box::new(Faster(Arc::clone(&told), None)));
    let mut asked = 0;
    let mut ask = |last: u8, services: &[&str]| {
        let services = services.iter().map(|text| text.parse().expect("a service"));
        asked += 1;
        let body = AskBody::SetUp(SetUp {
            gateway: "home".into(),
            host: [192, 168, 1, last].into(),
            services: Services::new(services).expect("few"),
            initiators: Initiators::Any,
            resolver: Ipv4Addr::new(192, 0, 2, 53).into(),
            is_verified: true,
        });
        let ask = ControlAsk { epoch: 1, serial: asked, body };
        waypoint.heard(Peer(3), &ask, true, 1).expect("an answer").body
    };
    let whole = 65_000_000;
    assert_eq!(ask(10, &["tcp/22", "tcp/80"]), AnswerBody::Accept(address(1), whole));
    // There is room for one entry more.
    let full = AnswerBody::Reject(Rejection::SetUp(SetUpError::Full));
    assert_eq!(ask(11, &["tcp/22", "tcp/80"]), full);
    // Nothing is left of it, also at the address that it would have had.
    assert_eq!(ask(12, &["tcp/22"]), AnswerBody::Accept(address(2), whole));
    let mut known: HashMap<PathKey, Target> = HashMap::new();
    for (key, to) in told.lock().expect("no panic").iter() {
        match to {
            Some(target) => drop(known.insert(*key, *target)),
            None => drop(known.remove(key)),
        }
    }
    let mut hosts: Vec<u8> = known.values().map(|target| target.host.octets()[3]).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [10, 10, 12]);
}

#[test]
fn packets_that_were_faster_than_their_event_are_believed() {
    let (initiator, address) = (Ipv4Addr::new(203, 0, 113, 9), |last| Ipv4Addr::new(198, 51, 100, last));
    let place = |last: u8| HostPlace { gateway: "home".into(), address: [192, 168, 1, last].into() };
    let mut hosts = Hosts::default();
    hosts.number(place(10));
    hosts.number(place(11));
    let pool = AddressPool { known: vec![address(1), address(2)], unknown: Vec::new() };
    let mut waypoint = LocalWaypoint::new(1, pool, Arc::new(Mutex::new(hosts))).expect("a pool");
    let gateway =
        GatewayDescription { name: "home".into(), networks: Vec::new(), names: Vec::new(), peer: Some(7) };
    waypoint.carry(&tables(8), &[gateway], &BTreeSet::new(), [1, 2]);
    let service = Service { protocol: 6, port: 22 };
    let key = BindingKey { initiator, address: address(1), service };
    let target = Target { peer: 7, host: [192, 168, 1, 11].into() };
    let told = Arc::default();
    let reached = Reached { key, target, quarantined: false };
    waypoint.begin(Box::new(Faster(Arc::clone(&told), Some(reached))));
    let mut asked = 0;
    let mut ask = |host: u8| {
        let services = Services::new([service]).expect("one");
        let initiators = Initiators::Exact(initiator);
        let resolver = initiator.into();
        asked += 1;
        let host = [192, 168, 1, host].into();
        let gateway = "home".into();
        let set_up = SetUp { gateway, host, services, initiators, resolver, is_verified: true };
        let ask = ControlAsk { epoch: 1, serial: asked, body: AskBody::SetUp(set_up) };
        waypoint.heard(Peer(3), &ask, true, 1).expect("an answer").body
    };
    // Packets lead the initiator to the other host by the first address, so it gets the second one.
    assert_eq!(ask(10), AnswerBody::Accept(address(2), 2_000_000));
    let key = PathKey { address: address(2), service, initiators: Initiators::Exact(initiator) };
    let to_nas = Target { host: [192, 168, 1, 10].into(), ..target };
    assert_eq!(*told.lock().expect("no panic"), [(key, Some(to_nas))]);
    // And the first one again, for the host that it reaches there.
    assert_eq!(ask(11), AnswerBody::Accept(address(1), 2_000_000));
}

#[test]
fn the_secret_of_syn_cookies_is_put_into_each_program_that_has_them() {
    let text = include_str!("../../../../programs/waypoint.rav");
    let options = lang::pipeline::CompileOptions::default();
    let compiled = lang::pipeline::compile("waypoint.rav", text, &|_| None, &options);
    let mut program = compiled.program.expect("compiles");
    let tables = PacketTables::of(&program, true, false).expect("it has all tables");
    let path = PacketPath::new(&tables, &[], &BTreeSet::new(), [7, u64::MAX]);
    let mut backend = exec::load(&program, exec::BackendKind::Interpreter, 2, 0).expect("it loads");
    let table = tables.cookie_keys.expect("it has cookies");
    assert_eq!(backend.entries_held(table), 0, "the text has no secret");
    path.fill(&tables, backend.as_mut(), &Hosts::default()).expect("there is room");
    let [(entry, _)] = &backend.entries(table)[..] else { panic!("one secret") };
    assert_eq!(entry.value, [7, u64::MAX.into()]);
    // A program that would show it gets none.
    program.tables[table as usize].secret = false;
    let error = PacketTables::of(&program, true, false).expect_err("it is not secret");
    assert!(error.contains("`secret` among the properties of the table `cookie_keys`"), "{error}");
}

/// Packets of which so many first ones are unproved, and with or without SYN cookies.
struct Crowded(u64, bool);

impl PacketsOfTest for Crowded {
    fn state(&mut self) -> Option<KeyState> {
        let target = Target { peer: 7, host: [192, 168, 1, 10].into() };
        let (expected, young, has_cookies) = (Some((target, 0)), (self.0, 4), self.1);
        Some(KeyState { expected, young, has_cookies, ..KeyState::default() })
    }
}

#[test]
fn what_becomes_of_a_first_packet_without_a_place_is_told() {
    let outcome = |young, has_cookies, service: &str| {
        let pool = AddressPool { known: Vec::new(), unknown: vec![[198, 51, 100, 1].into()] };
        let mut waypoint = LocalWaypoint::new(1, pool, Arc::default()).expect("a pool");
        waypoint.carry(&tables(8), &[], &BTreeSet::new(), [1, 2]);
        waypoint.begin(Box::new(Crowded(young, has_cookies)));
        let service = service.parse().expect("a service");
        let key =
            BindingKey { initiator: [203, 0, 113, 9].into(), address: [198, 51, 100, 1].into(), service };
        waypoint.why(&key, 1).expect("packets follow").outcome
    };
    assert_eq!(outcome(3, true, "tcp/80"), "would_reach");
    assert_eq!(outcome(4, true, "tcp/80"), "answered_by_cookie");
    assert_eq!(outcome(4, true, "udp/80"), "embryonic_full");
    assert_eq!(outcome(4, false, "tcp/80"), "embryonic_full");
}
