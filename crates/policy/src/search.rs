//! Searches for an input that is in some sets and in none of others, without making the diagram of that.
//!
//! The sets are gone through together, bit by bit, and a set is looked at only at bits that its diagram
//! has. Where a branch holds nothing, the search knows the sets that say so. If none of them looks at the bit
//! of the branch, the other branch holds nothing for the same reason and is left out: otherwise sets that
//! have nothing to do with each other would multiply.

use crate::diagram::{ALL, Diagram, Diagrams, NONE};

/// Why a search has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchFault {
    /// It would look at more nodes than one search may.
    TooLong,
    /// All searches together would look at more nodes and sets than they may.
    TooMany,
}

/// A set of a search: those whose number is below [`Search::inside`] hold the input, the others do not.
#[derive(Clone, Copy)]
struct Entry {
    number: u32,
    diagram: Diagram,
}

/// What searches use again.
pub(crate) struct Search {
    /// The sets whose next bit is that of the level.
    levels: Vec<Vec<Entry>>,
    /// The levels that have sets, a bit for each.
    occupied: Vec<u64>,
    /// The levels that sets were put to, in order.
    put: Vec<u32>,
    /// How many sets are to hold the input, and how many of them and of the others are not yet known to do.
    inside: u32,
    open_inside: usize,
    open_outside: usize,
    /// The bits that are chosen, and a set that holds what is searched for below them.
    way: Vec<(u32, bool)>,
    rest: Diagram,
    /// The sets by which the last branch holds nothing.
    reason: Vec<u32>,
    /// Whether a set is among those of a reason; false between uses.
    marked: Vec<bool>,
    /// Whether the branch that is 0 is always looked at first.
    least_first: bool,
    /// How many nodes a search may look at, how many the one of now may still, and how many nodes and sets
    /// all may still.
    most: u64,
    left: u64,
    left_of_all: u64,
}

impl Search {
    /// No search yet; each may look at so many nodes, and all together at so many nodes and sets that they
    /// are given.
    pub(crate) fn with_limits(most: u64, of_all: u64) -> Search {
        Search {
            levels: Vec::new(),
            occupied: Vec::new(),
            put: Vec::new(),
            inside: 0,
            open_inside: 0,
            open_outside: 0,
            way: Vec::new(),
            rest: ALL,
            reason: Vec::new(),
            marked: Vec::new(),
            least_first: false,
            most,
            left: most,
            left_of_all: of_all,
        }
    }

    /// Whether an input is in all of the first sets and in none of the others.
    pub(crate) fn holds(
        &mut self,
        diagrams: &Diagrams,
        inside: &[Diagram],
        outside: impl IntoIterator<Item = Diagram>,
    ) -> Result<bool, SearchFault> {
        self.least_first = false;
        self.search(diagrams, inside, outside)
    }

    /// The bits on the way to the least such input. Bits that are not told are 0.
    pub(crate) fn least(
        &mut self,
        diagrams: &Diagrams,
        inside: &[Diagram],
        outside: impl IntoIterator<Item = Diagram>,
    ) -> Result<Option<Vec<(u32, bool)>>, SearchFault> {
        self.least_first = true;
        if !self.search(diagrams, inside, outside)? {
            return Ok(None);
        }
        let rest = diagrams.member(self.rest);
        self.way.extend(rest.into_iter().flatten());
        Ok(Some(std::mem::take(&mut self.way)))
    }

    fn search(
        &mut self,
        diagrams: &Diagrams,
        inside: &[Diagram],
        outside: impl IntoIterator<Item = Diagram>,
    ) -> Result<bool, SearchFault> {
        while let Some(level) = self.next(0) {
            self.levels[level].clear();
            self.occupied[level / 64] &= !(1 << (level % 64));
        }
        (self.open_inside, self.open_outside, self.inside) = (0, 0, inside.len() as u32);
        self.left = self.most;
        self.put.clear();
        self.way.clear();
        let sets = inside.iter().copied().chain(outside);
        for (number, diagram) in sets.enumerate() {
            self.left_of_all = self.left_of_all.checked_sub(1).ok_or(SearchFault::TooMany)?;
            let entry = Entry { number: number as u32, diagram };
            if number >= self.marked.len() {
                self.marked.push(false);
            }
            if self.refutes(entry.number, diagram) {
                return Ok(false);
            }
            self.put(diagrams, entry);
        }
        self.walk(diagrams, 0)
    }

    /// Whether nothing is left by this set.
    fn refutes(&self, number: u32, diagram: Diagram) -> bool {
        diagram == if number < self.inside { NONE } else { ALL }
    }

    /// Puts a set to the level of its next bit, if it has one.
    fn put(&mut self, diagrams: &Diagrams, entry: Entry) {
        let Some((level, _)) = diagrams.branches(entry.diagram) else { return };
        let place = level as usize;
        if place >= self.levels.len() {
            self.levels.resize_with(place + 1, Vec::new);
            self.occupied.resize(place / 64 + 1, 0);
        }
        self.levels[place].push(entry);
        self.occupied[place / 64] |= 1 << (place % 64);
        self.put.push(level);
        *self.open(entry.number) += 1;
    }

    /// How many sets are open on the side of this one.
    fn open(&mut self, number: u32) -> &mut usize {
        if number < self.inside { &mut self.open_inside } else { &mut self.open_outside }
    }

    fn mark(&mut self, marked: bool) {
        for number in &self.reason {
            self.marked[*number as usize] = marked;
        }
    }

    /// The first level with sets from this one on.
    fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Whether there is an input below the bits that are chosen; otherwise the reason is known.
    fn walk(&mut self, diagrams: &Diagrams, from: usize) -> Result<bool, SearchFault> {
        // The levels before have no sets that are still open: theirs went on to later ones.
        let next = self.next(from);
        let (Some(level), true) = (next, self.open_outside > 0 || self.open_inside > 1) else {
            let rest = next.and_then(|level| self.levels[level].first());
            self.rest = rest.map_or(ALL, |entry| entry.diagram);
            return Ok(true);
        };
        let entries = std::mem::take(&mut self.levels[level]);
        let found = self.branch(diagrams, level, &entries);
        self.levels[level] = entries;
        found
    }

    fn branch(&mut self, diagrams: &Diagrams, level: usize, entries: &[Entry]) -> Result<bool, SearchFault> {
        let looks = entries.len() as u64;
        self.left_of_all = self.left_of_all.checked_sub(looks).ok_or(SearchFault::TooMany)?;
        self.left = self.left.checked_sub(looks).ok_or(SearchFault::TooLong)?;
        let below = |entry: &Entry, one: bool| {
            diagrams.branches(entry.diagram).map_or(entry.diagram, |(_, below)| below[usize::from(one)])
        };
        let refuted = [false, true].map(|one| {
            entries
                .iter()
                .find(|entry| self.refutes(entry.number, below(entry, one)))
                .map(|entry| entry.number)
        });
        let first_is_one = !self.least_first && {
            let open = [false, true]
                .map(|one| entries.iter().filter(|entry| below(entry, one).number().is_none()).count());
            open[1] < open[0]
        };
        let mut reason: Vec<u32> = Vec::new();
        for one in [first_is_one, !first_is_one] {
            if let Some(number) = refuted[usize::from(one)] {
                reason.push(number);
                continue;
            }
            let before = (self.put.len(), self.open_inside, self.open_outside);
            for entry in entries {
                *self.open(entry.number) -= 1;
                self.put(diagrams, Entry { diagram: below(entry, one), ..*entry });
            }
            self.way.push((level as u32, one));
            if self.walk(diagrams, level + 1)? {
                return Ok(true);
            }
            self.way.pop();
            while self.put.len() > before.0 {
                let Some(level) = self.put.pop() else { break };
                let place = level as usize;
                self.levels[place].pop();
                if self.levels[place].is_empty() {
                    self.occupied[place / 64] &= !(1 << (place % 64));
                }
            }
            (self.open_inside, self.open_outside) = (before.1, before.2);
            self.mark(true);
            let looks = entries.iter().any(|entry| self.marked[entry.number as usize]);
            self.mark(false);
            if !looks {
                return Ok(false);
            }
            reason.append(&mut self.reason);
        }
        reason.sort_unstable();
        reason.dedup();
        self.reason = reason;
        Ok(false)
    }
}
