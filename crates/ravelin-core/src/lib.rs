//! The core of a gateway that is split into processes: it verifies programs, and runs packets by them. It has
//! no rights, no files and no network but the descriptors that it was given.
//!
//! ```text
//! started ─► no files, no rights ─► ports, threads ─► locked in, drops every packet ─► a program takes over ─► …
//! ```
//!
//! Until a program is there, [`boot`] decides: it drops every packet. A program comes as the text of its IR,
//! which the core reads and verifies itself, so that whoever wrote the text cannot have more done than a
//! program can say. Where the gateway's file says whose signatures count, a program comes only inside of a
//! bundle that these have signed.
//!
//! Where another core runs already, this one takes its program, its state and its ports over, and no packet
//! is lost between them. With a back end that makes machine code, a core has its program before it locks
//! itself in, and another program needs another core.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod activation;
mod answers;
pub mod boot;
mod carried;
mod changing;
mod declared;
mod error;
mod exchange;
mod figures;
pub mod granted;
mod guarded;
mod handing_over;
mod in_force;
mod listing;
mod policies;
pub mod rights;
mod run;
mod supply;
mod taking_over;

pub use activation::{Activation, ActivationError, Active};
pub use error::CoreError;
pub use in_force::{InForce, InstallError, Runs, TakenOver, TwoClocks};
pub use run::main;
