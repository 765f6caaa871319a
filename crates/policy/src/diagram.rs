//! Decision diagrams: functions of bits, each of which is kept once (Bryant 1986, with more than two ends).
//!
//! ```text
//! node:  level  zero  one      the bit that is looked at, and the diagrams where it is 0 and where it is 1
//! end:   1 in the highest bit of a reference, and a number below it; of a set, 0 is "no" and 1 is "yes"
//! ```
//!
//! Levels grow from the root to the ends and a node whose branches are the same is left out, so two
//! functions are the same exactly when their references are. Operations go through both diagrams together
//! and remember the pairs that they have seen.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// A diagram: the number of its root, or an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Diagram(u32);

const END: u32 = 1 << 31;

impl Diagram {
    /// The function that is this number everywhere.
    pub(crate) const fn end(number: u32) -> Diagram {
        Diagram(END | number)
    }

    /// The number, if it is the same everywhere.
    pub(crate) fn number(self) -> Option<u32> {
        (self.0 & END != 0).then_some(self.0 & !END)
    }
}

/// The empty set.
pub(crate) const NONE: Diagram = Diagram::end(0);
/// The set of everything.
pub(crate) const ALL: Diagram = Diagram::end(1);

/// The diagrams of an analysis would need more nodes than its limit, [`crate::limits::MOST_NODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyNodes;

#[derive(Clone, Copy)]
struct Node {
    level: u32,
    zero: Diagram,
    one: Diagram,
}

/// The result of a choice that was made before.
#[derive(Clone, Copy)]
struct Chosen {
    choice: [Diagram; 3],
    result: Diagram,
}

/// All nodes of an analysis, and what was computed of them.
pub(crate) struct Diagrams {
    nodes: Vec<Node>,
    /// Places of nodes by their hash; [`EMPTY`] where there is none.
    places: Vec<u32>,
    /// One place for each hash: a later result takes the place of an earlier one.
    chosen: Vec<Chosen>,
    /// How many nodes there may be, and how many pairs are remembered while numbers are looked for.
    pub(crate) most: usize,
    /// How many operations there are.
    operations: u32,
}

/// What is made of the numbers of two functions; it makes the same of the same numbers whenever it is asked.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    /// In the third place of a choice: no diagram has this number.
    key: Diagram,
    /// Whether 0 leaves the other number as it is.
    neutral: bool,
}

const EMPTY: u32 = u32::MAX;
/// So many results of choices are kept at most.
const MOST_CHOSEN: usize = 1 << 24;
/// In the third place of a choice: the first function over the second one.
const OVER: Diagram = Diagram(EMPTY - 1);
const NOTHING_CHOSEN: Chosen = Chosen { choice: [Diagram(EMPTY); 3], result: NONE };

/// Hashes numbers of diagrams. They come from no stranger who would look for numbers with the same hash, so
/// the keyed hash of the library, which takes several times as long, protects nothing here.
#[derive(Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// A set of numbers of diagrams.
pub(crate) type NumberSet<T> = HashSet<T, BuildHasherDefault<NumberHasher>>;

fn mixed(words: [u32; 3]) -> usize {
    let [first, second, third] = words.map(u64::from);
    let mut hash = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    hash = (hash ^ third).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash ^ (hash >> 32)) as usize
}

impl Diagrams {
    /// No nodes yet, and at most so many of them.
    pub(crate) fn with_limit(most: usize) -> Diagrams {
        Diagrams {
            nodes: Vec::new(),
            places: vec![EMPTY; 1 << 12],
            chosen: vec![NOTHING_CHOSEN; 1 << 12],
            most,
            operations: 0,
        }
    }

    fn node(&self, diagram: Diagram) -> Option<Node> {
        self.nodes.get(diagram.0 as usize).copied()
    }

    fn level(&self, diagram: Diagram) -> u32 {
        self.node(diagram).map_or(u32::MAX, |node| node.level)
    }

    /// The bit that is looked at first, and what follows where it is 0 and where it is 1.
    pub(crate) fn branches(&self, diagram: Diagram) -> Option<(u32, [Diagram; 2])> {
        self.node(diagram).map(|node| (node.level, [node.zero, node.one]))
    }

    /// `zero` where the bit is 0, `one` where it is 1. Both look only at bits of higher levels.
    pub(crate) fn branch(
        &mut self,
        level: u32,
        zero: Diagram,
        one: Diagram,
    ) -> Result<Diagram, TooManyNodes> {
        if zero == one {
            return Ok(zero);
        }
        let mask = self.places.len() - 1;
        let mut place = mixed([level, zero.0, one.0]) & mask;
        while self.places[place] != EMPTY {
            let node = self.nodes[self.places[place] as usize];
            if node.level == level && node.zero == zero && node.one == one {
                return Ok(Diagram(self.places[place]));
            }
            place = (place + 1) & mask;
        }
        if self.nodes.len() == self.most {
            return Err(TooManyNodes);
        }
        let number = self.nodes.len() as u32;
        self.places[place] = number;
        self.nodes.push(Node { level, zero, one });
        if self.nodes.len() * 2 > self.places.len() {
            self.grow();
        }
        Ok(Diagram(number))
    }

    fn grow(&mut self) {
        let length = self.places.len() * 2;
        self.places = vec![EMPTY; length];
        for (number, node) in self.nodes.iter().enumerate() {
            let mut place = mixed([node.level, node.zero.0, node.one.0]) & (length - 1);
            while self.places[place] != EMPTY {
                place = (place + 1) & (length - 1);
            }
            self.places[place] = number as u32;
        }
        if length <= MOST_CHOSEN {
            let known = std::mem::replace(&mut self.chosen, vec![NOTHING_CHOSEN; length]);
            for chosen in known.into_iter().filter(|chosen| chosen.choice != NOTHING_CHOSEN.choice) {
                self.chosen[mixed(chosen.choice.map(|part| part.0)) & (length - 1)] = chosen;
            }
        }
    }

    fn parts(&self, diagram: Diagram, level: u32) -> [Diagram; 2] {
        match self.node(diagram) {
            Some(node) if node.level == level => [node.zero, node.one],
            _ => [diagram, diagram],
        }
    }

    /// `inside` where the set holds, `outside` elsewhere.
    pub(crate) fn choose(
        &mut self,
        set: Diagram,
        inside: Diagram,
        outside: Diagram,
    ) -> Result<Diagram, TooManyNodes> {
        if set == ALL || inside == outside {
            return Ok(inside);
        }
        if set == NONE {
            return Ok(outside);
        }
        if inside == ALL && outside == NONE {
            return Ok(set);
        }
        let choice = [set, inside, outside];
        let hash = mixed(choice.map(|part| part.0));
        let known = self.chosen[hash & (self.chosen.len() - 1)];
        if known.choice == choice {
            return Ok(known.result);
        }
        let level = choice.map(|part| self.level(part)).into_iter().min().unwrap_or(u32::MAX);
        let [sets, insides, outsides] = choice.map(|part| self.parts(part, level));
        let zero = self.choose(sets[0], insides[0], outsides[0])?;
        let one = self.choose(sets[1], insides[1], outsides[1])?;
        let result = self.branch(level, zero, one)?;
        let place = hash & (self.chosen.len() - 1);
        self.chosen[place] = Chosen { choice, result };
        Ok(result)
    }

    /// The first function, and the second one where the first is 0.
    pub(crate) fn over(&mut self, front: Diagram, back: Diagram) -> Result<Diagram, TooManyNodes> {
        match front.number() {
            Some(0) => return Ok(back),
            Some(_) => return Ok(front),
            None if back == NONE || front == back => return Ok(front),
            None => {}
        }
        let choice = [front, back, OVER];
        let hash = mixed(choice.map(|part| part.0));
        let known = self.chosen[hash & (self.chosen.len() - 1)];
        if known.choice == choice {
            return Ok(known.result);
        }
        let level = self.level(front).min(self.level(back));
        let (fronts, backs) = (self.parts(front, level), self.parts(back, level));
        let zero = self.over(fronts[0], backs[0])?;
        let one = self.over(fronts[1], backs[1])?;
        let result = self.branch(level, zero, one)?;
        let place = hash & (self.chosen.len() - 1);
        self.chosen[place] = Chosen { choice, result };
        Ok(result)
    }

    /// Many functions, each over those behind it. They are brought together in pairs, so that functions that
    /// are large take part in few steps.
    pub(crate) fn stacked(&mut self, functions: &[Diagram]) -> Result<Diagram, TooManyNodes> {
        match functions {
            [] => Ok(NONE),
            [only] => Ok(*only),
            _ => {
                let (front, back) = functions.split_at(functions.len() / 2);
                let (front, back) = (self.stacked(front)?, self.stacked(back)?);
                self.over(front, back)
            }
        }
    }

    /// What is in both sets.
    pub(crate) fn both(&mut self, one: Diagram, other: Diagram) -> Result<Diagram, TooManyNodes> {
        // The same pair has one place among the results.
        let (one, other) = (one.min(other), one.max(other));
        self.choose(one, other, NONE)
    }

    /// What is in one of the sets.
    pub(crate) fn either(&mut self, one: Diagram, other: Diagram) -> Result<Diagram, TooManyNodes> {
        let (one, other) = (one.min(other), one.max(other));
        self.choose(one, ALL, other)
    }

    /// What is in the first set and not in the second one.
    pub(crate) fn without(&mut self, one: Diagram, other: Diagram) -> Result<Diagram, TooManyNodes> {
        self.choose(other, NONE, one)
    }

    /// Whether all of the first set is in the second one; makes no nodes.
    pub(crate) fn is_inside(&self, one: Diagram, other: Diagram) -> Result<bool, TooManyNodes> {
        let (mut seen, mut open) = (NumberSet::default(), vec![(one, other)]);
        while let Some((one, other)) = open.pop() {
            if one == NONE || other == ALL || one == other {
                continue;
            }
            if one == ALL || other == NONE {
                return Ok(false);
            }
            if seen.insert((one, other)) {
                if seen.len() > self.most {
                    return Err(TooManyNodes);
                }
                let level = self.level(one).min(self.level(other));
                open.extend(self.parts(one, level).into_iter().zip(self.parts(other, level)));
            }
        }
        Ok(true)
    }

    /// What is in one of many sets, brought together in pairs: sets that were small stay small for long.
    pub(crate) fn any(&mut self, sets: &[Diagram]) -> Result<Diagram, TooManyNodes> {
        match sets {
            [] => Ok(NONE),
            [only] => Ok(*only),
            _ => {
                let (front, back) = sets.split_at(sets.len() / 2);
                let (front, back) = (self.any(front)?, self.any(back)?);
                self.either(front, back)
            }
        }
    }

    /// An operation that no result is kept of yet.
    pub(crate) fn operation(&mut self, neutral: bool) -> Operation {
        self.operations += 1;
        Operation { key: Diagram(OVER.0 - self.operations), neutral }
    }

    /// What `combined` makes of the numbers of two functions, for every input. Results are kept by the
    /// operation.
    pub(crate) fn combine(
        &mut self,
        operation: Operation,
        one: Diagram,
        other: Diagram,
        combined: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Result<Diagram, TooManyNodes> {
        if operation.neutral && (one == NONE || other == NONE) {
            return Ok(if one == NONE { other } else { one });
        }
        if let (Some(one), Some(other)) = (one.number(), other.number()) {
            return Ok(Diagram::end(combined(one, other)));
        }
        let choice = [one, other, operation.key];
        let hash = mixed(choice.map(|part| part.0));
        let known = self.chosen[hash & (self.chosen.len() - 1)];
        if known.choice == choice {
            return Ok(known.result);
        }
        let level = self.level(one).min(self.level(other));
        let (ones, others) = (self.parts(one, level), self.parts(other, level));
        let zero = self.combine(operation, ones[0], others[0], combined)?;
        let one = self.combine(operation, ones[1], others[1], combined)?;
        let result = self.branch(level, zero, one)?;
        let place = hash & (self.chosen.len() - 1);
        self.chosen[place] = Chosen { choice, result };
        Ok(result)
    }

    /// What `joined` makes of the numbers of two functions, for every input.
    pub(crate) fn join(
        &mut self,
        one: Diagram,
        other: Diagram,
        joined: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Result<Diagram, TooManyNodes> {
        let operation = self.operation(false);
        self.combine(operation, one, other, joined)
    }

    /// The numbers that a function has within a set.
    pub(crate) fn numbers(&self, set: Diagram, function: Diagram) -> Result<NumberSet<u32>, TooManyNodes> {
        let (mut numbers, mut seen) = (NumberSet::default(), NumberSet::default());
        let mut open = vec![(set, function)];
        while let Some((set, function)) = open.pop() {
            if set == NONE {
                continue;
            }
            if let (ALL, Some(number)) = (set, function.number()) {
                numbers.insert(number);
                continue;
            }
            if seen.insert((set, function)) {
                if seen.len() > self.most {
                    return Err(TooManyNodes);
                }
                let level = self.level(set).min(self.level(function));
                let (sets, functions) = (self.parts(set, level), self.parts(function, level));
                open.extend(sets.into_iter().zip(functions));
            }
        }
        Ok(numbers)
    }

    /// The bits on one way to an input of the set, or `None` if it is empty. Bits that are not told may be
    /// either; where both values lead on, 0 is taken.
    pub(crate) fn member(&self, set: Diagram) -> Option<Vec<(u32, bool)>> {
        let (mut at, mut way) = (set, Vec::new());
        while let Some(node) = self.node(at) {
            // Every node of a set leads to "yes" somewhere, since the empty set has no node.
            let one = node.zero == NONE;
            way.push((node.level, one));
            at = if one { node.one } else { node.zero };
        }
        (at == ALL).then_some(way)
    }

    /// The number of a function for one input.
    pub(crate) fn value(&self, function: Diagram, bit: &dyn Fn(u32) -> bool) -> u32 {
        let mut at = function;
        while let Some(node) = self.node(at) {
            at = if bit(node.level) { node.one } else { node.zero };
        }
        at.0 & !END
    }

    /// Where a function has this number.
    pub(crate) fn places_of(&mut self, function: Diagram, number: u32) -> Result<Diagram, TooManyNodes> {
        self.join(function, NONE, &mut |own, _| u32::from(own == number))
    }

    /// The numbers from `low` to `high`, both of them included, whose bits have the levels of `levels`, the
    /// highest bit first.
    pub(crate) fn range(&mut self, levels: &[u32], low: u128, high: u128) -> Result<Diagram, TooManyNodes> {
        let (mut least, mut most) = (ALL, ALL);
        for (place, level) in levels.iter().rev().enumerate() {
            let bit = |number: u128| place < 128 && number >> place & 1 == 1;
            least = match bit(low) {
                true => self.branch(*level, NONE, least)?,
                false => self.branch(*level, least, ALL)?,
            };
            most = match bit(high) {
                true => self.branch(*level, ALL, most)?,
                false => self.branch(*level, most, NONE)?,
            };
        }
        if low > high { Ok(NONE) } else { self.both(least, most) }
    }

    /// The numbers whose bits under `mask` are those of `value`.
    pub(crate) fn masked(
        &mut self,
        levels: &[u32],
        value: u128,
        mask: u128,
    ) -> Result<Diagram, TooManyNodes> {
        let mut set = if value & !mask == 0 { ALL } else { NONE };
        for (place, level) in levels.iter().rev().enumerate() {
            if place >= 128 || mask >> place & 1 == 0 {
                continue;
            }
            set = match value >> place & 1 == 1 {
                true => self.branch(*level, NONE, set)?,
                false => self.branch(*level, set, NONE)?,
            };
        }
        Ok(set)
    }
}
