//! The first filter: finds the places of a packet where a window may begin, and where runs of one byte begin.
//!
//! This is the portable form; `lanes` and `lanes_avx2` have the forms for vector units. Each may let too
//! much pass, and they need not agree in what they let pass too much; none may lose a place where a window or
//! a run begins.

use super::image::{LONG, POSITIONS, PatternsImage, RUNS, SAME, SHORT_BUCKETS, WINDOW, hash, u32_in};

/// Places of a packet looked at in one go; a place within them fits 16 bits.
pub(super) const SEGMENT: usize = 4096;

/// A form of the first filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sieve {
    /// One place after the other, on any machine.
    Portable,
    /// 32 places at a time, with AVX2.
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    Avx2,
    /// 64 places at a time, with AVX-512.
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    Avx512,
}

impl Sieve {
    /// The forms that this machine has, the fastest first.
    pub(super) fn of_this_machine() -> Vec<Sieve> {
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        let vector = [
            super::lanes::present().then_some(Sieve::Avx512),
            super::lanes_avx2::present().then_some(Sieve::Avx2),
        ];
        #[cfg(not(all(feature = "fastest", target_arch = "x86_64")))]
        let vector = [None; 0];
        vector.into_iter().flatten().chain([Sieve::Portable]).collect()
    }

    /// The first of them.
    pub(super) fn fastest() -> Sieve {
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        if super::lanes::present() {
            return Sieve::Avx512;
        } else if super::lanes_avx2::present() {
            return Sieve::Avx2;
        }
        Sieve::Portable
    }
}

/// The places that passed, counted from the beginning of the segment, ascending.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub(super) long: Places,
    /// Those of windows of 1, 2 and 3 bytes.
    pub(super) short: [Places; 3],
    pub(super) runs: Places,
}

/// A list of places with room for a whole segment and one vector store behind it.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) at: Box<[u16; SEGMENT + 64]>,
    pub(super) count: usize,
}

impl Places {
    fn new() -> Places {
        Places { at: Box::new([0; SEGMENT + 64]), count: 0 }
    }

    pub(super) fn list(&self) -> &[u16] {
        &self.at[..self.count]
    }

    /// Appends the places, of not more than a segment, that pass.
    #[inline(always)]
    fn extend(&mut self, places: impl Iterator<Item = (u16, bool)>) {
        // The count is kept out of memory, where each step would wait for the last one's store.
        let mut count = self.count;
        for (place, passes) in places {
            self.at[count] = place;
            count += usize::from(passes);
        }
        self.count = count;
    }
}

impl Passed {
    pub(super) fn new() -> Passed {
        Passed {
            long: Places::new(),
            short: [Places::new(), Places::new(), Places::new()],
            runs: Places::new(),
        }
    }

    /// Whether no place passed.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        let short: usize = self.short.iter().map(|short| short.count).sum();
        self.long.count + self.runs.count + short == 0
    }

    pub(super) fn clear(&mut self) {
        (self.long.count, self.runs.count) = (0, 0);
        self.short.iter_mut().for_each(|short| short.count = 0);
    }
}

impl PatternsImage<'_> {
    /// Fills `passed` with the places of `from..to`, at most [`SEGMENT`] of them.
    pub(super) fn sift(&self, haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
        passed.clear();
        match self.sieve {
            #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
            Sieve::Avx512 => return super::lanes::sift(self, haystack, from, to, passed),
            #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
            Sieve::Avx2 => return super::lanes_avx2::sift(self, haystack, from, to, passed),
            Sieve::Portable => {}
        }
        if self.counts.flags & LONG != 0 {
            self.sift_long(haystack, from, to, passed);
        }
        if self.counts.short_groups > 0 {
            self.sift_short(haystack, from, to, passed);
        }
        if self.counts.flags & RUNS != 0 {
            sift_runs(haystack, from, to, passed);
        }
    }

    /// Whether the bitmap has the window; of those it lacks none is in the table.
    #[inline(always)]
    pub(super) fn in_bitmap(&self, hash: u32) -> bool {
        let bit = hash >> (32 - self.counts.bitmap_log2);
        self.bitmap[bit as usize >> 3] >> (bit & 7) & 1 == 1
    }

    fn sift_long(&self, haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
        let end = haystack.len().min(to + WINDOW - 1);
        let keep_same = self.counts.flags & SAME != 0;
        passed.long.extend((0..).zip(haystack[from.min(end)..end].windows(WINDOW)).map(|(place, window)| {
            let window = u32_in(window, 0);
            let same = window == window.rotate_left(8);
            (
                place,
                self.in_bitmap(hash(window, WINDOW))
                    & (!same | keep_same & (window as u8).is_ascii_alphabetic()),
            )
        }));
    }

    fn sift_short(&self, haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
        let groups = &self.shuffles[self.counts.long_groups * POSITIONS..];
        let mask = |position: usize, byte: Option<&u8>| groups[position][usize::from(*byte.unwrap_or(&0))];
        for class in self.short_classes() {
            let of_class = short_mask(class);
            passed.short[class - 1].extend((0..).zip(from..to).map(|(place, at)| {
                let buckets =
                    mask(0, haystack.get(at)) & mask(1, haystack.get(at + 1)) & mask(2, haystack.get(at + 2));
                (place, buckets & of_class != 0)
            }));
        }
    }

    /// The classes below [`WINDOW`] that the table has strings of.
    pub(super) fn short_classes(&self) -> impl Iterator<Item = usize> + use<> {
        let flags = self.counts.flags;
        (1..WINDOW).filter(move |class| flags >> (class - 1) & 1 == 1)
    }
}

/// The bits of the buckets of a short class.
pub(super) fn short_mask(class: usize) -> u8 {
    SHORT_BUCKETS[class - 1].clone().map(|bucket| 1 << bucket).sum()
}

fn sift_runs(haystack: &[u8], from: usize, to: usize, passed: &mut Passed) {
    let end = haystack.len().min(to + WINDOW - 1);
    let mut last = from.checked_sub(1).map(|before| haystack[before]);
    passed.runs.extend((0..).zip(haystack[from.min(end)..end].windows(WINDOW)).map(|(place, window)| {
        let window = u32_in(window, 0);
        let begins = window == window.rotate_left(8) && last != Some(window as u8);
        last = Some(window as u8);
        (place, begins)
    }));
}
