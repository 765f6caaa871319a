//! Shows of a program that it cannot tell a long segment of TCP from the packets that it would be cut into.
//!
//! The packets of a segment differ in IP's length, identification and checksum, in TCP's sequence number,
//! flags and checksum, and in their data ([`packet::segment`]). A program does the same with each of them,
//! and with the segment, and what it leaves behind is the same whether it ran once or for each packet at the
//! same instant, if for every segment of the class
//!
//! - each read, each sum and each search lies beside what differs, and nothing asks for a length,
//! - each write lies beside what differs, beside what makes the class, and beside everything that a checksum
//!   covers, and the packet stays as long as it is,
//! - a table that the program learns in is asked only after it has learned, so that whoever learns the same
//!   again changes nothing; learning refuses nobody, raises no event and gives nothing back,
//! - nothing is counted, marked, taken, raised, copied, made or handed to the control plane, and no other
//!   memory is written.
//!
//! Places are known from the [analysis](Analysis) of everything that the program computes. What is not
//! listed here as harmless is refused, and its segments are cut before the program.

use crate::class_analysis::{Analysis, beside, wide};
use ir::source::Span;
use ir::{Eviction, Function, Op, Program, Terminator};
use packet::{OpenClass, OpenClasses};
use std::collections::BTreeSet;
use std::ops::Range;

/// What was shown of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentProof {
    /// The classes of segments that it may get whole.
    pub classes: OpenClasses,
}

/// Why a program gets segments of a class cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRefusal {
    /// What it may do, as the end of a sentence that begins with the program.
    pub what: &'static str,
    /// Where in its text; nothing where the whole of it was too much to follow.
    pub span: Option<Span>,
}

impl SegmentProof {
    /// What can be shown of a program. One that says to which worker a packet goes gets packets.
    pub fn of(program: &Program) -> SegmentProof {
        let shown = |class: &OpenClass| SegmentProof::refusal(program, *class).is_none();
        SegmentProof { classes: OpenClass::ALL.into_iter().filter(shown).collect() }
    }

    /// Why segments of a class are cut for a program; `None` if they need not be.
    pub fn refusal(program: &Program, class: OpenClass) -> Option<SegmentRefusal> {
        let refuse = |what, span| Some(SegmentRefusal { what, span });
        if class.udp {
            return refuse("is asked about datagrams", None);
        }
        let function = program.functions.first()?;
        let of_headers = |words| told(program, Analysis::of_headers(function, class, words), words);
        // Mostly it does not matter how long the header of TCP is.
        if told(program, Analysis::of(function, class), LEAST_WORDS).is_some()
            && let Some(refusal) = (LEAST_WORDS..=15).find_map(of_headers)
        {
            return Some(refusal);
        }
        // How many handlers run that are late is limited for each packet.
        if !program.events.is_empty() || !program.every.is_empty() {
            return refuse("has handlers", None);
        }
        program.steering.as_ref().and_then(|_| refuse("says to which worker it goes", None))
    }
}

/// Words of four bytes of the shortest header of TCP (RFC 9293, section 3.1).
const LEAST_WORDS: u8 = 5;

/// What may tell segments whose headers of TCP have at least so many words, of which the rest differs.
fn told(program: &Program, analysis: Option<Analysis<'_>>, words: u8) -> Option<SegmentRefusal> {
    let refuse = |what, span| Some(SegmentRefusal { what, span });
    let (Some(analysis), Some(function)) = (analysis, program.functions.first()) else {
        return refuse("takes too long to follow", None);
    };
    let asked = asked_before(function, &analysis.reached);
    for ((block, reached), mut asked) in function.blocks.iter().zip(&analysis.reached).zip(asked) {
        if !reached {
            continue;
        }
        for instruction in &block.instructions {
            if let Some(what) = telling(program, &analysis, words, &asked, &instruction.op) {
                return refuse(what, Some(instruction.span));
            }
            asked.extend(asks(&instruction.op));
        }
        let what = match &block.terminator {
            Terminator::Punt(_) => Some("hands it to the control plane"),
            Terminator::Need { base, bytes, more, .. } if !analysis.are_there(*base, *bytes, *more) => {
                Some("asks whether bytes are there that a short packet does not have")
            }
            _ => None,
        };
        if let Some(what) = what {
            return refuse(what, Some(block.span));
        }
    }
    None
}

/// Bytes in which the packets of a segment may differ, behind a header of TCP of so many words at least.
fn differing(class: OpenClass, words: u8) -> impl Iterator<Item = Range<u128>> {
    let (ip, transport) = (class.ip(), class.transport());
    // Length, and of IPv4 identification and checksum; sequence number, flags, and checksum; data.
    let network = match class.six {
        true => [ip + 4..ip + 6, 0..0, 0..0],
        false => [ip + 2..ip + 4, ip + 4..ip + 6, ip + 10..ip + 12],
    };
    let segment = [transport + 4..transport + 8, transport + 13..transport + 14, class.field()];
    let data = transport as u128 + 4 * u128::from(words)..u128::MAX;
    network.into_iter().chain(segment).map(wide).chain([data])
}

/// What an operation does by which a program might tell a segment from its packets. `asked` are the tables
/// that may have been asked before.
fn telling(
    program: &Program,
    analysis: &Analysis<'_>,
    words: u8,
    asked: &BTreeSet<u32>,
    op: &Op,
) -> Option<&'static str> {
    let class = analysis.class;
    let differs = |place: &Range<u128>| !differing(class, words).all(|range| beside(place, &range));
    let table = |table: &u32| program.tables.get(*table as usize);
    match op {
        Op::Load { base, offset, bytes, .. } => differs(&analysis.place(*base, *offset, *bytes))
            .then_some("reads what differs from packet to packet"),
        Op::Checksum { base, bytes, more } => differs(&analysis.summed(*base, *bytes, *more))
            .then_some("sums what differs from packet to packet"),
        Op::Store { base, offset, bytes, .. } => {
            let place = analysis.place(*base, *offset, *bytes);
            // What IPv4's checksum covers is summed anew only where a segment is cut.
            let header = if class.six { 0..0 } else { class.ip()..class.transport() };
            let may = analysis.may_change(&place) && !differs(&place) && beside(&place, &wide(header));
            (!may).then_some("writes what is not the same in every packet, or what a checksum covers")
        }
        Op::Lookup { table: asked, .. } => {
            table(asked).is_none_or(|table| table.counted).then_some("asks a table that counts")
        }
        Op::Learn { table: learns, .. } => match table(learns) {
            _ if asked.contains(learns) => Some("learns in a table that it has asked before"),
            Some(table)
                if table.evict == Eviction::Lru && table.expires.is_none() && table.releases.is_none() =>
            {
                None
            }
            _ => Some("learns in a table that may refuse, raise an event or give something back"),
        },
        // All packets of a segment come at one time, so the first one gives the entry its end.
        Op::EndAfter { .. } => None,
        Op::WireLength | Op::Captured => Some("asks for the length"),
        Op::Scan { .. } => Some("searches its data"),
        Op::Count { .. } | Op::Mark { .. } => Some("counts"),
        Op::Raise { .. } => Some("raises an event"),
        Op::Copy(_) | Op::Emit { .. } => Some("sends something else"),
        Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) | Op::Fragment { .. } => {
            Some("makes it longer or shorter")
        }
        Op::Const(_)
        | Op::Binary(..)
        | Op::Compare(..)
        | Op::Select(..)
        | Op::Resize(_)
        | Op::InPort
        | Op::Now
        | Op::ReadRegister { .. }
        | Op::Choose { .. }
        | Op::Member { .. }
        | Op::Keep(_)
        | Op::EnterStage(_)
        | Op::Header { .. } => None,
        Op::Insert { .. }
        | Op::Withdraw { .. }
        | Op::WriteRegister { .. }
        | Op::Take { .. }
        | Op::Give { .. }
        | Op::Join { .. }
        | Op::Leave { .. }
        | Op::HasRoom(_)
        | Op::Remove { .. }
        | Op::SetDefault { .. }
        | Op::ClearDefault(_) => Some("changes memory"),
    }
}

/// The table that an operation asks or learns in.
fn asks(op: &Op) -> Option<u32> {
    match op {
        Op::Lookup { table, .. } | Op::Learn { table, .. } => Some(*table),
        _ => None,
    }
}

/// The tables that may have been asked when a block begins, block by block.
fn asked_before(function: &Function, reached: &[bool]) -> Vec<BTreeSet<u32>> {
    let mut before = vec![BTreeSet::new(); function.blocks.len()];
    loop {
        let mut changed = false;
        for (number, block) in function.blocks.iter().enumerate().filter(|(number, _)| reached[*number]) {
            let behind: BTreeSet<u32> = block.instructions.iter().filter_map(|one| asks(&one.op)).collect();
            let behind: BTreeSet<u32> = behind.union(&before[number]).copied().collect();
            for target in block.terminator.targets() {
                let held: &mut BTreeSet<u32> = &mut before[target.block.0 as usize];
                let count = held.len();
                held.extend(&behind);
                changed |= held.len() > count;
            }
        }
        if !changed {
            return before;
        }
    }
}

#[cfg(test)]
mod tests;
