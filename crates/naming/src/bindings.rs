//! Bindings: which responder an initiator reaches by an address and a service, and what it reached before.
//!
//! ```text
//!  none ──first packet──► embryonic ──prove──► live
//!   ▲                        │ 5 s, end         │ end
//!   └──120 s at least── quarantined ◄───────────┘
//!                            ├──first packet for the same responder──► embryonic
//!                            └──any other packet that may be the first──► quarantined from then on
//! ```
//!
//! Entries of one initiator stand together, since an initiator has few of them and a set-up looks at all.
//! Embryonic and ended entries end in the order in which they became so: two queues, no timers.

use crate::admission::Denial;
use crate::expectation::Responder;
use crate::limits::{
    EMBRYONIC, FORGOTTEN_AT_ONCE, MOST_BINDINGS, MOST_EMBRYONIC, MOST_EMBRYONIC_OF_PREFIX, MOST_ENDED,
    MOST_OF_INITIATOR, QUARANTINE,
};
use crate::service::Service;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// What a binding is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BindingKey {
    /// The client.
    pub initiator: Ipv4Addr,
    /// The address of the pool that it sends to.
    pub address: Ipv4Addr,
    /// The protocol and port that it sends to.
    pub service: Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The initiator has not proved that it is there.
    Embryonic {
        since: u64,
    },
    Live,
    /// The binding is over; no other responder takes its place for a while. `queued` is the time under which
    /// it stands among those that have ended.
    Quarantined {
        since: u64,
        queued: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    pub(crate) address: Ipv4Addr,
    pub(crate) service: Service,
    pub(crate) responder: Responder,
    pub(crate) state: State,
    /// A packet of its initiator could have been for another responder: it lets nothing new through before
    /// this time, and until its own responder is promised again.
    pub(crate) contested: Option<u64>,
}

/// How many bindings each address and service has, in all and to each responder, those included that are over
/// and not forgotten.
#[derive(Debug, Default)]
struct Census {
    all: HashMap<(Ipv4Addr, Service), u32>,
    of: HashMap<(Ipv4Addr, Service, Responder), u32>,
}

impl Census {
    fn add(&mut self, (address, service): (Ipv4Addr, Service), responder: Responder) {
        *self.all.entry((address, service)).or_default() += 1;
        *self.of.entry((address, service, responder)).or_default() += 1;
    }

    fn take(&mut self, (address, service): (Ipv4Addr, Service), responder: Responder) {
        fn less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K) {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
        less(&mut self.all, (address, service));
        less(&mut self.of, (address, service, responder));
    }
}

#[derive(Debug, Default)]
pub(crate) struct Bindings {
    of: HashMap<Ipv4Addr, Vec<Binding>>,
    count: usize,
    embryonic: VecDeque<(u64, BindingKey)>,
    embryonic_count: usize,
    /// Embryonic bindings by the first 24 bits of the initiator.
    embryonic_of: HashMap<u32, u32>,
    ended: VecDeque<(u64, BindingKey)>,
    /// How long an ended binding is remembered if there is room; [`QUARANTINE`] at least.
    remembered: u64,
    /// How many ended ones are remembered for longer than that.
    most_ended: usize,
    /// For those who ask who is bound at an address, whoever is the initiator.
    census: Option<Census>,
}

fn network(initiator: Ipv4Addr) -> u32 {
    initiator.to_bits() >> 8
}

impl Bindings {
    pub(crate) fn new(remembered: u64) -> Bindings {
        let remembered = remembered.max(QUARANTINE);
        Bindings { remembered, most_ended: MOST_ENDED, ..Bindings::default() }
    }

    /// The same, with an account of each address.
    pub(crate) fn counted(remembered: u64) -> Bindings {
        Bindings { census: Some(Census::default()), ..Bindings::new(remembered) }
    }

    /// Whether initiators are bound at this address and service to this responder, and to others.
    pub(crate) fn at(&self, address: Ipv4Addr, service: Service, responder: Responder) -> (bool, bool) {
        let Some(census) = &self.census else { return (false, false) };
        let all = census.all.get(&(address, service)).copied().unwrap_or(0);
        let own = census.of.get(&(address, service, responder)).copied().unwrap_or(0);
        (own > 0, all > own)
    }

    fn recount(&mut self, key: &BindingKey, before: Option<Responder>, after: Option<Responder>) {
        let Some(census) = &mut self.census else { return };
        let place = (key.address, key.service);
        if let Some(responder) = before {
            census.take(place, responder);
        }
        if let Some(responder) = after {
            census.add(place, responder);
        }
    }

    /// All entries of an initiator.
    pub(crate) fn of(&self, initiator: Ipv4Addr) -> &[Binding] {
        self.of.get(&initiator).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn get(&self, key: &BindingKey) -> Option<&Binding> {
        self.of(key.initiator).iter().find(|one| one.address == key.address && one.service == key.service)
    }

    fn get_mut(&mut self, key: &BindingKey) -> Option<&mut Binding> {
        let of = self.of.get_mut(&key.initiator)?;
        of.iter_mut().find(|one| one.address == key.address && one.service == key.service)
    }

    /// Whether this binding keeps its key from other responders.
    pub(crate) fn keeps(&self, binding: &Binding, now: u64) -> bool {
        !matches!(binding.state, State::Quarantined { since, .. } if since + self.remembered <= now)
    }

    /// Entries of all states.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Makes an embryonic binding; a quarantined one of the same key is replaced.
    pub(crate) fn begin(&mut self, key: BindingKey, responder: Responder, now: u64) -> Result<(), Denial> {
        // The queues also hold what is over by now: somebody who proves and ends in haste does not grow them.
        if self.embryonic_count >= MOST_EMBRYONIC || self.embryonic.len() >= MOST_BINDINGS {
            return Err(Denial::EmbryonicFull);
        }
        if self
            .embryonic_of
            .get(&network(key.initiator))
            .is_some_and(|&many| many >= MOST_EMBRYONIC_OF_PREFIX)
        {
            return Err(Denial::NetworkFull);
        }
        let state = State::Embryonic { since: now };
        if let Some(binding) = self.get_mut(&key) {
            let before = binding.responder;
            *binding = Binding { responder, state, contested: None, ..*binding };
            self.recount(&key, Some(before), Some(responder));
        } else {
            if self.ended.len() >= 2 * MOST_BINDINGS {
                return Err(Denial::BindingsFull);
            }
            if self.count >= MOST_BINDINGS && !self.forget_one(now, QUARANTINE) {
                return Err(Denial::BindingsFull);
            }
            let of = self.of.entry(key.initiator).or_default();
            if of.len() >= MOST_OF_INITIATOR {
                return Err(Denial::BindingsFull);
            }
            let (address, service) = (key.address, key.service);
            of.push(Binding { address, service, responder, state, contested: None });
            self.count += 1;
            self.recount(&key, None, Some(responder));
        }
        self.embryonic.push_back((now, key));
        self.embryonic_count += 1;
        *self.embryonic_of.entry(network(key.initiator)).or_default() += 1;
        Ok(())
    }

    /// Notes a binding that packets have made, whatever was promised: no limit keeps it out, since it is
    /// there. It stays until it ends.
    pub(crate) fn note(&mut self, key: BindingKey, responder: Responder) {
        self.prove(&key);
        if let Some(binding) = self.get_mut(&key) {
            let before = binding.responder;
            (binding.responder, binding.state) = (responder, State::Live);
            self.recount(&key, Some(before), Some(responder));
            return;
        }
        let (address, service) = (key.address, key.service);
        let of = self.of.entry(key.initiator).or_default();
        of.push(Binding { address, service, responder, state: State::Live, contested: None });
        self.count += 1;
        self.recount(&key, None, Some(responder));
    }

    /// Every binding that is not over.
    pub(crate) fn live(&self) -> impl Iterator<Item = BindingKey> {
        let of = |(&initiator, of): (&Ipv4Addr, &'_ Vec<Binding>)| {
            let live = of.iter().filter(|one| !matches!(one.state, State::Quarantined { .. }));
            let key = |one: &Binding| BindingKey { initiator, address: one.address, service: one.service };
            live.map(key).collect::<Vec<_>>()
        };
        self.of.iter().flat_map(of)
    }

    /// The responders of all entries.
    pub(crate) fn responders(&self) -> impl Iterator<Item = Responder> {
        self.of.values().flatten().map(|one| one.responder)
    }

    /// The initiator is there.
    pub(crate) fn prove(&mut self, key: &BindingKey) {
        if let Some(binding) = self.get_mut(key)
            && matches!(binding.state, State::Embryonic { .. })
        {
            binding.state = State::Live;
            self.no_longer_embryonic(key.initiator);
        }
    }

    /// Notes until when what is new of the initiator could be for somebody else.
    pub(crate) fn contest(&mut self, key: &BindingKey, contested: Option<u64>) {
        if let Some(binding) = self.get_mut(key) {
            binding.contested = contested;
        }
    }

    /// Counts the quarantine of a binding that is over from now: its initiator goes on sending, and may mean
    /// what it has reached.
    pub(crate) fn renew(&mut self, key: &BindingKey, now: u64) {
        if let Some(binding) = self.get_mut(key)
            && let State::Quarantined { since, .. } = &mut binding.state
        {
            *since = now;
        }
    }

    /// The binding is over.
    pub(crate) fn end(&mut self, key: &BindingKey, now: u64) {
        let Some(binding) = self.get_mut(key) else { return };
        let before = std::mem::replace(&mut binding.state, State::Quarantined { since: now, queued: now });
        match before {
            State::Quarantined { .. } => binding.state = before,
            State::Live => self.ended.push_back((now, *key)),
            State::Embryonic { .. } => {
                self.ended.push_back((now, *key));
                self.no_longer_embryonic(key.initiator);
            }
        }
        if self.ended.len() > self.most_ended && !self.forget_one(now, QUARANTINE) {
            // Packets have a quarantine of their own.
            if self.ended.len() > 2 * self.most_ended {
                self.forget_one(now, 0);
            }
        }
    }

    fn no_longer_embryonic(&mut self, initiator: Ipv4Addr) {
        self.embryonic_count -= 1;
        let network = network(initiator);
        if let Some(count) = self.embryonic_of.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.embryonic_of.remove(&network);
            }
        }
    }

    /// Ends embryonic bindings that have not proved themselves, and forgets ended ones; some at a time.
    pub(crate) fn advance(&mut self, now: u64) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(&(since, key)) = self.embryonic.front() else { break };
            let waits = self.get(&key).is_some_and(|one| one.state == State::Embryonic { since });
            if waits && since + EMBRYONIC > now {
                break;
            }
            self.embryonic.pop_front();
            if waits {
                self.end(&key, now);
            }
        }
        for _ in 0..FORGOTTEN_AT_ONCE {
            if !self.forget_one(now, self.remembered) {
                break;
            }
        }
    }

    /// Forgets the binding that ended first, if it ended so long ago; false if none did.
    fn forget_one(&mut self, now: u64, age: u64) -> bool {
        while let Some(&(time, key)) = self.ended.front() {
            if time + age > now {
                return false;
            }
            self.ended.pop_front();
            match self.get_mut(&key).map(|one| &mut one.state) {
                // One that was renewed has its turn later.
                Some(State::Quarantined { since, queued }) if *queued == time && *since > time => {
                    let since = *since;
                    *queued = since;
                    self.ended.push_back((since, key));
                }
                Some(State::Quarantined { queued, .. }) if *queued == time => {
                    self.remove(&key);
                    return true;
                }
                // One that began again since then stays.
                _ => {}
            }
        }
        false
    }

    fn remove(&mut self, key: &BindingKey) {
        let Some(of) = self.of.get_mut(&key.initiator) else { return };
        let same = |one: &Binding| one.address == key.address && one.service == key.service;
        let Some(place) = of.iter().position(same) else { return };
        let Binding { responder, .. } = of.swap_remove(place);
        if of.is_empty() {
            self.of.remove(&key.initiator);
        }
        self.count -= 1;
        self.recount(key, Some(responder), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{REMEMBERED, SECOND};

    /// Bindings that packets make and end, one a second: how many are remembered.
    fn ended(bindings: &mut Bindings, numbers: std::ops::Range<u32>, pause: u64) -> usize {
        for number in numbers {
            let (initiator, address) = (Ipv4Addr::from_bits(number), Ipv4Addr::UNSPECIFIED);
            let key = BindingKey { initiator, address, service: Service { protocol: 17, port: 53 } };
            bindings.note(key, Responder(1));
            bindings.end(&key, u64::from(number) * pause);
        }
        bindings.count()
    }

    #[test]
    fn ended_bindings_are_remembered_for_long_only_where_they_are_few() {
        let few = || Bindings { most_ended: 200, ..Bindings::counted(REMEMBERED) };
        assert_eq!(ended(&mut few(), 0..150, SECOND), 150);
        // More are forgotten when their quarantine is over, and not before.
        let mut bindings = few();
        assert_eq!(ended(&mut bindings, 0..1_000, SECOND), 200);
        assert_eq!(ended(&mut few(), 0..300, SECOND / 10), 300);
        // There is an end to that, too: the one that ended first goes.
        let mut bindings = few();
        assert_eq!(ended(&mut bindings, 0..1_000, 1), 400);
        assert!(bindings.of(Ipv4Addr::from_bits(599)).is_empty());
        assert_eq!(bindings.of(Ipv4Addr::from_bits(600)).len(), 1);
        let service = Service { protocol: 17, port: 53 };
        assert_eq!(bindings.at(Ipv4Addr::UNSPECIFIED, service, Responder(2)), (false, true));
    }
}
