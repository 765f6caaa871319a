//! Reports on a loaded program and its tables: plain data.

use ir::Entry;
use tables::lpm::Prefix;

/// The kinds of back ends that run on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// The interpreter of the IR: slow, and simple enough to be the reference.
    #[cfg(feature = "reference")]
    Interpreter,
    /// Bytecode over the fast tables, run by an interpreter without `unsafe`.
    Bytecode,
    /// Machine code made by Cranelift.
    #[cfg(feature = "native")]
    Native,
}

impl BackendKind {
    /// All that this build has, the reference first.
    pub const ALL: [BackendKind;
        1 + cfg!(feature = "reference") as usize + cfg!(feature = "native") as usize] = [
        #[cfg(feature = "reference")]
        BackendKind::Interpreter,
        BackendKind::Bytecode,
        #[cfg(feature = "native")]
        BackendKind::Native,
    ];

    /// The name, as options and reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "reference")]
            BackendKind::Interpreter => "interpreter",
            BackendKind::Bytecode => "bytecode",
            #[cfg(feature = "native")]
            BackendKind::Native => "native",
        }
    }
}

/// What an entry was found for; all zero where entries do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryCount {
    /// The packets whose lookups found it.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// When they did, if the table keeps that and one has found it.
    pub times: Option<HitTimes>,
}

impl EntryCount {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: EntryCount) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.times = match (self.times, other.times) {
            (Some(one), Some(other)) => {
                let (first, last) = (one.first.min(other.first), one.last.max(other.last));
                Some(HitTimes { first, last })
            }
            (one, other) => one.or(other),
        };
    }
}

/// When an entry was found, in the program's time (ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HitTimes {
    /// The first time.
    pub first: u64,
    /// The last time.
    pub last: u64,
}

/// A place in a table from which entries are listed; the default is the first place. Only the table knows
/// what it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPlace(pub(crate) Prefix);

impl Default for EntryPlace {
    fn default() -> EntryPlace {
        EntryPlace::at(0)
    }
}

impl EntryPlace {
    /// Two numbers that say the place, for whoever keeps it in another form.
    pub fn numbers(self) -> (u128, u8) {
        (self.0.bits, self.0.length)
    }

    /// The place that two numbers say. Numbers that no table gave lead to any place of it, or behind its end.
    pub fn of_numbers((bits, length): (u128, u8)) -> EntryPlace {
        EntryPlace(Prefix { bits, length })
    }

    /// A place that is a number.
    pub(crate) fn at(number: u64) -> EntryPlace {
        EntryPlace(Prefix { bits: number.into(), length: 0 })
    }
}

/// Entries of a table with what they counted, and the place of the next ones.
pub type CountedPart = (Vec<(Entry, EntryCount)>, Option<EntryPlace>);

/// The state of one table, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The name in its declaration.
    pub name: String,
    /// Entries that the table holds now. For a report between packets see
    /// [`Statistics::running_tables`](crate::Statistics::running_tables).
    pub entries: u64,
    /// New entries since the start.
    pub inserts: u64,
    /// Entries whose value changed.
    pub moves: u64,
    /// Entries that went because the table was full.
    pub evictions: u64,
    /// Entries that went because their time was up.
    pub expired: u64,
    /// New entries that were refused because the table was full.
    pub refused: u64,
}
