//! The attacks that are no frames of ours: what root tries with the machine around it, or with the link. Each
//! is a script of the shell that succeeds if it could.

/// Something that must not be possible in a container.
#[derive(Clone, Copy, Debug)]
pub struct MachineAction {
    /// Its name.
    pub name: &'static str,
    /// The script; `CORE` is the number of the core's process outside, `CONTROL` the control socket,
    /// `CONTAINERS` the folder of the namespaces, `REDTEAM` this program.
    pub script: &'static str,
    /// Whether root outside can do it without harm, so that the script is shown to say so.
    pub harmless: bool,
}

macro_rules! actions {
    ($($name:literal, $harmless:literal: $script:literal,)*) => {
        /// All of them.
        pub const ACTIONS: &[MachineAction] = &[
            $(MachineAction { name: $name, script: $script, harmless: $harmless },)*
        ];
    };
}

actions! {
    "see_other_processes", true: "grep -l -s ravelin-core /proc/[0-9]*/comm | grep -q .",
    "see_the_core", true: "test -e /proc/$CORE/status",
    "read_memory_of_the_core", true: "head -c 1 /proc/$CORE/auxv | grep -q .",
    "end_the_core", false: "kill -9 $CORE",
    "stop_the_core", false: "kill -STOP $CORE",
    "see_other_links", true: "ip -o link | grep -v -e ': lo:' -e ': services:' | grep -q .",
    "see_links_in_sysfs", true: "ls /sys/class/net | grep -q .",
    "find_namespaces", true: "ls \"$CONTAINERS\" | grep -q .",
    "find_the_control_socket", true: "test -e \"$CONTROL\"",
    "enter_a_network", true: "nsenter --net=/proc/self/ns/net true",
    "leave_the_network", true: "unshare --net true",
    "make_users", true: "unshare --user true",
    "make_mounts", true: "unshare --mount true",
    "make_mounts_by_clone", true: "python3 -c \"import ctypes, os
number = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]
process = ctypes.CDLL(None).syscall(number, 0x20011, 0, 0, 0, 0)
os._exit(process < 0)\"",
    "make_mounts_by_clone3", true: "python3 -c \"import ctypes, os, struct
arguments = struct.pack('8Q', 0x20000, 0, 0, 0, 17, 0, 0, 0)
process = ctypes.CDLL(None).syscall(435, arguments, len(arguments))
os._exit(process < 0)\"",
    // Keys stay in Linux's own memory when the container has ended.
    "keep_keys", true: "python3 -c \"import ctypes, os
number = {'x86_64': 248, 'aarch64': 217}[os.uname().machine]
key = ctypes.CDLL(None).syscall(number, b'user', b'by-the-container', b'key', 3, -1)
os._exit(key < 0)\"",
    "have_another_link_by_vsock", true: "python3 -c \"import socket; socket.socket(40, socket.SOCK_STREAM)\"",
    "stop_process_1", false: "kill -STOP 1 || kill -SEGV 1",
    "keep_process_1_from_the_processor", false: "renice 19 1 || chrt --idle -p 0 1 || taskset -p 1 1",
    "take_descriptors_from_process_1", false: "prlimit --pid 1 --nofile=0",
    "come_before_others", false: "renice -5 $$ || chrt -f 1 true",
    "mount_over", false: "mount -t tmpfs none /run",
    "unhide", false: "umount /proc/kallsyms || umount /run || umount /tmp",
    "make_writable", false: "mount -o remount,rw /",
    "write_to_the_machine", false: "touch /etc/by-the-container || touch /usr/by-the-container",
    "read_private_files", true: "cat /etc/gshadow",
    "read_passwords", true: "grep -q ':[^:]*:[0-9]' /etc/shadow",
    "make_a_device", true: "d=$(mktemp -d) && mknod $d/disk b 254 0 && rm -r $d",
    "make_another_tap", true: "test -c /dev/net/tun",
    "load_and_attach_a_program_of_bpf", true:
        "for link in services to-wan; do $REDTEAM attach $link && exit; done; exit 1",
    "load_modules", false: "insmod /dev/null || modprobe dummy",
    "set_the_clock", false: "date -s 2001-01-01",
    "set_the_host_name", false: "hostname contained",
    "change_the_kernel", false: "echo 1 > /proc/sys/kernel/panic",
    "read_the_kernels_log", true: "dmesg | grep -q .",
    "raise_limits_of_users", false: "echo 100 > /proc/sys/user/max_user_namespaces",
    "trace_another_user", true: "setpriv --reuid 1000 sleep 5 & sleep 0.2; head -c 1 /proc/$!/auxv | grep -q .",
    // Session 0 is one outside of the container, with its terminal.
    "stay_in_the_session", false: "test \"$(cut -d' ' -f6 /proc/1/stat)\" = 0",
}

/// What root of a container takes as much of as it gets. Each succeeds if it got more than a container may
/// have.
pub const EXHAUSTIONS: &[MachineAction] = &[
    // 512 processes are allowed.
    MachineAction {
        name: "take_all_processes",
        script: "i=0; while [ $i -lt 1000 ]; do sleep 20 & all=\"$all $!\"; i=$((i + 1)); done; kill $all",
        harmless: true,
    },
    MachineAction {
        name: "take_all_processes_as_many_users",
        script: "for user in 1 2 3 4; do setpriv --reuid $user --clear-groups sh -c 'i=0; while [ $i -lt 250 ]; \
                 do sleep 20 & all=\"$all $!\"; i=$((i + 1)); done; sleep 2; kill $all' & jobs=\"$jobs $!\"; \
                 done; for job in $jobs; do wait $job || exit 1; done",
        harmless: true,
    },
    // A process may have 1 GiB, and all together.
    MachineAction {
        name: "take_all_memory",
        script: "head -c 1600m /dev/zero | tail -c 1600m | wc -c | grep -q 1677721600",
        harmless: false,
    },
    MachineAction {
        name: "take_all_memory_in_parts",
        script: "for part in 1 2 3 4; do (head -c 400m /dev/zero; sleep 4) | tail -c 400m | wc -c | \
                 grep -q 419430400 & jobs=\"$jobs $!\"; done; for job in $jobs; do wait $job || exit 1; done",
        harmless: false,
    },
    // Ten folders have 64 MiB each.
    MachineAction {
        name: "fill_every_folder",
        script: "for folder in $(df --output=target -t tmpfs | tail -n +2); do head -c 200m /dev/zero > \
                 $folder/filling; done 2> /dev/null; all=0; for used in $(df --output=used -t tmpfs | tail -n +2); \
                 do all=$((all + used)); done; test $all -gt 1048576",
        harmless: false,
    },
    // One has 16,384 files.
    MachineAction {
        name: "make_files_without_end",
        script: "mkdir /tmp/many && cd /tmp/many && seq 30000 | xargs touch 2> /dev/null",
        harmless: false,
    },
    // There are 256.
    MachineAction {
        name: "take_all_terminals",
        script: "python3 -c 'import os; [os.openpty() for _ in range(300)]'",
        harmless: true,
    },
    // A process has 1,024.
    MachineAction { name: "open_files_without_end", script: "$REDTEAM open 5000", harmless: true },
    MachineAction { name: "raise_the_limit_of_open_files", script: "ulimit -n 5000", harmless: true },
    MachineAction {
        name: "raise_the_limit_of_processes",
        script: "ulimit -u 5000 || prlimit --nproc=5000 true",
        harmless: true,
    },
];

/// What root of a virtual machine tries with its link, by Linux's own means. Each succeeds if a host answers
/// to what must not come to it.
pub const GUEST_ACTIONS: &[(&str, &str)] = &[
    (
        "reach_beyond_the_policy",
        "ip neighbour replace 10.1.1.2 lladdr 02:00:00:00:00:02 dev eth0; ping -c 1 -W 1 10.1.1.2",
    ),
    (
        "answer_as_another_station",
        "ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:02; ip link set eth0 up; \
         ping -c 1 -W 1 10.1.1.1; a=$?; ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:63; \
         ip link set eth0 up; exit $a",
    ),
    (
        "answer_as_another_host",
        "ip address add 10.1.1.2/32 dev eth0; ping -c 1 -W 1 -I 10.1.1.2 10.1.1.1; a=$?; \
         ip address del 10.1.1.2/32 dev eth0; exit $a",
    ),
];
