//! The interface of all devices, and the geometry of the data that is copied to a device and back.
//!
//! ```text
//! slot      bytes    │ packet 0: stride bytes │ packet 1 │ …          over, and back where the kernel writes packets
//!           columns  │ column 0: one word a packet │ column 1 │ …     over
//!           verdicts │ one word a packet, or a half, or a bit │         back
//!           records  │ word 0: one a packet │ word 1 │ …              back
//! ```

use crate::study::{GRAPH, SERIAL, StudyMemory, StudySubmission};
use std::fmt;
use std::time::{Duration, Instant};

/// A batch that takes longer has stalled.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// When a kernel is first run, some drivers compile it: a large program takes them many seconds.
pub(crate) const FIRST_RUN: Duration = Duration::from_secs(60);

/// How large a batch can be, and what goes over and comes back with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The most packets in a slot; at least 1.
    pub packets: usize,
    /// Bytes of every packet that go over; a multiple of 4.
    pub stride: usize,
    /// 32-bit words that go over beside them.
    pub columns: usize,
    /// Bits of a packet's verdict: 32, 16 or 1, from the least significant bit of each word on.
    pub verdict_bits: usize,
    /// 32-bit words of a packet's record.
    pub record_words: usize,
    /// Whether the bytes come back.
    pub returns_bytes: bool,
    /// Batches that may be under way at once; at least 1.
    pub slots: usize,
    /// Tables of the kernel.
    pub tables: usize,
}

impl Geometry {
    /// Words that the verdicts of so many packets take.
    pub fn verdict_words(&self, packets: usize) -> usize {
        (packets * self.verdict_bits).div_ceil(32)
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        let words = (self.columns + self.record_words) * self.packets + self.verdict_words(self.packets);
        self.packets * self.stride + size_of::<u32>() * words
    }
}

/// How a slot's memory reaches the device. What a device cannot do it refuses when it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotMemory {
    /// It is the driver's own, and the device works on it where it lies; by OpenCL the driver may also move
    /// it there and back.
    #[default]
    Mapped,
    /// Memory that no product command selects.
    Study(StudyMemory),
}

impl fmt::Display for SlotMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotMemory::Mapped => f.write_str("mapped"),
            SlotMemory::Study(memory) => memory.fmt(f),
        }
    }
}

/// How batches follow each other on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Submission {
    /// Slots are under way one behind the other: the host works beside the device, and the device does one
    /// thing at a time.
    #[default]
    Queued,
    /// So many queues, at least one and at most one a slot; slot `s` uses queue `s` modulo their number. What
    /// goes over, runs and comes back in different queues can overlap.
    Streams(usize),
    /// A kernel keeps running and takes slots of at most 32 packets as they are handed over, any number of
    /// them in any order, out of [`SlotMemory::Mapped`]; [`ring`](crate::ring) says how. It ends by itself
    /// after a while and is started again where there is work.
    Persistent,
    /// A way that no product command selects.
    Study(StudySubmission),
}

impl Submission {
    /// How many queues there are for so many slots.
    pub(crate) fn queues(self, slots: usize) -> usize {
        match self {
            Submission::Queued | Submission::Persistent | SERIAL => 1,
            Submission::Streams(wanted) => wanted.clamp(1, slots.max(1)),
            GRAPH => slots.max(1),
        }
    }
}

impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Submission::Queued => f.write_str("queued"),
            Submission::Streams(queues) => write!(f, "{queues} streams"),
            Submission::Persistent => f.write_str("persistent"),
            Submission::Study(submission) => submission.fmt(f),
        }
    }
}

/// How a device is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// How a slot's memory reaches it.
    pub memory: SlotMemory,
    /// How batches follow each other.
    pub submission: Submission,
    /// Whether it says of every batch how long its [`Parts`] took, which may cost time itself.
    pub timed: bool,
}

impl From<SlotMemory> for Setup {
    fn from(memory: SlotMemory) -> Setup {
        Setup { memory, ..Setup::default() }
    }
}

/// What the host writes into a slot.
pub struct Input<'a> {
    /// The packets' bytes.
    pub bytes: &'a mut [u8],
    /// The columns; of `n` packets, word `c` of packet `i` is at `c * n + i`.
    pub columns: &'a mut [u32],
}

/// What it reads from one.
pub struct SlotOutput<'a> {
    /// The packets' bytes, as the kernel left them; meaningless where bytes do not come back.
    pub bytes: &'a [u8],
    /// The words of the verdicts.
    pub verdicts: &'a [u32],
    /// The records; of `n` packets, word `w` of packet `i` is at `w * n + i`.
    pub records: &'a [u32],
}

/// How long the parts of a batch took by the device's own clock. What the driver takes between them belongs
/// to none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Getting what goes over, from the beginning of the first move to the end of the last.
    pub copy_in: Duration,
    /// Running the kernel.
    pub kernel: Duration,
    /// From the end of the kernel until everything that comes back is there.
    pub copy_out: Duration,
}

/// Why a device does not do what it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no such library or device.
    #[error("{what}: {how}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do.
        how: String,
    },
    /// The kernel's text does not build.
    #[error("the kernel does not build on {device}: {log}")]
    Build {
        /// The device.
        device: String,
        /// What its compiler says.
        log: String,
    },
    /// No memory.
    #[error("{device} has no memory for {bytes} bytes of {what}: use smaller batches or tables")]
    Memory {
        /// The device.
        device: String,
        /// What it was for.
        what: &'static str,
        /// How much.
        bytes: usize,
    },
    /// A table does not become an image.
    #[error("a table cannot lie on a device: {0}")]
    Table(String),
    /// It failed in the middle.
    #[error("{device} failed while it was to {doing}: {cause}")]
    Failed {
        /// The device.
        device: String,
        /// What it was to do.
        doing: &'static str,
        /// What the driver says.
        cause: String,
    },
    /// It does not answer.
    #[error("{device} has not answered for {milliseconds} ms")]
    Stalled {
        /// The device.
        device: String,
        /// How long it was waited for.
        milliseconds: u64,
    },
}

impl DeviceError {
    /// [`DeviceError::Missing`]: what is missing, and how to get it or do without it.
    pub fn missing(what: &str, how: &str) -> DeviceError {
        DeviceError::Missing { what: what.to_owned(), how: how.to_owned() }
    }
}

/// Asks until a batch is done.
///
/// # Errors
/// What asking says, or it has taken longer than [`PATIENCE`].
pub(crate) fn wait(
    device: &str,
    is_done: impl FnMut() -> Result<bool, DeviceError>,
) -> Result<(), DeviceError> {
    wait_for(device, PATIENCE, is_done)
}

/// Asks until something is done.
///
/// # Errors
/// What asking says, or it has taken longer than `patience`.
pub(crate) fn wait_for(
    device: &str,
    patience: Duration,
    mut is_done: impl FnMut() -> Result<bool, DeviceError>,
) -> Result<(), DeviceError> {
    let begin = Instant::now();
    while !is_done()? {
        let waited = begin.elapsed();
        if waited > patience {
            let milliseconds = waited.as_millis() as u64;
            return Err(DeviceError::Stalled { device: device.to_owned(), milliseconds });
        }
        // Most batches are done before a sleep would end.
        if waited > Duration::from_micros(200) {
            std::thread::sleep(Duration::from_micros(20));
        } else {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Something that runs a kernel. Slots are numbered from 0; a slot is filled, submitted, waited for and read,
/// in this order.
pub trait Device: Send {
    /// Its name, with that of its driver.
    fn name(&self) -> String;

    /// What it was made for.
    fn geometry(&self) -> &Geometry;

    /// How many slots it works on side by side, at least 1; further ones wait their turn.
    fn workers(&self) -> usize {
        1
    }

    /// Gives a table's words in full; batches submitted from now on see them. What is under way is waited
    /// for.
    ///
    /// # Errors
    /// No memory, or the device failed; then the table holds nothing that could be relied on.
    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError>;

    /// Changes some words of a table, from word `first` on.
    ///
    /// # Errors
    /// As for [`upload`](Device::upload).
    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError>;

    /// What is to be filled. The slot is not under way.
    ///
    /// # Errors
    /// The device failed.
    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError>;

    /// Hands a slot over.
    ///
    /// # Errors
    /// The device failed; the slot is not under way then.
    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError>;

    /// Whether a slot is done; with `wait`, not before it is.
    ///
    /// # Errors
    /// The device failed or stalled; what the slot holds is lost then.
    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError>;

    /// How long the parts of the batch in a slot that is done took; none where the device takes no times, or
    /// has none of a graph.
    fn parts(&self, slot: usize) -> Option<Parts> {
        let _ = slot;
        None
    }

    /// What came back in a slot that is done.
    ///
    /// # Errors
    /// The device failed.
    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError>;

    /// Nobody goes on with it, for this cause. It is not closed: that could wait for ever, and free what it
    /// still writes to.
    fn give_up(self: Box<Self>, cause: &DeviceError) {
        let _ = cause;
        std::mem::forget(self);
    }
}
