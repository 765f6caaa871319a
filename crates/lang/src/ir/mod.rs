//! The intermediate representation (IR): the form in which every back end gets a checked program.
//!
//! A program is a set of functions in SSA form over a control-flow graph with block parameters. The *packet
//! function* runs for each packet and ends in exactly one verdict; *handler functions* run for events and
//! timers and end in [`Terminator::Done`].
//!
//! Every value is an unsigned integer of 1 to 128 bits and is always smaller than two to its width. Positions
//! in a packet are 32-bit values counted in bytes from its first byte. A program may read or write bytes only
//! behind a [`Terminator::Need`] that has shown them to be captured. Every cycle of blocks passes a
//! [`Terminator::Fuel`]. The verifier (`verify`) checks both rules, and back ends rely on them.

pub mod checksum;
pub mod cost;
pub mod footprint;
pub mod frame;
pub mod graph;
mod memory;
mod operands;
pub mod print;
pub mod read;
pub mod replace;
mod table;
pub mod unreachable;
pub mod verify;

pub use memory::{Group, GroupMember, KeyPart, Meter, Pool, Rates, Register};
pub use table::{
    Answer, BytePattern, Column, ColumnKind, Entry, EntryFile, Eviction, Match, Table, TableKind, prefix_mask,
};

use crate::source::Span;

/// An SSA value: index into [`Function::widths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A block: index into [`Function::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its name: the name of the main file without directory and ending.
    pub name: String,
    /// Tables in order of declaration.
    pub tables: Vec<Table>,
    /// Counters in order of declaration.
    pub counters: Vec<Counter>,
    /// Meters in order of declaration.
    pub meters: Vec<Meter>,
    /// Registers in order of declaration.
    pub registers: Vec<Register>,
    /// Pools in order of declaration.
    pub pools: Vec<Pool>,
    /// Groups in order of declaration.
    pub groups: Vec<Group>,
    /// Reasons for drops and punts, each name once.
    pub reasons: Vec<Reason>,
    /// Sets of ports that `multicast` names.
    pub port_sets: Vec<Vec<u16>>,
    /// Events in order of declaration.
    pub events: Vec<Event>,
    /// Periodic handlers in order of declaration.
    pub every: Vec<Every>,
    /// Packets the program can make.
    pub templates: Vec<Template>,
    /// Decoders and stages, for traces and graphs.
    pub stages: Vec<Stage>,
    /// Layouts, for traces.
    pub layouts: Vec<Layout>,
    /// Fuel counters: words that are zero when a packet arrives, one for each [`Terminator::Fuel`] slot.
    pub slots: u32,
    /// Functions; the first is the packet function.
    pub functions: Vec<Function>,
    /// What the program may do; the verifier checks that it does no more.
    pub manifest: Manifest,
}

/// A counter of packets and bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Number of cells, at least 1.
    pub size: u32,
    /// True if it was declared with a size and is shown cell by cell.
    pub indexed: bool,
}

/// A named cause of a drop or punt.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Its name as reports show it, for example `not_web` or `short(ipv4)`.
    pub name: String,
    /// What it means.
    pub help: String,
}

/// Index in [`Program::reasons`] of the reason for sending to a port that does not exist. Every program has
/// it first.
pub const NO_SUCH_PORT: u16 = 0;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub params: Vec<Column>,
    /// Its handler: index into [`Program::functions`].
    pub handler: u32,
}

/// A periodic handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Every {
    /// Nanoseconds from one run to the next; at least 1.
    pub period: u64,
    /// Index into [`Program::functions`].
    pub handler: u32,
}

/// A packet the program can make: constant bytes with holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The bytes, holes zero.
    pub bytes: Vec<u8>,
    /// The holes in the order of [`Op::Emit`]'s values; no two overlap.
    pub holes: Vec<Hole>,
    /// Checksums, written in this order when everything else is there.
    pub sums: Vec<Sum>,
}

/// An Internet checksum of a made packet: the complement of a sum (see [`checksum`]), written into two bytes
/// that count as zero in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The first of its two bytes.
    pub at: u32,
    /// Bytes from here on are added.
    pub from: u32,
    /// To before here; without it, to the end of the packet, the tail included.
    pub end: Option<u32>,
    /// Further bytes that are added: first and number.
    pub besides: Vec<(u32, u32)>,
    /// A number that is added.
    pub plus: u32,
    /// The number of bytes in `from..end` is added too.
    pub length: bool,
    /// Zero would mean that there is no checksum, so 65,535 is written for it.
    pub never_zero: bool,
}

/// Bits of a template that a value fills, the most significant bit first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hole {
    /// First bit, counted from the most significant bit of the first byte.
    pub bit: u32,
    /// How many bits.
    pub width: u8,
}

/// A decoder or stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub span: Span,
}

/// A layout, for traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<LayoutField>,
}

/// A field of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutField {
    /// Its name.
    pub name: String,
    /// How it is shown.
    pub kind: ColumnKind,
    /// Its first bit from the start of the header, if that is the same in every header.
    pub bit: Option<u32>,
    /// Its width in bits, if that is the same in every header.
    pub width: Option<u32>,
}

/// What a program may do at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Tables it writes.
    pub writes_tables: Vec<u32>,
    /// It writes meters, registers, pools or groups.
    pub writes_memory: bool,
    /// It changes bytes of packets.
    pub writes_packet: bool,
    /// It makes packets longer or shorter, or cuts them into fragments.
    pub resizes_packet: bool,
    /// It makes packets or copies.
    pub makes_packets: bool,
    /// It reads bytes behind the decoded headers.
    pub reads_payload: bool,
    /// Ports it names as constants.
    pub ports: Vec<u16>,
    /// It may send to ports that it learns or computes.
    pub any_port: bool,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Width in bits of every value, 1 to 128.
    pub widths: Vec<u8>,
    /// Names of values for traces, such as `ip.src`.
    pub names: Vec<(Value, String, ColumnKind)>,
    /// Blocks; the first is the entry, which no edge leads to and whose parameters are the function's.
    pub blocks: Vec<Block>,
}

impl Function {
    /// The width of a value in bits.
    pub fn width(&self, value: Value) -> u8 {
        self.widths[value.0 as usize]
    }

    /// A block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }
}

/// Instructions without a jump between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Values that jumps hand over.
    pub params: Vec<Value>,
    /// What is done.
    pub instructions: Vec<Instruction>,
    /// Where it goes from here.
    pub terminator: Terminator,
    /// The place in the program that the terminator stands for.
    pub span: Span,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The values it makes.
    pub results: Vec<Value>,
    /// What it does.
    pub op: Op,
    /// The place in the program it stands for.
    pub span: Span,
}

/// What an instruction does. Results are named where there are any.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// → a constant of the result's width.
    Const(u128),
    /// → both operands and the result have one width; see [`BinaryOp`].
    Binary(BinaryOp, Value, Value),
    /// → one bit; both operands have one width.
    Compare(CompareOp, Value, Value),
    /// → the second if the first (one bit) is 1, else the third.
    Select(Value, Value, Value),
    /// → the operand extended by zero bits or cut to the low bits.
    Resize(Value),
    /// → `bytes` (1 to 16) captured bytes at `base + offset`, most significant first; the width is 8 × bytes.
    Load {
        /// Position, 32 bits.
        base: Value,
        /// Bytes from there.
        offset: u32,
        /// How many.
        bytes: u8,
        /// So many bytes from `base` on are known to be captured; at least `offset + bytes`.
        proven: u32,
    },
    /// Writes `value` (8 × bytes wide) at `base + offset`, most significant byte first.
    Store {
        /// Position, 32 bits.
        base: Value,
        /// Bytes from there.
        offset: u32,
        /// How many.
        bytes: u8,
        /// What is written.
        value: Value,
        /// So many bytes from `base` on are known to be captured; at least `offset + bytes`.
        proven: u32,
    },
    /// → 16 bits: the sum (see [`checksum`]) of `bytes` captured bytes from `base` on and of `more` bytes
    /// behind them, as far as those are captured. With `more`, `bytes` is even.
    Checksum {
        /// Position, 32 bits.
        base: Value,
        /// So many bytes, known to be captured.
        bytes: u32,
        /// Further bytes, 32 bits.
        more: Option<Value>,
    },
    /// → 16 bits: the port the packet came in by. Packet function only.
    InPort,
    /// → 32 bits: the packet's length on the wire. Packet function only.
    WireLength,
    /// → 32 bits: how many bytes of it are there. Packet function only.
    Captured,
    /// → 64 bits: the time in nanoseconds.
    Now,
    /// → one bit (found), then the value's columns (zero if not found). A hit renews `idle` and recency. The
    /// default entry, if set, is found when no key fits.
    Lookup {
        /// Index of the table.
        table: u32,
        /// One value a key column.
        key: Vec<Value>,
    },
    /// → the answer of a table of patterns to the bytes from `start` up to `end` (32 bits each, cut to what
    /// is captured). For [`Answer::First`] as [`Op::Lookup`]; for `All` 32 bits; for `Set` 128 bits. Packet
    /// function only.
    Scan {
        /// Index of the table.
        table: u32,
        /// The first byte.
        start: Value,
        /// The byte behind the last.
        end: Value,
    },
    /// → one bit: accepted. Puts an entry into a table with longest prefixes or rules, behind those that are
    /// there, or gives the entry with the same key this value.
    Insert {
        /// Index of the table.
        table: u32,
        /// One part a key column.
        key: Vec<KeyPart>,
        /// Its priority.
        priority: u32,
        /// One value a value column.
        value: Vec<Value>,
    },
    /// Removes the entry with this key and priority from a table with longest prefixes or rules if it is
    /// there.
    Withdraw {
        /// Index of the table.
        table: u32,
        /// One part a key column.
        key: Vec<KeyPart>,
        /// Its priority.
        priority: u32,
    },
    /// → 2 bits: the colour of this packet (0 green, 1 yellow, 2 red). Spends tokens. The index (32 bits) is
    /// smaller than the size, else the answer is red; `before` is the colour it had (2 bits), or none if the
    /// meter is colour-blind. In handlers a packet of no bytes.
    Mark {
        /// Index of the meter.
        meter: u32,
        /// The cell; none for the only one.
        index: Option<Value>,
        /// The colour before.
        before: Option<Value>,
    },
    /// → what a cell of a register holds; zero if there is no such cell.
    ReadRegister {
        /// Index of the register.
        register: u32,
        /// The cell (32 bits); none for the only one.
        index: Option<Value>,
    },
    /// Gives a cell of a register a value; nothing happens if there is no such cell.
    WriteRegister {
        /// Index of the register.
        register: u32,
        /// The cell (32 bits); none for the only one.
        index: Option<Value>,
        /// What it holds from now on.
        value: Value,
    },
    /// → one bit (there was a free item), then the item's columns (zero if there was none). The item is the
    /// first free one at or behind `hint` (32 bits) modulo the number of items, from the end on at the
    /// beginning.
    Take {
        /// Index of the pool.
        pool: u32,
        /// Where the search begins.
        hint: Value,
    },
    /// Gives an item back; nothing happens if it is none of the pool or was not taken.
    Give {
        /// Index of the pool.
        pool: u32,
        /// One value a column.
        item: Vec<Value>,
    },
    /// → one bit (the group has a member), then the columns of the member that this hash (32 bits) belongs
    /// to.
    Choose {
        /// Index of the group's declaration.
        group: u32,
        /// Which of them (32 bits); none for the only one. There is no member behind the last.
        index: Option<Value>,
        /// The hash.
        hash: Value,
    },
    /// → one bit (there is such a member), then the port that is the `place`th member of a multicast group by
    /// ascending number, from 0.
    Member {
        /// Index of the group's declaration.
        group: u32,
        /// Which of them (32 bits); none for the only one. There is no member behind the last.
        index: Option<Value>,
        /// Which member.
        place: u32,
    },
    /// → one bit: accepted. A member joins a group with this weight, or gets it.
    Join {
        /// Index of the group's declaration.
        group: u32,
        /// Which of them (32 bits).
        index: Option<Value>,
        /// One value a column.
        member: Vec<Value>,
    },
    /// A member leaves a group if it is there.
    Leave {
        /// Index of the group's declaration.
        group: u32,
        /// Which of them (32 bits).
        index: Option<Value>,
        /// One value a column.
        member: Vec<Value>,
    },
    /// → one bit: accepted. Inserts, changes or renews an entry.
    Learn {
        /// Index of the table.
        table: u32,
        /// One value a key column.
        key: Vec<Value>,
        /// One value a value column.
        value: Vec<Value>,
    },
    /// → one bit: every key listed is in its table, or its table has (without `evict refuse`, always) as many
    /// free places as keys listed here are new to it; a key listed twice counts twice.
    HasRoom(Vec<(u32, Vec<Value>)>),
    /// Removes an entry if it is there.
    Remove {
        /// Index of the table.
        table: u32,
        /// One value a key column.
        key: Vec<Value>,
    },
    /// Sets the entry that is found when no key fits.
    SetDefault {
        /// Index of the table.
        table: u32,
        /// One value a value column.
        value: Vec<Value>,
    },
    /// Removes the default entry.
    ClearDefault(u32),
    /// Adds one packet and its length on the wire to a cell; in handlers one and zero. The index (32 bits) is
    /// smaller than the size, else nothing happens.
    Count {
        /// Index of the counter.
        counter: u32,
        /// The cell; none for the only one.
        index: Option<Value>,
    },
    /// Queues an event: at once after this packet, or when `delay` nanoseconds (64 bits) have passed.
    Raise {
        /// Index of the event.
        event: u32,
        /// One value an argument.
        args: Vec<Value>,
        /// The delay.
        delay: Option<Value>,
    },
    /// Sends a copy of the packet as it now is to a port (16 bits). Packet function only.
    Copy(Value),
    /// Sends a packet made from a template.
    Emit {
        /// Index of the template.
        template: u32,
        /// One value a hole, as wide as the hole.
        values: Vec<Value>,
        /// The received packet's captured bytes from this position on (32 bits) are appended; nothing if it
        /// lies behind the end. Packet function only.
        tail: Option<Value>,
        /// At most so many bytes of the tail (32 bits); all of them without it.
        limit: Option<Value>,
        /// The port, 16 bits.
        port: Value,
    },
    /// → one bit: done. Puts a template's bytes, its holes filled, before the packet's byte at a position;
    /// behind the captured end counts as the end. Nothing happens where the packet has no room left to grow.
    /// What was known of captured bytes is no longer known. Packet function only.
    PushBytes {
        /// Position, 32 bits.
        at: Value,
        /// Index of the template.
        template: u32,
        /// One value a hole, as wide as the hole.
        values: Vec<Value>,
    },
    /// Takes bytes out of the packet, as many of them as are captured. What was known of captured bytes is no
    /// longer known. Packet function only.
    PopBytes {
        /// Position of the first, 32 bits.
        at: Value,
        /// How many, 32 bits.
        bytes: Value,
    },
    /// Takes away everything from this position (32 bits) on, captured or not. What was known of captured
    /// bytes is no longer known. Packet function only.
    Truncate(Value),
    /// Lets the packet leave in IPv4 fragments, should it be too long when it leaves: the position of its
    /// IPv4 header and the longest total length of a fragment, 32 bits each. Packet function only.
    Fragment {
        /// Position of the header, which later pushes and pops carry along.
        at: Value,
        /// The longest total length.
        mtu: Value,
    },
    /// Keeps a decoded field for later readers (explicit or full decode): the value must be computed, nothing
    /// else follows.
    Keep(Value),
    /// A decoder or stage begins here (trace only).
    EnterStage(u32),
    /// A header was decoded (trace only): index of its layout, position, and the name it got.
    Header {
        /// Index of the layout.
        layout: u32,
        /// Its position.
        base: Value,
        /// Its name in the program.
        name: String,
    },
}

/// Operations on two values of one width. All are total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// Sum modulo two to the width.
    Add,
    /// Difference modulo two to the width.
    Sub,
    /// Product modulo two to the width.
    Mul,
    /// Sum, at most the largest value.
    AddSaturate,
    /// Difference, at least zero.
    SubSaturate,
    /// Product, at most the largest value.
    MulSaturate,
    /// Quotient; zero if the divisor is zero.
    Div,
    /// Remainder; zero if the divisor is zero.
    Rem,
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in one.
    Xor,
    /// Bits moved up; zero if the distance is the width or more.
    ShiftLeft,
    /// Bits moved down; zero if the distance is the width or more.
    ShiftRight,
}

/// Comparisons of unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

/// A block and the values it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The block.
    pub block: BlockId,
    /// One value a parameter, of its width.
    pub args: Vec<Value>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// Goes there.
    Jump(Target),
    /// Goes to the first if the value (one bit) is 1.
    Branch(Value, Target, Target),
    /// Goes where the value is listed (each value once), else to the default.
    Switch(Value, Vec<(u128, Target)>, Target),
    /// Goes to `ok` if `base + bytes + more` is at most the captured length and at most `limit`, computed
    /// without wrap. On the way to `ok`, `bytes` bytes from `base` on are known to be captured.
    Need {
        /// Position, 32 bits.
        base: Value,
        /// Bytes from there.
        bytes: u32,
        /// Further bytes, 32 bits.
        more: Option<Value>,
        /// End of the view, 32 bits.
        limit: Option<Value>,
        /// They are there.
        ok: Target,
        /// They are not.
        short: Target,
    },
    /// Adds one to a slot; goes to `out` if it is now greater than `cap`, else to `ok`.
    Fuel {
        /// Index below [`Program::slots`].
        slot: u32,
        /// So many passes are allowed for each packet.
        cap: u32,
        /// On it goes.
        ok: Target,
        /// Used up.
        out: Target,
    },
    /// Verdict: to one port (16 bits).
    Send(Value),
    /// Verdict: to all ports but the one it came in by.
    Flood,
    /// Verdict: to a set of ports, by index.
    Multicast(u32),
    /// Verdict: dropped for a reason, by index.
    Drop(u16),
    /// Verdict: handed to the control plane for a reason, by index.
    Punt(u16),
    /// End of a handler function.
    Done,
}

impl Terminator {
    /// The targets in a fixed order.
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Terminator::Jump(target) => vec![target],
            Terminator::Branch(_, yes, no) => vec![yes, no],
            Terminator::Switch(_, cases, default) => {
                cases.iter().map(|(_, target)| target).chain(std::iter::once(default)).collect()
            }
            Terminator::Need { ok, short, .. } => vec![ok, short],
            Terminator::Fuel { ok, out, .. } => vec![ok, out],
            _ => Vec::new(),
        }
    }
}
