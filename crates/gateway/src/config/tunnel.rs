//! Reads the ends of tunnels among the ports of a gateway's file.
//!
//! ```toml
//! [[port]]
//! kind = "tunnel"
//! listen = "0.0.0.0:5282"            # where datagrams of UDP come
//! key = "home.key"                   # the file of the secret key, beside this file; or several while keys are changed
//! mtu = 1420                         # the longest packet that goes in; this is the default
//!
//! [[port.peer]]
//! name = "home"                      # for people
//! number = 1                         # stands in its MAC address: 02:52:56 and three bytes
//! key = "BASE64"                     # its public key; or several while keys are changed
//! endpoint = "198.51.100.1:5282"     # where it is; without that it is only answered
//! keepalive = 5                      # seconds; this is the default for who has an endpoint, others get none
//! packets = false                    # control messages only, as with a name server; by default packets, too
//! ```

use ::tunnel::limits::{MOST_KEYS_OF_PEER, MOST_PEERS, MOST_SECRETS, SECOND};
use ::tunnel::{GREATEST_PEER_NUMBER, PublicKey};
use ports::live::TunnelWishes;
use ports::live::tunnel::WantedPeer;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// The longest packet that goes in where the file says nothing: with the headers of IPv6, UDP and the tunnel
/// it has 1,500 bytes.
const MTU: u16 = 1_420;
/// The smallest and the largest that the file may say. All hosts of IPv6 send packets of 1,280 bytes.
const MTUS: std::ops::RangeInclusive<u16> = 576..=9_000;
/// How often something is sent at least to a peer with an endpoint, in seconds. RFC 4787 (4.3) wants a NAT to
/// keep a mapping for two minutes; many keep it for 30 s. It is also how soon it is noticed that the peer was
/// started anew.
const KEEPALIVE: u64 = 5;
/// The longest time that the file may say.
const LONGEST_KEEPALIVE: u64 = 3_600;
/// The longest name of a peer, in bytes.
const LONGEST_PEER_NAME: usize = 64;

/// A text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// A peer of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePeer {
    name: Spanned<String>,
    number: Spanned<u32>,
    key: Spanned<OneOrMany>,
    endpoint: Option<Spanned<String>>,
    keepalive: Option<Spanned<u64>>,
    packets: Option<bool>,
}

/// What a port says of its tunnel.
pub(super) struct FileTunnel<'a> {
    pub(super) listen: &'a Option<Spanned<String>>,
    pub(super) key: &'a Option<Spanned<OneOrMany>>,
    pub(super) mtu: &'a Option<Spanned<u16>>,
    pub(super) peers: &'a [Spanned<FilePeer>],
}

/// What is wrong, and where; without a place it is the port as a whole.
type Wrong = (Option<Range<usize>>, String);

impl FileTunnel<'_> {
    /// The address at which datagrams come.
    ///
    /// # Errors
    /// There is none, or no full address.
    pub(super) fn listens(&self) -> Result<SocketAddr, Wrong> {
        let Some(listen) = self.listen else {
            let message = "a tunnel needs `listen = \"0.0.0.0:5282\"` or the like: where datagrams come";
            return Err((None, message.to_owned()));
        };
        let text = listen.get_ref();
        let address = text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0);
        address.ok_or_else(|| {
            let message =
                format!("`{text}` is no address with a port; `0.0.0.0:5282` is all of this machine's");
            (Some(listen.span()), message)
        })
    }

    /// Reads all of it. Paths are relative to `directory`.
    ///
    /// # Errors
    /// The first thing that is missing or wrong.
    pub(super) fn read(&self, directory: &Path) -> Result<TunnelWishes, Wrong> {
        let wrong = |span: Range<usize>, message: String| Err((Some(span), message));
        let listen = self.listens()?;
        let Some(key) = self.key else {
            let message = "a tunnel needs `key = \"FILE\"`; `ravelin naming key new FILE` makes one";
            return Err((self.listen.as_ref().map(Spanned::span), message.to_owned()));
        };
        let keys = key.get_ref().all();
        if keys.is_empty() || keys.len() > MOST_SECRETS || keys.iter().any(String::is_empty) {
            return wrong(key.span(), format!("`key` names the files of 1 to {MOST_SECRETS} keys"));
        }
        let mtu = self.mtu.as_ref().map_or(MTU, |mtu| *mtu.get_ref());
        if let Some(given) = self.mtu.as_ref().filter(|_| !MTUS.contains(&mtu)) {
            return wrong(given.span(), format!("`mtu`: between {} and {}", MTUS.start(), MTUS.end()));
        }
        if let Some(peer) = self.peers.get(MOST_PEERS) {
            return wrong(peer.span(), format!("a tunnel has at most {MOST_PEERS} peers"));
        }
        let keys = keys.iter().map(|file| directory.join(file)).collect();
        Ok(TunnelWishes { listen, keys, mtu, peers: peers(self.peers)? })
    }
}

fn peers(peers: &[Spanned<FilePeer>]) -> Result<Vec<WantedPeer>, Wrong> {
    let wrong = |span: Range<usize>, message: String| Err((Some(span), message));
    let (mut names, mut numbers, mut owners) = (HashSet::new(), HashMap::new(), HashMap::new());
    let mut all = Vec::with_capacity(peers.len());
    for FilePeer { name, number, key, endpoint, keepalive, packets } in peers.iter().map(Spanned::get_ref) {
        let own = name.get_ref();
        if own.is_empty() || own.len() > LONGEST_PEER_NAME || own.contains(char::is_control) {
            return wrong(name.span(), format!("a peer's name has 1 to {LONGEST_PEER_NAME} bytes"));
        }
        if !names.insert(own) {
            return wrong(name.span(), format!("there is a peer `{own}` above already"));
        }
        if !(1..=GREATEST_PEER_NUMBER).contains(number.get_ref()) {
            let message = format!("`number`: between 1 and {GREATEST_PEER_NUMBER}; this end is 0");
            return wrong(number.span(), message);
        }
        if let Some(other) = numbers.insert(*number.get_ref(), own) {
            return wrong(number.span(), format!("`{other}` has the number {} already", number.get_ref()));
        }
        let texts = key.get_ref().all();
        if texts.is_empty() || texts.len() > MOST_KEYS_OF_PEER {
            return wrong(key.span(), format!("a peer has 1 to {MOST_KEYS_OF_PEER} keys"));
        }
        let mut keys = Vec::with_capacity(texts.len());
        for text in texts {
            let read = match text.parse::<PublicKey>() {
                Ok(read) if read.is_usable() => read,
                Ok(_) => return wrong(key.span(), format!("`{text}` is no usable key of X25519")),
                Err(error) => return wrong(key.span(), format!("`{text}` is no key: {error}")),
            };
            if let Some(other) = owners.insert(read, own) {
                return wrong(key.span(), format!("`{other}` has the key {read} already"));
            }
            keys.push(read);
        }
        let endpoint = match endpoint {
            Some(text) => match text.get_ref().parse::<SocketAddr>() {
                Ok(address) if address.port() != 0 && !address.ip().is_unspecified() => Some(address),
                _ => {
                    let message = format!(
                        "`{}` is no address with a port, such as 198.51.100.1:5282 or [2001:db8::1]:5282",
                        text.get_ref()
                    );
                    return wrong(text.span(), message);
                }
            },
            None => None,
        };
        if let Some(seconds) =
            keepalive.as_ref().filter(|seconds| !(1..=LONGEST_KEEPALIVE).contains(seconds.get_ref()))
        {
            return wrong(seconds.span(), format!("`keepalive`: between 1 and {LONGEST_KEEPALIVE} seconds"));
        }
        let seconds = keepalive.as_ref().map(|seconds| *seconds.get_ref());
        let keepalive = seconds.or(endpoint.map(|_| KEEPALIVE)).map(|seconds| seconds * SECOND);
        let (name, number, packets) = (own.clone(), *number.get_ref(), packets.unwrap_or(true));
        all.push(WantedPeer { name, number, keys, endpoint, keepalive, packets });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
