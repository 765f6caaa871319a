//! What `launch` says to the core, and what the core answers.
//!
//! ```text
//! Begin, Kept, Beside, Port for each port, Start   then, in any order: Renewed, Compile, Control, HasKept, HandOver
//! ```

use guard::OwnAddresses;
use ports::live::PortWay;
use serde::{Deserialize, Serialize};

/// What `launch` says to the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchMessage {
    /// The first message.
    Begin(Begin),
    /// What was kept of the policies before, where they have to be signed: the second message.
    Kept(Kept),
    /// Another core runs, and this one takes over from it: behind `Begin` and `Kept`. With the channel to it,
    /// and where it is to take over with another program than runs there, the channel by which `compile`
    /// gives this one.
    Beside,
    /// A port, with its descriptors. Ports are numbered from 1 in the order in which they come.
    Port(SuppliedPort),
    /// There are no more ports. The core locks itself in, and runs from now on.
    Start,
    /// The interface of a port was away and is there again; with its new descriptors.
    Renewed {
        /// The number of the port.
        number: u16,
        /// What was obtained.
        port: SuppliedPort,
        /// What comes back with [`CoreReport::Renewed`].
        serial: u64,
    },
    /// With one descriptor: the channel by which a program comes that `compile` gives, or has given before.
    Compile,
    /// With one descriptor: the channel of a process that asks and changes.
    Control,
    /// With one descriptor: the channel of a core that is to take over from this one.
    HandOver,
    /// The answer to [`CoreReport::Keep`].
    HasKept {
        /// Its newest version.
        newest: u64,
        /// Why it is not on the disk, if it is not.
        failed: Option<String>,
    },
}

/// How the core is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// How many workers there are, each with one lane of every port.
    pub workers: u16,
    /// How many ports there are.
    pub ports: u16,
    /// What chooses the hash functions of tables: nobody who sends packets may know it.
    pub seed: u64,
    /// The layers of confinement that somebody said the core may run without.
    pub without: Vec<String>,
    /// Whose policies alone are taken. Without it, a program needs no signature.
    pub trust: Option<TrustTerms>,
    /// Whether another core runs, from which this one takes over.
    pub beside: bool,
}

/// Whose policies a gateway takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustTerms {
    /// The name of the gateway.
    pub gateway: String,
    /// How many of the keys must sign.
    pub threshold: u16,
    /// The names of the keys, and the public keys in hexadecimal digits.
    pub keys: Vec<(String, String)>,
}

/// What is kept of signed policies while no core runs. Whoever keeps it does not read the bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The newest version that was accepted: no other one than a newer one is accepted. 0 before the first.
    pub newest: u64,
    /// The last policy that was accepted and needs no confirmation any more.
    pub policy: Option<KeptPolicy>,
}

/// A policy that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPolicy {
    /// Its version.
    pub version: u64,
    /// Its bundle.
    pub bundle: Vec<u8>,
}

/// A port that `launch` opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppliedPort {
    /// The interface's name.
    pub interface: String,
    /// By which way packets come and leave.
    pub way: PortWay,
    /// The router in a container whose only link it is: frames from there must be its own.
    pub router: Option<OwnAddresses>,
    /// The addresses of `control` on this link, if it has any: the core sends only frames whose sender they
    /// are.
    pub control: Option<OwnAddresses>,
    /// What to do with unfinished packets.
    pub unfinished: Unfinished,
    /// Whether packets that are meant for other stations are taken, too.
    pub promiscuous: bool,
    /// How the port is attached, as a text for people.
    pub mode: String,
}

/// What to do with packets that hosts hand over unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unfinished {
    /// Segments are cut for the program.
    Cut,
    /// The program gets segments whole.
    Whole,
    /// Segments are lost.
    Off,
}

/// What the core says to `launch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoreReport {
    /// It has locked itself in, and drops every packet until a program takes over.
    Locked {
        /// The layers of confinement that hold.
        layers: Vec<String>,
    },
    /// It has taken over from the core before it, which does not take packets any more.
    TookOver {
        /// For how long no core took packets, in microseconds.
        gap: u64,
        /// How many entries, members and cells of the program's state it has.
        state: u64,
    },
    /// A program has taken over.
    Activated {
        /// SHA-256 of the text of its IR, as the core prints it.
        hash: [u8; 32],
        /// How many have taken over, this one included; the one that drops every packet is the first.
        number: u64,
        /// Why it did.
        because: Because,
    },
    /// What is to be kept from now on. What is left out stays as it was.
    Keep(Kept),
    /// What [`LaunchMessage::Renewed`] said is done, or could not be: of what the port was before, nothing is
    /// used any more.
    Renewed {
        /// Which one it was.
        serial: u64,
    },
    /// A program was refused, and what ran before goes on.
    Refused {
        /// Why, for people.
        why: String,
    },
}

/// Why a program has taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Because {
    /// It was handed in, and needs no signature.
    HandedIn,
    /// A policy was accepted.
    Accepted {
        /// Its version.
        version: u64,
        /// The names of the keys that signed it.
        signed_by: Vec<String>,
        /// Within how many seconds it has to be confirmed, if it has to be.
        confirm_within: Option<u32>,
    },
    /// It ran in the core before this one.
    RanBefore,
    /// A policy was kept while no core ran.
    Kept {
        /// Its version.
        version: u64,
    },
    /// The policy after it was not confirmed in time.
    Unconfirmed {
        /// The version that was not confirmed.
        version: u64,
        /// The version that runs now; every packet is dropped if there is none.
        before: Option<u64>,
    },
}
