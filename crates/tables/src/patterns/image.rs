//! The flat image of a pattern table, which the scanner reads and which is copied to a device.
//!
//! All numbers are little-endian; every section begins at a multiple of 64 bytes, in this order and without
//! gaps else.
//!
//! ```text
//!   0  magic "RVPT"    4  version 2        8  bytes of the image    12  patterns
//!  16  strings        20  entries         24  log2 of bitmap bits   28  log2 of directory slots
//!  32  flags          36  long groups     40  short groups          44  pairs    48  runs    52  longest pattern
//!  64  shuffles   (long + short groups) × POSITIONS × 256 bytes: bit b of byte v: bucket b lets v pass there
//!      nibbles    (long + short groups) × POSITIONS × 32 bytes: the bucket bits of all bytes with a low half of 0 to 15,
//!                 then those of all bytes with a high half of 0 to 15
//!      bitmap     one bit a hash of a long window
//!      shorts     with a short group: 2^16 bits, one a window of 2 bytes; 2^16 bits, one a hash of a window of 3
//!      directory  slots + 1 × u32: the first entry of each slot, and the end
//!      entries    32 bytes: value u64, mask u64, string u32, window's place u32, length u32, lead u8, class u8, 0 u16
//!      strings    16 bytes: first pair u32, length u32, first use u32, uses u32
//!      uses       u32: a pattern; ascending within a string
//!      patterns   16 bytes: length u32, offset u32, last end u32, value u32
//!      runs       257 × u32: where each byte's run patterns begin in the list
//!      list       16 bytes a run pattern: pattern u32, then its length, offset and last end; ascending within a byte
//!      pairs      value u64, mask u64: eight bytes of a string; matches where (packet & mask) = value
//! ```
//!
//! Flags: bits 0 to 2 say that strings of 1, 2 and 3 bytes exist, bit 3 that longer ones do, bit 4 that a
//! window of one letter four times over exists, bit 5 that run patterns exist.

use super::sift::Sieve;
use std::ops::Range;

/// Bytes of the window by which a long string is hashed.
pub(super) const WINDOW: usize = 4;
/// Places that the first filter looks at: the window and what follows it.
pub(super) const POSITIONS: usize = 5;
/// The most groups of eight buckets for long strings; there are 1, 2 or so many.
pub(super) const MOST_GROUPS: usize = 4;

const MAGIC: u32 = u32::from_le_bytes(*b"RVPT");
const VERSION: u32 = 2;
const HEADER: usize = 64;

/// Bit of the flags: long strings exist.
pub(super) const LONG: u32 = 8;
/// Bit of the flags: a window of one letter, in either case, four times over exists. No other byte fills a
/// window.
pub(super) const SAME: u32 = 16;
/// Bit of the flags: run patterns exist.
pub(super) const RUNS: u32 = 32;

/// The hash of a window: high bits choose the bit of the bitmap and the slot of the directory. Case does not
/// count.
pub(super) fn hash(window: u32, class: usize) -> u32 {
    const BY_CLASS: [(u32, u32); 5] =
        [(0, 0), (0xff, 0x5bd1_e995), (0xffff, 0x1b87_3593), (0x00ff_ffff, 0xcc9e_2d51), (u32::MAX, 0)];
    let (mask, salt) = BY_CLASS[class];
    (((window | 0x2020_2020) & mask) ^ salt).wrapping_mul(0x9e37_79b1)
}

/// The buckets of the short group that windows of 1, 2 and 3 bytes are in.
pub(super) const SHORT_BUCKETS: [Range<usize>; 3] = [0..1, 1..4, 4..8];

/// Bits of `shorts` for one class of windows.
const SHORT_BITS: usize = 1 << 16;

/// The bit of `shorts` that says whether the table has a window of 2 or 3 bytes.
#[inline(always)]
pub(super) fn short_bit(window: u32, class: usize) -> usize {
    if class == 2 { window as usize & 0xffff } else { SHORT_BITS + (hash(window, class) >> 16) as usize }
}

/// How many there are of everything; the places of all sections follow from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) patterns: usize,
    pub(super) strings: usize,
    pub(super) entries: usize,
    pub(super) bitmap_log2: u32,
    pub(super) directory_log2: u32,
    pub(super) flags: u32,
    pub(super) long_groups: usize,
    pub(super) short_groups: usize,
    pub(super) pairs: usize,
    pub(super) runs: usize,
    pub(super) longest: usize,
}

/// Where the sections begin, in bytes, and where the last one ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) shuffles: usize,
    pub(super) nibbles: usize,
    pub(super) bitmap: usize,
    pub(super) shorts: usize,
    pub(super) directory: usize,
    pub(super) entries: usize,
    pub(super) strings: usize,
    pub(super) uses: usize,
    pub(super) patterns: usize,
    pub(super) runs: usize,
    pub(super) list: usize,
    pub(super) pairs: usize,
    pub(super) end: usize,
}

impl Counts {
    pub(super) fn places(&self) -> Places {
        let mut end = HEADER;
        let mut place = |bytes: usize| {
            let begin = end;
            end = (end + bytes).next_multiple_of(64);
            begin
        };
        let mut places = Places {
            shuffles: place((self.long_groups + self.short_groups) * POSITIONS * 256),
            nibbles: place((self.long_groups + self.short_groups) * POSITIONS * 32),
            bitmap: place((1 << self.bitmap_log2) / 8),
            shorts: place(self.short_groups * SHORT_BITS / 4),
            directory: place(((1 << self.directory_log2) + 1) * 4),
            entries: place(self.entries * 32),
            strings: place(self.strings * 16),
            uses: place((self.patterns - self.runs) * 4),
            patterns: place(self.patterns * 16),
            runs: place(257 * 4),
            list: place(self.runs * 16),
            pairs: place(self.pairs * 16),
            end: 0,
        };
        places.end = end;
        places
    }

    /// The first bytes of an image.
    pub(super) fn header(&self) -> [u8; HEADER] {
        let words = [
            MAGIC,
            VERSION,
            self.places().end as u32,
            self.patterns as u32,
            self.strings as u32,
            self.entries as u32,
            self.bitmap_log2,
            self.directory_log2,
            self.flags,
            self.long_groups as u32,
            self.short_groups as u32,
            self.pairs as u32,
            self.runs as u32,
            self.longest as u32,
        ];
        let mut header = [0; HEADER];
        for (place, word) in header.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        header
    }
}

/// One entry of the directory: a string, and how its window tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Eight bytes around the window match where (packet & mask) = value.
    pub(super) value: u64,
    pub(super) mask: u64,
    pub(super) string: u32,
    /// Bytes of the string before the window.
    pub(super) before: u32,
    /// Bytes of the string.
    pub(super) length: u32,
    /// Bytes of `before` that the eight bytes begin with.
    pub(super) lead: u8,
    /// The bytes of the window, 1 to [`WINDOW`].
    pub(super) class: u8,
}

impl Entry {
    pub(super) fn write(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.value.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.mask.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.string.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.before.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[28] = self.lead;
        bytes[29] = self.class;
        bytes
    }

    #[inline(always)]
    pub(super) fn read(bytes: &[u8; 32]) -> Entry {
        Entry {
            value: u64_in(bytes, 0),
            mask: u64_in(bytes, 1),
            string: u32_in(bytes, 4),
            before: u32_in(bytes, 5),
            length: u32_in(bytes, 6),
            lead: bytes[28],
            class: bytes[29],
        }
    }
}

/// The `index`-th word of 32 bits.
#[inline(always)]
pub(super) fn u32_in(bytes: &[u8], index: usize) -> u32 {
    let word = &bytes[index * 4..index * 4 + 4];
    u32::from_le_bytes([word[0], word[1], word[2], word[3]])
}

/// The `index`-th word of 64 bits.
#[inline(always)]
pub(super) fn u64_in(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_le_bytes(word)
}

/// Why bytes are no image of a pattern table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternsImageError {
    /// the image has {bytes} bytes; its header alone takes 64
    #[error("the image has {bytes} bytes; its header alone takes 64")]
    Short {
        /// The bytes given.
        bytes: usize,
    },
    /// the image does not begin with RVPT and version 2
    #[error("the image does not begin with RVPT and version 2")]
    Kind,
    /// the image has {bytes} bytes, but its header's counts ask for {needed}
    #[error("the image has {bytes} bytes, but its header's counts ask for {needed}")]
    Size {
        /// The bytes given.
        bytes: u64,
        /// What the counts add up to, or what the header says.
        needed: u64,
    },
    /// byte {at} of the image: {cause}
    #[error("byte {at} of the image: {cause}")]
    Content {
        /// The first byte of what is wrong.
        at: usize,
        /// What is wrong there.
        cause: &'static str,
    },
}

/// A built pattern table over borrowed bytes: all that a search needs.
#[derive(Clone, Copy, Debug)]
pub struct PatternsImage<'a> {
    pub(super) counts: Counts,
    pub(super) shuffles: &'a [[u8; 256]],
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    pub(super) nibbles: &'a [[u8; 32]],
    pub(super) bitmap: &'a [u8],
    pub(super) shorts: &'a [u8],
    pub(super) directory: &'a [[u8; 4]],
    pub(super) entries: &'a [[u8; 32]],
    pub(super) strings: &'a [[u8; 16]],
    pub(super) uses: &'a [[u8; 4]],
    pub(super) patterns: &'a [[u8; 16]],
    pub(super) runs: &'a [[u8; 4]],
    pub(super) list: &'a [[u8; 16]],
    pub(super) pairs: &'a [[u8; 16]],
    /// How the first filter works on this machine.
    pub(super) sieve: Sieve,
}

impl<'a> PatternsImage<'a> {
    /// Checks every byte of an image that a search relies on, so that none can fail later.
    ///
    /// # Errors
    /// [`PatternsImageError`] names the first thing that is wrong.
    pub fn open(bytes: &'a [u8]) -> Result<PatternsImage<'a>, PatternsImageError> {
        let counts = counts_of(bytes)?;
        let places = counts.places();
        let image = PatternsImage::cut(bytes, counts, &places);
        image.check(&places)?;
        Ok(image)
    }

    /// The same table by each form of the first filter that this machine has, the fastest first and the
    /// portable one last: the same answers at different speeds.
    pub fn forms(self) -> impl Iterator<Item = PatternsImage<'a>> {
        Sieve::of_this_machine().into_iter().map(move |sieve| PatternsImage { sieve, ..self })
    }

    /// How many patterns the table has.
    pub fn len(&self) -> usize {
        self.counts.patterns
    }

    /// Whether the table has no pattern.
    pub fn is_empty(&self) -> bool {
        self.counts.patterns == 0
    }

    /// The value of a pattern; `None` if there is no such pattern.
    pub fn value(&self, pattern: u32) -> Option<u32> {
        self.patterns.get(pattern as usize).map(|bytes| u32_in(bytes, 3))
    }

    /// The sections of bytes whose size was checked.
    pub(super) fn cut(bytes: &'a [u8], counts: Counts, places: &Places) -> PatternsImage<'a> {
        PatternsImage {
            counts,
            shuffles: bytes[places.shuffles..places.nibbles].as_chunks().0,
            #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
            nibbles: &bytes[places.nibbles..].as_chunks().0
                [..(counts.long_groups + counts.short_groups) * POSITIONS],
            bitmap: &bytes[places.bitmap..places.bitmap + (1 << counts.bitmap_log2) / 8],
            shorts: &bytes[places.shorts..places.directory],
            directory: &bytes[places.directory..].as_chunks().0[..(1 << counts.directory_log2) + 1],
            entries: &bytes[places.entries..].as_chunks().0[..counts.entries],
            strings: &bytes[places.strings..].as_chunks().0[..counts.strings],
            uses: &bytes[places.uses..].as_chunks().0[..counts.patterns - counts.runs],
            patterns: &bytes[places.patterns..].as_chunks().0[..counts.patterns],
            runs: &bytes[places.runs..].as_chunks().0[..257],
            list: &bytes[places.list..].as_chunks().0[..counts.runs],
            pairs: &bytes[places.pairs..].as_chunks().0[..counts.pairs],
            sieve: Sieve::fastest(),
        }
    }

    fn check(&self, places: &Places) -> Result<(), PatternsImageError> {
        let wrong = |at: usize, cause| Err(PatternsImageError::Content { at, cause });
        let (patterns, uses, pairs) = (self.patterns.len(), self.uses.len(), self.pairs.len());
        let mut before = 0;
        for (at, slot) in self.directory.iter().enumerate() {
            let slot = u32_in(slot, 0) as usize;
            if slot < before || slot > self.entries.len() || at == 0 && slot != 0 {
                return wrong(places.directory + at * 4, "a slot's first entry is out of order");
            }
            before = slot;
        }
        if before != self.entries.len() {
            return wrong(places.directory, "the slots do not hold all entries");
        }
        for (at, bytes) in self.strings.iter().enumerate() {
            let [first, length, uses_at, used] = [0, 1, 2, 3].map(|field| u32_in(bytes, field) as usize);
            if length == 0 || first + length.div_ceil(8) > pairs {
                return wrong(places.strings + at * 16, "a string lies outside the pairs");
            }
            if used == 0 || uses_at + used > uses {
                return wrong(places.strings + at * 16, "a string's uses lie outside the list");
            }
            let same = |pattern: &[u8; 4]| {
                let pattern = u32_in(pattern, 0) as usize;
                pattern < patterns && u32_in(&self.patterns[pattern], 0) as usize == length
            };
            if !self.uses[uses_at..uses_at + used].iter().all(same) {
                return wrong(places.uses + uses_at * 4, "a string is used by a pattern of another length");
            }
        }
        for (at, bytes) in self.entries.iter().enumerate() {
            let entry = Entry::read(bytes);
            let string = self.strings.get(entry.string as usize);
            let known = string.is_some_and(|string| u32_in(string, 1) == entry.length);
            let class = usize::from(entry.class);
            let inside = u64::from(entry.before) + u64::from(entry.class) <= u64::from(entry.length);
            let flag = (1..=WINDOW).contains(&class) && self.counts.flags >> (class - 1) & 1 == 1;
            if !known || !inside || !flag || u32::from(entry.lead) > entry.before {
                return wrong(places.entries + at * 32, "an entry does not fit its string");
            }
        }
        let mut before = 0;
        for (at, begin) in self.runs.iter().enumerate() {
            let begin = u32_in(begin, 0) as usize;
            if begin < before || begin > self.counts.runs || at == 0 && begin != 0 {
                return wrong(places.runs + at * 4, "a byte's runs are out of order");
            }
            before = begin;
        }
        let known = |run: &[u8; 16]| {
            let [pattern, length, offset, limit] = [0, 1, 2, 3].map(|field| u32_in(run, field));
            let same =
                |bytes: &[u8; 16]| [0, 1, 2].map(|field| u32_in(bytes, field)) == [length, offset, limit];
            length as usize >= WINDOW && self.patterns.get(pattern as usize).is_some_and(same)
        };
        if before != self.counts.runs || !self.list.iter().all(known) {
            return wrong(places.list, "the list of runs does not fit its patterns");
        }
        Ok(())
    }
}

fn counts_of(bytes: &[u8]) -> Result<Counts, PatternsImageError> {
    if bytes.len() < HEADER {
        return Err(PatternsImageError::Short { bytes: bytes.len() });
    }
    let word = |index: usize| u32_in(bytes, index);
    let count = |index: usize| word(index) as usize;
    if word(0) != MAGIC || word(1) != VERSION {
        return Err(PatternsImageError::Kind);
    }
    let counts = Counts {
        patterns: count(3),
        strings: count(4),
        entries: count(5),
        bitmap_log2: word(6),
        directory_log2: word(7),
        flags: word(8),
        long_groups: count(9),
        short_groups: count(10),
        pairs: count(11),
        runs: count(12),
        longest: count(13),
    };
    // These bounds keep every sum below small enough for 64 bits.
    let log2s = (3..=31).contains(&counts.bitmap_log2) && (1..=31).contains(&counts.directory_log2);
    if !log2s || counts.runs > counts.patterns {
        return Err(PatternsImageError::Content { at: 24, cause: "a count is out of its range" });
    }
    let short = counts.flags & 7 != 0;
    let groups =
        matches!(counts.long_groups, 1 | 2 | MOST_GROUPS) && counts.short_groups == usize::from(short);
    if !groups || counts.flags & !(LONG | SAME | RUNS | 7) != 0 {
        return Err(PatternsImageError::Content { at: 32, cause: "flags and groups do not agree" });
    }
    let needed = counts.places().end as u64;
    if bytes.len() as u64 != needed || count(2) as u64 != needed {
        return Err(PatternsImageError::Size { bytes: bytes.len() as u64, needed });
    }
    Ok(counts)
}
