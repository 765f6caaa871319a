//! Bulk lookups: many addresses at once.
//!
//! The idea: a lookup alone spends its time waiting for memory. So all addresses of a batch ask for their
//! cells first, by prefetches, and read them when they have come; in the tree, every address takes one step
//! and asks for its next node before any takes the following step. Lines and dense nodes are stepped apart,
//! so that no branch has to be guessed.

use super::layout::GRANULE;
use super::lookup::{LINE_BITS, TAG_SHIFT, View, granule, stride};
use super::vector;
use super::vector::Keys;
use super::words::prefetch;

/// How many addresses are looked up together.
pub(super) const TOGETHER: usize = 256;

/// The instructions that a bulk lookup uses. All give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// What every machine has.
    Portable,
    /// Gathers of eight cells.
    Avx2,
    /// Gathers of sixteen cells.
    Avx512,
}

impl Method {
    /// The methods that this machine has, the best last.
    pub fn available() -> Vec<Method> {
        [Method::Portable, Method::Avx2, Method::Avx512]
            .into_iter()
            .filter(|method| vector::has(*method))
            .collect()
    }

    /// The best method that this machine has.
    pub fn best() -> Method {
        if vector::has(Method::Avx512) {
            Method::Avx512
        } else if vector::has(Method::Avx2) {
            Method::Avx2
        } else {
            Method::Portable
        }
    }
}

/// Whether a cell leads to a line.
#[inline(always)]
pub(super) fn is_line(word: u32) -> bool {
    word >> TAG_SHIFT == 1
}

/// Whether a cell leads to a dense node.
#[inline(always)]
pub(super) fn is_dense(word: u32) -> bool {
    word >> TAG_SHIFT >= 2
}

impl View<'_> {
    /// Looks up addresses of at most 32 bits by `method`, or by the portable one if the machine has not got
    /// it.
    pub(super) fn find_bulk32(&self, method: Method, addresses: &[u32], out: &mut [u32]) {
        let method = if vector::has(method) { method } else { Method::Portable };
        for (addresses, out) in addresses.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
            let count = addresses.len().min(out.len());
            let (addresses, out) = (&addresses[..count], &mut out[..count]);
            if self.layout.cell_bits != 0 {
                self.ask(addresses);
                vector::direct(self, method, addresses, out);
                continue;
            }
            if !vector::walk512(self, method, Keys::Narrow(addresses), out) {
                let mut walks = Walks::<false>::new(addresses, |key| (self.layout.aligned32(*key), 0));
                vector::walk(self, method, &mut walks, out);
            }
        }
    }

    /// Looks up addresses by `method`, or by the portable one if the machine has not got it.
    pub(super) fn find_bulk128(&self, method: Method, addresses: &[u128], out: &mut [u32]) {
        let method = if vector::has(method) { method } else { Method::Portable };
        for (addresses, out) in addresses.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
            let count = addresses.len().min(out.len());
            let (addresses, out) = (&addresses[..count], &mut out[..count]);
            if self.layout.cell_bits != 0 {
                let mut narrow = [0; TOGETHER];
                narrow.iter_mut().zip(addresses).for_each(|(narrow, address)| *narrow = *address as u32);
                self.find_bulk32(method, &narrow[..count], out);
                continue;
            }
            if vector::walk512(self, method, Keys::Wide(addresses), out) {
                continue;
            }
            let parts = |key: u128| ((key >> 64) as u64, key as u64);
            if self.layout.width == 128 {
                let mut walks = Walks::<true>::new(addresses, |key| parts(*key));
                vector::walk(self, method, &mut walks, out);
            } else if self.layout.width > 64 {
                let mut walks = Walks::<true>::new(addresses, |key| parts(self.layout.aligned(*key)));
                vector::walk(self, method, &mut walks, out);
            } else {
                let mut walks = Walks::<false>::new(addresses, |key| parts(self.layout.aligned(*key)));
                vector::walk(self, method, &mut walks, out);
            }
        }
    }

    /// Where the next step from this cell will read; the first word for a leaf, which has no next step.
    #[inline(always)]
    pub(super) fn next(&self, word: u32, high: u64) -> usize {
        let at = granule(word) as usize * GRANULE;
        let within = if is_dense(word) { (high >> (64 - stride(word))) as usize } else { 0 };
        if word >> TAG_SHIFT == 0 { 0 } else { at + within }
    }

    /// Asks for the direct cells of addresses.
    #[inline(always)]
    fn ask(&self, addresses: &[u32]) {
        for address in addresses {
            prefetch(self.words, self.layout.direct + self.cell_word(*address));
        }
    }

    /// The word of an address's direct cell, from the first cell.
    #[inline(always)]
    pub(super) fn cell_word(&self, address: u32) -> usize {
        (((u64::from(address) >> 8) * u64::from(self.layout.cell_bits)) >> 5) as usize
    }
}

/// Addresses on their way through the tree. With `WIDE` they have more than 64 bits.
pub(super) struct Walks<const WIDE: bool> {
    count: usize,
    /// Bits not yet eaten, the next on the left.
    high: [u64; TOGETHER],
    low: [u64; TOGETHER],
    /// The cell each has come to.
    cell: [u32; TOGETHER],
}

/// Numbers of walks.
struct List {
    count: usize,
    walks: [u8; TOGETHER],
}

impl List {
    /// Adds a walk if `wanted`, without a branch.
    #[inline(always)]
    fn add(&mut self, walk: u8, wanted: bool) {
        self.walks[self.count & (TOGETHER - 1)] = walk;
        self.count += usize::from(wanted);
    }
}

impl<const WIDE: bool> Walks<WIDE> {
    /// Walks that are still at the root, of at most [`TOGETHER`] addresses; `key` tells an address's bits
    /// from the left.
    #[inline(always)]
    fn new<A>(addresses: &[A], key: impl Fn(&A) -> (u64, u64)) -> Self {
        let mut walks =
            Walks { count: addresses.len(), high: [0; TOGETHER], low: [0; TOGETHER], cell: [0; TOGETHER] };
        for ((high, low), address) in walks.high.iter_mut().zip(&mut walks.low).zip(addresses) {
            (*high, *low) = key(address);
        }
        walks
    }

    /// Eats the bits that led to `cell` and asks for what its next step reads.
    #[inline(always)]
    fn arrive(&mut self, view: &View<'_>, walk: usize, cell: u32, eaten: u32) {
        let mut high = self.high[walk] << eaten;
        if WIDE {
            high |= self.low[walk] >> (64 - eaten);
            self.low[walk] <<= eaten;
        }
        self.high[walk] = high;
        self.cell[walk] = cell;
        prefetch(view.words, view.next(cell, high));
    }

    /// Takes all steps; `line` finds the cell of some bits in the line at a granule.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        view: &View<'_>,
        out: &mut [u32],
        line: impl Fn(&View<'_>, u32, u16) -> u32,
    ) {
        let root_bits = u32::from(view.layout.root_bits);
        let root = |high: u64| view.layout.root + (high >> (64 - root_bits)) as usize;
        let count = self.count.min(TOGETHER);
        for walk in 0..count {
            prefetch(view.words, root(self.high[walk]));
        }
        let mut lines = List { count: 0, walks: [0; TOGETHER] };
        let mut denses = List { count: 0, walks: [0; TOGETHER] };
        for walk in 0..count {
            let cell = view.word(root(self.high[walk]));
            self.arrive(view, walk, cell, root_bits);
            lines.add(walk as u8, is_line(cell));
            denses.add(walk as u8, is_dense(cell));
        }
        // A sound image ends sooner; a broken one ends here.
        for _ in 0..32 {
            if lines.count + denses.count == 0 {
                break;
            }
            let (dense_count, line_count) = (denses.count, lines.count);
            let (dense_walks, line_walks) = (denses.walks, lines.walks);
            (denses.count, lines.count) = (0, 0);
            for walk in &dense_walks[..dense_count] {
                let high = self.high[usize::from(*walk)];
                let cell = self.cell[usize::from(*walk)];
                let eaten = stride(cell);
                let cell = view.word(view.next(cell, high));
                self.arrive(view, usize::from(*walk), cell, eaten);
                lines.add(*walk, is_line(cell));
                denses.add(*walk, is_dense(cell));
            }
            for walk in &line_walks[..line_count] {
                let high = self.high[usize::from(*walk)];
                let cell = line(view, granule(self.cell[usize::from(*walk)]), (high >> 48) as u16);
                self.arrive(view, usize::from(*walk), cell, LINE_BITS);
                lines.add(*walk, is_line(cell));
                denses.add(*walk, is_dense(cell));
            }
        }
        for (out, code) in out.iter_mut().zip(&self.cell[..count]) {
            *out = view.value(*code);
        }
    }
}
