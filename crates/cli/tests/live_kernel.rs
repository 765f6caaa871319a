//! A gateway beside a kernel that has routes and addresses of its own, made by `ip` as an administrator or a
//! routing daemon makes them.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::{Net, program, text};
use serde_json::Value;

/// Host `a` is 10.0.1.2, host `b` 10.0.2.2 and fd00:2::2; the gateway between them has address 1 of each
/// network and follows the kernel's routes.
const FILE: &str = r#"
[[port]]
interface = "to-a"
addresses = ["10.0.1.1/24", "fd00:1::1/64"]
[[port]]
interface = "to-b"
addresses = ["10.0.2.1/24", "fd00:2::1/64"]
[kernel]
routes = true
"#;

/// The hosts, and a kernel beside the gateway with address 3 in the network of `b`.
fn beside(test: &str) -> Option<Net> {
    let net = Net::routed(test)?;
    at_kernel(&net, "address add 10.0.2.3/24 dev to-b");
    at_kernel(&net, "address add fd00:2::3/64 dev to-b nodad");
    Some(net)
}

fn at_kernel(net: &Net, words: &str) {
    let arguments: Vec<&str> = words.split(' ').collect();
    net.ip(&[&["-n", &net.name("g")], &arguments[..]].concat());
}

fn ping(net: &Net, host: &str, address: &str) -> String {
    text(&net.run(host, "ping", &["-c", "1", "-W", "5", address]))
}

/// The kernel's route to a prefix, as it is shown.
fn route(shown: &Value, to: &str) -> Option<Value> {
    let all = shown["routes"].as_array().expect("a list");
    all.iter().find(|route| route["to"] == to && route["source"] == "kernel").cloned()
}

/// The router that it leads to, the first of several.
fn via(shown: &Value, to: &str) -> Option<String> {
    let route = route(shown, to)?;
    let first = if route["way"] == "several" { &route["hops"][0] } else { &route };
    first["via"].as_str().map(str::to_owned)
}

#[test]
fn routes_by_numbered_next_hops_change_and_go_with_them_whatever_the_kernel_tells_of() {
    for compatible in ["1", "0"] {
        let Some(mut net) = beside("routes_by_numbered_next_hops") else { return };
        let setting = format!("net.ipv4.nexthop_compat_mode={compatible}");
        assert!(net.run("g", "sysctl", &["-w", &setting]).status.success());
        net.serve_ports(&program("router.rav"), FILE);
        for words in [
            "nexthop add id 7 via 10.0.2.7 dev to-b",
            "nexthop add id 8 via 10.0.2.8 dev to-b",
            "nexthop add id 9 group 7/8",
            "nexthop add id 67 via fd00:2::7 dev to-b",
            "route add 203.0.113.0/24 nhid 7",
            "route add 203.0.114.0/24 nhid 9",
            "-6 route add 2001:db8:9::/48 nhid 67",
        ] {
            at_kernel(&net, words);
        }
        let one = ["203.0.113.0/24", "203.0.114.0/24"];
        net.until("routes", |shown| {
            one.iter().all(|to| via(shown, to).as_deref() == Some("10.0.2.7"))
                && via(shown, "2001:db8:9::/48").as_deref() == Some("fd00:2::7")
        });
        at_kernel(&net, "nexthop replace id 7 via 10.0.2.17 dev to-b");
        // Of several, by their addresses.
        let now = ["10.0.2.17", "10.0.2.8"];
        net.until("routes", |shown| {
            one.iter().zip(now).all(|(to, now)| via(shown, to).as_deref() == Some(now))
        });
        at_kernel(&net, "nexthop delete id 7");
        at_kernel(&net, "nexthop delete id 67");
        net.until("routes", |shown| {
            route(shown, one[0]).is_none()
                && route(shown, "2001:db8:9::/48").is_none()
                && via(shown, one[1]).as_deref() == Some("10.0.2.8")
        });
        assert!(ping(&net, "a", "203.0.113.1").contains("Net Unreachable"), "the route has gone");
        at_kernel(&net, "nexthop delete id 8");
        net.until("routes", |shown| route(shown, one[1]).is_none());
        net.stop();
    }
}

#[test]
fn what_a_route_of_the_kernel_says_and_the_gateway_cannot_do_is_not_done_otherwise_and_said() {
    let Some(mut net) = beside("what_a_route_of_the_kernel_says") else { return };
    net.ip(&["-n", &net.name("b"), "address", "add", "203.0.113.1/16", "dev", "lo"]);
    net.serve_ports(&program("router.rav"), FILE);
    // Everything else goes to `b`, which would get what is to go through a tunnel, or to another table.
    at_kernel(&net, "route add 203.0.0.0/16 via 10.0.2.2");
    net.until("routes", |shown| route(shown, "203.0.0.0/16").is_some());
    assert!(ping(&net, "a", "203.0.113.1").contains("1 received"));
    at_kernel(&net, "link add elsewhere type veth peer name other-end");
    at_kernel(&net, "link set elsewhere up");
    let unmeant = [
        ("route add 203.0.113.0/24 encap ip id 5 dst 10.0.2.2 dev to-b", "203.0.113.0/24", "encap"),
        ("route add throw 203.0.112.0/24", "203.0.112.0/24", "throw"),
        ("route add 203.0.111.0/24 dev elsewhere", "203.0.111.0/24", "no port"),
        ("route add 203.0.110.0/24 tos 0x10 via 10.0.2.77", "203.0.110.0/24", "type of service"),
    ];
    for (words, ..) in unmeant {
        at_kernel(&net, words);
    }
    let shown = net.until("routes", |shown| shown["unmeant_count"] == 4);
    for (_, to, because) in unmeant {
        let all = shown["unmeant"].as_array().expect("a list");
        let said = all.iter().find(|route| route["to"] == to).unwrap_or_else(|| panic!("{to}: {shown}"));
        assert!(said["because"].as_str().is_some_and(|said| said.contains(because)), "{said}");
    }
    for address in ["203.0.113.1", "203.0.112.1", "203.0.111.1"] {
        let said = ping(&net, "a", address);
        assert!(said.contains("Host Unreachable"), "{address} is not sent bare, or by a wider route: {said}");
    }
    // A route for some packets alone leaves the others their own.
    net.ip(&["-n", &net.name("b"), "address", "add", "203.0.110.1/32", "dev", "lo"]);
    assert!(ping(&net, "a", "203.0.110.1").contains("1 received"));
    let view = net.ask(&["show", "run", "--total"]);
    assert!(!view.is_null());
    for (words, ..) in unmeant {
        at_kernel(&net, &words.replacen("add", "del", 1));
    }
    net.until("routes", |shown| shown["unmeant_count"] == 0);
    assert!(ping(&net, "a", "203.0.113.1").contains("1 received"), "it is as before");
    let (_, said) = net.stop_and_hear();
    assert!(said.contains("routes of the kernel that are not followed"), "{said}");
}

#[test]
fn addresses_of_the_kernel_are_nobody_s_on_the_link() {
    let Some(mut net) = beside("addresses_of_the_kernel") else { return };
    net.serve_ports(&program("router.rav"), FILE);
    // As a BGP peer: with a TTL of 1, to the kernel's address on the link between them. The kernel answers,
    // and the gateway says nothing.
    for _ in 0..3 {
        let said = text(&net.run("b", "ping", &["-c", "3", "-i", "0.2", "-t", "1", "-W", "5", "10.0.2.3"]));
        assert!(said.contains("3 received") && !said.contains("From 10.0.2.1"), "{said}");
    }
    let machine = |shown: &Value| {
        let fates = shown["account"]["fates"].as_array().expect("a list");
        fates.iter().find(|fate| fate["name"] == "for this machine").cloned()
    };
    let shown = net.until("neighbours", |shown| machine(shown).is_some());
    let is_known = |shown: &Value, address: &str| {
        shown["neighbours"].as_array().is_some_and(|all| all.iter().any(|known| known["address"] == address))
    };
    assert!(!is_known(&shown, "10.0.2.3"), "nobody is asked for it: {shown}");
    // Another one, that it gets while the gateway runs; when it is taken away, the address may be anybody's
    // again.
    at_kernel(&net, "address add 10.0.2.4/24 dev to-b");
    net.until("routes", |shown| shown.to_string().contains("10.0.2.4/32"));
    assert!(!ping(&net, "a", "10.0.2.4").contains("Unreachable"));
    at_kernel(&net, "address del 10.0.2.4/24 dev to-b");
    net.until("routes", |shown| !shown.to_string().contains("10.0.2.4/32"));
    assert!(ping(&net, "a", "10.0.2.4").contains("Host Unreachable"), "it is looked for, and not found");
    net.stop();
}
