//! What the packets of a waypoint are told: promises with their time, and the addresses that always lead to
//! one host.

use super::packet_tables::PacketTables;
use super::packets::{
    DataPath, KeyState, PathRefusal, Reached, Row, Target, cookie_entry, entry, machine_entry,
};
use super::server_name_tables::{self, OpenPort};
use super::stable::{self, StableEntry, StableHost};
use crate::config::names::{GatewayDescription, HostPlace, Hosts, no_peer};
use exec::Backend;
use naming::{
    Ask, BindingKey, ClientConnection, Displaced, PathChange, PathEntries, PathKey, Responder, Service,
    Waypoint,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A host of which nothing is known any more: bindings may lead to it.
const FORGOTTEN: Responder = Responder(u32::MAX);

/// The packets of a waypoint, and what they were told.
pub(super) struct PacketPath {
    /// None before the packet loop is there.
    packets: Option<Box<dyn DataPath>>,
    room: usize,
    entries: PathEntries,
    /// Addresses that names share or have for themselves.
    standing: HashMap<PathKey, Target>,
    /// Services of hosts by IPv6, and how many names have each.
    stable: HashMap<(Ipv6Addr, Service), (StableEntry, usize)>,
    /// Where clients say by a server name whom they mean.
    open: BTreeSet<OpenPort>,
    /// The numbers of gateways in the tunnel.
    peers: BTreeMap<String, u32>,
    /// What the machine itself listens at, whatever is promised.
    machine: BTreeSet<Service>,
    /// The secret of SYN cookies, for as long as the process lives.
    cookie_key: [u64; 2],
}

impl PacketPath {
    /// Nothing has been told yet, and nobody is there to be told.
    pub(super) fn new(
        tables: &PacketTables,
        gateways: &[GatewayDescription],
        machine: &BTreeSet<Service>,
        cookie_key: [u64; 2],
    ) -> PacketPath {
        let (room, standing, stable) = (tables.room, HashMap::new(), HashMap::new());
        let (entries, machine) = (PathEntries::new(room), machine.clone());
        let (peers, open) = (BTreeMap::new(), BTreeSet::new());
        let mut path =
            PacketPath { packets: None, room, entries, standing, stable, open, peers, machine, cookie_key };
        path.serve(gateways);
        path
    }

    /// Packets go to these gateways from now on.
    pub(super) fn serve(&mut self, gateways: &[GatewayDescription]) {
        self.peers = gateways.iter().filter_map(|one| Some((one.name.clone(), one.peer?))).collect();
    }

    /// From now on these packets are told of changes.
    pub(super) fn begin(&mut self, packets: Box<dyn DataPath>) {
        self.packets = Some(packets);
    }

    fn tell(&mut self, rows: Vec<Row>) -> Result<(), PathRefusal> {
        self.packets.as_mut().map_or(Ok(()), |packets| packets.change(rows))
    }

    /// The responders of all promises that packets know.
    pub(super) fn responders(&self) -> impl Iterator<Item = Responder> {
        self.entries.all().map(|(_, responder)| responder)
    }

    /// How many promises packets know, by service and initiators.
    pub(super) fn count(&self) -> usize {
        self.entries.count()
    }

    fn target(&self, place: &HostPlace) -> Option<Target> {
        Some(Target { peer: *self.peers.get(&place.gateway)?, host: place.address })
    }

    /// Where a target is, if a gateway of the file has its number.
    pub(super) fn place(&self, target: Target) -> Option<HostPlace> {
        let (name, _) = self.peers.iter().find(|(_, peer)| **peer == target.peer)?;
        Some(HostPlace { gateway: name.clone(), address: target.host })
    }

    /// The responder of a target.
    fn responder(&self, target: Target, hosts: &Hosts) -> Responder {
        self.place(target).and_then(|place| hosts.known(&place)).map_or(FORGOTTEN, Responder)
    }

    fn rows(&self, changes: Vec<PathChange>, hosts: &Hosts) -> Vec<Row> {
        let row = |change| match change {
            PathChange::Set(key, responder) => {
                (key, hosts.place(responder.0).and_then(|place| self.target(place)))
            }
            PathChange::Remove(key) => (key, None),
        };
        changes.into_iter().map(row).collect()
    }

    fn change(&mut self, changes: Vec<PathChange>, hosts: &Hosts) -> Result<(), PathRefusal> {
        if changes.is_empty() {
            return Ok(());
        }
        let rows = self.rows(changes, hosts);
        let set: Vec<PathKey> = rows.iter().filter(|(_, to)| to.is_some()).map(|(key, _)| *key).collect();
        let made = self.tell(rows);
        if made.is_err() {
            set.iter().for_each(|key| self.entries.lost(key));
        }
        made
    }

    /// What packets are to be told of the last promise, before the name is answered, and whether there is
    /// room for all of it. Whatever there is has to be told.
    pub(super) fn rows_of_promise(
        &mut self,
        waypoint: &Waypoint,
        (address, ask): (Ipv4Addr, &Ask),
        hosts: &Hosts,
        now: u64,
    ) -> (Vec<Row>, bool) {
        let mut changes = Vec::new();
        let promised = (address, &ask.services, ask.initiators);
        let fits = self.entries.follow(waypoint, promised, now, &mut changes).is_ok();
        (self.rows(changes, hosts), fits)
    }

    /// Tells packets of several promises; says of each whether they follow it.
    pub(super) fn tell_all(&mut self, promises: Vec<Vec<Row>>) -> Vec<Result<(), PathRefusal>> {
        let Some(packets) = &mut self.packets else { return promises.iter().map(|_| Ok(())).collect() };
        if promises.iter().all(Vec::is_empty) {
            return promises.iter().map(|_| Ok(())).collect();
        }
        let set = |rows: &Vec<Row>| -> Vec<PathKey> {
            rows.iter().filter(|(_, to)| to.is_some()).map(|(key, _)| *key).collect()
        };
        let set: Vec<Vec<PathKey>> = promises.iter().map(set).collect();
        let told = packets.change_all(promises);
        for (set, _) in set.iter().zip(&told).filter(|(_, told)| told.is_err()) {
            set.iter().for_each(|key| self.entries.lost(key));
        }
        told
    }

    /// Tells packets of promises that were taken back.
    pub(super) fn withdraw(&mut self, waypoint: &Waypoint, gone: &[Displaced], hosts: &Hosts, now: u64) {
        let mut changes = Vec::new();
        self.entries.withdraw(waypoint, gone, now, &mut changes);
        // Where the loop has ended there are no packets.
        let _ = self.change(changes, hosts);
    }

    /// Takes from packets what is over. Says when the next is due.
    pub(super) fn expire(&mut self, waypoint: &Waypoint, hosts: &Hosts, now: u64) -> Option<u64> {
        let mut changes = Vec::new();
        let next = self.entries.expire(waypoint, now, &mut changes);
        let _ = self.change(changes, hosts);
        next
    }

    /// Lets addresses lead to a host for everybody and as long as nobody says otherwise.
    ///
    /// # Errors
    /// Why not; then nothing has changed.
    pub(super) fn stand(&mut self, keys: &[PathKey], place: &HostPlace) -> Result<(), String> {
        let target = self.target(place).ok_or_else(|| no_peer(&place.gateway))?;
        if self.standing.len() + keys.len() > self.room {
            return Err(format!(
                "packets know {} addresses that always lead to one host, and there is no room for more: raise `MOST_EXPECTATIONS` by `[set]`",
                self.standing.len()
            ));
        }
        let rows = keys.iter().map(|key| (*key, Some(target))).collect();
        self.tell(rows).map_err(|refusal| match refusal {
            PathRefusal::Failed(why) => why,
            // Only promises to one initiator are compared with bindings.
            PathRefusal::Reached(_) => String::new(),
        })?;
        self.standing.extend(keys.iter().map(|key| (*key, target)));
        self.entries.resize(self.room - self.standing.len());
        Ok(())
    }

    /// Lets addresses lead nowhere.
    pub(super) fn fall(&mut self, keys: &[PathKey]) {
        let _ = self.tell(keys.iter().map(|key| (*key, None)).collect());
        self.standing.retain(|key, _| !keys.contains(key));
        self.entries.resize(self.room - self.standing.len());
    }

    /// Lets the address of a host lead to it, for one name more.
    ///
    /// # Errors
    /// Why not; then nothing has changed.
    pub(super) fn lead(&mut self, host: &StableHost) -> Result<(), String> {
        let peer = *self.peers.get(&host.gateway).ok_or_else(|| no_peer(&host.gateway))?;
        let mut new = Vec::new();
        for entry in host.entries(peer) {
            match self.stable.get(&(entry.at, entry.service)) {
                None => new.push(entry),
                Some((same, _)) if *same == entry => {}
                Some((other, _)) => {
                    return Err(format!(
                        "{} leads to {} behind another gateway already: give {} another address behind `{}`",
                        entry.at, other.host, entry.host, host.gateway
                    ));
                }
            }
        }
        if let Some(packets) = &mut self.packets {
            packets.lead(Vec::new(), new)?;
        }
        for entry in host.entries(peer) {
            self.stable.entry((entry.at, entry.service)).or_insert((entry, 0)).1 += 1;
        }
        Ok(())
    }

    /// A name of a host is gone, and with the last one what leads there.
    pub(super) fn forsake(&mut self, host: &StableHost) {
        let Some(&peer) = self.peers.get(&host.gateway) else { return };
        let mut gone = Vec::new();
        for entry in host.entries(peer) {
            let key = (entry.at, entry.service);
            match self.stable.get_mut(&key) {
                Some((_, names)) if *names > 1 => *names -= 1,
                Some(_) => {
                    self.stable.remove(&key);
                    gone.push(entry);
                }
                None => {}
            }
        }
        // Where the loop has ended there are no packets.
        let _ = self.packets.as_mut().map(|packets| packets.lead(gone, Vec::new()));
    }

    /// Lets clients say at these places by a server name whom they mean.
    ///
    /// # Errors
    /// Why not; then nothing has changed.
    pub(super) fn open(&mut self, ports: &[OpenPort]) -> Result<(), String> {
        if let Some(packets) = self.packets.as_mut().filter(|_| !ports.is_empty()) {
            packets.open(Vec::new(), ports.to_vec())?;
        }
        self.open.extend(ports);
        Ok(())
    }

    /// Nobody is led by server names at these places any more.
    pub(super) fn close(&mut self, ports: &[OpenPort]) {
        self.open.retain(|port| !ports.contains(port));
        if let Some(packets) = self.packets.as_mut().filter(|_| !ports.is_empty()) {
            // Where the loop has ended there are no packets.
            let _ = packets.open(ports.to_vec(), Vec::new());
        }
    }

    /// Whether clients say there whom they mean.
    pub(super) fn is_open(&self, port: &OpenPort) -> bool {
        self.open.contains(port)
    }

    /// Lets a connection of a client that has said whom it means go to this host. Says whether packets
    /// follow.
    pub(super) fn lead_client(&mut self, connection: &ClientConnection, place: &HostPlace, now: u64) -> bool {
        let target = self.target(place);
        let packets = self.packets.as_mut();
        packets.zip(target).is_some_and(|(packets, target)| packets.lead_client(connection, target, now))
    }

    /// A name of this host is gone: nobody is led there any more by what he has said.
    pub(super) fn lead_nobody(&mut self, place: &HostPlace) {
        let target = self.target(place).filter(|_| !self.open.is_empty());
        if let Some((packets, target)) = self.packets.as_mut().zip(target) {
            packets.lead_nobody(target);
        }
    }

    /// Fills the tables of a program that does not run yet, in place of the examples in its text.
    ///
    /// # Errors
    /// It does not take all.
    pub(super) fn fill(
        &self,
        tables: &PacketTables,
        backend: &mut dyn Backend,
        hosts: &Hosts,
    ) -> Result<(), String> {
        let promised = self
            .entries
            .all()
            .filter_map(|(key, responder)| Some(entry(key, self.target(hosts.place(responder.0)?)?)));
        let standing = self.standing.iter().map(|(key, target)| entry(key, *target));
        let all = standing.chain(promised).collect();
        let machine = self.machine.iter().map(|&service| machine_entry(service)).collect();
        backend.replace(tables.machine, machine).map_err(|error| format!("`machine_services`: {error}"))?;
        if let Some(table) = tables.cookie_keys {
            let key = vec![cookie_entry(self.cookie_key)];
            backend.replace(table, key).map_err(|error| format!("`cookie_keys`: {error}"))?;
        }
        if let Some(places) = tables.stable {
            stable::fill(places, backend, self.stable.values().map(|(entry, _)| entry))?;
        }
        if let Some(places) = tables.server_names {
            server_name_tables::fill(places, backend, self.open.iter().copied())?;
        }
        backend.replace(tables.expectations, all).map_err(|error| format!("`expectations`: {error}"))
    }

    /// Another program has taken over.
    pub(super) fn took_over(&mut self, tables: PacketTables, generation: u64) {
        self.room = tables.room;
        self.entries.resize(self.room.saturating_sub(self.standing.len()));
        if let Some(packets) = &mut self.packets {
            packets.took_over(tables, generation);
        }
    }

    /// Lets a waypoint know what packets say: who reaches whom, and who has done so a short time ago.
    pub(super) fn note(&self, waypoint: &mut Waypoint, reached: &[Reached], hosts: &Hosts, now: u64) {
        for Reached { key, target, quarantined } in reached {
            let responder = self.responder(*target, hosts);
            if *quarantined {
                waypoint.note_quarantined(key, responder, now);
            } else {
                waypoint.note_bound(key, responder, now);
            }
        }
    }

    /// What becomes of a first packet of this key, if the packet loop runs.
    pub(super) fn state(&mut self, key: &BindingKey) -> Option<KeyState> {
        self.packets.as_mut()?.state(key)
    }

    /// The name of the gateway with this number in the tunnel; the number if no gateway of the file has it.
    pub(super) fn gateway(&self, target: Target) -> String {
        let known = self.peers.iter().find(|(_, peer)| **peer == target.peer);
        known.map_or_else(|| format!("number {}", target.peer), |(name, _)| name.clone())
    }

    /// Compares what a waypoint knows with the bindings that there are, as after events were lost. Says what
    /// it found.
    pub(super) fn compare(&mut self, waypoint: &mut Waypoint, hosts: &Hosts, now: u64) -> Vec<Reached> {
        let Some(packets) = &mut self.packets else { return Vec::new() };
        let Some(mut reached) = packets.reached() else { return Vec::new() };
        let there: HashSet<BindingKey> =
            reached.iter().filter(|one| !one.quarantined).map(|one| one.key).collect();
        let missing: Vec<BindingKey> = waypoint.live().filter(|key| !there.contains(key)).collect();
        let held = packets.hold(&missing);
        self.note(waypoint, &reached, hosts, now);
        let over = held.map(|held| missing.into_iter().zip(held).filter(|(_, held)| !held));
        // A listed quarantine began earlier, and is stored already.
        reached.retain(|one| !one.quarantined);
        for (key, _) in over.into_iter().flatten() {
            waypoint.end(&key, now);
            let place = waypoint.reached(&key).and_then(|responder| hosts.place(responder.0));
            let target = place.and_then(|place| self.target(place));
            reached.extend(target.map(|target| Reached { key, target, quarantined: true }));
        }
        reached
    }
}
