//! Numbers of next hops, by which routes name neighbours: assigned when the first route or answer needs one,
//! and free again after the last.

use super::effects::LAST;
use super::neighbours::Neighbour;
use std::collections::HashMap;

/// Which neighbour has which number.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    given: HashMap<Neighbour, (u16, u32)>,
    free: Vec<u16>,
    next: u16,
    most: u16,
}

impl Numbers {
    /// At most so many, numbered from 1.
    pub(crate) fn new(most: usize) -> Numbers {
        let most = most.min(usize::from(LAST)) as u16;
        Numbers { given: HashMap::new(), free: Vec::new(), next: 1, most }
    }

    /// The neighbour's number, which has one more use from now on. `None` where there is none left.
    pub(crate) fn take(&mut self, neighbour: Neighbour) -> Option<u16> {
        if let Some((number, uses)) = self.given.get_mut(&neighbour) {
            *uses += 1;
            return Some(*number);
        }
        let number = match self.free.pop() {
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
