//! The packet loop of a confined core, as control needs it: what would be done in one process are questions
//! to the core here, which judges each of them.

use super::ask;
use super::covers::Covers;
use crate::remarks::Remarks;
use crate::routing::{
    Change, Filled, HeldNextHop, Neighbour, NumberedChanges, Packet, PacketLoop, PortSettings,
    RoutingSettings,
};
use crate::tables::{Known, confined};
use engine::live::Injected;
use ir::{Entry, Match, Table};
use messages::Channel;
use messages::control::{
    ControlQuestion, CoreAnswer, EntryChange, EntryOperation, LinkFrame, PuntedPacket, ShownEntry, ShownMatch,
};
use messages::limits::{LONGEST_EXCHANGE, LONGEST_LINK_FRAME, MOST_CHANGES, MOST_FRAMES};
use packet::VirtioHeader;
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

/// A punted packet, with the reason.
pub(super) type PuntedFor = (Arc<str>, Packet);

/// The loop.
pub(super) struct ConfinedLoop {
    core: Arc<Mutex<Channel>>,
    remarks: Remarks,
    program: Mutex<Arc<Known>>,
    /// Another program than the one that is known has taken over.
    is_stale: AtomicBool,
    covers: Mutex<Covers>,
    /// Packets that were told beside answers to frames.
    told: Mutex<Vec<PuntedFor>>,
    /// Why changes were refused, as the operator was told since the program took over.
    said: Mutex<BTreeSet<String>>,
}

impl ConfinedLoop {
    /// The loop of a core that runs this program.
    pub(super) fn new(core: Arc<Mutex<Channel>>, remarks: Remarks, program: Known) -> ConfinedLoop {
        ConfinedLoop {
            core,
            remarks,
            program: Mutex::new(Arc::new(program)),
            is_stale: AtomicBool::new(false),
            covers: Mutex::default(),
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

    /// The neighbours whose next hops the tables hold: those to whom a route of their own leads, in a network
    /// of the port.
    ///
    /// # Errors
    /// The core does not tell what they hold.
    pub(super) fn held_next_hops(&self, settings: &RoutingSettings) -> Result<Vec<HeldNextHop>, String> {
        let known = locked(&self.program).clone();
        let number = |filled: Filled| {
            let tables = (0..).zip(&known.program.tables);
            tables.into_iter().find(|(_, table)| table.name == filled.name()).map(|(number, _)| number)
        };
        let Some(hops) = number(Filled::NextHops) else { return Ok(Vec::new()) };
        let hops = self.held(&known, hops)?;
        let mut found = Vec::new();
        for (filled, bits) in [(Filled::Routes, 32), (Filled::Routes6, 128)] {
            let Some(table) = number(filled) else { continue };
            for ((key, length), route) in self.held(&known, table)? {
                let hop = route.value.first().and_then(|number| hops.get(&(*number, 16)).zip(Some(*number)));
                let Some((Entry { value, .. }, number)) = hop.filter(|_| length == bits) else { continue };
                let &[port, mac, ..] = &value[..] else { continue };
                let address = match filled {
                    Filled::Routes => IpAddr::from(Ipv4Addr::from(key as u32)),
                    _ => IpAddr::from(Ipv6Addr::from(key)),
                };
                let near = |port: &PortSettings| {
                    port.addresses.iter().any(|own| own.prefix().contains(address) && own.address != address)
                };
                if (port as usize).checked_sub(1).and_then(|at| settings.ports.get(at)).is_some_and(near) {
                    let [.., a, b, c, d, e, f] = mac.to_be_bytes();
                    let neighbour = Neighbour { port: port as u16, address };
                    found.push(HeldNextHop { number: number as u16, neighbour, mac: [a, b, c, d, e, f] });
                }
            }
        }
        // Of two with one number, the tables say that they have one Ethernet address.
        found.sort_by_key(|held| held.number);
        found.dedup_by_key(|held| held.number);
        Ok(found)
    }

    /// What brings tables from what they hold to what is `wanted`.
    ///
    /// # Errors
    /// The core does not tell what they hold.
    pub(super) fn difference(&self, wanted: &[(Filled, u32, Vec<Entry>)]) -> Result<Vec<Change>, String> {
        let known = locked(&self.program).clone();
        let (mut covers, mut changes) = (Covers::default(), Vec::new());
        for (filled, number, entries) in wanted {
            let Some(table) = known.program.tables.get(*number as usize) else { continue };
            entries.iter().for_each(|entry| covers.note(*number, table, entry));
            let mut held = self.held(&known, *number)?;
            for entry in entries {
                let there = held.remove(&joined(table, &entry.key));
                if there.is_none_or(|there| there.value != entry.value) {
                    changes.push(Change { table: *filled, entry: entry.clone(), insert: true });
                }
            }
            held.retain(|key, _| !covers.covers(*number, table, *key));
            let gone = held.into_values().map(|entry| Change { table: *filled, entry, insert: false });
            changes.extend(gone);
        }
        *locked(&self.covers) = covers;
        // What goes makes room.
        changes.sort_by_key(|change| change.insert);
        Ok(changes)
    }

    /// What a table holds, by the bits of its keys and how many are given.
    fn held(&self, known: &Known, table: u32) -> Result<BTreeMap<(u128, u8), Entry>, String> {
        let number = known.schema.generation;
        let declared = known.program.tables.get(table as usize).ok_or("there is no such table")?;
        let (mut held, mut from) = (BTreeMap::new(), Some((0, 0)));
        while let Some(place) = from {
            let question = ControlQuestion::Entries { number, table, worker: 0, own: false, place };
            let page = match ask(&self.core, &question).map_err(|error| error.to_string())? {
                CoreAnswer::Entries(page) => page,
                CoreAnswer::Refused(why) => return Err(why),
                _ => return Err("the core answers something else".to_owned()),
            };
            for entry in page.entries.into_iter().map(entry_of) {
                held.insert(joined(declared, &entry.key), entry);
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
            let patience = left.as_millis().min(LONGEST_EXCHANGE.into()) as u16;
            self.exchange(Vec::new(), patience);
            thread::sleep(OTHERS);
        }
    }

    fn exchange(&self, frames: Vec<LinkFrame>, patience: u16) {
        // Where the core is gone, this process ends.
        let Ok(answer) = ask(&self.core, &ControlQuestion::Exchange { frames, patience }) else { return };
        if let CoreAnswer::Exchanged { number, punted, .. } = answer {
            if number != locked(&self.program).schema.generation {
                self.is_stale.store(true, Ordering::Relaxed);
            }
            let packet = |PuntedPacket { reason, port, bytes }: PuntedPacket| {
                (Arc::from(reason), Packet { port, bytes, virtio: VirtioHeader::NONE })
            };
            locked(&self.told).extend(punted.into_iter().map(packet));
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
            match ask(&self.core, &question) {
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

    /// Tells the operator once of each reason why the core refuses changes.
    fn say(&self, why: String) {
        if locked(&self.said).insert(why.clone()) {
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
            let translated = locked(&self.covers).translate(*number, table, change);
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
        refused.into_iter().collect()
    }

    fn send(&self, frames: Vec<Injected>) {
        let short = frames.into_iter().filter(|frame| frame.bytes.len() <= LONGEST_LINK_FRAME);
        let frames: Vec<_> = short.map(|Injected { port, bytes, .. }| LinkFrame { port, bytes }).collect();
        frames.chunks(MOST_FRAMES).for_each(|some| self.exchange(some.to_vec(), 0));
    }
}

fn inserts(change: &EntryChange) -> bool {
    matches!(change.operation, EntryOperation::Insert(_))
}

fn entry_of(ShownEntry { key, value, priority }: ShownEntry) -> Entry {
    let part = |part| match part {
        ShownMatch::Any => Match::Any,
        ShownMatch::Exact(number) => Match::Exact(number),
        ShownMatch::Prefix(value, length) => Match::Prefix { value, length },
        ShownMatch::Masked(value, mask) => Match::Masked { value, mask },
        ShownMatch::Range(low, high) => Match::Range { low, high },
    };
    Entry { key: key.into_iter().map(part).collect(), value, priority }
}

/// The columns of a key, joined, and how many bits are given.
pub(super) fn joined(table: &Table, key: &[Match]) -> (u128, u8) {
    confined::joined(table, key)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
