//! A small internet with a waypoint and a gateway in it, from the files that `ravelin naming init` makes, for
//! tests in which programs that know nothing of Ravelin reach hosts by their names.

use super::script::Script;
use super::{Running, binary, installed, text};
use rig::{Namespace, SmallInternet};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The zone of the names.
pub(crate) const ZONE: &str = "home.example";
/// The variable of the environment that says how long the soak lasts; where it is set, tests that have a
/// long form take it.
pub(crate) const WHOLE_RUN: &str = "RAVELIN_SOAK_SECONDS";
/// Bytes of the download that each web server has.
const DOWNLOAD: usize = 1 << 20;
/// Bytes of a packet that are captured where none is longer: tcpdump has room for more packets then.
const WHOLE_PACKETS: &str = "2048";
/// What tcpdump has room for while it is not running, in KiB: a burst of a busy machine.
const BUFFER: &str = "65536";
/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a run takes: the first in ordinary tests, the second in the long form of `cargo xtask soak`.
pub(crate) fn either<T>(short: T, whole: T) -> T {
    if std::env::var_os(WHOLE_RUN).is_some() { whole } else { short }
}

/// What a test needs of it.
pub(crate) struct Plan<'a> {
    pub(crate) initiators: usize,
    pub(crate) hosts: u8,
    /// Further arguments of `naming init`, which say who gets which address.
    pub(crate) addresses: &'a [&'a str],
    /// Whether packets on cables may be longer than they, and have open checksums.
    pub(crate) offloads: bool,
    /// Programs without which the test does not run.
    pub(crate) programs: &'a [&'a str],
}

/// All of it, running. Everything ends with the test.
pub(crate) struct Home {
    pub(crate) internet: SmallInternet,
    directory: tempfile::TempDir,
    /// Variables of the environment of roles that are started from now on.
    pub(crate) environment: Vec<(&'static str, String)>,
    roles: Vec<(String, Child)>,
    servers: Vec<Running>,
    captures: Vec<Child>,
}

impl Home {
    /// Makes it; `None` where that is not allowed here, or a program is missing. `change` may change the text
    /// of the files `waypoint` and `gateway`.
    pub(crate) fn new(test: &str, plan: &Plan<'_>, change: impl Fn(&str, String) -> String) -> Option<Home> {
        let needed =
            [&["nft", "dig", "curl", "python3", "tcpdump", "scapy3", "unshare"], plan.programs].concat();
        if !installed(test, &needed) {
            return None;
        }
        let internet = match SmallInternet::new(plan.initiators, plan.hosts, plan.offloads) {
            Ok(internet) => internet,
            Err(error) => {
                eprintln!("{test}: not run, since network namespaces cannot be made here: {error}");
                return None;
            }
        };
        let directory = tempfile::tempdir().expect("a directory");
        let (roles, servers, captures) = (Vec::new(), Vec::new(), Vec::new());
        let environment = Vec::new();
        let home = Home { internet, directory, environment, roles, servers, captures };
        home.make_files(plan.addresses);
        for role in ["waypoint", "gateway"] {
            let file = home.file(role);
            let written = fs::read_to_string(&file).expect("init has written it");
            fs::write(&file, change(role, written)).expect("can be written");
        }
        let resolver = format!("nameserver {}\noptions timeout:5 attempts:2\n", SmallInternet::RESOLVER);
        fs::write(home.path("resolv.conf"), resolver).expect("can be written");
        Some(home)
    }

    fn make_files(&self, addresses: &[&str]) {
        let router = rig::ROUTER_ETHERNET.map(|byte| format!("{byte:02x}")).join(":");
        let mut init = Command::new(binary());
        init.args(["naming", "init"]).arg(self.directory.path()).args(["--zone", ZONE]);
        init.args(["--machine", &SmallInternet::WAYPOINT_MACHINE.to_string(), "--public", "public"]);
        init.args(["--pool", "198.51.100.0/28", "--router", &router, "--lan", "lan"]);
        init.args(["--lan-address", &SmallInternet::LAN_GATEWAY.to_string()]);
        init.args(["--lan-network", "10.0.0.0/24"]).args(addresses);
        succeeds("naming init", &init.output().expect("ravelin runs"));
    }

    /// Where a file of the test is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The file of a role.
    pub(crate) fn file(&self, role: &str) -> PathBuf {
        self.path(role).join(format!("{role}.toml"))
    }

    fn namespace(&self, role: &str) -> &Namespace {
        if role == "waypoint" { &self.internet.waypoint } else { &self.internet.gateway }
    }

    /// Starts a role, and waits until it answers.
    pub(crate) fn serve(&mut self, role: &str) {
        let log = fs::File::create(self.path(&format!("{role}.log"))).expect("can be written");
        let mut command = self.namespace(role).command(binary(), None);
        command.args(["serve", "--one-process"]).arg(self.file(role)).current_dir(self.path(role));
        command.envs(self.environment.iter().cloned());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.roles.push((role.to_owned(), child.expect("ravelin runs")));
        let said = || fs::read_to_string(self.path(&format!("{role}.log"))).unwrap_or_default();
        until(|| match self.ravelin(role, &["show", "run", "--total"]).status.success() {
            true => Ok(()),
            false => Err(format!("the {role} does not answer: {}", said())),
        });
    }

    /// Changes the file of a role, and lets it read the file again.
    pub(crate) fn change(&self, role: &str, change: impl Fn(String) -> String) {
        let file = self.file(role);
        let before = fs::read_to_string(&file).expect("is there");
        let after = change(before.clone());
        assert_ne!(before, after, "something is changed");
        fs::write(&file, after).expect("can be written");
        succeeds("reload", &self.ravelin(role, &["reload"]));
    }

    /// Ends a role in order.
    pub(crate) fn stop(&mut self, role: &str) {
        succeeds("stop", &self.ravelin(role, &["stop"]));
        let place = self.roles.iter().position(|(name, _)| name == role).expect("it runs");
        let (_, mut child) = self.roles.remove(place);
        assert!(child.wait().expect("it ends").success());
    }

    /// Waits until all that packets have done until now is in the store of the waypoint.
    pub(crate) fn until_written(&self) {
        let begun = Instant::now();
        until(|| {
            let passed = begun.elapsed().as_secs_f64();
            let list = self.ask("waypoint", &["names", "list"]);
            match list["store"]["written_seconds"].as_f64() {
                Some(seconds) if seconds < passed => Ok(()),
                _ => Err(format!("after {passed} s: {}", list["store"])),
            }
        });
    }

    /// Kills a role, at once.
    pub(crate) fn kill(&mut self, role: &str) {
        let place = self.roles.iter().position(|(name, _)| name == role).expect("it runs");
        let (_, mut child) = self.roles.remove(place);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    /// The number of the process of a role.
    pub(crate) fn process(&self, role: &str) -> u32 {
        let (_, child) = self.roles.iter().find(|(name, _)| name == role).expect("it runs");
        child.id()
    }

    /// Sends a signal to a role.
    pub(crate) fn signal(&self, role: &str, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process(role).to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// A command to a role, by its control socket.
    pub(crate) fn ravelin(&self, role: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.args(arguments).arg("--control").arg(self.path(role).join("ravelin.sock"));
        command.output().expect("ravelin runs")
    }

    /// What a role shows, as data.
    pub(crate) fn ask(&self, role: &str, arguments: &[&str]) -> Value {
        let output = self.ravelin(role, &[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// How many packets a role has dropped for a reason.
    pub(crate) fn drops(&self, role: &str, reason: &str) -> u64 {
        let shown = self.ask(role, &["show", "run", "--total"]);
        shown["now"]["report"]["drops"][reason].as_u64().unwrap_or(0)
    }

    /// Gives a host a name, at an address for each initiator.
    pub(crate) fn add_name(&self, name: &str, host: usize, services: &[&str]) {
        let address = SmallInternet::host_address(host).to_string();
        let add =
            ["names", "add", name, "--gateway", "home", "--ipv4", "per-initiator", "--address", &address];
        let services: Vec<&str> = services.iter().flat_map(|service| ["--service", service]).collect();
        succeeds("names add", &self.ravelin("waypoint", &[&add[..], &services].concat()));
    }

    /// A web server at a host, whose page is the host's number; its log tells who asked.
    pub(crate) fn web_server(&mut self, host: usize, port: u16) {
        let folder = self.path(&format!("host{host}"));
        fs::create_dir_all(&folder).expect("can be made");
        fs::write(folder.join("index.html"), page(host)).expect("can be written");
        let bytes: Vec<u8> = (0..DOWNLOAD).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(folder.join("download"), bytes).expect("can be written");
        let log = fs::File::create(self.path(&format!("host{host}.log"))).expect("can be written");
        let mut server = self.internet.hosts[host].command("python3", None);
        server.args(["-u", "-m", "http.server", &port.to_string(), "--directory"]).arg(folder);
        self.keep(server.stderr(log));
        let at = format!("http://127.0.0.1:{port}/");
        until(|| match self.internet.hosts[host].run("curl", &["-sS", &at], "") {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(text(&output)),
            Err(error) => Err(error.to_string()),
        });
    }

    /// dnsmasq as the resolver of all initiators.
    pub(crate) fn dnsmasq(&mut self) {
        let mut command = self.internet.resolver.command("dnsmasq", None);
        command.args(["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"]);
        command.args([
            "--user=root",
            "--pid-file=",
            &format!("--listen-address={}", SmallInternet::RESOLVER),
        ]);
        command.arg(format!("--server=/{ZONE}/{}", SmallInternet::WAYPOINT_MACHINE));
        self.keep(command.stderr(Stdio::null()));
        until(|| match self.client(0, "dig").args(["+short", "+tries=1", "+time=1", ZONE, "SOA"]).output() {
            Ok(output) if output.status.success() && !output.stdout.is_empty() => Ok(()),
            Ok(output) => Err(format!("dnsmasq does not answer: {}", text(&output))),
            Err(error) => Err(error.to_string()),
        });
    }

    /// A server at a host that repeats each datagram.
    pub(crate) fn datagram_server(&mut self, host: usize) {
        let mut server = self.internet.hosts[host].command("python3", None);
        self.keep(server.args(["-c", DATAGRAM_SERVER]).stderr(Stdio::null()));
    }

    /// A server at a host that repeats each line.
    pub(crate) fn echo_server(&mut self, host: usize) {
        let mut server = self.internet.hosts[host].command("python3", None);
        self.keep(server.args(["-c", ECHO_SERVER]).stderr(Stdio::null()));
        until(|| match self.internet.hosts[host].run("python3", &["-c", ECHO_CLIENT, "127.0.0.1"], "up\n") {
            Ok(output) if output.stdout == b"up\n" => Ok(()),
            Ok(output) => Err(text(&output)),
            Err(error) => Err(error.to_string()),
        });
    }

    /// An initiator gets the download of a host by its name, and all of it.
    pub(crate) fn download(&self, initiator: usize, name: &str, host: usize) {
        let url = format!("http://{name}.{ZONE}/download");
        let mut curl = self.client(initiator, "curl");
        let got = curl.args(["-sS", "--ipv4", "--max-time", "60", &url]).output().expect("curl runs");
        succeeds("curl", &Output { stdout: Vec::new(), ..got.clone() });
        let wanted = fs::read(self.path(&format!("host{host}/download"))).expect("is there");
        assert!(got.stdout == wanted, "what came is what was sent");
    }

    /// Starts a program that runs until the test ends. What it says on standard error is the caller's to
    /// keep.
    pub(crate) fn keep(&mut self, command: &mut Command) {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        self.servers.push(Running::of(child.expect("the program starts")));
    }

    /// A program at an initiator, whose resolver is that of this internet.
    pub(crate) fn client(&self, initiator: usize, program: &str) -> Command {
        let mut command = self.internet.initiators[initiator].command("unshare", None);
        let run = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        command.args(["--mount", "sh", "-c", run]).arg(self.path("resolv.conf")).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// curl at an initiator, which has some seconds, and writes only what it got.
    pub(crate) fn curl(&self, initiator: usize, arguments: &[&str]) -> Command {
        let mut command = self.client(initiator, "curl");
        command.args(["-sS", "--ipv4", "--max-time", "9"]).args(arguments);
        command
    }

    /// Captures what passes an interface of the router, from now on.
    pub(crate) fn capture_at_router(&mut self, interface: &str) {
        let command = self.internet.router.command("tcpdump", None);
        self.capture(command, interface, interface, "0");
    }

    /// Captures what passes every link, from now on.
    pub(crate) fn capture_every_link(&mut self) {
        let initiators = (0..self.internet.initiators.len()).map(|number| format!("initiator{number}"));
        let links = ["public", "machine", "carrier"].map(str::to_owned).into_iter().chain(initiators);
        for link in links.collect::<Vec<_>>() {
            let command = self.internet.router.command("tcpdump", None);
            self.capture(command, &link, &link, WHOLE_PACKETS);
        }
        let lan = self.internet.lan.command("tcpdump", None);
        self.capture(lan, "gateway", "lan", WHOLE_PACKETS);
        let uplink = self.internet.gateway.command("tcpdump", None);
        self.capture(uplink, "uplink", "uplink", WHOLE_PACKETS);
    }

    /// How many packets are in no capture, since tcpdump was too slow. It says so at its end.
    pub(crate) fn missed(&self) -> u64 {
        let files = fs::read_dir(self.path("captures")).expect("is there").flatten();
        let said = files.filter(|file| file.path().extension().is_some_and(|end| end == "said"));
        let missed = said.map(|file| {
            let said = fs::read_to_string(file.path()).unwrap_or_default();
            let line = said.lines().find_map(|line| line.split_once(" packets dropped by kernel"));
            line.and_then(|(count, _)| count.trim().parse().ok()).unwrap_or(0)
        });
        missed.sum()
    }

    /// Captures what passes between the gateway and its hosts, from now on.
    pub(crate) fn capture_lan(&mut self) {
        let command = self.internet.lan.command("tcpdump", None);
        self.capture(command, "gateway", "lan", "0");
    }

    /// Where a capture is.
    pub(crate) fn captured(&self, name: &str) -> PathBuf {
        self.path("captures").join(format!("{name}.pcap"))
    }

    fn capture(&mut self, mut command: Command, interface: &str, name: &str, bytes: &str) {
        fs::create_dir_all(self.path("captures")).expect("can be made");
        let file = self.captured(name);
        // That of an earlier round would look as if tcpdump had begun.
        if file.exists() {
            fs::remove_file(&file).expect("can be removed");
        }
        command.args(["-i", interface, "-n", "-U", "--immediate-mode", "-B", BUFFER, "-Z", "root"]);
        let said = fs::File::create(file.with_extension("said")).expect("can be written");
        command.args(["-s", bytes, "-w"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        self.captures.push(command.spawn().expect("tcpdump runs"));
        until(|| match file.metadata() {
            Ok(data) if data.len() >= 24 => Ok(()),
            _ => Err(format!("tcpdump does not begin at {interface}")),
        });
    }

    /// Ends all captures in order, so that every packet is in them.
    pub(crate) fn end_captures(&mut self) {
        for mut tcpdump in self.captures.drain(..) {
            let _ = Command::new("kill").args(["-INT", &tcpdump.id().to_string()]).status();
            tcpdump.wait().expect("tcpdump ends");
        }
    }

    /// What a judge of the captures says.
    pub(crate) fn judged(&mut self, judge: &str, arguments: &[&str]) -> Value {
        self.end_captures();
        let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net").join(judge);
        let mut python = Command::new("/usr/bin/python3");
        let said =
            python.arg(judge).arg(self.path("captures")).args(arguments).output().expect("python runs");
        serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{}", text(&said)))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for child in self.roles.iter_mut().map(|(_, child)| child).chain(&mut self.captures) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The port of a server that repeats what it is told (RFC 862).
pub(crate) const ECHO: u16 = 7;

const DATAGRAM_SERVER: &str = "
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
server.bind(('0.0.0.0', 7))
while True:
    server.sendto(*server.recvfrom(2048))
";

const ECHO_SERVER: &str = "
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
Server(('0.0.0.0', 7), Echo).serve_forever()
";

/// Passes lines to a server and back, and ends where nothing comes for a while.
const ECHO_CLIENT: &str = "
import socket, sys
server = socket.create_connection((sys.argv[1], 7), 20)
server.settimeout(20)
answers = server.makefile()
for line in sys.stdin:
    server.sendall(line.encode())
    print(answers.readline(), end='', flush=True)
";

/// One connection of TCP that lasts, in which each line is answered before the next.
pub(crate) struct Talk {
    client: Script,
    said: usize,
}

impl Talk {
    /// An initiator connects to the echo server of a host by its name.
    pub(crate) fn begin(home: &Home, initiator: usize, name: &str) -> Talk {
        let mut client = home.client(initiator, "python3");
        let client = Script::start(client.args(["-u", "-c", ECHO_CLIENT, &format!("{name}.{ZONE}")]));
        let mut talk = Talk { client, said: 0 };
        talk.goes_on();
        talk
    }

    /// Some lines more are answered.
    pub(crate) fn goes_on(&mut self) {
        for _ in 0..5 {
            self.said += 1;
            let line = format!("line {}", self.said);
            assert_eq!(self.client.ask(&line), line, "each line is answered");
        }
    }
}

/// What lets the gateway register the name `own` of the first host, with a port of TCP.
pub(crate) fn registers(port: u16) -> String {
    format!(
        "\n[register]\nwaypoints = [\"waypoint\"]\n\n[[register.host]]\nname = \"own.home.example\"\n\
         address = \"10.0.0.80\"\nservices = [\"tcp/{port}\"]\n"
    )
}

/// The page of a host.
pub(crate) fn page(host: usize) -> String {
    format!("this is host {host}\n")
}

/// Looks again and again until it is so.
pub(crate) fn until(mut found: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + PATIENCE;
    while let Err(seen) = found() {
        assert!(Instant::now() < end, "{seen}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Asserts that a program has ended well.
pub(crate) fn succeeds(what: &str, output: &Output) {
    assert!(output.status.success(), "{what}: {}", text(output));
}
