//! Packets as bytes: batches, verdicts, frames in memory. This crate reads no files and no clock.

#![forbid(unsafe_code)]

pub mod arena;
pub mod batch;
pub mod checksum;
#[cfg(feature = "kept")]
pub mod describe;
pub mod fragment;
pub mod fragment_order;
#[cfg(feature = "kept")]
pub mod frames;
pub mod link;
pub mod open_checksum;
pub mod region;
pub mod resize;
pub mod segment;
pub mod verdict;
pub mod virtio_header;

pub use arena::Arena;
pub use batch::{BATCH, Batch, MAXIMUM_CAPTURED};
pub use fragment_order::{FragmentLimits, FragmentOrder};
#[cfg(feature = "kept")]
pub use frames::Frames;
pub use link::LinkType;
pub use open_checksum::{KnownByte, OpenClass, OpenClasses};
pub use region::Region;
pub use verdict::{NO_PORT, PortNumber, Verdict, VerdictKind};
pub use virtio_header::VirtioHeader;
