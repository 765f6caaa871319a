//! The plan of a kernel, its interface with the host: which bytes and columns are copied to the device, which
//! tables are there, and what a packet's record contains.

use super::form::CopiedPart;
use super::refusal::Refusal;
use super::results::{ResultPlace, Results};
use super::searches::KernelSearch;
use std::ops::{Range, RangeInclusive};

/// The longest frame (bytes) that is copied whole for a program that reads payload; the host runs longer
/// ones.
pub const FRAME_BYTES: u32 = 2048;
/// Bytes of a packet's buffer in the study of 2012.
pub const PAGE_BYTES: u32 = 4096;

/// The most bytes of a packet that a warp of a persistent kernel copies before it runs the packet: 32 packets
/// and their columns then take less than a fifth of the memory that the warps of a block can share (48 KiB).
const STAGED_BYTES: u32 = 256;

/// Data of every packet in addition to its bytes: a column has one 32-bit word for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketColumn {
    /// How many bytes were captured.
    Captured,
    /// The length on the wire.
    Wire,
    /// The port by which it came in.
    Port,
    /// The less significant half of its time in nanoseconds.
    TimeLow,
    /// The more significant half.
    TimeHigh,
    /// Where its frame begins among the bytes, in units of 16 bytes.
    Place,
}

/// How far into a packet a program reads at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// At most this number of bytes.
    All(u32),
    /// There is no useful bound: this number of bytes is copied, and the host runs packets for which the
    /// program reads further.
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
    /// The bytes of each packet that are copied by default: a multiple of 16.
    pub fn stride(self) -> u32 {
        match self {
            Bytes::All(bytes) | Bytes::Part(bytes) => bytes,
            Bytes::Frame => FRAME_BYTES,
        }
    }
}

/// An effect of a packet on the state in addition to its verdict, which the host applies at commit. The
/// packet's record says which effects happened.
///
/// A place says where the data of the effect is. A key of more than 32 bits is in the record, with the less
/// significant half of each word first, and the place is that of the first word. An entry is named by the
/// number of its slot in the table's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Counts the packet in a cell of a counter.
    Count {
        /// Index of the counter.
        counter: u32,
        /// Where the cell's index is; without it, the only cell.
        cell: Option<ResultPlace>,
    },
    /// Looks up a key, which renews the entry if there is one. Keys without an entry are reported, too, so
    /// that commit can test whether there is an entry now.
    Ask {
        /// Index of the exact table.
        table: u32,
        /// Where the key is.
        key: ResultPlace,
    },
    /// Renews an entry that the packet learned again with the same value.
    Confirm {
        /// Index of the exact table.
        table: u32,
        /// Where the entry's number is.
        entry: ResultPlace,
    },
    /// Counts the packet for the row of an entry that it found.
    Row {
        /// Index of the table of prefixes or rules.
        table: u32,
        /// Where the row's number is.
        row: ResultPlace,
    },
}

impl Effect {
    /// The same effect, with its data at this place.
    pub(super) fn at(self, place: ResultPlace) -> Effect {
        match self {
            Effect::Count { counter, cell } => Effect::Count { counter, cell: cell.map(|_| place) },
            Effect::Ask { table, .. } => Effect::Ask { table, key: place },
            Effect::Confirm { table, .. } => Effect::Confirm { table, entry: place },
            Effect::Row { table, .. } => Effect::Row { table, row: place },
        }
    }
}

/// The interface of a kernel with the host.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelPlan {
    /// What is copied of every packet to the device.
    pub over: CopiedPart,
    /// How far into a packet a program reads at most.
    pub bytes: Bytes,
    /// The ranges that are copied if bytes are packed, in the order of their packed places.
    pub ranges: Vec<Range<u32>>,
    /// The distance in bytes from one packet to the next in the buffer, a multiple of 4; for frames in place,
    /// the largest room of a packet.
    pub stride: u32,
    /// The captured lengths of packets for which the kernel's result is valid; the host runs other packets,
    /// whatever comes back.
    pub lengths: RangeInclusive<u32>,
    /// The columns that are copied, one after the other.
    pub columns: Vec<PacketColumn>,
    /// The tables of the program that are on the device, in the order of the kernel's arguments.
    pub tables: Vec<u32>,
    /// How each of these tables is searched.
    pub searches: Vec<KernelSearch>,
    /// For each of these tables, whether the effects of a packet report all keys that it looked up. Then a
    /// change of other entries does not concern the packet.
    pub keyed: Vec<bool>,
    /// What the bits of a packet's result mean.
    pub results: Results,
    /// The effects that packets may have, in the order in which one packet has them.
    pub effects: Vec<Effect>,
    /// For each effect, the bit of the result or record that says whether it happened.
    pub done: Vec<ResultPlace>,
    /// 32-bit words of a packet's record; word `w` of packet `i` of `n` is at `w * n + i`.
    pub record_words: u32,
    /// Whether packets are changed, so that their bytes come back.
    pub writes: bool,
    /// The steps at which packets go back to the host, and why.
    pub refusals: Vec<Refusal>,
}

impl KernelPlan {
    /// The number of words at the beginning of a record that say which effects happened; 0 if the result says
    /// so.
    pub fn mask_words(&self) -> u32 {
        self.done.last().and_then(|last| last.word).map_or(0, |word| word + 1)
    }

    /// Whether the host runs all shorter packets, so that the kernel needs no test of the length.
    pub fn has_least(&self) -> bool {
        *self.lengths.start() > 0
    }

    /// Whether a warp of a persistent kernel copies the bytes of its 32 packets before it runs them.
    pub(super) fn fits_staged(&self) -> bool {
        self.over != CopiedPart::InPlace && self.stride.is_multiple_of(16) && self.stride <= STAGED_BYTES
    }

    /// Whether the kernel gives up a packet if the program reads beyond the copied bytes.
    pub(super) fn checks_reach(&self) -> bool {
        self.over == CopiedPart::Header && matches!(self.bytes, Bytes::Part(_))
    }

    /// The bytes that are copied to the device for so many packets; for frames in place, without the frames
    /// themselves.
    pub fn bytes_over(&self, packets: u64) -> u64 {
        let own = if self.over == CopiedPart::InPlace { 0 } else { u64::from(self.stride) };
        packets * (own + 4 * self.columns.len() as u64)
    }

    /// The bytes that come back for so many packets, including those of the packets themselves if they are
    /// changed.
    pub fn bytes_back(&self, packets: u64) -> u64 {
        let own = if self.writes { u64::from(self.stride) } else { 0 };
        let results = (packets * u64::from(self.results.back.bits())).div_ceil(32) * 4;
        packets * (own + 4 * u64::from(self.record_words)) + results
    }
}
