//! Answers of an authoritative name server: bytes of a query in, bytes of a reply out, or a question for the
//! waypoint.
//!
//! ```text
//!  query ──► NameServer::answer ──► reply
//!                │   └────────────► nothing, for a reason
//!                └─ held, and an Ask ──► waypoint ──► NameServer::resume ──► reply
//!                       └─ 3 s pass ────────────────► NameServer::expire ──► SERVFAIL
//! ```

mod arrival;
mod cookies;
mod description;
mod held;
mod name;
mod name_server;
mod query;
mod rates;
mod records;
mod reply;
mod zone;
mod zone_error;

pub use arrival::{Arrival, DnsMoment, DnsTransport};
pub use cookies::CookieSecrets;
pub use description::{
    HttpsDescription, Ipv4Mode, MachineServices, NameDescription, NameServerDescription, RecordDescription,
    ZoneDescription,
};
pub use name::{DnsName, DnsNameError};
pub use name_server::{DnsAnswer, DnsPolicy, HeldQuery, NameServer, Resumed, Unverified};
pub use query::QueryDrop;
pub use zone::Zone;
pub use zone_error::ZoneError;
