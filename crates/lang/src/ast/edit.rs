//! Statements that make the packet longer or shorter.

use super::{Expr, Name, PacketExpr};

/// A change of the packet's size.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// `push vlan(id 7) after eth` or `push vlan(id 7) before ip`
    Push {
        /// The headers that go in.
        packet: PacketExpr,
        /// In front of the named header, else behind it.
        before: bool,
        /// The header.
        header: Name,
    },
    /// `encapsulate { ethernet / ipv4 / udp / vxlan }`: in front of everything.
    Encapsulate(PacketExpr),
    /// `pop tag`
    Pop(Name),
    /// `decapsulate to inner`: everything before the header goes.
    Decapsulate(Name),
    /// `truncate to 128`
    Truncate(Expr),
    /// `fragment ip to 1500`
    Fragment(Name, Expr),
}
