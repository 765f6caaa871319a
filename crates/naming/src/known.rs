//! Addresses for initiators that are known when a name is asked for.
//!
//! What one initiator is promised or reaches never concerns another one, so an address serves all
//! initiators at the same time. An address fits if this initiator neither waits there for another responder
//! nor has reached one there.

use crate::bindings::Bindings;
use crate::expectation::{Ask, Displaced, Expectation, Renewed};
use crate::limits::{FORGOTTEN_AT_ONCE, MOST_KNOWN, MOST_KNOWN_OF_INITIATOR, MOST_OF_INITIATOR};
use crate::service::Service;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// There is no room for another promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowded;

#[derive(Debug, Default)]
pub(crate) struct Known {
    addresses: Vec<Ipv4Addr>,
    /// The place of the address that the next ask tries first.
    next: usize,
    of: HashMap<Ipv4Addr, Vec<(Ipv4Addr, Expectation)>>,
    count: usize,
    /// The initiators of `of`, each once, the one that waits longest first.
    waiting: VecDeque<Ipv4Addr>,
}

impl Known {
    pub(crate) fn new(addresses: Vec<Ipv4Addr>) -> Known {
        Known { addresses, ..Known::default() }
    }

    /// The address by which this initiator will reach the responder; none if every address is taken for it,
    /// or if it has as much to itself as one initiator may.
    pub(crate) fn choose(
        &mut self,
        initiator: Ipv4Addr,
        ask: &Ask,
        bindings: &Bindings,
        now: u64,
    ) -> Option<Ipv4Addr> {
        let asked = self.of.get(&initiator).map_or(&[][..], Vec::as_slice);
        let live = |one: &&(Ipv4Addr, Expectation)| one.1.until > now;
        let mut taken: Vec<Ipv4Addr> = Vec::new();
        let mut reached = None;
        // Who has more is not looked at in full.
        if bindings.of(initiator).len() > MOST_OF_INITIATOR {
            return None;
        }
        for binding in bindings.of(initiator) {
            if !ask.services.contains(binding.service) {
                continue;
            }
            if binding.responder == ask.responder {
                reached = Some(binding.address);
            } else if bindings.keeps(binding, now) {
                taken.push(binding.address);
            }
        }
        let same = asked.iter().filter(live).find(|(_, one)| one.is_for(ask)).map(|(address, _)| *address);
        if let Some(address) = same.filter(|address| !taken.contains(address)) {
            return Some(address);
        }
        if asked.iter().filter(|(_, one)| one.exclusive_until > now).count() >= MOST_KNOWN_OF_INITIATOR {
            return None;
        }
        let mut in_tail: Vec<Ipv4Addr> = Vec::new();
        for (address, one) in asked.iter().filter(live).filter(|(_, one)| one.conflicts(ask)) {
            if one.exclusive_until > now { taken.push(*address) } else { in_tail.push(*address) }
        }
        taken.sort_unstable();
        in_tail.sort_unstable();
        let is_free = |address: &Ipv4Addr| taken.binary_search(address).is_err();
        let is_unused = |address: &Ipv4Addr| is_free(address) && in_tail.binary_search(address).is_err();
        if let Some(address) = reached.filter(is_unused) {
            return Some(address);
        }
        let (before, behind) = self.addresses.split_at(self.next.min(self.addresses.len()));
        let mut in_turn = behind.iter().chain(before);
        let chosen = in_turn.clone().find(|one| is_unused(one)).or_else(|| in_turn.find(|one| is_free(one)));
        self.next = (self.next + 1) % self.addresses.len().max(1);
        chosen.copied()
    }

    /// Notes what was promised, and what had to go for it. Gives what the same promise was before.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn promise(
        &mut self,
        initiator: Ipv4Addr,
        address: Ipv4Addr,
        promised: Expectation,
        now: u64,
        displaced: &mut Vec<Displaced>,
    ) -> Result<Option<Renewed>, Crowded> {
        if self.count >= MOST_KNOWN && !self.make_room(now) {
            return Err(Crowded);
        }
        let of = self.of.entry(initiator).or_insert_with(|| {
            self.waiting.push_back(initiator);
            // Most initiators wait for one host; the first push of a vector makes room for four.
            Vec::with_capacity(1)
        });
        let (before, mut renews) = (of.len(), None);
        of.retain(|(at, one)| {
            let gives_way = *at == address && one.conflicts(&promised.ask);
            if gives_way {
                displaced.push(Displaced { address, ask: one.ask.clone() });
            }
            let is_same = *at == address && one.is_for(&promised.ask);
            if is_same && one.until > now {
                renews = Some(one.renewable());
            }
            one.until > now && !gives_way && !is_same
        });
        if of.len() >= MOST_KNOWN_OF_INITIATOR {
            of.retain(|(_, one)| one.exclusive_until > now);
        }
        of.push((address, promised));
        self.count = self.count + of.len() - before;
        Ok(renews)
    }

    /// Forgets what initiators no longer have to themselves, from the one that waits longest on; false if
    /// those at which it looks have nothing of this kind.
    fn make_room(&mut self, now: u64) -> bool {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(initiator) = self.waiting.pop_front() else { return false };
            let Some(of) = self.of.get_mut(&initiator) else { continue };
            let before = of.len();
            of.retain(|(_, one)| one.exclusive_until > now);
            let forgotten = before - of.len();
            if of.is_empty() {
                self.of.remove(&initiator);
            } else {
                self.waiting.push_back(initiator);
            }
            self.count -= forgotten;
            if forgotten > 0 {
                return true;
            }
        }
        false
    }

    /// The promises that are not over.
    pub(crate) fn live(&self, now: u64) -> impl Iterator<Item = &Expectation> {
        self.of.values().flatten().map(|(_, one)| one).filter(move |one| one.until > now)
    }

    /// The promise by which this packet may begin a binding.
    pub(crate) fn find(
        &self,
        initiator: Ipv4Addr,
        address: Ipv4Addr,
        service: Service,
        now: u64,
    ) -> Option<&Expectation> {
        let of = self.of.get(&initiator)?.iter();
        of.filter(|(at, one)| *at == address && one.until > now && one.admits(initiator, service))
            .map(|(_, one)| one)
            .max_by_key(|one| one.asked)
    }

    /// Takes back that a promise to an initiator was made again.
    pub(crate) fn set_back(&mut self, initiator: Ipv4Addr, address: Ipv4Addr, ask: &Ask, before: Renewed) {
        let of = self.of.get_mut(&initiator).into_iter().flatten();
        let same = of.filter(|(at, one)| *at == address && one.is_for(ask));
        same.for_each(|(_, one)| one.set_back(before));
    }

    /// Takes back one promise to an initiator.
    pub(crate) fn retract(&mut self, initiator: Ipv4Addr, address: Ipv4Addr, ask: &Ask) {
        if let Some(of) = self.of.get_mut(&initiator) {
            let before = of.len();
            of.retain(|(at, one)| *at != address || !one.is_for(ask));
            self.count -= before - of.len();
        }
    }

    /// Takes back every promise that `gone` says, and tells of it.
    pub(crate) fn withdraw(&mut self, gone: &dyn Fn(&Ask) -> bool, withdrawn: &mut Vec<Displaced>) {
        self.of.retain(|_, of| {
            let before = of.len();
            of.retain(|(address, one)| {
                let goes = gone(&one.ask);
                if goes {
                    withdrawn.push(Displaced { address: *address, ask: one.ask.clone() });
                }
                !goes
            });
            self.count -= before - of.len();
            !of.is_empty()
        });
        self.waiting.retain(|initiator| self.of.contains_key(initiator));
    }

    /// Whether this initiator waits for something at the address, whatever the service is.
    pub(crate) fn expects(&self, initiator: Ipv4Addr, address: Ipv4Addr, now: u64) -> bool {
        self.of.get(&initiator).is_some_and(|of| of.iter().any(|(at, one)| *at == address && one.until > now))
    }
}
