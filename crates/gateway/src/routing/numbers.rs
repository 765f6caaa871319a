//! Numbers of next hops, by which routes name neighbours: assigned when the first route or answer needs one,
//! and free again after the last.

use super::effects::LAST;
use super::neighbours::{Mac, Neighbour};
use packet::PortNumber;
use std::collections::{HashMap, HashSet};

/// A next hop that a table of the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldNextHop {
    /// Its number.
    pub(crate) number: u16,
    /// The port that it is at.
    pub(crate) port: PortNumber,
    /// Who it is, if that is known.
    pub(crate) neighbour: Option<Neighbour>,
    /// Its Ethernet address.
    pub(crate) mac: Mac,
}

/// Which neighbour has which number.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    given: HashMap<Neighbour, (u16, u32)>,
    free: Vec<u16>,
    next: u16,
    most: u16,
    /// Numbers that neighbours had before, until they are given out to them again.
    before: HashMap<Neighbour, u16>,
    /// Numbers that are in the table still, of nobody who is known.
    strange: Vec<u16>,
}

impl Numbers {
    /// At most so many, numbered from 1.
    pub(crate) fn new(most: usize) -> Numbers {
        let most = most.min(usize::from(LAST)) as u16;
        Numbers {
            given: HashMap::new(),
            free: Vec::new(),
            next: 1,
            most,
            before: HashMap::new(),
            strange: Vec::new(),
        }
    }

    /// How many there may be.
    pub(crate) fn most(&self) -> usize {
        usize::from(self.most)
    }

    /// The table holds next hops of these numbers, some of neighbours that are known: these get them again,
    /// and nobody else does. Those of others nobody gets before they are [`gone`](Numbers::gone). To be said
    /// before any is given out.
    pub(crate) fn are_held(&mut self, held: &[HeldNextHop]) {
        let held = held.iter().filter(|held| (1..=self.most).contains(&held.number));
        let all: HashSet<u16> = held.clone().map(|held| held.number).collect();
        self.before = held.filter_map(|held| Some((held.neighbour?, held.number))).collect();
        let known: HashSet<u16> = self.before.values().copied().collect();
        let last = all.iter().max().copied().unwrap_or(0);
        self.free = (1..last).rev().filter(|number| !all.contains(number)).collect();
        self.strange = all.difference(&known).copied().collect();
        self.next = last + 1;
    }

    /// The next hops of nobody who is known are to go from the table, before others come.
    pub(crate) fn gone(&mut self) {
        self.free.append(&mut self.strange);
    }

    /// The neighbour's number, which has one more use from now on. `None` where there is none left.
    pub(crate) fn take(&mut self, neighbour: Neighbour) -> Option<u16> {
        if let Some((number, uses)) = self.given.get_mut(&neighbour) {
            *uses += 1;
            return Some(*number);
        }
        let number = match self.before.remove(&neighbour).or_else(|| self.free.pop()) {
            Some(number) => number,
            None if self.next <= self.most => {
                self.next += 1;
                self.next - 1
            }
            None => return None,
        };
        self.given.insert(neighbour, (number, 1));
        Some(number)
    }

    /// One use less. The number, where that was the last one.
    pub(crate) fn give_back(&mut self, neighbour: Neighbour) -> Option<u16> {
        let (number, uses) = self.given.get_mut(&neighbour)?;
        let number = *number;
        *uses -= 1;
        if *uses > 0 {
            return None;
        }
        self.free.push(number);
        self.given.remove(&neighbour);
        Some(number)
    }

    /// Every number that is given out, and whose it is.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, Neighbour)> + '_ {
        self.given.iter().map(|(neighbour, (number, _))| (*number, *neighbour))
    }

    /// Whether there is a number for one more neighbour.
    pub(crate) fn is_free(&self) -> bool {
        !self.free.is_empty() || self.next <= self.most
    }

    /// The neighbour's number.
    pub(crate) fn of(&self, neighbour: Neighbour) -> Option<u16> {
        self.given.get(&neighbour).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_had_a_number_gets_it_again_and_others_get_what_is_left() {
        let mut numbers = Numbers::new(4);
        let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(|port| Neighbour { port, address: [10, 0, 0, 1].into() });
        let held = |neighbour, number| HeldNextHop { number, port: 1, neighbour, mac: [0; 6] };
        numbers.are_held(&[
            held(Some(a), 3),
            held(Some(b), 1),
            held(Some(e), 5),
            held(Some(e), 0),
            held(None, 4),
        ]);
        assert_eq!(numbers.take(c), Some(2));
        assert_eq!((numbers.take(a), numbers.take(b), numbers.take(a)), (Some(3), Some(1), Some(3)));
        assert_eq!(numbers.take(d), None, "4 is in the table still");
        numbers.gone();
        assert_eq!((numbers.take(d), numbers.take(e)), (Some(4), None));
    }

    #[test]
    fn a_number_is_free_again_when_its_last_use_ends() {
        let mut numbers = Numbers::new(2);
        let [a, b, c] = [1, 2, 3].map(|port| Neighbour { port, address: [10, 0, 0, 1].into() });
        assert_eq!(
            [numbers.take(a), numbers.take(b), numbers.take(a), numbers.take(c)],
            [Some(1), Some(2), Some(1), None]
        );
        assert_eq!(numbers.give_back(a), None);
        assert_eq!((numbers.of(a), numbers.take(c)), (Some(1), None));
        assert_eq!(numbers.give_back(a), Some(1));
        assert_eq!((numbers.of(a), numbers.take(c)), (None, Some(1)));
    }
}
