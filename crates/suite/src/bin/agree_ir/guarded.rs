//! Memory in which every piece ends at a page that nobody may touch, so that machine code that reads or
//! writes behind it ends the process.
//!
//! While it is switched on, each piece gets pages of its own out of one large range of addresses: it ends
//! where they end, and the page behind them stays closed. A piece that is given back is closed and its
//! addresses are never used again, so late accesses end the process as well.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

const PAGE: usize = 4096;
/// Addresses that are set aside, 256 GiB.
const RANGE: usize = 1 << 38;
/// Larger pieces come from the system: they are made page by page there, too.
const LARGEST: usize = 1 << 20;

const NONE: c_int = 0;
const READ_AND_WRITE: c_int = 3;
/// Private, without a file, without memory set aside (Linux).
const SET_ASIDE: c_int = 0x2 | 0x20 | 0x4000;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, rights: c_int) -> c_int;
    fn madvise(at: *mut c_void, bytes: usize, what: c_int) -> c_int;
}

/// Lets go of the memory of pages.
const FORGET: c_int = 4;

static ON: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Pieces that were guarded, and pieces of a size for it that were not.
static PIECES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// How many pieces were guarded, and how many that should have been were not.
pub(crate) fn pieces() -> (u64, u64) {
    (PIECES[0].load(Ordering::Relaxed), PIECES[1].load(Ordering::Relaxed))
}

/// Memory of the system, or guarded while that is switched on.
pub(crate) struct Guarded;

/// Switches guarding on or off.
pub(crate) fn switch(on: bool) {
    if on && START.load(Ordering::Relaxed) == 0 {
        // SAFETY: new addresses are asked for, which nothing uses.
        let start = unsafe { mmap(std::ptr::null_mut(), RANGE, NONE, SET_ASIDE, -1, 0) } as usize;
        assert!(
            start != usize::MAX,
            "256 GiB of addresses cannot be set aside, without which nothing is guarded"
        );
        NEXT.store(start, Ordering::Relaxed);
        START.store(start, Ordering::Relaxed);
    }
    ON.store(on, Ordering::Relaxed);
}

/// Whole pages for a piece.
fn pages(layout: Layout) -> usize {
    layout.size().next_multiple_of(layout.align()).next_multiple_of(PAGE)
}

fn is_guarded(at: usize) -> bool {
    let start = START.load(Ordering::Relaxed);
    start != 0 && (start..start + RANGE).contains(&at)
}

// SAFETY: a piece lies in pages of its own at the alignment asked for, and is as long as asked for; what does
// not is the system's, which is asked about it alone.
unsafe impl GlobalAlloc for Guarded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let suits = layout.size() <= LARGEST && layout.align() <= PAGE;
        if ON.load(Ordering::Relaxed) && suits {
            let bytes = pages(layout);
            let first = NEXT.fetch_add(bytes + PAGE, Ordering::Relaxed);
            if first + bytes + PAGE <= START.load(Ordering::Relaxed) + RANGE {
                // SAFETY: these pages were set aside and belong to nobody yet.
                if unsafe { mprotect(first as *mut c_void, bytes, READ_AND_WRITE) } == 0 {
                    PIECES[0].fetch_add(1, Ordering::Relaxed);
                    return (first + bytes - layout.size().next_multiple_of(layout.align())) as *mut u8;
                }
            }
            PIECES[1].fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps to the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_guarded(piece as usize) {
            let first = (piece as usize) & !(PAGE - 1);
            // SAFETY: the pages hold this piece alone, which is given back.
            unsafe {
                madvise(first as *mut c_void, pages(layout), FORGET);
                mprotect(first as *mut c_void, pages(layout), NONE);
            }
            return;
        }
        // SAFETY: the piece is the system's, and the caller keeps to the rules of `dealloc`.
        unsafe { System.dealloc(piece, layout) }
    }
}
