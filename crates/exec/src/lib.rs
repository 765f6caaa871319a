//! Back ends: they run the IR of a program on batches of packets.
//!
//! Two back ends run here: the interpreter, which is the judge, and native code, which Cranelift compiles.
//! For devices this crate writes the text of a kernel. The program's state is here, too: what its tables,
//! counters and timers hold, and how another program takes it over.
//!
//! The interpreter is always there; native code and kernels are the features `native` and `kernel`.

pub mod backend;
#[cfg(any(feature = "native", feature = "kernel"))]
mod block_order;
mod bounds;
mod class_analysis;
mod errors;
pub mod execution;
pub mod interpret;
#[cfg(feature = "kernel")]
pub mod kernel;
mod load;
#[cfg(feature = "native")]
pub mod native;
mod open_checksums;
pub mod outputs;
pub mod pack;
pub mod provision;
pub mod replace;
mod reports;
mod segments;
pub mod stages;
pub mod state;
mod verify;

pub use ::tables::exact::Learned;
pub use backend::{
    AsyncBackend, Backend, BuiltTable, DeviceTally, Draft, Inspect, Measured, OnDevice, ProgramControl,
    QueueDepth, Statistics, SubmitOutcome, TableDraft,
};
pub use errors::{EntryError, LoadError};
pub use interpret::{Interpreter, Observer};
pub use load::{load, load_measurable};
pub use open_checksums::OpenProof;
pub use outputs::{Output, Outputs, Raised, Resized};
pub use reports::{BackendKind, CountedPart, EntryCount, EntryPlace, HitTimes, TableReport};
pub use segments::{SegmentProof, SegmentRefusal};
pub use stages::{Site, StageClock, StageCost};
pub use state::may_default;
