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

/// What processes can do once they have all layers of their role: the action, and what comes of it in each.
const BY_ROLE: [(&str, [Comes; Role::ALL.len()]); 11] = [
    ("make-thread", [Comes::End, Comes::Done, Comes::Done, Comes::End, Comes::End, Comes::End]),
    ("socket-netlink", [Comes::End, Comes::End, Comes::Done, Comes::End, Comes::End, Comes::End]),
    ("socket-ipv4", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("fork", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("fork-by-clone3", [Comes::End, Comes::Unknown, Comes::Unknown, Comes::End, Comes::End, Comes::End]),
    ("map-executable", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("be-dumpable", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("type-at-terminal", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("set-socket-option", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("open-to-read", [Comes::End, Comes::NotThere, Comes::End, Comes::End, Comes::End, Comes::End]),
    ("open-to-write", [Comes::End, Comes::End, Comes::End, Comes::End, Comes::End, Comes::End]),
];

/// What comes of an action.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// The process is ended by the list of its calls.
    End,
    /// It is done.
    Done,
    /// It is answered as by a Linux that does not know it.
    Unknown,
    /// It may be asked for, and there is nothing.
    NotThere,
}

#[test]
fn each_role_can_do_what_its_list_says_and_no_more() {
    if !can_run("each_role_can_do_what_its_list_says_and_no_more") {
        return;
    }
    for (action, each) in BY_ROLE {
        for (role, comes) in Role::ALL.into_iter().zip(each) {
            let told = locked(role, action);
            let right = match comes {
                Comes::End => told.killed(),
                Comes::Done => told.output == "ready\ndone\n",
                Comes::NotThere => told.output == format!("ready\nfailed {}\n", libc::EACCES),
                Comes::Unknown => told.output == format!("ready\nfailed {}\n", libc::ENOSYS),
            };
            assert!(right, "{action} in {}, {comes:?}: {told:?}", role.name());
        }
    }
}

#[test]
fn whoever_compiles_is_refused_every_forbidden_action_that_is_not_its_work() {
    if !can_run("whoever_compiles_is_refused_every_forbidden_action_that_is_not_its_work") {
        return;
    }
    // It may open files to read them, and here there are none. The folder that it lists was open before.
    let answered = [
        ("open-to-read", libc::EACCES),
        ("open-below-descriptor", libc::EACCES),
        ("read-proc", libc::EACCES),
        ("look-at-file", libc::EACCES),
        ("list-folder", 0),
        ("fork-by-clone3", libc::ENOSYS),
    ];
    for (name, _) in actions() {
        let told = locked(Role::Compile, &name);
        match answered.iter().find(|(answered, _)| *answered == name) {
            Some((_, 0)) => assert_eq!(told.output, "ready\ndone\n", "{name}"),
            Some((_, error)) => assert_eq!(told.output, format!("ready\nfailed {error}\n"), "{name}"),
            None => assert!(told.killed(), "{name}: {told:?}"),
        }
    }
}

#[test]
fn whoever_listens_on_a_network_is_refused_every_forbidden_action_that_is_not_its_work() {
    if !can_run("whoever_listens_on_a_network_is_refused_every_forbidden_action_that_is_not_its_work") {
        return;
    }
    for (name, _) in actions() {
        let told = locked(Role::Front, &name);
        match name.as_str() {
            // It may take connections; the socket here does not listen.
            "accept" => assert_eq!(told.output, format!("ready\nreached {}\n", libc::EINVAL)),
            _ => assert!(told.killed(), "{name}: {told:?}"),
        }
    }
}
