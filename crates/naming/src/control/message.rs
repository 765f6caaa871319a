//! The messages.

use crate::dns::DnsName;
use crate::expectation::{Ask, Initiators, Responder};
use crate::service::Services;
use crate::waypoint::SetUpError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

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
    SetUp(SetUp),
    /// REGISTER: a gateway says what it serves.
    Register(Registration),
}

/// A question for an address. The host is named by its place, which means the same in each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// The name of the gateway that the host is behind, of 1 to [`LONGEST_GATEWAY_NAME`] bytes.
    ///
    /// [`LONGEST_GATEWAY_NAME`]: crate::limits::LONGEST_GATEWAY_NAME
    pub gateway: Arc<str>,
    /// The host's address there.
    pub host: Ipv4Addr,
    /// By what it is to be reached.
    pub services: Services,
    /// By whom.
    pub initiators: Initiators,
    /// The resolver that asked the name server.
    pub resolver: IpAddr,
    /// Whether it has shown that it gets what is sent to it.
    pub is_verified: bool,
}

impl SetUp {
    /// What is asked for a name that leads to this host.
    pub fn of(ask: Ask, gateway: Arc<str>, host: Ipv4Addr) -> SetUp {
        let Ask { services, initiators, resolver, is_verified, .. } = ask;
        SetUp { gateway, host, services, initiators, resolver, is_verified }
    }

    /// The same, with the number that the host has where it is promised.
    pub fn ask(&self, responder: Responder) -> Ask {
        let SetUp { initiators, resolver, is_verified, .. } = *self;
        Ask { responder, services: self.services.clone(), initiators, resolver, is_verified }
    }
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
