//! The tree walked with AVX-512: sixteen addresses take a step through dense nodes at once, lines are searched one by one.
//!
//! The idea: all addresses of a batch take their next step before any takes the one after it, and ask for the memory of
//! that one as soon as they know where it is. The 32 bits behind a root cell's 16 last for two steps, so the walks carry no
//! more than a word each; dense nodes need one gather for sixteen of them, a line one comparison of its ten starts. What
//! has not arrived then, a fifth in the widest tables, goes on alone with all of its bits.

use std::arch::x86_64::*;
use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::NONE;
use super::lookup::{LINE_BITS, LINE_CELLS, LINE_FIRST, TOGETHER, View, granule, is_line, stride};
use super::routes::NO_CODE;
use super::vector::{Keys, prefetch};

/// Bits that choose a root cell of an image walked here.
pub(super) const ROOT_BITS: u8 = 16;
/// Steps that 32 bits last for.
const STEPS: usize = 2;

/// Where the walks are: their cells, the bits not eaten of the first 48, the words that their next steps read, and how many
/// bits they have eaten.
struct Front {
    cell: [u32; TOGETHER],
    rest: [u32; TOGETHER],
    next: [u32; TOGETHER],
    eaten: [u32; TOGETHER],
}

/// Takes a batch of at most [`TOGETHER`] addresses to their values.
///
/// # Safety
/// The view is of a sound image whose root takes 16 bits: root, palette, and every word that cells lead to lie in its words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
pub(super) unsafe fn walk(view: &View<'_>, keys: Keys<'_>, out: &mut [u32]) {
    let count = out.len().min(TOGETHER);
    let mut front = Front {
        cell: [0; TOGETHER],
        rest: [0; TOGETHER],
        next: [0; TOGETHER],
        eaten: [u32::from(ROOT_BITS); TOGETHER],
    };
    match keys {
        Keys::Narrow(keys) => {
            for ((rest, cell), key) in front.rest.iter_mut().zip(&mut front.cell).zip(&keys[..count]) {
                let key = view.layout.aligned32(*key);
                *cell = (key >> 48) as u32;
                *rest = (key >> 16) as u32;
            }
        }
        Keys::Wide(keys) => {
            let shift = 128 - u32::from(view.layout.width);
            let keys = &keys[..count];
            let slots = front.rest.iter_mut().zip(&mut front.cell).zip(keys);
            if shift == 0 {
                slots.for_each(|((rest, cell), key)| {
                    *cell = (key >> 112) as u32;
                    *rest = (key >> 80) as u32;
                });
            } else {
                slots.for_each(|((rest, cell), key)| {
                    *cell = ((key << shift) >> 112) as u32;
                    *rest = ((key << shift) >> 80) as u32;
                });
            }
        }
    }
    // A mask made from itself would have every gather wait for the one before.
    let all = black_box(u16::MAX);
    let root = view.words[view.layout.root..].as_ptr();
    let groups = count.next_multiple_of(16);
    for group in (0..groups).step_by(16) {
        // SAFETY: sixteen places from `group` on lie in each array, and every number of 16 bits has a root cell.
        unsafe {
            let slot = _mm512_loadu_si512(front.cell.as_ptr().add(group).cast());
            let rest = _mm512_loadu_si512(front.rest.as_ptr().add(group).cast());
            let cell = _mm512_mask_i32gather_epi32::<4>(_mm512_setzero_si512(), all, slot, root.cast());
            arrive(view, &mut front, group, cell, rest);
        }
    }
    for _ in 0..STEPS {
        // SAFETY: as the caller promises.
        unsafe { step(view, &mut front, groups) };
    }
    finish(view, keys, &mut front, &mut out[..count]);
}

/// Notes where sixteen addresses have come to and asks for what they read next.
///
/// # Safety
/// `group` is a multiple of sixteen below [`TOGETHER`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
unsafe fn arrive(view: &View<'_>, front: &mut Front, group: usize, cell: __m512i, rest: __m512i) {
    let bits = _mm512_srlv_epi32(rest, _mm512_sub_epi32(_mm512_set1_epi32(32), strides(cell)));
    let node = _mm512_slli_epi32::<4>(_mm512_and_si512(cell, _mm512_set1_epi32((1 << 26) - 1)));
    let next = _mm512_mask_add_epi32(node, _mm512_movepi32_mask(cell), node, bits);
    let inner = _mm512_test_epi32_mask(cell, _mm512_set1_epi32(3 << 30));
    let next = _mm512_maskz_mov_epi32(inner, next);
    // SAFETY: sixteen places from `group` on lie in each array.
    unsafe {
        _mm512_storeu_si512(front.rest.as_mut_ptr().add(group).cast(), rest);
        _mm512_storeu_si512(front.cell.as_mut_ptr().add(group).cast(), cell);
        _mm512_storeu_si512(front.next.as_mut_ptr().add(group).cast(), next);
    }
    if inner != 0 {
        front.next[group..group + 16].iter().for_each(|next| prefetch(view.words, *next as usize));
    }
}

/// The bits that the dense nodes of sixteen cells eat.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn strides(cell: __m512i) -> __m512i {
    let quarter = _mm512_and_si512(_mm512_srli_epi32::<26>(cell), _mm512_set1_epi32(3));
    _mm512_slli_epi32::<2>(_mm512_add_epi32(quarter, _mm512_set1_epi32(1)))
}

/// Takes one step with every address that has not arrived.
///
/// # Safety
/// As for [`walk`], and no walk has eaten more than 32 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
unsafe fn step(view: &View<'_>, front: &mut Front, groups: usize) {
    let words = view.words.as_ptr();
    let mut lines = [0u32; TOGETHER + 16];
    let mut line_count = 0;
    let ascending = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for group in (0..groups).step_by(16) {
        // SAFETY: sixteen places from `group` on lie in each array; at most as many lines were listed before as walks. A
        // gathered word is one that a cell of the image leads to.
        unsafe {
            let cell = _mm512_loadu_si512(front.cell.as_ptr().add(group).cast());
            let dense = _mm512_movepi32_mask(cell);
            let inner = _mm512_test_epi32_mask(cell, _mm512_set1_epi32(3 << 30));
            let line = inner & !dense;
            let walks = _mm512_add_epi32(ascending, _mm512_set1_epi32(group as i32));
            let listed = _mm512_maskz_compress_epi32(line, walks);
            _mm512_storeu_si512(lines.as_mut_ptr().add(line_count).cast(), listed);
            line_count += line.count_ones() as usize;
            if dense != 0 {
                let next = _mm512_loadu_si512(front.next.as_ptr().add(group).cast());
                let rest = _mm512_loadu_si512(front.rest.as_ptr().add(group).cast());
                let eaten = _mm512_loadu_si512(front.eaten.as_ptr().add(group).cast());
                let found = _mm512_mask_i32gather_epi32::<4>(cell, dense, next, words.cast());
                let strides = strides(cell);
                let rest = _mm512_mask_sllv_epi32(rest, dense, rest, strides);
                let eaten = _mm512_mask_add_epi32(eaten, dense, eaten, strides);
                _mm512_storeu_si512(front.eaten.as_mut_ptr().add(group).cast(), eaten);
                arrive(view, front, group, found, rest);
            }
        }
    }
    for walk in &lines[..line_count] {
        let walk = *walk as usize & (TOGETHER - 1);
        // SAFETY: a cell of the image led to the line at this word.
        let cell = unsafe { line(view, front.next[walk], front.rest[walk] >> 16) };
        front.cell[walk] = cell;
        if cell >= 1 << 30 {
            let rest = front.rest[walk] << LINE_BITS;
            let next = view.next(cell, u64::from(rest) << 32);
            front.rest[walk] = rest;
            front.eaten[walk] += LINE_BITS;
            front.next[walk] = next as u32;
            prefetch(view.words, next);
        }
    }
}

/// The cell of the interval that contains `bits` in the line at a word.
///
/// # Safety
/// There is a sound line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
unsafe fn line(view: &View<'_>, at: u32, bits: u32) -> u32 {
    // SAFETY: a line's starts and cells lie in the words, and its rank is 1 to 10.
    unsafe {
        let at = view.words.as_ptr().add(at as usize);
        let starts = _mm256_loadu_si256(at.cast());
        let begun = _mm256_cmple_epu16_mask(starts, _mm256_set1_epi16(bits as i16));
        let rank = (u32::from(begun) & ((1 << LINE_CELLS) - 1)).count_ones() as usize;
        (*at.add(LINE_FIRST - 1 + rank)).load(Ordering::Relaxed)
    }
}

/// Takes the walks that have not arrived to their ends, and writes the values.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
fn finish(view: &View<'_>, keys: Keys<'_>, front: &mut Front, out: &mut [u32]) {
    let key = |walk: usize| match keys {
        Keys::Narrow(keys) => u128::from(view.layout.aligned32(keys[walk])) << 64,
        Keys::Wide(keys) => view.layout.aligned(keys[walk]),
    };
    let mut left = [0u8; TOGETHER];
    let mut left_count = 0;
    for (walk, cell) in front.cell[..out.len()].iter().enumerate() {
        left[left_count & (TOGETHER - 1)] = walk as u8;
        left_count += usize::from(*cell >= 1 << 30);
    }
    // The bits that two steps have carried along may be used up, so the next word is found with all of them.
    for walk in &left[..left_count] {
        let walk = usize::from(*walk);
        let rest = key(walk).checked_shl(front.eaten[walk]).unwrap_or(0);
        let next = view.next(front.cell[walk], (rest >> 64) as u64);
        front.next[walk] = next as u32;
        prefetch(view.words, next);
    }
    while left_count > 0 {
        let waiting = left_count;
        left_count = 0;
        for index in 0..waiting {
            let number = left[index];
            let walk = usize::from(number);
            let cell = front.cell[walk];
            let rest = key(walk).checked_shl(front.eaten[walk]).unwrap_or(0);
            let (cell, eaten) = if is_line(cell) {
                (view.line(granule(cell), (rest >> 112) as u16), LINE_BITS)
            } else {
                (view.word(front.next[walk] as usize), stride(cell))
            };
            front.cell[walk] = cell;
            if cell >= 1 << 30 && front.eaten[walk] < 128 {
                front.eaten[walk] += eaten;
                let next = view.next(cell, ((rest << eaten) >> 64) as u64);
                front.next[walk] = next as u32;
                prefetch(view.words, next);
                left[left_count] = number;
                left_count += 1;
            }
        }
    }
    if view.layout.indexed {
        out.iter_mut().zip(&front.cell).for_each(|(out, cell)| *out = view.value(*cell));
    } else {
        let value = |cell: u32| if cell == NO_CODE { NONE } else { cell };
        out.iter_mut().zip(&front.cell).for_each(|(out, cell)| *out = value(*cell));
    }
}
