//! What goes wrong around names while flows go on: addresses that change, bad lines, floods, scans, clocks
//! that are set, small and large tunnels, keys that are changed and revoked.

mod net;

use net::small_internet::{ECHO, Home, Plan, Talk, either, page, registers, succeeds, until};
use net::{new_key, text};
use rig::{Namespace, SmallInternet};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PLAN: Plan<'_> = Plan {
    initiators: 2,
    hosts: 1,
    addresses: &["--unknown", "198.51.100.4/31"],
    offloads: true,
    programs: &["dnsmasq"],
};

/// What makes a port a bad line, both ways.
const BAD_LINE: &str = "impair = { delay = \"15ms\", jitter = \"5ms\", loss = \"1%\", reorder = \"10%\", \
                        duplicate = \"5%\", seed = 7, direction = \"both\" }\n";

/// A waypoint, a gateway, dnsmasq, and a web server at each host, which has the name `host0` and so on.
fn served(home: &mut Home, hosts: usize) {
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    for host in 0..hosts {
        home.web_server(host, 80);
        home.echo_server(host);
        let echo = format!("tcp/{ECHO}");
        home.add_name(&format!("host{host}"), host, &["tcp/80", &echo, "tcp/5201", "icmp"]);
    }
}

/// Runs `ip` or another program of the system in a namespace.
fn system(namespace: &Namespace, line: &str) {
    let mut words = line.split(' ');
    let program = words.next().expect("a word");
    let output = namespace.run(program, &words.collect::<Vec<_>>(), "").expect("it runs");
    succeeds(line, &output);
}

/// Whether an initiator gets the page of a host by its name.
fn gets(home: &Home, initiator: usize, host: usize) -> bool {
    let output = home.curl(initiator, &[&format!("http://host{host}.home.example/")]).output();
    output.expect("curl runs").stdout == page(host).as_bytes()
}

/// The carrier gives the gateway another public address, and forgets what it has translated.
fn readdress(home: &Home, from: &str, to: &str) {
    system(&home.internet.carrier, &format!("ip address del {from}/28 dev public"));
    system(&home.internet.carrier, &format!("ip address add {to}/28 dev public"));
    system(&home.internet.carrier, "ip route replace default via 192.0.2.49");
}

#[test]
fn a_flow_goes_on_when_the_carrier_gives_another_address() {
    let test = "a_flow_goes_on_when_the_carrier_gives_another_address";
    let Some(mut home) = Home::new(test, &PLAN, |_, file| file) else { return };
    served(&mut home, 1);
    let endpoint = |home: &Home| {
        let shown = home.ask("waypoint", &["show", "ports", "--total"]);
        shown["now"]["ports"][1]["tunnel"]["peers"][0]["endpoint"].as_str().unwrap_or("").to_owned()
    };
    let mut flow = Talk::begin(&home, 0, "host0");
    let own = SmallInternet::CARRIER.to_string();
    assert!(endpoint(&home).starts_with(&own), "{}", endpoint(&home));
    for (from, to) in [(own.as_str(), "192.0.2.51"), ("192.0.2.51", own.as_str())] {
        readdress(&home, from, to);
        flow.goes_on();
        // A datagram that was on its way before may come last.
        until(|| match endpoint(&home) {
            known if known.starts_with(to) => Ok(()),
            other => Err(other),
        });
    }
    flow.goes_on();
    // Who was not there before reaches the host, too.
    assert!(gets(&home, 1, 0));
}

#[test]
fn names_are_registered_and_pages_are_whole_over_bad_lines() {
    let test = "names_are_registered_and_pages_are_whole_over_bad_lines";
    let change = |role: &str, file: String| match role {
        // What clients send and get is lost, late, overtaken and doubled by the waypoint's own port.
        "waypoint" => {
            file.replace("interface = \"public\"\n", &format!("interface = \"public\"\n{BAD_LINE}"))
        }
        _ => file + &registers(80),
    };
    let Some(mut home) = Home::new(test, &PLAN, change) else { return };
    // Of the tunnel's datagrams, handshakes and control included, each tenth is lost on each way.
    let rules = "table inet bad {\n chain forward {\n  type filter hook forward priority 0\n  \
                 ip daddr 192.0.2.34 udp dport 5282 numgen random mod 10 == 0 drop\n  \
                 ip saddr 192.0.2.34 udp sport 5282 numgen random mod 10 == 0 drop\n }\n}\n";
    succeeds("nft", &home.internet.router.run("nft", &["-f", "-"], rules).expect("nft runs"));
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    home.web_server(0, 80);
    until(|| match text(&home.ravelin("waypoint", &["names", "list"])) {
        list if list.contains("own.home.example") => Ok(()),
        list => Err(list),
    });
    home.download(0, "own", 0);
    // A first packet that came twice, or again, has made one binding.
    let bindings = home.ravelin("waypoint", &["table", "show", "tcp_bindings", "--json"]).stdout;
    assert_eq!(
        bindings.iter().filter(|&&byte| byte == b'\n').count(),
        1,
        "{:?}",
        String::from_utf8(bindings)
    );
    let shown = home.ask("waypoint", &["show", "ports", "--total"]);
    for what in ["impaired", "doubled"] {
        assert!(shown["now"]["ports"][0][what].as_u64() > Some(0), "{what}: {shown}");
    }
}

#[test]
fn a_flood_and_a_scan_take_nothing_from_flows_and_from_other_hosts() {
    let test = "a_flood_and_a_scan_take_nothing_from_flows_and_from_other_hosts";
    const MOST_YOUNG: u64 = 512;
    let plan = Plan {
        initiators: 5,
        hosts: 3,
        addresses: &["--unknown", "198.51.100.4/30"],
        programs: &["dnsmasq", "hping3"],
        ..PLAN
    };
    let few = |role: &str, file: String| match role {
        "waypoint" => file.replace("[set]\n", &format!("[set]\nMOST_YOUNG = {MOST_YOUNG}\n")),
        _ => file,
    };
    let Some(mut home) = Home::new(test, &plan, few) else { return };
    for interface in ["all", "initiator3"] {
        home.internet.router.set(&format!("ipv4/conf/{interface}/rp_filter"), "0").expect("is there");
    }
    for link in ["machine", "public"] {
        home.capture_at_router(link);
    }
    home.capture_lan();
    served(&mut home, 3);
    let mut flow = Talk::begin(&home, 0, "host0");
    let at = home.client(0, "dig").args(["+short", "host0.home.example"]).output().expect("dig runs");
    let at = text(&at).trim().to_owned();
    let mut flooding = flood(&home, &at, &["-i", "u250"]);
    until(|| match home.drops("waypoint", "answered_by_cookie") {
        0 => Err("the flood fills nothing".to_owned()),
        _ => Ok(()),
    });
    let tables = home.ask("waypoint", &["show", "tables", "--total"]);
    assert!(flooding.try_wait().expect("is ours").is_none(), "the flood is too short for what follows");
    // Other hosts have their part of the places for first packets, and new clients of this one need none.
    assert!(gets(&home, 1, 1) && gets(&home, 2, 2));
    for initiator in [1, 2] {
        until(|| match gets(&home, initiator, 0) {
            true => Ok(()),
            false => Err(format!("client {initiator} does not reach the flooded host")),
        });
    }
    assert!(home.drops("waypoint", "opened_by_cookie") > 0, "both found one of the few places");
    assert!(flooding.try_wait().expect("is ours").is_none(), "the flood is too short for what follows");
    flow.goes_on();
    // Somebody looks at all ports of an address that was promised, and of one that was not.
    for address in [at.as_str(), "198.51.100.9"] {
        let mut scan = home.internet.initiators[4].command("hping3", None);
        let scan = scan.args(["-q", "-S", "-p", "++1", "-i", "u500", "-c", "600", address]).output();
        assert!(text(&scan.expect("hping3 runs")).contains("600 packets transmitted"));
    }
    flow.goes_on();
    assert!(flooding.try_wait().expect("is ours").is_none(), "the flood is too short for all this");
    flooding.kill().and_then(|()| flooding.wait()).expect("it ends");
    flow.goes_on();
    // Places are free again ten seconds after the last first packet.
    until(|| if gets(&home, 4, 0) { Ok(()) } else { Err("nobody new reaches the host".to_owned()) });
    let young = tables["now"]["report"]["tables"]["young_bindings"]["entries"].as_u64();
    assert!(young.is_some_and(|count| count > MOST_YOUNG / 4 && count <= MOST_YOUNG), "{young:?}");
    let services =
        [0, 1, 2].map(|host| format!("host{host}={}:80,{ECHO}", SmallInternet::host_address(host)));
    let report = home.judged("resolvers_judge.py", &services.each_ref().map(String::as_str));
    assert_eq!(report["wrong"].as_object().map(serde_json::Map::len), Some(0), "{report}");
    assert!(report["looked"]["I1"].as_u64() > Some(MOST_YOUNG / 4), "{report}");
}

/// The flood of X6, on a machine that also runs everything that it is sent to. What is printed says how fast
/// it came, and what clients then saw; what must hold is that nobody is turned away.
#[test]
fn clients_get_in_and_connections_go_on_under_a_fast_flood() {
    let test = "clients_get_in_and_connections_go_on_under_a_fast_flood";
    let plan = Plan { initiators: 4, programs: &["dnsmasq", "hping3"], ..PLAN };
    let Some(mut home) = Home::new(test, &plan, |_, file| file) else { return };
    for interface in ["all", "initiator3"] {
        home.internet.router.set(&format!("ipv4/conf/{interface}/rp_filter"), "0").expect("is there");
    }
    served(&mut home, 1);
    let mut flow = Talk::begin(&home, 0, "host0");
    let at = home.client(0, "dig").args(["+short", "host0.home.example"]).output().expect("dig runs");
    let mut flooding = flood(&home, text(&at).trim(), either(&["-i", "u100"][..], &["--flood"]));
    let answered = |home: &Home| home.drops("waypoint", "answered_by_cookie");
    until(|| if answered(&home) > 1000 { Ok(()) } else { Err("the flood does not begin".to_owned()) });
    let (begun, before) = (Instant::now(), answered(&home));
    let mut times = Vec::new();
    for client in 0..either(20, 200) {
        let asked = Instant::now();
        until(|| match gets(&home, 1 + client % 2, 0) {
            true => Ok(()),
            false => Err(format!("client {client} is turned away")),
        });
        times.push(asked.elapsed());
        flow.goes_on();
    }
    let (took, forged) = (begun.elapsed(), answered(&home) - before);
    assert!(flooding.try_wait().expect("is ours").is_none(), "the flood is too short for all this");
    flooding.kill().and_then(|()| flooding.wait()).expect("it ends");
    flow.goes_on();
    times.sort();
    println!(
        "{test}: {:.0} forged first packets a second were answered; {} look-ups and pages took {:?} (median), {:?} (longest)",
        forged as f64 / took.as_secs_f64(),
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1]
    );
    assert!(forged > 0, "the flood ended");
}

/// Forged first packets of TCP to an address, at the pace that options of hping3 say: no answer comes of
/// their sources, and each has another.
fn flood(home: &Home, at: &str, pace: &[&str]) -> Child {
    let mut hping = home.internet.initiators[3].command("hping3", None);
    hping.args(["-q", "-S", "--rand-source", "-p", "80"]).args(pace).arg(at);
    hping.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hping3 runs")
}

#[test]
fn a_clock_that_is_set_changes_nothing() {
    let test = "a_clock_that_is_set_changes_nothing";
    let Some(mut home) = Home::new(test, &PLAN, |role, file| match role {
        "waypoint" => file.replace("\nzone = ", "\nstore = \"names.store\"\nzone = "),
        _ => file + &registers(80),
    }) else {
        return;
    };
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    if !fs::exists(library).is_ok_and(|there| there) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: libfaketime is not installed");
        eprintln!("{test}: not run, since libfaketime is not installed (`cargo xtask test --only packages`)");
        return;
    }
    let clock = home.path("clock");
    let set = |hours: &str| fs::write(&clock, format!("{hours}h\n")).expect("can be written");
    set("+0");
    home.environment = [
        ("LD_PRELOAD", library.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
    ]
    .into();
    served(&mut home, 1);
    let mut flow = Talk::begin(&home, 0, "host0");
    let lists = |home: &Home| {
        until(|| match text(&home.ravelin("waypoint", &["names", "list"])) {
            list if list.contains("own.home.example") && list.contains("host0.home.example") => Ok(()),
            list => Err(list),
        });
    };
    lists(&home);
    let handshake = |home: &Home| {
        let shown = home.ask("waypoint", &["show", "ports", "--total"]);
        shown["now"]["ports"][1]["tunnel"]["peers"][0]["handshake_seconds"].as_f64().expect("a session")
    };
    for role in ["waypoint", "gateway"] {
        let maps = fs::read_to_string(format!("/proc/{}/maps", home.process(role))).expect("it runs");
        assert!(maps.contains(library), "the {role} would see the true clock");
    }
    let seen = || {
        let mut date = Command::new("date");
        let output = date.arg("+%s").envs(home.environment.iter().cloned()).output().expect("date runs");
        text(&output).trim().parse::<i64>().expect("seconds")
    };
    let (first, before) = (handshake(&home), seen());
    for hours in ["+1", "-1"] {
        set(hours);
        assert!((seen() - before).abs() > 3_000, "the clock was set");
        flow.goes_on();
        lists(&home);
        let now = handshake(&home);
        assert!(now >= first && now < first + 600.0, "the session began {now} s ago, and {first} s before");
    }
    // An answer of before is used after the clock was set, and a new one is asked for.
    assert!(gets(&home, 1, 0));
    flow.goes_on();
}

#[test]
fn pages_and_pings_pass_whatever_fits_into_the_tunnel() {
    let test = "pages_and_pings_pass_whatever_fits_into_the_tunnel";
    let plan = Plan { programs: &["dnsmasq", "iperf3", "ping"], offloads: false, ..PLAN };
    let Some(mut home) = Home::new(test, &plan, |_, file| file) else { return };
    // The lines under the tunnel take its longest packets; clients, their router and hosts have 9,000.
    let internet = &home.internet;
    for (namespace, interface) in [
        (&internet.router, "machine"),
        (&internet.router, "carrier"),
        (&internet.waypoint, "machine"),
        (&internet.carrier, "public"),
        (&internet.carrier, "customer"),
        (&internet.gateway, "uplink"),
    ] {
        system(namespace, &format!("ip link set dev {interface} mtu 9200"));
    }
    for (namespace, interface) in [
        (&internet.router, "initiator0"),
        (&internet.initiators[0], "eth0"),
        (&internet.router, "public"),
        (&internet.waypoint, "public"),
        (&internet.gateway, "lan"),
        (&internet.lan, "gateway"),
        (&internet.lan, "host0"),
        (&internet.lan, "switch"),
        (&internet.hosts[0], "eth0"),
    ] {
        system(namespace, &format!("ip link set dev {interface} mtu 9000"));
    }
    // Nobody is told what fits.
    let rules = "table inet silent {\n chain input {\n  type filter hook input priority 0\n  \
                 icmp type destination-unreachable counter drop\n }\n chain forward {\n  \
                 type filter hook forward priority 0\n  icmp type destination-unreachable counter drop\n }\n}\n";
    for namespace in [&internet.router, &internet.initiators[0], &internet.hosts[0]] {
        succeeds("nft", &namespace.run("nft", &["-f", "-"], rules).expect("nft runs"));
    }
    let mut iperf = home.internet.hosts[0].command("iperf3", None);
    home.keep(iperf.arg("-s").stderr(Stdio::null()));
    let mut before = String::new();
    for mtu in [1280, 1400, 9000] {
        for role in ["waypoint", "gateway"] {
            let file = home.file(role);
            let text = fs::read_to_string(&file).expect("is there");
            let text = text.replace(&before, "");
            let text = text.replace("[set]\n", &format!("[set]\nTUNNEL_MTU = {mtu}\n"));
            let text = text.replace("kind = \"tunnel\"\n", &format!("kind = \"tunnel\"\nmtu = {mtu}\n"));
            fs::write(&file, text).expect("can be written");
        }
        before = format!("TUNNEL_MTU = {mtu}\n");
        served(&mut home, 1);
        home.download(0, "host0", 0);
        let at =
            text(&home.client(0, "dig").args(["+short", "host0.home.example"]).output().expect("dig runs"));
        let at = at.trim();
        for direction in [&[][..], &["-R"]] {
            let mut iperf = home.client(0, "iperf3");
            let output =
                iperf.args(["-c", at, "-t", "1", "-J"]).args(direction).output().expect("iperf3 runs");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let received = report["end"]["sum_received"]["bytes"].as_u64();
            let sums = (&report["error"], &report["end"]["sum_sent"], &report["end"]["sum_received"]);
            assert!(received > Some(100_000), "{mtu} {direction:?}: {sums:?}");
        }
        // Longer than the tunnel takes, and cut: by the client, and by both programs.
        for size in ["56", "1472", "12000"] {
            let ping = ["-c", "3", "-i", "0.2", "-W", "2", "-M", "dont", "-s", size, at];
            let said = text(&home.client(0, "ping").args(ping).output().expect("ping runs"));
            assert!(said.contains("3 received"), "{mtu}, {size}: {said}");
        }
        for role in ["waypoint", "gateway"] {
            home.stop(role);
            let file = home.file(role);
            let text = fs::read_to_string(&file).expect("is there");
            fs::write(&file, text.replace(&format!("mtu = {mtu}\n"), "")).expect("can be written");
        }
    }
}

#[test]
fn among_many_bindings_clients_reach_their_host() {
    let test = "among_many_bindings_clients_reach_their_host";
    let bindings: u64 = either(50_000, 100_000);
    let many = |role: &str, file: String| match role {
        // One host of the only gateway has nine sixteenths of all places.
        "waypoint" => file.replace("[set]\n", &format!("[set]\nMOST_BINDINGS = {}\n", 2 * bindings)),
        _ => file,
    };
    let Some(mut home) = Home::new(test, &PLAN, many) else { return };
    for interface in ["all", "initiator1"] {
        home.internet.router.set(&format!("ipv4/conf/{interface}/rp_filter"), "0").expect("is there");
    }
    // Nobody is told that answers to them lead nowhere.
    system(&home.internet.router, "ip route add blackhole 198.18.0.0/15");
    served(&mut home, 1);
    home.add_name("many", 0, &["udp/7"]);
    home.datagram_server(0);
    let mut flow = Talk::begin(&home, 0, "host0");
    let look_up = || {
        let output = home.client(0, "dig").args(["+short", "many.home.example"]).output().expect("dig runs");
        text(&output).trim().to_owned()
    };
    let at = look_up();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net/many_initiators.py");
    // A slow machine loses some packets: whoever has no binding after a round gets it in the next.
    let mut rounds = 0..5;
    loop {
        let mut senders = home.internet.initiators[1].command("python3", None);
        senders.arg(&script).args([&at, "7", &(bindings + 2_000).to_string()]).stdin(Stdio::null());
        let mut senders = senders.spawn().expect("python runs");
        while senders.try_wait().expect("is ours").is_none() {
            // The promise to all of them lasts for 65 s from the last answer on.
            assert_eq!(look_up(), at);
            flow.goes_on();
            thread::sleep(Duration::from_secs(1));
        }
        let tables = home.ask("waypoint", &["show", "tables", "--total"]);
        let made = &tables["now"]["report"]["tables"]["datagram_bindings"]["entries"];
        if made.as_u64() >= Some(bindings) {
            break;
        }
        assert!(rounds.next().is_some(), "{made}");
    }
    flow.goes_on();
    assert!(gets(&home, 0, 0) && gets(&home, 1, 0));
    home.download(1, "host0", 0);
    assert_eq!(home.drops("waypoint", "bindings_full"), 0);
}

#[test]
fn a_key_is_changed_under_a_flow_and_a_revoked_gateway_is_cut_off() {
    let test = "a_key_is_changed_under_a_flow_and_a_revoked_gateway_is_cut_off";
    let Some(mut home) = Home::new(test, &PLAN, |_, file| file) else { return };
    home.capture_lan();
    served(&mut home, 1);
    let mut flow = Talk::begin(&home, 0, "host0");
    let shown = home.ask("waypoint", &["show", "ports", "--total"]);
    assert_eq!(shown["now"]["ports"][1]["tunnel"]["peers"][0]["name"], "home", "{shown}");
    let gateways = home.ask("waypoint", &["names", "gateways"]);
    let gateway = &gateways[0];
    assert_eq!((&gateway["name"], gateway["names"].as_u64()), (&"home".into(), Some(1)), "{gateways}");
    assert!(gateway["peer"]["handshake_seconds"].is_number(), "{gateways}");
    let (new, other) =
        (new_key(&home.path("gateway").join("new.key")), new_key(&home.path("gateway").join("other.key")));
    let file = fs::read_to_string(home.file("waypoint")).expect("is there");
    let old = file.split("number = 1\nkey = \"").nth(1).and_then(|rest| rest.split('"').next());
    let old = old.expect("the peer's key").to_owned();
    let key = |keys: &[&str]| {
        format!("key = [{}]", keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", "))
    };
    let own = |keys: &[&str], file: String| file.replace("key = \"gateway.key\"", &key(keys));
    // Both keys hold at both ends, then the new one alone.
    home.change("waypoint", |file| file.replace(&format!("key = \"{old}\""), &key(&[&old, &new])));
    flow.goes_on();
    home.change("gateway", |file| own(&["new.key", "gateway.key"], file));
    flow.goes_on();
    home.change("gateway", |file| file.replace(&key(&["new.key", "gateway.key"]), &key(&["new.key"])));
    flow.goes_on();
    home.change("waypoint", |file| file.replace(&key(&[&old, &new]), &key(&[&new])));
    flow.goes_on();
    // Its key is taken away. What comes to hosts after the reload was answered comes from nobody outside.
    home.change("waypoint", |file| file.replace(&key(&[&new]), &key(&[&other])));
    let to_hosts = || {
        let mut read = Command::new("tcpdump");
        read.args(["-n", "-r"]).arg(home.captured("lan")).args(["src", "net", "203.0.113.0/24"]);
        text(&read.output().expect("tcpdump runs")).lines().count()
    };
    let before = to_hosts();
    assert!(before > 10, "{before}");
    for initiator in [1, 0] {
        let url = ["--max-time", "3", "http://host0.home.example/"];
        let refused = home.curl(initiator, &url).output().expect("curl runs");
        assert!(!refused.status.success(), "{}", text(&refused));
    }
    assert_eq!(to_hosts(), before);
    // Let in again, it goes on with what there was.
    home.change("waypoint", |file| file.replace(&key(&[&other]), &key(&[&new])));
    flow.goes_on();
    assert!(gets(&home, 1, 0));
}
