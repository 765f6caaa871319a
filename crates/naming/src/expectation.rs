//! Expectations: what a waypoint has promised to a name server, before any packet has come.

use crate::service::{Service, Services};
use std::net::{IpAddr, Ipv4Addr};

/// A host behind a gateway, by its number in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Responder(pub u32);

/// From which initiators the first packet may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Initiators {
    /// From this one: the resolver is the client itself, or it told the whole address (RFC 7871).
    Exact(Ipv4Addr),
    /// From a network, of which the resolver told the first bits (RFC 7871).
    Prefix(Ipv4Addr, u8),
    /// From anybody: nothing is known but the resolver.
    Any,
}

impl Initiators {
    fn bits(self) -> (u32, u8) {
        match self {
            Initiators::Exact(address) => (address.to_bits(), 32),
            Initiators::Prefix(address, length) => (address.to_bits(), length.min(32)),
            Initiators::Any => (0, 0),
        }
    }

    /// Whether some initiator is in both.
    pub fn overlap(self, other: Initiators) -> bool {
        let ((one, length), (other, other_length)) = (self.bits(), other.bits());
        let shift = 32 - u32::from(length.min(other_length));
        one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    }

    /// Whether all of the others are among these.
    pub fn include(self, others: Initiators) -> bool {
        self.bits().1 <= others.bits().1 && self.overlap(others)
    }

    /// Whether this initiator is one of them.
    pub fn contain(self, initiator: Ipv4Addr) -> bool {
        self.overlap(Initiators::Exact(initiator))
    }
}

/// What a name server asks a waypoint for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Who is to be reached.
    pub responder: Responder,
    /// By what.
    pub services: Services,
    /// By whom.
    pub initiators: Initiators,
    /// The resolver that asked the name server.
    pub resolver: IpAddr,
    /// It has shown that it gets what is sent to it, so it is nobody else.
    pub is_verified: bool,
}

/// A promise that had to go for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// Its address.
    pub address: Ipv4Addr,
    /// What had been asked for.
    pub ask: Ask,
}

/// What changes of a promise when it is made again, as it was before: its times, and who had asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    asked: u64,
    exclusive_until: u64,
    until: u64,
    resolver: IpAddr,
    is_verified: bool,
}

/// A promise: first packets of these initiators to these services of an address go to a responder.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    /// What was promised.
    pub(crate) ask: Ask,
    /// When it was asked for last.
    pub(crate) asked: u64,
    /// Until then nobody else may have its slot.
    pub(crate) exclusive_until: u64,
    /// Until then it admits initiators, if nobody else has needed its slot.
    pub(crate) until: u64,
}

impl Expectation {
    /// What making it again changes.
    pub(crate) fn renewable(&self) -> Renewed {
        let Expectation { ref ask, asked, exclusive_until, until } = *self;
        Renewed { asked, exclusive_until, until, resolver: ask.resolver, is_verified: ask.is_verified }
    }

    /// Takes back that it was made again.
    pub(crate) fn set_back(&mut self, before: Renewed) {
        let Renewed { asked, exclusive_until, until, resolver, is_verified } = before;
        (self.asked, self.exclusive_until, self.until) = (asked, exclusive_until, until);
        (self.ask.resolver, self.ask.is_verified) = (resolver, is_verified);
    }

    /// Whether both could claim the same packet, for different responders.
    pub(crate) fn conflicts(&self, ask: &Ask) -> bool {
        self.ask.responder != ask.responder
            && self.ask.initiators.overlap(ask.initiators)
            && self.ask.services.meet(&ask.services)
    }

    /// Whether it leads to the same by the same services, whoever the initiators are.
    pub(crate) fn leads_alike(&self, ask: &Ask) -> bool {
        self.ask.responder == ask.responder && self.ask.services == ask.services
    }

    /// Whether it promises the same, whichever resolver asked for it.
    pub(crate) fn is_for(&self, ask: &Ask) -> bool {
        self.leads_alike(ask) && self.ask.initiators == ask.initiators
    }

    /// Whether what is asked for is promised by it, perhaps to more initiators.
    pub(crate) fn covers(&self, ask: &Ask) -> bool {
        self.leads_alike(ask) && self.ask.initiators.include(ask.initiators)
    }

    pub(crate) fn admits(&self, initiator: Ipv4Addr, service: Service) -> bool {
        self.ask.initiators.contain(initiator) && self.ask.services.contains(service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_is_set_back_counts_again_for_who_had_asked_before() {
        let ssh = Services::new([Service { protocol: 6, port: 22 }]).expect("one");
        let ask = |resolver: u8, is_verified| Ask {
            responder: Responder(7),
            services: ssh.clone(),
            initiators: Initiators::Any,
            resolver: Ipv4Addr::new(192, 0, resolver, 1).into(),
            is_verified,
        };
        let mut promise = Expectation { ask: ask(1, true), asked: 10, exclusive_until: 20, until: 30 };
        let before = promise.renewable();
        promise = Expectation { ask: ask(2, false), asked: 11, exclusive_until: 21, until: 31 };
        assert_ne!(promise.renewable(), before);
        promise.set_back(before);
        assert_eq!((promise.renewable(), promise.ask), (before, ask(1, true)));
    }
}
