//! What `control` asks of the core, and what the core answers: one answer for each question, in order.

use crate::bounded::at_most;
use crate::figures::ShownFigures;
use crate::limits::{LONGEST_LINK_FRAME, MOST_CHANGES, MOST_ENTRY_COLUMNS, MOST_FRAMES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlQuestion {
    /// What runs, and what became of packets.
    Show,
    /// Have the policy of a bundle take over.
    Install {
        /// The bundle.
        bundle: Vec<u8>,
        /// Within how many seconds it has to be confirmed; if it is not, the policy before it takes over
        /// again. Without a number it need not be confirmed.
        confirm_within: Option<u32>,
    },
    /// Confirm the policy that runs, by its hash.
    Confirm {
        /// SHA-256 of the payload of its bundle.
        hash: [u8; 32],
    },
    /// What was counted.
    Figures,
    /// How a table is declared, by its number.
    Table(u32),
    /// A few entries of a table at one worker.
    Entries {
        /// The number of the program that is meant, as it was told.
        number: u64,
        /// The number of the table.
        table: u32,
        /// The worker, from 0.
        worker: u16,
        /// Only those that no worker before it has.
        own: bool,
        /// Where they begin: (0, 0), or what was told with those before.
        place: (u128, u8),
    },
    /// The entry with a key at one worker: of a table of exact keys or of prefixes.
    Entry {
        /// The number of the program that is meant, as it was told.
        number: u64,
        /// The number of the table.
        table: u32,
        /// The worker, from 0.
        worker: u16,
        /// How many bits of the key are given, as in [`EntryChange::length`].
        length: u8,
        /// The key, as in [`EntryChange::bits`].
        bits: u128,
    },
    /// Change entries of tables: all of them, or none.
    Change {
        /// The number of the program that is meant, as it was told.
        number: u64,
        /// What is to change, each key once.
        #[serde(deserialize_with = "at_most::<_, _, MOST_CHANGES>")]
        changes: Vec<EntryChange>,
    },
    /// Send these frames, by which neighbours find each other, and tell of packets that were punted.
    Exchange {
        /// The frames; one that may not be sent is left out.
        #[serde(deserialize_with = "at_most::<_, _, MOST_FRAMES>")]
        frames: Vec<LinkFrame>,
        /// How many milliseconds the answer waits for a packet, at most
        /// [`LONGEST_EXCHANGE`](crate::limits::LONGEST_EXCHANGE).
        patience: u16,
    },
}

/// A frame of `control`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFrame {
    /// The number of the port by which it leaves.
    pub port: u16,
    /// The whole frame.
    #[serde(deserialize_with = "at_most::<_, _, LONGEST_LINK_FRAME>")]
    pub bytes: Vec<u8>,
}

/// A change of one entry of a table of exact keys or of prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The number of the table.
    pub table: u32,
    /// How many bits of the key are given: all of them in a table of exact keys.
    pub length: u8,
    /// The columns of the key, joined, the first one in the highest bits; zeros behind those that are given.
    pub bits: u128,
    /// What becomes of the entry.
    pub operation: EntryOperation,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryOperation {
    /// It is there with these columns of its value, until it is removed or another program takes over.
    Insert(#[serde(deserialize_with = "at_most::<_, _, MOST_ENTRY_COLUMNS>")] Vec<u128>),
    /// It is not there.
    Remove,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoreAnswer {
    /// To [`ControlQuestion::Show`].
    Shown(Shown),
    /// To [`ControlQuestion::Install`] and [`ControlQuestion::Confirm`]: this policy runs.
    Runs {
        /// Which one.
        policy: ShownPolicy,
        /// Why it is not kept over an end of the gateway, if it is not.
        not_kept: Option<String>,
    },
    /// To [`ControlQuestion::Figures`].
    Figures(Box<ShownFigures>),
    /// To [`ControlQuestion::Table`].
    Table {
        /// The number of the program, as in [`Shown::number`].
        number: u64,
        /// How many workers there are.
        workers: u16,
        /// The table, if there is one with this number.
        table: Option<ShownTable>,
    },
    /// To [`ControlQuestion::Entries`] and [`ControlQuestion::Entry`]. There may be none and yet more follow.
    Entries(EntryPage),
    /// To [`ControlQuestion::Change`]: all of it is done.
    Changed {
        /// How many of the entries were there that were removed.
        removed: u32,
    },
    /// To [`ControlQuestion::Change`], [`ControlQuestion::Install`] and [`ControlQuestion::Confirm`]: nothing
    /// of it is done, but it could be later.
    TooFast {
        /// What it is too fast for, for people.
        why: String,
        /// After how many milliseconds it could be, if nothing else is changed until then.
        milliseconds: u64,
    },
    /// To [`ControlQuestion::Exchange`].
    Exchanged {
        /// The number of the program that runs, as in [`Shown::number`].
        number: u64,
        /// How many frames were left out.
        left_out: u32,
        /// Packets that were punted, in the order in which they came. Those that are longer than
        /// [`LONGEST_PUNTED`](crate::limits::LONGEST_PUNTED) are not told.
        punted: Vec<PuntedPacket>,
    },
    /// The question cannot be answered, for a reason for people. Nothing of it is done.
    Refused(String),
}

/// A packet that the program punted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PuntedPacket {
    /// The name of the reason.
    pub reason: String,
    /// The number of the port that it came in by.
    pub port: u16,
    /// The whole frame.
    pub bytes: Vec<u8>,
}

/// A few entries of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPage {
    /// The entries.
    pub entries: Vec<ShownEntry>,
    /// Where the next ones begin, if there may be any.
    pub next: Option<(u128, u8)>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownEntry {
    /// A part for each column of the key.
    pub key: Vec<ShownMatch>,
    /// The columns of the value.
    pub value: Vec<u128>,
    /// Its priority, 0 in tables without them.
    pub priority: u32,
}

/// What a column of a key has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownMatch {
    /// Anything.
    Any,
    /// This number.
    Exact(u128),
    /// A number whose first bits, so many, are those of this one.
    Prefix(u128, u8),
    /// A number whose bits under the mask, the second number, are those of the first.
    Masked(u128, u128),
    /// From the first number to the second.
    Range(u128, u128),
}

/// How a table is declared, and whether it may be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownTable {
    /// Its name.
    pub name: String,
    /// How a key finds its entry.
    pub kind: ShownKind,
    /// The columns of its keys.
    pub keys: Vec<ShownColumn>,
    /// The columns of its values.
    pub values: Vec<ShownColumn>,
    /// The most entries that it holds.
    pub capacity: u32,
    /// After so many nanoseconds without a hit an entry that packets made ends.
    pub idle: Option<u64>,
    /// After so many nanoseconds an entry that packets made ends.
    pub age: Option<u64>,
    /// Nobody is told its entries.
    pub secret: bool,
    /// Its entries hold items of a pool.
    pub holds_items: bool,
    /// What `control` may change of it; nothing where it may change nothing.
    pub right: Option<ShownRight>,
}

/// How a key finds its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownKind {
    /// Both are equal.
    Exact,
    /// The entry is the longest prefix of the key.
    Lpm,
    /// The entry is the first rule that matches.
    Rules {
        /// Whether rules have priorities.
        by_priority: bool,
    },
    /// The entry is a pattern that occurs.
    Patterns,
}

/// A column of keys or values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownColumn {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its bits.
    pub width: u8,
    /// What its numbers are.
    pub kind: ShownColumnKind,
}

/// What the numbers of a column are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShownColumnKind {
    /// Numbers.
    Uint,
    /// 0 or 1.
    Bool,
    /// IPv4 addresses.
    Ip4,
    /// IPv6 addresses.
    Ip6,
    /// Ethernet addresses.
    Mac,
    /// Ports of the gateway.
    Port,
    /// Nanoseconds.
    Time,
    /// What each of them is called.
    Names(Vec<(u128, String)>),
}

/// What `control` may change of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRight {
    /// The first bits of the keys that may change, and how many these are.
    pub prefixes: Vec<(u128, u8)>,
    /// The most entries that may be there because of it.
    pub most_entries: u32,
    /// How many of them are there.
    pub entries: u32,
    /// The most changes in a second.
    pub changes_per_second: u32,
}

/// What runs, and what became of packets since it took over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// SHA-256 of the text of its IR, as the core prints it.
    pub hash: [u8; 32],
    /// The name of the program.
    pub program: String,
    /// How many programs have taken over, this one included.
    pub number: u64,
    /// The layers of confinement that hold.
    pub layers: Vec<String>,
    /// Packets that came.
    pub received: u64,
    /// Packets that were handed to a port.
    pub forwarded: u64,
    /// Packets that were dropped, by the name of the reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets that were punted, by the name of the reason.
    pub punted: BTreeMap<String, u64>,
    /// The signed policy that it is of, if it is of one.
    pub policy: Option<ShownPolicy>,
    /// Frames of containers that were refused before any program saw them, by the name of the port and that
    /// of the reason, since the core began.
    pub refused: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A signed policy that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPolicy {
    /// Its version.
    pub version: u64,
    /// SHA-256 of the payload of its bundle.
    pub hash: [u8; 32],
    /// Who signed it.
    pub signed_by: Vec<ShownSigner>,
    /// What has to be done for it to stay; nothing if it stays.
    pub unconfirmed: Option<Unconfirmed>,
}

/// Who signed a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownSigner {
    /// The name of the key.
    pub name: String,
    /// The public key in hexadecimal digits, which is also its number in bundles.
    pub key: String,
}

/// A policy that has to be confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// How many seconds are left for that.
    pub seconds_left: u32,
    /// The version that takes over again if it is not confirmed; every packet is dropped if there is none.
    pub before: Option<u64>,
}
