//! The container of a router's services: a user and a network namespace of its own, whose only link is a port
//! of the core, and how a command gets into it.
//!
//! ```text
//! launch                                             ravelin contain -- COMMAND
//! Holder::start   user and network namespace         start    own processes, mounts, messages, host name
//! Namespaces      kept by files in a folder  ──────► enter    read-only files, few rights, then COMMAND
//! ```
//!
//! Root of the container is an unprivileged user outside. Its network namespace belongs to its user
//! namespace, so that it can set addresses and routes there, and nothing anywhere else.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod calls;
mod enter;
mod files;
mod groups;
mod holder;
mod limits;
mod namespaces;
mod rights;
mod start;
mod sys;

pub use enter::{Inside, enter};
pub use holder::{HOLD, Holder, hold};
pub use limits::{MOST_DESCRIPTORS, MOST_MEMORY, MOST_MEMORY_OF_MONITOR, MOST_PROCESSES};
pub use namespaces::{FIRST_USER, Namespaces, USERS, monitor_socket};
pub use start::{ENTER, start};

use std::io;

/// Why there is no container.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct ContainerError {
    what: String,
    source: io::Error,
}

/// Makes an error that says what was tried.
fn failed<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> ContainerError {
    move |source| ContainerError { what: what.into(), source: source.into() }
}
