//! From IR to something that runs a batch: the interpreter, which is the judge, and native code.

pub mod backend;
mod block_order;
pub mod execution;
pub mod interpret;
pub mod kernel;
mod load;
pub mod native;
pub mod offload;
pub mod outputs;
pub mod pack;
pub mod replace;
pub mod stages;
pub mod state;

pub use ::tables::exact::Learned;
pub use backend::{
    Ahead, Backend, BackendKind, Beginning, DeviceTally, EntryCount, EntryError, EntryPlace, OnDevice, Room,
    TableReport,
};
pub use interpret::{Interpreter, Observer};
pub use load::{LoadError, load, load_measurable};
pub use native::{Draft, Measured};
pub use outputs::{Output, Outputs, Raised, Resized};
pub use stages::{Site, StageClock, StageCost};
