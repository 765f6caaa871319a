//! Segments of numbered TCP connections, step by step, for tests and measurements of state.

use super::frame::{Host, Lower, SHORTEST, Tcp};

/// How many connections a client has, each from a port of its own, and how many servers there are.
const OF_CLIENT: u32 = 3;
const SERVERS: u32 = 200;

/// One segment without data in the life of a connection.
///
/// ```
/// use captures::generate::TcpStep;
///
/// let syn = TcpStep { reply: false, sequence: 1000, acknowledgement: 0, flags: 0x02 };
/// let frame = syn.of_connection(7);
/// assert_eq!((frame[23], frame[47]), (6, 0x02), "the protocol of IPv4, and the flags");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpStep {
    /// The server sends it.
    pub reply: bool,
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// The control bits (RFC 9293, 3.1).
    pub flags: u8,
}

impl TcpStep {
    /// The Ethernet frame, over IPv4 and padded to the least length, of the connection with this number. No
    /// two of the numbers below 50 million are between the same ends.
    pub fn of_connection(&self, number: u32) -> [u8; SHORTEST] {
        let client = Host { number: number / OF_CLIENT, server: false };
        let server = Host { number: number % SERVERS, server: true };
        let ports = (1024 + (number.wrapping_mul(7919) % 60_000) as u16, 443);
        let ((source, from), (destination, to)) = match self.reply {
            false => ((client, ports.0), (server, ports.1)),
            true => ((server, ports.1), (client, ports.0)),
        };
        let lower = Lower { source, destination, vlan: None, ipv6: false, identification: 0 };
        let &TcpStep { sequence, acknowledgement, flags, .. } = self;
        let tcp = Tcp { source: from, destination: to, sequence, acknowledgement, flags };
        let mut out = Vec::with_capacity(SHORTEST);
        lower.tcp(&mut out, tcp, &[]);
        std::array::from_fn(|at| out[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn connections_differ_and_both_directions_belong_together() {
        let step = |reply| TcpStep { reply, sequence: 1, acknowledgement: 2, flags: 0x10 };
        let (addresses, ports) = (26..34, 34..38);
        let mut seen = HashSet::new();
        for number in (0..70_000).chain(9_000_000..9_100_000) {
            let there = step(false).of_connection(number);
            let back = step(true).of_connection(number);
            assert!(
                seen.insert((there[addresses.clone()].to_vec(), there[ports.clone()].to_vec())),
                "{number}"
            );
            assert_eq!((&there[26..30], &there[30..34]), (&back[30..34], &back[26..30]));
            assert_eq!((&there[34..36], &there[36..38]), (&back[36..38], &back[34..36]));
        }
    }
}
