//! Names by the resolvers that people use: dnsmasq, Unbound, BIND and PowerDNS Recursor, each between ten
//! clients and a waypoint.
//!
//! The name server has one address for clients that it does not know, and one for those whose whole address
//! their resolver tells. What becomes of it is judged by what curl got, and by scapy from captures.

mod net;

use net::small_internet::{Home, Plan, ZONE, either, page, succeeds, until};
use net::{Running, text};
use rig::SmallInternet;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The only addresses for clients that are known, and for those that are not.
const KNOWN: &str = "198.51.100.2";
const UNKNOWN: &str = "198.51.100.4";
const INITIATORS: usize = 10;

/// What a resolver tells of who has asked (RFC 7871).
#[derive(Clone, Copy, PartialEq)]
enum Tells {
    Nothing,
    /// The first 24 bits.
    Network,
    /// All 32 bits.
    Whole,
}

/// The command of a resolver.
type Resolver = fn(&Home, Tells) -> Command;

fn dnsmasq(home: &Home, tells: Tells) -> Command {
    let mut command = home.internet.resolver.command("dnsmasq", None);
    command.args(["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"]);
    command.args(["--user=root", "--pid-file=", &format!("--listen-address={}", SmallInternet::RESOLVER)]);
    command.arg(format!("--server=/{ZONE}/{}", SmallInternet::WAYPOINT_MACHINE));
    match tells {
        Tells::Nothing => {}
        Tells::Network => drop(command.arg("--add-subnet=24")),
        Tells::Whole => drop(command.arg("--add-subnet=32")),
    }
    command
}

/// Whole addresses go by TCP, where they are believed.
fn unbound(home: &Home, tells: Tells) -> Command {
    let (own, server) = (SmallInternet::RESOLVER, SmallInternet::WAYPOINT_MACHINE);
    let subnet = |length: u8| {
        format!(
            " module-config: \"subnetcache iterator\"\n send-client-subnet: {server}\n \
             max-client-subnet-ipv4: {length}\n"
        )
    };
    let more = match tells {
        Tells::Nothing => " module-config: \"iterator\"\n".to_owned(),
        Tells::Network => subnet(24),
        Tells::Whole => subnet(32) + " tcp-upstream: yes\n",
    };
    let configuration = format!(
        "server:\n interface: {own}\n access-control: 0.0.0.0/0 allow\n do-daemonize: no\n username: \"\"\n \
         chroot: \"\"\n pidfile: \"\"\n directory: \"{}\"\n use-syslog: no\n num-threads: 1\n{more}\
         remote-control:\n control-enable: no\nstub-zone:\n name: \"{ZONE}\"\n stub-addr: {server}\n",
        home.path("").display()
    );
    let file = home.path("unbound.conf");
    fs::write(&file, configuration).expect("can be written");
    let mut command = home.internet.resolver.command("unbound", None);
    command.args(["-d", "-c"]).arg(file);
    command
}

/// BIND tells nothing of its clients, and shows a cookie.
fn bind(home: &Home, _: Tells) -> Command {
    let configuration = format!(
        "options {{\n directory \"{}\";\n listen-on {{ {}; }};\n listen-on-v6 {{ none; }};\n recursion yes;\n \
         allow-query {{ any; }};\n allow-recursion {{ any; }};\n dnssec-validation no;\n pid-file none;\n \
         lock-file none;\n session-keyfile none;\n}};\ncontrols {{ }};\nzone \"{ZONE}\" {{\n type static-stub;\n \
         server-addresses {{ {}; }};\n}};\n",
        home.path("").display(),
        SmallInternet::RESOLVER,
        SmallInternet::WAYPOINT_MACHINE
    );
    let file = home.path("named.conf");
    fs::write(&file, configuration).expect("can be written");
    let mut command = home.internet.resolver.command("named", None);
    command.args(["-g", "-n", "1", "-c"]).arg(file);
    command
}

fn powerdns(home: &Home, tells: Tells) -> Command {
    let server = SmallInternet::WAYPOINT_MACHINE;
    let mut command = home.internet.resolver.command("pdns_recursor", None);
    let folder = home.path("powerdns");
    fs::create_dir_all(&folder).expect("can be made");
    for option in ["config-dir", "socket-dir"] {
        command.arg(format!("--{option}={}", folder.display()));
    }
    command.args(["--daemon=no", "--write-pid=no", "--dnssec=off", "--security-poll-suffix=", "--threads=1"]);
    command.args(["--setuid=", "--setgid=", "--allow-from=0.0.0.0/0", "--dont-query="]);
    command.arg(format!("--local-address={}", SmallInternet::RESOLVER));
    command.arg(format!("--forward-zones={ZONE}={server}"));
    let length = match tells {
        Tells::Nothing => return command,
        Tells::Network => 24,
        Tells::Whole => 32,
    };
    command.arg(format!("--edns-subnet-allow-list={server}"));
    command.arg(format!("--ecs-ipv4-bits={length}"));
    command
}

/// Starts a resolver, and waits until it answers for the zone.
fn started(home: &Home, resolver: Resolver, tells: Tells) -> Running {
    let log = fs::File::create(home.path("resolver.log")).expect("can be written");
    let mut command = resolver(home, tells);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let running = Running::of(command.spawn().expect("the resolver starts"));
    until(|| {
        let mut dig = home.client(0, "dig");
        let output = dig.args(["+tries=1", "+time=1", "+short", ZONE, "SOA"]).output().expect("dig runs");
        let said = fs::read_to_string(home.path("resolver.log")).unwrap_or_default();
        if output.status.success() && !output.stdout.is_empty() {
            Ok(())
        } else {
            Err(format!("the resolver does not answer: {}{said}", text(&output)))
        }
    });
    running
}

/// Lets initiators fetch pages so that all their questions are at the resolver before the name server answers
/// one. Returns what each got, with the address that it was got from.
fn at_once(home: &Home, wanted: &[(usize, &str)]) -> Vec<String> {
    let before = questions(home);
    home.signal("waypoint", "-STOP");
    let fetch = |&(initiator, url): &(usize, &str)| {
        let mut curl = home.curl(initiator, &["-w", "%{remote_ip}", url]);
        curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("curl runs")
    };
    let clients: Vec<Child> = wanted.iter().map(fetch).collect();
    until(|| match questions(home) - before {
        seen if seen >= wanted.len() => Ok(()),
        seen => Err(format!("{seen} of {} questions came to the resolver", wanted.len())),
    });
    home.signal("waypoint", "-CONT");
    clients.into_iter().map(|client| text(&client.wait_with_output().expect("curl ends"))).collect()
}

/// How many questions for addresses have come to the resolver.
fn questions(home: &Home) -> usize {
    let mut read = Command::new("tcpdump");
    read.args(["-n", "-r"]).arg(home.captured("resolver"));
    let output = read.args(["dst", "host", "192.0.2.2", "and", "udp", "dst", "port", "53"]).output();
    let text = String::from_utf8_lossy(&output.expect("tcpdump runs").stdout).into_owned();
    text.lines().filter(|line| line.contains(" A? ")).count()
}

/// Gives an initiator an address in another network, from which it sends.
fn moved(home: &Home, initiator: usize, network: &str) {
    let own = SmallInternet::initiator_address(initiator).to_string();
    let own_router = router_of(initiator);
    let ip = |namespace: &rig::Namespace, line: String| {
        let output = namespace.run("ip", &line.split(' ').collect::<Vec<_>>(), "").expect("ip runs");
        assert!(output.status.success(), "{line}: {}", text(&output));
    };
    let there = &home.internet.initiators[initiator];
    ip(there, format!("address add {network}.2/24 dev eth0"));
    ip(there, format!("route replace default via {own_router} src {network}.2"));
    ip(&home.internet.router, format!("route add {network}.0/24 via {own}"));
}

/// The router of an initiator has the first address of its network of 16.
fn router_of(initiator: usize) -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::from_bits(SmallInternet::initiator_address(initiator).to_bits() - 1)
}

/// Ten clients, then two of different networks, then two of one network, by a resolver.
fn reached_by(test: &str, program: &str, resolver: Resolver, tells_of_clients: bool) {
    let addresses = ["--known", KNOWN, "--unknown", UNKNOWN].map(str::to_owned);
    let addresses = addresses.map(|one| if one.starts_with("--") { one } else { one + "/32" });
    let plan = Plan {
        initiators: INITIATORS,
        hosts: 3,
        addresses: &addresses.each_ref().map(String::as_str),
        offloads: true,
        programs: &[program],
    };
    let believed = |role: &str, file: String| match role {
        "waypoint" => file.replace("\nzone = ", "\nresolvers = [\"192.0.2.2/32\"]\nzone = "),
        _ => file,
    };
    let Some(mut home) = Home::new(test, &plan, believed) else { return };
    for link in ["resolver", "machine", "public"] {
        home.capture_at_router(link);
    }
    home.capture_lan();
    home.serve("waypoint");
    home.serve("gateway");
    for (host, port) in [(0, 80), (1, 8000), (2, 8000), (1, 8001), (2, 8001)] {
        home.web_server(host, port);
    }
    let names = [
        ("ten", 0, "tcp/80"),
        ("other", 1, "tcp/80"),
        ("north", 1, "tcp/8000"),
        ("south", 2, "tcp/8000"),
        ("east", 1, "tcp/8001"),
        ("west", 2, "tcp/8001"),
    ];
    for (name, host, service) in names {
        home.add_name(name, host, &[service]);
    }

    let running = started(&home, resolver, Tells::Nothing);
    let ten: Vec<(usize, &str)> = (0..INITIATORS).map(|one| (one, "http://ten.home.example/")).collect();
    assert_eq!(at_once(&home, &ten), vec![page(0) + UNKNOWN; INITIATORS]);
    // The address is promised to everybody, so nobody gets it for another host.
    let mut dig = home.client(0, "dig");
    let refused = dig.args(["+tries=1", "+time=5", "other.home.example"]).output().expect("dig runs");
    assert!(text(&refused).contains("status: SERVFAIL"), "{}", text(&refused));
    drop(running);

    if tells_of_clients {
        moved(&home, 0, "198.18.1");
        moved(&home, 1, "198.18.2");
        let running = started(&home, resolver, Tells::Network);
        let two = [(0, "http://north.home.example:8000/"), (1, "http://south.home.example:8000/")];
        assert_eq!(at_once(&home, &two), [page(1) + UNKNOWN, page(2) + UNKNOWN]);
        drop(running);
        let _running = started(&home, resolver, Tells::Whole);
        let two = [(2, "http://east.home.example:8001/"), (3, "http://west.home.example:8001/")];
        // Who tells it by UDP without a cookie is not believed; who is to prove itself asks by TCP.
        let may = if program == "unbound" { &[KNOWN][..] } else { &[KNOWN, UNKNOWN] };
        for (got, host) in at_once(&home, &two).iter().zip([1, 2]) {
            assert!(may.iter().any(|at| *got == page(host) + at), "{got}");
        }
    }

    let hosts = names.map(|(name, host, service)| {
        format!("{name}={}:{}", SmallInternet::host_address(host), service.trim_start_matches("tcp/"))
    });
    let report = home.judged("resolvers_judge.py", &hosts.each_ref().map(String::as_str));
    assert_eq!(report["wrong"].as_object().map(serde_json::Map::len), Some(0), "{report}");
    let count = |of: &str, what: &str| report[of][what].as_u64().unwrap_or(0);
    // Its questions were merged, so one answer was for several clients.
    assert!((1..INITIATORS as u64).contains(&count("asked", "ten")), "{report}");
    let mut wanted = vec![("I1", INITIATORS as u64)];
    if tells_of_clients {
        wanted = vec![("I1", INITIATORS as u64 + 4), ("F13 /24", 2), ("F13 /32", 2)];
        assert_eq!(report["led"][UNKNOWN], Value::from(3), "{report}");
    }
    for (what, least) in wanted {
        assert!(count("looked", what) >= least, "{what}: {report}");
    }
}

/// What comes from forged addresses and what goes to them, as the router counts it.
const COUNTERS: &str = "table inet forged {
 counter asked { }
 counter answered { }
 chain prerouting {
  type filter hook prerouting priority -300
  ip saddr 198.18.0.0/15 counter name asked
  ip daddr 198.18.0.0/15 counter name answered
 }
}
";

/// Packets and bytes of a counter of the router.
fn counted(home: &Home, counter: &str) -> (u64, u64) {
    let listed = home.internet.router.run("nft", &["list", "counter", "inet", "forged", counter], "");
    let listed = text(&listed.expect("nft runs"));
    let number = |what: &str| {
        let mut words = listed.split_whitespace().skip_while(|word| *word != what).skip(1);
        words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{what}: {listed}"))
    };
    (number("packets"), number("bytes"))
}

/// Clients reach a host by resolvers that prove themselves while forged queries ask for two other names,
/// which could have all addresses that there are, at a pace of `forged_queries.py`. Returns which hosts have
/// addresses then, if this runs here.
fn beside_forged_queries(test: &str, pace: &str, change: impl Fn(String) -> String) -> Option<String> {
    let plan = Plan {
        initiators: 4,
        hosts: 3,
        addresses: &["--unknown", "198.51.100.4/31"],
        offloads: true,
        programs: &["named", "dnsmasq"],
    };
    let change = |role: &str, file: String| if role == "waypoint" { change(file) } else { file };
    let mut home = Home::new(test, &plan, change)?;
    let router = &home.internet.router;
    for interface in ["all", "initiator3"] {
        router.set(&format!("ipv4/conf/{interface}/rp_filter"), "0").expect("is there");
    }
    // Nobody is told that answers to them lead nowhere.
    succeeds("ip", &router.run("ip", &["route", "add", "blackhole", "198.18.0.0/15"], "").expect("ip runs"));
    succeeds("nft", &router.run("nft", &["-f", "-"], COUNTERS).expect("nft runs"));
    home.serve("waypoint");
    home.serve("gateway");
    home.web_server(0, 80);
    for host in 0..3 {
        home.add_name(&format!("host{host}"), host, &["tcp/80"]);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/forged_queries.py");
    let mut flood = home.internet.initiators[3].command("python3", None);
    flood.arg(script).arg(SmallInternet::WAYPOINT_MACHINE.to_string()).arg(pace);
    flood.args(["host1.home.example", "host2.home.example"]).stdin(Stdio::null());
    let mut flood = flood.spawn().expect("python runs");
    until(|| match counted(&home, "asked").0 {
        packets if packets > 1_000 => Ok(()),
        packets => Err(format!("{packets} queries")),
    });
    let (begun, (before, _)) = (Instant::now(), counted(&home, "asked"));
    // BIND shows a cookie, and dnsmasq asks by TCP.
    for resolver in [bind as Resolver, dnsmasq] {
        let _running = started(&home, resolver, Tells::Nothing);
        for initiator in 0..3 {
            let got = home.curl(initiator, &["http://host0.home.example/"]).output().expect("curl runs");
            assert_eq!(text(&got), page(0));
        }
    }
    let forged = (counted(&home, "asked").0 - before) as f64 / begun.elapsed().as_secs_f64();
    println!("{test}: {forged:.0} forged queries a second");
    assert!(flood.try_wait().expect("is ours").is_none(), "the flood ended too early");
    flood.kill().expect("it runs");
    flood.wait().expect("it ends");
    let ((_, asked), (answers, answered)) = (counted(&home, "asked"), counted(&home, "answered"));
    assert!(answers > 100 && answered <= 3 * asked, "{answered} bytes for {asked}");
    Some(text(&home.ravelin("waypoint", &["names", "bindings"])))
}

#[test]
fn forged_queries_take_no_address_from_resolvers_that_prove_themselves() {
    let test = "forged_queries_take_no_address_from_resolvers_that_prove_themselves";
    let prove = |file: String| file.replace("\nzone = ", "\nunverified = \"prove-first\"\nzone = ");
    let Some(promises) = beside_forged_queries(test, either("slow", "fast"), prove) else { return };
    assert!(promises.contains("10.0.0.80") && !promises.contains("10.0.0.81"), "{promises}");
    assert!(!promises.contains("10.0.0.82"), "{promises}");
}

/// Without `unverified` in the file.
#[test]
fn forged_queries_take_half_of_the_addresses_at_most_where_nothing_is_said() {
    let test = "forged_queries_take_half_of_the_addresses_at_most_where_nothing_is_said";
    let Some(promises) = beside_forged_queries(test, "slow", |file| file) else { return };
    // There are two addresses.
    let taken = ["10.0.0.81", "10.0.0.82"].into_iter().filter(|host| promises.contains(host)).count();
    assert!(promises.contains("10.0.0.80") && taken == 1, "{promises}");
}

#[test]
fn ten_clients_and_two_networks_reach_their_hosts_by_dnsmasq() {
    let test = "ten_clients_and_two_networks_reach_their_hosts_by_dnsmasq";
    reached_by(test, "dnsmasq", dnsmasq, true);
}

#[test]
fn ten_clients_and_two_networks_reach_their_hosts_by_unbound() {
    let test = "ten_clients_and_two_networks_reach_their_hosts_by_unbound";
    reached_by(test, "unbound", unbound, true);
}

#[test]
fn ten_clients_reach_their_host_by_bind() {
    reached_by("ten_clients_reach_their_host_by_bind", "named", bind, false);
}

#[test]
fn ten_clients_and_two_networks_reach_their_hosts_by_powerdns() {
    let test = "ten_clients_and_two_networks_reach_their_hosts_by_powerdns";
    reached_by(test, "pdns_recursor", powerdns, true);
}
