//! The kinds of persistent kernels on an OpenCL device, and which of them a device supports.

use super::OpenClDevice;
use crate::device::{DeviceError, Geometry, PATIENCE, Setup, SlotMemory, Submission};
use crate::ring::RingShape;
use crate::watch::GRACE;
use std::time::Duration;

/// The most packets of a slot, and threads of a group.
pub(super) const MOST: usize = 32;

/// How a kernel keeps running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Threads of its group, each of which runs a packet: 1 to 32.
    pub threads: usize,
    /// It ends after so many slots, and is started again when there is something to do.
    pub slots: u32,
    /// It ends after it has asked in vain so often in a row. While it asks, it keeps a processor busy.
    pub asks: u32,
    /// It is told to end after so long by the host's clock, as OpenCL has none, and has stalled if it does
    /// not.
    pub quantum: Duration,
    /// It has stalled after it was asked for so long in vain since it was told to end.
    pub grace: Duration,
}

impl Serving {
    /// What suits a device.
    pub fn on(device: &OpenClDevice) -> Serving {
        // Some tens of milliseconds, and about one. A driver for processors runs threads of a group one after
        // the other.
        let threads = if device.accelerator { MOST } else { 1 };
        // Threads of a processor may wait for others' work before they run: that is no stall.
        let grace = if device.accelerator { GRACE } else { PATIENCE };
        Serving { threads, slots: 1 << 14, asks: 1 << 18, quantum: Duration::from_millis(50), grace }
    }
}

/// Whether OpenCL can what is wanted; the ring for it.
pub(super) fn can(
    name: &str,
    geometry: &Geometry,
    setup: &Setup,
    serving: &Serving,
) -> Result<RingShape, DeviceError> {
    if setup.submission != Submission::Persistent {
        return Err(instead(format!("a kernel that keeps running on {name} is not {}", setup.submission)));
    }
    if setup.memory != SlotMemory::Mapped {
        return Err(instead(format!("a kernel that keeps running has mapped memory, not {}", setup.memory)));
    }
    if !(1..=MOST).contains(&geometry.packets) {
        let packets = geometry.packets;
        return Err(instead(format!(
            "a kernel that keeps running takes 1 to {MOST} packets at once, not {packets}"
        )));
    }
    let Serving { threads, slots, asks, quantum, .. } = *serving;
    if !(1..=MOST).contains(&threads) {
        return Err(otherwise(format!("has 1 to {MOST} threads, not {threads}")));
    }
    for (number, what) in [(slots, "runs at least 1 slot"), (asks, "asks at least once")] {
        if number == 0 {
            return Err(otherwise(format!("{what} before it ends, not 0")));
        }
    }
    if quantum.is_zero() {
        return Err(otherwise("ends after some time, not at once".to_owned()));
    }
    let slots = geometry.slots;
    RingShape::new(slots)
        .ok_or_else(|| instead(format!("a kernel that keeps running has 1 to 65,536 slots, not {slots}")))
}

/// A setting that has no meaning.
fn otherwise(what: String) -> DeviceError {
    DeviceError::Missing {
        what: format!("a kernel that keeps running {what}"),
        how: "choose another number".to_owned(),
    }
}

pub(super) fn instead(what: String) -> DeviceError {
    DeviceError::Missing { what, how: "submit batches to streams".to_owned() }
}
