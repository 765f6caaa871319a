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
    Bell,
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
