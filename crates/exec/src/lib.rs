//! Back ends: they run the IR of a program on batches of packets.
//!
//! Three back ends run here: the interpreter, which is the judge; bytecode, which a confined core runs; and
//! native code, which Cranelift compiles. For devices this crate writes the text of a kernel. The program's
//! state is here, too: what its tables, counters and timers hold, and how another program takes it over.
//!
//! Bytecode is always there; the interpreter, native code and kernels are the features `reference`, `native`
//! and `kernel`.

mod arithmetic;
pub mod backend;
#[cfg(any(feature = "native", feature = "kernel"))]
mod block_order;
mod bounds;
pub mod bytecode;
mod class_analysis;
mod errors;
pub mod execution;
#[cfg(feature = "reference")]
pub mod inspect;
#[cfg(feature = "reference")]
pub mod interpret;
#[cfg(feature = "kernel")]
pub mod kernel;
mod load;
#[cfg(feature = "native")]
pub mod native;
mod one_by_one;
mod open_checksums;
pub mod outputs;
pub mod pack;
pub mod provision;
pub mod replace;
mod reports;
mod segments;
#[cfg(feature = "reference")]
pub mod stages;
pub mod state;
mod verify;

pub use ::tables::exact::Learned;
pub use backend::{
    AsyncBackend, Backend, BuiltTable, DeviceTally, OnDevice, ProgramControl, QueueDepth, Statistics,
    SubmitOutcome, TableDraft,
};
pub use errors::{EntryError, LoadError};
#[cfg(feature = "reference")]
pub use inspect::{Draft, Inspect, Measured};
#[cfg(feature = "reference")]
pub use interpret::{Interpreter, Observer};
pub use load::{load, load_measurable};
pub use open_checksums::OpenProof;
pub use outputs::{Output, Outputs, Raised, Resized};
pub use reports::{BackendKind, CountedPart, EntryCount, EntryPlace, HitTimes, TableReport};
pub use segments::{SegmentProof, SegmentRefusal};
#[cfg(feature = "reference")]
pub use stages::{Site, StageClock, StageCost};
pub use state::may_default;
