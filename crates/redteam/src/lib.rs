//! Attacks on a gateway by whoever is root in the container of its router's services, or in a virtual machine
//! there, and the judge of what came of them.
//!
//! ```text
//! LAN host ─┬─ gateway ─┬─ WAN host           taps at both hosts: Tap, judged by RouterAddresses::violation
//!           │           │
//!           └── VNIC ───┘ container: `redteam send` as root, and ACTIONS
//! ```

#![forbid(unsafe_code)]

mod actions;
mod attacks;
mod evaluator;
pub mod frames;
#[cfg(target_os = "linux")]
mod laboratory;
#[cfg(target_os = "linux")]
mod monitor;
#[cfg(target_os = "linux")]
mod rings;
#[cfg(target_os = "linux")]
mod send;
#[cfg(target_os = "linux")]
mod tap;

pub use actions::{ACTIONS, EXHAUSTIONS, GUEST_ACTIONS, MachineAction};
pub use attacks::{ATTACKS, Attack, Attempt, DATAGRAMS, MARKER};
pub use evaluator::RouterAddresses;
#[cfg(target_os = "linux")]
pub use laboratory::{AttackReport, AttackResult, InContainer, Laboratory};
#[cfg(target_os = "linux")]
pub use ports::live::GuestLink;
#[cfg(target_os = "linux")]
pub use rig::{CommandEnd, GuestSystem, VirtualMachine};
#[cfg(target_os = "linux")]
pub use rings::{RING_ATTACKS, RingAttack};
#[cfg(target_os = "linux")]
pub use send::{one, send};
#[cfg(target_os = "linux")]
pub use tap::Tap;
