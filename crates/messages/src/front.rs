//! What `launch` says to the process that listens on a network, and what it hands to `control`: such
//! processes, which it answers, the socket for metrics, and that for the routes of a container. What such a
//! process asks of `control` is what `control` asks of the core.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The first and only message of `launch` to the front. With two descriptors: the socket at which it listens,
/// and its channel to `control`. What stands in it is not looked at before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontBegin {
    /// The text of its secret key.
    pub key: String,
    /// The clients that it knows, each as a text.
    pub clients: Vec<String>,
}

/// Without the keys.
impl fmt::Debug for FrontBegin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontBegin").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// What `launch` says to `control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlSupply {
    /// With one descriptor: the channel for what follows. It comes first of all, where there is a front, and
    /// by the channel to the core, before the core has the other end.
    Fronts,
    /// With one descriptor: the socket at which metrics are asked for. It comes next, by the same channel,
    /// where there are to be any.
    Metrics,
    /// With one descriptor: a socket of rtnetlink in the network of a container, which tells of its routes.
    /// It comes next, by the same channel, where these are to be followed.
    Routes,
    /// With one descriptor: the channel of a front that was started.
    Front,
}
