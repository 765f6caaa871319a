//! The first filter on vectors of 32 bytes (AVX2): what `sift` does, 32 places at a time.
//!
//! AVX2 looks up tables of 16 bytes only. So a byte passes at a position of a window in the buckets that let
//! both its halves pass: the AND of two look-ups, one for each half, as in Teddy, a literal matcher of
//! Hyperscan (Wang et al., NSDI 2019). A bucket lets more pass than its table of 256 bytes says, and the next
//! stage sorts that out.
//!
//! Of a small table few bytes pass at the first two positions of a window, so most blocks are done after
//! these; [`quiet`] is that alone, for the bytes before the first place that passes.

use super::image::{LONG, MOST_GROUPS, POSITIONS, PatternsImage, RUNS, SAME, WINDOW};
use super::sift::{Passed, Sieve};

/// Whether this machine has what [`sift`] needs.
pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1")
}

/// Adds to `passed` the places of `from..to` that may begin a window or a run.
pub(super) fn sift(image: &PatternsImage<'_>, haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
    assert!(image.sieve == Sieve::Avx2 && from <= to && to <= haystack.len());
    assert!(to - from <= super::sift::SEGMENT);
    let flags = image.counts.flags;
    let work: Work = match if flags & LONG == 0 { 0 } else { image.counts.long_groups } {
        0 => wide::sift::<0>,
        1 => wide::sift::<1>,
        2 => wide::sift::<2>,
        _ => wide::sift::<MOST_GROUPS>,
    };
    // SAFETY: an image has this form only where `present` found every feature that the functions are compiled
    // for.
    unsafe { work(image, haystack, from, to, passed) }
}

/// How many bytes from the beginning on surely begin neither a window nor a run that is searched for, in a
/// table of these `nibbles` and `runs` with one group of long strings at most and without short ones.
///
/// # Panics
/// [`present`] is false.
pub(super) fn quiet(nibbles: &[[u8; 32]], runs: &[[u8; 4]], haystack: &[u8]) -> usize {
    assert!(present());
    // SAFETY: `present` found every feature that the function is compiled for.
    unsafe { wide::quiet(nibbles, runs, haystack) }
}

/// One form of the filter, for what a table has.
type Work = unsafe fn(&PatternsImage<'_>, &[u8], usize, usize, &mut Passed);

mod wide {
    use super::super::sift::{Places, short_mask};
    use super::*;
    use std::arch::x86_64::*;

    /// Places of a block.
    const BLOCK: usize = 32;

    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn sift<const GROUPS: usize>(
        image: &PatternsImage<'_>,
        haystack: &[u8],
        from: usize,
        to: usize,
        passed: &mut Passed,
    ) {
        // 1 where the byte before the block is the same as the block's first.
        let mut before = u32::from(from > 0 && from < to && haystack[from - 1] == haystack[from]);
        let few =
            (GROUPS == 1 && image.counts.short_groups == 0).then(|| FirstTwo::of(image.nibbles, image.runs));
        let next = |block, before: &mut u32| match &few {
            Some(first_two) => first_two.skip(haystack, to, block, before),
            None => block,
        };
        let mut block = next(from, &mut before);
        if block >= to {
            return;
        }
        let long: [[Table; POSITIONS]; GROUPS] = std::array::from_fn(|group| {
            std::array::from_fn(|position| Table::load(&image.nibbles[group * POSITIONS + position]))
        });
        let short: Option<[Table; 3]> = (image.counts.short_groups > 0).then(|| {
            let first = image.counts.long_groups * POSITIONS;
            std::array::from_fn(|position| Table::load(&image.nibbles[first + position]))
        });
        let keep_same = image.counts.flags & SAME != 0;
        let runs = image.counts.flags & RUNS != 0;
        while block < to {
            let bytes = load(&haystack[block..]);
            let here = lowest(to - block);
            // Windows that end within the haystack.
            let windows = here & lowest((haystack.len() + 1).saturating_sub(block + WINDOW));
            let at = (block - from) as u16;
            // Bit p: the bytes at p and p + 1 are the same; four same ones begin where three such bits stand
            // in a row.
            let pair = same_bytes(bytes[0], bytes[1]);
            let same = pair & same_bytes(bytes[1], bytes[2]) & same_bytes(bytes[2], bytes[3]) & windows;
            if GROUPS > 0 {
                let mut buckets = _mm256_setzero_si256();
                for group in &long {
                    let mut bits = group[0].look_up(bytes[0]);
                    for position in 1..POSITIONS {
                        bits = _mm256_and_si256(bits, group[position].look_up(bytes[position]));
                    }
                    buckets = _mm256_or_si256(buckets, bits);
                }
                // Of the places within a run only those of a letter may begin a window.
                let kept = if keep_same { !same | letters(bytes[0]) } else { !same };
                append(&mut passed.long, at, any(buckets) & windows & kept);
            }
            if let Some(short) = &short {
                let bits = _mm256_and_si256(
                    _mm256_and_si256(short[0].look_up(bytes[0]), short[1].look_up(bytes[1])),
                    short[2].look_up(bytes[2]),
                );
                for class in image.short_classes() {
                    let of_class = _mm256_set1_epi8(short_mask(class) as i8);
                    append(&mut passed.short[class - 1], at, any(_mm256_and_si256(bits, of_class)) & here);
                }
            }
            if runs {
                append(&mut passed.runs, at, same & !(pair << 1 | before));
            }
            before = pair >> (BLOCK - 1);
            block = next(block + BLOCK, &mut before);
        }
    }

    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn quiet(nibbles: &[[u8; 32]], runs: &[[u8; 4]], haystack: &[u8]) -> usize {
        let first_two = FirstTwo::of(nibbles, runs);
        first_two.skip(haystack, haystack.len(), 0, &mut 0).min(haystack.len())
    }

    /// What a small table lets pass at the first two positions of a window, and the bytes of its runs.
    struct FirstTwo<'a> {
        tables: [Table; 2],
        runs: &'a [[u8; 4]],
    }

    impl FirstTwo<'_> {
        /// Without long strings there are no `nibbles`, and nothing passes.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn of<'a>(nibbles: &[[u8; 32]], runs: &'a [[u8; 4]]) -> FirstTwo<'a> {
            let table = |position| Table::load(nibbles.get(position).unwrap_or(&[0; 32]));
            FirstTwo { tables: [table(0), table(1)], runs }
        }

        /// The first block from `block` on with a place that passes, or `to` or what lies behind it. `before`
        /// is 1 where the byte before the block is the same as the block's first.
        #[inline(never)]
        #[target_feature(enable = "avx2,bmi1")]
        fn skip(&self, haystack: &[u8], to: usize, block: usize, before: &mut u32) -> usize {
            if block >= to {
                return block;
            }
            let mut last = *before;
            // Blocks that lie in front of `to`, with the byte behind them.
            let mut rest = &haystack[block..haystack.len().min(to + 1)];
            let (end, mut begins) = (block + rest.len(), 0);
            while let Some(near) = rest.first_chunk::<{ BLOCK + 1 }>() {
                // SAFETY: both reads lie in the array.
                let bytes = [0, 1].map(|at| unsafe { _mm256_loadu_si256(near.as_ptr().add(at).cast()) });
                let pair;
                (begins, pair) = self.begins(bytes, last, near, u32::MAX);
                if begins != 0 {
                    break;
                }
                last = pair >> (BLOCK - 1);
                rest = &rest[BLOCK..];
            }
            let mut block = end - rest.len();
            if begins == 0 && block < to {
                let near = &haystack[block..];
                let [here, next, ..] = load(near);
                let pair;
                (begins, pair) = self.begins([here, next], last, near, lowest(to - block));
                if begins == 0 {
                    last = pair >> (BLOCK - 1);
                    block += BLOCK;
                }
            }
            *before = last;
            block
        }

        /// The places, of those asked for, that pass in a block; and which bytes are followed by the same.
        #[inline]
        #[target_feature(enable = "avx2,bmi1")]
        fn begins(&self, [here, next]: [__m256i; 2], before: u32, near: &[u8], asked: u32) -> (u32, u32) {
            let bits = _mm256_and_si256(self.tables[0].look_up(here), self.tables[1].look_up(next));
            let pair = same_bytes(here, next);
            let (windows, mut runs) = (any(bits) & asked, run_starts(pair, before) & asked);
            if windows == 0 && runs != 0 {
                let listed = |at: u32| {
                    let byte = usize::from(near[at as usize]);
                    self.runs[byte] != self.runs[byte + 1]
                };
                while runs != 0 && !listed(runs.trailing_zeros()) {
                    runs &= runs - 1;
                }
            }
            (windows | runs, pair)
        }
    }

    /// Where four same bytes may begin, of which `pair` and `before` tell the first two and the two before:
    /// if nowhere, then no run begins in the block. What lies behind the block counts as the same.
    fn run_starts(pair: u32, before: u32) -> u32 {
        let goes_on = (pair >> 1 | 1 << (BLOCK - 1)) & (pair >> 2 | 3 << (BLOCK - 2));
        pair & goes_on & !(pair << 1 | before)
    }

    /// The lowest `count` bits; all of them from 32 on.
    fn lowest(count: usize) -> u32 {
        if count >= BLOCK { u32::MAX } else { (1 << count) - 1 }
    }

    /// Which bytes are the same in both.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn same_bytes(a: __m256i, b: __m256i) -> u32 {
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)) as u32
    }

    /// Which bytes have a bit.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn any(bytes: __m256i) -> u32 {
        !same_bytes(bytes, _mm256_setzero_si256())
    }

    /// Which bytes are letters.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn letters(bytes: __m256i) -> u32 {
        let lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        let number = _mm256_sub_epi8(lower, _mm256_set1_epi8(b'a' as i8));
        same_bytes(_mm256_min_epu8(number, _mm256_set1_epi8(25)), number)
    }

    /// The 32 bytes from each of the first places; zeros behind the end.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(rest: &[u8]) -> [__m256i; POSITIONS] {
        const NEEDED: usize = BLOCK + POSITIONS - 1;
        let mut last = [0; NEEDED];
        let near = rest.first_chunk::<NEEDED>().unwrap_or_else(|| {
            fill(&mut last, rest);
            &last
        });
        std::array::from_fn(|position| {
            let bytes = &near[position..position + BLOCK];
            // SAFETY: the slice has the 32 bytes that are read.
            unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
        })
    }

    /// Copies bytes to the beginning of a block, by copies of a fixed length where there are enough bytes.
    fn fill(block: &mut [u8; BLOCK + POSITIONS - 1], rest: &[u8]) {
        const HALF: usize = BLOCK / 2;
        let (Some(first), Some(end)) = (rest.first_chunk::<HALF>(), rest.last_chunk::<HALF>()) else {
            return block[..rest.len()].copy_from_slice(rest);
        };
        block[..HALF].copy_from_slice(first);
        if let Some(second) = rest[HALF..].first_chunk::<HALF>() {
            block[HALF..BLOCK].copy_from_slice(second);
        }
        block[rest.len() - HALF..rest.len()].copy_from_slice(end);
    }

    /// Appends `at` plus the number of each set bit, ascending.
    #[inline]
    #[target_feature(enable = "bmi1")]
    fn append(places: &mut Places, at: u16, mut bits: u32) {
        while bits != 0 {
            places.at[places.count] = at + bits.trailing_zeros() as u16;
            places.count += 1;
            bits &= bits - 1;
        }
    }

    /// The bucket bits of bytes by their low and by their high halves, each twice: AVX2 looks up in each half
    /// of a register by itself.
    #[derive(Clone, Copy)]
    struct Table {
        low: __m256i,
        high: __m256i,
    }

    impl Table {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn load(nibbles: &[u8; 32]) -> Table {
            // SAFETY: the array has the 32 bytes that are read.
            let both = unsafe { _mm256_loadu_si256(nibbles.as_ptr().cast()) };
            Table {
                low: _mm256_permute2x128_si256::<0x00>(both, both),
                high: _mm256_permute2x128_si256::<0x11>(both, both),
            }
        }

        /// The buckets that let each of 32 bytes pass, and perhaps some more.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn look_up(&self, bytes: __m256i) -> __m256i {
            let half = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(self.low, _mm256_and_si256(bytes, half));
            let high = _mm256_shuffle_epi8(self.high, _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half));
            _mm256_and_si256(low, high)
        }
    }
}
