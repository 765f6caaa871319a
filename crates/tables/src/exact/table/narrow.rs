//! Operations of the fast exact table for keys of one and two words, which travel in registers.

use super::{HashTable, Learned};

impl HashTable<1> {
    /// [`Exact::find`](crate::exact::Exact::find) for a key of one word.
    #[inline]
    pub fn find1(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        self.find_or(&[key], now, self.marks, |table, now| table.find_older1(key, now))
    }

    /// [`HashTable::find1`] where the [marks](crate::exact::ExactSpec::marks) of the spec are known when the
    /// code is compiled; other `MARKS` renew wrongly.
    #[inline]
    pub fn find1_marking<const MARKS: u8>(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        debug_assert_eq!(MARKS, self.marks);
        self.find_or(&[key], now, MARKS, |table, now| table.find_older1(key, now))
    }

    /// A find of a key that the current generation does not hold. Passing the key by value keeps it out of
    /// memory where it is found.
    #[cold]
    #[inline(never)]
    fn find_older1(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        self.find_older(&[key], now)
    }

    /// [`HashTable::learn1`] for values of one word where the [marks](crate::exact::ExactSpec::marks) of the
    /// spec are known when the code is compiled.
    #[inline]
    pub fn learn11_marking<const MARKS: u8>(&mut self, key: u64, value: u64, now: u64) -> Learned {
        debug_assert_eq!((MARKS, 1), (self.marks, self.current.slots.value_words()));
        let now = self.advance(now);
        let Ok(slot) = self.current.probe(&[key]) else {
            return self.insert(&[key], &[value], now, &mut |_| {});
        };
        if self.has_ended(slot) {
            return self.learn_ended(slot, &[key], &[value], now, &mut |_| {});
        }
        self.renew(slot, now, MARKS);
        if self.current.slots.first_value(slot) == value {
            return Learned::Confirmed;
        }
        self.leave_item(slot);
        self.current.slots.set_first_value(slot, value);
        self.hold_item(slot);
        self.statistics.moves += 1;
        Learned::Moved
    }

    /// [`Exact::learn`](crate::exact::Exact::learn) for a key of one word.
    #[inline]
    pub fn learn1(&mut self, key: u64, value: &[u64], now: u64) -> Learned {
        self.learn_inline(&[key], value, now, self.marks, &mut |_| {})
    }
}

impl HashTable<2> {
    /// [`Exact::find`](crate::exact::Exact::find) for a key of two words.
    #[inline]
    pub fn find2(&mut self, key: [u64; 2], now: u64) -> Option<&[u64]> {
        self.find_or(&key, now, self.marks, |table, now| table.find_older2(key[0], key[1], now))
    }

    /// [`HashTable::find_older1`] for a key of two words.
    #[cold]
    #[inline(never)]
    fn find_older2(&mut self, first: u64, second: u64, now: u64) -> Option<&[u64]> {
        self.find_older(&[first, second], now)
    }
}
