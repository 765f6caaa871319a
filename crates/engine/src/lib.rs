//! The packet loop: receive, run, commit, transmit. The loop accounts for every packet, lets control look at
//! packets and counters while it runs, and reports what it did.
//!
//! Features add what a confined core does without: `devices` the queue of a device, `observe` those who look
//! on at the loop, `language` filters that are read from texts, and `offline` runs over packets that end, as
//! of captures and tests of programs.

#![forbid(unsafe_code)]

#[cfg(feature = "offline")]
pub mod bench;
#[cfg(feature = "offline")]
pub mod case;
pub mod commit;
pub mod device_queue;
pub mod figures;
#[cfg(feature = "observe")]
pub mod filter;
#[cfg(target_os = "linux")]
pub mod live;
pub mod ordering;
pub mod pieces;
#[cfg(feature = "observe")]
pub mod places;
mod program_hash;
#[cfg(feature = "observe")]
pub mod report;
#[cfg(feature = "observe")]
pub mod steps;
#[cfg(feature = "offline")]
pub mod stf;
pub mod transmit;
#[cfg(feature = "observe")]
pub mod value;
#[cfg(feature = "offline")]
pub mod worker;

#[cfg(feature = "offline")]
pub use bench::{PacketBench, PacketOutcome, WaitedPacket};
pub use commit::{Ledger, Volume};
pub use figures::Figures;
#[cfg(feature = "observe")]
pub use program_hash::program_hash;
pub use program_hash::text_hash;
#[cfg(feature = "observe")]
pub use report::{Imbalance, Report, Setting, Times};
pub use transmit::Transmitter;
#[cfg(feature = "offline")]
pub use worker::{Finished, RunError, TimedPart, Worker};
