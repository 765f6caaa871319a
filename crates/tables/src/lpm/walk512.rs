//! The walk through the tree with AVX-512: sixteen addresses take a step through dense nodes at once.
//!
//! The idea: a few vectors of sixteen addresses each stay in registers from the root on, and each takes a
//! step before any takes the next one, so that the memory of all of them is asked for at the same time. The
//! 32 bits behind a root cell's 16 last for all the dense nodes that tables of the Internet have. What comes
//! to a line, or deeper, is put aside and goes on one by one with all of its bits, each address asking for
//! the memory of its next step before any takes it.

use std::arch::x86_64::*;
use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::bulk::{TOGETHER, is_line};
use super::layout::GRANULE;
use super::lookup::{LINE_BITS, LINE_CELLS, LINE_FIRST, View, granule, stride};
use super::routes::NO_CODE;
use super::spec::NONE;
use super::vector::Keys;
use super::words::prefetch;

/// Bits that choose a root cell of an image walked here.
pub(super) const ROOT_BITS: u8 = 16;
/// Addresses of a vector.
const LANES: usize = 16;
/// Vectors that walk together.
const VECTORS: usize = 4;
/// Bits after which a walk goes on alone.
const BITS: i32 = 48;

/// Walks that go on alone: their numbers, their cells and the bits that they have eaten.
struct Left {
    count: usize,
    walk: [u32; TOGETHER + LANES],
    cell: [u32; TOGETHER + LANES],
    eaten: [u32; TOGETHER + LANES],
}

impl Left {
    fn new() -> Left {
        let none = [0; TOGETHER + LANES];
        Left { count: 0, walk: none, cell: none, eaten: none }
    }

    /// Puts aside those in `mask` of sixteen walks from number `from` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
    #[inline]
    fn put(&mut self, from: usize, mask: u16, cell: __m512i, eaten: __m512i) {
        let ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let walk = _mm512_add_epi32(ascending, _mm512_set1_epi32(from as i32));
        let lists = [(&mut self.walk, walk), (&mut self.cell, cell), (&mut self.eaten, eaten)];
        for (list, vector) in lists {
            let place = &mut list[self.count..self.count + LANES];
            // SAFETY: there is room for sixteen.
            unsafe {
                _mm512_storeu_si512(place.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(mask, vector))
            };
        }
        self.count += mask.count_ones() as usize;
    }
}

/// Takes a batch of at most [`TOGETHER`] addresses to their values.
///
/// # Safety
/// The view is of a sound image whose root takes 16 bits: root, palette, and every word that cells lead to
/// lie in its words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
pub(super) unsafe fn walk(view: &View<'_>, keys: Keys<'_>, out: &mut [u32]) {
    let count = out.len().min(TOGETHER);
    let out = &mut out[..count];
    // SAFETY: as the caller promises.
    unsafe {
        match keys {
            Keys::Wide(keys) if view.layout.width < 128 => {
                let mut aligned = [0; TOGETHER];
                aligned.iter_mut().zip(keys).for_each(|(aligned, key)| *aligned = view.layout.aligned(*key));
                batch(view, Keys::Wide(&aligned[..count]), out);
            }
            keys => batch(view, keys, out),
        }
    }
}

/// The same with wide addresses moved to the left.
///
/// # Safety
/// As for [`walk`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
unsafe fn batch(view: &View<'_>, keys: Keys<'_>, out: &mut [u32]) {
    let count = out.len();
    let mut left = None;
    let mut first = 0;
    // SAFETY: as the caller promises.
    unsafe {
        while first + LANES * VECTORS <= count {
            together::<VECTORS>(view, keys, first, out, &mut left);
            first += LANES * VECTORS;
        }
        while first + LANES <= count {
            together::<1>(view, keys, first, out, &mut left);
            first += LANES;
        }
        if first < count {
            remainder(view, keys, first, out, &mut left);
        }
    }
    if let Some(mut left) = left {
        finish(view, keys, &mut left, out);
    }
}

/// Takes the last addresses, fewer than a vector has, from `first` on to their values.
///
/// # Safety
/// As for [`walk`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
unsafe fn remainder(view: &View<'_>, keys: Keys<'_>, first: usize, out: &mut [u32], left: &mut Option<Left>) {
    let count = out.len() - first;
    let before = left.as_ref().map_or(0, |left| left.count);
    let (mut narrow, mut wide, mut values) = ([0; LANES], [0; LANES], [0; LANES]);
    let keys = match keys {
        Keys::Narrow(keys) => {
            narrow[..count].copy_from_slice(&keys[first..first + count]);
            Keys::Narrow(&narrow)
        }
        Keys::Wide(keys) => {
            wide[..count].copy_from_slice(&keys[first..first + count]);
            Keys::Wide(&wide)
        }
    };
    // SAFETY: as the caller promises.
    unsafe { together::<1>(view, keys, 0, &mut values, left) };
    out[first..].copy_from_slice(&values[..count]);
    // The walks put aside stand in order, so those of addresses that are not there stand last.
    if let Some(left) = left {
        let real = left.walk[before..left.count].iter().filter(|walk| (**walk as usize) < count).count();
        left.count = before + real;
        left.walk[before..left.count].iter_mut().for_each(|walk| *walk += first as u32);
    }
}

/// The first 64 bits of sixteen addresses from `first` on, in two halves.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
fn bits(view: &View<'_>, keys: Keys<'_>, first: usize) -> (__m512i, __m512i) {
    match keys {
        Keys::Narrow(keys) => {
            let keys = &keys[first..first + LANES];
            // SAFETY: sixteen keys of four bytes are there.
            let keys = unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) };
            let shift = _mm512_set1_epi32(32 - i32::from(view.layout.width));
            (_mm512_sllv_epi32(keys, shift), _mm512_setzero_si512())
        }
        Keys::Wide(keys) => {
            let keys = &keys[first..first + LANES];
            // SAFETY: sixteen keys are there, four of them in each of four vectors.
            let four = |index: usize| unsafe { _mm512_loadu_si512(keys.as_ptr().add(index * 4).cast()) };
            let halves = _mm512_setr_epi32(3, 7, 11, 15, 19, 23, 27, 31, 2, 6, 10, 14, 18, 22, 26, 30);
            let some = _mm512_permutex2var_epi32(four(0), halves, four(1));
            let more = _mm512_permutex2var_epi32(four(2), halves, four(3));
            (_mm512_shuffle_i64x2::<0x44>(some, more), _mm512_shuffle_i64x2::<0xee>(some, more))
        }
    }
}

/// Takes `COUNT` vectors of addresses from `first` on through dense nodes, writes the values of those that
/// have arrived and puts the others aside.
///
/// # Safety
/// As for [`walk`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
unsafe fn together<const COUNT: usize>(
    view: &View<'_>,
    keys: Keys<'_>,
    first: usize,
    out: &mut [u32],
    left: &mut Option<Left>,
) {
    // A mask made from itself would have every gather wait for the one before.
    let all = black_box(u16::MAX);
    let zero = _mm512_setzero_si512();
    let root = view.words[view.layout.root..].as_ptr();
    let words = view.words.as_ptr();
    let mut cell = [zero; COUNT];
    let mut rest = [zero; COUNT];
    let mut eaten = [_mm512_set1_epi32(i32::from(ROOT_BITS)); COUNT];
    for index in 0..COUNT {
        let (high, low) = bits(view, keys, first + index * LANES);
        let slot = _mm512_srli_epi32::<16>(high);
        // SAFETY: every number of 16 bits has a root cell.
        cell[index] = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, all, slot, root.cast()) };
        rest[index] = _mm512_or_si512(_mm512_slli_epi32::<16>(high), _mm512_srli_epi32::<16>(low));
    }
    loop {
        let mut moved = false;
        for ((cell, rest), eaten) in cell.iter_mut().zip(&mut rest).zip(&mut eaten) {
            let spared = spared(*cell);
            let strides = _mm512_sub_epi32(_mm512_set1_epi32(32), spared);
            let after = _mm512_add_epi32(*eaten, strides);
            let dense = _mm512_movepi32_mask(*cell);
            let step = _mm512_mask_cmple_epi32_mask(dense, after, _mm512_set1_epi32(BITS));
            // A gather costs the same however many it is for, so one for nobody is left out.
            if step == 0 {
                continue;
            }
            let node = _mm512_slli_epi32::<4>(_mm512_and_si512(*cell, _mm512_set1_epi32((1 << 26) - 1)));
            let within = _mm512_srlv_epi32(*rest, spared);
            let next = _mm512_add_epi32(node, within);
            // SAFETY: only words are gathered that cells of the image lead to.
            *cell = unsafe { _mm512_mask_i32gather_epi32::<4>(*cell, step, next, words.cast()) };
            *rest = _mm512_mask_sllv_epi32(*rest, step, *rest, strides);
            *eaten = _mm512_mask_mov_epi32(*eaten, step, after);
            moved = true;
        }
        if !moved {
            break;
        }
    }
    for index in 0..COUNT {
        let from = first + index * LANES;
        let inner = _mm512_test_epi32_mask(cell[index], _mm512_set1_epi32(3 << 30));
        let value = values(view, cell[index], !inner);
        let out = &mut out[from..from + LANES];
        // SAFETY: there is room for sixteen values.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), value) };
        if inner != 0 {
            left.get_or_insert_with(Left::new).put(from, inner, cell[index], eaten[index]);
        }
    }
}

/// The values of the cells in a mask, which are answers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn values(view: &View<'_>, cell: __m512i, answers: u16) -> __m512i {
    let absent = _mm512_cmpeq_epi32_mask(cell, _mm512_set1_epi32(NO_CODE as i32));
    let value = if view.layout.indexed {
        let palette = view.words[view.layout.palette..].as_ptr();
        // SAFETY: every code has a place in the palette.
        unsafe { _mm512_mask_i32gather_epi32::<4>(cell, answers & !absent, cell, palette.cast()) }
    } else {
        cell
    };
    _mm512_mask_mov_epi32(value, absent, _mm512_set1_epi32(NONE as i32))
}

/// How many of 32 bits are left when the dense nodes of sixteen cells have eaten theirs.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn spared(cell: __m512i) -> __m512i {
    // The stride is four times the number from bit 26 on, and four.
    let more = _mm512_and_si512(_mm512_srli_epi32::<24>(cell), _mm512_set1_epi32(3 << 2));
    _mm512_sub_epi32(_mm512_set1_epi32(28), more)
}

/// The cell of the interval that contains `bits` in the line at a word.
///
/// # Safety
/// There is a sound line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
unsafe fn line(view: &View<'_>, at: usize, bits: u32) -> u32 {
    // SAFETY: a line's starts and cells lie in the words, and its rank is 1 to 10.
    unsafe {
        let at = view.words.as_ptr().add(at);
        let starts = _mm256_loadu_si256(at.cast());
        let begun = _mm256_cmple_epu16_mask(starts, _mm256_set1_epi16(bits as i16));
        let rank = (u32::from(begun) & ((1 << LINE_CELLS) - 1)).count_ones() as usize;
        (*at.add(LINE_FIRST - 1 + rank)).load(Ordering::Relaxed)
    }
}

/// Takes the walks that have not arrived to their ends, and writes the values.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
fn finish(view: &View<'_>, keys: Keys<'_>, left: &mut Left, out: &mut [u32]) {
    let key = |walk: usize| match keys {
        Keys::Narrow(keys) => u128::from(view.layout.aligned32(keys[walk])) << 64,
        Keys::Wide(keys) => keys[walk],
    };
    for index in 0..left.count {
        let rest = key(left.walk[index] as usize).checked_shl(left.eaten[index]).unwrap_or(0);
        prefetch(view.words, view.next(left.cell[index], (rest >> 64) as u64));
    }
    while left.count > 0 {
        let waiting = left.count;
        left.count = 0;
        for index in 0..waiting {
            let (walk, cell, eaten) = (left.walk[index], left.cell[index], left.eaten[index]);
            let rest = key(walk as usize).checked_shl(eaten).unwrap_or(0);
            let (cell, step) = if is_line(cell) {
                // SAFETY: a cell of a sound image leads to the line.
                (unsafe { line(view, granule(cell) as usize * GRANULE, (rest >> 112) as u32) }, LINE_BITS)
            } else {
                (view.word(view.next(cell, (rest >> 64) as u64)), stride(cell))
            };
            if cell >= 1 << 30 && eaten < 128 {
                prefetch(view.words, view.next(cell, ((rest << step) >> 64) as u64));
                let at = left.count;
                (left.walk[at], left.cell[at], left.eaten[at]) = (walk, cell, eaten + step);
                left.count += 1;
            } else {
                out[walk as usize] = view.value(cell);
            }
        }
    }
}
