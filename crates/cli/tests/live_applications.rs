//! Applications that ask more of a network than one connection: WireGuard, QUIC and mosh over a name whose
//! client's port changes, and FTP in its three ways, of which one lets a host connect to its client.

mod net;

use net::script::Script;
use net::small_internet::{Home, Plan, page, succeeds, until};
use net::{Running, text};
use rig::{Namespace, SmallInternet};
use std::fs;
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
    // An active server connects to the client. The gateway lets it, and the waypoint drops it: the name does
    // not have its port.
    let before = home.drops("waypoint", "not_its_binding");
    let active = fetch(&["--ftp-port", "-"]);
    assert!(!active.status.success() && !text(&active).contains(&page(0)), "{}", text(&active));
    assert!(home.drops("waypoint", "not_its_binding") > before);
    assert_eq!(segments_seen(&mut home, "tcp port 20"), Vec::<String>::new());
}

/// The lines of a capture at the router that fit a filter. It has segments to port 21, so it was readable.
fn segments_seen(home: &mut Home, filter: &str) -> Vec<String> {
    home.end_captures();
    let [to_ftp, fit] = ["tcp dst port 21", filter].map(|filter| {
        let mut read = Command::new("tcpdump");
        read.args(["-n", "-r"]).arg(home.captured("public")).args(filter.split(' '));
        let output = read.output().expect("tcpdump runs");
        succeeds("tcpdump", &output);
        String::from_utf8(output.stdout).expect("it is text").lines().map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(!to_ftp.is_empty(), "the client has sent to the port of FTP");
    fit
}

/// The addresses to which a client has sent by this port of its host.
fn asked_addresses(home: &mut Home, client: &str, port: u16) -> Vec<String> {
    let sent = segments_seen(home, &format!("tcp dst port {port} and src host {client}"));
    let to = |line: &String| Some(line.split_once(" > ")?.1.split_once(&format!(".{port}: "))?.0.to_owned());
    let mut addresses: Vec<String> = sent.iter().filter_map(to).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

#[test]
fn active_ftp_passes_where_the_name_has_its_port() {
    let test = "active_ftp_passes_where_the_name_has_its_port";
    let Some(mut home) = served(test, &["vsftpd", "python3"]) else { return };
    home.add_name("files", 0, &["tcp/20", "tcp/21"]);
    ftp_server(&mut home);
    // By EPRT (RFC 2428, 2), and by PORT (RFC 959, 4.1.2).
    for options in [&[][..], &["--disable-eprt"]] {
        let all = [&["--max-time", "5", "--ftp-port", "-"], options, &["ftp://files.home.example/file"]];
        assert_eq!(text(&home.curl(0, &all.concat()).output().expect("curl runs")), page(0), "{options:?}");
    }
    // Another client, which fetches several files by one connection for commands.
    let script = "import ftplib\nftp = ftplib.FTP('files.home.example', timeout=5)\nftp.login()\n\
                  ftp.set_pasv(False)\nfor turn in range(5):\n \
                  ftp.retrbinary('RETR file', lambda part: print(part.decode(), end=''))\nftp.quit()\n";
    let output = home.client(0, "python3").args(["-c", script]).output().expect("python3 runs");
    assert_eq!(text(&output), page(0).repeat(5));
    // The client sees the address by which it has reached port 21, whichever way a connection begins.
    let own = SmallInternet::initiator_address(0);
    let asked = asked_addresses(&mut home, &own.to_string(), 21);
    let seen = segments_seen(&mut home, "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn and tcp port 20");
    assert!(seen.len() >= 7, "{seen:?}");
    let is_from_asked = |line: &String| asked.iter().any(|at| line.contains(&format!("IP {at}.20 > {own}.")));
    assert!(asked.len() <= 3 && seen.iter().all(is_from_asked), "{asked:?}: {seen:?}");
}

/// A host that somebody has taken over, with its own server of FTP: for each line of its input, port,
/// address, port, and seconds of patience, it says whether a connection from the one to the other comes
/// about. By `hear` it waits for what the client of FTP says, `end` ends its connection, and `reset` all
/// others.
const TAKEN_OVER: &str = r#"
import socket, struct, sys
def bound(port):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(('', port))
    return one
server = bound(21)
server.listen()
print('listens', flush=True)
client = server.accept()[0]
print('accepted', flush=True)
kept = []
for line in sys.stdin:
    words = line.split()
    if words == ['hear']:
        client.recv(1000)
        print('heard', flush=True)
    elif words == ['reset']:
        for one in kept:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            one.close()
        print('reset', flush=True)
    elif words == ['end']:
        client.close()
        print('ended', flush=True)
    else:
        one = bound(int(words[0]))
        one.settimeout(float(words[3]))
        try:
            one.connect((words[1], int(words[2])))
            kept.append(one)
            print('connected', flush=True)
        except OSError as error:
            one.close()
            print('refused', flush=True)
"#;

/// A client of FTP that says something whenever a line comes, and takes every connection.
const FTP_CLIENT: &str = r#"
import socket, sys
listening = [socket.create_server(('', port)) for port in range(5000, 5010)]
if len(sys.argv) > 1:
    commands = socket.create_connection((sys.argv[1], 21), 5)
print('ready', flush=True)
for line in sys.stdin:
    commands.sendall(b'PORT\r\n')
    print('said', flush=True)
"#;

#[test]
fn a_host_with_active_ftp_connects_to_its_client_alone() {
    let test = "a_host_with_active_ftp_connects_to_its_client_alone";
    let programs = ["dnsmasq", "python3"];
    let plan = Plan { initiators: 2, programs: &programs, ..PLAN };
    let Some(mut home) = Home::new(test, &plan, |_, file| file) else { return };
    home.capture_at_router("public");
    home.serve("waypoint");
    home.serve("gateway");
    home.dnsmasq();
    home.add_name("files", 0, &["tcp/20", "tcp/21"]);
    let mut host = home.internet.hosts[0].command("python3", None);
    let mut host = Script::start(host.args(["-u", "-c", TAKEN_OVER]));
    assert_eq!(host.line(), "listens");
    let mut client = Script::start(home.client(0, "python3").args(["-c", FTP_CLIENT, "files.home.example"]));
    let mut stranger = Script::start(home.client(1, "python3").args(["-c", FTP_CLIENT]));
    assert_eq!(client.line(), "ready");
    assert_eq!(stranger.line(), "ready");
    assert_eq!(host.line(), "accepted");
    let [own, other] = [0, 1].map(SmallInternet::initiator_address);
    // A SYN may be lost and come again; of what is dropped, the counter tells.
    let connects = |host: &mut Script, port: u16| {
        assert_eq!(host.ask(&format!("20 {own} {port} 20")), "connected", "{port}");
    };
    let is_dropped = |home: &Home, host: &mut Script, reason: &str, tried: String| {
        let before = home.drops("gateway", reason);
        assert_eq!(host.ask(&format!("{tried} 0.9")), "refused", "{tried}");
        assert!(home.drops("gateway", reason) > before, "{tried}: {reason}");
    };
    // Nothing has been said yet.
    is_dropped(&home, &mut host, "host_begins", format!("20 {own} 5000"));
    assert_eq!(client.ask("say"), "said");
    assert_eq!(host.ask("hear"), "heard");
    is_dropped(&home, &mut host, "host_begins", format!("20 {other} 5000"));
    is_dropped(&home, &mut host, "host_begins", format!("22 {own} 5000"));
    connects(&mut host, 5001);
    connects(&mut host, 5002);
    // So many, and no more before it has said something again.
    is_dropped(&home, &mut host, "ftp_opens_too_many", format!("20 {own} 5003"));
    assert_eq!(client.ask("say"), "said");
    assert_eq!(host.ask("hear"), "heard");
    connects(&mut host, 5003);
    // The connection for commands ends, and with it all that it has let through.
    assert_eq!(host.ask("end"), "ended");
    is_dropped(&home, &mut host, "host_begins", format!("20 {own} 5004"));
    // What was open before does not open again.
    assert_eq!(host.ask("reset"), "reset");
    is_dropped(&home, &mut host, "host_begins", format!("20 {own} 5001"));
    let outward = "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn and dst net 203.0.113.0/24";
    let seen = segments_seen(&mut home, outward);
    let ports = ["5001", "5002", "5003"];
    assert!(seen.len() >= 3, "{seen:?}");
    let allowed = |line: &String| ports.iter().any(|port| line.contains(&format!(".20 > {own}.{port}:")));
    assert!(seen.iter().all(allowed), "{seen:?}");
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
    let mut terminal = Script::start(terminal.args(["-u", "-c", TERMINAL, &at]));
    assert_eq!(terminal.ask("11"), "shown");
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
        assert_eq!(terminal.ask(&port.to_string()), "shown");
    }
    assert!(terminal.ends());
    let ports = ports_seen(&mut home, 60_001);
    assert!(["40001", "40002"].iter().all(|port| ports.iter().any(|seen| seen == port)), "{ports:?}");
}
