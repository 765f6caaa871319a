//! What `control` asks of the core, and what the core answers: one answer for each question, in order.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlQuestion {
    /// What runs, and what became of packets.
    Show,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoreAnswer {
    /// To [`ControlQuestion::Show`].
    Shown(Shown),
    /// The question cannot be answered, for a reason for people.
    Refused(String),
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
    /// Frames of containers that were refused before any program saw them, by the name of the port and that
    /// of the reason, since the core began.
    pub refused: BTreeMap<String, BTreeMap<String, u64>>,
}
