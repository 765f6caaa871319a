//! The command line of `ravelin bundle`.

use super::front::Reached;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `ravelin bundle`
#[derive(Debug, Subcommand)]
pub(crate) enum BundleCommand {
    /// Keys by which gateways know their administrators
    #[command(subcommand)]
    Key(BundleKeyCommand),
    /// Sign a policy, or add a signature to a bundle
    Sign(SignArguments),
    /// Show what a bundle says, without asking who signed it
    Show(ShowBundleArguments),
    /// Judge a bundle as a gateway does
    Verify(VerifyArguments),
    /// Have a running gateway take a bundle
    Install(InstallArguments),
    /// Have the policy stay that a running gateway took with a time to confirm
    Confirm(ConfirmArguments),
}

/// `ravelin bundle key`
#[derive(Debug, Subcommand)]
pub(crate) enum BundleKeyCommand {
    /// Make a key in a new file that only you may read, and print its public half
    New(BundleKeyArguments),
    /// Print the public half of a key
    Show(BundleKeyArguments),
}

/// `ravelin bundle key new` and `show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin bundle key new anna.key
  ravelin bundle key show anna.key")]
pub(crate) struct BundleKeyArguments {
    /// The file of the secret key
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `ravelin bundle sign`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin bundle sign policy.toml --key anna.key --out one.bundle
  ravelin bundle show one.bundle
  ravelin bundle sign one.bundle --key bert.key --out two.bundle")]
pub(crate) struct SignArguments {
    /// The description of a policy in TOML, or a bundle that gets one more signature
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The file of your secret key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The new file that the bundle is written to
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

/// `ravelin bundle show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin bundle show two.bundle
  ravelin bundle show two.bundle --program")]
pub(crate) struct ShowBundleArguments {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub(crate) file: PathBuf,
    /// Print the program and nothing else
    #[arg(long)]
    pub(crate) program: bool,
}

/// `ravelin bundle verify`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ravelin bundle verify two.bundle --trust trust.toml --newest 41")]
pub(crate) struct VerifyArguments {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub(crate) file: PathBuf,
    /// The gateway's name, its administrators' public keys and how many must sign, in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: PathBuf,
    /// The newest version that the gateway has accepted
    #[arg(long, value_name = "VERSION", default_value_t = 0)]
    pub(crate) newest: u64,
    /// The time to judge at, such as 2027-01-31T12:00:00Z, in place of now
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
}

/// `ravelin bundle install`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin bundle install two.bundle
  ravelin bundle install two.bundle --confirm-within 90s
  ravelin bundle install two.bundle --control /run/ravelin.sock
  ravelin bundle install two.bundle --confirm-within 90s --front 192.0.2.1:4433 --identity anna.front.key --server-key 51d0…

The gateway judges the bundle, and says why where it refuses it. What ran goes on then.")]
pub(crate) struct InstallArguments {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    pub(crate) file: PathBuf,
    /// Have the policy before it take over again after this time, unless it is confirmed until then
    #[arg(long, value_name = "TIME")]
    pub(crate) confirm_within: Option<humantime::Duration>,
    #[command(flatten)]
    pub(crate) reached: Reached,
}

/// `ravelin bundle confirm`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ravelin bundle confirm 3b0c…

`ravelin bundle install` says the hash, and `ravelin show policy`.")]
pub(crate) struct ConfirmArguments {
    /// The hash of the policy
    #[arg(value_name = "HASH")]
    pub(crate) hash: String,
    #[command(flatten)]
    pub(crate) reached: Reached,
}
