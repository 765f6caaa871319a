//! What allocates only when it is made: an exact table never does when it fills, evicts, expires or is
//! changed; a search for patterns does not once a thread has searched before.

use allocation_counter::measure;
use tables::exact::{Evict, Exact, ExactSpec, ExactTable, Learned};
use tables::patterns::{Scanner, SearchPattern};

#[test]
fn the_counter_counts() {
    assert!(measure(|| drop(std::hint::black_box(vec![1]))).count_total > 0);
}

#[test]
fn nothing_allocates_after_the_table_is_made() {
    for key_words in [1, 2, 3] {
        let spec = ExactSpec {
            key_words,
            value_words: 1,
            capacity: 500,
            idle: Some(3000),
            age: Some(5000),
            lifetimes: false,
            evict: Evict::Lru,
            seed: 9,
        };
        let mut table = ExactTable::new(spec).expect("a valid spec");
        let mut key = [0; 3];
        let allocated = measure(|| {
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
        });
        let counts = table.statistics();
        assert!(counts.evictions > 0 && counts.expired > 0 && counts.removed > 0, "{counts:?}");
        assert_eq!(allocated.count_total, 0, "{key_words} key words");
    }
}

#[test]
fn nothing_allocates_in_a_warm_search() {
    let words =
        ["GET /", "\0\0\0\0", "\0\0\0\0\0\0", "a", "ab", "abc", "a long string that ends in abc", "Host: "];
    let scanner = Scanner::build(&words.map(SearchPattern::anywhere)).expect("patterns with bytes");
    let mut packet = b"GET /abcabcabc\0\0\0\0\0\0\0\0\0a long string that ends in abc".repeat(24);
    let mut set = Vec::with_capacity(words.len() * 600);
    let mut occurrences = 0u64;
    let forms: Vec<_> = scanner.open().forms().collect();
    for (round, image) in forms.into_iter().cycle().take(30).enumerate() {
        let allocated = measure(|| {
            image.each(&packet, &mut |_| occurrences += 1);
            occurrences += image.count(&packet) + u64::from(image.first(&packet).is_some());
            image.set(&packet, &mut set);
            set.clear();
        });
        assert!(round == 0 || allocated.count_total == 0, "round {round}: {allocated:?}");
        packet.truncate(packet.len() - 8);
    }
    assert!(occurrences > 1000, "{occurrences}");
}
