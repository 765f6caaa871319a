//! What is known at a point of a program while it is lowered: values of variables, ranges, decided conditions, fields already loaded.

use crate::check::hir::{HeaderId, LocalId};
use crate::flow::collect::{Read, Subject};
use crate::ir::Value;
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A variable of the lowering: its SSA value changes from point to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// A local of the program.
    Local(LocalId),
    /// A place in a header, or the cursor.
    Place(Read),
    /// What is to be added to the checksum of a header, 64 bits.
    Sum(HeaderId),
    /// The same for the header that follows one with a pseudo header.
    Behind(HeaderId),
    /// A value that arises on several ways and is read where they meet.
    Temporary(u32),
}

/// The smallest and the largest value something can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: u128,
    pub(crate) high: u128,
}

impl Range {
    pub(crate) fn new(low: u128, high: u128) -> Self {
        Self { low, high }
    }

    pub(crate) fn one(value: u128) -> Self {
        Self { low: value, high: value }
    }

    pub(crate) fn hull(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// What both contain; `None` if nothing is.
    pub(crate) fn meet(self, other: Range) -> Option<Range> {
        let range = Range { low: self.low.max(other.low), high: self.high.min(other.high) };
        (range.low <= range.high).then_some(range)
    }
}

/// What is known at a point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    pub(crate) values: BTreeMap<Variable, Value>,
    pub(crate) ranges: BTreeMap<Subject, Range>,
    /// The largest values of what is noted for checksums.
    pub(crate) bounds: BTreeMap<Variable, u128>,
    /// The first is known to be at most the second.
    pub(crate) ordered: BTreeSet<(Subject, Subject)>,
    /// One-bit values whose outcome is known here.
    pub(crate) decided: BTreeMap<Value, bool>,
    /// Fields that were loaded or written on every path here.
    pub(crate) loaded: BTreeMap<(HeaderId, usize), Value>,
    /// Headers of walks whose bytes may have been written through another header: their constraints may no longer hold.
    pub(crate) overwritten: BTreeSet<HeaderId>,
    /// Runs of fields that may no longer be known to be captured, because the packet changed its size behind their check.
    pub(crate) unproven: BTreeSet<(HeaderId, usize)>,
    /// Headers that may have been taken out of the packet.
    pub(crate) removed: BTreeSet<HeaderId>,
    /// A header was pushed whose checksum covers what follows.
    pub(crate) sealed: Option<Sealed>,
}

/// A push of a header whose checksum covers what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The statement.
    pub(crate) span: Span,
    /// A header that certainly lies before it.
    pub(crate) before: Option<HeaderId>,
}

impl Env {
    /// Forgets what was known of something that changes.
    pub(crate) fn forget(&mut self, subject: Subject) {
        self.ranges.remove(&subject);
        self.ordered.retain(|&(a, b)| a != subject && b != subject);
    }

    /// Forgets everything about a header: it is decoded anew.
    pub(crate) fn forget_header(&mut self, header: HeaderId) {
        self.loaded.retain(|&(other, _), _| other != header);
        self.ranges.retain(|subject, _| !matches!(subject, Subject::Field(other, _) if *other == header));
        let about = |subject: &Subject| matches!(subject, Subject::Field(other, _) if *other == header);
        self.ordered.retain(|(a, b)| !about(a) && !about(b));
    }

    /// What is known on both of two ways; values are left to the caller.
    pub(crate) fn common(&self, other: &Env) -> Env {
        let ranges = self
            .ranges
            .iter()
            .filter_map(|(subject, range)| {
                other.ranges.get(subject).map(|known| (*subject, range.hull(*known)))
            })
            .collect();
        let mut bounds = self.bounds.clone();
        for (variable, bound) in &other.bounds {
            let known = bounds.entry(*variable).or_insert(0);
            *known = (*known).max(*bound);
        }
        Env {
            values: BTreeMap::new(),
            ranges,
            bounds,
            ordered: self.ordered.intersection(&other.ordered).copied().collect(),
            decided: self
                .decided
                .iter()
                .filter(|(value, known)| other.decided.get(value) == Some(known))
                .map(|(v, k)| (*v, *k))
                .collect(),
            loaded: self
                .loaded
                .iter()
                .filter(|(field, value)| other.loaded.get(field) == Some(value))
                .map(|(f, v)| (*f, *v))
                .collect(),
            overwritten: self.overwritten.union(&other.overwritten).copied().collect(),
            unproven: self.unproven.union(&other.unproven).copied().collect(),
            removed: self.removed.union(&other.removed).copied().collect(),
            sealed: self.sealed.or(other.sealed),
        }
    }
}
