//! Lookups with vectors of 512 bits: packs a key with a permutation for each eight of its words and
//! compares all slots of a block at once.
//!
//! Many keys are looked up in stages of [`GROUP`], each stage a loop whose rounds do not wait for one
//! another, so that the processor overlaps their waits for memory and guesses few branches wrong. The answers
//! are those of the portable lookups.

use super::NONE;
use super::encode::{LINE_ELEMENTS, Layout, MOST_FLAGS};
use super::image::{CHECKED, Line, MORE, NO_RULE, NODE, RulesImage};
use std::arch::x86_64::*;

/// Keys that go through the stages together.
const GROUP: usize = 64;
/// Words of a row of the key, a vector.
const ROW_WORDS: usize = 8;
/// The most words of a key: as many as a packed key has elements.
const MOST_KEY_WORDS: usize = 32;

/// What of an image decides how its keys are packed, in the form that the vector unit wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// For each element of the packed key, which piece of 16 bits of its row of the key it is.
    source: Line,
    /// The elements that come from each row of the key.
    rows: [u32; MOST_KEY_WORDS / ROW_WORDS],
    /// Which bits of the piece stay.
    keep: Line,
    /// The words of the key that are flags, and their element.
    flag_words: u32,
    flags_at: usize,
    /// The elements of a line that are compared as ranges: all but the flags of each slot.
    ranges: u32,
    key_words: usize,
    stride: usize,
}

impl Packing {
    /// How to look up such keys on this CPU; `None` if only the portable lookup can.
    pub(super) fn of(layout: &Layout) -> Option<Packing> {
        let able = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        if !able || layout.key_words > MOST_KEY_WORDS || layout.stride > LINE_ELEMENTS {
            return None;
        }
        let (mut source, mut keep) = (Line([0; LINE_ELEMENTS]), Line([0; LINE_ELEMENTS]));
        let mut rows = [0; MOST_KEY_WORDS / ROW_WORDS];
        for (element, &(word, shift, bits)) in layout.sources.iter().enumerate() {
            source.0[element] = (4 * (word % ROW_WORDS)) as u16 + (shift / 16) as u16;
            rows[word / ROW_WORDS] |= 1 << element;
            keep.0[element] = bits;
        }
        let flag_words = layout.flags.iter().fold(0, |words, &word| words | 1 << word);
        let flags_at = layout.sources.len();
        let (key_words, stride) = (layout.key_words, layout.stride);
        let ranges = match layout.flags_at() {
            Some(at) => (at..LINE_ELEMENTS).step_by(stride).fold(u32::MAX, |ranges, at| ranges & !(1 << at)),
            None => u32::MAX,
        };
        Some(Packing { source, rows, keep, flag_words, flags_at, ranges, key_words, stride })
    }

    /// The number of the first rule that fits `key`, or [`NO_RULE`].
    #[inline]
    pub(super) fn find(&self, image: &RulesImage, key: &[u64]) -> u32 {
        assert_eq!(key.len(), self.key_words, "a key has one word a column, two for a wide column");
        // SAFETY: a `Packing` is made only on a CPU that has the instructions for which the functions are
        // compiled.
        unsafe {
            match self.stride {
                4 => find::<4, 1>(self, image, key),
                8 => find::<8, 2>(self, image, key),
                16 => find::<16, 4>(self, image, key),
                _ => find::<32, 8>(self, image, key),
            }
        }
    }

    /// The values of the first rules that fit each of `keys`, or [`NONE`], whose bits are all set.
    pub(super) fn find_bulk(&self, image: &RulesImage, keys: &[u64], values: &mut [u32]) {
        let alone = image.roots.len() == 1;
        // SAFETY: as above.
        unsafe {
            match (self.stride, alone) {
                (4, true) => find_bulk::<4, 1, true>(self, image, keys, values),
                (4, false) => find_bulk::<4, 1, false>(self, image, keys, values),
                (8, true) => find_bulk::<8, 2, true>(self, image, keys, values),
                (8, false) => find_bulk::<8, 2, false>(self, image, keys, values),
                (16, true) => find_bulk::<16, 4, true>(self, image, keys, values),
                (16, false) => find_bulk::<16, 4, false>(self, image, keys, values),
                (_, true) => find_bulk::<32, 8, true>(self, image, keys, values),
                (_, false) => find_bulk::<32, 8, false>(self, image, keys, values),
            }
        }
    }
}

/// A packed key of `W` words; as many times as it fits, it fills a vector.
type Packed<const W: usize> = [u64; W];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn pack<const W: usize>(packing: &Packing, key: &[u64]) -> Packed<W> {
    debug_assert!(key.len() == packing.key_words && key.len() <= MOST_KEY_WORDS);
    // SAFETY: a line is as long as a vector.
    let (source, keep) = unsafe {
        (
            _mm512_load_si512((&raw const packing.source).cast()),
            _mm512_load_si512((&raw const packing.keep).cast()),
        )
    };
    let (first, behind) = key.split_at(key.len().min(ROW_WORDS));
    let (row, lowest) = (load(first), _mm512_set1_epi64(1));
    let mut picked = _mm512_permutexvar_epi16(source, row);
    let mut set = u32::from(_mm512_test_epi64_mask(row, lowest));
    for (part, words) in (1..).zip(behind.chunks(ROW_WORDS)) {
        let row = load(words);
        picked = _mm512_mask_permutexvar_epi16(picked, packing.rows[part], source, row);
        set |= u32::from(_mm512_test_epi64_mask(row, lowest)) << (ROW_WORDS * part);
    }
    let mut packed = _mm512_and_si512(picked, keep);
    if packing.flag_words != 0 {
        let set = _pext_u32(set, packing.flag_words);
        let unset = set ^ ((1 << packing.flag_words.count_ones()) - 1);
        packed = _mm512_mask_set1_epi16(packed, 1 << packing.flags_at, (set | unset << MOST_FLAGS) as i16);
    }
    let mut words = [0; W];
    // SAFETY: a packed key of `W` words has room for as many as are stored.
    unsafe {
        match W {
            1 => words[0] = _mm_cvtsi128_si64(_mm512_castsi512_si128(packed)) as u64,
            2 => _mm_storeu_si128(words.as_mut_ptr().cast(), _mm512_castsi512_si128(packed)),
            4 => _mm256_storeu_si256(words.as_mut_ptr().cast(), _mm512_castsi512_si256(packed)),
            _ => _mm512_mask_storeu_epi64(words.as_mut_ptr().cast(), ((1u32 << W) - 1) as u8, packed),
        }
    }
    words
}

/// Up to [`ROW_WORDS`] words of a key as a vector, with zeros behind.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn load(words: &[u64]) -> __m512i {
    debug_assert!(words.len() <= ROW_WORDS);
    let there = ((1u32 << words.len()) - 1) as u8;
    // SAFETY: the mask keeps the load within `words`.
    unsafe { _mm512_maskz_loadu_epi64(there, words.as_ptr().cast()) }
}

/// The child of `node` that `packed` belongs to.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn child<const W: usize>(image: &RulesImage, entry: u32, packed: &Packed<W>) -> u32 {
    let node = &image.nodes[(entry & !NODE) as usize * (W + 1).next_multiple_of(2)..][..W + 1];
    let mut place = node[W];
    let mut shift = 0;
    for word in 0..W {
        place += _pext_u64(packed[word], node[word]) << shift;
        shift += node[word].count_ones();
    }
    image.children[place as usize]
}

/// The id in the first slot of `block` that fits, and that in the first slot of all. With
/// `LIKELY`, a hit is expected; otherwise nothing is, and what a wrong guess would cost is saved by masks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn compare<const E: usize, const W: usize, const LIKELY: bool>(
    image: &RulesImage,
    block: u32,
    packed: &Packed<W>,
    ranges: u32,
) -> (u32, u32) {
    let slots = LINE_ELEMENTS / E;
    let lines = &image.blocks[2 * block as usize..][..2];
    let ids = &image.ids[slots * block as usize..][..slots];
    // SAFETY: the packed key has as many words as are loaded, a line is as long as a vector.
    let (key, low, span) = unsafe {
        let words: *const i64 = packed.as_ptr().cast();
        let key = match W {
            1 => _mm512_set1_epi64(*words),
            2 => _mm512_broadcast_i64x2(_mm_loadu_si128(words.cast())),
            4 => _mm512_broadcast_i64x4(_mm256_loadu_si256(words.cast())),
            _ => _mm512_maskz_loadu_epi64(((1u32 << W) - 1) as u8, words),
        };
        let line = lines.as_ptr();
        (key, _mm512_load_si512(line.cast()), _mm512_load_si512(line.add(1).cast()))
    };
    // Of the flags, those that are missing.
    let above = _mm512_mask_sub_epi16(_mm512_andnot_si512(key, low), ranges, key, low);
    let mut fits = u32::from(_mm512_cmpeq_epi64_mask(_mm512_min_epu16(above, span), above));
    if E >= 8 {
        fits &= fits >> 1;
    }
    if E >= 16 {
        fits &= fits >> 2;
    }
    if E >= 32 {
        fits &= fits >> 4;
    }
    fits &= match E {
        4 => 0xff,
        8 => 0x55,
        16 => 0x11,
        _ => 0x01,
    };
    let slot = (fits.trailing_zeros() as usize / (E / 4)) % slots;
    if LIKELY {
        return (if fits == 0 { NO_RULE } else { ids[slot] & !MORE }, ids[0]);
    }
    let missed = u32::from(fits == 0).wrapping_neg();
    ((ids[slot] | missed) & !MORE, ids[0])
}

/// Whether an id that a comparison answers names no rule.
#[inline]
fn misses(id: u32) -> bool {
    id & NO_RULE == NO_RULE
}

/// The words of the rule that `id` names; of any if it names none.
#[inline]
fn rule(image: &RulesImage, id: u32) -> &[u32; 4] {
    const NO_WORDS: &[u32; 4] = &[0; 4];
    let place = if misses(id) { 0 } else { (id & NO_RULE) as usize };
    image.rules.get(place).unwrap_or(NO_WORDS)
}

/// What two trees answer together.
#[inline]
fn earlier(image: &RulesImage, one: u32, other: u32) -> u32 {
    if image.ranked {
        return one.min(other); // no rule is the largest number
    }
    let order = |id: u32| {
        let rule = rule(image, id);
        u64::from(rule[1]) << 32 | u64::from(rule[0])
    };
    let takes = !misses(other) & (misses(one) | (order(other) < order(one)));
    one ^ ((one ^ other) & u32::from(takes).wrapping_neg())
}

/// Whether the leaf goes on behind a block that begins with `first`, with rules that could come before
/// `best`.
#[inline]
fn goes_on(image: &RulesImage, first: u32, best: u32) -> bool {
    (first & MORE != 0) & (!image.ranked | (first & NO_RULE < best))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn find<const E: usize, const W: usize>(packing: &Packing, image: &RulesImage, key: &[u64]) -> u32 {
    let packed = pack::<W>(packing, key);
    let mut best = NO_RULE;
    for (tree, &root) in image.roots.iter().enumerate() {
        let mut entry = root;
        while entry & NODE != 0 {
            entry = child(image, entry, &packed);
        }
        let mut block = entry;
        let id = loop {
            let (id, first) = compare::<E, W, true>(image, block, &packed, packing.ranges);
            if id & CHECKED != 0 && !misses(id) {
                break image.scan(entry, &packed);
            }
            if !misses(id) || !goes_on(image, first, best) {
                break id & NO_RULE;
            }
            block += 1;
        };
        best = if tree == 0 { id } else { earlier(image, best, id) };
    }
    best
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn find_bulk<const E: usize, const W: usize, const ALONE: bool>(
    packing: &Packing,
    image: &RulesImage,
    keys: &[u64],
    values: &mut [u32],
) {
    let ranges = packing.ranges;
    let mut packed = [[0u64; W]; GROUP];
    let mut entries = [0u32; GROUP];
    let mut blocks = [0u32; GROUP];
    let mut waiting = [0u8; GROUP];
    for (keys, values) in keys.chunks(GROUP * packing.key_words).zip(values.chunks_mut(GROUP)) {
        let count = values.len();
        for (key, packed) in keys.chunks_exact(packing.key_words).zip(&mut packed) {
            *packed = pack::<W>(packing, key);
        }
        let mut best = [NO_RULE; GROUP];
        for (tree, &root) in image.roots.iter().enumerate() {
            // Down to the leaves, a level at a time.
            let mut open = 0;
            if root & NODE == 0 {
                entries[..count].fill(root);
            } else {
                for at in 0..count {
                    let entry = child(image, root, &packed[at]);
                    entries[at] = entry;
                    waiting[open] = at as u8;
                    open += usize::from(entry & NODE != 0);
                }
            }
            while open > 0 {
                let level = std::mem::take(&mut open);
                for place in 0..level {
                    let at = usize::from(waiting[place]) % GROUP;
                    let entry = child(image, entries[at], &packed[at]);
                    entries[at] = entry;
                    waiting[open] = at as u8;
                    open += usize::from(entry & NODE != 0);
                }
            }
            // Through the leaves, a block at a time.
            blocks[..count].copy_from_slice(&entries[..count]);
            let mut found = [NO_RULE; GROUP];
            for at in 0..count {
                let (id, first) = compare::<E, W, ALONE>(image, blocks[at], &packed[at], ranges);
                found[at] = id;
                waiting[open] = at as u8;
                open += usize::from(
                    misses(id) & if ALONE { first & MORE != 0 } else { goes_on(image, first, best[at]) },
                );
            }
            while open > 0 {
                let level = std::mem::take(&mut open);
                for place in 0..level {
                    let at = usize::from(waiting[place]) % GROUP;
                    blocks[at] += 1;
                    let (id, first) = compare::<E, W, ALONE>(image, blocks[at], &packed[at], ranges);
                    found[at] = id;
                    waiting[open] = at as u8;
                    open += usize::from(
                        misses(id) & if ALONE { first & MORE != 0 } else { goes_on(image, first, best[at]) },
                    );
                }
            }
            for at in 0..count {
                let mut id = found[at];
                if id & CHECKED != 0 && !misses(id) {
                    id = image.scan(entries[at], &packed[at]);
                }
                found[at] = id & NO_RULE;
            }
            if tree == 0 {
                best = found;
            } else {
                for (best, &id) in best[..count].iter_mut().zip(&found) {
                    *best = earlier(image, *best, id);
                }
            }
        }
        for (value, &id) in values.iter_mut().zip(&best) {
            *value = if ALONE {
                image.rules.get(id as usize).map_or(NONE, |rule| rule[2])
            } else {
                rule(image, id)[2] | u32::from(misses(id)).wrapping_neg()
            };
        }
        if image.dead > 0 {
            for ((key, value), &id) in keys.chunks_exact(packing.key_words).zip(values).zip(&best) {
                if image.is_dead(id) {
                    *value = image.find_value(key);
                }
            }
        }
    }
}
