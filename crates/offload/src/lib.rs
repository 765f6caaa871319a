//! Offload: how packets of a program reach a device, and how their results come back in order of arrival.
//!
//! ```text
//!               device_queue               backend              program            gpu::Device
//!   packets ──► batches, by the ──► submits a batch to ──► gather: frames to ──► kernel
//!               offload policy      a slot; polls          slots; table images
//!               or by Hermes                                    │
//!   outputs ◄── in order of   ◄──── runs a batch ◄──────── commit: verdicts and ◄─┘
//!               arrival                                    effects, or host
//! ```

#![forbid(unsafe_code)]

pub mod backend;
pub mod device_queue;
pub mod hermes;
pub mod policy;
pub mod program;

pub use backend::{Offloaded, geometry, host, renew, text};
pub use program::{DeviceImageError, ImageChanges, ImageUpdate, Offload, OffloadError, Returned, Whole};
