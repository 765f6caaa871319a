//! The command line of `ravelin naming`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `ravelin naming`
#[derive(Debug, Subcommand)]
pub(crate) enum NamingCommand {
    /// Keys by which the ends of tunnels know each other
    #[command(subcommand)]
    Key(KeyCommand),
}

/// `ravelin naming key`
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key in a new file that only you may read, and print its public half
    New(KeyArguments),
    /// Print the public half of a key
    Show(KeyArguments),
}

/// `ravelin naming key new` and `show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin naming key new home.key
  ravelin naming key show home.key")]
pub(crate) struct KeyArguments {
    /// The file of the secret key
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
