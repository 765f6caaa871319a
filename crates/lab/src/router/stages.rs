//! Programs that do the first part of a router's work on IPv4 and then send, each a stage more than the one
//! before it.
//!
//! Each does what `router` does up to a point, but for groups, ICMP and fragments. What one takes longer than
//! the one before it is the cost of its stage.

use crate::programs::compile;
use ir::Program;
use lang::pipeline::Decode;

/// What the stages are called, in order.
pub(super) const STAGES: [&str; 8] = [
    "receive and send",
    "check the headers",
    "look up the way back",
    "classify by rules",
    "ask for payload",
    "look up the route",
    "look up the next hop",
    "TTL with checksum, Ethernet addresses, padding cut off",
];

/// The text of all stages: a line `# stages A-B` says which of them have the lines behind it.
const TEXT: &str = include_str!("stages.txt");

/// The text of a stage; 0 is the first.
fn text(stage: usize) -> String {
    let mut is_in = false;
    let mut text = String::new();
    for line in TEXT.lines() {
        match line.strip_prefix("# stages ").and_then(|stages| stages.split_once('-')) {
            Some((first, last)) => {
                is_in = first.parse().is_ok_and(|first: usize| first <= stage)
                    && last.parse().is_ok_and(|last: usize| stage <= last);
            }
            None if is_in => text.extend([line, "\n"]),
            None => {}
        }
    }
    text
}

/// The program of a stage.
pub(super) fn program(stage: usize) -> Result<Program, String> {
    compile(&format!("stage {}", STAGES[stage]), &text(stage), Decode::Lazy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_compiles_and_the_last_one_does_all() {
        for (stage, name) in STAGES.iter().enumerate() {
            let compiled = program(stage).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(compiled.tables.is_empty(), stage == 0, "{name}");
            assert!(stage == 0 || text(stage - 1).len() < text(stage).len(), "{name}");
        }
        assert!(text(STAGES.len() - 1).contains("set ip.ttl"));
    }
}
