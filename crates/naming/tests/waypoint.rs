//! Random lives of a waypoint beside a slow judge that remembers everything.

mod chronicle;

use chronicle::Chronicle;
use naming::limits::{
    CONTESTED, EMBRYONIC, MOST_AT_ADDRESS, MOST_BINDINGS, MOST_KNOWN, MOST_KNOWN_OF_INITIATOR,
    MOST_NETWORKS_OF_HOST, MOST_OF_INITIATOR, QUARANTINE, REMEMBERED, SECOND, TAIL,
};
use naming::{
    AddressPool, Admission, Ask, BindingKey, Denial, FirstPacket, Hold, Initiators, Promise, Responder,
    Service, Services, SetUpError, Waypoint,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use tables::generate::Random;

const SSH: Service = Service { protocol: 6, port: 22 };
const HTTPS: Service = Service { protocol: 6, port: 443 };
const DNS: Service = Service { protocol: 17, port: 53 };
const ECHO: Service = Service { protocol: 1, port: 0 };

fn services(of: &[Service]) -> Services {
    Services::new(of.iter().copied()).expect("few")
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, last)
}

fn client(number: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 | ((number / 4) << 8) as u32 | (number % 4) as u32)
}

fn ask(responder: u32, of: &[Service], initiators: Initiators) -> Ask {
    Ask {
        responder: Responder(responder),
        services: services(of),
        initiators,
        resolver: Ipv4Addr::new(192, 0, 2, 1).into(),
        is_verified: true,
    }
}

fn packet(initiator: Ipv4Addr, address: Ipv4Addr, service: Service) -> FirstPacket {
    FirstPacket { key: BindingKey { initiator, address, service }, begins: true }
}

/// A client that was told an address and will use it.
struct Visit {
    at: u64,
    packet: FirstPacket,
    wanted: Responder,
    is_known: bool,
    exclusive_until: u64,
}

/// Embryonic bindings end after a while without anybody saying so: the judge is told by looking.
fn note_ends(
    waypoint: &Waypoint,
    chronicle: &mut Chronicle,
    began: &mut VecDeque<(u64, BindingKey)>,
    now: u64,
) {
    while let Some(&(at, key)) = began.front() {
        if at + EMBRYONIC > now {
            break;
        }
        began.pop_front();
        if waypoint.bound(&key).is_none() {
            chronicle.ended(&key, now);
        }
    }
}

/// A packet that could have been for two ends a binding, unless it was one of TCP that has been proved.
fn note_end(
    waypoint: &Waypoint,
    chronicle: &mut Chronicle,
    packet: &FirstPacket,
    admission: Admission,
    now: u64,
) {
    if admission == Admission::Refused(Denial::Ambiguous) {
        let stays = waypoint.bound(&packet.key).is_some();
        assert!(!stays || packet.key.service.protocol == 6, "{packet:?} leaves what it ended");
        if !stays {
            chronicle.ended(&packet.key, now);
        }
    }
}

/// A life of so many steps; what was seen in it.
fn live(seed: u64, steps: usize, pool: &AddressPool, hold: Hold) -> BTreeMap<&'static str, usize> {
    let mut random = Random::new(seed);
    let mut waypoint = Waypoint::new(pool.clone()).expect("a good pool").holding(hold);
    let mut chronicle = Chronicle::default();
    let mut visits: VecDeque<Visit> = VecDeque::new();
    let mut began = VecDeque::new();
    let mut live: Vec<BindingKey> = Vec::new();
    let offers: Vec<Vec<Service>> = (0..12)
        .map(|_| {
            let all = [SSH, HTTPS, DNS, ECHO];
            let mut some: Vec<Service> = all.into_iter().filter(|_| random.chance(50)).collect();
            some.push(all[random.below(4) as usize]);
            some
        })
        .collect();
    let every: Vec<Ipv4Addr> = pool.known.iter().chain(&pool.unknown).copied().collect();
    let mut now = 0;
    for _ in 0..steps {
        now += match random.below(100) {
            0 => random.below(200 * SECOND),
            1..10 => random.below(2 * SECOND),
            _ => random.below(SECOND / 10),
        };
        waypoint.advance(now);
        note_ends(&waypoint, &mut chronicle, &mut began, now);
        match random.below(10) {
            0..3 => {
                let who = random.below(12);
                let responder = random.below(12) as u32;
                let offer = &offers[responder as usize];
                let initiators = match random.below(4) {
                    0 | 1 => Initiators::Exact(client(who)),
                    2 => Initiators::Prefix(client(who), 24),
                    _ => Initiators::Any,
                };
                let resolver = Ipv4Addr::new(192, 0, random.below(3) as u8, 53).into();
                let is_verified = random.chance(60);
                let ask = Ask { resolver, is_verified, ..ask(responder, offer, initiators) };
                let Ok(answer) = waypoint.set_up(&ask, now) else { continue };
                let is_known = matches!(initiators, Initiators::Exact(_));
                let part = if is_known { &pool.known } else { &pool.unknown };
                assert!(part.contains(&answer.address));
                assert!(answer.initiators.include(initiators));
                chronicle.promised(&Ask { initiators: answer.initiators, ..ask.clone() }, &answer, now);
                let whole = if is_verified { TAIL } else { TAIL / 2 };
                assert!(is_known || hold == Hold::Measured || answer.exclusive_until >= now + whole);
                let delay = match random.below(10) {
                    0 => random.below(400 * SECOND),
                    1 | 2 => random.below(3 * SECOND),
                    _ => random.below(SECOND / 4),
                };
                let service = offer[random.below(offer.len() as u64) as usize];
                visits.push_back(Visit {
                    at: now + delay,
                    packet: packet(client(who), answer.address, service),
                    wanted: Responder(responder),
                    is_known,
                    exclusive_until: answer.exclusive_until,
                });
            }
            3..8 => {
                let Some(place) = visits.iter().position(|visit| visit.at <= now) else { continue };
                let visit = visits.swap_remove_back(place).expect("it was there");
                let admission = waypoint.admit(&visit.packet, now);
                chronicle.admitted(&visit.packet, admission, now);
                note_end(&waypoint, &mut chronicle, &visit.packet, admission, now);
                if visit.exclusive_until > now {
                    let reached = match admission {
                        Admission::Bound(one) | Admission::Admitted(one) => one == visit.wanted,
                        // Who is not known by the waypoint may have been led elsewhere by this address.
                        Admission::Refused(refusal) => {
                            !visit.is_known && matches!(refusal, Denial::Ambiguous | Denial::Quarantined)
                        }
                    };
                    assert!(reached, "at {now}: {:?} of {:?}: {admission:?}", visit.packet, visit.wanted);
                }
                if matches!(admission, Admission::Admitted(_)) {
                    if random.chance(80) {
                        waypoint.prove(&visit.packet.key);
                        live.push(visit.packet.key);
                    } else {
                        began.push_back((now, visit.packet.key));
                    }
                }
            }
            8 => {
                // A scanner.
                let to = every[random.below(every.len() as u64) as usize];
                let service = *random.pick(&[SSH, HTTPS, DNS, ECHO]).expect("four");
                let scan = FirstPacket {
                    begins: random.chance(50),
                    ..packet(client(12 + random.below(4)), to, service)
                };
                let admission = waypoint.admit(&scan, now);
                chronicle.admitted(&scan, admission, now);
                note_end(&waypoint, &mut chronicle, &scan, admission, now);
                if matches!(admission, Admission::Admitted(_)) {
                    began.push_back((now, scan.key));
                }
            }
            _ => {
                if !live.is_empty() {
                    let key = live.swap_remove(random.below(live.len() as u64) as usize);
                    waypoint.end(&key, now);
                    chronicle.ended(&key, now);
                }
            }
        }
    }
    for (key, responder) in chronicle.bound() {
        assert!(waypoint.bound(key).is_none_or(|one| one == responder), "{key:?}");
    }
    chronicle.seen
}

#[test]
fn an_address_leads_to_the_responder_that_was_asked_for_or_nowhere() {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..40 {
        let pool = AddressPool {
            known: (1..=2 + (seed % 6) as u8).map(address).collect(),
            unknown: (101..=102 + (seed % 9) as u8).map(address).collect(),
        };
        let hold = if seed % 2 == 0 { Hold::Whole } else { Hold::Measured };
        for (what, count) in live(seed, 25_000, &pool, hold) {
            *all.entry(what).or_default() += count;
        }
    }
    let kinds =
        ["admitted", "ambiguous", "ambiguous since", "bound", "not expected", "promised", "quarantined"];
    for kind in kinds {
        assert!(all.get(kind).is_some_and(|&count| count > 100), "{kind} was not seen often: {all:?}");
    }
}

#[test]
fn ten_clients_behind_one_resolver_all_connect_by_one_answer() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    let answer = waypoint.set_up(&ask(7, &[HTTPS], Initiators::Any), 0).expect("it is free");
    for number in 0..10 {
        let admission = waypoint.admit(&packet(client(number), answer.address, HTTPS), 1_000);
        assert_eq!(admission, Admission::Admitted(Responder(7)), "client {number}");
    }
}

#[test]
fn three_names_share_an_address_and_a_port_for_three_clients() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![address(1)], unknown: vec![] }).expect("good");
    for number in 0..3 {
        let exact = Initiators::Exact(client(number));
        let answer = waypoint.set_up(&ask(number as u32, &[SSH], exact), 0).expect("it is free");
        assert_eq!(answer.address, address(1));
    }
    for number in 0..3 {
        let admission = waypoint.admit(&packet(client(number), address(1), SSH), 1_000);
        assert_eq!(admission, Admission::Admitted(Responder(number as u32)));
    }
}

#[test]
fn one_client_reaches_as_many_responders_as_there_are_addresses_and_no_more() {
    let known: Vec<Ipv4Addr> = (1..=5).map(address).collect();
    let mut waypoint = Waypoint::new(AddressPool { known, unknown: vec![] }).expect("good");
    let me = client(1);
    let mut used = BTreeSet::new();
    let mut keys = Vec::new();
    for responder in 0..5 {
        let answer = waypoint.set_up(&ask(responder, &[SSH], Initiators::Exact(me)), 0).expect("it is free");
        used.insert(answer.address);
        let packet = packet(me, answer.address, SSH);
        assert_eq!(waypoint.admit(&packet, 1), Admission::Admitted(Responder(responder)));
        waypoint.prove(&packet.key);
        keys.push(packet.key);
    }
    assert_eq!(used.len(), 5);
    let sixth = ask(5, &[SSH], Initiators::Exact(me));
    assert_eq!(waypoint.set_up(&sixth, 70 * SECOND), Err(SetUpError::InitiatorFull));
    assert!(waypoint.set_up(&ask(5, &[DNS], Initiators::Exact(me)), 70 * SECOND).is_ok(), "another service");
    waypoint.end(&keys[2], 80 * SECOND);
    assert_eq!(waypoint.set_up(&sixth, 199 * SECOND), Err(SetUpError::InitiatorFull), "it is quarantined");
    assert_eq!(waypoint.set_up(&sixth, 200 * SECOND).map(|one| one.address), Ok(keys[2].address));
}

#[test]
fn a_known_client_keeps_its_address_while_it_asks_for_the_same() {
    let known: Vec<Ipv4Addr> = (1..=9).map(address).collect();
    let mut waypoint = Waypoint::new(AddressPool { known, unknown: vec![] }).expect("good");
    let wanted = ask(3, &[SSH, HTTPS], Initiators::Exact(client(1)));
    let first = waypoint.set_up(&wanted, 0).expect("it is free").address;
    assert_eq!(waypoint.set_up(&wanted, SECOND).map(|one| one.address), Ok(first));
    let packet = packet(client(1), first, SSH);
    waypoint.admit(&packet, 2 * SECOND);
    waypoint.prove(&packet.key);
    assert_eq!(waypoint.set_up(&wanted, 500 * SECOND).map(|one| one.address), Ok(first));
}

#[test]
fn what_is_not_offered_and_what_nobody_expects_goes_nowhere() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    let refused = |refusal| Admission::Refused(refusal);
    let to = |last, service| packet(client(1), address(last), service);
    assert_eq!(waypoint.admit(&to(1, SSH), 0), refused(Denial::NoExpectation));
    assert_eq!(waypoint.admit(&to(2, SSH), 0), refused(Denial::ForeignAddress));
    waypoint.set_up(&ask(7, &[HTTPS], Initiators::Any), 0).expect("it is free");
    assert_eq!(waypoint.admit(&to(1, SSH), 1), refused(Denial::NotOffered));
    let network = ask(8, &[DNS], Initiators::Prefix(client(40), 24));
    waypoint.set_up(&network, 1).expect("another service");
    assert_eq!(waypoint.admit(&to(1, DNS), 2), refused(Denial::NotOffered), "not of this network");
    assert_eq!(waypoint.admit(&to(1, HTTPS), 66 * SECOND), refused(Denial::NoExpectation), "too late");
}

#[test]
fn addresses_that_run_short_are_shared_fairly() {
    let unknown: Vec<Ipv4Addr> = (1..=8).map(address).collect();
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown }).expect("good");
    let by = |responder, resolver| Ask {
        resolver: Ipv4Addr::new(192, 0, resolver, 1).into(),
        ..ask(responder, &[HTTPS], Initiators::Any)
    };
    let mut got = 0;
    for responder in 0..20 {
        got += usize::from(waypoint.set_up(&by(100 + responder, 7), 0).is_ok());
    }
    assert_eq!(got, 6, "one network of resolvers leaves two of eight to others");
    assert_eq!(waypoint.set_up(&by(200, 7), 0), Err(SetUpError::Share));
    assert!(waypoint.set_up(&by(1, 8), 0).is_ok());
    assert!(waypoint.set_up(&by(2, 9), 0).is_ok());
    assert_eq!(waypoint.set_up(&by(3, 10), 0), Err(SetUpError::Full));
    assert_eq!(waypoint.set_up(&by(3, 10), TAIL - 1), Err(SetUpError::Full), "an answer may still be used");
    assert!(waypoint.set_up(&by(3, 10), TAIL).is_ok());
}

#[test]
fn networks_that_a_resolver_tells_take_nothing_from_each_other() {
    let pool = AddressPool { known: vec![], unknown: vec![address(1)] };
    let mut waypoint = Waypoint::new(pool).expect("good");
    let of = |network: u8, responder| {
        let prefix = Initiators::Prefix(Ipv4Addr::new(198, 18, network, 0), 24);
        ask(responder, &[HTTPS], prefix)
    };
    for network in 1..=20 {
        let promised = waypoint.set_up(&of(network, u32::from(network)), 0);
        assert_eq!(promised.map(|promise| promise.address), Ok(address(1)), "network {network}");
    }
    assert!(waypoint.set_up(&of(1, 2), 0).is_err(), "this network is promised another responder there");
    for network in 1..=20 {
        let initiator = Ipv4Addr::new(198, 18, network, 9);
        let admitted = waypoint.admit(&packet(initiator, address(1), HTTPS), 0);
        assert_eq!(admitted, Admission::Admitted(Responder(network.into())));
    }
}

/// A waypoint with one address for initiators that are not known, at which one is bound to responder 1 and
/// has proved itself; and its packet.
fn bound_by_one_address(service: Service) -> (Waypoint, FirstPacket) {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    waypoint.set_up(&ask(1, &[service], Initiators::Any), 0).expect("it is free");
    let packet = packet(client(1), address(1), service);
    assert_eq!(waypoint.admit(&packet, 1), Admission::Admitted(Responder(1)));
    waypoint.prove(&packet.key);
    (waypoint, packet)
}

#[test]
fn a_new_connection_that_could_be_for_two_responders_reaches_neither() {
    let (mut waypoint, first) = bound_by_one_address(SSH);
    let goes_on = FirstPacket { begins: false, ..first };
    let ambiguous = Admission::Refused(Denial::Ambiguous);
    waypoint.set_up(&ask(2, &[SSH], Initiators::Any), TAIL).expect("the first answer is too old");
    assert_eq!(waypoint.admit(&first, TAIL + 1), ambiguous);
    // As long as the answer may be used, not only at first.
    assert_eq!(waypoint.admit(&first, 2 * TAIL - 1), ambiguous);
    // Segments that are sent again come later than the promise lasts.
    assert_eq!(waypoint.admit(&first, 3 * TAIL), ambiguous);
    assert_eq!(waypoint.admit(&goes_on, 3 * TAIL), Admission::Bound(Responder(1)), "what was there goes on");
    let other = packet(client(2), address(1), SSH);
    waypoint.set_up(&ask(2, &[SSH], Initiators::Any), 3 * TAIL).expect("it is the same");
    assert_eq!(waypoint.admit(&other, 3 * TAIL), Admission::Admitted(Responder(2)), "who is not bound");
    // Whoever asks for the first one again means it.
    waypoint.set_up(&ask(1, &[SSH], Initiators::Any), 4 * TAIL).expect("the other answer is too old");
    assert_eq!(waypoint.admit(&first, 4 * TAIL), Admission::Bound(Responder(1)));
    assert_eq!(waypoint.admit(&first, 9 * TAIL), Admission::Bound(Responder(1)));
}

#[test]
fn a_datagram_that_could_be_for_two_responders_ends_its_binding() {
    let (mut waypoint, first) = bound_by_one_address(DNS);
    waypoint.set_up(&ask(2, &[DNS], Initiators::Any), TAIL).expect("the first answer is too old");
    assert_eq!(waypoint.admit(&first, TAIL + 1), Admission::Refused(Denial::Ambiguous));
    assert_eq!(waypoint.bound(&first.key), None);
    assert_eq!(waypoint.admit(&first, TAIL + 2), Admission::Refused(Denial::Quarantined));
    let again = TAIL + 700 * SECOND;
    waypoint.set_up(&ask(2, &[DNS], Initiators::Any), again).expect("it is the same");
    assert_eq!(waypoint.admit(&first, again), Admission::Admitted(Responder(2)));
}

#[test]
fn who_goes_on_sending_stays_in_quarantine() {
    let (mut waypoint, first) = bound_by_one_address(DNS);
    waypoint.end(&first.key, SECOND);
    // Longer than anything is remembered, and long after the queue of what has ended came to it.
    let mut now = SECOND;
    for step in 0..20 {
        now += QUARANTINE - 1;
        waypoint.advance(now);
        if step % 2 == 0 {
            waypoint.set_up(&ask(2, &[DNS], Initiators::Any), now).expect("the first answer is too old");
        }
        let denial = if step % 2 == 0 { Denial::Quarantined } else { Denial::NoExpectation };
        assert_eq!(waypoint.admit(&first, now), Admission::Refused(denial), "step {step}");
    }
    assert_eq!(waypoint.bindings(), 1);
    now += REMEMBERED;
    waypoint.set_up(&ask(2, &[DNS], Initiators::Any), now).expect("it is the same");
    assert_eq!(waypoint.admit(&first, now), Admission::Admitted(Responder(2)));
}

#[test]
fn a_connection_that_was_for_another_responder_does_not_reach_that_of_the_binding_later() {
    for service in [SSH, DNS] {
        let pool = AddressPool { known: vec![], unknown: vec![address(1)] };
        let mut waypoint = Waypoint::new(pool).expect("good").holding(Hold::Measured);
        let any = |responder| ask(responder, &[service], Initiators::Any);
        waypoint.set_up(&any(1), 0).expect("it is free");
        let first = packet(client(1), address(1), service);
        assert_eq!(waypoint.admit(&first, 1), Admission::Admitted(Responder(1)));
        waypoint.prove(&first.key);
        let other = 10 * SECOND;
        waypoint.set_up(&any(2), other).expect("the first one has no longer its address to itself");
        assert_eq!(waypoint.admit(&first, other), Admission::Refused(Denial::Ambiguous));
        // The SYN, or the datagram, is sent again while the first one is promised anew.
        for later in [6, 14, 30, 63, CONTESTED / SECOND - 1] {
            let now = other + later * SECOND;
            waypoint.set_up(&any(1), now).expect("it has no longer its address to itself");
            assert_eq!(waypoint.admit(&first, now), Admission::Refused(Denial::Ambiguous), "{later} s");
        }
        let now = other + CONTESTED;
        assert!(matches!(waypoint.admit(&first, now), Admission::Bound(_) | Admission::Admitted(_)));
        assert_eq!(waypoint.bound(&first.key), Some(Responder(1)));
    }
}

#[test]
fn who_is_told_as_one_address_is_promised_no_address_by_which_it_is_bound_to_another_responder() {
    let (mut waypoint, first) = bound_by_one_address(SSH);
    let told = |last: u64| ask(2, &[SSH], Initiators::Prefix(client(last), 32));
    assert_eq!(waypoint.set_up(&told(1), 2 * TAIL), Err(SetUpError::Full));
    assert!(waypoint.set_up(&told(2), 2 * TAIL).is_ok(), "another one");
    let other = ask(3, &[DNS], Initiators::Prefix(client(1), 32));
    assert!(waypoint.set_up(&other, 2 * TAIL).is_ok(), "another service");
    waypoint.end(&first.key, 2 * TAIL);
    assert_eq!(waypoint.set_up(&told(1), 2 * TAIL + QUARANTINE - 1), Err(SetUpError::Full));
    assert!(waypoint.set_up(&told(1), 2 * TAIL + 600 * SECOND).is_ok(), "it is forgotten");
}

#[test]
fn a_promise_that_was_made_again_and_is_taken_back_leaves_the_one_before() {
    let pool = || AddressPool { known: vec![address(1)], unknown: vec![address(2)] };
    for (hold, initiators) in [
        (Hold::Measured, Initiators::Any),
        (Hold::Whole, Initiators::Any),
        (Hold::Measured, Initiators::Exact(client(1))),
    ] {
        let mut waypoint = Waypoint::new(pool()).expect("good").holding(hold);
        let (own, other) = (ask(1, &[SSH], initiators), ask(2, &[SSH], initiators));
        let first = waypoint.set_up(&own, 0).expect("it is free");
        let again = waypoint.set_up(&own, 30 * SECOND).expect("it is the same");
        assert_eq!((first.address, first.renews, again.renews.is_some()), (again.address, None, true));
        waypoint.retract(&own, &again);
        // Whoever was told before gets through, for as long as was promised then.
        let mine = packet(client(1), first.address, SSH);
        assert_eq!(waypoint.admit(&mine, 31 * SECOND), Admission::Admitted(Responder(1)), "{hold:?}");
        let later = packet(client(1), first.address, HTTPS);
        assert_eq!(waypoint.admit(&later, TAIL - 1), Admission::Refused(Denial::NotOffered));
        assert_eq!(waypoint.admit(&later, TAIL), Admission::Refused(Denial::NoExpectation));
        let new = waypoint.set_up(&other, TAIL).map(|one| one.renews);
        // A known client is bound to the first host by the only address.
        let is_bound = matches!(initiators, Initiators::Exact(_));
        assert_eq!(new, if is_bound { Err(SetUpError::InitiatorFull) } else { Ok(None) }, "{hold:?}");
        if let Ok(promise) = waypoint.set_up(&other, TAIL + 1) {
            waypoint.retract(&other, &Promise { renews: None, ..promise });
            assert_eq!(waypoint.set_up(&other, TAIL + 2).map(|one| one.renews), Ok(None), "nothing is left");
        }
    }
}

/// Two waypoints live the same life, but for promises that one of them makes and takes back in between.
#[test]
fn promises_that_are_taken_back_change_nothing_that_comes_later() {
    let (mut taken_back, mut renewed) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let unknown: Vec<_> = (1..=2 + (seed % 5) as u8).map(address).collect();
        let make = || {
            let pool = AddressPool { known: Vec::new(), unknown: unknown.clone() };
            let hold = if seed % 2 == 0 { Hold::Measured } else { Hold::Whole };
            Waypoint::new(pool).expect("good").holding(hold)
        };
        let (mut plain, mut other) = (make(), make());
        let mut now = 0;
        for step in 0..300 {
            let most = if random.chance(5) { 100 * SECOND } else { 2 * SECOND };
            now += random.below(most);
            let initiators = match random.below(3) {
                0 => Initiators::Any,
                bits => Initiators::Prefix(client(random.below(12)), 16 + 8 * bits as u8),
            };
            let all = [SSH, HTTPS, DNS];
            let responder = random.below(6) as u32;
            let wanted = Ask {
                resolver: Ipv4Addr::new(192, 0, random.below(4) as u8, 53).into(),
                is_verified: random.chance(70),
                ..ask(responder, &all[..=responder as usize % 3], initiators)
            };
            match random.below(4) {
                0 => {
                    let first = packet(client(random.below(12)), unknown[0], all[random.below(3) as usize]);
                    assert_eq!(plain.admit(&first, now), other.admit(&first, now), "{seed}, {step}");
                }
                1 => {
                    let made = other.set_up(&wanted, now);
                    match made {
                        // What had to go for it does not come back.
                        Ok(promise) if other.displaced().is_empty() => {
                            other.retract(&wanted, &promise);
                            taken_back += 1;
                            renewed += usize::from(promise.renews.is_some());
                            plain.advance(now);
                        }
                        _ => assert_eq!(plain.set_up(&wanted, now), made, "{seed}, {step}"),
                    }
                }
                _ => {
                    let (one, two) = (plain.set_up(&wanted, now), other.set_up(&wanted, now));
                    assert_eq!(one, two, "{seed}, {step}: {wanted:?}");
                }
            }
        }
    }
    assert!(taken_back > 2_000 && renewed > 500, "{taken_back} taken back, {renewed} of them renewed");
}

#[test]
fn a_client_is_promised_no_address_by_which_it_is_bound_elsewhere_where_a_promise_becomes_one_to_all() {
    let unknown = vec![address(1), address(2)];
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown }).expect("good");
    for responder in [1, 4] {
        let resolver = Ipv4Addr::new(192, 0, responder as u8, 1).into();
        let any = Ask { resolver, ..ask(responder, &[SSH], Initiators::Any) };
        let by = waypoint.set_up(&any, 0).expect("it is free").address;
        let first = packet(client(1), by, SSH);
        assert_eq!(waypoint.admit(&first, 1), Admission::Admitted(Responder(responder)));
        waypoint.prove(&first.key);
    }
    let now = 2 * TAIL;
    let told = |initiator| ask(2, &[SSH], Initiators::Prefix(initiator, 32));
    for last in 0..MOST_NETWORKS_OF_HOST {
        waypoint.set_up(&told(client(100 + last as u64)), now).expect("nobody is bound there");
    }
    assert_eq!(waypoint.set_up(&told(client(1)), now), Err(SetUpError::Full));
    let other = waypoint.set_up(&told(client(200)), now).expect("nobody is bound there");
    assert_eq!(other.initiators, Initiators::Any, "there are so many of them");
    assert_eq!(waypoint.set_up(&told(client(1)), now), Err(SetUpError::Full));
}

#[test]
fn an_address_where_nobody_is_bound_to_another_responder_is_promised_first() {
    let unknown = vec![address(1), address(2)];
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown }).expect("good");
    // Each is asked for by a resolver of its own, which has its share of the addresses.
    let any = |responder| Ask {
        resolver: Ipv4Addr::new(192, 0, responder as u8, 1).into(),
        ..ask(responder, &[SSH], Initiators::Any)
    };
    let first = waypoint.set_up(&any(1), 0).expect("it is free").address;
    let second = waypoint.set_up(&any(2), 1).expect("it is free").address;
    assert_ne!(first, second);
    let mine = packet(client(1), first, SSH);
    assert_eq!(waypoint.admit(&mine, 2), Admission::Admitted(Responder(1)));
    waypoint.prove(&mine.key);
    // The first address is the one that was used longest ago, and has a client of another responder.
    assert_eq!(waypoint.set_up(&any(3), 2 * TAIL).map(|one| one.address), Ok(second));
    // Whoever is bound by an address comes back by it.
    assert_eq!(waypoint.set_up(&any(4), 2 * TAIL).map(|one| one.address), Ok(first));
    assert_eq!(waypoint.set_up(&any(1), 4 * TAIL).map(|one| one.address), Ok(first));
}

#[test]
fn a_flood_of_initiators_that_prove_nothing_is_bounded() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    waypoint.set_up(&ask(7, &[HTTPS], Initiators::Any), 0).expect("it is free");
    let mut refusals: BTreeMap<Denial, usize> = BTreeMap::new();
    for number in 0..400_000_u32 {
        let initiator = Ipv4Addr::from_bits((10 << 24) + number);
        if let Admission::Refused(refusal) = waypoint.admit(&packet(initiator, address(1), HTTPS), 1) {
            *refusals.entry(refusal).or_default() += 1;
        }
    }
    assert_eq!(waypoint.bindings(), 1 << 16);
    assert!(
        refusals[&Denial::NetworkFull] > 1_000 && refusals[&Denial::EmbryonicFull] > 1_000,
        "{refusals:?}"
    );
    // After five seconds there is room again, and after ten minutes nothing is left.
    let later = packet(Ipv4Addr::new(172, 16, 0, 1), address(1), HTTPS);
    for _ in 0..2_000 {
        waypoint.advance(6 * SECOND);
    }
    assert_eq!(waypoint.admit(&later, 6 * SECOND), Admission::Admitted(Responder(7)));
    for _ in 0..2_000 {
        waypoint.advance(700 * SECOND);
    }
    waypoint.advance(1_400 * SECOND);
    assert_eq!(waypoint.bindings(), 0);
}

/// A service of which there are 65,536.
fn numbered(port: usize) -> Service {
    Service { protocol: 6, port: port as u16 }
}

#[test]
fn expectations_at_one_address_are_bounded() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    let any = |number: usize| ask(number as u32, &[numbered(number)], Initiators::Any);
    for number in 0..MOST_AT_ADDRESS {
        assert!(waypoint.set_up(&any(number), 0).is_ok(), "{number}");
    }
    assert_eq!(waypoint.set_up(&any(MOST_AT_ADDRESS), 0), Err(SetUpError::Full));
    assert!(waypoint.set_up(&any(0), 1).is_ok(), "what is promised already needs no room");
    assert!(waypoint.set_up(&any(MOST_AT_ADDRESS), 66 * SECOND).is_ok());
}

#[test]
fn expectations_of_known_initiators_are_bounded() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![address(1)], unknown: vec![] }).expect("good");
    let of = |number: usize| {
        let initiator = Ipv4Addr::from_bits((10 << 24) + number as u32);
        ask(7, &[SSH], Initiators::Exact(initiator))
    };
    for number in 0..MOST_KNOWN {
        assert!(waypoint.set_up(&of(number), 0).is_ok(), "{number}");
    }
    assert_eq!(waypoint.set_up(&of(MOST_KNOWN), 1), Err(SetUpError::Full));
    assert!(
        waypoint.set_up(&of(MOST_KNOWN), 3 * SECOND).is_ok(),
        "the oldest has nothing to itself any more"
    );
}

#[test]
fn expectations_of_one_initiator_are_bounded() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![address(1)], unknown: vec![] }).expect("good");
    let of = |number: usize, who| ask(number as u32, &[numbered(number)], Initiators::Exact(client(who)));
    for number in 0..MOST_KNOWN_OF_INITIATOR {
        assert!(waypoint.set_up(&of(number, 1), 0).is_ok(), "{number}");
    }
    let one_more = of(MOST_KNOWN_OF_INITIATOR, 1);
    assert_eq!(waypoint.set_up(&one_more, 1), Err(SetUpError::InitiatorFull));
    assert!(waypoint.set_up(&of(MOST_KNOWN_OF_INITIATOR, 2), 1).is_ok(), "another initiator");
    assert!(waypoint.set_up(&one_more, 3 * SECOND).is_ok());
    let earlier = packet(client(1), address(1), numbered(0));
    assert_eq!(waypoint.admit(&earlier, 3 * SECOND), Admission::Refused(Denial::NotOffered), "it gave way");
}

#[test]
fn bindings_of_one_initiator_are_bounded() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![address(1)], unknown: vec![] }).expect("good");
    let mut admit = |number: usize, who: u64| {
        let wanted = ask(number as u32, &[numbered(number)], Initiators::Exact(client(who)));
        // So much later that what was promised before is no longer waited for.
        let now = number as u64 * SECOND;
        let answer = waypoint.set_up(&wanted, now).expect("it is free");
        let packet = packet(client(who), answer.address, numbered(number));
        let admission = waypoint.admit(&packet, now);
        waypoint.prove(&packet.key);
        admission
    };
    for number in 0..MOST_OF_INITIATOR {
        assert_eq!(admit(number, 1), Admission::Admitted(Responder(number as u32)));
    }
    assert_eq!(admit(MOST_OF_INITIATOR, 1), Admission::Refused(Denial::BindingsFull));
    assert_eq!(admit(MOST_OF_INITIATOR, 2), Admission::Admitted(Responder(MOST_OF_INITIATOR as u32)));
}

#[test]
fn bindings_are_bounded_and_those_that_prove_themselves_at_once_are_not_held_up() {
    let mut waypoint = Waypoint::new(AddressPool { known: vec![], unknown: vec![address(1)] }).expect("good");
    let mut admit = |number: usize, now: u64| {
        let packet = packet(Ipv4Addr::from_bits((10 << 24) + number as u32), address(1), HTTPS);
        if number == 0 || now > SECOND {
            waypoint.set_up(&ask(7, &[HTTPS], Initiators::Any), now).expect("it is the same");
        }
        let admission = waypoint.admit(&packet, now);
        waypoint.prove(&packet.key);
        if number == 0 {
            waypoint.end(&packet.key, now);
        }
        admission
    };
    let admitted = Admission::Admitted(Responder(7));
    for number in 0..MOST_BINDINGS {
        assert_eq!(admit(number, number as u64 / 4), admitted, "{number}");
    }
    assert_eq!(admit(MOST_BINDINGS, SECOND), Admission::Refused(Denial::BindingsFull));
    assert_eq!(admit(MOST_BINDINGS, SECOND + QUARANTINE), admitted, "one that ended is forgotten");
    assert_eq!(admit(MOST_BINDINGS + 1, SECOND + QUARANTINE), Admission::Refused(Denial::BindingsFull));
}

#[test]
fn a_pool_that_cannot_be_used_is_refused() {
    let twice = AddressPool { known: vec![address(1)], unknown: vec![address(1)] };
    assert_eq!(
        Waypoint::new(twice).err().map(|one| one.to_string()).as_deref(),
        Some("203.0.113.1 stands twice in the pool")
    );
    let many = AddressPool { known: (0..2_000).map(Ipv4Addr::from_bits).collect(), unknown: vec![] };
    assert!(Waypoint::new(many).is_err());
    assert!(Services::new((0..65).map(|port| Service { protocol: 6, port })).is_err());
    assert!(Services::new((0..200).map(|port| Service { protocol: 6, port: port % 64 })).is_ok());
}
