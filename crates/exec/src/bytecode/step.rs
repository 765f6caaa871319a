//! The steps of bytecode, and what they refer to.

use ir::{BinaryOp, CompareOp, Instruction};
use packet::verdict::Verdict;

/// Where a value of the function is.
pub(super) type Place = u32;

/// One step. A step that does not go elsewhere is followed by the next one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// An operation on values of at most 64 bits.
    Narrow { op: BinaryOp, width: u8, to: Place, a: Place, b: Place },
    /// An operation on wider values.
    Wide { op: BinaryOp, width: u8, to: Place, a: Place, b: Place },
    /// Whether a comparison holds.
    Compare { op: CompareOp, to: Place, a: Place, b: Place },
    /// Goes to `otherwise` unless a comparison holds.
    Unless { op: CompareOp, a: Place, b: Place, otherwise: u32 },
    /// The one or the other value.
    Select { to: Place, condition: Place, yes: Place, no: Place },
    /// The low bits of a value.
    Resize { to: Place, value: Place, width: u8 },
    /// A value of another place.
    Move { to: Place, from: Place },
    /// Captured bytes, at most eight.
    Load { to: Place, base: Place, offset: u32, bytes: u8 },
    /// More than eight captured bytes.
    LoadWide { to: Place, base: Place, offset: u32, bytes: u8 },
    /// The port of the packet.
    InPort { to: Place },
    /// Its length on the wire.
    WireLength { to: Place },
    /// How many bytes of it are captured.
    Captured { to: Place },
    /// The time.
    Now { to: Place },
    /// An operation with effects or many operands: index into [`Code::operations`].
    Operation(u32),
    /// Goes elsewhere.
    Jump(u32),
    /// Goes to `otherwise` unless the value is 1.
    Branch { value: Place, otherwise: u32 },
    /// Goes where the value is among these cases, or else to `otherwise`.
    Switch { value: Place, first: u32, count: u32, otherwise: u32 },
    /// Goes to `short` unless these bytes are captured and end at `limit` at the latest.
    Need { base: Place, bytes: u32, more: Place, limit: Place, short: u32 },
    /// Goes to `out` if the slot has been passed more often.
    Fuel { slot: u32, cap: u32, out: u32 },
    /// Sends the packet to the port with this number.
    Send(Place),
    /// Ends the function.
    End(Verdict),
}

/// A function as bytecode.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) operations: Vec<Instruction>,
    /// The cases of all switches, those of each in ascending order: value, step.
    pub(super) cases: Vec<(u128, u32)>,
    /// The parameters of the function.
    pub(super) params: Vec<Place>,
    /// The values of the function, and behind them those that translation adds. Each is written before it is
    /// read, and a constant by no step, so constants stay from run to run.
    pub(super) values: Vec<u128>,
}
