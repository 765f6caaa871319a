//! What a process of a trusted gateway may do: it is started apart from the machine, gives up everything it
//! does not need, and is ended by Linux if it asks for more.
//!
//! A process becomes confined in three steps, so that each is done while it still can be:
//!
//! 1. [`separate`], by the process that starts it: new namespaces, an unprivileged user, and no descriptors
//!    but those that are named.
//! 2. [`enter`], its own first deed, while it has a single thread: an empty root, no capabilities, Landlock.
//!    Threads that it makes from now on have no more than it has.
//! 3. [`Entered::lock`], before it reads a byte from others: limits and the list of system calls, for all
//!    threads.
//!
//! [`lock`] does the last two at once. Each fails if a [`Layer`] cannot be had, and names it. What every
//! process may still call is one table, in [`Role::calls`].
//!
//! The first step, and trials of what a machine offers, are the feature `start`, which a process that only
//! confines itself does without.

#![deny(unsafe_code)]

mod layer;
#[cfg(target_os = "linux")]
mod linux;
mod locked;
#[cfg(not(target_os = "linux"))]
mod other_systems;
mod role;

pub use layer::{Layer, Missing, UnknownLayer};
#[cfg(target_os = "linux")]
pub use linux::{Entered, enter, enter_to_read, lock};
#[cfg(all(feature = "start", target_os = "linux"))]
pub use linux::{ProcessEnd, SeparateChild, SeparateError, SeparateStart, probe, separate};
pub use locked::Locked;
#[cfg(not(target_os = "linux"))]
pub use other_systems::{lock, probe};
#[cfg(target_os = "linux")]
pub use role::AllowedCall;
pub use role::Role;
