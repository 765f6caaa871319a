//! Queries that wait for a waypoint.

use crate::wire::{self, Asked, asked, edns};
use crate::{Arrival, by_tcp, by_udp, from, moment, policy, server};
use naming::SetUpError;
use naming::dns::{DnsAnswer, DnsTransport, HeldQuery, QueryDrop};
use naming::limits::{HELD, HELD_UNDER_LOAD, MOST_HELD, MOST_HELD_OF_NETWORK, SECOND};

#[test]
fn a_query_waits_three_seconds_and_is_then_answered_with_an_error() {
    let mut server = server(policy());
    let mut out = Vec::new();
    let bytes = Asked { edns: edns(&[]), ..asked("tV.home.example.", 1) }.bytes();
    let DnsAnswer::Hold(number, _) = server.answer(&by_udp(&bytes), &mut out) else { panic!() };
    assert_eq!(HELD, 3 * SECOND);
    assert_eq!(server.next_expiry(), Some(HELD));
    assert!(server.expire(HELD - 1, &mut out).is_none());
    let to = server.expire(HELD, &mut out).expect("it is time");
    assert_eq!((to.to, to.transport), (from("192.0.2.53:4000"), DnsTransport::Udp));
    let said = wire::read(&out).expect("whole");
    assert_eq!((said.rcode, &said.questions[0].0[..]), (2, "tV.home.example."));
    assert!(said.option(15).is_some_and(|why| why[2..] == *b"the waypoint did not answer in time"));
    // The answer comes too late, and a second one has nobody.
    assert!(server.resume(number, Ok([203, 0, 113, 5].into()), &mut out).is_none());
    assert!(server.expire(u64::MAX, &mut out).is_none());
    assert_eq!((server.held(), server.next_expiry()), (0, None));
}

#[test]
fn a_shortage_is_an_error_that_says_why() {
    let mut server = server(policy());
    let mut out = Vec::new();
    let bytes = Asked { edns: edns(&[]), ..asked("tv.home.example.", 1) }.bytes();
    for short in [SetUpError::Full, SetUpError::Share, SetUpError::InitiatorFull] {
        let DnsAnswer::Hold(number, _) = server.answer(&by_tcp(&bytes), &mut out) else { panic!() };
        assert!(server.resume(number, Err(short), &mut out).is_some());
        let said = wire::read(&out).expect("whole");
        assert_eq!((said.rcode, said.sections[0].len()), (2, 0));
        assert!(said.option(15).is_some_and(|why| why.len() > 10));
    }
}

#[test]
fn who_has_to_prove_itself_when_addresses_are_short_is_told_how() {
    let mut server = server(policy());
    let mut out = Vec::new();
    for (options, wanted) in [(edns(&[]), (0, true)), (edns(&[(10, &[5; 8])]), (23, false))] {
        let bytes = Asked { edns: options, ..asked("tv.home.example.", 1) }.bytes();
        let DnsAnswer::Hold(number, _) = server.answer(&by_udp(&bytes), &mut out) else { panic!() };
        assert!(server.resume(number, Err(SetUpError::Unproved), &mut out).is_some());
        let said = wire::read(&out).expect("whole");
        assert_eq!((said.rcode, said.is_truncated()), wanted);
    }
}

#[test]
fn a_repeated_query_waits_once() {
    let mut server = server(policy());
    let mut out = Vec::new();
    let bytes = asked("tv.home.example.", 1).bytes();
    let DnsAnswer::Hold(number, _) = server.answer(&by_udp(&bytes), &mut out) else { panic!() };
    let again = server.answer(&by_udp(&bytes), &mut out);
    assert!(matches!(again, DnsAnswer::Drop(QueryDrop::Repeated)), "{again:?}");
    let other = Asked { id: 1, ..asked("tv.home.example.", 1) }.bytes();
    let other = server.answer(&by_udp(&other), &mut out);
    assert!(matches!(other, DnsAnswer::Hold(..)), "{other:?}");
    assert!(server.resume(number, Ok([203, 0, 113, 5].into()), &mut out).is_some());
    let later = server.answer(&by_udp(&bytes), &mut out);
    assert!(matches!(later, DnsAnswer::Hold(HeldQuery(2), _)), "{later:?}");
}

#[test]
fn what_waits_is_limited_in_all_and_for_each_network() {
    let mut server = server(policy());
    let mut out = Vec::new();
    let mut hold = |server: &mut naming::dns::NameServer, number: u32, source: String| {
        let bytes = Asked { id: number as u16, ..asked("tv.home.example.", 1) }.bytes();
        let arrival = Arrival { from: from(&source), at: moment(0), ..by_tcp(&bytes) };
        match server.answer(&arrival, &mut out) {
            DnsAnswer::Hold(..) => true,
            DnsAnswer::Reply => {
                assert_eq!(wire::read(&out).expect("whole").rcode, 2);
                false
            }
            other => panic!("{other:?}"),
        }
    };
    for number in 0..MOST_HELD_OF_NETWORK {
        assert!(hold(&mut server, number, format!("192.0.2.{}:53", number % 250)));
    }
    assert!(!hold(&mut server, 60_000, "192.0.2.7:53".to_owned()), "this network waits enough");
    assert!(server.held() >= HELD_UNDER_LOAD);
    let plain = asked("tv.home.example.", 1).bytes();
    let mut short = Vec::new();
    let by_stranger = Arrival { from: from("198.51.100.1:1"), ..by_udp(&plain) };
    assert!(matches!(server.answer(&by_stranger, &mut short), DnsAnswer::Reply));
    assert!(
        wire::read(&short).expect("whole").is_truncated(),
        "so many wait that strangers prove themselves"
    );
    let mut network = 0;
    while server.held() < MOST_HELD {
        network += 1;
        for number in 0..MOST_HELD_OF_NETWORK {
            assert!(hold(&mut server, number, format!("10.0.{network}.1:53")));
        }
    }
    assert!(!hold(&mut server, 1, "10.9.9.9:53".to_owned()), "everybody waits enough");
    let mut gone = 0;
    let mut reply = Vec::new();
    while server.expire(HELD, &mut reply).is_some() {
        gone += 1;
    }
    assert_eq!((gone, server.held()), (MOST_HELD, 0));
    assert!(hold(&mut server, 1, "192.0.2.7:53".to_owned()), "there is room again");
}
