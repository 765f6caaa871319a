//! Cookies, networks of clients, and sources that may be forged.

use crate::wire::{self, Asked, asked, edns};
use crate::{Arrival, SECRETS, by_tcp, by_udp, from, moment, policy, reply, server};
use naming::dns::{CookieSecrets, DnsAnswer, DnsPolicy, NameServer, QueryDrop, Unverified};
use naming::{Ask, Initiators};

const COOKIE: u16 = 10;
const SUBNET: u16 = 8;

fn strict() -> DnsPolicy {
    DnsPolicy { unverified: Unverified::ProveFirst, ..policy() }
}

fn held(server: &mut NameServer, arrival: &Arrival<'_>) -> (Ask, wire::Said) {
    let mut out = Vec::new();
    let answer = server.answer(arrival, &mut out);
    let DnsAnswer::Hold(number, ask) = answer else { panic!("{answer:?}") };
    server.resume(number, Ok([203, 0, 113, 5].into()), &mut out).expect("it waits");
    (ask, wire::read(&out).expect("whole"))
}

fn query(options: &[(u16, &[u8])]) -> Vec<u8> {
    Asked { edns: edns(options), ..asked("tv.home.example.", 1) }.bytes()
}

#[test]
fn a_cookie_of_the_published_examples_is_made_and_accepted() {
    // RFC 9018, A.1 and A.2.
    let secret = 0xe5e973e5a6b2a43f48e7dc849e37bfcf_u128.to_be_bytes();
    let mut server = server(strict());
    server.set_secrets(CookieSecrets { current: secret, previous: None });
    let client = 0x2464c4abcf10c957_u64.to_be_bytes();
    let bytes = query(&[(COOKIE, &client)]);
    let at = naming::dns::DnsMoment { now: 0, unix: 1_559_731_985 };
    let arrival = Arrival { from: from("198.51.100.100:9"), at, ..by_udp(&bytes) };
    let said = reply(&mut server, &arrival);
    assert_eq!(said.rcode, 23, "a cookie of ours is wanted first");
    let whole = 0x010000005cf79f111f8130c3eee29480_u128;
    assert_eq!(said.option(COOKIE).map(|cookie| &cookie[8..]), Some(&whole.to_be_bytes()[..]));
}

#[test]
fn a_source_proves_itself_by_cookie_or_tcp_before_a_waypoint_is_asked() {
    let mut server = server(strict());
    let plain = asked("tv.home.example.", 1).bytes();
    let said = reply(&mut server, &by_udp(&plain));
    assert!(said.is_truncated() && said.rcode == 0 && server.held() == 0);
    assert_eq!(said.flags & 0x0480, 0x0400, "authoritative (RFC 1035, 4.1.1): glibc takes others for broken");
    held(&mut server, &by_tcp(&plain));

    let bytes = query(&[(COOKIE, &[5; 8])]);
    let said = reply(&mut server, &by_udp(&bytes));
    let cookie = said.option(COOKIE).expect("a cookie").to_vec();
    assert_eq!((said.rcode, &cookie[..8], cookie.len()), (23, &[5; 8][..], 24));
    let bytes = query(&[(COOKIE, &cookie)]);
    let (_, said) = held(&mut server, &by_udp(&bytes));
    assert_eq!(said.option(COOKIE), Some(&cookie[..]), "a fresh one stays");

    let refused = |server: &mut NameServer, arrival: &Arrival<'_>| reply(server, arrival).rcode == 23;
    assert!(refused(&mut server, &Arrival { from: from("192.0.2.54:4000"), ..by_udp(&bytes) }));
    assert!(refused(&mut server, &Arrival { at: moment(3_601), ..by_udp(&bytes) }));
    let (_, said) = held(&mut server, &Arrival { at: moment(3_600), ..by_udp(&bytes) });
    assert_ne!(said.option(COOKIE), Some(&cookie[..]), "an old one is renewed");
    for at in 0..24 {
        let mut damaged = cookie.clone();
        damaged[at] ^= 1;
        let bytes = query(&[(COOKIE, &damaged)]);
        assert!(refused(&mut server, &by_udp(&bytes)), "byte {at}");
    }
    // The secret before this one counts, the one before that does not.
    server.set_secrets(CookieSecrets { current: [1; 16], previous: Some(SECRETS.current) });
    held(&mut server, &by_udp(&bytes));
    server.set_secrets(CookieSecrets { current: [2; 16], previous: Some([1; 16]) });
    assert!(refused(&mut server, &by_udp(&bytes)));
}

#[test]
fn under_load_and_only_then_an_unverified_source_must_prove_itself() {
    let mut server = server(policy());
    let plain = asked("tv.home.example.", 1).bytes();
    held(&mut server, &by_udp(&plain));
    assert!(reply(&mut server, &Arrival { under_load: true, ..by_udp(&plain) }).is_truncated());
    held(&mut server, &Arrival { under_load: true, ..by_tcp(&plain) });
    // What needs no promise is answered as ever.
    let plain = asked("nas.home.example.", 1).bytes();
    assert_eq!(reply(&mut server, &Arrival { under_load: true, ..by_udp(&plain) }).sections[0].len(), 1);
}

#[test]
fn a_cookie_alone_may_be_asked_for() {
    let mut bytes = query(&[(COOKIE, &[5; 8])]);
    let question = 12.."tv.home.example.".len() + 12 + 1 + 4;
    bytes.drain(question);
    bytes[5] = 0;
    let said = reply(&mut server(policy()), &by_udp(&bytes));
    assert_eq!((said.rcode, said.questions.len()), (0, 0));
    assert_eq!(said.option(COOKIE).map(<[u8]>::len), Some(24));
}

#[test]
fn a_whole_address_is_believed_from_itself_and_from_listed_resolvers_alone() {
    let resolvers = vec![([192, 0, 2, 48].into(), 28), (from("[2001:db8:7::]:0").ip(), 48)];
    let mut server = server(DnsPolicy { resolvers, ..policy() });
    let client = [203, 0, 113, 7];
    let bytes = query(&[(SUBNET, &[&[0, 1, 32, 0], &client[..]].concat())]);
    for (source, is_believed) in [
        ("192.0.2.53:9", true),
        ("192.0.2.63:9", true),
        ("192.0.2.64:9", false),
        ("198.51.100.1:9", false),
        ("203.0.113.7:9", true),
        ("203.0.113.8:9", false),
        ("[2001:db8:7:ff::1]:9", true),
        ("[2001:db8:8::1]:9", false),
    ] {
        let wanted = if is_believed {
            Initiators::Exact(client.into())
        } else {
            Initiators::Prefix(client.into(), 32)
        };
        let arrival = Arrival { from: from(source), ..by_tcp(&bytes) };
        assert_eq!(held(&mut server, &arrival).0.initiators, wanted, "{source}");
        let unproved = Arrival { from: from(source), ..by_udp(&bytes) };
        let (ask, _) = held(&mut server, &unproved);
        assert_eq!(ask.initiators, Initiators::Prefix(client.into(), 32), "{source} by UDP");
        assert!(!ask.is_verified);
    }
}

#[test]
fn the_network_of_a_client_limits_the_promise_and_is_told_back() {
    let mut server = server(DnsPolicy { resolvers: vec![([192, 0, 2, 53].into(), 32)], ..policy() });
    let network = |last: &[u8]| [&[0, 1, 8 * (last.len() as u8 + 1), 0, 198][..], last].concat();
    let cases: [(&[u8], Initiators, Initiators, u8); 5] = [
        (
            &network(&[51, 100]),
            Initiators::Prefix([198, 51, 100, 0].into(), 24),
            Initiators::Prefix([198, 51, 100, 0].into(), 24),
            24,
        ),
        (
            &network(&[51, 100, 7]),
            Initiators::Exact([198, 51, 100, 7].into()),
            Initiators::Prefix([198, 51, 100, 7].into(), 32),
            32,
        ),
        (&[0, 1, 0, 0], Initiators::Any, Initiators::Any, 0),
        (&[0, 0, 0, 0], Initiators::Any, Initiators::Any, 0),
        (&[0, 2, 24, 0, 0x20, 1, 0xd], Initiators::Any, Initiators::Any, 0),
    ];
    for (option, verified, unverified, scope) in cases {
        let bytes = query(&[(SUBNET, option)]);
        let mut told = option.to_vec();
        told[3] = scope;
        for (arrival, wanted) in [(by_tcp(&bytes), verified), (by_udp(&bytes), unverified)] {
            let (ask, said) = held(&mut server, &arrival);
            assert_eq!(ask.initiators, wanted);
            assert_eq!(said.option(SUBNET), Some(&told[..]));
        }
        // Where all get the same, the reply holds for all.
        let fixed = Asked { edns: edns(&[(SUBNET, option)]), ..asked("nas.home.example.", 1) };
        assert_eq!(reply(&mut server, &by_tcp(&fixed.bytes())).option(SUBNET), Some(option));
    }
}

#[test]
fn clients_of_the_intranet_ask_for_themselves() {
    let mut server = server(DnsPolicy { clients: vec![([192, 0, 2, 0].into(), 24)], ..policy() });
    let bytes = asked("tv.home.example.", 1).bytes();
    let (ask, _) = held(&mut server, &by_tcp(&bytes));
    assert_eq!((ask.initiators, ask.is_verified), (Initiators::Exact([192, 0, 2, 53].into()), true));
    let mapped = Arrival { from: from("[::ffff:192.0.2.9]:53"), ..by_tcp(&bytes) };
    assert_eq!(held(&mut server, &mapped).0.initiators, Initiators::Exact([192, 0, 2, 9].into()));
    // By UDP the source may be somebody else's.
    assert!(reply(&mut server, &by_udp(&bytes)).is_truncated());
    let said = reply(&mut server, &by_udp(&query(&[(COOKIE, &[5; 8])])));
    assert_eq!((said.rcode, server.held()), (23, 0));
    let cookie = said.option(COOKIE).expect("a cookie").to_vec();
    let (ask, _) = held(&mut server, &by_udp(&query(&[(COOKIE, &cookie)])));
    assert_eq!((ask.initiators, ask.is_verified), (Initiators::Exact([192, 0, 2, 53].into()), true));
    for other in ["198.51.100.1:53", "[2001:db8::5]:53"] {
        let (ask, _) = held(&mut server, &Arrival { from: from(other), ..by_udp(&bytes) });
        assert_eq!((ask.initiators, ask.resolver), (Initiators::Any, from(other).ip()));
    }
}

#[test]
fn replies_to_one_network_are_limited_and_others_are_not() {
    let mut server = server(DnsPolicy { replies_per_second: 5, ..policy() });
    let mut out = Vec::new();
    let mut count = |server: &mut NameServer, source: &str, name: &str, seconds: u32| {
        let (mut whole, mut cut, mut dropped) = (0, 0, 0);
        for _ in 0..105 {
            let bytes = asked(name, 28).bytes();
            let arrival = Arrival { from: from(source), at: moment(seconds), ..by_udp(&bytes) };
            match server.answer(&arrival, &mut out) {
                DnsAnswer::Reply if wire::read(&out).expect("whole").is_truncated() => cut += 1,
                DnsAnswer::Reply => whole += 1,
                DnsAnswer::Drop(QueryDrop::RateLimited) => dropped += 1,
                other => panic!("{other:?}"),
            }
        }
        (whole, cut, dropped)
    };
    let spent = (5, 50, 50);
    assert_eq!(count(&mut server, "192.0.2.1:53", "nas.home.example.", 1), spent);
    assert_eq!(count(&mut server, "192.0.2.99:53", "nas.home.example.", 1), (0, 52, 53), "one network");
    assert_eq!(count(&mut server, "192.0.3.1:53", "nas.home.example.", 1), spent, "another network");
    assert_eq!(count(&mut server, "192.0.2.1:53", "tv.home.example.", 1), spent, "another name");
    assert_eq!(count(&mut server, "192.0.2.1:53", "a.home.example.", 1), spent, "a name that is not");
    assert_eq!(count(&mut server, "192.0.2.1:53", "b.home.example.", 1).0, 0, "any name that is not");
    assert_eq!(count(&mut server, "[2001:db8:0:5::1]:53", "nas.home.example.", 1), spent);
    assert_eq!(count(&mut server, "[2001:db8:0:ff::1]:53", "nas.home.example.", 1).0, 0, "one /56");
    assert_eq!(count(&mut server, "192.0.2.1:53", "nas.home.example.", 2).0, 5, "a second later");
    let bytes = asked("nas.home.example.", 28).bytes();
    for _ in 0..100 {
        assert_eq!(reply(&mut server, &by_tcp(&bytes)).sections[0].len(), 1, "who is known is not limited");
    }
}
