//! The layout of an image: its header, and where its parts begin.
//!
//! ```text
//! word   0      1        2      3          4        5       6            7       8     9          10     11
//!      ┌──────┬────────┬──────┬──────────┬────────┬───────┬────────────┬───────┬─────┬──────────┬──────┬───────┐
//!      │magic │version │width │cell bits │indexed │palette│palette size│direct │root │root bits │heap  │words  │
//!      └──────┴────────┴──────┴──────────┴────────┴───────┴────────────┴───────┴─────┴──────────┴──────┴───────┘
//!      then, each from a multiple of 16 words: palette, direct cells, root cells, heap of nodes
//! ```
//!
//! Words are little-endian and 32 bits wide. All places are counted in words from the first, so the image
//! means the same wherever it lies.

use super::routes::NO_CODE;
use super::words::Words;

/// Words of a granule; nodes begin at multiples of it, and it is a cache line.
pub(super) const GRANULE: usize = 16;
/// "RVLP", read as a little-endian word.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"RVLP");
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER: usize = GRANULE;
/// Bits that choose a direct cell.
pub(super) const DIRECT_BITS: u8 = 24;

/// Where the parts of an image are, in words from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: u8,
    /// Bits of a direct cell, or 0 if there are none.
    pub(super) cell_bits: u8,
    /// Codes are places in the palette; otherwise they are the values.
    pub(super) indexed: bool,
    pub(super) palette: usize,
    pub(super) palette_size: usize,
    pub(super) direct: usize,
    pub(super) root: usize,
    pub(super) root_bits: u8,
    pub(super) heap: usize,
}

impl Layout {
    /// The parts one after the other.
    pub(super) fn new(width: u8, cell_bits: u8, indexed: bool, palette_size: usize, root_bits: u8) -> Layout {
        let palette = HEADER;
        let palette_size = if indexed { palette_size } else { 0 };
        let direct = palette + palette_size.next_multiple_of(GRANULE);
        let cells = if cell_bits == 0 { 0 } else { (usize::from(cell_bits) << DIRECT_BITS) / 32 };
        let root = direct + cells;
        let heap = root + (1 << root_bits);
        Layout { width, cell_bits, indexed, palette, palette_size, direct, root, root_bits, heap }
    }

    /// Writes the header; `end` is the number of words in use.
    pub(super) fn write(&self, words: &Words, end: usize) {
        let header = [
            MAGIC,
            VERSION,
            u32::from(self.width),
            u32::from(self.cell_bits),
            u32::from(self.indexed),
            self.palette as u32,
            self.palette_size as u32,
            self.direct as u32,
            self.root as u32,
            u32::from(self.root_bits),
            self.heap as u32,
            end as u32,
        ];
        for (index, word) in header.into_iter().enumerate() {
            words.store(index, word);
        }
    }

    /// An address moved to the left of 128 bits.
    #[inline(always)]
    pub(super) fn aligned(&self, address: u128) -> u128 {
        address << (128 - u32::from(self.width))
    }

    /// An address of at most 32 bits moved to the left of 64 bits.
    #[inline(always)]
    pub(super) fn aligned32(&self, address: u32) -> u64 {
        if self.width > 64 {
            return 0;
        }
        u64::from(address) << (64 - u32::from(self.width))
    }

    #[inline(always)]
    pub(super) fn cell_mask(&self) -> u32 {
        u32::MAX >> (32 - u32::from(self.cell_bits))
    }

    /// The direct cell that means that nothing matches.
    #[inline(always)]
    pub(super) fn cell_none(&self) -> u32 {
        self.cell_mask() & NO_CODE
    }

    /// The direct cell that sends the lookup on to the root.
    #[inline(always)]
    pub(super) fn escape(&self) -> u32 {
        self.cell_none() - 1
    }
}
