//! What two cores say to each other when one takes over from the other. `launch` gives each an end of the
//! channel, and does not hear what is said.
//!
//! ```text
//! core that takes over    ── Begin ──────────────────────►   core that runs
//!                         ◄── Program, or Refused ────────    it goes on
//!      verifies, loads it
//!                         ── Rest ───────────────────────►
//!                         ◄── Entries, Members, Cells, ByControl … ─  takes no more packets
//!                         ◄── Checkpoints for each worker ─
//!      has the state
//!                         ── Ready ──────────────────────►
//!                         ◄── Yours ──────────────────────    never takes a packet again
//!      takes packets
//! ```
//!
//! Where the channel ends before `Yours`, the core that runs goes on as if nothing had happened.

use crate::control::EntryChange;
use serde::{Deserialize, Serialize};

/// What the core says that takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakeoverQuestion {
    /// It asks what runs.
    Begin,
    /// It asks for the state, and that no more packets are taken.
    Rest,
    /// It has the state.
    Ready,
}

/// What the core says that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakeoverAnswer {
    /// What runs.
    Program {
        /// The text of its IR.
        text: String,
        /// How many programs have taken over, this one included.
        number: u64,
        /// The newest version of a signed policy that was accepted; 0 before the first.
        newest: u64,
    },
    /// It does not hand over now, and goes on.
    Refused(String),
    /// Entries that packets made in a table.
    Entries {
        /// Whose they are.
        worker: u16,
        /// The number of the table.
        table: u32,
        /// The columns of the key and of the value, and the time (ns) when it ends by the table's `age`.
        entries: Vec<(Vec<u128>, Vec<u128>, Option<u64>)>,
    },
    /// Members that packets made in a group.
    Members {
        /// Whose they are.
        worker: u16,
        /// The number of the group.
        group: u32,
        /// The index of the group, and the columns.
        members: Vec<(u32, Vec<u128>)>,
    },
    /// Cells of a register.
    Cells {
        /// Whose they are.
        worker: u16,
        /// The number of the register.
        register: u32,
        /// The first one.
        first: u32,
        /// Their values.
        cells: Vec<u64>,
    },
    /// Entries that are there because of rights of `control`, and those of the program that are not there any
    /// more.
    ByControl(Vec<EntryChange>),
    /// There is no more state of packets. Where the ports of a worker stand, port by port; one such message
    /// for each worker.
    Checkpoints(Vec<LaneCheckpoint>),
    /// It never takes a packet again.
    Yours,
}

/// Where a worker's part of a port stands, in numbers that only a port of the same kind (such as AF_XDP)
/// knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCheckpoint {
    /// The half that receives.
    pub receive: Vec<u32>,
    /// The half that sends.
    pub send: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::limits::{LONGEST_STATE_MESSAGE, MOST_PORTS};
    use ports::live::MOST_SHARING;

    /// As many ports of AF_XDP as share frames, each with 4,096 frames of which another port has each, and
    /// with 2,048 that are free for copies; and as many others as there may be.
    #[test]
    fn the_longest_checkpoints_of_a_worker_fit() {
        let xdp =
            LaneCheckpoint { receive: vec![MOST_SHARING as u32 + 2; 4096 + 64], send: vec![2047; 2048] };
        let other = LaneCheckpoint { receive: vec![u32::MAX], send: Vec::new() };
        let all = [vec![xdp; MOST_SHARING], vec![other; MOST_PORTS - MOST_SHARING]].concat();
        let written = frame::written(&TakeoverAnswer::Checkpoints(all)).expect("written");
        assert!(written.len() - 4 <= LONGEST_STATE_MESSAGE, "{}", written.len());
    }
}
