//! What a core has counted since its program took over, as it tells `control`.

use serde::{Deserialize, Serialize};

/// What was counted, at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownFigures {
    /// The name of the program.
    pub program: String,
    /// The number of the program.
    pub number: u64,
    /// For how many nanoseconds it has run.
    pub age: u64,
    /// Whether it is machine code.
    pub machine_code: bool,
    /// How many workers there are.
    pub workers: u16,
    /// What came.
    pub received: ShownVolume,
    /// What was sent, flooded or multicast, each packet once.
    pub forwarded: ShownVolume,
    /// What left, each copy.
    pub transmitted: ShownVolume,
    /// Packets by their verdicts: sent, flooded, multicast, punted, dropped.
    pub verdicts: [u64; 5],
    /// The reasons of the program.
    pub reasons: Vec<ShownReason>,
    /// The ports, port 1 first.
    pub ports: Vec<ShownPort>,
    /// The tables of the program.
    pub tables: Vec<ShownTableState>,
    /// The counters of the program.
    pub counters: Vec<ShownCounter>,
    /// The names of events, and how often each was raised.
    pub events: Vec<(String, u64)>,
    /// Events that were lost.
    pub events_lost: u64,
    /// Copies that the program sent beside its verdicts.
    pub copies: u64,
    /// Packets that it made.
    pub made: u64,
    /// Copies and made packets for ports that do not exist.
    pub outputs_lost: u64,
    /// Packets that left with the checksum that their sender left open.
    pub left_open: u64,
    /// Segments that the program got whole.
    pub segments: u64,
}

/// Packets, and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownVolume {
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCounter {
    /// Its name.
    pub name: String,
    /// Its cells that counted something, with their numbers.
    pub cells: Vec<(u64, ShownVolume)>,
}

/// A reason for which packets are dropped or punted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownReason {
    /// Its name.
    pub name: String,
    /// What it means.
    pub help: String,
    /// Packets that were dropped for it.
    pub dropped: u64,
    /// Packets that were punted for it.
    pub punted: u64,
    /// Of these, those that found no room.
    pub lost: u64,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPort {
    /// Its interface.
    pub interface: String,
    /// How it is attached, as a text for people.
    pub mode: String,
    /// For how many nanoseconds the interface has been away, if it is.
    pub gone: Option<u64>,
    /// How often it went away.
    pub vanished: u64,
    /// What came by it.
    pub received: ShownVolume,
    /// What left by it.
    pub transmitted: ShownVolume,
    /// What was lost at it since the program took over.
    pub losses: ShownLosses,
    /// The same since it was attached.
    pub since_attached: ShownLosses,
}

/// Packets that were lost at a port, cause by cause, in the order in which `ports` names the causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLosses {
    /// Before the program.
    pub receive: [u64; 12],
    /// Behind it.
    pub send: [u64; 9],
}

/// The state of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownTableState {
    /// Its name.
    pub name: String,
    /// Entries that it holds.
    pub entries: u64,
    /// The most that it can hold.
    pub capacity: u64,
    /// New entries.
    pub inserts: u64,
    /// Entries whose value changed.
    pub moves: u64,
    /// Entries that went because it was full.
    pub evictions: u64,
    /// Entries that ended.
    pub expired: u64,
    /// New entries that were refused because it was full.
    pub refused: u64,
}
