//! Zeroed memory for slots, aligned to cache lines and, if it is large, to large pages; and the prefetch
//! instruction.
//!
//! The memory comes from the allocator's zeroing call, so a large array is handed out as pages that the
//! system clears when they are first touched: making a table of any size takes the same short time. Arrays of
//! 2 MiB and more begin at such a boundary, and the system is asked to use pages of that size for them, since
//! a lookup in an array of small pages misses the address cache too.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::slots::NoMemory;

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; 8]);

/// Bytes of a large page.
const LARGE: usize = 2 << 20;
/// Bytes of a small one, or less.
const SMALL: usize = 4096;

/// An array of lines.
pub(super) struct Lines {
    start: NonNull<Line>,
    count: usize,
    /// What was allocated; the array begins somewhere inside.
    allocated: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the array is owned and nothing else points to it, as with a boxed slice.
unsafe impl Send for Lines {}
// SAFETY: a shared array is only read.
unsafe impl Sync for Lines {}

impl Lines {
    /// Bytes that are allocated for so many lines.
    pub(super) fn allocated(count: u64) -> u64 {
        let bytes = count.max(1).saturating_mul(size_of::<Line>() as u64);
        bytes.saturating_add(if bytes >= LARGE as u64 { LARGE } else { align_of::<Line>() } as u64)
    }

    /// So many lines of zeros, at least one.
    pub(super) fn zeroed(count: usize) -> Result<Lines, NoMemory> {
        let count = count.max(1);
        let missing = NoMemory { bytes: count.saturating_mul(size_of::<Line>()) };
        let align = if missing.bytes >= LARGE { LARGE } else { align_of::<Line>() };
        // Alignment beyond the allocator's own would make it clear the memory at once, so the array is placed
        // inside more of it.
        let room = missing.bytes.checked_add(align).filter(|room| *room <= isize::MAX as usize);
        let Some(layout) = room.and_then(|room| Layout::from_size_align(room, 8).ok()) else {
            return Err(missing);
        };
        // SAFETY: the layout's size is not zero.
        let Some(allocated) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { return Err(missing) };
        let offset = allocated.align_offset(align);
        debug_assert!(offset < align);
        // SAFETY: `offset` is less than `align`, by which the allocation is larger than the lines.
        let start = unsafe { allocated.add(offset) };
        if align == LARGE {
            advise(start, missing.bytes);
        }
        Ok(Lines { start: start.cast(), count, allocated, layout })
    }

    /// The first line.
    #[inline(always)]
    pub(super) fn as_ptr(&self) -> *const Line {
        self.start.as_ptr()
    }

    /// The first line.
    #[inline(always)]
    pub(super) fn as_mut_ptr(&mut self) -> *mut Line {
        self.start.as_ptr()
    }

    /// All bytes.
    #[inline(always)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: so many bytes were allocated and are initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes()) }
    }

    /// All bytes.
    #[inline(always)]
    pub(super) fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`; the array is borrowed mutably, and any bytes are valid lines.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes()) }
    }

    /// Bytes of the array.
    #[inline(always)]
    pub(super) fn bytes(&self) -> usize {
        self.count * size_of::<Line>()
    }

    /// Writes what is there, in every page: the system gives memory where it is first written, and takes its
    /// time to clear a large page.
    pub(super) fn touch(&mut self) {
        for byte in self.as_mut_bytes().iter_mut().step_by(SMALL) {
            *byte = std::hint::black_box(*byte);
        }
    }

    /// Gives the memory of the large page before line `end` back; its lines are zeros from then on. Does
    /// nothing unless a large page ends there. What has been given back costs no time when the array is
    /// freed.
    pub(super) fn clear_page_before(&mut self, end: usize) {
        let lines = LARGE / size_of::<Line>();
        if end == 0 || !end.is_multiple_of(lines) || end > self.count || self.bytes() < LARGE {
            return;
        }
        // SAFETY: whole lines of the array, which is borrowed mutably; zeros are valid lines.
        unsafe { clear(self.start.add(end - lines).cast(), LARGE) };
    }
}

/// Prefetches the cache line at `place`, which need not exist.
#[inline(always)]
pub(super) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults at no address; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch reads nothing and faults at no address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) }
    }
}

/// Asks for large pages. Where there are none, nothing changes.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the range is whole large pages inside memory that was just allocated; the advice does not
    // change what it holds.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes / LARGE * LARGE, libc::MADV_HUGEPAGE) };
}

#[cfg(any(not(target_os = "linux"), miri))]
fn advise(_start: NonNull<u8>, _bytes: usize) {}

/// Makes whole pages zeros by giving them back, or by writing zeros where that fails.
///
/// # Safety
/// The range is memory of the caller's that nothing else uses, for which zeros are valid.
unsafe fn clear(start: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: private memory of the allocator's, whole pages of it, as the caller promises; the system hands
    // out zeros for it.
    let given_back = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) } == 0;
    #[cfg(any(not(target_os = "linux"), miri))]
    let given_back = false;
    if !given_back {
        // SAFETY: as the caller promises.
        unsafe { start.write_bytes(0, bytes) };
    }
}
