//! Who may reach which host behind a shared public address: the waypoint of AVES as a state machine.
//!
//! ```text
//!  client asks DNS for a name ──► ask ──► Waypoint::set_up ──► an address of the pool, and an expectation
//!  first packet of a client   ──────────► Waypoint::admit  ──► a binding to the responder, or a reason
//!  the client proves itself   ──────────► Waypoint::prove
//!  nothing came for too long  ──────────► Waypoint::end    ──► quarantine
//! ```
//!
//! A *responder* is a host behind a gateway, an *initiator* the client that wants to reach it. Responders
//! share one public address and one well-known port, because the binding of an address to a responder holds
//! for one initiator only (T. S. E. Ng, I. Stoica, H. Zhang, *A Waypoint Service Approach to Connect
//! Heterogeneous Internet Address Spaces*, USENIX 2001). Different from the paper, the waypoint that owns the
//! addresses chooses among them, one expectation admits many initiators, and an address never leads an
//! initiator from one responder to another without a pause.
//!
//! The crate is pure: time is an argument, in nanoseconds, and never goes back. No packet, socket, clock or
//! random number is in it.

#![forbid(unsafe_code)]

mod admission;
mod bindings;
pub mod control;
pub mod dns;
mod expectation;
mod fairness;
mod known;
pub mod limits;
mod network;
mod path;
mod server_name;
mod service;
mod stable;
pub mod store;
mod unknown;
mod waypoint;
mod window;

pub use admission::{Admission, Denial};
pub use bindings::BindingKey;
pub use expectation::{Ask, Displaced, Initiators, Renewed, Responder};
pub use network::network;
pub use path::{NoRoom, PathChange, PathEntries, PathEntry, PathKey};
pub use server_name::{ClientConnection, ClientHello, ClientHellos, ClientSegment, HelloRefusal};
pub use service::{MOST_SERVICES, Service, ServiceTextError, Services, TCP, TooManyServices};
pub use stable::{HostIpv6, HostIpv6Error, StableNetwork, service_of_ipv6};
pub use waypoint::{AddressPool, AddressPoolError, FirstPacket, Hold, Promise, SetUpError, Waypoint};
