//! The side that owns what is asked for: it carries out each ask at most once, and repeats its answer to who
//! repeats the ask.

use crate::control::message::{AnswerBody, AskBody, ControlAsk, OwnerAnswer, Peer};
use crate::limits::{ANSWER_HELD, MOST_ANSWERS_HELD, MOST_ANSWERS_HELD_OF_PEER, MOST_PEERS};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Why an ask is neither carried out nor answered. Its asker asks again or gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ControlDrop {
    /// A later life of this peer has asked already.
    #[error("from an earlier life of the peer")]
    OldEpoch,
    /// Its asker has given it up, or it would undo what was registered after it.
    #[error("too old")]
    OldSerial,
    /// It has the number of another ask.
    #[error("another ask has this number")]
    OtherAsk,
    /// The answers that are kept for repeated asks leave no room.
    #[error("too many asks in a short time")]
    Busy,
    /// More peers than there may be.
    #[error("too many peers")]
    Peers,
}

impl ControlDrop {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ControlDrop::OldEpoch => "old_epoch",
            ControlDrop::OldSerial => "old_serial",
            ControlDrop::OtherAsk => "other_ask",
            ControlDrop::Busy => "busy",
            ControlDrop::Peers => "too_many_peers",
        }
    }
}

#[derive(Debug)]
struct Answered {
    body: AskBody,
    answer: AnswerBody,
}

#[derive(Debug, Default)]
struct PeerState {
    epoch: u64,
    /// Up to this number every ask was given up by who asked.
    floor: u64,
    /// The last registration that was carried out.
    registered: u64,
    answered: BTreeMap<u64, Answered>,
    /// The answers in the order in which they are forgotten.
    until: VecDeque<(u64, u64)>,
}

/// One process that owns addresses or names, and those who ask it.
#[derive(Debug)]
pub struct ControlOwner {
    epoch: u64,
    peers: HashMap<Peer, PeerState>,
    held: usize,
}

impl ControlOwner {
    /// An owner in a new life of its process, with a larger epoch than each life before.
    pub fn new(epoch: u64) -> ControlOwner {
        ControlOwner { epoch, peers: HashMap::new(), held: 0 }
    }

    /// Takes an ask of this peer, carries it out if it is new, and gives the answer to send.
    ///
    /// # Errors
    ///
    /// Why nothing is done and nothing is sent.
    pub fn heard(
        &mut self,
        peer: Peer,
        ask: &ControlAsk,
        now: u64,
        carry_out: impl FnOnce(&AskBody) -> AnswerBody,
    ) -> Result<OwnerAnswer, ControlDrop> {
        let state = state_of(&mut self.peers, &mut self.held, peer, ask)?;
        self.held -= state.forget(now);
        let answer = match state.answered.get(&ask.serial) {
            Some(before) if before.body == ask.body => before.answer,
            Some(_) => return Err(ControlDrop::OtherAsk),
            None => {
                let is_registration = matches!(ask.body, AskBody::Register(_));
                if ask.serial <= state.floor || (is_registration && ask.serial < state.registered) {
                    return Err(ControlDrop::OldSerial);
                }
                if self.held >= MOST_ANSWERS_HELD || state.answered.len() >= MOST_ANSWERS_HELD_OF_PEER {
                    return Err(ControlDrop::Busy);
                }
                let answer = carry_out(&ask.body);
                if is_registration {
                    state.registered = ask.serial;
                }
                state.answered.insert(ask.serial, Answered { body: ask.body.clone(), answer });
                state.until.push_back((now.saturating_add(ANSWER_HELD), ask.serial));
                self.held += 1;
                answer
            }
        };
        Ok(OwnerAnswer { epoch: ask.epoch, serial: ask.serial, owner_epoch: self.epoch, body: answer })
    }

    /// The same for an ask that is handed over as a value, and whose answer is, too. Nothing gets lost, so
    /// nobody repeats it and its answer is not kept. Such asks come in the order of their numbers.
    ///
    /// # Errors
    ///
    /// Why nothing is done.
    pub fn handed_over(
        &mut self,
        peer: Peer,
        ask: &ControlAsk,
        carry_out: impl FnOnce(&AskBody) -> AnswerBody,
    ) -> Result<OwnerAnswer, ControlDrop> {
        let state = state_of(&mut self.peers, &mut self.held, peer, ask)?;
        if ask.serial <= state.floor {
            return Err(ControlDrop::OldSerial);
        }
        state.floor = ask.serial;
        let body = carry_out(&ask.body);
        Ok(OwnerAnswer { epoch: ask.epoch, serial: ask.serial, owner_epoch: self.epoch, body })
    }

    /// An ask that was carried out was answered wrongly: from now on this is the answer.
    pub fn correct(&mut self, peer: Peer, serial: u64, answer: AnswerBody) {
        let answered = self.peers.get_mut(&peer).and_then(|state| state.answered.get_mut(&serial));
        if let Some(answered) = answered {
            answered.answer = answer;
        }
    }

    /// Forgets a peer of which a key is taken away: who had it may have spoken for lives that never come.
    pub fn forget(&mut self, peer: Peer) {
        if let Some(state) = self.peers.remove(&peer) {
            self.held -= state.answered.len();
        }
    }

    /// Answers that are kept.
    pub fn held(&self) -> usize {
        self.held
    }
}

/// What is known of a peer. A later life of it begins with nothing.
fn state_of<'a>(
    peers: &'a mut HashMap<Peer, PeerState>,
    held: &mut usize,
    peer: Peer,
    ask: &ControlAsk,
) -> Result<&'a mut PeerState, ControlDrop> {
    if peers.len() >= MOST_PEERS && !peers.contains_key(&peer) {
        return Err(ControlDrop::Peers);
    }
    let state = peers.entry(peer).or_default();
    if ask.epoch < state.epoch {
        return Err(ControlDrop::OldEpoch);
    }
    if ask.epoch > state.epoch {
        *held -= state.answered.len();
        *state = PeerState { epoch: ask.epoch, ..PeerState::default() };
    }
    Ok(state)
}

impl PeerState {
    /// Forgets answers that nobody can ask for any more, and says how many. An ask with a smaller number was
    /// made earlier than one that came so long ago, so it was given up as well.
    fn forget(&mut self, now: u64) -> usize {
        let mut forgotten = 0;
        while let Some(&(_, serial)) = self.until.front().filter(|(until, _)| *until <= now) {
            self.until.pop_front();
            self.answered.remove(&serial);
            self.floor = self.floor.max(serial);
            forgotten += 1;
        }
        forgotten
    }
}
