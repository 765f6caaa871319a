//! Halves of lanes behind which nothing is: those of a number that no port has, and the receiving half of a
//! port whose packets come in the batches of another.

use super::clock::Now;
#[cfg(feature = "attach")]
use super::{Attached, Lane, SendLosses, Sender};
use super::{ReceiveLosses, Receiver};
use packet::Batch;
#[cfg(feature = "attach")]
use packet::VirtioHeader;
use std::os::fd::RawFd;
#[cfg(feature = "attach")]
use std::sync::Arc;

/// What poll(2) passes over.
pub(super) const NO_DESCRIPTOR: RawFd = -1;

/// The name of a number that no port has. No interface can be called so.
#[cfg(feature = "attach")]
pub const NOBODY: &str = "(empty)";

/// The port of a number that nobody has, with so many lanes.
#[cfg(feature = "attach")]
pub(super) fn attach(lanes: u16) -> Attached {
    let lane = |_| Lane { receive: Box::new(Nothing), send: Box::new(Nowhere { lost: 0 }) };
    let lanes = (0..lanes.max(1)).map(lane).collect();
    Attached::alone(NOBODY.to_owned(), "no port has this number".to_owned(), lanes, Arc::default())
}

/// No packet ever comes.
pub(super) struct Nothing;

impl Receiver for Nothing {
    fn receive<'a>(&'a mut self, batch: &mut Batch, _: Now) -> &'a mut [u8] {
        batch.clear();
        &mut []
    }

    fn descriptor(&self) -> RawFd {
        NO_DESCRIPTOR
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// Whatever leaves here is lost, as at an interface that is gone.
#[cfg(feature = "attach")]
struct Nowhere {
    lost: u64,
}

#[cfg(feature = "attach")]
impl Sender for Nowhere {
    fn send(&mut self, _: &[u8], _: VirtioHeader) {
        self.lost += 1;
    }

    fn flush(&mut self) {}

    fn takes_open_checksums(&self) -> bool {
        true
    }

    fn losses(&self) -> SendLosses {
        SendLosses { down: self.lost, ..SendLosses::default() }
    }
}
