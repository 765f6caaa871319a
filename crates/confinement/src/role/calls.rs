//! The system calls that each role may make once it is locked, with the arguments that they may have, and
//! why. Every other call ends the process.

use super::Role;

/// A system call that a role may make.
#[derive(Clone, Copy, Debug)]
pub struct AllowedCall {
    /// Its name in Linux.
    pub name: &'static str,
    /// Its number on this architecture.
    pub number: i64,
    /// Which arguments it may have, in words; empty if any.
    pub only: &'static str,
    /// What the process needs it for.
    pub why: &'static str,
    /// The same as `only`: one of these lists of conditions has to hold whole. Empty if any arguments are
    /// allowed.
    pub(crate) arguments: &'static [&'static [Condition]],
}

/// Something that has to hold of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// Which argument, from 0.
    pub(crate) argument: u8,
    pub(crate) holds: Holds,
}

/// What has to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holds {
    /// The argument, an `int`, is this number.
    Is(u32),
    /// None of these bits is set.
    Without(u64),
    /// All of these bits are set.
    With(u64),
}

const fn is(argument: u8, number: libc::c_int) -> Condition {
    Condition { argument, holds: Holds::Is(number as u32) }
}

const fn any(name: &'static str, number: i64, why: &'static str) -> AllowedCall {
    AllowedCall { name, number, only: "", why, arguments: &[] }
}

const fn never_executable(name: &'static str, number: i64, why: &'static str) -> AllowedCall {
    const ARGUMENTS: &[&[Condition]] =
        &[&[Condition { argument: 2, holds: Holds::Without(libc::PROT_EXEC as u64) }]];
    AllowedCall { name, number, only: "without `PROT_EXEC`", why, arguments: ARGUMENTS }
}

/// A call that sends. It must not connect: whoever shuts a socket that listens can have it connect by what is
/// sent (TCP Fast Open, RFC 7413).
const fn without_connecting(
    name: &'static str,
    number: i64,
    arguments: &'static [&'static [Condition]],
    why: &'static str,
) -> AllowedCall {
    AllowedCall { name, number, only: "without `MSG_FASTOPEN`", why, arguments }
}

const fn plain_flags(argument: u8) -> Condition {
    Condition { argument, holds: Holds::Without(libc::MSG_FASTOPEN as u64) }
}

const RECVFROM: AllowedCall = any("recvfrom", libc::SYS_recvfrom, "messages");
const RECVMSG: AllowedCall = any("recvmsg", libc::SYS_recvmsg, "messages with descriptors from launch");
const SENDTO: AllowedCall = without_connecting("sendto", libc::SYS_sendto, &[&[plain_flags(3)]], "messages");

/// The standard library looks, in builds with debug assertions, whether a descriptor is open before it closes
/// it.
#[cfg(debug_assertions)]
const FCNTL: AllowedCall = AllowedCall {
    name: "fcntl",
    number: libc::SYS_fcntl,
    only: "`F_GETFD`",
    why: "only in builds with debug assertions: whether a descriptor that is closed is open",
    arguments: &[&[is(1, libc::F_GETFD)]],
};

/// What every process may call.
const EVERY_ROLE: [AllowedCall; 17] = [
    any("read", libc::SYS_read, "messages, bells, frames and files, whichever it has"),
    any("write", libc::SYS_write, "the same, and error output"),
    any("close", libc::SYS_close, "descriptors that it needs no more"),
    any("ppoll", libc::SYS_ppoll, "waits for what it reads"),
    never_executable("mmap", libc::SYS_mmap, "memory, and rings of ports"),
    any("munmap", libc::SYS_munmap, "gives memory back"),
    any("mremap", libc::SYS_mremap, "lets large memory grow"),
    never_executable("mprotect", libc::SYS_mprotect, "lets the memory of a thread's allocator grow"),
    // Nothing else: some advice makes holes in memory that is shared.
    AllowedCall {
        name: "madvise",
        number: libc::SYS_madvise,
        only: "`MADV_DONTNEED`, `MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`",
        why: "large pages, and gives memory back",
        arguments: &[
            &[is(2, libc::MADV_DONTNEED)],
            &[is(2, libc::MADV_HUGEPAGE)],
            &[is(2, libc::MADV_NOHUGEPAGE)],
        ],
    },
    any("brk", libc::SYS_brk, "small memory"),
    any("futex", libc::SYS_futex, "locks and channels between threads"),
    any("clock_gettime", libc::SYS_clock_gettime, "the time, where Linux has no call-free clock"),
    any("sched_yield", libc::SYS_sched_yield, "waits a moment for a thread"),
    any("getrandom", libc::SYS_getrandom, "keys of hash tables, and of handshakes"),
    any("sigaltstack", libc::SYS_sigaltstack, "the end of a thread, and of the process"),
    any("exit_group", libc::SYS_exit_group, "the end of the process"),
    any(
        "restart_syscall",
        libc::SYS_restart_syscall,
        "a wait goes on after a stop or a sleep of the machine",
    ),
];

const CORE: &[AllowedCall] = &[
    any("readv", libc::SYS_readv, "frames of TAP devices with their virtio headers"),
    any("writev", libc::SYS_writev, "frames of TAP devices with their virtio headers"),
    any("recvfrom", libc::SYS_recvfrom, "messages, and rings of AF_XDP"),
    RECVMSG,
    any("dup3", libc::SYS_dup3, "puts the new socket of a port that came again in the place of the old one"),
    without_connecting("sendto", libc::SYS_sendto, &[&[plain_flags(3)]], "messages, and rings that are full"),
    any("sendmmsg", libc::SYS_sendmmsg, "many frames at a call"),
    AllowedCall {
        name: "getsockopt",
        number: libc::SYS_getsockopt,
        only: "`SO_ERROR`, `PACKET_STATISTICS`, `XDP_STATISTICS`, `XDP_MMAP_OFFSETS`",
        why: "what a port lost, why it stopped, and where its rings lie",
        arguments: &[
            &[is(1, libc::SOL_SOCKET), is(2, libc::SO_ERROR)],
            &[is(1, libc::SOL_PACKET), is(2, libc::PACKET_STATISTICS)],
            &[is(1, libc::SOL_XDP), is(2, libc::XDP_STATISTICS)],
            &[is(1, libc::SOL_XDP), is(2, libc::XDP_MMAP_OFFSETS)],
        ],
    },
    #[cfg(debug_assertions)]
    FCNTL,
];

const SENDMSG: AllowedCall =
    without_connecting("sendmsg", libc::SYS_sendmsg, &[&[plain_flags(2)]], "messages in several parts");
const CLOCK_NANOSLEEP: AllowedCall = any("clock_nanosleep", libc::SYS_clock_nanosleep, "sleeps");
const RT_SIGPROCMASK: AllowedCall =
    any("rt_sigprocmask", libc::SYS_rt_sigprocmask, "the beginning and the end of a thread");
const EXIT: AllowedCall = any("exit", libc::SYS_exit, "the end of a thread");

/// The flags of openat(2) by which a file can be changed or made.
const CHANGES_FILES: u64 = (libc::O_WRONLY
    | libc::O_RDWR
    | libc::O_CREAT
    | libc::O_TRUNC
    | libc::O_APPEND
    | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;

const CLONE: AllowedCall = AllowedCall {
    name: "clone",
    number: libc::SYS_clone,
    only: "with `CLONE_THREAD`, without new namespaces",
    why: "makes a thread",
    arguments: &[&[
        Condition { argument: 0, holds: Holds::With((libc::CLONE_THREAD | libc::CLONE_VM) as u64) },
        Condition { argument: 0, holds: Holds::Without(NAMESPACES) },
    ]],
};
const NAME_THREAD: AllowedCall = AllowedCall {
    name: "prctl",
    number: libc::SYS_prctl,
    only: "`PR_SET_NAME`",
    why: "names of threads",
    arguments: &[&[is(0, libc::PR_SET_NAME)]],
};
const SET_ROBUST_LIST: AllowedCall =
    any("set_robust_list", libc::SYS_set_robust_list, "the beginning of a thread");
const RSEQ: AllowedCall = any("rseq", libc::SYS_rseq, "the beginning of a thread");
const SCHED_GETAFFINITY: AllowedCall =
    any("sched_getaffinity", libc::SYS_sched_getaffinity, "the beginning of a thread");
const GETTID: AllowedCall = any("gettid", libc::SYS_gettid, "the beginning of a thread");

#[cfg(target_arch = "x86_64")]
const READLINK: AllowedCall = any("readlink", libc::SYS_readlink, "where a link leads");
#[cfg(not(target_arch = "x86_64"))]
const READLINK: AllowedCall = any("readlinkat", libc::SYS_readlinkat, "where a link leads");

const COMPILE: &[AllowedCall] = &[
    AllowedCall {
        name: "openat",
        number: libc::SYS_openat,
        only: "to read",
        why: "opens files below the folder of the gateway's file",
        arguments: &[&[Condition { argument: 2, holds: Holds::Without(CHANGES_FILES) }]],
    },
    any("statx", libc::SYS_statx, "what kind of file it is, and how long"),
    any("newfstatat", libc::SYS_newfstatat, "what kind of file it is, asked by the C library"),
    any("getdents64", libc::SYS_getdents64, "files with names like one that is missing"),
    READLINK,
    any("getcwd", libc::SYS_getcwd, "where a relative path begins"),
    any("lseek", libc::SYS_lseek, "how much of a file is left"),
    RECVFROM,
    RECVMSG,
    SENDTO,
    SENDMSG,
    CLOCK_NANOSLEEP,
    CLONE,
    NAME_THREAD,
    SET_ROBUST_LIST,
    RSEQ,
    SCHED_GETAFFINITY,
    GETTID,
    RT_SIGPROCMASK,
    EXIT,
    #[cfg(debug_assertions)]
    FCNTL,
];

const WRITEV: AllowedCall = any("writev", libc::SYS_writev, "answers in several parts");
const ACCEPT4: AllowedCall =
    any("accept4", libc::SYS_accept4, "who connects to sockets that launch has opened");

const CONTROL: &[AllowedCall] = &[
    any("readv", libc::SYS_readv, "requests in several parts"),
    WRITEV,
    AllowedCall {
        name: "socket",
        number: libc::SYS_socket,
        only: "`AF_NETLINK` with protocol `NETLINK_ROUTE`",
        why: "asks Linux about routes, neighbours, links and addresses",
        arguments: &[&[is(0, libc::AF_NETLINK), is(2, libc::NETLINK_ROUTE)]],
    },
    any("bind", libc::SYS_bind, "subscribes to changes of routes, neighbours, links and addresses"),
    ACCEPT4,
    any("shutdown", libc::SYS_shutdown, "ends connections of users"),
    any("getsockname", libc::SYS_getsockname, "where it is reached"),
    any("getpeername", libc::SYS_getpeername, "who a user is"),
    any("getsockopt", libc::SYS_getsockopt, "who a user is, and errors of connections"),
    AllowedCall {
        name: "setsockopt",
        number: libc::SYS_setsockopt,
        only: "`SO_RCVTIMEO`, `SO_SNDTIMEO`, `SO_RCVBUF`, `SO_RCVBUFFORCE`, `TCP_NODELAY`, and those of netlink",
        why: "waits for users no longer than a limit, and loses no message of Linux",
        arguments: &[
            &[is(1, libc::SOL_SOCKET), is(2, libc::SO_RCVTIMEO)],
            &[is(1, libc::SOL_SOCKET), is(2, libc::SO_SNDTIMEO)],
            &[is(1, libc::SOL_SOCKET), is(2, libc::SO_RCVBUF)],
            // It has no right for this: Linux refuses, and it asks by `SO_RCVBUF`.
            &[is(1, libc::SOL_SOCKET), is(2, libc::SO_RCVBUFFORCE)],
            &[is(1, libc::IPPROTO_TCP), is(2, libc::TCP_NODELAY)],
            &[is(1, libc::SOL_NETLINK)],
        ],
    },
    AllowedCall {
        name: "ioctl",
        number: libc::SYS_ioctl,
        only: "`FIONBIO`",
        why: "does not wait for users who do not read",
        arguments: &[&[Condition { argument: 1, holds: Holds::Is(libc::FIONBIO as u32) }]],
    },
    AllowedCall {
        name: "fcntl",
        number: libc::SYS_fcntl,
        only: "`F_DUPFD_CLOEXEC`, `F_GETFL`, `F_GETFD`",
        why: "one connection, read and written by two threads",
        arguments: &[&[is(1, libc::F_DUPFD_CLOEXEC)], &[is(1, libc::F_GETFL)], &[is(1, libc::F_GETFD)]],
    },
    any("eventfd2", libc::SYS_eventfd2, "bells between threads"),
    RECVFROM,
    RECVMSG,
    SENDTO,
    SENDMSG,
    CLOCK_NANOSLEEP,
    CLONE,
    NAME_THREAD,
    SET_ROBUST_LIST,
    RSEQ,
    SCHED_GETAFFINITY,
    GETTID,
    RT_SIGPROCMASK,
    EXIT,
];

const FRONT: &[AllowedCall] = &[
    WRITEV,
    ACCEPT4,
    RECVFROM,
    SENDTO,
    #[cfg(debug_assertions)]
    FCNTL,
];

const VHOST: &[AllowedCall] = &[
    any("pread64", libc::SYS_pread64, "where a ring has come to, in the machine's memory"),
    RECVFROM,
    RECVMSG,
    SENDTO,
    SENDMSG,
    #[cfg(debug_assertions)]
    FCNTL,
];

const TUNNEL: &[AllowedCall] = &[
    any("readv", libc::SYS_readv, "frames of the core"),
    any("writev", libc::SYS_writev, "frames for the core"),
    any("recvmmsg", libc::SYS_recvmmsg, "many datagrams at a call"),
    without_connecting("sendmmsg", libc::SYS_sendmmsg, &[&[plain_flags(3)]], "many datagrams at a call"),
    AllowedCall {
        name: "getsockopt",
        number: libc::SYS_getsockopt,
        only: "`SO_ERROR`",
        why: "takes an error off a socket",
        arguments: &[&[is(1, libc::SOL_SOCKET), is(2, libc::SO_ERROR)]],
    },
    #[cfg(debug_assertions)]
    FCNTL,
];

/// What a core needs in addition until its machine code and its threads are there.
const PREPARING: &[AllowedCall] = &[
    any("mmap", libc::SYS_mmap, "memory, that of machine code too"),
    any("mprotect", libc::SYS_mprotect, "lets machine code be executed and not be written"),
    CLONE,
    AllowedCall {
        name: "prctl",
        number: libc::SYS_prctl,
        only: "`PR_SET_NAME`, `PR_SET_NO_NEW_PRIVS`",
        why: "names of threads, and the list of calls",
        arguments: &[&[is(0, libc::PR_SET_NAME)], &[is(0, libc::PR_SET_NO_NEW_PRIVS)]],
    },
    any("seccomp", libc::SYS_seccomp, "the list of calls"),
    any("prlimit64", libc::SYS_prlimit64, "limits, and the stack of a thread"),
    any("rt_sigaction", libc::SYS_rt_sigaction, "tells a refused call"),
    AllowedCall {
        name: "personality",
        number: libc::SYS_personality,
        only: "to ask",
        why: "whether what can be read can be executed",
        arguments: &[&[is(0, -1)]],
    },
    AllowedCall {
        name: "newfstatat",
        number: libc::SYS_newfstatat,
        only: "of the error output",
        why: "whether the error output is a file",
        arguments: &[&[is(0, libc::STDERR_FILENO)]],
    },
    any("fstat", libc::SYS_fstat, "whether the error output is a file"),
    AllowedCall {
        name: "fcntl",
        number: libc::SYS_fcntl,
        only: "`F_DUPFD_CLOEXEC`, `F_GETFD`",
        why: "another handle of a channel, and how many descriptors there are",
        arguments: &[&[is(1, libc::F_DUPFD_CLOEXEC)], &[is(1, libc::F_GETFD)]],
    },
    any("eventfd2", libc::SYS_eventfd2, "bells between threads"),
    SET_ROBUST_LIST,
    RSEQ,
    SCHED_GETAFFINITY,
    GETTID,
    RT_SIGPROCMASK,
];

/// The flags that ask for namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

impl Role {
    /// The system calls that a process of this role may make once it is locked.
    #[must_use]
    pub fn calls(self) -> Vec<AllowedCall> {
        EVERY_ROLE.iter().chain(self.own_calls()).copied().collect()
    }

    /// Those of them that not every process may make.
    #[must_use]
    pub fn own_calls(self) -> &'static [AllowedCall] {
        match self {
            Self::Core => CORE,
            Self::Compile => COMPILE,
            Self::Control => CONTROL,
            Self::Front => FRONT,
            Self::Vhost => VHOST,
            Self::Tunnel => TUNNEL,
        }
    }

    /// The system calls that every process may make.
    #[must_use]
    pub fn calls_of_all() -> &'static [AllowedCall] {
        &EVERY_ROLE
    }

    /// The calls that a process of this role may make while it still makes its threads and machine code:
    /// those that it may make later, with memory that can be executed, and those by which it becomes ready.
    pub(crate) fn preparing_calls(self) -> Vec<AllowedCall> {
        let later = self.calls().into_iter();
        let later = later.filter(|call| PREPARING.iter().all(|first| first.number != call.number));
        PREPARING.iter().copied().chain(later).collect()
    }

    /// Calls that are answered as by a Linux that does not know them, since the caller makes another one
    /// then. The arguments of clone3 are in memory, where no filter can look; those of clone, which is called
    /// instead, are not.
    pub(crate) fn unknown_calls(self) -> &'static [i64] {
        match self {
            Self::Core | Self::Front | Self::Vhost | Self::Tunnel => &[],
            Self::Compile | Self::Control => &[libc::SYS_clone3],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_core_has_25_calls_at_most_and_no_role_has_one_twice() {
        let calls = Role::Core.calls();
        let released = calls.iter().filter(|call| !call.why.starts_with("only in builds with debug"));
        assert!(released.count() <= 25);
        for role in Role::ALL {
            let numbers: BTreeSet<_> = role.calls().iter().map(|call| call.number).collect();
            assert_eq!(numbers.len(), role.calls().len(), "{}", role.name());
            let twice = role.unknown_calls().iter().find(|number| numbers.contains(number));
            assert_eq!(twice, None, "{}", role.name());
        }
    }

    #[test]
    fn words_stand_where_arguments_are_looked_at() {
        for call in Role::ALL.iter().flat_map(|role| role.calls()) {
            assert_eq!(call.only.is_empty(), call.arguments.is_empty(), "{}", call.name);
            assert!(!call.why.is_empty(), "{}", call.name);
        }
    }
}
