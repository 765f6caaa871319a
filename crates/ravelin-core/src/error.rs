//! Why a core ends, and how it says what is wrong.

use crate::activation;
use crate::in_force::InstallError;
use messages::ChannelError;
use std::fmt;
use std::io::{self, Write};

/// Why the core ends.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// the channel to `launch`
    #[error("launch: {0}")]
    Channel(#[from] ChannelError),
    /// the system refuses
    #[error("{0}")]
    System(#[from] io::Error),
    /// a message that does not belong there
    #[error("launch: {0}")]
    Order(&'static str),
    /// a layer of confinement is missing
    #[error("{0}; `--without` with its name lets the core run without it")]
    Missing(#[from] confinement::Missing),
    /// the name of a layer
    #[error("{0}")]
    UnknownLayer(#[from] confinement::UnknownLayer),
    /// a port
    #[error("interface {interface}: {source}")]
    Port {
        /// Its name.
        interface: String,
        /// Why it cannot be adopted.
        source: io::Error,
    },
    /// the first program
    #[error("{0}")]
    First(#[from] activation::ActivationError),
    /// whose policies are taken
    #[error("whose policies are taken: {0}")]
    Trust(#[from] bundle::TrustError),
    /// a policy
    #[error("{0}")]
    Install(#[from] InstallError),
    /// the policy before an unconfirmed one
    #[error("the policy before the unconfirmed one does not take over: {0}; another core begins with it")]
    Return(InstallError),
    /// another core
    #[error("the core that runs does not hand over: {0}")]
    NotHandedOver(String),
    /// what `compile` says
    #[error("{0}")]
    Compile(String),
}

/// Says what is wrong. Where nobody can read it, packets matter more.
pub(crate) fn say(error: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "ravelin-core: {error}");
}
