//! The shipped firewalls whose rules come from a file: their tests, with their dump and with groups of NPF.

use exec::{BackendKind, Outputs, load};
use import::policies::RULES_READER;
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use lang::testcase::{CaseStep, Expected, TestCase};
use packet::{Batch, Verdict};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/rules")
}

fn program() -> String {
    program_named("firewall.rav")
}

fn program_named(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect("it is there")
}

/// Compiles the program beside its files, with this in place of the text of one of them.
fn compiled(text: &str, other: Option<(&str, &str)>) -> (Program, Vec<TestCase>) {
    let load = |path: &str| match other {
        Some((name, text)) if name == path => Some(text.to_owned()),
        _ => fs::read_to_string(folder().join(path)).ok(),
    };
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile("firewall.rav", text, &load, &options);
    assert!(compiled.diagnostics.is_empty(), "{:#?}", compiled.diagnostics);
    (compiled.program.expect("it compiles"), compiled.tests)
}

/// Whether a verdict is the one that is expected.
fn fits(program: &Program, verdict: Verdict, expected: &Expected) -> bool {
    match expected {
        Expected::Send(port) => verdict == Verdict::send(*port),
        Expected::Drop(reason) => {
            let found = program.reasons.iter().position(|known| known.name == *reason);
            found.is_some_and(|index| verdict == Verdict::drop(index as u16))
        }
        other => panic!("not understood: {other:?}"),
    }
}

/// Runs the tests on every back end; gives the places of what did not hold.
fn mismatches(program: &Program, tests: &[TestCase], text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for kind in BackendKind::ALL {
        for test in tests {
            let mut backend = load(program, kind, test.ports, 1).expect("it loads");
            let mut last = Verdict::PENDING;
            for step in &test.steps {
                match step {
                    CaseStep::Packet { port, bytes, time, .. } => {
                        let (mut bytes, length) = (bytes.clone(), bytes.len() as u32);
                        bytes.resize(512, 0);
                        let mut batch = Batch::new();
                        batch.push(0, length, length, *port, *time);
                        backend.run(&mut bytes, &mut batch, &mut Outputs::default());
                        last = batch.verdict[0];
                    }
                    CaseStep::Expect(expected, span) if expected.is_verdict() => {
                        if !fits(program, last, expected) {
                            let line = text[..span.start as usize].matches('\n').count() + 1;
                            found.push(format!("{kind:?}, line {line}: {expected:?}, and it is {last:?}"));
                        }
                    }
                    CaseStep::Expect(..) | CaseStep::Advance(_) => {}
                }
            }
        }
    }
    found
}

#[test]
fn it_decides_by_its_dump() {
    let text = program();
    let (program, tests) = compiled(&text, None);
    assert!(tests.len() >= 3);
    assert_eq!(mismatches(&program, &tests, &text), Vec::<String>::new());
}

#[test]
fn the_one_that_follows_tcp_decides_by_the_same_dump() {
    let text = program_named("tracking.rav");
    let (program, tests) = compiled(&text, None);
    assert!(tests.len() >= 4);
    assert_eq!(mismatches(&program, &tests, &text), Vec::<String>::new());
    // Rules that keep connections by direction let nothing of these pass.
    let from = "from \"rules.v4\" as iptables ";
    assert_eq!(text.matches(from).count(), 1);
    let text = text
        .replace(from, "from \"rules.npf\" as npf ")
        .replace("state: u3, in_port", "state: u3, out_state: u3 absent, in_port");
    let text = text
        .replace("found, in_port", "found, found, true, in_port")
        .replace("state, in_port, true", "state, state, true, in_port, true");
    let text = &text[..text.find("\ntest ").expect("it has tests")];
    let kept = r#"
test "what a rule keeps otherwise" {
    ports 2
    packet 1 { ethernet / ipv4(src 10.0.0.1, dst 192.0.2.9) / udp(src 40000, dst 53) } expect drop not_kept
}
"#;
    let text = format!("{text}{kept}");
    let (program, tests) = compiled(&text, None);
    assert_eq!(mismatches(&program, &tests, &text), Vec::<String>::new());
}

const GROUPS: &str = r#"
test "what begins inside passes both groups, and its answers pass" {
    ports 2
    packet 1 { ethernet / ipv4(src 10.0.0.1, dst 192.0.2.9) / tcp(src 40000, dst 443, flags 0x02) } expect send 2
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.1) / tcp(src 443, dst 40000, flags 0x12) } expect send 1
    packet 1 { ethernet / ipv4(src 10.0.0.1, dst 192.0.2.9) / tcp(src 40000, dst 443, flags 0x10) } expect send 2
    packet 1 { ethernet / ipv4(src 10.0.0.1, dst 192.0.2.9) / tcp(src 40001, dst 25, flags 0x02) } expect drop blocked
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.1) / tcp(src 443, dst 40002, flags 0x12) } expect drop blocked
    packet 1 { ethernet / ipv4(src 10.0.0.1, dst 192.0.2.9) / udp(src 40000, dst 53) } expect send 2
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.1) / udp(src 53, dst 40000) } expect send 1
}
test "from outside the group on the way in lets pass, and the one on the way out decides" {
    ports 2
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.80) / tcp(src 40000, dst 443, flags 0x02) } expect send 1
    packet 1 { ethernet / ipv4(src 10.0.0.80, dst 192.0.2.9) / tcp(src 443, dst 40000, flags 0x12) } expect send 2
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.80) / tcp(src 40000, dst 22, flags 0x02) } expect drop blocked
    packet 2 { ethernet / ipv4(src 10.0.0.9, dst 10.0.0.80) / tcp(src 40000, dst 443, flags 0x02) } expect drop blocked
    packet 2 { ethernet / ipv4(src 192.0.2.9, dst 10.0.0.81) / tcp(src 40000, dst 443, flags 0x02) } expect drop blocked
}
"#;

#[test]
fn it_decides_by_groups_of_npf_on_the_way_in_and_on_the_way_out() {
    let text = program();
    let text = &text[..text.find("\ntest ").expect("it has tests")];
    let from = "\n    from \"rules.v4\" as iptables ";
    assert_eq!(text.matches(from).count(), 1);
    let text = text.replace(from, "\n    from \"rules.npf\" as npf ") + GROUPS;
    let (program, tests) = compiled(&text, None);
    assert_eq!(mismatches(&program, &tests, &text), Vec::<String>::new());
    // Where the group on the way out keeps nothing, answers have no group that lets them in.
    let rules = fs::read_to_string(folder().join("rules.npf")).expect("it is there");
    let kept = "    pass stateful all\n    block proto tcp to any port 25";
    assert_eq!(rules.matches(kept).count(), 1);
    let (program, tests) = compiled(&text, Some(("rules.npf", &rules.replace(kept, "    pass all"))));
    let differ = mismatches(&program, &tests, &text);
    assert!(differ.iter().any(|line| line.contains("Send(1)")), "{differ:?}");
}
