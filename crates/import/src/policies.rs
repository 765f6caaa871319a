//! Whole policies from the files of other firewalls: what a file says of every packet, with each line that
//! cannot be kept.
//!
//! Beside [`crate::entries`], which makes the entries of one table from one chain, this keeps the hooks, the
//! groups and the jumps of a file, and what it says about connections.

mod stateless;

use crate::ImportError;
use crate::address::AddressFamily;
use policy::Policy;

/// The formats that policies are read from, as commands and files name them.
pub const FORMATS: [&str; 2] = ["iptables", "nft"];

/// What to read of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The family of the packets, where a file is about one only: `iptables-save` or `ip6tables-save`.
    pub family: AddressFamily,
    /// The port that the name of each interface stands for. A name that is not among these is refused.
    pub interfaces: Vec<(String, u16)>,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedPolicy {
    /// What could be kept. Without the refused lines it may decide otherwise than the file does, so it is for
    /// counting and looking only, unless nothing was refused.
    pub policy: Policy,
    /// How many lines with a rule were kept.
    pub kept: usize,
    /// The lines that mean what no policy can say, in the order of the file.
    pub refused: Vec<ImportError>,
}

/// Reads a file as a policy.
///
/// # Errors
/// What makes the file none of this format: a line that is none of it, an end that is missing.
pub fn read(text: &[u8], format: &str, options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    match format {
        "iptables" => stateless::iptables(text, options),
        "nft" => stateless::nft(text, options),
        other => {
            let what = format!("there is no format `{other}`");
            Err(ImportError::new(1, 1, what, format!("formats are {}", FORMATS.join(", "))))
        }
    }
}
