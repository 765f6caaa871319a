//! The lines of one access list, by their numbers and by what they say.

use super::entry::Entry;
use crate::ImportError;
use crate::text::Word;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

/// The largest number of a line of a list.
const LARGEST: u64 = i32::MAX as u64;

/// The distance of the numbers of lines that IOS gives by itself.
const STEP: u64 = 10;

/// Whether the list of a number is an extended one; `None` for lists of other protocols.
///
/// # Errors
/// A word that is no number of a list.
pub(super) fn is_extended(name: Word<'_>) -> Result<Option<bool>, ImportError> {
    let number = name.number(9999, "number of an access list")?;
    match number {
        1..=99 | 1300..=1999 => Ok(Some(false)),
        100..=199 | 2000..=2699 => Ok(Some(true)),
        // Kinds of Ethernet, DECnet, XNS, AppleTalk, Ethernet addresses, IPX.
        200..=1299 => Ok(None),
        _ => {
            let what = format!("access list {number} is none of IP");
            Err(name.error(what, "lists of IP are 1-199 and 1300-2699"))
        }
    }
}

/// An access list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) name: String,
    pub(crate) extended: bool,
    /// Its first line.
    pub(crate) line: u32,
    pub(crate) refused: Vec<ImportError>,
    /// Its lines by their numbers, which say their order.
    entries: BTreeMap<u64, Entry>,
    /// The numbers of lines by the hash of what they say.
    numbers: HashMap<u64, BTreeSet<u64>>,
    /// The numbers that refused lines have, if they are lines.
    refused_numbers: BTreeSet<u64>,
    /// The number behind which it is not known which numbers lines have, since a line is refused.
    known_to: Option<u64>,
    hasher: RandomState,
}

impl List {
    /// A list without lines that starts on this one.
    pub(super) fn new(name: String, extended: bool, line: u32) -> Self {
        Self {
            name,
            extended,
            line,
            refused: Vec::new(),
            entries: BTreeMap::new(),
            numbers: HashMap::new(),
            refused_numbers: BTreeSet::new(),
            known_to: None,
            hasher: RandomState::new(),
        }
    }

    /// The lines in their order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.entries.contains_key(&number)
    }

    /// The number of a line that a word says.
    ///
    /// # Errors
    /// A word that is no number of a line, or one of which it is not known which line has it.
    pub(super) fn number(&self, word: Word<'_>) -> Result<u64, ImportError> {
        let number = word.number(LARGEST, "number of a line")?;
        let is_behind = self.known_to.is_some_and(|known| number > known);
        if is_behind || self.refused_numbers.contains(&number) { Err(unknown(word)) } else { Ok(number) }
    }

    /// Notes the number that a refused line has: the one that it says, or the next one.
    pub(super) fn refuse_number(&mut self, said: Option<Word<'_>>) {
        let last = self.refused_numbers.last().map_or(self.last(), |refused| self.last().max(*refused));
        let number = match said {
            Some(word) => word.number(LARGEST, "number of a line").ok(),
            None => Some(last.saturating_add(STEP)),
        };
        self.refused_numbers.extend(number.filter(|number| !self.has(*number)));
    }

    /// The largest number of a line, or 0.
    fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(0, |(last, _)| *last)
    }

    /// The first line that says the same.
    pub(super) fn same(&self, entry: &Entry) -> Option<u64> {
        let numbers = self.numbers.get(&self.hash(entry))?;
        numbers.iter().copied().find(|number| self.entries.get(number).is_some_and(|own| own.is_same(entry)))
    }

    /// Adds a line behind all others. IOS numbers it by the line before it, which may be a refused one.
    pub(super) fn push(&mut self, entry: Entry) {
        let last = self.last();
        if !self.refused.is_empty() {
            self.known_to.get_or_insert(last);
        }
        self.insert(last.saturating_add(STEP), entry);
    }

    /// Adds a line under a number that no line has.
    pub(super) fn insert(&mut self, number: u64, entry: Entry) {
        self.numbers.entry(self.hash(&entry)).or_default().insert(number);
        self.entries.insert(number, entry);
    }

    /// Takes a line away; `None` if no line has the number.
    pub(super) fn remove(&mut self, number: u64) -> Option<()> {
        let entry = self.entries.remove(&number)?;
        let hash = self.hash(&entry);
        if let Some(numbers) = self.numbers.get_mut(&hash) {
            numbers.remove(&number);
        }
        Some(())
    }

    /// Gives the lines numbers from the first one on, in their order.
    ///
    /// # Errors
    /// Words that are no numbers, and numbers that lines cannot have; a refused line, as it is not known
    /// whether that one gets a number, too. It is then known of no line which number it has.
    pub(super) fn resequence(&mut self, first: Word<'_>, step: Word<'_>) -> Result<(), ImportError> {
        let (first_number, step_number) =
            (first.number(LARGEST, "number of a line")?, step.number(LARGEST, "number of a line")?);
        if !self.refused.is_empty() {
            self.known_to = Some(0);
            return Err(unknown(first));
        }
        let behind_first = (self.len() as u64).saturating_sub(1);
        let last = step_number.saturating_mul(behind_first).saturating_add(first_number);
        if first_number == 0 || step_number == 0 || last > LARGEST {
            return Err(first.error("the lines have no such numbers", format!("numbers are 1 to {LARGEST}")));
        }
        self.numbers.clear();
        for (place, (_, entry)) in (0..).zip(std::mem::take(&mut self.entries)) {
            self.insert(first_number + step_number * place, entry);
        }
        Ok(())
    }

    /// Takes all away that it has.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.numbers.clear();
        self.refused.clear();
        self.refused_numbers.clear();
        self.known_to = None;
    }

    fn hash(&self, entry: &Entry) -> u64 {
        self.hasher.hash_one((entry.allow, &entry.packets))
    }
}

/// The error that it is not known which line has a number.
fn unknown(number: Word<'_>) -> ImportError {
    let what = "the list has a refused line, so that it is not known which line has which number";
    number.error(what, "mend the refused line, or write the list as it is to be, without numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::AddressFamily;
    use crate::conditions::Conditions;
    use crate::region::Set;
    use crate::ruleset::Part;

    #[test]
    fn a_line_is_found_without_those_that_say_something_else() {
        let entry = |port: u128| {
            let mut packets = Conditions::new(AddressFamily::V4);
            packets.is(Set::exact(port), Part::SourcePort, false);
            Entry { allow: true, log: false, line: 1, text: "permit".into(), packets: vec![packets] }
        };
        let mut list = List::new("x".to_owned(), true, 1);
        (0..1_000).for_each(|number| list.insert(number, entry(u128::from(number % 500))));
        let looked_at = list.numbers.values().map(BTreeSet::len).max();
        assert_eq!(looked_at, Some(2), "those that say the same");
        assert_eq!(list.same(&entry(7)), Some(7));
        assert_eq!((list.remove(7), list.remove(7), list.same(&entry(7))), (Some(()), None, Some(507)));
        assert_eq!((list.remove(507), list.same(&entry(7)), list.len()), (Some(()), None, 998));
        list.clear();
        assert_eq!((list.same(&entry(8)), list.is_empty(), list.last()), (None, true, 0));
    }
}
