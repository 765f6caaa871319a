//! Many questions for names: what one party takes of the addresses, in simulated time.

use crate::wire::{Asked, asked, edns};
use crate::{SECRETS, policy, zone};
use naming::dns::{Arrival, DnsAnswer, DnsMoment, DnsTransport, NameServer};
use naming::limits::SECOND;
use naming::{
    AddressPool, Admission, BindingKey, FirstPacket, Promise, Responder, Service, SetUpError, Waypoint,
};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tables::generate::Random;

const HTTPS: Service = Service { protocol: 6, port: 443 };
const NAMES: u64 = 200;
const SUBNET: u16 = 8;

/// A name server and its waypoint, with so many addresses for clients that are not known.
struct Site {
    server: NameServer,
    waypoint: Waypoint,
}

/// What a question comes to.
#[derive(Debug, PartialEq)]
enum Outcome {
    Promised(Promise, Responder),
    Short(SetUpError),
    /// Nothing is promised: an error, a question to come again, or silence.
    Nothing,
}

impl Site {
    fn new(addresses: u32) -> Site {
        let mut text = "zone = \"home.example\"\n[[name_servers]]\nname = \"ns.other.example.\"\n".to_owned();
        for number in 0..NAMES {
            write!(text, "[[names]]\nname = \"h{number}\"\nresponder = {number}\nservices = [\"tcp/443\"]\n")
                .expect("a string");
        }
        let unknown = (0..addresses).map(|number| Ipv4Addr::from_bits(0xcb00_7100 | number)).collect();
        let waypoint = Waypoint::new(AddressPool { known: Vec::new(), unknown }).expect("a good pool");
        Site { server: NameServer::new(zone(&text), policy(), SECRETS), waypoint }
    }

    fn asks(&mut self, asked: &Asked, from: IpAddr, transport: DnsTransport, now: u64) -> Outcome {
        let (bytes, from) = (asked.bytes(), SocketAddr::new(from, 4_000));
        let at = DnsMoment { now, unix: 1_800_000_000 + (now / SECOND) as u32 };
        let mut out = Vec::new();
        let arrival = Arrival { bytes: &bytes, from, transport, at, under_load: false };
        let DnsAnswer::Hold(number, ask) = self.server.answer(&arrival, &mut out) else {
            return Outcome::Nothing;
        };
        let said = self.waypoint.set_up(&ask, now);
        let address = said.as_ref().map(|promise| promise.address).map_err(|short| *short);
        self.server.resume(number, address, &mut out);
        match said {
            Ok(promise) => Outcome::Promised(promise, ask.responder),
            Err(short) => Outcome::Short(short),
        }
    }

    /// A client that uses what it was told reaches whom it wanted.
    fn reaches(&mut self, outcome: &Outcome, initiator: Ipv4Addr, now: u64) -> bool {
        let Outcome::Promised(promise, responder) = outcome else { return false };
        let key = BindingKey { initiator, address: promise.address, service: HTTPS };
        let admission = self.waypoint.admit(&FirstPacket { key, begins: true }, now);
        self.waypoint.prove(&key);
        admission == Admission::Admitted(*responder)
    }
}

fn name(number: u64) -> Asked {
    asked(&format!("h{number}.home.example."), 1)
}

/// The same, told for some network of clients.
fn for_network(number: u64, random: &mut Random) -> Asked {
    let [a, b, c, _] = (random.word() as u32 | 1 << 24).to_be_bytes();
    Asked { edns: edns(&[(SUBNET, &[0, 1, 24, 0, a, b, c])]), ..name(number) }
}

/// X8 of the test plan: a flood from forged sources, half of it noise, for three times as long as a promise
/// lasts. Resolvers that prove themselves ask for their clients meanwhile.
#[test]
fn a_flood_of_forged_questions_leaves_addresses_to_resolvers_that_prove_themselves() {
    let (mut site, mut random) = (Site::new(64), Random::new(8));
    let (mut tries, mut reached, mut promised) = (0, 0, 0);
    for step in 0..60_000_u64 {
        let now = step * SECOND / 300;
        let forged = IpAddr::V4(Ipv4Addr::from_bits(random.word() as u32));
        let question = match random.below(4) {
            0 | 1 => asked(&format!("x{}.home.example.", random.word()), 1),
            2 => name(random.below(NAMES)),
            _ => for_network(random.below(NAMES), &mut random),
        };
        let outcome = site.asks(&question, forged, DnsTransport::Udp, now);
        promised += u32::from(matches!(outcome, Outcome::Promised(..)));
        // Two clients a second, of twenty names.
        if step % 150 == 0 && now > 5 * SECOND {
            let resolver = Ipv4Addr::from_bits(0x0a00_0035 | (random.below(50) as u32) << 8);
            let outcome = site.asks(&name(random.below(20)), resolver.into(), DnsTransport::Tcp, now);
            let initiator = Ipv4Addr::from_bits(0xac10_0000 | (step as u32 / 150 * 67));
            tries += 1;
            reached += u32::from(site.reaches(&outcome, initiator, now + SECOND / 20));
        }
    }
    assert!(promised > 1_000, "the flood gets something as long as there is enough: {promised}");
    assert!(reached * 100 >= tries * 95, "only {reached} of {tries} reach what they asked for");
}

#[test]
fn one_network_of_resolvers_leaves_addresses_to_others_whatever_it_asks() {
    let (mut site, mut random) = (Site::new(16), Random::new(9));
    let own = IpAddr::V4([192, 0, 2, 53].into());
    let mut short = 0;
    for _ in 0..5_000 {
        let question = for_network(random.below(NAMES), &mut random);
        short +=
            u32::from(site.asks(&question, own, DnsTransport::Tcp, 0) == Outcome::Short(SetUpError::Share));
    }
    assert!(short > 1_000, "only {short} questions of it were too many");
    let mut others = 0;
    for other in 0..4 {
        let resolver = IpAddr::V4([198, 51, 100 + other, 53].into());
        let outcome = site.asks(&name(NAMES - 1 - u64::from(other)), resolver, DnsTransport::Tcp, 1);
        others += u32::from(matches!(outcome, Outcome::Promised(..)));
    }
    assert_eq!(others, 4, "a quarter of the addresses is for others");
}

#[test]
fn who_asks_for_a_name_that_is_promised_takes_nothing_more() {
    let mut site = Site::new(2);
    let resolver = |last| IpAddr::V4([192, 0, last, 53].into());
    let first = site.asks(&name(1), resolver(1), DnsTransport::Tcp, 0);
    let Outcome::Promised(first, _) = first else { panic!("{first:?}") };
    let mut random = Random::new(3);
    for last in 0..200 {
        // By networks of clients, by UDP without proof: all of them may use what is there.
        let outcome = site.asks(&for_network(1, &mut random), resolver(last), DnsTransport::Udp, SECOND);
        let Outcome::Promised(again, Responder(1)) = outcome else { panic!("{last} {outcome:?}") };
        assert_eq!(Promise { renews: None, ..again }, first, "{last}");
    }
    // Half of the addresses are promised, so who has not proved itself gets no other one, nor what ends soon.
    let udp = DnsTransport::Udp;
    assert_eq!(site.asks(&name(2), resolver(2), udp, SECOND), Outcome::Short(SetUpError::Unproved));
    assert_eq!(site.asks(&name(1), resolver(2), udp, 33 * SECOND), Outcome::Short(SetUpError::Unproved));
    assert!(matches!(site.asks(&name(2), resolver(2), DnsTransport::Tcp, SECOND), Outcome::Promised(..)));
}

#[test]
fn a_host_that_many_networks_of_clients_ask_for_is_promised_to_all() {
    let (mut site, mut random) = (Site::new(16), Random::new(4));
    let own = IpAddr::V4([192, 0, 2, 53].into());
    let mut addresses = Vec::new();
    for _ in 0..500 {
        let outcome = site.asks(&for_network(1, &mut random), own, DnsTransport::Tcp, 0);
        let Outcome::Promised(promise, _) = outcome else { panic!("{outcome:?}") };
        addresses.push(promise.address);
    }
    addresses.dedup();
    assert_eq!(addresses.len(), 1, "one address is enough");
}
