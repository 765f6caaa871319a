//! Values from outside: `[set]` of a gateway's file and `--set`, with what is wrong told at its place.

use assert_cmd::Command;
use std::fs;

const PROGRAM: &str = "settable const OUT: port in 1..2 = 1
settable const IDLE: time = 60s
settable pool numbers: u8 { 1..9 }
start stage all() { match take(numbers) { some _ => send OUT, none => flood } }
test \"it leaves\" { packet 2 { zero[64] } expect send OUT }
test \"by port 1\" { packet 2 { zero[64] } expect send 1 }
";

fn directory(set: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let gateway = format!(
        "program = \"p.rav\"\n[set]\n{set}\n[[port]]\ninterface = \"lan0\"\n[[port]]\ninterface = \"lan1\"\n"
    );
    for (name, text) in [("p.rav", PROGRAM), ("g.toml", &gateway)] {
        fs::write(directory.path().join(name), text).expect("a file can be written");
    }
    directory
}

/// Runs `ravelin` in a directory to the expected exit code: standard output, standard error.
fn run(directory: &tempfile::TempDir, arguments: &[&str], code: i32) -> (String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    let output =
        command.current_dir(directory.path()).args(arguments).assert().code(code).get_output().clone();
    (String::from_utf8(output.stdout).expect("text"), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_gateways_file_sets_values_and_check_prints_all_of_them() {
    let files = directory("OUT = 2\nnumbers = [\"1\"]");
    let (printed, _) = run(&files, &["check", "g.toml"], 0);
    assert!(printed.contains("  set: OUT = 2, in place of 1\n  not set: IDLE = 60s\n"), "{printed}");
    assert!(printed.contains("  set: numbers = 1, in place of 1..9\n"), "{printed}");
    let (printed, _) = run(&files, &["check", "g.toml", "--json"], 0);
    let mut documents = serde_json::Deserializer::from_str(&printed).into_iter::<serde_json::Value>();
    let told = documents.next().expect("a document").expect("JSON");
    assert_eq!(told["settable"][0]["set"], "2", "{printed}");
    assert_eq!(told["settable"][1]["set"], serde_json::Value::Null, "{printed}");
}

#[test]
fn a_wrong_value_in_a_gateways_file_is_shown_at_its_line() {
    for (set, place, told) in [
        ("OUT = 3", "g.toml:3:7", "`OUT` lies outside of its range"),
        ("IDLE = \"5\"", "g.toml:3:9", "a time has a unit"),
        ("OUTSIDE = 3", "g.toml:3:1", "the program declares no `OUTSIDE`"),
    ] {
        let (_, error) = run(&directory(set), &["check", "g.toml"], 1);
        assert!(error.contains(place) && error.contains(told), "{set}: {error}");
    }
    let (_, error) = run(&directory("OUT = 1.5"), &["check", "g.toml"], 1);
    assert!(error.contains("g.toml: line 3, column 7: a value is a number"), "{error}");
}

#[test]
fn the_command_line_sets_values() {
    let files = directory("");
    let (printed, _) = run(&files, &["check", "p.rav", "--set", "OUT=2", "--set", "numbers=4, 5"], 1);
    assert!(printed.contains("1 error"), "a pool of one part has one range: {printed}");
    let (printed, _) = run(&files, &["check", "p.rav", "--set", "OUT=2", "--set", "numbers=4..5"], 0);
    assert!(printed.contains("set: OUT = 2") && printed.contains("set: numbers = 4..5"), "{printed}");
    let (printed, _) = run(&files, &["test", "p.rav", "--set", "OUT=2"], 1);
    assert!(printed.contains("3 passed, 3 failed on interpreter, bytecode and native"), "{printed}");
    let (_, error) = run(&files, &["check", "p.rav", "--set", "IDLE=1s", "--set", "OUT=9"], 1);
    assert!(error.contains("--set:2:5"), "{error}");
    let (_, error) = run(&files, &["run", "p.rav", "--in", "none.pcap", "--set", "OUT"], 2);
    assert!(error.contains("write --set NAME=VALUE"), "{error}");
    let (_, error) = run(&files, &["check", "g.toml", "--set", "OUT=1"], 2);
    assert!(error.contains("write `OUT=1` into g.toml, below the line `[set]`"), "{error}");
}
