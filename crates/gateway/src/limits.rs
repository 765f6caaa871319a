//! Limits of the control server, of the metrics and of host interfaces: the number of clients, the length of
//! questions, the time for each, and the share of the machine in what leaves.

use std::time::Duration;

/// The largest number of clients at the control socket. A further client takes the place of the one that has
/// been silent longest, or is turned away.
pub(crate) const CLIENTS: usize = 16;
/// How long a client may be silent before it has to make room for another.
pub(crate) const SILENT: Duration = Duration::from_secs(1);
/// How long a client may say nothing between two questions while there is room for others.
pub(crate) const SILENCE: Duration = Duration::from_secs(600);
/// The longest question, in bytes.
pub(crate) const QUESTION: u64 = 64 << 10;
/// How long a client may take to send a whole question, and to read a whole answer; and how long a command
/// waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The largest number of connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 128;

/// How long a reload may take to read and compile the new program, including the wait for another reload.
/// After that it is given up, and nothing has changed.
pub(crate) const RELOAD: Duration = Duration::from_secs(240);
/// How long a client waits for the answer to `reload`: compiling, and reading a million routes, may take a
/// while on a busy machine.
pub(crate) const RELOADED: Duration = Duration::from_secs(300);
/// How many given-up reloads may still be running, as when a file never ends; while there are more, further
/// reloads are refused.
pub(crate) const OVERDUE: usize = 2;

/// The largest number of clients at the address of the metrics; further connections are closed.
pub(crate) const HTTP_CLIENTS: usize = 16;
/// The longest HTTP request, in bytes.
pub(crate) const HTTP_QUESTION: usize = 8 << 10;
/// How long an HTTP client may take for its request and for reading the response.
pub(crate) const HTTP_PATIENCE: Duration = Duration::from_secs(5);

/// The most frames of the machine, as a host at ports, that leave between two batches of packets. Where a
/// program decides about them, their packets run in batches of up to 256, and ports have a turn in between.
pub(crate) const HOST_TURN_FRAMES: usize = 64;
/// The bytes after which no further frame of the machine leaves between two batches.
pub(crate) const HOST_TURN_BYTES: usize = 128 << 10;

/// The most addresses of a port's host interface that become the gateway's.
pub(crate) const HOST_ADDRESSES: usize = 256;

/// The longest snapshot that is written or read, in bytes.
pub(crate) const SNAPSHOT_BYTES: u64 = 1 << 30;
