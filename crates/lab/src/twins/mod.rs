//! Programs written again by hand in Rust: the same work, the same tables, the same packet loop; what native
//! code is held against.
//!
//! A twin is a [`Backend`] like a compiled program, so receiving, accounting and timing are the same for
//! both. Each exists twice: called once a packet through a function pointer, as compiled code is, and inlined
//! into the loop over the batch, as the compiler of Rust likes it best.

mod firewall;
mod mac_switch;

pub use firewall::Firewall;
pub use mac_switch::MacSwitch;

use exec::native::{PREFETCH_DISTANCE, prefetch};
use exec::state::handover::Handover;
use exec::{
    AsyncBackend, Backend, BackendKind, BuiltTable, CountedPart, EntryCount, EntryError, EntryPlace, Inspect,
    OnDevice, Outputs, ProgramControl, Statistics, TableDraft, TableReport,
};
use ir::{Entry, Match, Program};
use packet::{Batch, Verdict};
use std::any::Any;
use tables::exact::{Evict, Exact, ExactSpec, ExactTable, Table1};

/// What a twin does with one packet.
pub trait Work: Send {
    /// The verdict on a frame that came in by `port` at `now`, in nanoseconds.
    fn packet(&mut self, frame: &[u8], port: u16, now: u64) -> Verdict;
    /// Its table.
    fn hosts(&mut self) -> &mut Table1;
}

/// How work is called.
type Call<W> = fn(&mut W, &[u8], u16, u64) -> Verdict;

/// A twin that is called through a pointer, once a packet.
pub struct Pointed<W> {
    state: State<W>,
    call: Call<W>,
}

/// A twin whose work is part of the loop over the batch.
pub struct Inlined<W> {
    state: State<W>,
}

struct State<W> {
    work: W,
    now: u64,
    table: String,
}

impl<W: Work> Pointed<W> {
    /// A twin of the program.
    pub fn new(work: W, program: &Program) -> Pointed<W> {
        // What the pointer leads to is hidden, or the compiler would inline it.
        Pointed { state: State::new(work, program), call: std::hint::black_box(W::packet as Call<W>) }
    }
}

impl<W: Work> Inlined<W> {
    /// A twin of the program.
    pub fn new(work: W, program: &Program) -> Inlined<W> {
        Inlined { state: State::new(work, program) }
    }
}

impl<W: Work> State<W> {
    fn new(work: W, program: &Program) -> State<W> {
        let table = program.tables.first().map(|table| table.name.clone()).unwrap_or_default();
        State { work, now: 0, table }
    }

    #[inline(always)]
    fn batch(&mut self, memory: &[u8], batch: &mut Batch, call: impl Fn(&mut W, &[u8], u16, u64) -> Verdict) {
        for index in 0..PREFETCH_DISTANCE.min(batch.len) {
            prefetch(memory, batch, index);
        }
        for index in 0..batch.len.min(packet::BATCH) {
            self.now = self.now.max(batch.time[index]);
            let hosts = self.work.hosts();
            if self.now >= hosts.next_deadline() {
                hosts.expire(self.now);
            }
            prefetch(memory, batch, index + PREFETCH_DISTANCE);
            let frame = batch.frame[index] as usize;
            let frame = memory.get(frame..).and_then(|rest| rest.get(..batch.captured[index] as usize));
            batch.verdict[index] =
                call(&mut self.work, frame.unwrap_or_default(), batch.port[index], self.now);
        }
    }

    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        self.work.hosts().expire(self.now);
    }
}

/// What both ways to call a twin have in common.
macro_rules! backend {
    ($twin:ident, |$self:ident| $call:expr) => {
        impl<W: Work + TableView + 'static> Backend for $twin<W> {
            fn run(&mut self, memory: &mut [u8], batch: &mut Batch, _: &mut Outputs) {
                let $self = &*self;
                let call = $call;
                self.state.batch(memory, batch, call);
            }

            fn advance(&mut self, now: u64, _: &mut Outputs) {
                self.state.advance(now);
            }

            fn due(&self) -> Option<u64> {
                None
            }

            fn asynchronous(&mut self) -> Option<&mut dyn AsyncBackend> {
                None
            }

            fn inspect(&mut self) -> Option<&mut dyn Inspect> {
                None
            }

            fn on_device(&self) -> Option<OnDevice> {
                None
            }

            fn control(&self) -> &(dyn ProgramControl + 'static) {
                &self.state
            }

            fn control_mut(&mut self) -> &mut (dyn ProgramControl + 'static) {
                &mut self.state
            }

            fn back_end(&self) -> BackendKind {
                BackendKind::Native
            }
        }
    };
}

/// Looking at a twin's table without changing it.
pub trait TableView {
    /// Its table.
    fn view(&self) -> &Table1;
}

/// A twin has one table and nothing else that counts.
impl<W: TableView> Statistics for State<W> {
    fn tables(&self) -> Vec<TableReport> {
        let statistics = self.work.view().statistics();
        vec![TableReport {
            name: self.table.clone(),
            entries: statistics.entries,
            inserts: statistics.inserts,
            moves: statistics.moves,
            evictions: statistics.evictions,
            expired: statistics.expired,
            refused: statistics.refused,
        }]
    }

    fn running_tables(&self) -> Vec<TableReport> {
        self.tables()
    }

    fn entries_held(&self, _: u32) -> u64 {
        self.work.view().statistics().entries
    }

    fn entries(&self, _: u32) -> Vec<(Entry, EntryCount)> {
        let wide = |words: &[u64]| words.iter().map(|&word| u128::from(word)).collect::<Vec<u128>>();
        let entries = self.work.view().entries();
        let entry = |held: &tables::exact::ExactEntry| Entry::exact(&wide(&held.key), &wide(&held.value));
        entries.iter().map(|held| (entry(held), EntryCount::default())).collect()
    }

    fn counted_part(&self, _: u32, _: EntryPlace, _: usize) -> CountedPart {
        (Vec::new(), None)
    }

    fn entry(&self, _: u32, _: &[Match], _: u32) -> Option<Entry> {
        None
    }

    fn table_draft(&self, _: u32) -> Option<TableDraft> {
        None
    }

    fn learned(&self, _: u32) -> Vec<Entry> {
        Vec::new()
    }

    fn members_learned(&self, _: u32) -> u64 {
        0
    }

    fn learned_members(&self, _: u32) -> Vec<(u32, Vec<u128>)> {
        Vec::new()
    }

    fn default_entry(&self, _: u32) -> Option<Vec<u128>> {
        None
    }

    fn members_part(&self, _: u32, _: u32, _: usize, _: usize) -> Vec<Vec<u128>> {
        Vec::new()
    }

    fn has_member(&self, _: u32, _: u32, _: &[u128]) -> bool {
        false
    }

    fn register(&self, _: u32) -> Vec<u64> {
        Vec::new()
    }

    fn counter(&self, _: u32) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn counter_part(&self, _: u32, _: usize, _: usize, _: &mut Vec<(u64, u64)>) {}

    fn events(&self) -> Vec<u64> {
        Vec::new()
    }

    fn lost_events(&self) -> u64 {
        0
    }
}

/// Nobody changes a twin from outside: every change is refused, and no other program takes over.
impl<W: TableView + 'static> ProgramControl for State<W> {
    fn insert(&mut self, _: u32, _: &Entry) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn learn(&mut self, _: u32, _: &Entry, _: u64) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn learn_for(&mut self, _: u32, _: &Entry, _: u64, _: u64) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn age_of(&self, _: u32, _: &[Match], _: u32) -> Option<u64> {
        None
    }

    fn learn_until(&mut self, _: u32, _: &Entry, _: u64, _: u64) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn put_back(&mut self, _: u32, _: &Entry, _: u64, _: u64) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn remove(&mut self, _: u32, _: &[Match], _: u32) -> bool {
        false
    }

    fn replace(&mut self, _: u32, _: Vec<Entry>) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn take_built(&mut self, _: u32, _: &mut BuiltTable) -> bool {
        false
    }

    fn set_default(&mut self, _: u32, _: Option<&[u128]>) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn join(&mut self, _: u32, _: u32, _: &[u128]) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn may_join(&self, _: u32, _: u32, _: &[u128]) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn leave(&mut self, _: u32, _: u32, _: &[u128]) -> bool {
        false
    }

    fn learn_member(&mut self, _: u32, _: u32, _: &[u128]) -> Result<(), EntryError> {
        Err(EntryError::Fixed)
    }

    fn touch(&mut self, _: u32, _: u64) {}

    fn exchange(&mut self, _: u32, _: &mut dyn ProgramControl, _: u32) -> bool {
        false
    }

    fn exchange_back(&mut self, _: u32, _: &mut dyn ProgramControl, _: u32) {}

    fn settle(&mut self, _: u32, _: &mut dyn ProgramControl, _: u32) {}

    fn handover(&mut self) -> Option<Handover<'_>> {
        None
    }

    fn finish(&mut self, _: u32) {}

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

backend!(Pointed, |twin| twin.call);
backend!(Inlined, |_twin| |work: &mut W, frame: &[u8], port: u16, now: u64| work.packet(frame, port, now));

/// The program's only table, made anew.
fn hosts(program: &Program, seed: u64) -> Result<Table1, String> {
    let [table] = &program.tables[..] else { return Err("the twin has exactly one table".into()) };
    let spec = ExactSpec {
        key_words: 1,
        value_words: 1,
        capacity: table.capacity as usize,
        idle: table.idle,
        age: table.age,
        lifetimes: table.lifetimes,
        evict: match table.evict {
            ir::Eviction::Lru => Evict::Lru,
            ir::Eviction::Refuse => Evict::Refuse,
        },
        seed,
    };
    match ExactTable::new(spec) {
        Ok(ExactTable::One(table)) => Ok(table),
        Ok(_) => Err("the twin's table has keys of one word".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The drop for a reason of the program.
fn dropped(program: &Program, reason: &str) -> Result<Verdict, String> {
    let index = program.reasons.iter().position(|known| known.name == reason);
    let index = index.and_then(|index| u16::try_from(index).ok());
    index
        .map(Verdict::drop)
        .ok_or_else(|| format!("the program has no reason {reason}, which its twin drops for"))
}
