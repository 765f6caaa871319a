//! The name server as `dig` sees it, by UDP and TCP on the loopback interface.

use crate::{policy, server};
use naming::dns::{Arrival, DnsAnswer, DnsMoment, DnsTransport, NameServer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Shared = Arc<Mutex<NameServer>>;

/// What the server says to a message; a query that needs a promise gets 203.0.113.77.
fn say(server: &Shared, bytes: &[u8], from: SocketAddr, transport: DnsTransport) -> Option<Vec<u8>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let at = DnsMoment { now: since.as_nanos() as u64, unix: since.as_secs() as u32 };
    let mut out = Vec::new();
    let mut server = server.lock().expect("no panic");
    match server.answer(&Arrival { bytes, from, transport, at, under_load: false }, &mut out) {
        DnsAnswer::Drop(_) => return None,
        DnsAnswer::Reply => {}
        DnsAnswer::Hold(number, _) => {
            server.resume(number, Ok([203, 0, 113, 77].into()), &mut out)?;
        }
    }
    Some(out)
}

fn serve_tcp(server: &Shared, mut stream: TcpStream) -> std::io::Result<()> {
    let from = stream.peer_addr()?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut bytes)?;
        if let Some(out) = say(server, &bytes, from, DnsTransport::Tcp) {
            stream.write_all(&[&(out.len() as u16).to_be_bytes()[..], &out].concat())?;
        }
    }
}

/// A port at which the server answers by UDP and TCP until the test ends.
fn serve(server: NameServer) -> u16 {
    let server = Arc::new(Mutex::new(server));
    let (udp, tcp) = std::iter::repeat_with(|| {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let tcp = TcpListener::bind(udp.local_addr().expect("bound"));
        tcp.ok().map(|tcp| (udp, tcp))
    })
    .take(100)
    .flatten()
    .next()
    .expect("a port that is free for both");
    let port = udp.local_addr().expect("bound").port();
    let by_udp = Arc::clone(&server);
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok((length, from)) = udp.recv_from(&mut bytes) {
            if let Some(out) = say(&by_udp, &bytes[..length], from, DnsTransport::Udp) {
                udp.send_to(&out, from).expect("loopback sends");
            }
        }
    });
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            // The end of a connection is an error of reading.
            let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
            let _ = serve_tcp(&server, stream);
        }
    });
    port
}

fn dig(port: u16, words: &str) -> String {
    let output = Command::new("dig")
        .args(["@127.0.0.1", "-p", &port.to_string(), "+tries=3", "+timeout=10"])
        .args(words.split(' '))
        .output()
        .expect("dig runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn dig_understands_every_reply() {
    if Command::new("dig").arg("-v").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "dig is not installed");
        eprintln!("not run, since dig is not installed (`cargo xtask test --only packages`)");
        return;
    }
    let port = serve(server(policy()));
    let short = [
        ("nas.home.example A", "203.0.113.9\n"),
        ("NAS.Home.Example AAAA", "2001:db8::a\n"),
        ("tv.home.example A", "203.0.113.77\n"),
        ("home.example TXT", "\"hello\"\n"),
        ("home.example NS", "ns1.home.example.\nns.other.example.\n"),
        ("nas.home.example HTTPS", "1 . alpn=\"h2\" port=8443\n"),
        ("_dns.resolver.home.example SVCB", "1 www.home.example. alpn=\"dot\"\n"),
        ("nas.home.example ANY +notcp", "\"RFC8482\" \"\"\n"),
        ("home.example SOA", "ns1.home.example. hostmaster.home.example. 7 86400 7200 3600000 30\n"),
    ];
    for (words, wanted) in short {
        for transport in ["+notcp", "+tcp", "+noedns +nocookie"] {
            assert_eq!(dig(port, &format!("+short {words} {transport}")), wanted, "{words} {transport}");
        }
    }
    let long = [
        ("nope.home.example A", "status: NXDOMAIN"),
        ("nope.home.example A", "home.example.\t\t30\tIN\tSOA"),
        ("six.home.example A", "status: NOERROR"),
        ("six.home.example A", "AUTHORITY: 1"),
        ("home.example NS", "ADDITIONAL: 3"),
        ("elsewhere.example A", "status: REFUSED"),
        ("version.bind TXT CH", "status: REFUSED"),
        ("home.example AXFR", "Transfer failed"),
        ("nas.home.example A +ednsopt=10:00", "status: FORMERR"),
        ("nas.home.example A +edns=7 +noednsneg", "status: BADVERS"),
        ("nas.home.example A +opcode=NOTIFY", "status: NOTIMP"),
        ("tv.home.example A +subnet=198.51.100.0/24", "CLIENT-SUBNET: 198.51.100.0/24/24"),
        ("nas.home.example A +subnet=198.51.100.0/24", "CLIENT-SUBNET: 198.51.100.0/24/0"),
        ("nas.home.example A +subnet=0", "status: NOERROR"),
        ("nas.home.example A +cookie", "(good)"),
        ("nas.home.example A +norec", "flags: qr aa;"),
        ("nas.home.example A +header-only +cookie", "status: NOERROR"),
    ];
    for (words, wanted) in long {
        let said = dig(port, words);
        assert!(said.contains(wanted), "{words} does not say `{wanted}`:\n{said}");
        assert!(!said.contains("WARNING: Message"), "{words}:\n{said}");
    }
}
