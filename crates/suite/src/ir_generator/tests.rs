//! What is made is well formed, reads back, and has every instruction there is.

use super::*;
use crate::ir_mutation::is_small;
use ir::read::read;
use ir::verify::verify;
use std::collections::BTreeSet;

/// The names of an enum's variants, from its source.
fn variants(source: &str, name: &str) -> Vec<String> {
    let body = source.split(&format!("pub enum {name} {{")).nth(1).expect("the enum is there");
    let body = body.split("\n}").next().unwrap_or(body);
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    names.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(line).to_string()).collect()
}

#[test]
fn the_list_of_instructions_is_that_of_the_ir() {
    let source = include_str!("../../../ir/src/lib.rs");
    assert_eq!([variants(source, "Op"), variants(source, "Terminator")].concat(), INSTRUCTIONS);
}

#[test]
fn made_programs_are_well_formed_and_read_back() {
    let mut all = BTreeSet::new();
    for seed in 0..300 {
        let program = generate(&mut SuiteRandom::new(seed));
        let text = program.to_string();
        if let Err(faults) = verify(&program) {
            panic!("seed {seed}: {faults:?}\n{text}");
        }
        assert!(is_small(&program), "seed {seed}");
        let again = read(&text).unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{text}"));
        assert_eq!(again.to_string(), text, "seed {seed}");
        assert_eq!(again, program, "seed {seed}");
        all.extend(instructions(&program));
    }
    assert_eq!(all.len(), INSTRUCTIONS.len());
}
