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
pub mod footprint;
pub mod fragment_order;
pub mod frame;
pub mod limits;
mod memory;
mod names;
mod operands;
#[cfg(feature = "print")]
pub mod print;
pub mod read;
pub mod replace;
pub mod source;
pub mod steering;
mod table;
pub mod verify;

pub use memory::{Group, GroupMember, KeyPart, Meter, Pool, Rates, Register};
pub use table::{
    Answer, BytePattern, Column, ColumnKind, Entry, EntryFile, Eviction, FileOptions, Match, PREFIX_LENGTH,
    Table, TableKind, prefix_mask,
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
    /// The name of the main file without directory and ending.
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
    /// Fragments come to the program in order: later ones behind the first of their packet, as far as
    /// [`fragment_order`] says.
    pub orders_fragments: bool,
    /// What says to which of several workers a packet goes, if the program says so.
    pub steering: Option<Box<Program>>,
}

/// A counter of packets and bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The name in the program, unique among counters.
    pub name: String,
    /// Number of cells, at least 1.
    pub size: u32,
    /// The program declares the counter with a size, so reports show it cell by cell.
    pub indexed: bool,
}

/// A named cause of a drop or punt.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The name that reports show, for example `not_web` or `short(ipv4)`.
    pub name: String,
    /// An explanation for the user, in one sentence.
    pub help: String,
}

/// Index in [`Program::reasons`] of the reason for packets that are sent to a port that does not exist. This
/// reason is the first of every program.
pub const NO_SUCH_PORT: u16 = 0;

/// The bit of [`Op::InPort`] that marks a packet of the machine itself, which is a host at the port. Only
/// programs whose manifest says `judges_host` get such packets; their ports have numbers below this bit.
pub const FROM_HOST: u16 = 1 << 15;

/// An event that a program raises for itself, at once or after a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The name in the program, unique among events.
    pub name: String,
    /// Names, kinds and widths of the arguments.
    pub params: Vec<Column>,
    /// The function that handles the event: index into [`Program::functions`].
    pub handler: u32,
}

/// A handler that runs again and again after a fixed period.
#[derive(Clone, Debug, PartialEq)]
pub struct Every {
    /// Nanoseconds from one run to the next; at least 1.
    pub period: u64,
    /// The function that runs: index into [`Program::functions`].
    pub handler: u32,
}

/// A packet the program can make: constant bytes with holes.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The constant bytes; the bits of holes are zero here.
    pub bytes: Vec<u8>,
    /// The holes in the order of [`Op::Emit`]'s values; no two overlap.
    pub holes: Vec<Hole>,
    /// Checksums. They are computed in this order after the holes are filled.
    pub sums: Vec<Sum>,
}

/// An Internet checksum of a packet that the program makes: the complement of a sum (see [`checksum`]). The
/// two bytes that hold the checksum count as zero in the sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Index of the first of the two bytes that hold the checksum.
    pub at: u32,
    /// Index of the first byte that the sum covers.
    pub from: u32,
    /// Index of the byte behind the last one that the sum covers. `None` means the end of the packet, with
    /// its tail.
    pub end: Option<u32>,
    /// Further bytes that are added, such as a pseudo header: index of the first byte, number of bytes.
    pub besides: Vec<(u32, u32)>,
    /// A constant that is added, such as the protocol number of a pseudo header.
    pub plus: u32,
    /// The number of bytes in `from..end` is added as well.
    pub length: bool,
    /// The format uses zero for "no checksum", so 65,535 is written instead of zero (RFC 768).
    pub never_zero: bool,
}

/// Bits of a template that a value fills, the most significant bit first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hole {
    /// First bit, counted from the most significant bit of the first byte.
    pub bit: u32,
    /// Number of bits, 1 to 128.
    pub width: u8,
}

/// A decoder or stage, for traces and graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The name in the program.
    pub name: String,
    /// The place of the name in the source.
    pub span: Span,
}

/// The layout of a header, for traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The name in the program or in the standard library.
    pub name: String,
    /// The fields in order of declaration.
    pub fields: Vec<LayoutField>,
}

/// A field of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutField {
    /// The name in the layout.
    pub name: String,
    /// How reports show the field's value.
    pub kind: ColumnKind,
    /// The first bit, counted from the start of the header; `None` if it differs from header to header.
    pub bit: Option<u32>,
    /// The width in bits; `None` if it differs from header to header.
    pub width: Option<u32>,
}

/// What a program may do at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Indexes of the tables that the program writes.
    pub writes_tables: Vec<u32>,
    /// The program writes meters, registers, pools or groups.
    pub writes_memory: bool,
    /// The program changes bytes of packets.
    pub writes_packet: bool,
    /// The program makes packets longer or shorter, or cuts them into fragments.
    pub resizes_packet: bool,
    /// The program makes new packets or copies of packets.
    pub makes_packets: bool,
    /// The program reads bytes behind the decoded headers.
    pub reads_payload: bool,
    /// Ports that the program names as constants.
    pub ports: Vec<u16>,
    /// The program may send to ports that it learns or computes.
    pub any_port: bool,
    /// The program decides about packets of the machine, too: their ports have the bit [`FROM_HOST`].
    pub judges_host: bool,
}

/// A function in SSA form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// `packet`, or the name of the event or timer that the function handles.
    pub name: String,
    /// Width in bits of every value, 1 to 128.
    pub widths: Vec<u8>,
    /// Names of values for traces, such as `ip.src`.
    pub names: Vec<(Value, String, ColumnKind)>,
    /// Blocks. The first one is the entry: no edge leads to it, and its parameters are those of the function.
    pub blocks: Vec<Block>,
}

impl Function {
    /// The width of a value in bits.
    pub fn width(&self, value: Value) -> u8 {
        self.widths[value.0 as usize]
    }

    /// The block with this index.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }
}

/// A basic block: instructions that run one after the other, and a terminator.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Values that the block gets from the edges that lead to it.
    pub params: Vec<Value>,
    /// The instructions in order of execution.
    pub instructions: Vec<Instruction>,
    /// How the block ends: an edge to another block, or a verdict.
    pub terminator: Terminator,
    /// The place in the source that the terminator comes from.
    pub span: Span,
}

/// One instruction of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The values that the instruction defines.
    pub results: Vec<Value>,
    /// The operation with its operands.
    pub op: Op,
    /// The place in the source that the instruction comes from.
    pub span: Span,
}

/// What an instruction does. A description that begins with `→` names the results.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// → a constant of the result's width.
    Const(u128),
    /// → the result of a [`BinaryOp`]. Both operands and the result have the same width.
    Binary(BinaryOp, Value, Value),
    /// → one bit: the outcome of a comparison. Both operands have the same width.
    Compare(CompareOp, Value, Value),
    /// → the second if the first (one bit) is 1, else the third.
    Select(Value, Value, Value),
    /// → the operand extended by zero bits or cut to the low bits.
    Resize(Value),
    /// → `bytes` (1 to 16) captured bytes at `base + offset`, most significant first; the width is 8 × bytes.
    Load {
        /// Position, 32 bits.
        base: Value,
        /// Number of bytes between `base` and the first byte.
        offset: u32,
        /// Number of bytes, 1 to 16.
        bytes: u8,
        /// Number of bytes from `base` on that are known to be captured; at least `offset + bytes`.
        proven: u32,
    },
    /// Writes `value` (8 × bytes wide) at `base + offset`, most significant byte first.
    Store {
        /// Position, 32 bits.
        base: Value,
        /// Number of bytes between `base` and the first byte.
        offset: u32,
        /// Number of bytes, 1 to 16.
        bytes: u8,
        /// The value that is written.
        value: Value,
        /// Number of bytes from `base` on that are known to be captured; at least `offset + bytes`.
        proven: u32,
    },
    /// → 16 bits: the sum (see [`checksum`]) of `bytes` captured bytes from `base` on and of `more` bytes
    /// behind them, as far as those are captured. With `more`, `bytes` is even.
    Checksum {
        /// Position, 32 bits.
        base: Value,
        /// Number of bytes, all known to be captured.
        bytes: u32,
        /// Further bytes, 32 bits.
        more: Option<Value>,
    },
    /// → 16 bits: the port that received the packet, perhaps with [`FROM_HOST`]. Packet function only.
    InPort,
    /// → 32 bits: the packet's length on the wire. Packet function only.
    WireLength,
    /// → 32 bits: the captured length, the number of the packet's bytes that are there. Packet function only.
    Captured,
    /// → 64 bits: the time in nanoseconds.
    Now,
    /// → one bit (found), then the value's columns (zero if not found). A hit restarts the entry's `idle`
    /// time and makes the entry the most recently used one. If no key fits, the default entry is found, if it
    /// is set.
    Lookup {
        /// Index of the table.
        table: u32,
        /// One value for each key column.
        key: Vec<Value>,
    },
    /// → the answer of a table of patterns for the bytes from `start` up to `end` (32 bits each, limited to
    /// captured bytes). For [`Answer::First`] as [`Op::Lookup`]; for `All` 32 bits; for `Set` 128 bits.
    /// Packet function only.
    Scan {
        /// Index of the table.
        table: u32,
        /// The first byte.
        start: Value,
        /// The byte behind the last.
        end: Value,
    },
    /// → one bit: accepted. Adds an entry to a table with longest prefixes or rules, behind the entries that
    /// the table has. If an entry has the same key, that entry gets the new value instead.
    Insert {
        /// Index of the table.
        table: u32,
        /// One part for each key column.
        key: Vec<KeyPart>,
        /// Its priority.
        priority: u32,
        /// One value for each value column.
        value: Vec<Value>,
    },
    /// Removes the entry with this key and priority, if there is one, from a table with longest prefixes or
    /// rules.
    Withdraw {
        /// Index of the table.
        table: u32,
        /// One part for each key column.
        key: Vec<KeyPart>,
        /// Its priority.
        priority: u32,
    },
    /// → 2 bits: the colour of this packet (0 green, 1 yellow, 2 red). The meter spends tokens for the
    /// packet. If the index (32 bits) is not smaller than the size, the colour is red. `before` is the colour
    /// that the packet had (2 bits), or none if the meter is colour-blind. A handler marks a packet of no
    /// bytes.
    Mark {
        /// Index of the meter.
        meter: u32,
        /// Which cell (32 bits); none for the only one.
        index: Option<Value>,
        /// The colour before.
        before: Option<Value>,
    },
    /// → the value of a cell of a register; zero if there is no such cell.
    ReadRegister {
        /// Index of the register.
        register: u32,
        /// Which cell (32 bits); none for the only one.
        index: Option<Value>,
    },
    /// Writes a cell of a register; does nothing if there is no such cell.
    WriteRegister {
        /// Index of the register.
        register: u32,
        /// Which cell (32 bits); none for the only one.
        index: Option<Value>,
        /// The new value of the cell.
        value: Value,
    },
    /// → one bit (there was a free item), then the item's columns (zero if there was none). The search begins
    /// at item `hint` (32 bits) modulo the number of items, wraps around at the last item, and takes the
    /// first free one.
    Take {
        /// Index of the pool.
        pool: u32,
        /// Where the search begins.
        hint: Value,
    },
    /// Gives an item back to its pool; does nothing if the pool has no such item or nobody took it.
    Give {
        /// Index of the pool.
        pool: u32,
        /// One value for each column.
        item: Vec<Value>,
    },
    /// → one bit (the group has a member), then the columns of the member that this hash (32 bits) belongs
    /// to.
    Choose {
        /// Index of the group's declaration.
        group: u32,
        /// Which group of the declaration (32 bits); none for the only one. A group behind the last one has
        /// no member.
        index: Option<Value>,
        /// The hash.
        hash: Value,
    },
    /// → one bit (there is such a member), then the port that is the `place`th member of a multicast group by
    /// ascending number, from 0.
    Member {
        /// Index of the group's declaration.
        group: u32,
        /// Which group of the declaration (32 bits); none for the only one. A group behind the last one has
        /// no member.
        index: Option<Value>,
        /// Number of the member, from 0.
        place: u32,
    },
    /// → one bit: accepted. A member joins a group.
    Join {
        /// Index of the group's declaration.
        group: u32,
        /// Which group of the declaration (32 bits).
        index: Option<Value>,
        /// One value for each column.
        member: Vec<Value>,
    },
    /// A member leaves a group; nothing happens if the group has no such member.
    Leave {
        /// Index of the group's declaration.
        group: u32,
        /// Which group of the declaration (32 bits).
        index: Option<Value>,
        /// One value for each column.
        member: Vec<Value>,
    },
    /// → one bit: accepted. Inserts an entry into an exact table, or changes or renews the entry with this
    /// key.
    Learn {
        /// Index of the table.
        table: u32,
        /// One value for each key column.
        key: Vec<Value>,
        /// One value for each value column.
        value: Vec<Value>,
    },
    /// → one bit: all the listed keys can be learned. That is so for a table if it has as many free places as
    /// listed keys are new to it, a key listed twice counting twice. A table without `evict refuse` always
    /// has room.
    HasRoom(Vec<(u32, Vec<Value>)>),
    /// Removes the entry with this key from an exact table, if there is one.
    Remove {
        /// Index of the table.
        table: u32,
        /// One value for each key column.
        key: Vec<Value>,
    },
    /// The entry with this key in an exact table, if there is one and packets made it, ends when so much
    /// time has passed, unless it ends sooner; a time of zero is one nanosecond. The next learn of the key
    /// makes it live as long as any other. Tables with `lifetimes` only.
    EndAfter {
        /// Index of the table.
        table: u32,
        /// One value for each key column.
        key: Vec<Value>,
        /// Nanoseconds, 64 bits.
        after: Value,
    },
    /// Sets the entry that is found when no key fits.
    SetDefault {
        /// Index of the table.
        table: u32,
        /// One value for each value column.
        value: Vec<Value>,
    },
    /// Removes the default entry.
    ClearDefault(u32),
    /// Adds one packet and its length on the wire to a cell; in a handler the length is zero. If the index
    /// (32 bits) is not smaller than the size, nothing happens.
    Count {
        /// Index of the counter.
        counter: u32,
        /// Which cell (32 bits); none for the only one.
        index: Option<Value>,
    },
    /// Queues an event: at once after this packet, or when `delay` nanoseconds (64 bits) have passed.
    Raise {
        /// Index of the event.
        event: u32,
        /// One value for each argument.
        args: Vec<Value>,
        /// The delay in nanoseconds; without it, the event runs right after this packet.
        delay: Option<Value>,
    },
    /// Sends a copy of the packet in its present state to a port (16 bits). Packet function only.
    Copy(Value),
    /// Sends a packet made from a template.
    Emit {
        /// Index of the template.
        template: u32,
        /// One value for each hole, as wide as the hole.
        values: Vec<Value>,
        /// The received packet's captured bytes from this position on (32 bits) are appended; nothing if it
        /// lies behind the end. Packet function only.
        tail: Option<Value>,
        /// At most so many bytes of the tail (32 bits); all of them without it.
        limit: Option<Value>,
        /// The port, 16 bits.
        port: Value,
    },
    /// → one bit: done. Inserts a template's bytes, with its holes filled, before the packet's byte at a
    /// position. A position behind the captured bytes means their end. If the packet has no room to grow,
    /// nothing happens. Earlier proofs that bytes are captured no longer hold. Packet function only.
    PushBytes {
        /// Position, 32 bits.
        at: Value,
        /// Index of the template.
        template: u32,
        /// One value for each hole, as wide as the hole.
        values: Vec<Value>,
    },
    /// Removes bytes from the packet, as far as they are captured. Earlier proofs that bytes are captured no
    /// longer hold. Packet function only.
    PopBytes {
        /// Position of the first, 32 bits.
        at: Value,
        /// How many, 32 bits.
        bytes: Value,
    },
    /// Removes all bytes from this position (32 bits) on, captured or not. Earlier proofs that bytes are
    /// captured no longer hold. Packet function only.
    Truncate(Value),
    /// If the packet is too long when it leaves, it leaves in IPv4 fragments. The operands are the position
    /// of the IPv4 header and the longest total length of a fragment, 32 bits each. Packet function only.
    Fragment {
        /// Position of the header. Later pushes and pops move it along with the header.
        at: Value,
        /// The longest total length of a fragment, in bytes.
        mtu: Value,
    },
    /// Has no effect, but its operand must be computed: a field is decoded early (explicit or full decode).
    Keep(Value),
    /// A decoder or stage begins here: index into [`Program::stages`]. Only traces use it.
    EnterStage(u32),
    /// A header was decoded here. Only traces use it.
    Header {
        /// Index of the layout.
        layout: u32,
        /// Position of the header, 32 bits.
        base: Value,
        /// The name of the header in the program.
        name: String,
    },
}

/// Operations on two values of the same width. Every operation has a result for all operands.
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
    /// Bits set in exactly one.
    Xor,
    /// Bits moved towards the most significant one; zero if the distance is the width or more.
    ShiftLeft,
    /// Bits moved towards the least significant one; zero if the distance is the width or more.
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

/// An edge of the control-flow graph: a block and the values for its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The block that the edge leads to.
    pub block: BlockId,
    /// One value for each parameter, of the same width.
    pub args: Vec<Value>,
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Terminator {
    /// Goes to another block.
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
        /// Number of bytes that are needed.
        bytes: u32,
        /// Further bytes, 32 bits.
        more: Option<Value>,
        /// The end of the bytes that are walked over, 32 bits.
        limit: Option<Value>,
        /// The bytes are there.
        ok: Target,
        /// The bytes are not there.
        short: Target,
    },
    /// Adds one to a slot; goes to `out` if it is now greater than `cap`, else to `ok`.
    Fuel {
        /// Index below [`Program::slots`].
        slot: u32,
        /// The number of passes that each packet may make.
        cap: u32,
        /// The packet may go on.
        ok: Target,
        /// The fuel is used up.
        out: Target,
    },
    /// Verdict: send the packet to one port (16 bits).
    Send(Value),
    /// Verdict: send the packet to all ports but the one that received it.
    Flood,
    /// Verdict: send the packet to a set of ports, an index into [`Program::port_sets`].
    Multicast(u32),
    /// Verdict: drop the packet for a reason, an index into [`Program::reasons`].
    Drop(u16),
    /// Verdict: hand the packet to the control plane for a reason, an index into [`Program::reasons`].
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
