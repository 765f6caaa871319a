//! What is known of clients that say a server name: where they may, what of their first messages has come and
//! what became of them.

use super::server_name_tables::OpenPort;
use super::view::SaidServerNameView;
use crate::limits::SERVER_NAMES_SHOWN;
use naming::dns::{DnsName, Ipv4Mode};
use naming::{AddressPool, BindingKey, ClientConnection, ClientHellos, Service, Services, TCP};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// What a client said, and what became of it.
struct Said {
    connection: ClientConnection,
    view: SaidServerNameView,
}

/// What is known of clients that are led by server names.
#[derive(Default)]
pub(super) struct ServerNames {
    /// The addresses and ports of the file.
    addresses: Vec<Ipv4Addr>,
    pub(super) ports: BTreeSet<u16>,
    /// How many names are offered at each port.
    names: BTreeMap<u16, usize>,
    pub(super) hellos: ClientHellos,
    counts: BTreeMap<&'static str, u64>,
    /// The latest last.
    said: VecDeque<Said>,
}

impl ServerNames {
    /// At the addresses of a pool and these ports, and nobody has said anything yet.
    pub(super) fn new(pool: Option<&AddressPool>, ports: BTreeSet<u16>) -> ServerNames {
        let addresses = pool.into_iter().flat_map(|pool| pool.known.iter().chain(&pool.unknown)).copied();
        let addresses = addresses.collect();
        ServerNames { addresses, ports, ..ServerNames::default() }
    }

    /// Whether the file lets clients be led at all.
    pub(super) fn leads(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Those of these ports at which clients are led.
    fn own(&self, ports: &[u16]) -> impl Iterator<Item = u16> {
        ports.iter().copied().filter(|port| self.ports.contains(port))
    }

    fn places(&self, ports: &[u16]) -> Vec<OpenPort> {
        let at = |port: &u16| self.addresses.iter().map(|address| (*address, *port)).collect::<Vec<_>>();
        ports.iter().flat_map(at).collect()
    }

    /// Where clients say whom they mean once a name is offered at these ports, and did not before.
    pub(super) fn opened_by(&self, ports: &[u16]) -> Vec<OpenPort> {
        let new: Vec<u16> = self.own(ports).filter(|port| !self.names.contains_key(port)).collect();
        self.places(&new)
    }

    /// A name is offered at these ports.
    pub(super) fn come(&mut self, ports: &[u16]) {
        for port in self.own(ports).collect::<Vec<_>>() {
            *self.names.entry(port).or_default() += 1;
        }
    }

    /// A name that was offered at these ports is gone. Says where nobody means anybody any more.
    pub(super) fn go(&mut self, ports: &[u16]) -> Vec<OpenPort> {
        let mut last = Vec::new();
        for port in self.own(ports).collect::<Vec<_>>() {
            match self.names.get_mut(&port) {
                Some(names) if *names > 1 => *names -= 1,
                Some(_) => {
                    self.names.remove(&port);
                    last.push(port);
                }
                None => {}
            }
        }
        self.places(&last)
    }

    /// What a client said, and what became of it.
    pub(super) fn note(
        &mut self,
        connection: ClientConnection,
        name: Option<&DnsName>,
        outcome: &'static str,
    ) {
        self.count(outcome);
        if self.said.len() >= SERVER_NAMES_SHOWN {
            self.said.pop_front();
        }
        let view = SaidServerNameView { name: name.map(DnsName::to_string), outcome };
        self.said.push_back(Said { connection, view });
    }

    /// Counts what became of a segment.
    pub(super) fn count(&mut self, outcome: &'static str) {
        // The outcomes are few: all of them stand in the code.
        *self.counts.entry(outcome).or_default() += 1;
    }

    /// What became of clients, by outcome.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = self.counts.clone();
        if self.hellos.given_up() > 0 {
            counts.insert("unfinished", self.hellos.given_up());
        }
        counts
    }

    /// What an initiator said last at an address and port.
    pub(super) fn said(&self, key: &BindingKey) -> Option<SaidServerNameView> {
        let is_own = |said: &&Said| {
            let ClientConnection { initiator, address, port, .. } = said.connection;
            BindingKey { initiator, address, service: Service { protocol: TCP, port } } == *key
        };
        self.said.iter().rev().find(is_own).map(|said| said.view.clone())
    }
}

/// The ports of TCP at which a name with these services is offered by addresses for each initiator.
pub(super) fn shared_ports(mode: Option<Ipv4Mode>, services: Option<Services>) -> Vec<u16> {
    let services = services.filter(|_| mode == Some(Ipv4Mode::PerInitiator));
    let of_tcp = services.iter().flat_map(|services| services.iter()).filter(|one| one.protocol == TCP);
    of_tcp.map(|one| one.port).collect()
}
