//! The interface between a loaded program and the engine: running batches ([`Backend`]), statistics
//! ([`Statistics`]), and changes of tables and groups by the control plane ([`ProgramControl`]).

use crate::errors::EntryError;
#[cfg(feature = "reference")]
use crate::inspect::Inspect;
use crate::outputs::Outputs;
use crate::reports::{BackendKind, CountedPart, EntryCount, EntryPlace, TableReport};
use crate::state::handover::Handover;
use ir::{Entry, Match};
use packet::batch::{BATCH, Batch};
use std::any::Any;
use std::ops::{Deref, DerefMut};

/// How many packets of a program the device ran, and how many the host ran instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTally {
    /// Packets that the device finished.
    pub device: u64,
    /// Packets that the host ran from the beginning because they came to a step that no device takes.
    pub again: u64,
    /// Packets that the host ran again because an entry that they had read changed meanwhile: by an earlier
    /// packet, by the control plane, or because it expired.
    pub changed: u64,
    /// Packets that only the host ran: they were not handed to the device, or the device was given up.
    pub host: u64,
    /// Those packets of `host` that were on the device when it was given up.
    pub taken_back: u64,
    /// The number of device batches handed to the device.
    pub handed: u64,
}

/// A report on a program that runs on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDevice {
    /// The device's name.
    pub name: String,
    /// How many packets ran where.
    pub tally: DeviceTally,
    /// Why the device was given up; `None` while it is in use.
    pub failure: Option<String>,
}

/// How much an asynchronous back end can have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    /// The largest number of packets in a device batch; at least 1.
    pub packets: usize,
    /// The largest number of device batches in flight.
    pub device_batches: usize,
}

impl QueueDepth {
    /// One batch in flight.
    pub const BATCH: QueueDepth = QueueDepth { packets: BATCH, device_batches: 1 };
}

/// The answer of an asynchronous back end to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The device batch is in flight.
    Accepted,
    /// The back end takes the device batch once everything in flight has been run.
    Busy,
    /// The host must run these packets by [`run`](Backend::run), without a submission.
    Refused,
}

/// A back end that takes packets before they are run, such as a device that needs time for them. A submission
/// has no visible effect: batches in flight are [run](Backend::run) later, in the same order, and take effect
/// then.
pub trait AsyncBackend {
    /// The most that can be in flight.
    fn depth(&self) -> QueueDepth;

    /// Submits a device batch. Its packets will be run after everything in flight, in this order. If packets
    /// are to run without a submission, no later packets may be submitted before these have been run.
    fn submit(&mut self, memory: &[u8], batches: &[Batch]) -> SubmitOutcome;

    /// Whether the `nth` device batch in flight, counted from 0, can be run without waiting once those before
    /// it have been run. Also `true` if nothing is in flight.
    fn is_complete(&mut self, nth: usize) -> bool;

    /// How many parts of the work in flight the back end does in parallel; at least 1.
    fn workers(&self) -> usize;
}

/// A loaded program that runs packets.
///
/// The state of the program is read and changed through [`Backend::control`]. A back end that wraps another
/// one returns the control of the inner one. `dyn Backend` dereferences to its control, so `backend.tables()`
/// asks the control.
pub trait Backend: Send {
    /// Runs every packet of the batch in order and writes its verdict into the batch. `memory` contains the
    /// frames of the batch.
    ///
    /// The program's time is the larger of the last packet's time and this one's. Before each packet, the
    /// back end handles entries and timers that are due by the packet's time, in the order of their times;
    /// after each packet, the events that the packet raised.
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs);

    /// This back end as an asynchronous one, if it is one. After the first call, batches that were not
    /// submitted are run on the host at once.
    fn asynchronous(&mut self) -> Option<&mut dyn AsyncBackend>;

    /// This back end as one that shows how it runs packets; `None` if it cannot.
    #[cfg(feature = "reference")]
    fn inspect(&mut self) -> Option<&mut dyn Inspect>;

    /// Lets time pass to `now` (ns) without a packet: handles entries and timers that are due.
    fn advance(&mut self, now: u64, outputs: &mut Outputs);

    /// The time (ns) by which [`advance`](Backend::advance) is to be called if no packet comes before: the
    /// time when something is due next, or an earlier one. `None` if nothing will ever be due.
    fn due(&self) -> Option<u64>;

    /// The report on the device of this back end; `None` for a back end without a device.
    fn on_device(&self) -> Option<OnDevice>;

    /// The kind of this back end.
    fn back_end(&self) -> BackendKind;

    /// What the program holds and has counted.
    fn control(&self) -> &(dyn ProgramControl + 'static);

    /// The same, to be changed between two batches.
    fn control_mut(&mut self) -> &mut (dyn ProgramControl + 'static);
}

impl Deref for dyn Backend + '_ {
    type Target = dyn ProgramControl;

    fn deref(&self) -> &Self::Target {
        self.control()
    }
}

impl DerefMut for dyn Backend + '_ {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.control_mut()
    }
}

/// Builds the entries of one table.
type BuildTable = dyn FnOnce(Vec<Entry>) -> Result<BuiltTable, EntryError> + Send;

/// What is needed to build a table anew: on any thread, as long as that takes.
pub struct TableDraft(pub(crate) Box<BuildTable>);

impl TableDraft {
    /// Builds the table with these entries, which stay until they are removed.
    ///
    /// # Errors
    /// An entry does not fit the table's columns, or there is no room.
    pub fn build(self, entries: Vec<Entry>) -> Result<BuiltTable, EntryError> {
        (self.0)(entries)
    }
}

/// A table that was built to take the place of another. It takes time to drop one with many entries.
pub struct BuiltTable(pub(crate) Box<dyn Any + Send>);

/// What a program holds and has counted.
pub trait Statistics {
    /// A report on every table, in order of declaration. This may look at all entries, so it is not called
    /// between packets.
    fn tables(&self) -> Vec<TableReport>;

    /// As [`Statistics::tables`], but for use between packets: the time does not grow with the number of
    /// entries. An expired entry counts as held until its memory is reclaimed (a few entries before each
    /// packet), and as expired from then on.
    fn running_tables(&self) -> Vec<TableReport>;

    /// The number of entries of a table, as [`Statistics::running_tables`] counts them.
    fn entries_held(&self, table: u32) -> u64;

    /// Every entry of a table with what it counted: exact entries and prefixes sorted by key, rules and
    /// patterns in the order of matching.
    fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)>;

    /// At most `most` entries of a table from the place `from` on, and the place of the next part; `None`
    /// after the last part. The first part begins at the default place. The time of a call grows with `most`
    /// only. An entry that is changed between two calls may be listed twice or not at all. Entries of an
    /// exact table move when others come and go, so any of them may be.
    fn entries_part(&self, table: u32, from: EntryPlace, most: usize) -> (Vec<Entry>, Option<EntryPlace>) {
        let (entries, next) = self.counted_part(table, from, most);
        (entries.into_iter().map(|(entry, _)| entry).collect(), next)
    }

    /// As [`Statistics::entries_part`], with what each entry counted.
    fn counted_part(&self, table: u32, from: EntryPlace, most: usize) -> CountedPart;

    /// The entry of a table with exactly this key and priority; `None` if there is none, or it has expired.
    /// The key suits the columns of the table.
    fn entry(&self, table: u32, key: &[Match], priority: u32) -> Option<Entry>;

    /// The columns of a table's default entry; `None` if there is none.
    fn default_entry(&self, table: u32) -> Option<Vec<u128>>;

    /// At most `most` members of a group, from this one on. The group and the index need not exist.
    fn members_part(&self, group: u32, index: u32, from: usize, most: usize) -> Vec<Vec<u128>>;

    /// Whether a group has a member with these columns. The group and the index need not exist.
    fn has_member(&self, group: u32, index: u32, member: &[u128]) -> bool;

    /// What is needed to build a table anew on another thread; `None` if the control plane cannot change the
    /// tables of this back end.
    fn table_draft(&self, table: u32) -> Option<TableDraft>;

    /// Every entry that packets made, in the order of [`entries`](Statistics::entries).
    fn learned(&self, table: u32) -> Vec<Entry>;

    /// How many members of a group packets made, without a look at each member.
    fn members_learned(&self, group: u32) -> u64;

    /// Every member that packets made: the index of its group and its columns, ascending.
    fn learned_members(&self, group: u32) -> Vec<(u32, Vec<u128>)>;

    /// The cells of a register.
    fn register(&self, register: u32) -> Vec<u64>;

    /// Packets and bytes of every cell of a counter.
    fn counter(&self, counter: u32) -> Vec<(u64, u64)>;

    /// Appends packets and bytes of at most `most` cells of a counter, from cell `from` on, to `into`.
    fn counter_part(&self, counter: u32, from: usize, most: usize, into: &mut Vec<(u64, u64)>);

    /// How often each event was raised, in order of declaration.
    fn events(&self) -> Vec<u64>;

    /// How many events were lost because too many were waiting.
    fn lost_events(&self) -> u64;
}

/// Changes of tables and groups by the control plane, and the takeover of state by another program.
pub trait ProgramControl: Statistics {
    /// Inserts an entry that stays until it is removed; an entry with the same key gets the new value. A new
    /// rule comes after the existing rules, or after those of the same priority.
    ///
    /// # Errors
    /// The entry does not fit the table's columns, or there is no room; then nothing has changed.
    fn insert(&mut self, table: u32, entry: &Entry) -> Result<(), EntryError>;

    /// Inserts an entry as if a packet had made it at `now` (ns): it expires when its time is up.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert).
    fn learn(&mut self, table: u32, entry: &Entry, now: u64) -> Result<(), EntryError>;

    /// As [`learn`](ProgramControl::learn), but the entry ends when `lifetime` (ns) is over at the latest. If
    /// it is learned once more, it lives as long as any other. An entry of an exact table that stays until it
    /// is removed still does.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert); the table has no `age`, or the lifetime is 0 or longer than
    /// that.
    fn learn_for(&mut self, table: u32, entry: &Entry, now: u64, lifetime: u64) -> Result<(), EntryError>;

    /// When the entry with this key and priority ends by the `age` of its table (ns), `u64::MAX` without
    /// `age`; `None` if it stays until it is removed, or is not there.
    fn age_of(&self, table: u32, key: &[Match], priority: u32) -> Option<u64>;

    /// As [`learn`](ProgramControl::learn), but the entry ends by its age at `ends` (ns) at the latest. An
    /// entry of an exact table that stays until it is removed still does.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert).
    fn learn_until(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError>;

    /// Makes an entry that is there one that packets made at `now` (ns), also if it would stay until it is
    /// removed; it ends by its age at `ends` at the latest. To undo a change of such an entry.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert).
    fn put_back(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError>;

    /// Removes the entry with this key and priority. Returns whether it was there.
    fn remove(&mut self, table: u32, key: &[Match], priority: u32) -> bool;

    /// Replaces all entries of a table by these, at once.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert); then nothing has changed.
    fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError>;

    /// Replaces all entries of a table by those that were built from its
    /// [draft](Statistics::table_draft), in the time of one operation; `built` has the old ones then. Returns
    /// whether that was done: not for a table whose entries hold items of a pool, since each item would have
    /// to be given back, and not for a draft of a table that is declared otherwise, or of another family of
    /// tables. Entries that have ended and are not reclaimed yet go without being counted as expired.
    fn take_built(&mut self, table: u32, built: &mut BuiltTable) -> bool;

    /// Sets the default entry of a table, or removes it with `None`.
    ///
    /// # Errors
    /// The program neither declares nor sets a default for this table, so lookups never use one; or the value
    /// does not fit the table's columns.
    fn set_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError>;

    /// Adds a member with weight 1 to a group; `member` has one value for each column, and `index` is 0 if
    /// the name stands for a single group. A member that is there already stays as it is.
    ///
    /// # Errors
    /// There is no such group, the group is full, or the member does not fit it: members of a multicast group
    /// are ports that exist.
    fn join(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError>;

    /// Whether a member can [join](ProgramControl::join); nothing changes.
    ///
    /// # Errors
    /// As for [`join`](ProgramControl::join).
    fn may_join(&self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError>;

    /// Removes a member from a group. Returns whether it was there.
    fn leave(&mut self, group: u32, index: u32, member: &[u128]) -> bool;

    /// Adds a member to a group as if a packet had made it.
    ///
    /// # Errors
    /// As for [`join`](ProgramControl::join).
    fn learn_member(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError>;

    /// Makes the system provide the memory of a table that will soon take over `entries` entries from another
    /// back end. Otherwise the first packets would wait for it.
    fn touch(&mut self, table: u32, entries: u64);

    /// Exchanges a table with the table `theirs` of another back end, at once and however large the tables
    /// are. Both tables must have the same shape and representation, and only entries that packets made.
    /// Returns whether the tables were exchanged. Entries keep their times. No packet may be run before
    /// [`exchange_back`](ProgramControl::exchange_back) or [`settle`](ProgramControl::settle).
    fn exchange(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32) -> bool;

    /// Undoes an exchange.
    fn exchange_back(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32);

    /// Makes an exchange final: from now on the declaration of this table says when entries expire, and its
    /// statistics begin anew. All entries in memory count as inserted, also expired ones; these count as
    /// expired when their memory is reclaimed.
    fn settle(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32);

    /// The state other than tables, for another program to take over; `None` if there is none.
    fn handover(&mut self) -> Option<Handover<'_>>;

    /// Reclaims the memory of all expired entries of a table at once, however long that takes.
    fn finish(&mut self, table: u32);

    /// This object, so that [`exchange`](ProgramControl::exchange) can test whether both have the same type.
    fn as_any(&mut self) -> &mut dyn Any;
}
