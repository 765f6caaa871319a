//! Whole policies from the files of other firewalls: what a file says of every packet, with each line that
//! cannot be kept.
//!
//! Beside [`crate::entries`], which makes the entries of one table from one chain, this keeps the hooks, the
//! groups and the jumps of a file, and what it says about connections.

mod endpoints;
mod imported;
mod ios;
mod iptables;
mod limits;
mod nft;
mod npf;
mod pf;
mod program;
mod recognise;
#[cfg(test)]
mod segment;
mod words;

use crate::ImportError;
use crate::text::shown;
use policy::LOOPBACK;

pub use imported::{ImportedPolicy, PolicyOptions};
pub use lang::rules_file::FORMATS;
pub use nft::{write_nft, write_nft_json};
pub use npf::write_npf;
pub use program::RULES_READER;
pub use recognise::recognise;

/// Reads a file as a policy.
///
/// # Errors
/// What makes the file none of this format: a line that is none of it, an end that is missing. A name that is
/// bound to the port that stands for the loopback interface.
pub fn read(text: &[u8], format: &str, options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    if let Some((name, _)) = options.interfaces.iter().find(|(_, port)| *port == LOOPBACK) {
        let what = format!("the interface `{}` is bound to {LOOPBACK}, which stands for `lo`", shown(name));
        return Err(ImportError::new(1, 1, what, "bind it to another port"));
    }
    match format {
        "ios" => ios::read(text, options),
        "iptables" => iptables::read(text, options),
        "nft" => nft::read(text, options),
        "npf" => npf::read(text, options),
        "pf" => pf::read(text, options),
        other => {
            let what = format!("there is no format `{other}`");
            Err(ImportError::new(1, 1, what, format!("formats are {}", FORMATS.join(", "))))
        }
    }
}
