//! A gateway that is split into processes, between two hosts in network namespaces of their own: what its
//! policy drops is dropped whatever dies, and the process that runs packets has no rights.
//!
//! Where the rights to make namespaces are missing, a test says so and ends.
#![cfg(target_os = "linux")]

#[path = "live_trusted/by_af_xdp.rs"]
mod by_af_xdp;
#[path = "live_trusted/changed.rs"]
mod changed;
#[path = "live_trusted/chosen.rs"]
mod chosen;
#[path = "live_trusted/killed.rs"]
mod killed;
#[path = "live_trusted/metrics.rs"]
mod metrics;
#[path = "live_trusted/over_network.rs"]
mod over_network;
#[path = "live_trusted/restarted.rs"]
mod restarted;
#[path = "live_trusted/routed.rs"]
mod routed;
#[path = "live_trusted/services.rs"]
mod services;
#[path = "live_trusted/signed.rs"]
mod signed;
#[path = "live_trusted/tunnelled.rs"]
mod tunnelled;
#[path = "live_trusted/upgraded.rs"]
mod upgraded;

use rig::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lets ARP and datagrams to port 7 pass, and nothing else.
const PROGRAM: &str = "import std.net.{ethernet, ipv4, udp}
reason closed \"nothing goes there\"
start decoder frame(eth: ethernet) {
    match eth.type {
        0x0806 => across
        0x0800 => packet
        else => drop closed
    }
}
decoder packet(ip: ipv4) {
    if ip.frag != 0 { drop closed }
    match ip.proto {
        17 => datagram
        else => drop closed
    }
}
decoder datagram(header: udp) {
    match header.dst {
        7 => across
        else => drop closed
    }
}
stage across() {
    match in_port {
        1 => send 2
        2 => send 1
        else => drop closed
    }
}
";

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 2);
/// How long is waited for something that has to happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Chooses by a seed (xorshift, Marsaglia 2003).
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}

/// A program that is built beside this test.
fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_ravelin-launch")).with_file_name(name);
    assert!(
        path.exists(),
        "{} is missing: `cargo build -p cli && cargo build -p ravelin-core` makes it",
        path.display()
    );
    path
}

/// A network namespace; `None` where that is not allowed here.
fn namespace(test: &str) -> Option<Namespace> {
    let made = Namespace::new();
    if made.is_err() {
        assert!(std::env::var_os("CI").is_none(), "{test}: namespaces cannot be made here");
        eprintln!("{test}: not run, since network namespaces cannot be made here");
    }
    made.ok()
}

/// A cable between the gateway and a host.
fn plug(gateway: &Namespace, host: &Namespace, (end, address, last): (&str, Ipv4Addr, u8)) {
    // No IPv6, whose hosts would talk by themselves.
    host.set("ipv6/conf/default/disable_ipv6", "1").expect("it has IPv6");
    let links = gateway.links().expect("links");
    links.cable((end, [2, 0, 0, 0, 9, last]), ("eth", [2, 0, 0, 0, 0, last]), host).expect("a cable");
    links.up(end).expect("it is on");
    let links = host.links().expect("links");
    links.up("eth").expect("it is on");
    links.address("eth", address, 24).expect("an address");
}

/// Two hosts, and a gateway between them.
struct Trusted {
    gateway: Namespace,
    a: Namespace,
    b: Namespace,
    folder: tempfile::TempDir,
    launch: Child,
    /// What it tells, line by line.
    told: Receiver<String>,
    /// The arguments of `serve`, but for the file.
    arguments: Vec<String>,
}

impl Trusted {
    /// `None` where that is not allowed here.
    fn new(test: &str, more: &[&str]) -> Option<Trusted> {
        Trusted::with(test, more, "", |_| {})
    }

    /// With more at the end of its file, and with what is to be made ready in its folder.
    fn with(test: &str, more: &[&str], in_file: &str, ready: impl FnOnce(&Path)) -> Option<Trusted> {
        Trusted::by(test, built("ravelin"), &[&["--trusted"], more].concat(), in_file, ready)
    }

    /// The same with a program and all arguments of its `serve`.
    fn by(
        test: &str,
        ravelin: PathBuf,
        arguments: &[&str],
        in_file: &str,
        ready: impl FnOnce(&Path),
    ) -> Option<Trusted> {
        let gateway = namespace(test)?;
        let (a, b) = (Namespace::new().expect("another"), Namespace::new().expect("another"));
        plug(&gateway, &a, ("to-a", A, 1));
        plug(&gateway, &b, ("to-b", B, 2));
        let folder = tempfile::tempdir().expect("a folder");
        // The process that compiles is nobody.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its own");
        fs::write(folder.path().join("filter.rav"), PROGRAM).expect("written");
        let file = folder.path().join("gateway.toml");
        let control = folder.path().join("control.sock");
        let text = format!(
            "program = \"filter.rav\"\ncontrol = \"{}\"\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n{in_file}",
            control.display()
        );
        fs::write(&file, text).expect("written");
        ready(folder.path());
        built("ravelin-core");
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let (launch, told) = started(&gateway, ravelin, &arguments, &file);
        Some(Trusted { gateway, a, b, folder, launch, told, arguments })
    }

    /// Starts it again, after it has ended.
    fn start_again(&mut self) {
        let file = self.folder.path().join("gateway.toml");
        (self.launch, self.told) = started(&self.gateway, built("ravelin"), &self.arguments, &file);
    }

    /// Starts it again so that `compile` does not look at what the file said at the start, as one that was
    /// taken over.
    fn start_blind(&mut self) {
        let line = fs::read(format!("/proc/{}/cmdline", self.launch.id())).expect("it runs");
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        let at = words.iter().position(|word| word == "--as-started").expect("it is there");
        words.drain(at..at + 2);
        words.pop();
        self.launch.kill().expect("it runs");
        self.launch.wait().expect("it ends");
        let mut command = self.gateway.command(built("ravelin-launch"), None);
        command.args(&words[1..]);
        (self.launch, self.told) = heard(command);
    }

    /// Waits until it tells a line with these words.
    fn hears(&self, words: &str) -> String {
        let (end, mut all) = (Instant::now() + LIMIT, String::new());
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line =
                self.told.recv_timeout(left).unwrap_or_else(|_| panic!("`{words}` was not told: {all}"));
            if line.contains(words) {
                return line;
            }
            all = all + &line + "\n";
        }
    }

    /// The processes that were started for the gateway and run. Linux may leave some out of its list while
    /// others end, so it is read until it says the same twice.
    fn children(&self) -> Vec<Pid> {
        let id = self.launch.id();
        let read = || fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
        let (end, mut children) = (Instant::now() + LIMIT, read());
        loop {
            let again = read();
            if again == children {
                break;
            }
            assert!(Instant::now() < end, "processes come and go all the time");
            children = again;
        }
        let numbers = children.split_whitespace().map(|pid| pid.parse().expect("a number"));
        numbers.filter_map(Pid::from_raw).collect()
    }

    /// Those of this name.
    fn processes(&self, name: &str) -> Vec<Pid> {
        let comm = |pid: &Pid| fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_pid()));
        let mut all = self.children();
        all.retain(|pid| comm(pid).is_ok_and(|comm| comm.trim() == name));
        all
    }

    /// The only one, once there is one alone: the one before may still be ending.
    fn process(&self, name: &str) -> Pid {
        let end = Instant::now() + LIMIT;
        loop {
            let found = self.processes(name);
            if let [one] = found[..] {
                return one;
            }
            assert!(Instant::now() < end, "{} of {name}", found.len());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The core that runs.
    fn core(&self) -> Pid {
        self.process("ravelin-core")
    }

    fn kill(&self, name: &str) {
        kill_process(self.process(name), Signal::KILL).expect("it is there");
    }

    /// Sends a datagram to both ports again and again, until the open one has one that was sent now, and says
    /// how many came to the closed one.
    fn passes(&self) -> usize {
        let socket = |host: &Namespace, address, port| {
            host.inside(|| UdpSocket::bind((address, port))).expect("a socket")
        };
        self.passes_by(&socket(&self.a, A, 0), &socket(&self.b, B, 7))
    }

    /// The same with these sockets.
    fn passes_by(&self, from: &UdpSocket, open: &UdpSocket) -> usize {
        let closed = self.b.inside(|| UdpSocket::bind((B, 9))).expect("a socket");
        [open, &closed].into_iter().for_each(|socket| socket.set_nonblocking(true).expect("so"));
        let (end, mut bytes) = (Instant::now() + LIMIT, [0; 16]);
        while Instant::now() < end {
            // Where the neighbour is not known yet, the machine says so later.
            let _ = from.send_to(b"closed", (B, 9));
            let _ = from.send_to(b"open", (B, 7));
            thread::sleep(Duration::from_millis(5));
            if open.recv(&mut bytes).is_ok() {
                thread::sleep(Duration::from_millis(20));
                return std::iter::from_fn(|| closed.recv(&mut bytes).ok()).count();
            }
        }
        panic!("nothing passes");
    }

    fn shown(&self) -> Value {
        let (socket, end) = (self.folder.path().join("control.sock"), Instant::now() + LIMIT);
        loop {
            let mut command = Command::new(built("ravelin"));
            command.args(["show", "policy", "--json", "--control"]).arg(&socket);
            let output = command.output().expect("it runs");
            if output.status.success() {
                return serde_json::from_slice(&output.stdout).expect("JSON");
            }
            // The process that answers may be starting.
            assert!(Instant::now() < end, "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

/// Starts a gateway in a namespace.
fn started(
    gateway: &Namespace,
    ravelin: PathBuf,
    arguments: &[String],
    file: &Path,
) -> (Child, Receiver<String>) {
    let mut command = gateway.command(ravelin, None);
    command.arg("serve").args(arguments).arg(file);
    heard(command)
}

/// Starts this, and hears what it tells.
fn heard(mut command: Command) -> (Child, Receiver<String>) {
    let mut launch = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (tells, told) = channel();
    let errors = BufReader::new(launch.stderr.take().expect("piped"));
    thread::spawn(move || {
        errors.lines().map_while(Result::ok).take_while(|line| tells.send(line.clone()).is_ok()).count()
    });
    (launch, told)
}

impl Drop for Trusted {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.launch.kill();
        let _ = self.launch.wait();
    }
}

/// A line of /proc/PID/status.
fn status(pid: Pid, line: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).expect("it runs");
    let found = text.lines().find_map(|has| has.strip_prefix(line)?.strip_prefix(':'));
    found.expect("there is one").trim().to_owned()
}

#[test]
fn the_policy_holds_whatever_dies_and_the_core_has_no_rights() {
    let Some(trusted) = Trusted::new("the_policy_holds_whatever_dies_and_the_core_has_no_rights", &[]) else {
        return;
    };
    let locked = trusted.hears("core: locked in by");
    assert!(locked.contains("landlock") && locked.contains("seccomp"), "{locked}");
    let first = trusted.hears("core: program 2 runs, sha256 ");
    assert_eq!(trusted.passes(), 0);

    let core = trusted.process("ravelin-core");
    assert_eq!(status(core, "CapEff").trim_matches('0'), "");
    assert_eq!(status(core, "CapBnd").trim_matches('0'), "");
    assert_eq!((status(core, "NoNewPrivs"), status(core, "Seccomp")), ("1".to_owned(), "2".to_owned()));
    assert!(status(core, "Uid").starts_with("65534"), "{}", status(core, "Uid"));

    let shown = trusted.shown();
    let hash = shown["hash"].as_str().expect("a text").to_owned();
    assert!(first.ends_with(&hash), "{first} is {hash}");
    assert!(shown["dropped"]["closed"].as_u64() > Some(0), "{shown}");
    assert_eq!(shown["confined_by"].as_array().map(Vec::len), Some(12), "{shown}");

    trusted.kill("ravelin-control");
    assert_eq!(trusted.passes(), 0);
    trusted.hears("control was ended by signal 9");
    // Who is asked now is another process, and tells of the same core.
    assert_eq!(trusted.shown()["hash"], hash.as_str());
    assert_eq!(trusted.process("ravelin-core"), core);

    trusted.kill("ravelin-core");
    // While no program has taken over again, nothing passes; then what may.
    assert_eq!(trusted.passes(), 0);
    assert!(trusted.hears("core: program 2 runs, sha256 ").ends_with(&hash));
    assert_eq!(trusted.shown()["hash"], hash.as_str());
}

#[test]
fn a_program_that_is_refused_leaves_the_one_before_it_and_another_takes_over_without_a_restart() {
    let test = "a_program_that_is_refused_leaves_the_one_before_it_and_another_takes_over_without_a_restart";
    let Some(trusted) = Trusted::new(test, &[]) else { return };
    trusted.hears("core: program 2 runs");
    let core = trusted.process("ravelin-core");
    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    let reload = |text: &str| {
        fs::write(trusted.folder.path().join("filter.rav"), text).expect("written");
        kill_process(launch, Signal::HUP).expect("it runs");
    };
    reload("start stage all() { flood");
    trusted.hears("core: what ran goes on: ");
    assert_eq!(trusted.passes(), 0);
    reload(&PROGRAM.replace("7 => across", "7 | 9 => across"));
    trusted.hears("core: program 3 runs");
    assert!(trusted.passes() > 0, "the other port is open now");
    assert_eq!(trusted.process("ravelin-core"), core);
    reload(PROGRAM);
    trusted.hears("core: program 4 runs");
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn a_core_that_dies_while_an_interface_is_away_is_one_core_when_it_is_back_and_signals_are_heard() {
    let test =
        "a_core_that_dies_while_an_interface_is_away_is_one_core_when_it_is_back_and_signals_are_heard";
    let Some(mut trusted) = Trusted::new(test, &[]) else { return };
    trusted.hears("core: program 2 runs");
    let unplug = || {
        let output = trusted.gateway.run("ip", &["link", "delete", "to-a"], "").expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        trusted.hears("to-a is gone");
    };
    unplug();
    trusted.kill("ravelin-core");
    for _ in 0..2 {
        trusted.hears("ravelin-launch: core: ");
        assert_eq!(trusted.processes("ravelin-core"), []);
    }
    plug(&trusted.gateway, &trusted.a, ("to-a", A, 1));
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    trusted.process("ravelin-core");
    unplug();
    trusted.kill("ravelin-core");
    trusted.hears("ravelin-launch: core: ");
    let launch = Pid::from_raw(trusted.launch.id() as i32).expect("not 0");
    kill_process(launch, Signal::TERM).expect("it runs");
    assert!(trusted.launch.wait().expect("it ends").success());
}

#[test]
fn an_interface_that_was_elsewhere_and_comes_back_is_used_again() {
    let test = "an_interface_that_was_elsewhere_and_comes_back_is_used_again";
    let Some(trusted) = Trusted::new(test, &[]) else { return };
    trusted.hears("core: program 2 runs");
    let own = ("to-a", [2, 0, 0, 0, 9, 1]);
    let elsewhere = Namespace::new().expect("another");
    let index = trusted.gateway.links().expect("links").index("to-a").expect("it is there");
    trusted.gateway.links().expect("links").hand("to-a", own, &elsewhere).expect("it goes");
    trusted.hears("to-a is gone");
    let links = elsewhere.links().expect("links");
    links.hand("to-a", own, &trusted.gateway).expect("it comes back");
    let links = trusted.gateway.links().expect("links");
    links.up("to-a").expect("it is on");
    assert_eq!(links.index("to-a").expect("it is there"), index, "Linux calls it the same");
    trusted.hears("to-a is there again");
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn a_layer_is_done_without_only_if_it_is_named() {
    let test = "a_layer_is_done_without_only_if_it_is_named";
    let Some(trusted) = Trusted::new(test, &["--without", "landlock"]) else { return };
    let locked = trusted.hears("core: locked in by");
    assert!(!locked.contains("landlock") && locked.contains("seccomp"), "{locked}");
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    let refused = Command::new(built("ravelin"))
        .args(["serve", "--trusted", "--without", "walls"])
        .arg(trusted.folder.path().join("gateway.toml"))
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("no layer `walls`"), "{words}");
}

#[test]
fn what_a_confined_core_cannot_do_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("filter.rav"), PROGRAM).expect("written");
    let file = folder.path().join("gateway.toml");
    for (gateway, port, refused) in [
        ("snapshot = \"kept\"", "interface = \"lo\"", "`snapshot` cannot be had"),
        ("", "interface = \"lo\"\naddresses = [\"192.0.2.1/24\"]", "only beside `[trust]`"),
        ("", "on = \"lo\"\nvlan = 20", "port lo.20 cannot be had"),
        ("", "interface = \"lo\"\nimpair = { loss = \"1%\" }", "port lo cannot be had"),
        ("", "interface = \"lo\"\n[[port]]\nempty = true", "no port can be `empty`"),
    ] {
        fs::write(&file, format!("program = \"filter.rav\"\n{gateway}\n[[port]]\n{port}\n"))
            .expect("written");
        let mut command = Command::new(built("ravelin"));
        let output = command.args(["serve", "--trusted"]).arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(refused), "{port}: {words}");
    }
    // More than is handed over.
    let addresses =
        |count: u8| (1..=count).map(|last| format!("\"10.0.0.{last}/24\"")).collect::<Vec<_>>().join(",");
    let routes = "[[route]]\nto = \"10.9.0.0/16\"\nvia = \"10.0.0.254\"\n";
    let routes = (0..4000).map(|number| {
        routes
            .replace("10.9.0.0", &format!("10.{}.{}.0", 9 + number / 256, number % 256))
            .replace("/16", "/24")
    });
    for (text, refused) in [
        (
            addresses(65) + "]\n",
            "port lo cannot have 65 addresses of IPv4 with several processes: 64 at most".to_owned(),
        ),
        (addresses(1) + "]\n" + &routes.collect::<String>(), "bytes long as they are handed over".to_owned()),
    ] {
        let text = format!(
            "program = \"filter.rav\"\n[[port]]\ninterface = \"lo\"\naddresses = [{text}{}",
            signed::trust()
        );
        fs::write(&file, text).expect("written");
        let output =
            Command::new(built("ravelin")).args(["serve", "--trusted"]).arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(&refused), "{words}");
    }
    let ports = |count: usize| -> String {
        (0..count).map(|number| format!("[[port]]\ninterface = \"x{number}\"\nkind = \"af_xdp\"\n")).collect()
    };
    let tunnel = "[[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:5001\"\nkey = \"key\"\n";
    let peer = |number| {
        format!("[[port.peer]]\nname = \"p{number}\"\nnumber = {number}\nkey = \"{number:0>42}A=\"\n")
    };
    let peers: String = (1..=1025).map(peer).collect();
    for (text, refused) in [
        (ports(257), "257 of its ports are of kind \"af_xdp\", and with several processes there can be 256"),
        (
            format!("{tunnel}{peers}"),
            "its tunnels have 1025 peers, and with several processes there can be 1024",
        ),
    ] {
        fs::write(&file, format!("program = \"filter.rav\"\n{text}")).expect("written");
        let output =
            Command::new(built("ravelin")).args(["serve", "--trusted"]).arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(refused), "{words}");
    }
    // Whoever compiles would not see it.
    let other = tempfile::tempdir().expect("a folder");
    let outside = other.path().join("filter.rav");
    fs::write(&outside, PROGRAM).expect("written");
    let table = format!(
        "program = \"filter.rav\"\n[[port]]\ninterface = \"lo\"\n[[table]]\nname = \"t\"\nfrom = {outside:?}\n"
    );
    for text in [format!("program = {outside:?}\n[[port]]\ninterface = \"lo\"\n"), table] {
        fs::write(&file, text).expect("written");
        let mut command = Command::new(built("ravelin"));
        let output = command.args(["serve", "--trusted"]).arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains("put the file there"), "{words}");
    }
}
