//! The registrar of a waypoint: leases of the gateways that are peers of a tunnel, and their names in the
//! zone.
//!
//! A name is in the zone as long as its lease lasts, with the same checks as one of `names add`: the gateway
//! is that of the peer's name; its `names` in the file say which it may register, and its networks which
//! hosts it may have. Of what is limited it has an equal part.

use crate::config::HostPlace;
use crate::leases::view::GatewayLeaseView;
use crate::names::{NameWish, Names};
use naming::control::{
    AnswerBody, AskBody, ControlAsk, ControlDrop, ControlOwner, HostOffer, LeaseChange, Leases, OwnerAnswer,
    Peer, Registration, Rejection,
};
use naming::dns::{DnsName, Ipv4Mode};
use ports::live::tunnel::WantedPeer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The registrar of one tunnel.
pub(super) struct Registrar {
    owner: ControlOwner,
    leases: Leases,
    names: Arc<Names>,
    /// By their numbers.
    peers: BTreeMap<u32, WantedPeer>,
    /// Names that are in the zone by a lease.
    registered: BTreeSet<DnsName>,
}

impl Registrar {
    pub(super) fn new(epoch: u64, names: Arc<Names>) -> Registrar {
        let (owner, leases) = (ControlOwner::new(epoch), Leases::default());
        Registrar { owner, leases, names, peers: BTreeMap::new(), registered: BTreeSet::new() }
    }

    /// These are the peers from now on. Leases end of those who have gone, or have none of their keys. Who
    /// has lost some of them begins anew with its lives, and keeps its names.
    pub(super) fn follow(&mut self, peers: &[WantedPeer]) {
        let new: BTreeMap<_, _> = peers.iter().map(|peer| (peer.number, peer.clone())).collect();
        let mut changes = Vec::new();
        for (number, before) in &self.peers {
            let now = new.get(number).filter(|now| now.name == before.name);
            if now.is_some_and(|now| now.keeps_keys_of(before)) {
                continue;
            }
            self.owner.forget(Peer(*number));
            if now.is_some_and(|now| now.keys.iter().any(|key| before.keys.contains(key))) {
                self.leases.forget_life(Peer(*number));
            } else {
                self.leases.forget(Peer(*number), &mut changes);
            }
        }
        self.peers = new;
        self.withdraw(changes);
        self.bring_back();
    }

    /// Brings back the names of leases that a file has taken, as far as the one that was read last lets them
    /// be there. What it does not let is tried again when a file is read the next time.
    fn bring_back(&mut self) {
        let Registrar { leases, names, peers, registered, .. } = self;
        for (peer, offer) in leases.names() {
            let gateway = peers.get(&peer.0).filter(|_| !names.is_leased(&offer.name));
            let _ = gateway.map(|gateway| add(names, registered, &gateway.name, offer));
        }
    }

    /// Takes an ask of a peer, and gives the answer.
    ///
    /// # Errors
    /// Why it gets none.
    pub(super) fn heard(
        &mut self,
        peer: u32,
        ask: &ControlAsk,
        now: u64,
    ) -> Result<OwnerAnswer, &'static str> {
        let Registrar { owner, leases, names, peers, registered } = self;
        // It may have been sent before its sender was revoked.
        let gateway = &peers.get(&peer).ok_or("no_peer")?.name;
        let mut changes = Vec::new();
        let carry_out = |body: &AskBody| match body {
            AskBody::SetUp(_) => AnswerBody::Reject(Rejection::Unsupported),
            AskBody::Register(what) => {
                let mut answer = leases.register(Peer(peer), ask.epoch, what, now, &mut changes);
                let offered = changes.iter().position(|change| matches!(change, LeaseChange::Offered(..)));
                if let Some(LeaseChange::Offered(_, offer)) = offered.map(|index| changes.remove(index)) {
                    // What else has changed makes room for it.
                    changes.drain(..).for_each(|change| remove(names, registered, change));
                    if let Err(why) = add(names, registered, gateway, &offer) {
                        let withdraw = Registration::Withdraw(offer.name);
                        leases.register(Peer(peer), ask.epoch, &withdraw, now, &mut changes);
                        answer = AnswerBody::Reject(why);
                    }
                }
                answer
            }
        };
        let answer = owner.heard(Peer(peer), ask, now, carry_out);
        self.withdraw(changes);
        answer.map_err(ControlDrop::name)
    }

    /// What there is to see.
    pub(super) fn view(&self, now: u64) -> Vec<GatewayLeaseView> {
        let mut names: BTreeMap<Peer, u64> = BTreeMap::new();
        self.leases.names().for_each(|(peer, _)| *names.entry(peer).or_default() += 1);
        let lease = |(number, peer): (&u32, &WantedPeer)| {
            let (_, until) = self.leases.holder(Peer(*number), now)?;
            Some(GatewayLeaseView {
                name: peer.name.clone(),
                names: names.get(&Peer(*number)).copied().unwrap_or(0),
                seconds: until.saturating_sub(now) as f64 / 1e9,
            })
        };
        self.peers.iter().filter_map(lease).collect()
    }

    /// Ends leases whose time is over.
    pub(super) fn turn(&mut self, now: u64) {
        let mut changes = Vec::new();
        self.leases.expire(now, &mut changes);
        self.withdraw(changes);
    }

    fn withdraw(&mut self, changes: Vec<LeaseChange>) {
        for change in changes {
            remove(&self.names, &mut self.registered, change);
        }
    }
}

/// Brings a name into the zone, in the place of what the same gateway has offered by it before.
fn add(
    names: &Names,
    registered: &mut BTreeSet<DnsName>,
    gateway: &str,
    offer: &HostOffer,
) -> Result<(), Rejection> {
    let name = format!("{}.", offer.name);
    if !names.gives(gateway, &offer.name) {
        return Err(Rejection::NotGiven);
    }
    if registered.remove(&offer.name) {
        names.end_lease(&name);
    }
    let wish = NameWish {
        name,
        place: HostPlace { gateway: gateway.to_owned(), address: offer.host },
        services: offer.services.iter().map(|service| service.to_string()).collect(),
        ipv4: Ipv4Mode::Automatic,
        ipv6: offer.ipv6,
    };
    names.lease(&wish).map_err(|(why, _)| why)?;
    registered.insert(offer.name.clone());
    Ok(())
}

fn remove(names: &Names, registered: &mut BTreeSet<DnsName>, change: LeaseChange) {
    if let LeaseChange::Withdrawn(_, name) = change
        && registered.remove(&name)
    {
        names.end_lease(&format!("{name}."));
    }
}

#[cfg(test)]
mod tests;
