//! Which entries of a table end first: a list of keys with a time each, before which the entry does not end.
//!
//! The list is a heap in one array, and every key has a node that says where in the heap it stands. All
//! memory is allocated when the list is made, so that entries can come and go between packets. Keys with one
//! time are in the order of their words, so that events of entries that end together have one order.
//!
//! ```text
//! index:  key ──► node                   an exact table of its own
//! node:   key words, place in the heap   a free node: the next free one
//! heap:   (time, first word of the key, node), each place i before its children 4 i + 1 … 4 i + 4
//! ```

use crate::exact::{Evict, Exact, ExactSpec, ExactSpecError, ExactTable};

/// How many children a place of the heap has; those of one place lie side by side.
const FAN: usize = 4;
/// No node.
const NONE: u32 = u32::MAX;

/// A key in the heap.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// The time, and by how much times had come forward when it was noted.
    noted: u64,
    /// The first word of the key, which tells most keys of one time apart.
    first: u64,
    node: u32,
}

/// Keys in the order of their times.
pub struct Deadlines {
    heap: Vec<Due>,
    /// The words of the keys, node by node.
    keys: Vec<u64>,
    /// The place of each node in the heap; of a free one, the next free node.
    places: Vec<u32>,
    free: u32,
    index: ExactTable,
    key_words: usize,
    /// By so much times are less than is noted.
    sooner: u64,
}

impl Deadlines {
    /// An empty list with room for so many keys. The seed hides which keys are slow to find.
    ///
    /// # Errors
    /// There are too many words or keys, or there is no memory.
    pub fn new(key_words: usize, room: usize, seed: u64) -> Result<Deadlines, ExactSpecError> {
        let index = ExactTable::new(spec(key_words, room, seed))?;
        let mut made = Deadlines {
            heap: Vec::new(),
            keys: Vec::new(),
            places: Vec::new(),
            free: NONE,
            index,
            key_words,
            sooner: 0,
        };
        made.reserve(room)?;
        Ok(made)
    }

    /// Bytes that a list with room for so many keys allocates when it is made.
    pub fn allocated(key_words: usize, room: u64) -> u64 {
        let index = spec(key_words, usize::try_from(room).unwrap_or(usize::MAX), 0);
        let node = size_of::<Due>() + key_words * size_of::<u64>() + size_of::<u32>();
        index.allocated().saturating_add(room.saturating_mul(node as u64))
    }

    /// Makes room for so many keys in all, where there is less; keys stay.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, room: usize) -> Result<(), ExactSpecError> {
        let bytes = room.saturating_mul(size_of::<Due>());
        let none = |_| ExactSpecError::Memory { capacity: room, bytes };
        let more = |held: usize, each: usize| room.saturating_mul(each).saturating_sub(held);
        self.heap.try_reserve_exact(more(self.heap.len(), 1)).map_err(none)?;
        self.keys.try_reserve_exact(more(self.keys.len(), self.key_words)).map_err(none)?;
        self.places.try_reserve_exact(more(self.places.len(), 1)).map_err(none)?;
        if self.index.spec().capacity < room { self.index.resize(room) } else { Ok(()) }
    }

    /// Writes the memory in which keys are found, see [`Exact::touch`]. That of keys is written in order as
    /// they come.
    pub fn touch(&mut self) {
        self.index.touch();
    }

    /// All entries may end so much sooner from now on.
    pub fn hasten(&mut self, by: u64) {
        self.sooner = self.sooner.saturating_add(by);
    }

    /// The entry of a key does not end before this time. A key that is listed gets the new time.
    pub fn note(&mut self, key: &[u64], time: u64) {
        self.forget(key);
        let node = match self.free {
            NONE => {
                self.keys.extend(key);
                self.places.push(0);
                (self.places.len() - 1) as u32
            }
            node => {
                self.free = self.places[node as usize];
                self.keys[node as usize * self.key_words..][..self.key_words].copy_from_slice(key);
                node
            }
        };
        // A key that the index refuses is listed until its time. That takes keys that were made for several
        // seeds.
        self.index.learn(key, &[node.into()], 0);
        self.heap.push(Due { noted: time.saturating_add(self.sooner), first: key[0], node });
        self.rise(self.heap.len() - 1);
    }

    /// The entry of a key is gone.
    pub fn forget(&mut self, key: &[u64]) {
        if let Some(&[node]) = self.index.peek(key) {
            self.take(self.places[node as usize] as usize);
        }
    }

    /// The key that comes first, and a time before which its entry does not end.
    #[inline]
    pub fn first(&self) -> Option<(u64, &[u64])> {
        self.heap.first().map(|due| (due.noted.saturating_sub(self.sooner), self.key(due.node)))
    }

    /// The entry of the first key is gone.
    pub fn forget_first(&mut self) {
        if !self.heap.is_empty() {
            self.take(0);
        }
    }

    /// The entry of the first key ends at this later time.
    pub fn postpone_first(&mut self, time: u64) {
        if let Some(first) = self.heap.first_mut() {
            first.noted = time.saturating_add(self.sooner);
            self.sink(0);
        }
    }

    /// How many keys are listed.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no key is listed.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn key(&self, node: u32) -> &[u64] {
        &self.keys[node as usize * self.key_words..][..self.key_words]
    }

    /// Takes the key at a place out of the heap, the index and the nodes.
    fn take(&mut self, place: usize) {
        let node = self.heap.swap_remove(place).node;
        if place < self.heap.len() {
            // The last one may belong above or below.
            self.rise(place);
            self.sink(self.places[self.heap[place].node as usize] as usize);
        }
        let words = node as usize * self.key_words..(node as usize + 1) * self.key_words;
        self.index.remove(&self.keys[words]);
        self.places[node as usize] = std::mem::replace(&mut self.free, node);
    }

    /// Whether one key comes before another.
    #[inline]
    fn is_before(&self, one: &Due, other: &Due) -> bool {
        let (a, b) = ((one.noted, one.first), (other.noted, other.first));
        a < b || a == b && self.key(one.node) < self.key(other.node)
    }

    /// Moves the key at a place up to where it belongs, and notes its place.
    fn rise(&mut self, mut place: usize) {
        let due = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / FAN;
            if !self.is_before(&due, &self.heap[parent]) {
                break;
            }
            self.set(place, self.heap[parent]);
            place = parent;
        }
        self.set(place, due);
    }

    /// Moves the key at a place down to where it belongs, and notes its place.
    fn sink(&mut self, mut place: usize) {
        let due = self.heap[place];
        loop {
            let children = place * FAN + 1..(place * FAN + 1 + FAN).min(self.heap.len());
            let before =
                |a: usize, b: usize| if self.is_before(&self.heap[b], &self.heap[a]) { b } else { a };
            let Some(first) = children.reduce(before) else { break };
            if !self.is_before(&self.heap[first], &due) {
                break;
            }
            self.set(place, self.heap[first]);
            place = first;
        }
        self.set(place, due);
    }

    #[inline]
    fn set(&mut self, place: usize, due: Due) {
        self.heap[place] = due;
        self.places[due.node as usize] = place as u32;
    }
}

/// The index of a list.
fn spec(key_words: usize, capacity: usize, seed: u64) -> ExactSpec {
    ExactSpec {
        key_words,
        value_words: 1,
        capacity,
        idle: None,
        age: None,
        lifetimes: false,
        evict: Evict::Refuse,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The list as ordered maps: slow, and simple enough to be the judge.
    #[derive(Default)]
    struct Model {
        due: BTreeSet<(u64, Vec<u64>)>,
        known: BTreeMap<Vec<u64>, u64>,
    }

    impl Model {
        fn note(&mut self, key: &[u64], time: u64) {
            self.forget(key);
            self.due.insert((time, key.to_vec()));
            self.known.insert(key.to_vec(), time);
        }

        fn forget(&mut self, key: &[u64]) {
            if let Some(time) = self.known.remove(key) {
                self.due.remove(&(time, key.to_vec()));
            }
        }

        fn hasten(&mut self, by: u64) {
            self.due = self.due.iter().map(|(time, key)| (time - by, key.clone())).collect();
            self.known.values_mut().for_each(|time| *time -= by);
        }
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Note(u64, u64),
        Forget(u64),
        ForgetFirst,
        PostponeFirst(u64),
        Hasten(u64),
        Reserve(usize),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        // Few keys and times, so that many are equal.
        prop_oneof![
            8 => (0..40u64, 0..12u64).prop_map(|(key, time)| Operation::Note(key, time)),
            3 => (0..40u64).prop_map(Operation::Forget),
            4 => Just(Operation::ForgetFirst),
            3 => (0..12u64).prop_map(Operation::PostponeFirst),
            1 => (0..5u64).prop_map(Operation::Hasten),
            1 => (0..60usize).prop_map(Operation::Reserve),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_list_and_its_model_agree(
            key_words in 1..5usize,
            operations in prop::collection::vec(operation(), 1..300),
        ) {
            let (mut list, mut model) = (Deadlines::new(key_words, 40, 7).expect("room"), Model::default());
            // Times are large enough to come forward.
            let mut now = 10_000;
            let key = |number: u64| -> Vec<u64> {
                // Keys that differ in one word only, and not always in the first.
                (0..key_words as u64).map(|word| if word == number % key_words as u64 { number } else { 3 }).collect()
            };
            for operation in operations {
                now += 1;
                match operation {
                    Operation::Note(number, time) => {
                        list.note(&key(number), now + time);
                        model.note(&key(number), now + time);
                    }
                    Operation::Forget(number) => {
                        list.forget(&key(number));
                        model.forget(&key(number));
                    }
                    Operation::ForgetFirst => {
                        list.forget_first();
                        model.due.first().cloned().into_iter().for_each(|(_, key)| model.forget(&key));
                    }
                    Operation::PostponeFirst(by) => {
                        if let Some((time, key)) = model.due.first().cloned() {
                            list.postpone_first(time + by);
                            model.note(&key, time + by);
                        }
                    }
                    Operation::Hasten(by) => {
                        list.hasten(by);
                        model.hasten(by);
                    }
                    Operation::Reserve(room) => list.reserve(room).expect("room"),
                }
                let first = model.due.first();
                prop_assert_eq!(list.first(), first.map(|(time, key)| (*time, key.as_slice())));
                prop_assert_eq!((list.len(), list.is_empty()), (model.due.len(), model.due.is_empty()));
            }
            while let Some((_, key)) = model.due.pop_first() {
                prop_assert_eq!(list.first().map(|(_, first)| first.to_vec()), Some(key));
                list.forget_first();
            }
            prop_assert!(list.is_empty());
        }
    }

    /// Keys that come in no order, all with one time, and then each with its own.
    #[test]
    fn many_keys_of_one_time_come_in_order_and_their_list_takes_no_more_memory() {
        const MANY: u64 = 1 << 17;
        let mut list = Deadlines::new(1, MANY as usize, 7).expect("room");
        let before = (list.heap.capacity(), list.keys.capacity(), list.places.capacity(), list.index.bytes());
        for number in 0..MANY {
            list.note(&[number.wrapping_mul(0x9e37_79b9_7f4a_7c15)], 5);
        }
        let mut last = None;
        for _ in 0..MANY {
            let first = list.first().map(|(_, key)| key[0]);
            assert!(first > last, "{first:?} behind {last:?}");
            last = first;
            list.forget_first();
        }
        assert!(list.is_empty());
        (0..MANY).for_each(|number| list.note(&[number], number));
        let after = (list.heap.capacity(), list.keys.capacity(), list.places.capacity(), list.index.bytes());
        assert_eq!(before, after);
    }
}
