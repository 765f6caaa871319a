//! Work in flight on an OpenCL queue: whether it is finished. All waits have a time limit.

#![allow(unsafe_code)]

use super::failure;
use crate::device::{DeviceError, Parts, wait_for};
use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::ClError;
use opencl3::event::{CL_COMPLETE, CommandExecutionStatus, Event};
use std::time::Duration;

/// What happens to a batch, in this order.
pub(super) struct Flight {
    /// It is handed over.
    pub(super) given: Vec<Event>,
    /// The kernel runs.
    pub(super) kernel: Event,
    /// What comes back has come.
    pub(super) back: Vec<Event>,
}

impl Flight {
    /// Whether it has come to its end, and nothing of it to a bad one: a driver may go on behind a command
    /// that failed.
    pub(super) fn is_over(&self) -> opencl3::Result<bool> {
        let Flight { given, kernel, back } = self;
        let events = given.iter().chain([kernel]).chain(back);
        events.map(is_over).try_fold(true, |all, over| Ok(over? && all))
    }

    /// How long its parts took, where the queue tells times.
    pub(super) fn parts(&self) -> Option<Parts> {
        let Flight { given, kernel, back } = self;
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let start = |event: &Event| event.profiling_command_start().ok();
        let end = |event: &Event| event.profiling_command_end().ok();
        let copy_in = match (given.first(), given.last()) {
            (Some(first), Some(last)) => between(start(first)?, end(last)?),
            _ => Duration::ZERO,
        };
        let copy_out = match back.last() {
            Some(last) => between(end(kernel)?, end(last)?),
            None => Duration::ZERO,
        };
        Some(Parts { copy_in, kernel: between(start(kernel)?, end(kernel)?), copy_out })
    }
}

/// Whether a command has come to its end.
///
/// # Errors
/// It was a bad one.
pub(super) fn is_over(event: &Event) -> opencl3::Result<bool> {
    match event.command_execution_status()?.0 {
        status @ ..0 => Err(ClError(status)),
        status => Ok(status == CL_COMPLETE),
    }
}

/// Whether a command has come to its end, by what the driver says of it when it is asked: a bad end is one,
/// too. If it does not answer, nobody knows.
pub(super) fn is_at_end(status: opencl3::Result<CommandExecutionStatus>) -> opencl3::Result<bool> {
    status.map(|status| status.0 <= CL_COMPLETE)
}

/// Waits until everything that was put on a queue has come to its end, good or bad.
///
/// # Errors
/// It has taken too long, or the driver does not say.
pub(super) fn drain(device: &str, queue: &CommandQueue, patience: Duration) -> Result<(), DeviceError> {
    // SAFETY: it waits for all that was put there before, and refers to nothing.
    let last = unsafe { queue.enqueue_marker_with_wait_list(&[]) };
    let last = last.and_then(|last| queue.flush().map(|()| last));
    let last = last.map_err(failure(device, "come to an end"))?;
    // Where the queue is at its end, a marker says what went wrong before it, too.
    let failed = failure(device, "say whether it has come to an end");
    wait_for(device, patience, || is_at_end(last.command_execution_status()).map_err(&failed))
}
