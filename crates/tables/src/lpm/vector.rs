//! Vector instructions that safe code cannot use: gathers of many cells at once.
//!
//! Cells are read as whole aligned words, each once, as the atomic loads elsewhere do; a processor that
//! gathers reads every lane by itself.

use super::bulk::{Method, Walks};
use super::layout::GRANULE;
use super::lookup::{LINE_CELLS, LINE_FIRST, View};

/// Whether this machine has what the method needs.
pub(super) fn has(method: Method) -> bool {
    match method {
        Method::Portable => true,
        #[cfg(target_arch = "x86_64")]
        Method::Avx2 => {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
        }
        #[cfg(target_arch = "x86_64")]
        Method::Avx512 => {
            has(Method::Avx2)
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
        }
        #[cfg(not(target_arch = "x86_64"))]
        Method::Avx2 | Method::Avx512 => false,
    }
}

/// Looks up addresses by their direct cells, by a method that the machine has.
pub(super) fn direct(view: &View<'_>, method: Method, addresses: &[u32], out: &mut [u32]) {
    let portable = |addresses: &[u32], out: &mut [u32]| {
        out.iter_mut().zip(addresses).for_each(|(out, address)| *out = view.find32(*address));
    };
    #[cfg(target_arch = "x86_64")]
    if method != Method::Portable && has(method) {
        let lanes = if method == Method::Avx512 { 16 } else { 8 };
        let vector = addresses.len().min(out.len()) / lanes * lanes;
        let (first, rest) = addresses.split_at(vector);
        let (first_out, rest_out) = out.split_at_mut(vector);
        // SAFETY: the machine has the instructions, and views are of images that were made here or checked.
        unsafe {
            match (method, view.layout.cell_bits) {
                (Method::Avx512, 8) => x86::direct512::<2>(view, first, first_out),
                (Method::Avx512, 16) => x86::direct512::<1>(view, first, first_out),
                (Method::Avx512, _) => x86::direct512::<0>(view, first, first_out),
                (_, 8) => x86::direct256::<2>(view, first, first_out),
                (_, 16) => x86::direct256::<1>(view, first, first_out),
                (_, _) => x86::direct256::<0>(view, first, first_out),
            }
        }
        return portable(rest, rest_out);
    }
    let _ = method;
    portable(addresses, out);
}

/// Addresses of a batch.
#[derive(Clone, Copy)]
pub(super) enum Keys<'a> {
    /// Of at most 32 bits.
    Narrow(&'a [u32]),
    /// Of any width.
    Wide(&'a [u128]),
}

/// Takes a batch of addresses through the tree with AVX-512; false, and nothing done, where that is not the
/// method.
pub(super) fn walk512(view: &View<'_>, method: Method, keys: Keys<'_>, out: &mut [u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if method == Method::Avx512 && has(method) && view.layout.root_bits == super::walk512::ROOT_BITS {
        // SAFETY: the machine has the instructions, and views are of images that were made here or checked.
        unsafe { super::walk512::walk(view, keys, out) };
        return true;
    }
    let _ = (view, method, keys, out);
    false
}

/// Takes all walks to their ends, by a method that the machine has.
pub(super) fn walk<const WIDE: bool>(
    view: &View<'_>,
    method: Method,
    walks: &mut Walks<WIDE>,
    out: &mut [u32],
) {
    #[cfg(target_arch = "x86_64")]
    if method != Method::Portable && has(method) {
        // SAFETY: the machine has the instructions, which AVX-512 includes.
        unsafe { x86::walk256(view, walks, out) };
        return;
    }
    let _ = method;
    walks.run(view, out, |view, granule, bits| view.line(granule, bits));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::sync::atomic::Ordering;

    use super::super::bulk::TOGETHER;
    use super::{GRANULE, LINE_CELLS, LINE_FIRST, View, Walks};

    /// Looks up a multiple of sixteen addresses, at most [`TOGETHER`], in cells of which a word holds
    /// 2^`LOG`.
    ///
    /// Cells are fetched one by one, which costs the processor less than to gather them: about a tenth of the
    /// time where they lie in its caches.
    ///
    /// # Safety
    /// All direct cells and the whole palette lie in the view's words.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2,popcnt")]
    pub(super) unsafe fn direct512<const LOG: u32>(view: &View<'_>, addresses: &[u32], out: &mut [u32]) {
        let layout = view.layout;
        let cells = view.words[layout.direct..].as_ptr();
        let palette = view.words[layout.palette..].as_ptr();
        let mask = _mm512_set1_epi32(layout.cell_mask() as i32);
        let none = _mm512_set1_epi32(layout.cell_none() as i32);
        let escape = _mm512_set1_epi32(layout.escape() as i32);
        let within = _mm512_set1_epi32((1 << LOG) - 1);
        let bits_shift = _mm512_set1_epi32(5 - LOG as i32);
        let mut escaped = [0u16; TOGETHER / 16];
        let rounds = addresses.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<16>().0).zip(&mut escaped);
        for ((addresses, out), escaped) in rounds {
            // SAFETY: sixteen addresses are read and sixteen answers written, where the arrays are. The words
            // are direct cells, which a 24-bit number cannot miss, and places of the palette, where every
            // code has one.
            unsafe {
                let address = _mm512_loadu_si512(addresses.as_ptr().cast());
                let mut words = [0; 16];
                for (word, address) in words.iter_mut().zip(addresses) {
                    *word = (*cells.add((address >> (8 + LOG)) as usize)).load(Ordering::Relaxed);
                }
                let held = _mm512_loadu_si512(words.as_ptr().cast());
                let lane = _mm512_and_si512(_mm512_srli_epi32::<8>(address), within);
                let code =
                    _mm512_and_si512(_mm512_srlv_epi32(held, _mm512_sllv_epi32(lane, bits_shift)), mask);
                *escaped = _mm512_cmpeq_epi32_mask(code, escape);
                let found = _mm512_cmplt_epu32_mask(code, escape);
                let absent = _mm512_cmpeq_epi32_mask(code, none);
                let value = if layout.indexed {
                    _mm512_mask_i32gather_epi32::<4>(code, found, code, palette.cast())
                } else {
                    code
                };
                let value = _mm512_mask_mov_epi32(value, absent, _mm512_set1_epi32(-1));
                _mm512_storeu_si512(out.as_mut_ptr().cast(), value);
            }
        }
        for (round, escaped) in escaped.into_iter().enumerate() {
            let mut left = escaped;
            while left != 0 {
                let index = round * 16 + left.trailing_zeros() as usize;
                out[index] = view.escaped(addresses[index]);
                left &= left - 1;
            }
        }
    }

    /// Looks up a multiple of eight addresses, at most [`TOGETHER`], in cells of which a word holds 2^`LOG`.
    ///
    /// # Safety
    /// All direct cells and the whole palette lie in the view's words.
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(super) unsafe fn direct256<const LOG: u32>(view: &View<'_>, addresses: &[u32], out: &mut [u32]) {
        let layout = view.layout;
        let cells = view.words[layout.direct..].as_ptr();
        let palette = view.words[layout.palette..].as_ptr();
        let mask = _mm256_set1_epi32(layout.cell_mask() as i32);
        let none = _mm256_set1_epi32(layout.cell_none() as i32);
        let escape = _mm256_set1_epi32(layout.escape() as i32);
        let word_shift = _mm256_set1_epi32(8 + LOG as i32);
        let within = _mm256_set1_epi32((1 << LOG) - 1);
        let bits_shift = _mm256_set1_epi32(5 - LOG as i32);
        let mut escaped = [0u8; TOGETHER / 8];
        let rounds = addresses.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<8>().0).zip(&mut escaped);
        for ((addresses, out), escaped) in rounds {
            // SAFETY: eight addresses are read and eight answers written, where the arrays are. The gathered
            // words are direct cells, which a 24-bit number cannot miss, and places of the palette, where
            // every code has one.
            unsafe {
                let address = _mm256_loadu_si256(addresses.as_ptr().cast());
                let word = _mm256_srlv_epi32(address, word_shift);
                let held = _mm256_i32gather_epi32::<4>(cells.cast(), word);
                let lane = _mm256_and_si256(_mm256_srli_epi32::<8>(address), within);
                let code =
                    _mm256_and_si256(_mm256_srlv_epi32(held, _mm256_sllv_epi32(lane, bits_shift)), mask);
                let sent = _mm256_cmpeq_epi32(code, escape);
                let absent = _mm256_cmpeq_epi32(code, none);
                *escaped = _mm256_movemask_ps(_mm256_castsi256_ps(sent)) as u8;
                let value = if layout.indexed {
                    let found = _mm256_xor_si256(_mm256_or_si256(sent, absent), _mm256_set1_epi32(-1));
                    _mm256_mask_i32gather_epi32::<4>(code, palette.cast(), code, found)
                } else {
                    code
                };
                _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_or_si256(value, absent));
            }
        }
        for (round, escaped) in escaped.into_iter().enumerate() {
            let mut left = escaped;
            while left != 0 {
                let index = round * 8 + left.trailing_zeros() as usize;
                out[index] = view.escaped(addresses[index]);
                left &= left - 1;
            }
        }
    }

    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(super) fn walk256<const WIDE: bool>(view: &View<'_>, walks: &mut Walks<WIDE>, out: &mut [u32]) {
        walks.run(view, out, |view, granule, bits| {
            let at = granule as usize * GRANULE;
            let Some(line) = view.words.get(at..at + GRANULE) else { return 0 };
            // SAFETY: the half of the line that is read lies in the slice.
            let starts = unsafe { _mm256_loadu_si256(line.as_ptr().cast()) };
            let key = _mm256_set1_epi16(bits as i16);
            let begun = _mm256_cmpeq_epi16(_mm256_max_epu16(starts, key), key);
            let begun = _mm256_movemask_epi8(begun) as u32 & ((1 << (LINE_CELLS * 2)) - 1);
            view.word(at + LINE_FIRST - 1 + begun.count_ones() as usize / 2)
        });
    }
}
