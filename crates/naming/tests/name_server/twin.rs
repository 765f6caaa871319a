//! What a name server should say: a plain list of the records of the zone of these tests, searched from its
//! beginning for each question.

use crate::wire::{Asked, Record, push_name};

/// What a question comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A code, whether the server speaks for the zone, the answers in order, and whether the SOA is beside
    /// them.
    Reply(u16, bool, Vec<Record>, bool),
    /// The host whose waypoint has to be asked.
    Ask(u32),
}

/// The zone that [`records`] writes out.
pub(crate) const ZONE: &str = r#"
zone = "home.example"
serial = 7
shared_address = "203.0.113.9"
negative_ttl = 30

[[name_servers]]
name = "ns1"
addresses = ["203.0.113.1", "2001:db8::1"]

[[name_servers]]
name = "ns.other.example."

[[names]]
name = "nas"
responder = 1
services = ["tcp/22", "tcp/443", "icmp"]
ipv6 = "2001:db8::a"
https = { alpn = ["h2"], port = 8443 }

[[names]]
name = "tv"
responder = 2
services = ["tcp/22", "udp/53"]
ipv6 = "2001:db8::b"

[[names]]
name = "cam.garden"
responder = 3
services = ["tcp/80"]
ipv4 = { dedicated = "203.0.113.33" }

[[names]]
name = "six"
responder = 4
services = ["tcp/80"]
ipv6 = "2001:db8::c"
ipv4 = "none"

[[names]]
name = "old"
responder = 5
services = ["tcp/8080"]
ipv4 = "per-initiator"

[[records]]
kind = "TXT"
name = "@"
text = "hello"

[[records]]
kind = "A"
name = "www"
address = "198.51.100.1"

[[records]]
kind = "A"
name = "www"
address = "198.51.100.2"

[[records]]
kind = "SVCB"
name = "_dns.resolver"
priority = 1
target = "www"
alpn = ["dot"]
"#;

/// Names whose address has to be asked for, with their hosts.
const ASKED: [(&str, u32); 2] = [("tv.home.example.", 2), ("old.home.example.", 5)];

fn name(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    push_name(&mut out, text);
    out
}

/// The SOA record with this serial number and this time to live.
pub(crate) fn soa(serial: u32, ttl: u32) -> Record {
    let mut data = [name("ns1.home.example."), name("hostmaster.home.example.")].concat();
    for number in [serial, 86_400, 7_200, 3_600_000, 30] {
        data.extend(number.to_be_bytes());
    }
    Record { name: "home.example.".to_owned(), kind: 6, class: 1, ttl, data }
}

fn records() -> Vec<Record> {
    let short = |owner: &str, kind, data: &[u8]| {
        let name = format!("{owner}home.example.");
        Record { name, kind, class: 1, ttl: 300, data: data.to_vec() }
    };
    let six = |last: u8| [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    vec![
        soa(7, 300),
        short("", 2, &name("ns1.home.example.")),
        short("", 2, &name("ns.other.example.")),
        short("", 16, b"\x05hello"),
        short("ns1.", 1, &[203, 0, 113, 1]),
        short("ns1.", 28, &six(1)),
        short("nas.", 1, &[203, 0, 113, 9]),
        short("nas.", 28, &six(0xa)),
        short("nas.", 65, b"\0\x01\0\0\x01\0\x03\x02h2\0\x03\0\x02\x20\xfb"),
        short("tv.", 28, &six(0xb)),
        short("cam.garden.", 1, &[203, 0, 113, 33]),
        short("six.", 28, &six(0xc)),
        short("www.", 1, &[198, 51, 100, 1]),
        short("www.", 1, &[198, 51, 100, 2]),
        short(
            "_dns.resolver.",
            64,
            &[&b"\0\x01"[..], &name("www.home.example."), b"\0\x01\0\x04\x03dot"].concat(),
        ),
    ]
}

/// What to say to a well-formed query.
pub(crate) fn expect(asked: &Asked) -> Expected {
    let nothing = |rcode| Expected::Reply(rcode, false, Vec::new(), false);
    if asked.flags & 0x7800 != 0 {
        return nothing(4);
    }
    if asked.edns.as_ref().is_some_and(|edns| edns.version > 0) {
        return nothing(16);
    }
    match asked.kind {
        0 | 41 => return nothing(1),
        251 | 252 => return nothing(5),
        128..=254 => return nothing(4),
        _ => {}
    }
    let wanted = asked.name.to_ascii_lowercase();
    let inside = wanted == "home.example." || wanted.ends_with(".home.example.");
    if asked.class != 1 || !inside {
        return nothing(5);
    }
    let below = format!(".{wanted}");
    let all = records();
    let names = all.iter().map(|record| &record.name[..]).chain(ASKED.map(|(name, _)| name));
    if !names.into_iter().any(|name| name == wanted || name.ends_with(&below)) {
        return Expected::Reply(3, true, Vec::new(), true);
    }
    if asked.kind == 255 {
        let data = b"\x07RFC8482\0".to_vec();
        let one = Record { name: asked.name.clone(), kind: 13, class: 1, ttl: 3_600, data };
        return Expected::Reply(0, true, vec![one], false);
    }
    if let Some((_, responder)) = ASKED.iter().find(|(name, _)| asked.kind == 1 && *name == wanted) {
        return Expected::Ask(*responder);
    }
    let chosen = all.into_iter().filter(|record| record.name == wanted && record.kind == asked.kind);
    // The name of an answer is written as it was asked for.
    let chosen: Vec<_> = chosen.map(|record| Record { name: asked.name.clone(), ..record }).collect();
    let is_empty = chosen.is_empty();
    Expected::Reply(0, true, chosen, is_empty)
}
