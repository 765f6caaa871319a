//! What name servers, waypoints and gateways say to each other, as messages and as machines without sockets.
//!
//! ```text
//!  name server ── SETUP ────► waypoint            gateway ── REGISTER ──► registrar
//!              ◄─ ACCEPT, REJECT ──                       ◄─ LEASE, REJECT ──
//! ```
//!
//! One side asks ([`ControlAsker`]) and repeats until it hears an answer or three seconds have passed; the
//! other owns what is asked for ([`ControlOwner`]), carries out each ask at most once and repeats its answer.
//! Who the other side is, and that nothing is replayed from another session, is shown by the tunnel that
//! carries the bytes. Roles in one process hand the messages over without bytes. A name server may ask
//! several waypoints, one after the other ([`SetUpAsker`]).

mod asker;
mod codec;
mod holder;
mod lease;
mod message;
mod owner;
mod set_ups;

pub use asker::{AskOutcome, AskerAction, AskerFull, ControlAsker};
pub use codec::{ControlCodecError, decode, encode, is_gateway_name};
pub use holder::{HolderEvent, LeaseHolder};
pub use lease::{LeaseChange, Leases};
pub use message::{
    AnswerBody, AskBody, ControlAsk, ControlMessage, HostOffer, OwnerAnswer, Peer, Registration, Rejection,
    SetUp,
};
pub use owner::{ControlDrop, ControlOwner};
pub use set_ups::{SetUpAction, SetUpAsker, SetUpOutcome};
