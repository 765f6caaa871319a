//! Images of tables on the device: which tables have changed since their image was sent, and which words of
//! the image the host sends now.

use super::Offload;
use exec::kernel::{DEFAULT, HEADER_WORDS, KernelSearch};
use exec::state::rows::Rows;
use exec::state::table_set::{Fast, TablePlace, TableSet};
use exec::state::{DefaultEntry, ProgramState};
use ir::{Answer, TableKind};
use std::borrow::Cow;
use std::ops::Range;
use tables::device::{self, exact::DeviceExact};
use tables::exact::Exact;
use tables::rules::Rules;

/// What a table was like when its words went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    entries: [u64; 6],
    default: DefaultEntry,
}

impl Sent {
    fn of(state: &ProgramState<Fast>, table: u32) -> Sent {
        Sent { entries: state.tables.state_of(table), default: state.defaults[table as usize] }
    }
}

/// What has changed of tables since their words went over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageChanges {
    /// Nothing.
    None,
    /// Entries of exact tables, and packets tell which they asked for.
    Entries,
    /// Anything else, too.
    Others,
}

/// After fewer packets entries that have changed do not go over.
const LEAST: u64 = 1024;

/// Why a table has no image.
#[derive(Debug, thiserror::Error)]
pub enum DeviceImageError {
    /// An exact table is too large.
    #[error(transparent)]
    Exact(#[from] device::exact::SizeError),
    /// A search for patterns is too large.
    #[error(transparent)]
    Patterns(#[from] tables::patterns::PatternsBuildError),
}

impl Offload {
    /// The kernel's tables that have changed since their words were last asked for, by their place among the
    /// kernel's arguments.
    pub fn stale(&self) -> impl Iterator<Item = usize> + '_ {
        let tables = self.kernel.plan.tables.iter().zip(&self.sent).enumerate();
        tables
            .filter(|(_, (table, sent))| **sent != Some(Sent::of(self.native.state(), **table)))
            .map(|(place, _)| place)
    }

    /// What has changed of any.
    pub fn changes(&self) -> ImageChanges {
        let mut changes = ImageChanges::None;
        for place in self.stale() {
            let default = &self.native.state().defaults[self.kernel.plan.tables[place] as usize];
            let same = self.sent[place].is_some_and(|sent| sent.default == *default);
            if !(same && self.kernel.plan.keyed[place] && self.mirrors[place].is_some()) {
                return ImageChanges::Others;
            }
            changes = ImageChanges::Entries;
        }
        changes
    }

    /// The same, where so much is known to have changed.
    pub(super) fn changes_beside(&self, known: ImageChanges) -> ImageChanges {
        if known == ImageChanges::Others { known } else { self.changes() }
    }

    /// Whether it is worth it to let entries that have changed go over: looking for them takes time with
    /// every entry that there is.
    pub fn is_due(&self) -> bool {
        let entries: usize =
            self.stale().filter_map(|place| self.mirrors[place].as_ref()).map(DeviceExact::len).sum();
        self.since >= LEAST.max(entries as u64 / 4)
    }

    /// Whether the device has the same entry of an exact table for a key as there is now, or has none as
    /// there is none.
    pub(super) fn was_sent(&self, table: u32, key: &[u64]) -> bool {
        let place = self.kernel.plan.tables.iter().position(|one| *one == table);
        let mirror = place.and_then(|place| self.mirrors[place].as_ref());
        let (Some(mirror), TablePlace::Exact(place)) =
            (mirror, self.native.state().tables.places[table as usize])
        else {
            return false;
        };
        let image = mirror.image();
        match (self.native.state().tables.exact[place].peek(key), mirror.find(key)) {
            (Some(value), Some(at)) => value
                .iter()
                .enumerate()
                .all(|(word, value)| halves(*value) == [image[at + 2 * word], image[at + 2 * word + 1]]),
            (None, None) => true,
            _ => false,
        }
    }

    /// All words of a table of the kernel, as `kernel::searches` says how they lie. From now on it is not
    /// stale until it changes.
    ///
    /// # Errors
    /// Its image would be too large; the table is as stale as before.
    pub fn table_words(&mut self, place: usize) -> Result<Vec<u32>, DeviceImageError> {
        self.send(place, |_, header, Image { words, rows, .. }| whole(header, &words, &rows))
    }

    /// What is to go over of a table of the kernel, whose words lie as `kernel::searches` says. From now on
    /// it is not stale until it changes.
    ///
    /// # Errors
    /// Its image would be too large; the table is as stale as before.
    pub fn table_update(&mut self, place: usize) -> Result<ImageUpdate, DeviceImageError> {
        self.send(place, |same_default, header, Image { words, rows, changes }| {
            match parts(&words, changes) {
                Some(parts) => {
                    let header = (!same_default).then(|| (0, header.to_vec()));
                    ImageUpdate::Parts(header.into_iter().chain(parts).collect())
                }
                None => ImageUpdate::Whole(whole(header, &words, &rows)),
            }
        })
    }

    /// What `of` makes of a table to be sent: whether its default is what was sent last, its header, and its
    /// image.
    fn send<T>(
        &mut self,
        place: usize,
        of: impl FnOnce(bool, [u32; HEADER_WORDS], Image<'_>) -> T,
    ) -> Result<T, DeviceImageError> {
        let plan = &self.kernel.plan;
        let (table, search) = (plan.tables[place], plan.searches[place]);
        let now = Sent::of(self.native.state(), table);
        self.native.finish_matching(table);
        let state = self.native.state();
        let image = image(&state.tables, table, search, &mut self.mirrors[place])?;
        let header = header(state, table, image.words.len());
        let same_default = self.sent[place].is_some_and(|sent| sent.default == now.default);
        let sent = of(same_default, header, image);
        self.sent[place] = Some(now);
        self.since = 0;
        Ok(sent)
    }
}

/// What is to go over of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUpdate {
    /// All its words.
    Whole(Vec<u32>),
    /// Words from a place on, several times; their number is what it was.
    Parts(Vec<(usize, Vec<u32>)>),
}

/// Changes with fewer words between them go over in one piece: a copy of its own takes longer than those
/// words.
const NEAR: usize = 256;
/// More pieces are not worth it.
const MOST_PARTS: usize = 32;

/// The parts that changes of an image are sent in, or none where it is better sent whole.
fn parts(image: &[u32], changes: Vec<Range<usize>>) -> Option<Vec<(usize, Vec<u32>)>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for change in changes {
        match pieces.last_mut() {
            Some(last) if change.start < last.end + NEAR => last.end = change.end,
            _ => pieces.push(change),
        }
    }
    if pieces.len() > MOST_PARTS || pieces.iter().any(|piece| piece.len() == image.len()) {
        return None;
    }
    Some(pieces.into_iter().map(|piece| (HEADER_WORDS + piece.start, image[piece].to_vec())).collect())
}

/// What stands before a table's image of so many words.
fn header(state: &ProgramState<Fast>, table: u32, image: usize) -> [u32; HEADER_WORDS] {
    let mut words = [0; HEADER_WORDS];
    let value_words = state.tables.shapes[table as usize].value.words;
    let default = &state.defaults[table as usize];
    let rows = (HEADER_WORDS + image).next_multiple_of(16);
    words[..4].copy_from_slice(&[
        default.present as u32,
        HEADER_WORDS as u32,
        rows as u32,
        value_words as u32,
    ]);
    for (word, value) in default.words[..value_words].iter().enumerate() {
        words[DEFAULT + 2 * word..][..2].copy_from_slice(&halves(*value));
    }
    words
}

fn whole(header: [u32; HEADER_WORDS], image: &[u32], rows: &[u64]) -> Vec<u32> {
    let rows_at = header[2] as usize;
    let mut words = Vec::with_capacity(rows_at + 2 * rows.len());
    words.extend_from_slice(&header);
    words.extend_from_slice(image);
    words.resize(rows_at, 0);
    words.extend(rows.iter().flat_map(|row| halves(*row)));
    words
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// What is searched in a table.
struct Image<'a> {
    words: Cow<'a, [u32]>,
    /// The words of the rows that it names.
    rows: Vec<u64>,
    /// Which words are others than when this was last asked.
    changes: Vec<Range<usize>>,
}

/// The image of a table; `mirror` is where that of an exact one is kept.
fn image<'a>(
    tables: &'a TableSet<Fast>,
    table: u32,
    search: KernelSearch,
    mirror: &'a mut Option<DeviceExact>,
) -> Result<Image<'a>, DeviceImageError> {
    let (words, rows): (_, &Rows) = match tables.places[table as usize] {
        TablePlace::Exact(place) => {
            let held = &tables.exact[place];
            let (spec, entries) = (held.spec(), held.entries());
            let mirror = match mirror {
                Some(mirror) => mirror,
                None => {
                    let made = DeviceExact::new(spec.key_words, spec.value_words, entries.len(), spec.seed)?;
                    mirror.insert(made)
                }
            };
            mirror.hold(entries.iter().map(|entry| (&entry.key[..], &entry.value[..])))?;
            let changes = mirror.take_changes();
            return Ok(Image { words: Cow::Borrowed(mirror.image()), rows: Vec::new(), changes });
        }
        TablePlace::Prefixes(place) => {
            let held = &tables.prefixes[place];
            (device::lpm::image(held.search()), held.rows())
        }
        TablePlace::Rules(place) => {
            let held = &tables.rules[place];
            let words = match search {
                KernelSearch::RulesLinear => {
                    device::linear::image(held.search().spec(), &held.search().entries())
                }
                _ => device::rules::image(held.search().image()),
            };
            (words, held.rows())
        }
        TablePlace::Patterns(place) => {
            let held = &tables.patterns[place];
            let answer = match tables.declared[table as usize].kind {
                TableKind::Patterns(answer) => answer,
                _ => Answer::First,
            };
            let patterns = held.for_device(answer);
            let words = match search {
                KernelSearch::Bloom => device::bloom::image(&patterns)?,
                _ => device::automaton::image(&patterns)?,
            };
            (words, held.rows())
        }
    };
    let (rows, changes) = (rows.all().to_vec(), std::iter::once(0..words.len()).collect());
    Ok(Image { words: Cow::Owned(words), rows, changes })
}
