//! The messages.

use crate::dns::DnsName;
use crate::expectation::Ask;
use crate::service::Services;
use crate::waypoint::SetUpError;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Who is at the other end of a tunnel, by the number of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer(pub u32);

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// SETUP or REGISTER.
    Ask(ControlAsk),
    /// ACCEPT, REJECT or LEASE.
    Answer(OwnerAnswer),
}

/// Something is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlAsk {
    /// Which life of the asking process it is: larger than that of each life before.
    pub epoch: u64,
    /// The number of the ask in this life, from 1.
    pub serial: u64,
    /// What is asked for.
    pub body: AskBody,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskBody {
    /// SETUP: an address for a name that was looked up.
    SetUp(Ask),
    /// REGISTER: a gateway says what it serves.
    Register(Registration),
}

/// What a gateway says of the names that it serves. All of it lasts as long as its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// Nothing new: the lease goes on.
    Renew,
    /// This name leads to a host behind the gateway.
    Offer(HostOffer),
    /// This name does not lead to it any more.
    Withdraw(DnsName),
    /// The gateway ends, and its lease with it.
    Release,
}

/// A host behind a gateway and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOffer {
    /// Its name.
    pub name: DnsName,
    /// Its address behind the gateway.
    pub host: Ipv4Addr,
    /// Its address for everybody.
    pub ipv6: Option<Ipv6Addr>,
    /// What it offers.
    pub services: Services,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerAnswer {
    /// The epoch of the ask.
    pub epoch: u64,
    /// The number of the ask.
    pub serial: u64,
    /// Which life of the answering process it is.
    pub owner_epoch: u64,
    /// What is answered.
    pub body: AnswerBody,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerBody {
    /// ACCEPT: the address, and for how many microseconds nobody else is promised the same.
    Accept(Ipv4Addr, u32),
    /// REJECT.
    Reject(Rejection),
    /// LEASE: for how many milliseconds from the ask on.
    Lease(u32),
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The waypoint has no address.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// The waypoint knows no such host.
    #[error("no such host")]
    UnknownResponder,
    /// The name belongs to another gateway.
    #[error("another gateway has this name")]
    NameTaken,
    /// The name may not be registered by this gateway.
    #[error("this gateway may not have this name")]
    NotAllowed,
    /// The waypoint's file does not give this name to this gateway.
    #[error(
        "the waypoint's file does not give this gateway the name: `names` of its `[[names.gateway]]` does"
    )]
    NotGiven,
    /// More names or gateways than there may be.
    #[error("no room for another name or gateway")]
    NoRoom,
    /// Another life of this gateway has the lease.
    #[error("a later start of this gateway has the lease")]
    Superseded,
    /// This owner does not do what is asked for.
    #[error("not done here")]
    Unsupported,
}
