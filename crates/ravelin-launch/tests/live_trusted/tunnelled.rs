//! A tunnel beside a confined core: a process of its own has the keys and the datagrams, and the core has
//! neither.

use super::upgraded::{UPGRADES, numbered, signal};
use super::{A, B, LIMIT, Trusted, built, status};
use rig::Namespace;
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// What comes from the host goes to peer 1, and the other way round, but for datagrams to port 9.
const PROGRAM: &str = "import std.net.{ethernet, ipv4, udp}
reason other \"nothing goes there\"
start decoder frame(eth: ethernet) {
    match eth.type {
        0x0800 => packet
        else => drop other
    }
}
decoder packet(ip: ipv4) {
    if ip.frag != 0 { drop other }
    match ip.proto {
        17 => datagram
        6 => across
        else => drop other
    }
}
decoder datagram(header: udp) {
    match header.dst {
        9 => drop other
        else => across
    }
}
stage across() {
    match in_port {
        1 => to_peer
        else => to_host
    }
}
stage to_peer() requires eth {
    set eth.dst = 02:52:56:00:00:01
    send 2
}
stage to_host() requires eth {
    if eth.src != 02:52:56:00:00:01 || eth.dst != 02:52:56:00:00:00 { drop other }
    set eth.src = 02:00:00:00:00:99
    set eth.dst = HOST
    send 1
}
";

/// Makes a key in a folder; its public half.
pub(crate) fn new_key(folder: &Path, name: &str) -> String {
    let mut command = Command::new(built("ravelin"));
    let output = command.args(["naming", "key", "new"]).arg(folder.join(name)).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The file of a gateway of one host and one peer, and its program.
fn gateway(folder: &Path, host: &str, (listen, peer): (u16, u16), key: &str, head: &str) -> String {
    let last = if host == "a" { 1 } else { 2 };
    let program = PROGRAM.replace("HOST", &format!("02:00:00:00:00:0{last}"));
    fs::write(folder.join(format!("{host}.rav")), program).expect("written");
    format!(
        "program = \"{host}.rav\"\ncontrol = \"{}\"\n{head}[[port]]\ninterface = \"to-{host}\"\n\
         [[port]]\nkind = \"tunnel\"\nlisten = \"127.0.0.1:{listen}\"\nkey = \"{host}.key\"\n\
         [[port.peer]]\nname = \"other\"\nnumber = 1\nkey = \"{key}\"\nendpoint = \"127.0.0.1:{peer}\"\nkeepalive = 1\n",
        folder.join(if host == "a" { "control.sock" } else { "b.sock" }).display()
    )
}

/// A gateway of one process, which ends with this.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A confined gateway of host A, and one of one process of host B, which has the other end of the tunnel.
fn tunnelled(test: &str, arguments: &[&str], head: &str) -> Option<(Trusted, Other)> {
    let arguments = [&["--trusted"], arguments].concat();
    let trusted = Trusted::by(test, built("ravelin"), &arguments, "", |folder| {
        let [a, b] = ["a.key", "b.key"].map(|name| new_key(folder, name));
        fs::write(folder.join("gateway.toml"), gateway(folder, "a", (5001, 5002), &b, head))
            .expect("written");
        fs::write(folder.join("b.toml"), gateway(folder, "b", (5002, 5001), &a, "")).expect("written");
    })?;
    trusted.gateway.links().expect("links").up("lo").expect("it is on");
    let mut other = trusted.gateway.command(built("ravelin"), None);
    other.args(["serve", "--one-process"]).arg(trusted.folder.path().join("b.toml"));
    let other = Other(other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
    for (host, address) in [(&trusted.a, B), (&trusted.b, A)] {
        let neighbour =
            ["neighbour", "replace", &address.to_string(), "lladdr", "02:00:00:00:00:99", "dev", "eth"];
        assert!(host.run("ip", &neighbour, "").expect("it runs").status.success());
        // Longer packets do not go into the tunnel.
        assert!(
            host.run("ip", &["link", "set", "eth", "mtu", "1400"], "").expect("it runs").status.success()
        );
    }
    trusted.hears("core: program 2 runs");
    Some((trusted, other))
}

/// A stream of TCP from host to host comes as it was sent.
fn stream_arrives(trusted: &Trusted) {
    let sent: Vec<u8> = (0..4_000_000u32).map(|at| (at / 7) as u8).collect();
    let listener =
        trusted.b.inside(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 80))).expect("in the namespace");
    let mut stream = trusted.a.inside(|| TcpStream::connect((B, 80))).expect("it is there");
    stream.set_write_timeout(Some(LIMIT)).expect("a time");
    let (mut other_end, _) = listener.accept().expect("it has come");
    other_end.set_read_timeout(Some(LIMIT)).expect("a time");
    let came = thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let mut came = Vec::new();
            other_end.read_to_end(&mut came).expect("read");
            came
        });
        stream.write_all(&sent).expect("written");
        drop(stream);
        receives.join().expect("it ends")
    });
    assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
}

/// Datagrams that come together, and are handed on as few, come as they were sent.
fn burst_arrives(trusted: &Trusted) {
    let socket = |host: &Namespace, address| host.inside(|| UdpSocket::bind(address)).expect("a socket");
    let (from, to) = (socket(&trusted.a, (A, 0)), socket(&trusted.b, (B, 7)));
    assert_eq!(trusted.passes_by(&from, &to), 0);
    to.set_nonblocking(false).expect("so");
    to.set_read_timeout(Some(LIMIT)).expect("a time");
    let mut bytes = [0; 1000];
    for number in 0..64u8 {
        from.send_to(&[number; 1000], (B, 7)).expect("sent");
    }
    let mut numbers = 0..64;
    while let Some(number) = numbers.next() {
        let length = to.recv(&mut bytes).expect("it comes");
        // Of what was sent before, one may still come.
        if length != bytes.len() {
            numbers = number..64;
            continue;
        }
        assert_eq!(bytes, [number; 1000]);
    }
}

#[test]
fn a_tunnel_has_a_process_of_its_own_and_carries_packets_whatever_dies() {
    let test = "a_tunnel_has_a_process_of_its_own_and_carries_packets_whatever_dies";
    for (arguments, head) in [(&[][..], ""), (&["--native"], "workers = 2\nstate = \"per-worker\"\n")] {
        let Some((trusted, _other)) = tunnelled(test, arguments, head) else { return };
        assert_eq!(trusted.passes(), 0);
        stream_arrives(&trusted);
        burst_arrives(&trusted);
        let tunnel = trusted.process("ravelin-tunnel");
        assert_eq!(status(tunnel, "CapEff").trim_matches('0'), "");
        assert_eq!(
            (status(tunnel, "NoNewPrivs"), status(tunnel, "Seccomp")),
            ("1".to_owned(), "2".to_owned())
        );
        assert!(status(tunnel, "Uid").starts_with("65534"));
        let (sent, came) = numbered(&trusted, || {
            for _ in 0..UPGRADES {
                signal(&trusted, Signal::USR2);
                trusted.hears("core: another core runs, which took over after ");
            }
        });
        assert!(sent > 0);
        assert!(came.iter().copied().eq(0..sent), "{} of {sent} came", came.len());
        assert_eq!(trusted.process("ravelin-tunnel"), tunnel, "no core is its own");
        trusted.kill("ravelin-core");
        trusted.hears("core was ended by signal 9");
        trusted.hears("core: program 2 runs");
        assert_eq!(trusted.passes(), 0);
        trusted.kill("ravelin-tunnel");
        trusted.hears("port 2: tunnel was ended by signal 9");
        assert_eq!(trusted.passes(), 0);
        assert_ne!(trusted.process("ravelin-tunnel"), tunnel);
        stream_arrives(&trusted);
    }
}
