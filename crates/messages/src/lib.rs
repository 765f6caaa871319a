//! The messages between the processes of a gateway that is split into parts, the channels that carry them,
//! and the control socket, which one process makes and another answers at.
//!
//! ```text
//!            descriptors of ports, channels                    questions, changes
//!   launch ─────────────────────────────────► core ◄───────────────────────────────── control
//!      ▲              what became of it        │ ▲               answers
//!      └───────────────────────────────────────┘ └──────────────────────────── compile
//!                                                     one program, as the text of its IR
//! ```
//!
//! A front, where there is one, asks `control` what `control` asks of the core.
//!
//! Each direction of each channel has a type of its own, so that no process can say what is another one's to
//! say. The core believes nothing of what `compile` and `control` tell it: a message is bounded before it is
//! read, read as its type or refused, and what it asks for is checked.

#![forbid(unsafe_code)]

mod bounded;
#[cfg(target_os = "linux")]
mod channel;
pub mod compile;
pub mod control;
pub mod figures;
pub mod frame;
pub mod front;
pub mod launch;
pub mod limits;
#[cfg(target_os = "linux")]
pub mod listening;
pub mod takeover;
pub mod tunnel;
pub mod vhost;

#[cfg(target_os = "linux")]
pub use channel::{Channel, ChannelError, receive_first};
pub use frame::MessageError;
