//! The packets of a waypoint in this process: entries by which first packets are let through, changed between
//! two batches, and the bindings that packets have made.
//!
//! ```text
//!  change ──► between two batches: removes; looks whether an initiator has reached another host there
//!                 ├── it has ──► nothing is set, and who reaches whom is told
//!                 └── it has not ──► sets, all or none
//! ```

use super::packet_tables::PacketTables;
use super::server_name_tables::{self, OpenPort};
use super::stable::{self, StableEntry};
use engine::live::{Generation, Remote};
use exec::{Backend, EntryError, EntryPlace};
use ir::{Entry, Match};
use naming::store::StoredBinding;
use naming::{BindingKey, ClientConnection, Initiators, PathKey, Service};
use std::net::Ipv4Addr;

/// How many entries are listed between two batches.
const LISTED: usize = 256;

/// Where packets go: the number of a gateway in the tunnel, and a host behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) peer: u32,
    pub(super) host: Ipv4Addr,
}

/// Packets of this key go there, or nowhere.
pub(super) type Row = (PathKey, Option<Target>);

/// A binding that packets have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) key: BindingKey,
    pub(super) target: Target,
    /// It is over, and no other host takes its place for a while.
    pub(super) quarantined: bool,
}

/// Why entries were not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathRefusal {
    /// Initiators reach other hosts there.
    Reached(Vec<Reached>),
    /// The table takes no more, or the packet loop has ended.
    Failed(String),
}

/// What packets know of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyState {
    /// The host that the initiator reaches, and whether it has proved itself.
    pub(super) bound: Option<(Target, bool)>,
    /// Another host has been promised since: nothing new reaches the one that it reaches or has reached
    /// before it is promised again, and before this time.
    pub(super) contested: Option<u64>,
    /// The host that it has reached a short time ago, and when that is over.
    pub(super) quarantined: Option<(Target, u64)>,
    /// The host that is expected, and for how many bits of the initiator's address.
    pub(super) expected: Option<(Target, u8)>,
    /// Bindings that have not proved themselves, and how many there may be.
    pub(super) young: (u64, u64),
    /// Whether a first segment without a place is answered by a SYN cookie.
    pub(super) has_cookies: bool,
}

/// The packets of a waypoint.
pub(super) trait DataPath: Send {
    /// Changes entries before the next packet. Removals are always made.
    ///
    /// # Errors
    /// Nothing was set, and why.
    fn change(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal>;

    /// The same for each of several promises, before the next packet.
    fn change_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
        promises.into_iter().map(|rows| self.change(rows)).collect()
    }

    /// Changes what leads to hosts by IPv6 before the next packet: what is gone first.
    ///
    /// # Errors
    /// Nothing new was set, and why.
    fn lead(&mut self, gone: Vec<StableEntry>, new: Vec<StableEntry>) -> Result<(), String>;

    /// Changes where clients say by a server name whom they mean, before the next packet: what is gone first.
    ///
    /// # Errors
    /// Nothing new was set, and why.
    fn open(&mut self, gone: Vec<OpenPort>, new: Vec<OpenPort>) -> Result<(), String>;

    /// Lets a connection of a client that has said whom it means go there, from the next packet on. Says
    /// whether there was room.
    fn lead_client(&mut self, connection: &ClientConnection, target: Target, now: u64) -> bool;

    /// Lets no client go to a host any more by what it has said; connections that are there go on.
    fn lead_nobody(&mut self, target: Target);

    /// Which bindings there are, if the packet loop runs. One that begins or ends meanwhile may be missing.
    fn reached(&mut self) -> Option<Vec<Reached>>;

    /// Whether these bindings are there at this moment, if the packet loop runs.
    fn hold(&mut self, keys: &[BindingKey]) -> Option<Vec<bool>>;

    /// What becomes of a first packet of this key at this moment, if the packet loop runs.
    fn state(&mut self, key: &BindingKey) -> Option<KeyState>;

    /// Another program has taken over.
    fn took_over(&mut self, tables: PacketTables, generation: u64);
}

/// The packet loop of this process.
pub(super) struct LivePackets {
    pub(super) remote: Remote,
    pub(super) tables: PacketTables,
    pub(super) generation: u64,
}

/// The entry of the table of expectations.
pub(super) fn entry(key: &PathKey, target: Target) -> Entry {
    Entry { key: matches(key), value: vec![target.peer.into(), target.host.to_bits().into()], priority: 0 }
}

fn matches(key: &PathKey) -> Vec<Match> {
    let initiators = match key.initiators {
        Initiators::Exact(address) | Initiators::Prefix(address, 32..) => {
            Match::Exact(address.to_bits().into())
        }
        Initiators::Any | Initiators::Prefix(_, 0) => Match::Any,
        Initiators::Prefix(address, length) => {
            let shift = 32 - u32::from(length);
            Match::Prefix { value: (address.to_bits() >> shift << shift).into(), length }
        }
    };
    let Service { protocol, port } = key.service;
    let exact = [key.address.to_bits().into(), protocol.into(), port.into()].map(Match::Exact);
    exact.into_iter().chain([initiators]).collect()
}

/// The entry of the table of what the machine itself listens at.
pub(super) fn machine_entry(service: Service) -> Entry {
    let key = [u128::from(service.protocol), service.port.into()].map(Match::Exact).to_vec();
    Entry { key, value: Vec::new(), priority: 0 }
}

/// The entry of the secret of SYN cookies.
pub(super) fn cookie_entry([first, second]: [u64; 2]) -> Entry {
    Entry { key: vec![Match::Exact(0)], value: vec![first.into(), second.into()], priority: 0 }
}

fn binding_matches(key: &BindingKey) -> Vec<Match> {
    let Service { protocol, port } = key.service;
    let columns =
        [key.initiator.to_bits().into(), key.address.to_bits().into(), protocol.into(), port.into()];
    columns.map(Match::Exact).to_vec()
}

/// What an entry of a table of bindings says.
fn reached_by(entry: &Entry, quarantined: bool) -> Option<Reached> {
    let number = |part: &Match| match part {
        Match::Exact(number) => Some(*number),
        _ => None,
    };
    let columns: Vec<u128> = entry.key.iter().filter_map(number).collect();
    let &[initiator, address, protocol, port] = columns.as_slice() else { return None };
    let service = Service { protocol: protocol as u8, port: port as u16 };
    let key = BindingKey { initiator: ip4(initiator), address: ip4(address), service };
    let &[peer, host, ..] = entry.value.as_slice() else { return None };
    Some(Reached { key, target: Target { peer: peer as u32, host: ip4(host) }, quarantined })
}

fn ip4(number: u128) -> Ipv4Addr {
    Ipv4Addr::from_bits(number as u32)
}

/// What an event says: its arguments are those of a binding.
pub(super) fn told(arguments: &[u128]) -> Option<(BindingKey, Target)> {
    let &[initiator, address, protocol, port, peer, host] = arguments else { return None };
    let service = Service { protocol: protocol as u8, port: port as u16 };
    let key = BindingKey { initiator: ip4(initiator), address: ip4(address), service };
    Some((key, Target { peer: peer as u32, host: ip4(host) }))
}

impl LivePackets {
    /// Runs `look` between two batches; `None` if another program runs, or none.
    fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&PacketTables, &mut dyn Backend) -> T + Send + 'static,
    ) -> Option<T> {
        let (number, tables) = (self.generation, self.tables);
        let look = move |generation: &mut Generation| {
            (generation.number == number).then(|| look(&tables, generation.backend.as_mut()))
        };
        self.remote.ask_at(0, look).flatten()
    }
}

impl DataPath for LivePackets {
    fn change(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal> {
        let made = self.ask(move |tables, backend| make(tables, backend, &rows));
        made.unwrap_or_else(|| Err(PathRefusal::Failed("the packet loop has ended".to_owned())))
    }

    fn change_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
        let count = promises.len();
        let made = self.ask(move |tables, backend| -> Vec<_> {
            promises.iter().map(|rows| make(tables, backend, rows)).collect()
        });
        let ended = || Err(PathRefusal::Failed("the packet loop has ended".to_owned()));
        made.unwrap_or_else(|| std::iter::repeat_with(ended).take(count).collect())
    }

    fn lead(&mut self, gone: Vec<StableEntry>, new: Vec<StableEntry>) -> Result<(), String> {
        let made = self.ask(move |tables, backend| {
            tables.stable.map_or(Ok(()), |tables| stable::make(tables, backend, &gone, &new))
        });
        made.unwrap_or_else(|| Err("the packet loop has ended".to_owned()))
    }

    fn open(&mut self, gone: Vec<OpenPort>, new: Vec<OpenPort>) -> Result<(), String> {
        let made = self.ask(move |tables, backend| {
            let open = |tables| server_name_tables::open(tables, backend, &gone, &new);
            tables.server_names.map_or(Ok(()), open)
        });
        made.unwrap_or_else(|| Err("the packet loop has ended".to_owned()))
    }

    fn lead_client(&mut self, connection: &ClientConnection, target: Target, now: u64) -> bool {
        let connection = *connection;
        let led = self.ask(move |tables, backend| {
            let lead = |tables| server_name_tables::lead(tables, backend, &connection, target, now).is_ok();
            tables.server_names.is_some_and(lead)
        });
        led == Some(true)
    }

    fn lead_nobody(&mut self, target: Target) {
        let Some(tables) = self.tables.server_names else { return };
        let mut place = Some(EntryPlace::default());
        while let Some(from) = place {
            let next = self.ask(move |_, backend| {
                let (entries, next) = backend.entries_part(tables.named, from, LISTED);
                for entry in entries.iter().filter(|entry| server_name_tables::leads_to(entry, target)) {
                    backend.remove(tables.named, &entry.key, 0);
                }
                next
            });
            place = next.flatten();
        }
    }

    fn reached(&mut self) -> Option<Vec<Reached>> {
        let mut all = Vec::new();
        for (table, quarantined) in self.tables.places() {
            let mut place = Some(EntryPlace::default());
            while let Some(from) = place {
                let (entries, next) =
                    self.ask(move |_, backend| backend.entries_part(table, from, LISTED))?;
                all.extend(entries.iter().filter_map(|entry| reached_by(entry, quarantined)));
                place = next;
            }
        }
        Some(all)
    }

    fn hold(&mut self, keys: &[BindingKey]) -> Option<Vec<bool>> {
        let mut all = Vec::with_capacity(keys.len());
        for part in keys.chunks(LISTED) {
            let part: Vec<Vec<Match>> = part.iter().map(binding_matches).collect();
            all.extend(self.ask(move |tables, backend| -> Vec<bool> {
                let there = |key: &Vec<Match>| {
                    tables.bound.iter().any(|&table| backend.entry(table, key, 0).is_some())
                };
                part.iter().map(there).collect()
            })?);
        }
        Some(all)
    }

    fn state(&mut self, key: &BindingKey) -> Option<KeyState> {
        let key = *key;
        self.ask(move |tables, backend| {
            let columns = binding_matches(&key);
            let [young, proved @ ..] = tables.bound;
            let at = |backend: &dyn Backend, table| {
                let entry = backend.entry(table, &columns, 0)?;
                reached_by(&entry, false).map(|reached| reached.target)
            };
            let bound = proved.into_iter().find_map(|table| at(backend, table)).map(|target| (target, true));
            let bound = bound.or_else(|| at(backend, young).map(|target| (target, false)));
            let value = |backend: &dyn Backend, table, column: usize| {
                let entry = backend.entry(table, &columns, 0)?;
                entry.value.get(column).map(|value| *value as u64).filter(|until| *until > 0)
            };
            let (table, column) = if bound.is_some() { (proved[0], 2) } else { (tables.quarantine, 3) };
            let contested = value(backend, table, column);
            let quarantined = at(backend, tables.quarantine);
            let ends = backend.age_of(tables.quarantine, &columns, 0);
            KeyState {
                bound,
                contested,
                quarantined: quarantined.zip(ends),
                expected: (0..=32).rev().find_map(|length| expected(tables, backend, &key, length)),
                young: (backend.entries_held(young), tables.young as u64),
                has_cookies: tables.cookie_keys.is_some(),
            }
        })
    }

    fn took_over(&mut self, tables: PacketTables, generation: u64) {
        (self.tables, self.generation) = (tables, generation);
    }
}

/// The expectation for a network of this length with the initiator in it.
fn expected(
    tables: &PacketTables,
    backend: &dyn Backend,
    key: &BindingKey,
    length: u8,
) -> Option<(Target, u8)> {
    let initiators = Initiators::Prefix(key.initiator, length);
    let key = PathKey { address: key.address, service: key.service, initiators };
    let entry = backend.entry(tables.expectations, &matches(&key), 0)?;
    let &[peer, host] = entry.value.as_slice() else { return None };
    Some((Target { peer: peer as u32, host: ip4(host) }, length))
}

fn make(tables: &PacketTables, backend: &mut dyn Backend, rows: &[Row]) -> Result<(), PathRefusal> {
    let mut reached = Vec::new();
    for (key, target) in rows {
        match (target, key.initiators) {
            (None, _) => drop(backend.remove(tables.expectations, &matches(key), 0)),
            (Some(target), Initiators::Exact(initiator)) => {
                let key = BindingKey { initiator, address: key.address, service: key.service };
                let other = elsewhere(tables, backend, &key, *target);
                reached.extend(other);
            }
            (Some(_), _) => {}
        }
    }
    let refusal = if reached.is_empty() {
        let mut wanted = rows.iter().filter_map(|(key, target)| Some(entry(key, (*target)?)));
        wanted
            .find_map(|entry| backend.insert(tables.expectations, &entry).err())
            .map(|error| PathRefusal::Failed(error.to_string()))
    } else {
        Some(PathRefusal::Reached(reached))
    };
    let Some(refusal) = refusal else { return Ok(()) };
    // Whoever asked forgets these keys, so what they led to before must not stay either.
    for (key, _) in rows {
        backend.remove(tables.expectations, &matches(key), 0);
    }
    Err(refusal)
}

/// Lets initiators of an earlier life reach nobody else for a while; `earlier` has the one that ended first
/// in front. Without room those that ended last have precedence.
///
/// # Errors
/// How many there was room for, and why for no more.
pub(super) fn quarantine_earlier(
    backend: &mut dyn Backend,
    tables: &PacketTables,
    earlier: &[StoredBinding],
    now: u64,
) -> Result<(), (usize, EntryError)> {
    for (count, StoredBinding { key, gateway, host, .. }) in earlier.iter().rev().enumerate() {
        let value = vec![(*gateway).into(), host.to_bits().into(), now.into(), 0];
        let entry = Entry { key: binding_matches(key), value, priority: 0 };
        backend.learn(tables.quarantine, &entry, now).map_err(|error| (count, error))?;
    }
    Ok(())
}

/// The other host that an initiator reaches by this key, or has reached a short time ago.
fn elsewhere(
    tables: &PacketTables,
    backend: &dyn Backend,
    key: &BindingKey,
    target: Target,
) -> Option<Reached> {
    let columns = binding_matches(key);
    tables.places().find_map(|(table, quarantined)| {
        let entry = backend.entry(table, &columns, 0)?;
        reached_by(&entry, quarantined).filter(|reached| reached.target != target)
    })
}
