//! What the verifier can find wrong, and where.

use std::fmt;

use crate::limits::{LARGEST_CAP, LARGEST_FRAME, MOST_ARGUMENTS, MOST_HOLES};
use crate::{BlockId, Value};

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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no function.
    #[error("there is no packet function")]
    NoPacketFunction,
    /// The reason for sending to a port that does not exist is missing.
    #[error("the reason for sending to a port that does not exist is missing")]
    NoReasons,
    /// There are more than so many of these, more than a verdict can number.
    #[error("there are more than {1} {0}")]
    TooMany(&'static str, usize),
    /// Two reasons have this name.
    #[error("two reasons have the name `{0}`")]
    ReasonTwice(String),
    /// The table has no key column.
    #[error("table t{0} has no key column")]
    NoKey(u32),
    /// The key of a table of longest prefixes is wider than 128 bits.
    #[error("the key of table t{0} has more than 128 bits")]
    TooWide(u32),
    /// The table has a property that tables of its kind do not have.
    #[error("table t{0} has a property that tables of its kind do not have")]
    KindProperty(u32),
    /// The instruction does not go with the kind of this table.
    #[error("this does not go with the kind of table t{0}")]
    TableKind(u32),
    /// A meter, register, pool or group, by its kind and index, is not well formed.
    #[error("{0} {1} is not well formed: a size, width, range or entry does not fit")]
    Memory(&'static str, u32),
    /// The table has a column that is not 1 to 128 bits wide.
    #[error("a column of table t{0} is not 1 to 128 bits wide")]
    ColumnWidth(u32),
    /// The table's capacity is zero or less than its number of entries.
    #[error("the capacity of table t{0} is zero or less than its number of entries")]
    Capacity(u32),
    /// Of this table, this entry has the wrong number of columns or a number too large for its column.
    #[error("entry {1} of table t{0} does not fit its columns")]
    Entry(u32, usize),
    /// The table's default entry has the wrong number of columns or a number too large for its column.
    #[error("the default entry of table t{0} does not fit its columns")]
    Default(u32),
    /// The counter has no cell.
    #[error("counter c{0} has no cell")]
    EmptyCounter(u32),
    /// The template has a hole that lies outside it or is not 1 to 128 bits wide.
    #[error("a hole of template p{0} lies outside it or is not 1 to 128 bits wide")]
    HoleOutside(u32),
    /// Two holes of the template overlap.
    #[error("two holes of template p{0} overlap")]
    HolesOverlap(u32),
    /// The template has more than [`MOST_HOLES`] holes.
    #[error("template p{0} has more than {most} holes", most = MOST_HOLES)]
    TooManyHoles(u32),
    /// The event has more than [`MOST_ARGUMENTS`] arguments.
    #[error("event e{0} has more than {most} arguments", most = MOST_ARGUMENTS)]
    TooManyArguments(u32),
    /// The function needs so many bytes of stack, more than [`LARGEST_FRAME`].
    #[error("the function needs {0} bytes of stack; {most} are possible", most = LARGEST_FRAME)]
    LargeFrame(u64),
    /// A checksum of the template lies outside it, or covers bytes that are not there.
    #[error("a checksum of template p{0} lies outside it or covers bytes that are not there")]
    SumOutside(u32),
    /// An event or timer names a function that does not exist or is the packet function.
    #[error("f{0} cannot be a handler")]
    NoSuchHandler(u32),
    /// The event's handler has other parameters than the event.
    #[error("the handler of event e{0} has other parameters")]
    HandlerParams(u32),
    /// A timer's handler, this function, has parameters.
    #[error("f{0} handles a timer and must have no parameters")]
    TimerParams(u32),
    /// A timer's period is zero.
    #[error("a timer's period is zero")]
    NoPeriod,
    /// What steers packets is more than a function of the packet.
    #[error("what steers packets is more than a function of the packet")]
    Steering,
    /// The manifest lacks this right.
    #[error("the manifest lacks the right {0}")]
    Right(String),

    /// The function has no block.
    #[error("the function has no block")]
    NoBlocks,
    /// The value's width is not 1 to 128.
    #[error("{0} is not 1 to 128 bits wide")]
    ValueWidth(Value),
    /// The value has no width: its index is out of range.
    #[error("{0} does not exist")]
    NoSuchValue(Value),
    /// The value is made twice.
    #[error("{0} is made a second time")]
    MadeTwice(Value),
    /// The packet function's entry has parameters.
    #[error("the packet function must have no parameters")]
    PacketParams,
    /// An edge leads to the entry.
    #[error("an edge leads to the entry block")]
    EdgeToEntry,
    /// An edge leads to a block that does not exist.
    #[error("an edge leads to {0}, which does not exist")]
    NoSuchBlock(BlockId),
    /// An edge to this block hands over the wrong number of values, or one of the wrong width.
    #[error("an edge hands {0} values that do not fit its parameters")]
    Args(BlockId),
    /// Something is named by an index that is out of range: what, and the index.
    #[error("{0} {1} does not exist")]
    NoSuch(&'static str, u32),
    /// Wrong number of results.
    #[error("{found} results where there must be {due}")]
    Results {
        /// So many there should be.
        due: usize,
        /// So many there are.
        found: usize,
    },
    /// Wrong number of operands in one list: key columns, value columns, arguments or holes.
    #[error("{found} operands where there must be {due}")]
    Operands {
        /// So many there should be.
        due: usize,
        /// So many there are.
        found: usize,
    },
    /// A value has the wrong width.
    #[error("{value} must be {due} bits wide")]
    Width {
        /// The value.
        value: Value,
        /// Its width should be this.
        due: u8,
    },
    /// A constant does not fit its width.
    #[error("{0} does not fit the width of its value")]
    Constant(u128),
    /// A load or store of no byte or more than 16.
    #[error("an access to {0} bytes; 1 to 16 are possible")]
    AccessSize(u8),
    /// A sum goes on behind so many bytes, which must be an even number.
    #[error("a sum goes on behind {0} bytes, which must be an even number")]
    OddSum(u32),
    /// Only the packet function may do this.
    #[error("only the packet function can do this")]
    PacketOnly,
    /// A handler ends in a verdict, or the packet function without one.
    #[error("the packet function must end in a verdict, every other function in `done`")]
    WrongEnd,
    /// A switch lists this value twice or lists it though it does not fit.
    #[error("case {0} stands twice or does not fit the value's width")]
    Case(u128),
    /// A counter with several cells is counted without an index.
    #[error("counter c{0} has several cells and needs an index")]
    NoIndex(u32),
    /// This table learns from packets and has neither `idle` nor `age`.
    #[error("table t{0} learns and has neither `idle` nor `age`")]
    NoExpiry(u32),
    /// An entry gets a lifetime of its own in a table that has no place for it.
    #[error("table t{0} is not declared with `lifetimes`")]
    NoLifetimes(u32),
    /// A fuel's slot is not below the program's number of slots.
    #[error("fuel slot {0} does not exist")]
    Slot(u32),
    /// A fuel's cap is larger than [`LARGEST_CAP`].
    #[error("cap {0} is larger than {most}", most = LARGEST_CAP)]
    Cap(u32),

    /// The value is used where it may not have been made.
    #[error("{0} is used where it may not have been made")]
    NotDominated(Value),
    /// An access reaches behind its own `proven`, or `proven` behind what was shown to be captured.
    #[error("{bytes} bytes from {base} are relied on, {shown} were shown to be captured")]
    NotProven {
        /// The position.
        base: Value,
        /// So many bytes are needed.
        bytes: u64,
        /// So many were shown to be captured.
        shown: u32,
    },
    /// A cycle of blocks goes through this one without using up fuel.
    #[error("a cycle goes through this block without using up fuel")]
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
