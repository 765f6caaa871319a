//! Generates literal patterns like those of intrusion detection rules, and payload that contains some of
//! them.
//!
//! The idea: patterns are words of web requests joined by punctuation, or random bytes, of the lengths that
//! published rule sets have; payload is made of the same words, so that a search often begins to match and
//! seldom goes on. What is planted is known by place.

use std::collections::HashSet;
use std::fmt;

use super::{Random, Weighted};

/// What patterns are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternsSpec {
    /// How many; at most 1,048,576.
    pub count: usize,
    /// Patterns that ignore the case of ASCII letters, in percent; 60 is usual.
    pub nocase: u64,
    /// Chooses the patterns.
    pub seed: u64,
}

/// One literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PayloadLiteral {
    /// 4 bytes or more; without capital letters if the case is ignored.
    pub bytes: Vec<u8>,
    /// The case of ASCII letters is ignored.
    pub nocase: bool,
}

/// Different literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literals {
    /// By number.
    pub literals: Vec<PayloadLiteral>,
}

/// What payload is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadSpec {
    /// Bytes.
    pub length: usize,
    /// Planted patterns for 1024 bytes each, on average; 0 plants none.
    pub planted: u64,
    /// Random bytes instead of words, in percent: compressed and encrypted payload.
    pub opaque: u64,
    /// Chooses the bytes.
    pub seed: u64,
}

/// Bytes with patterns planted in them. The bytes around may hold further patterns by chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Number of a literal and the place of its first byte, by ascending place; they do not overlap.
    pub plants: Vec<(u32, usize)>,
}

const WORDS: [&str; 48] = [
    "GET",
    "POST",
    "HTTP/1.1",
    "Host",
    "User-Agent",
    "Accept",
    "Content-Type",
    "Cookie",
    "index",
    "admin",
    "login",
    "search",
    "images",
    "static",
    "script",
    "select",
    "union",
    "where",
    "user",
    "password",
    "shell",
    "cmd.exe",
    "etc/passwd",
    "text/html",
    "charset",
    "utf-8",
    "gzip",
    "mozilla",
    "windows",
    "linux",
    "www",
    "com",
    "net",
    "php",
    "asp",
    "cgi-bin",
    "id",
    "name",
    "value",
    "true",
    "false",
    "document",
    "window",
    "eval",
    "function",
    "return",
    "update",
    "download",
];
const JOINTS: [&str; 16] =
    ["/", "=", "&", "?", ".", " ", ": ", "\r\n", "%20", "-", "_", "../", ";", "\"", "<", ">"];

/// Shares of lengths of literals: steps of what public sets for Snort have, with a mean of 17 bytes.
const LENGTHS: [(u64, u64, u64); 7] =
    [(4, 5, 18), (6, 9, 22), (10, 14, 19), (15, 20, 15), (21, 30, 14), (31, 60, 10), (61, 120, 2)];

impl Literals {
    /// The literals of a spec.
    pub fn new(spec: &PatternsSpec) -> Literals {
        let mut random = Random::new(spec.seed);
        let lengths = Weighted::new(&LENGTHS.map(|(_, _, share)| share));
        let count = spec.count.min(1 << 20);
        let mut taken: HashSet<PayloadLiteral> = HashSet::with_capacity(count);
        let mut literals = Vec::with_capacity(count);
        while literals.len() < count {
            let (low, high, _) = LENGTHS[lengths.draw(&mut random)];
            let mut length = random.between(low, high) as usize;
            // Short texts run out; a longer one takes the place of a duplicate.
            loop {
                let opaque = random.chance(22);
                let mut bytes = Vec::with_capacity(length + 16);
                while bytes.len() < length {
                    extend(&mut bytes, opaque, &mut random);
                }
                bytes.truncate(length);
                let nocase = random.chance(spec.nocase);
                if nocase {
                    bytes.make_ascii_lowercase();
                }
                let literal = PayloadLiteral { bytes, nocase };
                if taken.insert(literal.clone()) {
                    literals.push(literal);
                    break;
                }
                length += 1;
            }
        }
        Literals { literals }
    }

    /// A line a literal: number, 1 if the case is ignored, length, bytes in hexadecimal, and the number
    /// again.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        writeln!(out, "# id\tnocase(0/1)\tlength\thex_bytes\tfirst_sid")?;
        for (number, literal) in self.literals.iter().enumerate() {
            write!(out, "{number}\t{}\t{}\t", u8::from(literal.nocase), literal.bytes.len())?;
            for byte in &literal.bytes {
                write!(out, "{byte:02x}")?;
            }
            writeln!(out, "\t{number}")?;
        }
        Ok(())
    }
}

impl Payload {
    /// The payload of a spec, with literals of these planted where the case may vary if it is ignored.
    pub fn new(literals: &Literals, spec: &PayloadSpec) -> Payload {
        let mut random = Random::new(spec.seed);
        let mut bytes: Vec<u8> = Vec::with_capacity(spec.length + 256);
        let mut plants = Vec::new();
        let mut next = gap(spec.planted, &mut random);
        while bytes.len() < spec.length {
            let number = random.below(literals.literals.len() as u64) as usize;
            match literals.literals.get(number).filter(|_| bytes.len() >= next) {
                Some(literal) if bytes.len() + literal.bytes.len() <= spec.length => {
                    plants.push((number as u32, bytes.len()));
                    let cases = if literal.nocase { random.word() } else { 0 };
                    bytes.extend(literal.bytes.iter().enumerate().map(|(i, byte)| {
                        if cases >> (i % 64) & 1 == 1 { byte.to_ascii_uppercase() } else { *byte }
                    }));
                    next = bytes.len().saturating_add(gap(spec.planted, &mut random));
                }
                _ => {
                    let opaque = random.chance(spec.opaque);
                    extend(&mut bytes, opaque, &mut random);
                }
            }
        }
        bytes.truncate(spec.length);
        Payload { bytes, plants }
    }

    /// A line a planted pattern: its number and place.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        self.plants.iter().try_for_each(|(number, place)| writeln!(out, "{number}\t{place}"))
    }
}

/// Adds a word and a joint, or eight random bytes.
fn extend(bytes: &mut Vec<u8>, opaque: bool, random: &mut Random) {
    if opaque {
        bytes.extend_from_slice(&random.word().to_le_bytes());
        return;
    }
    let word = WORDS[random.below(WORDS.len() as u64) as usize];
    bytes.extend_from_slice(word.as_bytes());
    if random.chance(25) {
        let number = random.below(10_000);
        bytes.extend((0..4).map(|digit| b'0' + (number / 10u64.pow(digit) % 10) as u8));
    }
    bytes.extend_from_slice(JOINTS[random.below(JOINTS.len() as u64) as usize].as_bytes());
}

/// Bytes up to the next planted pattern.
fn gap(planted: u64, random: &mut Random) -> usize {
    2048u64.checked_div(planted).map_or(usize::MAX, |most| random.between(0, most) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(count: usize, seed: u64) -> Literals {
        Literals::new(&PatternsSpec { count, nocase: 60, seed })
    }

    #[test]
    fn literals_have_the_lengths_of_real_ones_and_differ() {
        let literals = literals(4000, 1).literals;
        assert_eq!(literals.iter().collect::<HashSet<_>>().len(), 4000);
        let mean = literals.iter().map(|literal| literal.bytes.len()).sum::<usize>() / 4000;
        assert!((14..20).contains(&mean), "{mean}");
        let nocase = literals.iter().filter(|literal| literal.nocase).count();
        assert!((2200..2600).contains(&nocase), "{nocase}");
        for literal in literals {
            assert!(literal.bytes.len() >= 4);
            assert!(!literal.nocase || !literal.bytes.iter().any(u8::is_ascii_uppercase));
        }
    }

    #[test]
    fn planted_patterns_are_where_they_are_said_to_be() {
        let literals = literals(100, 2);
        let spec = PayloadSpec { length: 100_000, planted: 2, opaque: 20, seed: 3 };
        let payload = Payload::new(&literals, &spec);
        assert_eq!(payload.bytes.len(), 100_000);
        assert!((140..260).contains(&payload.plants.len()), "{}", payload.plants.len());
        let mut changed_case = 0;
        let mut end = 0;
        for (number, place) in &payload.plants {
            let literal = &literals.literals[*number as usize];
            let found = &payload.bytes[*place..place + literal.bytes.len()];
            assert!(*place >= end && found.eq_ignore_ascii_case(&literal.bytes));
            assert!(literal.nocase || found == literal.bytes);
            changed_case += usize::from(found != literal.bytes);
            end = place + literal.bytes.len();
        }
        assert!(changed_case > 50);
        assert_eq!(Payload::new(&literals, &spec), payload);
    }

    #[test]
    fn nothing_is_planted_where_there_is_nothing() {
        let none = Literals { literals: Vec::new() };
        let spec = PayloadSpec { length: 1000, planted: 5, opaque: 0, seed: 1 };
        assert!(Payload::new(&none, &spec).plants.is_empty());
        let spec = PayloadSpec { planted: 0, ..spec };
        assert!(Payload::new(&literals(5, 1), &spec).plants.is_empty());
    }

    #[test]
    fn a_line_has_number_case_length_and_bytes() {
        let literal = PayloadLiteral { bytes: b"ab\0c".to_vec(), nocase: true };
        let mut text = String::new();
        Literals { literals: vec![literal] }.write(&mut text).expect("strings take all");
        assert_eq!(text.lines().nth(1), Some("0\t1\t4\t61620063\t0"));
    }
}
