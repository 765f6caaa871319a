//! Counter cells and default entries, which compiled code reads and writes directly.

use crate::pack::MAX_WORDS;

/// A default entry. The layout is part of the interface to compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DefaultEntry {
    /// 1 if it is set, else 0.
    pub present: u64,
    /// Its words.
    pub words: [u64; MAX_WORDS],
}

/// One cell of a counter. The layout is part of the interface to compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// Packets counted.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}
