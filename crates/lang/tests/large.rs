//! Large and deep programs: the compiler finishes, without running out of stack, and says something sensible.

use lang::diagnostic::Severity;
use lang::pipeline::{CompileOptions, Compiled, compile};
use std::fmt::Write;

fn compiled(text: &str) -> Compiled {
    compile("large.rav", text, &|_| None, &CompileOptions::default())
}

fn errors(compiled: &Compiled) -> Vec<&'static str> {
    let errors = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(|diagnostic| diagnostic.code).collect()
}

fn is_right(text: &str) {
    let compiled = compiled(text);
    let first = compiled.diagnostics.first();
    assert_eq!(errors(&compiled).len(), 0, "{first:?}");
    let program = compiled.program.expect("without errors there is a program");
    assert_eq!(ir::verify::verify(&program).err(), None);
}

#[test]
fn ten_thousand_statements() {
    let mut text = "counter seen\nstart stage all() {\n    var a: u32 = 0\n".to_string();
    for number in 0..10_000 {
        match number % 4 {
            0 => text.push_str("    count seen\n"),
            1 => writeln!(text, "    if length > {number} {{ count seen }}").expect("a text takes it"),
            2 if number % 40 == 2 => writeln!(text, "    let b{number} = length").expect("a text takes it"),
            2 => text.push_str("    if in_port == 9 { a = 3 }\n"),
            _ => text.push_str("    a = a +% length\n"),
        }
    }
    text.push_str("    if a == 7 { send 1 }\n    flood\n}\n");
    is_right(&text);
}

#[test]
fn five_thousand_stages_in_a_chain() {
    let mut text = "start stage s0() { goto s1(1) }\n".to_string();
    for number in 1..5_000 {
        writeln!(text, "stage s{number}(a: u32) {{ goto s{}(a) }}", number + 1).expect("a text takes it");
    }
    text.push_str("stage s5000(a: u32) { if a == 1 { flood } send 1 }\n");
    is_right(&text);
}

#[test]
fn a_chain_in_which_the_last_stage_reads_the_first_header() {
    let mut text = "import std.net.ethernet\nstart decoder s0(eth: ethernet) { goto s1 }\n".to_string();
    for number in 1..5_000 {
        writeln!(text, "stage s{number}() {{ goto s{} }}", number + 1).expect("a text takes it");
    }
    text.push_str("stage s5000() { if eth.type == 1 { flood } send 1 }\n");
    is_right(&text);
}

#[test]
fn stages_that_each_go_to_many() {
    let mut text = "import std.net.ethernet\nstart decoder s0(eth: ethernet) { goto s1 }\n".to_string();
    let stages = 400;
    for number in 1..stages {
        write!(text, "stage s{number}() {{ match in_port {{ ").expect("a text takes it");
        for to in number + 1..=(number + 30).min(stages) {
            write!(text, "{to} => s{to}, ").expect("a text takes it");
        }
        text.push_str("else => flood } }\n");
    }
    writeln!(text, "stage s{stages}() {{ if eth.type == 1 {{ flood }} send 1 }}").expect("a text takes it");
    is_right(&text);
    let broken = text.replacen(
        "start decoder s0(eth: ethernet) { goto s1 }",
        "start stage s0() { goto s1 }\ndecoder d(eth: ethernet) { goto s1 }",
        1,
    );
    assert_eq!(errors(&compiled(&broken)), ["E0412"]);
}

#[test]
fn five_thousand_stages_in_a_circle_are_told_once() {
    let mut text = "start stage s0() { goto s1 }\n".to_string();
    for number in 1..5_000 {
        writeln!(
            text,
            "stage s{number}() {{ if in_port == {number} {{ flood }} goto s{} }}",
            (number + 1) % 5_000
        )
        .expect("a text takes it");
    }
    assert_eq!(errors(&compiled(&text)), ["E0410"]);
}

#[test]
fn a_thousand_arms() {
    let mut text =
        "import std.net.ethernet\nstart decoder frame(eth: ethernet) { match eth.type {\n".to_string();
    for number in 0..1_000 {
        writeln!(text, "    {number} => send {}", number + 1).expect("a text takes it");
    }
    for number in 0..1_000 {
        let from = 2_000 + number * 10;
        writeln!(text, "    {from}..{} => send {}", from + 5, number + 1).expect("a text takes it");
    }
    text.push_str("    else => flood\n} }\n");
    is_right(&text);
}

#[test]
fn a_thousand_arms_of_pairs() {
    let mut text =
        "import std.net.ethernet\nstart decoder frame(eth: ethernet) { match (eth.type, in_port) {\n"
            .to_string();
    for number in 0..1_000 {
        writeln!(text, "    ({number}, {}) => send 1", number % 7 + 1).expect("a text takes it");
    }
    text.push_str("    else => flood\n} }\n");
    is_right(&text);
}

#[test]
fn three_hundred_levels_are_told_and_do_no_harm() {
    let blocks = format!(
        "start stage all() {{ {} flood {} flood }}",
        "if in_port == 1 {".repeat(300),
        "}".repeat(300)
    );
    let brackets = format!("const A: u8 = {}1{}\n", "(".repeat(300), ")".repeat(300));
    let complements = format!("const A: u8 = {}1\n", "~".repeat(300));
    let values = format!("const A: u8 = {}1{}\n", "if true {".repeat(300), "} else { 2 }".repeat(300));
    let sum = format!("const A: u32 = {}1\n", "1 + ".repeat(5_000));
    for text in [blocks, brackets, complements, values, sum] {
        assert_eq!(errors(&compiled(&text))[0], "E0066", "{}", &text[..60]);
    }
}

#[test]
fn a_hundred_levels_are_fine() {
    let text = format!(
        "start stage all() {{ {} count seen {} flood }}\ncounter seen\n",
        "if in_port != 3 { if length > 5 {".repeat(45),
        "} }".repeat(45)
    );
    is_right(&text);
}

#[test]
fn long_chains_of_functions_and_constants_are_told_once() {
    let mut forwards = "start stage all() { if f0(1) == 1 { send 1 } flood }\n".to_string();
    let mut constants = "start stage all() { if length == C0 { send 1 } flood }\n".to_string();
    let mut backwards = "fn f2000(a: u32) -> u32 { a }\n".to_string();
    for number in 0..2_000 {
        let (other, back) = (number + 1, 1_999 - number);
        writeln!(forwards, "fn f{number}(a: u32) -> u32 {{ f{other}(a) }}").expect("a text takes it");
        writeln!(constants, "const C{number}: u32 = C{other}").expect("a text takes it");
        writeln!(backwards, "fn f{back}(a: u32) -> u32 {{ f{}(a) }}", back + 1).expect("a text takes it");
    }
    forwards.push_str("fn f2000(a: u32) -> u32 { a }\n");
    constants.push_str("const C2000: u32 = 3\n");
    backwards.push_str("start stage all() { if f0(1) == 1 { send 1 } flood }\n");
    for text in [forwards, constants, backwards] {
        assert_eq!(errors(&compiled(&text)), ["E0066"], "{}", &text[..80]);
    }
}

#[test]
fn the_tallest_expressions_of_the_tallest_functions() {
    let mut text = "fn f0(a: u32) -> u32 { a }\n".to_string();
    for number in 1..250 {
        writeln!(text, "fn f{number}(a: u32) -> u32 {{ f{}(a) }}", number - 1).expect("a text takes it");
    }
    let sum = "length +% ".repeat(240);
    let call = format!("{}length{}", "f3(".repeat(90), ")".repeat(90));
    writeln!(text, "start stage all() {{ if {sum}f249({call}) == 1 {{ send 1 }} flood }}")
        .expect("a text takes it");
    is_right(&text);
}

#[test]
fn many_entries_tables_and_faults() {
    let mut text = "table known: exact(u32) -> port { entries {\n".to_string();
    for number in 0..20_000 {
        writeln!(text, "    {number} => {}", number % 7 + 1).expect("a text takes it");
    }
    text.push_str("} }\nstart stage all() { match known[length] { some p => send p, none => flood } }\n");
    is_right(&text);
    let mut faults = "start stage all() {\n".to_string();
    for number in 0..3_000 {
        writeln!(faults, "    count missing{number}").expect("a text takes it");
    }
    faults.push_str("    flood\n}\n");
    let most = lang::limits::MOST_FAULTS;
    assert_eq!(errors(&compiled(&faults)).len(), most + 1, "and that there are more");
}

/// A program that makes a packet of so many computed one-bit fields, in headers of 64.
fn bits(fields: usize) -> String {
    let mut text = "layout bits {".to_string();
    (0..64).for_each(|field| write!(text, " f{field}: u1").expect("a text takes it"));
    text.push_str(" }\nstart stage all() {\n    let bit = length as% u1\n    emit ");
    let written: Vec<String> = (0..64).map(|field| format!("f{field} bit")).collect();
    text.push_str(&vec![format!("bits({})", written.join(", ")); fields / 64].join(" / "));
    text.push_str(" to 1\n    flood\n}\n");
    text
}

#[test]
fn a_packet_of_two_hundred_thousand_computed_bits_is_refused() {
    assert_eq!(errors(&compiled(&bits(4_096))), Vec::<&str>::new());
    assert_eq!(errors(&compiled(&bits(4_160))), ["E0615"]);
    assert_eq!(errors(&compiled(&bits(204_800))), ["E0615"]);
}

#[test]
fn an_event_of_more_arguments_than_wait_is_refused() {
    let text = |count: usize| {
        let params: Vec<String> = (0..count).map(|number| format!("a{number}: u8")).collect();
        let args = vec!["1"; count].join(", ");
        format!("event many({}) {{ }}\nstart stage all() {{ raise many({args}) flood }}\n", params.join(", "))
    };
    assert_eq!(errors(&compiled(&text(256))), Vec::<&str>::new());
    assert_eq!(errors(&compiled(&text(257))), ["E0530"]);
}

#[test]
fn values_that_wait_for_each_other_need_no_more_stack_than_there_is() {
    let text = |count: usize| {
        let mut text = "register r: u64\nstart stage all() {\n".to_string();
        (0..count).for_each(|number| writeln!(text, "    let a{number} = r").expect("a text takes it"));
        text.push_str("    var sum: u64 = 0\n");
        (0..count)
            .rev()
            .for_each(|number| writeln!(text, "    sum = sum ^ a{number}").expect("a text takes it"));
        text.push_str("    if sum == 1 { flood }\n    send 1\n}\n");
        text
    };
    assert_eq!(errors(&compiled(&text(10_000))), Vec::<&str>::new());
    assert_eq!(errors(&compiled(&text(40_000))), ["E0234"]);
}
