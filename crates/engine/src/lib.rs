//! The packet loop: receive, run, commit, transmit. The loop accounts for every packet, lets control look at
//! packets and counters while it runs, and reports what it did.

#![forbid(unsafe_code)]

pub mod bench;
pub mod case;
pub mod commit;
pub mod filter;
#[cfg(target_os = "linux")]
pub mod live;
pub mod ordering;
pub mod pieces;
pub mod places;
mod program_hash;
pub mod report;
pub mod steps;
pub mod stf;
pub mod transmit;
pub mod value;
pub mod worker;

pub use bench::{PacketBench, PacketOutcome, WaitedPacket};
pub use commit::{Ledger, Volume};
pub use program_hash::program_hash;
pub use report::{Figures, Imbalance, Report, Setting, Times, back_end_name};
pub use transmit::Transmitter;
pub use worker::{Finished, RunError, TimedPart, Worker};
