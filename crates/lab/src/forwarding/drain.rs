//! How quickly a gateway empties a full ring: what it can carry where the sender is what would be measured
//! otherwise.
//!
//! The gateway's process is stopped while host a fills the ring of its port. Then it goes on with nobody
//! sending, and the time from the first to the last arrival at host b is taken, as its interface counts them.
//! The sender's processor is the one that looks; the gateway has its own.

use super::net::Net;
use rig::{FrameSender, Process, hold};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Frames that are handed over at a call.
const AT_ONCE: usize = 64;
/// After so long without an arrival none is to come any more: on a busy machine a gateway may not get to run
/// for a while. It is no part of the time.
const SILENCE: Duration = Duration::from_millis(500);
/// Before, there is to have been none for so long.
const QUIET: Duration = Duration::from_millis(250);

/// A ring that was emptied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drained {
    /// Packets a second that arrived, from the first that was seen to the last.
    pub rate: f64,
    /// Packets that were sent and did not arrive.
    pub lost: u64,
}

/// Fills the ring of a gateway with so many frames while its process is stopped, and watches them arrive.
///
/// # Errors
/// What the kernel says, or hardly any frame arrives.
pub fn drain(
    net: &Net,
    frames: &[Vec<u8>],
    count: u64,
    process: Process,
    processor: usize,
) -> io::Result<Drained> {
    let sender = FrameSender::new(&net.a, "eth0")?;
    let links = net.b.links()?;
    let arrived = || links.counters("eth0").map(|counters| counters.received);
    let watched = || -> io::Result<Drained> {
        hold(processor)?;
        // What is still on its way goes first.
        let mut before = arrived()?;
        loop {
            thread::sleep(QUIET);
            let now = arrived()?;
            if now == before {
                break;
            }
            before = now;
        }
        let stopped = process.stop()?;
        fill(&sender, frames, count)?;
        if arrived()? != before {
            return Err(io::Error::other("packets pass although the gateway is stopped"));
        }
        drop(stopped);
        arrivals(before, count, arrived)
    };
    thread::scope(|scope| {
        scope.spawn(watched).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn fill(sender: &FrameSender, frames: &[Vec<u8>], count: u64) -> io::Result<()> {
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let mut left = count as usize;
    for volley in frames.chunks(AT_ONCE).cycle() {
        if left == 0 {
            break;
        }
        left -= sender.send(&volley[..volley.len().min(left)])?;
    }
    Ok(())
}

/// Looks again and again how many have arrived.
fn arrivals(before: u64, count: u64, arrived: impl Fn() -> io::Result<u64>) -> io::Result<Drained> {
    let mut first = None;
    let mut last = (Instant::now(), before);
    loop {
        let now = (Instant::now(), arrived()?);
        if now.1 > last.1 {
            first.get_or_insert(now);
            last = now;
        }
        if last.1 >= before + count || last.0.elapsed() > SILENCE {
            break;
        }
    }
    match first {
        Some(first) if last.1 > first.1 => {
            let rate = (last.1 - first.1) as f64 / (last.0 - first.0).as_secs_f64();
            Ok(Drained { rate, lost: (before + count).saturating_sub(last.1) })
        }
        _ => Err(io::Error::other("no packet arrives after the gateway was stopped and goes on")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_rate_is_of_what_came_after_the_first_look_and_the_rest_is_lost() {
        let looks = Cell::new(0u64);
        let arrived = |most: u64| {
            looks.set(looks.get() + 1);
            thread::sleep(Duration::from_millis(1));
            Ok(100 + (looks.get() * 10).min(most))
        };
        let all = arrivals(100, 50, || arrived(50)).expect("packets arrive");
        assert_eq!((all.lost, looks.get()), (0, 5));
        assert!(all.rate > 0.0 && all.rate <= 10_000.0, "{}", all.rate);
        looks.set(0);
        assert_eq!(arrivals(100, 50, || arrived(30)).expect("some arrive").lost, 20);
        looks.set(0);
        arrivals(100, 50, || arrived(0)).expect_err("none arrives");
    }
}
