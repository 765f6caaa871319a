//! Only `ravelin-launch` starts the program: by hand it ends before it takes a datagram, since it is not
//! confined.
//!
//! Since the crate has this test, cargo builds the program together with the tests of other crates, which
//! start it.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

#[test]
fn started_by_hand_it_ends_and_names_the_layer_that_is_missing() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ravelin-tunnel"));
    let output = program.stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("ravelin-tunnel: the layer `user-namespace` is missing"), "{said}");
}
