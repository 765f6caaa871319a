//! `ravelin serve` as a name server without ports, asked by `dig`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn ravelin(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ravelin"));
    command.args(words);
    command
}

/// A name server that runs.
struct Serving {
    child: Child,
    port: u16,
    metrics: SocketAddr,
    control: String,
}

impl Serving {
    /// Starts at ports that are free. Somebody else may take them meanwhile: then it is tried again.
    fn start(directory: &Path, zone: &str) -> Serving {
        for _ in 0..50 {
            let udp = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("is bound");
            let metrics = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("is bound");
            let (file, control) = (directory.join("names.toml"), directory.join("control.sock"));
            let control = control.display().to_string();
            let head = format!("control = \"{control}\"\nmetrics = \"{metrics}\"\n");
            let names = format!("[names]\nlisten = [\"{udp}\", \"[::1]:{}\"]\n{zone}", udp.port());
            fs::write(&file, head + &names).expect("is written");
            let mut command = ravelin(&["serve", "--one-process", &file.display().to_string()]);
            let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
            let mut told = BufReader::new(child.stderr.take().expect("is piped")).lines();
            // The second line is told when everybody can ask.
            if told.by_ref().map_while(Result::ok).any(|line| line.contains("Ctrl-C ends it")) {
                std::thread::spawn(move || told.for_each(drop));
                return Serving { child, port: udp.port(), metrics, control };
            }
            child.wait().expect("it ended");
        }
        panic!("it does not start");
    }

    fn dig(&self, words: &str) -> String {
        let output = Command::new("dig")
            .args(["-p", &self.port.to_string(), "+tries=3", "+timeout=10"])
            .args(words.split(' '))
            .output()
            .expect("dig runs");
        String::from_utf8(output.stdout).expect("text")
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("is taken");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        page
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_dig() -> bool {
    let has = Command::new("dig").arg("-v").output().is_ok();
    assert!(has || std::env::var("CI").as_deref() != Ok("true"), "dig is not installed");
    if !has {
        eprintln!("not run, since dig is not installed (`cargo xtask test --only packages`)");
    }
    has
}

#[test]
fn a_zone_of_a_file_is_answered_by_udp_and_tcp() {
    if !has_dig() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let zone = "zone = \"home.example\"\nserial = 7\n\
        [[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\", \"2001:db8::53\"]\n\
        [[names.record]]\nkind = \"A\"\nname = \"www\"\naddress = \"192.0.2.80\"\n\
        [[names.record]]\nkind = \"TXT\"\nname = \"@\"\ntext = \"hello\"\n";
    let mut serving = Serving::start(directory.path(), zone);
    let undelegated = |serving: &Serving| {
        let listed = ravelin(&["names", "list", "--control", &serving.control]).output().expect("it runs");
        let listed = String::from_utf8(listed.stdout).expect("text");
        listed.contains("no query has come yet: where the zone above home.example is, home.example has to be")
    };
    assert!(undelegated(&serving));
    for server in ["@127.0.0.1", "@::1"] {
        for transport in ["+notcp", "+tcp"] {
            for (words, wanted) in [
                ("WWW.home.example A", "192.0.2.80\n"),
                ("home.example TXT", "\"hello\"\n"),
                ("home.example NS", "ns1.home.example.\n"),
                ("ns1.home.example AAAA", "2001:db8::53\n"),
                ("home.example SOA", "ns1.home.example. hostmaster.home.example. 7 86400 7200 3600000 60\n"),
            ] {
                let said = serving.dig(&format!("{server} +short {words} {transport}"));
                assert_eq!(said, wanted, "{server} {words} {transport}");
            }
            let said = serving.dig(&format!("{server} nope.home.example A {transport}"));
            assert!(said.contains("status: NXDOMAIN"), "{said}");
            let said = serving.dig(&format!("{server} elsewhere.example A {transport}"));
            assert!(said.contains("status: REFUSED"), "{said}");
        }
    }
    assert!(!undelegated(&serving));
    let page = serving.metrics();
    for line in [
        "ravelin_names_serial{zone=\"home.example\"} 7\n",
        "ravelin_names_queries_total{transport=\"udp\"} 14\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    let refused = ravelin(&["show", "routes", "--control", &serving.control]).output().expect("it runs");
    let words = String::from_utf8(refused.stderr).expect("text");
    assert!(!refused.status.success() && words.contains("has no ports"), "{words}");
    let stopped = ravelin(&["stop", "--control", &serving.control]).output().expect("it runs");
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(serving.child.wait().expect("it ends").success());
}

#[test]
fn a_file_is_checked_without_listening_anywhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("names.toml").display().to_string();
    // The address belongs to nobody here.
    let text = "[names]\nlisten = [\"192.0.2.53:53\"]\nzone = \"home.example\"\n[[names.server]]\nname = \"ns.other.example.\"\n";
    fs::write(&file, text).expect("is written");
    let checked = ravelin(&["serve", "--check", &file]).output().expect("it runs");
    let words = String::from_utf8(checked.stdout).expect("text");
    assert!(words.ends_with("is right: names of home.example are answered at 192.0.2.53:53\n"), "{words}");
    let served = ravelin(&["serve", "--one-process", &file]).output().expect("it runs");
    let words = String::from_utf8(served.stderr).expect("text");
    assert!(
        !served.status.success() && words.contains("names cannot be asked for at 192.0.2.53:53 by UDP"),
        "{words}"
    );
}

#[test]
fn names_for_hosts_lead_to_the_waypoint_of_the_same_process() {
    if !has_dig() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let host = |name: &str, last: u8| {
        format!(
            "[[names.host]]\nname = \"{name}\"\ngateway = \"home\"\naddress = \"192.168.1.{last}\"\nservices = [\"tcp/22\"]\n"
        )
    };
    let zone = "zone = \"home.example\"\nclients = [\"127.0.0.0/8\"]\n[[names.server]]\nname = \"ns.other.example.\"\n\
        [[names.gateway]]\nname = \"home\"\nnetworks = [\"192.168.1.0/24\"]\n\
        [names.waypoint]\nknown = [\"203.0.113.1\", \"203.0.113.2\"]\nunknown = [\"203.0.113.3\"]\n";
    let serving = Serving::start(
        directory.path(),
        &(zone.to_owned() + &host("nas", 10) + &host("tv", 11) + &host("pi", 12)),
    );
    let ask = |name: &str| serving.dig(&format!("@127.0.0.1 +short {name}.home.example A"));
    let (nas, tv) = (ask("nas"), ask("tv"));
    let mut both = [nas.as_str(), tv.as_str()];
    both.sort_unstable();
    assert_eq!(both, ["203.0.113.1\n", "203.0.113.2\n"]);
    let more = serving.dig("@127.0.0.1 pi.home.example A");
    assert!(
        more.contains("status: SERVFAIL"),
        "one initiator reaches as many hosts as there are addresses: {more}"
    );
    // From elsewhere nothing is known of the initiators.
    assert_eq!(serving.dig("@::1 +short nas.home.example A"), "203.0.113.3\n");
    let names = |word: &str| {
        let output = ravelin(&["names", word, "--control", &serving.control]).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let (listed, bindings) = (names("list"), names("bindings"));
    assert!(listed.starts_with("home.example, serial 1: 3 names for hosts\n"), "{listed}");
    assert!(listed.contains("nas.home.example") && listed.contains("192.168.1.12"), "{listed}");
    assert!(bindings.starts_with("3 promises\n"), "{bindings}");
    let gateways = names("gateways");
    assert!(gateways.starts_with("1 gateway\n") && gateways.contains("no session"), "{gateways}");
    assert!(gateways.contains("home     192.168.1.0/24      3"), "{gateways}");
    assert_eq!(bindings.matches(nas.trim()).count(), 1, "{bindings}");
    let change = |words: &[&str]| {
        let output = ravelin(words).args(["--control", &serving.control]).output().expect("it runs");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    };
    let add =
        ["names", "add", "new", "--gateway", "home", "--address", "192.168.1.13", "--service", "udp/53"];
    let said = change(&[&add[..], &["--ipv4", "203.0.113.77"]].concat());
    assert!(said.contains("new.home.example leads to 192.168.1.13 behind `home`"), "{said}");
    assert_eq!(ask("new"), "203.0.113.77\n");
    let said = change(&add);
    assert!(said.contains("new.home.example leads to a host already: remove it first"), "{said}");
    change(&["names", "remove", "new"]);
    assert_eq!(ask("new"), "");
}
