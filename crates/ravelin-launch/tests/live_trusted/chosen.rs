//! What a gateway is where neither several processes nor one are asked for; and what users ask of it then.

use super::{LIMIT, PROGRAM, Trusted, built, namespace, signed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// What a gateway of several processes tells first.
const SEVERAL: &str = "several processes, 4 of them: ";
/// A program with a policy that has a test.
const POLICY: &str = include_str!("../../../cli/tests/net/pings.rav");
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
    assert!(first.starts_with(SEVERAL) && first.contains("`--one-process` has machine code"), "{first}");
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
    assert_eq!(String::from_utf8_lossy(&output.stdout), "program 3 runs\n");
    trusted.hears("core: program 3 runs");
    let output = trusted.asked(&["stop"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stopping\n");
    assert!(trusted.launch.wait().expect("it ends").success());
}

#[test]
fn a_reload_beside_a_confined_core_fails_where_the_file_is_refused() {
    let test = "a_reload_beside_a_confined_core_fails_where_the_file_is_refused";
    let Some(trusted) = Trusted::by(test, built("ravelin"), &[], "", |_| {}) else { return };
    trusted.hears("core: program 2 runs");
    let file = trusted.folder.path().join("gateway.toml");
    let text = fs::read_to_string(&file).expect("was written");
    let refused = |file_says: String, told: &str| {
        fs::write(&file, file_says).expect("written");
        let words = trusted.not_told(&["reload"]);
        assert!(words.contains("no other program has taken over"), "{words}");
        let told = trusted.hears(told);
        assert!(
            told.contains("than the gateway runs with: stop it") || told.contains("`snapshot`"),
            "{told}"
        );
    };
    refused(format!("workers = 2\n{text}"), "other `workers`");
    refused(format!("{text}{}", signed::trust()), "other `[trust]`");
    refused(format!("snapshot = \"kept\"\n{text}"), "`snapshot` cannot be had with several processes");
    fs::write(&file, text).expect("written");
    assert!(trusted.asked(&["reload"]).status.success());
    assert_eq!(trusted.passes(), 0);
}

#[test]
fn signals_go_to_nobody_where_who_made_the_socket_is_not_seen() {
    let test = "signals_go_to_nobody_where_who_made_the_socket_is_not_seen";
    let Some(mut trusted) = Trusted::by(test, built("ravelin"), &[], "", |_| {}) else { return };
    trusted.hears("core: program 2 runs");
    let stop = format!(
        "{} stop --control {}",
        built("ravelin").display(),
        trusted.folder.path().join("control.sock").display()
    );
    // There the number of `ravelin-launch` is 0, by which `kill` means the whole group. The shell lives on.
    let inside = format!("{stop}; echo \"ended with $?\"");
    let mut unshared = Command::new("unshare");
    let output = unshared.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &inside]).output();
    let output = output.expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ended with 1\n", "{words}");
    assert!(words.contains("in another PID namespace") && words.contains("`kill -TERM`"), "{words}");
    // Another user that may ask.
    let socket = trusted.folder.path().join("control.sock");
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).expect("its own");
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--clear-groups", "--inh-caps=-all", "sh", "-c", &stop]);
    let output = other.output().expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("`kill -TERM`"), "{words}");
    assert_eq!(trusted.passes(), 0);
    assert!(trusted.asked(&["stop"]).status.success());
    assert!(trusted.launch.wait().expect("it ends").success());
}

#[test]
fn tests_of_policies_keep_no_gateway_from_starting_and_a_wrong_program_does() {
    let test = "tests_of_policies_keep_no_gateway_from_starting_and_a_wrong_program_does";
    let failing = |folder: &Path| {
        let text = POLICY.replace("expect pass icmp", "expect block icmp");
        fs::write(folder.join("filter.rav"), text).expect("written");
    };
    let Some(trusted) = Trusted::by(test, built("ravelin"), &[], "", failing) else { return };
    let first = trusted.first();
    assert!(first.starts_with(SEVERAL), "{first}");
    trusted.hears("core: program 2 runs");
    let words = trusted.not_told(&["reload"]);
    assert!(words.contains("no other program has taken over"), "{words}");
    trusted.hears("1 failed");

    let wrong =
        |folder: &Path| fs::write(folder.join("filter.rav"), "start stage all() { flood").expect("written");
    let Some(mut gateway) = Trusted::by(test, built("ravelin"), &[], "", wrong) else { return };
    let first = gateway.first();
    assert!(first.starts_with("error") && !first.contains("process"), "{first}");
    assert_eq!(gateway.launch.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_gateway_of_one_process_reads_its_file_again_at_sighup() {
    let test = "a_gateway_of_one_process_reads_its_file_again_at_sighup";
    let Some(mut gateway) = Trusted::by(test, built("ravelin"), &["--one-process"], "", |_| {}) else {
        return;
    };
    gateway.hears("Ctrl-C ends it");
    let process = Pid::from_raw(gateway.launch.id() as i32).expect("not 0");
    let program = gateway.folder.path().join("filter.rav");
    fs::write(&program, "start stage all() { flood").expect("written");
    kill_process(process, Signal::HUP).expect("it runs");
    gateway.hears("SIGHUP: ");
    assert_eq!(gateway.passes(), 0);
    fs::write(&program, PROGRAM.replace("7 => across", "7 | 9 => across")).expect("written");
    kill_process(process, Signal::HUP).expect("it runs");
    gateway.hears("the program took over");
    assert!(gateway.passes() > 0, "the other port is open now");
    assert!(gateway.asked(&["stop"]).status.success());
    assert!(gateway.launch.wait().expect("it ends").success());
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
        (built("ravelin"), "", 0o600, "can read only the folder of the file"),
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
    let usage = |arguments: &[&str], why: &str| {
        let mut command = Command::new(built("ravelin"));
        let output = command.arg("serve").args(arguments).arg("gateway.toml").output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(words.contains(why), "{arguments:?}: {words}");
    };
    for with in [&["--trusted"][..], &["--trusted", "--native"], &["--trusted", "--without=landlock"]] {
        usage(&[&["--one-process"], with].concat(), "cannot be used with");
    }
    usage(&["--trusted", "--back-end", "bytecode"], "cannot be used with");
    usage(&["--trusted", "--json"], "`--json` gives the account of a gateway of one process");
}

#[test]
fn a_file_with_a_container_never_runs_as_one_process() {
    if namespace("a_file_with_a_container_never_runs_as_one_process").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    fs::write(folder.path().join("filter.rav"), PROGRAM).expect("written");
    let refused = |guest: &str, ravelin: &Path, arguments: &[&str], why: &str| {
        let port = "interface = \"v\"\nkind = \"vnic\"\n[port.vnic]\nethernet = \"02:00:00:00:01:01\"\naddresses = [\"192.0.2.1/24\"]\n";
        fs::write(&file, format!("program = \"filter.rav\"\n[[port]]\n{port}{guest}")).expect("written");
        let output = Command::new(ravelin).arg("serve").args(arguments).arg(&file).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(
            words.contains(why) && words.contains("never one process") && !words.contains(ONE),
            "{words}"
        );
    };
    refused("", &built("ravelin"), &["--one-process"], "`--one-process` was said");
    let without_vhost = alone(folder.path(), &["ravelin-launch", "ravelin-core"]);
    refused("guest = \"vhost-user\"\n", &without_vhost, &[], "the program `ravelin-vhost` is not beside");
    let core = folder.path().join("ravelin-core");
    fs::set_permissions(core, fs::Permissions::from_mode(0o644)).expect("its own");
    refused("", &without_vhost, &[], "the program `ravelin-core` is not beside");
}

#[test]
fn a_file_with_signed_policies_never_runs_as_one_process() {
    let test = "a_file_with_signed_policies_never_runs_as_one_process";
    // Nothing has to be said for several.
    let Some(trusted) = Trusted::by(test, built("ravelin"), &[], &signed::trust(), |_| {}) else { return };
    let first = trusted.first();
    assert!(first.starts_with(SEVERAL) && !first.contains("one-process"), "{first}");
    trusted.hears("core: locked in by");
    // There is no way to what is not had.
    for arguments in [&["why"][..], &["show", "stages"], &["reload", "--check"]] {
        let words = trusted.not_told(arguments);
        assert!(words.contains("beside a confined core") && !words.contains("one-process"), "{words}");
    }
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
