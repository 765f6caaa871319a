//! Many asks in bad networks: each is carried out at most once, has one outcome, and both ends agree on it.

use crate::network::{Network, Weather};
use crate::{rejection, set_up};
use naming::control::{
    AnswerBody, AskBody, AskOutcome, AskerAction, ControlAsk, ControlAsker, ControlDrop, ControlMessage,
    ControlOwner, OwnerAnswer, Peer, Registration, decode, encode,
};
use naming::limits::{ANSWER_HELD, ASK_WAITS, MOST_ANSWERS_HELD_OF_PEER, MOST_OPEN_ASKS, MOST_PEERS, SECOND};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tables::generate::Random;

/// An ask of one life of one peer.
type Number = (Peer, u64, u64);

/// What both sides have seen.
#[derive(Default)]
struct Record {
    asked: BTreeMap<Number, (AskBody, u64)>,
    carried_out: BTreeMap<Number, AnswerBody>,
    outcomes: BTreeMap<Number, AskOutcome>,
}

impl Record {
    fn carry_out(&mut self, number: Number, body: &AskBody, random: &mut Random) -> AnswerBody {
        assert_eq!(&self.asked[&number].0, body, "it arrives as it was asked");
        // Each ask gets an address of its own, so that a mix-up is seen.
        let answer = match random.chance(80) {
            true => AnswerBody::Accept(Ipv4Addr::from_bits(self.carried_out.len() as u32 + 1), 2_000_000),
            false => AnswerBody::Reject(rejection(random)),
        };
        assert_eq!(self.carried_out.insert(number, answer), None, "{number:?} is carried out twice");
        answer
    }

    fn ended(&mut self, number: Number, outcome: AskOutcome, now: u64) {
        assert_eq!(self.outcomes.insert(number, outcome), None, "{number:?} has two outcomes");
        let (_, asked) = self.asked[&number];
        let done = self.carried_out.get(&number);
        match outcome {
            AskOutcome::Accepted(address, until) => {
                assert_eq!(done, Some(&AnswerBody::Accept(address, 2_000_000)));
                assert_eq!(until, asked + 2 * SECOND);
            }
            AskOutcome::Rejected(why) => assert_eq!(done, Some(&AnswerBody::Reject(why))),
            AskOutcome::TimedOut => assert_eq!(now, asked + ASK_WAITS),
            AskOutcome::Leased(_) => panic!("nobody registers here"),
        }
    }
}

/// Runs so many asks of some peers, who start anew now and then, and gives the part of those asked by the
/// last lives that was answered.
fn live(seed: u64, asks: u64, weather: Weather, restarts: bool) -> f64 {
    let mut random = Random::new(seed);
    let mut network: Network<(Peer, bool, Vec<u8>)> = Network::new(seed + 1, weather);
    let mut owner = ControlOwner::new(1);
    let mut askers: Vec<(u64, ControlAsker)> = (0..5).map(|_| (1, ControlAsker::new(1))).collect();
    let mut record = Record::default();
    let (mut now, mut left, mut next_ask) = (0, asks, 0);
    loop {
        while left > 0 && next_ask <= now {
            let which = random.below(5) as usize;
            let (epoch, asker) = &mut askers[which];
            if restarts && random.chance(1) {
                *epoch += 1;
                *asker = ControlAsker::new(*epoch);
            }
            let body = set_up(&mut random);
            let serial = asker.ask(body.clone(), now).expect("there is room");
            record.asked.insert((Peer(which as u32), *epoch, serial), (body, now));
            left -= 1;
            next_ask += random.below(20_000_000);
        }
        for (which, (epoch, asker)) in askers.iter_mut().enumerate() {
            let peer = Peer(which as u32);
            while let Some(action) = asker.poll(now) {
                match action {
                    AskerAction::Send(ask) => {
                        let mut bytes = Vec::new();
                        encode(&ControlMessage::Ask(ask), &mut bytes);
                        network.send((peer, true, bytes), now);
                    }
                    AskerAction::Ended(serial, outcome) => record.ended((peer, *epoch, serial), outcome, now),
                }
            }
        }
        while let Some((peer, is_ask, bytes)) = network.arrived(now) {
            match decode(&bytes).expect("as it was written") {
                ControlMessage::Ask(ask) if is_ask => {
                    let number = (peer, ask.epoch, ask.serial);
                    let carry_out = |body: &AskBody| record.carry_out(number, body, &mut random);
                    if let Ok(answer) = owner.heard(peer, &ask, now, carry_out) {
                        let mut bytes = Vec::new();
                        encode(&ControlMessage::Answer(answer), &mut bytes);
                        network.send((peer, false, bytes), now);
                    }
                }
                ControlMessage::Answer(answer) if !is_ask => {
                    let (epoch, asker) = &mut askers[peer.0 as usize];
                    if let Some((serial, outcome)) = asker.heard(&answer, now) {
                        record.ended((peer, *epoch, serial), outcome, now);
                    }
                }
                other => panic!("{other:?} went the wrong way"),
            }
        }
        let dues = askers.iter().filter_map(|(_, asker)| asker.next_due());
        let asking = (left > 0).then_some(next_ask);
        match dues.chain(network.next()).chain(asking).min() {
            Some(next) => now = now.max(next),
            None => break,
        }
    }
    let last = |number: &Number| number.1 == askers[number.0.0 as usize].0;
    let of_last: Vec<_> = record.asked.keys().filter(|number| last(number)).collect();
    let outcomes = of_last.iter().map(|number| record.outcomes.get(number).expect("each has an outcome"));
    let answered = outcomes.filter(|outcome| **outcome != AskOutcome::TimedOut).count();
    answered as f64 / of_last.len() as f64
}

#[test]
fn each_ask_has_one_outcome_on_which_both_ends_agree() {
    let millisecond = 1_000_000;
    let fine = Weather { lost: 0, repeated: 0, delay: (millisecond, 2 * millisecond) };
    assert_eq!(live(51, 2_000, fine, false), 1.0, "nothing is lost in a good network");
    let worse = [
        (Weather { lost: 5, repeated: 5, delay: (millisecond, 300 * millisecond) }, 0.99),
        (Weather { lost: 20, repeated: 30, delay: (10 * millisecond, 100 * millisecond) }, 0.95),
        (Weather { lost: 60, repeated: 90, delay: (0, 9_000 * millisecond) }, 0.05),
    ];
    for seed in 52..57 {
        for (weather, least) in worse {
            let answered = live(seed, 2_000, weather, false);
            assert!(answered >= least, "{seed} {weather:?}: {answered}");
            live(seed, 2_000, weather, true);
        }
    }
}

fn ask(epoch: u64, serial: u64, body: &AskBody) -> ControlAsk {
    ControlAsk { epoch, serial, body: body.clone() }
}

#[test]
fn roles_in_one_process_need_no_bytes() {
    let mut random = Random::new(58);
    let (mut asker, mut owner) = (ControlAsker::new(1), ControlOwner::new(1));
    for number in 1..=100 {
        let serial = asker.ask(set_up(&mut random), number).expect("there is room");
        let Some(AskerAction::Send(ask)) = asker.poll(number) else { panic!("it is to be sent") };
        let address = Ipv4Addr::from_bits(number as u32);
        let answer = owner.heard(Peer(0), &ask, number, |_| AnswerBody::Accept(address, 1)).expect("new");
        let outcome = asker.heard(&answer, number);
        assert_eq!(outcome, Some((serial, AskOutcome::Accepted(address, number + 1_000))));
        assert_eq!((asker.open(), asker.next_due()), (0, None));
    }
}

#[test]
fn what_is_handed_over_is_carried_out_once_and_nothing_is_kept() {
    let mut random = Random::new(62);
    let (body, mut owner) = (set_up(&mut random), ControlOwner::new(1));
    let accept = |_: &AskBody| AnswerBody::Accept([203, 0, 113, 1].into(), 1);
    let never = |_: &AskBody| -> AnswerBody { panic!("it was carried out") };
    for serial in 1..=2 * MOST_ANSWERS_HELD_OF_PEER as u64 {
        owner.handed_over(Peer(0), &ask(1, serial, &body), accept).expect("there is room");
    }
    assert_eq!(owner.held(), 0);
    assert_eq!(owner.handed_over(Peer(0), &ask(1, 7, &body), never), Err(ControlDrop::OldSerial));
    assert!(owner.handed_over(Peer(0), &ask(2, 1, &body), accept).is_ok(), "another life begins at one");
    assert_eq!(owner.handed_over(Peer(0), &ask(1, u64::MAX, &body), never), Err(ControlDrop::OldEpoch));
}

#[test]
fn an_owner_repeats_its_answer_for_three_seconds_and_then_refuses() {
    let mut random = Random::new(59);
    let (one, two) = (set_up(&mut random), set_up(&mut random));
    let mut owner = ControlOwner::new(1);
    let peer = Peer(1);
    let accept = |_: &AskBody| AnswerBody::Accept([203, 0, 113, 1].into(), 1);
    let never = |_: &AskBody| -> AnswerBody { panic!("it was carried out") };
    let first = owner.heard(peer, &ask(1, 5, &one), 0, accept).expect("new");
    assert_eq!(owner.heard(peer, &ask(1, 5, &one), ANSWER_HELD - 1, never), Ok(first));
    assert_eq!(owner.heard(peer, &ask(1, 5, &two), 1, never), Err(ControlDrop::OtherAsk));
    assert_eq!(owner.heard(peer, &ask(1, 5, &one), ANSWER_HELD, never), Err(ControlDrop::OldSerial));
    assert_eq!(owner.heard(peer, &ask(1, 4, &two), ANSWER_HELD, never), Err(ControlDrop::OldSerial));
    assert!(owner.heard(peer, &ask(1, 6, &two), ANSWER_HELD, accept).is_ok());
    assert_eq!(owner.held(), 1);
    // Another life of the peer begins at one, and the one before is over.
    assert!(owner.heard(peer, &ask(2, 1, &one), ANSWER_HELD, accept).is_ok());
    assert_eq!(owner.heard(peer, &ask(1, 6, &two), ANSWER_HELD, never), Err(ControlDrop::OldEpoch));
    assert_eq!(owner.held(), 1);
    // Another peer has numbers of its own.
    assert!(owner.heard(Peer(2), &ask(1, 1, &one), ANSWER_HELD, accept).is_ok());
    owner.forget(peer);
    owner.forget(Peer(2));
    assert_eq!(owner.held(), 0);
}

#[test]
fn a_registration_that_was_overtaken_is_not_carried_out() {
    let mut owner = ControlOwner::new(1);
    let renew = AskBody::Register(Registration::Renew);
    let lease = |_: &AskBody| AnswerBody::Lease(1);
    assert!(owner.heard(Peer(1), &ask(1, 2, &renew), 0, lease).is_ok());
    assert_eq!(owner.heard(Peer(1), &ask(1, 1, &renew), 0, lease), Err(ControlDrop::OldSerial));
    assert!(owner.heard(Peer(1), &ask(1, 2, &renew), 0, lease).is_ok(), "a repeated one is");
}

#[test]
fn an_asker_takes_only_answers_that_fit() {
    let mut random = Random::new(60);
    let mut asker = ControlAsker::new(7);
    let serial = asker.ask(set_up(&mut random), 0).expect("there is room");
    let body = AnswerBody::Accept([203, 0, 113, 1].into(), 1);
    let good = OwnerAnswer { epoch: 7, serial, owner_epoch: 3, body };
    for wrong in [
        OwnerAnswer { epoch: 6, ..good.clone() },
        OwnerAnswer { serial: 2, ..good.clone() },
        OwnerAnswer { body: AnswerBody::Lease(1), ..good.clone() },
    ] {
        assert_eq!(asker.heard(&wrong, 1), None, "{wrong:?}");
    }
    assert_eq!(asker.heard(&good, ASK_WAITS), None, "it is given up");
    assert!(asker.heard(&good, ASK_WAITS - 1).is_some());
    assert_eq!(asker.heard(&good, 1), None, "once");
    let serial = asker.ask(set_up(&mut random), 0).expect("there is room");
    assert_eq!(asker.heard(&OwnerAnswer { serial, owner_epoch: 2, ..good }, 1), None, "an earlier owner");
}

#[test]
fn asks_answers_and_peers_are_limited() {
    let mut random = Random::new(61);
    let body = set_up(&mut random);
    let mut asker = ControlAsker::new(1);
    for _ in 0..MOST_OPEN_ASKS {
        asker.ask(body.clone(), 0).expect("there is room");
    }
    assert!(asker.ask(body.clone(), 0).is_err());
    let mut owner = ControlOwner::new(1);
    let accept = |_: &AskBody| AnswerBody::Accept([203, 0, 113, 1].into(), 1);
    for serial in 1..=MOST_ANSWERS_HELD_OF_PEER as u64 {
        owner.heard(Peer(0), &ask(1, serial, &body), 0, accept).expect("there is room");
    }
    let one_more = ask(1, MOST_ANSWERS_HELD_OF_PEER as u64 + 1, &body);
    assert_eq!(owner.heard(Peer(0), &one_more, 0, accept), Err(ControlDrop::Busy));
    assert!(owner.heard(Peer(0), &one_more, ANSWER_HELD, accept).is_ok(), "later there is room again");
    for peer in 1..MOST_PEERS as u32 {
        owner.heard(Peer(peer), &ask(1, 1, &body), 0, accept).expect("there is room");
    }
    assert_eq!(owner.heard(Peer(u32::MAX), &ask(1, 1, &body), 0, accept), Err(ControlDrop::Peers));
}
