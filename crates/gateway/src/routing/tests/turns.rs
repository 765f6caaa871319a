//! Turns of the packet loop: what happens between two of them, and what becomes of entries without room.

use super::super::follower::Follower;
use super::super::rib::Source;
use super::super::rtnetlink::{Hop, Key, RouteNews, Told};
use super::super::turns::{
    CHANGES_AT_ONCE, Cause, EffectQueue, NumberedChanges, PacketLoop, WAITING_FRAME_BYTES, WAITING_FRAMES,
};
use super::super::{Controlled, Hosts, PACKETS, Routing, filled_tables::FilledTables};
use super::*;
use crate::remarks::Remarks;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A packet loop whose tables of routes take so many entries each.
struct SmallLoop<'a> {
    room: usize,
    tables: Mutex<BTreeMap<u32, BTreeMap<Vec<Match>, Entry>>>,
    turns: AtomicUsize,
    /// Frames, with the turn that they went in.
    frames: Mutex<Vec<(usize, Injected)>>,
    /// Called in the middle of each turn.
    meanwhile: &'a dyn Fn(&SmallLoop<'a>, usize),
}

impl PacketLoop for SmallLoop<'_> {
    fn change(&self, changes: &NumberedChanges) -> Vec<usize> {
        let turn = 1 + self.turns.fetch_add(1, Ordering::Relaxed);
        assert!(changes.len() <= CHANGES_AT_ONCE);
        (self.meanwhile)(self, turn);
        let mut tables = self.tables.lock().expect("nobody panics");
        let mut refused = Vec::new();
        for (place, (table, change)) in changes.iter().enumerate() {
            let limited = matches!(change.table, Filled::Routes | Filled::Routes6);
            let (held, key) = (tables.entry(*table).or_default(), change.entry.key.clone());
            if !change.insert {
                held.remove(&key);
            } else if !limited || held.len() < self.room || held.contains_key(&key) {
                held.insert(key, change.entry.clone());
            } else {
                refused.push(place);
            }
        }
        refused
    }

    fn send(&self, frames: Vec<Injected>) {
        let turn = self.turns.load(Ordering::Relaxed);
        self.frames.lock().expect("nobody panics").extend(frames.into_iter().map(|frame| (turn, frame)));
    }
}

impl<'a> SmallLoop<'a> {
    fn new(room: usize, meanwhile: &'a dyn Fn(&SmallLoop<'a>, usize)) -> SmallLoop<'a> {
        let (tables, turns, frames) = Default::default();
        SmallLoop { room, tables, turns, frames, meanwhile }
    }
}

/// The control plane of the scene's router.
fn routing() -> Routing {
    let Scene { router, settings, .. } = Scene::new();
    let tables = (0..).zip(Filled::ALL).map(|(number, table)| (table, number)).collect();
    let mut follower = Follower::new(&settings, HashMap::new());
    let links = [1, 2].map(|port: u32| {
        let link = Link { index: port, mac: OWN[port as usize - 1], mtu: 1500, up: true };
        Told::Link { index: port, name: format!("x{port}"), link: Some(link), ties: None }
    });
    let mut router = router;
    follower.take(links.to_vec(), 0, &mut router, &mut Effects::default());
    let state = Controlled {
        active: true,
        router,
        queue: EffectQueue::default(),
        follower,
        netlink: None,
        container: None,
        container_netlink: None,
        filled_tables: FilledTables { tables, routes: HashMap::new(), hops: 16, groups: 0 },
        many: None,
        many_routes: Instant::now(),
        many_neighbours: None,
        remarked: (0, Instant::now()),
    };
    let (hosts, remarks) = (Hosts::default(), Remarks::to(|_| {}).expect("a thread"));
    Routing {
        state: Mutex::new(state),
        turn: Mutex::default(),
        begun: Instant::now(),
        hosts,
        remarks,
        unmeant: AtomicUsize::new(0),
    }
}

/// What the kernel says of a route by the router of port 2.
fn route(number: u32, there: bool) -> Told {
    let prefix = IpPrefix::of(Ipv4Addr::from(20 << 24 | number << 8).into(), 24);
    let news = if there { RouteNews::Replaces } else { RouteNews::Went };
    let hops = vec![Hop::By(2, Some(address("10.0.2.7")))];
    Told::Route { key: Key { prefix, condition: None, metric: 0 }, hops, weights: Vec::new(), news }
}

#[test]
fn an_arp_request_is_answered_and_routes_are_shown_between_parts_of_a_large_change() {
    let routing = routing();
    let turns = 100_000_usize.div_ceil(CHANGES_AT_ONCE);
    let meanwhile = |packet_loop: &SmallLoop<'_>, turn: usize| {
        assert!(routing.state.try_lock().is_ok(), "control is held while changes are made");
        assert!(routing.turn.try_lock().is_err(), "two turns at once");
        if turn == 3 {
            let shown = routing.routes();
            assert_eq!(shown.routes.len(), 10_000);
            assert!(shown.changes_on_their_way >= 100_000 - 2 * CHANGES_AT_ONCE, "they are not made yet");
            let question = arp(true, (A, "10.0.1.2"), ([0; 6], "10.0.1.1"), EVERYBODY);
            let packet = Packet { port: 1, bytes: question, virtio: VirtioHeader::NONE };
            let asked = |_| Some(std::iter::once(("neighbours".into(), packet.clone())));
            assert!(routing.serve_some(asked, packet_loop));
        }
    };
    let packet_loop = SmallLoop::new(usize::MAX, &meanwhile);
    routing.told((0..100_000).map(|number| route(number, true)).collect(), &packet_loop);
    let frames = packet_loop.frames.lock().expect("nobody panics");
    let answered: Vec<usize> =
        frames.iter().filter(|(_, frame)| frame.port == 1).map(|(turn, _)| *turn).collect();
    assert_eq!(answered, [4], "with the turn after that in which it was asked");
    // What the answer brought is made in its order, behind the routes.
    while !routing.lock().queue.is_empty() {
        assert!(routing.serve_some(|_| Some(std::iter::empty()), &packet_loop));
    }
    assert_eq!(routing.routes().changes_on_their_way, 0);
    let made = packet_loop.turns.load(Ordering::Relaxed);
    assert!((turns..=turns + 1).contains(&made), "{made} turns");
    let state = routing.lock();
    for (table, number) in &state.filled_tables.tables {
        let tables = packet_loop.tables.lock().expect("nobody panics");
        let made: Vec<Entry> = tables.get(number).into_iter().flat_map(BTreeMap::values).cloned().collect();
        // What the router knew before is not in these tables.
        let before = Scene::new().router.entries(*table);
        let wanted: Vec<Entry> =
            state.router.entries(*table).into_iter().filter(|entry| !before.contains(entry)).collect();
        assert_eq!(made, wanted, "{table:?}");
    }
}

#[test]
fn frames_are_bounded_while_a_turn_lasts_and_no_packet_is_taken_that_has_no_room() {
    let routing = routing();
    let question = arp(true, (A, "10.0.1.2"), ([0; 6], "10.0.1.1"), EVERYBODY);
    let taken = AtomicUsize::new(0);
    let some = |_| {
        let packet = Packet { port: 1, bytes: question.clone(), virtio: VirtioHeader::NONE };
        let packets = std::iter::repeat_n(("neighbours".into(), packet), PACKETS);
        Some(packets.inspect(|_| {
            taken.fetch_add(1, Ordering::Relaxed);
        }))
    };
    let meanwhile = |packet_loop: &SmallLoop<'_>, turn: usize| {
        if turn == 1 {
            // As many questions again as find room.
            for _ in 0..2 * WAITING_FRAMES / PACKETS {
                assert!(routing.serve_some(some, packet_loop));
                assert!(routing.lock().queue.frames() < WAITING_FRAMES + 2 * PACKETS);
            }
        }
    };
    let packet_loop = SmallLoop::new(usize::MAX, &meanwhile);
    routing.told(vec![route(1, true)], &packet_loop);
    while !routing.lock().queue.is_empty() {
        assert!(routing.serve_some(|_| Some(std::iter::empty()), &packet_loop));
    }
    let frames = packet_loop.frames.lock().expect("nobody panics");
    let answers = frames.iter().filter(|(_, frame)| frame.port == 1).count();
    let taken = taken.load(Ordering::Relaxed);
    assert!((WAITING_FRAMES..WAITING_FRAMES + 2 * PACKETS).contains(&taken), "{taken}");
    assert_eq!(answers, taken, "each question that was taken is answered");
}

#[test]
fn frames_and_packets_for_the_machine_have_room_by_number_and_by_bytes() {
    type Push<'a> = &'a dyn Fn(usize) -> Effects;
    let bytes = |length: usize| vec![0; length];
    let frame = |length| Effects {
        frames: vec![Injected { port: 1, bytes: bytes(length), virtio: VirtioHeader::NONE }],
        ..Effects::default()
    };
    let for_host = |length| Effects {
        for_host: vec![Packet { port: 1, bytes: bytes(length), virtio: VirtioHeader::NONE }],
        ..Effects::default()
    };
    let one_by_one: [(Push<'_>, usize, usize); 4] = [
        (&frame, 60, WAITING_FRAMES),
        (&for_host, 60, WAITING_FRAMES),
        (&frame, 65_536, WAITING_FRAME_BYTES / 65_536),
        (&for_host, 65_536, WAITING_FRAME_BYTES / 65_536),
    ];
    for (effects, length, most) in one_by_one {
        let mut queue = EffectQueue::default();
        for pushed in 0..most {
            assert!(queue.has_room(), "after {pushed} of {length} bytes");
            queue.push(effects(length), &HashMap::new(), Cause::Packets);
        }
        assert!(!queue.has_room(), "after {most} of {length} bytes");
        assert!(queue.take(CHANGES_AT_ONCE).is_some() && queue.has_room());
    }
}

#[test]
fn changes_that_packets_bring_are_bounded_while_they_wait() {
    let mut queue = EffectQueue::default();
    let tables = HashMap::from([(Filled::NextHops, 3)]);
    let entry = || (Filled::NextHops, effects_entry());
    let mut pushed = 0;
    while queue.has_room() {
        let mut effects = Effects::default();
        (0..64).for_each(|_| effects.insert(entry()));
        queue.push(effects, &tables, Cause::Packets);
        pushed += 64;
    }
    assert_eq!(pushed, super::super::turns::WAITING_OF_PACKETS);
    assert!(!queue.has_of_kernel());
    // A change of the kernel takes no room from them.
    let mut effects = Effects::default();
    effects.insert(entry());
    queue.push(effects, &tables, Cause::Kernel);
    assert!(
        queue.has_of_kernel()
            && queue.take(CHANGES_AT_ONCE).is_some_and(|turn| turn.changes.len() == CHANGES_AT_ONCE)
    );
    assert!(queue.has_room());
    queue.forget_changes();
    assert!(queue.is_empty() && !queue.has_of_kernel());
}

#[test]
fn a_retry_goes_behind_newer_changes_of_its_prefix_in_a_queue_of_several_turns() {
    let routing = routing();
    let mut random = 1_u32;
    let mut changes = |count: usize| -> Vec<Told> {
        let one = |_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            route(random >> 16 & 0x7ff, random >> 30 != 0)
        };
        (0..count).map(one).collect()
    };
    let later: Vec<Vec<Told>> = (0..40).map(|_| changes(700)).collect();
    let later = Mutex::new(later.into_iter());
    // More is told in the middle of turns, so that it waits behind what found no room and before retries.
    let meanwhile = |_: &SmallLoop<'_>, _: usize| {
        let Some(told) = later.lock().expect("nobody panics").next() else { return };
        routing.take_told(told);
    };
    let room = 900;
    let packet_loop = SmallLoop::new(room, &meanwhile);
    routing.told(changes(2_000), &packet_loop);
    routing.told(changes(600), &packet_loop);
    let state = routing.lock();
    assert!(state.queue.is_empty() && later.lock().expect("nobody panics").next().is_none());
    let before = Scene::new().router.entries(Filled::Routes);
    let wanted = state.router.entries(Filled::Routes);
    let wanted: Vec<&Entry> = wanted.iter().filter(|entry| !before.contains(entry)).collect();
    let tables = packet_loop.tables.lock().expect("nobody panics");
    assert_eq!(tables[&0].len(), wanted.len().min(room));
    assert!(wanted.len() > room, "{} routes are too few to show anything", wanted.len());
    for entry in wanted {
        let prefix = IpPrefix::of_key(&entry.key[0], true).expect("a prefix");
        assert_eq!(tables[&0].get(&entry.key), state.router.installed(prefix).then_some(entry));
    }
}

#[test]
fn a_route_without_room_counts_once_however_often_it_is_tried() {
    let routing = routing();
    let packet_loop = SmallLoop::new(2, &|_, _| {});
    routing.told((0..6).map(|number| route(number, true)).collect(), &packet_loop);
    assert_eq!(routing.lock().router.account.entries_refused, 4);
    for round in 0..8 {
        // One goes and a new one comes before what had no room is tried again.
        let held = packet_loop.tables.lock().expect("nobody panics")[&0].keys().next().cloned();
        let goes = IpPrefix::of_key(&held.expect("a full table")[0], true).expect("a prefix");
        let IpAddr::V4(address) = goes.address() else { panic!("{goes}") };
        let number = u32::from(address) >> 8 & 0xff;
        routing.told(vec![route(number, false), route(100 + round, true)], &packet_loop);
        let state = routing.lock();
        assert!(!state.router.installed(goes) && state.queue.is_empty());
        let wanted = state.router.entries(Filled::Routes);
        let lacking = wanted.iter().filter(|entry| {
            let prefix = IpPrefix::of_key(&entry.key[0], true).expect("a prefix");
            !Scene::new().router.entries(Filled::Routes).contains(entry) && !state.router.installed(prefix)
        });
        assert_eq!(lacking.count(), 4);
        assert_eq!(state.router.account.entries_refused, 4, "nobody else was refused in round {round}");
    }
}

#[test]
fn a_reload_leaves_out_routes_of_the_kernel_that_have_no_room_and_nothing_else() {
    let routing = routing();
    let own = Scene::new().router.entries(Filled::Routes).len();
    let packet_loop = SmallLoop::new(4, &|_, _| {});
    // 2 and 3 had no room, and are the lowest afterwards.
    routing.told([4, 5, 6, 7, 2, 3].map(|number| route(number, true)).to_vec(), &packet_loop);
    routing.told(vec![route(8, true)], &packet_loop);
    let before = routing.lock().router.refused.clone();
    let state = routing.lock();
    let known: BTreeSet<IpPrefix> = state.router.fib_prefixes().copied().collect();
    for room in 0..own + 10 {
        let mut router = state.router.clone();
        router.refused = Default::default();
        router.leave_out(Filled::Routes, room, &before);
        let there: BTreeSet<IpPrefix> =
            known.iter().copied().filter(|prefix| !router.refused.has(*prefix)).collect();
        let [four, six] = [true, false].map(|four| there.iter().filter(|one| one.is_ipv4() == four).count());
        assert_eq!(four, room.clamp(own, own + 7), "of room for {room}");
        assert_eq!(six, known.iter().filter(|one| !one.is_ipv4()).count());
        let of_kernel = |one: &&IpPrefix| matches!(state.router.rib.best(**one), Some((Source::Kernel, _)));
        let waited = there.iter().filter(of_kernel).filter(|one| before.has(**one)).count();
        assert_eq!(waited, room.saturating_sub(own + 4).min(3), "who had room goes first");
    }
}

#[test]
fn a_full_table_changes_the_order_of_no_other() {
    let routing = routing();
    let full = SmallLoop::new(1, &|_, _| {});
    routing.told((0..3).map(|number| route(number, true)).collect(), &full);
    let mut state = routing.lock();
    let [halves, whole]: [[IpPrefix; 2]; 2] =
        [["2001:db8:5::/49", "2001:db8:5:8000::/49"], ["2001:db8:5::/48", "21.0.0.0/24"]]
            .map(|both| both.map(|text| text.parse().expect("a prefix")));
    let mut effects = Effects::default();
    let via = Some(Way::Via(Neighbour { port: 2, address: address("10.0.2.7") }));
    for prefix in whole {
        state.router.rib.set(prefix, Source::Kernel, via);
    }
    state.router.update_all(&whole, &mut effects);
    for (prefix, way) in [(whole[0], None), (whole[1], None), (halves[0], via), (halves[1], via)] {
        state.router.rib.set(prefix, Source::Kernel, way);
    }
    let mut effects = Effects::default();
    state.router.update_all(&[halves[0], halves[1], whole[0], whole[1]], &mut effects);
    let of_routes = effects.changes.iter().filter(|change| change.table.name().starts_with("routes"));
    let order: Vec<(Filled, bool)> = of_routes.map(|change| (change.table, change.insert)).collect();
    let (four, six) = (Filled::Routes, Filled::Routes6);
    assert_eq!(order, [(four, false), (six, true), (six, true), (six, false)]);
}

fn effects_entry() -> Entry {
    Entry { key: vec![Match::Exact(1)], value: vec![1, 2, 3, 4], priority: 0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A table of few entries beside one that takes all: what it has is right, it has no room while something
    /// is missing, and what is missing is said not to be there.
    #[test]
    fn what_found_no_room_is_told_and_is_put_in_when_there_is_some(
        rounds in prop::collection::vec(prop::collection::vec((0_u32..24, any::<bool>()), 1..12), 1..24),
        room in 1_usize..12,
    ) {
        let routing = routing();
        let packet_loop = SmallLoop::new(room, &|_, _| {});
        // The routes that are there before.
        let before = Scene::new().router.entries(Filled::Routes);
        for round in rounds {
            let told = round.into_iter().map(|(number, there)| route(number, there)).collect();
            routing.told(told, &packet_loop);
            let state = routing.lock();
            prop_assert!(state.queue.is_empty());
            let tables = packet_loop.tables.lock().expect("nobody panics");
            let held: BTreeMap<&Match, &Entry> =
                tables.get(&0).into_iter().flatten().map(|(key, entry)| (&key[0], entry)).collect();
            let wanted: Vec<Entry> = state.router.entries(Filled::Routes).into_iter().filter(|entry| !before.contains(entry)).collect();
            prop_assert_eq!(held.len(), wanted.len().min(room));
            for entry in &wanted {
                let prefix = IpPrefix::of_key(&entry.key[0], true).expect("a prefix");
                prop_assert_eq!(held.contains_key(&entry.key[0]), state.router.installed(prefix));
                prop_assert!(held.get(&entry.key[0]).is_none_or(|held| *held == entry));
            }
            let shown = state.router.routes_shown(&state.follower, 0).view();
            let missing = shown.routes.iter().filter(|route| route.used && !route.installed).count();
            prop_assert_eq!(missing, wanted.len() - held.len());
        }
    }
}
