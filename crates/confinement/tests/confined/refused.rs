//! What a confined process can no longer do, and what each layer is for.

use crate::process::{PROGRAM, Queue, actions, can_run, confined, locked, plain, start};
use confinement::{Layer, Role};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How many forbidden actions are tried; one of them is of processors that run 32-bit programs too.
const ACTIONS: usize = if cfg!(target_arch = "x86_64") { 81 } else { 80 };

#[test]
fn every_forbidden_action_is_possible_to_root_and_ends_a_core() {
    if !can_run("every_forbidden_action_is_possible_to_root_and_ends_a_core") {
        return;
    }
    let actions = actions();
    assert_eq!(actions.len(), ACTIONS);
    let _queue = Queue::new();
    let outsider = std::process::id();
    for (name, number) in actions {
        let free = plain(outsider, &name);
        assert!(free.possible(), "{name} without confinement: {free:?}");
        let refused = confined(&[], outsider, &name);
        assert!(refused.killed(), "{name} in a core: {refused:?}");
        let told =
            number.map_or(String::new(), |number| format!("confinement: refused system call {number}\n"));
        assert_eq!(refused.errors, told, "{name}");
    }
}

/// What a core may do that still makes its threads and machine code, and what comes of it.
const PREPARING: [(&str, &str); 6] = [
    ("map-executable", "ready\ndone\n"),
    ("make-executable", "ready\ndone\n"),
    ("fork-by-clone3", "ready\nfailed 38\n"),
    // It has yet to limit itself, to say how a refused call ends it, and to take the shorter list of calls.
    ("raise-limit", "ready\ndone\n"),
    ("replace-handler", "ready\ndone\n"),
    ("bring-filter", "ready\ndone\n"),
];

#[test]
fn a_core_that_makes_machine_code_may_do_no_more_before_and_as_little_as_another_one_after() {
    if !can_run("a_core_that_makes_machine_code_may_do_no_more_before_and_as_little_as_another_one_after") {
        return;
    }
    for (name, _) in actions() {
        let locked = start(&["core-native", "", "1", &name], &[], &[]);
        assert!(locked.killed(), "{name} in a core with machine code: {locked:?}");
        let before = start(&["core-preparing", "", "1", &name], &[], &[]);
        match PREPARING.iter().find(|(may, _)| *may == name) {
            Some((_, comes)) => assert_eq!(before.output, *comes, "{name}: {before:?}"),
            None => assert!(before.killed(), "{name} in a core that makes machine code: {before:?}"),
        }
    }
}

#[test]
fn a_core_without_any_one_layer_but_the_list_of_calls_is_refused_every_action() {
    if !can_run("a_core_without_any_one_layer_but_the_list_of_calls_is_refused_every_action") {
        return;
    }
    for layer in Layer::ALL.into_iter().filter(|&layer| layer != Layer::Seccomp) {
        for (name, _) in actions() {
            let refused = confined(&[layer], std::process::id(), &name);
            assert!(refused.killed(), "{name} without {layer}: {refused:?}");
        }
    }
}

/// What a core can do, once the list of system calls is left out, only because one more layer is: layers that
/// are left out, the action, and the layer whose absence then makes it possible.
const MATRIX: [(&[Layer], &str, Layer); 15] = [
    (&[], "make-file-of-memory", Layer::Seccomp),
    (&[], "map-executable", Layer::Seccomp),
    (&[], "socket-unix", Layer::Seccomp),
    (&[Layer::Seccomp], "fork", Layer::Limits),
    (&[Layer::Seccomp], "lock-memory", Layer::Limits),
    (&[Layer::Seccomp], "bind", Layer::Landlock),
    (&[Layer::Seccomp, Layer::MountNamespace], "open-to-read", Layer::Landlock),
    (&[Layer::Seccomp, Layer::Landlock], "open-to-read", Layer::MountNamespace),
    (&[Layer::Seccomp, Layer::Landlock], "mount", Layer::Capabilities),
    (&[Layer::Seccomp], "make-namespace", Layer::Capabilities),
    (&[Layer::Seccomp, Layer::Capabilities], "make-user-namespace", Layer::UserNamespace),
    (&[Layer::Seccomp, Layer::Capabilities], "set-time", Layer::UserNamespace),
    (&[Layer::Seccomp], "connect", Layer::NetworkNamespace),
    (&[Layer::Seccomp], "queue-messages", Layer::IpcNamespace),
    (&[Layer::Seccomp, Layer::Limits], "be-traced", Layer::NonDumpable),
];

#[test]
fn each_layer_alone_keeps_from_something() {
    if !can_run("each_layer_alone_keeps_from_something") {
        return;
    }
    let _queue = Queue::new();
    let outsider = std::process::id();
    for (without, action, layer) in MATRIX {
        let refused = confined(without, outsider, action);
        assert!(!refused.possible(), "{action} without {without:?}: {refused:?}");
        let free = confined(&[without, &[layer]].concat(), outsider, action);
        assert_eq!(free.output, "ready\ndone\n", "{action} without {without:?} and {layer}: {free:?}");
    }
}

#[test]
fn other_processes_are_out_of_reach_by_their_namespace_alone() {
    if !can_run("other_processes_are_out_of_reach_by_their_namespace_alone") {
        return;
    }
    // One that acts as the same user as the core does outside.
    let mut outsider = Command::new("sleep").arg("600").uid(65_534).gid(65_534).spawn().unwrap();
    let signal = |without: &[Layer]| confined(without, outsider.id(), "signal-outsider");
    let refused = signal(&[Layer::Seccomp, Layer::Landlock]);
    let refused_by_landlock = signal(&[Layer::Seccomp, Layer::PidNamespace]);
    let free = signal(&[Layer::Seccomp, Layer::Landlock, Layer::PidNamespace]);
    outsider.kill().unwrap();
    outsider.wait().unwrap();
    assert_eq!(refused.output, format!("ready\nfailed {}\n", libc::ESRCH));
    assert_eq!(refused_by_landlock.output, format!("ready\nfailed {}\n", libc::EPERM));
    assert_eq!(free.output, "ready\ndone\n");
}

#[test]
fn the_host_keeps_its_name_by_its_namespace_alone() {
    if !can_run("the_host_keeps_its_name_by_its_namespace_alone") {
        return;
    }
    let trial = |without: &str| {
        let done = Command::new(PROGRAM).args(["name-trial", without]).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    // Each time the confined process is able to name a host, and says so.
    let own = trial("seccomp,capabilities,user-namespace");
    assert!(own.starts_with("ready\ndone\nExited(0) ") && !own.ends_with(" ravelin-test\n"), "{own}");
    let outer = trial("seccomp,capabilities,user-namespace,uts-namespace");
    assert_eq!(outer, "ready\ndone\nExited(0) ravelin-test\n");
}

#[test]
fn a_program_gives_no_rights_if_none_are_to_come() {
    if !can_run("a_program_gives_no_rights_if_none_are_to_come") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("forbidden");
    fs::copy(PROGRAM, &program).unwrap();
    // Whoever executes it becomes its owner, root.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let program = fs::File::open(program).unwrap();
    let user = |without: &[Layer]| {
        let names = without.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(",");
        let arguments = ["core", &names, "1", "execute-descriptor"];
        start(&arguments, without, &[(program.as_fd(), 3)]).output
    };
    let others = [Layer::Seccomp, Layer::Landlock, Layer::MountNamespace, Layer::UserNamespace];
    assert_eq!(user(&others), "ready\n65534\n");
    assert_eq!(user(&[&others[..], &[Layer::NoNewPrivileges]].concat()), "ready\n0\n");
}

/// What processes may do of the forbidden actions, since it is their work, and what comes of it.
const WORK: [(Role, &str, Comes); 14] = [
    // It may open files to read them, and here there are none. The folder that it lists was open before.
    (Role::Compile, "open-to-read", Comes::Failed(libc::EACCES)),
    (Role::Compile, "open-below-descriptor", Comes::Failed(libc::EACCES)),
    (Role::Compile, "read-proc", Comes::Failed(libc::EACCES)),
    (Role::Compile, "look-at-file", Comes::Failed(libc::EACCES)),
    (Role::Compile, "list-folder", Comes::Done),
    (Role::Compile, "make-thread", Comes::Done),
    // Threads are made in the old way.
    (Role::Compile, "fork-by-clone3", Comes::Failed(libc::ENOSYS)),
    // It may take connections; the socket here does not listen.
    (Role::Front, "accept", Comes::Reached(libc::EINVAL)),
    (Role::Control, "socket-netlink", Comes::Done),
    // It may bind such a socket, and no other one: Landlock refuses it.
    (Role::Control, "bind", Comes::Failed(libc::EACCES)),
    (Role::Control, "accept", Comes::Reached(libc::EINVAL)),
    (Role::Control, "read-other-socket-option", Comes::Done),
    (Role::Control, "make-thread", Comes::Done),
    (Role::Control, "fork-by-clone3", Comes::Failed(libc::ENOSYS)),
];

/// What comes of an action.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// It is done.
    Done,
    /// The call gets to where it fails for what it is about.
    Reached(i32),
    /// Linux says that it may not be, or that there is nothing.
    Failed(i32),
}

#[test]
fn each_role_is_refused_every_forbidden_action_that_is_not_its_work() {
    if !can_run("each_role_is_refused_every_forbidden_action_that_is_not_its_work") {
        return;
    }
    let mut names: Vec<String> = actions().into_iter().map(|(name, _)| name).collect();
    // Threads share all with their process, and are the work of some.
    names.push("make-thread".to_owned());
    for (_, action, _) in WORK {
        assert!(names.iter().any(|name| name == action), "{action} is none");
    }
    let mut wrong = Vec::new();
    for (role, name) in Role::ALL.into_iter().flat_map(|role| names.iter().map(move |name| (role, name))) {
        let told = locked(role, name);
        let work = WORK.iter().find(|(of, action, _)| *of == role && name == action);
        let right = match work.map(|(.., comes)| *comes) {
            None => told.killed(),
            Some(Comes::Done) => told.output == "ready\ndone\n",
            Some(Comes::Reached(error)) => told.output == format!("ready\nreached {error}\n"),
            Some(Comes::Failed(error)) => told.output == format!("ready\nfailed {error}\n"),
        };
        if !right {
            wrong.push((role.name(), name, told));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
