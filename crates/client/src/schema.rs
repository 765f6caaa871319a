//! What a program says about its tables, events and reasons: names, types and widths, as JSON.

use serde::{Deserialize, Serialize};

/// The tables, events and reasons of the program that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSchema {
    /// The version of the protocol.
    pub version: u32,
    /// How many programs have taken over, this one included. Requests are about this program only.
    pub generation: u64,
    /// The program's file.
    pub program: String,
    /// How many workers there are; each has tables of its own.
    pub workers: u16,
    /// The tables, by number.
    pub tables: Vec<TableSchema>,
    /// The groups, by number.
    #[serde(default)]
    pub groups: Vec<GroupSchema>,
    /// The events, by number.
    pub events: Vec<EventSchema>,
    /// The reasons for which packets are dropped or punted, by number.
    pub reasons: Vec<ReasonSchema>,
    /// Why groups, events and reasons are not told, if the program may have some all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<String>,
}

impl ProgramSchema {
    /// The number of a table and what is known of it.
    pub fn table(&self, name: &str) -> Option<(u16, &TableSchema)> {
        (0..).zip(&self.tables).find(|(_, table)| table.name == name)
    }

    /// The number of a group and what is known of it.
    pub fn group(&self, name: &str) -> Option<(u16, &GroupSchema)> {
        (0..).zip(&self.groups).find(|(_, group)| group.name == name)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The name in the program.
    pub name: String,
    /// `exact`, `lpm`, `rules` or `patterns`.
    pub kind: String,
    /// Whether entries have priorities.
    pub ranked: bool,
    /// The columns of the key; none where bytes are searched for.
    pub keys: Vec<ColumnSchema>,
    /// The columns of the value.
    pub values: Vec<ColumnSchema>,
    /// The largest number of entries at each worker.
    pub capacity: u32,
    /// Nanoseconds after the last hit at which a learned entry ends.
    pub idle: Option<u64>,
    /// Nanoseconds after its learning at which a learned entry ends.
    pub age: Option<u64>,
    /// What each entry counts; `None` where entries do not count.
    #[serde(default)]
    pub counts: Option<CountsKept>,
    /// What cannot be changed from outside.
    #[serde(default)]
    pub refuses: RefusedChanges,
}

/// What the entries of a table count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CountsKept {
    /// The packets that found it, and their bytes.
    Packets,
    /// The same, and when the first and the last of them came.
    Times,
}

/// Why some changes of a table are refused, each with what to do instead; `None` where they are possible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedChanges {
    /// Inserting and learning an entry.
    pub insert: Option<String>,
    /// Removing an entry.
    pub remove: Option<String>,
    /// Replacing all entries.
    pub replace: Option<String>,
    /// Setting or removing the default entry.
    pub default: Option<String>,
}

/// A group, or several of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSchema {
    /// The name in the program.
    pub name: String,
    /// The columns of a member.
    pub columns: Vec<ColumnSchema>,
    /// How many groups have this name.
    pub size: u32,
    /// The largest number of members of each.
    pub capacity: u32,
    /// Why its members cannot be changed, and what to do instead; `None` if they can.
    pub refuses: Option<String>,
}

/// A column of a key or value, or an argument of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// The name in the program; empty if it has none.
    pub name: String,
    /// What its numbers mean.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// The width in bits, 1 to 128.
    pub bits: u8,
    /// The numbers that have a name, in decimal digits, each with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<(String, String)>,
}

impl ColumnSchema {
    /// Bytes that a value takes in a frame.
    pub fn bytes(&self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }
}

/// What the numbers of a column mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// A number.
    Uint,
    /// False or true.
    Bool,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// An Ethernet address.
    Mac,
    /// A port of the gateway.
    Port,
    /// Nanoseconds.
    Time,
    /// One of the names.
    Names,
}

/// An event of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventSchema {
    /// The name in the program.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<ColumnSchema>,
}

/// A reason for which packets are dropped or punted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonSchema {
    /// The name in the program.
    pub name: String,
    /// Its help text.
    pub help: String,
}
