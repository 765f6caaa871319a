//! How the work of compiling grows with a program: the bytes that are asked for on the way, for programs of
//! one size and of twice that.

use super::{CompileOptions, Compiled, compile, compiled, parser};
use ir::source::Sources;
use std::fmt::Write;

/// Lines of a program, one for each number below `size`.
fn lines(size: usize, line: impl Fn(usize) -> String) -> String {
    (0..size).fold(String::new(), |mut text, number| {
        writeln!(text, "{}", line(number)).expect("a text takes it");
        text
    })
}

fn whole(text: &str) -> Compiled {
    compile("work.rav", text, &|_| None, &CompileOptions::default())
}

/// How many times more bytes are asked for when a program of a kind is twice as large; what reads the files
/// is left out.
fn growth(program: &dyn Fn(usize) -> String) -> f64 {
    let asked = |size: usize| {
        let text = program(size);
        let mut sources = Sources::default();
        let (file, faults) = parser::parse(sources.add("work.rav", &text), &text);
        assert!(faults.is_empty(), "{faults:?}");
        // Only what the measuring thread asks for is counted.
        let work = || {
            drop(compiled("work.rav", std::slice::from_ref(&file), &sources, &[], &CompileOptions::default()))
        };
        allocation_counter::measure(work).bytes_total as f64
    };
    asked(2_000) / asked(1_000)
}

fn grows_with_its_size(program: &dyn Fn(usize) -> String) {
    let growth = growth(program);
    assert!(growth < 2.4, "twice the program asks for {growth:.2} times the memory: {}", program(2));
}

fn fields(size: usize) -> String {
    let fields = lines(size, |number| format!("    f{number}: u8"));
    format!("layout l {{\n{fields}}}\nstart decoder d(h: l) {{ send 1 }}\n")
}

#[test]
fn fields_of_one_layout_are_described_once() {
    assert!(whole(&fields(1_000)).program.is_some());
    grows_with_its_size(&fields);
}

fn undecoded(size: usize) -> String {
    let stages = lines(size, |number| {
        format!(
            "stage s{number}() {{ if h.a == 1 {{ flood }} if x.b == 7 {{ goto s{} }} flood }}",
            number + 1
        )
    });
    format!(
        "layout k {{ b: u8 }}\nlayout l {{ a: u8 }}\nstart decoder e(x: k) {{ if x.b == 2 {{ goto d }} goto s0 }}\n\
         decoder d(h: l) {{ goto s0 }}\n{stages}stage s{size}() {{ flood }}\n"
    )
}

#[test]
fn of_many_reads_without_decoder_the_first_have_a_path() {
    let faults = whole(&undecoded(100)).diagnostics;
    let told: Vec<_> = faults.iter().filter(|fault| fault.code == "E0412").collect();
    assert_eq!(told.len(), 100, "{:?}", faults.first());
    let with_path = told.iter().filter(|fault| !fault.path.is_empty() && fault.witness.is_some());
    assert_eq!(with_path.count(), crate::limits::MOST_PATHS);
    assert!(told.iter().all(|fault| fault.help.is_some()));
    grows_with_its_size(&undecoded);
}

fn stage(declarations: &str, lines: &str) -> String {
    format!(
        "{declarations}start stage all() {{\n    var a: u32 = 0\n{lines}    if a == 7 {{ send 1 }}\n    flood\n}}\n"
    )
}

#[test]
fn what_is_known_is_not_copied_where_ways_part_and_meet() {
    let calls = |size| {
        let lines = lines(size, |number| format!("    if f(length +% {number}) > 3 {{ a = f(a) }}"));
        stage("fn f(x: u32) -> u32 { if x == 9 { 4 } else { x +% 1 } }\n", &lines)
    };
    let variables = |size| {
        let line = |number| {
            format!(
                "    var v{number}: u32 = 0\n    if length == {number} {{ v{number} = 3 }}\n    a = a ^ v{number}"
            )
        };
        stage("", &lines(size, line))
    };
    let conditions =
        |size| stage("", &lines(size, |number| format!("    if length == {number} {{ a = {number} }}")));
    let verdicts = |size| {
        stage("", &lines(size, |number| format!("    if length == {number} && in_port != 3 {{ send 2 }}")))
    };
    let names = |size| {
        stage(
            "",
            &lines(size, |number| {
                format!("    let b{number} = length +% {number}\n    if b{number} > a {{ a = b{number} }}")
            }),
        )
    };
    let kinds: [&dyn Fn(usize) -> String; 5] = [&calls, &variables, &conditions, &verdicts, &names];
    for program in kinds {
        let faults = whole(&program(100));
        assert!(faults.program.is_some(), "{:?}", faults.diagnostics.first());
        grows_with_its_size(program);
    }
}

#[test]
fn what_holds_at_transfers_is_kept_once() {
    let fan = |size| {
        let ways = lines(size, |number| format!("    if h.a == {number} {{ goto s{number} }}"));
        let stages = lines(size, |number| format!("stage s{number}() {{ send 1 }}"));
        format!("layout l {{ a: u16 }}\nstart decoder d(h: l) {{\n{ways}    flood\n}}\n{stages}")
    };
    assert!(whole(&fan(100)).program.is_some());
    grows_with_its_size(&fan);
}
