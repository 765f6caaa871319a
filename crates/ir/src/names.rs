//! The words of the text for kinds, operations and rights: [`print`](super::print) writes them, and
//! [`read`](super::read) reads them. And the names of values and blocks.

use super::{BinaryOp, BlockId, ColumnKind, CompareOp, Manifest, Value};
use std::fmt::{self, Display, Formatter};

impl ColumnKind {
    /// All kinds but that of numbers with names, with the words the text uses.
    pub(crate) const NAMES: [(ColumnKind, &'static str); 7] = [
        (ColumnKind::Uint, "uint"),
        (ColumnKind::Bool, "bool"),
        (ColumnKind::Ip4, "ip4"),
        (ColumnKind::Ip6, "ip6"),
        (ColumnKind::Mac, "mac"),
        (ColumnKind::Port, "port"),
        (ColumnKind::Time, "time"),
    ];
}

impl Manifest {
    /// The rights without numbers, with the words the text uses.
    pub(crate) fn rights(&mut self) -> [(&'static str, &mut bool); 7] {
        [
            ("writes_memory", &mut self.writes_memory),
            ("writes_packet", &mut self.writes_packet),
            ("resizes_packet", &mut self.resizes_packet),
            ("makes_packets", &mut self.makes_packets),
            ("reads_payload", &mut self.reads_payload),
            ("any_port", &mut self.any_port),
            ("judges_host", &mut self.judges_host),
        ]
    }
}

impl BinaryOp {
    /// All operations with the names the text uses.
    pub const NAMES: [(BinaryOp, &'static str); 13] = [
        (BinaryOp::Add, "add"),
        (BinaryOp::Sub, "sub"),
        (BinaryOp::Mul, "mul"),
        (BinaryOp::AddSaturate, "add_saturate"),
        (BinaryOp::SubSaturate, "sub_saturate"),
        (BinaryOp::MulSaturate, "mul_saturate"),
        (BinaryOp::Div, "div"),
        (BinaryOp::Rem, "rem"),
        (BinaryOp::And, "and"),
        (BinaryOp::Or, "or"),
        (BinaryOp::Xor, "xor"),
        (BinaryOp::ShiftLeft, "shift_left"),
        (BinaryOp::ShiftRight, "shift_right"),
    ];
}

impl CompareOp {
    /// All comparisons with the names the text uses.
    pub const NAMES: [(CompareOp, &'static str); 4] =
        [(CompareOp::Eq, "eq"), (CompareOp::Ne, "ne"), (CompareOp::Lt, "lt"), (CompareOp::Le, "le")];
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "%{}", self.0)
    }
}

impl Display for BlockId {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "b{}", self.0)
    }
}
