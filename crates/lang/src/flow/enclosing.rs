//! Headers around the place of an edit: their lengths count what goes in or out there.
//!
//! Where a header was certainly decoded before the place, its length is changed with the packet. Where it
//! only may have been, or where its checksum covers what follows it, the program is refused: then nobody
//! could say what to write. What may be decoded is a union over all ways, from which only what was certainly
//! taken out is missing.

use super::covering::end_of;
use super::facts::{CoveredPlace, CoveredWrite, EditPlace, Facts, Read};
use super::gone::{Gone, Inserted, Removal, forget_place};
use super::graph::Flow;
use crate::check::hir::{HeaderId, Layout, Program, StageId};
use crate::diagnostic::Diagnostic;
use ir::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// What may be decoded at the entry of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Perhaps {
    pub(super) headers: BTreeSet<HeaderId>,
    /// The second may have been decoded behind the first.
    pub(super) behind: BTreeSet<(HeaderId, HeaderId)>,
    /// Headers that may be there a second time under a name that means the later one.
    pub(super) twice: BTreeSet<HeaderId>,
    /// What may have been pushed.
    pub(super) inserted: BTreeSet<Inserted>,
}

impl Perhaps {
    pub(super) fn decode(&mut self, header: HeaderId) {
        self.behind.retain(|&(first, _)| first != header);
        self.behind
            .extend(self.headers.iter().filter(|other| **other != header).map(|&other| (other, header)));
        if !self.headers.insert(header) {
            self.twice.insert(header);
            forget_place(&mut self.inserted, header);
        }
    }

    /// What may be there where this was done.
    pub(super) fn without(&self, gone: &Gone) -> Perhaps {
        let mut left = self.clone();
        for removal in &gone.certain {
            match *removal {
                Removal::Popped(popped) => {
                    left.headers.remove(&popped);
                    forget_place(&mut left.inserted, popped);
                }
                Removal::Before(first) => {
                    let stays =
                        |header: &HeaderId| *header == first || self.behind.contains(&(first, *header));
                    let beside_what_goes =
                        |inserted: &Inserted| inserted.beside().is_some_and(|beside| !stays(&beside));
                    left.inserted
                        .retain(|inserted| !inserted.certainly_before(first) && !beside_what_goes(inserted));
                    left.headers.retain(stays);
                    left.twice.retain(|header| *header != first && stays(header));
                }
            }
        }
        left.behind.retain(|(a, b)| left.headers.contains(a) && left.headers.contains(b));
        left.inserted.extend(&gone.inserted);
        left
    }

    fn join(&mut self, other: &Perhaps) -> bool {
        let size = |perhaps: &Perhaps| {
            perhaps.headers.len() + perhaps.behind.len() + perhaps.twice.len() + perhaps.inserted.len()
        };
        let before = size(self);
        self.headers.extend(&other.headers);
        self.behind.extend(&other.behind);
        self.twice.extend(&other.twice);
        self.inserted.extend(&other.inserted);
        size(self) > before
    }
}

/// Finds the headers whose lengths change with every edit, lets stages read them, and refuses what cannot be
/// kept right.
pub(super) fn settle(
    program: &Program,
    flow: &mut Flow,
    reached: &BTreeSet<StageId>,
    perhaps: &[Perhaps],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for &stage in reached {
        let own = program.stages[stage.0].header;
        let (mut entry, certain) = (perhaps[stage.0].clone(), flow.decoded_in(program, stage));
        own.into_iter().for_each(|own| entry.decode(own));
        for edit in flow.facts[stage.0].places.clone() {
            let there = entry.without(&edit.gone);
            let known = certain.without(&edit.gone);
            let mut around = Vec::new();
            for &header in there.headers.iter().chain(&there.twice) {
                let layout = program.layout(header);
                let own_place = header == edit.header;
                let surely = own_place && edit.behind || known.behind.contains(&(header, edit.header));
                let maybe = surely || there.behind.contains(&(header, edit.header));
                let twice = there.twice.contains(&header);
                if !counts(layout) && !covers(layout) || !(maybe || twice) {
                    continue;
                }
                if !surely || twice || edit.cut || covers(layout) {
                    diagnostics.push(refused(program, header, &edit));
                    break;
                }
                around.push(header);
            }
            for &header in &around {
                want(program, &mut flow.facts[stage.0], own, header, &[], edit.span);
            }
            flow.enclosing.insert(edit.span, around);
        }
    }
}

/// Lets a stage whose own header this may be read the length of a header, these fields of it and its end.
pub(super) fn want(
    program: &Program,
    facts: &mut Facts,
    own: Option<HeaderId>,
    header: HeaderId,
    fields: &[usize],
    span: Span,
) {
    let place = CoveredPlace { within: Vec::new(), decoded: Some(header) };
    facts.writes.push(CoveredWrite { header, place, span });
    let layout = program.layout(header);
    let fields = fields.iter().copied().chain(layout.counting());
    let groups = fields.map(|field| layout.fields[field].group).chain([0]);
    if own != Some(header) {
        let reads = groups.map(|group| Read::Group(header, group)).chain(end_of(program, header));
        reads.for_each(|read| facts.add_read(read, span));
    }
}

fn counts(layout: &Layout) -> bool {
    layout.counting().next().is_some()
}

fn covers(layout: &Layout) -> bool {
    // A pseudo header may count what follows.
    layout.checksum.is_some_and(|checksum| checksum.payload || checksum.pseudo)
}

fn refused(program: &Program, header: HeaderId, edit: &EditPlace) -> Diagnostic {
    let name = &program.headers[header.0].name;
    let covers = covers(program.layout(header));
    let what = if covers { "checksum" } else { "length" };
    let why = if edit.cut {
        "every fragment would state that of the whole"
    } else if covers {
        "it covers what follows the header"
    } else {
        "the header is not there on every path, or twice"
    };
    Diagnostic::error(
        "E0436",
        format!("the {what} of `{name}` could not be kept right"),
        edit.span,
        format!("this lies inside of what `{name}` carries"),
    )
    .place(program.layout(header).span, why)
    .help("take the outer headers out first (`decapsulate to …`), or put the packet into new ones (`encapsulate { … }`)")
}

/// What may be decoded wherever a stage is entered.
pub(super) fn perhaps(program: &Program, facts: &[Facts], reached: &BTreeSet<StageId>) -> Vec<Perhaps> {
    let mut entries = vec![Perhaps::default(); facts.len()];
    let mut queue: Vec<StageId> = reached.iter().copied().collect();
    while let Some(stage) = queue.pop() {
        let mut out = entries[stage.0].clone();
        program.stages[stage.0].header.into_iter().for_each(|own| out.decode(own));
        let mut ways: BTreeMap<StageId, Perhaps> = BTreeMap::new();
        for transfer in &facts[stage.0].transfers {
            ways.entry(transfer.to).or_default().join(&out.without(&transfer.gone));
        }
        for (to, way) in ways {
            if entries[to.0].join(&way) {
                queue.push(to);
            }
        }
    }
    entries
}
