//! From IR to something that runs a batch: the interpreter, which is the judge, and native code.

mod block_order;
pub mod execution;
pub mod interpret;
pub mod kernel;
mod load;
pub mod native;
pub mod offload;
pub mod outputs;
pub mod pack;
pub mod processor;
pub mod replace;
pub mod stages;
pub mod state;

pub use ::tables::exact::Learned;
pub use interpret::{Interpreter, Observer};
pub use load::{LoadError, load, load_measurable};
pub use native::{Draft, Measured};
pub use outputs::{Output, Outputs, Raised, Resized};
pub use processor::{
    Ahead, BackEnd, Beginning, EntryCount, EntryError, EntryPlace, OnDevice, Processor, Room, TableReport,
    Tally,
};
pub use stages::{Site, StageClock, StageCost};
