//! What comes of a call: what was received, why something was dropped, what is to be sent.

use crate::limits::{
    LONGEST_PAYLOAD, MOST_KEYS_OF_PEER, MOST_PEERS, MOST_SECRETS, SECOND, SHORTEST_KEEPALIVE,
};
use crate::peer::PeerId;
use std::net::SocketAddr;
use std::ops::Range;

/// What was in an authentic datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// An IP packet, which stands in this part of the datagram.
    Packet(PeerId, Range<usize>),
    /// A control message, which stands in this part of the datagram.
    Control(PeerId, Range<usize>),
    /// Nothing but the sign that the peer is there.
    Keepalive(PeerId),
    /// The peer begins a session. An answer waits to be sent.
    Initiation(PeerId),
    /// The peer has answered, and there is a session.
    Response(PeerId),
    /// The peer wants proof of our address with the next attempt.
    CookieReply(PeerId),
}

/// Why a datagram was dropped. None of them changes anything, but what `AskedForCookie` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum TunnelDrop {
    /// Neither kind nor length are those of a message.
    #[error("it is no message of the tunnel")]
    Malformed,
    /// Data for a session number that is not in use.
    #[error("there is no such session")]
    UnknownSession,
    /// Data for a session that is too old, or has carried too much.
    #[error("the session is too old")]
    ExpiredSession,
    /// Data with a counter that was received before, or is older than the window.
    #[error("the counter was received before, or is too old")]
    Replayed,
    /// The tag of data is wrong.
    #[error("the data is not authentic")]
    ForgedData,
    /// Authentic data that is no IP packet, no control message and no keepalive.
    #[error("the payload is of no known kind")]
    UnknownPayload,
    /// A packet of a peer with which only control messages are exchanged.
    #[error("only control messages are taken from this peer")]
    ControlOnly,
    /// The sender of a handshake message does not know our public key.
    #[error("the first mac is wrong")]
    WrongMac1,
    /// A handshake message with a cookie that is not valid for its source.
    #[error("the second mac is wrong")]
    WrongMac2,
    /// There are many handshakes, and the sender has not shown that it receives at its address: a cookie
    /// waits to be sent to it.
    #[error("the sender was asked for a cookie")]
    AskedForCookie,
    /// There are many handshakes, and this address has had its share of them.
    #[error("too many handshakes")]
    Overload,
    /// As many answers as possible wait to be sent.
    #[error("too many answers wait to be sent")]
    AnswersFull,
    /// A handshake message that was not made with the keys that it claims.
    #[error("the handshake message is not authentic")]
    ForgedHandshake,
    /// An initiation by a key that no peer has.
    #[error("the key is not that of a peer")]
    UnknownKey,
    /// An initiation not later than one before: a repeated one, or the peer's clock went back.
    #[error("the initiation is not later than one before")]
    StaleInitiation,
    /// Initiations of a peer follow each other too closely.
    #[error("the peer begins too often")]
    TooOften,
    /// The peer offers, or has chosen, no cipher that this end offers.
    #[error("there is no common cipher")]
    NoCommonCipher,
    /// A response or cookie that answers nothing.
    #[error("it answers nothing that was sent")]
    NothingAsked,
    /// A cookie that is not sealed for the message it answers.
    #[error("the cookie is not authentic")]
    ForgedCookie,
}

impl TunnelDrop {
    /// All of them, in the order of their declaration.
    pub const ALL: [TunnelDrop; 19] = [
        TunnelDrop::Malformed,
        TunnelDrop::UnknownSession,
        TunnelDrop::ExpiredSession,
        TunnelDrop::Replayed,
        TunnelDrop::ForgedData,
        TunnelDrop::UnknownPayload,
        TunnelDrop::ControlOnly,
        TunnelDrop::WrongMac1,
        TunnelDrop::WrongMac2,
        TunnelDrop::AskedForCookie,
        TunnelDrop::Overload,
        TunnelDrop::AnswersFull,
        TunnelDrop::ForgedHandshake,
        TunnelDrop::UnknownKey,
        TunnelDrop::StaleInitiation,
        TunnelDrop::TooOften,
        TunnelDrop::NoCommonCipher,
        TunnelDrop::NothingAsked,
        TunnelDrop::ForgedCookie,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TunnelDrop::Malformed => "malformed",
            TunnelDrop::UnknownSession => "unknown_session",
            TunnelDrop::ExpiredSession => "expired_session",
            TunnelDrop::Replayed => "replayed",
            TunnelDrop::ForgedData => "forged_data",
            TunnelDrop::UnknownPayload => "unknown_payload",
            TunnelDrop::ControlOnly => "control_only",
            TunnelDrop::WrongMac1 => "wrong_mac1",
            TunnelDrop::WrongMac2 => "wrong_mac2",
            TunnelDrop::AskedForCookie => "asked_for_cookie",
            TunnelDrop::Overload => "overload",
            TunnelDrop::AnswersFull => "answers_full",
            TunnelDrop::ForgedHandshake => "forged_handshake",
            TunnelDrop::UnknownKey => "unknown_key",
            TunnelDrop::StaleInitiation => "stale_initiation",
            TunnelDrop::TooOften => "too_often",
            TunnelDrop::NoCommonCipher => "no_common_cipher",
            TunnelDrop::NothingAsked => "nothing_asked",
            TunnelDrop::ForgedCookie => "forged_cookie",
        }
    }
}

/// Something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelTransmit {
    /// Where to.
    pub to: SocketAddr,
    /// How many bytes of the buffer that was given.
    pub length: usize,
}

/// What to carry to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelPayload<'a> {
    /// A whole IPv4 or IPv6 packet.
    Packet(&'a [u8]),
    /// A message of the caller.
    Control(&'a [u8]),
}

/// What became of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It is sealed, and is to be sent.
    Sealed(TunnelTransmit),
    /// It waits for a session; [`Tunnel::transmit`](crate::Tunnel::transmit) gives it out.
    Queued,
}

/// Why a payload cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelSendError {
    /// No peer has this name.
    #[error("there is no such peer")]
    UnknownPeer,
    /// The payload is longer than a datagram can be.
    #[error("a payload has at most {LONGEST_PAYLOAD} bytes")]
    TooLong,
    /// A packet that begins with neither 4 nor 6.
    #[error("it is no IP packet")]
    NotIp,
    /// A packet for a peer with which only control messages are exchanged.
    #[error("only control messages go to this peer")]
    ControlOnly,
    /// The buffer is shorter than payload, header and tag.
    #[error("the buffer has no room for payload, header and tag")]
    NoRoom,
    /// There is no session, and no address or no key to begin one with.
    #[error("the peer has no address or no key, so this end cannot begin a session")]
    CannotBegin,
    /// As many packets as possible wait for a session.
    #[error("too many packets wait for a session")]
    QueueFull,
}

/// Why a tunnel, peer or key cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelSetupError {
    /// More peers than [`MOST_PEERS`].
    #[error("a tunnel has at most {MOST_PEERS} peers")]
    TooManyPeers,
    /// The name is another peer's.
    #[error("peer {} exists already", .0.0)]
    PeerExists(PeerId),
    /// No peer has this name.
    #[error("there is no peer {}", .0.0)]
    NoPeer(PeerId),
    /// More keys than [`MOST_KEYS_OF_PEER`], or none.
    #[error("a peer has 1 to {MOST_KEYS_OF_PEER} keys")]
    KeyCount,
    /// A key stands for one peer only, and only once.
    #[error("the key is in use, by peer {}", .0.0)]
    KeyInUse(PeerId),
    /// The key is one of this end: a peer must have its own.
    #[error("the key is one of this end; each end needs a key of its own")]
    OwnKey,
    /// Every secret gives the same result with this key.
    #[error("the key is no usable key of X25519")]
    WeakKey,
    /// More secrets than [`MOST_SECRETS`], or none.
    #[error("an end has 1 to {MOST_SECRETS} secrets")]
    SecretCount,
    /// The secret is there already.
    #[error("this secret is there already")]
    SecretExists,
    /// Keepalives would follow each other too closely.
    #[error("keepalives are at least {} s apart", SHORTEST_KEEPALIVE / SECOND)]
    KeepaliveTooShort,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_reason_has_its_place_and_a_name_of_its_own() {
        for (place, reason) in TunnelDrop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
        let names: HashSet<_> = TunnelDrop::ALL.map(TunnelDrop::name).into_iter().collect();
        assert_eq!(names.len(), TunnelDrop::ALL.len());
        assert_eq!(TunnelDrop::ALL.len(), TunnelDrop::ForgedCookie as usize + 1);
    }
}
