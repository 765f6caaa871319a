//! What the body of a stage does that matters between stages: its transfers, reads, writes and edits.

use super::gone::Gone;
use crate::check::hir::{HeaderId, LocalId, StageId};
use ir::source::Span;
use std::collections::BTreeSet;

/// A place in a header (or the position behind the last one) that a stage must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// The position behind the last header.
    Cursor,
    /// The position of a group of a header's fields.
    Group(HeaderId, usize),
    /// The length of a variable group.
    Length(HeaderId, usize),
    /// Whether a conditional group is there.
    Present(HeaderId, usize),
    /// One more than the position of a header, or zero where it is not decoded on the path.
    Perhaps(HeaderId),
}

impl Read {
    /// The header it belongs to.
    pub fn header(self) -> Option<HeaderId> {
        match self {
            Read::Cursor | Read::Perhaps(_) => None,
            Read::Group(header, _) | Read::Length(header, _) | Read::Present(header, _) => Some(header),
        }
    }
}

/// Something that must hold of a value for a transfer to happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The field or local lies in one of these ranges.
    Within(Subject, Vec<(u128, u128)>),
    /// Something else.
    Other,
}

/// Something that is known behind what was known before.
#[derive(Clone, Debug)]
pub struct Known {
    /// A condition holds; or a local was assigned, and what was known of it is no longer about it.
    pub what: Result<Condition, LocalId>,
    /// What was known before: an index.
    pub before: Option<usize>,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A field of a header.
    Field(HeaderId, usize),
    /// A local.
    Local(LocalId),
    /// A field of the layout that is being described.
    Own(usize),
}

/// A transfer to another stage.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Where to.
    pub to: StageId,
    /// Where it is written.
    pub span: Span,
    /// What holds when it happens: the last of [`Facts::conditions`].
    pub conditions: Option<usize>,
    /// Its arguments, where they are plain fields, locals or constants.
    pub args: Vec<Option<Argument>>,
    /// What may have been taken out of the packet in this stage.
    pub gone: Gone,
}

/// A plain argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The value of a field or local.
    Subject(Subject),
    /// A number.
    Constant(u128),
}

/// What a stage's body does.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Transfers in source order.
    pub transfers: Vec<Transfer>,
    /// What is known at places of the body. Each entry leads to the one before, so that places share what
    /// they have in common.
    pub conditions: Vec<Known>,
    /// Places read, with the first place in the source; headers of walks aside.
    pub reads: Vec<(Read, Span)>,
    /// Fields that are written.
    pub written: Vec<(HeaderId, usize)>,
    /// The same with their places, as far as checksums may cover them.
    pub writes: Vec<CoveredWrite>,
    /// Reads behind edits, with what those may have taken out.
    pub late_reads: Vec<(HeaderId, Span, Gone)>,
    /// Where the packet changes its size or starts again, and where it was fragmented before that.
    pub resizes: Vec<(Span, Option<Span>)>,
    /// Edits whose places headers name.
    pub places: Vec<EditPlace>,
    /// Edits that may change which header's addresses a checksum covers.
    pub turns: Vec<Turn>,
    /// Headers may change their places.
    pub edits: bool,
    /// It asks whether the machine has sent the packet (`from_host`).
    pub asks_host: bool,
}

impl Facts {
    /// Adds a place that the stage reads, unless it is read already.
    pub(super) fn add_read(&mut self, read: Read, span: Span) {
        if !self.reads.iter().any(|(other, _)| *other == read) {
            self.reads.push((read, span));
        }
    }

    /// The conditions that hold at a transfer, the first ones first.
    pub fn conditions_of(&self, transfer: &Transfer) -> Vec<&Condition> {
        let (mut found, mut assigned, mut at) = (Vec::new(), BTreeSet::new(), transfer.conditions);
        while let Some(known) = at.and_then(|index| self.conditions.get(index)) {
            match &known.what {
                Err(local) => drop(assigned.insert(Subject::Local(*local))),
                Ok(Condition::Within(subject, _)) if assigned.contains(subject) => {
                    found.push(&Condition::Other);
                }
                Ok(condition) => found.push(condition),
            }
            at = known.before;
        }
        found.reverse();
        found
    }
}

/// A write to a field.
#[derive(Clone, Debug)]
pub struct CoveredWrite {
    /// The header.
    pub header: HeaderId,
    /// Where it lies in the packet.
    pub place: CoveredPlace,
    /// The statement.
    pub span: Span,
}

/// Where the bytes of a header lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredPlace {
    /// Headers that contain it, the innermost first: a walk goes over a part of them.
    pub within: Vec<HeaderId>,
    /// The header that a decoder decoded and that is or contains it; none for a walk over `payload`.
    pub decoded: Option<HeaderId>,
}

impl CoveredPlace {
    /// Where a header lies, from the walks that enclose the place, each with the header whose bytes it goes
    /// over.
    pub fn of(
        header: HeaderId,
        walks: impl Iterator<Item = (HeaderId, Option<HeaderId>)> + Clone,
    ) -> CoveredPlace {
        let mut place = CoveredPlace { within: Vec::new(), decoded: Some(header) };
        while let Some(header) = place.decoded
            && let Some((_, inside)) = walks.clone().find(|(walked, _)| *walked == header)
        {
            place.within.extend(inside);
            place.decoded = inside;
        }
        place
    }
}

/// An edit whose place is named by a header.
#[derive(Clone, Debug)]
pub struct EditPlace {
    /// The header.
    pub header: HeaderId,
    /// The place is behind it, so that it counts what changes.
    pub behind: bool,
    /// The packet is cut there when it leaves, and every piece gets all that stands before.
    pub cut: bool,
    /// The statement.
    pub span: Span,
    /// What was taken out before.
    pub gone: Gone,
}

/// An edit that may change which header's addresses a checksum covers.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What it does.
    pub kind: TurnKind,
    /// The statement.
    pub span: Span,
    /// What was taken out before.
    pub gone: Gone,
}

/// What such an edit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// The header goes out.
    Popped(HeaderId),
    /// All before the header goes out.
    Before(HeaderId),
    /// A header with a pseudo header goes in, and nothing but bytes of the packet follows it.
    Pushed {
        /// Beside this header, if not before all.
        beside: Option<HeaderId>,
        /// That header announces it.
        announced: bool,
    },
}
