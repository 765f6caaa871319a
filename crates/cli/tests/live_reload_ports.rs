//! Ports that come and go by `reload`, while packets flow by the others.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use net::udp_stream::UdpStream;
use net::{Net, installed, program, text};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const PORTS: &str = "[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n";

/// A third cable, from `to-c` of the gateway to `eth0` of a namespace of its own, with this address. Returns
/// the namespace, which goes with it.
fn cable(net: &Net, address: &str) -> Third {
    let (near, third) = (net.name("g"), Third(net.name("c")));
    let far = third.0.as_str();
    net.ip(&["netns", "add", far]);
    net.ip(&["-n", &near, "link", "add", "to-c", "type", "veth", "peer", "name", "eth0", "netns", far]);
    for (namespace, link) in [(near.as_str(), "to-c"), (far, "eth0"), (far, "lo")] {
        net.ip(&["-n", namespace, "link", "set", link, "up"]);
    }
    net.ip(&["-n", far, "address", "add", address, "dev", "eth0"]);
    third
}

struct Third(String);

impl Drop for Third {
    fn drop(&mut self) {
        // Its cable goes with it.
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

/// Writes the gateway's file with these ports behind its first two, and reloads; returns what was said.
fn reload(net: &Net, before: &str, more: &str) -> String {
    fs::write(net.path("gateway.toml"), format!("{before}{more}")).expect("can be written");
    let control = net.path("control.sock").display().to_string();
    text(&net.ravelin(&["reload", "--control", &control]))
}

fn file(net: &Net) -> String {
    fs::read_to_string(net.path("gateway.toml")).expect("is there")
}

fn names(net: &Net) -> Vec<String> {
    let shown = net.ask(&["show", "ports", "--total"]);
    let ports = shown["now"]["ports"].as_array().expect("a list");
    ports.iter().map(|port| port["interface"].as_str().unwrap_or_default().to_owned()).collect()
}

fn wait_until(what: &str, mut found: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(seen) = found() {
        assert!(Instant::now() < end, "{what}: {seen}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// UDP at a steady rate between `a` and `b`, while a third port comes and goes.
#[test]
fn no_datagram_is_lost_or_overtaken_while_another_port_comes_and_goes() {
    let test = "no_datagram_is_lost_or_overtaken_while_another_port_comes_and_goes";
    if !installed(test, &["iperf3"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    let third = cable(&net, "10.0.0.3/24");
    net.serve_ports(&program("mac_switch.rav"), PORTS);
    net.wait_for_pings();
    let before = file(&net);
    let mut stream = UdpStream::begin(&net, "10.0.0.2", 8);
    let mut changes = 0;
    while stream.flows() {
        let said = reload(&net, &before, "[[port]]\ninterface = \"to-c\"\n");
        assert!(said.contains("port 3 (to-c) came"), "{said}");
        let said = reload(&net, &before, "");
        assert!(said.contains("port 3 (to-c) went"), "{said}");
        changes += 2;
    }
    assert!(changes >= 2, "{changes} changes of ports");
    stream.arrives_whole(&net, &[&|| net.ask(&["show", "ports", "--total"])]);
    // The port carries packets as long as it is there, and none afterwards.
    let pings = |count: &str| {
        let arguments = ["netns", "exec", &third.0, "ping", "-c", count, "-i", "0.2", "-W", "2", "10.0.0.1"];
        text(&Command::new("ip").args(arguments).output().expect("ping runs"))
    };
    assert!(pings("2").contains(" 0 received"));
    reload(&net, &before, "[[port]]\ninterface = \"to-c\"\n");
    wait_until("the third host reaches the first", || {
        let said = pings("3");
        if said.contains(" 3 received") { Ok(()) } else { Err(said) }
    });
    assert_eq!(names(&net), ["to-a", "to-b", "to-c"]);
    reload(&net, &before, "");
    assert_eq!(names(&net), ["to-a", "to-b"]);
    assert!(pings("2").contains(" 0 received"));
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

/// The descriptors, the rings and the threads of the gateway.
fn held(net: &Net) -> (usize, usize, usize) {
    let process = net.gateway.as_ref().map(|gateway| gateway.id()).expect("runs");
    let list = |what: &str| fs::read_dir(format!("/proc/{process}/{what}")).map_or(0, |all| all.count());
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    (list("fd"), maps.lines().filter(|line| line.contains("socket:")).count(), list("task"))
}

/// The same, once threads of what has just gone have ended.
fn settled(net: &Net) -> (usize, usize, usize) {
    let mut last = held(net);
    let mut same = 0;
    wait_until("nothing changes for a second", || {
        let now = held(net);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same >= 20 { Ok(()) } else { Err(format!("{last:?} descriptors, rings and threads")) }
    });
    last
}

fn no_more_than(net: &Net, wanted: (usize, usize, usize)) {
    wait_until("everything is closed", || match held(net) {
        now if now.0 <= wanted.0 && now.1 <= wanted.1 && now.2 <= wanted.2 => Ok(()),
        now => Err(format!("{now:?} descriptors, rings and threads, {wanted:?} before")),
    });
}

/// Whatever was opened is closed again, also after a reload that fails half way.
#[test]
fn a_hundred_changes_of_ports_leave_nothing_open() {
    let Some(mut net) = Net::new("a_hundred_changes_of_ports_leave_nothing_open") else { return };
    let _third = cable(&net, "10.0.0.3/24");
    let hub = net.path("hub.rav");
    fs::write(&hub, "start stage all() { flood }\n").expect("can be written");
    net.serve_ports(&hub, &format!("workers = 2\n{PORTS}"));
    let before = file(&net);
    // Whatever is made once is made by the first change.
    let (packet, tagged) = ("[[port]]\ninterface = \"to-c\"\n", "[[port]]\non = \"to-c\"\nvlan = 7\n");
    let tap = "[[port]]\ninterface = \"tap7\"\nkind = \"tap\"\n";
    let traced = format!("{packet}trace = \"{}\"\n", net.path("c.pcapng").display());
    let key = net.path("c.key").display().to_string();
    let made = net.ravelin(&["naming", "key", "new", &key]);
    assert!(made.status.success(), "{}", text(&made));
    // Names are registered over it, so that it has a thread of its own.
    let tunnel = format!(
        "[[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:5282\"\nkey = \"{key}\"\n\
         [[port.peer]]\nname = \"w\"\nnumber = 1\nkey = \"pOCSkrZRwni5dyxWn1+puxPZBrRqtoyd+dwrRAn4ogk=\"\n\
         [register]\nwaypoints = [\"w\"]\n"
    );
    let kinds = [packet, &format!("{tagged}[[port]]\ninterface = \"to-c\"\n{tap}"), tap, &traced, &tunnel];
    for more in kinds {
        let said = reload(&net, &before, more);
        assert!(said.contains(" came: "), "{more}: {said}");
        let said = reload(&net, &before, "");
        assert!(said.contains(" went"), "{more}: {said}");
    }
    let at_first = settled(&net);
    for round in 0..23 {
        let said = reload(&net, &before, kinds[round % kinds.len()]);
        assert!(said.contains(" came: "), "{said}");
        let said = reload(&net, &before, "");
        assert!(said.contains(" went"), "{said}");
        for (more, wanted) in [
            ("[[port]]\ninterface = \"nowhere\"\n", "line 9, column 13: there is no interface nowhere here"),
            (
                "[[port]]\ninterface = \"to-c\"\n[[port]]\ninterface = \"nowhere\"\n",
                "there is no interface nowhere",
            ),
        ] {
            let said = reload(&net, &before, more);
            assert!(said.contains(wanted) && said.contains("nothing has changed"), "{said}");
        }
    }
    assert_eq!(names(&net), ["to-a", "to-b"]);
    no_more_than(&net, at_first);
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

/// A port with addresses and a host interface comes, goes and comes again at a router.
#[test]
fn a_router_gets_another_network_and_forgets_it() {
    let Some(mut net) = Net::routed("a_router_gets_another_network_and_forgets_it") else { return };
    let third = cable(&net, "10.0.3.2/24");
    net.ip(&["-n", &third.0, "route", "add", "default", "via", "10.0.3.1"]);
    net.serve_ports(
        &program("router.rav"),
        "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\"]\n\
         [[port]]\ninterface = \"to-b\"\naddresses = [\"10.0.2.1/24\"]\nhost = true\n",
    );
    let before = file(&net);
    let reaches = |address: &str| {
        wait_until(&format!("{address} answers"), || match net.pings(address) {
            20 => Ok(()),
            few => Err(format!("{few} of 20: {}", net.ask(&["show", "ports", "--total"]))),
        });
    };
    reaches("10.0.2.2");
    let routes = || net.ask(&["show", "routes"]).to_string();
    let links = || text(&net.run("g", "ip", &["-br", "link"]));
    let mut at_first = None;
    for kind in ["af_packet", "af_xdp", "af_packet", "af_xdp"] {
        let more = format!(
            "[[port]]\ninterface = \"to-c\"\nkind = \"{kind}\"\naddresses = [\"10.0.3.1/24\"]\nhost = true\n"
        );
        let said = reload(&net, &before, &more);
        assert!(said.contains("port 3 (to-c) came"), "{said}");
        reaches("10.0.3.2");
        reaches("10.0.3.1");
        reaches("10.0.2.2");
        assert!(links().contains("h-to-c") && routes().contains("10.0.3.0/24"), "{}{}", links(), routes());
        let said = reload(&net, &before, "");
        assert!(said.contains("port 3 (to-c) went"), "{said}");
        assert!(!links().contains("h-to-c") && !routes().contains("10.0.3.0/24"), "{}{}", links(), routes());
        let neighbours = net.ask(&["show", "neighbours"]).to_string();
        assert!(!neighbours.contains("10.0.3.2"), "{neighbours}");
        assert_eq!(net.pings("10.0.2.2"), 20);
        if kind == "af_xdp" {
            match at_first {
                None => at_first = Some(settled(&net)),
                Some(at_first) => no_more_than(&net, at_first),
            }
        }
    }
    assert_eq!(net.pings("10.0.3.2"), 0);
    net.stop();
}

/// The page that people read, from a heading to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(heading).expect("the page has this section");
    rest.split_once("\n### ").map_or(rest, |(section, _)| section)
}

/// The text between the marks of the first block of a kind.
fn block<'a>(section: &'a str, kind: &str) -> &'a str {
    let (_, rest) = section.split_once(&format!("```{kind}\n")).expect("there is such a block");
    rest.split_once("```").expect("it ends").0
}

/// The commands of a session, each with what it says.
fn commands(session: &str) -> Vec<(String, Vec<&str>)> {
    let (mut all, mut lines): (Vec<(String, Vec<&str>)>, _) = (Vec::new(), session.lines());
    while let Some(line) = lines.next() {
        match line.strip_prefix("# ") {
            Some(command) => {
                let mut command = command.to_owned();
                while command.contains("<<T") && !command.ends_with("\nT") {
                    command = format!("{command}\n{}", lines.next().expect("the text ends"));
                }
                all.push((command, Vec::new()));
            }
            None => all.last_mut().expect("a command comes first").1.push(line),
        }
    }
    all
}

/// A line without how many packets, entries and microseconds it tells of: a packet of the kernel's own that
/// comes at the wrong moment changes all three.
fn without_figures(line: &str) -> String {
    let figure = |word: &str| word.parse::<u64>().is_ok();
    let words: Vec<&str> = line.split(' ').collect();
    let unit =
        |index: usize| words.get(index + 1).is_some_and(|unit| ["packets", "entries", "µs;"].contains(unit));
    let masked = words.iter().enumerate();
    masked
        .map(|(index, word)| if figure(word) && unit(index) { "N" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Whether a line is as the page has it; `…` at its end stands for anything.
fn agrees(page: &str, line: &str) -> bool {
    let (page, line) = (without_figures(page), without_figures(line));
    page.strip_suffix('…').map_or(page == line, |begin| line.starts_with(begin))
}

/// The session of the page, with its file, between interfaces of these names.
#[test]
fn ports_come_and_go_as_the_page_says() {
    let Some(mut net) = Net::new("ports_come_and_go_as_the_page_says") else { return };
    let page = include_str!("../../../docs/operate.md");
    let section = section(page, "\n### Ports that come and go\n");
    let near = net.name("g");
    for (old, new) in [("to-a", "eth1"), ("to-b", "eth2")] {
        net.ip(&["-n", &near, "link", "set", old, "down"]);
        net.ip(&["-n", &near, "link", "set", old, "name", new]);
        net.ip(&["-n", &near, "link", "set", new, "up"]);
    }
    net.ip(&["-n", &near, "link", "add", "eth3", "type", "veth", "peer", "name", "eth4"]);
    net.ip(&["-n", &near, "link", "set", "eth3", "up"]);
    // The program and the socket are those of the test.
    let ports: Vec<&str> = block(section, "toml").split_inclusive('\n').collect();
    assert!(ports[0].starts_with("program = ") && ports[1].starts_with("control = "), "{ports:?}");
    net.serve_ports(&program("mac_switch.rav"), &ports[2..].concat());
    let (directory, socket) = (net.path("").display().to_string(), net.path("control.sock"));
    let prelude = format!(
        "cd '{directory}'; ravelin() {{ [ $1 != reload ] || set -- reload --control '{}'; '{}' \"$@\"; }}\n",
        socket.display(),
        net::binary()
    );
    let mut played = 0;
    for (command, wanted) in commands(block(section, "text")) {
        let said = text(&net.run("g", "sh", &["-c", &format!("{prelude}{command}")]));
        let said: Vec<&str> = said.lines().collect();
        let same =
            said.len() == wanted.len() && wanted.iter().zip(&said).all(|(page, line)| agrees(page, line));
        assert!(same, "{command}\nsays {said:#?}\nthe page has {wanted:#?}");
        played += 1;
    }
    assert!(played >= 10, "{played} commands");
    assert_eq!(names(&net), ["eth1", "eth3"]);
    net.stop();
}
