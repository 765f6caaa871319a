//! Passes on what a process tells as errors, as much as somebody reads, line by line under its name: a
//! process that is taken over may fill no disk with it, and say nothing in the name of another.

use crate::said::told;
use messages::limits::LONGEST_TEXT;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// So many bytes are passed on in this time.
const MOST: usize = 64 << 10;
const TIME: Duration = Duration::from_secs(60);

/// Passes on what comes until its end.
pub(crate) fn pass_on(name: &str, from: impl Read, mut say: impl FnMut(&str)) {
    let mut from = BufReader::new(from);
    let (mut begun, mut passed, mut lost) = (Instant::now(), 0, 0);
    let mut line = Vec::new();
    // A line that does not end is passed on in pieces.
    while let Ok(length @ 1..) =
        Read::by_ref(&mut from).take(LONGEST_TEXT as u64).read_until(b'\n', &mut line)
    {
        if begun.elapsed() >= TIME {
            (begun, passed) = (Instant::now(), 0);
        }
        if passed == 0 && lost > 0 {
            say(&format!("ravelin-launch: {lost} bytes of errors of {name} were not passed on"));
            lost = 0;
        }
        if passed + length <= MOST {
            say(&format!("{name}: {}", told(&String::from_utf8_lossy(&line))));
            passed += length;
        } else {
            lost += length;
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_passed_on_in_a_minute_than_somebody_reads() {
        let mut said = Vec::new();
        pass_on("core", &b"what is wrong\nlaunch: \x1b[2J"[..], |line| said.push(line.to_owned()));
        assert_eq!(said, ["core: what is wrong", "core: launch: \\u{1b}[2J"]);
        let (mut bytes, mut lines) = (0, 0);
        pass_on("core", &vec![b'x'; MOST + 10_000][..], |line| {
            bytes += line.len() - "core: ".len();
            lines += 1;
        });
        assert_eq!((bytes, lines), (MOST, MOST / LONGEST_TEXT));
    }
}
