//! Ways to use a device that no product command selects: memory that is copied or registered, serial
//! submission, recorded graphs, and round trips of single words. `ravelin lab` measures them.
//!
//! The product uses [`SlotMemory::Mapped`] with one of the other kinds of [`Submission`].

pub(crate) mod pages;

pub use crate::cuda::study::pings as cuda_pings;
use crate::device::{SlotMemory, Submission};
use std::fmt;

/// Memory of a slot that is copied to the device and back, or that is our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyMemory {
    /// It is copied there and back from memory that the driver knows nothing of.
    Pageable,
    /// It is copied there and back from memory that the driver keeps in its place.
    Pinned,
    /// It is our own, from the beginning of a page on, and the driver is told of it; the device works on it
    /// where it lies. Memory of frames can be such memory.
    Registered,
}

/// [`StudyMemory::Pageable`] of a slot.
pub const PAGEABLE: SlotMemory = SlotMemory::Study(StudyMemory::Pageable);
/// [`StudyMemory::Pinned`] of a slot.
pub const PINNED: SlotMemory = SlotMemory::Study(StudyMemory::Pinned);
/// [`StudyMemory::Registered`] of a slot.
pub const REGISTERED: SlotMemory = SlotMemory::Study(StudyMemory::Registered);
/// All kinds of memory, as a ladder has its steps.
pub const MEMORIES: [SlotMemory; 4] = [PAGEABLE, PINNED, SlotMemory::Mapped, REGISTERED];

impl fmt::Display for StudyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StudyMemory::Pageable => "pageable",
            StudyMemory::Pinned => "pinned",
            StudyMemory::Registered => "registered",
        })
    }
}

/// Ways in which batches follow each other on a device that no product command selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudySubmission {
    /// Handing a slot over ends when it is done: nothing overlaps.
    Serial,
    /// A queue a slot, and a full batch is one command, recorded when it is first handed over. CUDA alone has
    /// this, without [`StudyMemory::Pageable`]; a batch that is not full goes as with
    /// [`Submission::Streams`].
    Graph,
}

/// [`StudySubmission::Serial`] for a device.
pub const SERIAL: Submission = Submission::Study(StudySubmission::Serial);
/// [`StudySubmission::Graph`] for a device.
pub const GRAPH: Submission = Submission::Study(StudySubmission::Graph);

impl fmt::Display for StudySubmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StudySubmission::Serial => "serial",
            StudySubmission::Graph => "graph",
        })
    }
}
