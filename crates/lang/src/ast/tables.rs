//! The syntax tree of what a program remembers: tables with their entries, counters, meters, registers, pools
//! and groups.

use super::{Expr, Name, Param, Type};
use ir::source::Span;

/// `table NAME: kind(keys) -> value { properties }`
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: Name,
    /// `exact`, `lpm`, `rules` or `patterns`.
    pub kind: Name,
    /// Types of the key, each with an optional name.
    pub keys: Vec<(Option<Name>, Type)>,
    /// What an entry holds.
    pub value: TableValue,
    /// Properties in source order.
    pub properties: Vec<Property>,
    /// The whole declaration.
    pub span: Span,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub enum TableValue {
    /// Nothing: the table is a set.
    Nothing,
    /// `-> type` or `-> (type, type)`
    Data(Vec<Type>),
    /// `-> { permit, mirror(to: port) }`: one of these, with its parameters.
    Variants(Vec<(Name, Vec<Param>)>),
}

/// `counted` or `counted times`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedProperty {
    /// Entries keep when they were found first and last, too.
    pub times: bool,
    /// The whole property.
    pub span: Span,
}

/// A property of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Property {
    /// `capacity 64k`
    Capacity(Expr),
    /// `age 300s`
    Age(Expr),
    /// `idle 300s`
    Idle(Expr),
    /// `evict lru` or `evict refuse`
    Evict(Name),
    /// `choose first` or `choose priority`, in a table of rules
    Choose(Name),
    /// `answer first`, `answer all` or `answer set`, in a table of patterns
    Answer(Name),
    /// `counted` or `counted times`: every entry counts what it was found for
    Counted(CountedProperty),
    /// `secret`: the process shows the entries to nobody
    Secret(Span),
    /// `releases NAME`: an entry that goes gives its value back to the pool
    Releases(Name),
    /// `expires NAME`: an entry whose time is up raises the event
    Expires(Name),
    /// `from "file"`, `from "file" as format` or `from "file" as format chain "input" first_packets`
    From(EntryFile),
    /// `entries { key => value, … }`
    Entries(Vec<Entry>),
    /// `default => value`
    Default(Expr),
}

/// A file that a table is filled from.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryFile {
    /// Its path.
    pub path: String,
    /// Its format; absent for entries as in a program.
    pub format: Option<Name>,
    /// What to read of it, in the order of the program.
    pub options: Vec<FileOption>,
    /// The whole property.
    pub span: Span,
}

/// What to read of a file, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum FileOption {
    /// `family ip6`
    Family(Name),
    /// `table "name"`
    Table(Name),
    /// `chain "name"`
    Chain(Name),
    /// `first_packets`
    FirstPackets(Span),
    /// `skip_title`
    SkipTitle(Span),
    /// `skip_nat`
    SkipNat(Span),
    /// `skip_marks`
    SkipMarks(Span),
    /// `tables { friends = "friends.txt" }`, and the place of its word
    Tables(Vec<TableText>, Span),
    /// `interfaces { eth0 = 1 }`, and the place of its word
    Interfaces(Vec<Binding>, Span),
}

impl FileOption {
    /// Its word in a program.
    pub fn word(&self) -> &'static str {
        match self {
            FileOption::Family(_) => "family",
            FileOption::Table(_) => "table",
            FileOption::Chain(_) => "chain",
            FileOption::FirstPackets(_) => "first_packets",
            FileOption::SkipTitle(_) => "skip_title",
            FileOption::SkipNat(_) => "skip_nat",
            FileOption::SkipMarks(_) => "skip_marks",
            FileOption::Tables(..) => "tables",
            FileOption::Interfaces(..) => "interfaces",
        }
    }

    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            FileOption::Family(name) | FileOption::Table(name) | FileOption::Chain(name) => name.span,
            FileOption::FirstPackets(span)
            | FileOption::SkipTitle(span)
            | FileOption::SkipNat(span)
            | FileOption::SkipMarks(span)
            | FileOption::Tables(_, span)
            | FileOption::Interfaces(_, span) => *span,
        }
    }
}

/// `key => value` or `(key, key) => value`; the value is absent in a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// One match a key.
    pub keys: Vec<EntryKey>,
    /// `priority 10`
    pub priority: Option<Expr>,
    /// The value; a tuple where the table holds several, a call where it holds variants.
    pub value: Option<Expr>,
    /// The whole entry.
    pub span: Span,
}

/// What a key must be like, in an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryKey {
    /// `_`: anything.
    Any(Span),
    /// A value, or a prefix.
    Value(Expr),
    /// `1..5` or `1024..` (both ends belong to the range)
    Range(Expr, Option<Expr>),
    /// `0x02 mask 0x12`: the bits under the mask
    Masked(Expr, Expr),
    /// `"cmd.exe" nocase offset 4 depth 20`
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// Letters of both cases are alike.
        nocase: bool,
        /// Where an occurrence starts at the earliest.
        offset: Option<Expr>,
        /// How far behind that it ends at the latest.
        depth: Option<Expr>,
        /// The whole of it.
        span: Span,
    },
}

impl EntryKey {
    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            EntryKey::Any(span) | EntryKey::Bytes { span, .. } => *span,
            EntryKey::Value(value) => value.span,
            EntryKey::Range(low, high) => high.as_ref().map_or(low.span, |high| low.span.to(high.span)),
            EntryKey::Masked(value, mask) => value.span.to(mask.span),
        }
    }
}

/// `meter NAME[size]: bytes { committed 1M burst 64k excess 64k }`
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// Its name.
    pub name: Name,
    /// Number of cells.
    pub size: Option<Expr>,
    /// `bytes` or `packets`.
    pub unit: Name,
    /// In how many seconds the tokens of a rate arrive: 1 for a meter that a program declares.
    pub period: u32,
    /// Words and their numbers: `committed`, `burst`, `excess`, `peak`, `peak_burst`.
    pub rates: Vec<(Name, Expr)>,
    /// The whole declaration.
    pub span: Span,
}

/// `register NAME[size]: type`
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Its name.
    pub name: Name,
    /// Number of cells.
    pub size: Option<Expr>,
    /// What a cell holds.
    pub ty: Type,
}

/// `settable pool NAME: (type, type) { range, range }`
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Whoever compiles the program may give it other values.
    pub settable: bool,
    /// Its name.
    pub name: Name,
    /// What an item is.
    pub types: Vec<Type>,
    /// The values of each part.
    pub ranges: Vec<EntryKey>,
    /// The whole declaration.
    pub span: Span,
}

/// `eth0 = 1` or `"eth0.5" = 1`: the port that the name of an interface in a file stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of the interface.
    pub interface: Name,
    /// The port.
    pub port: Expr,
}

/// `friends = "friends.txt"`: the file with the addresses of a table of NPF or pf.
#[derive(Clone, Debug, PartialEq)]
pub struct TableText {
    /// The name of the table.
    pub name: Name,
    /// The path of the file.
    pub path: Name,
    /// Its text, once it is loaded.
    pub text: Option<String>,
}

/// `group NAME[size]: (type, type) { buckets 256 capacity 8 from "file" members { (a, b) weight 2 } }`
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: Name,
    /// How many groups it is.
    pub size: Option<Expr>,
    /// What a member is.
    pub types: Vec<Type>,
    /// Properties in source order.
    pub properties: Vec<GroupProperty>,
    /// The whole declaration.
    pub span: Span,
}

/// A property of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupProperty {
    /// `buckets 256`
    Buckets(Expr),
    /// `capacity 8`
    Capacity(Expr),
    /// `members { (a, b) weight 2, … }`; with several groups, `3: (a, b)`
    Members(Vec<Member>),
    /// `from "file"`
    From(String, Span),
}

/// `3: (a, b) weight 2`
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The group it belongs to.
    pub index: Option<Expr>,
    /// Its parts.
    pub parts: Vec<Expr>,
    /// Its weight.
    pub weight: Option<Expr>,
    /// The whole of it.
    pub span: Span,
}

/// `counter NAME[size]`
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: Name,
    /// Number of cells.
    pub size: Option<Expr>,
}
