//! Measures the round trip of a word to a CUDA device: one warp polls memory that the host writes, and
//! answers there.
//!
//! Nothing is launched in between and nothing else runs, so no kernel that keeps running can be quicker.

use super::super::compile;
use super::super::errors::{failure, no_memory, not_loaded};
use super::super::found::CudaFound;
use super::super::handles::{Context, Event, Function, Stream};
use super::super::memory::Region;
use super::super::waiting::drain;
use crate::device::{DeviceError, SlotMemory};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long either waits for the other at most, so that the warp ends whatever the host does.
const LONGEST: Duration = Duration::from_secs(1);
/// Answers come sooner, unless something is in the way.
const QUICK: Duration = Duration::from_micros(100);
/// The word that is asked with, and the one that answers, in lines of their own.
const ASKED: usize = 0;
const ANSWERED: usize = 32;

/// The warp's text.
const TEXT: &str = include_str!("pings.cu");

/// How long each of so many words was away, in order.
///
/// # Errors
/// There is no compiler or memory, or the device fails or has not answered for a second.
pub fn pings(device: &CudaFound, rounds: u32) -> Result<Vec<Duration>, DeviceError> {
    let name = device.full_name();
    let failed = |doing| failure(&name, doing);
    let code = compile(TEXT, device.capability)?;
    let context = Arc::new(Context::new(device)?);
    let kernel = Function::load(&context, code.image(), "answer");
    let kernel = kernel.map_err(|error| not_loaded(device, error))?;
    let stream = Stream::new(&context).map_err(failed("make a stream"))?;
    let last = Event::new(&context, false).map_err(failed("make an event"))?;
    let words = Region::<u32>::new(&context, &stream, 2 * ANSWERED, SlotMemory::Mapped);
    let words = words.map_err(|error| no_memory(&name, error, "two words", 8 * ANSWERED))?;
    let (mut place, mut number, mut longest) = (words.place(), rounds, LONGEST.as_nanos() as u64);
    let mut arguments: [*mut c_void; 3] =
        [(&raw mut place).cast(), (&raw mut number).cast(), (&raw mut longest).cast()];
    // SAFETY: the arguments are those of `answer`, in order and type, and are copied by the call; the words
    // are there until the stream is done.
    unsafe { kernel.launch(1, 32, false, &stream, &mut arguments) }.map_err(failed("start a kernel"))?;
    let away = ask(&name, &words, rounds);
    // It ends by itself, whether it was asked to the end or not; where it does not, what it works on stays.
    let ended = drain(&name, &stream, &last);
    if ended.is_err() {
        std::mem::forget((words, last, stream, kernel, context));
    }
    ended.and(away)
}

fn ask(name: &str, words: &Region<u32>, rounds: u32) -> Result<Vec<Duration>, DeviceError> {
    let words = words.shared();
    let mut away = Vec::with_capacity(rounds as usize);
    for round in 1..=rounds {
        let begin = Instant::now();
        words[ASKED].store(round, Ordering::Release);
        while words[ANSWERED].load(Ordering::Acquire) != round {
            let waited = begin.elapsed();
            if waited > LONGEST {
                let milliseconds = waited.as_millis() as u64;
                return Err(DeviceError::Stalled { device: name.to_owned(), milliseconds });
            }
            // Where the two share a processor the other one may need it.
            match waited > QUICK {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
        away.push(begin.elapsed());
    }
    Ok(away)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_builds_where_there_is_a_compiler() {
        match compile(TEXT, 90) {
            Ok(code) => assert!(code.image().len() > 100),
            Err(error) => assert!(matches!(error, DeviceError::Missing { .. }), "{error}"),
        }
    }
}
