//! What a gateway is where neither several processes nor one are asked for; and what users ask of it then.

use super::{LIMIT, Trusted, built, signed};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// What a gateway of several processes tells first.
const SEVERAL: &str = "trusted, four processes: ";
/// What one of one process tells first.
const ONE: &str = "one process: ";

/// `ravelin` with some of the programs that lie beside it.
fn alone(folder: &Path, beside: &[&str]) -> PathBuf {
    for name in ["ravelin"].iter().chain(beside) {
        fs::copy(built(name), folder.join(name)).expect("a copy");
    }
    folder.join("ravelin")
}

impl Trusted {
    /// What it told first.
    fn first(&self) -> String {
        self.told.recv_timeout(LIMIT).expect("it tells something")
    }

    /// What comes of a command that asks at the control socket.
    fn asked(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path().join("control.sock");
        let mut command = Command::new(built("ravelin"));
        command.args(arguments).arg("--control").arg(socket).stdin(Stdio::null()).output().expect("it runs")
    }

    /// Why a command fails.
    fn not_told(&self, arguments: &[&str]) -> String {
        let output = self.asked(arguments);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}: {words}");
        words
    }
}

#[test]
fn a_gateway_is_several_processes_where_the_machine_and_the_file_allow_it() {
    let test = "a_gateway_is_several_processes_where_the_machine_and_the_file_allow_it";
    let Some(mut trusted) = Trusted::by(test, built("ravelin"), &[], "", |_| {}) else { return };
    let first = trusted.first();
    assert!(first.starts_with(SEVERAL), "{first}");
    trusted.hears("core: locked in by");
    trusted.hears("core: program 2 runs");
    assert_eq!(trusted.passes(), 0);
    trusted.process("ravelin-core");
    trusted.shown();

    // What only one process does is refused with the way to it.
    for arguments in [
        &["show", "stages"][..],
        &["show", "latency"],
        &["show", "routes"],
        &["show", "neighbours"],
        &["why"],
        &["capture"],
        &["trace", "--live", ""],
        &["reload", "--check"],
        &["reload", "--only-if", "narrower"],
        &["policy", "counts"],
        &["names", "list"],
        &["names", "remove", "nas"],
        &["table", "join", "servers", "2"],
        &["table", "show", "servers"],
        &["table", "watch"],
        &["table", "watch", "--punts", "closed"],
    ] {
        let words = trusted.not_told(arguments);
        assert!(words.contains("`ravelin serve --one-process`"), "{arguments:?}: {words}");
    }
    let top = trusted.asked(&["top", "--once", "--json"]);
    let sample: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert!(sample["ports"].as_array().is_some_and(|ports| ports.len() == 2), "{sample}");
    assert_eq!(sample["measured"], Value::Null);

    // The program that is read again is another one.
    let output = trusted.asked(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    trusted.hears("core: program 3 runs");
    let output = trusted.asked(&["stop"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stopping\n");
    assert!(trusted.launch.wait().expect("it ends").success());
}

#[test]
fn a_gateway_is_one_process_where_something_is_missing_and_says_what() {
    let test = "a_gateway_is_one_process_where_something_is_missing_and_says_what";
    let folder = tempfile::tempdir().expect("a folder");
    let without_core = alone(folder.path(), &["ravelin-launch"]);
    // What is at the top of the file, and who may read the program.
    let cases = [
        (without_core, "", 0o644, "the program `ravelin-core` is not beside"),
        (built("ravelin"), "snapshot = \"kept\"\n", 0o644, "`snapshot` cannot be had"),
        (built("ravelin"), "", 0o600, "where nobody (65534) can read all that the program needs"),
    ];
    for (ravelin, at_top, mode, why) in cases {
        let in_front = |folder: &Path| {
            let (file, program) = (folder.join("gateway.toml"), folder.join("filter.rav"));
            let text = fs::read_to_string(&file).expect("was written");
            fs::write(&file, format!("{at_top}{text}")).expect("written");
            fs::set_permissions(program, fs::Permissions::from_mode(mode)).expect("its own");
        };
        let Some(mut gateway) = Trusted::by(test, ravelin, &[], "", in_front) else { return };
        let first = gateway.first();
        assert!(first.starts_with(ONE) && first.contains(why), "{first}");
        gateway.hears("Ctrl-C ends it");
        assert_eq!(gateway.passes(), 0);
        assert!(gateway.asked(&["stop"]).status.success());
        assert!(gateway.launch.wait().expect("it ends").success());
    }
}

#[test]
fn what_is_said_on_the_command_line_decides_how_many_processes_there_are() {
    let test = "what_is_said_on_the_command_line_decides_how_many_processes_there_are";
    for arguments in
        [&["--one-process"][..], &["--back-end", "bytecode"], &["--schedule", "cost"], &["--json"]]
    {
        let Some(gateway) = Trusted::by(test, built("ravelin"), arguments, "", |_| {}) else { return };
        let first = gateway.first();
        assert!(first.starts_with(ONE) && first.contains(arguments[0]), "{first}");
    }
    for with in ["--trusted", "--native", "--without=landlock"] {
        let mut command = Command::new(built("ravelin"));
        let output =
            command.args(["serve", "--one-process", with, "gateway.toml"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{with}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_file_with_signed_policies_never_runs_as_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    fs::write(&file, format!("program = \"p\"\n[[port]]\ninterface = \"lo\"\n{}", signed::trust()))
        .expect("written");
    let refused = |command: &mut Command, why: &str| {
        let begun = Instant::now();
        let output = command.arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}");
        let never = "with `[trust]` a gateway is never one process";
        assert!(words.contains(why) && words.contains(never) && !words.contains(ONE), "{words}");
        assert!(begun.elapsed() < LIMIT, "it waits for something");
    };
    let without_core = alone(folder.path(), &["ravelin-launch"]);
    refused(Command::new(&without_core).arg("serve"), "the program `ravelin-core` is not beside");
    refused(Command::new(built("ravelin")).args(["serve", "--json"]), "`--json` is for one process alone");
    // Root of a user namespace below which there may be no further one.
    let limited = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec {} serve \"$0\"",
        built("ravelin").display()
    );
    let mut command = Command::new("unshare");
    refused(
        command.args(["--map-root-user", "sh", "-c", &limited]),
        "the layer `user-namespace` cannot be had",
    );
}
