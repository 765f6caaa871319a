//! Every limit of the messages in one place.

/// The longest message that carries a program or a signed policy, in bytes (64 MiB).
pub const LONGEST_PROGRAM: usize = 64 << 20;

/// The longest message of another kind, in bytes (1 MiB).
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// The most workers of a gateway.
pub const MOST_WORKERS: u16 = 64;

/// The most ports of a core.
pub const MOST_PORTS: usize = 1024;

/// The most addresses of each family that a router in a container has.
pub const MOST_ADDRESSES: usize = 64;

/// How many descriptors come with a message at most: three for each worker.
pub const MOST_DESCRIPTORS: usize = 3 * MOST_WORKERS as usize;

/// The longest text for people in a message, in bytes: what is longer is cut.
pub const LONGEST_TEXT: usize = 4096;

/// How many clients may wait at the control socket to be answered.
pub const WAITING_CLIENTS: i32 = 128;
