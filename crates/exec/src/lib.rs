//! From IR to something that runs a batch: the interpreter, which is the judge, and native code.

pub mod outputs;
pub mod processor;

pub use outputs::{Output, Outputs, Raised};
pub use processor::{BackEnd, Processor, TableReport};
