//! Network namespaces, virtual cables between them, virtual machines, and load: the networks of tests and
//! experiments. In this crate, *the kernel* is the Linux kernel.
//!
//! No namespace has a name on disk. The kernel removes a namespace with its cables and addresses when no
//! descriptor and no process holds it any more, however the program that made it ended.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod bgp;
mod frr;
mod links;
mod load;
mod namespace;
mod numbered;
mod process;
mod shortcut;
mod small_internet;
mod sys;
pub mod virtio_driver;
mod virtual_machine;

pub use bgp::{AnnouncedPrefix, BgpSpeaker};
pub use frr::{frr_command, frr_daemon, frr_libraries, zebra_socket};
pub use links::{Counters, RigLinks};
pub use load::{BurstSender, FrameReceiver, FrameSender, hold};
pub use namespace::{Namespace, become_root};
pub use numbered::{NumberedFlow, NumberedFlowEnd};
pub use process::{Process, Stopped};
pub use shortcut::Shortcut;
pub use small_internet::{MOST_INITIATORS, ROUTER_ETHERNET, SmallInternet};
pub use virtual_machine::{CommandEnd, GuestSystem, VirtualMachine};
