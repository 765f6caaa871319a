//! Applications that ask more of a network than one connection: WireGuard, QUIC and mosh over a name whose
//! client's port changes, and FTP in its three ways.

mod net;

use net::small_internet::{Home, Plan, page, succeeds, until};
use net::{Running, text};
use rig::{Namespace, SmallInternet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

const PLAN: Plan<'_> = Plan {
    initiators: 1,
    hosts: 1,
    addresses: &["--unknown", "198.51.100.4/31"],
    offloads: true,
    programs: &[],
};

/// A waypoint, a gateway and dnsmasq, running.
fn served(test: &str, programs: &[&str]) -> Option<Home> {
    let programs = [&["dnsmasq"], programs].concat();
    let mut home = Home::new(test, &Plan { programs: &programs, ..PLAN }, |_, file| file)?;
    home.capture_at_router("public");
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    Some(home)
}

/// The released implementation of WireGuard in user space, with a device of its own.
struct WireGuard {
    running: Running,
    process: u32,
    key: String,
}

impl WireGuard {
    /// Starts it in a namespace, where sockets that it is told by lie nowhere else.
    fn start(home: &Home, namespace: &Namespace, name: &str, address: &str) -> WireGuard {
        let run = "mount -t tmpfs none /run && mkdir /run/wireguard && mount --bind \"$0\" /etc/resolv.conf && \
                   exec wireguard-go -f wg0";
        let mut command = namespace.command("unshare", None);
        command.args(["--mount", "sh", "-c", run]).arg(home.path("resolv.conf"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("wireguard-go starts");
        let process = child.id();
        let made = Command::new("wg").arg("genkey").output().expect("wg runs");
        let file = home.path(&format!("{name}.wg"));
        fs::write(&file, &made.stdout).expect("can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("is ours");
        let public =
            Command::new("wg").arg("pubkey").stdin(fs::File::open(&file).expect("is there")).output();
        let key = String::from_utf8_lossy(&public.expect("wg runs").stdout).trim().to_owned();
        let wireguard = WireGuard { running: Running::of(child), process, key };
        let file = file.display().to_string();
        until(|| match wireguard.inside(&["wg", "set", "wg0", "private-key", &file]) {
            set if set.status.success() => Ok(()),
            set => Err(text(&set)),
        });
        for line in [format!("ip address add {address}/24 dev wg0"), "ip link set wg0 up".to_owned()] {
            succeeds(&line, &wireguard.inside(&line.split(' ').collect::<Vec<_>>()));
        }
        wireguard
    }

    /// Runs a program beside it.
    fn inside(&self, words: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.process.to_string(), "--mount", "--net"]).args(words);
        command.output().expect("nsenter runs")
    }

    fn set(&self, words: &[&str]) {
        succeeds("wg set", &self.inside(&[&["wg", "set", "wg0"], words].concat()));
    }

    /// What it tells of its only peer.
    fn peer(&self, what: &str) -> String {
        let shown = text(&self.inside(&["wg", "show", "wg0", what]));
        shown.split_whitespace().nth(1).unwrap_or("").to_owned()
    }
}

#[test]
fn a_tunnel_of_wireguard_to_a_name_survives_another_port_of_its_client() {
    let test = "a_tunnel_of_wireguard_to_a_name_survives_another_port_of_its_client";
    let Some(mut home) = served(test, &["wireguard-go", "wg", "nsenter"]) else { return };
    home.add_name("vpn", 0, &["udp/51820"]);
    let host = WireGuard::start(&home, &home.internet.hosts[0], "host", "10.9.0.1");
    let client = WireGuard::start(&home, &home.internet.initiators[0], "client", "10.9.0.2");
    host.set(&["listen-port", "51820", "peer", &client.key, "allowed-ips", "10.9.0.2/32"]);
    client.set(&["listen-port", "40001", "peer", &host.key, "allowed-ips", "10.9.0.1/32"]);
    client.set(&["peer", &host.key, "endpoint", "vpn.home.example:51820"]);
    let pings = || text(&client.inside(&["ping", "-c", "5", "-i", "0.2", "-W", "2", "10.9.0.1"]));
    // The first packet may go for the question where the host is; the handshake is sent again after 5 s.
    until(|| match pings() {
        said if said.contains("5 received") => Ok(()),
        said => Err(said),
    });
    let own = SmallInternet::initiator_address(0);
    assert_eq!(host.peer("endpoints"), format!("{own}:40001"));
    let session = client.peer("latest-handshakes");
    client.set(&["listen-port", "40002"]);
    let said = pings();
    assert!(said.contains("5 received"), "{said}");
    assert_eq!(host.peer("endpoints"), format!("{own}:40002"));
    assert_eq!(client.peer("latest-handshakes"), session, "it is the same session");
    // What does not fit into both tunnels at once: the client's system is told, and cuts.
    until(|| match client.inside(&["ping", "-c", "3", "-i", "0.2", "-W", "2", "-s", "1392", "10.9.0.1"]) {
        large if text(&large).contains("3 received") => Ok(()),
        large => Err(text(&large)),
    });
    home.end_captures();
    for port in ["40001", "40002"] {
        let mut read = Command::new("tcpdump");
        read.args(["-n", "-r"]).arg(home.captured("public")).args(["udp", "src", "port", port]);
        let seen = text(&read.output().expect("tcpdump runs"));
        assert!(seen.contains(&format!("{own}.{port} > 198.51.100.")), "{port}: {seen}");
    }
    drop((host.running, client.running));
}

/// vsftpd at the host, which lets everybody read a file.
fn ftp_server(home: &mut Home) {
    let folder = home.path("ftp");
    for made in [&folder, &home.path("empty")] {
        fs::create_dir_all(made).expect("can be made");
        fs::set_permissions(made, fs::Permissions::from_mode(0o555)).expect("is ours");
    }
    fs::set_permissions(home.path(""), fs::Permissions::from_mode(0o755)).expect("is ours");
    fs::write(folder.join("file"), page(0)).expect("can be written");
    let configuration = format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nno_anon_password=YES\nanon_root={}\n\
         secure_chroot_dir={}\nftp_username=daemon\nnopriv_user=nobody\nconnect_from_port_20=YES\n\
         pasv_min_port=2121\npasv_max_port=2121\nisolate_network=NO\nseccomp_sandbox=NO\n",
        folder.display(),
        home.path("empty").display()
    );
    let file = home.path("vsftpd.conf");
    fs::write(&file, configuration).expect("can be written");
    let mut command = home.internet.hosts[0].command("vsftpd", None);
    home.keep(command.arg(&file).stderr(Stdio::null()));
    until(|| match home.internet.hosts[0].run("curl", &["-sS", "ftp://127.0.0.1/file"], "") {
        Ok(output) if output.stdout == page(0).as_bytes() => Ok(()),
        Ok(output) => Err(text(&output)),
        Err(error) => Err(error.to_string()),
    });
}

#[test]
fn ftp_passes_where_its_client_connects_to_a_port_that_the_name_has() {
    let test = "ftp_passes_where_its_client_connects_to_a_port_that_the_name_has";
    let Some(mut home) = served(test, &["vsftpd"]) else { return };
    home.add_name("files", 0, &["tcp/21", "tcp/2121"]);
    ftp_server(&mut home);
    let fetch = |options: &[&str]| {
        let all = [options, &["--max-time", "3", "ftp://files.home.example/file"]].concat();
        home.curl(0, &all).output().expect("curl runs")
    };
    // EPSV names a port alone, and the client connects to the address that it has (RFC 2428, 3).
    let extended = fetch(&[]);
    assert_eq!(text(&extended), page(0));
    // PASV names an address, which is the private one. Who uses it reaches nobody; who takes the address
    // that it has does (RFC 1123, 4.1.2.6).
    assert_eq!(text(&fetch(&["--disable-epsv", "--ftp-skip-pasv-ip"])), page(0));
    let obeyed = fetch(&["--disable-epsv", "--no-ftp-skip-pasv-ip"]);
    assert!(!obeyed.status.success() && !text(&obeyed).contains(&page(0)), "{}", text(&obeyed));
    // An active server connects to the client. Names are no way out, so its gateway drops that.
    let before = home.drops("gateway", "not_asked");
    let active = fetch(&["--ftp-port", "-"]);
    assert!(!active.status.success() && !text(&active).contains(&page(0)), "{}", text(&active));
    assert!(home.drops("gateway", "not_asked") > before);
    home.end_captures();
    let mut read = Command::new("tcpdump");
    read.args(["-n", "-r"]).arg(home.captured("public"));
    let seen = text(&read.args(["tcp", "port", "20"]).output().expect("tcpdump runs"));
    assert!(!seen.contains(" IP "), "nothing of it leaves: {seen}");
}

/// The ports from which a client has sent to a port of the pool, as the capture at the router has them.
fn ports_seen(home: &mut Home, to: u16) -> Vec<String> {
    home.end_captures();
    let mut read = Command::new("tcpdump");
    read.args(["-n", "-r"]).arg(home.captured("public")).args(["udp", "dst", "port", &to.to_string()]);
    let seen = text(&read.output().expect("tcpdump runs"));
    let own = format!(" {}.", SmallInternet::initiator_address(0));
    let ports = seen.lines().filter_map(|line| line.split_once(&own)?.1.split(' ').next());
    let mut ports: Vec<String> = ports.map(str::to_owned).collect();
    ports.sort();
    ports.dedup();
    ports
}

#[test]
fn a_connection_of_quic_goes_on_from_another_port_of_its_client() {
    let test = "a_connection_of_quic_goes_on_from_another_port_of_its_client";
    let Some(mut home) = served(test, &["gtlsclient", "gtlsserver", "openssl"]) else { return };
    home.add_name("quic", 0, &["udp/443"]);
    let [key, certificate, folder, got] = ["key", "certificate", "served", "got"].map(|name| home.path(name));
    for made in [&folder, &got] {
        fs::create_dir_all(made).expect("can be made");
    }
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(folder.join("file"), &bytes).expect("can be written");
    let mut made = Command::new("openssl");
    made.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=quic.home.example",
    ]);
    succeeds("openssl", &made.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().expect("runs"));
    let mut server = home.internet.hosts[0].command("gtlsserver", None);
    server.args(["--quiet", "--mime-types-file=/dev/null"]).arg("--htdocs").arg(&folder);
    server.args(["*", "443"]).arg(&key).arg(&certificate).stderr(Stdio::null());
    home.keep(&mut server);
    // The client asks after its port has changed: once it tells the server so, once it does not know itself.
    for rebinding in [&[][..], &["--nat-rebinding"]] {
        until(|| {
            // It is there already in the second turn.
            let _ = fs::remove_file(got.join("file"));
            let mut client = home.client(0, "timeout");
            client.args(["15", "gtlsclient", "--quiet", "--exit-on-all-streams-close"]);
            client.args(["--change-local-addr=300ms", "--delay-stream=1s"]).args(rebinding);
            client.arg("--download").arg(&got);
            client.args(["quic.home.example", "443", "https://quic.home.example/file"]);
            let output = client.output().expect("gtlsclient runs");
            match fs::read(got.join("file")) {
                Ok(read) if read == bytes => Ok(()),
                _ => Err(text(&output)),
            }
        });
    }
    let ports = ports_seen(&mut home, 443);
    assert!(ports.len() >= 4, "each connection had two ports: {ports:?}");
}

/// A terminal with mosh in it: for each number on its input it lets the host's shell multiply it by 7, and
/// says when the product is on the screen.
const TERMINAL: &str = r#"
import fcntl, os, pty, select, struct, sys, termios, time
process, screen = pty.fork()
if process == 0:
    os.execvp('mosh-client', ['mosh-client', sys.argv[1], '60001'])
fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
shown = b''
def see(what):
    global shown
    end = time.monotonic() + 40
    while what not in shown and time.monotonic() < end:
        if select.select([screen], [], [], 0.2)[0]:
            try:
                shown += os.read(screen, 65536)
            except OSError:
                return False
    return what in shown
for line in sys.stdin:
    number = int(line)
    os.write(screen, b'echo is$((%d*7))so\n' % number)
    print('shown' if see(b'is%dso' % (number * 7)) else 'missing: %r' % shown[-2000:], flush=True)
os.write(screen, b'exit\n')
see(b'mosh is exiting')
"#;

#[test]
fn a_shell_of_mosh_goes_on_from_another_port_of_its_client() {
    let test = "a_shell_of_mosh_goes_on_from_another_port_of_its_client";
    let Some(mut home) = served(test, &["mosh-server", "mosh-client"]) else { return };
    home.add_name("shell", 0, &["udp/60001"]);
    let mut server = home.internet.hosts[0].command("mosh-server", None);
    // It ends by itself when nobody is heard for so many seconds.
    server.env("MOSH_SERVER_NETWORK_TMOUT", "90").env("LC_ALL", "C.UTF-8").env("PS1", "$ ");
    server.args(["new", "-p", "60001", "--", "/bin/sh"]).stdin(Stdio::null());
    let said = text(&server.output().expect("mosh-server runs"));
    let key = said.split("MOSH CONNECT 60001 ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let key = key.unwrap_or_else(|| panic!("mosh-server: {said}")).to_owned();
    let asked = home.client(0, "dig").args(["+short", "shell.home.example"]).output();
    let at = text(&asked.expect("dig runs")).trim().to_owned();
    let mut terminal = home.client(0, "python3");
    terminal.env("MOSH_KEY", key).env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    terminal.args(["-u", "-c", TERMINAL, &at]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = terminal.spawn().expect("it starts");
    let mut to = terminal.stdin.take().expect("is piped");
    let mut from = BufReader::new(terminal.stdout.take().expect("is piped"));
    let mut multiply = |number: u32| {
        writeln!(to, "{number}").expect("it listens");
        let mut line = String::new();
        from.read_line(&mut line).expect("it answers");
        line
    };
    assert_eq!(multiply(11), "shown\n");
    // Another port stands in what leaves from now on, and answers to it come in at the client's own.
    let listed = home.internet.initiators[0].run("ss", &["-Huan"], "").expect("ss runs");
    let listed = text(&listed);
    let own = listed.lines().find(|line| line.contains(&format!("{at}:60001")) || line.contains("UNCONN"));
    let own = own.and_then(|line| line.split_whitespace().nth(3)?.rsplit_once(':')?.1.parse::<u16>().ok());
    let own = own.unwrap_or_else(|| panic!("mosh-client has no socket: {listed}"));
    for port in [40_001, 40_002] {
        let rules = format!(
            "table ip other\ndelete table ip other\ntable ip other {{\n chain out {{\n  type filter hook output \
             priority 0\n  udp sport {own} udp dport 60001 udp sport set {port}\n }}\n chain in {{\n  \
             type filter hook prerouting priority -300\n  udp sport 60001 udp dport {port} udp dport set {own}\n \
             }}\n}}\n"
        );
        succeeds("nft", &home.internet.initiators[0].run("nft", &["-f", "-"], &rules).expect("nft runs"));
        assert_eq!(multiply(port), "shown\n");
    }
    drop(to);
    assert!(terminal.wait().expect("it ends").success());
    let ports = ports_seen(&mut home, 60_001);
    assert!(["40001", "40002"].iter().all(|port| ports.iter().any(|seen| seen == port)), "{ports:?}");
}
