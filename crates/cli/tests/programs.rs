//! `ravelin check`, `fmt`, `fix`, `compile`, `test` and `explain` as their users call them.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

const GOOD: &str = "import std.net.{ethernet}

start decoder frame(eth: ethernet) {
    send 2
}

test \"it sends\" {
    packet 1 { ethernet } expect send 2
}
";

fn ravelin(arguments: &[&str], code: i32) -> (String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let output = command.args(arguments).assert().code(code).get_output().clone();
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str], code: i32) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&ravelin(&arguments, code).0).expect("json")
}

/// A directory and the path of a file with this text in it.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join(name);
    fs::write(&path, text).expect("file");
    (directory, path.display().to_string())
}

#[test]
fn a_right_program_is_told_with_its_cost() {
    let (_directory, path) = file("wire.rav", GOOD);
    assert!(ravelin(&["check", &path], 0).0.contains("a packet costs at most"));
    let found = json(&["check", &path], 0);
    assert_eq!(found["programs"][0]["right"], true);
    assert!(found["programs"][0]["at_most"]["instructions"].is_u64());
}

#[test]
fn what_goes_over_to_a_new_program_is_told() {
    let program = "table t: exact(u8) { capacity 4 age 1s evict refuse }\ngroup g: port { buckets 4 capacity 4 }\nstart stage all() { flood }\n";
    let (directory, old) = file("old.rav", program);
    let new = directory.path().join("new.rav").display().to_string();
    fs::write(&new, program).expect("file");
    let told = ravelin(&["check", &new, "--replaces", &old], 0).0;
    assert!(
        ["t", "g"].iter().all(|name| told.contains(&format!("{name}: what packets made goes over"))),
        "{told}"
    );
    fs::write(&new, program.replace("g: port", "g: u16")).expect("file");
    let told = ravelin(&["check", &new, "--replaces", &old], 1).0;
    assert!(told.contains("g: does not fit: it held group Port:16, it would hold group Uint:16"), "{told}");
    let told = ravelin(&["check", &new, "--replaces", &old, "--discard", "g"], 0).0;
    assert!(told.contains("g: its contents are given up"), "{told}");
    let told = ravelin(&["check", &new, "--replaces", &old, "--discard", "h"], 2).1;
    assert!(told.contains("remembers nothing under the name `h`"), "{told}");
}

#[test]
fn a_fault_is_told_in_three_forms() {
    let (_directory, path) = file("bad.rav", &GOOD.replace("send 2\n}", "send missing\n}"));
    let (_, human) = ravelin(&["check", &path], 1);
    assert!(human.contains("bad.rav:4:") && human.contains("send missing"), "{human}");
    let (_, short) = ravelin(&["check", "--format", "short", &path], 1);
    assert!(short.starts_with(&format!("{path}:4:")), "{short}");
    let found = json(&["check", &path], 1);
    assert_eq!(found["programs"][0]["diagnostics"][0]["place"]["line"], 4);
    let found = json(&["run", &path, "--in", "captures/demo.pcapng"], 1);
    assert_eq!(found["diagnostics"][0]["place"]["line"], 4);
}

#[test]
fn fmt_lays_out_and_check_tells() {
    let (_directory, path) = file("wire.rav", &GOOD.replace("    send 2", "send    2"));
    ravelin(&["fmt", "--check", &path], 1);
    assert_ne!(fs::read_to_string(&path).expect("text"), GOOD, "--check changes nothing");
    ravelin(&["fmt", &path], 0);
    assert!(fs::read_to_string(&path).expect("text").contains("\n    send 2\n"));
    assert_eq!(json(&["fmt", "--check", &path], 0)["changed"], serde_json::json!([]));
}

#[test]
fn fix_applies_what_the_compiler_suggests() {
    let (_directory, path) = file("wire.rav", &GOOD.replace("{ethernet}", "{ethernt}"));
    ravelin(&["check", &path], 1);
    ravelin(&["fix", "--dry-run", &path], 0);
    assert!(fs::read_to_string(&path).expect("text").contains("ethernt"));
    let (told, _) = ravelin(&["fix", &path], 0);
    assert!(told.contains("wire.rav:1:"), "{told}");
    assert_eq!(fs::read_to_string(&path).expect("text"), GOOD);
}

#[test]
fn every_form_of_a_program_can_be_shown() {
    let (_directory, path) = file("wire.rav", GOOD);
    for form in ["tokens", "tree", "ir", "native", "graph", "cost"] {
        let (text, _) = ravelin(&["compile", &path, "--show", form], 0);
        assert!(text.len() > 40, "{form}: {text}");
    }
    assert!(
        json(&["compile", &path, "--show", "graph"], 0)["text"].as_str().expect("text").contains("digraph")
    );
}

#[test]
fn tests_of_the_text_run_on_every_back_end() {
    let (_directory, path) = file("wire.rav", GOOD);
    let found = json(&["test", &path], 0);
    assert_eq!((&found["passed"], &found["failed"]), (&3.into(), &0.into()));
    let back_ends = ["interpreter", "bytecode", "native"];
    for (number, back_end) in back_ends.into_iter().enumerate() {
        assert_eq!(found["tests"][number]["back_end"], back_end);
    }
    ravelin(&["test", &path, "--filter", "no such test"], 1);
}

#[test]
fn what_is_found_behind_a_document_makes_no_second_one() {
    let (_directory, path) = file("wire.rav", GOOD);
    let arguments = ["test", &path, "--filter", "no such test"];
    let found = json(&arguments, 1);
    assert_eq!(found["passed"], 0);
    let errors = ravelin(&arguments, 1).1;
    assert!(errors.contains("no test has `no such test` in its name"), "{errors}");
}

#[test]
fn a_failed_test_says_where_what_was_expected_and_what_came() {
    let (_directory, path) = file("wire.rav", &GOOD.replace("expect send 2", "expect flood"));
    let (told, _) = ravelin(&["test", &path], 1);
    for part in ["wire.rav:8:", "expected flood", "the verdict was send 2", "came in by port 1", "0000  "] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
}

#[test]
fn stf_files_test_the_program_beside_them() {
    let (directory, path) = file("wire.rav", GOOD);
    let stf = directory.path().join("wire.stf");
    let frame = "ffffffffffff 020000000001 0800";
    fs::write(&stf, format!("packet 1 {frame} 0102\nexpect 2 {frame} 01*2 $\n")).expect("file");
    let stf = stf.display().to_string();
    ravelin(&["test", &stf], 0);
    let directory_path = directory.path().display().to_string();
    assert_eq!(
        json(&["test", &directory_path], 0)["passed"],
        6,
        "the program's test and the file, by each back end"
    );
    fs::write(&stf, format!("packet 1 {frame} 0102\nexpect 2 {frame} 0103\n")).expect("file");
    let (told, _) = ravelin(&["test", &stf], 1);
    assert!(told.contains("wire.stf:2:") && told.contains("but this left"), "{told}");
    fs::write(&stf, format!("packet 1 {frame}\nexpect 2 {frame}\nexpect 2\n")).expect("file");
    assert!(ravelin(&["test", &stf], 1).0.contains("nothing left there"));
    fs::write(&stf, "paket 1 00\n").expect("file");
    assert!(ravelin(&["test", &stf, "--program", &path], 1).1.contains("line 1: `paket`"));
}

/// What does not suit the program's tables is a fault of the STF file, found only when the file runs.
#[test]
fn lines_of_stf_files_that_do_not_suit_the_program_are_told_with_their_own_file() {
    let program = "table t: exact(u8) -> port { capacity 4 }\ngroup g: u8 { capacity 2 }\ncounter c\nstart stage all() { match t[1] { some p => send p, none => flood } }\n";
    let (directory, path) = file("under_test.rav", program);
    let stf = directory.path().join("lines.stf").display().to_string();
    for line in [
        "add other 1 value(2)",
        "add t 256 value(2)",
        "add t 1 send(2)",
        "add t 1 2",
        "add g 1 2 3",
        "remove t 1 value(2)",
        "remove g 1",
        "setdefault t value()",
        "check_counter d == 0",
    ] {
        fs::write(&stf, format!("packet 1 00\n{line}\n")).expect("file");
        let (told, _) = ravelin(&["test", &stf, "--program", &path], 1);
        assert_eq!(told.matches("lines.stf, line 2: ").count(), 1, "{line}: {told}");
        assert!(!told.contains("under_test.rav"), "{line}: {told}");
        let document = json(&["test", &stf, "--program", &path], 1);
        let messages: Vec<&str> = (document["tests"].as_array().expect("tests").iter())
            .map(|test| test["message"].as_str().expect("a message"))
            .collect();
        assert_eq!(messages.len(), 3, "by each back end: {document}");
        for message in messages {
            assert!(message.starts_with(&format!("{stf}, line 2: ")), "{line}: {message}");
        }
    }
}

#[test]
fn codes_are_explained() {
    assert!(ravelin(&["explain", "e0001"], 0).0.contains("E0001"));
    assert!(json(&["explain", "E0001"], 0)["headline"].is_string());
    assert!(ravelin(&["explain", "E9999"], 2).1.contains("E9999"));
}

#[test]
fn every_command_has_help_and_those_with_arguments_have_examples() {
    for command in ["check", "fmt", "fix", "compile", "run", "test", "trace", "explain", "generate"] {
        let (help, _) = ravelin(&[command, "--help"], 0);
        assert!(help.contains("Examples:") && help.contains(&format!("ravelin {command}")), "{help}");
        assert!(help.contains("--json"));
    }
    assert!(ravelin(&["demo", "--help"], 0).0.contains("--json"));
}

/// Files that a program names: they lie beside it and are files, and nobody is waited for.
#[test]
fn a_program_reads_files_beside_it_and_no_others() {
    let text = |file: &str| {
        format!(
            "table t: exact(u8) -> port {{ capacity 4 from \"{file}\" }}\nstart stage all() {{ match t[1] {{ some p => send p, none => flood }} }}\n"
        )
    };
    let (directory, path) = file("own.rav", &text("inside.txt"));
    fs::write(directory.path().join("inside.txt"), "1 => 2\n").expect("file");
    assert!(ravelin(&["check", &path], 0).0.contains("all is well"));
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let bomb = directory.path().join("bomb");
    fs::write(&bomb, vec![b' '; 5_000_000]).expect("file");
    assert!(std::process::Command::new("gzip").arg(&bomb).status().expect("gzip runs").success());
    let cases = [
        ("/dev/zero", "outside of the program's folder"),
        ("/etc/passwd", "outside of the program's folder"),
        ("../../../../etc/passwd", "outside of the program's folder"),
        ("pipe", "it is a pipe"),
        ("bomb.gz", "unpacked it has more than 4210688 bytes"),
    ];
    for (name, said) in cases {
        fs::write(&path, text(name)).expect("file");
        let told = ravelin(&["check", &path], 2).1;
        assert!(told.contains(said) && !told.contains("root:"), "{name}: {told}");
    }
    let told = ravelin(&["check", &pipe.display().to_string()], 2).1;
    assert!(told.contains("it is a pipe"), "{told}");
    let told = ravelin(&["check", "/dev/zero"], 2).1;
    assert!(told.contains("it is a device"), "{told}");
}
