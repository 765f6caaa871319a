//! The actions that a confined core is refused: each is one system call.

use crate::calls;
use crate::ground::{Ground, PAGE};

/// An action: a system call with its arguments, and what Linux may answer when it is not refused.
pub(crate) struct Action {
    pub(crate) name: &'static str,
    pub(crate) call: i64,
    /// The arguments, from what was made ready.
    pub(crate) arguments: fn(&Ground) -> [u64; 6],
    /// The errors by which Linux says that it would have done it: that an argument is senseless, or that this
    /// Linux was built without it. Success is always an answer.
    pub(crate) reached: &'static [i32],
    /// Whether the process is two processes after it.
    pub(crate) splits: bool,
}

const fn action(name: &'static str, call: i64, arguments: fn(&Ground) -> [u64; 6]) -> Action {
    Action { name, call, arguments, reached: &[], splits: false }
}

const fn reaching(
    name: &'static str,
    call: i64,
    reached: &'static [i32],
    arguments: fn(&Ground) -> [u64; 6],
) -> Action {
    Action { name, call, arguments, reached, splits: false }
}

/// Arguments, as Linux takes them.
fn numbers(numbers: &[i64]) -> [u64; 6] {
    let mut all = [0; 6];
    for (place, &number) in all.iter_mut().zip(numbers) {
        *place = number as u64;
    }
    all
}

const HERE: i64 = libc::AT_FDCWD as i64;

fn socket(family: i32, kind: i32, protocol: i32) -> [u64; 6] {
    numbers(&[family.into(), (kind | libc::SOCK_CLOEXEC).into(), protocol.into()])
}

/// An address of IPv4 with a port, as connect(2) and bind(2) take it.
fn ipv4(ground: &Ground, address: [u8; 4], port: u16) -> u64 {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    ground.bytes(&[family.as_slice(), &port.to_be_bytes(), &address, &[0; 8]].concat())
}

/// A part of memory, as process_vm_readv(2) takes it.
fn part(ground: &Ground, address: u64) -> i64 {
    ground.words(&[address, 8]) as i64
}

/// The call x32 has for the number of this process (the flag is `__X32_SYSCALL_BIT`).
const X32_GETPID: i64 = 0x4000_0000 | 39;

/// All actions that are calls of this architecture's numbers.
pub(crate) const ACTIONS: &[Action] = &[
    // Files.
    action("open-to-read", libc::SYS_openat, |g| numbers(&[HERE, g.text("/etc/passwd") as i64])),
    action("open-to-write", libc::SYS_openat, |g| {
        numbers(&[HERE, g.text("/tmp") as i64, (libc::O_TMPFILE | libc::O_WRONLY).into(), 0o600])
    }),
    action("open-below-descriptor", libc::SYS_openat, |g| {
        numbers(&[g.folder.into(), g.text(".") as i64, libc::O_DIRECTORY.into()])
    }),
    action("read-proc", libc::SYS_openat, |g| numbers(&[HERE, g.text("/proc/self/maps") as i64])),
    action("look-at-file", libc::SYS_newfstatat, |g| {
        numbers(&[HERE, g.text("/etc/passwd") as i64, g.memory as i64])
    }),
    action("list-folder", libc::SYS_getdents64, |g| {
        numbers(&[g.folder.into(), g.memory as i64, PAGE as i64])
    }),
    action("name-handle", libc::SYS_name_to_handle_at, |g| {
        numbers(&[HERE, g.text("/tmp") as i64, g.handle as i64, g.memory as i64])
    }),
    action("open-by-handle", libc::SYS_open_by_handle_at, |g| {
        numbers(&[g.folder.into(), g.handle as i64, libc::O_PATH.into()])
    }),
    reaching("make-device", libc::SYS_mknodat, &[libc::EEXIST], |g| {
        numbers(&[HERE, g.text("/tmp") as i64, (libc::S_IFCHR | 0o600).into(), 0x103])
    }),
    action("watch-files", libc::SYS_inotify_init1, |_| numbers(&[])),
    action("watch-all-files", libc::SYS_fanotify_init, |_| numbers(&[0, 0])),
    // Q_SYNC, for all file systems.
    reaching("write-quotas", libc::SYS_quotactl, &[libc::ENOSYS], |_| numbers(&[0x80_0001 << 8])),
    // Networks.
    reaching("connect-by-sending", libc::SYS_sendto, &[libc::EBADF], |g| {
        numbers(&[-1, g.memory as i64, 1, libc::MSG_FASTOPEN.into()])
    }),
    reaching("connect-by-sending-parts", libc::SYS_sendmsg, &[libc::EBADF], |g| {
        numbers(&[-1, g.memory as i64, libc::MSG_FASTOPEN.into()])
    }),
    action("socket-unix", libc::SYS_socket, |_| socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)),
    action("socket-ipv4", libc::SYS_socket, |_| socket(libc::AF_INET, libc::SOCK_STREAM, 0)),
    action("socket-ipv6", libc::SYS_socket, |_| socket(libc::AF_INET6, libc::SOCK_DGRAM, 0)),
    action("socket-raw", libc::SYS_socket, |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)),
    action("socket-packet", libc::SYS_socket, |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0)),
    action("socket-netlink", libc::SYS_socket, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0)),
    reaching("socket-xdp", libc::SYS_socket, &[libc::EAFNOSUPPORT], |_| {
        socket(libc::AF_XDP, libc::SOCK_RAW, 0)
    }),
    action("socket-pair", libc::SYS_socketpair, |g| {
        numbers(&[libc::AF_UNIX.into(), libc::SOCK_STREAM.into(), 0, g.memory as i64])
    }),
    action("bind", libc::SYS_bind, |g| numbers(&[g.tcp.into(), ipv4(g, [0; 4], 0) as i64, 16])),
    action("connect", libc::SYS_connect, |g| numbers(&[g.udp.into(), ipv4(g, [127, 0, 0, 1], 9) as i64, 16])),
    action("listen", libc::SYS_listen, |g| numbers(&[g.listening.into(), 1])),
    reaching("accept", libc::SYS_accept4, &[libc::EINVAL], |g| numbers(&[g.tcp.into(), 0, 0, 0])),
    action("set-socket-option", libc::SYS_setsockopt, |g| {
        let one = g.words(&[1]) as i64;
        numbers(&[g.udp.into(), libc::SOL_SOCKET.into(), libc::SO_BROADCAST.into(), one, 4])
    }),
    action("read-other-socket-option", libc::SYS_getsockopt, |g| {
        let length = g.words(&[12]) as i64;
        numbers(&[g.udp.into(), libc::SOL_SOCKET.into(), libc::SO_PEERCRED.into(), g.memory as i64, length])
    }),
    action("ask-about-interface", libc::SYS_ioctl, |g| {
        numbers(&[
            g.udp.into(),
            libc::SIOCGIFFLAGS as i64,
            g.bytes(&[b"lo".as_slice(), &[0; 38]].concat()) as i64,
        ])
    }),
    action("type-at-terminal", libc::SYS_ioctl, |g| {
        numbers(&[g.terminal.into(), libc::TIOCSTI as i64, g.bytes(b"x") as i64])
    }),
    // Other programs and processes.
    action("execute", libc::SYS_execveat, |g| {
        let arguments = g.words(&[g.text("forbidden"), g.text("say"), 0]) as i64;
        let none = g.words(&[0]) as i64;
        numbers(&[g.program.into(), g.text("") as i64, arguments, none, libc::AT_EMPTY_PATH.into()])
    }),
    action("execute-by-name", libc::SYS_execve, |g| {
        let arguments = g.words(&[g.text("forbidden"), g.text("say"), 0]) as i64;
        numbers(&[g.text("/proc/self/exe") as i64, arguments, g.words(&[0]) as i64])
    }),
    Action { splits: true, ..action("fork", libc::SYS_clone, |_| numbers(&[libc::SIGCHLD.into()])) },
    Action {
        splits: true,
        ..action("fork-by-clone3", libc::SYS_clone3, |g| {
            numbers(&[g.words(&[0, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0]) as i64, 64])
        })
    },
    action("signal-child", libc::SYS_kill, |g| numbers(&[g.child.into(), 0])),
    action("signal-outsider", libc::SYS_kill, |g| numbers(&[g.outsider.into(), 0])),
    action("signal-by-descriptor", libc::SYS_pidfd_send_signal, |g| numbers(&[g.child_process.into(), 0])),
    action("open-process", libc::SYS_pidfd_open, |g| numbers(&[g.child.into()])),
    action("take-descriptor", libc::SYS_pidfd_getfd, |g| numbers(&[g.child_process.into(), 1])),
    action("trace", libc::SYS_ptrace, |g| numbers(&[libc::PTRACE_SEIZE.into(), g.child.into()])),
    action("read-memory", libc::SYS_process_vm_readv, |g| {
        numbers(&[g.child.into(), part(g, g.memory), 1, part(g, g.memory), 1])
    }),
    action("write-memory", libc::SYS_process_vm_writev, |g| {
        numbers(&[g.child.into(), part(g, g.memory), 1, part(g, g.memory), 1])
    }),
    action("compare-processes", libc::SYS_kcmp, |g| numbers(&[g.child.into(), g.child.into(), 0])),
    action("hold-on-processor", libc::SYS_sched_setaffinity, |g| numbers(&[0, 8, g.words(&[1]) as i64])),
    // Memory.
    action("map-executable", libc::SYS_mmap, |_| {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        numbers(&[0, PAGE as i64, (libc::PROT_READ | libc::PROT_EXEC).into(), anonymous.into(), -1])
    }),
    action("make-executable", libc::SYS_mprotect, |g| {
        numbers(&[g.memory as i64, PAGE as i64, (libc::PROT_READ | libc::PROT_EXEC).into()])
    }),
    action("make-executable-with-key", libc::SYS_pkey_mprotect, |g| {
        numbers(&[g.memory as i64, PAGE as i64, (libc::PROT_READ | libc::PROT_EXEC).into(), -1])
    }),
    reaching("make-hole-in-memory", libc::SYS_madvise, &[libc::EINVAL], |g| {
        numbers(&[g.memory as i64, PAGE as i64, libc::MADV_REMOVE.into()])
    }),
    action("make-file-of-memory", libc::SYS_memfd_create, |g| numbers(&[g.text("x") as i64])),
    reaching("make-secret-memory", libc::SYS_memfd_secret, &[libc::ENOSYS], |_| numbers(&[])),
    action("lock-memory", libc::SYS_mlock, |g| numbers(&[g.memory as i64, PAGE as i64])),
    reaching("serve-page-faults", libc::SYS_userfaultfd, &[libc::ENOSYS], |_| numbers(&[1])),
    action("share-memory", libc::SYS_shmget, |_| {
        numbers(&[libc::IPC_PRIVATE.into(), PAGE as i64, (libc::IPC_CREAT | 0o600).into()])
    }),
    action("queue-messages", libc::SYS_msgget, |_| numbers(&[calls::QUEUE.into(), 0])),
    // Itself.
    action("become-user", libc::SYS_setresuid, |_| numbers(&[0, 0, 0])),
    action("take-capabilities", libc::SYS_capset, |g| {
        let header = g.bytes(&0x2008_0522u64.to_ne_bytes()) as i64;
        // CAP_SYS_ADMIN, 21, effective and permitted.
        numbers(&[
            header,
            g.bytes(&[0, 0, 0x20, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) as i64,
        ])
    }),
    action("be-dumpable", libc::SYS_prctl, |_| numbers(&[libc::PR_SET_DUMPABLE.into(), 1])),
    action("execute-what-is-read", libc::SYS_personality, |_| numbers(&[libc::READ_IMPLIES_EXEC.into()])),
    action("raise-limit", libc::SYS_prlimit64, |g| {
        numbers(&[0, libc::RLIMIT_NPROC.into(), g.words(&[1000, 1000]) as i64])
    }),
    action("replace-handler", libc::SYS_rt_sigaction, |g| {
        numbers(&[libc::SIGSYS.into(), g.words(&[1, 0, 0, 0]) as i64, 0, 8])
    }),
    action("bring-filter", libc::SYS_seccomp, |g| numbers(&[2, 0, g.words(&[libc::SYS_read as u64]) as i64])),
    // The machine.
    action("enter-namespace", libc::SYS_setns, |g| numbers(&[g.network.into(), 0])),
    action("make-namespace", libc::SYS_unshare, |_| numbers(&[libc::CLONE_NEWUTS.into()])),
    action("make-user-namespace", libc::SYS_unshare, |_| numbers(&[libc::CLONE_NEWUSER.into()])),
    action("mount", libc::SYS_mount, |g| {
        let kind = g.text("tmpfs") as i64;
        numbers(&[kind, g.text("/") as i64, kind])
    }),
    reaching("unmount", libc::SYS_umount2, &[libc::EBUSY, libc::EAGAIN, libc::EINVAL], |g| {
        numbers(&[g.text("/") as i64, libc::MNT_EXPIRE.into()])
    }),
    reaching("change-root-mount", libc::SYS_pivot_root, &[libc::EBUSY, libc::EINVAL], |g| {
        numbers(&[g.text("/") as i64, g.text("/") as i64])
    }),
    action("change-root", libc::SYS_chroot, |g| numbers(&[g.text("/") as i64])),
    action("load-bpf", libc::SYS_bpf, |g| {
        // A map of one element: BPF_MAP_CREATE, BPF_MAP_TYPE_ARRAY.
        numbers(&[0, g.bytes(&[2, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]) as i64, 20])
    }),
    reaching("watch-performance", libc::SYS_perf_event_open, &[libc::ENOSYS], |g| {
        let attributes = [&[1u8, 0, 0, 0, 112, 0, 0, 0][..], &[0; 104]].concat();
        numbers(&[g.bytes(&attributes) as i64, 0, -1, -1, 0])
    }),
    reaching("make-io-ring", libc::SYS_io_uring_setup, &[libc::ENOSYS], |g| {
        numbers(&[1, g.bytes(&[0; 120]) as i64])
    }),
    reaching("add-key", libc::SYS_add_key, &[libc::ENOSYS], |g| {
        numbers(&[g.text("user") as i64, g.text("x") as i64, g.text("y") as i64, 1, -2])
    }),
    reaching("use-keys", libc::SYS_keyctl, &[libc::ENOSYS], |_| numbers(&[0, -2, 1])),
    reaching("restart-machine", libc::SYS_reboot, &[libc::EINVAL], |_| numbers(&[0])),
    reaching("load-module", libc::SYS_init_module, &[libc::ENOSYS, libc::ENOEXEC, libc::EFAULT], |g| {
        numbers(&[0, 0, g.text("") as i64])
    }),
    action("set-time", libc::SYS_settimeofday, |_| numbers(&[])),
    action("name-host", libc::SYS_sethostname, |g| numbers(&[g.text("ravelin-test") as i64, 12])),
    action("read-log", libc::SYS_syslog, |_| numbers(&[10])),
    reaching("stop-swapping", libc::SYS_swapoff, &[libc::ENOENT, libc::ENOSYS], |g| {
        numbers(&[g.text("/no/such/file") as i64])
    }),
    reaching("x32", X32_GETPID, &[libc::ENOSYS], |_| numbers(&[])),
];
