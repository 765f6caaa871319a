//! The waypoint: it owns addresses, promises them to name servers, and says which responder a packet is for.

use crate::admission::{Admission, Denial};
use crate::bindings::{BindingKey, Bindings, State};
use crate::expectation::{Ask, Displaced, Expectation, Initiators, Renewed, Responder};
use crate::known::{Crowded, Known};
use crate::limits::{CONTESTED, MOST_ADDRESSES, QUARANTINE, REMEMBERED, TAIL};
use crate::path::{PathEntry, PathKey};
use crate::service::{Services, TCP};
use crate::unknown::{Shortage, Unknown};
use crate::window::Window;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

/// The public addresses of a waypoint that many responders share. Initiators that are known and those that
/// are not use different addresses, so that what is promised to the one never meets what is promised to the
/// other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPool {
    /// For initiators that are known when a name is asked for.
    pub known: Vec<Ipv4Addr>,
    /// For those of which at most a network is known.
    pub unknown: Vec<Ipv4Addr>,
}

/// For how long an address that was promised to initiators that are not known is kept from other responders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// As long as the promise lasts ([`TAIL`]): who uses the answer within this time reaches nobody else.
    #[default]
    Whole,
    /// For twice the time within which 99 of 100 first packets came: more set-ups, but who uses the answer
    /// later for the first time may reach the responder that the address was promised to meanwhile.
    Measured,
}

/// A pool that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressPoolError {
    /// More than [`MOST_ADDRESSES`].
    #[error("a pool has at most {MOST_ADDRESSES} addresses, and this one has {0}")]
    TooMany(usize),
    /// An address stands twice in it.
    #[error("{0} stands twice in the pool")]
    Twice(Ipv4Addr),
}

/// Why a name server gets no address. It answers SERVFAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetUpError {
    /// All addresses are promised to others at this time.
    #[error("no address is free")]
    Full,
    /// Addresses are short, and this responder or resolver has its share.
    #[error("addresses are short, and the share is used up")]
    Share,
    /// Addresses are short, and the resolver has not shown that it gets what is sent to it.
    #[error("addresses are short, and the resolver has not proved itself")]
    Unproved,
    /// This initiator reaches, waits for or has just reached another responder by every address.
    #[error("every address leads this initiator elsewhere")]
    InitiatorFull,
}

/// What a waypoint has promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The address to give to the client.
    pub address: Ipv4Addr,
    /// Until then nobody else is promised the same.
    pub exclusive_until: u64,
    /// To whom: those that were asked for, or more.
    pub initiators: Initiators,
    /// The same was promised before, and others may rely on that.
    pub renews: Option<Renewed>,
}

/// A packet of an initiator.
#[derive(Clone, Copy, Debug)]
pub struct FirstPacket {
    /// Whose packet it is, and where it goes.
    pub key: BindingKey,
    /// It begins a connection, and does not belong to one that has passed before.
    pub begins: bool,
}

/// The initiators that an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Known,
    Unknown,
}

/// The waypoint of one pool.
#[derive(Debug)]
pub struct Waypoint {
    known: Known,
    unknown: Unknown,
    /// Bindings by addresses for known initiators, and by the others.
    known_bindings: Bindings,
    unknown_bindings: Bindings,
    /// For whom each address of the pool is.
    parts: HashMap<Ipv4Addr, Part>,
    window: Window,
    hold: Hold,
    /// What had to go for the last promise.
    displaced: Vec<Displaced>,
}

impl Waypoint {
    /// A waypoint that has promised nothing.
    ///
    /// # Errors
    ///
    /// Too many addresses, or one of them twice.
    pub fn new(pool: AddressPool) -> Result<Waypoint, AddressPoolError> {
        let count = pool.known.len() + pool.unknown.len();
        if count > MOST_ADDRESSES {
            return Err(AddressPoolError::TooMany(count));
        }
        let known = pool.known.iter().map(|&address| (address, Part::Known));
        let unknown = pool.unknown.iter().map(|&address| (address, Part::Unknown));
        let mut parts = HashMap::new();
        for (address, part) in known.chain(unknown) {
            if parts.insert(address, part).is_some() {
                return Err(AddressPoolError::Twice(address));
            }
        }
        Ok(Waypoint {
            parts,
            known: Known::new(pool.known),
            unknown: Unknown::new(pool.unknown),
            known_bindings: Bindings::new(QUARANTINE),
            unknown_bindings: Bindings::counted(REMEMBERED),
            window: Window::default(),
            hold: Hold::default(),
            displaced: Vec::new(),
        })
    }

    /// The same, with another time for addresses of initiators that are not known.
    #[must_use]
    pub fn holding(self, hold: Hold) -> Waypoint {
        Waypoint { hold, ..self }
    }

    /// Promises an address for what a name server asks for.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn set_up(&mut self, ask: &Ask, now: u64) -> Result<Promise, SetUpError> {
        self.advance(now);
        self.displaced.clear();
        let exclusive_until = match (ask.initiators, self.hold) {
            (Initiators::Exact(_), _) | (_, Hold::Measured) => now + self.window.length(),
            (_, Hold::Whole) => now + TAIL,
        };
        let promised = Expectation { ask: ask.clone(), asked: now, exclusive_until, until: now + TAIL };
        Ok(if let Initiators::Exact(initiator) = ask.initiators {
            let address = self
                .known
                .choose(initiator, ask, &self.known_bindings, now)
                .ok_or(SetUpError::InitiatorFull)?;
            let renews = self.known.promise(initiator, address, promised, now, &mut self.displaced);
            let renews = renews.map_err(|Crowded| SetUpError::Full)?;
            Promise { address, exclusive_until, initiators: ask.initiators, renews }
        } else {
            let promised = self.unknown.promise(promised, &self.unknown_bindings, now, &mut self.displaced);
            promised.map_err(|shortage| match shortage {
                Shortage::Full => SetUpError::Full,
                Shortage::Share => SetUpError::Share,
                Shortage::Unproved => SetUpError::Unproved,
            })?
        })
    }

    /// The promises that had to go for the last one.
    pub fn displaced(&self) -> &[Displaced] {
        &self.displaced
    }

    /// Takes back the promise that has just been made, since packets do not follow it. What was promised
    /// before stays as it was.
    pub fn retract(&mut self, ask: &Ask, promise: &Promise) {
        let &Promise { address, initiators, renews, .. } = promise;
        let ask = Ask { initiators, ..ask.clone() };
        match (renews, ask.initiators) {
            (Some(before), Initiators::Exact(initiator)) => {
                self.known.set_back(initiator, address, &ask, before);
            }
            (Some(before), _) => self.unknown.set_back(address, &ask, before),
            (None, Initiators::Exact(initiator)) => self.known.retract(initiator, address, &ask),
            (None, _) => self.unknown.retract(address, &ask),
        }
    }

    /// Takes back the promises of a responder with these services, and says which they were. Bindings stay.
    pub fn withdraw(&mut self, responder: Responder, services: &Services) -> Vec<Displaced> {
        let mut withdrawn = Vec::new();
        let gone = |ask: &Ask| ask.responder == responder && ask.services == *services;
        self.known.withdraw(&gone, &mut withdrawn);
        self.unknown.withdraw(&gone, &mut withdrawn);
        withdrawn
    }

    /// What is promised of this service to exactly these initiators.
    pub fn promised(&self, key: &PathKey, now: u64) -> Option<PathEntry> {
        let &PathKey { address, service, initiators } = key;
        let expected = match (self.parts.get(&address)?, initiators) {
            (Part::Known, Initiators::Exact(initiator)) => self.known.find(initiator, address, service, now),
            (Part::Known, _) => None,
            (Part::Unknown, _) => self.unknown.exactly(initiators, address, service, now),
        }?;
        let Expectation { exclusive_until, until, .. } = *expected;
        Some(PathEntry { responder: expected.ask.responder, exclusive_until, until })
    }

    /// Says which responder a packet is for, and binds its initiator to it.
    pub fn admit(&mut self, packet: &FirstPacket, now: u64) -> Admission {
        self.advance(now);
        self.admission(packet, now).unwrap_or_else(Admission::Refused)
    }

    fn admission(&mut self, packet: &FirstPacket, now: u64) -> Result<Admission, Denial> {
        let BindingKey { initiator, address, service } = packet.key;
        let (expected, waits, bindings) = match self.parts.get(&address) {
            None => return Err(Denial::ForeignAddress),
            Some(Part::Known) => {
                let waits = self.known.expects(initiator, address, now);
                (self.known.find(initiator, address, service, now), waits, &mut self.known_bindings)
            }
            Some(Part::Unknown) => {
                let waits = self.unknown.expects(initiator, address, now);
                (self.unknown.find(initiator, address, service, now), waits, &mut self.unknown_bindings)
            }
        };
        let before = bindings.get(&packet.key).filter(|one| bindings.keeps(one, now));
        let before = before.map(|one| (one.responder, one.state, one.contested));
        let own = before.and_then(|(responder, ..)| Some(expected?.ask.responder == responder));
        if own == Some(false) && packet.begins {
            bindings.contest(&packet.key, Some(now + CONTESTED));
        }
        let contested = before.and_then(|(.., contested)| contested);
        let may_be_another = contested.is_some_and(|until| own.is_none() || now < until);
        if let Some((responder, state @ (State::Embryonic { .. } | State::Live), _)) = before {
            if packet.begins {
                if own == Some(false) || may_be_another {
                    if service.protocol != TCP || state != State::Live {
                        bindings.end(&packet.key, now);
                    }
                    return Err(Denial::Ambiguous);
                }
                bindings.contest(&packet.key, None);
            }
            return Ok(Admission::Bound(responder));
        }
        if before.is_some() && packet.begins {
            bindings.renew(&packet.key, now);
        }
        let expected = expected.ok_or(if waits { Denial::NotOffered } else { Denial::NoExpectation })?;
        let responder = expected.ask.responder;
        if own == Some(false) {
            return Err(Denial::Quarantined);
        }
        if may_be_another {
            return Err(Denial::Ambiguous);
        }
        let delay = now - expected.asked;
        bindings.begin(packet.key, responder, now)?;
        if before.is_none() {
            self.window.note(delay);
        }
        Ok(Admission::Admitted(responder))
    }

    /// Packets have made a binding, which stays until it ends. Another program than this crate let them
    /// through, by the entries that it was given.
    pub fn note_bound(&mut self, key: &BindingKey, responder: Responder, now: u64) {
        let expected = match self.parts.get(&key.address) {
            None => return,
            Some(Part::Known) => self.known.find(key.initiator, key.address, key.service, now),
            Some(Part::Unknown) => self.unknown.find(key.initiator, key.address, key.service, now),
        };
        let asked = expected.filter(|one| one.ask.responder == responder).map(|one| one.asked);
        let Some(bindings) = self.bindings_of(key) else { return };
        let is_new = bindings.get(key).is_none();
        bindings.note(*key, responder);
        if let Some(asked) = asked.filter(|_| is_new) {
            self.window.note(now.saturating_sub(asked));
        }
    }

    /// Packets of this key have been bound to a responder, and are not any more: for how long it is too early
    /// for another one is counted from now.
    pub fn note_quarantined(&mut self, key: &BindingKey, responder: Responder, now: u64) {
        let Some(bindings) = self.bindings_of(key) else { return };
        match bindings.get(key) {
            None => {
                bindings.note(*key, responder);
                bindings.end(key, now);
            }
            // They go on sending.
            Some(_) => bindings.renew(key, now),
        }
    }

    /// Every binding that is not over.
    pub fn live(&self) -> impl Iterator<Item = BindingKey> {
        self.known_bindings.live().chain(self.unknown_bindings.live())
    }

    /// For how long a promise has its slot to itself at this time, in nanoseconds.
    pub fn exclusive(&self) -> u64 {
        self.window.length()
    }

    /// The initiator of a binding is there: it has answered, or has sent again after an answer.
    pub fn prove(&mut self, key: &BindingKey) {
        if let Some(bindings) = self.bindings_of(key) {
            bindings.prove(key);
        }
    }

    /// Nothing belongs to the binding any more.
    pub fn end(&mut self, key: &BindingKey, now: u64) {
        if let Some(bindings) = self.bindings_of(key) {
            bindings.end(key, now);
        }
    }

    fn bindings_of(&mut self, key: &BindingKey) -> Option<&mut Bindings> {
        Some(match self.parts.get(&key.address)? {
            Part::Known => &mut self.known_bindings,
            Part::Unknown => &mut self.unknown_bindings,
        })
    }

    /// The responder to which an initiator is bound.
    pub fn bound(&self, key: &BindingKey) -> Option<Responder> {
        let bindings = match self.parts.get(&key.address)? {
            Part::Known => &self.known_bindings,
            Part::Unknown => &self.unknown_bindings,
        };
        let binding = bindings.get(key)?;
        (!matches!(binding.state, State::Quarantined { .. })).then_some(binding.responder)
    }

    /// The responder that an initiator reaches, or has reached a short time ago.
    pub fn reached(&self, key: &BindingKey) -> Option<Responder> {
        let bindings = match self.parts.get(&key.address)? {
            Part::Known => &self.known_bindings,
            Part::Unknown => &self.unknown_bindings,
        };
        bindings.get(key).map(|binding| binding.responder)
    }

    /// Every responder of a promise, or of a binding that is not forgotten.
    pub fn responders(&self, now: u64) -> HashSet<Responder> {
        let bindings = self.known_bindings.responders().chain(self.unknown_bindings.responders());
        let promised = self.known.live(now).chain(self.unknown.live(now));
        bindings.chain(promised.map(|one| one.ask.responder)).collect()
    }

    /// How many bindings there are, those that are over and not forgotten included.
    pub fn bindings(&self) -> usize {
        self.known_bindings.count() + self.unknown_bindings.count()
    }

    /// Ends and forgets what is over, a bounded number at a time.
    pub fn advance(&mut self, now: u64) {
        self.known_bindings.advance(now);
        self.unknown_bindings.advance(now);
    }
}
