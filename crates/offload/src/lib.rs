//! The road of packets to a device and back: the host collects packets, submits them to a device, and commits
//! the results in order of arrival.
//!
//! ```text
//! packets ──► device_queue ─────────► backend ──────────────► program::gather ────────► gpu::Device
//!             collects packets; the   submits to a free slot, copies frames and table  runs the kernel
//!             policy or hermes says   and polls               images for the device         │
//!             when and where they run                                                       │
//! outputs ◄── in order of arrival ◄── runs each batch ◄────── program::commit ◄─────────────┘
//!                                                             applies effects and verdicts;
//!                                                             the host runs what the device cannot
//! ```
//!
//! [`policy`], [`hermes`] and [`device_queue`] read no clock: the time is an argument, or the queue asks
//! whoever runs it ([`device_queue::Run::now`]). [`backend`] finds a device that has stalled by the clock of
//! the system, or by one that it is given ([`Offloaded::by_clock`]).

#![forbid(unsafe_code)]

pub mod backend;
pub mod device_queue;
pub mod hermes;
pub mod policy;
pub mod program;

pub use backend::{Offloaded, geometry, host, renew, text};
pub use program::{DeviceImageError, ImageChanges, ImageUpdate, Offload, OffloadError, Whole};
