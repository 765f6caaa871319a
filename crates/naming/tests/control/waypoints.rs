//! Name servers and waypoints that own real addresses, in a bad network, and name servers that are killed:
//! what was asked for twice is promised once, what is answered is promised, and no promise outlives its time.

use crate::network::{Network, Weather};
use naming::control::{
    AnswerBody, AskBody, ControlAsk, ControlMessage, ControlOwner, OwnerAnswer, Peer, Rejection, SetUp,
    SetUpAction, SetUpAsker, SetUpOutcome, decode, encode,
};
use naming::limits::{ASK_WAITS, EXCLUSIVE, SECOND, TAIL, WAYPOINT_PATIENCE, WAYPOINT_SILENT};
use naming::{AddressPool, Hold, Initiators, PathKey, Responder, Service, Services, SetUpError, Waypoint};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use tables::generate::Random;

const SERVERS: u32 = 2;
const WAYPOINTS: u32 = 3;
const HOSTS: u64 = 6;
const SSH: Service = Service { protocol: 6, port: 22 };

fn set_up(random: &mut Random) -> SetUp {
    let initiators = match random.below(3) {
        0 => Initiators::Any,
        1 => Initiators::Prefix([203, 0, random.below(4) as u8, 0].into(), 24),
        _ => Initiators::Exact([203, 0, 113, random.below(20) as u8].into()),
    };
    SetUp {
        gateway: "home".into(),
        host: [10, 0, 0, random.below(HOSTS) as u8 + 1].into(),
        services: Services::new([SSH]).expect("one"),
        initiators,
        resolver: [192, 0, 2, random.below(9) as u8].into(),
        is_verified: true,
    }
}

/// A waypoint, and all that it was asked and has promised.
struct Asked {
    owner: ControlOwner,
    waypoint: Waypoint,
    /// By name server, life and number.
    carried_out: BTreeMap<(Peer, u64, u64), SetUp>,
    /// The latest life of each name server that was heard.
    lives: BTreeMap<Peer, u64>,
    /// Until when each was promised last.
    promised: HashMap<PathKey, u64>,
}

fn key(address: Ipv4Addr, initiators: Initiators) -> PathKey {
    PathKey { address, service: SSH, initiators }
}

impl Asked {
    fn new(number: u32) -> Asked {
        let pool = AddressPool {
            known: (0..4).map(|one| [198, 51, number as u8, one].into()).collect(),
            unknown: (0..4).map(|one| [198, 51, number as u8, one + 8].into()).collect(),
        };
        Asked {
            owner: ControlOwner::new(1),
            waypoint: Waypoint::new(pool).expect("few").holding(Hold::Whole),
            carried_out: BTreeMap::new(),
            lives: BTreeMap::new(),
            promised: HashMap::new(),
        }
    }

    fn heard(&mut self, peer: Peer, ask: &ControlAsk, now: u64) -> Option<OwnerAnswer> {
        let Asked { owner, waypoint, carried_out, lives, promised } = self;
        owner
            .heard(peer, ask, now, |body| {
                let AskBody::SetUp(set_up) = body else { panic!("nobody registers here") };
                let before = carried_out.insert((peer, ask.epoch, ask.serial), set_up.clone());
                assert_eq!(before, None, "carried out twice");
                let latest = lives.entry(peer).or_default();
                assert!(ask.epoch >= *latest, "an earlier life is heard after a later one");
                *latest = ask.epoch;
                let responder = Responder(u32::from(set_up.host.octets()[3]));
                match waypoint.set_up(&set_up.ask(responder), now) {
                    Ok(promise) => {
                        let until = now + TAIL;
                        let key = key(promise.address, promise.initiators);
                        assert_eq!(waypoint.promised(&key, now).map(|entry| entry.until), Some(until));
                        promised.insert(key, until);
                        let left = (promise.exclusive_until - now) / 1_000;
                        AnswerBody::Accept(promise.address, left as u32)
                    }
                    Err(why) => AnswerBody::Reject(Rejection::SetUp(why)),
                }
            })
            .ok()
    }
}

/// One life of a name server, and what its clients were told.
struct Life {
    epoch: u64,
    asker: SetUpAsker,
    open: BTreeMap<u64, (SetUp, u64)>,
}

impl Life {
    fn new(epoch: u64) -> Life {
        Life { epoch, asker: SetUpAsker::new(epoch, (0..WAYPOINTS).map(Peer)), open: BTreeMap::new() }
    }
}

/// What travels: between a name server and a waypoint, and whether it is an ask.
type Letter = (Peer, Peer, bool, Vec<u8>);

/// Lets so many questions be asked, and gives how many were promised an address.
fn live(seed: u64, questions: u64, weather: Weather, away: Option<Peer>) -> u64 {
    let mut random = Random::new(seed);
    let mut network: Network<Letter> = Network::new(seed + 1, weather);
    let mut waypoints: Vec<Asked> = (0..WAYPOINTS).map(Asked::new).collect();
    let mut lives: Vec<Life> = (0..SERVERS).map(|_| Life::new(1)).collect();
    let (mut now, mut left, mut next_question, mut promised) = (1, questions, 0, 0);
    loop {
        while left > 0 && next_question <= now {
            let life = &mut lives[random.below(SERVERS.into()) as usize];
            if random.chance(1) {
                // It is killed, and what its clients asked is lost with it.
                *life = Life::new(life.epoch + 1);
            }
            let set_up = set_up(&mut random);
            let number = life.asker.ask(set_up.clone(), now);
            life.open.insert(number, (set_up, now));
            left -= 1;
            next_question = now + random.below(SECOND);
        }
        for (server, life) in lives.iter_mut().enumerate() {
            let server = Peer(server as u32);
            while let Some(action) = life.asker.poll(now) {
                match action {
                    SetUpAction::Send(waypoint, ask) => {
                        let mut bytes = Vec::new();
                        encode(&ControlMessage::Ask(ask), &mut bytes);
                        network.send((server, waypoint, true, bytes), now);
                    }
                    SetUpAction::Settled(number, outcome) => {
                        let (set_up, asked) = life.open.remove(&number).expect("settled once");
                        assert!(now <= asked + ASK_WAITS, "it is settled in time");
                        match outcome {
                            SetUpOutcome::Promised(address) => {
                                let owner = usize::from(address.octets()[2]);
                                let responder = Responder(u32::from(set_up.host.octets()[3]));
                                // A host that many networks ask for is promised to everybody.
                                let still = [set_up.initiators, Initiators::Any].iter().any(|initiators| {
                                    let entry =
                                        waypoints[owner].waypoint.promised(&key(address, *initiators), now);
                                    entry.is_some_and(|entry| entry.responder == responder)
                                });
                                // A promise to a known client gives way to what it asks for later.
                                let gave_way = matches!(set_up.initiators, Initiators::Exact(_));
                                assert!(still || gave_way && now >= asked + EXCLUSIVE.start(), "{seed}");
                                promised += 1;
                            }
                            SetUpOutcome::Refused(_) => {}
                            SetUpOutcome::Unanswered => assert_eq!(now, asked + ASK_WAITS),
                        }
                    }
                }
            }
        }
        while let Some((server, waypoint, is_ask, bytes)) = network.arrived(now) {
            match decode(&bytes).expect("as it was written") {
                ControlMessage::Ask(ask) if is_ask => {
                    if away == Some(waypoint) {
                        continue;
                    }
                    if let Some(answer) = waypoints[waypoint.0 as usize].heard(server, &ask, now) {
                        let mut bytes = Vec::new();
                        encode(&ControlMessage::Answer(answer), &mut bytes);
                        network.send((server, waypoint, false, bytes), now);
                    }
                }
                ControlMessage::Answer(answer) if !is_ask => {
                    lives[server.0 as usize].asker.heard(waypoint, &answer, now);
                }
                other => panic!("{other:?} went the wrong way"),
            }
        }
        let dues = lives.iter().filter_map(|life| life.asker.next_due());
        let asking = (left > 0).then_some(next_question);
        match dues.chain(network.next()).chain(asking).min() {
            Some(next) => now = now.max(next),
            None => break,
        }
    }
    for life in &lives {
        assert!(life.open.is_empty() && life.asker.open() == 0, "each question is settled");
    }
    // Orphans, whose name server or client is gone, end like all others.
    for asked in waypoints.iter().filter(|asked| !asked.carried_out.is_empty()) {
        assert!(!asked.promised.is_empty());
        for (key, until) in &asked.promised {
            assert_eq!(asked.waypoint.promised(key, *until), None, "{key:?}");
        }
    }
    promised
}

#[test]
fn what_is_asked_for_is_promised_once_and_for_its_time_in_any_network() {
    let millisecond = 1_000_000;
    let fine = Weather { lost: 0, repeated: 0, delay: (millisecond, 2 * millisecond) };
    let worse = [
        (fine, 0.9),
        (Weather { lost: 5, repeated: 5, delay: (millisecond, 300 * millisecond) }, 0.9),
        (Weather { lost: 20, repeated: 30, delay: (10 * millisecond, 300 * millisecond) }, 0.85),
        (Weather { lost: 50, repeated: 90, delay: (0, 6_000 * millisecond) }, 0.05),
    ];
    for seed in 90..95 {
        for (weather, least) in worse {
            let promised = live(seed, 600, weather, None);
            assert!(promised as f64 >= least * 600.0, "{seed} {weather:?}: {promised}");
            live(seed, 300, weather, Some(Peer(0)));
        }
    }
}

fn answer(ask: &ControlAsk, body: AnswerBody) -> OwnerAnswer {
    OwnerAnswer { epoch: ask.epoch, serial: ask.serial, owner_epoch: 1, body }
}

fn sent(asker: &mut SetUpAsker, now: u64) -> Vec<(Peer, ControlAsk)> {
    let mut all = Vec::new();
    while let Some(action) = asker.poll(now) {
        match action {
            SetUpAction::Send(peer, ask) => all.push((peer, ask)),
            SetUpAction::Settled(..) => panic!("{action:?} is too early"),
        }
    }
    all
}

#[test]
fn a_waypoint_that_is_silent_is_asked_behind_the_others() {
    let mut random = Random::new(96);
    let mut asker = SetUpAsker::new(1, [Peer(5), Peer(6)]);
    let question = asker.ask(set_up(&mut random), 0);
    assert!(sent(&mut asker, 0).iter().map(|(peer, _)| *peer).eq([Peer(5)]));
    let later = sent(&mut asker, WAYPOINT_PATIENCE);
    let (_, ask) = later.iter().find(|(peer, _)| *peer == Peer(6)).expect("the second is asked as well");
    let address: Ipv4Addr = [198, 51, 100, 6].into();
    assert!(asker.is_silent(Peer(5), WAYPOINT_PATIENCE));
    assert!(
        !asker.heard(Peer(5), &answer(ask, AnswerBody::Lease(1)), WAYPOINT_PATIENCE),
        "it was not asked so"
    );
    assert!(asker.heard(Peer(6), &answer(ask, AnswerBody::Accept(address, 1)), WAYPOINT_PATIENCE));
    let settled = SetUpAction::Settled(question, SetUpOutcome::Promised(address));
    assert_eq!(asker.poll(WAYPOINT_PATIENCE), Some(settled));
    assert_eq!((asker.open(), asker.next_due()), (0, None), "nobody is asked any more");
    asker.ask(set_up(&mut random), WAYPOINT_PATIENCE + 1);
    assert_eq!(sent(&mut asker, WAYPOINT_PATIENCE + 1)[0].0, Peer(6));
    let again = WAYPOINT_PATIENCE + WAYPOINT_SILENT;
    while asker.poll(again).is_some() {}
    asker.ask(set_up(&mut random), again);
    assert_eq!(sent(&mut asker, again)[0].0, Peer(5), "it has its turn again");
}

#[test]
fn a_question_that_all_refuse_is_settled_at_once_by_the_best_reason() {
    let mut random = Random::new(97);
    let mut asker = SetUpAsker::new(1, [Peer(0), Peer(1), Peer(2)]);
    let question = asker.ask(set_up(&mut random), 0);
    let full = Rejection::SetUp(SetUpError::Full);
    for (peer, why) in [(0, Rejection::UnknownResponder), (1, full), (2, Rejection::UnknownResponder)] {
        let asks = sent(&mut asker, 0);
        assert!(asks.iter().map(|(peer, _)| *peer).eq([Peer(peer)]));
        assert!(asker.heard(Peer(peer), &answer(&asks[0].1, AnswerBody::Reject(why)), 0));
    }
    assert_eq!(asker.poll(0), Some(SetUpAction::Settled(question, SetUpOutcome::Refused(full))));
    let question = SetUpAsker::new(1, []).ask(set_up(&mut random), 0);
    assert_eq!(question, 1);
    let mut nobody = SetUpAsker::new(1, []);
    nobody.ask(set_up(&mut random), 0);
    assert_eq!(nobody.poll(0), Some(SetUpAction::Settled(1, SetUpOutcome::Unanswered)));
}

#[test]
fn a_life_of_a_waypoint_that_never_was_is_forgotten_with_its_key() {
    let mut random = Random::new(97);
    let mut asker = SetUpAsker::new(1, [Peer(5)]);
    let address: Ipv4Addr = [198, 51, 100, 6].into();
    let mut answered = |asker: &mut SetUpAsker, owner_epoch| {
        asker.ask(set_up(&mut random), 0);
        let (peer, ask) = sent(asker, 0).pop().expect("it is asked");
        let body = AnswerBody::Accept(address, 1);
        let is_taken = asker.heard(peer, &OwnerAnswer { owner_epoch, ..answer(&ask, body) }, 0);
        while asker.poll(0).is_some() {}
        is_taken
    };
    assert!(answered(&mut asker, u64::MAX));
    assert!(!answered(&mut asker, 7), "an earlier life");
    asker.forget(Peer(5));
    assert!(answered(&mut asker, 7));
    assert!(!answered(&mut asker, 6), "an earlier life");
}
