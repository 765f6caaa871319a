//! What every store has to do, for one in memory and for that in a file, and what is left after an end at any
//! write.

use super::*;
use crate::names::waypoint::LocalWaypoint;
use ::redb::{Database, StorageBackend};
use naming::AddressPool;
use naming::store::{Stored, binding, life};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tables::generate::Random;

const SECOND: u64 = 1_000_000_000;

/// A store that forgets everything when the process ends.
#[derive(Clone, Default)]
struct Remembering(Arc<Mutex<Values>>);

type Values = BTreeMap<(StorePart, Vec<u8>), Vec<u8>>;

impl Store for Remembering {
    fn all(&self, part: StorePart) -> Result<Vec<Stored>, StoreError> {
        let all = self.0.lock().expect("no panic");
        let of_part = all.iter().filter(|((of, _), _)| *of == part);
        Ok(of_part.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&mut self, changes: &[StoreChange]) -> Result<(), StoreError> {
        let mut all = self.0.lock().expect("no panic");
        for StoreChange { part, key, value } in changes {
            match value {
                Some(value) => drop(all.insert((*part, key.clone()), value.clone())),
                None => drop(all.remove(&(*part, key.clone()))),
            }
        }
        Ok(())
    }
}

fn put(part: StorePart, key: &[u8], value: &[u8]) -> StoreChange {
    StoreChange { part, key: key.to_vec(), value: Some(value.to_vec()) }
}

fn random_changes(random: &mut Random) -> Vec<StoreChange> {
    let one = |random: &mut Random| {
        let part = StorePart::ALL[random.below(3) as usize];
        let key = vec![random.below(6) as u8; random.below(3) as usize];
        let value = (random.below(3) > 0).then(|| vec![random.below(256) as u8; random.below(400) as usize]);
        StoreChange { part, key, value }
    };
    let count = random.below(6);
    (0..count).map(|_| one(random)).collect()
}

/// What a store has to do. `open` opens the same store again, after the one before was dropped.
fn conforms(open: &dyn Fn() -> Box<dyn Store>) {
    let mut store = open();
    for part in StorePart::ALL {
        assert_eq!(store.all(part), Ok(Vec::new()));
    }
    // Parts are apart, keys in order, the empty key is one, and the last change of a key holds.
    let changes = [
        put(StorePart::Names, b"b", b"1"),
        put(StorePart::Bindings, b"b", b"2"),
        put(StorePart::Names, b"", b"3"),
        put(StorePart::Names, b"a", b""),
        put(StorePart::Names, b"b", b"4"),
        StoreChange { part: StorePart::Names, key: b"c".to_vec(), value: None },
    ];
    assert_eq!(store.commit(&changes), Ok(()));
    drop(store);
    let mut store = open();
    let pairs =
        |of: &[(&[u8], &[u8])]| of.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(store.all(StorePart::Names), Ok(pairs(&[(b"", b"3"), (b"a", b""), (b"b", b"4")])));
    assert_eq!(store.all(StorePart::Bindings), Ok(pairs(&[(b"b", b"2")])));
    assert_eq!(store.all(StorePart::Life), Ok(Vec::new()));
    // Random changes, with the store opened again in between, beside a map.
    let mut model = Remembering::default();
    for part in StorePart::ALL {
        for (key, value) in store.all(part).expect("it is read") {
            model.commit(&[put(part, &key, &value)]).expect("a map");
        }
    }
    let mut random = Random::new(1);
    for step in 0..200 {
        let changes = random_changes(&mut random);
        assert_eq!(store.commit(&changes), Ok(()));
        model.commit(&changes).expect("a map");
        if step % 20 == 0 {
            drop(store);
            store = open();
        }
        for part in StorePart::ALL {
            assert_eq!(store.all(part), model.all(part), "step {step}");
        }
    }
}

#[test]
fn every_store_keeps_what_was_committed() {
    let remembering = Remembering::default();
    conforms(&|| Box::new(remembering.clone()));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("names.store");
    conforms(&|| Box::new(RedbStore::open(&path).expect("it is opened")));
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    // A second process is refused, and so is what is no store.
    let open = RedbStore::open(&path).expect("it is opened");
    assert!(RedbStore::open(&path).is_err());
    drop(open);
    std::fs::write(&path, vec![7; 5_000]).expect("is written");
    assert!(RedbStore::open(&path).is_err());
}

/// A disk that ends in the middle of work: after so many operations everything fails.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    /// What is on it for certain.
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Writes, and new lengths, since then.
    unsynced: Vec<(u64, Option<Vec<u8>>)>,
    left: u64,
}

fn apply(bytes: &mut Vec<u8>, (at, data): &(u64, Option<Vec<u8>>)) {
    match data {
        None => bytes.resize(*at as usize, 0),
        Some(data) => {
            let end = *at as usize + data.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*at as usize..end].copy_from_slice(data);
        }
    }
}

impl Disk {
    fn operate(&self, change: (u64, Option<Vec<u8>>)) -> io::Result<()> {
        let mut disk = self.0.lock().expect("no panic");
        disk.left = disk.left.checked_sub(1).ok_or_else(|| io::Error::other("the power is off"))?;
        apply(&mut disk.now, &change);
        disk.unsynced.push(change);
        Ok(())
    }

    /// The disk after the power is back: some of the last writes are on it, in any order, and one in part.
    fn after(&self, random: &mut Random) -> Disk {
        let disk = self.0.lock().expect("no panic");
        let mut bytes = disk.synced.clone();
        for change in &disk.unsynced {
            let (at, data) = change;
            match random.below(3) {
                0 => apply(&mut bytes, change),
                1 => {
                    let part = data
                        .as_ref()
                        .map(|data| data[..random.below(data.len() as u64 + 1) as usize].to_vec());
                    apply(&mut bytes, &(*at, part));
                }
                // A longer file is longer also where nothing has been written.
                _ if data.is_none() => apply(&mut bytes, change),
                _ => {}
            }
        }
        let state = DiskState { synced: bytes.clone(), now: bytes, unsynced: Vec::new(), left: u64::MAX };
        Disk(Arc::new(Mutex::new(state)))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("no panic").now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.0.lock().expect("no panic");
        let from = offset as usize;
        let bytes = disk.now.get(from..from + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate((len, None))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.0.lock().expect("no panic");
        disk.left = disk.left.checked_sub(1).ok_or_else(|| io::Error::other("the power is off"))?;
        disk.synced = disk.now.clone();
        disk.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate((offset, Some(data.to_vec())))
    }
}

fn on(disk: &Disk) -> Result<RedbStore, StoreError> {
    let database = Database::builder().create_with_backend(disk.clone());
    RedbStore::with(database.map_err(|error| StoreError(error.to_string()))?)
}

/// However a machine ends, what was committed is there afterwards; of the last commit all or nothing.
#[test]
fn no_commit_is_lost_or_half_made_wherever_power_goes() {
    let mut random = Random::new(3);
    let (mut whole, mut cut) = (0, 0);
    for run in 0..300 {
        let disk = Disk(Arc::new(Mutex::new(DiskState { left: u64::MAX, ..DiskState::default() })));
        let mut model = Remembering::default();
        let mut store = on(&disk).expect("a new store");
        disk.0.lock().expect("no panic").left = random.below(100);
        let mut last = Vec::new();
        let commits = random.below(20);
        let ended = (0..commits).any(|_| {
            last = random_changes(&mut random);
            let failed = store.commit(&last).is_err();
            if !failed {
                model.commit(&last).expect("a map");
            }
            failed
        });
        drop(store);
        let store = on(&disk.after(&mut random)).expect("the store opens again");
        let found = StorePart::ALL.map(|part| store.all(part).expect("it is read"));
        let before = StorePart::ALL.map(|part| model.all(part).expect("a map"));
        model.commit(&last).expect("a map");
        let after = StorePart::ALL.map(|part| model.all(part).expect("a map"));
        assert!(found == before || (ended && found == after), "run {run}: {found:?}\n{before:?}\n{after:?}");
        *(if ended { &mut cut } else { &mut whole }) += 1;
    }
    assert!(cut > 100 && whole > 10, "{cut} were cut, {whole} were not");
}

fn key(last: u8) -> BindingKey {
    let service = naming::Service { protocol: 6, port: 443 };
    BindingKey { initiator: [203, 0, 113, last].into(), address: [198, 51, 100, 1].into(), service }
}

#[test]
fn each_life_has_a_larger_epoch_and_honours_what_ended_before() {
    let now = 1_000_000 * SECOND;
    let host = Ipv4Addr::new(10, 0, 0, 80);
    let mut store = Remembering::default();
    let (first, bindings) = begin_life(&mut store, now).expect("it is empty");
    assert_eq!((first, bindings), (now, Vec::new()));
    let written = now + 300 * SECOND;
    let ended = written - 50 * SECOND;
    let changes = [
        binding(&key(1), 7, host, ended),
        binding(&key(2), 7, host, 0),
        binding(&key(3), 7, host, written - QUARANTINE),
        life(first, written),
    ];
    store.commit(&changes).expect("a map");
    let (second, bindings) = begin_life(&mut store, written).expect("it is later");
    assert!(second > first);
    let of = |last, ago| StoredBinding { key: key(last), gateway: 7, host, ago };
    assert_eq!(bindings, [of(1, 50 * SECOND), of(2, 0)], "what had not ended ends with the life");
    // The next life honours the rest, and a binding that is over is forgotten.
    let later = written + 100 * SECOND;
    let (third, bindings) = begin_life(&mut store, later).expect("it is later");
    assert!(third > second);
    assert_eq!(bindings, [of(2, 100 * SECOND)]);
    assert_eq!(store.all(StorePart::Bindings).map(|all| all.len()), Ok(1));
    // Lives that begin at the same moment have different epochs.
    let (fourth, _) = begin_life(&mut store, later).expect("it is not earlier");
    assert!(fourth > third);
    let error = begin_life(&mut store, later - SECOND).expect_err("the clock went back");
    assert_eq!(error, StoredError::ClockBehind(1));
    let said = error.to_string();
    assert!(said.contains("1 s later than now") && said.contains("set the clock"), "{said}");
    store.commit(&[put(StorePart::Bindings, b"short", b"")]).expect("a map");
    let error = begin_life(&mut store, later).expect_err("it is damaged");
    assert_eq!(error, StoredError::Damaged(StorePart::Bindings));
}

#[test]
fn what_packets_do_is_written_once_and_forgotten_after_its_quarantine() {
    let mut journal = Journal::default();
    let target = crate::names::packets::Target { peer: 7, host: [10, 0, 0, 80].into() };
    let of = |last, quarantined| Reached { key: key(last), target, quarantined };
    let begun = journal.changes(vec![of(1, false)], 10 * SECOND);
    assert_eq!(begun, [binding(&key(1), 7, target.host, 0)]);
    let over = journal.changes(vec![of(1, true), of(2, true)], 20 * SECOND);
    assert_eq!(over, [1, 2].map(|last| binding(&key(last), 7, target.host, 20 * SECOND)));
    // The second one begins again, and ends later.
    journal.changes(vec![of(2, false)], 30 * SECOND);
    journal.changes(vec![of(2, true)], 40 * SECOND);
    assert_eq!(journal.changes(Vec::new(), 20 * SECOND + QUARANTINE - 1), []);
    assert_eq!(journal.changes(Vec::new(), 20 * SECOND + QUARANTINE), [store::no_binding(&key(1))]);
    assert_eq!(journal.changes(Vec::new(), 40 * SECOND + QUARANTINE), [store::no_binding(&key(2))]);
    assert!(journal.over.is_empty() && journal.forgotten.is_empty());
}

/// A store whose disk may be full.
struct Full(Remembering, Arc<AtomicBool>);

impl Store for Full {
    fn all(&self, part: StorePart) -> Result<Vec<Stored>, StoreError> {
        self.0.all(part)
    }

    fn commit(&mut self, changes: &[StoreChange]) -> Result<(), StoreError> {
        if self.1.load(Ordering::SeqCst) {
            Err(StoreError("no room".to_owned()))
        } else {
            self.0.commit(changes)
        }
    }
}

#[test]
fn what_is_not_written_is_told_until_it_is() {
    let full = Arc::new(AtomicBool::new(false));
    let held = Remembering::default();
    let (kept, _) = Kept::begin(Box::new(Full(held.clone(), full.clone())), SECOND).expect("it is empty");
    let pool = AddressPool { known: Vec::new(), unknown: vec![[198, 51, 100, 1].into()] };
    let waypoint = LocalWaypoint::new(1, pool, Arc::default()).expect("a pool");
    let waypoint = Arc::new(Mutex::new(waypoint));
    let (mut journal, mut idle) = (Journal::default(), Duration::ZERO);
    let view = |untaken, now| kept.view(|| untaken, now);
    assert_eq!(view(0, SECOND), StoreView { unwritten: 0, written_seconds: None, error: None });
    // Nothing has happened until a moment.
    locked(&waypoint).heeded_until(2 * SECOND);
    kept.turn(&waypoint, &mut journal, &mut idle, false);
    assert_eq!(view(3, 5 * SECOND), StoreView { unwritten: 3, written_seconds: Some(3.0), error: None });
    // Two bindings, and the disk is full.
    full.store(true, Ordering::SeqCst);
    let host = [10, 0, 0, 80].into();
    journal.left([1, 2].map(|last| binding(&key(last), 7, host, 0)).into());
    locked(&waypoint).heeded_until(6 * SECOND);
    kept.turn(&waypoint, &mut journal, &mut idle, false);
    let error = Some("no room".to_owned());
    assert_eq!(view(1, 7 * SECOND), StoreView { unwritten: 3, written_seconds: Some(5.0), error });
    full.store(false, Ordering::SeqCst);
    locked(&waypoint).heeded_until(8 * SECOND);
    kept.turn(&waypoint, &mut journal, &mut idle, false);
    assert_eq!(view(0, 8 * SECOND), StoreView { unwritten: 0, written_seconds: Some(0.0), error: None });
    assert_eq!(held.all(StorePart::Bindings).map(|all| all.len()), Ok(2));
}

#[test]
fn a_disk_that_stays_full_leaves_one_change_for_each_binding() {
    let mut journal = Journal::default();
    let target = crate::names::packets::Target { peer: 7, host: [10, 0, 0, 80].into() };
    for turn in 0..100 {
        let reached = Reached { key: key(1), target, quarantined: turn % 2 == 1 };
        let changes = journal.changes(vec![reached], turn * SECOND);
        assert_eq!(changes.len(), 1);
        journal.left(changes);
    }
    let over = journal.changes(Vec::new(), 99 * SECOND + QUARANTINE);
    assert_eq!(over, [store::no_binding(&key(1))]);
    journal.left(over);
    assert_eq!(journal.changes(Vec::new(), 200 * SECOND + QUARANTINE), []);
}
