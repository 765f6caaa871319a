//! What the verifier can find wrong, and where.

use std::fmt;

use crate::ir::{BlockId, Value};
use crate::limits::{LARGEST_FRAME, MOST_ARGUMENTS, MOST_HOLES};

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Where it is.
    pub place: FaultPlace,
    /// What it is.
    pub fault: Fault,
}

/// A place in a program, as narrow as the fault allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlace {
    /// Index of the function; none for faults of declarations.
    pub function: Option<usize>,
    /// The block.
    pub block: Option<BlockId>,
    /// Index of the instruction in its block; the terminator's is one more than the last.
    pub instruction: Option<usize>,
}

/// A rule of the IR that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no function.
    NoPacketFunction,
    /// The reason for sending to a port that does not exist is missing.
    NoReasons,
    /// There are more than so many of these, more than a verdict can number.
    TooMany(&'static str, usize),
    /// Two reasons have this name.
    ReasonTwice(String),
    /// The table has no key column.
    NoKey(u32),
    /// The key of a table of longest prefixes is wider than 128 bits.
    TooWide(u32),
    /// The table has a property that tables of its kind do not have.
    KindProperty(u32),
    /// The instruction does not go with the kind of this table.
    TableKind(u32),
    /// A meter, register, pool or group, by its kind and index, is not well formed.
    Memory(&'static str, u32),
    /// The table has a column that is not 1 to 128 bits wide.
    ColumnWidth(u32),
    /// The table's capacity is zero or less than its number of entries.
    Capacity(u32),
    /// Of this table, this entry has the wrong number of columns or a number too large for its column.
    Entry(u32, usize),
    /// The table's default entry has the wrong number of columns or a number too large for its column.
    Default(u32),
    /// The counter has no cell.
    EmptyCounter(u32),
    /// The template has a hole that lies outside it or is not 1 to 128 bits wide.
    HoleOutside(u32),
    /// Two holes of the template overlap.
    HolesOverlap(u32),
    /// The template has more than [`MOST_HOLES`] holes.
    TooManyHoles(u32),
    /// The event has more than [`MOST_ARGUMENTS`] arguments.
    TooManyArguments(u32),
    /// The function needs so many bytes of stack, more than [`LARGEST_FRAME`].
    LargeFrame(u64),
    /// A checksum of the template lies outside it, or covers bytes that are not there.
    SumOutside(u32),
    /// An event or timer names a function that does not exist or is the packet function.
    NoSuchHandler(u32),
    /// The event's handler has other parameters than the event.
    HandlerParams(u32),
    /// A timer's handler, this function, has parameters.
    TimerParams(u32),
    /// A timer's period is zero.
    NoPeriod,
    /// The manifest lacks this right.
    Right(String),

    /// The function has no block.
    NoBlocks,
    /// The value's width is not 1 to 128.
    ValueWidth(Value),
    /// The value has no width: its index is out of range.
    NoSuchValue(Value),
    /// The value is made twice.
    MadeTwice(Value),
    /// The packet function's entry has parameters.
    PacketParams,
    /// An edge leads to the entry.
    EdgeToEntry,
    /// An edge leads to a block that does not exist.
    NoSuchBlock(BlockId),
    /// An edge to this block hands over the wrong number of values, or one of the wrong width.
    Args(BlockId),
    /// Something is named by an index that is out of range: what, and the index.
    NoSuch(&'static str, u32),
    /// Wrong number of results.
    Results {
        /// So many there should be.
        due: usize,
        /// So many there are.
        found: usize,
    },
    /// Wrong number of operands in one list: key columns, value columns, arguments or holes.
    Operands {
        /// So many there should be.
        due: usize,
        /// So many there are.
        found: usize,
    },
    /// A value has the wrong width.
    Width {
        /// The value.
        value: Value,
        /// Its width should be this.
        due: u8,
    },
    /// A constant does not fit its width.
    Constant(u128),
    /// A load or store of no byte or more than 16.
    AccessSize(u8),
    /// A sum goes on behind so many bytes, which must be an even number.
    OddSum(u32),
    /// Only the packet function may do this.
    PacketOnly,
    /// A handler ends in a verdict, or the packet function without one.
    WrongEnd,
    /// A switch lists this value twice or lists it though it does not fit.
    Case(u128),
    /// A counter with several cells is counted without an index.
    NoIndex(u32),
    /// This table learns from packets and has neither `idle` nor `age`.
    NoExpiry(u32),
    /// A fuel's slot is not below the program's number of slots.
    Slot(u32),
    /// A fuel's cap is larger than [`crate::limits::LARGEST_CAP`].
    Cap(u32),

    /// The value is used where it may not have been made.
    NotDominated(Value),
    /// An access reaches behind its own `proven`, or `proven` behind what was shown to be captured.
    NotProven {
        /// The position.
        base: Value,
        /// So many bytes are needed.
        bytes: u64,
        /// So many were shown to be captured.
        shown: u32,
    },
    /// A cycle of blocks goes through this one without using up fuel.
    Endless,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = self.place.function {
            write!(out, "function f{function}")?;
            if let Some(block) = self.place.block {
                write!(out, ", block {block}")?;
            }
            if let Some(instruction) = self.place.instruction {
                write!(out, ", instruction {instruction}")?;
            }
            write!(out, ": ")?;
        }
        write!(out, "{}", self.fault)
    }
}

impl std::error::Error for VerifyError {}

impl fmt::Display for Fault {
    // Longer than 80 lines: one flat match over all faults.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoPacketFunction => write!(out, "there is no packet function"),
            Fault::NoReasons => {
                write!(out, "the reason for sending to a port that does not exist is missing")
            }
            Fault::TooMany(what, most) => write!(out, "there are more than {most} {what}"),
            Fault::ReasonTwice(name) => write!(out, "two reasons have the name `{name}`"),
            Fault::NoKey(table) => write!(out, "table t{table} has no key column"),
            Fault::TooWide(table) => write!(out, "the key of table t{table} has more than 128 bits"),
            Fault::KindProperty(table) => {
                write!(out, "table t{table} has a property that tables of its kind do not have")
            }
            Fault::TableKind(table) => write!(out, "this does not go with the kind of table t{table}"),
            Fault::Memory(what, index) => {
                write!(out, "{what} {index} is not well formed: a size, width, range or entry does not fit")
            }
            Fault::ColumnWidth(table) => write!(out, "a column of table t{table} is not 1 to 128 bits wide"),
            Fault::Capacity(table) => {
                write!(out, "the capacity of table t{table} is zero or less than its number of entries")
            }
            Fault::Entry(table, entry) => {
                write!(out, "entry {entry} of table t{table} does not fit its columns")
            }
            Fault::Default(table) => {
                write!(out, "the default entry of table t{table} does not fit its columns")
            }
            Fault::EmptyCounter(counter) => write!(out, "counter c{counter} has no cell"),
            Fault::HoleOutside(template) => {
                write!(out, "a hole of template p{template} lies outside it or is not 1 to 128 bits wide")
            }
            Fault::TooManyHoles(template) => {
                write!(out, "template p{template} has more than {MOST_HOLES} holes")
            }
            Fault::TooManyArguments(event) => {
                write!(out, "event e{event} has more than {MOST_ARGUMENTS} arguments")
            }
            Fault::LargeFrame(bytes) => {
                write!(out, "the function needs {bytes} bytes of stack; {LARGEST_FRAME} are possible")
            }
            Fault::SumOutside(template) => {
                write!(
                    out,
                    "a checksum of template p{template} lies outside it or covers bytes that are not there"
                )
            }
            Fault::HolesOverlap(template) => write!(out, "two holes of template p{template} overlap"),
            Fault::NoSuchHandler(function) => write!(out, "f{function} cannot be a handler"),
            Fault::HandlerParams(event) => write!(out, "the handler of event e{event} has other parameters"),
            Fault::TimerParams(function) => {
                write!(out, "f{function} handles a timer and must have no parameters")
            }
            Fault::NoPeriod => write!(out, "a timer's period is zero"),
            Fault::Right(what) => write!(out, "the manifest lacks the right {what}"),
            Fault::NoBlocks => write!(out, "the function has no block"),
            Fault::ValueWidth(value) => write!(out, "{value} is not 1 to 128 bits wide"),
            Fault::NoSuchValue(value) => write!(out, "{value} does not exist"),
            Fault::MadeTwice(value) => write!(out, "{value} is made a second time"),
            Fault::PacketParams => write!(out, "the packet function must have no parameters"),
            Fault::EdgeToEntry => write!(out, "an edge leads to the entry block"),
            Fault::NoSuchBlock(block) => write!(out, "an edge leads to {block}, which does not exist"),
            Fault::Args(block) => write!(out, "an edge hands {block} values that do not fit its parameters"),
            Fault::NoSuch(what, index) => write!(out, "{what} {index} does not exist"),
            Fault::Results { due, found } => write!(out, "{found} results where there must be {due}"),
            Fault::Operands { due, found } => write!(out, "{found} operands where there must be {due}"),
            Fault::Width { value, due } => write!(out, "{value} must be {due} bits wide"),
            Fault::Constant(number) => write!(out, "{number} does not fit the width of its value"),
            Fault::AccessSize(bytes) => write!(out, "an access to {bytes} bytes; 1 to 16 are possible"),
            Fault::OddSum(bytes) => {
                write!(out, "a sum goes on behind {bytes} bytes, which must be an even number")
            }
            Fault::PacketOnly => write!(out, "only the packet function can do this"),
            Fault::WrongEnd => {
                write!(out, "the packet function must end in a verdict, every other function in `done`")
            }
            Fault::Case(number) => {
                write!(out, "case {number} stands twice or does not fit the value's width")
            }
            Fault::NoIndex(counter) => write!(out, "counter c{counter} has several cells and needs an index"),
            Fault::NoExpiry(table) => write!(out, "table t{table} learns and has neither `idle` nor `age`"),
            Fault::Slot(slot) => write!(out, "fuel slot {slot} does not exist"),
            Fault::Cap(cap) => write!(out, "cap {cap} is larger than {}", crate::limits::LARGEST_CAP),
            Fault::NotDominated(value) => write!(out, "{value} is used where it may not have been made"),
            Fault::NotProven { base, bytes, shown } => {
                write!(out, "{bytes} bytes from {base} are relied on, {shown} were shown to be captured")
            }
            Fault::Endless => write!(out, "a cycle goes through this block without using up fuel"),
        }
    }
}
