//! What a process that answers for names keeps over its end: a file, and the thread that writes what packets
//! do.

mod redb_store;
#[cfg(test)]
mod tests;

use super::packets::Reached;
use super::view::{NameWish, StoreView};
use super::waypoint::{SharedWaypoint, locked};
use crate::config::names::NamesConfig;
use naming::BindingKey;
use naming::limits::QUARANTINE;
use naming::store::{
    self, Store, StoreChange, StoreError, StorePart, StoredBinding, StoredError, begin_life,
};
use redb_store::RedbStore;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often bindings are written: what was bound in so long a time before a kill is not known afterwards.
const WRITTEN: Duration = Duration::from_millis(200);

/// How often the clock is written where nothing else is.
const CLOCK: Duration = Duration::from_secs(10);

/// The time since 1970 in nanoseconds, by which lives of the process are compared.
pub(super) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What was stored before this life.
pub(super) struct Earlier {
    /// Larger than that of each life before.
    pub(super) epoch: u64,
    pub(super) names: Vec<NameWish>,
    /// Over, and in quarantine.
    pub(super) bindings: Vec<StoredBinding>,
}

/// The store of this process.
pub(super) struct Kept {
    store: Mutex<Box<dyn Store>>,
    epoch: u64,
    written: Mutex<Written>,
}

/// How far it is with what packets do.
#[derive(Default)]
struct Written {
    /// What they did until this moment of the program is written.
    until: Option<u64>,
    /// Changes that are being written, or were and could not.
    under_way: usize,
    error: Option<StoreError>,
}

impl Kept {
    /// Begins a life with the store of the file, if it names one.
    ///
    /// # Errors
    /// The store cannot be used, in words.
    pub(super) fn open(config: &NamesConfig) -> Result<Option<(Kept, Earlier)>, String> {
        let Some(path) = &config.store else { return Ok(None) };
        let about = |why: String| format!("{}: {why}", path.display());
        let store = RedbStore::open(path).map_err(|error| about(error.to_string()))?;
        Kept::begin(Box::new(store), wall()).map(Some).map_err(|error| about(error.to_string()))
    }

    fn begin(mut store: Box<dyn Store>, now: u64) -> Result<(Kept, Earlier), StoredError> {
        let (epoch, bindings) = begin_life(store.as_mut(), now)?;
        let names = store.all(StorePart::Names)?.into_iter();
        let damaged = |_| StoredError::Damaged(StorePart::Names);
        let names = names.map(|(_, value)| serde_json::from_slice(&value).map_err(damaged));
        let names = names.collect::<Result<_, _>>()?;
        Ok((
            Kept { store: Mutex::new(store), epoch, written: Mutex::default() },
            Earlier { epoch, names, bindings },
        ))
    }

    fn commit(&self, mut changes: Vec<StoreChange>) -> Result<(), StoreError> {
        changes.push(store::life(self.epoch, wall()));
        self.store.lock().unwrap_or_else(PoisonError::into_inner).commit(&changes)
    }

    /// Keeps a name that was added, or forgets it.
    ///
    /// # Errors
    /// It is not certain that it is kept.
    pub(super) fn name(&self, name: &str, wish: Option<&NameWish>) -> Result<(), StoreError> {
        let value =
            wish.map(serde_json::to_vec).transpose().map_err(|error| StoreError(error.to_string()))?;
        self.commit(vec![StoreChange { part: StorePart::Names, key: name.as_bytes().to_vec(), value }])
    }

    /// Writes what packets did, and what is left of before.
    fn turn(&self, waypoint: &SharedWaypoint, journal: &mut Journal, idle: &mut Duration, ends: bool) {
        // Whoever asks how far it is finds what was taken counted here.
        let mut written = self.written();
        let (reached, until) = locked(waypoint).take_reached();
        let changes = journal.changes(reached, wall());
        written.under_way = changes.iter().filter(|change| change.value.is_some()).count();
        drop(written);
        if changes.is_empty() && *idle < CLOCK && !ends {
            *idle += WRITTEN;
            self.written().until = until;
            return;
        }
        *idle = Duration::ZERO;
        let result = self.commit(changes.clone());
        let mut written = self.written();
        match result {
            Ok(()) => *written = Written { until, ..Written::default() },
            // A disk that is full now may have room later: what packets did is written with the next.
            Err(error) => {
                written.error = Some(error);
                journal.left(changes);
            }
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is at this moment of the program. `untaken` is asked how much nobody has taken to write it.
    pub(super) fn view(&self, untaken: impl FnOnce() -> usize, now: u64) -> StoreView {
        let written = self.written();
        let seconds = |until: u64| now.saturating_sub(until) as f64 / 1e9;
        StoreView {
            unwritten: (written.under_way + untaken()) as u64,
            written_seconds: written.until.map(seconds),
            error: written.error.as_ref().map(|error| error.0.clone()),
        }
    }

    /// Writes what packets do until `ended` is true.
    pub(super) fn follow(&self, waypoint: &SharedWaypoint, earlier: &[StoredBinding], ended: &AtomicBool) {
        let mut journal = Journal::default();
        let now = wall();
        earlier.iter().for_each(|one| journal.over(one.key, now.saturating_sub(one.ago)));
        let mut idle = Duration::ZERO;
        loop {
            let ends = ended.load(Ordering::SeqCst);
            self.turn(waypoint, &mut journal, &mut idle, ends);
            if ends {
                return;
            }
            thread::sleep(WRITTEN);
        }
    }
}

/// What is to be written of bindings, and what is to be forgotten.
#[derive(Default)]
struct Journal {
    /// When bindings ended that are stored as over.
    over: HashMap<BindingKey, u64>,
    /// The same in order.
    forgotten: VecDeque<(u64, BindingKey)>,
    /// What could not be written: of each binding the last change.
    unwritten: BTreeMap<Vec<u8>, StoreChange>,
}

impl Journal {
    fn over(&mut self, key: BindingKey, ended: u64) {
        self.over.insert(key, ended);
        self.forgotten.push_back((ended, key));
    }

    /// What is to be written, one change for each binding.
    fn changes(&mut self, reached: Vec<Reached>, now: u64) -> Vec<StoreChange> {
        let mut changes = std::mem::take(&mut self.unwritten);
        let mut change = |one: StoreChange| drop(changes.insert(one.key.clone(), one));
        for Reached { key, target, quarantined } in reached {
            if quarantined {
                self.over(key, now);
            } else {
                self.over.remove(&key);
            }
            change(store::binding(&key, target.peer, target.host, if quarantined { now } else { 0 }));
        }
        while let Some(&(ended, key)) = self.forgotten.front() {
            if ended.saturating_add(QUARANTINE) > now {
                break;
            }
            self.forgotten.pop_front();
            // It may have begun or ended once more.
            if self.over.get(&key) == Some(&ended) {
                self.over.remove(&key);
                change(store::no_binding(&key));
            }
        }
        changes.into_values().collect()
    }

    /// These could not be written. What is to be forgotten may stay in the store: the next life forgets it,
    /// and what is left here is never more than the bindings that are live or in quarantine.
    fn left(&mut self, changes: Vec<StoreChange>) {
        let kept = changes.into_iter().filter(|change| change.value.is_some());
        self.unwritten = kept.map(|change| (change.key.clone(), change)).collect();
    }
}
