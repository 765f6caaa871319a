//! A name server beside a slow twin, beside `dig`, and under damaged and hostile queries.

mod dig;
mod edns;
mod flood;
mod held;
mod hostile;
mod questions;
mod twin;
mod wire;
mod zones;

use naming::dns::{
    Arrival, CookieSecrets, DnsAnswer, DnsMoment, DnsPolicy, DnsTransport, NameServer, Zone, ZoneDescription,
};
use naming::limits::SECOND;
use std::net::SocketAddr;
use wire::{Asked, Said};

const SECRETS: CookieSecrets = CookieSecrets { current: [7; 16], previous: Some([9; 16]) };

/// A policy without a limit of replies.
fn policy() -> DnsPolicy {
    DnsPolicy { replies_per_second: 0, ..DnsPolicy::default() }
}

fn zone(text: &str) -> Zone {
    let description: ZoneDescription = toml::from_str(text).expect("a description");
    Zone::new(&description).expect("a zone")
}

fn server(policy: DnsPolicy) -> NameServer {
    NameServer::new(zone(twin::ZONE), policy, SECRETS)
}

fn from(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn moment(seconds: u32) -> DnsMoment {
    DnsMoment { now: u64::from(seconds) * SECOND, unix: 1_800_000_000 + seconds }
}

fn by_udp(bytes: &[u8]) -> Arrival<'_> {
    let from = from("192.0.2.53:4000");
    Arrival { bytes, from, transport: DnsTransport::Udp, at: moment(0), under_load: false }
}

fn by_tcp(bytes: &[u8]) -> Arrival<'_> {
    Arrival { transport: DnsTransport::Tcp, ..by_udp(bytes) }
}

/// The reply to a query that must have one.
fn reply(server: &mut NameServer, arrival: &Arrival<'_>) -> Said {
    let mut out = Vec::new();
    let answer = server.answer(arrival, &mut out);
    assert!(matches!(answer, DnsAnswer::Reply), "{answer:?}");
    wire::read(&out).expect("a whole message")
}

/// The reply by TCP, where nothing is cut.
fn whole(server: &mut NameServer, asked: &Asked) -> Said {
    reply(server, &by_tcp(&asked.bytes()))
}
