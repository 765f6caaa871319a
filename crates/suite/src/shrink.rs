//! Makes a program and packets that disagree small: halves of the packets, then statements and items, as long
//! as they still disagree.

use crate::agree::compare;
use crate::packet_generator::Arrivals;
use std::time::{Duration, Instant};

/// Shrinking ends after so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A smaller program, fewer packets, and how they disagree.
pub fn shrink(text: String, arrivals: Arrivals, what: String) -> (String, Arrivals, String) {
    let end = Instant::now() + PATIENCE;
    let (mut text, mut arrivals, mut what) = (text, arrivals, what);
    loop {
        let before = (text.len(), arrivals.ports.len());
        fewer_packets(&text, &mut arrivals, &mut what, end);
        fewer_lines(&mut text, &arrivals, &mut what, end);
        if before == (text.len(), arrivals.ports.len()) || Instant::now() >= end {
            return (text, arrivals, what);
        }
    }
}

/// Leaves out ever shorter runs of packets.
fn fewer_packets(text: &str, arrivals: &mut Arrivals, what: &mut String, end: Instant) {
    let mut size = arrivals.ports.len().div_ceil(2);
    while size > 0 {
        let mut first = 0;
        while first < arrivals.ports.len() && Instant::now() < end {
            let kept = arrivals.filter(|index| index < first || index >= first + size);
            match compare(text, &kept) {
                Err(found) => {
                    *arrivals = kept;
                    *what = found;
                }
                Ok(_) => first += size,
            }
        }
        size /= 2;
    }
}

/// Leaves out lines, and blocks with what is in them.
fn fewer_lines(text: &mut String, arrivals: &Arrivals, what: &mut String, end: Instant) {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let mut first = 0;
    while first < lines.len() && Instant::now() < end {
        let last = extent(&lines, first);
        let mut kept = lines[..first].to_vec();
        kept.extend_from_slice(&lines[last..]);
        let candidate = kept.join("\n") + "\n";
        match compare(&candidate, arrivals) {
            Err(found) => {
                lines = kept;
                *text = candidate;
                *what = found;
            }
            Ok(_) => first += 1,
        }
    }
}

/// The line behind the statement or block that begins at a line.
fn extent(lines: &[String], first: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    if !lines[first].ends_with('{') {
        return first + 1;
    }
    let own = indent(&lines[first]);
    let closing = (first + 1..lines.len()).find(|&at| indent(&lines[at]) == own && !lines[at].ends_with('{'));
    closing.map_or(lines.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reaches_to_its_end() {
        let lines: Vec<String> =
            ["a {", "    b", "} else {", "    c {", "    }", "}", "d"].map(String::from).to_vec();
        assert_eq!(extent(&lines, 0), 6);
        assert_eq!(extent(&lines, 1), 2);
        assert_eq!(extent(&lines, 3), 5);
        assert_eq!(extent(&lines, 6), 7);
    }
}
