//! A gateway's registration at one waypoint: its names, its lease, and what the waypoint says of them.

use crate::leases::view::WaypointLeaseView;
use naming::control::{
    AskBody, AskerAction, ControlAsk, ControlAsker, HolderEvent, HostOffer, LeaseHolder, OwnerAnswer,
    Registration,
};
use naming::dns::DnsName;
use std::collections::{BTreeMap, BTreeSet};

/// The registration of this life of a gateway at a waypoint.
pub(super) struct Registering {
    asker: ControlAsker,
    holder: LeaseHolder,
    served: BTreeMap<DnsName, HostOffer>,
    /// Names whose refusal was told already.
    refused: BTreeSet<DnsName>,
}

impl Registering {
    pub(super) fn new(epoch: u64) -> Registering {
        let (asker, holder) = (ControlAsker::new(epoch), LeaseHolder::new());
        Registering { asker, holder, served: BTreeMap::new(), refused: BTreeSet::new() }
    }

    /// Serves exactly these hosts, of which there are no more than a gateway may have.
    pub(super) fn serve(&mut self, offers: &[HostOffer]) {
        let served: BTreeMap<_, _> = offers.iter().map(|offer| (offer.name.clone(), offer.clone())).collect();
        for name in self.served.keys().filter(|name| !served.contains_key(name)) {
            self.holder.withdraw(name);
            self.refused.remove(name);
        }
        for (name, offer) in &served {
            if self.served.get(name) != Some(offer) {
                // There is room: the file has at most as many.
                let _ = self.holder.offer(offer.clone());
            }
        }
        self.served = served;
    }

    /// Takes an answer of the waypoint. What the operator is told of it, if anything.
    ///
    /// # Errors
    /// It answers nothing that waits.
    pub(super) fn heard(&mut self, answer: &OwnerAnswer, now: u64) -> Result<Option<String>, &'static str> {
        let (serial, outcome) = self.asker.heard(answer, now).ok_or("not_asked")?;
        let told = self.holder.ended(serial, outcome).and_then(|event| match event {
            HolderEvent::Refused(name, why) => {
                let words = format!("the name {name} is not registered: {why}; it is tried again");
                self.refused.insert(name).then_some(words)
            }
            HolderEvent::Superseded => Some(
                "another start of this gateway registers with the same key, and this one does not any more: two gateways need a key each"
                    .to_owned(),
            ),
        });
        Ok(told)
    }

    /// What there is to see, of the waypoint of this name.
    pub(super) fn view(&self, name: String, now: u64) -> WaypointLeaseView {
        WaypointLeaseView {
            name,
            names: self.served.len() as u64,
            refused: self.holder.refused().map(DnsName::to_string).collect(),
            leased: self.holder.holds(now),
            settled: self.holder.is_settled(),
        }
    }

    /// What is to be sent now.
    pub(super) fn turn(&mut self, now: u64) -> Vec<ControlAsk> {
        // One ask is under way at a time, so there is always room for it.
        let _ = self.holder.poll(&mut self.asker, now);
        let mut asks = Vec::new();
        while let Some(action) = self.asker.poll(now) {
            match action {
                AskerAction::Send(ask) => asks.push(ask),
                AskerAction::Ended(serial, outcome) => drop(self.holder.ended(serial, outcome)),
            }
        }
        asks
    }

    /// What gives up the lease.
    pub(super) fn release(&mut self, now: u64) -> Vec<ControlAsk> {
        let _ = self.asker.ask(AskBody::Register(Registration::Release), now);
        let mut asks = Vec::new();
        while let Some(action) = self.asker.poll(now) {
            if let AskerAction::Send(ask) = action {
                asks.push(ask);
            }
        }
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use naming::control::{AnswerBody, Rejection};

    #[test]
    fn who_has_a_key_that_a_later_start_uses_is_told_so_once() {
        let mut registering = Registering::new(7);
        let asks = registering.turn(0);
        let [ask] = &asks[..] else { panic!("{asks:?}") };
        let body = AnswerBody::Reject(Rejection::Superseded);
        let answer = OwnerAnswer { epoch: 7, serial: ask.serial, owner_epoch: 1, body };
        let said = registering.heard(&answer, 1).expect("it waits").expect("the operator is told");
        assert!(
            said.contains("registers with the same key") && said.ends_with("two gateways need a key each")
        );
        assert_eq!(registering.heard(&answer, 2), Err("not_asked"));
        // Nor does it take the lease back.
        assert_eq!(registering.turn(3_600_000_000_000).len(), 0);
        assert!(!registering.view("waypoint".to_owned(), 2).leased);
    }
}
