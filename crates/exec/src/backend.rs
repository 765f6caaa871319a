//! What the engine asks of a loaded program: it runs batches ([`Backend`]) and shows how ([`Inspect`]), tells
//! what it holds and has counted ([`Statistics`]), and lets its tables and groups be changed
//! ([`ProgramControl`]).

use crate::errors::EntryError;
use crate::interpret::Observer;
use crate::native::{Draft, Measured};
use crate::outputs::Outputs;
use crate::reports::{BackendKind, EntryCount, EntryPlace, TableReport};
use crate::stages::StageClock;
use crate::state::handover::Handover;
use lang::ir::{Entry, Match, Program};
use packet::batch::{BATCH, Batch};
use std::any::Any;
use std::ops::{Deref, DerefMut};

/// How packets of a program on a device went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTally {
    /// Finished by the device.
    pub device: u64,
    /// Run by the host since their way left the device's.
    pub again: u64,
    /// Run by the host since what they asked for had changed: by an earlier packet, from outside, or by time.
    pub changed: u64,
    /// Run by the host alone: the device was not asked, or was given up.
    pub host: u64,
    /// Those of them that the device had when it was given up.
    pub taken_back: u64,
    /// How many times packets were handed to the device.
    pub handed: u64,
}

/// A program's way on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDevice {
    /// The device's name.
    pub name: String,
    /// How packets went.
    pub tally: DeviceTally,
    /// What made the device be given up.
    pub failure: Option<String>,
}

/// How many packets an asynchronous back end can have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueDepth {
    /// Packets of one device batch; at least 1.
    pub packets: usize,
    /// Device batches in flight.
    pub device_batches: usize,
}

impl QueueDepth {
    /// One batch in flight.
    pub const BATCH: QueueDepth = QueueDepth { packets: BATCH, device_batches: 1 };
}

/// What an asynchronous back end has done with a device batch that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The device batch is in flight.
    Accepted,
    /// The back end takes it once all that is in flight has been run.
    Busy,
    /// The host is to run it: no submission, only [`run`](Backend::run).
    Refused,
}

/// A back end that takes packets before they are run, such as a device that needs time for them. A submission
/// changes nothing that can be seen: batches in flight are [run](Backend::run) later, in the same order, and
/// have their outcome then.
pub trait AsyncBackend {
    /// How much can be in flight.
    fn depth(&self) -> QueueDepth;

    /// Submits a device batch. Its packets will be run behind all that is in flight, in this order. Where
    /// packets run without a submission, nothing behind them may be submitted before they have been run.
    fn submit(&mut self, memory: &[u8], batches: &[Batch]) -> SubmitOutcome;

    /// Whether the `nth` device batch in flight, counted from 0, can be run without waiting once those before
    /// it have been run. Also where nothing is in flight.
    fn is_complete(&mut self, nth: usize) -> bool;

    /// How many parts of what is in flight it works on in parallel; at least 1.
    fn workers(&self) -> usize;
}

/// A back end that shows how it runs packets: step by step, or what each stage costs. Tables and outcome are
/// those of [`Backend::run`].
pub trait Inspect {
    /// Runs a batch step by step in the interpreter, and shows every step to `observer`. `program` and
    /// `ports` are those that the back end was loaded with.
    fn run_observed(
        &mut self,
        program: (&Program, u16),
        observer: &mut (dyn Observer + Send),
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    );

    /// The program's second variant, which measures its stages, as long as it is missing: it is to be
    /// compiled, by whichever thread, and then [adopted](Inspect::adopt). `None` where this execution needs
    /// none, has it, or was not [loaded](crate::load_measurable()) to be measured.
    fn draft(&self) -> Option<Draft>;

    /// Takes the second variant of its program; leaves that of any other.
    fn adopt(&mut self, measured: Measured);

    /// Runs a batch and puts down what each stage costs. `clock` is one for the program that the back end was
    /// loaded with. Says whether this execution can; otherwise nothing has happened.
    fn run_measured(
        &mut self,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool;
}

/// A loaded program that runs packets.
///
/// What the program holds is asked and changed through [`Backend::control`]. A back end that wraps another
/// one hands out the control of the inner one. `dyn Backend` dereferences to its control, so
/// `backend.tables()` asks the control.
pub trait Backend: Send {
    /// Runs every packet of the batch in order and writes its verdict into the batch. `memory` holds the
    /// frames the batch points into.
    ///
    /// Time is the larger of the last packet's time and this one's. Before each packet, entries and timers
    /// that are due by its time are handled in the order of their times; after each packet, the events it
    /// raised.
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs);

    /// The back end as an asynchronous one; `None` where it is none. After the first call, batches that were
    /// not submitted are run on the host at once.
    fn asynchronous(&mut self) -> Option<&mut dyn AsyncBackend>;

    /// The back end as one that shows how it runs packets; `None` where it cannot.
    fn inspect(&mut self) -> Option<&mut dyn Inspect>;

    /// Lets time pass to `now` without a packet: entries and timers that are due are handled.
    fn advance(&mut self, now: u64, outputs: &mut Outputs);

    /// When time is to be passed at the latest, should no packet come before: the time of whatever is due
    /// next, or an earlier one. `None` where nothing ever is.
    fn due(&self) -> Option<u64>;

    /// The device that packets are run on first. Only a back end with a device has one.
    fn on_device(&self) -> Option<OnDevice>;

    /// Which execution this is.
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

/// What a program holds and has counted.
pub trait Statistics {
    /// The state of every table, in order of declaration. It may look at all entries, so it is not asked
    /// between packets.
    fn tables(&self) -> Vec<TableReport>;

    /// As [`Statistics::tables`], between packets: in a time that does not grow with what tables hold.
    /// Entries that have ended and are still to be taken out of memory, a few before each packet, count as
    /// held and not yet as expired.
    fn running_tables(&self) -> Vec<TableReport>;

    /// The entries of a table as [`Statistics::running_tables`] counts them.
    fn entries_held(&self, table: u32) -> u64;

    /// Every entry of a table with the packets and bytes it was found for (zero where the table does not
    /// count): exact entries and prefixes sorted by key, rules and patterns in the order in which they are
    /// tried.
    fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)>;

    /// Entries of a table from a place on, `most` at most, and the place of the next ones, as long as there
    /// are any; it begins with the first place. A part takes as long as `most` says, wherever it begins. What
    /// is changed between two parts may be told twice or not at all.
    fn entries_part(&self, table: u32, from: EntryPlace, most: usize) -> (Vec<Entry>, Option<EntryPlace>);

    /// Every entry that packets made, in the order of [`entries`](Statistics::entries).
    fn learned(&self, table: u32) -> Vec<Entry>;

    /// How many members packets made; it looks at none.
    fn members_learned(&self, group: u32) -> u64;

    /// Every member that packets made: the index of its group and its columns, ascending.
    fn learned_members(&self, group: u32) -> Vec<(u32, Vec<u128>)>;

    /// The cells of a register.
    fn register(&self, register: u32) -> Vec<u64>;

    /// Packets and bytes of every cell of a counter.
    fn counter(&self, counter: u32) -> Vec<(u64, u64)>;

    /// Adds packets and bytes of the cells of a counter from `from` on, of `most` at most, to `into`.
    fn counter_part(&self, counter: u32, from: usize, most: usize, into: &mut Vec<(u64, u64)>);

    /// How often each event was raised, in order of declaration.
    fn events(&self) -> Vec<u64>;

    /// How many events were refused because too many were waiting.
    fn lost_events(&self) -> u64;
}

/// Changes of tables and groups from outside, and what another program takes over.
pub trait ProgramControl: Statistics {
    /// Puts in an entry that stays until it is removed, or gives the one with its key this value. Rules come
    /// behind those that are there, or behind those of the same priority.
    ///
    /// # Errors
    /// The entry does not suit the table, or there is no room; then nothing has changed.
    fn insert(&mut self, table: u32, entry: &Entry) -> Result<(), EntryError>;

    /// Puts in an entry as if a packet had made it at `now` (ns): it goes when its time is up.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert).
    fn learn(&mut self, table: u32, entry: &Entry, now: u64) -> Result<(), EntryError>;

    /// Takes out the entry with this key and priority; whether it was there.
    fn remove(&mut self, table: u32, key: &[Match], priority: u32) -> bool;

    /// Exchanges all entries of a table for these, at once.
    ///
    /// # Errors
    /// As for [`insert`](ProgramControl::insert); then nothing has changed.
    fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError>;

    /// Sets the entry that is found where no key fits, or with `None` removes it.
    ///
    /// # Errors
    /// The program declares and sets no default for this table, so none is looked for; or the columns are not
    /// the table's.
    fn set_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError>;

    /// Takes a member, one value a column, into a group (`index` is 0 where it is the only one), with weight
    /// 1; one that is there stays.
    ///
    /// # Errors
    /// There is no such group, it is full, or the member does not suit it: a multicast group takes only ports
    /// that exist.
    fn join(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError>;

    /// Takes a member out of a group; whether it was there.
    fn leave(&mut self, group: u32, index: u32, member: &[u128]) -> bool;

    /// Takes a member into a group as if a packet had made it.
    ///
    /// # Errors
    /// As for [`join`](ProgramControl::join).
    fn learn_member(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError>;

    /// Has memory given to a table that is soon to take so many entries from another back end, rather than
    /// when the first packets need it.
    fn touch(&mut self, table: u32, entries: u64);

    /// Exchanges a table, at once and however large, with one of the same shape in another back end, which is
    /// `theirs`, where both are kept in one way and hold only what packets made; says whether it did. Entries
    /// keep their times. No packet may be run before [`exchange_back`](ProgramControl::exchange_back) or
    /// [`settle`](ProgramControl::settle).
    fn exchange(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32) -> bool;

    /// Undoes an exchange.
    fn exchange_back(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32);

    /// What was exchanged stays so: entries live by the declaration of this table from now on, and what
    /// happens is counted from now on. What it holds counts as put in: also what has ended and is still to be
    /// taken out, which counts as expired then.
    fn settle(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32);

    /// What it remembers besides its tables, as another program takes it over; `None` where that is nothing.
    fn handover(&mut self) -> Option<Handover<'_>>;

    /// Takes out of a table at once what has ended in it and is still to be taken out, whatever that takes.
    fn finish(&mut self, table: u32);

    /// Itself, for [`exchange`](ProgramControl::exchange) to see whether it is of the same kind.
    fn as_any(&mut self) -> &mut dyn Any;
}
