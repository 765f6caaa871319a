//! Pairs of lines of which the first decides about a packet and the second would do the opposite: which of
//! them are correlated, and which are exceptions.

use crate::decisions::AnalysisFault;
use crate::diagram::Diagram;
use crate::order::{OpposedLines, OpposedPairs};
use crate::packet_space::{PacketSpace, WitnessPacket};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// What knows the packets of lines.
pub(crate) trait OpposedSource {
    /// What tells where the first line of a pair decides and the second one would.
    type Place;

    /// Where sets are made.
    fn space(&mut self) -> &mut PacketSpace;

    /// The packets of its groups that a line matches.
    fn matched(&mut self, line: usize) -> Result<Diagram, AnalysisFault>;

    /// One packet about which the first line decides and the second one would; `matched` has the packets of
    /// both.
    fn witness(
        &mut self,
        matched: [Diagram; 2],
        place: Self::Place,
    ) -> Result<Option<WitnessPacket>, AnalysisFault>;
}

/// Tells pairs apart by whether the second line matches all packets of the first one; of each kind at most
/// `most` are told.
pub(crate) fn opposed_pairs<S: OpposedSource>(
    source: &mut S,
    pairs: BTreeMap<(usize, usize), S::Place>,
    most: usize,
) -> Result<OpposedPairs, AnalysisFault> {
    let mut found = OpposedPairs::default();
    let mut matched: HashMap<usize, Diagram> = HashMap::new();
    for ((first, second), place) in pairs {
        for line in [first, second] {
            if let Entry::Vacant(unknown) = matched.entry(line) {
                unknown.insert(source.matched(line)?);
            }
        }
        let both = [matched[&first], matched[&second]];
        let diagrams = &source.space().diagrams;
        let (told, count) = match () {
            () if diagrams.is_inside(both[0], both[1])? => {
                (&mut found.exceptions, &mut found.exceptions_count)
            }
            () if diagrams.is_inside(both[1], both[0])? => continue,
            () => (&mut found.correlated, &mut found.correlated_count),
        };
        *count += 1;
        if told.len() < most {
            let Some(witness) = source.witness(both, place)? else { continue };
            let space = source.space();
            let may = witness.remembered.iter().map(|memory| space.memory_text(*memory).to_owned()).collect();
            told.push(OpposedLines { first, second, witness, may });
        }
    }
    Ok(found)
}
