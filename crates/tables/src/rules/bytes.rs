//! Serialises an image of rules as bytes that can be stored, sent and mapped, and reads and checks such
//! bytes.
//!
//! ```text
//! byte 0   "RVRULES2"
//!      8   number of columns, 32 bits          12  elements of a packed key, 32 bits
//!     16   seven times: where a section begins, 64 bits | how many items it has, 64 bits
//!          (roots, nodes, children, lines of blocks, ids, rules, checks)
//!    128   widths of the columns, a byte each
//!  then    the sections in that order, each from a multiple of 64 bytes on
//! ```
//!
//! All numbers have their lowest byte first. What an item of a section is, `image.rs` says; a node counts as
//! so many words.

use super::encode::{CHECK_LAST, CHECK_WORDS, LINE_ELEMENTS, Layout, checked};
use super::fields::{MAX_WIDTH, RulesSpec};
use super::image::{CHECKED, Line, MORE, NO_RULE, NODE, RulesImage};
use crate::reserved::Reserved;

const MAGIC: &[u8; 8] = b"RVRULES2";
const SECTIONS: usize = 7;
const WIDTHS_AT: usize = 16 + 16 * SECTIONS;
/// Bytes of one item of each section.
const ITEM: [usize; SECTIONS] = [4, 8, 4, 64, 4, 16, 4 * CHECK_WORDS];
/// The most elements of a column.
const MOST_PIECES: usize = MAX_WIDTH as usize / 16;
const NAMES: [&str; SECTIONS] = ["roots", "nodes", "children", "blocks", "ids", "rules", "checks"];

/// Why bytes are no image of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesImageError {
    /// They do not begin as one, or with a key that cannot be.
    #[error("the bytes do not begin as an image of rules of this version: build the table anew")]
    Start,
    /// They end too early.
    #[error("the section of {section} ends at byte {end} of {bytes}: the image is cut off")]
    Short {
        /// Which section.
        section: &'static str,
        /// Where it ends.
        end: u64,
        /// How many bytes there are.
        bytes: usize,
    },
    /// An item names what is not there.
    #[error("item {at} of the section of {section} names what is not there: the image is damaged")]
    Broken {
        /// Which section.
        section: &'static str,
        /// Which item of it, from 0.
        at: usize,
    },
}

impl RulesImage {
    /// The bytes of the image, in which nothing depends on where they lie.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.dead > 0 {
            return self.without_dead().to_bytes();
        }
        let counts = self.counts();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.layout.widths.len() as u32).to_le_bytes());
        bytes.extend((self.layout.stride as u32).to_le_bytes());
        let mut at = (WIDTHS_AT + self.layout.widths.len()).next_multiple_of(64);
        for (count, item) in counts.into_iter().zip(ITEM) {
            bytes.extend((at as u64).to_le_bytes());
            bytes.extend((count as u64).to_le_bytes());
            at = (at + count * item).next_multiple_of(64);
        }
        bytes.extend(&self.layout.widths);
        let words = |words: &[u32], bytes: &mut Vec<u8>| {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        };
        words(&self.roots, &mut bytes);
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes.extend(self.nodes.iter().flat_map(|word| word.to_le_bytes()));
        words(&self.children, &mut bytes);
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes.extend(self.blocks.iter().flat_map(|line| line.0).flat_map(u16::to_le_bytes));
        words(&self.ids, &mut bytes);
        words(self.rules.as_flattened(), &mut bytes);
        words(self.checks.as_flattened(), &mut bytes);
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes
    }

    /// Reads an image and checks that lookups in it end and name only what is there.
    pub fn open(bytes: &[u8]) -> Result<RulesImage, RulesImageError> {
        if bytes.len() < WIDTHS_AT || &bytes[..8] != MAGIC {
            return Err(RulesImageError::Start);
        }
        let columns = word(&bytes[8..]) as usize;
        let widths = bytes[WIDTHS_AT..].get(..columns).ok_or(RulesImageError::Start)?.to_vec();
        let spec = RulesSpec { widths, capacity: 0 };
        spec.check().map_err(|_| RulesImageError::Start)?;
        let layout = Layout::new(&spec);
        if layout.stride != word(&bytes[12..]) as usize {
            return Err(RulesImageError::Start);
        }
        let mut sections = [&bytes[..0]; SECTIONS];
        for (number, section) in sections.iter_mut().enumerate() {
            let (start, count) = (long(&bytes[16 + 16 * number..]), long(&bytes[24 + 16 * number..]));
            let end = count
                .checked_mul(ITEM[number] as u64)
                .and_then(|size| start.checked_add(size))
                .unwrap_or(u64::MAX);
            let short = RulesImageError::Short { section: NAMES[number], end, bytes: bytes.len() };
            if end > bytes.len() as u64 {
                return Err(short);
            }
            *section = bytes.get(start as usize..end as usize).ok_or(short)?;
        }
        let [roots, nodes, children, blocks, ids, rules, checks] = sections;
        let words = |section: &[u8]| section.chunks_exact(4).map(word).collect::<Vec<u32>>();
        let mut image = RulesImage::bare(layout, 0);
        image.roots = words(roots);
        image.nodes = Reserved::from(nodes.chunks_exact(8).map(long).collect::<Vec<u64>>());
        image.children = Reserved::from(words(children));
        image.blocks = Reserved::from(blocks.chunks_exact(64).map(line).collect::<Vec<Line>>());
        image.ids = Reserved::from(words(ids));
        image.rules = Reserved::from(words(rules).as_chunks().0.to_vec());
        image.checks = Reserved::from(words(checks).as_chunks().0.to_vec());
        image.check()?;
        let in_order = (1..image.rules.len() as u32).all(|id| image.order(id - 1) < image.order(id));
        image.ranked = in_order && image.leaves_ascend();
        Ok(image)
    }

    /// Whether the rules of each leaf have ascending numbers. A slot that fits no key any more may name a
    /// number that another rule has by now.
    fn leaves_ascend(&self) -> bool {
        let mut before = None;
        for ids in self.ids.chunks_exact(self.slots()) {
            for id in ids.iter().map(|id| id & NO_RULE).filter(|id| *id != NO_RULE) {
                if before.is_some_and(|before| before >= id) {
                    return false;
                }
                before = Some(id);
            }
            if ids[0] & MORE == 0 {
                before = None;
            }
        }
        true
    }

    fn counts(&self) -> [usize; SECTIONS] {
        [
            self.roots.len(),
            self.nodes.len(),
            self.children.len(),
            self.blocks.len(),
            self.ids.len(),
            self.rules.len(),
            self.checks.len(),
        ]
    }

    fn check(&self) -> Result<(), RulesImageError> {
        let broken = |section: usize, at: usize| RulesImageError::Broken { section: NAMES[section], at };
        let words = self.layout.words();
        let (nodes, blocks) = (self.nodes.len() / self.node_words(), self.ids.len() / self.slots());
        if !self.nodes.len().is_multiple_of(self.node_words()) {
            return Err(broken(1, self.nodes.len()));
        }
        if !self.ids.len().is_multiple_of(self.slots())
            || self.blocks.len() != blocks * self.block_lines()
            || blocks == 0
        {
            return Err(broken(3, self.blocks.len()));
        }
        let named = |entry: u32| {
            if entry & NODE != 0 { ((entry & !NODE) as usize) < nodes } else { (entry as usize) < blocks }
        };
        if let Some(at) = self.roots.iter().position(|&root| !named(root)) {
            return Err(broken(0, at));
        }
        if let Some(at) = self.children.iter().position(|&child| !named(child)) {
            return Err(broken(2, at));
        }
        for (at, node) in self.nodes.chunks_exact(self.node_words()).enumerate() {
            let bits: u32 = node[..words].iter().map(|mask| mask.count_ones()).sum();
            let end = 1u64.checked_shl(bits).and_then(|count| node[words].checked_add(count));
            let children =
                end.and_then(|end| self.children.get(node[words] as usize..usize::try_from(end).ok()?));
            // A node is behind the one that leads to it, so every walk ends.
            let ends = |&child: &u32| child & NODE == 0 || (child & !NODE) as usize > at;
            if !children.is_some_and(|children| children.iter().all(ends)) {
                return Err(broken(1, at * self.node_words()));
            }
        }
        for (at, &id) in self.ids.iter().enumerate() {
            let (rule, last) = ((id & NO_RULE) as usize, at + self.slots() >= self.ids.len());
            let known = id & NO_RULE == NO_RULE || rule < self.rules.len();
            let checked =
                id & NO_RULE == NO_RULE || id & CHECKED == 0 || known && self.checks_end(self.rules[rule][3]);
            if !known || !checked || last && id & MORE != 0 {
                return Err(broken(4, at));
            }
        }
        if let Some(at) = (0..self.rules.len()).find(|&at| self.is_dead(at as u32)) {
            return Err(broken(5, at));
        }
        let known = |check: &[u32; CHECK_WORDS]| {
            let (first, pieces) = checked(check);
            pieces <= MOST_PIECES && first + pieces <= self.layout.elements()
        };
        match self.checks.iter().position(|check| !known(check)) {
            Some(at) => Err(broken(6, at)),
            None => Ok(()),
        }
    }

    fn checks_end(&self, first: u32) -> bool {
        self.checks
            .get(first as usize..)
            .is_some_and(|checks| checks.iter().any(|check| check[0] & CHECK_LAST != 0))
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn line(bytes: &[u8]) -> Line {
    let mut line = Line([0; LINE_ELEMENTS]);
    for (element, bytes) in line.0.iter_mut().zip(bytes.as_chunks().0) {
        *element = u16::from_le_bytes(*bytes);
    }
    line
}
