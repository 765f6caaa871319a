//! An image: exactly the bytes that lookups need, the same for the host and a device. `layout.rs` describes
//! its layout.

#[cfg(feature = "fastest")]
use super::bulk::Method;
use super::layout::{GRANULE, HEADER, Layout, MAGIC, VERSION};
use super::lookup::{Cell, LINE_CELLS, LINE_COUNT, LINE_COUNT_BITS, LINE_FIRST, View};
use super::routes::NO_CODE;
use super::spec::MAX_WIDTH;
use super::table::LpmTable;
use super::words::Words;

/// An image that stands alone: looked up in, never changed.
pub struct LpmImage {
    words: Words,
    layout: Layout,
}

impl LpmImage {
    /// Copies the bytes of an image, refusing any that a lookup could not trust.
    pub fn open(bytes: &[u8]) -> Result<LpmImage, LpmImageError> {
        let (whole, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() || whole.len() < HEADER {
            return Err(LpmImageError::Short { words: whole.len() });
        }
        let header: Vec<u32> = whole[..HEADER].iter().map(|word| u32::from_le_bytes(*word)).collect();
        let layout = Layout::read(&header, whole.len())?;
        let words = Words::new(whole.len()).map_err(|bytes| LpmImageError::Memory { bytes })?;
        for (index, word) in whole.iter().enumerate() {
            words.store(index, u32::from_le_bytes(*word));
        }
        let image = LpmImage { words, layout };
        image.check()?;
        Ok(image)
    }

    /// The value of the longest prefix that contains `address`, or [`NONE`](super::NONE).
    pub fn find(&self, address: u128) -> u32 {
        self.view().find(address)
    }

    /// Looks up all `addresses` of a table at most 32 bits wide; `out[i]` becomes the answer to
    /// `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk32(&self, addresses: &[u32], out: &mut [u32]) {
        self.view().find_bulk32(Method::best(), addresses, out);
    }

    /// Looks up all `addresses`; `out[i]` becomes the answer to `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk128(&self, addresses: &[u128], out: &mut [u32]) {
        self.view().find_bulk128(Method::best(), addresses, out);
    }

    fn view(&self) -> View<'_> {
        View { words: self.words.all(), layout: &self.layout }
    }

    /// Follows every cell once.
    fn check(&self) -> Result<(), LpmImageError> {
        let layout = &self.layout;
        let size = self.words.all().len();
        let mut seen = vec![false; size / GRANULE + 1];
        let mut open: Vec<(usize, usize)> = vec![(layout.root, 1 << layout.root_bits)];
        while let Some((first, count)) = open.pop() {
            for word in first..first + count {
                let wrong = LpmImageError::Cell { word };
                let (granule, words) = match Cell::unpack(self.words.load(word)) {
                    Cell::Leaf(code) if code == NO_CODE || !layout.indexed => continue,
                    Cell::Leaf(code) if (code as usize) < layout.palette_size => continue,
                    Cell::Leaf(_) => return Err(wrong),
                    Cell::Line(granule) => (granule as usize, GRANULE),
                    Cell::Dense(granule, stride) => (granule as usize, 1 << stride),
                };
                let last = granule + words.div_ceil(GRANULE);
                if granule * GRANULE < layout.heap
                    || last * GRANULE > size
                    || seen[granule..last].contains(&true)
                {
                    return Err(wrong);
                }
                seen[granule..last].fill(true);
                if words != GRANULE || matches!(Cell::unpack(self.words.load(word)), Cell::Dense(..)) {
                    open.push((granule * GRANULE, words));
                } else {
                    let count = self.words.load(granule * GRANULE + LINE_COUNT);
                    let count = (count & ((1 << LINE_COUNT_BITS) - 1)) as usize;
                    let first_start = self.words.load(granule * GRANULE) as u16;
                    if !(1..=LINE_CELLS).contains(&count) || first_start != 0 {
                        return Err(wrong);
                    }
                    self.check_filling(granule * GRANULE, count).map_err(|()| wrong)?;
                    open.push((granule * GRANULE + LINE_FIRST, count));
                }
            }
        }
        self.check_direct()
    }

    /// Behind its last interval a line repeats that one's cell.
    fn check_filling(&self, line: usize, count: usize) -> Result<(), ()> {
        let cell = |index: usize| self.words.load(line + LINE_FIRST + index);
        if (count..LINE_CELLS).all(|index| cell(index) == cell(count - 1)) { Ok(()) } else { Err(()) }
    }

    /// Every direct cell is nothing, the way on, or a code that the palette has.
    fn check_direct(&self) -> Result<(), LpmImageError> {
        let layout = &self.layout;
        if layout.cell_bits == 0 {
            return Ok(());
        }
        for word in layout.direct..layout.root {
            let held = self.words.load(word);
            for cell in 0..32 / u32::from(layout.cell_bits) {
                let code = held >> (cell * u32::from(layout.cell_bits)) & layout.cell_mask();
                let known = !layout.indexed || (code as usize) < layout.palette_size;
                if code > layout.cell_none() || code < layout.escape() && !known {
                    return Err(LpmImageError::Cell { word });
                }
            }
        }
        Ok(())
    }
}

impl Layout {
    /// The layout that a header tells, if it is one.
    fn read(header: &[u32], size: usize) -> Result<Layout, LpmImageError> {
        let [magic, version, width, cell_bits, indexed, _, palette_size, _, _, root_bits, _, end, ..] =
            *header
        else {
            return Err(LpmImageError::Short { words: header.len() });
        };
        if (magic, version) != (MAGIC, VERSION) {
            return Err(LpmImageError::Kind { magic, version });
        }
        let fits = (1..=u32::from(MAX_WIDTH)).contains(&width)
            && (cell_bits == 0 || matches!(cell_bits, 8 | 16 | 32) && width == 32)
            && indexed <= 1
            && matches!(root_bits, 1..=24)
            && palette_size as usize <= size
            && end as usize == size;
        if !fits {
            return Err(LpmImageError::Header);
        }
        let layout =
            Layout::new(width as u8, cell_bits as u8, indexed == 1, palette_size as usize, root_bits as u8);
        let places = [
            layout.palette,
            layout.palette_size,
            layout.direct,
            layout.root,
            usize::from(layout.root_bits),
            layout.heap,
        ];
        let told = &header[5..11];
        if layout.heap > size || !places.iter().zip(told).all(|(place, told)| *place == *told as usize) {
            return Err(LpmImageError::Header);
        }
        Ok(layout)
    }
}

impl LpmTable {
    /// A copy of the image, to be opened as an [`LpmImage`] here or read by a graphics card.
    pub fn image(&self) -> Vec<u8> {
        let (words, count) = self.words();
        bytes(words, count)
    }

    /// The size of the image, in bytes.
    pub fn image_bytes(&self) -> usize {
        self.words().1 * 4
    }
}

/// Why bytes are not an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpmImageError {
    /// Too few bytes for a header, or not whole words.
    #[error("an image of {words} whole words has no room for its header: give all bytes")]
    Short {
        /// The words there are.
        words: usize,
    },
    /// Not an image, or one of another version.
    #[error("not an image of a longest-prefix table (magic {magic:#x}, version {version}): build it again")]
    Kind {
        /// The first word.
        magic: u32,
        /// The second word.
        version: u32,
    },
    /// The header contradicts itself or the number of bytes.
    #[error("the header of the image contradicts itself or its size: build it again")]
    Header,
    /// A cell leads outside, or twice to one place.
    #[error("the cell at word {word} of the image leads nowhere: build it again")]
    Cell {
        /// The word that holds the cell.
        word: usize,
    },
    /// The machine has no room for it.
    #[error("no memory for an image of {bytes} bytes")]
    Memory {
        /// The bytes that could not be had.
        bytes: usize,
    },
}

/// The bytes of the first `count` words.
fn bytes(words: &Words, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * 4);
    for index in 0..count {
        bytes.extend_from_slice(&words.load(index).to_le_bytes());
    }
    bytes
}
