//! The name server's side of asking a waypoint: asks, their repetition and their outcomes.

use naming::control::{AskBody, AskOutcome, AskerAction, ControlAsk, ControlAsker, OwnerAnswer, Rejection};
use naming::dns::HeldQuery;
use naming::{Ask, SetUpError};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// A way to the waypoint that owns the addresses.
pub(super) trait WaypointLink: Send {
    /// Carries an ask there. The answer, if it is there at once.
    fn carry(&mut self, ask: &ControlAsk, now: u64) -> Option<OwnerAnswer>;
}

/// What a waypoint has said of a query that waits.
pub(super) type Settled = (HeldQuery, Result<Ipv4Addr, SetUpError>);

/// All asks that wait, and the way to the waypoint.
pub(super) struct Asking {
    asker: ControlAsker,
    link: Box<dyn WaypointLink>,
    waiting: HashMap<u64, HeldQuery>,
}

impl Asking {
    /// Nothing waits. The epoch is larger than that of each earlier life of the process.
    pub(super) fn new(epoch: u64, link: Box<dyn WaypointLink>) -> Asking {
        Asking { asker: ControlAsker::new(epoch), link, waiting: HashMap::new() }
    }

    /// Asks for an address for a query that waits. [`Asking::turn`] carries it.
    pub(super) fn ask(&mut self, query: HeldQuery, ask: Ask, now: u64, settled: &mut Vec<Settled>) {
        match self.asker.ask(AskBody::SetUp(ask), now) {
            Ok(serial) => drop(self.waiting.insert(serial, query)),
            Err(_) => settled.push((query, Err(SetUpError::Full))),
        }
    }

    /// Carries what is due, and notes what has been said.
    pub(super) fn turn(&mut self, now: u64, settled: &mut Vec<Settled>) {
        while let Some(action) = self.asker.poll(now) {
            let outcome = match action {
                AskerAction::Send(ask) => {
                    let answer = self.link.carry(&ask, now);
                    answer.and_then(|answer| self.asker.heard(&answer, now))
                }
                AskerAction::Ended(serial, outcome) => Some((serial, outcome)),
            };
            let Some((serial, outcome)) = outcome else { continue };
            let Some(query) = self.waiting.remove(&serial) else { continue };
            match outcome {
                AskOutcome::Accepted(address, _) => settled.push((query, Ok(address))),
                AskOutcome::Rejected(Rejection::SetUp(why)) => settled.push((query, Err(why))),
                // The query is answered when it has waited for as long as it may.
                AskOutcome::Rejected(_) | AskOutcome::Leased(_) | AskOutcome::TimedOut => {}
            }
        }
    }

    /// When something is to be carried again.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.asker.next_due()
    }
}
