//! A gateway that routes between two hosts in different networks, used by programs that know nothing of it.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, program, text};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// Host `a` is 10.0.1.2 and fd00:1::2, host `b` 10.0.2.2 and fd00:2::2; the gateway between them has address
/// 1 of each network.
const PORTS: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
"#;

/// The two hosts with the gateway between them, and more in its file; `None` where that is not allowed here.
fn routed(test: &str, more: &str) -> Option<Net> {
    let mut net = Net::routed(test)?;
    net.serve_ports(&program("router.rav"), &format!("{PORTS}{more}"));
    Some(net)
}

/// One ping from `a`, which waits for its answer at most ten seconds.
fn ping(net: &Net, arguments: &[&str]) -> String {
    text(&net.run("a", "ping", &[&["-c", "1", "-W", "10"], arguments].concat()))
}

#[test]
fn the_first_packet_between_two_networks_arrives() {
    for workers in ["", "workers = 2\nstate = \"per-worker\"\n"] {
        let Some(mut net) = Net::routed("the_first_packet") else { return };
        net.serve_ports(&program("router.rav"), &format!("{workers}{PORTS}"));
        for address in ["10.0.2.2", "fd00:2::2"] {
            let said = ping(&net, &[address]);
            assert!(said.contains("1 received"), "{said}");
        }
        assert_eq!(net.pings("10.0.2.2"), 20);
        assert_eq!(net.pings("fd00:2::2"), 20);
        net.stop();
    }
}

#[test]
fn frames_for_other_stations_are_not_routed() {
    let Some(mut net) = routed("frames_for_other_stations", "") else { return };
    let neighbour = |what: &[&str]| {
        net.ip(&[&["-n", &net.name("a"), "neighbour"], what, &["10.0.1.1", "dev", "eth0"]].concat());
    };
    assert_eq!(net.pings("10.0.2.2"), 20);
    neighbour(&["replace", "lladdr", "02:00:00:00:00:99", "nud", "permanent"]);
    assert_eq!(net.pings("10.0.2.2"), 0);
    let shown = net.ask(&["show", "ports", "--total"]);
    // Without answers `ping` goes on until its time is up.
    assert!(shown["now"]["ports"][0]["foreign"].as_u64().is_some_and(|foreign| foreign >= 20), "{shown}");
    neighbour(&["del"]);
    assert_eq!(net.pings("10.0.2.2"), 20);
    net.stop();
}

#[test]
fn own_addresses_answer_and_neighbours_are_shown() {
    let Some(mut net) = routed("own_addresses", "") else { return };
    for address in ["10.0.1.1", "10.0.2.1", "fd00:1::1", "fd00:2::1"] {
        let said = ping(&net, &[address]);
        assert!(said.contains("1 received"), "{said}");
    }
    // Longer than an MTU: put together, and answered in pieces.
    for (address, length) in [("10.0.1.1", "4000"), ("fd00:1::1", "4000"), ("10.0.2.1", "60000")] {
        let said = ping(&net, &["-s", length, address]);
        assert!(said.contains("1 received"), "{said}");
    }
    // Nobody listens at a port of the gateway, and it says so at once.
    let begun = Instant::now();
    let said = text(&net.run("a", "curl", &["-sS", "-m", "20", "http://10.0.1.1:81/"]));
    assert!(said.contains("connect to") && begun.elapsed() < Duration::from_secs(15), "{said}");
    let shown =
        net.until("neighbours", |shown| shown["neighbours"].as_array().is_some_and(|all| all.len() >= 2));
    let found = |address: &str| {
        let all = shown["neighbours"].as_array().expect("a list");
        all.iter().find(|known| known["address"] == address).cloned().unwrap_or_default()
    };
    for address in ["10.0.1.2", "fd00:1::2"] {
        let known = found(address);
        assert_eq!(
            (&known["mac"], &known["interface"]),
            (&"02:00:00:00:00:01".into(), &"to-a".into()),
            "{shown}"
        );
    }
    let account = &shown["account"];
    let fates = account["fates"].as_array().expect("a list").iter();
    let sum: u64 = fates.filter_map(|fate| fate["packets"].as_u64()).sum();
    assert_eq!(account["handed"], sum + account["waiting"].as_u64().unwrap_or(0), "{account}");
    net.stop();
}

#[test]
fn unmodified_programs_work_through_it() {
    let Some(mut net) = routed("unmodified_programs", "") else { return };
    for (address, direction) in [("10.0.2.2", &[][..]), ("10.0.2.2", &["-R"]), ("fd00:2::2", &[])] {
        let report = net.tcp(address, direction);
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or(0);
        assert!(bytes > 100_000, "only {bytes} bytes came over: {report}");
    }
    if net.run("a", "traceroute", &["--version"]).status.success() {
        for (address, family, hop) in [("10.0.2.2", "-4", "10.0.1.1"), ("fd00:2::2", "-6", "fd00:1::1")] {
            let said =
                text(&net.run("a", "traceroute", &[family, "-n", "-q", "1", "-w", "5", "-m", "5", address]));
            let hops: Vec<&str> =
                said.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
            assert_eq!(hops, [hop, address], "{said}");
        }
    } else {
        eprintln!("traceroute is not here: not run");
    }
    std::fs::write(net.path("page.html"), "x".repeat(300_000)).expect("can be written");
    let directory = net.path("").display().to_string();
    let settings = format!(
        "user root; pid {directory}/pid; error_log {directory}/errors; events {{}}\nhttp {{ access_log off; client_body_temp_path {directory}/body; \
         proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; \
         scgi_temp_path {directory}/scgi; server {{ listen 10.0.2.2:8000; root {directory}; }} }}\n"
    );
    let file = net.path("nginx.conf");
    std::fs::write(&file, settings).expect("can be written");
    let file = file.display().to_string();
    let mut server = net
        .at(
            "b",
            "timeout",
            &["60", "nginx", "-p", &directory, "-c", &file, "-g", "daemon off; master_process off;"],
        )
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a server");
    let fetch = [
        "-sS",
        "--retry",
        "20",
        "--retry-connrefused",
        "--retry-delay",
        "1",
        "http://10.0.2.2:8000/page.html",
    ];
    let said = net.run("a", "curl", &[&["-m", "40"], &fetch[..]].concat());
    assert_eq!(said.stdout.len(), 300_000, "{}", text(&said));
    // `timeout` hands the signal on to its child.
    let _ = std::process::Command::new("kill").arg(server.id().to_string()).status();
    let _ = server.wait();
    net.stop();
}

#[test]
fn who_is_not_there_is_told_of_and_what_is_too_big_too() {
    let Some(mut net) = routed("who_is_not_there", "") else { return };
    let said = ping(&net, &["-W", "20", "10.0.2.99"]);
    assert!(said.contains("From 10.0.1.1") && said.contains("Destination Host Unreachable"), "{said}");
    let said = ping(&net, &["-W", "20", "fd00:2::99"]);
    assert!(said.contains("From fd00:1::1") && said.contains("Address unreachable"), "{said}");
    let said = ping(&net, &["10.9.9.9"]);
    assert!(said.contains("From 10.0.1.1") && said.contains("Destination Net Unreachable"), "{said}");
    net.ip(&["-n", &net.name("g"), "link", "set", "to-b", "mtu", "1280"]);
    net.ip(&["-n", &net.name("b"), "link", "set", "eth0", "mtu", "1280"]);
    assert_eq!(net.pings("10.0.2.2"), 20);
    // The gateway hears of the new MTU from the kernel: until then the interface refuses what is too long.
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let said = ping(&net, &["-W", "1", "-M", "do", "-s", "1400", "10.0.2.2"]);
        if said.contains("mtu = 1280") || said.contains("mtu=1280") {
            break;
        }
        assert!(Instant::now() < end, "{said}");
    }
    assert!(ping(&net, &["-M", "dont", "-s", "1400", "10.0.2.2"]).contains("1 received"), "it may be cut");
    let said = ping(&net, &["-s", "1400", "fd00:2::2"]);
    assert!(said.contains("mtu = 1280") || said.contains("mtu=1280"), "{said}");
    assert!(ping(&net, &["-s", "1400", "fd00:2::2"]).contains("1 received"), "the host cuts it now");
    net.stop();
}

#[test]
fn routes_of_the_file_and_of_the_kernel_are_followed() {
    let more = "[[route]]\nto = \"198.51.100.0/24\"\nvia = \"10.0.2.2\"\n[kernel]\nroutes = true\n";
    let Some(mut net) = routed("routes_of_the_file", more) else { return };
    let (gateway, host) = (net.name("g"), net.name("b"));
    for address in ["198.51.100.1/32", "203.0.113.1/32", "2001:db8:9::1/128"] {
        net.ip(&["-n", &host, "address", "add", address, "dev", "lo"]);
    }
    assert!(ping(&net, &["198.51.100.1"]).contains("1 received"), "by the route of the file");
    assert!(ping(&net, &["203.0.113.1"]).contains("Net Unreachable"), "there is no route yet");
    let route = |shown: &Value, to: &str| {
        let all = shown["routes"].as_array().expect("a list");
        all.iter().find(|route| route["to"] == to && route["source"] == "kernel").cloned()
    };
    let route_add = |arguments: &[&str]| net.ip(&[&["-n", &gateway], arguments].concat());
    route_add(&["route", "add", "10.0.2.0/24", "dev", "to-b"]);
    route_add(&["route", "add", "203.0.113.0/24", "via", "10.0.2.2"]);
    route_add(&["-6", "route", "add", "fd00:2::/64", "dev", "to-b"]);
    route_add(&["-6", "route", "add", "2001:db8:9::/48", "via", "fd00:2::2"]);
    net.ip(&["-n", &gateway, "route", "add", "blackhole", "192.0.2.0/24"]);
    let there = |shown: &Value| {
        ["203.0.113.0/24", "2001:db8:9::/48", "192.0.2.0/24"].iter().all(|to| route(shown, to).is_some())
    };
    let shown = net.until("routes", there);
    let found = route(&shown, "203.0.113.0/24").unwrap_or_default();
    assert_eq!(
        (&found["via"], &found["used"], &found["installed"]),
        (&"10.0.2.2".into(), &true.into(), &true.into())
    );
    assert!(ping(&net, &["203.0.113.1"]).contains("1 received"), "by the route of the kernel");
    assert!(ping(&net, &["2001:db8:9::1"]).contains("1 received"), "by the route of the kernel");
    assert!(ping(&net, &["-W", "1", "192.0.2.1"]).contains("0 received"), "it leads nowhere");
    net.ip(&["-n", &gateway, "route", "del", "203.0.113.0/24"]);
    net.until("routes", |shown| route(shown, "203.0.113.0/24").is_none());
    assert!(ping(&net, &["203.0.113.1"]).contains("Net Unreachable"), "the route has gone");
    net.stop();
}

#[test]
fn a_kernel_that_tells_more_than_finds_room_is_asked_again() {
    let Some(mut net) = routed("a_kernel_that_tells_more", "[kernel]\nroutes = true\n") else { return };
    let (gateway, host) = (net.name("g"), net.name("b"));
    net.ip(&["-n", &gateway, "route", "add", "10.0.2.0/24", "dev", "to-b"]);
    net.ip(&["-n", &host, "address", "add", "172.16.46.223/32", "dev", "lo"]);
    let shown = net.until("routes", |shown| shown.to_string().contains("\"kernel\""));
    let before = shown["count"].as_u64().unwrap_or(0);
    assert_eq!(shown["kernel_overruns"], 0, "{shown}");
    // While the gateway stands still, the kernel tells of more than its queue holds: 1,000 of 12,000 routes
    // stay. What is told of a link with many names takes several KiB.
    let route = |number: usize| format!("172.16.{}.{}/32", number / 256, number % 256);
    let added = (0..12_000).map(|number| format!("route add {} via 10.0.2.2\n", route(number)));
    let names = (0..30).map(|number| format!("link property add dev lo altname {number:0>127}\n"));
    let links = (0..40_000).map(|number| format!("link set lo mtu {}\n", 60_000 + number % 2));
    let deleted = (0..11_000).map(|number| format!("route del {}\n", route(number)));
    let batch = net.path("batch");
    std::fs::write(&batch, names.chain(added).chain(links).chain(deleted).collect::<String>())
        .expect("can be written");
    let process = net.gateway.as_ref().map(|gateway| gateway.id().to_string()).expect("runs");
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, &process]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{name}");
    };
    signal("-STOP");
    net.ip(&["-n", &gateway, "-batch", &batch.display().to_string()]);
    signal("-CONT");
    let shown = net.until("routes", |shown| shown["count"].as_u64() == Some(before + 1000));
    assert!(shown["kernel_overruns"].as_u64().is_some_and(|overruns| overruns > 0), "{shown}");
    assert!(ping(&net, &["172.16.46.223"]).contains("1 received"), "the last of them");
    assert!(ping(&net, &["172.16.0.9"]).contains("Net Unreachable"), "one that has gone");
    net.stop();
}

#[test]
fn another_file_takes_over_as_a_whole_or_not_at_all() {
    let Some(mut net) = routed("another_file", "") else { return };
    assert_eq!(net.pings("10.0.2.2"), 20);
    let file = net.path("gateway.toml");
    let before = std::fs::read_to_string(&file).expect("is there");
    let control = net.path("control.sock").display().to_string();
    let reload = || text(&net.ravelin(&["reload", "--control", &control]));
    let write = |text: &str| std::fs::write(&file, text).expect("can be written");
    let count = |net: &Net| net.ask(&["show", "routes"])["count"].as_u64().unwrap_or(0);
    let routes = count(&net);
    let faults = [
        ("[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.7.7\"\n", "10.0.7.7 is on no connected network"),
        ("[[port]]\ninterface = \"to-c\"\n", "column 13: there is no interface to-c here"),
        ("[[table]]\nname = \"none\"\nfrom = \"rules.txt\"\n", "the program has no table `none`"),
        ("[[table]]\nname = \"acl\"\nfrom = \"rules.txt\"\n", "cannot read"),
    ];
    for (more, wanted) in faults {
        write(&format!("{before}{more}"));
        let said = reload();
        assert!(said.contains(wanted) && said.contains("nothing has changed"), "{said}");
        assert_eq!((count(&net), net.pings("10.0.2.2")), (routes, 20));
    }
    std::fs::write(net.path("rules.txt"), "(_, 10.0.2.2, _, _, 1) => deny\n").expect("can be written");
    write(&format!(
        "{before}[[route]]\nto = \"198.51.100.0/24\"\nvia = \"10.0.2.2\"\n[[table]]\nname = \"acl\"\nfrom = \"rules.txt\"\n"
    ));
    let received = |net: &Net| {
        let shown = net.ask(&["show", "run", "--total"]);
        shown["now"]["report"]["received"]["packets"].as_u64().unwrap_or_else(|| panic!("{shown}"))
    };
    let before_reload = received(&net);
    let said = reload();
    assert!(said.contains("took over"), "{said}");
    assert_eq!(count(&net), routes + 1);
    assert!(ping(&net, &["10.0.2.2"]).contains("Packet filtered"), "the rule of the file");
    assert_eq!(net.pings("fd00:2::2"), 20, "the neighbours are known as before");
    write(&before);
    assert!(reload().contains("took over"));
    assert_eq!((count(&net), net.pings("10.0.2.2")), (routes, 20));
    let last = received(&net);
    let total = net.stop()["received"]["packets"].as_u64().unwrap_or(0);
    assert!(
        before_reload > 0 && total >= before_reload + last,
        "{total} packets in all, {before_reload} and {last}"
    );
}

#[test]
fn a_program_without_the_tables_is_refused_at_the_address() {
    let Some(net) = Net::routed("a_program_without_the_tables") else { return };
    let file = net.path("gateway.toml");
    let write = |name: &str| {
        let text = format!("program = \"{}\"\n{PORTS}", program(name).display());
        std::fs::write(&file, text).expect("can be written");
    };
    write("hub.rav");
    let path = file.to_str().expect("text");
    for command in [&["check"][..], &["serve", "--check"], &["serve", "--one-process"]] {
        let output = net.ravelin(&[command, &[path]].concat());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let wanted = "line 5, column 14: addresses need a table `routes: lpm(ip4) -> u16` in the program";
        assert!(said.contains(wanted), "{said}");
    }
    write("router.rav");
    let said = text(&net.ravelin(&["check", path]));
    assert!(said.contains("is right: 2 ports"), "{said}");
    assert!(!said.contains("note"), "{said}");
    let text_of = std::fs::read_to_string(&file).expect("is there");
    std::fs::write(&file, format!("{text_of}[kernel]\nroutes = true\n")).expect("can be written");
    let said = text(&net.ravelin(&["check", path]));
    assert!(
        said.contains("note: of a kernel's route with several next hops the first whose link is up is used"),
        "{said}"
    );
}

/// Three pings from `a`, which says to have this address.
fn pings_from(net: &Net, source: &str, address: &str) {
    let name = net.name("a");
    net.ip(&["-n", &name, "address", "add", &format!("{source}/32"), "dev", "lo"]);
    net.run("a", "ping", &["-c", "3", "-i", "0.2", "-W", "1", "-I", source, address]);
    net.ip(&["-n", &name, "address", "del", &format!("{source}/32"), "dev", "lo"]);
}

#[test]
fn sources_are_checked_as_the_file_says() {
    for (asked, foreign, own) in [("", 3, 3), ("1 => loose\n", 0, 3), ("1 => any\n", 0, 0)] {
        let Some(mut net) = Net::routed("sources_are_checked") else { return };
        std::fs::write(net.path("sources.txt"), asked).expect("can be written");
        let table = "[[table]]\nname = \"sources\"\nfrom = \"sources.txt\"\n";
        // The gateway has never heard of this host, and gets its packets all the same: its network leads back
        // to it.
        let card = net.run("g", "cat", &["/sys/class/net/to-a/address"]).stdout;
        let card = String::from_utf8_lossy(&card).trim().to_owned();
        let host = net.name("a");
        let fixed = ["lladdr", &card, "dev", "eth0", "nud", "permanent"];
        net.ip(&[&["-n", &host, "neighbour", "replace", "10.0.1.1"][..], &fixed].concat());
        net.serve_ports(&program("router.rav"), &format!("{PORTS}{table}"));
        assert_eq!(net.pings("10.0.2.2"), 20, "{asked}");
        pings_from(&net, "10.0.2.77", "10.0.2.2");
        pings_from(&net, "10.0.2.1", "10.0.1.1");
        let report = net.stop();
        let drops = |reason: &str| report["drops"][reason].as_u64().unwrap_or(0);
        assert_eq!((drops("reverse_path"), drops("own_source")), (foreign, own), "{asked}: {report}");
    }
}

#[test]
fn a_host_with_only_an_address_of_its_link_keeps_its_router() {
    let Some(mut net) = Net::routed("only_an_address_of_its_link") else { return };
    // The kernel of the gateway's machine can send to addresses of the link, too: where it sees this host's
    // packets, it answers them with "No route" beside the gateway's own answer.
    let kept = PORTS.replace("addresses", "keep_from_kernel = true\naddresses");
    net.serve_ports(&program("router.rav"), &kept);
    let host = net.name("a");
    net.ip(&["-n", &host, "-6", "address", "flush", "dev", "eth0", "scope", "global"]);
    net.ip(&["-n", &host, "-6", "address", "replace", "fe80::a/64", "dev", "eth0", "nodad"]);
    net.ip(&["-n", &host, "-6", "route", "replace", "fd00:1::/64", "dev", "eth0"]);
    assert_eq!(net.pings("fd00:1::1"), 20, "own addresses answer from the start");
    let state = || {
        let arguments = ["-n", &host, "-6", "neighbour", "show", "fd00:1::1"];
        text(&std::process::Command::new("ip").args(arguments).output().expect("ip runs"))
    };
    let known = state();
    let card = known.split_whitespace().skip_while(|word| *word != "lladdr").nth(1).expect(&known).to_owned();
    // Now the host asks the router itself, three times, a second apart.
    let probe = ["lladdr", &card, "dev", "eth0", "nud", "probe"];
    net.ip(&[&["-n", &host, "-6", "neighbour", "change", "fd00:1::1"][..], &probe].concat());
    let end = Instant::now() + Duration::from_secs(20);
    while !state().contains("REACHABLE") {
        assert!(!state().contains("FAILED") && Instant::now() < end, "{}", state());
        thread::sleep(Duration::from_millis(50));
    }
    net.stop();
}

#[test]
fn addresses_that_the_kernel_has_too_are_warned_of() {
    let Some(mut net) = routed("addresses_of_the_kernel", "") else { return };
    let file = net.path("gateway.toml");
    let check = |net: &Net| text(&net.ravelin(&["check", file.to_str().expect("text")]));
    assert!(!check(&net).contains("warning"), "{}", check(&net));
    assert!(!net.stop_and_hear().1.contains("warning"));
    net.ip(&["-n", &net.name("g"), "address", "add", "10.0.1.1/24", "dev", "to-a"]);
    net.ip(&["-n", &net.name("g"), "address", "add", "fd00:2::1/64", "dev", "to-b", "nodad"]);
    let wanted = [
        "warning: 10.0.1.1 is an address of this machine's kernel, too, at `to-a`: it answers what comes by `to-a`, `to-b`",
        "warning: fd00:2::1 is an address of this machine's kernel, too, at `to-b`",
        "`ip address del 10.0.1.1/24 dev to-a`",
    ];
    let said = check(&net);
    assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{said}");
    net.serve_ports(&program("router.rav"), PORTS);
    let (_, said) = net.stop_and_hear();
    assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{said}");
    // What the kernel never sees it does not answer.
    let kept = PORTS.replace("addresses", "keep_from_kernel = true\naddresses");
    net.serve_ports(&program("router.rav"), &kept);
    let (_, said) = net.stop_and_hear();
    assert!(!said.contains("warning"), "{said}");
}
