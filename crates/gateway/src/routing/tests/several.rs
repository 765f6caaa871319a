//! Routes by several next hops: flows of a group stay where they are while other next hops come and go.

use super::*;
use crate::routing::follower::Follower;
use crate::routing::rtnetlink::{Hop, Key, Told};
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
        let settings = Scene::settings();
        let mut scene = Scene::of(&settings, 16);
        scene.router = scene.router.with_groups(count);
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
        let key = Key { prefix: prefix.parse().expect("a prefix"), condition: None, metric: 0 };
        let hops: Vec<Hop> = hops.iter().map(|which| hop(*which)).collect();
        let there = !hops.is_empty();
        let hops = if there { hops } else { (0..4).map(hop).collect() };
        self.told(vec![Told::Route { key, hops, there, replaces: there }]);
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
        let mut router = Router::new(&spread.scene.settings, 16).with_groups(count);
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
