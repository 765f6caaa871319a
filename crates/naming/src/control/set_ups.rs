//! A name server's questions for addresses: each goes to one waypoint after the other until one promises an
//! address.
//!
//! ```text
//!  asked ──► first waypoint ──ACCEPT──────────────────────────────► settled: its address
//!                │ REJECT, or nothing for a second
//!                └──► next waypoint … none left, or three seconds ──► settled: why not
//! ```
//!
//! A waypoint that said nothing for a second is *silent*, and is asked behind the others for a while. What it
//! promises later than others is used by nobody and ends by itself.

use crate::control::asker::{AskOutcome, AskerAction, AskerFull, ControlAsker};
use crate::control::message::{AskBody, ControlAsk, OwnerAnswer, Peer, Rejection, SetUp};
use crate::limits::{ASK_WAITS, WAYPOINT_PATIENCE, WAYPOINT_SILENT};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::Ipv4Addr;

/// What has become of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetUpOutcome {
    /// A waypoint has promised this address.
    Promised(Ipv4Addr),
    /// All waypoints that answered have refused.
    Refused(Rejection),
    /// None has answered within three seconds.
    Unanswered,
}

/// What is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetUpAction {
    /// Send this to this waypoint.
    Send(Peer, ControlAsk),
    /// The question of this number is settled.
    Settled(u64, SetUpOutcome),
}

#[derive(Debug)]
struct AskedWaypoint {
    peer: Peer,
    asker: ControlAsker,
    /// The questions behind its asks.
    questions: HashMap<u64, u64>,
    silent_until: u64,
}

#[derive(Debug)]
struct Question {
    set_up: SetUp,
    /// When it is given up.
    until: u64,
    /// When the next waypoint is asked, or it is given up.
    due: u64,
    /// Waypoints that were asked and have not answered, with the numbers of their asks.
    open: Vec<(usize, u64)>,
    /// Waypoints that were not asked yet, the next one last.
    left: Vec<usize>,
    why: Option<Rejection>,
}

/// All questions of one life of a name server.
#[derive(Debug)]
pub struct SetUpAsker {
    waypoints: Vec<AskedWaypoint>,
    questions: HashMap<u64, Question>,
    due: BTreeSet<(u64, u64)>,
    settled: VecDeque<(u64, SetUpOutcome)>,
    last: u64,
}

impl SetUpAsker {
    /// Nothing is asked yet. Waypoints are asked in this order. The epoch is larger than that of each life
    /// before.
    pub fn new(epoch: u64, waypoints: impl IntoIterator<Item = Peer>) -> SetUpAsker {
        let waypoint = |peer| AskedWaypoint {
            peer,
            asker: ControlAsker::new(epoch),
            questions: HashMap::new(),
            silent_until: 0,
        };
        SetUpAsker {
            waypoints: waypoints.into_iter().map(waypoint).collect(),
            questions: HashMap::new(),
            due: BTreeSet::new(),
            settled: VecDeque::new(),
            last: 0,
        }
    }

    /// Asks for an address; [`SetUpAsker::poll`] sends it. Gives the number of the question.
    pub fn ask(&mut self, set_up: SetUp, now: u64) -> u64 {
        self.last += 1;
        let (number, until) = (self.last, now.saturating_add(ASK_WAITS));
        let mut left: Vec<usize> = (0..self.waypoints.len()).rev().collect();
        left.sort_by_key(|index| self.waypoints[*index].silent_until <= now);
        let question = Question { set_up, until, due: until, open: Vec::new(), left, why: None };
        self.questions.insert(number, question);
        self.due.insert((until, number));
        self.go_on(number, now);
        number
    }

    /// What is to do now; nothing if it is to wait until [`SetUpAsker::next_due`].
    pub fn poll(&mut self, now: u64) -> Option<SetUpAction> {
        loop {
            if let Some((number, outcome)) = self.settled.pop_front() {
                return Some(SetUpAction::Settled(number, outcome));
            }
            let due = |one: &AskedWaypoint| one.asker.next_due().is_some_and(|due| due <= now);
            if let Some(index) = self.waypoints.iter().position(due) {
                let waypoint = &mut self.waypoints[index];
                match waypoint.asker.poll(now) {
                    Some(AskerAction::Send(ask)) => return Some(SetUpAction::Send(waypoint.peer, ask)),
                    Some(AskerAction::Ended(serial, _)) => {
                        waypoint.silent_until = now.saturating_add(WAYPOINT_SILENT);
                        if let Some(number) = self.closed(index, serial) {
                            self.go_on(number, now);
                        }
                    }
                    None => {}
                }
                continue;
            }
            let &(_, number) = self.due.first().filter(|(due, _)| *due <= now)?;
            let question = self.questions.get(&number)?;
            for &(index, _) in &question.open {
                self.waypoints[index].silent_until = now.saturating_add(WAYPOINT_SILENT);
            }
            if question.until <= now {
                let outcome = question.why.map_or(SetUpOutcome::Unanswered, SetUpOutcome::Refused);
                self.settle(number, outcome);
            } else {
                self.go_on(number, now);
            }
        }
    }

    /// Takes an answer of a waypoint, and says whether it answers something. [`SetUpAsker::poll`] tells what
    /// it settles.
    pub fn heard(&mut self, peer: Peer, answer: &OwnerAnswer, now: u64) -> bool {
        let Some(index) = self.waypoints.iter().position(|one| one.peer == peer) else { return false };
        let Some((serial, outcome)) = self.waypoints[index].asker.heard(answer, now) else { return false };
        self.waypoints[index].silent_until = 0;
        let Some(number) = self.closed(index, serial) else { return true };
        match outcome {
            AskOutcome::Accepted(address, _) => self.settle(number, SetUpOutcome::Promised(address)),
            AskOutcome::Rejected(why) => {
                // Of several reasons, that of a waypoint which knows the host says most.
                let question = self.questions.get_mut(&number);
                question.into_iter().for_each(|question| match question.why {
                    Some(Rejection::SetUp(_)) => {}
                    _ => question.why = Some(why),
                });
                self.go_on(number, now);
            }
            // Neither answers a SETUP.
            AskOutcome::Leased(_) | AskOutcome::TimedOut => {}
        }
        true
    }

    /// Forgets which life of a waypoint has answered: one of its keys was taken away.
    pub fn forget(&mut self, peer: Peer) {
        let known = self.waypoints.iter_mut().filter(|one| one.peer == peer);
        known.for_each(|one| one.asker.forget_owner());
    }

    /// When something is to do.
    pub fn next_due(&self) -> Option<u64> {
        let askers = self.waypoints.iter().filter_map(|one| one.asker.next_due());
        let settled = (!self.settled.is_empty()).then_some(0);
        askers.chain(self.due.first().map(|(due, _)| *due)).chain(settled).min()
    }

    /// Questions that wait.
    pub fn open(&self) -> usize {
        self.questions.len()
    }

    /// Whether a waypoint has said nothing when it was asked last.
    pub fn is_silent(&self, peer: Peer, now: u64) -> bool {
        self.waypoints.iter().any(|one| one.peer == peer && one.silent_until > now)
    }

    /// An ask is over. Gives the question behind it, if that still waits.
    fn closed(&mut self, index: usize, serial: u64) -> Option<u64> {
        let number = self.waypoints[index].questions.remove(&serial)?;
        self.questions.get_mut(&number)?.open.retain(|open| *open != (index, serial));
        Some(number)
    }

    /// Asks the next waypoint. If none is left and none is asked, the question is settled.
    fn go_on(&mut self, number: u64, now: u64) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        while let Some(index) = question.left.pop() {
            let waypoint = &mut self.waypoints[index];
            match waypoint.asker.ask(AskBody::SetUp(question.set_up.clone()), now) {
                Ok(serial) => {
                    waypoint.questions.insert(serial, number);
                    question.open.push((index, serial));
                    break;
                }
                Err(AskerFull) => question.why = question.why.or(Some(Rejection::NoRoom)),
            }
        }
        if question.open.is_empty() {
            let outcome = question.why.map_or(SetUpOutcome::Unanswered, SetUpOutcome::Refused);
            return self.settle(number, outcome);
        }
        let patience = now.saturating_add(WAYPOINT_PATIENCE).min(question.until);
        let due = if question.left.is_empty() { question.until } else { patience };
        if question.due != due {
            self.due.remove(&(question.due, number));
            question.due = due;
            self.due.insert((due, number));
        }
    }

    fn settle(&mut self, number: u64, outcome: SetUpOutcome) {
        let Some(question) = self.questions.remove(&number) else { return };
        self.due.remove(&(question.due, number));
        for (index, serial) in question.open {
            self.waypoints[index].asker.forget(serial);
            self.waypoints[index].questions.remove(&serial);
        }
        self.settled.push_back((number, outcome));
    }
}
