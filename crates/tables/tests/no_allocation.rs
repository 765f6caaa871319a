//! An exact table allocates when it is made and never after: not when it fills, evicts, expires or is changed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tables::exact::{Evict, Exact, ExactSpec, Learned, Table};

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
fn nothing_allocates_after_the_table_is_made() {
    for key_words in [1, 2, 3] {
        let spec = ExactSpec {
            key_words,
            value_words: 1,
            capacity: 500,
            idle: Some(3000),
            age: Some(5000),
            evict: Evict::Lru,
            seed: 9,
        };
        let mut table = Table::new(spec).expect("a valid spec");
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        assert!(before > 0, "the counter counts");
        let mut key = [0; 3];
        for now in 0..200_000u64 {
            if now >= table.next_deadline() {
                table.expire(now);
            }
            key[0] = now * 7919 % 1511;
            if table.learn(&key[..key_words], &[now / 1511], now) == Learned::Refused {
                panic!("an lru table without permanent entries never refuses");
            }
            key[0] = now * 104_729 % 1511;
            table.find(&key[..key_words], now);
            key[0] = now * 31 % 1511;
            if now % 5 == 0 {
                table.remove(&key[..key_words]);
            }
            if now % 50_000 == 0 {
                table.expire(now + 20_000);
            }
        }
        let after = ALLOCATIONS.load(Ordering::Relaxed);
        let counts = table.statistics();
        assert!(counts.evictions > 0 && counts.expired > 0 && counts.removed > 0, "{counts:?}");
        assert_eq!(after, before, "{key_words} key words");
    }
}
