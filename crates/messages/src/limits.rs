//! Every limit of the messages in one place.

/// The longest message that carries a program or a signed policy, in bytes (64 MiB).
pub const LONGEST_PROGRAM: usize = 64 << 20;

/// The longest message of another kind, in bytes (1 MiB).
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// How many descriptors come with a message at most: three for each of 64 workers.
pub const MOST_DESCRIPTORS: usize = 192;

/// The longest text for people in a message, in bytes: what is longer is cut.
pub const LONGEST_TEXT: usize = 4096;

/// How many clients may wait at the control socket to be answered.
pub const WAITING_CLIENTS: i32 = 128;
