//! The tree walked with AVX-512: eight addresses take a step through dense nodes at once, lines are searched one by one.
//!
//! The idea: all addresses of a batch take their next step before any takes the one after it, and ask for the memory of
//! that one as soon as they know where it is. Dense nodes need one gather for eight addresses; a line needs one comparison
//! of its ten starts. Whoever has arrived is passed over.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::NONE;
use super::bulk::Walks;
use super::lookup::{GRANULE, LINE_BITS, LINE_CELLS, LINE_FIRST, TOGETHER, View, is_dense, is_line};
use super::routes::NO_CODE;
use super::vector::prefetch;

/// More steps than any sound image has.
const STEPS: usize = 32;

/// Walks, and the words that their next steps read.
struct Front<'a, const WIDE: bool> {
    walks: &'a mut Walks<WIDE>,
    next: [u32; TOGETHER],
}

/// Takes all walks to their ends.
///
/// # Safety
/// The view is of a sound image: root, palette, and every word that cells lead to lie in its words.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
pub(super) unsafe fn walk<const WIDE: bool>(view: &View<'_>, walks: &mut Walks<WIDE>, out: &mut [u32]) {
    let count = walks.count.min(out.len());
    let root_bits = u32::from(view.layout.root_bits);
    let mut front = Front { walks, next: [0; TOGETHER] };
    // A mask made from itself would have every gather wait for the one before.
    let all = black_box(u8::MAX);
    let words = view.words.as_ptr();
    let groups = count.div_ceil(8) * 8;
    for group in (0..groups).step_by(8) {
        // SAFETY: eight keys are read in the array; as many bits as choose a root cell choose one that the image has.
        unsafe {
            let high = _mm512_loadu_si512(front.walks.high.as_ptr().add(group).cast());
            let root = _mm512_srl_epi64(high, _mm_cvtsi32_si128(64 - root_bits as i32));
            let cell = _mm512_mask_i64gather_epi32::<4>(
                _mm256_setzero_si256(),
                all,
                root,
                words.add(view.layout.root).cast(),
            );
            let eaten = _mm512_set1_epi64(i64::from(root_bits));
            arrive(view, &mut front, group, cell, eaten);
        }
    }
    for _ in 0..STEPS {
        // SAFETY: as the caller promises.
        if !unsafe { step(view, &mut front, groups) } {
            break;
        }
    }
    finish(view, front.walks, &mut out[..count]);
}

/// Notes where eight addresses have come to by eating some bits, and asks for what they read next.
///
/// # Safety
/// `group` is a multiple of eight below [`TOGETHER`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
#[inline]
unsafe fn arrive<const WIDE: bool>(
    view: &View<'_>,
    front: &mut Front<'_, WIDE>,
    group: usize,
    cell: __m256i,
    eaten: __m512i,
) {
    let whole = _mm512_set1_epi64(64);
    // SAFETY: eight places from `group` on lie in each array.
    let high = unsafe {
        let high = _mm512_loadu_si512(front.walks.high.as_ptr().add(group).cast());
        let mut high = _mm512_sllv_epi64(high, eaten);
        if WIDE {
            let low = _mm512_loadu_si512(front.walks.low.as_ptr().add(group).cast());
            high = _mm512_or_si512(high, _mm512_srlv_epi64(low, _mm512_sub_epi64(whole, eaten)));
            _mm512_storeu_si512(
                front.walks.low.as_mut_ptr().add(group).cast(),
                _mm512_sllv_epi64(low, eaten),
            );
        }
        high
    };
    let bits = _mm512_cvtepi64_epi32(_mm512_srlv_epi64(high, _mm512_sub_epi64(whole, strides(cell))));
    let granule = _mm256_and_si256(cell, _mm256_set1_epi32((1 << 26) - 1));
    let node = _mm256_slli_epi32::<4>(granule);
    let next = _mm256_mask_add_epi32(node, dense(cell), node, bits);
    let inner = _mm256_test_epi32_mask(cell, _mm256_set1_epi32(3 << 30));
    let next = _mm256_maskz_mov_epi32(inner, next);
    // SAFETY: eight places from `group` on lie in each array.
    unsafe {
        _mm512_storeu_si512(front.walks.high.as_mut_ptr().add(group).cast(), high);
        _mm256_storeu_si256(front.walks.cell.as_mut_ptr().add(group).cast(), cell);
        _mm256_storeu_si256(front.next.as_mut_ptr().add(group).cast(), next);
    }
    if inner != 0 {
        front.next[group..group + 8].iter().for_each(|next| prefetch(view.words, *next as usize));
    }
}

/// The bits that the dense nodes of eight cells eat.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn strides(cell: __m256i) -> __m512i {
    let quarter = _mm256_and_si256(_mm256_srli_epi32::<26>(cell), _mm256_set1_epi32(3));
    let stride = _mm256_slli_epi32::<2>(_mm256_add_epi32(quarter, _mm256_set1_epi32(1)));
    _mm512_cvtepu32_epi64(stride)
}

/// Which of eight cells lead to dense nodes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn dense(cell: __m256i) -> __mmask8 {
    _mm256_movepi32_mask(cell)
}

/// Takes one step with every address that has not arrived; whether there was any.
///
/// # Safety
/// As for [`walk`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
unsafe fn step<const WIDE: bool>(view: &View<'_>, front: &mut Front<'_, WIDE>, groups: usize) -> bool {
    let words = view.words.as_ptr();
    let mut lines = [0u32; TOGETHER + 8];
    let mut line_count = 0;
    let mut moved = false;
    let ascending = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for group in (0..groups).step_by(8) {
        // SAFETY: eight places from `group` on lie in each array; fewer than TOGETHER lines were listed before these eight.
        // A gathered word is one that a cell of the image leads to.
        unsafe {
            let cell = _mm256_loadu_si256(front.walks.cell.as_ptr().add(group).cast());
            let dense = dense(cell);
            let inner = _mm256_test_epi32_mask(cell, _mm256_set1_epi32(3 << 30));
            if inner == 0 {
                continue;
            }
            moved = true;
            let line = inner & !dense;
            let walks = _mm256_add_epi32(ascending, _mm256_set1_epi32(group as i32));
            let listed = _mm256_maskz_compress_epi32(line, walks);
            _mm256_storeu_si256(lines.as_mut_ptr().add(line_count).cast(), listed);
            line_count += line.count_ones() as usize;
            if dense != 0 {
                let next = _mm256_loadu_si256(front.next.as_ptr().add(group).cast());
                let found = _mm256_mmask_i32gather_epi32::<4>(cell, dense, next, words.cast());
                let eaten = _mm512_maskz_mov_epi64(dense, strides(cell));
                arrive(view, front, group, found, eaten);
            }
        }
    }
    for walk in &lines[..line_count] {
        let walk = *walk as usize & (TOGETHER - 1);
        let at = front.next[walk] as usize;
        let high = front.walks.high[walk];
        // SAFETY: a cell of the image led to the line at this word, and a line's rank is 1 to 10.
        let cell = unsafe {
            let starts = _mm256_loadu_si256(words.add(at).cast());
            let begun = _mm256_cmple_epu16_mask(starts, _mm256_set1_epi16((high >> 48) as i16));
            let rank = (u32::from(begun) & ((1 << LINE_CELLS) - 1)).count_ones() as usize;
            (*words.add(at + LINE_FIRST - 1 + rank)).load(std::sync::atomic::Ordering::Relaxed)
        };
        front.walks.cell[walk] = cell;
        if is_line(cell) || is_dense(cell) {
            let mut high = high << LINE_BITS;
            if WIDE {
                high |= front.walks.low[walk] >> (64 - LINE_BITS);
                front.walks.low[walk] <<= LINE_BITS;
            }
            let next = view.next(cell, high);
            front.walks.high[walk] = high;
            front.next[walk] = next as u32;
            prefetch(view.words, next);
        }
    }
    moved
}

/// Writes the values.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi2,popcnt")]
fn finish<const WIDE: bool>(view: &View<'_>, walks: &Walks<WIDE>, out: &mut [u32]) {
    if view.layout.indexed {
        out.iter_mut().zip(&walks.cell).for_each(|(out, cell)| *out = view.value(*cell));
    } else {
        let value = |cell: u32| if cell == NO_CODE { NONE } else { cell };
        out.iter_mut().zip(&walks.cell).for_each(|(out, cell)| *out = value(*cell));
    }
}

const _: () = assert!(GRANULE == 16 && LINE_CELLS <= 16);
