//! Waits for the work on a stream, always with a time limit: a device that does not finish is lost to the
//! whole process.

#![allow(unsafe_code)]

use super::errors::failure;
use super::handles::{Event, Stream};
use super::memory::Table;
use crate::device::{DeviceError, wait};

/// Waits until what is before an event is done.
///
/// # Errors
/// It has taken too long, or the driver reports an error; what it works on must not be given back.
pub(super) fn until(device: &str, event: &Event, doing: &'static str) -> Result<(), DeviceError> {
    let waited = wait(device, || event.is_over().map_err(|error| failure(device, doing)(error)));
    if waited.is_err() {
        event.lose();
    }
    waited
}

/// Waits until everything that was put on a stream is done; the event is used for that.
///
/// # Errors
/// As for [`until`].
pub(super) fn drain(device: &str, stream: &Stream, last: &Event) -> Result<(), DeviceError> {
    let doing = "come to an end";
    last.record(stream).map_err(|error| {
        last.lose();
        failure(device, doing)(error)
    })?;
    until(device, last, doing)
}

/// Writes words of a table from `first` on, and waits until they are there. Nothing is under way; the event
/// is used for that.
///
/// # Errors
/// There are not so many, or as for [`until`].
pub(super) fn write(
    device: &str,
    table: &Table,
    first: usize,
    words: &[u32],
    stream: &Stream,
    last: &Event,
) -> Result<(), DeviceError> {
    if words.is_empty() {
        return Ok(());
    }
    // Nobody may know how long the driver reads them.
    let held = words.to_vec();
    // SAFETY: the words stay until they are there, or for ever.
    let begun = unsafe { table.begin_to_write(first, &held, stream) };
    let written = begun.map_err(failure(device, "copy a table")).and(drain(device, stream, last));
    if written.is_err() {
        std::mem::forget(held);
    }
    written
}

/// Why a slot is not lent, or handed over again.
pub(super) fn is_under_way(device: &str) -> DeviceError {
    let cause = "it is under way".to_owned();
    DeviceError::Failed { device: device.to_owned(), doing: "lend a batch", cause }
}

/// Why nothing more is done on a device.
pub(super) fn is_lost(device: &str) -> DeviceError {
    let cause = "it has failed, or has not come to the end of something else".to_owned();
    DeviceError::Failed { device: device.to_owned(), doing: "go on", cause }
}
