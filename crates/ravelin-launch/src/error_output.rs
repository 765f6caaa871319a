//! Passes on what a process tells as errors, as much as somebody reads, line by line under its name: a
//! process that is taken over may fill no disk with it, and say nothing in the name of another.

use crate::said::told;
use messages::limits::LONGEST_TEXT;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many bytes are passed on in this time.
const MOST: usize = 64 << 10;
const TIME: Duration = Duration::from_secs(60);

/// How much was passed on lately, of one process or of those that follow each other.
pub(crate) struct PassedOn {
    begun: Instant,
    passed: usize,
    lost: usize,
}

impl PassedOn {
    /// Nothing yet.
    pub(crate) fn none() -> Arc<Mutex<PassedOn>> {
        Arc::new(Mutex::new(PassedOn { begun: Instant::now(), passed: 0, lost: 0 }))
    }
}

/// Passes on what comes until its end, as far as what was `passed_on` lately leaves room.
pub(crate) fn pass_on(name: &str, from: impl Read, passed_on: &Mutex<PassedOn>, mut say: impl FnMut(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // A line that does not end is passed on in pieces.
    while let Ok(length @ 1..) =
        Read::by_ref(&mut from).take(LONGEST_TEXT as u64).read_until(b'\n', &mut line)
    {
        let mut all = passed_on.lock().unwrap_or_else(PoisonError::into_inner);
        if all.begun.elapsed() >= TIME {
            (all.begun, all.passed) = (Instant::now(), 0);
        }
        if all.passed == 0 && all.lost > 0 {
            say(&format!("ravelin-launch: {} bytes of errors of {name} were not passed on", all.lost));
            all.lost = 0;
        }
        if all.passed + length <= MOST {
            say(&format!("{name}: {}", told(&String::from_utf8_lossy(&line))));
            all.passed += length;
        } else {
            all.lost += length;
        }
        drop(all);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_passed_on_in_a_minute_than_somebody_reads() {
        let mut said = Vec::new();
        let none = PassedOn::none();
        pass_on("core", &b"what is wrong\nlaunch: \x1b[2J"[..], &none, |line| said.push(line.to_owned()));
        assert_eq!(said, ["core: what is wrong", "core: launch: \\u{1b}[2J"]);
        let (mut bytes, mut lines) = (0, 0);
        let together = PassedOn::none();
        // One process after the other has no more than one alone.
        for _ in 0..3 {
            pass_on("core", &vec![b'x'; MOST / 2 + 10_000][..], &together, |line| {
                bytes += line.len() - "core: ".len();
                lines += 1;
            });
        }
        assert!(bytes <= MOST && bytes > MOST - LONGEST_TEXT, "{bytes}");
        assert!(lines <= MOST / LONGEST_TEXT + 2, "{lines}");
    }
}
