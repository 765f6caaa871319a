//! Packet tests in STF files, the format of the P4 world: packets in, packets out.
//!
//! ```text
//! # a comment
//! packet PORT HEX…      a packet enters by a port
//! expect PORT HEX…      a packet leaves by a port; `*` fits any half byte; `$` at the end: nothing follows. Without it, more may follow.
//! expect PORT           any packet leaves by a port
//! ports N               the gateway has N ports; otherwise as many as the file names
//! wait                  nothing: every packet is done before the next line
//! ```
//!
//! Packets of one port leave in the order of their `expect` lines. At the end, whatever left on a port that some line expects from must have been
//! expected; copies on other ports (a flood reaches all of them) are not looked at.

use crate::bench::Bench;
use exec::{BackEnd, LoadError};
use lang::ir::Program;
use packet::{PortNumber, Verdict};
use std::collections::{BTreeMap, VecDeque};

/// A line that is no STF.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct StfError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub cause: String,
}

/// A file of packets and expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stf {
    /// Number of ports.
    pub ports: u16,
    /// Its lines that do something.
    pub steps: Vec<StfStep>,
}

/// A line that does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StfStep {
    /// The line, counted from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet enters.
    Packet(PortNumber, Vec<u8>),
    /// A packet leaves.
    Expect(PortNumber, Pattern),
}

/// What a packet has to look like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Half bytes from the start; none fits any.
    pub digits: Vec<Option<u8>>,
    /// Nothing follows them.
    pub exact: bool,
}

impl Pattern {
    /// Whether a packet looks so.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        let digit = |index: usize| bytes.get(index / 2).map(|byte| (byte >> (4 * (1 - index % 2))) & 15);
        let start = self.digits.iter().enumerate().all(|(index, wanted)| match (digit(index), wanted) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(found), Some(wanted)) => found == *wanted,
        });
        start && (!self.exact || self.digits.len() == 2 * bytes.len())
    }
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StfMismatch {
    /// The `expect` line, or the `packet` line whose packet left without being expected.
    pub line: usize,
    /// The port.
    pub port: PortNumber,
    /// What was expected; nothing if a packet was too many.
    pub expected: Option<Pattern>,
    /// What left instead; none if nothing did.
    pub found: Option<Vec<u8>>,
    /// The last packet before it: its port and bytes as they came in.
    pub packet: Option<(PortNumber, Vec<u8>)>,
    /// Its verdict.
    pub verdict: Option<Verdict>,
}

/// Reads an STF file.
///
/// # Errors
/// The first line that is no STF.
pub fn read(text: &str) -> Result<Stf, StfError> {
    let mut stf = Stf::default();
    let mut declared = None;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let wrong = |cause: String| StfError { line: line_number, cause };
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let Some(word) = words.next() else { continue };
        let action = match word {
            "wait" => continue,
            "ports" => {
                declared = Some(port(words.next()).map_err(wrong)?);
                continue;
            }
            "packet" => {
                let port = port(words.next()).map_err(wrong)?;
                Action::Packet(port, bytes(&words.collect::<String>()).map_err(wrong)?)
            }
            "expect" => {
                let port = port(words.next()).map_err(wrong)?;
                Action::Expect(port, pattern(&words.collect::<String>()).map_err(wrong)?)
            }
            other => {
                return Err(wrong(format!(
                    "`{other}` is not understood; a line is `packet PORT HEX`, `expect PORT HEX`, `ports N` or `wait`"
                )));
            }
        };
        stf.ports = stf.ports.max(match &action {
            Action::Packet(port, _) | Action::Expect(port, _) => *port,
        });
        stf.steps.push(StfStep { line: line_number, action });
    }
    stf.ports = declared.unwrap_or(stf.ports).max(1);
    Ok(stf)
}

/// Runs a file to its first expectation that does not hold.
///
/// # Errors
/// If the back end cannot load the program.
pub fn run(program: &Program, stf: &Stf, back_end: BackEnd) -> Result<Option<StfMismatch>, LoadError> {
    let mut bench = Bench::new(program, back_end, stf.ports, 0)?;
    let mut waiting: BTreeMap<PortNumber, VecDeque<(usize, Vec<u8>)>> = BTreeMap::new();
    let mut last = (None, None);
    for (number, step) in stf.steps.iter().enumerate() {
        match &step.action {
            Action::Packet(port, bytes) => {
                let outcome = bench.packet(*port, bytes, number as u64);
                for (left_by, sent) in outcome.left {
                    waiting.entry(left_by).or_default().push_back((step.line, sent));
                }
                last = (Some((*port, bytes.clone())), outcome.verdict);
            }
            Action::Expect(port, wanted) => {
                let found = waiting.get_mut(port).and_then(VecDeque::pop_front).map(|(_, sent)| sent);
                if !found.as_ref().is_some_and(|sent| wanted.fits(sent)) {
                    let (packet, verdict) = last;
                    let (line, port, expected) = (step.line, *port, Some(wanted.clone()));
                    return Ok(Some(StfMismatch { line, port, expected, found, packet, verdict }));
                }
            }
        }
    }
    let looked_at = |port: &PortNumber| {
        stf.steps.iter().any(|step| matches!(&step.action, Action::Expect(expected, _) if expected == port))
    };
    let too_many = waiting.into_iter().find_map(|(port, mut sent)| {
        let (line, sent) = sent.pop_front().filter(|_| looked_at(&port))?;
        Some(StfMismatch { line, port, expected: None, found: Some(sent), packet: None, verdict: None })
    });
    Ok(too_many)
}

fn port(word: Option<&str>) -> Result<PortNumber, String> {
    let word = word.ok_or("a number of a port is missing")?;
    word.parse()
        .ok()
        .filter(|&port| port != packet::NO_PORT)
        .ok_or_else(|| format!("`{word}` is no port; ports are numbered from 1 to {}", PortNumber::MAX))
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let pattern = pattern(text.trim_end_matches('$'))?;
    if !pattern.digits.len().is_multiple_of(2) {
        return Err(format!("{} half bytes are no whole number of bytes", pattern.digits.len()));
    }
    pattern
        .digits
        .chunks(2)
        .map(|pair| match pair {
            [Some(high), Some(low)] => Ok(high << 4 | low),
            _ => Err("`*` stands for bytes that are not known, and a packet that enters is known".into()),
        })
        .collect()
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let (digits, exact) = match text.strip_suffix('$') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let digits = digits
        .chars()
        .map(|letter| match letter {
            '*' => Ok(None),
            _ => match letter.to_digit(16) {
                Some(digit) => Ok(Some(digit as u8)),
                None => Err(format!("`{letter}` is neither a hexadecimal digit nor `*`")),
            },
        })
        .collect::<Result<_, _>>()?;
    Ok(Pattern { digits, exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let stf = read("# wire\npacket 1 00 01 ff\nexpect 2 0*01 $\nexpect 4\nwait\n").expect("stf");
        assert_eq!(stf.ports, 4);
        let exact = Pattern { digits: vec![Some(0), None, Some(0), Some(1)], exact: true };
        let actions: Vec<_> = stf.steps.iter().map(|step| (step.line, step.action.clone())).collect();
        assert_eq!(
            actions,
            [
                (2, Action::Packet(1, vec![0, 1, 255])),
                (3, Action::Expect(2, exact)),
                (4, Action::Expect(4, Pattern::default())),
            ]
        );
        assert_eq!(read("ports 9\npacket 1 00").expect("stf").ports, 9);
    }

    #[test]
    fn wrong_lines_say_where_and_why() {
        let cause = |text: &str| read(text).expect_err("wrong").to_string();
        assert!(cause("\npackt 1 00").starts_with("line 2: `packt` is not understood"));
        assert!(cause("packet 0 00").contains("`0` is no port"));
        assert!(cause("packet 1 0").contains("no whole number of bytes"));
        assert!(cause("packet 1 0g").contains("`g`"));
        assert!(cause("packet 1 **").contains("known"));
        assert!(cause("expect").contains("missing"));
    }

    #[test]
    fn patterns_fit_by_half_bytes() {
        let pattern = |text| pattern(text).expect("pattern");
        assert!(pattern("0*1").fits(&[0x0f, 0x12, 3]));
        assert!(!pattern("0*1").fits(&[0x1f, 0x12]));
        assert!(!pattern("0011").fits(&[0]), "too short");
        assert!(pattern("00$").fits(&[0]));
        assert!(!pattern("00$").fits(&[0, 0]));
        assert!(pattern("").fits(&[]));
    }
}
