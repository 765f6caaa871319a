//! Limits of tables from outside and of subscriptions: how much is changed, listed and collected, and how
//! many clients subscribe.

use std::time::Duration;

/// The largest number of changes of tables that are made between two batches, and the time after which no
/// further one is begun.
pub(crate) const CHANGES: usize = 64;
pub(crate) const CHANGING: Duration = Duration::from_micros(40);
/// The most buckets of a group whose members are changed: a change looks at all of them.
pub(crate) const MOST_BUCKETS: u32 = 16 << 10;
/// The largest number of changes of one client that are made before it gets the answers to them.
pub(crate) const CHANGES_TOGETHER: usize = 1024;
/// The largest number of entries that are copied between two batches.
pub(crate) const ENTRIES: usize = 64;
/// The largest number of entries in one answer, and about how many bytes they may have.
pub(crate) const LISTED: usize = 4096;
pub(crate) const LISTED_BYTES: usize = 128 << 10;
/// The largest number of times that workers copy entries for one answer.
pub(crate) const LISTED_STEPS: usize = 1024;
/// The largest number of bytes that the entries of one replacement may have in requests; in memory they take
/// more than ten times as many. One client replaces a table at a time.
pub(crate) const REPLACEMENT: usize = 64 << 20;
/// How many bytes of an answer a client reads in a second at least: for a long answer it has so much longer
/// than [`PATIENCE`](crate::limits::PATIENCE).
pub(crate) const LEAST_RATE: u64 = 64 << 10;
/// How many bytes of answers may wait before they are sent.
pub(crate) const ANSWERS: usize = 64 << 10;
/// The largest number of clients that subscribe, and of subscriptions of each.
pub(crate) const SUBSCRIBERS: usize = 8;
pub(crate) const SUBSCRIPTIONS: usize = 4;
/// The largest number of bytes of a packet that are passed on.
pub(crate) const SNAP: u32 = 64 << 10;
/// How long a change waits at most that a confined core would take later, and not now.
pub(crate) const CHANGE_WAITS: Duration = Duration::from_secs(5);
