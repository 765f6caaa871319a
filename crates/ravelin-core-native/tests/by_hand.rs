//! Only `ravelin-launch` starts the program: by hand it ends at once, and says what it was not given.
//!
//! Since the crate has this test, cargo builds the program together with the tests of other crates, which
//! start it.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

#[test]
fn started_by_hand_it_ends_and_says_that_nobody_speaks_to_it() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ravelin-core-native"));
    let output = program.stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("ravelin-core: launch: the channel to another process"), "{said}");
}
