//! What experiments and tests need of the network: hosts that exist only as long as somebody holds them,
//! virtual cables between them, and load.
//!
//! Nothing is named on disk. A namespace lives as long as its descriptor or a process in it; its cables and
//! addresses go with it, however the program that made it ends.

mod links;
mod load;
mod namespace;
mod process;
mod shortcut;
mod sys;

pub use links::{Counters, RigLinks};
pub use load::{BurstSender, FrameReceiver, FrameSender, hold};
pub use namespace::{Namespace, become_root};
pub use process::{Process, Stopped};
pub use shortcut::Shortcut;
