//! Who takes part in the demonstration: a waypoint, a gateway, and the unmodified programs around them.

use super::{DemoPlan, text};
use rig::{Namespace, SmallInternet};
use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The zone in which the hosts have names.
pub(crate) const ZONE: &str = "home.example";
/// How many hosts there are, and how many initiators: ten ask at once.
pub(super) const HOSTS: u8 = 6;
pub(super) const INITIATORS: usize = 10;
/// How many addresses are there for initiators that ask for themselves: 198.51.100.2 and .3.
pub(super) const KNOWN_ADDRESSES: usize = 2;
/// The addresses that the waypoint has on its public side.
const POOL: &str = "198.51.100.0/28";
const SHARED: &str = "198.51.100.1";
const KNOWN: &str = "198.51.100.2/31";
const UNKNOWN: [&str; 2] = ["198.51.100.4/30", "198.51.100.8/29"];
/// The host that is reached as if it had IPv4 alone.
pub(super) const IPV4_ALONE: usize = 5;
/// The host that has a second name, which its gateway registers.
pub(super) const REGISTERED: usize = 3;
/// What the first host offers. The others offer a web page and nothing else.
const SERVICES: [&str; 7] = ["tcp/80", "tcp/2222", "udp/53", "tcp/53", "tcp/5201", "udp/5201", "icmp"];
/// How long a program may take until it answers.
const START: Duration = Duration::from_secs(20);
/// How much the first host has to download, in bytes.
pub(super) const DOWNLOAD: usize = 4 << 20;

/// All of them, running.
pub(super) struct Parties {
    pub(super) internet: SmallInternet,
    directory: PathBuf,
    children: Vec<Child>,
}

impl Parties {
    /// Makes the networks, starts everything, and returns when the first host's name leads to an address.
    pub(super) fn start(plan: &DemoPlan, directory: &Path) -> io::Result<Parties> {
        let internet = SmallInternet::new(INITIATORS, HOSTS, plan.captures.is_none())?;
        let mut parties = Parties { internet, directory: directory.to_owned(), children: Vec::new() };
        parties.capture(plan)?;
        parties.gateways(plan)?;
        parties.resolver()?;
        parties.servers()?;
        let asked = || parties.dig(0, &["+short", &name(0)]).map(|output| !output.stdout.is_empty());
        wait("the name of a host leads to an address", asked)?;
        Ok(parties)
    }

    /// Where a file of the demonstration is.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The waypoint, which answers for the zone, and the gateway, from the files that `naming init` writes.
    fn gateways(&mut self, plan: &DemoPlan) -> io::Result<()> {
        let machine = SmallInternet::WAYPOINT_MACHINE.to_string();
        let made = Command::new(&plan.binary)
            .args(["naming", "init", &text(&self.directory), "--zone", ZONE, "--machine", &machine])
            .args(["--public", "public", "--pool", POOL, "--shared", SHARED])
            .args([
                "--known",
                KNOWN,
                "--unknown",
                UNKNOWN[0],
                "--unknown",
                UNKNOWN[1],
                "--clients",
                "203.0.113.0/24",
            ])
            .args(["--router", &ethernet(rig::ROUTER_ETHERNET), "--lan", "lan"])
            .args(["--lan-address", &SmallInternet::LAN_GATEWAY.to_string(), "--lan-network", "10.0.0.0/24"])
            .args(["--pool6", &format!("{}/64", SmallInternet::STABLE_NETWORK)])
            .args(["--lan-address6", &SmallInternet::LAN_GATEWAY6.to_string()])
            .args(["--lan-network6", "fd00:10::/64"])
            .output()?;
        succeeded("ravelin naming init", &made)?;
        let file = self.path("gateway").join("gateway.toml");
        let register = format!(
            "\n[register]\nwaypoints = [\"waypoint\"]\n\n[[register.host]]\nname = \"{}\"\naddress = \"{}\"\n\
             services = [\"tcp/80\"]\nipv6 = \"{}\"\n",
            registered_name(),
            SmallInternet::host_address(REGISTERED),
            SmallInternet::host_address6(REGISTERED)
        );
        fs::write(&file, fs::read_to_string(&file)? + &register)?;
        for (role, namespace) in [("waypoint", &self.internet.waypoint), ("gateway", &self.internet.gateway)]
        {
            let file = self.path(role).join(format!("{role}.toml"));
            let control = self.path(role).join("ravelin.sock");
            let log = fs::File::create(self.path(&format!("{role}.log")))?;
            let mut command = namespace.command(&plan.binary, None);
            command
                .args(["serve", "--one-process"])
                .arg(&file)
                .current_dir(self.path(role))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log);
            self.children.push(command.spawn()?);
            let answers = || {
                let mut asked = namespace.command(&plan.binary, None);
                asked.args(["show", "run", "--total", "--control"]).arg(&control);
                Ok(asked.output()?.status.success())
            };
            wait(&format!("the {role} answers"), answers).map_err(|error| {
                let log = fs::read_to_string(self.path(&format!("{role}.log"))).unwrap_or_default();
                Error::other(format!("{error}: {}", log.trim()))
            })?;
        }
        // Who reaches a host by translation is told by its gateway alone.
        let mut watch = self.internet.gateway.command(&plan.binary, None);
        watch
            .args(["table", "watch", "translated", "--control"])
            .arg(self.path("gateway").join("ravelin.sock"));
        watch
            .stdin(Stdio::null())
            .stdout(fs::File::create(self.path("translated.log"))?)
            .stderr(Stdio::null());
        self.children.push(watch.spawn()?);
        for index in 0..usize::from(HOSTS) {
            let services: &[&str] = match index {
                0 => &SERVICES,
                IPV4_ALONE => &["tcp/80", "icmp"],
                _ => &SERVICES[..1],
            };
            let control = self.path("waypoint").join("ravelin.sock");
            let mut add = self.internet.waypoint.command(&plan.binary, None);
            add.args(["names", "add", &label(index), "--gateway", "home", "--ipv4", "per-initiator"]);
            add.args(["--address", &SmallInternet::host_address(index).to_string()]);
            let own = SmallInternet::host_address6(index).to_string();
            let six = if index == IPV4_ALONE { "translated" } else { &own };
            add.args(["--ipv6", six, "--control"]).arg(control);
            for service in services {
                add.args(["--service", service]);
            }
            succeeded("ravelin names add", &add.output()?)?;
        }
        Ok(())
    }

    /// dnsmasq, which asks the waypoint for what is in the zone.
    fn resolver(&mut self) -> io::Result<()> {
        let of_zone = format!("--server=/{ZONE}/{}", SmallInternet::WAYPOINT_MACHINE);
        let own = format!("--listen-address={}", SmallInternet::RESOLVER);
        let arguments = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null"];
        let mut command = self.internet.resolver.command("dnsmasq", None);
        command.args(arguments).args([&of_zone, &own, "--user=root", "--pid-file="]);
        self.keep("dnsmasq", &mut command)?;
        fs::write(self.path("resolv.conf"), format!("nameserver {}\n", SmallInternet::RESOLVER))
    }

    /// The servers of the hosts: a web page each, and at the first one a shell, DNS and iperf3.
    fn servers(&mut self) -> io::Result<()> {
        for index in 0..usize::from(HOSTS) {
            let root = self.path(&format!("host{index}"));
            fs::create_dir_all(&root)?;
            fs::write(root.join("index.html"), page(index))?;
            let configuration = format!(
                "worker_processes 1;\nuser root;\npid {0}/nginx.pid;\nerror_log {0}/error.log;\nevents {{}}\nhttp {{\n \
                 access_log {0}/access.log;\n client_body_temp_path {0}/body;\n proxy_temp_path {0}/proxy;\n \
                 fastcgi_temp_path {0}/fastcgi;\n uwsgi_temp_path {0}/uwsgi;\n scgi_temp_path {0}/scgi;\n \
                 server {{ listen 80; listen [::]:80; root {0}; }}\n}}\n",
                text(&root)
            );
            let file = root.join("nginx.conf");
            fs::write(&file, configuration)?;
            let mut command = self.internet.hosts[index].command("nginx", None);
            command.args(["-p", &text(&root), "-c", &text(&file)]);
            command.args(["-g", "daemon off; master_process off;"]);
            self.keep("nginx", &mut command)?;
        }
        let bytes: Vec<u8> =
            (0..DOWNLOAD).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(self.path("host0").join("download"), bytes)?;
        let mut iperf = self.internet.hosts[0].command("iperf3", None);
        self.keep("iperf3", iperf.arg("-s"))?;
        let mut dns = self.internet.hosts[0].command("dnsmasq", None);
        dns.args([
            "--keep-in-foreground",
            "--no-resolv",
            "--no-hosts",
            "--conf-file=/dev/null",
            "--user=root",
        ]);
        dns.args(["--pid-file=", "--address=/inside.example/10.0.0.99"]);
        self.keep("dnsmasq", &mut dns)?;
        self.shell_server()
    }

    /// sshd with a key of its own, which lets the key `user` in. The folder and the user that it insists on
    /// are made where nobody else sees them.
    fn shell_server(&mut self) -> io::Result<()> {
        for key in ["host-key", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &text(&self.path(key))])
                .output()?;
            succeeded("ssh-keygen", &made)?;
        }
        let configuration = format!(
            "Port 2222\nListenAddress 0.0.0.0\nListenAddress ::\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n",
            text(&self.path("host-key")),
            text(&self.path("user.pub"))
        );
        fs::write(self.path("sshd.conf"), configuration)?;
        let users = fs::read_to_string("/etc/passwd")?;
        fs::write(self.path("passwd"), users + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")?;
        let run = format!(
            "mount -t tmpfs none /run && mkdir /run/sshd && mount --bind {} /etc/passwd && \
             exec $(command -v sshd) -D -e -f {}",
            text(&self.path("passwd")),
            text(&self.path("sshd.conf"))
        );
        let mut command = self.internet.hosts[0].command("unshare", None);
        self.keep("sshd", command.args(["--mount", "sh", "-c", &run]))
    }

    /// tcpdump on each link of interest, if captures are wanted.
    fn capture(&mut self, plan: &DemoPlan) -> io::Result<()> {
        let Some(folder) = &plan.captures else { return Ok(()) };
        fs::create_dir_all(folder)?;
        let mut links: Vec<(String, &Namespace, String)> = vec![
            ("public".to_owned(), &self.internet.router, "public".to_owned()),
            ("machine".to_owned(), &self.internet.router, "machine".to_owned()),
            ("carrier".to_owned(), &self.internet.router, "carrier".to_owned()),
            ("uplink".to_owned(), &self.internet.carrier, "customer".to_owned()),
            ("lan".to_owned(), &self.internet.lan, "gateway".to_owned()),
        ];
        for index in 0..INITIATORS {
            let name = format!("initiator{index}");
            links.push((name.clone(), &self.internet.router, name));
        }
        let mut commands = Vec::new();
        for (name, namespace, interface) in links {
            let file = folder.join(format!("{name}.pcap"));
            let mut command = namespace.command("tcpdump", None);
            command.args(["-i", &interface, "-n", "-U", "--immediate-mode", "-w", &text(&file)]);
            commands.push((file, command));
        }
        for (file, mut command) in commands {
            self.keep("tcpdump", &mut command)?;
            wait("tcpdump captures", || Ok(file.is_file()))?;
        }
        Ok(())
    }

    /// Starts a program that runs as long as the demonstration does.
    fn keep(&mut self, name: &str, command: &mut Command) -> io::Result<()> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path(&format!("{name}.log")))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.children.push(child.map_err(|error| missing(name, error))?);
        Ok(())
    }

    /// A program at an initiator, whose resolver is that of this internet.
    pub(super) fn client(&self, initiator: usize, program: &str) -> Command {
        let mut command = self.internet.initiators[initiator].command("unshare", None);
        let resolver = text(&self.path("resolv.conf"));
        let run = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        command.args(["--mount", "sh", "-c", run, &resolver, program]).stdin(Stdio::null());
        command
    }

    /// dig at an initiator, which asks the resolver.
    pub(super) fn dig(&self, initiator: usize, arguments: &[&str]) -> io::Result<Output> {
        self.client(initiator, "dig").args(["+tries=1", "+time=4"]).args(arguments).output()
    }

    /// dig at an initiator, which asks the name server of the zone itself.
    pub(super) fn dig_directly(&self, initiator: usize, arguments: &[&str]) -> io::Result<Output> {
        let server = format!("@{}", SmallInternet::WAYPOINT_MACHINE);
        self.dig(initiator, &[&[server.as_str()], arguments].concat())
    }

    /// What a host's web server has written about who asked.
    pub(super) fn access_log(&self, host: usize) -> io::Result<String> {
        fs::read_to_string(self.path(&format!("host{host}")).join("access.log"))
    }
}

impl Drop for Parties {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first label of a host's name.
pub(crate) fn label(host: usize) -> String {
    format!("host{host}")
}

/// The name of a host.
pub(crate) fn name(host: usize) -> String {
    format!("{}.{ZONE}", label(host))
}

/// The name that the gateway registers.
pub(super) fn registered_name() -> String {
    format!("registered.{ZONE}")
}

/// The page of a host.
pub(super) fn page(host: usize) -> String {
    format!("this is host {host}\n")
}

/// Looks again and again until it is so.
pub(super) fn wait(what: &str, mut is_so: impl FnMut() -> io::Result<bool>) -> io::Result<()> {
    let end = Instant::now() + START;
    while !is_so()? {
        if Instant::now() > end {
            return Err(Error::new(
                io::ErrorKind::TimedOut,
                format!("{what}: not after {} s", START.as_secs()),
            ));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// An error with what a program said, where it failed.
pub(crate) fn succeeded(what: &str, output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    Err(Error::other(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn missing(name: &str, error: Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(error.kind(), format!("{name} is not installed")),
        kind => Error::new(kind, format!("{name}: {error}")),
    }
}

/// A network card as commands take it.
pub(crate) fn ethernet(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}
