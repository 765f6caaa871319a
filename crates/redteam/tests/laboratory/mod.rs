//! A laboratory of a test, which says so and ends where it cannot be had.

use std::io::{self, ErrorKind};

/// The program whose folder has the others.
pub(crate) const REDTEAM: &str = env!("CARGO_BIN_EXE_redteam");

/// What was started; `None` where an error of one of these kinds says that it cannot be had here.
pub(crate) fn unless<T>(kinds: &[ErrorKind], test: &str, started: io::Result<T>) -> Option<T> {
    match started {
        Err(error) if kinds.contains(&error.kind()) => {
            assert!(std::env::var_os("CI").is_none(), "{test}: {error}");
            eprintln!("{test}: not run: {error}");
            None
        }
        started => Some(started.expect("it starts")),
    }
}
