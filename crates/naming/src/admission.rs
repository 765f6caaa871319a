//! What a waypoint says of the first packet of an initiator.

use crate::expectation::Responder;

/// What becomes of a packet to an address of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It belongs to a binding that there was.
    Bound(Responder),
    /// It has made a binding.
    Admitted(Responder),
    /// It goes nowhere.
    Refused(Denial),
}

/// Why a packet goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Denial {
    /// No name was asked for that leads there.
    #[error("no expectation")]
    NoExpectation,
    /// Names lead there, but not to this protocol and port.
    #[error("service not offered")]
    NotOffered,
    /// The initiator has reached another responder here a short time ago.
    #[error("quarantined")]
    Quarantined,
    /// The initiator reaches a responder here, and another one is promised or has been since: which of them
    /// the packet is for cannot be told. A proved binding of TCP lets no new connection through from then on,
    /// until its responder is promised again and [`CONTESTED`](crate::limits::CONTESTED) has passed; any
    /// other one is over.
    #[error("ambiguous")]
    Ambiguous,
    /// Too many initiators that have not proved themselves.
    #[error("embryonic full")]
    EmbryonicFull,
    /// The same, of the network of this initiator.
    #[error("embryonic full for this network")]
    NetworkFull,
    /// No room for another binding.
    #[error("bindings full")]
    BindingsFull,
    /// Not an address of the pool.
    #[error("not an address of the pool")]
    ForeignAddress,
}
