//! The fast longest-prefix table: prefixes in order, and the image that lookups read.
//!
//! The idea: the prefixes decide, the image follows. A change goes into the ordered prefixes first; then the
//! cells and nodes of the image that it touches are made anew and published. An image has all the room that
//! it may ever need from the beginning on, which costs nothing until it is written. Where changes have left
//! holes in all of it, or its form no longer holds all values, it is made again beside the old one.

use std::sync::Arc;

#[cfg(feature = "fastest")]
use super::bulk::Method;
use super::codes::{Codes, Form};
#[cfg(feature = "fastest")]
use super::dir24_8::Dir24;
use super::epoch::Epochs;
use super::layout::Layout;
use super::lookup::Snapshot;
use super::most::{self, GENEROUS, MOST_WORDS, ROOT_BITS};
use super::nodes::{Exhausted, Nodes};
#[cfg(feature = "fastest")]
use super::reader::{Current, LpmReader};
use super::routes::{Code, Region, Routes};
#[cfg(not(feature = "fastest"))]
use super::tree_alone::{Current, Dir24};
use super::words::Words;
use super::{Lpm, LpmBuildError, LpmInsertError, LpmSpec, LpmSpecError, NONE, Prefix, trie};

/// What a table is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Fewest steps a lookup: a cell for each of the first 24 bits of a 32-bit address, of 1, 2 or 4 bytes.
    Fast,
    /// Fewest bytes: a tree from the first bits on, for caches and graphics cards. Only 32-bit addresses
    /// differ.
    Compact,
}

impl Variant {
    fn direct(self, width: u8) -> bool {
        cfg!(feature = "fastest") && self == Variant::Fast && width == 32
    }
}

/// A longest-prefix table made to be fast. The thread that owns it changes it; others look up through a
/// [`LpmReader`].
pub struct LpmTable {
    spec: LpmSpec,
    variant: Variant,
    routes: Routes,
    codes: Codes,
    nodes: Nodes,
    direct: Dir24,
    /// Words that the image has at most.
    most: usize,
    current: Current,
    epochs: Arc<Epochs>,
}

impl LpmTable {
    /// An empty table of the fast variant; fails if the spec asks for more than there can be.
    pub fn new(spec: LpmSpec) -> Result<LpmTable, LpmSpecError> {
        LpmTable::with(spec, Variant::Fast)
    }

    /// An empty table of a variant.
    pub fn with(spec: LpmSpec, variant: Variant) -> Result<LpmTable, LpmSpecError> {
        spec.check()?;
        let form = Form::empty(variant.direct(spec.width), spec.capacity);
        Ok(LpmTable::assemble(spec, variant, Routes::new(spec.width), Codes::new(form), MOST_WORDS)?)
    }

    /// A table of all `entries`, in any order, much faster than one at a time; a prefix may be there once.
    pub fn build(
        spec: LpmSpec,
        variant: Variant,
        entries: Vec<(Prefix, u32)>,
    ) -> Result<LpmTable, LpmBuildError> {
        LpmTable::build_within(spec, variant, entries, MOST_WORDS)
    }

    /// [`LpmTable::build`] with an image of so many words at most.
    pub(super) fn build_within(
        spec: LpmSpec,
        variant: Variant,
        entries: Vec<(Prefix, u32)>,
        most: usize,
    ) -> Result<LpmTable, LpmBuildError> {
        spec.check()?;
        if entries.len() > spec.capacity {
            return Err(LpmInsertError::Full { capacity: spec.capacity }.into());
        }
        for (prefix, value) in &entries {
            spec.check_prefix(*prefix)?;
            if *value == NONE {
                return Err(LpmInsertError::Value.into());
            }
        }
        let direct = variant.direct(spec.width);
        let form = if entries.is_empty() {
            Form::empty(direct, spec.capacity)
        } else {
            Form::choose(direct, entries.iter().map(|entry| entry.1), spec.capacity)
        };
        let mut codes = Codes::new(form);
        let empty = Routes::new(spec.width);
        let mut coded = Vec::with_capacity(entries.len());
        for (prefix, value) in entries {
            let code = codes.take(value, || u64::MAX).map_or(0, |(code, _)| code);
            coded.push((empty.region(prefix), code));
        }
        let key = |(region, _): &(Region, Code)| (region.bits, region.length);
        coded.sort_unstable_by_key(key);
        if let Some(twice) = coded.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let Prefix { bits, length } = empty.prefix(twice[0].0);
            return Err(LpmInsertError::Duplicate { bits, length }.into());
        }
        let made = LpmTable::assemble(spec, variant, Routes::from_sorted(spec.width, coded), codes, most);
        made.map_err(|cause| match cause {
            Unmade::Memory { bytes } => LpmSpecError::Memory { bytes }.into(),
            Unmade::Cells { bytes } => LpmInsertError::Cells { bytes }.into(),
        })
    }

    fn assemble(
        spec: LpmSpec,
        variant: Variant,
        routes: Routes,
        codes: Codes,
        most: usize,
    ) -> Result<LpmTable, Unmade> {
        let epochs = Arc::new(Epochs::new());
        let made = make(spec, &routes, &codes, most, &epochs)?;
        let current = Current::new(Arc::clone(&made.nodes.snapshot));
        let Made { nodes, direct } = made;
        Ok(LpmTable { spec, variant, routes, codes, nodes, direct, most, current, epochs })
    }

    /// Bytes that a table takes which was made of all its prefixes at once: of its image what is in use, in
    /// large pages.
    pub fn allocated(&self) -> u64 {
        let LpmTable { routes, codes, nodes, direct, .. } = self;
        nodes.snapshot.words.taken(nodes.end())
            + nodes.allocated()
            + routes.allocated()
            + codes.allocated()
            + direct.allocated()
    }

    /// The shape it was made with.
    pub fn spec(&self) -> LpmSpec {
        self.spec
    }

    /// A handle for a thread that looks up while this one goes on changing the table.
    #[cfg(feature = "fastest")]
    pub fn reader(&self) -> LpmReader {
        LpmReader::new(&self.current, Arc::clone(&self.epochs))
    }

    /// The value of the longest prefix that contains `address`, or [`NONE`], in a table of at most 32 bits.
    #[inline]
    pub fn find32(&self, address: u32) -> u32 {
        self.nodes.snapshot.view().find32(address)
    }

    /// Asks for the memory that [`find32`](LpmTable::find32) of this address reads first, some time before it
    /// is called.
    #[inline]
    pub fn prefetch32(&self, address: u32) {
        self.nodes.snapshot.view().prefetch32(address);
    }

    /// The value of the longest prefix that contains `address`, or [`NONE`].
    #[inline]
    pub fn find128(&self, address: u128) -> u32 {
        self.nodes.snapshot.view().find(address)
    }

    /// The words of the image, and how many there are.
    #[cfg(feature = "device")]
    pub(super) fn words(&self) -> (&Words, usize) {
        (&self.nodes.snapshot.words, self.nodes.end())
    }

    /// Brings the image to what the prefixes say of `region`. On failure nothing has changed.
    fn follow(&mut self, region: Region) -> Result<(), Exhausted> {
        let number = self.epochs.now();
        let LpmTable { nodes, routes, direct, .. } = self;
        if nodes.snapshot.layout.cell_bits == 0 {
            trie::change(nodes, region, routes)?.publish(nodes, number);
        } else {
            let oldest = self.epochs.oldest();
            direct.change(nodes, routes, region, number, oldest)?;
        }
        nodes.snapshot.layout.write(&nodes.snapshot.words, nodes.end());
        Ok(())
    }

    /// The same, with an image without holes if need be.
    fn follow_or_make(&mut self, region: Region) -> Result<(), LpmInsertError> {
        match self.follow(region) {
            Ok(()) => Ok(()),
            Err(Exhausted) => {
                self.replace(make(self.spec, &self.routes, &self.codes, self.most, &self.epochs)?);
                Ok(())
            }
        }
    }

    /// A code for `value`; if the form has none left, the whole image gets another form.
    fn code(&mut self, value: u32) -> Result<Code, LpmInsertError> {
        if let Some((code, new)) = self.codes.take(value, || self.epochs.oldest()) {
            if new {
                self.nodes.store(self.nodes.snapshot.layout.palette + code as usize, value);
            }
            return Ok(code);
        }
        let values = self.routes.iter().map(|(_, code)| self.codes.value(code)).chain([value]);
        let form = Form::choose(self.variant.direct(self.spec.width), values, self.spec.capacity);
        let mut codes = Codes::new(form);
        let mut place = |value| codes.take(value, || u64::MAX).map_or(0, |(code, _)| code);
        let recoded: Vec<Code> = self.routes.iter().map(|(_, code)| place(self.codes.value(code))).collect();
        let code = place(value);
        let before: Vec<Code> = self.routes.iter().map(|(_, code)| code).collect();
        let mut next = recoded.into_iter();
        self.routes.recode(|code| next.next().unwrap_or(code));
        match make(self.spec, &self.routes, &codes, self.most, &self.epochs) {
            Ok(made) => {
                self.codes = codes;
                self.replace(made);
                Ok(code)
            }
            Err(cause) => {
                let mut next = before.into_iter();
                self.routes.recode(|code| next.next().unwrap_or(code));
                Err(cause.into())
            }
        }
    }

    fn replace(&mut self, made: Made) {
        self.current.store(Arc::clone(&made.nodes.snapshot));
        self.nodes = made.nodes;
        self.direct = made.direct;
    }
}

/// An image and what its writer keeps beside it.
struct Made {
    nodes: Nodes,
    direct: Dir24,
}

/// Why there is no image.
enum Unmade {
    /// So many bytes could not be had.
    Memory { bytes: usize },
    /// More than so many bytes would be needed.
    Cells { bytes: usize },
}

impl From<Unmade> for LpmSpecError {
    fn from(cause: Unmade) -> LpmSpecError {
        let (Unmade::Memory { bytes } | Unmade::Cells { bytes }) = cause;
        LpmSpecError::Memory { bytes }
    }
}

impl From<Unmade> for LpmInsertError {
    fn from(cause: Unmade) -> LpmInsertError {
        match cause {
            Unmade::Memory { bytes } => LpmInsertError::Memory { bytes },
            Unmade::Cells { bytes } => LpmInsertError::Cells { bytes },
        }
    }
}

/// Makes a whole image of at most `whole` words. A wide table's takes bytes to save steps if that leaves a
/// quarter of what it may take so for changes.
fn make(
    spec: LpmSpec,
    routes: &Routes,
    codes: &Codes,
    whole: usize,
    epochs: &Arc<Epochs>,
) -> Result<Made, Unmade> {
    let generous = if spec.width > 32 { GENEROUS.min(most::heap(spec) / 2) } else { 0 };
    if generous > 0
        && let Some(made) = attempt(spec, routes, codes, whole, generous, epochs)?
        && made.nodes.end() <= generous / 4 * 3
    {
        return Ok(made);
    }
    match attempt(spec, routes, codes, whole, 0, epochs)? {
        Some(made) => Ok(made),
        None => Err(Unmade::Cells { bytes: whole.saturating_mul(4) }),
    }
}

/// The same, with nodes that save steps up to `generous` words; none if the words do not suffice.
fn attempt(
    spec: LpmSpec,
    routes: &Routes,
    codes: &Codes,
    whole: usize,
    generous: usize,
    epochs: &Arc<Epochs>,
) -> Result<Option<Made>, Unmade> {
    let Form { cell_bits, indexed, palette } = codes.form();
    let layout = Layout::new(spec.width, cell_bits, indexed, palette, ROOT_BITS);
    if layout.heap >= whole {
        return Err(Unmade::Cells { bytes: whole.saturating_mul(4) });
    }
    let room = layout.heap + most::heap(spec);
    let words = Words::new(room.min(whole)).map_err(|bytes| Unmade::Memory { bytes })?;
    let snapshot = Arc::new(Snapshot { words, layout });
    let mut nodes = Nodes::new(snapshot, generous, Arc::clone(epochs));
    for (place, value) in codes.palette().iter().enumerate() {
        nodes.store(layout.palette + place, *value);
    }
    let mut direct = Dir24::default();
    let filled = if cell_bits == 0 {
        let whole = Region { bits: 0, length: 0 };
        trie::change(&mut nodes, whole, routes).map(|change| change.publish(&mut nodes, 0))
    } else {
        direct.fill(&mut nodes, routes)
    };
    if filled.is_err() {
        return Ok(None);
    }
    layout.write(&nodes.snapshot.words, nodes.end());
    nodes.snapshot.words.small_pages_from(nodes.end());
    nodes.in_use = true;
    Ok(Some(Made { nodes, direct }))
}

/// Words of nodes that these prefixes take in an image made of them at once.
#[cfg(test)]
pub(super) fn heap_words(spec: LpmSpec, entries: Vec<(Prefix, u32)>) -> usize {
    let empty = Routes::new(spec.width);
    let mut coded: Vec<(Region, Code)> =
        entries.into_iter().map(|(prefix, value)| (empty.region(prefix), value)).collect();
    coded.sort_unstable_by_key(|(region, _)| (region.bits, region.length));
    let form = Form { cell_bits: if spec.width == 32 { 32 } else { 0 }, indexed: false, palette: 0 };
    let (routes, codes) = (Routes::from_sorted(spec.width, coded), Codes::new(form));
    // With room for more than may be needed.
    let spec = LpmSpec { capacity: spec.capacity * 2 + 1000, ..spec };
    let made = attempt(spec, &routes, &codes, MOST_WORDS, 0, &Arc::new(Epochs::new()));
    let nodes = made.ok().flatten().expect("room").nodes;
    nodes.end() - nodes.snapshot.layout.heap
}

#[cfg(feature = "fastest")]
impl LpmTable {
    /// Looks up all `addresses` of a table at most 32 bits wide; `out[i]` becomes the answer to
    /// `addresses[i]`, as far as both reach.
    pub fn find_bulk32(&self, addresses: &[u32], out: &mut [u32]) {
        self.find_bulk32_by(Method::best(), addresses, out);
    }

    /// Looks up all `addresses`; `out[i]` becomes the answer to `addresses[i]`, as far as both reach.
    pub fn find_bulk128(&self, addresses: &[u128], out: &mut [u32]) {
        self.find_bulk128_by(Method::best(), addresses, out);
    }

    /// The same as [`find_bulk32`](LpmTable::find_bulk32) by a method of one's choice; the portable one if
    /// the machine has not got it.
    pub fn find_bulk32_by(&self, method: Method, addresses: &[u32], out: &mut [u32]) {
        self.nodes.snapshot.view().find_bulk32(method, addresses, out);
    }

    /// The same as [`find_bulk128`](LpmTable::find_bulk128) by a method of one's choice; the portable one if
    /// the machine has not got it.
    pub fn find_bulk128_by(&self, method: Method, addresses: &[u128], out: &mut [u32]) {
        self.nodes.snapshot.view().find_bulk128(method, addresses, out);
    }
}

impl Lpm for LpmTable {
    fn insert(&mut self, prefix: Prefix, value: u32) -> Result<Option<u32>, LpmInsertError> {
        self.spec.check_prefix(prefix)?;
        if value == NONE {
            return Err(LpmInsertError::Value);
        }
        let region = self.routes.region(prefix);
        let known = self.routes.code(region);
        if known.is_none() && self.routes.len() >= self.spec.capacity {
            return Err(LpmInsertError::Full { capacity: self.spec.capacity });
        }
        let old_value = known.map(|code| self.codes.value(code));
        if old_value == Some(value) {
            return Ok(old_value);
        }
        let code = self.code(value)?;
        // A change of the form has given every prefix another code.
        let old = self.routes.insert(region, code);
        if let Err(error) = self.follow_or_make(region) {
            match old {
                Some(old) => self.routes.insert(region, old),
                None => self.routes.remove(region),
            };
            self.codes.give(code, self.epochs.now());
            self.epochs.advance();
            return Err(error);
        }
        if let Some(old) = old {
            self.codes.give(old, self.epochs.now());
        }
        self.epochs.advance();
        Ok(old_value)
    }

    fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        if self.spec.check_prefix(prefix).is_err() {
            return None;
        }
        let region = self.routes.region(prefix);
        let code = self.routes.remove(region)?;
        if self.follow_or_make(region).is_err() {
            // Without memory for the image that lacks it, the prefix stays.
            self.routes.insert(region, code);
            return None;
        }
        let value = self.codes.value(code);
        self.codes.give(code, self.epochs.now());
        self.epochs.advance();
        Some(value)
    }

    fn find(&self, address: u128) -> Option<u32> {
        Some(self.find128(address)).filter(|value| *value != NONE)
    }

    fn find_past(&self, address: u128, over: &dyn Fn(Prefix) -> bool) -> Option<(Prefix, u32)> {
        let bits = self.nodes.snapshot.layout.aligned(address);
        let longest = self.routes.cover(Region { bits, length: self.spec.width });
        let mut around = std::iter::successors(longest, |(region, _)| self.routes.parent(*region));
        let (region, code) = around.find(|(region, _)| !over(self.routes.prefix(*region)))?;
        Some((self.routes.prefix(region), self.codes.value(code)))
    }

    fn entries_from(&self, first: Prefix) -> impl Iterator<Item = (Prefix, u32)> {
        let from = self.routes.from(self.routes.region(first));
        from.map(|(region, code)| (self.routes.prefix(region), self.codes.value(code)))
    }

    fn len(&self) -> usize {
        self.routes.len()
    }
}
