//! What is known at a point of a program while it is lowered: values of variables, ranges, decided
//! conditions, fields already loaded.

use super::persistent::Map;
use super::seals::Sealed;
use crate::check::hir::{HeaderId, LocalId};
use crate::flow::facts::{Read, Subject};
use ir::Value;
use std::collections::BTreeSet;
use std::hash::Hash;

/// A variable of the lowering: its SSA value changes from point to point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// A local of the program.
    Local(LocalId),
    /// A place in a header, or the cursor.
    Place(Read),
    /// What is to be added to the checksum of a header, 64 bits.
    Sum(HeaderId),
    /// The same for the header that follows one with a pseudo header.
    Behind(HeaderId),
    /// One of the values that arise on several ways and are read where they meet: how many such places lie
    /// around it, and which of the values.
    Temporary(u32, u32),
}

impl Variable {
    /// Something is to be added to a checksum.
    pub(crate) fn is_sum(self) -> bool {
        matches!(self, Variable::Sum(_) | Variable::Behind(_))
    }
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

/// What is known at a point. It is copied at every fork, so what grows with the program is in maps that share
/// what they have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    pub(crate) values: Map<Variable, Value>,
    pub(crate) ranges: Map<Subject, Range>,
    /// The largest values of what is noted for checksums.
    pub(crate) bounds: Map<Variable, u128>,
    /// The first is known to be at most the second.
    pub(crate) ordered: Map<(Subject, Subject), ()>,
    /// One-bit values whose outcome is known here.
    pub(crate) decided: Map<Value, bool>,
    /// Fields that were loaded or written on every path here.
    pub(crate) loaded: Map<(HeaderId, usize), Value>,
    /// Headers of walks whose bytes may have been written through another header: their constraints may no
    /// longer hold.
    pub(crate) overwritten: BTreeSet<HeaderId>,
    /// Runs of fields that may no longer be known to be captured, because the packet changed its size behind
    /// their check.
    pub(crate) unproven: BTreeSet<(HeaderId, usize)>,
    /// Headers that may have been taken out of the packet.
    pub(crate) removed: BTreeSet<HeaderId>,
    /// A header was pushed behind which something may not change.
    pub(crate) sealed: Option<Sealed>,
}

impl Env {
    /// Forgets what was known of something that changes.
    pub(crate) fn forget(&mut self, subject: Subject) {
        self.ranges.remove(&subject);
        if !self.ordered.is_empty() {
            self.ordered.retain(|&(a, b)| a != subject && b != subject);
        }
    }

    /// Forgets everything about a header: it is decoded anew.
    pub(crate) fn forget_header(&mut self, header: HeaderId) {
        self.loaded.retain(|&(other, _)| other != header);
        self.ranges.retain(|subject| !matches!(subject, Subject::Field(other, _) if *other == header));
        let about = |subject: &Subject| matches!(subject, Subject::Field(other, _) if *other == header);
        self.ordered.retain(|(a, b)| !about(a) && !about(b));
    }

    /// The changes of checksums that are noted.
    pub(crate) fn sums(&self) -> impl Iterator<Item = Variable> + '_ {
        let all = self.values.from(&Variable::Sum(HeaderId(0))).map(|(variable, _)| *variable);
        all.take_while(|variable| variable.is_sum())
    }

    /// Is the first known to be at most the second?
    pub(crate) fn ordered(&self, lower: Option<Subject>, upper: Option<Subject>) -> bool {
        match (lower, upper) {
            (Some(lower), Some(upper)) => lower == upper || self.ordered.contains_key(&(lower, upper)),
            _ => false,
        }
    }

    pub(crate) fn is_certain(&self, header: HeaderId) -> bool {
        self.values.contains_key(&Variable::Place(Read::Group(header, 0)))
    }

    pub(crate) fn forget_field(&mut self, header: HeaderId, field: usize) {
        self.forget(Subject::Field(header, field));
        self.loaded.remove(&(header, field));
    }

    pub(crate) fn nothing_is_proven(&mut self) {
        let places = self.values.keys().filter_map(|variable| match variable {
            Variable::Place(Read::Group(header, group)) => Some((*header, *group)),
            _ => None,
        });
        let places: Vec<(HeaderId, usize)> = places.collect();
        self.unproven.extend(places);
    }

    /// Headers that are no longer part of the packet.
    pub(crate) fn take_out(&mut self, taken: impl Fn(HeaderId) -> bool) {
        let headers = self.values.keys().filter_map(|variable| match variable {
            Variable::Place(read) => read.header().filter(|header| taken(*header)),
            _ => None,
        });
        let headers: Vec<HeaderId> = headers.collect();
        for header in headers {
            self.values.retain(
                |variable| !matches!(variable, Variable::Place(read) if read.header() == Some(header)),
            );
            self.forget_header(header);
            self.removed.insert(header);
        }
    }

    pub(crate) fn bind_local(&mut self, local: LocalId, value: Value, range: Range) {
        let subject = Subject::Local(local);
        self.forget(subject);
        self.ranges.insert(subject, range);
        self.values.insert(Variable::Local(local), value);
    }

    pub(crate) fn range_of(&self, subject: Subject, otherwise: Range) -> Range {
        let known = self.ranges.get(&subject).copied().unwrap_or(otherwise);
        known.meet(otherwise).unwrap_or(otherwise)
    }

    /// What is known on both of two ways; values are left to the caller.
    pub(crate) fn common(&self, other: &Env) -> Env {
        let mut known = self.clone();
        for (subject, one, other) in self.ranges.differences(&other.ranges) {
            match (one, other) {
                (Some(one), Some(other)) => known.ranges.insert(subject, one.hull(other)),
                _ => {
                    known.ranges.remove(&subject);
                }
            }
        }
        for (variable, one, other) in self.bounds.differences(&other.bounds) {
            known.bounds.insert(variable, one.max(other).unwrap_or(0));
        }
        keep_equal(&mut known.ordered, &other.ordered);
        keep_equal(&mut known.decided, &other.decided);
        keep_equal(&mut known.loaded, &other.loaded);
        known.overwritten.extend(&other.overwritten);
        known.unproven.extend(&other.unproven);
        known.removed.extend(&other.removed);
        known.sealed = known.sealed.or_else(|| other.sealed.clone());
        known
    }
}

/// Leaves only what another map has with the same value.
fn keep_equal<K: Copy + Ord + Hash, V: Copy + PartialEq>(map: &mut Map<K, V>, other: &Map<K, V>) {
    for (key, ..) in map.differences(other) {
        map.remove(&key);
    }
}
