//! When each peer has to be looked at: a binary heap that knows where each peer stands in it, so that a
//! deadline is moved without leaving an old one behind, and without memory of its own.

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Default)]
pub(crate) struct Deadlines {
    /// Slots of peers; no slot has an earlier deadline than its parent, at half its place.
    heap: Vec<usize>,
    /// Of each slot: its deadline, and its place in the heap.
    of: Vec<(u64, usize)>,
}

const ABSENT: usize = usize::MAX;

impl Deadlines {
    /// The earliest deadline, and whose it is.
    pub(crate) fn first(&self) -> Option<(u64, usize)> {
        self.heap.first().map(|&slot| (self.of[slot].0, slot))
    }

    /// Sets the deadline of a slot, earlier or later than it was.
    pub(crate) fn set(&mut self, slot: usize, deadline: u64) {
        if slot >= self.of.len() {
            self.of.resize(slot + 1, (NEVER, ABSENT));
            // Every slot has its place, so that no later call asks for memory.
            self.heap.reserve(self.of.len() - self.heap.len());
        }
        self.of[slot].0 = deadline;
        let at = self.of[slot].1;
        if deadline == NEVER {
            if at != ABSENT {
                self.take_out(at);
            }
            return;
        }
        let at = if at == ABSENT {
            self.heap.push(slot);
            self.of[slot].1 = self.heap.len() - 1;
            self.heap.len() - 1
        } else {
            at
        };
        self.settle(at);
    }

    /// Brings a deadline forward; a later one changes nothing.
    pub(crate) fn advance(&mut self, slot: usize, deadline: u64) {
        if deadline < self.of.get(slot).map_or(NEVER, |&(now, _)| now) {
            self.set(slot, deadline);
        }
    }

    fn take_out(&mut self, at: usize) {
        self.of[self.heap[at]].1 = ABSENT;
        let last = self.heap.pop().expect("a place in it");
        if at < self.heap.len() {
            self.heap[at] = last;
            self.of[last].1 = at;
            self.settle(at);
        }
    }

    fn at(&self, place: usize) -> u64 {
        self.of[self.heap[place]].0
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.of[self.heap[one]].1 = one;
        self.of[self.heap[other]].1 = other;
    }

    /// Moves the slot at a place up or down to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.at(place) < self.at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        loop {
            let children =
                [2 * place + 1, 2 * place + 2].into_iter().filter(|&child| child < self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.at(child)) else { return };
            if self.at(child) >= self.at(place) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tables::generate::Random;

    #[test]
    fn it_agrees_with_a_search_through_all() {
        let mut random = Random::new(1);
        let (mut heap, mut slow) = (Deadlines::default(), BTreeMap::new());
        for _ in 0..50_000 {
            let slot = random.below(40) as usize;
            let deadline = if random.chance(20) { NEVER } else { random.below(100) };
            if random.chance(30) {
                heap.advance(slot, deadline);
                if slow.get(&slot).is_none_or(|&was| deadline < was) && deadline != NEVER {
                    slow.insert(slot, deadline);
                }
            } else {
                heap.set(slot, deadline);
                slow.insert(slot, deadline);
                slow.retain(|_, deadline| *deadline != NEVER);
            }
            assert_eq!(heap.first().map(|first| first.0), slow.values().copied().min());
            if let Some((deadline, slot)) = heap.first() {
                assert_eq!(slow[&slot], deadline);
            }
        }
    }
}
