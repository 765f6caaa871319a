//! What leads to hosts by IPv6: for each service of a host an entry of the program's table `stable6`, and one
//! of `stable6_back` for its answers. Nothing is bound, so the entries are all that packets know.

use exec::Backend;
use ir::{Entry, Match};
use naming::{Service, Services, service_of_ipv6};
use std::net::Ipv6Addr;

/// A host behind a gateway with an address of its own outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StableHost {
    /// Its address outside.
    pub(super) at: Ipv6Addr,
    /// The gateway's name.
    pub(super) gateway: String,
    /// Its address behind the gateway.
    pub(super) host: Ipv6Addr,
    /// What it offers.
    pub(super) services: Services,
}

/// What leads to a service of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StableEntry {
    pub(super) at: Ipv6Addr,
    pub(super) service: Service,
    /// The gateway's number in the tunnel.
    pub(super) peer: u32,
    pub(super) host: Ipv6Addr,
}

/// Where both tables stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StableTables {
    pub(super) there: u32,
    pub(super) back: u32,
    /// How many entries each takes.
    pub(super) room: usize,
}

impl StableHost {
    /// The entries of all its services, if its gateway has this number.
    pub(super) fn entries(&self, peer: u32) -> impl Iterator<Item = StableEntry> {
        let StableHost { at, host, .. } = *self;
        self.services.iter().map(service_of_ipv6).map(move |service| StableEntry { at, service, peer, host })
    }
}

impl StableEntry {
    /// The entries of `stable6` and `stable6_back`.
    fn both(&self) -> [Entry; 2] {
        let StableEntry { at, service: Service { protocol, port }, peer, host } = *self;
        let exact = |columns: &[u128]| columns.iter().copied().map(Match::Exact).collect();
        let (protocol, port) = (u128::from(protocol), u128::from(port));
        let key = exact(&[at.to_bits(), protocol, port]);
        let there = Entry { key, value: vec![peer.into(), host.to_bits()], priority: 0 };
        let key = exact(&[peer.into(), host.to_bits(), protocol, port]);
        [there, Entry { key, value: vec![at.to_bits()], priority: 0 }]
    }
}

/// Removes entries, then inserts others: all of these or none.
///
/// # Errors
/// A table takes no more.
pub(super) fn make(
    tables: StableTables,
    backend: &mut dyn Backend,
    gone: &[StableEntry],
    new: &[StableEntry],
) -> Result<(), String> {
    let places = [tables.there, tables.back];
    let remove = |backend: &mut dyn Backend, entries: &[StableEntry]| {
        for (table, entry) in entries.iter().flat_map(|entry| places.into_iter().zip(entry.both())) {
            backend.remove(table, &entry.key, 0);
        }
    };
    remove(backend, gone);
    for (table, entry) in new.iter().flat_map(|entry| places.into_iter().zip(entry.both())) {
        if let Err(error) = backend.insert(table, &entry) {
            remove(backend, new);
            return Err(format!(
                "packets take no more addresses of IPv6 ({error}): raise `MOST_STABLE` by `[set]`"
            ));
        }
    }
    Ok(())
}

/// Fills the tables of a program that does not run yet, in place of the examples in its text.
///
/// # Errors
/// They do not take all.
pub(super) fn fill<'a>(
    tables: StableTables,
    backend: &mut dyn Backend,
    entries: impl Iterator<Item = &'a StableEntry>,
) -> Result<(), String> {
    let (there, back) = entries.map(|entry| entry.both().into()).unzip();
    for (table, name, entries) in [(tables.there, "stable6", there), (tables.back, "stable6_back", back)] {
        backend.replace(table, entries).map_err(|error| format!("`{name}`: {error}"))?;
    }
    Ok(())
}
