//! Single lookups: looks up one address in an image. Every other kind of lookup must agree with this one.
//!
//! The idea: for 32-bit addresses, the first 24 bits choose a cell that nearly always holds the answer.
//! Otherwise a walk begins at a root chosen by the first bits; each node eats some more: a dense node is an
//! array with a cell for each value of its 4 to 16 bits, a line is one cache line with the starts of at most
//! ten intervals of its 16 bits and a cell for each.

use std::sync::atomic::{AtomicU32, Ordering};

use super::layout::{GRANULE, Layout};
use super::routes::NO_CODE;
use super::spec::NONE;
use super::words::{Words, prefetch};

/// Bits that a line eats.
pub(super) const LINE_BITS: u32 = 16;
/// Intervals a line has room for.
pub(super) const LINE_CELLS: usize = 10;
/// The word of a line that counts its intervals; the starts, two a word, stand before it.
pub(super) const LINE_COUNT: usize = LINE_CELLS / 2;
/// Bits of that word that count them; the others belong to the writer of the table.
pub(super) const LINE_COUNT_BITS: u32 = 8;
/// The first cell's word in a line.
pub(super) const LINE_FIRST: usize = LINE_COUNT + 1;

pub(super) const TAG_SHIFT: u32 = 30;
const STRIDE_SHIFT: u32 = 26;
const GRANULE_MASK: u32 = (1 << STRIDE_SHIFT) - 1;

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// The answer.
    Leaf(u32),
    /// The line at this granule.
    Line(u32),
    /// The dense node at this granule, which eats so many bits.
    Dense(u32, u32),
}

impl Cell {
    #[inline]
    pub(super) fn unpack(word: u32) -> Cell {
        match word >> TAG_SHIFT {
            0 => Cell::Leaf(word),
            1 => Cell::Line(granule(word)),
            _ => Cell::Dense(granule(word), stride(word)),
        }
    }

    pub(super) fn pack(self) -> u32 {
        match self {
            Cell::Leaf(code) => code,
            Cell::Line(granule) => 1 << TAG_SHIFT | granule,
            Cell::Dense(granule, stride) => 2 << TAG_SHIFT | (stride / 4 - 1) << STRIDE_SHIFT | granule,
        }
    }
}

/// The bits that the dense node of a cell eats.
#[inline(always)]
pub(super) fn stride(word: u32) -> u32 {
    ((word >> STRIDE_SHIFT & 3) + 1) * 4
}

/// The granule that a cell leads to.
#[inline(always)]
pub(super) fn granule(word: u32) -> u32 {
    word & GRANULE_MASK
}

/// One image in memory, with room to change.
pub(super) struct Snapshot {
    pub(super) words: Words,
    pub(super) layout: Layout,
}

impl Snapshot {
    #[inline(always)]
    pub(super) fn view(&self) -> View<'_> {
        View { words: self.words.all(), layout: &self.layout }
    }
}

/// An image's words and where its parts are.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) words: &'a [AtomicU32],
    pub(super) layout: &'a Layout,
}

impl View<'_> {
    /// A word; beyond the end there is none, which only a broken image can ask for.
    #[inline(always)]
    pub(super) fn word(&self, index: usize) -> u32 {
        self.words.get(index).map_or(NO_CODE, |word| word.load(Ordering::Acquire))
    }

    /// The value of the longest prefix that contains `address`, or [`NONE`].
    #[inline]
    pub(super) fn find(&self, address: u128) -> u32 {
        if self.layout.cell_bits != 0 {
            return self.find32(address as u32);
        }
        let key = self.layout.aligned(address);
        self.value(self.walk((key >> 64) as u64, key as u64))
    }

    /// The same for an address of at most 32 bits.
    #[inline]
    pub(super) fn find32(&self, address: u32) -> u32 {
        if self.layout.cell_bits == 0 {
            return self.value(self.walk(self.layout.aligned32(address), 0));
        }
        let code = self.direct(address);
        if code == self.layout.escape() { self.escaped(address) } else { self.value_of_cell(code) }
    }

    /// Asks for the memory that [`find32`](Self::find32) of this address reads first.
    #[inline]
    pub(super) fn prefetch32(&self, address: u32) {
        if self.layout.cell_bits > 0 {
            let bit = (address as usize >> 8) * usize::from(self.layout.cell_bits);
            prefetch(self.words, self.layout.direct + bit / 32);
        }
    }

    /// The answer for an address whose cell says that its prefixes are longer than the cell tells apart.
    #[inline(never)]
    pub(super) fn escaped(&self, address: u32) -> u32 {
        self.value(self.walk(u64::from(address) << 32, 0))
    }

    /// The code in the cell of the first 24 bits.
    #[inline(always)]
    fn direct(&self, address: u32) -> u32 {
        let bit = (address as usize >> 8) * usize::from(self.layout.cell_bits);
        let word = self.word(self.layout.direct + bit / 32);
        word >> (bit % 32) & self.layout.cell_mask()
    }

    #[inline(always)]
    fn value_of_cell(&self, code: u32) -> u32 {
        if code == self.layout.cell_none() { NONE } else { self.value(code) }
    }

    /// The value that a code stands for.
    #[inline(always)]
    pub(super) fn value(&self, code: u32) -> u32 {
        if code >= NO_CODE {
            NONE
        } else if self.layout.indexed {
            self.word(self.layout.palette + code as usize)
        } else {
            code
        }
    }

    /// The code of the address whose bits, from the left, are `high` and then `low`.
    #[inline(always)]
    pub(super) fn walk(&self, mut high: u64, mut low: u64) -> u32 {
        let root_bits = u32::from(self.layout.root_bits);
        let mut word = self.word(self.layout.root + (high >> (64 - root_bits)) as usize);
        let mut eaten = root_bits;
        // A sound image ends sooner; a broken one ends here.
        for _ in 0..32 {
            high = high << eaten | low >> (64 - eaten);
            low <<= eaten;
            (word, eaten) = match Cell::unpack(word) {
                Cell::Leaf(code) => return code,
                Cell::Line(granule) => (self.line(granule, (high >> 48) as u16), LINE_BITS),
                Cell::Dense(granule, stride) => {
                    (self.word(granule as usize * GRANULE + (high >> (64 - stride)) as usize), stride)
                }
            };
        }
        NO_CODE
    }

    /// The cell of a line's interval that contains `bits`.
    #[inline(always)]
    pub(super) fn line(&self, granule: u32, bits: u16) -> u32 {
        let at = granule as usize * GRANULE;
        let mut rank = 0;
        for pair in 0..LINE_COUNT {
            let starts = self.word(at + pair);
            rank += usize::from(starts as u16 <= bits) + usize::from((starts >> 16) as u16 <= bits);
        }
        // The first interval starts at zero, so the rank is never zero in a sound image.
        self.word(at + LINE_FIRST + rank.max(1) - 1)
    }
}
