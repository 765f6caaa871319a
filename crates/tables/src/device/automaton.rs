//! Patterns as an Aho-Corasick automaton in one flat table, which takes one step for each byte.
//!
//! ```text
//! word  0      1        2         3       4          5        6         7
//!      ┌──────┬────────┬─────────┬───────┬──────────┬────────┬─────────┬──────┐
//!      │"RVPA"│version │patterns │states │row words │classes │patterns │rows  │   the last three are places
//!      └──────┴────────┴─────────┴───────┴──────────┴────────┴─────────┴──────┘
//!   8  classes: 256 bytes, the class of each byte
//!  then patterns and their bytes | lists: count, next list or 0, that many patterns ascending
//!  then rows, one a state, the first the start: place of its list or 0 | for each class the next row, in words from the
//!       first one, and bit 31 if that has a list
//! ```
//!
//! The idea: a state stands for the longest end of what was read that some pattern begins with; the table
//! says for each state and byte which one that is next. Case is taken off all bytes first, so patterns whose
//! case counts are compared once more where they are found. Bytes that no pattern has are one class, so a row
//! is as long as the alphabet in use. (Aho and Corasick, *Efficient string matching: an aid to bibliographic
//! search*, 1975.)

use super::patterns::append;
use crate::patterns::{LIMIT, PatternsBuildError, SearchPattern};
use std::collections::VecDeque;

const MAGIC: u32 = u32::from_le_bytes(*b"RVPA");
const VERSION: u32 = 1;
const HEADER: usize = 8;
/// Bit of a step: the next state has a list.
const FOUND: u32 = 1 << 31;

/// The image of the patterns' automaton.
///
/// # Errors
/// [`PatternsBuildError::Empty`] for a pattern of no bytes, [`PatternsBuildError::TooLarge`] for a table
/// above [`LIMIT`].
pub fn image(patterns: &[SearchPattern]) -> Result<Vec<u32>, PatternsBuildError> {
    image_within(patterns, LIMIT)
}

/// As [`image`] with a limit of its own, in bytes; more than 8 GiB is never allowed.
///
/// # Errors
/// As [`image`]; nothing larger than the limit is ever made.
pub(super) fn image_within(patterns: &[SearchPattern], limit: u64) -> Result<Vec<u32>, PatternsBuildError> {
    if let Some(pattern) = patterns.iter().position(|pattern| pattern.bytes.is_empty()) {
        return Err(PatternsBuildError::Empty { pattern });
    }
    let limit = limit.min(u64::from(FOUND) * 4 - 1);
    // The header, the classes and a row are below 2 KiB; a pattern's fields and its place in a list take 48
    // bytes at most.
    let own = patterns.iter().map(|pattern| pattern.bytes.len() as u64 + 48).sum::<u64>() + 2048;
    let refused = |bytes: u64| PatternsBuildError::TooLarge { bytes, limit };
    let room = limit.checked_sub(own).ok_or(refused(own))? / 4;
    let mut automaton = Automaton::new(patterns);
    for (number, pattern) in (0..).zip(patterns) {
        automaton.add(number, &pattern.bytes, room).map_err(|words| refused(own + 4 * words))?;
    }
    let order = automaton.close();
    Ok(automaton.write(patterns, &order))
}

/// The automaton while it is built: rows of state numbers, whose first word is not in use.
struct Automaton {
    class_of: [u8; 256],
    row: usize,
    rows: Vec<u32>,
    /// The patterns that end in each state.
    lists: Vec<Vec<u32>>,
}

impl Automaton {
    fn new(patterns: &[SearchPattern]) -> Automaton {
        let mut used = [false; 256];
        patterns.iter().flat_map(|pattern| &pattern.bytes).for_each(|byte| used[folded(*byte)] = true);
        let (mut class_of, mut classes) = ([0; 256], 0);
        // Capital letters are never in use themselves, so classes fit into a byte.
        for byte in (0..256).filter(|byte| used[*byte]) {
            classes += 1;
            class_of[byte] = classes;
        }
        for byte in b'A'..=b'Z' {
            class_of[usize::from(byte)] = class_of[folded(byte)];
        }
        let row = usize::from(classes) + 2;
        Automaton { class_of, row, rows: vec![0; row], lists: vec![Vec::new()] }
    }

    /// Adds the states of one more pattern, or says how many words that takes if there is not so much room.
    fn add(&mut self, number: u32, bytes: &[u8], room: u64) -> Result<(), u64> {
        let mut state = 0;
        for byte in bytes {
            let step = state * self.row + 1 + usize::from(self.class_of[usize::from(*byte)]);
            if self.rows[step] == 0 {
                let words = (self.rows.len() + self.row) as u64;
                if words > room {
                    return Err(words);
                }
                self.rows[step] = self.lists.len() as u32;
                self.lists.push(Vec::new());
                self.rows.resize(self.rows.len() + self.row, 0);
            }
            state = self.rows[step] as usize;
        }
        self.lists[state].push(number);
        Ok(())
    }

    /// Gives every state all its steps; the states, those of shorter strings first, each with the one for its
    /// longest proper end.
    fn close(&mut self) -> Vec<(usize, usize)> {
        let mut order = Vec::with_capacity(self.lists.len());
        let mut fails = vec![0usize; self.lists.len()];
        let mut open = VecDeque::from([0]);
        while let Some(state) = open.pop_front() {
            order.push((state, fails[state]));
            for class in 1..self.row {
                let step = state * self.row + class;
                let fallback = self.rows[fails[state] * self.row + class];
                let next = self.rows[step] as usize;
                if next == 0 {
                    // The start leads to itself.
                    self.rows[step] = fallback;
                } else {
                    fails[next] = if state == 0 { 0 } else { fallback as usize };
                    open.push_back(next);
                }
            }
        }
        order
    }

    fn write(&self, patterns: &[SearchPattern], order: &[(usize, usize)]) -> Vec<u32> {
        let states = self.lists.len();
        let mut image = vec![MAGIC, VERSION, patterns.len() as u32, states as u32, self.row as u32];
        image.resize(HEADER, 0);
        image[5] = HEADER as u32;
        image.extend(super::words(&self.class_of));
        image[6] = append(&mut image, patterns) as u32;
        let mut list_of = vec![0u32; states];
        let mut begin = image.len();
        for (state, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            list_of[state] = begin as u32;
            begin += 2 + list.len();
        }
        // The next list is that of the longest end that has one.
        let mut next = vec![0u32; states];
        for &(state, fail) in order {
            next[state] = if list_of[fail] != 0 { list_of[fail] } else { next[fail] };
        }
        for (state, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            image.extend([list.len() as u32, next[state]]);
            image.extend(list);
        }
        let first_list = |state: usize| if list_of[state] != 0 { list_of[state] } else { next[state] };
        image[7] = image.len() as u32;
        image.reserve_exact(self.rows.len());
        for (state, row) in self.rows.chunks_exact(self.row).enumerate() {
            image.push(first_list(state));
            image.extend(row[1..].iter().map(|to| {
                let found = if first_list(*to as usize) != 0 { FOUND } else { 0 };
                (to * self.row as u32) | found
            }));
        }
        image
    }
}

fn folded(byte: u8) -> usize {
    usize::from(byte.to_ascii_lowercase())
}
