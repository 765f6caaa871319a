//! Leases of gateways in a bad network: one life of a gateway holds each, and the registrar ends up knowing
//! what it serves.

use crate::network::{Network, Weather};
use crate::{name, offer};
use naming::control::{
    AnswerBody, AskBody, AskOutcome, AskerAction, ControlAsker, ControlMessage, ControlOwner, HolderEvent,
    HostOffer, LeaseChange, LeaseHolder, Leases, OwnerAnswer, Peer, Registration, Rejection, decode, encode,
};
use naming::dns::DnsName;
use naming::limits::{LEASE, MOST_NAMES_OF_GATEWAY, MOST_PEERS, SECOND};
use std::collections::BTreeMap;
use tables::generate::Random;

/// One life of a gateway. A later one of the same gateway may run beside it.
struct Life {
    peer: Peer,
    epoch: u64,
    asker: ControlAsker,
    holder: LeaseHolder,
    wanted: BTreeMap<DnsName, HostOffer>,
}

impl Life {
    fn new(peer: Peer, epoch: u64) -> Life {
        let (asker, holder) = (ControlAsker::new(epoch), LeaseHolder::new());
        Life { peer, epoch, asker, holder, wanted: BTreeMap::new() }
    }

    /// Offers a name of this gateway, or serves one no more. Names of gateways differ, but for one.
    fn change(&mut self, random: &mut Random) {
        let number = if random.chance(5) { 0 } else { u64::from(self.peer.0) * 10 + 1 + random.below(4) };
        if random.chance(70) {
            let offer = offer(random, number);
            self.wanted.insert(offer.name.clone(), offer.clone());
            self.holder.offer(offer).expect("there is room");
        } else {
            self.wanted.remove(&name(number));
            self.holder.withdraw(&name(number));
        }
    }
}

/// The registrar and what its changes add up to.
struct Registrar {
    owner: ControlOwner,
    leases: Leases,
    zone: BTreeMap<DnsName, (Peer, HostOffer)>,
    epochs: BTreeMap<Peer, u64>,
}

impl Registrar {
    fn heard(&mut self, peer: Peer, bytes: &[u8], now: u64) -> Option<Vec<u8>> {
        let Ok(ControlMessage::Ask(ask)) = decode(bytes) else { panic!("an ask") };
        let (leases, mut changes) = (&mut self.leases, Vec::new());
        let carry_out = |body: &AskBody| match body {
            AskBody::Register(what) => leases.register(peer, ask.epoch, what, now, &mut changes),
            AskBody::SetUp(_) => AnswerBody::Reject(Rejection::Unsupported),
        };
        let answer = self.owner.heard(peer, &ask, now, carry_out).ok();
        self.apply(changes);
        let mut bytes = Vec::new();
        encode(&ControlMessage::Answer(answer?), &mut bytes);
        Some(bytes)
    }

    fn apply(&mut self, changes: Vec<LeaseChange>) {
        for change in changes {
            match change {
                LeaseChange::Offered(peer, offer) => {
                    let before = self.zone.insert(offer.name.clone(), (peer, offer));
                    assert!(before.is_none_or(|(owner, _)| owner == peer), "a name has one gateway");
                }
                LeaseChange::Withdrawn(peer, name) => {
                    let gone = self.zone.remove(&name);
                    assert!(
                        gone.is_some_and(|(owner, _)| owner == peer),
                        "it was there, and of this gateway"
                    );
                }
            }
        }
        let names = self.leases.names().map(|(peer, offer)| (offer.name.clone(), (peer, offer.clone())));
        assert_eq!(names.collect::<BTreeMap<_, _>>(), self.zone, "the changes say all");
    }

    /// Nobody believes to have a lease that the registrar gave to nobody or to an earlier life.
    fn judge(&mut self, lives: &[Life], now: u64) {
        for life in lives {
            let holder = self.leases.holder(life.peer, now);
            if let Some((epoch, _)) = holder {
                let latest = self.epochs.entry(life.peer).or_default();
                assert!(epoch >= *latest, "an earlier life has taken a lease back");
                *latest = epoch;
            }
            if life.holder.holds(now) {
                let (epoch, _) = holder.expect("the registrar's lease is not the shorter one");
                assert!(epoch >= life.epoch, "the lease is of this life or a later one");
            }
        }
    }
}

fn live(seed: u64, weather: Weather, busy: u64, quiet: u64) {
    let mut random = Random::new(seed);
    let mut network: Network<(usize, bool, Vec<u8>)> = Network::new(seed + 1, weather);
    let (owner, leases) = (ControlOwner::new(1), Leases::default());
    let mut registrar = Registrar { owner, leases, zone: BTreeMap::new(), epochs: BTreeMap::new() };
    let mut lives: Vec<Life> = (0..3).map(|peer| Life::new(Peer(peer), 1)).collect();
    let (mut now, step) = (0, SECOND / 20);
    while now < busy + quiet {
        now += step;
        if now < busy && random.chance(10) {
            let which = random.below(lives.len() as u64) as usize;
            lives[which].change(&mut random);
        }
        if now < busy && random.below(1_000) < 3 {
            let peer = Peer(random.below(3) as u32);
            let epoch = lives.iter().filter(|life| life.peer == peer).map(|life| life.epoch).max();
            let mut life = Life::new(peer, epoch.unwrap_or(0) + 1);
            (0..3).for_each(|_| life.change(&mut random));
            lives.push(life);
        }
        for (which, life) in lives.iter_mut().enumerate() {
            life.holder.poll(&mut life.asker, now).expect("there is room");
            while let Some(action) = life.asker.poll(now) {
                match action {
                    AskerAction::Send(ask) => {
                        let mut bytes = Vec::new();
                        encode(&ControlMessage::Ask(ask), &mut bytes);
                        network.send((which, true, bytes), now);
                    }
                    AskerAction::Ended(serial, outcome) => {
                        life.holder.ended(serial, outcome);
                    }
                }
            }
        }
        while let Some((which, is_ask, bytes)) = network.arrived(now) {
            let life = &mut lives[which];
            if is_ask {
                let answer = registrar.heard(life.peer, &bytes, now);
                answer.into_iter().for_each(|bytes| network.send((which, false, bytes), now));
            } else {
                let Ok(ControlMessage::Answer(answer)) = decode(&bytes) else { panic!("an answer") };
                if let Some((serial, outcome)) = life.asker.heard(&answer, now) {
                    life.holder.ended(serial, outcome);
                }
            }
        }
        let mut changes = Vec::new();
        registrar.leases.expire(now, &mut changes);
        registrar.apply(changes);
        registrar.judge(&lives, now);
    }
    // After a quiet time the registrar knows what the last life of each gateway serves, and nothing else.
    for peer in (0..3).map(Peer) {
        let last = lives.iter().filter(|life| life.peer == peer).max_by_key(|life| life.epoch).expect("one");
        assert!(last.holder.holds(now) && last.epoch == registrar.leases.holder(peer, now).expect("held").0);
        let known = registrar.zone.iter().filter(|(_, (owner, _))| *owner == peer);
        let known: BTreeMap<_, _> = known.map(|(name, (_, offer))| (name.clone(), offer.clone())).collect();
        // The name that all want is with one of them.
        let shared = name(0);
        let own = |all: &BTreeMap<DnsName, HostOffer>| {
            all.iter()
                .filter(|(name, _)| **name != shared)
                .map(|(_, offer)| offer.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(own(&known), own(&last.wanted), "{seed} {peer:?}");
        assert!(known.get(&shared).is_none_or(|offer| last.wanted.get(&shared) == Some(offer)));
    }
}

#[test]
fn a_lease_has_one_holder_and_the_registrar_learns_what_it_serves() {
    let millisecond = 1_000_000;
    let weathers = [
        Weather { lost: 0, repeated: 0, delay: (millisecond, 2 * millisecond) },
        Weather { lost: 20, repeated: 20, delay: (millisecond, 300 * millisecond) },
        Weather { lost: 40, repeated: 50, delay: (millisecond, 1_500 * millisecond) },
    ];
    for seed in 70..75 {
        for weather in weathers {
            live(seed, weather, 120 * SECOND, 120 * SECOND);
        }
    }
}

fn leased(leases: &mut Leases, peer: u32, epoch: u64, what: Registration, now: u64) -> AnswerBody {
    leases.register(Peer(peer), epoch, &what, now, &mut Vec::new())
}

#[test]
fn names_and_gateways_are_limited_and_a_name_has_one_gateway() {
    let mut random = Random::new(80);
    let mut leases = Leases::default();
    let lease = AnswerBody::Lease(30_000);
    let mut offered = |number| Registration::Offer(offer(&mut random, number));
    for number in 0..MOST_NAMES_OF_GATEWAY as u64 {
        assert_eq!(leased(&mut leases, 0, 1, offered(number), 0), lease);
    }
    let said = leased(&mut leases, 0, 1, offered(999), 0);
    assert_eq!(said, AnswerBody::Reject(Rejection::NoRoom));
    assert_eq!(leased(&mut leases, 1, 1, offered(3), 0), AnswerBody::Reject(Rejection::NameTaken));
    assert_eq!(leased(&mut leases, 0, 2, Registration::Renew, 0), lease);
    assert_eq!(leased(&mut leases, 0, 1, Registration::Renew, 0), AnswerBody::Reject(Rejection::Superseded));
    // The later life has offered nothing: names of the earlier one go when their time is over.
    assert_eq!(leased(&mut leases, 0, 2, Registration::Renew, LEASE - 1), lease);
    assert_eq!(leases.names().count(), MOST_NAMES_OF_GATEWAY);
    assert_eq!(leased(&mut leases, 1, 1, offered(3), LEASE), lease, "and are free");
    assert_eq!(leases.names().count(), 1);
    for peer in 2..MOST_PEERS as u32 {
        assert_eq!(leased(&mut leases, peer, 1, Registration::Renew, LEASE), lease);
    }
    let said = leased(&mut leases, u32::MAX, 1, Registration::Renew, LEASE);
    assert_eq!(said, AnswerBody::Reject(Rejection::NoRoom));
    assert_eq!(leased(&mut leases, 1, 1, Registration::Release, LEASE), lease);
    assert_eq!((leases.names().count(), leases.holder(Peer(1), LEASE)), (0, None));
}

/// A name that is refused before there is a lease does not keep others waiting.
#[test]
fn what_is_refused_first_is_offered_behind_all_others() {
    let mut random = Random::new(5);
    let (mut asker, mut holder) = (ControlAsker::new(1), LeaseHolder::new());
    (1..=3).for_each(|number| holder.offer(offer(&mut random, number)).expect("there is room"));
    let mut offered = Vec::new();
    for now in 0..4 {
        holder.poll(&mut asker, now).expect("there is room");
        let Some(AskerAction::Send(ask)) = asker.poll(now) else { panic!("it asks") };
        let AskBody::Register(Registration::Offer(offer)) = ask.body else { break };
        offered.push(offer.name);
        let answer = Rejection::NotAllowed;
        holder.ended(ask.serial, AskOutcome::Rejected(answer)).expect("the name is refused");
    }
    assert_eq!(offered, [name(1), name(2), name(3)]);
    assert!(holder.refused().eq(&offered));
    // After a third of a lease it tries again.
    let serial = 4;
    assert_eq!(holder.ended(serial, AskOutcome::Leased(LEASE)), None);
    holder.poll(&mut asker, LEASE / 3).expect("there is room");
    assert_eq!(holder.refused().count(), 0);
}

#[test]
fn a_gateway_hears_why_and_asks_again() {
    let mut random = Random::new(81);
    let (mut asker, mut holder) = (ControlAsker::new(1), LeaseHolder::new());
    holder.offer(offer(&mut random, 1)).expect("there is room");
    holder.poll(&mut asker, 0).expect("there is room");
    let said = holder.ended(1, AskOutcome::Rejected(Rejection::NameTaken));
    assert_eq!(said, Some(HolderEvent::Refused(name(1), Rejection::NameTaken)));
    assert!(holder.is_settled() && !holder.holds(0));
    holder.poll(&mut asker, 1).expect("there is room");
    assert_eq!(holder.ended(2, AskOutcome::TimedOut), None);
    holder.poll(&mut asker, 2).expect("there is room");
    assert_eq!(holder.ended(3, AskOutcome::Leased(LEASE)), None);
    assert!(holder.is_settled() && holder.holds(LEASE - 1) && !holder.holds(LEASE));
    holder.poll(&mut asker, LEASE / 3 - 1).expect("there is room");
    assert!(holder.is_settled(), "it is too early to renew");
    holder.poll(&mut asker, LEASE / 3).expect("there is room");
    assert!(!holder.is_settled());
    assert_eq!(holder.ended(4, AskOutcome::Rejected(Rejection::Superseded)), Some(HolderEvent::Superseded));
    assert!(!holder.holds(LEASE / 3));
    for number in 2..=MOST_NAMES_OF_GATEWAY as u64 {
        holder.offer(offer(&mut random, number)).expect("there is room");
    }
    assert_eq!(holder.offer(offer(&mut random, 999)), Err(Rejection::NoRoom));
}

/// A registrar that has started anew knows nothing: the next renewal tells the gateway so.
#[test]
fn a_registrar_that_starts_anew_is_told_everything_again() {
    let mut life = Life::new(Peer(1), 5);
    let mut random = Random::new(7);
    for number in 0..3 {
        life.holder.offer(offer(&mut random, number)).expect("there is room");
    }
    let mut registrar = None;
    let mut now = 0;
    // No lease ends meanwhile, so no name is offered for this reason.
    while now < LEASE {
        let owner_epoch = if now < LEASE / 2 { 1 } else { 2 };
        let (epoch, leases) = registrar.get_or_insert_with(|| (owner_epoch, Leases::default()));
        if *epoch != owner_epoch {
            assert_eq!((leases.names().count(), life.holder.is_settled()), (3, true));
            registrar = None;
            continue;
        }
        life.holder.poll(&mut life.asker, now).expect("it is not full");
        while let Some(AskerAction::Send(ask)) = life.asker.poll(now) {
            let AskBody::Register(what) = &ask.body else { panic!("a registration") };
            let body = leases.register(life.peer, ask.epoch, what, now, &mut Vec::new());
            let answer = OwnerAnswer { epoch: ask.epoch, serial: ask.serial, owner_epoch, body };
            let (serial, outcome) = life.asker.heard(&answer, now).expect("it waits");
            assert_eq!(life.holder.ended(serial, outcome), None);
        }
        now += SECOND / 10;
    }
    let (_, leases) = registrar.expect("there is one");
    assert_eq!((leases.names().count(), life.holder.is_settled()), (3, true));
}
