//! Any bytes at the name server get a reply that is a message and not much longer, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use naming::dns::{
    Arrival, CookieSecrets, DnsAnswer, DnsMoment, DnsPolicy, DnsTransport, NameServer, Zone, ZoneDescription,
};
use naming::limits::MOST_AMPLIFICATION;
use std::sync::{LazyLock, Mutex};

const ZONE: &str = r#"
zone = "home.example"
name_servers = [{ name = "ns1", addresses = ["203.0.113.1"] }]
names = [{ name = "tv", responder = 2, services = ["tcp/22"], ipv4 = "per-initiator" }]
records = [{ kind = "TXT", name = "@", text = "hello" }]
"#;

static SERVER: LazyLock<Mutex<NameServer>> = LazyLock::new(|| {
    let description: ZoneDescription = toml::from_str(ZONE).expect("a description");
    let policy = DnsPolicy { replies_per_second: 0, ..DnsPolicy::default() };
    let secrets = CookieSecrets { current: [7; 16], previous: None };
    Mutex::new(NameServer::new(Zone::new(&description).expect("a zone"), policy, secrets))
});

fuzz_target!(|bytes: &[u8]| {
    let mut server = SERVER.lock().expect("no panic");
    let from = ([192, 0, 2, 1], 53).into();
    let at = DnsMoment { now: 0, unix: 1_800_000_000 };
    let arrival = Arrival { bytes, from, transport: DnsTransport::Udp, at, under_load: false };
    let mut out = Vec::new();
    match server.answer(&arrival, &mut out) {
        DnsAnswer::Drop(_) => return,
        DnsAnswer::Reply => {}
        DnsAnswer::Hold(number, _) => {
            server.resume(number, Ok([203, 0, 113, 5].into()), &mut out).expect("it waits");
        }
    }
    assert!(out.len() <= MOST_AMPLIFICATION * bytes.len());
    assert_eq!(out[..2], bytes[..2]);
    assert!(out[2] & 0x80 != 0);
});
