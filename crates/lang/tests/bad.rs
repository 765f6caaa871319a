//! Golden files: every program of `suite/bad` gives exactly the diagnostics that stand beside it, and every
//! suggestion mends what it is for.
//!
//! `BLESS=1 cargo test -p lang --test bad` writes the golden files anew; read what changed before you keep
//! it.

use ir::source::{FileId, Sources, Span};
use lang::diagnostic::{Diagnostic, Severity};
use lang::mend::mend;
use lang::pipeline::{CompileOptions, Compiled, compile};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/bad")
}

/// The bad programs in order of their names: name without ending, text.
fn programs() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .expect("suite/bad is there")
        .map(|entry| entry.expect("its entries can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "rav"))
        .collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("programs are text"))).collect()
}

fn compiled(name: &str, text: &str) -> Compiled {
    let load = |path: &str| fs::read_to_string(folder().join(path)).ok();
    compile(&format!("{name}.rav"), text, &load, &CompileOptions::default())
}

/// The short form: one line for the fault, one for each thing that is said about it.
fn rendered(compiled: &Compiled) -> String {
    let mut out = String::new();
    for diagnostic in &compiled.diagnostics {
        let sources = &compiled.sources;
        let severity = if diagnostic.severity == Severity::Error { "" } else { "warning: " };
        let place = sources.place(diagnostic.primary.span);
        let _ = writeln!(out, "{place}: {}: {severity}{}", diagnostic.code, diagnostic.headline);
        let shown = one_line(sources.text(diagnostic.primary.span));
        let _ = writeln!(out, "    at `{shown}`: {}", diagnostic.primary.text);
        for (number, label) in diagnostic.path.iter().enumerate() {
            let _ = writeln!(out, "    {}. {}: {}", number + 1, sources.place(label.span), label.text);
        }
        if let Some(witness) = &diagnostic.witness {
            let bytes: Vec<String> = witness.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = writeln!(out, "    packet: {}", bytes.join(" "));
            let _ = writeln!(out, "            {}", witness.decoded);
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(out, "    help: {help}");
        }
        if let Some(suggestion) = &diagnostic.suggestion {
            let old = one_line(sources.text(suggestion.span));
            let new = one_line(&suggestion.replacement);
            let place = sources.place(suggestion.span);
            let _ = writeln!(out, "    fix: {} [{place}: `{old}` -> `{new}`]", suggestion.text);
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace('\n', "⏎")
}

#[test]
fn every_bad_program_gives_its_golden_diagnostics() {
    let bless = std::env::var_os("BLESS").is_some();
    let programs = programs();
    assert!(programs.len() >= 200, "only {} bad programs were found", programs.len());
    let mut wrong = Vec::new();
    for (name, text) in &programs {
        let found = rendered(&compiled(name, text));
        let golden = folder().join(format!("{name}.expected"));
        if bless {
            fs::write(&golden, &found).expect("a golden file can be written");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if found != expected || found.is_empty() {
            wrong.push(format!("{name}: expected\n{expected}found\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), programs.len(), wrong.join("\n"));
}

#[test]
fn names_say_whether_errors_or_warnings_are_meant() {
    for (name, text) in &programs() {
        let compiled = compiled(name, text);
        let errors = compiled.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        assert_eq!(errors, !name.contains("-warning-"), "{name}: {:#?}", compiled.diagnostics);
        assert_eq!(errors, compiled.program.is_none(), "{name}: a program only without errors");
    }
}

#[test]
fn every_suggestion_mends_its_fault() {
    let mut applied = 0;
    for (name, text) in &programs() {
        let before = compiled(name, text);
        for diagnostic in &before.diagnostics {
            let Some(suggestion) = &diagnostic.suggestion else { continue };
            assert_eq!(suggestion.span.file, FileId::default(), "{name}: an edit of another file");
            let mut mended = text.clone();
            let range = suggestion.span.start as usize..suggestion.span.end as usize;
            mended.replace_range(range.clone(), &suggestion.replacement);
            let after = compiled(name, &mended);
            let moved = suggestion.replacement.len() as i64 - range.len() as i64;
            let still = after.diagnostics.iter().find(|other| {
                let shift = if diagnostic.primary.span.start >= suggestion.span.end { moved } else { 0 };
                other.code == diagnostic.code
                    && i64::from(other.primary.span.start) == i64::from(diagnostic.primary.span.start) + shift
            });
            assert_eq!(still, None, "{name}: `{}` does not mend it:\n{mended}", suggestion.text);
            // What could not be read may hide more faults; elsewhere an edit must not bring new ones.
            let fewer = diagnostic.code < "E0100" || after.diagnostics.len() <= before.diagnostics.len();
            assert!(fewer, "{name}: `{}` makes it worse:\n{}", suggestion.text, rendered(&after));
            applied += 1;
        }
    }
    assert!(applied >= 25, "only {applied} suggestions were tried");
}

fn error_count(compiled: &Compiled) -> usize {
    compiled.diagnostics.iter().filter(|found| found.severity == Severity::Error).count()
}

#[test]
fn mending_never_makes_more_errors_and_a_second_time_changes_nothing() {
    let mut mended = 0;
    for (name, text) in &programs() {
        let compile = |text: &str| compiled(name, text);
        let before = compile(text);
        let once = mend(text, &compile);
        // Behind what could not be read, more may come to light.
        let unread = before.diagnostics.iter().any(|found| found.code < "E0100");
        assert!(unread || error_count(&once.compiled) <= error_count(&before), "{name}:\n{}", once.text);
        let twice = mend(&once.text, &compile);
        assert_eq!((twice.text, twice.edits.len()), (once.text, 0), "{name}");
        mended += usize::from(!once.edits.is_empty());
    }
    assert!(mended >= 25, "only {mended} programs were mended");
}

#[test]
fn what_is_shifted_is_converted_before_and_an_operation_as_a_whole() {
    let program = |edit: &str| {
        format!(
            "layout three {{ a: u8  b: u8  c: u32 }}\nstart decoder all(h: three) {{\n    set h.c = {edit}\n    flood\n}}\n"
        )
    };
    let compile = |text: &str| compile("shift.rav", text, &|_| None, &CompileOptions::default());
    for (wrong, right) in [
        ("h.b << 8", "h.b as u32 << 8"),
        ("h.a & h.b", "(h.a & h.b) as u32"),
        ("h.b", "h.b as u32"),
        ("(h.a | h.b)", "((h.a | h.b)) as u32"),
    ] {
        let mended = mend(&program(wrong), &compile);
        assert_eq!((mended.text, mended.edits.len()), (program(right), 1));
        assert_eq!(error_count(&mended.compiled), 0);
    }
}

#[test]
fn what_newcomers_write_is_mended_to_what_they_mean() {
    let before = "import std.net.{ethernet, tcp, udp}
meter line: packets { committed 10  burst 1 }
table hosts: exact(mac) -> port { capacity 64  evict lru }
start decoder frame(eth: ethernet) {
    let class = line
    match eth.type { 1 => segment, 2 => datagram, 3 => one, else => flood }
}
stage one() { match length { 1 => flood, else => send 1 } }
decoder segment(t: tcp) { flood }
decoder datagram(udp: udp) { if udp.dst == 53 { send 1 } flood }
stage look() requires eth { match hosts[eth.dst] { some _ => flood, none => send 1 } }
test \"syn\" { packet 1 { ethernet / tcp(flags 0x02, dst 80) } expect flood }
";
    let compile = |text: &str| compile("newcomer.rav", text, &|_| None, &CompileOptions::default());
    for (part, wrong, meant) in [
        ("3 => one", "3, 4 => one", "3 | 4 => one"),
        ("3 => one", "3,4, 5 => one", "3 | 4 | 5 => one"),
        ("3 => one", "3 || 4 => one", "3 | 4 => one"),
        ("3 => one", "3 -> one", "3 => one"),
        ("flags 0x02", "flags syn", "flags 0x02"),
        ("flags 0x02", "syn 1", "flags 0x02"),
        ("let class = line", "if line == red { drop late }", "if line == colour.red { drop late }"),
        ("let class = line", "if red != line { drop late }", "if colour.red != line { drop late }"),
        ("some _", "some", "some _"),
        ("udp.dst", "u.dst", "udp.dst"),
        ("eth.dst", "ethernet.dst", "eth.dst"),
    ] {
        let mended = mend(&before.replace(part, wrong), &compile);
        assert_eq!((mended.text, mended.edits.len()), (before.replace(part, meant), 1), "{wrong}");
        assert_eq!(error_count(&mended.compiled), 0, "{wrong}");
    }
}

#[test]
fn every_place_lies_in_its_file() {
    for (name, text) in &programs() {
        let compiled = compiled(name, text);
        for diagnostic in &compiled.diagnostics {
            for span in spans(diagnostic) {
                assert!(inside(&compiled.sources, span), "{name}: {span:?} of {diagnostic:?}");
            }
        }
    }
}

fn spans(diagnostic: &Diagnostic) -> Vec<Span> {
    let mut spans = vec![diagnostic.primary.span];
    spans.extend(diagnostic.path.iter().map(|label| label.span));
    spans.extend(diagnostic.suggestion.iter().map(|suggestion| suggestion.span));
    spans
}

fn inside(sources: &Sources, span: Span) -> bool {
    sources.file(span.file).text.get(span.start as usize..span.end as usize).is_some()
}
