//! The tables of a program by kind, and the family of the fast ones.

mod ends;

use super::ending::learn_listed;
use super::matching::{PatternSearch, ProgramPatterns, ProgramPrefixes, ProgramRules};
use crate::errors::{EntryError, LoadError};
use crate::pack::{MAX_WORDS, Packing};
use crate::reports::{CountedPart, EntryCount, EntryPlace, TableReport};
use ir::{Entry, Match, TableKind};
use tables::deadlines::Deadlines;
use tables::exact::{Evict, Exact, ExactSpec, ExactSpecError, ExactStatistics, Learned};
use tables::lpm::{Lpm, LpmSpec, Prefix, Variant};
use tables::rules::{Rule, Rules, RulesBuildError, RulesSpec};

/// The most parts of a sweep of a table of rules at once.
const MOST_SWEEPS: u32 = 8;

/// A family of tables.
pub trait TableFamily: 'static {
    /// Exact tables.
    type Exact: Exact + Send;
    /// Tables with longest prefixes.
    type Prefixes: Lpm + Send;
    /// Tables of rules.
    type Rules: Rules + Send;
    /// Searches for patterns.
    type Patterns: PatternSearch + Send;
    /// Whether expired entries are removed at once, however long that takes: the reference does not defer
    /// anything.
    const ENDS_AT_ONCE: bool;

    /// An empty exact table.
    fn exact(spec: ExactSpec) -> Result<Self::Exact, ExactSpecError>;
    /// A table with longest prefixes, without duplicates.
    fn prefixes(
        spec: LpmSpec,
        prefixes: Vec<(Prefix, u32)>,
    ) -> Result<Self::Prefixes, tables::lpm::LpmBuildError>;
    /// A table of these rules: order, rule, value; the orders ascend.
    fn rules(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Self::Rules, RulesBuildError>;
}

/// The fast tables.
pub struct Fast;

impl TableFamily for Fast {
    type Exact = tables::exact::ExactTable;
    type Prefixes = tables::lpm::LpmTable;
    type Rules = tables::rules::RulesTable;
    type Patterns = tables::patterns::Scanner;
    const ENDS_AT_ONCE: bool = false;

    fn exact(spec: ExactSpec) -> Result<Self::Exact, ExactSpecError> {
        tables::exact::ExactTable::new(spec)
    }

    fn prefixes(
        spec: LpmSpec,
        prefixes: Vec<(Prefix, u32)>,
    ) -> Result<Self::Prefixes, tables::lpm::LpmBuildError> {
        tables::lpm::LpmTable::build(spec, Variant::Fast, prefixes)
    }

    fn rules(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Self::Rules, RulesBuildError> {
        tables::rules::RulesTable::build(spec, rules)
    }
}

/// A table whose capacity is this many times what is needed gets its memory little by little, when it is
/// used.
const SPARSE: u64 = 64;

/// The kind of a table of the program, and its number among the tables of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablePlace {
    /// Among the exact tables.
    Exact(usize),
    /// Among those with longest prefixes.
    Prefixes(usize),
    /// Among those of rules.
    Rules(usize),
    /// Among those of patterns.
    Patterns(usize),
}

/// What does not change about a table.
#[derive(Clone, Debug)]
pub struct TableShape {
    /// The name in its declaration.
    pub name: String,
    /// How its key columns are packed: as tightly as possible for an exact table, each in words of its own
    /// for others.
    pub key: Packing,
    /// How its value columns are packed.
    pub value: Packing,
    /// Whether it refuses new keys when full.
    pub refuses: bool,
    /// The shortest time an entry lives after a learn, ns.
    pub lifetime: u64,
    /// The pool to which the value of a removed entry is given back.
    pub releases: Option<u32>,
    /// The event that an entry raises when its time is up.
    pub expires: Option<u32>,
}

/// Statistics of a table that is not exact.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryChanges {
    /// Entries that packets made.
    pub inserts: u64,
    /// Expired entries, without those that the search itself has counted; the sum of both is the total.
    pub expired: u64,
    /// Entries refused.
    pub refused: u64,
}

impl TableShape {
    fn new(table: &ir::Table) -> TableShape {
        let exact = table.kind == TableKind::Exact;
        TableShape {
            name: table.name.clone(),
            key: if exact { Packing::new(&table.keys) } else { Packing::apart(&table.keys) },
            value: Packing::new(&table.values),
            refuses: table.evict == ir::Eviction::Refuse,
            lifetime: table.idle.unwrap_or(u64::MAX).min(table.age.unwrap_or(u64::MAX)),
            releases: table.releases,
            expires: table.expires,
        }
    }

    /// An entry of an exact table in columns.
    fn entry(&self, held: &tables::exact::ExactEntry) -> Entry {
        Entry::exact(&self.key.unpack(&held.key), &self.value.unpack(&held.value))
    }
}

/// All tables of a program.
pub struct TableSet<F: TableFamily> {
    /// Exact tables.
    pub exact: Vec<F::Exact>,
    /// Tables with longest prefixes.
    pub prefixes: Vec<ProgramPrefixes<F::Prefixes>>,
    /// Tables of rules.
    pub rules: Vec<ProgramRules<F::Rules>>,
    /// Tables of patterns.
    pub patterns: Vec<ProgramPatterns<F::Patterns>>,
    /// The place of each table of the program.
    pub places: Vec<TablePlace>,
    /// What does not change about each table of the program.
    pub shapes: Vec<TableShape>,
    /// Statistics of each table of the program that is not exact.
    changes: Vec<EntryChanges>,
    /// Each table of the program as it is declared, without entries.
    pub declared: Vec<ir::Table>,
    /// For each table, whether it has ever held an entry that no packet made.
    fixed: Vec<bool>,
    /// The statistics of each table when counting began.
    before: Vec<ExactStatistics>,
    /// For each table, how often its entries were changed otherwise than by learning, removing and expiry in
    /// an exact table.
    versions: Vec<u64>,
    /// For each exact table that raises an event when entries end, when they end.
    pub(super) deadlines: Vec<Option<Box<Deadlines>>>,
    seed: u64,
}

impl<F: TableFamily> TableSet<F> {
    /// The tables with the entries of the program.
    pub fn new(program: &ir::Program, seed: u64) -> Result<TableSet<F>, LoadError> {
        let mut set = TableSet {
            exact: Vec::new(),
            prefixes: Vec::new(),
            rules: Vec::new(),
            patterns: Vec::new(),
            places: Vec::new(),
            shapes: Vec::new(),
            changes: vec![EntryChanges::default(); program.tables.len()],
            declared: Vec::new(),
            fixed: program.tables.iter().map(|table| !table.entries.is_empty()).collect(),
            before: vec![ExactStatistics::default(); program.tables.len()],
            versions: vec![0; program.tables.len()],
            deadlines: Vec::new(),
            seed,
        };
        for table in &program.tables {
            let shape = TableShape::new(table);
            if let Some(error) = LoadError::too_wide(table, shape.key.words, shape.value.words) {
                return Err(error);
            }
            if table.entries.len() > table.capacity as usize {
                let capacity = table.capacity;
                return Err(LoadError::TooManyEntries { table: table.name.clone(), capacity });
            }
            set.make(table, &shape)?;
            let list = |_| Deadlines::new(shape.key.words, table.capacity as usize, seed).map(Box::new);
            let listed = table.expires.filter(|_| table.kind == TableKind::Exact);
            let deadlines = listed.map(list).transpose();
            let refused = |cause| LoadError::Table { table: table.name.clone(), cause };
            set.deadlines.push(deadlines.map_err(refused)?);
            set.shapes.push(shape);
            let entries = Vec::new();
            set.declared.push(ir::Table { entries, ..table.clone() });
        }
        Ok(set)
    }

    fn make(&mut self, table: &ir::Table, shape: &TableShape) -> Result<(), LoadError> {
        let refused = |cause: String| LoadError::Refused { table: table.name.clone(), cause };
        let place = match table.kind {
            TableKind::Exact => {
                let seed = self.seed.wrapping_add(self.places.len() as u64);
                self.exact.push(exact::<F>(table, shape, seed)?);
                TablePlace::Exact(self.exact.len() - 1)
            }
            TableKind::Lpm => {
                let width = table.keys.iter().map(|column| u32::from(column.width)).sum::<u32>();
                let spec = LpmSpec { width: width as u8, capacity: table.capacity as usize };
                let empty = F::prefixes(spec, Vec::new()).map_err(|cause| refused(cause.to_string()))?;
                let mut prefixes = ProgramPrefixes::new(table, empty);
                if !table.entries.is_empty() {
                    prefixes
                        .fill(&table.entries, |listed| F::prefixes(spec, listed))
                        .map_err(|cause| refused(cause.to_string()))?;
                }
                self.prefixes.push(prefixes);
                TablePlace::Prefixes(self.prefixes.len() - 1)
            }
            TableKind::Rules { .. } => {
                let widths = table.keys.iter().map(|column| column.width).collect();
                let spec = RulesSpec { widths, capacity: table.capacity as usize };
                let empty = F::rules(&spec, Vec::new()).map_err(|cause| refused(cause.to_string()))?;
                let mut rules = ProgramRules::new(table, empty);
                rules
                    .fill(&table.entries, |listed| F::rules(&spec, listed))
                    .map_err(|cause| refused(cause.to_string()))?;
                self.rules.push(rules);
                TablePlace::Rules(self.rules.len() - 1)
            }
            TableKind::Patterns(_) => {
                self.patterns.push(ProgramPatterns::new(table)?);
                TablePlace::Patterns(self.patterns.len() - 1)
            }
        };
        self.places.push(place);
        Ok(())
    }

    /// Inserts an entry: of a packet at the time `now`, or of the control plane for ever.
    pub fn insert(&mut self, table: u32, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        let index = table as usize;
        self.note_change(table);
        let (shape, declared) = (&self.shapes[index], &self.declared[index]);
        if !declared.kind.takes(&declared.keys, &entry.key) || entry.value.len() != declared.values.len() {
            return Err(EntryError::Key);
        }
        let result = match self.places[index] {
            TablePlace::Exact(place) => {
                let key = entry.exact_key().ok_or(EntryError::Key)?;
                let (mut words, mut value) = ([0; MAX_WORDS], [0; MAX_WORDS]);
                shape.key.pack(key, &mut words[..shape.key.words]);
                shape.value.pack(entry.value.iter().copied(), &mut value[..shape.value.words]);
                let (words, value) = (&words[..shape.key.words], &value[..shape.value.words]);
                let taken = match now {
                    Some(now) => {
                        learn_listed(&mut self.exact[place], &mut self.deadlines[index], words, value, now)
                            != Learned::Refused
                    }
                    None => self.exact[place].insert_permanent(words, value),
                };
                taken.then_some(()).ok_or(EntryError::Full { capacity: declared.capacity as usize })
            }
            TablePlace::Prefixes(place) => self.prefixes[place].insert(entry, now),
            TablePlace::Rules(place) => self.rules[place].insert(entry, now),
            TablePlace::Patterns(place) => self.patterns[place].insert(entry),
        };
        self.fixed[index] |= now.is_none();
        if now.is_some() {
            match result {
                Ok(()) => self.changes[index].inserts += 1,
                Err(_) => self.changes[index].refused += 1,
            }
        }
        result
    }

    /// The value of a key in an exact table.
    pub fn exact_value(&self, table: u32, key: &[Match]) -> Option<Vec<u128>> {
        let TablePlace::Exact(place) = self.places[table as usize] else { return None };
        let shape = &self.shapes[table as usize];
        let entry = Entry { key: key.to_vec(), value: Vec::new(), priority: 0 };
        let mut words = [0; MAX_WORDS];
        shape.key.pack(entry.exact_key()?, &mut words[..shape.key.words]);
        self.exact[place].peek(&words[..shape.key.words]).map(|words| shape.value.unpack(words))
    }

    /// Removes the entry with this key and priority. Returns whether it was there.
    pub fn remove(&mut self, table: u32, key: &[Match], priority: u32) -> bool {
        let index = table as usize;
        self.note_change(table);
        match self.places[index] {
            TablePlace::Exact(place) => {
                let entry = Entry { key: key.to_vec(), value: Vec::new(), priority };
                let Some(key) = entry.exact_key() else { return false };
                let packing = &self.shapes[index].key;
                let mut words = [0; MAX_WORDS];
                packing.pack(key, &mut words[..packing.words]);
                let words = &words[..packing.words];
                self.deadlines[index].iter_mut().for_each(|deadlines| deadlines.forget(words));
                self.exact[place].remove(words)
            }
            TablePlace::Prefixes(place) => self.prefixes[place].remove(key),
            TablePlace::Rules(place) => self.rules[place].remove(key, priority),
            TablePlace::Patterns(place) => self.patterns[place].remove(key),
        }
    }

    /// Notes that other entries have taken the place of all entries of a table.
    pub(super) fn note_replaced(&mut self, table: u32) {
        self.note_change(table);
        let index = table as usize;
        (self.fixed[index], self.before[index]) = (true, ExactStatistics::default());
    }

    /// Counts entries of a table as expired that the table itself counts no more.
    pub(super) fn count_expired(&mut self, table: u32, expired: u64) {
        let changes = &mut self.changes[table as usize];
        changes.expired = changes.expired.wrapping_add(expired);
    }

    /// The number from which a table gets its hash function.
    pub(super) fn seed_of(&self, table: u32) -> u64 {
        self.seed.wrapping_add(table.into())
    }

    /// Exchanges a table with the table `theirs` of another set. Both tables must be declared in the same way
    /// and have only entries that packets made; exact tables may have another capacity and other times, see
    /// [`TableSet::settle`]. Returns whether the tables were exchanged.
    pub fn exchange(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) -> bool {
        let (index, of_other) = (table as usize, theirs as usize);
        if self.fixed[index] || other.fixed[of_other] {
            return false;
        }
        let counted =
            |set: &TableSet<F>, index: usize| (set.declared[index].counted, set.declared[index].times);
        let alike = self.lives(index) == other.lives(of_other);
        let exchanged = match (self.places[index], other.places[of_other]) {
            // What has ended and is not yet taken out would never raise its event.
            (TablePlace::Exact(_), TablePlace::Exact(_))
                if self.deadlines[index].is_some() && other.deadlines[of_other].is_none() =>
            {
                false
            }
            (TablePlace::Exact(ours), TablePlace::Exact(theirs)) => {
                let capacity = self.declared[index].capacity as usize;
                let has_room = |list: &mut Option<Box<Deadlines>>| {
                    list.as_mut().is_none_or(|list| list.reserve(capacity).is_ok())
                };
                alike
                    || self.exact[ours].prepare_for(&other.exact[theirs])
                        && has_room(&mut other.deadlines[of_other])
            }
            (TablePlace::Prefixes(_), TablePlace::Prefixes(_))
            | (TablePlace::Rules(_), TablePlace::Rules(_)) => {
                let raises = |set: &TableSet<F>, index: usize| set.shapes[index].expires.is_some();
                alike
                    && counted(self, index) == counted(other, of_other)
                    && raises(self, index) == raises(other, of_other)
            }
            _ => false,
        };
        if exchanged {
            self.exchange_back(table, other, theirs);
        }
        exchanged
    }

    /// Has the system provide the memory of an exact table, if so many entries need a good part of it.
    pub fn touch(&mut self, table: u32, entries: u64) {
        let index = table as usize;
        if let TablePlace::Exact(place) = self.places[index]
            && entries >= u64::from(self.declared[index].capacity) / SPARSE
        {
            self.exact[place].touch();
            self.deadlines[index].iter_mut().for_each(|deadlines| deadlines.touch());
        }
    }

    /// The parts of a declaration on which the life of an entry depends.
    fn lives(&self, index: usize) -> (u32, Option<u64>, Option<u64>, bool, ir::Eviction) {
        let ir::Table { capacity, idle, age, lifetimes, evict, .. } = self.declared[index];
        (capacity, idle, age, lifetimes, evict)
    }

    /// Exchanges two tables once more, which undoes the exchange.
    pub fn exchange_back(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) {
        self.note_change(table);
        other.note_change(theirs);
        let (index, of_other) = (table as usize, theirs as usize);
        match (self.places[index], other.places[of_other]) {
            (TablePlace::Exact(ours), TablePlace::Exact(theirs)) => {
                std::mem::swap(&mut self.exact[ours], &mut other.exact[theirs]);
            }
            (TablePlace::Prefixes(ours), TablePlace::Prefixes(theirs)) => {
                std::mem::swap(&mut self.prefixes[ours], &mut other.prefixes[theirs]);
            }
            (TablePlace::Rules(ours), TablePlace::Rules(theirs)) => {
                std::mem::swap(&mut self.rules[ours], &mut other.rules[theirs]);
            }
            _ => {}
        }
        self.exchange_deadlines(table, other, theirs);
        std::mem::swap(&mut self.before[index], &mut other.before[of_other]);
        std::mem::swap(&mut self.changes[index], &mut other.changes[of_other]);
    }

    /// Makes an exchange final: an exact table goes on with the capacity and the times of its own
    /// declaration, and statistics begin anew.
    pub fn settle(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) {
        let (index, of_other) = (table as usize, theirs as usize);
        if let (TablePlace::Exact(our), TablePlace::Exact(their)) =
            (self.places[index], other.places[of_other])
            && self.lives(index) != other.lives(of_other)
        {
            std::mem::swap(&mut self.exact[our], &mut other.exact[their]);
            self.exact[our].inherit(&mut other.exact[their]);
            // The list of the other table went over with it, but entries may end earlier by these times.
            let sooner = self.sooner(index, other, of_other);
            self.deadlines[index].iter_mut().for_each(|deadlines| deadlines.hasten(sooner));
        }
        self.count_anew(table);
    }

    /// Notes that the entries of a table may have changed.
    fn note_change(&mut self, table: u32) {
        self.versions[table as usize] += 1;
    }

    /// Numbers of which at least one changes whenever the entries of a table change.
    pub fn state_of(&self, table: u32) -> [u64; 6] {
        let version = self.versions[table as usize];
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let [held, inserts, moves, evictions, expired] = self.exact[place].version();
                [version, held, inserts, moves, evictions, expired]
            }
            TablePlace::Prefixes(place) => {
                let [expired, horizon] = self.prefixes[place].expiry().version();
                [version, expired, horizon, 0, 0, 0]
            }
            TablePlace::Rules(place) => {
                let [expired, horizon] = self.rules[place].expiry().version();
                [version, expired, horizon, 0, 0, 0]
            }
            TablePlace::Patterns(_) => [version, 0, 0, 0, 0, 0],
        }
    }

    /// Begins the statistics of a table anew, in the time of one operation. All entries in memory count as
    /// inserted, also expired ones; these count as expired when they are removed.
    fn count_anew(&mut self, table: u32) {
        let index = table as usize;
        if let TablePlace::Exact(place) = self.places[index] {
            let now = self.exact[place].running_statistics();
            let inserts = now.inserts.saturating_sub(now.entries);
            self.before[index] = ExactStatistics { inserts, ..now };
        } else {
            let expired = 0_u64.wrapping_sub(self.expired_others(index));
            self.changes[index] = EntryChanges { inserts: self.held(table), expired, refused: 0 };
        }
    }

    /// Moves some entries of exact tables to the places where they belong after a takeover, `times` times a
    /// few of each table, and takes out a part of what removed rules have left behind. Returns whether some
    /// are left.
    pub fn catch_up(&mut self, times: u32) -> bool {
        let mut left = false;
        for table in &mut self.exact {
            left |= (0..times.max(1)).all(|_| table.catch_up());
        }
        for table in &mut self.rules {
            left |= (0..times.clamp(1, MOST_SWEEPS)).all(|_| table.sweep());
        }
        left
    }

    /// Whether rules are removed that the search still has to be rid of.
    pub fn has_dead_rules(&self) -> bool {
        self.rules.iter().any(ProgramRules::has_dead)
    }

    /// Expires entries of tables other than exact ones, and removes as many of them as these steps allow.
    pub fn expire_others(&mut self, now: u64, steps: &mut u32) {
        let mut all = u32::MAX;
        let steps = if F::ENDS_AT_ONCE { &mut all } else { steps };
        self.prefixes.iter_mut().for_each(|table| table.expire(now, steps));
        self.rules.iter_mut().for_each(|table| table.expire(now, steps));
    }

    /// A report on every table, in order of declaration. An expired entry counts as expired and not as held,
    /// whether it is removed already or not; to know this, all entries are looked at.
    pub fn reports(&self) -> Vec<TableReport> {
        let report = |(index, report): (usize, TableReport)| {
            let left = self.left_to_expire(index);
            TableReport { entries: report.entries - left, expired: report.expired + left, ..report }
        };
        self.running_reports().into_iter().enumerate().map(report).collect()
    }

    /// The number of expired entries of a table that are not removed yet; this looks at entries.
    pub(super) fn left_to_expire(&self, index: usize) -> u64 {
        let left = match self.places[index] {
            TablePlace::Exact(place) => self.exact[place].left_to_expire(),
            TablePlace::Prefixes(place) => self.prefixes[place].expiry().left(),
            TablePlace::Rules(place) => self.rules[place].expiry().left(),
            TablePlace::Patterns(_) => 0,
        };
        left as u64
    }

    /// As [`TableSet::reports`], but without a look at entries: an expired entry counts as held until it is
    /// removed.
    pub fn running_reports(&self) -> Vec<TableReport> {
        (0..self.places.len()).map(|index| self.running_report(index)).collect()
    }

    fn running_report(&self, index: usize) -> TableReport {
        let name = self.shapes[index].name.clone();
        if let TablePlace::Exact(place) = self.places[index] {
            let (statistics, before) = (self.exact[place].running_statistics(), &self.before[index]);
            return TableReport {
                name,
                entries: statistics.entries,
                inserts: statistics.inserts - before.inserts,
                moves: statistics.moves - before.moves,
                evictions: statistics.evictions - before.evictions,
                expired: statistics.expired - before.expired,
                refused: statistics.refused - before.refused,
            };
        }
        let EntryChanges { inserts, expired, refused } = self.changes[index];
        let expired = expired.wrapping_add(self.expired_others(index));
        let entries = self.held(index as u32);
        TableReport { name, entries, inserts, moves: 0, evictions: 0, expired, refused }
    }

    /// The number of entries of a table in memory, also of expired ones.
    pub fn held(&self, table: u32) -> u64 {
        let held = match self.places[table as usize] {
            TablePlace::Exact(place) => self.exact[place].running_statistics().entries as usize,
            TablePlace::Prefixes(place) => self.prefixes[place].held(),
            TablePlace::Rules(place) => self.rules[place].held(),
            TablePlace::Patterns(place) => self.patterns[place].len(),
        };
        held as u64
    }

    /// The number of expired entries that were removed from a table other than an exact one since its entries
    /// were last exchanged.
    pub(super) fn expired_others(&self, index: usize) -> u64 {
        match self.places[index] {
            TablePlace::Prefixes(place) => self.prefixes[place].expiry().expired,
            TablePlace::Rules(place) => self.rules[place].expiry().expired,
            _ => 0,
        }
    }

    /// Every entry of a table that packets made.
    pub fn learned(&self, table: u32) -> Vec<Entry> {
        match self.places[table as usize] {
            // If no packet has made an entry, there is no need to look at the others.
            TablePlace::Exact(place) if self.exact[place].version()[1] == 0 => Vec::new(),
            TablePlace::Exact(place) => {
                let made = self.exact[place].learned();
                made.iter().map(|held| self.shapes[table as usize].entry(held)).collect()
            }
            TablePlace::Prefixes(place) => self.prefixes[place].learned(),
            TablePlace::Rules(place) => self.rules[place].learned(),
            TablePlace::Patterns(_) => Vec::new(),
        }
    }

    /// Every entry of a table with the packets and bytes for which it was found: exact entries and prefixes
    /// sorted by key, rules in the order of matching.
    pub fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)> {
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let entries = self.exact[place].entries();
                entries
                    .iter()
                    .map(|held| (self.shapes[table as usize].entry(held), EntryCount::default()))
                    .collect()
            }
            TablePlace::Prefixes(place) => self.prefixes[place].entries(),
            TablePlace::Rules(place) => self.rules[place].entries(),
            TablePlace::Patterns(place) => self.patterns[place].entries(),
        }
    }

    /// At most `most` entries of a table from a place on, with what they counted, and the place of the next
    /// part, if there is one.
    pub fn counted_part(&self, table: u32, from: EntryPlace, most: usize) -> CountedPart {
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let (held, next) = self.exact[place].entries_part(from.0.bits as usize, most);
                let shape = &self.shapes[table as usize];
                let entries = held.iter().map(|held| (shape.entry(held), EntryCount::default())).collect();
                (entries, next.map(|next| EntryPlace::at(next as u64)))
            }
            TablePlace::Prefixes(place) => self.prefixes[place].counted_part(from, most),
            TablePlace::Rules(place) => self.rules[place].counted_part(from, most),
            TablePlace::Patterns(place) => self.patterns[place].counted_part(from, most),
        }
    }
}

impl TableSet<Fast> {
    /// The bytes of a table with its present entries; `None` if the declaration alone determines them.
    fn allocated(&self, table: usize) -> Option<u64> {
        match self.places[table] {
            TablePlace::Exact(_) => None,
            TablePlace::Prefixes(place) => Some(self.prefixes[place].allocated()),
            TablePlace::Rules(place) => Some(self.rules[place].allocated()),
            TablePlace::Patterns(place) => Some(self.patterns[place].allocated()),
        }
    }
}

/// The bytes that each table of a program needs with the entries of the text, for one worker: each table is
/// made and measured, one after the other. `None` if the declaration alone determines the size.
///
/// # Errors
/// A table cannot be made.
pub fn filled(program: &ir::Program) -> Result<Vec<Option<u64>>, LoadError> {
    let bytes = |table: &ir::Table| {
        if table.kind == TableKind::Exact {
            return Ok(None);
        }
        let alone = ir::Program { tables: vec![table.clone()], ..ir::Program::default() };
        Ok(TableSet::<Fast>::new(&alone, 0)?.allocated(0))
    };
    program.tables.iter().map(bytes).collect()
}

/// An exact table with the entries of the program text.
fn exact<F: TableFamily>(table: &ir::Table, shape: &TableShape, seed: u64) -> Result<F::Exact, LoadError> {
    let spec = ExactSpec {
        key_words: shape.key.words,
        value_words: shape.value.words,
        capacity: table.capacity as usize,
        idle: table.idle,
        age: table.age,
        lifetimes: table.lifetimes,
        evict: if shape.refuses { Evict::Refuse } else { Evict::Lru },
        seed,
    };
    let mut made = F::exact(spec).map_err(|cause| LoadError::Table { table: table.name.clone(), cause })?;
    let (mut key, mut value) = ([0; MAX_WORDS], [0; MAX_WORDS]);
    let (key, value) = (&mut key[..shape.key.words], &mut value[..shape.value.words]);
    for entry in &table.entries {
        let columns = entry.exact_key().unwrap_or_default();
        shape.key.pack(columns, key);
        shape.value.pack(entry.value.iter().copied(), value);
        if !made.insert_permanent(key, value) {
            return Err(LoadError::TooManyEntries { table: table.name.clone(), capacity: table.capacity });
        }
    }
    Ok(made)
}
