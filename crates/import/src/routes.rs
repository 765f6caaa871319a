//! Routes as text, a route a line.
//!
//! ```text
//! prefix  next-hop [anything]              1.0.4.0/22 10.255.0.2 38803
//! ```
//!
//! Prefixes are IPv4 or IPv6, one family a file; a next hop is an address of either, or a number; `#` starts
//! a comment. A full table has a million lines, so they are read as bytes, and nothing is allocated for a
//! line.

#[cfg(test)]
mod tests;

use crate::ImportError;
use crate::address::{self, AddressFamily, PrefixFault};
use crate::text::{number, parse_number, shown};
use std::collections::HashMap;
use tables::lpm::Prefix;

/// A routing table, each prefix once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedRoutes {
    /// The family of the prefixes.
    pub family: AddressFamily,
    /// Each prefix with the index of its next hop, in the order of the file.
    pub entries: Vec<(Prefix, u32)>,
    /// The line of each entry, from 1; in a binary format the record.
    pub lines: Vec<u32>,
    /// The next hops as they were written, each once.
    pub next_hops: Vec<String>,
}

/// Reads a routing table.
///
/// # Errors
/// The first line that is no route; a prefix that has bits behind its length, is of another family than the
/// first, or is there twice; a last line without an end, as the file may be cut there.
pub fn read(text: &[u8]) -> Result<ImportedRoutes, ImportError> {
    let mut routes = ImportedRoutes::default();
    let mut hops = NextHops::default();
    let mut reader = Reader::new(text);
    while reader.next_line()? {
        let (family, prefix) = reader.prefix()?;
        reader.same_family(family, &mut routes.family, routes.lines.first().copied())?;
        let hop = reader.next_hop(&mut hops)?;
        routes.entries.push((prefix, hop));
        routes.lines.push(reader.line);
    }
    routes.next_hops = hops.names();
    refuse_duplicates(&routes, "line")?;
    Ok(routes)
}

/// The routes as [`read`] takes them.
pub fn write(routes: &ImportedRoutes) -> String {
    let line = |(prefix, hop): &(Prefix, u32)| {
        let prefix = address::print_prefix(routes.family, prefix.bits, prefix.length);
        let hop = routes.next_hops.get(*hop as usize).map_or("", String::as_str);
        format!("{prefix} {hop}\n")
    };
    routes.entries.iter().map(line).collect()
}

/// Next hops by their text, numbered as they come.
#[derive(Default)]
pub(crate) struct NextHops<'a> {
    indices: HashMap<&'a [u8], u32>,
    order: Vec<&'a [u8]>,
    last: (&'a [u8], u32),
}

impl<'a> NextHops<'a> {
    fn known(&mut self, hop: &'a [u8]) -> Option<u32> {
        // Neighbouring prefixes mostly share their next hop.
        if self.last.0 != hop || self.order.is_empty() {
            self.last = (hop, *self.indices.get(hop)?);
        }
        Some(self.last.1)
    }

    pub(crate) fn index(&mut self, hop: &'a [u8]) -> u32 {
        self.known(hop).unwrap_or_else(|| {
            let index = self.order.len() as u32;
            self.order.push(hop);
            self.indices.insert(hop, index);
            self.last = (hop, index);
            index
        })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.order.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

/// Refuses a table that holds a prefix twice. `what` two lines say is compared as well, as two next hops are
/// a contradiction and one is only a slip.
pub(crate) fn refuse_duplicates(routes: &ImportedRoutes, place: &str) -> Result<(), ImportError> {
    let key = |index: usize| (routes.entries[index].0.bits, routes.entries[index].0.length);
    if (1..routes.entries.len()).all(|index| key(index - 1) < key(index)) {
        return Ok(());
    }
    let mut order: Vec<(u128, u8, u32)> =
        (0..routes.entries.len()).map(|index| (key(index).0, key(index).1, index as u32)).collect();
    order.sort_unstable();
    let twice = |pair: &&[(u128, u8, u32)]| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
    // The first line of the file that repeats another, not the first prefix in the order of numbers.
    let Some(pair) = order.windows(2).filter(twice).min_by_key(|pair| pair[1].2) else { return Ok(()) };
    let (first, second) = (pair[0].2 as usize, pair[1].2 as usize);
    let (prefix, hop) =
        (routes.entries[first].0, |index: usize| shown(&routes.next_hops[routes.entries[index].1 as usize]));
    let prefix = address::print_prefix(routes.family, prefix.bits, prefix.length);
    let (line, earlier) = (routes.lines[second], routes.lines[first]);
    Err(if routes.entries[first].1 == routes.entries[second].1 {
        ImportError::new(
            line,
            1,
            format!("{prefix} is on {place} {earlier} already"),
            "remove one of the two",
        )
    } else {
        ImportError::new(
            line,
            1,
            format!("{prefix} goes to {} here and to {} on {place} {earlier}", hop(second), hop(first)),
            "remove the wrong one of the two",
        )
    })
}

/// Where in the text the reading is.
struct Reader<'a> {
    text: &'a [u8],
    /// The next byte.
    at: usize,
    /// Where the line starts and where it ends, without its end.
    start: usize,
    end: usize,
    line: u32,
}

const SHAPE: &str = "a route is written `prefix next-hop`, as in `10.0.0.0/8 192.0.2.1`";
impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, start: 0, end: 0, line: 0 }
    }

    /// Goes to the next line that is neither empty nor a comment; false at the end of the text.
    fn next_line(&mut self) -> Result<bool, ImportError> {
        let mut next = if self.line == 0 { 0 } else { self.end + 1 };
        while next < self.text.len() {
            self.line = self.line.saturating_add(1);
            self.start = next;
            let rest = &self.text[next..];
            let Some(length) = memchr::memchr(b'\n', rest) else {
                self.end = self.text.len();
                return Err(self.error(
                    self.end,
                    "the last line has no end: the file may be cut off here",
                    "end the line if it is whole",
                ));
            };
            self.end = next + length;
            self.at = self.start;
            self.skip_blanks();
            if self.at < self.end && self.text[self.at] != b'#' {
                return Ok(true);
            }
            next = self.end + 1;
        }
        Ok(false)
    }

    fn skip_blanks(&mut self) {
        while self.at < self.end && matches!(self.text[self.at], b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// The next word and where it starts; empty at the end of the line and before a comment.
    fn word(&mut self) -> (usize, &'a [u8]) {
        self.skip_blanks();
        let start = self.at;
        if self.at < self.end && self.text[self.at] == b'#' {
            return (start, &[]);
        }
        while self.at < self.end && !matches!(self.text[self.at], b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
        (start, &self.text[start..self.at])
    }

    fn prefix(&mut self) -> Result<(AddressFamily, Prefix), ImportError> {
        let (start, word) = self.word();
        match address::parse_prefix(word) {
            Ok((family, bits, length)) => Ok((family, Prefix { bits, length })),
            Err(fault) => Err(self.prefix_error(start, word, fault)),
        }
    }

    fn prefix_error(&self, start: usize, word: &[u8], fault: PrefixFault) -> ImportError {
        if word.is_empty() {
            return self.error(start, "the prefix is missing", SHAPE);
        }
        let what = format!("`{}` {fault}", shown(&String::from_utf8_lossy(word)));
        match fault {
            PrefixFault::HostBits(_) => {
                self.error(start, what, "make the address the first one of its prefix")
            }
            _ => self.error(start, what, SHAPE),
        }
    }

    fn same_family(
        &self,
        family: AddressFamily,
        all: &mut AddressFamily,
        first: Option<u32>,
    ) -> Result<(), ImportError> {
        match first {
            Some(first) if *all != family => Err(self.error(
                self.start,
                format!("this prefix is {} and the one on line {first} is {}", family.name(), all.name()),
                "put each family in a file of its own",
            )),
            _ => {
                *all = family;
                Ok(())
            }
        }
    }

    fn next_hop(&mut self, hops: &mut NextHops<'a>) -> Result<u32, ImportError> {
        let (start, word) = self.word();
        // One that was seen before is good.
        if let Some(index) = hops.known(word) {
            return Ok(index);
        }
        let text = String::from_utf8_lossy(word);
        if address::parse(word).is_some() || parse_number(&text).is_some() {
            return Ok(hops.index(word));
        }
        Err(match word {
            [] => self.error(start, "the next hop is missing", SHAPE),
            _ => self.error(
                start,
                format!("the next hop `{}` is neither an address nor a number", shown(&text)),
                SHAPE,
            ),
        })
    }

    fn error(&self, at: usize, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.line, number(at - self.start), what, advice)
    }
}
