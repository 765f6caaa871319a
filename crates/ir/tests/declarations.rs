//! Declarations at their limits, as the verifier judges them: the most that may be passes, and a step beyond
//! is a fault; tables have what their kind knows; and what steers packets has no state.

use ir::limits::{LARGEST_FRAME, MOST_ARGUMENTS, MOST_HOLES, MOST_PORT_SETS, MOST_REASONS, MOST_SLOTS};
use ir::read::read;
use ir::verify::{Fault, derive_manifest, verify};
use ir::*;

fn program(packet: &str) -> Program {
    let text = format!(
        r#"program "case"
slots 2
reason r0 "no_such_port" "the port does not exist"
table t0 "exact" {{ key ("a" uint:8) value ("b" uint:7) capacity 4 age 1000 }}
event e0 "seen" ("a" uint:32) handler f1
template p0 "000000000000" (0:32)
function f0 "packet" {{ {packet} }}
function f1 "seen" {{ b0(%0:32): done }}
"#
    );
    let mut program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    program.manifest = derive_manifest(&program);
    program
}

fn faults(program: &Program) -> Vec<Fault> {
    verify(program).err().unwrap_or_default().into_iter().map(|error| error.fault).collect()
}

/// The faults of a program that was changed.
fn changed(change: impl FnOnce(&mut Program)) -> Vec<Fault> {
    let mut program = program("b0: flood");
    change(&mut program);
    faults(&program)
}

#[test]
fn as_many_as_there_may_be_pass_and_one_more_does_not() {
    let reasons = |count: usize| {
        changed(|program| {
            program.reasons =
                (0..count).map(|number| Reason { name: number.to_string(), help: String::new() }).collect();
        })
    };
    assert_eq!(reasons(MOST_REASONS), []);
    assert_eq!(reasons(MOST_REASONS + 1), [Fault::TooMany("reasons", MOST_REASONS)]);
    let sets = |count: usize| changed(|program| program.port_sets = vec![vec![]; count]);
    assert_eq!(sets(MOST_PORT_SETS), []);
    assert_eq!(sets(MOST_PORT_SETS + 1), [Fault::TooMany("sets of ports", MOST_PORT_SETS)]);
    let slots = |count: usize| changed(|program| program.slots = count as u32);
    assert_eq!(slots(MOST_SLOTS), []);
    assert_eq!(slots(MOST_SLOTS + 1), [Fault::TooMany("fuel slots", MOST_SLOTS)]);
    let arguments = |count: usize| {
        changed(|program| {
            program.events[0].params = vec![program.events[0].params[0].clone(); count];
            program.functions[1].widths = vec![32; count];
            program.functions[1].blocks[0].params = (0..count).map(|number| Value(number as u32)).collect();
        })
    };
    assert_eq!(arguments(MOST_ARGUMENTS), []);
    assert_eq!(arguments(MOST_ARGUMENTS + 1), [Fault::TooManyArguments(0)]);
    let holes = |count: usize| {
        changed(|program| {
            program.templates[0].bytes = vec![0; count];
            program.templates[0].holes = (0..count as u32).map(|bit| Hole { bit, width: 1 }).collect();
        })
    };
    assert_eq!(holes(MOST_HOLES), []);
    assert_eq!(holes(MOST_HOLES + 1), [Fault::TooManyHoles(0)]);
}

#[test]
fn holes_and_sums_may_end_where_the_template_ends() {
    let hole = |bit, width| changed(|program| program.templates[0].holes = vec![Hole { bit, width }]);
    assert_eq!(hole(16, 32), []);
    assert_eq!(hole(17, 32), [Fault::HoleOutside(0)]);
    let sum = |sum: Sum| changed(|program| program.templates[0].sums = vec![sum]);
    let sound = [
        Sum { at: 4, ..Sum::default() },
        Sum { at: 0, from: 6, ..Sum::default() },
        Sum { at: 0, from: 3, end: Some(3), ..Sum::default() },
        Sum { at: 0, from: 0, end: Some(6), ..Sum::default() },
        Sum { at: 0, besides: vec![(0, 6), (6, 0), (2, 3)], ..Sum::default() },
    ];
    for sound in sound {
        assert_eq!(sum(sound.clone()), [], "{sound:?}");
    }
    let wrong = [
        Sum { at: 5, ..Sum::default() },
        Sum { at: 0, from: 4, end: Some(3), ..Sum::default() },
        Sum { at: 0, from: 0, end: Some(7), ..Sum::default() },
        Sum { at: 0, besides: vec![(6, 1)], ..Sum::default() },
        Sum { at: 0, besides: vec![(2, 5)], ..Sum::default() },
    ];
    for wrong in wrong {
        assert_eq!(sum(wrong.clone()), [Fault::SumOutside(0)], "{wrong:?}");
    }
}

#[test]
fn prefixes_have_128_bits_of_key_at_most() {
    let widths = |kind, widths: &[u8]| {
        changed(|program| {
            let column = program.tables[0].keys[0].clone();
            program.tables[0].kind = kind;
            program.tables[0].keys =
                widths.iter().map(|width| Column { width: *width, ..column.clone() }).collect();
        })
    };
    assert_eq!(widths(TableKind::Lpm, &[64, 64]), []);
    assert_eq!(widths(TableKind::Lpm, &[128]), []);
    assert_eq!(widths(TableKind::Lpm, &[64, 65]), [Fault::TooWide(0)]);
    assert_eq!(widths(TableKind::Lpm, &[128, 1]), [Fault::TooWide(0)]);
    assert_eq!(widths(TableKind::Rules { by_priority: false }, &[64, 65]), []);
    assert_eq!(widths(TableKind::Exact, &[128, 128]), []);
}

#[test]
fn a_table_has_what_its_kind_knows() {
    type Change = fn(&mut Table);
    const EXACT: TableKind = TableKind::Exact;
    const LPM: TableKind = TableKind::Lpm;
    const RULES: TableKind = TableKind::Rules { by_priority: true };
    const FIRST: TableKind = TableKind::Patterns(Answer::First);
    const SET: TableKind = TableKind::Patterns(Answer::Set);
    let cases: [(&str, Change, &[TableKind]); 8] = [
        ("nothing more", |_| (), &[EXACT, LPM, RULES, FIRST, SET]),
        ("counts", |table| table.counted = true, &[LPM, RULES, FIRST, SET]),
        ("counts and times", |table| (table.counted, table.times) = (true, true), &[LPM, RULES, FIRST, SET]),
        ("times alone", |table| table.times = true, &[]),
        ("an idle time", |table| table.idle = Some(7), &[EXACT]),
        ("an age", |table| table.age = Some(7), &[EXACT, LPM, RULES]),
        ("a default", |table| table.default = Some(vec![1]), &[EXACT, LPM, RULES]),
        ("a wide answer", |table| table.values[0].width = 8, &[EXACT, LPM, RULES, FIRST]),
    ];
    for (what, change, good) in cases {
        for kind in [EXACT, LPM, RULES, FIRST, SET] {
            let found = changed(|program| {
                let table = &mut program.tables[0];
                (table.kind, table.age) = (kind, None);
                if matches!(kind, TableKind::Patterns(_)) {
                    table.keys.clear();
                }
                change(table);
            });
            let due: &[Fault] = if good.contains(&kind) { &[] } else { &[Fault::KindProperty(0)] };
            assert_eq!(found, due, "{what}, {kind:?}");
        }
    }
}

/// A program that steers by this packet function.
fn steering(packet: &str) -> Program {
    let text = format!(
        "program \"steers\" reason r0 \"no_such_port\" \"it does not exist\" function f0 \"packet\" {{ {packet} }}"
    );
    let mut steering = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    steering.manifest = derive_manifest(&steering);
    steering
}

#[test]
fn what_steers_is_one_function_that_reads_the_packet_and_chooses() {
    let steered_by = |steering: Program| changed(|program| program.steering = Some(Box::new(steering)));
    let sound = || steering("b0: %0:16 = in_port send %0");
    assert_eq!(steered_by(sound()), []);
    assert_eq!(steered_by(steering("b0: drop r0")), []);
    for impure in ["b0: flood", "b0: punt r0", "b0: %0:64 = now %1:16 = const 1 send %1"] {
        assert_eq!(steered_by(steering(impure)), [Fault::Steering], "{impure}");
    }
    let mut with_two = sound();
    with_two.functions.push(with_two.functions[0].clone());
    assert_eq!(steered_by(with_two), [Fault::Steering]);
    let mut steered = sound();
    steered.steering = Some(Box::new(sound()));
    assert_eq!(steered_by(steered), [Fault::Steering]);
    // It is verified as any other program.
    let mut without_reasons = sound();
    without_reasons.reasons.clear();
    assert_eq!(steered_by(without_reasons), [Fault::NoReasons]);
    let mut without_rights = sound();
    without_rights.manifest.any_port = false;
    assert_eq!(steered_by(without_rights), [Fault::Right("to send to any port".to_owned())]);
    let unproven = steering("b0: %0:32 = const 0 %1:8 = load %0 + 0, 1 proven 0 %2:16 = const 1 send %2");
    assert_eq!(steered_by(unproven).len(), 1);
}

#[test]
fn a_function_that_needs_too_much_stack_is_named() {
    let mut packet = "b0: ".to_owned();
    // Each takes at least a word.
    let values = LARGEST_FRAME / 8;
    (0..values).for_each(|value| packet.push_str(&format!("%{value}:64 = now ")));
    // Each of them lives until all are there.
    for value in 0..values {
        let sum = values + value;
        let before = if value == 0 { 0 } else { sum - 1 };
        packet.push_str(&format!("%{sum}:64 = add %{before}, %{value} "));
    }
    packet.push_str("flood");
    let errors = verify(&program(&packet)).expect_err("it needs more than there is");
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert!(matches!(error.fault, Fault::LargeFrame(bytes) if bytes > LARGEST_FRAME.into()), "{errors:?}");
    assert_eq!((error.place.function, error.place.block), (Some(0), None));
    assert!(error.to_string().starts_with("function f0: the function needs"), "{error}");
}

#[test]
fn a_fault_says_where_it_is() {
    let text = |packet: &str| verify(&program(packet)).expect_err("a fault")[0].to_string();
    let endless = "function f0, block b1: a cycle goes through this block without using up fuel";
    assert_eq!(text("b0: jump b1 b1: jump b1"), endless);
    assert!(text("b0: %0:32 = resize %0 flood").starts_with("function f0, block b0, instruction 0: "));
    let mut empty = program("b0: flood");
    empty.reasons.clear();
    let without_place = verify(&empty).expect_err("a fault")[0].to_string();
    assert!(!without_place.contains("function"), "{without_place}");
}
