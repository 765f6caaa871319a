//! Which program runs, shown by the hash of its IR, and what became of packets since it took over.

use bundle::hex;
use engine::figures::by_reason;
use engine::live::Remote;
use engine::live::look::Counted;
use engine::program_hash;
use messages::control::{Shown, ShownPolicy};
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
    /// The signed policy that it is of, if it is of one.
    pub policy: Option<SignedView>,
    /// Frames of containers refused before any program saw them, by port and reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A signed policy that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedView {
    /// Its version.
    pub version: u64,
    /// SHA-256 of the payload of its bundle, in hexadecimal.
    pub hash: String,
    /// The names of the keys that signed it, and the public keys in hexadecimal.
    pub signed_by: BTreeMap<String, String>,
    /// Whether it needs no confirmation any more.
    pub confirmed: bool,
    /// How many seconds are left to confirm it.
    pub seconds_left: Option<u32>,
    /// The version that takes over if it is not confirmed; every packet is dropped if there is none.
    pub before: Option<u64>,
}

impl From<ShownPolicy> for SignedView {
    fn from(shown: ShownPolicy) -> SignedView {
        let signed_by = shown.signed_by.into_iter().map(|signer| (signer.name, signer.key));
        SignedView {
            version: shown.version,
            hash: hex(&shown.hash),
            signed_by: signed_by.collect(),
            confirmed: shown.unconfirmed.is_none(),
            seconds_left: shown.unconfirmed.as_ref().map(|unconfirmed| unconfirmed.seconds_left),
            before: shown.unconfirmed.and_then(|unconfirmed| unconfirmed.before),
        }
    }
}

impl From<Shown> for ActiveView {
    fn from(shown: Shown) -> ActiveView {
        ActiveView {
            hash: hex(&shown.hash),
            program: shown.program,
            generation: shown.number,
            confined_by: shown.layers,
            received: shown.received,
            forwarded: shown.forwarded,
            dropped: shown.dropped,
            punted: shown.punted,
            policy: shown.policy.map(SignedView::from),
            refused: shown.refused,
        }
    }
}

/// The program that these workers run; `None` if one of them has ended.
pub(crate) fn active(remote: &Remote) -> Option<ActiveView> {
    let counted = remote.look().and_then(Counted::whole)?;
    let (program, ledger) = (&counted.program, &counted.ledger);
    Some(ActiveView {
        hash: hex(&program_hash(program)),
        program: program.name.clone(),
        generation: counted.number,
        confined_by: Vec::new(),
        received: ledger.received().packets,
        forwarded: ledger.forwarded().packets,
        dropped: by_reason(program, |reason| ledger.dropped(reason).packets),
        punted: by_reason(program, |reason| ledger.punted(reason).packets),
        policy: None,
        refused: BTreeMap::new(),
    })
}
