//! The packet loop of a confined core, as control needs it: what would be done in one process are questions
//! to the core here, which judges each of them.

use super::core_channel::{CoreChannel, unexpected};
use super::prefix_expansion::ExpandedPrefixes;
use crate::remarks::Remarks;
use crate::routing::{
    Change, Filled, HeldNextHop, Neighbour, NumberedChanges, Packet, PacketLoop, RoutingSettings,
};
use crate::tables::Known;
use crate::tables::confined::entry_of;
use engine::live::{Injected, urgency};
use ir::Entry;
use messages::control::{ControlQuestion, CoreAnswer, EntryChange, EntryOperation, LinkFrame, PuntedPacket};
use messages::limits::{MOST_CHANGES, MOST_FRAMES};
use packet::{PortNumber, VirtioHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long others have their turn at the core after each question about packets.
const OTHERS: Duration = Duration::from_micros(200);
/// How long is waited at once where changes come too fast.
const SOME: Duration = Duration::from_millis(200);

/// How many packets wait at most that were told beside answers: further ones are lost.
const MOST_TOLD: usize = 1024;

/// How many reasons the operator is told until another program takes over.
const MOST_SAID: usize = 64;

/// A punted packet, with the reason.
pub(super) type PuntedFor = (Arc<str>, Packet);

/// What a table holds, by the bits of its keys and how many are given.
pub(super) type Held = BTreeMap<(u128, u8), Entry>;

/// The loop.
pub(super) struct ConfinedLoop {
    core: Arc<CoreChannel>,
    remarks: Remarks,
    program: Mutex<Arc<Known>>,
    /// Another program than the one that is known has taken over.
    is_stale: AtomicBool,
    expanded: Mutex<ExpandedPrefixes>,
    /// Packets that were told beside answers to frames.
    told: Mutex<Vec<PuntedFor>>,
    /// Why changes were refused, as the operator was told since the program took over.
    said: Mutex<BTreeSet<String>>,
}

impl ConfinedLoop {
    /// The loop of a core that runs this program.
    pub(super) fn new(core: Arc<CoreChannel>, remarks: Remarks, program: Known) -> ConfinedLoop {
        ConfinedLoop {
            core,
            remarks,
            program: Mutex::new(Arc::new(program)),
            is_stale: AtomicBool::new(false),
            expanded: Mutex::default(),
            told: Mutex::default(),
            said: Mutex::default(),
        }
    }

    /// Whether another program has taken over than the one that is known.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// This program has taken over.
    pub(super) fn runs(&self, program: Known) {
        *locked(&self.program) = Arc::new(program);
        locked(&self.said).clear();
        self.is_stale.store(false, Ordering::Relaxed);
    }

    /// The next hops that the table of the program holds. Known are the neighbours to whom a route of their
    /// own leads, in a network of the port.
    ///
    /// # Errors
    /// The core does not tell what the tables hold.
    pub(super) fn held_next_hops(&self, settings: &RoutingSettings) -> Result<Vec<HeldNextHop>, String> {
        let known = locked(&self.program).clone();
        let number = |filled: Filled| {
            let mut tables = (0..).zip(&known.program.tables);
            tables.find(|(_, table)| table.name == filled.name()).map(|(number, _)| number)
        };
        let Some(hops) = number(Filled::NextHops) else { return Ok(Vec::new()) };
        let mut found: BTreeMap<u128, HeldNextHop> = BTreeMap::new();
        for ((number, _), Entry { value, .. }) in self.held(&known, hops)? {
            let (&[port, mac, ..], Ok(hop)) = (&value[..], u16::try_from(number)) else { continue };
            let Ok(port) = PortNumber::try_from(port) else { continue };
            let [.., a, b, c, d, e, f] = mac.to_be_bytes();
            let mac = [a, b, c, d, e, f];
            found.insert(number, HeldNextHop { number: hop, port, neighbour: None, mac });
        }
        for (filled, bits) in [(Filled::Routes, 32), (Filled::Routes6, 128)] {
            let Some(table) = number(filled) else { continue };
            let routes = self.held(&known, table)?.into_iter().filter(|((_, length), _)| *length == bits);
            for ((key, _), route) in routes {
                let address = match filled {
                    Filled::Routes => IpAddr::from(Ipv4Addr::from(key as u32)),
                    _ => IpAddr::from(Ipv6Addr::from(key)),
                };
                let hop = route.value.first().and_then(|number| found.get_mut(number));
                // A host that is farther away may have a route of its own by the same next hop.
                let Some(hop) = hop.filter(|hop| is_near(settings, hop.port, address)) else { continue };
                hop.neighbour = Some(Neighbour { port: hop.port, address });
            }
        }
        Ok(found.into_values().collect())
    }

    /// What these tables hold. Of one that the core does not tell nothing is known, and the operator is told.
    ///
    /// # Errors
    /// Another program has taken over.
    pub(super) fn held_now(&self, tables: &[(Filled, u32)]) -> Result<Vec<Held>, String> {
        let known = locked(&self.program).clone();
        let mut all = Vec::new();
        for (filled, number) in tables {
            all.push(self.held(&known, *number).or_else(|why| {
                // Asked for nothing else, the core tells which program runs.
                self.exchange(Vec::new(), 0);
                if self.is_stale() {
                    return Err(why);
                }
                self.say(format!("what the table `{}` holds is not known: {why}", filled.name()));
                Ok(Held::new())
            })?);
        }
        Ok(all)
    }

    /// What brings tables from what they `held` to what is `wanted`, table by table.
    pub(super) fn difference(&self, held: Vec<Held>, wanted: &[(Filled, u32, Vec<Entry>)]) -> Vec<Change> {
        let known = locked(&self.program).clone();
        let (mut expanded, mut changes) = (ExpandedPrefixes::default(), Vec::new());
        for ((filled, number, entries), mut held) in wanted.iter().zip(held) {
            let Some(table) = known.program.tables.get(*number as usize) else { continue };
            entries.iter().for_each(|entry| expanded.insert(*number, table, entry));
            let lacks = entries.iter().filter(|entry| !expanded.is_held(*number, table, entry, &held));
            changes.extend(lacks.map(|entry| Change { table: *filled, entry: entry.clone(), insert: true }));
            for entry in entries {
                held.remove(&table.joined_key(&entry.key));
            }
            held.retain(|key, _| !expanded.is_expansion(*number, table, *key));
            let gone = held.into_values().map(|entry| Change { table: *filled, entry, insert: false });
            changes.extend(gone);
        }
        *locked(&self.expanded) = expanded;
        // What goes makes room.
        changes.sort_by_key(|change| change.insert);
        changes
    }

    /// What a table holds, by the bits of its keys and how many are given.
    fn held(&self, known: &Known, table: u32) -> Result<Held, String> {
        let number = known.schema.generation;
        let declared = known.program.tables.get(table as usize).ok_or("there is no such table")?;
        let (mut held, mut from) = (Held::new(), Some((0, 0)));
        while let Some(place) = from {
            let question = ControlQuestion::Entries { number, table, worker: 0, own: false, place };
            let page = match self.core.ask(&question).map_err(|error| error.to_string())? {
                CoreAnswer::Entries(page) => page,
                other => return Err(unexpected(other)),
            };
            for entry in page.entries.into_iter().map(entry_of) {
                held.insert(declared.joined_key(&entry.key), entry);
            }
            from = page.next;
        }
        Ok(held)
    }

    /// Packets that were punted, once there are some or `patience` is over.
    pub(super) fn packets(&self, patience: Duration) -> Vec<PuntedFor> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let told = std::mem::take(&mut *locked(&self.told));
            if !told.is_empty() || left.is_zero() || self.is_stale() {
                return told;
            }
            let patience = left.as_millis().min(self.core.patience().into()) as u16;
            self.exchange(Vec::new(), patience);
            thread::sleep(OTHERS);
        }
    }

    fn exchange(&self, frames: Vec<LinkFrame>, patience: u16) {
        // Where the core is gone, this process ends.
        let Ok(answer) = self.core.ask(&ControlQuestion::Exchange { frames, patience }) else { return };
        if let CoreAnswer::Exchanged { number, left_out, punted } = answer {
            if number != locked(&self.program).schema.generation {
                self.is_stale.store(true, Ordering::Relaxed);
            }
            let packet = |PuntedPacket { reason, port, bytes }: PuntedPacket| {
                (Arc::from(reason), Packet { port, bytes, virtio: VirtioHeader::NONE })
            };
            let mut told = locked(&self.told);
            let room = MOST_TOLD.saturating_sub(told.len());
            told.extend(punted.into_iter().take(room).map(packet));
            drop(told);
            if left_out > 0 {
                self.say("the core leaves out frames by which neighbours are found: there are more than it sends in a second, or an interface has another Ethernet address than at the start of the gateway".to_owned());
            }
        }
    }

    /// Has the core make changes, which belong to the places beside them. Those that it refuses are noted.
    fn make(&self, known: &Known, changes: Vec<(usize, EntryChange)>, refused: &mut BTreeSet<usize>) {
        if changes.is_empty() || self.is_stale() {
            return;
        }
        let number = known.schema.generation;
        let all = changes.iter().map(|(_, change)| change.clone()).collect();
        let question = ControlQuestion::Change { number, changes: all };
        let why = loop {
            match self.core.ask(&question) {
                Ok(CoreAnswer::TooFast { milliseconds, .. }) => {
                    thread::sleep(Duration::from_millis(milliseconds.max(1)).min(SOME));
                    // Packets that come meanwhile tell of another program.
                    self.exchange(Vec::new(), 0);
                    if self.is_stale() {
                        return;
                    }
                }
                Ok(CoreAnswer::Refused(why)) => break why,
                _ => return,
            }
        };
        if changes.len() > 1 {
            changes.into_iter().for_each(|change| self.make(known, vec![change], refused));
            return;
        }
        self.exchange(Vec::new(), 0);
        if !self.is_stale() {
            refused.extend(changes.iter().filter(|(_, change)| inserts(change)).map(|(place, _)| *place));
            self.say(why);
        }
    }

    /// Tells the operator once of each reason, and of so many in all until another program takes over.
    fn say(&self, why: String) {
        let mut said = locked(&self.said);
        if said.len() < MOST_SAID && said.insert(why.clone()) {
            self.remarks.say(format!("routes and neighbours: {why}"));
        }
    }
}

impl PacketLoop for ConfinedLoop {
    fn change(&self, changes: &NumberedChanges) -> Vec<usize> {
        let known = locked(&self.program).clone();
        let (mut refused, mut together) = (BTreeSet::new(), Vec::<(usize, EntryChange)>::new());
        for (place, (number, change)) in changes.iter().enumerate() {
            let Some(table) = known.program.tables.get(*number as usize) else { continue };
            if let Some(why) =
                known.schema.tables.get(*number as usize).and_then(|it| it.refuses.insert.clone())
            {
                refused.extend(change.insert.then_some(place));
                self.say(format!("table `{}`: {why}", table.name));
                continue;
            }
            let translated = locked(&self.expanded).changes_for(*number, table, change);
            for one in translated {
                let same = |(_, other): &(usize, EntryChange)| {
                    (other.table, other.bits, other.length) == (one.table, one.bits, one.length)
                };
                if together.len() == MOST_CHANGES || together.iter().any(same) {
                    self.make(&known, std::mem::take(&mut together), &mut refused);
                }
                together.push((place, one));
            }
        }
        self.make(&known, together, &mut refused);
        // A prefix in whose place some prefixes found no room is there as a whole or not at all.
        let mut undone = Vec::new();
        for (number, change) in refused.iter().filter_map(|place| changes.get(*place)) {
            let table = known.program.tables.get(*number as usize);
            let Some(table) = table.filter(|table| ExpandedPrefixes::concerns(table, &change.entry)) else {
                continue;
            };
            let change = Change { insert: false, ..change.clone() };
            undone.extend(locked(&self.expanded).changes_for(*number, table, &change));
        }
        for some in undone.chunks(MOST_CHANGES) {
            self.make(&known, some.iter().map(|change| (0, change.clone())).collect(), &mut BTreeSet::new());
        }
        refused.into_iter().collect()
    }

    fn send(&self, frames: Vec<Injected>) {
        // The core sends no others.
        let of_links = frames.into_iter().filter(|frame| urgency::finds_neighbours(&frame.bytes));
        let frames: Vec<_> = of_links.map(|Injected { port, bytes, .. }| LinkFrame { port, bytes }).collect();
        frames.chunks(MOST_FRAMES).for_each(|some| self.exchange(some.to_vec(), 0));
    }

    fn has_rate(&self) -> bool {
        true
    }
}

/// Whether an address is one of a neighbour in the networks of a port.
fn is_near(settings: &RoutingSettings, port: PortNumber, address: IpAddr) -> bool {
    let port = usize::from(port).checked_sub(1).and_then(|at| settings.ports.get(at));
    let mut own = port.into_iter().flat_map(|port| &port.addresses);
    own.any(|own| own.prefix().contains(address) && own.address != address)
}

fn inserts(change: &EntryChange) -> bool {
    matches!(change.operation, EntryOperation::Insert(_))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
