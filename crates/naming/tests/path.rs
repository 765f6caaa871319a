//! What packets are told of promises, beside a list of what the waypoint says at each moment.

use naming::limits::{SECOND, TAIL};
use naming::{
    AddressPool, Ask, BindingKey, Initiators, NoRoom, PathChange, PathEntries, PathKey, Responder, Service,
    Services, SetUpError, Waypoint,
};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use tables::generate::Random;

fn tcp(port: u16) -> Service {
    Service { protocol: 6, port }
}

fn ask(responder: u32, ports: &[u16], initiators: Initiators) -> Ask {
    let services = Services::new(ports.iter().map(|&port| tcp(port))).expect("few");
    let resolver = IpAddr::V4([192, 0, 2, 1].into());
    Ask { responder: Responder(responder), services, initiators, resolver, is_verified: true }
}

fn address(last: u8) -> Ipv4Addr {
    [198, 51, 100, last].into()
}

fn client(last: u8) -> Ipv4Addr {
    [203, 0, 113, last].into()
}

/// What packets know, by the changes that they were told.
#[derive(Default)]
struct Packets(HashMap<PathKey, Responder>);

impl Packets {
    fn take(&mut self, changes: &[PathChange]) {
        for change in changes {
            match *change {
                PathChange::Set(key, responder) => drop(self.0.insert(key, responder)),
                PathChange::Remove(key) => assert!(self.0.remove(&key).is_some(), "{key:?} was not there"),
            }
        }
    }
}

#[test]
fn packets_know_what_the_waypoint_has_promised_and_nothing_else() {
    for most in [4, 1_000] {
        let pool = AddressPool { known: vec![address(1), address(2)], unknown: vec![address(3), address(4)] };
        let mut waypoint = Waypoint::new(pool).expect("good");
        let (mut entries, mut packets) = (PathEntries::new(most), Packets::default());
        let (mut random, mut now, mut full) = (Random::new(7), 0, 0);
        for _ in 0..20_000 {
            now += random.below(3 * SECOND);
            let initiators = match random.below(4) {
                0 => Initiators::Any,
                1 => Initiators::Prefix([203, 0, 113, 0].into(), 24),
                _ => Initiators::Exact(client(random.below(4) as u8)),
            };
            let ports: &[u16] = [&[80][..], &[22, 80], &[443]][random.below(3) as usize];
            let ask = ask(random.below(3) as u32, ports, initiators);
            let mut changes = Vec::new();
            while entries.expire(&waypoint, now, &mut changes).is_some_and(|due| due <= now) {}
            if let Ok(promise) = waypoint.set_up(&ask, now) {
                let promised = (promise.address, &ask.services, promise.initiators);
                full += u32::from(entries.follow(&waypoint, promised, now, &mut changes) == Err(NoRoom));
            }
            if random.below(50) == 0 {
                let gone = waypoint.withdraw(ask.responder, &ask.services);
                entries.withdraw(&waypoint, &gone, now, &mut changes);
            }
            packets.take(&changes);
            assert!(packets.0.len() <= most && packets.0.len() == entries.count());
            for (key, responder) in &packets.0 {
                let true_now = waypoint.promised(key, now).map(|entry| entry.responder);
                assert_eq!(true_now, Some(*responder), "{key:?}");
            }
            for (one, responder) in &packets.0 {
                let meets = |other: &PathKey| {
                    let same = other.address == one.address && other.service == one.service;
                    same && other.initiators.overlap(one.initiators)
                };
                let mut others = packets.0.iter().filter(|(other, _)| meets(other));
                assert!(others.all(|(_, other)| other == responder), "{one:?} could be for another one");
            }
            if full == 0 && most > 100 {
                // Whoever may begin at the waypoint may do so at the packets.
                for last in 1..=4 {
                    for port in [22, 80, 443] {
                        let one = Initiators::Exact(client(2));
                        let key = PathKey { address: address(last), service: tcp(port), initiators: one };
                        let known = waypoint.promised(&key, now).map(|entry| entry.responder);
                        assert_eq!(packets.0.get(&key).copied(), known, "{key:?}");
                    }
                }
            }
        }
        assert_eq!(full > 0, most == 4, "{full} promises found no room for {most}");
    }
}

#[test]
fn what_is_not_exclusive_any_more_gives_way_behind_what_is() {
    let pool = AddressPool { known: vec![address(1)], unknown: vec![address(3)] };
    let mut waypoint = Waypoint::new(pool).expect("good");
    let mut entries = PathEntries::new(2);
    let mut follow = |ask: &Ask, now: u64| {
        let promise = waypoint.set_up(ask, now).expect("free");
        let mut changes = Vec::new();
        let promised = (promise.address, &ask.services, promise.initiators);
        let followed = entries.follow(&waypoint, promised, now, &mut changes);
        (followed, changes)
    };
    // Of an unknown initiator for 65 s, and behind it one of a known initiator for 2 s.
    assert_eq!(follow(&ask(1, &[80], Initiators::Any), 0).0, Ok(()));
    assert_eq!(follow(&ask(1, &[80], Initiators::Exact(client(1))), 1).0, Ok(()));
    assert_eq!(follow(&ask(2, &[80], Initiators::Exact(client(2))), SECOND).0, Err(NoRoom));
    let (followed, changes) = follow(&ask(2, &[80], Initiators::Exact(client(2))), 3 * SECOND);
    assert_eq!(followed, Ok(()));
    let given_up =
        PathKey { address: address(1), service: tcp(80), initiators: Initiators::Exact(client(1)) };
    assert!(matches!(changes[..], [PathChange::Remove(key), PathChange::Set(..)] if key == given_up));
}

#[test]
fn an_initiator_that_packets_have_bound_is_promised_another_address() {
    let pool = AddressPool { known: vec![address(1), address(2)], unknown: vec![] };
    let mut waypoint = Waypoint::new(pool).expect("good");
    let to = |responder| ask(responder, &[80], Initiators::Exact(client(9)));
    let first = waypoint.set_up(&to(1), 0).expect("free").address;
    let key = BindingKey { initiator: client(9), address: first, service: tcp(80) };
    waypoint.note_bound(&key, Responder(1), SECOND);
    // Long after the promise, the binding keeps its address.
    let later = 10 * TAIL;
    let second = waypoint.set_up(&to(2), later).expect("the other one").address;
    assert_ne!(first, second);
    let other = BindingKey { address: second, ..key };
    waypoint.note_bound(&other, Responder(2), later);
    assert_eq!(waypoint.set_up(&to(3), later), Err(SetUpError::InitiatorFull));
    // Bindings that packets told of do not end by themselves, and what ended stays in quarantine.
    assert_eq!(waypoint.set_up(&to(3), 2 * later), Err(SetUpError::InitiatorFull));
    waypoint.end(&key, 2 * later);
    assert_eq!(waypoint.set_up(&to(3), 2 * later + 119 * SECOND), Err(SetUpError::InitiatorFull));
    assert_eq!(waypoint.set_up(&to(3), 2 * later + 120 * SECOND).map(|one| one.address), Ok(first));
    // A promise that packets could not follow does not stay the answer.
    waypoint.note_quarantined(&BindingKey { address: first, ..key }, Responder(4), 2 * later + 121 * SECOND);
    waypoint.note_bound(&BindingKey { address: first, ..key }, Responder(4), 2 * later + 121 * SECOND);
    assert_eq!(waypoint.set_up(&to(3), 2 * later + 122 * SECOND), Err(SetUpError::InitiatorFull));
}
