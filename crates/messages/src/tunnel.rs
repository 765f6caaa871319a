//! What `launch` says to the process of a tunnel.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// The first and only message. With the socket of its datagrams, and with a socket for each worker of the
/// core, by which frames come and go as at a TAP device. `launch` does not look into its texts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelBegin {
    /// The longest packet that goes in, in bytes.
    pub mtu: u16,
    /// The secret keys of this end, each as a text; the first is used where it begins.
    pub keys: Vec<String>,
    /// Who is at the other end.
    pub peers: Vec<TunnelPeer>,
}

/// Without the keys.
impl fmt::Debug for TunnelBegin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelBegin")
            .field("mtu", &self.mtu)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

/// A peer of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelPeer {
    /// What people call it.
    pub name: String,
    /// The number that stands in its MAC address, from 1.
    pub number: u32,
    /// Its public keys, each as a text.
    pub keys: Vec<String>,
    /// Where it is; without that it is only answered.
    pub endpoint: Option<SocketAddr>,
    /// How often something is sent to it at least, in nanoseconds.
    pub keepalive: Option<u64>,
    /// Whether packets come from it and go to it.
    pub packets: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::limits::{LONGEST_TUNNEL_BEGIN, MOST_TUNNEL_PEERS};

    #[test]
    fn the_longest_beginning_fits() {
        let endpoint = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff%1]:65535".parse().ok();
        let key = "k".repeat(44);
        let peer = TunnelPeer {
            name: "n".repeat(64),
            number: u32::MAX,
            keys: vec![key.clone(); 4],
            endpoint,
            keepalive: Some(u64::MAX),
            packets: true,
        };
        let begin = TunnelBegin { mtu: u16::MAX, keys: vec![key; 4], peers: vec![peer; MOST_TUNNEL_PEERS] };
        let written = frame::written(&begin).expect("written");
        assert!(written.len() - 4 <= LONGEST_TUNNEL_BEGIN, "{}", written.len());
    }
}
