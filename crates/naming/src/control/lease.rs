//! Leases: which life of each gateway may speak for it, and which names it has.

use crate::control::message::{AnswerBody, HostOffer, Peer, Registration, Rejection};
use crate::dns::DnsName;
use crate::limits::{LEASE, MOST_NAMES_OF_GATEWAY, MOST_PEERS};
use std::collections::{BTreeMap, HashMap};

/// A change of the names that gateways serve, for the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// The name leads to this host behind this gateway; it may have led to another host of it before.
    Offered(Peer, HostOffer),
    /// The name leads nowhere any more.
    Withdrawn(Peer, DnsName),
}

#[derive(Debug)]
struct OfferedName {
    offer: HostOffer,
    /// The life of the gateway that has offered it, whose renewals keep it.
    epoch: u64,
    until: u64,
}

#[derive(Debug)]
struct GatewayLease {
    epoch: u64,
    until: u64,
    names: BTreeMap<DnsName, OfferedName>,
}

/// The leases of all gateways. Time never goes back.
#[derive(Debug, Default)]
pub struct Leases {
    gateways: HashMap<Peer, GatewayLease>,
    owners: HashMap<DnsName, Peer>,
}

impl Leases {
    /// Takes a registration of a life of a gateway, and notes what it changes.
    pub fn register(
        &mut self,
        peer: Peer,
        epoch: u64,
        what: &Registration,
        now: u64,
        changes: &mut Vec<LeaseChange>,
    ) -> AnswerBody {
        self.expire(now, changes);
        match self.take(peer, epoch, what, now, changes) {
            Ok(()) => AnswerBody::Lease((LEASE / 1_000_000) as u32),
            Err(why) => AnswerBody::Reject(why),
        }
    }

    fn take(
        &mut self,
        peer: Peer,
        epoch: u64,
        what: &Registration,
        now: u64,
        changes: &mut Vec<LeaseChange>,
    ) -> Result<(), Rejection> {
        let until = now.saturating_add(LEASE);
        if self.gateways.len() >= MOST_PEERS && !self.gateways.contains_key(&peer) {
            return Err(Rejection::NoRoom);
        }
        let lease =
            self.gateways.entry(peer).or_insert(GatewayLease { epoch, until, names: BTreeMap::new() });
        if epoch < lease.epoch {
            return Err(Rejection::Superseded);
        }
        // A later life takes over. Names of the one before stay until it offers them or their time is over,
        // so that a restart is not seen from outside.
        lease.epoch = epoch;
        lease.until = until;
        for name in lease.names.values_mut().filter(|name| name.epoch == epoch) {
            name.until = until;
        }
        match what {
            Registration::Renew => {}
            Registration::Offer(offer) => {
                if self.owners.get(&offer.name).is_some_and(|owner| *owner != peer) {
                    return Err(Rejection::NameTaken);
                }
                let before = lease.names.get(&offer.name);
                if before.is_none() && lease.names.len() >= MOST_NAMES_OF_GATEWAY {
                    return Err(Rejection::NoRoom);
                }
                if before.is_none_or(|before| before.offer != *offer) {
                    changes.push(LeaseChange::Offered(peer, offer.clone()));
                }
                self.owners.insert(offer.name.clone(), peer);
                lease.names.insert(offer.name.clone(), OfferedName { offer: offer.clone(), epoch, until });
            }
            Registration::Withdraw(name) => {
                if lease.names.remove(name).is_some() {
                    self.owners.remove(name);
                    changes.push(LeaseChange::Withdrawn(peer, name.clone()));
                }
            }
            Registration::Release => self.forget(peer, changes),
        }
        Ok(())
    }

    /// Ends what is over.
    pub fn expire(&mut self, now: u64, changes: &mut Vec<LeaseChange>) {
        let owners = &mut self.owners;
        self.gateways.retain(|&peer, lease| {
            lease.names.retain(|name, offered| {
                let stays = offered.until > now;
                if !stays {
                    owners.remove(name);
                    changes.push(LeaseChange::Withdrawn(peer, name.clone()));
                }
                stays
            });
            lease.until > now
        });
    }

    /// Ends the lease of a gateway, such as one whose key is revoked.
    pub fn forget(&mut self, peer: Peer, changes: &mut Vec<LeaseChange>) {
        for name in self.gateways.remove(&peer).into_iter().flat_map(|lease| lease.names.into_keys()) {
            self.owners.remove(&name);
            changes.push(LeaseChange::Withdrawn(peer, name));
        }
    }

    /// Lets any life of a gateway take its lease: the one that has it may have had a stolen key. Names stay
    /// for their time.
    pub fn forget_life(&mut self, peer: Peer) {
        if let Some(lease) = self.gateways.get_mut(&peer) {
            lease.epoch = 0;
        }
    }

    /// Which life of a gateway has its lease, and until when.
    pub fn holder(&self, peer: Peer, now: u64) -> Option<(u64, u64)> {
        let lease = self.gateways.get(&peer).filter(|lease| lease.until > now)?;
        Some((lease.epoch, lease.until))
    }

    /// All names with their gateways, in no order.
    pub fn names(&self) -> impl Iterator<Item = (Peer, &HostOffer)> {
        let of = |(peer, lease): (&Peer, _)| (*peer, lease);
        let all = self.gateways.iter().map(of);
        all.flat_map(|(peer, lease): (Peer, &GatewayLease)| {
            lease.names.values().map(move |name| (peer, &name.offer))
        })
    }
}
