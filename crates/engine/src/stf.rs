//! Packet tests in STF files, the format of the P4 world: packets in, packets out.
//!
//! ```text
//! # a comment
//! packet PORT HEX…      a packet enters by a port
//! expect PORT HEX…      a packet leaves by a port; `*` fits any half byte; `$` at the end: nothing follows. Without it, more may follow.
//! expect PORT           any packet leaves by a port
//! ports N               the gateway has N ports; otherwise as many as the file names
//! wait                  nothing: every packet is done before the next line
//! no_packet             nothing has left that was not expected
//! add, remove, setdefault, check_counter: see [`control`]
//! ```
//!
//! Packets of one port leave in the order of their `expect` lines. At the end, whatever left on a port that
//! some line expects from must have been expected; copies on other ports (a flood reaches all of them) are
//! not looked at.

pub mod control;

use self::control::Control;
use crate::bench::PacketBench;
use exec::{BackendKind, LoadError};
use ir::Program;
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
    Expect(PortNumber, StfPattern),
    /// Nothing has left that was not expected.
    NoPacket,
    /// What a control plane does.
    Control(Control),
}

/// What a packet has to look like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StfPattern {
    /// Half bytes from the start; none fits any.
    pub digits: Vec<Option<u8>>,
    /// Nothing follows them.
    pub exact: bool,
}

impl StfPattern {
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

/// Why a file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StfFault {
    /// The program cannot be loaded.
    #[error("it cannot be loaded: {0}")]
    Load(#[from] LoadError),
    /// A line does not suit the program's tables.
    #[error(transparent)]
    Line(#[from] StfError),
}

/// What did not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StfMismatch {
    /// The `expect` line, or the `packet` line whose packet left without being expected.
    pub line: usize,
    /// The port.
    pub port: PortNumber,
    /// What was expected; nothing if a packet was too many.
    pub expected: Option<StfPattern>,
    /// What left instead; none if nothing did.
    pub found: Option<Vec<u8>>,
    /// The last packet before it: its port and bytes as they came in.
    pub packet: Option<(PortNumber, Vec<u8>)>,
    /// Its verdict.
    pub verdict: Option<Verdict>,
    /// A counter that is not as it must be, in words.
    pub counter: Option<String>,
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
                nothing_behind(words).map_err(wrong)?;
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
            "no_packet" => {
                nothing_behind(words).map_err(wrong)?;
                Action::NoPacket
            }
            other => match control::read(other, line.trim_start().strip_prefix(other).unwrap_or("")) {
                Some(control) => Action::Control(control.map_err(wrong)?),
                None => {
                    return Err(wrong(format!(
                        "`{other}` is not understood; a line is `packet PORT HEX`, `expect PORT HEX`, `ports N`, `wait`, `no_packet`, `add`, `remove`, `setdefault` or `check_counter`"
                    )));
                }
            },
        };
        stf.ports = stf.ports.max(match &action {
            Action::Packet(port, _) | Action::Expect(port, _) => *port,
            Action::NoPacket | Action::Control(_) => 0,
        });
        stf.steps.push(StfStep { line: line_number, action });
    }
    stf.ports = declared.unwrap_or(stf.ports).max(1);
    Ok(stf)
}

/// Runs a file to its first expectation that does not hold.
///
/// # Errors
/// If the back end cannot load the program, or a line does not suit its tables.
pub fn run(program: &Program, stf: &Stf, back_end: BackendKind) -> Result<Option<StfMismatch>, StfFault> {
    Ok(run_on(PacketBench::new(program, back_end, stf.ports, 0)?, program, stf)?)
}

/// As [`run`], on a bench that was just made for the program and as many ports as the file has.
///
/// # Errors
/// If a line does not suit the program's tables.
pub fn run_on(
    mut bench: PacketBench<'_>,
    program: &Program,
    stf: &Stf,
) -> Result<Option<StfMismatch>, StfError> {
    let mut waiting: BTreeMap<PortNumber, VecDeque<(usize, Vec<u8>)>> = BTreeMap::new();
    let mut last = (None, None);
    let at = |line, (packet, verdict)| StfMismatch { line, packet, verdict, ..StfMismatch::default() };
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
                    let expected = Some(wanted.clone());
                    return Ok(Some(StfMismatch { port: *port, expected, found, ..at(step.line, last) }));
                }
            }
            Action::NoPacket => {
                let sent = waiting.iter_mut().find_map(|(port, sent)| Some((*port, sent.pop_front()?.1)));
                if let Some((port, found)) = sent {
                    return Ok(Some(StfMismatch { port, found: Some(found), ..at(step.line, last) }));
                }
            }
            Action::Control(control) => {
                let wrong = |cause: String| StfError { line: step.line, cause };
                if let Some(counter) = controlled(&mut bench, program, control).map_err(wrong)? {
                    let (line, counter) = (step.line, Some(counter));
                    return Ok(Some(StfMismatch { line, counter, ..StfMismatch::default() }));
                }
            }
        }
    }
    let looked_at = |port: &PortNumber| {
        stf.steps.iter().any(|step| matches!(&step.action, Action::Expect(expected, _) if expected == port))
    };
    let too_many = waiting.into_iter().find_map(|(port, mut sent)| {
        let (line, sent) = sent.pop_front().filter(|_| looked_at(&port))?;
        Some(StfMismatch { line, port, found: Some(sent), ..StfMismatch::default() })
    });
    Ok(too_many)
}

/// Does what a control plane would; gives what does not hold of a counter, in words.
fn controlled(
    bench: &mut PacketBench,
    program: &Program,
    control: &Control,
) -> Result<Option<String>, String> {
    let backend = bench.processor_mut();
    match control {
        Control::Add(words) => {
            if let Some(named) = control::group(program, &words.table) {
                let (at, member) = control::member(named.1, words)?;
                return backend.join(named.0, at, &member).map(|()| None).map_err(|cause| cause.to_string());
            }
            let (index, table) = control::table(program, &words.table)?;
            let entry = control::entry(table, words, true)?;
            backend.insert(index, &entry).map_err(|cause| cause.to_string())?;
        }
        Control::Remove(words) => {
            if let Some(named) = control::group(program, &words.table) {
                let (at, member) = control::member(named.1, words)?;
                let left = backend.leave(named.0, at, &member);
                return left.then_some(None).ok_or_else(|| format!("`{}` has no such member", words.table));
            }
            let (index, table) = control::table(program, &words.table)?;
            let entry = control::entry(table, words, false)?;
            if !backend.remove(index, &entry.key, entry.priority) {
                return Err(format!("`{}` has no such entry", words.table));
            }
        }
        Control::RemoveAll => {
            for index in 0..program.tables.len() as u32 {
                backend.replace(index, Vec::new()).map_err(|cause| cause.to_string())?;
            }
        }
        Control::SetDefault(words) => {
            let (index, table) = control::table(program, &words.table)?;
            let action = words.rest.first().ok_or("an action is missing")?;
            let value = control::value(table, action)?;
            backend.set_default(index, Some(&value)).map_err(|cause| cause.to_string())?;
        }
        Control::Check(check) => {
            let counter = (0..).zip(&program.counters).find(|(_, counter)| counter.name == check.name);
            let found = match counter {
                Some((index, _)) => backend.counter(index).get(check.index).copied(),
                None => {
                    let (index, _) = control::table(program, &check.name)
                        .map_err(|_| format!("the program has no counter or table `{}`", check.name))?;
                    backend.entries(index).get(check.index).map(|(_, count)| (count.packets, count.bytes))
                }
            };
            let (packets, bytes) =
                found.ok_or_else(|| format!("`{}` has no cell {}", check.name, check.index))?;
            let (found, unit) = if check.bytes { (bytes, "bytes") } else { (packets, "packets") };
            if !check.holds(found) {
                let (name, comparison, number) = (&check.name, &check.comparison, check.number);
                return Ok(Some(format!(
                    "{name}({}) counted {found} {unit}, not {comparison} {number}",
                    check.index
                )));
            }
        }
    }
    Ok(None)
}

fn port(word: Option<&str>) -> Result<PortNumber, String> {
    let word = word.ok_or("a number of a port is missing")?;
    word.parse()
        .ok()
        .filter(|&port| port != packet::NO_PORT)
        .ok_or_else(|| format!("`{word}` is no port; ports are numbered from 1 to {}", PortNumber::MAX))
}

/// A line has ended.
fn nothing_behind(mut words: impl Iterator<Item = impl std::fmt::Display>) -> Result<(), String> {
    match words.next() {
        Some(word) => Err(format!("`{word}` stands where the line ends")),
        None => Ok(()),
    }
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

fn pattern(text: &str) -> Result<StfPattern, String> {
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
    Ok(StfPattern { digits, exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let stf = read("# wire\npacket 1 00 01 ff\nexpect 2 0*01 $\nexpect 4\nwait\n").expect("stf");
        assert_eq!(stf.ports, 4);
        let exact = StfPattern { digits: vec![Some(0), None, Some(0), Some(1)], exact: true };
        let actions: Vec<_> = stf.steps.iter().map(|step| (step.line, step.action.clone())).collect();
        assert_eq!(
            actions,
            [
                (2, Action::Packet(1, vec![0, 1, 255])),
                (3, Action::Expect(2, exact)),
                (4, Action::Expect(4, StfPattern::default())),
            ]
        );
        assert_eq!(read("ports 9\npacket 1 00").expect("stf").ports, 9);
        let stf = read("add acl 0:1/8 permit( a : 1,\t2 ) # x\nremove all\ncheck_counter c(3) bytes >= 7")
            .expect("stf");
        let Action::Control(Control::Add(words)) = &stf.steps[0].action else { panic!("an add") };
        assert_eq!(
            (words.table.as_str(), &words.rest[..]),
            ("acl", &["0:1/8".to_string(), "permit(a:1,2)".to_string()][..])
        );
        assert_eq!(stf.steps[1].action, Action::Control(Control::RemoveAll));
        let Action::Control(Control::Check(check)) = &stf.steps[2].action else { panic!("a check") };
        assert_eq!((check.index, check.bytes, check.holds(7), check.holds(6)), (3, true, true, false));
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
        for (line, word) in [
            ("check_counter c == 1 2", "2"),
            ("check_counter c packets == 1 bytes", "bytes"),
            ("ports 9 8", "8"),
            ("no_packet 1", "1"),
        ] {
            assert!(cause(line).contains(&format!("`{word}` stands where the line ends")), "{line}");
        }
        assert!(cause("check_counter c == 1x").contains("`1x` is no number"));
        assert!(cause("check_counter c ==").contains("a number is missing"));
        for index in ["(3", "(3))", "()", "(x)"] {
            assert!(cause(&format!("check_counter c{index} == 1")).contains("is no index"), "{index}");
        }
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
