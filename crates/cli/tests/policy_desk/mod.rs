//! A directory with files of rules and programs, and the commands of `ravelin policy` run there.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;

/// The directory, and what stands behind every command.
pub(super) struct Desk(tempfile::TempDir, &'static [&'static str]);

impl Desk {
    /// A directory with these files.
    pub(super) fn new(files: &[(&str, &str)], always: &'static [&'static str]) -> Desk {
        let desk = Desk(tempfile::tempdir().expect("directory"), always);
        files.iter().for_each(|(name, text)| desk.write(name, text));
        desk
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a file can be written");
    }

    /// Runs `ravelin policy` to the expected exit code: standard output, standard error.
    pub(super) fn run(&self, arguments: &[&str], code: i32) -> (String, String) {
        self.ravelin(&[&["policy"], arguments, self.1].concat(), code)
    }

    /// Runs `ravelin` to the expected exit code: standard output, standard error.
    pub(super) fn ravelin(&self, arguments: &[&str], code: i32) -> (String, String) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
        let run = command.current_dir(self.0.path()).args(arguments);
        let output = run.assert().code(code).get_output().clone();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    }
}

pub(super) fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}
