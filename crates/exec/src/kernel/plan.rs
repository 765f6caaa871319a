//! What a kernel needs and leaves: which bytes and columns go over, which tables lie there, and what a packet's record says.

use super::refusal::Refusal;
use super::searches::Search;

/// Bit of a packet's verdict word: the processor runs this packet from its beginning, as if no device had seen it.
pub const AGAIN: u32 = 1 << 31;
/// Frames up to so many bytes go over whole where a program reads payload; longer ones are run by the processor.
pub const FRAME_BYTES: u32 = 2048;

/// What is known of every packet besides its bytes: one 32-bit word a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// How many bytes were captured.
    Captured,
    /// The length on the wire.
    Wire,
    /// The port it came in by.
    Port,
    /// The less significant half of its time in nanoseconds.
    TimeLow,
    /// The more significant half.
    TimeHigh,
}

/// How much of every packet goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// So many bytes; the program reads none behind them.
    All(u32),
    /// So many bytes; packets for which the program reads further are run by the processor.
    Part(u32),
    /// Whole frames, of at most [`FRAME_BYTES`].
    Frame,
}

impl Column {
    /// Its name in kernel text.
    pub fn name(self) -> &'static str {
        match self {
            Column::Captured => "captured",
            Column::Wire => "wire",
            Column::Port => "port",
            Column::TimeLow => "time_low",
            Column::TimeHigh => "time_high",
        }
    }
}

impl Bytes {
    /// Bytes from one packet to the next in the buffer: a multiple of 16.
    pub fn stride(self) -> u32 {
        match self {
            Bytes::All(bytes) | Bytes::Part(bytes) => bytes,
            Bytes::Frame => FRAME_BYTES,
        }
    }
}

/// Something that a packet does to the state besides its verdict, done by the processor at commit. A packet's record says which it did.
///
/// `word` and `key` are places of 32-bit words in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Counts it in a cell of a counter.
    Count {
        /// Index of the counter.
        counter: u32,
        /// Where the cell's index is; without it, the only cell.
        word: Option<u32>,
    },
    /// Renews an entry that it hit.
    Hit {
        /// Index of the exact table.
        table: u32,
        /// Where the key's words begin, each the less significant half first.
        key: u32,
    },
    /// Renews an entry that it learned again as it was.
    Confirm {
        /// Index of the exact table.
        table: u32,
        /// Where the key's words begin, then those of the value.
        key: u32,
    },
    /// Counts it for the row of an entry that it hit.
    Row {
        /// Index of the table of prefixes or rules.
        table: u32,
        /// Where the row's number is.
        word: u32,
    },
}

/// Which bits of the verdict word say which effects happened, where there are at most so many effects; otherwise the first words of the record do.
pub const FEW_EFFECTS: usize = 8;
/// The bit of the first effect in the verdict word.
pub const FIRST_EFFECT: u32 = 16;

/// What a kernel needs and leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How much of every packet goes over.
    pub bytes: Bytes,
    /// Columns that go over, one after the other.
    pub columns: Vec<Column>,
    /// Tables of the program that lie on the device, in the order of the kernel's arguments.
    pub tables: Vec<u32>,
    /// How each of them is searched.
    pub searches: Vec<Search>,
    /// What packets may do to the state, in the order in which one packet does it.
    pub effects: Vec<Effect>,
    /// 32-bit words of a packet's record; word `w` of packet `i` of `n` is at `w * n + i`.
    pub record_words: u32,
    /// Whether packets are changed, so that their bytes come back.
    pub writes: bool,
    /// Where packets leave the device's way, and why.
    pub refusals: Vec<Refusal>,
}

impl Plan {
    /// Words at the beginning of a record that say which effects happened.
    pub fn mask_words(&self) -> u32 {
        match self.effects.len() {
            0..=FEW_EFFECTS => 0,
            many => many.div_ceil(32) as u32,
        }
    }

    /// Bytes that come back for a packet besides those of the packet itself.
    pub fn result_bytes(&self) -> u32 {
        4 + 4 * self.record_words
    }
}
