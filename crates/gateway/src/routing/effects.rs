//! Effects of the control plane on the packet loop: frames to send, and changes of the program's tables.

use super::neighbours::Mac;
use super::port::Link;
use super::prefix::{IpPrefix, number};
use super::router::Packet;
use engine::live::Injected;
use ir::{Entry, Match};
use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The next hop that is the gateway itself.
pub(crate) const ITSELF: u16 = 65535;
/// A next hop that is never in the table: there is none.
pub(crate) const UNRESOLVED: u16 = 65534;
/// All hosts of a link of the gateway.
pub(crate) const BROADCAST: u16 = 65533;
/// The largest number that stands for a neighbour.
pub(crate) const LAST: u16 = 61_000;
/// The most ports with a number of their own, which stands for hosts of their links that are to be found
/// first.
pub(crate) const LINKS: u16 = 4_096;

/// The number of a port's link: never in the table of next hops.
pub(crate) fn link_number(port: PortNumber) -> u16 {
    if port <= LINKS { LAST + port } else { UNRESOLVED }
}

/// The tables that control fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Filled {
    /// Prefixes of IPv4 and the number of their next hop.
    Routes,
    /// The same of IPv6.
    Routes6,
    /// Next hops by number.
    NextHops,
    /// The ports of next hops by number, also of those that are to be found first.
    Behind,
    /// The next hops of groups of several, by bucket.
    Groups,
    /// The ports of the members of each group.
    GroupPorts,
    /// The gateway's own addresses by port.
    Interfaces,
}

impl Filled {
    /// All of them.
    pub(crate) const ALL: [Filled; 7] = [
        Filled::Routes,
        Filled::Routes6,
        Filled::NextHops,
        Filled::Behind,
        Filled::Groups,
        Filled::GroupPorts,
        Filled::Interfaces,
    ];

    /// Its name in a program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Filled::Routes => "routes",
            Filled::Routes6 => "routes6",
            Filled::NextHops => "next_hops",
            Filled::Behind => "behind",
            Filled::Groups => "next_hop_groups",
            Filled::GroupPorts => "group_ports",
            Filled::Interfaces => "interfaces",
        }
    }
}

/// Where packets for a neighbour leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) port: PortNumber,
    pub(crate) neighbour: Mac,
    pub(crate) own: Mac,
    pub(crate) mtu: u16,
}

/// One entry of a table, put in or taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) table: Filled,
    pub(crate) entry: Entry,
    /// It goes in, in place of what its key had; otherwise it is taken out.
    pub(crate) insert: bool,
}

/// The table of a prefix.
fn table(prefix: IpPrefix) -> Filled {
    if prefix.is_ipv4() { Filled::Routes } else { Filled::Routes6 }
}

/// A route to the next hop of a number.
pub(crate) fn route(prefix: IpPrefix, hop: u16) -> (Filled, Entry) {
    (table(prefix), entry(prefix.key(), vec![hop.into()]))
}

/// A next hop.
pub(crate) fn next_hop(number: u16, hop: NextHop) -> (Filled, Entry) {
    let value = vec![hop.port.into(), mac(hop.neighbour), mac(hop.own), hop.mtu.into()];
    (Filled::NextHops, entry(Match::Exact(number.into()), value))
}

/// The port of a next hop.
pub(crate) fn behind(number: u16, port: PortNumber) -> (Filled, Entry) {
    (Filled::Behind, entry(Match::Exact(number.into()), vec![port.into()]))
}

/// The next hop of a bucket of a group, by its number in routes.
pub(crate) fn bucket(number: u16, bucket: u8, hop: u16) -> (Filled, Entry) {
    let key = [number, bucket.into()].map(|part| Match::Exact(part.into())).to_vec();
    (Filled::Groups, Entry { key, value: vec![hop.into()], priority: 0 })
}

/// A port by which packets from behind a group, by its number in routes, come in.
pub(crate) fn group_port(number: u16, port: PortNumber) -> (Filled, Entry) {
    let key = [number, port].map(|number| Match::Exact(number.into())).to_vec();
    (Filled::GroupPorts, Entry { key, value: Vec::new(), priority: 0 })
}

/// The addresses that errors about packets of a port come from.
pub(crate) fn interface(port: PortNumber, own: Mac, four: Ipv4Addr, six: Ipv6Addr) -> (Filled, Entry) {
    let value = vec![mac(own), number(IpAddr::V4(four)), number(IpAddr::V6(six))];
    (Filled::Interfaces, entry(Match::Exact(port.into()), value))
}

fn entry(key: Match, value: Vec<u128>) -> Entry {
    Entry { key: vec![key], value, priority: 0 }
}

fn mac(address: Mac) -> u128 {
    address.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// What is to be done, in this order: first the changes, then the frames and what is for the machine.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) changes: Vec<Change>,
    pub(crate) frames: Vec<Injected>,
    /// Packets for the machine, by the host interfaces of the ports that they came in by.
    pub(crate) for_host: Vec<Packet>,
    /// What has become of the links of ports at which the machine is a host.
    pub(crate) links: Vec<(PortNumber, Option<Link>)>,
}

impl Effects {
    /// Puts an entry in.
    pub(crate) fn insert(&mut self, (table, entry): (Filled, Entry)) {
        self.changes.push(Change { table, entry, insert: true });
    }

    /// Takes the entry of this key out.
    pub(crate) fn remove(&mut self, (table, entry): (Filled, Entry)) {
        self.changes.push(Change { table, entry, insert: false });
    }
}

/// The keys of the entries that control wants in tables and that are not there. Each is that of a route, a
/// neighbour or a group that control knows, so there are no more than those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refused(BTreeMap<Filled, Lacking>);

/// Those of one table.
#[derive(Clone, Debug, Default)]
struct Lacking {
    /// They wait for room.
    waiting: BTreeSet<Vec<Match>>,
    /// A change is on its way that puts them in, if there is room still.
    tried: BTreeSet<Vec<Match>>,
}

impl Refused {
    /// Whether the entry of a prefix is not there.
    pub(crate) fn has(&self, prefix: IpPrefix) -> bool {
        self.has_key(table(prefix), &[prefix.key()])
    }

    /// Whether the entry of this key is not there.
    pub(crate) fn has_key(&self, table: Filled, key: &[Match]) -> bool {
        let lacking = self.0.get(&table);
        lacking.is_some_and(|lacking| lacking.waiting.contains(key) || lacking.tried.contains(key))
    }

    /// Whether the table of a prefix has no room.
    pub(crate) fn has_table_of(&self, prefix: IpPrefix) -> bool {
        self.0.contains_key(&table(prefix))
    }

    /// Whether all tables have room.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry of this key found no room. Says whether it had some before, or was not wanted.
    pub(crate) fn insert(&mut self, table: Filled, key: &[Match]) -> bool {
        let lacking = self.0.entry(table).or_default();
        let tried = lacking.tried.remove(key);
        lacking.waiting.insert(key.to_vec()) && !tried
    }

    /// The entry of this change is there, or is no more wanted. Says whether it had no room.
    pub(crate) fn remove(&mut self, change: &Change) -> bool {
        let Some(lacking) = self.0.get_mut(&change.table) else { return false };
        let (waited, tried) =
            (lacking.waiting.remove(&change.entry.key), lacking.tried.remove(&change.entry.key));
        if lacking.waiting.is_empty() && lacking.tried.is_empty() {
            self.0.remove(&change.table);
        }
        waited || tried
    }

    /// Takes so many of a table out that wait.
    pub(crate) fn take(&mut self, table: Filled, count: usize) -> Vec<Vec<Match>> {
        let Some(lacking) = self.0.get_mut(&table) else { return Vec::new() };
        let taken = (0..count).map_while(|_| lacking.waiting.pop_first()).collect();
        if lacking.waiting.is_empty() && lacking.tried.is_empty() {
            self.0.remove(&table);
        }
        taken
    }

    /// A change is on its way that puts in the entry of this key, which had no room.
    pub(crate) fn tries(&mut self, table: Filled, key: &[Match]) {
        self.0.entry(table).or_default().tried.insert(key.to_vec());
    }
}
