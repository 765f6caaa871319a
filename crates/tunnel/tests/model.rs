//! The handshake as a small model, of which every state is visited: two ends, and an attacker who carries all
//! messages, drops, repeats and swaps them, has a key of its own that both ends know as another peer's, and
//! lets the ends restart.
//!
//! Cryptography is perfect here: a message says with which keys it was made, and only who has one of the
//! secrets can make it. What is searched is the rest: session places, confirmation, timestamps, restarts. The
//! same protocol stands in `model/handshake.pv`, with the cryptography and without the places.

use std::collections::{BTreeSet, HashSet, VecDeque};

/// 0 and 1 are the two ends, 2 is the attacker.
type Agent = usize;
const ATTACKER: Agent = 2;

/// What a session's key is made of: both static keys in their roles, and both ephemeral keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct SessionKey {
    initiator: Agent,
    responder: Agent,
    ephemeral_of_initiator: u8,
    ephemeral_of_responder: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Message {
    Initiation { from: Agent, to: Agent, ephemeral: u8, timestamp: u8 },
    Response(SessionKey),
    Data { key: SessionKey, by_initiator: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Held {
    key: SessionKey,
    /// The one data message of the other side was received: the window refuses another.
    received: bool,
}

/// What an end has with one other.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Relation {
    attempt: Option<u8>,
    current: Option<Held>,
    previous: Option<Held>,
    next: Option<Held>,
    greatest: u8,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct State {
    /// Of each end, with each agent.
    relations: [[Relation; 3]; 2],
    sent: BTreeSet<Message>,
    /// What has changed something at each end since its last start.
    delivered: BTreeSet<(Agent, Message)>,
    /// Which keys an end has ever had, and with whom.
    held: BTreeSet<(Agent, Agent, SessionKey)>,
    clocks: [u8; 2],
    begun: [u8; 2],
    restarted: [bool; 2],
    ephemerals: u8,
}

/// The rules whose worth is to be seen.
#[derive(Clone, Copy)]
struct Rules {
    /// A responder uses a session only when the initiator has.
    confirms: bool,
    timestamps: bool,
    /// An initiator takes a response only to what it has sent.
    matches: bool,
}

const ALL: Rules = Rules { confirms: true, timestamps: true, matches: true };

/// What may happen; all of it at once has more states than a test has time for.
#[derive(Clone, Copy)]
struct Bounds {
    /// Handshakes that each end begins.
    begun: [u8; 2],
    /// Which ends restart, once each.
    restarts: [bool; 2],
    /// The attacker begins with its own key, and is begun with.
    has_a_key: bool,
}

const BOUNDS: [Bounds; 4] = [
    Bounds { begun: [2, 0], restarts: [false, true], has_a_key: false },
    Bounds { begun: [1, 1], restarts: [true, true], has_a_key: false },
    Bounds { begun: [2, 1], restarts: [false, false], has_a_key: false },
    Bounds { begun: [1, 0], restarts: [false, true], has_a_key: true },
];

/// Ephemeral keys in all: where this ends a search, it was not of every state.
const EPHEMERALS: u8 = 12;

impl State {
    fn fresh(&mut self) -> u8 {
        assert!(self.ephemerals < EPHEMERALS, "more keys than were thought of");
        self.ephemerals += 1;
        self.ephemerals
    }

    fn begin(&mut self, end: Agent, with: Agent) {
        self.begun[end] += 1;
        self.clocks[end] += 1;
        let ephemeral = self.fresh();
        self.relations[end][with].attempt = Some(ephemeral);
        let timestamp = self.clocks[end];
        self.sent.insert(Message::Initiation { from: end, to: with, ephemeral, timestamp });
        if with == ATTACKER {
            let key = SessionKey {
                initiator: end,
                responder: ATTACKER,
                ephemeral_of_initiator: ephemeral,
                ephemeral_of_responder: self.fresh(),
            };
            self.sent.insert(Message::Response(key));
            self.sent.insert(Message::Data { key, by_initiator: false });
        }
    }

    /// An end that sends uses its current session.
    fn use_session(&mut self, end: Agent, with: Agent) {
        if let Some(held) = self.relations[end][with].current {
            self.sent.insert(Message::Data { key: held.key, by_initiator: held.key.initiator == end });
        }
    }

    fn deliver(&mut self, end: Agent, message: Message, rules: Rules) -> Result<(), String> {
        match message {
            Message::Initiation { from, to, ephemeral, timestamp } => {
                let greatest = self.relations[end][from].greatest;
                if to != end || from == end || rules.timestamps && timestamp <= greatest {
                    return Ok(());
                }
                let key = SessionKey {
                    initiator: from,
                    responder: end,
                    ephemeral_of_initiator: ephemeral,
                    ephemeral_of_responder: self.fresh(),
                };
                self.sent.insert(Message::Response(key));
                if from == ATTACKER {
                    self.sent.insert(Message::Data { key, by_initiator: true });
                }
                self.keep(end, from, key)?;
                let relation = &mut self.relations[end][from];
                relation.greatest = timestamp;
                relation.next = Some(Held { key, received: false });
                if !rules.confirms {
                    relation.previous = relation.current.take();
                    relation.current = relation.next.take();
                }
            }
            Message::Response(key) => {
                let relation = &mut self.relations[end][key.responder];
                let asked = relation.attempt == Some(key.ephemeral_of_initiator) && key.initiator == end;
                if key.responder == end || relation.attempt.is_none() || rules.matches && !asked {
                    return Ok(());
                }
                relation.attempt = None;
                relation.previous = relation.next.take().or(relation.current);
                relation.current = Some(Held { key, received: false });
                self.keep(end, key.responder, key)?;
                self.use_session(end, key.responder);
            }
            Message::Data { key, by_initiator } => {
                let (sender, receiver) = if by_initiator {
                    (key.initiator, key.responder)
                } else {
                    (key.responder, key.initiator)
                };
                if receiver != end {
                    return Ok(());
                }
                let relation = &mut self.relations[end][sender];
                let is_next = relation.next.is_some_and(|held| held.key == key);
                for held in [&mut relation.current, &mut relation.previous, &mut relation.next] {
                    if let Some(held) = held.as_mut().filter(|held| held.key == key) {
                        held.received = true;
                    }
                }
                if is_next {
                    relation.previous = relation.current.take();
                    relation.current = relation.next.take();
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, end: Agent, with: Agent, key: SessionKey) -> Result<(), String> {
        if self.held.insert((end, with, key)) { Ok(()) } else { Err(format!("{end} takes {key:?} twice")) }
    }

    /// What must hold in every state.
    fn check(&self) -> Result<(), String> {
        for (end, relations) in self.relations.iter().enumerate() {
            for (with, relation) in relations.iter().enumerate() {
                for held in [relation.current, relation.previous, relation.next].into_iter().flatten() {
                    let roles = (held.key.initiator, held.key.responder);
                    if roles != (end, with) && roles != (with, end) {
                        return Err(format!("{end} has a key for {with} that is of {roles:?}"));
                    }
                }
                if with != ATTACKER
                    && let Some(held) = relation.current
                    && !self.held.contains(&(with, end, held.key))
                {
                    return Err(format!("{end} sends to {with} with a key that it never had"));
                }
            }
        }
        Ok(())
    }

    fn currents(&self, end: Agent) -> [Option<SessionKey>; 3] {
        self.relations[end].each_ref().map(|relation| relation.current.map(|held| held.key))
    }

    /// Every state that one step leads to.
    fn steps(&self, rules: Rules, bounds: Bounds) -> Result<Vec<State>, String> {
        let mut all = Vec::new();
        for (end, most) in bounds.begun.into_iter().enumerate() {
            if self.begun[end] < most {
                for with in [1 - end, ATTACKER].into_iter().take(1 + usize::from(bounds.has_a_key)) {
                    let mut state = self.clone();
                    state.begin(end, with);
                    all.push(state);
                }
            }
            let mut state = self.clone();
            state.use_session(end, 1 - end);
            all.push(state);
            if bounds.restarts[end] && !self.restarted[end] {
                let mut state = self.clone();
                state.restarted[end] = true;
                state.relations[end] = Default::default();
                state.delivered.retain(|(to, _)| *to != end);
                all.push(state);
            }
            for message in &self.sent {
                let mut state = self.clone();
                state.deliver(end, *message, rules)?;
                let is_taken = state.relations != self.relations;
                if is_taken && !state.delivered.insert((end, *message)) {
                    return Err(format!("{message:?} does something to {end} a second time"));
                }
                let is_initiation = matches!(message, Message::Initiation { .. });
                if is_initiation && state.currents(end) != self.currents(end) {
                    return Err(format!("{message:?} alone changes what {end} sends with"));
                }
                all.push(state);
            }
        }
        Ok(all)
    }
}

/// Visits every state within bounds. Returns their number, or what went wrong.
fn search(rules: Rules, bounds: Bounds) -> Result<usize, String> {
    let mut first = State::default();
    for to in (0..2).filter(|_| bounds.has_a_key) {
        let ephemeral = first.fresh();
        first.sent.insert(Message::Initiation { from: ATTACKER, to, ephemeral, timestamp: 1 });
    }
    let mut seen = HashSet::from([first.clone()]);
    let mut waiting = VecDeque::from([first]);
    while let Some(state) = waiting.pop_front() {
        for next in state.steps(rules, bounds)? {
            next.check()?;
            if !seen.contains(&next) {
                seen.insert(next.clone());
                waiting.push_back(next);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_two_sessions_disagree_about_peers_or_keys() {
    let mut all = 0;
    for bounds in BOUNDS {
        let states = search(ALL, bounds).expect("the rules hold");
        println!("{states} states");
        all += states;
    }
    assert!(all > 10_000, "{all} states are too few to say much");
}

#[test]
fn each_rule_is_needed() {
    for (rules, bounds, broken) in [
        (Rules { confirms: false, ..ALL }, 1, "alone changes what"),
        (Rules { timestamps: false, ..ALL }, 1, "a second time"),
        (Rules { matches: false, ..ALL }, 3, "that is of"),
    ] {
        let error = search(rules, BOUNDS[bounds]).expect_err(broken);
        assert!(error.contains(broken), "{error}");
    }
}
