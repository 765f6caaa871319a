//! What edits took out of a packet or put into it, and which headers are decoded in spite of them.

use crate::check::hir::{HeaderId, Lead, Place};
use ir::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Something that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    /// A header.
    Popped(HeaderId),
    /// Everything before a header.
    Before(HeaderId),
}

/// Headers that were pushed. They have no name, so that nothing can be said of them later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inserted {
    /// The statement.
    pub span: Span,
    /// Where they went in, if that is still known.
    pub place: Option<Place>,
    /// What they are on the way to a checksum behind them.
    pub lead: Lead,
    /// The header before them announces them.
    pub announced: bool,
}

impl Inserted {
    /// The header that names their place.
    pub fn beside(&self) -> Option<HeaderId> {
        match self.place? {
            Place::Start => None,
            Place::Before(header) | Place::After(header) => Some(header),
        }
    }

    /// They certainly go out with all that is before a header.
    pub fn certainly_before(&self, header: HeaderId) -> bool {
        self.place == Some(Place::Start) || self.place == Some(Place::Before(header))
    }
}

/// A header that named places is gone, or its name is that of another one from here on.
pub(super) fn forget_place(inserted: &mut BTreeSet<Inserted>, header: HeaderId) {
    let left =
        |one: &Inserted| if one.beside() == Some(header) { Inserted { place: None, ..*one } } else { *one };
    *inserted = inserted.iter().map(left).collect();
}

/// What was done to the packet on some way to a point of a stage's body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// What may have been taken out, and where.
    pub removals: BTreeMap<Removal, Span>,
    /// What was taken out on every way.
    pub certain: BTreeSet<Removal>,
    /// What may have been put in, and was not certainly taken out again.
    pub inserted: BTreeSet<Inserted>,
    /// Where it was said that the packet leaves in fragments.
    pub fragmented: Option<Span>,
}

impl Gone {
    /// True if nothing was done.
    pub fn is_nothing(&self) -> bool {
        *self == Gone::default()
    }

    /// Takes something out.
    pub fn remove(&mut self, removal: Removal, span: Span) {
        self.removals.insert(removal, span);
        self.certain.insert(removal);
    }

    /// What was done on this way or on another.
    pub fn or(&self, other: &Gone) -> Gone {
        let mut both = other.clone();
        both.removals.extend(&self.removals);
        both.inserted.extend(&self.inserted);
        both.certain.retain(|removal| self.certain.contains(removal));
        both.fragmented = self.fragmented.or(other.fragmented);
        both
    }
}

/// What is decoded wherever a stage is entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Headers.
    pub headers: BTreeSet<HeaderId>,
    /// The second was decoded behind the first.
    pub behind: BTreeSet<(HeaderId, HeaderId)>,
}

impl Decoded {
    /// A header is decoded behind all others.
    pub fn decode(&mut self, header: HeaderId) {
        self.behind.retain(|&(a, b)| a != header && b != header);
        self.behind
            .extend(self.headers.iter().filter(|other| **other != header).map(|&other| (other, header)));
        self.headers.insert(header);
    }

    /// What is left of it behind edits.
    pub fn without(&self, gone: &Gone) -> Decoded {
        let left = |header: &HeaderId| self.removed(*header, gone).is_none();
        let headers: BTreeSet<HeaderId> = self.headers.iter().copied().filter(left).collect();
        let behind = self.behind.iter().copied();
        let behind = behind.filter(|(a, b)| headers.contains(a) && headers.contains(b)).collect();
        Decoded { headers, behind }
    }

    /// Leaves only what another way brings too; says whether that is less.
    pub fn meet(&mut self, other: &Decoded) -> bool {
        let before = (self.headers.len(), self.behind.len());
        self.headers.retain(|header| other.headers.contains(header));
        self.behind.retain(|pair| other.behind.contains(pair));
        before != (self.headers.len(), self.behind.len())
    }

    /// Where a header was taken out, if it was.
    pub fn removed(&self, header: HeaderId, gone: &Gone) -> Option<Span> {
        let hit = |(removal, span): (&Removal, &Span)| match *removal {
            Removal::Popped(popped) => (popped == header).then_some(*span),
            Removal::Before(first) => {
                (first != header && !self.behind.contains(&(first, header))).then_some(*span)
            }
        };
        gone.removals.iter().find_map(hit)
    }
}
