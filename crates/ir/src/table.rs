//! Tables as the intermediate representation declares them: kinds, columns, entries.

use crate::limits::{LARGEST_RULES_KEY, LARGEST_WORDS};
use crate::source::Span;
use tables::rules::RuleField;
use tables::sizes;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name in the program.
    pub name: String,
    /// How a key finds its entry.
    pub kind: TableKind,
    /// The key's columns; none where bytes are searched for patterns.
    pub keys: Vec<Column>,
    /// The value's columns; empty for a set.
    pub values: Vec<Column>,
    /// The most entries it holds.
    pub capacity: u32,
    /// Nanoseconds after the last hit or learn at which an entry goes; exact tables only.
    pub idle: Option<u64>,
    /// Nanoseconds after the last learn at which an entry goes; not where bytes are searched for.
    pub age: Option<u64>,
    /// Entries may have a shorter time than `age`, which [`Op::EndAfter`](super::Op::EndAfter) gives them;
    /// exact tables with `age` only.
    pub lifetimes: bool,
    /// What happens when a key is new and the table is full.
    pub evict: Eviction,
    /// Every entry counts the packets and bytes it was found for; not for exact tables.
    pub counted: bool,
    /// Every entry keeps when it was found first and last, too; only where entries count.
    pub times: bool,
    /// Nobody outside the process is shown an entry, nor what a packet computes behind a hit; none raises an
    /// event at its end.
    pub secret: bool,
    /// The pool that gets its item back when an entry goes, and the item is the entry's value; exact tables
    /// only.
    pub releases: Option<u32>,
    /// The event that an entry raises which ends by its time, with arguments of [`Table::ending_widths`];
    /// exact tables and those of prefixes, with an idle time or age.
    pub expires: Option<u32>,
    /// Entries of the program text and of the file it names.
    pub entries: Vec<Entry>,
    /// The file whose entries belong to the table: whoever loads the program reads it.
    pub file: Option<EntryFile>,
    /// The entry found when no key fits, to begin with.
    pub default: Option<Vec<u128>>,
    /// The place of the declaration in the source.
    pub span: Span,
}

/// Bits in which an event of an entry that ends has the length of its prefix.
pub const PREFIX_LENGTH: u8 = 8;

/// The shortest prefixes that are changed alone, in bits: in a table of IPv4 addresses, whose search has a
/// cell for each value of the first 24 bits, and in tables of longer keys. A shorter one takes longer than a
/// batch may wait.
const SHORTEST_PREFIX_OF_32: u32 = 8;
const SHORTEST_PREFIX: u32 = 5;

impl Table {
    /// Bits of a key.
    pub fn key_bits(&self) -> u32 {
        self.keys.iter().map(|column| u32::from(column.width)).sum()
    }

    /// The columns of a key, joined, the first one in the highest bits, and how many bits are given. Of keys
    /// of more than 128 bits, and of parts that are no prefixes, it says nothing.
    pub fn joined_key(&self, key: &[Match]) -> (u128, u8) {
        let (mut bits, mut given) = (0_u128, 0_u8);
        for (column, part) in self.keys.iter().zip(key) {
            let (value, length) = match part {
                Match::Exact(value) => (*value, column.width),
                Match::Prefix { value, length } => (*value, *length),
                _ => (0, 0),
            };
            bits = bits.checked_shl(column.width.into()).unwrap_or(0) | value;
            given = given.saturating_add(length);
        }
        (bits, given)
    }

    /// How many bits of the key an entry has to give that is changed alone, between two batches.
    pub fn shortest_changed(&self) -> u32 {
        match (self.kind, self.key_bits()) {
            (TableKind::Lpm, 32) => SHORTEST_PREFIX_OF_32,
            (TableKind::Lpm, 25..) => SHORTEST_PREFIX,
            _ => 0,
        }
    }

    /// Whether entries have values of these columns, each no wider than its column.
    pub fn takes_value(&self, value: &[u128]) -> bool {
        let fits = |(column, number): (&Column, &u128)| Match::Exact(*number).fits(column.width);
        self.values.len() == value.len() && self.values.iter().zip(value).all(fits)
    }

    /// Bits of each argument of the event that an entry raises which ends by its time: the columns of the
    /// key, the length of the prefix in the last of them where there are prefixes, and the columns of the
    /// value.
    pub fn ending_widths(&self) -> impl Iterator<Item = u8> {
        let length = (self.kind == TableKind::Lpm).then_some(PREFIX_LENGTH);
        let widths = |columns: &[Column]| columns.iter().map(|column| column.width).collect::<Vec<_>>();
        widths(&self.keys).into_iter().chain(length).chain(widths(&self.values))
    }
}

/// How a key finds its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TableKind {
    /// Key columns equal the entry's.
    #[default]
    Exact,
    /// The last key column lies in the entry's prefix, the others equal the entry's; the longest prefix wins.
    /// The columns have at most 128 bits together.
    Lpm,
    /// Every key column fits the entry's match; the first entry wins, or with `by_priority` the one with the
    /// largest priority and among equals the first.
    Rules {
        /// Priorities decide before the order does.
        by_priority: bool,
    },
    /// Entries are byte strings that are searched for.
    Patterns(Answer),
}

impl TableKind {
    /// Whether a key of these matches goes with tables of this kind; `columns` are the key's.
    pub fn takes(self, columns: &[Column], key: &[Match]) -> bool {
        if let TableKind::Patterns(_) = self {
            return matches!(key, [Match::Bytes(pattern)] if !pattern.bytes.is_empty());
        }
        key.len() == columns.len()
            && key.iter().zip(columns).enumerate().all(|(index, (part, column))| {
                self.takes_part(part, index + 1 == columns.len()) && part.fits(column.width)
            })
    }

    /// Whether a part of a key may be matched so; `last` is the key's last part.
    pub fn takes_part(self, part: &Match, last: bool) -> bool {
        match (self, part) {
            (TableKind::Patterns(_), part) => matches!(part, Match::Bytes(_)),
            (_, Match::Bytes(_)) => false,
            (_, Match::Exact(_)) | (TableKind::Rules { .. }, _) => true,
            (TableKind::Lpm, Match::Any | Match::Prefix { .. }) => last,
            _ => false,
        }
    }
}

/// What a search for patterns answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The entry whose occurrence ends first, of those the one that stands first in the table.
    First,
    /// How many occurrences there are, overlapping ones included: 32 bits.
    All,
    /// A set of 128 bits: bit `n` if an entry occurs whose value is `n`.
    Set,
}

impl TableKind {
    /// How many 64-bit words the key of such a table has at most.
    pub fn most_key_words(self) -> usize {
        match self {
            TableKind::Rules { .. } => LARGEST_RULES_KEY,
            _ => LARGEST_WORDS,
        }
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Exact => "exact",
            TableKind::Lpm => "lpm",
            TableKind::Rules { .. } => "rules",
            TableKind::Patterns(_) => "patterns",
        }
    }
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// One match for each key column; one [`Match::Bytes`] where patterns are searched for.
    pub key: Vec<Match>,
    /// One number for each value column.
    pub value: Vec<u128>,
    /// The priority; zero in tables whose order decides.
    pub priority: u32,
}

impl Entry {
    /// An entry of an exact table.
    pub fn exact(key: &[u128], value: &[u128]) -> Entry {
        Entry {
            key: key.iter().map(|number| Match::Exact(*number)).collect(),
            value: value.to_vec(),
            priority: 0,
        }
    }

    /// Bytes that are allocated for its parts.
    pub fn allocated(&self) -> u64 {
        let pattern = |part: &Match| match part {
            Match::Bytes(pattern) => size_of::<BytePattern>() as u64 + sizes::vector(&pattern.bytes),
            _ => 0,
        };
        let patterns: u64 = self.key.iter().map(pattern).sum();
        sizes::vector(&self.key) + sizes::vector(&self.value) + patterns
    }

    /// The numbers of a key all of whose columns are exact.
    pub fn exact_key(&self) -> Option<Vec<u128>> {
        let number = |part: &Match| if let Match::Exact(number) = part { Some(*number) } else { None };
        self.key.iter().map(number).collect()
    }
}

/// The values of a key column that an entry matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// Anything.
    Any,
    /// This number.
    Exact(u128),
    /// The first `length` bits are those of `value`, whose other bits are zero.
    Prefix {
        /// The bits.
        value: u128,
        /// How many of them count.
        length: u8,
    },
    /// The bits under the mask are those of `value`, whose other bits are zero.
    Masked {
        /// The bits.
        value: u128,
        /// Which of them count.
        mask: u128,
    },
    /// From the first number to the last.
    Range {
        /// The first.
        low: u128,
        /// The last, not smaller.
        high: u128,
    },
    /// The bytes occur.
    Bytes(Box<BytePattern>),
}

/// Bytes that are searched for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytePattern {
    /// The bytes, at least one.
    pub bytes: Vec<u8>,
    /// Letters A to Z and a to z are alike.
    pub nocase: bool,
    /// An occurrence starts here or behind.
    pub offset: u32,
    /// An occurrence ends at `offset` plus this or before.
    pub depth: Option<u32>,
}

impl Match {
    /// Whether a column of this width can be matched so: numbers fit, bits that do not count are zero, ranges
    /// are not empty.
    pub fn fits(&self, width: u8) -> bool {
        let fits = |number: u128| width >= 128 || number >> width == 0;
        match self {
            Match::Any => true,
            Match::Exact(number) => fits(*number),
            Match::Prefix { value, length } => {
                *length <= width && fits(*value) && value & !prefix_mask(width, *length) == 0
            }
            Match::Masked { value, mask } => fits(*mask) && value & !mask == 0,
            Match::Range { low, high } => low <= high && fits(*high),
            Match::Bytes(_) => false,
        }
    }

    /// The same as a field of a rule; bytes are no part of one and ask for nothing.
    pub fn field(&self) -> RuleField {
        match self {
            Match::Exact(number) => RuleField::Exact(*number),
            Match::Prefix { value, length } => RuleField::Prefix { value: *value, length: *length },
            Match::Masked { value, mask } => RuleField::Ternary { value: *value, mask: *mask },
            Match::Range { low, high } => RuleField::Range { low: *low, high: *high },
            Match::Any | Match::Bytes(_) => RuleField::Any,
        }
    }

    /// Whether a number of a column of this width matches.
    pub fn matches(&self, number: u128, width: u8) -> bool {
        match self {
            Match::Any => true,
            Match::Exact(exact) => number == *exact,
            Match::Prefix { value, length } => number & prefix_mask(width, *length) == *value,
            Match::Masked { value, mask } => number & mask == *value,
            Match::Range { low, high } => (*low..=*high).contains(&number),
            Match::Bytes(_) => false,
        }
    }
}

/// The bits of a prefix of this length in a column of this width.
pub fn prefix_mask(width: u8, length: u8) -> u128 {
    let ones = |bits: u8| if bits >= 128 { u128::MAX } else { (1_u128 << bits) - 1 };
    ones(width) & !ones(width.saturating_sub(length))
}

/// A file with entries, as the program names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFile {
    /// The path, relative to the program's file.
    pub path: String,
    /// The name of its format; empty for the language's own entries, one a line.
    pub format: String,
    /// What to read of it, if it has chains.
    pub options: FileOptions,
}

/// What to read of a file of chains, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// The version of IP of the packets, 4 or 6; unless it is said, that of the addresses of the table.
    pub family: Option<u8>,
    /// The table of the file; unless it is said, `filter`.
    pub table: Option<String>,
    /// The chain; unless it is said, the one that forwarded packets go through.
    pub chain: Option<String>,
    /// Whether rules are read for the first packet of a connection.
    pub first_packets: bool,
    /// The ports that names of interfaces in it stand for.
    pub interfaces: Vec<(String, u16)>,
}

/// One column of a key or value.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name in the program; empty if the program gives none.
    pub name: String,
    /// How reports show the values.
    pub kind: ColumnKind,
    /// The width in bits, 1 to 128.
    pub width: u8,
}

/// How a value is shown to people; it has no effect on execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number.
    Uint,
    /// `true` or `false`.
    Bool,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// A MAC address.
    Mac,
    /// A port of the gateway.
    Port,
    /// Nanoseconds.
    Time,
    /// One of these names by number.
    Names(Vec<(u128, String)>),
}

/// What a full table does with a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The entry whose last hit or learn is oldest goes.
    Lru,
    /// The new entry is refused.
    Refuse,
}
