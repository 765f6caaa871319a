//! Live ports: network interfaces of this machine.

pub mod af_packet;
mod frame_ring;
mod sys;
mod wait;

pub use af_packet::{AfPacket, AttachError, Losses, Wishes};
pub use wait::{Bell, Waiter};
