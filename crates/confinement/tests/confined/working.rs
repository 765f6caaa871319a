//! That a confined process still does its work, what can be seen of it from outside, and that nothing is
//! confined by half.

use crate::process::{PROGRAM, Running, can_run, start};
use confinement::{Layer, ProcessEnd, Role};
use ports::live::sys::{bind_packet, interface_index, packet_socket, set_number};
use rig::Namespace;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A type of Ethernet frames that nothing but this test sends (IEEE 802, local experiments).
const EXPERIMENTAL: i32 = 0x88b5;

/// A socket for such frames at an interface, which waits when there are none.
fn frames_at(namespace: &Namespace, interface: &str) -> OwnedFd {
    let open = || {
        let socket = packet_socket()?;
        set_number(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        // The queue of an interface that was switched on a moment before loses what is sent.
        set_number(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        bind_packet(&socket, interface_index(interface)?, EXPERIMENTAL)?;
        rustix::io::ioctl_fionbio(&socket, false)?;
        Ok(socket)
    };
    namespace.inside(open).unwrap()
}

/// What a process of the machine can be seen to have.
fn status(process: i32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_core_answers_frames_of_an_interface_that_it_was_handed_and_can_be_seen_to_have_nothing_else() {
    if !can_run(
        "a_core_answers_frames_of_an_interface_that_it_was_handed_and_can_be_seen_to_have_nothing_else",
    ) {
        return;
    }
    const COUNT: usize = 200;
    let (here, there) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    here.links()
        .unwrap()
        .cable(("core0", [2, 0, 0, 0, 0, 1]), ("test0", [2, 0, 0, 0, 0, 2]), &there)
        .unwrap();
    here.links().unwrap().up("core0").unwrap();
    there.links().unwrap().up("test0").unwrap();
    let handed = frames_at(&here, "core0");
    let mut peer = File::from(frames_at(&there, "test0"));
    let running = Running::begin(Role::Core, &["work", &COUNT.to_string()], &[], &[(handed.as_fd(), 3)]);
    drop(handed);
    let process = running.child.id();
    for number in 0..COUNT {
        let mut frame = vec![2; 12];
        frame.extend_from_slice(&(EXPERIMENTAL as u16).to_be_bytes());
        frame.resize(60 + number, number as u8);
        peer.write_all(&frame).unwrap();
        let mut answer = vec![0; 2048];
        let length = peer.read(&mut answer).unwrap();
        frame[0] += 1;
        assert_eq!(answer[..length], frame, "frame {number}");
        if number != COUNT / 2 {
            continue;
        }
        // It is locked, since it answers.
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(process, set), "0000000000000000", "{set}");
        }
        assert_eq!(status(process, "Uid"), "65534 65534 65534 65534");
        assert_eq!(status(process, "Gid"), "65534 65534 65534 65534");
        assert_eq!(status(process, "Groups"), "");
        assert_eq!(status(process, "Name"), "ravelin-core");
        assert_eq!(status(process, "NoNewPrivs"), "1");
        assert_eq!(status(process, "Seccomp"), "2");
        assert_eq!(status(process, "Threads"), "2");
        assert_eq!(status(process, "NSpid"), format!("{process} 1"));
        for (_, thread) in threads(process) {
            assert_eq!((&*thread.0, &*thread.1), ("2", "0000000000000000"), "every thread is confined");
        }
        let memory = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
        assert!(memory.lines().all(|line| !line.contains("wx")), "{memory}");
        let devices = fs::read_to_string(format!("/proc/{process}/net/dev")).unwrap();
        assert_eq!(devices.lines().skip(2).filter(|line| !line.contains("lo:")).count(), 0, "{devices}");
        let mounts = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap();
        assert_eq!(mounts.lines().count(), 1, "{mounts}");
        assert!(mounts.contains(" / / ro,nosuid,nodev,noexec"), "{mounts}");
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        assert_eq!(descriptors, 4, "input, output, errors, frames");
    }
    let told = running.finish();
    assert_eq!((told.errors.as_str(), told.end), ("", ProcessEnd::Exited(0)));
    assert_eq!(told.output, format!("ready\nanswered {COUNT} frames of {COUNT} lengths, true\n"));
}

/// The filter mode and the capabilities of each thread.
fn threads(process: i32) -> Vec<(String, (String, String))> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let threads = threads.map(|thread| {
        let path = thread.unwrap().path();
        let status = fs::read_to_string(path.join("status")).unwrap();
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
            value.unwrap().to_owned()
        };
        (path.display().to_string(), (field("Seccomp"), field("CapEff")))
    });
    threads.collect()
}

#[test]
fn a_core_answers_messages_of_a_pair_of_sockets() {
    if !can_run("a_core_answers_messages_of_a_pair_of_sockets") {
        return;
    }
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let running = Running::begin(Role::Core, &["work", "3"], &[], &[(theirs.as_fd(), 3)]);
    for length in [1, 1000, 1] {
        ours.send(&vec![7; length]).unwrap();
        let mut answer = [0; 2048];
        assert_eq!(ours.recv(&mut answer).unwrap(), length);
        assert_eq!(answer[0], 8);
    }
    assert_eq!(running.finish().output, "ready\nanswered 3 frames of 2 lengths, true\n");
}

#[test]
fn what_cannot_be_confined_is_not_confined_by_half() {
    if !can_run("what_cannot_be_confined_is_not_confined_by_half") {
        return;
    }
    let alone = Command::new(PROGRAM).args(["core", "", "1", "bind"]).output().unwrap();
    assert_eq!(
        String::from_utf8(alone.stderr).unwrap(),
        "forbidden: the layer `user-namespace` is missing: this process was not started apart (`separate`)\n"
    );
    assert_eq!((alone.status.code(), alone.stdout), (Some(1), vec![]));

    let threads = start(&["core-with-thread"], &[], &[]);
    assert_eq!(threads.end, ProcessEnd::Exited(1));
    assert_eq!(
        threads.errors,
        "forbidden: the layer `capabilities` is missing: the process has 2 threads already, which would keep \
         theirs\n"
    );

    let executable = start(&["core-in-old-way"], &[], &[]);
    assert_eq!(executable.end, ProcessEnd::Exited(1));
    let told = "forbidden: the layer `seccomp` is missing: all memory that can be read can be executed";
    assert!(executable.errors.starts_with(told), "{executable:?}");

    // Asked for more than the process that started it has given.
    let less = start(&["core", "", "1", "bind"], &[Layer::NetworkNamespace], &[]);
    assert_eq!(less.end, ProcessEnd::Exited(1));
    assert_eq!(
        less.errors,
        "forbidden: the layer `network-namespace` is missing: it is that of the process that started this one\n"
    );
}

#[test]
fn an_error_output_that_the_limits_would_end_is_refused() {
    if !can_run("an_error_output_that_the_limits_would_end_is_refused") {
        return;
    }
    let mut file = tempfile::tempfile().unwrap();
    let told = start(&["core", "", "1", "bind"], &[], &[(file.as_fd(), 2)]);
    assert_eq!(told.end, ProcessEnd::Exited(1));
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(
        text,
        "forbidden: the layer `limits` is missing: the error output is a file, which may not grow: hand over a \
         pipe\n"
    );
}

#[test]
fn whoever_may_be_started_again_has_memory_up_to_a_limit_and_ends_before_the_core() {
    if !can_run("whoever_may_be_started_again_has_memory_up_to_a_limit_and_ends_before_the_core") {
        return;
    }
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let own: i32 = own.trim().parse().unwrap();
    // In MiB, what its work takes, and twice as much as it may have; the core has no limit.
    for (role, little, much) in [
        (Role::Core, "64", "2048"),
        (Role::Compile, "1024", "16384"),
        (Role::Control, "1024", "8192"),
        (Role::Front, "256", "2048"),
        (Role::Vhost, "16", "128"),
        (Role::Tunnel, "256", "2048"),
    ] {
        let ends = if role == Role::Core { own } else { own.max(800) };
        let take = |mebibytes| {
            let running = Running::begin(role, &["take", role.name(), mebibytes], &[], &[]);
            let score = format!("/proc/{}/oom_score_adj", running.child.id());
            let score = fs::read_to_string(score).unwrap();
            assert_eq!(score.trim(), ends.to_string(), "{role:?}");
            running.finish()
        };
        assert_eq!(take(little).output, "taken\n", "{role:?}");
        let told = if role == Role::Core { "taken\n" } else { "refused\n" };
        assert_eq!(take(much).output, told, "{role:?}");
    }
}

#[test]
fn where_a_namespace_cannot_be_had_nothing_is_started_and_its_layer_is_named() {
    if !can_run("where_a_namespace_cannot_be_had_nothing_is_started_and_its_layer_is_named") {
        return;
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" name-trial ''";
    let arguments = ["--user", "--map-root-user", "sh", "-c", script, PROGRAM];
    let trial = Command::new("unshare").args(arguments).output().unwrap();
    let errors = String::from_utf8(trial.stderr).unwrap();
    assert!(errors.starts_with("forbidden: the layer `user-namespace` is missing: unshare: "), "{errors}");
    assert_eq!(trial.stdout, b"");
}

#[test]
fn a_refused_call_ends_a_process_whose_errors_nobody_reads() {
    if !can_run("a_refused_call_ends_a_process_whose_errors_nobody_reads") {
        return;
    }
    let (unread, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let told = start(&["core", "", "1", "bind"], &[], &[(full.as_fd(), 2)]);
    assert!(told.killed(), "{told:?}");
    drop(unread);
}

/// Whether this machine lets users without rights have no user namespaces that are of use.
fn restricted() -> bool {
    let is = |place, value| fs::read_to_string(place).is_ok_and(|text: String| text.trim() == value);
    is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
        || is("/proc/sys/kernel/unprivileged_userns_clone", "0")
}

#[test]
fn a_user_without_rights_can_confine_a_core_too() {
    if !can_run("a_user_without_rights_can_confine_a_core_too") {
        return;
    }
    let apart = |without| {
        let mut user = Command::new(PROGRAM);
        let done = user.args(["apart", without, "bind"]).uid(1000).gid(1000).output().unwrap();
        String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap()
    };
    let refused = apart("");
    if restricted() {
        assert!(refused.contains("is missing: "), "{refused}");
        return;
    }
    assert!(refused.starts_with("ready\nSignalled(31) "), "{refused}");
    let told = format!("\nconfinement: refused system call {}\n", libc::SYS_bind);
    assert!(refused.ends_with(&told), "{refused}");
    let free = apart("seccomp,landlock");
    assert!(free.starts_with("ready\ndone\nExited(0) "), "{free}");
}

#[test]
fn a_child_that_is_dropped_is_ended() {
    if !can_run("a_child_that_is_dropped_is_ended") {
        return;
    }
    let (_ours, theirs) = UnixDatagram::pair().unwrap();
    let running = Running::begin(Role::Core, &["work", "1"], &[], &[(theirs.as_fd(), 3)]);
    let process = running.child.id();
    assert!(fs::exists(format!("/proc/{process}")).unwrap());
    drop(running);
    assert!(!fs::exists(format!("/proc/{process}")).unwrap());
}
