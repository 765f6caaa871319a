//! Every limit of asking a running gateway: how many ask, how much they say, and how long each may take over
//! it.

use std::time::Duration;

/// How many clients are answered at once at the control socket. Who comes then takes the place of the one
/// that has been silent longest, or is turned away.
pub(crate) const CLIENTS: usize = 16;
/// How long a client may be silent before it has to make room for another.
pub(crate) const SILENT: Duration = Duration::from_secs(1);
/// How long a client may say nothing between two questions while there is room.
pub(crate) const SILENCE: Duration = Duration::from_secs(600);
/// The longest question, in bytes.
pub(crate) const QUESTION: u64 = 64 << 10;
/// How long a client may take over a question once it has begun, and over reading an answer, from their
/// beginning to their end; and how long it waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How many clients wait to be taken at most.
pub(crate) const BACKLOG: i32 = 128;

/// How long reading and compiling what is to take over may take, waiting for another reload included. It is
/// given up then, and nothing has changed.
pub(crate) const RELOAD: Duration = Duration::from_secs(240);
/// How long a client waits for the answer to `reload`: compiling, and reading a million routes, may take a
/// while on a busy machine.
pub(crate) const RELOADED: Duration = Duration::from_secs(300);
/// How many that were given up may still be at it, as where a file never ends, until further ones are
/// refused.
pub(crate) const OVERDUE: usize = 2;

/// How many are answered at once at the address of the metrics; further connections are closed.
pub(crate) const HTTP_CLIENTS: usize = 16;
/// The longest question there, in bytes.
pub(crate) const HTTP_QUESTION: usize = 8 << 10;
/// How long one may take to ask there and to read the answer.
pub(crate) const HTTP_PATIENCE: Duration = Duration::from_secs(5);
