//! Names of hosts and zones, in the form of the wire and in small letters.

use domain::base::Name;
use std::fmt;

/// A name that has a place in a zone: labels of letters, digits, `-` and `_`, in small letters, with the
/// length of each before it and an empty one at the end (RFC 1035, 3.1).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DnsName(Box<[u8]>);

/// Text or bytes that are no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name: labels of at most 63 letters, digits, `-` and `_`, together at most 253 characters"
)]
pub struct DnsNameError(pub String);

/// Bytes of the longest name (RFC 1035, 2.3.4).
pub(crate) const LONGEST_NAME: usize = 255;

fn is_good(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
}

impl DnsName {
    /// A name from text, such as `nas.home.example`, with or without a dot at its end.
    ///
    /// # Errors
    ///
    /// What is not a name.
    pub fn parse(text: &str) -> Result<DnsName, DnsNameError> {
        let mut wire = Vec::new();
        for label in text.strip_suffix('.').unwrap_or(text).split('.') {
            wire.push(u8::try_from(label.len()).map_err(|_| DnsNameError(text.to_owned()))?);
            wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        wire.push(0);
        DnsName::from_wire(&wire).ok_or_else(|| DnsNameError(text.to_owned()))
    }

    /// A name from its bytes; none unless they are exactly as this type writes them.
    pub fn from_wire(wire: &[u8]) -> Option<DnsName> {
        let mut rest = wire;
        while let Some((&length @ 1..=63, after)) = rest.split_first() {
            let (label, after) = after.split_at_checked(usize::from(length))?;
            if !label.iter().copied().all(is_good) {
                return None;
            }
            rest = after;
        }
        let whole = rest == [0] && wire.len() > 1 && wire.len() <= LONGEST_NAME;
        whole.then(|| DnsName(wire.into()))
    }

    /// The bytes.
    pub fn as_wire(&self) -> &[u8] {
        &self.0
    }

    /// This name below another one.
    ///
    /// # Errors
    ///
    /// Together they are too long.
    pub fn below(&self, parent: &DnsName) -> Result<DnsName, DnsNameError> {
        let wire = [&self.0[..self.0.len() - 1], &parent.0].concat();
        DnsName::from_wire(&wire).ok_or_else(|| DnsNameError(format!("{self}.{parent}")))
    }

    /// Whether this name is below another one, which is not itself.
    pub fn is_below(&self, parent: &DnsName) -> bool {
        ancestors(&self.0).skip(1).any(|name| name == &parent.0[..])
    }

    /// This name for the builder of messages.
    pub(crate) fn to_domain(&self) -> Name<Vec<u8>> {
        Name::from_octets(self.0.to_vec()).expect("a name of this type is a name there")
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        while let Some((&length @ 1.., after)) = rest.split_first() {
            let (label, after) = after.split_at(usize::from(length));
            let dot = if rest.len() < self.0.len() { "." } else { "" };
            write!(f, "{dot}{}", label.escape_ascii())?;
            rest = after;
        }
        Ok(())
    }
}

impl fmt::Debug for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The parents of a name on the wire, the name itself first and the root not among them.
pub(crate) fn ancestors(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(wire), |name| name.get(1 + usize::from(*name.first()?)..))
        .take_while(|name| name.len() > 1)
}
