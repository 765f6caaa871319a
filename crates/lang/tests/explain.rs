//! Every explanation holds: its example gives its code, and nothing else of weight; the mended example does
//! not give it.

use lang::diagnostic::Severity;
use lang::explain::{codes, explain};
use lang::pipeline::{CompileOptions, Compiled, compile};

/// Codes whose example needs other files, or is too long to be written out.
const NOT_FROM_ONE_SHORT_FILE: [&str; 23] = [
    "E0012", "E0016", "E0109", "E0104", "E0108", "E0112", "E0113", "E0215", "E0227", "E0234", "E0304",
    "E0529", "E0530", "E0553", "E0565", "E0570", "E0572", "E0573", "E0574", "E0575", "E0583", "E0615",
    "W0410",
];

/// Whether the lexer or the parser reports this code; their examples are pieces of programs.
fn is_of_reading(code: &str) -> bool {
    code.starts_with("E00")
}

fn compiled(text: &str) -> Compiled {
    compile("example.rav", text, &|_| None, &CompileOptions::default())
}

fn found(text: &str) -> Vec<&'static str> {
    compiled(text).diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn examples_of_whole_programs_give_their_code_and_no_other() {
    let mut wrong = Vec::new();
    for code in codes().filter(|code| !is_of_reading(code) && !NOT_FROM_ONE_SHORT_FILE.contains(code)) {
        let explanation = explain(code).expect("codes are explained");
        let given = found(&explanation.example);
        if given != [code] {
            wrong.push(format!("{code} gives {given:?}\n{}", explanation.example));
        }
        let Some(fixed) = explanation.fixed else { continue };
        let errors: Vec<_> = compiled(&fixed)
            .diagnostics
            .into_iter()
            .filter(|diagnostic| diagnostic.code == code || diagnostic.severity == Severity::Error)
            .collect();
        if !errors.is_empty() {
            wrong.push(format!("{code} mended gives {errors:#?}\n{fixed}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Places a piece of program text can stand in.
const AROUND: [(&str, &str); 10] = [
    ("", "\nstart stage all() { flood }"),
    ("start stage all() { ", "\n flood }"),
    ("start stage all() { let x = ", "\n flood }"),
    ("start stage all() { if ", " { send 1 } flood }"),
    ("start stage all() { flood }\ntable t: exact(u8) -> port { ", " }"),
    ("start stage all() { flood }\nlayout l { ", " }"),
    ("start stage all() { flood }\ntest \"t\" { ", " }"),
    ("start stage all() { flood }\ntest \"t\" { packet 1 { ", " } expect flood }"),
    ("start stage all() { flood }\nreason r ", "\n"),
    ("start stage all() { flood }\ntable t: exact(", ") -> port { capacity 1 }"),
];

#[test]
fn examples_of_reading_give_their_code_somewhere() {
    let mut wrong = Vec::new();
    for code in codes().filter(|code| is_of_reading(code) && !NOT_FROM_ONE_SHORT_FILE.contains(code)) {
        let explanation = explain(code).expect("codes are explained");
        let piece = explanation.example.split('`').nth(1).unwrap_or(&explanation.example);
        let nested = format!("let x = {}1", "(".repeat(101));
        let piece = if code == "E0066" { nested.as_str() } else { piece };
        let gives =
            AROUND.iter().any(|(before, behind)| found(&format!("{before}{piece}{behind}")).contains(&code));
        let import =
            found(&format!("const A: u8 = 1\n{}\nstart stage all() {{ flood }}", "import std.net.tcp"));
        if !(gives || code == "E0056" && import.contains(&code)) {
            wrong.push(format!("{code}: {piece}"));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn codes_are_explained_once_and_unknown_ones_are_not() {
    let mut all: Vec<&str> = codes().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(count > 130, "only {count} codes");
    for code in codes() {
        let explanation = explain(code).expect("codes are explained");
        let parts = [explanation.headline, &explanation.cause, &explanation.example, &explanation.fix];
        assert!(parts.iter().all(|part| !part.is_empty()), "{explanation:?}");
        let is_code = explanation.example.ends_with('\n') || explanation.example.contains('`');
        assert!(is_code || code == "E0066" || NOT_FROM_ONE_SHORT_FILE.contains(&code), "{explanation:?}");
        assert!(explanation.fixed.is_none_or(|fixed| fixed.ends_with('\n')), "{code}");
    }
    assert_eq!(explain("E9999"), None);
    assert_eq!(explain("E0412").expect("it is explained").code, "E0412");
}
