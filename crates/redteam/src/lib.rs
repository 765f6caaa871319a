//! Attacks on a gateway by whoever is root in the container of its router's services, or in a virtual machine
//! there, by whoever hands policies in, and by a `control` or a `compile` that was taken over; and the judges
//! of what came of them.
//!
//! ```text
//! LAN host ─┬─ gateway ─┬─ WAN host           taps at both hosts, judged by RouterAddresses::violation and forbidden
//!           │           │
//!           └── VNIC ───┘ container: `redteam send` as root, ACTIONS and LINK_ACTIONS; and a listener
//! ```

#![forbid(unsafe_code)]

mod actions;
#[cfg(target_os = "linux")]
mod assaults;
mod attacks;
#[cfg(target_os = "linux")]
mod between;
#[cfg(target_os = "linux")]
mod compile;
#[cfg(target_os = "linux")]
mod control;
mod evaluator;
pub mod frames;
#[cfg(target_os = "linux")]
mod laboratory;
mod link_actions;
#[cfg(target_os = "linux")]
mod monitor;
#[cfg(target_os = "linux")]
mod policies;
mod policy_judge;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod rings;
#[cfg(target_os = "linux")]
mod send;
#[cfg(target_os = "linux")]
mod tap;

pub use actions::{ACTIONS, EXHAUSTIONS, GUEST_ACTIONS, MachineAction};
pub use attacks::{ANY, ATTACKS, Attack, Attempt, DATAGRAMS, MARKER};
#[cfg(target_os = "linux")]
pub use compile::{COMPILE_ATTACKS, CompileAttack, SIGNED_BY_COMPILE};
#[cfg(target_os = "linux")]
pub use control::{CONTROL_ATTACKS, ControlAttack, asked, channel_of_control};
pub use evaluator::RouterAddresses;
#[cfg(target_os = "linux")]
pub use laboratory::{InContainer, Laboratory};
pub use link_actions::{LINK_ACTIONS, LinkAction};
#[cfg(target_os = "linux")]
pub use policies::{POLICY_ATTACKS, PolicyAttack, SIGNED_POLICY};
pub use policy_judge::forbidden;
#[cfg(target_os = "linux")]
pub use ports::live::GuestLink;
#[cfg(target_os = "linux")]
pub use report::{AttackReport, AttackResult};
#[cfg(target_os = "linux")]
pub use rig::{CommandEnd, GuestSystem, VirtualMachine};
#[cfg(target_os = "linux")]
pub use rings::{RING_ATTACKS, RingAttack};
#[cfg(target_os = "linux")]
pub use send::{one, send};
#[cfg(target_os = "linux")]
pub use tap::Tap;
