//! Tests of neighbours with a clock that is moved by hand.

use super::*;
use proptest::prelude::*;

const A: Mac = [2, 0, 0, 0, 0, 0xa];
const B: Mac = [2, 0, 0, 0, 0, 0xb];

fn neighbour(last: u8) -> Neighbour {
    Neighbour { port: 1, address: [10, 0, 1, last].into() }
}

/// Neighbours with a clock, and what they want done.
struct Scene {
    neighbours: Neighbours<u32>,
    now: u64,
}

impl Scene {
    fn new() -> Scene {
        Scene { neighbours: Neighbours::new(Limits::new(4096, 1)), now: 0 }
    }

    fn packet(&mut self, packet: u32) -> Vec<Action<u32>> {
        let mut actions = Vec::new();
        self.neighbours.packet(neighbour(7), packet, self.now, &mut actions);
        actions
    }

    fn heard(&mut self, mac: Mac, how: Heard) -> Vec<Action<u32>> {
        let mut actions = Vec::new();
        self.neighbours.heard(neighbour(7), mac, how, self.now, &mut actions);
        actions
    }

    /// Time passes in steps of a tenth of a second.
    fn wait(&mut self, seconds: u64) -> Vec<Action<u32>> {
        let mut actions = Vec::new();
        for _ in 0..seconds * 10 {
            self.now += SECOND / 10;
            self.neighbours.advance(self.now, &mut actions);
        }
        actions
    }

    fn state(&self) -> Option<NeighbourState> {
        self.neighbours.all().first().map(|seen| seen.state)
    }
}

const ANSWER: Heard = Heard::Answer { solicited: true, replaces: true };

/// Of many ports each may look for one neighbour at least.
#[test]
fn with_as_many_ports_as_a_gateway_has_neighbours_are_looked_for() {
    for ports in [1, 512, 513, 1024] {
        let mut neighbours: Neighbours<u32> = Neighbours::new(Limits::new(4096, ports));
        let mut actions = Vec::new();
        neighbours.packet(neighbour(9), 7, SECOND, &mut actions);
        assert!(matches!(actions[..], [Action::Ask(..)]), "{ports} ports: {actions:?}");
    }
}

#[test]
fn a_neighbour_that_answers_gets_what_waited_in_order() {
    let mut scene = Scene::new();
    let n = neighbour(7);
    assert_eq!(scene.packet(1), [Action::Ask(n, None)]);
    assert_eq!(scene.packet(2), []);
    assert_eq!((scene.state(), scene.neighbours.waiting()), (Some(NeighbourState::Incomplete), 2));
    assert_eq!(scene.heard(A, ANSWER), [Action::Known(n, A), Action::Send(n, A, 1), Action::Send(n, A, 2)]);
    assert_eq!((scene.state(), scene.neighbours.waiting()), (Some(NeighbourState::Reachable), 0));
    assert_eq!(scene.packet(3), [Action::Send(n, A, 3)]);
}

#[test]
fn who_does_not_answer_is_asked_three_times_a_second_apart_and_given_up() {
    let mut scene = Scene::new();
    let n = neighbour(7);
    let first = scene.packet(1);
    let ask = Action::Ask(n, None);
    assert_eq!(first, vec![ask.clone()]);
    assert_eq!(scene.wait(1), vec![ask.clone()]);
    assert_eq!(scene.wait(1), [ask]);
    assert_eq!(scene.wait(1), [Action::Unreachable(n, 1)]);
    assert_eq!((scene.state(), scene.neighbours.due()), (None, None));
}

#[test]
fn one_that_has_been_silent_is_asked_by_its_address_and_gone_if_it_stays_so() {
    let mut scene = Scene::new();
    let n = neighbour(7);
    scene.packet(1);
    scene.heard(A, ANSWER);
    assert_eq!(scene.wait(14), []);
    assert_eq!(scene.state(), Some(NeighbourState::Reachable));
    // At most 45 s of belief, 25 s of silence and 5 s of delay later it is asked.
    let mut actions = scene.wait(1);
    while actions.is_empty() {
        actions = scene.wait(1);
    }
    assert!((45..=76).contains(&(scene.now / SECOND)), "{}", scene.now);
    assert_eq!((actions, scene.state()), (vec![Action::Ask(n, Some(A))], Some(NeighbourState::Probe)));
    assert_eq!(scene.heard(A, ANSWER), [], "nothing changes for packets");
    assert_eq!(scene.state(), Some(NeighbourState::Reachable));
    let actions = scene.wait(90);
    let asked = Action::Ask(n, Some(A));
    assert_eq!(actions, [asked.clone(), asked.clone(), asked, Action::Gone(n)]);
    assert_eq!(scene.state(), None);
}

#[test]
fn a_packet_for_a_silent_neighbour_goes_at_once_and_it_is_asked_soon() {
    let mut scene = Scene::new();
    let n = neighbour(7);
    assert_eq!(scene.heard(A, Heard::Question), [Action::Known(n, A)]);
    assert_eq!(scene.state(), Some(NeighbourState::Stale));
    assert_eq!(scene.packet(1), [Action::Send(n, A, 1)]);
    assert_eq!(scene.state(), Some(NeighbourState::Delay));
    assert_eq!(scene.wait(5), [Action::Ask(n, Some(A))]);
    assert_eq!(scene.state(), Some(NeighbourState::Probe));
}

/// The table of RFC 4861, appendix C, line by line.
#[test]
fn what_is_heard_changes_what_is_known_as_the_rfc_says() {
    use NeighbourState::{Incomplete, Probe, Reachable, Stale};
    let answer = |solicited, replaces| Heard::Answer { solicited, replaces };
    let lines = [
        (Incomplete, answer(true, false), B, Reachable, B),
        (Incomplete, answer(true, true), B, Reachable, B),
        (Incomplete, answer(false, false), B, Stale, B),
        (Incomplete, Heard::Question, B, Stale, B),
        (Reachable, answer(true, false), A, Reachable, A),
        (Reachable, answer(true, false), B, Stale, A),
        (Stale, answer(true, false), B, Stale, A),
        (Probe, answer(true, false), B, Probe, A),
        (Probe, answer(true, false), A, Reachable, A),
        (Probe, answer(true, true), B, Reachable, B),
        (Stale, answer(true, true), A, Reachable, A),
        (Reachable, answer(false, true), A, Reachable, A),
        (Reachable, answer(false, true), B, Stale, B),
        (Reachable, answer(false, false), B, Stale, A),
        (Probe, answer(false, false), B, Probe, A),
        (Probe, answer(false, true), A, Probe, A),
        (Probe, Heard::Question, A, Probe, A),
        (Probe, Heard::Question, B, Stale, B),
        (Reachable, Heard::Question, B, Stale, B),
        (Reachable, Heard::Announcement, A, Reachable, A),
        (Reachable, Heard::Announcement, B, Stale, B),
    ];
    for (before, how, mac, after, known) in lines {
        let mut scene = Scene::new();
        scene.packet(1);
        if before != Incomplete {
            scene.heard(A, ANSWER);
            while scene.state() != Some(before) {
                scene.wait(1);
            }
        }
        scene.heard(mac, how);
        let line = format!("{before:?} {how:?} {mac:?}");
        assert_eq!(scene.state(), Some(after), "{line}");
        assert_eq!(scene.neighbours.mac(neighbour(7)), Some(known), "{line}");
    }
    let mut scene = Scene::new();
    assert_eq!((scene.heard(A, ANSWER), scene.heard(A, Heard::Announcement)), (vec![], vec![]));
    assert_eq!(scene.state(), None, "nobody had asked");
}

#[test]
fn one_that_is_set_is_never_asked_and_believes_nobody_until_it_is_set_no_more() {
    let mut scene = Scene::new();
    let n = neighbour(7);
    scene.packet(1);
    let set = |scene: &mut Scene, mac: Option<Mac>| {
        let mut actions = Vec::new();
        let wanted = mac.map(|mac| (n, mac)).into_iter().collect();
        scene.neighbours.permanent(&wanted, scene.now, &mut actions);
        actions
    };
    assert_eq!(set(&mut scene, Some(A)), [Action::Known(n, A), Action::Send(n, A, 1)]);
    assert_eq!(set(&mut scene, Some(A)), []);
    for how in [Heard::Question, Heard::Announcement, ANSWER] {
        assert_eq!(scene.heard(B, how), [], "{how:?}");
    }
    assert_eq!((scene.wait(300), scene.neighbours.due()), (vec![], None));
    assert_eq!(
        (scene.packet(2), scene.state()),
        (vec![Action::Send(n, A, 2)], Some(NeighbourState::Permanent))
    );
    assert_eq!(set(&mut scene, Some(B)), [Action::Known(n, B)], "it is set to another");
    assert_eq!((set(&mut scene, None), scene.state()), (vec![Action::Gone(n)], None));
    assert_eq!(scene.packet(3), [Action::Ask(n, None)]);
}

#[test]
fn only_so_many_are_permanent_and_they_have_a_place_in_a_full_table() {
    let mut neighbours: Neighbours<u32> = Neighbours::new(Limits::new(8, 1));
    let mut actions = Vec::new();
    for last in 100..120 {
        neighbours.heard(neighbour(last), B, Heard::Question, 0, &mut actions);
        neighbours.heard(neighbour(last), B, ANSWER, 0, &mut actions);
    }
    assert_eq!(neighbours.entries.len(), 8, "all have just answered");
    let mut set: BTreeMap<Neighbour, Mac> = (1..=6).map(|last| (neighbour(last), A)).collect();
    let permanent = |neighbours: &Neighbours<u32>| {
        let all = neighbours.all();
        let of = all.iter().filter(|seen| seen.state == NeighbourState::Permanent);
        of.map(|seen| seen.neighbour).collect::<Vec<_>>()
    };
    neighbours.permanent(&set, 1, &mut actions);
    assert_eq!(permanent(&neighbours), [1, 2, 3, 4].map(neighbour));
    assert_eq!((neighbours.entries.len(), neighbours.most_permanent()), (8, 4));
    set.remove(&neighbour(2));
    neighbours.permanent(&set, 1, &mut actions);
    assert_eq!(permanent(&neighbours), [1, 3, 4, 5].map(neighbour), "the next one comes in");
}

#[test]
fn what_waits_is_bounded_and_the_newest_packets_stay() {
    let limits = Limits { neighbours: 4, incomplete: 3, permanent: 2, queue: 2, waiting: 4 };
    let mut neighbours = Neighbours::new(limits);
    let mut add = |last: u8, packet: u32| {
        let mut actions = Vec::new();
        neighbours.packet(neighbour(last), packet, 0, &mut actions);
        actions.into_iter().filter(|action| !matches!(action, Action::Ask(..))).collect::<Vec<_>>()
    };
    assert_eq!([add(1, 1), add(1, 2), add(1, 3)], [vec![], vec![], vec![Action::QueueFull(1)]]);
    assert_eq!([add(2, 4), add(2, 5)], [vec![], vec![]]);
    assert_eq!(add(3, 6), [Action::QueueFull(6)], "four wait already");
    assert_eq!(add(2, 7), [Action::QueueFull(4)]);
    let mut actions = Vec::new();
    neighbours.forget(neighbour(1), &mut actions);
    assert_eq!(actions, [Action::Unreachable(neighbour(1), 2), Action::Unreachable(neighbour(1), 3)]);
    let mut actions = Vec::new();
    for last in 3..7 {
        neighbours.packet(neighbour(last), 8, 0, &mut actions);
    }
    let full = actions.iter().filter(|action| matches!(action, Action::TableFull(8))).count();
    assert_eq!(full, 2, "three may be asked for, one of which was there");
    let mut actions = Vec::new();
    neighbours.name(neighbour(8), true);
    neighbours.packet(neighbour(8), 9, 0, &mut actions);
    assert_eq!(
        actions,
        [Action::Ask(neighbour(8), None), Action::QueueFull(9)],
        "a router is looked for all the same"
    );
    let mut actions = Vec::new();
    neighbours.name(neighbour(9), true);
    neighbours.packet(neighbour(9), 10, 0, &mut actions);
    assert_eq!(actions, [Action::TableFull(10)], "but there is an end");
}

#[test]
fn nobody_gives_way_for_a_packet_that_is_refused() {
    let limits = Limits { neighbours: 2, incomplete: 2, permanent: 2, queue: 2, waiting: 1 };
    let mut neighbours = Neighbours::new(limits);
    let mut actions = Vec::new();
    neighbours.heard(neighbour(1), A, Heard::Question, 0, &mut actions);
    neighbours.packet(neighbour(2), 1, 0, &mut actions);
    assert_eq!(actions, [Action::Known(neighbour(1), A), Action::Ask(neighbour(2), None)]);
    let mut actions = Vec::new();
    neighbours.packet(neighbour(3), 2, SECOND / 2, &mut actions);
    assert_eq!((actions, neighbours.displaced()), (vec![Action::QueueFull(2)], 0));
}

/// A neighbour of another port.
fn at_port(port: PortNumber, last: u16) -> Neighbour {
    Neighbour { port, address: [10, port as u8, (last >> 8) as u8, last as u8].into() }
}

#[test]
fn who_fills_the_table_keeps_nobody_out() {
    let mut neighbours: Neighbours<u32> = Neighbours::new(Limits::new(64, 2));
    let mut actions = Vec::new();
    let router = at_port(1, 900);
    neighbours.name(router, true);
    for known in [at_port(2, 1), router] {
        neighbours.packet(known, 0, 0, &mut actions);
        neighbours.heard(known, A, ANSWER, 0, &mut actions);
    }
    // One station says that it has all addresses of its network, over and over.
    let mut now = 1;
    for last in 0..500 {
        now += SECOND / 1000;
        neighbours.heard(at_port(1, last), B, Heard::Question, now, &mut actions);
    }
    assert_eq!((neighbours.entries.len(), neighbours.displaced()), (64, 500 - 62));
    assert_eq!((neighbours.mac(at_port(2, 1)), neighbours.mac(router)), (Some(A), Some(A)));
    // A host of either port is found all the same, and stays while the flood goes on.
    for (count, host) in (1..).zip([at_port(1, 901), at_port(2, 2)]) {
        actions.clear();
        neighbours.packet(host, 7, now, &mut actions);
        neighbours.heard(host, A, ANSWER, now, &mut actions);
        assert!(actions.contains(&Action::Send(host, A, 7)), "{actions:?}");
        for last in 500..600 {
            neighbours.heard(at_port(1, last + count * 100), B, Heard::Question, now, &mut actions);
        }
        assert_eq!(neighbours.mac(host), Some(A));
    }
    // It answers for all of them, too: then the one that said so first gives way.
    for seen in neighbours.all().into_iter().filter(|seen| seen.mac == Some(B)) {
        neighbours.heard(seen.neighbour, B, ANSWER, now, &mut actions);
    }
    actions.clear();
    neighbours.packet(at_port(2, 3), 8, now, &mut actions);
    assert_eq!(actions, [Action::TableFull(8)], "all have just answered");
    now += ANSWERED;
    actions.clear();
    neighbours.packet(at_port(2, 3), 9, now, &mut actions);
    assert!(matches!(actions[..], [Action::Gone(gone), Action::Ask(..)] if gone.port == 1), "{actions:?}");
    assert_eq!((neighbours.mac(at_port(2, 1)), neighbours.mac(router)), (Some(A), Some(A)));
}

#[test]
fn who_asks_for_all_addresses_of_a_network_keeps_no_host_from_being_found() {
    let limits = Limits::new(4096, 2);
    let mut neighbours: Neighbours<u32> = Neighbours::new(limits);
    let (mut now, mut actions, mut asked) = (0, Vec::new(), 0);
    for last in 0..5000 {
        now += SECOND / 2000;
        neighbours.advance(now, &mut actions);
        neighbours.packet(at_port(1, last), 0, now, &mut actions);
        assert!(neighbours.at(1).incomplete <= limits.incomplete && neighbours.waiting() <= limits.waiting);
        if last % 1000 == 999 {
            let host = at_port(1 + last / 1000 % 2, last + 10_000);
            neighbours.packet(host, 1, now, &mut actions);
            actions.clear();
            neighbours.heard(host, A, ANSWER, now + ASKED_FOR / 2, &mut actions);
            assert_eq!(actions, [Action::Known(host, A), Action::Send(host, A, 1)]);
        }
        asked += actions.drain(..).filter(|action| matches!(action, Action::Ask(..))).count();
    }
    assert!(asked > 4000, "each was asked for: {asked}");
    // Faster than anybody answers: so many a second are asked for, and no more.
    let mut asked = 0;
    for last in 0..50_000 {
        now += SECOND / 100_000;
        actions.clear();
        neighbours.packet(at_port(1, last), 0, now, &mut actions);
        asked += actions.iter().filter(|action| matches!(action, Action::Ask(..))).count();
    }
    let bound = limits.incomplete * (1 + (SECOND / 2 / ASKED_FOR) as usize);
    assert!(asked <= bound, "{asked} in half a second");
}

/// A neighbour as plainly as can be: no index, no counters; every rule of the picture on its own line.
#[derive(Clone, Debug)]
struct Plain {
    neighbour: Neighbour,
    state: NeighbourState,
    mac: Option<Mac>,
    until: u64,
    asked: u8,
    queue: Vec<u32>,
    since: u64,
    confirmed: bool,
}

/// Takes out the first that gives way.
fn displace(plain: &mut Vec<Plain>, names: &HashSet<Neighbour>, kinds: &[Order], now: u64) -> bool {
    for kind in kinds {
        let of_kind = |known: &&Plain| {
            let order = match known {
                Plain { mac: None, .. } => Order::Incomplete,
                Plain { confirmed: false, .. } => Order::Unconfirmed,
                Plain { state: NeighbourState::Reachable, .. } => Order::Answered,
                _ => Order::Silent,
            };
            order == *kind && known.state != NeighbourState::Permanent && !names.contains(&known.neighbour)
        };
        let first = plain.iter().filter(of_kind).min_by_key(|known| (known.since, known.neighbour)).cloned();
        let keeps = match kind {
            Order::Incomplete => ASKED_FOR,
            Order::Answered => ANSWERED,
            _ => 0,
        };
        if let Some(first) = first.filter(|first| first.since + keeps <= now) {
            plain.retain(|known| known.neighbour != first.neighbour);
            return true;
        }
    }
    false
}

proptest! {
    /// The machine beside one that is a list, over any sequence of packets, messages and waiting.
    #[test]
    fn the_machine_is_what_its_picture_says(
        steps in proptest::collection::vec((0u8..6, 0u8..8, any::<bool>(), any::<bool>(), 0u64..9), 0..120),
    ) {
        let limits = Limits { neighbours: 4, incomplete: 2, permanent: 2, queue: 2, waiting: 3 };
        let mut machine = Neighbours::new(limits);
        let mut plain: Vec<Plain> = Vec::new();
        let (mut now, mut handed, mut done) = (0u64, 0u64, 0u64);
        let mut table: HashMap<Neighbour, Mac> = HashMap::new();
        let mut names: HashSet<Neighbour> = HashSet::new();
        let mut set: BTreeMap<Neighbour, Mac> = BTreeMap::new();
        for (number, (last, what, one, two, time)) in steps.into_iter().enumerate() {
            let n = neighbour(last);
            let mac = if one { A } else { B };
            let mut actions = Vec::new();
            match what {
                0 | 1 => {
                    handed += 1;
                    machine.packet(n, number as u32, now, &mut actions);
                    let named = names.contains(&n);
                    if plain.iter().all(|known| known.neighbour != n) {
                        let incomplete = plain.iter().filter(|known| known.mac.is_none()).count();
                        let waiting: usize = plain.iter().map(|known| known.queue.len()).sum();
                        let room = if !named && incomplete >= 2 {
                            displace(&mut plain, &names, &[Order::Incomplete], now)
                        } else {
                            (named || waiting < 3)
                                && (plain.len() < 4 || displace(&mut plain, &names, &ALL, now))
                        };
                        let waiting: usize = plain.iter().map(|known| known.queue.len()).sum();
                        if room && (named || waiting < 3) {
                            plain.push(Plain {
                                neighbour: n, state: NeighbourState::Incomplete, mac: None, until: now + SECOND, asked: 1,
                                queue: vec![], since: now, confirmed: false,
                            });
                        }
                    }
                    let waiting: usize = plain.iter().map(|known| known.queue.len()).sum();
                    match plain.iter_mut().find(|known| known.neighbour == n) {
                        Some(known) if known.state == NeighbourState::Stale => {
                            (known.state, known.until, known.since) = (NeighbourState::Delay, now + DELAY, now);
                        }
                        Some(known) if known.mac.is_some() => {}
                        Some(known) => {
                            if known.queue.len() == 2 || waiting == 3 {
                                if !known.queue.is_empty() {
                                    known.queue.remove(0);
                                    known.queue.push(number as u32);
                                }
                            } else {
                                known.queue.push(number as u32);
                            }
                        }
                        None => {}
                    }
                }
                2..=4 => {
                    let how = match what {
                        2 => Heard::Question,
                        3 => Heard::Announcement,
                        _ => Heard::Answer { solicited: two, replaces: time % 2 == 0 },
                    };
                    machine.heard(n, mac, how, now, &mut actions);
                    let there = plain.iter().any(|known| known.neighbour == n);
                    if how == Heard::Question
                        && !there
                        && (plain.len() < 4 || displace(&mut plain, &names, &[Order::Unconfirmed], now))
                    {
                        plain.push(Plain {
                            neighbour: n, state: NeighbourState::Stale, mac: Some(mac), until: now + SILENT, asked: 0,
                            queue: vec![], since: now, confirmed: false,
                        });
                    }
                    match plain.iter_mut().find(|known| known.neighbour == n) {
                        Some(_) if !there => {}
                        Some(known) if known.state == NeighbourState::Permanent => {}
                        None => {}
                        Some(known) => {
                            let new = known.mac.is_none();
                            let other = known.mac != Some(mac);
                            let (solicited, keeps) = match how {
                                Heard::Answer { solicited, replaces } => (solicited, !replaces),
                                _ => (false, false),
                            };
                            if !new && other && keeps {
                                if known.state == NeighbourState::Reachable {
                                    (known.state, known.until, known.since) = (NeighbourState::Stale, now + SILENT, now);
                                }
                            } else if solicited {
                                (known.since, known.confirmed) = (now, true);
                                (known.state, known.mac) = (NeighbourState::Reachable, Some(mac));
                                known.until = machine.entries[&n].due;
                                let belief = known.until - now;
                                prop_assert!((BELIEVED / 2..=BELIEVED * 3 / 2).contains(&belief));
                                known.queue.clear();
                            } else if new || other {
                                (known.state, known.mac) = (NeighbourState::Stale, Some(mac));
                                known.until = now + SILENT;
                                (known.since, known.confirmed) = (now, known.confirmed && !other);
                                known.queue.clear();
                            }
                        }
                    }
                }
                6 => {
                    machine.name(n, one);
                    if one { names.insert(n) } else { names.remove(&n) };
                }
                7 => {
                    if two { set.insert(n, mac) } else { set.remove(&n) };
                    machine.permanent(&set, now, &mut actions);
                    let wanted: Vec<_> = set.iter().take(2).map(|(n, mac)| (*n, *mac)).collect();
                    let goes = |known: &Plain| {
                        known.state == NeighbourState::Permanent && wanted.iter().all(|(n, _)| *n != known.neighbour)
                    };
                    plain.retain(|known| !goes(known));
                    for (n, mac) in wanted {
                        let new = Plain {
                            neighbour: n, state: NeighbourState::Permanent, mac: Some(mac), until: u64::MAX, asked: 0,
                            queue: vec![], since: now, confirmed: false,
                        };
                        if let Some(known) = plain.iter_mut().find(|known| known.neighbour == n) {
                            *known = new;
                        } else if plain.len() < 4 || displace(&mut plain, &names, &ALL, u64::MAX) {
                            plain.push(new);
                        }
                    }
                }
                _ => {
                    for _ in 0..time * time {
                        now += SECOND;
                        machine.advance(now, &mut actions);
                        for known in plain.iter_mut().filter(|known| known.until <= now) {
                            if !matches!(known.state, NeighbourState::Incomplete | NeighbourState::Probe) {
                                known.since = now;
                            }
                            match known.state {
                                NeighbourState::Reachable => (known.state, known.until) = (NeighbourState::Stale, now + SILENT),
                                NeighbourState::Stale => (known.state, known.until) = (NeighbourState::Delay, now + DELAY),
                                NeighbourState::Delay => {
                                    (known.state, known.until, known.asked) = (NeighbourState::Probe, now + SECOND, 1);
                                }
                                NeighbourState::Incomplete | NeighbourState::Probe => {
                                    (known.until, known.asked) = (now + SECOND, known.asked + 1);
                                }
                                NeighbourState::Permanent => prop_assert!(false, "it has no time"),
                            }
                        }
                        plain.retain(|known| known.asked <= ASKED || !matches!(known.state, NeighbourState::Incomplete | NeighbourState::Probe));
                    }
                }
            }
            for action in actions {
                match action {
                    Action::Known(n, mac) => { table.insert(n, mac); }
                    Action::Gone(n) => prop_assert!(table.remove(&n).is_some()),
                    Action::Send(n, mac, _) => {
                        done += 1;
                        prop_assert_eq!(table.get(&n), Some(&mac));
                    }
                    Action::Unreachable(..) | Action::QueueFull(_) | Action::TableFull(_) => done += 1,
                    Action::Ask(..) => {}
                }
            }
            plain.sort_by_key(|known| known.neighbour);
            let seen: Vec<_> = machine.all().iter().map(|seen| (seen.neighbour, seen.state, seen.mac, seen.queued)).collect();
            let wanted: Vec<_> = plain.iter().map(|known| (known.neighbour, known.state, known.mac, known.queue.len())).collect();
            prop_assert_eq!(seen, wanted);
            for known in &plain {
                prop_assert_eq!(machine.entries[&known.neighbour].queue.iter().copied().collect::<Vec<_>>(), known.queue.clone());
                prop_assert_eq!(table.get(&known.neighbour).copied(), known.mac);
            }
            prop_assert_eq!(handed, done + machine.waiting() as u64);
            prop_assert_eq!(table.len(), plain.iter().filter(|known| known.mac.is_some()).count());
            let timed = plain.iter().filter(|known| known.state != NeighbourState::Permanent).count();
            prop_assert_eq!(machine.due.len(), timed);
            let places: BTreeSet<_> = plain.iter().filter_map(|known| machine.place(known.neighbour)).collect();
            prop_assert_eq!(&machine.order, &places);
            let at = AtPort {
                neighbours: plain.len(),
                incomplete: plain.iter().filter(|known| known.mac.is_none()).count(),
                waiting: plain.iter().map(|known| known.queue.len()).sum(),
            };
            prop_assert_eq!(machine.at(1), at);
        }
    }
}
