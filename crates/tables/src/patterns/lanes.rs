//! The first filter on vectors of 64 bytes (AVX-512 with VBMI and VBMI2): what `sift` does, 64 places at a
//! time.
//!
//! For each position of a window, a table of 256 bytes says which buckets let a byte pass there. It lies in
//! four vector registers, and two permutes look 64 bytes up in it at once. The looked-up bits of all
//! positions are combined by AND; a place passes if a bit is left.

use super::image::{LONG, MOST_GROUPS, POSITIONS, PatternsImage, RUNS, SAME, WINDOW};
use super::sift::{Passed, Sieve};

/// Whether this machine has what [`sift`] needs.
pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Adds to `passed` the places of `from..to` that may begin a window or a run.
pub(super) fn sift(image: &PatternsImage<'_>, haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
    assert!(
        image.sieve == Sieve::Avx512
            && from <= to
            && to <= haystack.len()
            && to - from <= super::sift::SEGMENT
    );
    let flags = image.counts.flags;
    let groups = if flags & LONG == 0 { 0 } else { image.counts.long_groups };
    let work: Work = match (groups, image.counts.short_groups > 0, flags & RUNS != 0) {
        (0, false, false) => return,
        (0, false, true) => wide::sift::<0, false, true>,
        (0, true, false) => wide::sift::<0, true, false>,
        (0, true, true) => wide::sift::<0, true, true>,
        (1, false, false) => wide::sift::<1, false, false>,
        (1, false, true) => wide::sift::<1, false, true>,
        (1, true, false) => wide::sift::<1, true, false>,
        (1, true, true) => wide::sift::<1, true, true>,
        (2, false, false) => wide::sift::<2, false, false>,
        (2, false, true) => wide::sift::<2, false, true>,
        (2, true, false) => wide::sift::<2, true, false>,
        (2, true, true) => wide::sift::<2, true, true>,
        (_, false, false) => wide::sift::<MOST_GROUPS, false, false>,
        (_, false, true) => wide::sift::<MOST_GROUPS, false, true>,
        (_, true, false) => wide::sift::<MOST_GROUPS, true, false>,
        (_, true, true) => wide::sift::<MOST_GROUPS, true, true>,
    };
    // SAFETY: an image has this form only where `present` found every feature that the functions are compiled
    // for.
    unsafe { work(image, haystack, from, to, passed) }
}

/// One form of the filter, for what a table has.
type Work = unsafe fn(&PatternsImage<'_>, &[u8], usize, usize, &mut Passed);

mod wide {
    use super::super::sift::{Places, SEGMENT, short_mask};
    use super::*;
    use std::arch::x86_64::*;

    /// Places of a block.
    const BLOCK: usize = 64;

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn sift<const GROUPS: usize, const SHORTS: bool, const RUN: bool>(
        image: &PatternsImage<'_>,
        haystack: &[u8],
        from: usize,
        to: usize,
        passed: &mut Passed,
    ) {
        let tables: [[Table; POSITIONS]; GROUPS] = std::array::from_fn(|group| {
            std::array::from_fn(|position| Table::load(&image.shuffles[group * POSITIONS + position]))
        });
        let short: [Table; 3] = std::array::from_fn(|position| {
            let at = if SHORTS { image.counts.long_groups * POSITIONS + position } else { 0 };
            Table::load(&image.shuffles[at])
        });
        let keep_same = image.counts.flags & SAME != 0;
        // All ones where the byte before the block is the same as the block's first.
        let mut before = u64::from(from > 0 && from < to && haystack[from - 1] == haystack[from]);
        let mut block = from;
        while block < to {
            let bytes: [__m512i; POSITIONS] =
                std::array::from_fn(|position| load(haystack, block + position));
            let here = lowest(to - block);
            // Windows that end within the haystack.
            let windows = here & lowest((haystack.len() + 1).saturating_sub(block + WINDOW));
            let at = (block - from) as u16;
            // Bit p: the bytes at p and p + 1 are the same; four same ones begin where three such bits stand
            // in a row.
            let pair = _mm512_cmpeq_epi8_mask(bytes[0], bytes[1]);
            let second = _mm512_cmpeq_epi8_mask(bytes[1], bytes[2]);
            let third = _mm512_cmpeq_epi8_mask(bytes[2], bytes[3]);
            let same = pair & second & third & windows;
            if GROUPS > 0 {
                let mut buckets = _mm512_setzero_si512();
                for group in &tables {
                    let mut bits = group[0].look_up(bytes[0]);
                    for position in 1..POSITIONS {
                        bits = _mm512_and_si512(bits, group[position].look_up(bytes[position]));
                    }
                    buckets = _mm512_or_si512(buckets, bits);
                }
                // Of the places within a run only those of a letter may begin a window.
                let kept = if keep_same { !same | letters(bytes[0]) } else { !same };
                let passes = _mm512_test_epi8_mask(buckets, buckets) & windows & kept;
                append(&mut passed.long, at, passes);
            }
            if SHORTS {
                let bits = _mm512_and_si512(
                    _mm512_and_si512(short[0].look_up(bytes[0]), short[1].look_up(bytes[1])),
                    short[2].look_up(bytes[2]),
                );
                for class in image.short_classes() {
                    let of_class = _mm512_set1_epi8(short_mask(class) as i8);
                    append(&mut passed.short[class - 1], at, _mm512_test_epi8_mask(bits, of_class) & here);
                }
            }
            if RUN {
                let begins = same & !(pair << 1 | before);
                if begins != 0 {
                    append(&mut passed.runs, at, begins);
                }
                before = pair >> (BLOCK - 1);
            }
            block += BLOCK;
        }
    }

    /// The lowest `count` bits; all of them from 64 on.
    fn lowest(count: usize) -> u64 {
        if count >= BLOCK { u64::MAX } else { (1 << count) - 1 }
    }

    /// Which bytes are letters.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn letters(bytes: __m512i) -> u64 {
        let lower = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(lower, _mm512_set1_epi8(b'a' as i8)), _mm512_set1_epi8(26))
    }

    /// 64 bytes from `at`; zeros behind the end.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn load(haystack: &[u8], at: usize) -> __m512i {
        match haystack.get(at..at + BLOCK) {
            // SAFETY: the slice has the 64 bytes that are read.
            Some(bytes) => unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) },
            None => {
                let rest = &haystack[at.min(haystack.len())..];
                // SAFETY: only the lowest `rest.len()` bytes are read, all of them of the slice; no other is
                // touched.
                unsafe { _mm512_maskz_loadu_epi8(lowest(rest.len()), rest.as_ptr().cast()) }
            }
        }
    }

    /// Appends `at` plus the number of each set bit, ascending.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn append(places: &mut Places, at: u16, bits: u64) {
        let numbers = _mm512_set_epi16(
            31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7,
            6, 5, 4, 3, 2, 1, 0,
        );
        for half in 0..2u16 {
            let bits = (bits >> (32 * half)) as u32;
            let all = _mm512_add_epi16(numbers, _mm512_set1_epi16((at + 32 * half) as i16));
            let room = &mut places.at[places.count..places.count + 32];
            // SAFETY: the slice has room for the 32 numbers of 16 bits that are written.
            unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_maskz_compress_epi16(bits, all)) };
            places.count += bits.count_ones() as usize;
        }
        debug_assert!(places.count <= SEGMENT);
    }

    /// A table of 256 bytes in four registers.
    #[derive(Clone, Copy)]
    struct Table {
        quarters: [__m512i; 4],
    }

    impl Table {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn load(bytes: &[u8; 256]) -> Table {
            let quarter = |bytes: &[u8; BLOCK]| {
                // SAFETY: the array has the 64 bytes that are read.
                unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
            };
            let (quarters, _) = bytes.as_chunks::<BLOCK>();
            Table { quarters: std::array::from_fn(|at| quarter(&quarters[at])) }
        }

        /// The table's byte for each of 64 bytes.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
        fn look_up(&self, bytes: __m512i) -> __m512i {
            let low = _mm512_permutex2var_epi8(self.quarters[0], bytes, self.quarters[1]);
            let high = _mm512_permutex2var_epi8(self.quarters[2], bytes, self.quarters[3]);
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high)
        }
    }
}
