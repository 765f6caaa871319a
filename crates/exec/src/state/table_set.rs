//! The tables of a program by kind, and the two families of them: the ordered models that judge, and the fast
//! ones.

use super::matching::{PatternSearch, ProgramPatterns, ProgramPrefixes, ProgramRules};
use crate::errors::{EntryError, LoadError};
use crate::pack::{MAX_WORDS, Packing};
use crate::reports::{EntryCount, EntryPlace, TableReport};
use lang::ir::{self, Entry, Match, TableKind};
use tables::exact::{Evict, Exact, ExactSpec, ExactSpecError, ExactStatistics, Learned};
use tables::lpm::{Lpm, LpmSpec, Prefix, Variant};
use tables::rules::{Rule, Rules, RulesBuildError, RulesSpec};

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
    /// Whether entries that have ended are taken out at once, whatever that takes: the judge does not put off
    /// anything.
    const ENDS_AT_ONCE: bool;

    /// An empty exact table.
    fn exact(spec: ExactSpec) -> Result<Self::Exact, ExactSpecError>;
    /// A table with longest prefixes, each of which is there once.
    fn prefixes(
        spec: LpmSpec,
        prefixes: Vec<(Prefix, u32)>,
    ) -> Result<Self::Prefixes, tables::lpm::LpmBuildError>;
    /// A table of these rules: order, rule, value; the orders ascend.
    fn rules(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Self::Rules, RulesBuildError>;
}

/// The models: slow and obviously right.
pub struct Reference;

impl TableFamily for Reference {
    type Exact = tables::exact::ExactModel;
    type Prefixes = tables::lpm::LpmModel;
    type Rules = tables::rules::Linear;
    type Patterns = tables::patterns::PatternsModel;
    const ENDS_AT_ONCE: bool = true;

    fn exact(spec: ExactSpec) -> Result<Self::Exact, ExactSpecError> {
        tables::exact::ExactModel::new(spec)
    }

    fn prefixes(
        spec: LpmSpec,
        prefixes: Vec<(Prefix, u32)>,
    ) -> Result<Self::Prefixes, tables::lpm::LpmBuildError> {
        let mut made = tables::lpm::LpmModel::new(spec)?;
        for (prefix, value) in prefixes {
            made.insert(prefix, value)?;
        }
        Ok(made)
    }

    fn rules(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Self::Rules, RulesBuildError> {
        tables::rules::Linear::build(spec, &rules)
    }
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

/// A table of so many times the capacity that is needed gets its memory as it is used.
const SPARSE: u64 = 64;

/// Where a table of the program lies: its kind, and its place among those of its kind.
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
    /// Its name.
    pub name: String,
    /// How its key columns are packed: of an exact table as tightly as possible, of others each in words of
    /// its own.
    pub key: Packing,
    /// How its value columns are packed.
    pub value: Packing,
    /// Whether it refuses new keys when full.
    pub refuses: bool,
    /// The shortest time an entry lives after a learn, ns.
    pub lifetime: u64,
    /// The pool that gets the value of an entry that goes.
    pub releases: Option<u32>,
}

/// What has happened to a table that is not exact.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryChanges {
    /// Entries that packets made.
    pub inserts: u64,
    /// Entries whose time was up, those that the search has counted set apart: a sum of both is what has
    /// happened.
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
    /// Where each table of the program lies.
    pub places: Vec<TablePlace>,
    /// What does not change about each table of the program.
    pub shapes: Vec<TableShape>,
    /// What has happened to each table of the program that is not exact.
    changes: Vec<EntryChanges>,
    /// Each table of the program as it is declared, without entries.
    pub declared: Vec<ir::Table>,
    /// Whether each table has ever held an entry that no packet made.
    fixed: Vec<bool>,
    /// What had happened to each table when counting began.
    before: Vec<ExactStatistics>,
    /// How often entries of each table were changed other than by learning, removing and ageing in an exact
    /// one.
    versions: Vec<u64>,
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
            seed,
        };
        for table in &program.tables {
            let shape = TableShape::new(table);
            for (what, words) in [("key", shape.key.words), ("value", shape.value.words)] {
                if words > MAX_WORDS {
                    return Err(LoadError::TooWide { table: table.name.clone(), what, words });
                }
            }
            if table.entries.len() > table.capacity as usize {
                let capacity = table.capacity;
                return Err(LoadError::TooManyEntries { table: table.name.clone(), capacity });
            }
            set.make(table, &shape)?;
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

    /// Puts in an entry: of a packet at this time, or of the control plane for ever.
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
                    Some(now) => self.exact[place].learn(words, value, now) != Learned::Refused,
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

    /// What an exact table holds for a key.
    pub fn exact_value(&self, table: u32, key: &[Match]) -> Option<Vec<u128>> {
        let TablePlace::Exact(place) = self.places[table as usize] else { return None };
        let shape = &self.shapes[table as usize];
        let entry = Entry { key: key.to_vec(), value: Vec::new(), priority: 0 };
        let mut words = [0; MAX_WORDS];
        shape.key.pack(entry.exact_key()?, &mut words[..shape.key.words]);
        self.exact[place].peek(&words[..shape.key.words]).map(|words| shape.value.unpack(words))
    }

    /// Takes out the entry with this key and priority; whether it was there.
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
                self.exact[place].remove(&words[..packing.words])
            }
            TablePlace::Prefixes(place) => self.prefixes[place].remove(key),
            TablePlace::Rules(place) => self.rules[place].remove(key, priority),
            TablePlace::Patterns(place) => self.patterns[place].remove(key),
        }
    }

    /// Exchanges all entries for these. On an error nothing has changed.
    pub fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        let index = table as usize;
        self.note_change(table);
        let declared = &self.declared[index];
        let suits = |entry: &Entry| {
            declared.kind.takes(&declared.keys, &entry.key) && entry.value.len() == declared.values.len()
        };
        if !entries.iter().all(suits) {
            return Err(EntryError::Key);
        }
        if entries.len() > declared.capacity as usize {
            return Err(EntryError::Full { capacity: declared.capacity as usize });
        }
        let program =
            ir::Program { tables: vec![ir::Table { entries, ..declared.clone() }], ..ir::Program::default() };
        let seed = self.seed.wrapping_add(index as u64);
        let mut fresh =
            TableSet::<F>::new(&program, seed).map_err(|cause| EntryError::Refused(cause.to_string()))?;
        (self.fixed[index], self.before[index]) = (true, ExactStatistics::default());
        let expired = self.expired_others(index) + self.left_to_expire(index);
        self.changes[index].expired = self.changes[index].expired.wrapping_add(expired);
        match self.places[index] {
            TablePlace::Exact(place) => self.exact[place] = fresh.exact.remove(0),
            TablePlace::Prefixes(place) => self.prefixes[place] = fresh.prefixes.remove(0),
            TablePlace::Rules(place) => self.rules[place] = fresh.rules.remove(0),
            TablePlace::Patterns(place) => self.patterns[place] = fresh.patterns.remove(0),
        }
        Ok(())
    }

    /// Exchanges a table with one of the same shape in another set, which is `theirs`, where both hold only
    /// what packets made and are declared alike; in exact tables capacity and times may be others, see
    /// [`TableSet::settle`]. Says whether it did.
    pub fn exchange(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) -> bool {
        let (index, of_other) = (table as usize, theirs as usize);
        if self.fixed[index] || other.fixed[of_other] {
            return false;
        }
        let counted = |set: &TableSet<F>, index: usize| set.declared[index].counted;
        let alike = self.lives(index) == other.lives(of_other);
        let exchanged = match (self.places[index], other.places[of_other]) {
            (TablePlace::Exact(ours), TablePlace::Exact(theirs)) => {
                alike || self.exact[ours].prepare_for(&other.exact[theirs])
            }
            (TablePlace::Prefixes(_), TablePlace::Prefixes(_))
            | (TablePlace::Rules(_), TablePlace::Rules(_)) => {
                alike && counted(self, index) == counted(other, of_other)
            }
            _ => false,
        };
        if exchanged {
            self.exchange_back(table, other, theirs);
        }
        exchanged
    }

    /// Has memory given to an exact table that is soon to take so many entries, where they need a good part
    /// of it.
    pub fn touch(&mut self, table: u32, entries: u64) {
        let index = table as usize;
        if let TablePlace::Exact(place) = self.places[index]
            && entries >= u64::from(self.declared[index].capacity) / SPARSE
        {
            self.exact[place].touch();
        }
    }

    /// What an entry's life depends on.
    fn lives(&self, index: usize) -> (u32, Option<u64>, Option<u64>, ir::Eviction) {
        let ir::Table { capacity, idle, age, evict, .. } = self.declared[index];
        (capacity, idle, age, evict)
    }

    /// Exchanges two tables once more, which undoes it.
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
        std::mem::swap(&mut self.before[index], &mut other.before[of_other]);
        std::mem::swap(&mut self.changes[index], &mut other.changes[of_other]);
    }

    /// What was exchanged stays so: an exact table goes on with the capacity and the times of its own
    /// declaration, and what happens is counted from now on.
    pub fn settle(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) {
        let (index, of_other) = (table as usize, theirs as usize);
        if let (TablePlace::Exact(our), TablePlace::Exact(their)) =
            (self.places[index], other.places[of_other])
            && self.lives(index) != other.lives(of_other)
        {
            std::mem::swap(&mut self.exact[our], &mut other.exact[their]);
            self.exact[our].inherit(&mut other.exact[their]);
        }
        self.count_anew(table);
    }

    /// The entries of a table may no longer be what they were.
    fn note_change(&mut self, table: u32) {
        self.versions[table as usize] += 1;
    }

    /// Numbers of which one at least is another whenever the entries of a table are others.
    pub fn state_of(&self, table: u32) -> [u64; 6] {
        let version = self.versions[table as usize];
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let [held, inserts, moves, evictions, expired] = self.exact[place].version();
                [version, held, inserts, moves, evictions, expired]
            }
            TablePlace::Prefixes(place) => {
                let [expired, horizon] = self.prefixes[place].version();
                [version, expired, horizon, 0, 0, 0]
            }
            TablePlace::Rules(place) => {
                let [expired, horizon] = self.rules[place].version();
                [version, expired, horizon, 0, 0, 0]
            }
            TablePlace::Patterns(_) => [version, 0, 0, 0, 0, 0],
        }
    }

    /// Counts what happens in a table from now on, in the time of one operation; what it holds counts as put
    /// in: also what has ended and is still to be taken out, which counts as expired then.
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

    /// Lets entries of exact tables move to where they belong since a takeover, a few of each table so often;
    /// whether some are left.
    pub fn catch_up(&mut self, times: u32) -> bool {
        let mut left = false;
        for table in &mut self.exact {
            left |= (0..times.max(1)).all(|_| table.catch_up());
        }
        left
    }

    /// Ends entries of tables other than exact ones whose time has come, and takes them out as far as these
    /// steps lead.
    pub fn expire_others(&mut self, now: u64, steps: &mut u32) {
        let mut all = u32::MAX;
        let steps = if F::ENDS_AT_ONCE { &mut all } else { steps };
        self.prefixes.iter_mut().for_each(|table| table.expire(now, steps));
        self.rules.iter_mut().for_each(|table| table.expire(now, steps));
    }

    /// When the first entry of a table goes; `u64::MAX` for never.
    pub fn next_deadline(&self) -> u64 {
        let exact = self.exact.iter().map(Exact::next_deadline);
        let prefixes = self.prefixes.iter().map(ProgramPrefixes::next_deadline);
        let rules = self.rules.iter().map(ProgramRules::next_deadline);
        exact.chain(prefixes).chain(rules).min().unwrap_or(u64::MAX)
    }

    /// A report on every table, in order of declaration. What has ended is neither held nor left out, be it
    /// taken out or not: it is looked for among all entries.
    pub fn reports(&self) -> Vec<TableReport> {
        let report = |(index, report): (usize, TableReport)| {
            let left = self.left_to_expire(index);
            TableReport { entries: report.entries - left, expired: report.expired + left, ..report }
        };
        self.running_reports().into_iter().enumerate().map(report).collect()
    }

    /// Entries of a table that have ended and are still to be taken out; it looks for them.
    fn left_to_expire(&self, index: usize) -> u64 {
        let left = match self.places[index] {
            TablePlace::Exact(place) => self.exact[place].left_to_expire(),
            TablePlace::Prefixes(place) => self.prefixes[place].left_to_expire(),
            TablePlace::Rules(place) => self.rules[place].left_to_expire(),
            TablePlace::Patterns(_) => 0,
        };
        left as u64
    }

    /// As [`TableSet::reports`], but no entry is looked at: what has ended and is still to be taken out
    /// counts as held and not yet as expired.
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

    /// Entries of a table, also those that have ended and are still to be taken out.
    pub fn held(&self, table: u32) -> u64 {
        let held = match self.places[table as usize] {
            TablePlace::Exact(place) => self.exact[place].running_statistics().entries as usize,
            TablePlace::Prefixes(place) => self.prefixes[place].held(),
            TablePlace::Rules(place) => self.rules[place].held(),
            TablePlace::Patterns(place) => self.patterns[place].len(),
        };
        held as u64
    }

    /// Entries of a table other than an exact one that were taken out since their time was up, since its
    /// entries were exchanged last.
    fn expired_others(&self, index: usize) -> u64 {
        match self.places[index] {
            TablePlace::Prefixes(place) => self.prefixes[place].expired(),
            TablePlace::Rules(place) => self.rules[place].expired(),
            _ => 0,
        }
    }

    /// Every entry of a table that packets made.
    pub fn learned(&self, table: u32) -> Vec<Entry> {
        match self.places[table as usize] {
            // Where no packet has made any there is none to look for, however many others there are.
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

    /// Every entry of a table with what it was found for: exact ones and prefixes sorted by key, rules in the
    /// order in which they are tried.
    pub fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)> {
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let entries = self.exact[place].entries();
                entries.iter().map(|held| (self.shapes[table as usize].entry(held), (0, 0))).collect()
            }
            TablePlace::Prefixes(place) => self.prefixes[place].entries(),
            TablePlace::Rules(place) => self.rules[place].entries(),
            TablePlace::Patterns(place) => self.patterns[place].entries(),
        }
    }

    /// Entries of a table from a place on, `most` at most, and the place of the next ones, as long as there
    /// are any.
    pub fn entries_part(
        &self,
        table: u32,
        from: EntryPlace,
        most: usize,
    ) -> (Vec<Entry>, Option<EntryPlace>) {
        match self.places[table as usize] {
            TablePlace::Exact(place) => {
                let (held, next) = self.exact[place].entries_part(from.0.bits as usize, most);
                let entries = held.iter().map(|held| self.shapes[table as usize].entry(held)).collect();
                (entries, next.map(|next| EntryPlace::at(next as u64)))
            }
            TablePlace::Prefixes(place) => self.prefixes[place].entries_part(from, most),
            TablePlace::Rules(place) => self.rules[place].entries_part(from, most),
            TablePlace::Patterns(place) => self.patterns[place].entries_part(from, most),
        }
    }
}

impl TableSet<Fast> {
    /// Bytes that a table takes as it has been filled; none where its declaration says all.
    fn allocated(&self, table: usize) -> Option<u64> {
        match self.places[table] {
            TablePlace::Exact(_) => None,
            TablePlace::Prefixes(place) => Some(self.prefixes[place].allocated()),
            TablePlace::Rules(place) => Some(self.rules[place].allocated()),
            TablePlace::Patterns(place) => Some(self.patterns[place].allocated()),
        }
    }
}

/// What each table of a program takes with the entries that it has, in bytes, once for each worker: tables
/// are made for it one by one, and counted. None where the declaration says all.
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
