//! What a front says first to a client that it knows.

use crate::role::ClientRole;
use serde::{Deserialize, Serialize};

/// As whom the front knows a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The name of its key.
    pub name: String,
    /// What it may ask.
    pub role: ClientRole,
}
