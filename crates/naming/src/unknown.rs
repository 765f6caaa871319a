//! Addresses for initiators that are not known when a name is asked for, or of which only a network is known.
//!
//! Two expectations that could claim the same packet for different responders are never at one address at the
//! same time, so N addresses carry N set-ups of one service in the time for which an address is kept. The
//! waypoint knows what is free, so a set-up fails only when nothing is: the loss is Erlang's, and not that of
//! a random choice. Among free addresses it takes one that led to this responder before, then one where
//! nobody is bound to another responder, since a new connection of whoever is could be for either, then the
//! one whose last conflicting promise is longest ago, since a client that kept an address too long does the
//! least harm there.

use crate::bindings::{Binding, Bindings};
use crate::expectation::{Ask, Displaced, Expectation, Initiators, Responder};
use crate::fairness::Shares;
use crate::limits::{MOST_AT_ADDRESS, RESERVED_OF};
use crate::network::network;
use crate::service::Service;
use std::net::Ipv4Addr;

#[derive(Debug)]
struct Slot {
    address: Ipv4Addr,
    expectations: Vec<Expectation>,
    /// When an expectation was last promised here, and for whom.
    used: Option<(u64, Responder)>,
}

#[derive(Debug, Default)]
pub(crate) struct Unknown {
    slots: Vec<Slot>,
}

/// Why there is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Full,
    /// The few that are left are for others.
    Share,
}

/// How well an address fits: the smallest is best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fitness {
    /// The same promise is there.
    new: bool,
    /// It did not lead to this responder last. A client that has a binding there reaches it by no other
    /// address.
    was_of_other: bool,
    /// Nobody is bound to this responder there.
    is_strange: bool,
    /// The clients of this resolver may still keep this address for another responder.
    same_network: bool,
    /// Somebody else's promise has to go.
    displaces: bool,
    /// Somebody is bound to another responder there.
    has_others: bool,
    /// When it was last used.
    used: Option<u64>,
}

impl Unknown {
    pub(crate) fn new(addresses: Vec<Ipv4Addr>) -> Unknown {
        let slot = |address| Slot { address, expectations: Vec::new(), used: None };
        Unknown { slots: addresses.into_iter().map(slot).collect() }
    }

    /// Finds an address for this promise, notes it there, and tells what had to go for it.
    pub(crate) fn promise(
        &mut self,
        promised: Expectation,
        bindings: &Bindings,
        now: u64,
        displaced: &mut Vec<Displaced>,
    ) -> Result<Ipv4Addr, Shortage> {
        let ask = &promised.ask;
        let mut best: Option<(Fitness, usize)> = None;
        let mut free = 0;
        for (place, slot) in self.slots.iter().enumerate() {
            let Some(fitness) = slot.fitness(ask, bindings, now) else { continue };
            free += 1;
            if best.is_none_or(|(least, _)| fitness < least) {
                best = Some((fitness, place));
            }
        }
        let (fitness, place) = best.ok_or(Shortage::Full)?;
        // The last addresses are for those who have less than their share.
        if fitness.new && free <= self.slots.len().div_ceil(RESERVED_OF) && !self.is_fair(ask, now) {
            return Err(Shortage::Share);
        }
        let slot = &mut self.slots[place];
        slot.expectations.retain(|one| {
            let gives_way = one.conflicts(ask);
            if gives_way {
                displaced.push(Displaced { address: slot.address, ask: one.ask.clone() });
            }
            one.until > now && !gives_way && !one.is_for(ask)
        });
        slot.used = Some((now, ask.responder));
        slot.expectations.push(promised);
        Ok(slot.address)
    }

    fn is_fair(&self, ask: &Ask, now: u64) -> bool {
        let exclusive = || {
            let all = self.slots.iter().flat_map(|slot| &slot.expectations);
            // Of other networks they take nothing from this one.
            all.filter(|one| one.ask.initiators.overlap(ask.initiators))
                .filter(|one| one.exclusive_until > now && one.ask.services.meet(&ask.services))
        };
        let all = self.slots.len();
        Shares::of(exclusive().map(|one| one.ask.responder)).allow(&ask.responder, all)
            && Shares::of(exclusive().map(|one| network(one.ask.resolver))).allow(&network(ask.resolver), all)
    }

    fn slot(&self, address: Ipv4Addr) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.address == address)
    }

    /// The promise by which this packet may begin a binding.
    pub(crate) fn find(
        &self,
        initiator: Ipv4Addr,
        address: Ipv4Addr,
        service: Service,
        now: u64,
    ) -> Option<&Expectation> {
        let slot = self.slot(address)?.expectations.iter();
        slot.filter(|one| one.until > now && one.admits(initiator, service)).max_by_key(|one| one.asked)
    }

    /// The last promise of this service to exactly these initiators.
    pub(crate) fn exactly(
        &self,
        initiators: Initiators,
        address: Ipv4Addr,
        service: Service,
        now: u64,
    ) -> Option<&Expectation> {
        let slot = self.slot(address)?.expectations.iter();
        slot.filter(|one| one.until > now && one.ask.initiators == initiators)
            .filter(|one| one.ask.services.contains(service))
            .max_by_key(|one| one.asked)
    }

    /// Takes back every promise that `gone` says, and tells of it.
    pub(crate) fn withdraw(&mut self, gone: &dyn Fn(&Ask) -> bool, withdrawn: &mut Vec<Displaced>) {
        for slot in &mut self.slots {
            slot.expectations.retain(|one| {
                let goes = gone(&one.ask);
                if goes {
                    withdrawn.push(Displaced { address: slot.address, ask: one.ask.clone() });
                }
                !goes
            });
        }
    }

    /// Whether anybody waits for this initiator at the address, whatever the service is.
    pub(crate) fn expects(&self, initiator: Ipv4Addr, address: Ipv4Addr, now: u64) -> bool {
        self.slot(address).is_some_and(|slot| {
            slot.expectations.iter().any(|one| one.until > now && one.ask.initiators.contain(initiator))
        })
    }
}

impl Slot {
    /// How well this address fits; none if it is taken.
    fn fitness(&self, ask: &Ask, bindings: &Bindings, now: u64) -> Option<Fitness> {
        // Of a whole network nobody could be promised anything any more where one of its hosts is bound.
        if let Initiators::Prefix(initiator, 32..) = ask.initiators {
            let leads_elsewhere = |one: &Binding| {
                one.address == self.address
                    && one.responder != ask.responder
                    && ask.services.contains(one.service)
                    && bindings.keeps(one, now)
            };
            if bindings.of(initiator).iter().any(leads_elsewhere) {
                return None;
            }
        }
        let live = self.expectations.iter().filter(|one| one.until > now);
        let (mut new, mut displaces, mut same_network, mut count) = (true, false, false, 0);
        for one in live {
            count += 1;
            new &= !one.is_for(ask);
            if one.conflicts(ask) {
                if one.exclusive_until > now {
                    return None;
                }
                displaces = true;
                same_network |= network(one.ask.resolver) == network(ask.resolver);
            }
        }
        let is_full = new && !displaces && count >= MOST_AT_ADDRESS;
        let was_of_other = self.used.is_none_or(|(_, responder)| responder != ask.responder);
        let used = self.used.map(|(at, _)| at);
        let (mut is_strange, mut has_others) = (true, false);
        for service in ask.services.iter() {
            let (own, others) = bindings.at(self.address, service, ask.responder);
            is_strange &= !own;
            has_others |= others;
        }
        let fitness = Fitness { new, was_of_other, is_strange, same_network, displaces, has_others, used };
        (!is_full).then_some(fitness)
    }
}
