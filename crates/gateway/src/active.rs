//! Which program runs, shown by the hash of its IR, and what became of packets since it took over.

use engine::live::Remote;
use engine::live::look::Counted;
use messages::control::Shown;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The program that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveView {
    /// SHA-256 of the text of its IR with the entries that tables began with, in hexadecimal.
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
            dropped: shown.dropped.into_iter().collect(),
            punted: shown.punted.into_iter().collect(),
        }
    }
}

/// The program that these workers run; `None` if one of them has ended.
pub(crate) fn active(remote: &Remote) -> Option<ActiveView> {
    let counted = remote.look().and_then(Counted::whole)?;
    let text = ir::print::print(&counted.program);
    let reasons = counted.program.reasons.iter().zip(0u16..);
    let by_reason = |of: &dyn Fn(u16) -> u64| {
        let named = reasons.clone().map(|(reason, number)| (reason.name.clone(), of(number)));
        named.filter(|(_, packets)| *packets > 0).collect()
    };
    let ledger = &counted.ledger;
    Some(ActiveView {
        hash: hexadecimal(digest(&SHA256, text.as_bytes()).as_ref()),
        program: counted.program.name.clone(),
        generation: counted.number,
        confined_by: Vec::new(),
        received: ledger.received().packets,
        forwarded: ledger.forwarded().packets,
        dropped: by_reason(&|reason| ledger.dropped(reason).packets),
        punted: by_reason(&|reason| ledger.punted(reason).packets),
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
