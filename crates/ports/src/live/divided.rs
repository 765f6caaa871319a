//! What the ports of an interface share that is divided by VLANs.

use super::held::Held;
use super::lane::{Receiver, Sender};
use super::losses::{ReceiveLosses, SendLosses};
use super::presence::Presence;
use packet::PortNumber;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Every number that fits into a tag.
const NUMBERS: usize = 1 << 12;

/// An interface that ports divide by VLANs; one more of them, or one less, is a matter of the lanes alone.
#[derive(Clone)]
pub struct DividedInterface {
    /// Its name.
    pub(super) interface: String,
    pub(super) mode: String,
    /// What the ports of each lane share.
    pub(super) trunks: Vec<Arc<Mutex<Trunk>>>,
    pub(super) presence: Arc<Presence>,
}

/// What the ports of a lane share.
pub(super) struct Trunk {
    pub(super) send: Box<dyn Sender>,
    pub(super) ways: Ways,
    /// The receiving half of the interface, while none of its ports has it.
    pub(super) receive: Option<Box<dyn Receiver>>,
    /// The number of the VLAN of the port that has it. This port also tells what the interface loses, from
    /// the time on when it got it, and when it wants to be flushed.
    pub(super) speaker: u16,
    /// What was lost before that.
    pub(super) lost_before: (ReceiveLosses, SendLosses),
}

impl Trunk {
    pub(super) fn losses(&self) -> SendLosses {
        let now = self.send.losses();
        let since = now.each(self.lost_before.1, u64::saturating_sub);
        SendLosses { waiting: now.waiting, ..since }
    }
}

pub(super) fn locked(trunk: &Mutex<Trunk>) -> MutexGuard<'_, Trunk> {
    trunk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DividedInterface {
    /// The name of the interface.
    pub fn name(&self) -> &str {
        &self.interface
    }
}

/// Where the frames of one port go.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) port: PortNumber,
    /// The queue before its middleware, if that looks at them.
    pub(super) queue: Option<Queue>,
}

/// The ports of an interface.
pub(super) struct Ways {
    /// For every number of a VLAN, and 0 for frames without a tag: one more than the place of its port below,
    /// or 0 where it has none.
    places: Box<[u16; NUMBERS]>,
    /// `None` where a port has gone.
    ports: Vec<Option<Way>>,
}

impl Default for Ways {
    fn default() -> Ways {
        Ways { places: Box::new([0; NUMBERS]), ports: Vec::new() }
    }
}

impl Ways {
    pub(super) fn set(&mut self, number: u16, way: Way) {
        self.remove(number);
        let free = self.ports.iter().position(Option::is_none).unwrap_or(self.ports.len());
        if free == self.ports.len() {
            self.ports.push(None);
        }
        if let Some(place) = self.places.get_mut(usize::from(number)) {
            self.ports[free] = Some(way);
            *place = free as u16 + 1;
        }
    }

    pub(super) fn remove(&mut self, number: u16) {
        let place = self.places.get_mut(usize::from(number)).map(std::mem::take);
        if let Some(way) = self.ports.get_mut(usize::from(place.unwrap_or(0)).wrapping_sub(1)) {
            *way = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ports.iter().all(Option::is_none)
    }

    #[inline]
    pub(super) fn of(&self, vlan: u16) -> Option<&Way> {
        let place = usize::from(*self.places.get(usize::from(vlan))?);
        self.ports.get(place.wrapping_sub(1))?.as_ref()
    }
}

/// Frames that wait for the middleware of their port.
#[derive(Clone)]
pub(super) struct Queue(Arc<Mutex<Held>>);

impl Queue {
    pub(super) fn new(bytes: usize) -> Queue {
        Queue(Arc::new(Mutex::new(Held::new(bytes))))
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
