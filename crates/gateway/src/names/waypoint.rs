//! A waypoint in the same process: it is asked by the same messages as one far away, without bytes.

use crate::config::names::{HostPlace, Hosts};
use crate::limits::PROMISES_SHOWN;
use crate::names::asking::WaypointLink;
use naming::control::{AnswerBody, AskBody, ControlAsk, ControlOwner, OwnerAnswer, Peer, Rejection};
use naming::{AddressPool, AddressPoolError, Ask, Promise, Waypoint};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name server of the same process, among those who ask.
const OWN: Peer = Peer(0);

/// What first packets may do from now on.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The address, and until when nobody else is promised the same.
    pub(super) promise: Promise,
    /// By whom, and by which services.
    pub(super) ask: Ask,
    /// Where the responder is.
    pub(super) place: HostPlace,
    /// When it was promised.
    pub(super) at: u64,
}

/// The packets of a waypoint: it lets initiators through to whom an address was promised.
pub(super) trait DataPath: Send {
    /// Installs a promise before the name is answered.
    fn expect(&mut self, expected: Expected);
}

/// Promises that are remembered, so that they can be shown.
#[derive(Clone, Default)]
pub(super) struct Promises(Arc<Mutex<VecDeque<Expected>>>);

impl Promises {
    pub(super) fn all(&self) -> MutexGuard<'_, VecDeque<Expected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DataPath for Promises {
    fn expect(&mut self, expected: Expected) {
        let mut all = self.all();
        // The same promise again replaces the earlier one.
        let is_same = |one: &Expected| {
            one.promise.address == expected.promise.address
                && one.ask.responder == expected.ask.responder
                && one.ask.initiators == expected.ask.initiators
        };
        if let Some(index) = all.iter().position(is_same) {
            all.remove(index);
        }
        if all.len() >= PROMISES_SHOWN {
            all.pop_front();
        }
        all.push_back(expected);
    }
}

/// The waypoint, and what it needs to carry out asks.
pub(super) struct LocalWaypoint {
    owner: ControlOwner,
    waypoint: Waypoint,
    hosts: Arc<Mutex<Hosts>>,
    path: Box<dyn DataPath>,
}

impl LocalWaypoint {
    /// A waypoint that has promised nothing.
    pub(super) fn new(
        epoch: u64,
        pool: AddressPool,
        hosts: Arc<Mutex<Hosts>>,
        path: Box<dyn DataPath>,
    ) -> Result<LocalWaypoint, AddressPoolError> {
        let (owner, waypoint) = (ControlOwner::new(epoch), Waypoint::new(pool)?);
        Ok(LocalWaypoint { owner, waypoint, hosts, path })
    }
}

impl WaypointLink for LocalWaypoint {
    fn carry(&mut self, ask: &ControlAsk, now: u64) -> Option<OwnerAnswer> {
        let LocalWaypoint { owner, waypoint, hosts, path } = self;
        let carry_out = |body: &AskBody| {
            let AskBody::SetUp(ask) = body else { return AnswerBody::Reject(Rejection::Unsupported) };
            let place = hosts.lock().unwrap_or_else(PoisonError::into_inner).place(ask.responder.0).cloned();
            let Some(place) = place else { return AnswerBody::Reject(Rejection::UnknownResponder) };
            match waypoint.set_up(ask, now) {
                Ok(promise) => {
                    path.expect(Expected { promise, ask: ask.clone(), place, at: now });
                    let micros = promise.exclusive_until.saturating_sub(now) / 1_000;
                    AnswerBody::Accept(promise.address, u32::try_from(micros).unwrap_or(u32::MAX))
                }
                Err(why) => AnswerBody::Reject(Rejection::SetUp(why)),
            }
        };
        // Without room it drops the ask, which is carried again.
        owner.heard(OWN, ask, now, carry_out).ok()
    }
}
