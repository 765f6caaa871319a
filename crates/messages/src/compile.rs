//! What `compile` says to the core, by way of `launch`: once, and then its channel ends.

use serde::{Deserialize, Serialize};

/// What became of the text of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompileMessage {
    /// The program with the entries of its tables, as the text of its IR.
    Program(String),
    /// A bundle with a signed policy, which whoever compiles has not looked into.
    Bundle(Vec<u8>),
    /// Why there is none, for people.
    Refused(String),
}
