//! Routes by several next hops: flows of a group stay where they are while other next hops come and go.

use super::*;
use crate::routing::follower::Follower;
use crate::routing::rib::Source;
use crate::routing::rtnetlink::{Hop, Key, Object, RouteNews, Told};
use std::collections::HashMap;

/// The next hops of the tests: two at port 1 and two at port 2.
const HOPS: [&str; 4] = ["10.0.1.11", "10.0.1.12", "10.0.2.13", "10.0.2.14"];

/// A scene whose program has groups.
struct Spread {
    scene: Scene,
    follower: Follower,
}

fn hop(which: usize) -> Hop {
    Hop::By(1 + which as u32 / 2, Some(address(HOPS[which])))
}

fn link(port: u32, up: bool) -> Told {
    let link = Link { index: port, mac: OWN[port as usize - 1], mtu: 1500, up };
    Told::Link { index: port, name: format!("x{port}"), link: Some(link), ties: None }
}

impl Spread {
    fn new(count: u16) -> Spread {
        Spread::of(Scene::settings(), count)
    }

    /// With what a file says.
    fn of(settings: RoutingSettings, count: u16) -> Spread {
        let scene = Scene::of(&settings, 16, count);
        let follower = Follower::new(&settings, HashMap::new());
        let mut spread = Spread { scene, follower };
        spread.told(vec![link(1, true), link(2, true)]);
        spread
    }

    fn replay(&mut self, effects: Effects) -> Vec<Injected> {
        let frames = self.scene.replay(effects);
        self.scene.check();
        frames
    }

    fn told(&mut self, told: Vec<Told>) {
        let mut effects = Effects::default();
        self.follower.take(told, self.scene.now, &mut self.scene.router, &mut effects);
        self.replay(effects);
    }

    /// The kernel has a route by these next hops.
    fn route(&mut self, prefix: &str, hops: &[usize]) {
        self.weighted(prefix, hops, &[]);
    }

    /// The same; they have these weights.
    fn weighted(&mut self, prefix: &str, hops: &[usize], weights: &[u32]) {
        let key = Key { prefix: prefix.parse().expect("a prefix"), condition: None, metric: 0 };
        let hops: Vec<Hop> = hops.iter().map(|which| hop(*which)).collect();
        let there = !hops.is_empty();
        let hops = if there { hops } else { (0..4).map(hop).collect() };
        let news = if there { RouteNews::Replaces } else { RouteNews::Went };
        self.told(vec![Told::Route { key, hops, weights: weights.to_vec(), news }]);
    }

    /// Next hops say where they are; the others do not answer.
    fn answers(&mut self, which: &[usize]) {
        for which in which {
            let (port, own) = (1 + which / 2, OWN[which / 2]);
            let bytes = arp(
                false,
                ([2, 0, 0, 9, 9, *which as u8], HOPS[*which]),
                (own, &format!("10.0.{port}.1")),
                own,
            );
            let mut effects = Effects::default();
            let packet = Packet { port: port as u16, bytes, virtio: VirtioHeader::NONE };
            self.scene.router.packet("neighbours", packet, self.scene.now, &mut effects);
            self.replay(effects);
        }
    }

    /// Time passes; what is asked for meanwhile.
    fn wait(&mut self, seconds: u64) -> Vec<Injected> {
        let mut frames = Vec::new();
        for _ in 0..seconds {
            self.scene.now += SECOND;
            let mut effects = Effects::default();
            self.scene.router.advance(self.scene.now, &mut effects);
            frames.extend(self.replay(effects));
        }
        frames
    }

    /// To which next hop each of 1,000 flows of a prefix goes.
    fn flows(&self, prefix: &str) -> Vec<Option<String>> {
        let number = self.scene.route(prefix).expect("a route");
        let hop_of = |flow: u32| {
            let bucket = [number, (flow % 64).into()].map(Match::Exact).to_vec();
            let of_group = self.scene.tables.get(&(Filled::Groups, bucket)).map(|entry| entry.value[0]);
            let number = of_group.unwrap_or(number);
            let (_, entry) = self
                .scene
                .tables
                .iter()
                .find(|((table, key), _)| *table == Filled::NextHops && *key == [Match::Exact(number)])?;
            Some(format!("{}", entry.value[1] & 0xff))
        };
        (0..1000).map(hop_of).collect()
    }
}

/// How many flows go to each next hop.
fn counted(flows: &[Option<String>]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for flow in flows {
        *counted.entry(flow.clone().unwrap_or("nowhere".into())).or_default() += 1;
    }
    counted
}

/// The next hops of flows that moved: from and to.
fn moved(before: &[Option<String>], after: &[Option<String>]) -> BTreeSet<(String, String)> {
    let name = |flow: &Option<String>| flow.clone().unwrap_or("nowhere".into());
    let moved = before.iter().zip(after).filter(|(before, after)| before != after);
    moved.map(|(before, after)| (name(before), name(after))).collect()
}

const TO: &str = "203.0.113.0/24";

#[test]
fn flows_stay_where_they_are_while_other_next_hops_come_and_go() {
    let mut spread = Spread::new(4);
    spread.route(TO, &[0, 1, 2]);
    assert_eq!(counted(&spread.flows(TO)), BTreeMap::from([("nowhere".to_owned(), 1000)]), "nobody is known");
    assert_eq!(spread.wait(1).len(), 3, "all three are asked for, without a packet");
    spread.answers(&[0, 1, 2]);
    let all = spread.flows(TO);
    assert!(
        counted(&all).len() == 3 && counted(&all).values().all(|count| *count > 250),
        "{:?}",
        counted(&all)
    );

    // A route loses a next hop, and gets it again.
    spread.route(TO, &[0, 1]);
    let two = spread.flows(TO);
    let gone = moved(&all, &two);
    assert!(gone.iter().all(|(from, _)| from == "2") && gone.len() == 2, "{gone:?}");
    spread.route(TO, &[0, 1, 2]);
    let again = spread.flows(TO);
    let came = moved(&two, &again);
    assert!(came.iter().all(|(_, to)| to == "2") && came.len() == 2, "{came:?}");

    // The link of one goes off and on: only it is missing.
    spread.told(vec![link(2, false)]);
    let off = spread.flows(TO);
    let gone = moved(&again, &off);
    assert!(gone.iter().all(|(from, _)| from == "2") && gone.len() == 2, "{gone:?}");
    spread.told(vec![link(2, true)]);
    assert_eq!(moved(&off, &spread.flows(TO)), BTreeSet::new());
    spread.wait(11);
    spread.answers(&[2]);
    assert!(moved(&off, &spread.flows(TO)).iter().all(|(_, to)| to == "2"));

    // One answers no more.
    let before = spread.flows(TO);
    for _ in 0..120 {
        spread.wait(1);
        spread.answers(&[1, 2]);
    }
    let silent = moved(&before, &spread.flows(TO));
    assert!(silent.iter().all(|(from, _)| from == "0") && silent.len() == 2, "{silent:?}");
    // The route goes, and its group with it.
    spread.route(TO, &[]);
    assert_eq!(spread.scene.route(TO), None);
    assert!(spread.scene.router.entries(Filled::Groups).is_empty());
    assert!(spread.scene.router.paths.is_empty());
}

#[test]
fn next_hops_have_flows_by_their_weights_and_few_move_when_these_change() {
    // Of 64 buckets, by the numbers of the next hops.
    let buckets = |spread: &Spread| {
        let entries = spread.scene.router.entries(Filled::Groups);
        let held = |which: usize| {
            let neighbour = Neighbour { port: 1 + which as u16 / 2, address: address(HOPS[which]) };
            let number = spread.scene.router.numbers.of(neighbour).map(u128::from);
            entries.iter().filter(|entry| Some(entry.value[0]) == number).count()
        };
        [0, 1, 2].map(held)
    };
    let mut spread = Spread::new(4);
    spread.weighted(TO, &[0, 1], &[3, 1]);
    spread.wait(1);
    spread.answers(&[0, 1, 2]);
    assert_eq!(buckets(&spread), [48, 16, 0]);
    let before = spread.flows(TO);
    // The weights alone change.
    spread.weighted(TO, &[0, 1], &[1, 1]);
    assert_eq!(buckets(&spread), [32, 32, 0]);
    let heavy_to_light = BTreeSet::from([("0".to_owned(), "1".to_owned())]);
    assert_eq!(moved(&before, &spread.flows(TO)), heavy_to_light);
    let before = spread.flows(TO);
    spread.weighted(TO, &[0, 1], &[7, 7]);
    assert_eq!(spread.flows(TO), before, "the same parts");
    // One more, of half the weight of all.
    spread.weighted(TO, &[0, 1, 2], &[1, 1, 2]);
    spread.wait(1);
    spread.answers(&[2]);
    assert_eq!(buckets(&spread), [16, 16, 32]);
    // One that goes and comes again has its part again.
    spread.told(vec![link(2, false)]);
    assert_eq!(buckets(&spread), [32, 32, 0]);
    spread.told(vec![link(2, true)]);
    spread.wait(11);
    spread.answers(&[2]);
    assert_eq!(buckets(&spread), [16, 16, 32]);
    // The same by a group of numbered next hops.
    let object = |number, object| Told::Object { number, object: Some(object) };
    let ones = [0, 1].map(|which| object(70 + which as u32, Object::One(hop(which))));
    let of_group = |weights: [u32; 2]| object(9, Object::Group(vec![(70, weights[0]), (71, weights[1])]));
    spread.told([&ones[..], &[of_group([3, 1])]].concat());
    let key = Key { prefix: TO.parse().expect("a prefix"), condition: None, metric: 0 };
    let hops = vec![Hop::Object(9)];
    spread.told(vec![Told::Route { key, hops, weights: Vec::new(), news: RouteNews::Replaces }]);
    assert_eq!(buckets(&spread), [48, 16, 0]);
    let before = spread.flows(TO);
    spread.told(vec![of_group([15, 1])]);
    assert_eq!(buckets(&spread), [60, 4, 0]);
    assert_eq!(moved(&before, &spread.flows(TO)), BTreeSet::from([("1".to_owned(), "0".to_owned())]));
    // A reload keeps it.
    let before = spread.flows(TO);
    let mut router = Router::new(&spread.scene.settings, 16, 4);
    router.succeed(&spread.scene.router);
    spread.scene.router = router;
    spread.scene.fill();
    assert_eq!((buckets(&spread), spread.flows(TO)), ([60, 4, 0], before));
}

#[test]
fn a_packet_that_comes_before_anybody_is_known_waits_for_one_that_is() {
    let mut spread = Spread::new(4);
    spread.route(TO, &[0, 2]);
    spread.told(vec![link(1, false)]);
    let mut effects = Effects::default();
    let packet = Packet { port: 2, bytes: datagram("203.0.113.9", 64, 9), virtio: VirtioHeader::NONE };
    spread.scene.router.packet("unresolved", packet, spread.scene.now, &mut effects);
    let asked = spread.replay(effects);
    assert!(asked.len() == 1 && asked[0].port == 2, "the link of the other is down: {asked:?}");
    spread.answers(&[2]);
    assert_eq!(spread.scene.count(Fate::Sent), 1);
}

#[test]
fn without_a_group_the_first_next_hop_is_used_until_there_is_one_again() {
    let mut spread = Spread::new(1);
    let [one, two] = ["203.0.113.0/25", "203.0.113.128/25"];
    spread.route(one, &[0, 1]);
    spread.route(two, &[1, 2]);
    spread.wait(1);
    spread.answers(&[0, 1, 2]);
    assert_eq!(counted(&spread.flows(one)).len(), 2);
    assert_eq!(counted(&spread.flows(two)), BTreeMap::from([("1".to_owned(), 1000)]), "no group is left");
    spread.route(one, &[]);
    spread.wait(1);
    spread.answers(&[2]);
    assert_eq!(counted(&spread.flows(two)).len(), 2, "there is one again");
    // A program without groups.
    let mut spread = Spread::new(0);
    spread.route(one, &[2, 1]);
    assert_eq!(spread.scene.route(one), Some(2), "the first, after that of the route in the file");
    let by = |spread: &Spread| spread.scene.router.rib.lookup(address("203.0.113.1")).map(|(.., way)| way);
    let hop = |port, which: usize| Some(Way::Via(Neighbour { port, address: address(HOPS[which]) }));
    assert_eq!(by(&spread), hop(2, 2));
    spread.told(vec![link(2, false)]);
    assert_eq!(by(&spread), hop(1, 1), "the first with a link");
}

/// Linux keeps those that somebody has set when the link goes.
#[test]
fn a_permanent_neighbour_behind_a_link_that_is_down_gets_no_flows() {
    let mut spread = Spread::new(4);
    spread.follower = Follower::new(&Scene::settings(), HashMap::from([("h-1".to_owned(), 1)]));
    let at_host = Link { index: 8, mac: OWN[0], mtu: 1500, up: true };
    let host =
        Told::Link { index: 8, name: "h-1".into(), link: Some(at_host), ties: Some(Default::default()) };
    let set = |spread: &mut Spread, mac: Option<Mac>| {
        spread.told(vec![Told::Neighbour { index: 8, address: address(HOPS[0]), permanent: mac }]);
    };
    spread.told(vec![host, link(1, true), link(2, true)]);
    spread.route(TO, &[0, 2]);
    spread.wait(1);
    set(&mut spread, Some([2, 0, 0, 9, 9, 0]));
    spread.answers(&[2]);
    assert_eq!(counted(&spread.flows(TO)).len(), 2);
    spread.told(vec![link(1, false)]);
    let one = BTreeMap::from([("2".to_owned(), 1000)]);
    assert_eq!(counted(&spread.flows(TO)), one);
    set(&mut spread, None);
    set(&mut spread, Some([2, 0, 0, 9, 9, 0]));
    assert_eq!(counted(&spread.flows(TO)), one, "it is set while the link is down");
    spread.told(vec![link(1, true)]);
    assert_eq!(counted(&spread.flows(TO)).len(), 2);
}

/// Linux uses the first of several routes with one metric, and the others are spare. Each route of IPv6 has
/// one next hop, and those with one metric belong together.
#[test]
fn routes_of_ipv4_that_were_appended_are_spare() {
    let mut spread = Spread::new(4);
    let key = Key { prefix: TO.parse().expect("a prefix"), condition: None, metric: 0 };
    let tell = |spread: &mut Spread, which: usize, news: RouteNews| {
        spread.told(vec![Told::Route { key, hops: vec![hop(which)], weights: Vec::new(), news }]);
    };
    tell(&mut spread, 0, RouteNews::Came);
    tell(&mut spread, 2, RouteNews::Appended);
    let by = |spread: &Spread| spread.scene.router.rib.lookup(address("203.0.113.1")).map(|(.., way)| way);
    let only = |which: usize| {
        let port = 1 + which as u16 / 2;
        Some(Way::Via(Neighbour { port, address: address(HOPS[which]) }))
    };
    assert_eq!(by(&spread), only(0));
    // One that is put before the others.
    tell(&mut spread, 3, RouteNews::Came);
    assert_eq!(by(&spread), only(3));
    tell(&mut spread, 3, RouteNews::Went);
    assert_eq!(by(&spread), only(0));
    tell(&mut spread, 0, RouteNews::Went);
    assert_eq!(by(&spread), only(2));
    // All are asked for, and both are next hops of one route.
    spread.told(vec![Told::Route {
        key,
        hops: vec![hop(1), hop(2)],
        weights: Vec::new(),
        news: RouteNews::Listed,
    }]);
    let both = by(&spread);
    assert!(matches!(both, Some(Way::Several(_))), "{both:?}");
    // Of several the first is replaced, and the spare one stays.
    tell(&mut spread, 0, RouteNews::Came);
    tell(&mut spread, 3, RouteNews::Replaces);
    assert_eq!(by(&spread), only(3));
    tell(&mut spread, 3, RouteNews::Went);
    assert!(matches!(by(&spread), Some(Way::Several(_))), "{:?}", by(&spread));
}

#[test]
fn a_reload_keeps_the_ways_of_flows() {
    let mut spread = Spread::new(4);
    // Numbers are others afterwards.
    spread.route("198.18.0.0/15", &[3]);
    spread.route(TO, &[0, 1, 2]);
    spread.route("198.18.0.0/15", &[]);
    spread.wait(1);
    spread.answers(&[2, 1, 0]);
    let before = spread.flows(TO);
    assert_eq!(counted(&before).len(), 3);
    let reload = |spread: &mut Spread, count| {
        let mut router = Router::new(&spread.scene.settings, 16, count);
        router.succeed(&spread.scene.router);
        spread.scene.router = router;
        spread.scene.fill();
        spread.scene.check();
    };
    reload(&mut spread, 1);
    assert_eq!(spread.flows(TO), before);
    reload(&mut spread, 0);
    assert_eq!(counted(&spread.flows(TO)).len(), 1, "the program has no groups any more");
}

/// What a file says that has a route by these next hops, each with its weight.
fn of_file(hops: &[(usize, u32)]) -> RoutingSettings {
    let mut settings = Scene::settings();
    let member = |which: usize| Neighbour { port: 1 + which as u16 / 2, address: address(HOPS[which]) };
    let via = hops.iter().map(|(which, weight)| (member(*which), *weight)).collect();
    settings.routes.push(StaticRoute { to: TO.parse().expect("a prefix"), via });
    settings
}

#[test]
fn a_route_of_the_file_by_several_next_hops_has_flows_by_their_weights_and_keeps_them() {
    let mut spread = Spread::of(of_file(&[(0, 1), (1, 1), (2, 2)]), 4);
    spread.scene.check();
    assert_eq!(spread.wait(1).len(), 3, "all three are asked for, without a packet");
    spread.answers(&[0, 1, 2]);
    let all = spread.flows(TO);
    // A bucket has 15 or 16 of the flows.
    let by_weight = |flows: &[Option<String>]| {
        let of = counted(flows);
        of["2"] > 470 && of["0"] > 230 && of["1"] > 230
    };
    assert!(by_weight(&all), "{:?}", counted(&all));
    // The kernel's route to the same prefix waits behind it, though its flows go by the same set.
    spread.weighted(TO, &[0, 1, 2], &[1, 1, 2]);
    spread.weighted("198.18.0.0/15", &[0, 1, 2], &[1, 1, 2]);
    assert_eq!((spread.flows(TO), spread.flows("198.18.0.0/15")), (all.clone(), all.clone()));
    spread.route("198.18.0.0/15", &[]);
    spread.route(TO, &[3]);
    assert_eq!(spread.flows(TO), all);
    // Links go and come.
    spread.told(vec![link(2, false)]);
    let one_link = spread.flows(TO);
    assert!(moved(&all, &one_link).iter().all(|(from, _)| from == "2"));
    assert_eq!(counted(&one_link).len(), 2);
    spread.told(vec![link(1, false)]);
    let way = |spread: &Spread| spread.scene.router.rib.best(TO.parse().expect("a prefix"));
    assert_eq!(way(&spread), None, "no link is there");
    spread.told(vec![link(2, true)]);
    assert!(matches!(way(&spread), Some((Source::Static, Way::Several(_)))));
    spread.wait(11);
    spread.answers(&[2, 3]);
    assert_eq!(counted(&spread.flows(TO)), BTreeMap::from([("2".to_owned(), 1000)]));
    spread.told(vec![link(1, true)]);
    spread.wait(11);
    spread.answers(&[0, 1]);
    let again = spread.flows(TO);
    assert!(by_weight(&again), "{:?}", counted(&again));

    // A reload, and one with a next hop less.
    spread.scene.reload();
    spread.scene.check();
    assert_eq!(spread.flows(TO), again);
    spread.scene.settings = of_file(&[(0, 1), (2, 2)]);
    spread.scene.reload();
    spread.scene.check();
    let less = spread.flows(TO);
    assert!(moved(&again, &less).iter().all(|(from, _)| from == "1"), "{:?}", moved(&again, &less));
    assert_eq!(counted(&less).len(), 2);
    // The kernel's routes have what is left.
    spread.route("198.18.0.0/15", &[0, 1]);
    spread.wait(1);
    spread.answers(&[1]);
    assert_eq!((counted(&spread.flows("198.18.0.0/15")).len(), spread.flows(TO)), (2, less));
}
