//! Tables on the device: their words, and whether they still are what the processor holds.

use super::Offload;
use crate::kernel::{DEFAULT, HEADER_WORDS, Search};
use crate::state::table_set::{Fast, TablePlace};
use crate::state::{DefaultEntry, State};
use ::tables::device::{self, exact::DeviceExact};
use ::tables::exact::Exact;
use ::tables::rules::Rules;
use lang::ir::{Answer, TableKind};

/// What a table was like when its words went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    entries: [u64; 6],
    default: DefaultEntry,
}

impl Sent {
    fn of(state: &State<Fast>, table: u32) -> Sent {
        Sent { entries: state.tables.state_of(table), default: state.defaults[table as usize] }
    }
}

/// Why a table has no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// An exact table is too large.
    #[error(transparent)]
    Exact(#[from] device::exact::SizeError),
    /// A search for patterns is too large.
    #[error(transparent)]
    Patterns(#[from] ::tables::patterns::BuildError),
}

impl Offload {
    /// The kernel's tables that have changed since their words were last asked for, by their place among the kernel's arguments.
    pub fn stale(&self) -> impl Iterator<Item = usize> + '_ {
        let tables = self.kernel.plan.tables.iter().zip(&self.sent).enumerate();
        tables
            .filter(|(_, (table, sent))| **sent != Some(Sent::of(&self.native.state, **table)))
            .map(|(place, _)| place)
    }

    /// Whether any has.
    pub(super) fn is_stale(&self) -> bool {
        self.stale().next().is_some()
    }

    /// The words of a table of the kernel, as `kernel::searches` says how they lie. From now on it is not stale until it changes.
    ///
    /// # Errors
    /// Its image would be too large.
    pub fn table_words(&mut self, place: usize) -> Result<Vec<u32>, ImageError> {
        let plan = &self.kernel.plan;
        let (table, search) = (plan.tables[place], plan.searches[place]);
        let state = &mut self.native.state;
        self.sent[place] = Some(Sent::of(state, table));
        let mut words = vec![0; HEADER_WORDS];
        let (image, rows) = images(state, table, search, self.kinds[place])?;
        words[1] = words.len() as u32;
        words.extend_from_slice(&image);
        words.resize(words.len().next_multiple_of(16), 0);
        words[2] = words.len() as u32;
        words.extend(rows.iter().flat_map(|row| halves(*row)));
        let shape = &state.tables.shapes[table as usize];
        words[3] = shape.value.words as u32;
        let default = &state.defaults[table as usize];
        words[0] = default.present as u32;
        for (word, value) in default.words[..shape.value.words].iter().enumerate() {
            words[DEFAULT + 2 * word..][..2].copy_from_slice(&halves(*value));
        }
        Ok(words)
    }
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// The image that is searched, and the words of the rows that it names.
fn images(
    state: &mut State<Fast>,
    table: u32,
    search: Search,
    kind: TableKind,
) -> Result<(Vec<u32>, Vec<u64>), ImageError> {
    Ok(match state.tables.places[table as usize] {
        TablePlace::Exact(place) => {
            let held = &state.tables.exact[place];
            let (spec, entries) = (held.spec(), held.entries());
            let mut image = DeviceExact::new(spec.key_words, spec.value_words, entries.len(), spec.seed)?;
            for entry in &entries {
                image.insert(&entry.key, &entry.value)?;
            }
            (image.image().to_vec(), Vec::new())
        }
        TablePlace::Prefixes(place) => {
            let held = &mut state.tables.prefixes[place];
            (device::lpm::image(held.search()), held.rows().all().to_vec())
        }
        TablePlace::Rules(place) => {
            let held = &mut state.tables.rules[place];
            let image = match search {
                Search::RulesLinear => device::linear::image(held.search().spec(), &held.search().entries()),
                _ => device::rules::image(held.search().image()),
            };
            (image, held.rows().all().to_vec())
        }
        TablePlace::Patterns(place) => {
            let held = &state.tables.patterns[place];
            let patterns =
                held.for_device(if let TableKind::Patterns(answer) = kind { answer } else { Answer::First });
            let image = match search {
                Search::Bloom => device::bloom::image(&patterns)?,
                _ => device::automaton::image(&patterns)?,
            };
            (image, held.rows().all().to_vec())
        }
    })
}
