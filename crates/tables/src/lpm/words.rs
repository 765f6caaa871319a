//! The memory of an image: 32-bit words that one thread writes and many threads read, on large pages if the
//! system has them.
//!
//! The system gives the pages when they are first written, so room that a table may never need costs nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::reserved::untouched;
use memmap2::MmapRaw;

/// The size of a large page; a lookup in a table of 16 MiB otherwise waits for the page table as well.
const LARGE_PAGE: usize = 2 << 20;
/// The size of a usual page.
const PAGE: u64 = 4096;

/// Asks for the cache line of a word that will be read soon; any index will do.
#[inline(always)]
pub(super) fn prefetch(words: &[AtomicU32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can see and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}

/// Words, all zero at first, the first of them at the beginning of a large page.
pub(super) struct Words {
    memory: MmapRaw,
    skipped: usize,
    count: usize,
}

impl Words {
    /// Room for `count` words, or the number of bytes that could not be had.
    pub(super) fn new(count: usize) -> Result<Words, usize> {
        let bytes = count.saturating_mul(4);
        let large = bytes >= LARGE_PAGE;
        // Whole large pages, of which the first begins somewhere inside; memory that is smaller than one gets
        // none.
        let bytes = if large {
            bytes.saturating_add(LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE + LARGE_PAGE
        } else {
            bytes
        };
        let memory = untouched(bytes).map_err(|_| bytes)?;
        // Without large pages the table is slower and no less right.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = memory.advise(memmap2::Advice::HugePage);
        let memory = MmapRaw::from(memory);
        let skipped = if large { memory.as_ptr().align_offset(LARGE_PAGE) } else { 0 };
        let skipped = if skipped < LARGE_PAGE { skipped } else { 0 };
        Ok(Words { memory, skipped, count })
    }

    /// From a word on that nobody has written yet, gives usual pages: the system clears a large one in a
    /// hundred microseconds or more, for which a change would wait.
    pub(super) fn small_pages_from(&self, word: usize) {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let begin = self.skipped + (word * 4).next_multiple_of(LARGE_PAGE);
            if let Some(rest) = self.memory.len().checked_sub(begin) {
                // Where the system has no large pages it says that it cannot go without.
                let _ = self.memory.advise_range(memmap2::Advice::NoHugePage, begin, rest);
            }
        }
    }

    /// All of them.
    #[inline]
    pub(super) fn all(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is `count` words longer than `skipped`, which is a multiple of a word from its
        // page-aligned beginning, lives as long as `self`, was zeroed by the system and is only ever reached
        // as atomic words.
        unsafe { std::slice::from_raw_parts(self.memory.as_mut_ptr().add(self.skipped).cast(), self.count) }
    }

    /// Bytes that the system has given where the first `used` words have been written: pages, and large ones
    /// where there is room for one.
    pub(super) fn taken(&self, used: usize) -> u64 {
        taken(self.count as u64, used as u64)
    }

    pub(super) fn load(&self, index: usize) -> u32 {
        self.all()[index].load(Ordering::Relaxed)
    }

    /// Writes a word whose readers find, once they see it, all that was written before.
    pub(super) fn store(&self, index: usize, word: u32) {
        self.all()[index].store(word, Ordering::Release);
    }
}

/// As [`Words::taken`], of `count` words.
pub(super) fn taken(count: u64, used: u64) -> u64 {
    (used * 4).next_multiple_of(if count * 4 < LARGE_PAGE as u64 { PAGE } else { LARGE_PAGE as u64 })
}

#[cfg(test)]
mod tests {
    use super::{LARGE_PAGE, Words};

    #[test]
    fn words_begin_at_a_large_page_as_zero_and_keep_what_is_stored() {
        let words = Words::new(3 << 20).unwrap();
        assert_eq!(words.all().as_ptr() as usize % LARGE_PAGE, 0);
        assert_eq!(words.all().len(), 3 << 20);
        assert_eq!(words.load((3 << 20) - 1), 0);
        words.store((3 << 20) - 1, 7);
        assert_eq!(words.load((3 << 20) - 1), 7);
    }

    #[test]
    fn room_that_nobody_has_is_refused_with_its_size() {
        assert!(Words::new(usize::MAX / 8).is_err_and(|bytes| bytes > usize::MAX / 2));
    }
}
