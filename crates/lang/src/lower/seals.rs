//! What a pushed header seals: a header that covers or counts what follows it has no name, and its place is
//! not followed, so nothing behind it may change any more.

use crate::check::hir::{Edit, HeaderId, Made, Place, Program, StageId, StmtKind};
use crate::flow::governing::governed;
use ir::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A push of headers behind which something may not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    /// The statement.
    pub(crate) span: Span,
    /// Where they went in; at the start also where that is not known any more.
    pub(crate) place: Place,
    /// What may not change.
    pub(crate) against: BTreeSet<Breaks>,
}

/// A change that a pushed header may not allow behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Breaks {
    /// Bytes of headers or of what they carry.
    Bytes,
    /// The number of bytes.
    Size,
    /// What a checksum behind a header covers of it.
    Addresses,
}

impl Sealed {
    /// Both, or one of them.
    pub(crate) fn and(&self, other: &Sealed) -> Sealed {
        let place = if self.place == other.place { self.place } else { Place::Start };
        Sealed { span: self.span, place, against: self.against.union(&other.against).copied().collect() }
    }
}

/// The stages that push a header behind which something may not change, and what that is.
pub(super) fn sealing(program: &Program) -> BTreeMap<StageId, BTreeSet<Breaks>> {
    let mut sealing = BTreeMap::new();
    for (index, stage) in program.stages.iter().enumerate() {
        let mut seals = BTreeSet::new();
        stage.body.each_statement(&mut |statement| {
            if let StmtKind::Edit(Edit::Push { made, place, announces }) = &statement.kind {
                seals.extend(sealed_by(program, made, *place, announces.is_some()));
            }
        });
        if !seals.is_empty() {
            sealing.insert(StageId(index), seals);
        }
    }
    sealing
}

/// What may not change behind a push.
pub(super) fn sealed_by(program: &Program, made: &Made, place: Place, announced: bool) -> BTreeSet<Breaks> {
    let mut sealed = BTreeSet::new();
    if made.sums.iter().any(|sum| sum.end.is_none()) {
        sealed.extend([Breaks::Bytes, Breaks::Size]);
    }
    if !made.lengths.is_empty() {
        sealed.insert(Breaks::Size);
    }
    let layout = |header: HeaderId| program.headers[header.0].layout.0;
    let between = |header: HeaderId| {
        program.layouts.iter().any(|layouts| governed(program, layouts).contains(&layout(header)))
    };
    let hidden = match place {
        Place::Start => false,
        Place::Before(header) => between(header),
        Place::After(header) => {
            !announced && (!governed(program, &program.layouts[layout(header)]).is_empty() || between(header))
        }
    };
    if hidden {
        sealed.insert(Breaks::Addresses);
    }
    sealed
}
