//! Searches among rules, and diagrams that answer where they are long.

use crate::decisions::AnalysisFault;
use crate::diagram::{ALL, Diagram, NONE};
use crate::packet_space::PacketSpace;
use crate::search::{Search, SearchFault};

/// Searches of an analysis.
pub(crate) struct Searches {
    search: Search,
    /// How many more of them a diagram may answer, since they are long.
    long: usize,
}

impl Searches {
    /// Searches, of which at most `long` may be too long and are then answered by a diagram.
    pub(crate) fn with_limits(search: Search, long: usize) -> Searches {
        Searches { search, long }
    }

    /// Whether a packet is in all of the first sets and in none of the others.
    pub(crate) fn holds(
        &mut self,
        space: &mut PacketSpace,
        inside: &[Diagram],
        outside: &[Diagram],
    ) -> Result<bool, AnalysisFault> {
        match self.search.holds(&space.diagrams, inside, outside.iter().copied()) {
            Ok(holds) => Ok(holds),
            Err(fault) => Ok(self.by_diagram(fault, space, inside, outside)? != NONE),
        }
    }

    /// The bits on the way to the least such packet. Bits that are not told are 0.
    pub(crate) fn least(
        &mut self,
        space: &mut PacketSpace,
        inside: &[Diagram],
        outside: &[Diagram],
    ) -> Result<Option<Vec<(u32, bool)>>, AnalysisFault> {
        match self.search.least(&space.diagrams, inside, outside.iter().copied()) {
            Ok(way) => Ok(way),
            Err(fault) => {
                let left = self.by_diagram(fault, space, inside, outside)?;
                Ok(space.diagrams.member(left))
            }
        }
    }

    /// The packets that a search was to find, unless too much has been searched.
    fn by_diagram(
        &mut self,
        fault: SearchFault,
        space: &mut PacketSpace,
        inside: &[Diagram],
        outside: &[Diagram],
    ) -> Result<Diagram, AnalysisFault> {
        if fault == SearchFault::TooMany || self.long == 0 {
            return Err(AnalysisFault::TooManySearches);
        }
        self.long -= 1;
        left(space, inside, outside)
    }
}

/// The packets that are in all of the first sets and in none of the others.
pub(crate) fn left(
    space: &mut PacketSpace,
    inside: &[Diagram],
    outside: &[Diagram],
) -> Result<Diagram, AnalysisFault> {
    let mut left = ALL;
    for set in inside {
        left = space.diagrams.both(left, *set)?;
    }
    let mut taken = Vec::with_capacity(outside.len());
    for set in outside {
        taken.push(space.diagrams.both(left, *set)?);
    }
    let taken = space.diagrams.any(&taken)?;
    Ok(space.diagrams.without(left, taken)?)
}

/// These sets in order, each of them once.
pub(crate) fn each_once(sets: impl Iterator<Item = Diagram>) -> Vec<Diagram> {
    let mut sets: Vec<Diagram> = sets.collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}
