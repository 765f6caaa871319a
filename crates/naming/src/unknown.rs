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
use crate::expectation::{Ask, Displaced, Expectation, Initiators, Renewed, Responder};
use crate::fairness::Shares;
use crate::limits::{
    MOST_AT_ADDRESS, MOST_NETWORKS_OF_HOST, PERCENT_FOR_UNVERIFIED, PERCENT_OF_NETWORK,
    PERCENT_OF_UNVERIFIED_NETWORK, RESERVED_OF,
};
use crate::network::network;
use crate::service::Service;
use crate::waypoint::Promise;
use std::net::Ipv4Addr;

#[derive(Debug)]
struct Slot {
    address: Ipv4Addr,
    expectations: Vec<Expectation>,
    /// When an expectation was last promised here, and for whom.
    used: Option<(u64, Responder)>,
    /// The same before the last promise here, which may be taken back.
    used_before: Option<(u64, Responder)>,
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
    /// They are for resolvers that have shown that they get what is sent to them.
    Unproved,
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
        let slot = |address| Slot { address, expectations: Vec::new(), used: None, used_before: None };
        Unknown { slots: addresses.into_iter().map(slot).collect() }
    }

    /// Finds an address for this promise, notes it there, and tells what had to go for it.
    pub(crate) fn promise(
        &mut self,
        promised: Expectation,
        bindings: &Bindings,
        now: u64,
        displaced: &mut Vec<Displaced>,
    ) -> Result<Promise, Shortage> {
        let told = promised.ask.initiators;
        if matches!(told, Initiators::Prefix(..)) {
            let all = self.slots.iter().flat_map(|slot| &slot.expectations);
            let alike = all.filter(|one| one.until > now && one.leads_alike(&promised.ask));
            if alike.count() >= MOST_NETWORKS_OF_HOST {
                let ask = Ask { initiators: Initiators::Any, ..promised.ask.clone() };
                let wider = Expectation { ask, ..promised };
                if let Ok(promise) = self.promise_to(wider, told, bindings, now, displaced) {
                    return Ok(promise);
                }
            }
        }
        self.promise_to(promised, told, bindings, now, displaced)
    }

    /// Promises it to no fewer than those that were told of.
    fn promise_to(
        &mut self,
        promised: Expectation,
        told: Initiators,
        bindings: &Bindings,
        now: u64,
        displaced: &mut Vec<Displaced>,
    ) -> Result<Promise, Shortage> {
        let ask = &promised.ask;
        let mut best: Option<(Fitness, usize)> = None;
        let (mut free, mut for_others) = (0, false);
        let limits = Limits::of(&self.slots, ask, now);
        for (place, slot) in self.slots.iter().enumerate() {
            let Some(fitness) = slot.fitness(ask, told, bindings, now) else { continue };
            free += 1;
            if fitness.new && !limits.allow(slot, ask, now) {
                for_others = true;
            } else if best.is_none_or(|(least, _)| fitness < least) {
                best = Some((fitness, place));
            }
        }
        let short = if !ask.is_verified { Shortage::Unproved } else { Shortage::Share };
        let (fitness, place) = best.ok_or(if for_others { short } else { Shortage::Full })?;
        // The last addresses are for those who have less than their share.
        if fitness.new && free <= self.slots.len().div_ceil(RESERVED_OF) && !self.is_fair(ask, now) {
            return Err(short);
        }
        let slot = &mut self.slots[place];
        slot.used_before = slot.used;
        if let Some(known) = slot.expectations.iter_mut().find(|one| one.until > now && one.covers(ask)) {
            let renews = Some(known.renewable());
            if !limits.is_short || ask.is_verified {
                let initiators = known.ask.initiators;
                let exclusive_until = promised.exclusive_until.max(known.exclusive_until);
                *known = Expectation { ask: Ask { initiators, ..promised.ask }, exclusive_until, ..promised };
                slot.used = Some((now, known.ask.responder));
            } else if (known.exclusive_until.saturating_sub(now)) * 2 < promised.exclusive_until - now {
                // Whoever asks in another's name does not keep addresses for longer.
                return Err(Shortage::Unproved);
            }
            let Expectation { ask: Ask { initiators, .. }, exclusive_until, .. } = *known;
            return Ok(Promise { address: slot.address, exclusive_until, initiators, renews });
        }
        slot.expectations.retain(|one| {
            let gives_way = one.conflicts(ask);
            if gives_way {
                displaced.push(Displaced { address: slot.address, ask: one.ask.clone() });
            }
            one.until > now && !gives_way
        });
        slot.used = Some((now, ask.responder));
        let Expectation { ask: Ask { initiators, .. }, exclusive_until, .. } = promised;
        slot.expectations.push(promised);
        Ok(Promise { address: slot.address, exclusive_until, initiators, renews: None })
    }

    /// Takes back the last promise, which had been made before.
    pub(crate) fn set_back(&mut self, address: Ipv4Addr, ask: &Ask, before: Renewed) {
        for slot in self.slots.iter_mut().filter(|slot| slot.address == address) {
            slot.used = slot.used_before;
            let same = slot.expectations.iter_mut().filter(|one| one.is_for(ask));
            same.for_each(|one| one.set_back(before));
        }
    }

    /// Takes back the last promise.
    pub(crate) fn retract(&mut self, address: Ipv4Addr, ask: &Ask) {
        for slot in self.slots.iter_mut().filter(|slot| slot.address == address) {
            slot.used = slot.used_before;
            slot.expectations.retain(|one| !one.is_for(ask));
        }
    }

    fn is_fair(&self, ask: &Ask, now: u64) -> bool {
        let exclusive = || {
            let all = self.slots.iter().flat_map(|slot| slot.exclusive(ask, now));
            // Of other networks they take nothing from this one.
            all.filter(|one| one.ask.initiators.overlap(ask.initiators))
        };
        let (all, own) = (self.slots.len(), network(ask.resolver));
        let of_network = || exclusive().map(|one| network(one.ask.resolver));
        // Others may have asked for the same host, so that it has its share: who has none yet gets one.
        Shares::of(of_network()).allow(&own, all)
            && (of_network().all(|other| other != own)
                || Shares::of(exclusive().map(|one| one.ask.responder)).allow(&ask.responder, all))
    }

    fn slot(&self, address: Ipv4Addr) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.address == address)
    }

    /// The promises that are not over.
    pub(crate) fn live(&self, now: u64) -> impl Iterator<Item = &Expectation> {
        self.slots.iter().flat_map(|slot| &slot.expectations).filter(move |one| one.until > now)
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

/// What a resolver may take of the addresses at one moment.
struct Limits {
    /// The resolver's network has as many as it may.
    at_most: bool,
    /// So many are taken that a resolver must have proved itself.
    is_short: bool,
}

impl Limits {
    fn of(slots: &[Slot], ask: &Ask, now: u64) -> Limits {
        let all = 100 * slots.len();
        let taken = slots.iter().filter(|slot| slot.exclusive(ask, now).next().is_some()).count();
        let own = slots.iter().filter(|slot| slot.has_network(ask, now)).count();
        let percent = if ask.is_verified { PERCENT_OF_NETWORK } else { PERCENT_OF_UNVERIFIED_NETWORK };
        Limits {
            at_most: own * 10_000 >= percent * all,
            is_short: taken * 10_000 >= PERCENT_FOR_UNVERIFIED * all,
        }
    }

    /// Whether it may take a place here that it does not have.
    fn allow(&self, slot: &Slot, ask: &Ask, now: u64) -> bool {
        let is_proved = ask.is_verified || !self.is_short;
        is_proved && (!self.at_most || slot.has_network(ask, now))
    }
}

impl Slot {
    /// What nobody else may take that needs a service of this ask.
    fn exclusive<'s>(&'s self, ask: &'s Ask, now: u64) -> impl Iterator<Item = &'s Expectation> {
        let taken =
            move |one: &&Expectation| one.exclusive_until > now && one.ask.services.meet(&ask.services);
        self.expectations.iter().filter(taken)
    }

    /// Whether the network of this resolver has such a promise here.
    fn has_network(&self, ask: &Ask, now: u64) -> bool {
        self.exclusive(ask, now).any(|one| network(one.ask.resolver) == network(ask.resolver))
    }

    /// How well this address fits; none if it is taken, or if the only initiator that was told of reaches
    /// another responder there.
    fn fitness(&self, ask: &Ask, told: Initiators, bindings: &Bindings, now: u64) -> Option<Fitness> {
        // Of a whole network nobody could be promised anything any more where one of its hosts is bound.
        if let Initiators::Prefix(initiator, 32..) = told {
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
            new &= !one.covers(ask);
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
