//! Which program runs, shown by the hash of its IR, and what became of packets since it took over.

use engine::live::Remote;
use engine::live::look::Counted;
use engine::program_hash;
use engine::report::by_reason;
use messages::control::Shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The program that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveView {
    /// [`program_hash`] of it, in hexadecimal.
    pub hash: String,
    /// Its name.
    pub program: String,
    /// How many programs have taken over, this one included.
    pub generation: u64,
    /// The layers of confinement of the process that runs packets; none if it is not confined.
    pub confined_by: Vec<String>,
    /// Packets received.
    pub received: u64,
    /// Packets handed to a port.
    pub forwarded: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets punted, by reason.
    pub punted: BTreeMap<String, u64>,
    /// Frames of containers refused before any program saw them, by port and reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, BTreeMap<String, u64>>,
}

impl From<Shown> for ActiveView {
    fn from(shown: Shown) -> ActiveView {
        ActiveView {
            hash: hexadecimal(&shown.hash),
            program: shown.program,
            generation: shown.number,
            confined_by: shown.layers,
            received: shown.received,
            forwarded: shown.forwarded,
            dropped: shown.dropped,
            punted: shown.punted,
            refused: shown.refused,
        }
    }
}

/// The program that these workers run; `None` if one of them has ended.
pub(crate) fn active(remote: &Remote) -> Option<ActiveView> {
    let counted = remote.look().and_then(Counted::whole)?;
    let (program, ledger) = (&counted.program, &counted.ledger);
    Some(ActiveView {
        hash: hexadecimal(&program_hash(program)),
        program: program.name.clone(),
        generation: counted.number,
        confined_by: Vec::new(),
        received: ledger.received().packets,
        forwarded: ledger.forwarded().packets,
        dropped: by_reason(program, |reason| ledger.dropped(reason).packets),
        punted: by_reason(program, |reason| ledger.punted(reason).packets),
        refused: BTreeMap::new(),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
