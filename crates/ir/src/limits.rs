//! Every limit of the IR in one place: what a program may ask of a back end, of memory and of the stack.
//!
//! The verifier refuses what goes beyond most of them. The compiler refuses it before, with a diagnostic at
//! its place in the text: its code ends the documentation of a constant here. `lang::limits` has the limits
//! that only the text of programs has, and the test that compares both with `docs/language.md`.

/// How many bytes of stack a packet function or handler needs at most as machine code (256 KiB). `E0234`
pub const LARGEST_FRAME: u32 = 262_144;

/// How many reasons of drops and punts a program has at most, those of headers that are short or invalid
/// included: a verdict has 16 bits for them. `E0233`
pub const MOST_REASONS: usize = 65_536;

/// How many different lists of ports a program multicasts to at most: a verdict has 16 bits for them. `E0233`
pub const MOST_PORT_SETS: usize = 65_536;

/// How many loops that count their rounds a program has at most: a back end keeps a number for each. `E0233`
pub const MOST_SLOTS: usize = 65_536;

/// The largest cap of a loop in the IR.
pub const LARGEST_CAP: u32 = 1 << 20;

/// How many fields of a packet in the program text are computed at most. `E0615`
pub const MOST_HOLES: usize = 4096;

/// How many arguments an event has at most. `E0530`
pub const MOST_ARGUMENTS: usize = 256;

/// How many bytes everything that a program remembers may take together (16 GiB), as `ravelin check` tells
/// it; at all workers of a gateway together. `E0540`
pub const LARGEST_MEMORY: u64 = 16 << 30;

/// How many 64-bit words a key, and how many a value, has at most, but for keys of rules. `E0506`
pub const LARGEST_WORDS: usize = 8;

/// How many 64-bit words the key of a table of rules has at most: one a column, two for one of more than 64
/// bits. `E0506`
pub const LARGEST_RULES_KEY: usize = 32;

/// How many items a pool has at most. `E0501`
pub const MOST_ITEMS: u64 = 1 << 26;

/// How many parts an item of a pool has at most. `E0506`
pub const MOST_COLUMNS: usize = 8;

/// How many members each group has room for at most. `E0525`
pub const MOST_MEMBERS: u32 = 1 << 16;

/// How many buckets each group has at most. `E0525`
pub const MOST_BUCKETS: u32 = 1 << 20;

/// How many members of a group a packet goes to at most: a group of more is none for multicast. `E0418`
pub const MOST_COPIES: u32 = 64;
