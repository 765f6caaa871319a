//! What a kernel needs and leaves: which bytes and columns go over, which tables lie there, and what a
//! packet's record says.

use super::form::CopiedPart;
use super::refusal::Refusal;
use super::results::{ResultPlace, Results};
use super::searches::KernelSearch;
use std::ops::{Range, RangeInclusive};

/// Frames up to so many bytes go over whole where a program reads payload; longer ones are run by the host.
pub const FRAME_BYTES: u32 = 2048;
/// Bytes of a packet's buffer in the study of 2012.
pub const PAGE_BYTES: u32 = 4096;

/// What is known of every packet besides its bytes: one 32-bit word a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketColumn {
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
    /// Where its frame begins among the bytes, in units of 16 bytes.
    Place,
}

/// How far into a packet the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// So many bytes; the program reads none behind them.
    All(u32),
    /// Nobody knows; so many bytes are enough for most, and packets for which the program reads further are
    /// run by the host.
    Part(u32),
    /// Whole frames, of at most [`FRAME_BYTES`].
    Frame,
}

impl PacketColumn {
    /// Its name in kernel text.
    pub fn name(self) -> &'static str {
        match self {
            PacketColumn::Captured => "captured",
            PacketColumn::Wire => "wire",
            PacketColumn::Port => "port",
            PacketColumn::TimeLow => "time_low",
            PacketColumn::TimeHigh => "time_high",
            PacketColumn::Place => "place",
        }
    }
}

impl Bytes {
    /// Bytes that go over where no other form is asked for: a multiple of 16.
    pub fn stride(self) -> u32 {
        match self {
            Bytes::All(bytes) | Bytes::Part(bytes) => bytes,
            Bytes::Frame => FRAME_BYTES,
        }
    }
}

/// Something that a packet does to the state besides its verdict, done by the host at commit. A packet's
/// record says which it did.
///
/// A place tells where what it needs to know is. A key of more than 32 bits is in the record, each of its
/// words the less significant half first, and the place says where the first is. An entry is told by the
/// number of its slot in the table's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Counts it in a cell of a counter.
    Count {
        /// Index of the counter.
        counter: u32,
        /// Where the cell's index is; without it, the only cell.
        cell: Option<ResultPlace>,
    },
    /// Asks for an entry, which renews it where it is there. It tells of keys that were not there, too: by
    /// them commit sees whether one is there now.
    Ask {
        /// Index of the exact table.
        table: u32,
        /// Where the key is.
        key: ResultPlace,
    },
    /// Renews an entry that it learned again as it was.
    Confirm {
        /// Index of the exact table.
        table: u32,
        /// Where the entry's number is.
        entry: ResultPlace,
    },
    /// Counts it for the row of an entry that it hit.
    Row {
        /// Index of the table of prefixes or rules.
        table: u32,
        /// Where the row's number is.
        row: ResultPlace,
    },
}

impl Effect {
    /// The same effect, with what it leaves at this place.
    pub(super) fn at(self, place: ResultPlace) -> Effect {
        match self {
            Effect::Count { counter, cell } => Effect::Count { counter, cell: cell.map(|_| place) },
            Effect::Ask { table, .. } => Effect::Ask { table, key: place },
            Effect::Confirm { table, .. } => Effect::Confirm { table, entry: place },
            Effect::Row { table, .. } => Effect::Row { table, row: place },
        }
    }
}

/// What a kernel needs and leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelPlan {
    /// What goes over of every packet.
    pub over: CopiedPart,
    /// How far into a packet the program reads.
    pub bytes: Bytes,
    /// The ranges that go over where bytes are packed, in the order in which they lie.
    pub ranges: Vec<Range<u32>>,
    /// Bytes from one packet to the next in the buffer, a multiple of 4; in place, the most that a packet
    /// takes there.
    pub stride: u32,
    /// Captured lengths of packets for which the kernel's outcome holds; the host runs the others, whatever
    /// comes back.
    pub lengths: RangeInclusive<u32>,
    /// Columns that go over, one after the other.
    pub columns: Vec<PacketColumn>,
    /// Tables of the program that lie on the device, in the order of the kernel's arguments.
    pub tables: Vec<u32>,
    /// How each of them is searched.
    pub searches: Vec<KernelSearch>,
    /// Of which of them every packet tells, by its effects, for which keys it asked. A change of other
    /// entries does not concern it.
    pub keyed: Vec<bool>,
    /// What the bits of a packet's result mean.
    pub results: Results,
    /// What packets may do to the state, in the order in which one packet does it.
    pub effects: Vec<Effect>,
    /// Which bit of the result or record says whether each happened.
    pub done: Vec<ResultPlace>,
    /// 32-bit words of a packet's record; word `w` of packet `i` of `n` is at `w * n + i`.
    pub record_words: u32,
    /// Whether packets are changed, so that their bytes come back.
    pub writes: bool,
    /// Where packets leave the device's way, and why.
    pub refusals: Vec<Refusal>,
}

impl KernelPlan {
    /// Words at the beginning of a record that say which effects happened; none where the result says so.
    pub fn mask_words(&self) -> u32 {
        self.done.last().and_then(|last| last.word).map_or(0, |word| word + 1)
    }

    /// Whether shorter packets are the host's, so that the kernel asks nobody how long a packet is.
    pub fn has_least(&self) -> bool {
        *self.lengths.start() > 0
    }

    /// Whether the kernel gives a packet up that it would read behind what went over.
    pub(super) fn checks_reach(&self) -> bool {
        self.over == CopiedPart::Header && matches!(self.bytes, Bytes::Part(_))
    }

    /// Bytes that go over for so many packets; in place those of the frames come on top.
    pub fn bytes_over(&self, packets: u64) -> u64 {
        let own = if self.over == CopiedPart::InPlace { 0 } else { u64::from(self.stride) };
        packets * (own + 4 * self.columns.len() as u64)
    }

    /// Bytes that come back for so many packets, those of the packets themselves included where they are
    /// changed.
    pub fn bytes_back(&self, packets: u64) -> u64 {
        let own = if self.writes { u64::from(self.stride) } else { 0 };
        let results = (packets * u64::from(self.results.back.bits())).div_ceil(32) * 4;
        packets * (own + 4 * u64::from(self.record_words)) + results
    }
}
