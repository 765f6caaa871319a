//! What packets know of promises: the entries of the table that first packets are looked up in.
//!
//! ```text
//!  promise, displaced, time is over ──► which entries may differ ──► Waypoint::promised says what is true
//!                                                                       └──► entries to set and to remove
//! ```
//!
//! An entry is one service of an address for one initiator, a network or all. The table has a limit. Without
//! room the entries whose exclusive time is over go first, that which ended first before others: packets then
//! know less than the waypoint, and never more.

use crate::expectation::{Displaced, Initiators, Responder};
use crate::limits::FORGOTTEN_AT_ONCE;
use crate::service::{Service, Services};
use crate::waypoint::Waypoint;
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;

/// What an entry is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathKey {
    /// The address of the pool.
    pub address: Ipv4Addr,
    /// The protocol and port there.
    pub service: Service,
    /// Whose packets it is for.
    pub initiators: Initiators,
}

/// What a waypoint has promised for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// Where packets go.
    pub responder: Responder,
    /// Until then nobody else may have the slot.
    pub exclusive_until: u64,
    /// Until then first packets are let through.
    pub until: u64,
}

/// A change of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Packets of this key go to this responder, whatever was there before.
    Set(PathKey, Responder),
    /// Packets of this key go nowhere.
    Remove(PathKey),
}

/// There is no room for a promise: all entries are in their exclusive time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

#[derive(Clone, Copy, Debug)]
struct Held {
    entry: PathEntry,
    number: u64,
}

/// The entries that packets know at this time.
#[derive(Debug, Default)]
pub struct PathEntries {
    most: usize,
    held: HashMap<PathKey, Held>,
    /// By the end of their time; the number makes each one different.
    ends: BTreeMap<(u64, u64), PathKey>,
    /// By the end of their exclusive time.
    shared_from: BTreeMap<(u64, u64), PathKey>,
    next: u64,
}

impl PathEntries {
    /// None yet, and never more than `most`.
    pub fn new(most: usize) -> PathEntries {
        PathEntries { most, ..PathEntries::default() }
    }

    /// Changes how many there may be. What is too much goes when there is a new promise.
    pub fn resize(&mut self, most: usize) {
        self.most = most;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&PathKey, Responder)> {
        self.held.iter().map(|(key, held)| (key, held.entry.responder))
    }

    /// Packets do not know this entry, although it was to be set.
    pub fn lost(&mut self, key: &PathKey) {
        if let Some(held) = self.held.remove(key) {
            self.unlist(&held);
        }
    }

    fn unlist(&mut self, held: &Held) {
        self.ends.remove(&(held.entry.until, held.number));
        self.shared_from.remove(&(held.entry.exclusive_until, held.number));
    }

    /// Appends what the last promise of a waypoint changes: of these services, for these initiators, at this
    /// address, and of what had to go for it.
    ///
    /// # Errors
    ///
    /// There is no room. What has been appended by then holds.
    pub fn follow(
        &mut self,
        waypoint: &Waypoint,
        promised: (Ipv4Addr, &Services, Initiators),
        now: u64,
        changes: &mut Vec<PathChange>,
    ) -> Result<(), NoRoom> {
        self.withdraw(waypoint, waypoint.displaced(), now, changes);
        let (address, services, initiators) = promised;
        for service in services.iter() {
            self.refresh(waypoint, PathKey { address, service, initiators }, now, changes)?;
        }
        Ok(())
    }

    /// Appends what changes because these promises hold no more.
    pub fn withdraw(
        &mut self,
        waypoint: &Waypoint,
        gone: &[Displaced],
        now: u64,
        changes: &mut Vec<PathChange>,
    ) {
        for Displaced { address, ask } in gone {
            for service in ask.services.iter() {
                let key = PathKey { address: *address, service, initiators: ask.initiators };
                self.check(waypoint, key, now, changes);
            }
        }
    }

    /// Appends what has to go because its time is over, some at a time. Says when the next is due.
    pub fn expire(&mut self, waypoint: &Waypoint, now: u64, changes: &mut Vec<PathChange>) -> Option<u64> {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let (&(until, number), &key) = self.ends.first_key_value()?;
            if until > now {
                return Some(until);
            }
            // It is noted again if another promise is behind it.
            self.ends.remove(&(until, number));
            self.check(waypoint, key, now, changes);
        }
        Some(now)
    }

    /// Another promise may be behind the one that was told; what was not told stays so.
    fn check(&mut self, waypoint: &Waypoint, key: PathKey, now: u64, changes: &mut Vec<PathChange>) {
        if self.held.contains_key(&key) {
            // What takes its place takes no more room.
            let _ = self.refresh(waypoint, key, now, changes);
        }
    }

    fn refresh(
        &mut self,
        waypoint: &Waypoint,
        key: PathKey,
        now: u64,
        changes: &mut Vec<PathChange>,
    ) -> Result<(), NoRoom> {
        let Some(entry) = waypoint.promised(&key, now) else {
            if self.held.contains_key(&key) {
                self.forget(&key, changes);
            }
            return Ok(());
        };
        if self.held.len() >= self.most && !self.held.contains_key(&key) {
            self.make_room(now, changes)?;
        }
        let number = self.next;
        self.next += 1;
        let before = self.held.insert(key, Held { entry, number });
        if let Some(before) = &before {
            self.unlist(before);
        }
        self.ends.insert((entry.until, number), key);
        self.shared_from.insert((entry.exclusive_until, number), key);
        if before.is_none_or(|before| before.entry.responder != entry.responder) {
            changes.push(PathChange::Set(key, entry.responder));
        }
        Ok(())
    }

    fn make_room(&mut self, now: u64, changes: &mut Vec<PathChange>) -> Result<(), NoRoom> {
        while self.held.len() >= self.most {
            let (&(exclusive_until, _), &first) = self.shared_from.first_key_value().ok_or(NoRoom)?;
            if exclusive_until > now {
                return Err(NoRoom);
            }
            self.forget(&first, changes);
        }
        Ok(())
    }

    fn forget(&mut self, key: &PathKey, changes: &mut Vec<PathChange>) {
        self.lost(key);
        changes.push(PathChange::Remove(*key));
    }
}
