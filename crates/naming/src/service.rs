//! What a responder offers: protocols and ports.

use std::fmt;
use std::sync::Arc;

/// Services of one responder.
pub const MOST_SERVICES: usize = 64;

/// The number of TCP (IANA), whose packets alone say whether they begin a connection.
pub const TCP: u8 = 6;

/// A protocol of IP and a port of it. Protocols without ports have port 0, and so has the echo of ICMP, whose
/// identifier the initiator chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Service {
    /// The number of the protocol (IANA), such as 6 for TCP.
    pub protocol: u8,
    /// The port at the responder.
    pub port: u16,
}

/// Text that names no service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a service: write one like `tcp/22`, `udp/53`, `icmp` or `protocol/47`")]
pub struct ServiceTextError(pub String);

impl std::str::FromStr for Service {
    type Err = ServiceTextError;

    fn from_str(text: &str) -> Result<Service, ServiceTextError> {
        let (protocol, number) = text.split_once('/').unwrap_or((text, ""));
        let port = || number.parse().ok().filter(|&port| port > 0);
        let service = match protocol {
            "tcp" => port().map(|port| Service { protocol: TCP, port }),
            "udp" => port().map(|port| Service { protocol: 17, port }),
            "icmp" if number.is_empty() => Some(Service { protocol: 1, port: 0 }),
            // Those with ports, and ICMP, have words of their own.
            "protocol" => {
                let other = number.parse().ok().filter(|number| ![1, 6, 17].contains(number));
                other.map(|protocol| Service { protocol, port: 0 })
            }
            _ => None,
        };
        service.ok_or_else(|| ServiceTextError(text.to_owned()))
    }
}

/// As it is parsed.
impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            1 => f.write_str("icmp"),
            6 => write!(f, "tcp/{}", self.port),
            17 => write!(f, "udp/{}", self.port),
            other => write!(f, "protocol/{other}"),
        }
    }
}

/// The services of a responder, in order, each once. Copies share their memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services(Arc<[Service]>);

/// More services than [`MOST_SERVICES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a responder has at most {MOST_SERVICES} services, and this one has {0}")]
pub struct TooManyServices(pub usize);

impl Services {
    /// These services.
    ///
    /// # Errors
    ///
    /// More than [`MOST_SERVICES`] different ones.
    pub fn new(services: impl IntoIterator<Item = Service>) -> Result<Services, TooManyServices> {
        let mut all: Vec<Service> = services.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        if all.len() > MOST_SERVICES { Err(TooManyServices(all.len())) } else { Ok(Services(all.into())) }
    }

    /// Services that are in order already, each once; none if they are not, or if they are more than
    /// [`MOST_SERVICES`].
    pub(crate) fn in_order(services: impl ExactSizeIterator<Item = Service> + Clone) -> Option<Services> {
        let is_good =
            services.len() <= MOST_SERVICES && services.clone().is_sorted_by(|one, next| one < next);
        is_good.then(|| Services(services.collect()))
    }

    /// Whether this service is one of them.
    pub fn contains(&self, service: Service) -> bool {
        self.0.binary_search(&service).is_ok()
    }

    /// Whether both have a service in common.
    pub fn meet(&self, other: &Services) -> bool {
        let (few, many) = if self.0.len() < other.0.len() { (self, other) } else { (other, self) };
        few.0.iter().any(|&service| many.contains(service))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Service> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_read_as_it_is_shown() {
        for text in ["icmp", "tcp/22", "udp/65535", "protocol/47"] {
            assert_eq!(text.parse::<Service>().map(|service| service.to_string()).as_deref(), Ok(text));
        }
    }
}
