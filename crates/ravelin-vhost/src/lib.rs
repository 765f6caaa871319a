//! What the monitor of a virtual machine agrees on with a gateway: the back end of vhost-user (QEMU,
//! docs/interop/vhost-user.rst), as far as the network card of a machine needs it.
//!
//! The monitor is not trusted. What it asks that is not understood exactly ends the connection, and with it
//! the machine's link.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod exchange;
mod message;
mod negotiation;

pub use exchange::{ExchangeError, Side, exchange, supplied};
pub use message::{LONGEST_BODY, MOST_FILES, Message, VhostMessageError, receive};
pub use negotiation::{FEATURES, Negotiation, PROTOCOL_FEATURES, RequestError, Sharing, UNFINISHED};
