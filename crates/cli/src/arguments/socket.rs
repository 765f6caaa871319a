//! The option that says which running gateway a command asks.

use clap::Args;
use std::path::PathBuf;

/// Which gateway is asked.
#[derive(Debug, Args)]
pub(crate) struct Socket {
    /// The socket of the gateway
    #[arg(long, default_value = gateway::config::CONTROL, value_name = "PATH")]
    pub(crate) control: PathBuf,
}
