//! Every limit of the front in one place.

use std::time::Duration;

/// How many connections there are at once. A further one takes the place of another, or is closed.
pub const CONNECTIONS: usize = 64;

/// How many connections of one network (an address of IPv4, the first 64 bits of one of IPv6) may not have
/// shown a known key yet. A further one takes the place of the oldest.
pub const UNKNOWN_OF_NETWORK: usize = 8;

/// How many connections one key has at once. A further one takes the place of the one that has been silent
/// longest.
pub const OF_KEY: usize = 4;

/// How many clients are known.
pub const CLIENTS: usize = 16;

/// How long a handshake may take.
pub const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// How long nothing may come from a client whose turn it is, or go to one.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How long a question may take until it is whole, and how long an answer may take on its way.
pub const WHOLE_WITHIN: Duration = Duration::from_secs(300);

/// How long the gateway may take to answer.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(120);

/// The longest question that holds no bundle, in bytes.
pub const SHORT_QUESTION: usize = 64;

/// How many questions that are longer may come at once. A further one is refused.
pub const LONG_QUESTIONS: usize = 4;

/// How often connections that were refused are told, at most.
pub const REFUSED_TOLD: Duration = Duration::from_secs(10);

/// How long a client waits until it is connected, and for each part of what it is told before it asks.
pub const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
