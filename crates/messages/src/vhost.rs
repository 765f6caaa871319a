//! What the process that speaks with the monitor of a virtual machine says to `launch`.
//!
//! ```text
//! launch                        vhost ─ monitor
//! VhostSupply::Bell  ────────►
//!                    ◄────────  VhostReport::Shares, with the files of the memory
//!                    ◄────────  VhostReport::SharesNothing
//! VhostSupply::LetGo ────────►                                  then `Shares` again, and so on
//! ```

use ports::live::vhost::Rings;
use serde::{Deserialize, Serialize};

/// What it hears of `launch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VhostSupply {
    /// With one descriptor: its end of the bell, at whose other end the core is.
    Bell {
        /// Whether the core takes long segments and open checksums of the machine.
        takes_unfinished: bool,
    },
    /// With no descriptor: nothing is used any more of what was shared before the last report.
    LetGo,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VhostReport {
    /// The driver of the machine is ready, and its monitor shares this; with a file for each region.
    Shares(Rings),
    /// Nothing is shared any more.
    SharesNothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use crate::limits::LONGEST_VHOST_REPORT;
    use ports::live::vhost::limits::MOST_REGIONS;
    use ports::live::vhost::{GuestRegion, RingPlace};

    #[test]
    fn the_longest_report_fits() {
        let region = GuestRegion { start: u64::MAX, length: u64::MAX, offset: u64::MAX };
        let ring = RingPlace { size: u16::MAX, descriptors: u64::MAX, available: u64::MAX, used: u64::MAX };
        let rings =
            Rings { regions: vec![region; MOST_REGIONS], receive: ring, transmit: ring, unfinished: true };
        let written = frame::written(&VhostReport::Shares(rings)).expect("written");
        assert!(written.len() - 4 <= LONGEST_VHOST_REPORT, "{}", written.len());
    }
}
