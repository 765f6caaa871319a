//! What verdicts number has a limit, and one more is refused at its place: no number is ever cut.

use ir::limits::{MOST_PORT_SETS, MOST_REASONS, MOST_SLOTS};
use ir::steering::declare_worker_busy;
use ir::verify::{Fault, verify};
use ir::{Program, Reason};
use lang::pipeline::{CompileOptions, Compiled, compile};
use std::fmt::Write;

/// How many statements a stage has.
const IN_ONE: usize = 64;

fn compiled(text: &str) -> Compiled {
    compile("many.rav", text, &|_| None, &CompileOptions::default())
}

/// Statements in a chain of stages.
fn chain(statements: &[String]) -> String {
    let mut text = String::new();
    let stages: Vec<&[String]> = statements.chunks(IN_ONE).collect();
    for (number, stage) in stages.iter().enumerate() {
        let start = if number == 0 { "start " } else { "" };
        let next = if number + 1 < stages.len() { format!("goto s{}", number + 1) } else { "flood".into() };
        writeln!(text, "{start}stage s{number}() {{\n{}\n{next} }}", stage.join("\n"))
            .expect("a text takes it");
    }
    text
}

/// A program that drops for so many reasons; there is one more, for ports that do not exist.
fn reasons(count: usize) -> String {
    let declared: String =
        (0..count).map(|number| format!("reason r{number} \"it is {number}\"\n")).collect();
    let drops: Vec<String> =
        (0..count).map(|number| format!("if length == {number} {{ drop r{number} }}")).collect();
    declared + &chain(&drops)
}

/// A program that sends to so many lists of ports.
fn port_sets(count: usize) -> String {
    let list = |number: usize| {
        format!("if length == {number} {{ multicast {{ {}, {} }} }}", 1 + number / 256, 1_000 + number % 256)
    };
    chain(&(0..count).map(list).collect::<Vec<_>>())
}

/// The diagnostic for what is too much, with the text it stands at.
fn refused(text: &str) -> String {
    let compiled = compiled(text);
    assert!(compiled.program.is_none());
    let [fault] = &compiled.diagnostics[..] else { panic!("one fault: {:?}", compiled.diagnostics.first()) };
    assert_eq!(fault.code, "E0233");
    compiled.sources.text(fault.primary.span).to_string()
}

fn accepted(text: &str) -> Program {
    let compiled = compiled(text);
    assert_eq!(compiled.diagnostics.first(), None);
    let program = compiled.program.expect("it compiles");
    assert_eq!(verify(&program), Ok(()));
    program
}

#[test]
fn as_many_reasons_as_a_verdict_can_number_and_no_more() {
    let program = accepted(&reasons(MOST_REASONS - 1));
    assert_eq!(program.reasons.len(), MOST_REASONS);
    assert_eq!(program.reasons[MOST_REASONS - 1].name, format!("r{}", MOST_REASONS - 2));
    assert_eq!(refused(&reasons(MOST_REASONS)), format!("drop r{}", MOST_REASONS - 1));
}

#[test]
fn the_reason_of_several_workers_has_a_number_or_the_program_is_refused() {
    let steered = |count: usize| reasons(count) + "steer stage by() { steer 1 }\n";
    let program = accepted(&steered(MOST_REASONS - 2));
    assert_eq!(program.reasons.len(), MOST_REASONS);
    assert_eq!(program.reasons[MOST_REASONS - 1].name, "worker_busy");
    assert_eq!(refused(&steered(MOST_REASONS - 1)), "by");
    // A program that does not steer gets the reason when several workers run it.
    let mut full = accepted(&reasons(MOST_REASONS - 1));
    let error = declare_worker_busy(&mut full).expect_err("no number is left");
    assert!(error.contains("`worker_busy`") && error.contains("65536 reasons"), "{error}");
    assert_eq!(full.reasons.len(), MOST_REASONS);
    full.reasons.pop();
    assert_eq!(declare_worker_busy(&mut full), Ok(()));
    assert_eq!(declare_worker_busy(&mut full), Ok(()), "it has the reason");
    assert_eq!(verify(&full), Ok(()));
}

#[test]
fn as_many_lists_of_ports_as_a_verdict_can_number_and_no_more() {
    let program = accepted(&port_sets(MOST_PORT_SETS));
    assert_eq!(program.port_sets.len(), MOST_PORT_SETS);
    assert!(refused(&port_sets(MOST_PORT_SETS + 1)).starts_with("multicast"));
}

#[test]
fn the_verifier_admits_no_number_that_would_be_cut() {
    let mut program = accepted("start stage all() { multicast { 1 } }");
    let sound = program.clone();
    program.reasons =
        (0..=MOST_REASONS).map(|number| Reason { name: number.to_string(), help: String::new() }).collect();
    let faults = verify(&program).expect_err("one reason too many");
    assert!(faults.iter().any(|error| matches!(error.fault, Fault::TooMany("reasons", MOST_REASONS))));
    program = sound.clone();
    program.slots = MOST_SLOTS as u32 + 1;
    let faults = verify(&program).expect_err("one slot too many");
    assert!(faults.iter().any(|error| matches!(error.fault, Fault::TooMany("fuel slots", MOST_SLOTS))));
    program = sound;
    program.port_sets = vec![vec![1]; MOST_PORT_SETS + 1];
    let faults = verify(&program).expect_err("one set too many");
    assert!(
        faults.iter().any(|error| matches!(error.fault, Fault::TooMany("sets of ports", MOST_PORT_SETS)))
    );
}
