//! The command line of `ravelin front`, and the options that ask a gateway over a network.

use super::socket::Socket;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `ravelin front`
#[derive(Debug, Subcommand)]
pub(crate) enum FrontCommand {
    /// Keys by which the front of a gateway and its clients know each other
    #[command(subcommand)]
    Key(FrontKeyCommand),
}

/// `ravelin front key`
#[derive(Debug, Subcommand)]
pub(crate) enum FrontKeyCommand {
    /// Make a key in a new file that only you may read, and print its public half
    New(FrontKeyArguments),
    /// Print the public half of a key
    Show(FrontKeyArguments),
}

/// `ravelin front key new` and `show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin front key new /etc/ravelin/front.key
  ravelin front key new anna.front.key
  ravelin front key show anna.front.key

The gateway's file names its own key and the public halves of those of its clients, in `[front]` and `[front.clients]`. Keys that sign \
bundles are others (`ravelin bundle key`).")]
pub(crate) struct FrontKeyArguments {
    /// The file of the secret key
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Which gateway is asked, on this machine or over a network.
#[derive(Debug, Args)]
pub(crate) struct Reached {
    #[command(flatten)]
    pub(crate) socket: Socket,
    #[command(flatten)]
    pub(crate) network: Network,
}

/// How a gateway is asked over a network.
#[derive(Debug, Args)]
pub(crate) struct Network {
    /// Ask a gateway over a network, at the address of its front, in place of one on this machine
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "identity",
        requires = "server_key",
        conflicts_with = "control"
    )]
    pub(crate) front: Option<String>,
    /// The file of your key, which the gateway knows (`ravelin front key new`)
    #[arg(long, value_name = "FILE", requires = "front")]
    pub(crate) identity: Option<PathBuf>,
    /// The public half of the front's key, as `ravelin front key show` prints it on the gateway
    #[arg(long, value_name = "KEY", requires = "front")]
    pub(crate) server_key: Option<String>,
}
