//! What `control` asks of the core, and what the core answers: one answer for each question, in order.

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
