//! Whose policies a gateway takes, where it takes only signed ones.
//!
//! ```toml
//! [trust]
//! gateway = "gateway-7"           # the name that stands in its policies
//! threshold = 2                   # how many of the keys must sign
//! keep_in = "/var/lib/ravelin"    # the folder that keeps what was accepted; this is the default
//!
//! [trust.keys]                    # public keys, as `ravelin bundle key show` prints them
//! anna = "8a1f…"
//! bert = "03c2…"
//! ```

use bundle::{Trust, TrustedKey};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The folder that keeps what was accepted, unless the file names another one.
const KEEP_IN: &str = "/var/lib/ravelin";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTrust {
    gateway: Spanned<String>,
    threshold: u16,
    keep_in: Option<PathBuf>,
    keys: BTreeMap<String, Spanned<String>>,
}

/// Whose policies are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustConfig {
    /// The name of the gateway.
    pub gateway: String,
    /// How many of the keys must sign.
    pub threshold: u16,
    /// The folder that keeps what was accepted.
    pub keep_in: PathBuf,
    /// The names of the keys, and the public keys in hexadecimal digits.
    pub keys: Vec<(String, String)>,
}

impl TrustConfig {
    /// The trust that it describes.
    ///
    /// # Errors
    /// Why it is none; a file that was read has one.
    pub fn trust(&self) -> Result<Trust, String> {
        let keys = self.keys.iter().map(|(name, digits)| key(name, digits)).collect::<Result<_, _>>()?;
        Trust::new(&self.gateway, keys, usize::from(self.threshold)).map_err(|error| error.to_string())
    }
}

fn key(name: &str, digits: &str) -> Result<TrustedKey, String> {
    TrustedKey::from_digits(name, digits).ok_or_else(|| {
        format!(
            "the key `{name}`: a public key has 64 hexadecimal digits, as `ravelin bundle key show` prints"
        )
    })
}

/// Reads the section; a relative folder is one in `directory`.
pub(super) fn read(file: FileTrust, directory: &Path) -> Result<TrustConfig, (Range<usize>, String)> {
    for (name, digits) in &file.keys {
        key(name, digits.get_ref()).map_err(|message| (digits.span(), message))?;
    }
    let place = file.gateway.span();
    let keys = file.keys.into_iter().map(|(name, digits)| (name, digits.into_inner())).collect();
    let keep_in = file.keep_in.map_or_else(|| PathBuf::from(KEEP_IN), |folder| directory.join(folder));
    let config = TrustConfig { gateway: file.gateway.into_inner(), threshold: file.threshold, keep_in, keys };
    match config.trust() {
        Ok(_) => Ok(config),
        Err(message) => Err((place, message)),
    }
}
