//! The hosts that names lead to, and their numbers, which promises and bindings have in common.
//!
//! ```text
//!  a name leads to it ──────────────────────────────► named: its number stays
//!  a name server elsewhere asks for it ──► asked for ──► a name leads to it: named
//!                                             └──► no promise and no binding has it: given back
//! ```
//!
//! A number that is given back is never given to another host, unless nothing has ever had it.

use crate::limits::GREATEST_ASKED_FOR;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPlace {
    /// The gateway that it is behind.
    pub gateway: String,
    /// Its address there.
    pub address: Ipv4Addr,
}

/// A host with a number.
#[derive(Clone, Debug, PartialEq)]
struct Numbered {
    place: HostPlace,
    /// The name server that has asked for it, if no name has led to it.
    asked_by: Option<u32>,
}

/// Hosts, each with one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hosts {
    hosts: HashMap<u32, Numbered>,
    numbers: HashMap<HostPlace, u32>,
    /// To how many hosts of each gateway names have led, and in all.
    of_gateway: HashMap<String, usize>,
    named: usize,
    /// How many hosts each name server has asked for to which no name has led.
    of_name_server: HashMap<u32, usize>,
    /// The number that was given last; none is 0.
    last: u32,
}

impl Hosts {
    /// The number of a host to which a name leads, from 1: that which it has, or a new one.
    pub(crate) fn number(&mut self, place: HostPlace) -> u32 {
        let number = self.known(&place).unwrap_or_else(|| {
            self.named += 1;
            *self.of_gateway.entry(place.gateway.clone()).or_default() += 1;
            self.give(place, None)
        });
        let asked_by = self.hosts.get_mut(&number).and_then(|host| host.asked_by.take());
        if let Some(by) = asked_by {
            self.named += 1;
            let gateway = self.hosts[&number].place.gateway.clone();
            *self.of_gateway.entry(gateway).or_default() += 1;
            self.of_name_server.entry(by).and_modify(|many| *many -= 1);
        }
        number
    }

    /// The number of a host that a name server asks for: that which it has, or a new one, of which the name
    /// server may have so many.
    pub(crate) fn asked_for(&mut self, place: HostPlace, by: u32, most: usize) -> Option<u32> {
        if let Some(number) = self.known(&place) {
            return Some(number);
        }
        let has = self.of_name_server.entry(by).or_default();
        if *has >= most || self.last >= GREATEST_ASKED_FOR {
            return None;
        }
        *has += 1;
        Some(self.give(place, Some(by)))
    }

    /// Gives back the number of a host, unless a name has led to it. Nothing may have this number.
    pub(crate) fn give_back(&mut self, number: u32) {
        let Some(by) = self.hosts.get(&number).and_then(|host| host.asked_by) else { return };
        let host = self.hosts.remove(&number);
        host.map(|host| self.numbers.remove(&host.place));
        self.of_name_server.entry(by).and_modify(|many| *many -= 1);
    }

    /// Takes back the number of a host that was asked for just now, and that nothing has had.
    pub(crate) fn take_back(&mut self, number: u32) {
        self.give_back(number);
        if number == self.last && self.place(number).is_none() {
            self.last -= 1;
        }
    }

    /// Gives back those that are not in use.
    pub(crate) fn give_back_unused(&mut self, in_use: &dyn Fn(u32) -> bool) {
        let unused: Vec<u32> = self.hosts.keys().copied().filter(|number| !in_use(*number)).collect();
        unused.into_iter().for_each(|number| self.give_back(number));
    }

    fn give(&mut self, place: HostPlace, asked_by: Option<u32>) -> u32 {
        self.last += 1;
        self.numbers.insert(place.clone(), self.last);
        self.hosts.insert(self.last, Numbered { place, asked_by });
        self.last
    }

    /// The number that a host has.
    pub(crate) fn known(&self, place: &HostPlace) -> Option<u32> {
        self.numbers.get(place).copied()
    }

    /// Whether a name has led to this host.
    pub(crate) fn is_named(&self, place: &HostPlace) -> bool {
        self.known(place).is_some_and(|number| self.hosts[&number].asked_by.is_none())
    }

    /// To how many hosts names have led. Their numbers stay.
    pub(crate) fn count(&self) -> usize {
        self.named
    }

    /// To how many hosts of this gateway names have led.
    pub(crate) fn count_of(&self, gateway: &str) -> usize {
        self.of_gateway.get(gateway).copied().unwrap_or(0)
    }

    /// The host of a number.
    pub(crate) fn place(&self, number: u32) -> Option<&HostPlace> {
        self.hosts.get(&number).map(|host| &host.place)
    }
}
