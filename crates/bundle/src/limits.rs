//! How large a bundle and each of its parts may be: every limit of this crate.

/// Bytes of a bundle.
pub const BUNDLE_BYTES: usize = 64 << 20;

/// Bytes of the text of a program. What a bundle may hold besides fits into the rest.
pub const PROGRAM_BYTES: usize = 60 << 20;

/// Bytes of a name: of a gateway, a table or a key. Names of the language have at most as many.
pub const NAME_BYTES: usize = 255;

/// Keys of administrators that one gateway knows, and so the most signatures of a bundle.
pub const KEYS: usize = 16;

/// Tables that a bundle gives rights for.
pub const RIGHTS: usize = 64;

/// Prefixes of one right.
pub const PREFIXES: usize = 1_024;

/// Bits of a key: tables of longest prefixes have at most as many.
pub const KEY_BITS: u8 = 128;
