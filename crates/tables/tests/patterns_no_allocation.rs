//! A search for patterns allocates nothing once a thread has searched before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tables::patterns::{Pattern, Scanner};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every request is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about pointer and layout is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of this binary, so that no other thread allocates meanwhile.
#[test]
fn nothing_allocates_in_a_warm_search() {
    let words =
        ["GET /", "\0\0\0\0", "\0\0\0\0\0\0", "a", "ab", "abc", "a long string that ends in abc", "Host: "];
    let scanner = Scanner::build(&words.map(Pattern::anywhere)).expect("patterns with bytes");
    let mut packet = b"GET /abcabcabc\0\0\0\0\0\0\0\0\0a long string that ends in abc".repeat(24);
    let mut set = Vec::with_capacity(words.len() * 600);
    let mut occurrences = 0u64;
    for (round, image) in [scanner.open(), scanner.open().portable()].into_iter().cycle().take(20).enumerate()
    {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(before > 0, "the counter counts");
        image.each(&packet, &mut |_| occurrences += 1);
        occurrences += image.count(&packet) + u64::from(image.first(&packet).is_some());
        image.set(&packet, &mut set);
        set.clear();
        let after = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(round == 0 || after == before, "round {round}: {} allocations", after - before);
        packet.truncate(packet.len() - 8);
    }
    assert!(occurrences > 1000, "{occurrences}");
}
