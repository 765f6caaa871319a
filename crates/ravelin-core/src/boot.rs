//! The program that runs until the first one is there: it drops every packet.

use ir::Program;

/// Its IR. `start stage all() { drop no_policy_yet }` becomes the same.
pub const TEXT: &str = r#"program "boot"
slots 0
reason r0 "no_such_port" "the program sends to a port that does not exist"
reason r1 "no_policy_yet" "no policy is there yet"
stage s0 "all"  @0:0..0
manifest {
}

function f0 "packet" {
b0:
  jump b1  @0:0..0
b1:
  stage s0  @0:0..0
  drop r1  @0:0..0
}
"#;

/// The program.
pub fn program() -> Program {
    // A test reads and runs it.
    ir::read::read(TEXT).unwrap_or_default()
}
