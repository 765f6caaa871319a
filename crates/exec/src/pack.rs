//! How the columns of keys and values become the 64-bit words that tables hold.
//!
//! Columns that are at most 64 bits together share one word, the first column in its most significant used
//! bits. Otherwise columns fill words in order, a column never straddles two words, and one wider than 64
//! bits has two words to itself, most significant first. Within a word the first column is the most
//! significant, so words sort as columns do.

use ir::Column;

/// The most words of a value, and of a key that is not of rules.
pub const MAX_WORDS: usize = 8;

/// The most words of any key: those of rules have each column in words of its own.
pub const WIDEST_KEY: usize = ir::limits::LARGEST_RULES_KEY;
const _: () = assert!(WIDEST_KEY <= tables::rules::MOST_PACKED_WORDS);

/// The place of one column in the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedPlace {
    /// The number of its word; for a column of two words, that of the more significant one.
    pub word: usize,
    /// By how many bits the column is shifted left in its word; zero for a column of two words.
    pub shift: u32,
    /// Its width in bits.
    pub width: u8,
}

impl PackedPlace {
    /// Whether it takes two words.
    pub fn is_wide(&self) -> bool {
        self.width > 64
    }
}

/// The places of all columns of a key or value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// One place a column.
    pub places: Vec<PackedPlace>,
    /// How many words there are.
    pub words: usize,
}

impl Packing {
    /// The packing of these columns. It may need more words than a table supports.
    pub fn new(columns: &[Column]) -> Packing {
        let mut places: Vec<PackedPlace> = Vec::with_capacity(columns.len());
        let (mut words, mut free) = (0, 0u32);
        let mut first = 0;
        for column in columns {
            let width = u32::from(column.width);
            if width > 64 {
                places.push(PackedPlace { word: words, shift: 0, width: column.width });
                (words, free, first) = (words + 2, 0, places.len());
                continue;
            }
            if width > free {
                (words, free, first) = (words + 1, 64, places.len());
            }
            // The earlier columns of this word are shifted left to make room.
            for place in &mut places[first..] {
                place.shift += width;
            }
            places.push(PackedPlace { word: words - 1, shift: 0, width: column.width });
            free -= width;
        }
        Packing { places, words }
    }

    /// Every column in a word of its own, or in two.
    pub fn apart(columns: &[Column]) -> Packing {
        let mut packing = Packing::default();
        for column in columns {
            packing.places.push(PackedPlace { word: packing.words, shift: 0, width: column.width });
            packing.words += 1 + usize::from(column.width > 64);
        }
        packing
    }

    /// The words of these columns; `words` is as long as the packing says. Bits beyond a column's width are
    /// ignored.
    pub fn pack(&self, columns: impl IntoIterator<Item = u128>, words: &mut [u64]) {
        words.fill(0);
        for (place, column) in self.places.iter().zip(columns) {
            let column = column & (u128::MAX >> (128 - u32::from(place.width)));
            if place.is_wide() {
                words[place.word] = (column >> 64) as u64;
                words[place.word + 1] = column as u64;
            } else {
                words[place.word] |= (column as u64) << place.shift;
            }
        }
    }

    /// The column at a place.
    pub fn unpack_one(place: &PackedPlace, words: &[u64]) -> u128 {
        if place.is_wide() {
            return u128::from(words[place.word]) << 64 | u128::from(words[place.word + 1]);
        }
        u128::from(words[place.word] >> place.shift & (u64::MAX >> (64 - u32::from(place.width))))
    }

    /// The first columns of these words, as many as there is room for.
    pub fn columns<'a>(&self, words: &[u64], columns: &'a mut [u128]) -> &'a [u128] {
        for (column, place) in columns.iter_mut().zip(&self.places) {
            *column = Packing::unpack_one(place, words);
        }
        let count = self.places.len().min(columns.len());
        &columns[..count]
    }

    /// The columns of these words.
    pub fn unpack(&self, words: &[u64]) -> Vec<u128> {
        self.places.iter().map(|place| Packing::unpack_one(place, words)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::ColumnKind;

    fn packing(widths: &[u8]) -> Packing {
        let columns: Vec<Column> = widths
            .iter()
            .map(|&width| Column { name: String::new(), kind: ColumnKind::Uint, width })
            .collect();
        Packing::new(&columns)
    }

    #[test]
    fn narrow_columns_share_one_word_first_most_significant() {
        let packing = packing(&[32, 16, 1]);
        let mut words = [0; 1];
        packing.pack([0xa000_0001, 0x1234, 1], &mut words);
        assert_eq!(packing.words, 1);
        assert_eq!(words, [0xa000_0001 << 17 | 0x1234 << 1 | 1]);
        assert_eq!(packing.unpack(&words), [0xa000_0001, 0x1234, 1]);
    }

    #[test]
    fn words_fill_in_order_and_wide_columns_stand_alone() {
        let packing = packing(&[8, 128, 48, 16, 1, 64]);
        assert_eq!(packing.words, 6);
        let columns = [0xab, u128::MAX - 5, 0x0102_0304_0506, 0xffee, 1, u128::from(u64::MAX)];
        let mut words = [0; 6];
        packing.pack(columns, &mut words);
        assert_eq!(words, [0xab, u64::MAX, u64::MAX - 5, 0x0102_0304_0506_ffee, 1, u64::MAX]);
        assert_eq!(packing.unpack(&words), columns);
    }

    #[test]
    fn words_sort_as_columns_do() {
        let packing = packing(&[16, 63, 65]);
        let rows = [[0, 9, 1 << 64], [1, 0, 0], [1, 0, 1 << 64], [1, 1, 0], [2, 0, 0]];
        let words: Vec<Vec<u64>> = rows
            .iter()
            .map(|row| {
                let mut words = vec![0; packing.words];
                packing.pack(*row, &mut words);
                words
            })
            .collect();
        assert!(words.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn bits_beyond_the_width_are_cut() {
        let packing = packing(&[4, 4]);
        let mut words = [0; 1];
        packing.pack([0xff, 0x10], &mut words);
        assert_eq!(words, [0xf0]);
    }
}
