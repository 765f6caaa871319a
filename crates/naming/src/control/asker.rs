//! The side that asks: it repeats each ask until it is answered, and gives each one outcome.

use crate::control::message::{AnswerBody, AskBody, ControlAsk, OwnerAnswer, Rejection};
use crate::limits::{ASK_REPEATED_AFTER, ASK_WAITS, MOST_OPEN_ASKS};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskOutcome {
    /// The waypoint has promised this address, to nobody else until this time.
    Accepted(Ipv4Addr, u64),
    /// The gateway has a lease until this time.
    Leased(u64),
    /// It was not done.
    Rejected(Rejection),
    /// No answer came within three seconds. It may have been done or not.
    TimedOut,
}

/// What is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskerAction {
    /// Send this to the owner.
    Send(ControlAsk),
    /// Nobody has answered the ask of this number.
    Ended(u64, AskOutcome),
}

/// [`MOST_OPEN_ASKS`] wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_OPEN_ASKS} asks wait for an answer: the other side is too slow or away")]
pub struct AskerFull;

#[derive(Debug)]
struct Open {
    body: AskBody,
    asked: u64,
    /// When it is sent again or given up.
    due: u64,
    /// How long after that it is sent again.
    pause: u64,
}

/// All asks of one process to one owner.
#[derive(Debug)]
pub struct ControlAsker {
    epoch: u64,
    /// The latest life of the owner that was heard of.
    owner_epoch: u64,
    last: u64,
    open: BTreeMap<u64, Open>,
    due: BTreeSet<(u64, u64)>,
}

impl ControlAsker {
    /// An asker in a new life of its process. The epoch is larger than that of each life before, such as the
    /// time of the start or a number that is kept on disk.
    pub fn new(epoch: u64) -> ControlAsker {
        ControlAsker { epoch, owner_epoch: 0, last: 0, open: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Asks for something; [`ControlAsker::poll`] sends it. Gives the number of the ask.
    ///
    /// # Errors
    ///
    /// Too many wait.
    pub fn ask(&mut self, body: AskBody, now: u64) -> Result<u64, AskerFull> {
        if self.open.len() >= MOST_OPEN_ASKS {
            return Err(AskerFull);
        }
        self.last += 1;
        self.open.insert(self.last, Open { body, asked: now, due: now, pause: ASK_REPEATED_AFTER });
        self.due.insert((now, self.last));
        Ok(self.last)
    }

    /// What is to do now; nothing if it is to wait until [`ControlAsker::next_due`].
    pub fn poll(&mut self, now: u64) -> Option<AskerAction> {
        let &(due, serial) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, serial));
        let open = self.open.get_mut(&serial)?;
        let until = open.asked.saturating_add(ASK_WAITS);
        if now >= until {
            self.open.remove(&serial);
            return Some(AskerAction::Ended(serial, AskOutcome::TimedOut));
        }
        open.due = now.saturating_add(open.pause).min(until);
        open.pause *= 2;
        self.due.insert((open.due, serial));
        Some(AskerAction::Send(ControlAsk { epoch: self.epoch, serial, body: open.body.clone() }))
    }

    /// Takes an answer. Gives the number of the ask that it ends and its outcome; nothing if it ends none.
    pub fn heard(&mut self, answer: &OwnerAnswer, now: u64) -> Option<(u64, AskOutcome)> {
        if answer.epoch != self.epoch || answer.owner_epoch < self.owner_epoch {
            return None;
        }
        let open = self.open.get(&answer.serial)?;
        if now >= open.asked.saturating_add(ASK_WAITS) {
            return None;
        }
        // Both sides count from when the ask was made or later, so the owner's promise is never the shorter
        // one.
        let asked = open.asked;
        let outcome = match (&open.body, answer.body) {
            (AskBody::SetUp(_), AnswerBody::Accept(address, microseconds)) => {
                AskOutcome::Accepted(address, asked.saturating_add(u64::from(microseconds) * 1_000))
            }
            (AskBody::Register(_), AnswerBody::Lease(milliseconds)) => {
                AskOutcome::Leased(asked.saturating_add(u64::from(milliseconds) * 1_000_000))
            }
            (_, AnswerBody::Reject(why)) => AskOutcome::Rejected(why),
            _ => return None,
        };
        self.owner_epoch = answer.owner_epoch;
        let open = self.open.remove(&answer.serial)?;
        self.due.remove(&(open.due, answer.serial));
        Some((answer.serial, outcome))
    }

    /// Gives up an ask: nobody waits for its outcome any more.
    pub fn forget(&mut self, serial: u64) {
        if let Some(open) = self.open.remove(&serial) {
            self.due.remove(&(open.due, serial));
        }
    }

    /// Believes any life of the owner again: who has answered last may have had a stolen key.
    pub fn forget_owner(&mut self) {
        self.owner_epoch = 0;
    }

    /// The latest life of the owner that has answered; 0 before any.
    pub fn owner_epoch(&self) -> u64 {
        self.owner_epoch
    }

    /// When something is to do.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// How many asks wait for an answer.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}
