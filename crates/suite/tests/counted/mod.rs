//! An allocator that counts what is allocated and not given back, for tests of how much memory things take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Bytes that are allocated now.
static HELD: AtomicI64 = AtomicI64::new(0);

struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;

// SAFETY: every call goes to the system's allocator as it is; the counter is beside it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller keeps to what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_add(size as i64 - layout.size() as i64, Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// What a function makes, and how many bytes more are allocated while it is there.
pub(crate) fn held<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.load(Relaxed);
    let made = make();
    (made, HELD.load(Relaxed) - before)
}
