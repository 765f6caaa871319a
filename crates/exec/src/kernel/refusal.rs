//! Refusals: which steps of a program no device takes, and why. The host runs packets that come to such a
//! step.

use ir::source::Span;
use ir::{Answer, Instruction, Op, Program, TableKind};
use std::fmt;

/// A step that no device takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The stage that it belongs to: index in the program's stages.
    pub stage: Option<u32>,
    /// Why no device takes it.
    pub cause: RefusalCause,
    /// Its place in the program.
    pub span: Span,
}

/// Why a device does not take a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusalCause {
    /// The step writes something that later packets read, in an order that only the host keeps.
    #[error("it writes {what} `{name}`, which later packets read")]
    Writes {
        /// The word for its kind, for the message.
        what: &'static str,
        /// The name of the table, register or other declaration.
        name: String,
    },
    /// The step reads something that earlier packets of the same batch write.
    #[error("it reads {what} `{name}`, which earlier packets write")]
    Reads {
        /// The word for its kind, for the message.
        what: &'static str,
        /// The name of the table, register or other declaration.
        name: String,
    },
    /// The step gives an entry a lifetime of its own.
    #[error("it gives an entry of table `{0}` a lifetime of its own, which is kept by the processor")]
    Lifetime(String),
    /// The step chooses a member of a group.
    #[error("it asks group `{0}`, which is kept by the processor")]
    Group(String),
    /// The step raises an event.
    #[error("it raises event `{0}`, whose handler runs on the processor")]
    Event(String),
    /// The step sends a packet in addition to the received one.
    #[error("it sends a {0} besides the packet itself")]
    Sends(&'static str),
    /// The step changes the packet's length.
    #[error("it makes the packet longer or shorter, or cuts it into fragments")]
    Resizes,
    /// The step has an effect inside a loop.
    #[error("it {0} inside a loop, as often as the packet asks for")]
    Loop(&'static str),
    /// The step counts every occurrence of a pattern.
    #[error("it counts every occurrence of a pattern of table `{0}`, as many as the packet has")]
    Occurrences(String),
}

/// A table of patterns whose lookup gives one of them.
const FIRST: TableKind = TableKind::Patterns(Answer::First);

/// Why no device takes an instruction; `None` if devices take it.
pub(super) fn cause(program: &Program, instruction: &Instruction, in_loop: bool) -> Option<RefusalCause> {
    let table = |index: u32| &program.tables[index as usize];
    let name = |index: u32| table(index).name.clone();
    let meter = |index: u32| program.meters[index as usize].name.clone();
    let register = |index: u32| program.registers[index as usize].name.clone();
    let pool = |index: u32| program.pools[index as usize].name.clone();
    let group = |index: u32| program.groups[index as usize].name.clone();
    let renews = |index: u32| marks(table(index)) || table(index).counted;
    Some(match &instruction.op {
        Op::Const(_)
        | Op::Binary(..)
        | Op::Compare(..)
        | Op::Select(..)
        | Op::Resize(_)
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Checksum { .. }
        | Op::InPort
        | Op::WireLength
        | Op::Captured
        | Op::Now
        | Op::Keep(_)
        | Op::EnterStage(_)
        | Op::Header { .. } => return None,
        Op::Lookup { table: index, .. } if in_loop && renews(*index) => RefusalCause::Loop("renews entries"),
        Op::Learn { .. } if in_loop => RefusalCause::Loop("learns"),
        Op::Count { .. } if in_loop => RefusalCause::Loop("counts"),
        Op::Lookup { .. } | Op::Learn { .. } | Op::Count { .. } | Op::Remove { .. } => return None,
        Op::EndAfter { table, .. } => RefusalCause::Lifetime(name(*table)),
        Op::Scan { table: index, .. } if table(*index).counted && table(*index).kind != FIRST => {
            RefusalCause::Occurrences(name(*index))
        }
        Op::Scan { table: index, .. } if in_loop && table(*index).counted => RefusalCause::Loop("counts"),
        Op::Scan { .. } => return None,
        Op::Insert { table, .. }
        | Op::Withdraw { table, .. }
        | Op::SetDefault { table, .. }
        | Op::ClearDefault(table) => {
            RefusalCause::Writes { what: table_word(program, *table), name: name(*table) }
        }
        Op::HasRoom(listed) => {
            let first = listed.first().map_or(0, |(table, _)| *table);
            RefusalCause::Reads { what: "the number of free places of table", name: name(first) }
        }
        Op::Mark { meter: index, .. } => RefusalCause::Writes { what: "meter", name: meter(*index) },
        Op::ReadRegister { register: index, .. } => {
            RefusalCause::Reads { what: "register", name: register(*index) }
        }
        Op::WriteRegister { register: index, .. } => {
            RefusalCause::Writes { what: "register", name: register(*index) }
        }
        Op::Take { pool: index, .. } | Op::Give { pool: index, .. } => {
            RefusalCause::Writes { what: "pool", name: pool(*index) }
        }
        Op::Choose { group: index, .. } | Op::Member { group: index, .. } => {
            RefusalCause::Group(group(*index))
        }
        Op::Join { group: index, .. } | Op::Leave { group: index, .. } => {
            RefusalCause::Writes { what: "group", name: group(*index) }
        }
        Op::Raise { event, .. } => RefusalCause::Event(program.events[*event as usize].name.clone()),
        Op::Copy(_) => RefusalCause::Sends("copy"),
        Op::Emit { .. } => RefusalCause::Sends("made packet"),
        Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) | Op::Fragment { .. } => {
            RefusalCause::Resizes
        }
    })
}

fn table_word(program: &Program, index: u32) -> &'static str {
    match program.tables[index as usize].kind {
        TableKind::Exact => "table",
        TableKind::Lpm => "table of prefixes",
        TableKind::Rules { .. } => "table of rules",
        TableKind::Patterns(_) => "table of patterns",
    }
}

/// Whether learning an entry again with the same value changes the entry: its time or its place in the order
/// of use.
pub(super) fn learning_marks(table: &ir::Table) -> bool {
    marks(table) || table.kind == TableKind::Exact && table.age.is_some()
}

/// Whether a hit changes an entry of the table: its time or its place in the order of use.
pub(super) fn marks(table: &ir::Table) -> bool {
    table.kind == TableKind::Exact && (table.idle.is_some() || table.evict == ir::Eviction::Lru)
}

impl Refusal {
    /// The refusal as a sentence, with the stage's name.
    pub fn sentence<'a>(&'a self, program: &'a Program) -> impl fmt::Display + 'a {
        struct Sentence<'a>(&'a Refusal, &'a Program);
        impl fmt::Display for Sentence<'_> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                let stage = self.0.stage.and_then(|stage| self.1.stages.get(stage as usize));
                match stage {
                    Some(stage) => {
                        write!(out, "stage `{}` runs on the processor: {}", stage.name, self.0.cause)
                    }
                    None => write!(out, "a step runs on the processor: {}", self.0.cause),
                }
            }
        }
        Sentence(self, program)
    }
}
