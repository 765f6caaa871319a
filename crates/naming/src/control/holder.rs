//! The gateway's side of its lease: it says what the gateway serves until the registrar knows it, and renews.

use crate::control::asker::{AskOutcome, AskerFull, ControlAsker};
use crate::control::message::{AskBody, HostOffer, Registration, Rejection};
use crate::dns::DnsName;
use crate::limits::{LEASE, MOST_NAMES_OF_GATEWAY};
use std::collections::BTreeMap;

/// What a gateway learns of its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderEvent {
    /// The registrar refuses this name; it is offered again after a third of a lease.
    Refused(DnsName, Rejection),
    /// Another start of the same gateway has the lease: this one must end, since two with one key cannot both
    /// be reached.
    Superseded,
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// The registrar has to be told.
    No,
    Yes,
    /// It has refused.
    Refused,
}

#[derive(Debug)]
struct Wanted {
    offer: HostOffer,
    known: Known,
}

/// One life of a gateway. One registration is under way at a time, so that they take effect in their order.
#[derive(Debug, Default)]
pub struct LeaseHolder {
    wanted: BTreeMap<DnsName, Wanted>,
    /// Names that the registrar may still have and that must go.
    unwanted: BTreeMap<DnsName, ()>,
    under_way: Option<(u64, Registration)>,
    until: u64,
    renew_at: u64,
    /// When refused names are offered again.
    retry_at: u64,
    is_superseded: bool,
    /// The life of the registrar that knows what is known.
    registrar: u64,
}

impl LeaseHolder {
    /// A gateway that serves nothing.
    pub fn new() -> LeaseHolder {
        LeaseHolder::default()
    }

    /// Serves a host by its name, or another host by it than before.
    ///
    /// # Errors
    ///
    /// [`Rejection::NoRoom`] for more than [`MOST_NAMES_OF_GATEWAY`] names.
    pub fn offer(&mut self, offer: HostOffer) -> Result<(), Rejection> {
        if self.wanted.len() >= MOST_NAMES_OF_GATEWAY && !self.wanted.contains_key(&offer.name) {
            return Err(Rejection::NoRoom);
        }
        self.unwanted.remove(&offer.name);
        self.wanted.insert(offer.name.clone(), Wanted { offer, known: Known::No });
        Ok(())
    }

    /// Serves a name no more.
    pub fn withdraw(&mut self, name: &DnsName) {
        if self.wanted.remove(name).is_some() {
            self.unwanted.insert(name.clone(), ());
        }
    }

    /// Asks for what the registrar does not know yet, or for the lease to go on when a third of it is over.
    ///
    /// # Errors
    ///
    /// The asker is full; try again later.
    pub fn poll(&mut self, asker: &mut ControlAsker, now: u64) -> Result<(), AskerFull> {
        if self.is_superseded || self.under_way.is_some() {
            return Ok(());
        }
        let registrar = std::mem::replace(&mut self.registrar, asker.owner_epoch());
        let has_started_anew = registrar != 0 && registrar != self.registrar;
        if now >= self.until || has_started_anew {
            // The registrar has forgotten everything, or never knew. What it refuses must not keep others
            // waiting.
            self.unwanted.clear();
            let known = self.wanted.values_mut().filter(|wanted| wanted.known == Known::Yes);
            known.for_each(|wanted| wanted.known = Known::No);
        }
        if now >= self.retry_at || has_started_anew {
            let refused = self.wanted.values_mut().filter(|wanted| wanted.known == Known::Refused);
            refused.for_each(|wanted| wanted.known = Known::No);
            self.retry_at = now + LEASE / 3;
        }
        let untold = || self.wanted.values().find(|wanted| wanted.known == Known::No);
        let next = if let Some((name, ())) = self.unwanted.first_key_value() {
            Registration::Withdraw(name.clone())
        } else if let Some(wanted) = untold() {
            Registration::Offer(wanted.offer.clone())
        } else if now >= self.renew_at {
            Registration::Renew
        } else {
            return Ok(());
        };
        let serial = asker.ask(AskBody::Register(next.clone()), now)?;
        self.under_way = Some((serial, next));
        Ok(())
    }

    /// Takes the outcome of an ask, if it was one of this lease.
    pub fn ended(&mut self, serial: u64, outcome: AskOutcome) -> Option<HolderEvent> {
        let (_, what) = self.under_way.take_if(|(under_way, _)| *under_way == serial)?;
        match outcome {
            AskOutcome::Leased(until) => {
                self.until = self.until.max(until);
                self.renew_at = self.renew_at.max(until.saturating_sub(LEASE / 3 * 2));
                match &what {
                    Registration::Offer(offer) => {
                        // It may have been replaced while the registrar was told.
                        let told = self.wanted.get_mut(&offer.name).filter(|one| one.offer == *offer);
                        told.into_iter().for_each(|one| one.known = Known::Yes);
                    }
                    Registration::Withdraw(name) => {
                        self.unwanted.remove(name);
                    }
                    Registration::Renew | Registration::Release => {}
                }
                None
            }
            AskOutcome::Rejected(Rejection::Superseded) => {
                self.is_superseded = true;
                Some(HolderEvent::Superseded)
            }
            AskOutcome::Rejected(why) => match what {
                Registration::Offer(offer) => {
                    let told = self.wanted.get_mut(&offer.name).filter(|one| one.offer == offer);
                    told.into_iter().for_each(|one| one.known = Known::Refused);
                    Some(HolderEvent::Refused(offer.name, why))
                }
                _ => None,
            },
            // Asked again by the next poll.
            AskOutcome::TimedOut | AskOutcome::Accepted(..) => None,
        }
    }

    /// Whether this life of the gateway has the lease, as far as it can know: never longer than the registrar
    /// says so, unless a later life has taken over.
    pub fn holds(&self, now: u64) -> bool {
        !self.is_superseded && now < self.until
    }

    /// The names that the registrar refuses.
    pub fn refused(&self) -> impl Iterator<Item = &DnsName> {
        self.wanted.iter().filter(|(_, wanted)| wanted.known == Known::Refused).map(|(name, _)| name)
    }

    /// Whether the registrar knows all names and no others.
    pub fn is_settled(&self) -> bool {
        let told = |wanted: &Wanted| wanted.known != Known::No;
        self.under_way.is_none() && self.unwanted.is_empty() && self.wanted.values().all(told)
    }
}
