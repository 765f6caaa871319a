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

use bundle::{Trust, TrustError, TrustedKey};
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
    pub fn trust(&self) -> Result<Trust, TrustError> {
        let keys = self.keys.iter().map(|(name, digits)| (name, digits));
        Trust::of_digits(&self.gateway, keys, usize::from(self.threshold))
    }
}

/// Reads the section; a relative folder is one in `directory`.
pub(super) fn read(file: FileTrust, directory: &Path) -> Result<TrustConfig, (Range<usize>, String)> {
    for (name, digits) in &file.keys {
        let key = TrustedKey::from_digits(name, digits.get_ref());
        key.map_err(|error| (digits.span(), error.to_string()))?;
    }
    let place = file.gateway.span();
    let keys = file.keys.into_iter().map(|(name, digits)| (name, digits.into_inner())).collect();
    let keep_in = file.keep_in.map_or_else(|| PathBuf::from(KEEP_IN), |folder| directory.join(folder));
    let config = TrustConfig { gateway: file.gateway.into_inner(), threshold: file.threshold, keep_in, keys };
    match config.trust() {
        Ok(_) => Ok(config),
        Err(error) => Err((place, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::path::Path;

    fn read(trust: &str) -> Result<Config, String> {
        let text = format!("program = \"p\"\n[[port]]\ninterface = \"a\"\n[trust]\n{trust}");
        Config::read(&text, Path::new("/etc/ravelin")).map_err(|error| error.to_string())
    }

    #[test]
    fn whose_policies_are_taken_is_read_and_what_is_no_trust_is_refused_at_its_place() {
        // Public keys of RFC 8032, 7.1.
        let keys = "[trust.keys]\nanna = \"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\"\nbert = \"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c\"\n";
        let right = format!("gateway = \"g\"\nthreshold = 2\n{keys}");
        let trust = read(&right).expect("it is right").trust.expect("there is one");
        assert_eq!((trust.gateway.as_str(), trust.threshold), ("g", 2));
        assert_eq!(trust.keep_in, Path::new("/var/lib/ravelin"));
        let names: Vec<&str> = trust.keys.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["anna", "bert"]);
        let kept = format!("keep_in = \"kept\"\n{right}");
        let trust = read(&kept).expect("it is right").trust.expect("there is one");
        assert_eq!(trust.keep_in, Path::new("/etc/ravelin/kept"));
        for (from, to, told) in [
            ("d75a", "d75", "line 8, column 8: the key `anna`: a public key has 64 hexadecimal digits"),
            ("\"g\"", "\"a g\"", "line 5, column 11: \"a g\" is no name of a gateway"),
            ("= 2", "= 3", "the threshold is 3, with 2 keys"),
            ("= 2", "= 0", "the threshold is 0"),
            ("= 2", "= 65536", "65536"),
            ("threshold = 2\n", "", "missing field `threshold`"),
            ("= 2", "= 2\nkeep = \"x\"", "unknown field `keep`"),
        ] {
            let error = read(&right.replace(from, to)).expect_err("refused");
            assert!(error.contains(told), "{error}");
        }
    }
}
