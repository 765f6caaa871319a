//! The name server's side of asking waypoints: asks, their repetition and their outcomes.

use naming::SetUpError;
use naming::control::{
    ControlAsk, OwnerAnswer, Peer, Rejection, SetUp, SetUpAction, SetUpAsker, SetUpOutcome,
};
use naming::dns::HeldQuery;
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The ways to waypoints that own addresses.
pub(super) trait WaypointLink: Send {
    /// Carries asks to these waypoints, in their order. Gives the answers that are there at once.
    fn carry(&mut self, asks: &[(Peer, ControlAsk)], now: u64) -> Vec<(Peer, OwnerAnswer)>;
}

/// Why a query gets no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpromised {
    /// Waypoints are short of addresses.
    Short(SetUpError),
    /// No waypoint leads to the host.
    Unreached,
}

/// What waypoints have said of a query that waits.
pub(super) type Settled = (HeldQuery, Result<Ipv4Addr, Unpromised>);

/// All asks that wait, and the ways to the waypoints.
pub(super) struct Asking {
    asker: SetUpAsker,
    link: Box<dyn WaypointLink>,
    waiting: HashMap<u64, HeldQuery>,
}

impl Asking {
    /// Nothing waits. The epoch is larger than that of each earlier life of the process.
    pub(super) fn new(
        epoch: u64,
        waypoints: impl IntoIterator<Item = Peer>,
        link: Box<dyn WaypointLink>,
    ) -> Asking {
        Asking { asker: SetUpAsker::new(epoch, waypoints), link, waiting: HashMap::new() }
    }

    /// Asks for an address for a query that waits. [`Asking::turn`] carries it.
    pub(super) fn ask(&mut self, query: HeldQuery, set_up: SetUp, now: u64) {
        let number = self.asker.ask(set_up, now);
        self.waiting.insert(number, query);
    }

    /// Takes an answer of a waypoint, and says whether it answers something. [`Asking::turn`] notes what it
    /// says.
    pub(super) fn heard(&mut self, from: Peer, answer: &OwnerAnswer, now: u64) -> bool {
        self.asker.heard(from, answer, now)
    }

    /// Carries what is due, and notes what has been said.
    pub(super) fn turn(&mut self, now: u64, settled: &mut Vec<Settled>) {
        loop {
            let mut asks = Vec::new();
            while let Some(action) = self.asker.poll(now) {
                match action {
                    SetUpAction::Send(to, ask) => asks.push((to, ask)),
                    SetUpAction::Settled(number, outcome) => self.settle(number, outcome, settled),
                }
            }
            if asks.is_empty() {
                return;
            }
            for (from, answer) in self.link.carry(&asks, now) {
                self.asker.heard(from, &answer, now);
            }
        }
    }

    fn settle(&mut self, number: u64, outcome: SetUpOutcome, settled: &mut Vec<Settled>) {
        let Some(query) = self.waiting.remove(&number) else { return };
        match outcome {
            SetUpOutcome::Promised(address) => settled.push((query, Ok(address))),
            SetUpOutcome::Refused(Rejection::SetUp(why)) => {
                settled.push((query, Err(Unpromised::Short(why))));
            }
            SetUpOutcome::Refused(_) => settled.push((query, Err(Unpromised::Unreached))),
            // The query is answered when it has waited for as long as it may.
            SetUpOutcome::Unanswered => {}
        }
    }

    /// Forgets which life of a waypoint has answered: one of its keys was taken away.
    pub(super) fn forget(&mut self, waypoint: Peer) {
        self.asker.forget(waypoint);
    }

    /// Whether a waypoint has said nothing when it was asked last.
    pub(super) fn is_silent(&self, waypoint: Peer, now: u64) -> bool {
        self.asker.is_silent(waypoint, now)
    }

    /// When something is to be carried again.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.asker.next_due()
    }
}
