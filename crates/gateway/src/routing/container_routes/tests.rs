//! What root of a container says of routes, and where they lead.

use super::*;
use crate::routing::port::{Link, PortSettings};
use crate::routing::router::{FollowedRoutes, RoutingSettings};
use crate::routing::rtnetlink::{Condition, Key};
use std::time::Duration;

fn prefix(text: &str) -> IpPrefix {
    text.parse().expect("a prefix")
}

/// A router with a network at each of two ports.
fn router() -> Router {
    router_with(5000)
}

/// The same with room for so many next hops.
fn router_with(next_hops: usize) -> Router {
    let port = |interface: &str, addresses: [&str; 2]| PortSettings {
        interface: interface.into(),
        addresses: addresses.map(|text| text.parse().expect("an address")).to_vec(),
        ..PortSettings::default()
    };
    let ports = vec![port("x", ["10.0.1.1/24", "fd00:1::1/64"]), port("y", ["10.0.2.1/24", "fd00:2::1/64"])];
    Router::new(
        &RoutingSettings { ports, routes: Vec::new(), kernel: FollowedRoutes::Container(3) },
        next_hops,
        0,
    )
}

fn route(to: IpPrefix, next_hops: &[Option<&str>], news: RouteNews) -> Told {
    let key = Key { prefix: to, condition: None, metric: 0 };
    let hop = |text: &Option<&str>| Hop::By(2, text.map(|text| text.parse().expect("an address")));
    Told::Route { key, hops: next_hops.iter().map(hop).collect(), weights: Vec::new(), news }
}

fn via(port: PortNumber, address: &str) -> Option<Way> {
    Some(Way::Via(Neighbour { port, address: address.parse().expect("an address") }))
}

/// Takes it in, and all that follows from it.
fn takes(routes: &mut ContainerRoutes, router: &mut Router, told: Vec<Told>) {
    routes.take(told);
    while routes.is_behind() {
        routes.settle(router, &mut Effects::default());
    }
}

/// Answers a whole round; says what was asked.
fn round(routes: &mut ContainerRoutes, router: &mut Router, now: Instant, all: &[Told]) -> Vec<Wanted> {
    let mut asked = Vec::new();
    while let Some(wanted) = routes.question(now) {
        asked.push(wanted);
        let told = if wanted == Wanted::Ipv4Routes { all } else { &[] };
        takes(routes, router, [told, &[Told::Done { broken: false }]].concat());
    }
    asked
}

#[test]
fn next_hops_are_at_the_port_of_their_network() {
    let (mut routes, mut router) = (ContainerRoutes::new(Instant::now()), router());
    let nowhere = Some(Way::Unmeant(Unmeant::NoNetwork));
    let (four, six) = (prefix("198.51.100.0/24"), prefix("2001:db8::/32"));
    type Case<'a> = (IpPrefix, &'a [Option<&'a str>], Option<Way>);
    let cases: [Case<'_>; 11] = [
        (four, &[Some("10.0.2.7")], via(2, "10.0.2.7")),
        (four, &[Some("10.0.1.7"), Some("10.0.2.7")], via(1, "10.0.1.7")),
        (four, &[Some("10.0.1.1")], None),
        (four, &[None], None),
        (four, &[Some("172.31.0.9")], nowhere),
        (four, &[Some("10.0.1.1"), Some("10.0.2.7")], via(2, "10.0.2.7")),
        (six, &[Some("fd00:2::7")], via(2, "fd00:2::7")),
        (six, &[Some("fe80::7")], nowhere),
        (prefix("10.0.2.128/25"), &[Some("10.0.1.7")], None),
        (prefix("10.0.2.9/32"), &[Some("10.0.1.7")], None),
        (prefix("10.0.0.0/16"), &[Some("10.0.1.7")], via(1, "10.0.1.7")),
    ];
    for (to, next_hops, wanted) in cases {
        takes(&mut routes, &mut router, vec![route(to, next_hops, RouteNews::Replaces)]);
        assert_eq!(router.kernel_way(to), wanted, "{to} {next_hops:?}");
        takes(&mut routes, &mut router, vec![route(to, next_hops, RouteNews::Went)]);
        assert_eq!(router.kernel_way(to), None);
    }
    assert!(routes.routers.is_empty());
    // For some packets alone: the others have their own way.
    let key = Key { prefix: four, condition: Some(Condition::Tos(16)), metric: 0 };
    let told = Told::Route {
        key,
        hops: vec![Hop::Nowhere(Way::Blackhole)],
        weights: Vec::new(),
        news: RouteNews::Came,
    };
    takes(&mut routes, &mut router, vec![told]);
    assert_eq!(router.kernel_way(four), None);
}

#[test]
fn routes_lead_to_so_many_routers_and_no_more() {
    let (mut routes, mut router) = (ContainerRoutes::new(Instant::now()), router());
    let to = |number: usize| IpPrefix::of([100, (number >> 8) as u8, number as u8, 0].into(), 24);
    let by = |number: usize| format!("fd00:2::1:{number:x}");
    for number in 0..CONTAINER_ROUTERS + 9 {
        takes(&mut routes, &mut router, vec![route(to(number), &[Some(&by(number))], RouteNews::Came)]);
    }
    let too_many = Some(Way::Unmeant(Unmeant::TooManyRouters));
    assert_eq!(router.kernel_way(to(CONTAINER_ROUTERS - 1)), via(2, &by(CONTAINER_ROUTERS - 1)));
    assert_eq!(router.kernel_way(to(CONTAINER_ROUTERS)), too_many);
    // One that is known already may have more of them, and what goes makes room.
    takes(&mut routes, &mut router, vec![route(to(5000), &[Some(&by(0))], RouteNews::Came)]);
    assert_eq!(router.kernel_way(to(5000)), via(2, &by(0)));
    let wait = |router: &Router| {
        (CONTAINER_ROUTERS..CONTAINER_ROUTERS + 9)
            .filter(|number| router.kernel_way(to(*number)) == too_many)
            .count()
    };
    for (number, left) in [(5000, 9), (0, 8), (1, 7)] {
        let gone = route(to(number), &[Some(&by(number % 5000))], RouteNews::Went);
        takes(&mut routes, &mut router, vec![gone]);
        assert_eq!((router.kernel_way(to(number)), wait(&router)), (None, left));
    }
    // Whoever waits for one router comes in with it, however many prefixes these are.
    let waits = |number: usize| IpPrefix::of([101, (number >> 8) as u8, number as u8, 0].into(), 24);
    let count = 2 * AT_ONCE + 9;
    for number in 0..count {
        takes(&mut routes, &mut router, vec![route(waits(number), &[Some("10.0.1.7")], RouteNews::Came)]);
    }
    for number in 2..20 {
        takes(&mut routes, &mut router, vec![route(to(number), &[Some(&by(number))], RouteNews::Went)]);
    }
    let led = (0..count).filter(|number| router.kernel_way(waits(*number)) == via(1, "10.0.1.7")).count();
    assert_eq!((led, routes.left_out.len()), (count, 0));
    assert!(routes.routers.len() < CONTAINER_ROUTERS);
    // Of few next hops a quarter.
    let (mut routes, mut router) = (ContainerRoutes::new(Instant::now()), router_with(40));
    for number in 0..40 {
        takes(&mut routes, &mut router, vec![route(to(number), &[Some(&by(number))], RouteNews::Came)]);
    }
    assert_eq!((routes.routers.len(), routes.left_out.len()), (10, 30));
}

#[test]
fn of_many_next_hops_few_are_known_and_of_many_prefixes_few_change_at_once() {
    let (mut routes, mut router) = (ContainerRoutes::new(Instant::now()), router());
    let to = prefix("198.51.100.0/24");
    // Those behind the first ones are not looked at.
    let mut next_hops = vec![Some("172.31.0.9"); CONTAINER_HOPS_OF_PREFIX];
    next_hops.push(Some("10.0.2.7"));
    takes(&mut routes, &mut router, vec![route(to, &next_hops, RouteNews::Came)]);
    assert_eq!(router.kernel_way(to), Some(Way::Unmeant(Unmeant::NoNetwork)));
    let group = Object::Group((0..1000).map(|number| (number, 1)).collect());
    let one = Told::Object { number: 16, object: Some(Object::One(Hop::By(2, "10.0.2.7".parse().ok()))) };
    takes(&mut routes, &mut router, vec![one, Told::Object { number: 5000, object: Some(group) }]);
    let key = |number: usize| Key {
        prefix: IpPrefix::of([100, (number >> 8) as u8, number as u8, 0].into(), 24),
        condition: None,
        metric: 0,
    };
    let by = |number, object| Told::Route {
        key: key(number),
        hops: vec![Hop::Object(object)],
        weights: Vec::new(),
        news: RouteNews::Came,
    };
    takes(&mut routes, &mut router, vec![by(0, 5000)]);
    assert_eq!(router.kernel_way(key(0).prefix), Some(Way::Unmeant(Unmeant::NoHop)), "the 17th member");

    let count = 3 * AT_ONCE;
    takes(&mut routes, &mut router, (0..count).map(|number| by(number, 16)).collect());
    let other = Object::One(Hop::By(2, "10.0.2.8".parse().ok()));
    routes.take(vec![Told::Object { number: 16, object: Some(other) }]);
    for turn in 1..=3 {
        assert!(routes.is_behind() && !routes.is_settled());
        routes.settle(&mut router, &mut Effects::default());
        let other = (0..count).filter(|number| router.kernel_way(key(*number).prefix) == via(2, "10.0.2.8"));
        assert_eq!(other.count(), turn * AT_ONCE);
    }
    assert!(!routes.is_behind());
}

#[test]
fn all_is_asked_for_again_after_a_loss_and_not_at_once_again() {
    let now = Instant::now();
    let (mut routes, mut router) = (ContainerRoutes::new(now), router());
    let [stays, goes] = ["198.51.100.0/24", "203.0.113.0/24"].map(prefix);
    let listed = |to| route(to, &[Some("10.0.2.7")], RouteNews::Listed);
    let whole = [Wanted::NextHops, Wanted::Ipv4Routes, Wanted::Ipv6Routes];
    assert_eq!(round(&mut routes, &mut router, now, &[listed(stays), listed(goes)]), whole);
    assert!(routes.is_settled() && router.kernel_way(goes).is_some());
    let link = Link { index: 2, mac: [2, 0, 0, 0, 0, 9], mtu: 1500, up: true };
    let link = Told::Link { index: 2, name: "services".into(), link: Some(link), ties: None };
    takes(&mut routes, &mut router, vec![link.clone()]);
    assert_eq!(routes.question(now), None, "not within a second");
    let later = now + BETWEEN_LISTINGS;
    // It changes again while it is asked for: that round takes nothing away.
    assert_eq!(routes.question(later), Some(Wanted::NextHops));
    takes(&mut routes, &mut router, vec![link, Told::Done { broken: false }]);
    let rest = round(&mut routes, &mut router, later, &[listed(stays)]);
    assert_eq!((rest, router.kernel_way(goes).is_some()), (whole[1..].to_vec(), true));
    assert_eq!(routes.question(later + BETWEEN_LISTINGS - Duration::from_millis(1)), None);
    assert_eq!(round(&mut routes, &mut router, later + BETWEEN_LISTINGS, &[listed(stays)]), whole);
    assert_eq!((router.kernel_way(stays), router.kernel_way(goes)), (via(2, "10.0.2.7"), None));
    assert!(routes.is_settled());
}
