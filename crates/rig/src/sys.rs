//! The system calls that make namespaces, start programs in them, and send and receive load.

#![allow(unsafe_code)]

use ports::live::sys::{attach_filter, packet_socket, request, set_number};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Gives this thread a network of its own.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Makes this process, which must have a single thread, root of a user namespace of its own, in which nothing
/// is mapped yet.
pub(crate) fn leave_users() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) }).map(drop)
}

/// The numbers of the user and the group that this process acts as.
pub(crate) fn identity() -> (u32, u32) {
    // SAFETY: both take nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Moves this thread into a network.
pub(crate) fn enter(network: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes numbers only; the descriptor is open.
    check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Gives this thread file systems of its own in which `/sys` shows the devices of its network.
pub(crate) fn own_sysfs() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let mount = |what: &CStr, place: &CStr, kind: Option<&CStr>, flags| {
        let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: strings that end with a zero and live throughout the call; this kind takes no data.
        check(unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) }).map(drop)
    };
    // What is mounted here must not be seen elsewhere.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"sysfs", c"/sys", Some(c"sysfs"), 0)
}

/// Lets a command start in a network, on one processor if it is to be held there, and end when the thread
/// ends that starts it.
pub(crate) fn start_in(command: &mut Command, network: &OwnedFd, processor: Option<usize>) {
    let network = network.as_raw_fd();
    let before = move || {
        // SAFETY: only system calls between fork and exec, and they take numbers.
        check(unsafe { libc::setns(network, libc::CLONE_NEWNET) })?;
        // SAFETY: as before.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        processor.map_or(Ok(()), hold)
    };
    // SAFETY: the closure allocates nothing and takes no lock; the descriptor is open as long as the
    // namespace, which outlives the start.
    unsafe { command.pre_exec(before) };
}

/// Holds this thread on one processor.
pub(crate) fn hold(processor: usize) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this plain structure.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    if processor >= 8 * size_of_val(&set) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the number is inside the set, as was just checked.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer and the size are those of a value that lives throughout the call.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }).map(drop)
}

/// Sends a signal to a process.
pub(crate) fn signal(process: u32, signal: libc::c_int) -> io::Result<()> {
    // 0 and negative numbers would mean groups of processes.
    let process = libc::pid_t::try_from(process).ok().filter(|&process| process > 0);
    let process = process.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: takes numbers only.
    check(unsafe { libc::kill(process, signal) }).map(drop)
}

/// A socket that speaks with the kernel about links, addresses and routes of this thread's network.
pub(crate) fn route_socket() -> io::Result<OwnedFd> {
    // No protocol means number 0, which is NETLINK_ROUTE (netlink(7)).
    Ok(rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// Sends bytes on a connected socket, or one whose peer is the kernel.
pub(crate) fn send(fd: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    rustix::net::send(fd, bytes, SendFlags::empty())?;
    Ok(())
}

/// Receives the next message, waiting for it, and returns how long it is.
pub(crate) fn receive(fd: &OwnedFd, room: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(fd, room, RecvFlags::empty())?.0)
}

/// Switches a feature of a network device, named by the number that sets it (linux/ethtool.h).
pub(crate) fn set_feature(interface: &str, command: u32, on: bool) -> io::Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let socket = packet_socket()?;
    let mut value = Value { command, data: u32::from(on) };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: the request and the value it points to live throughout the call; commands that set a value read
    // these 8 bytes.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) }).map(drop)
}

/// Asks for the kernel's time of arrival with every frame.
pub(crate) fn ask_for_times(fd: &OwnedFd) -> io::Result<()> {
    set_number(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Lets a packet socket receive only UDP packets over IPv4 without options that are for one port.
pub(crate) fn only_port(fd: &OwnedFd, port: u16) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, equal, end) =
        (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET);
    // The port lies behind 14 bytes of Ethernet, 20 of IP and the port of the sender.
    let mut filter = [
        step(load, 0, 0, 36),
        step(equal, 0, 1, u32::from(port)),
        step(end, 0, 0, u32::MAX),
        step(end, 0, 0, 0),
    ];
    attach_filter(fd, &mut filter)
}

/// How many frames are received at a call, and how many bytes of each.
pub(crate) const AT_ONCE: usize = 64;
pub(crate) const CAPTURED: usize = 128;

/// Receives what has come, without waiting, and gives each frame with its time of arrival (nanoseconds since
/// 1970); says how many there were.
pub(crate) fn receive_frames(
    fd: &OwnedFd,
    room: &mut [[u8; CAPTURED]; AT_ONCE],
    mut each: impl FnMut(u64, &[u8]),
) -> io::Result<usize> {
    // Room for one control message with a time, aligned as the kernel wants it.
    #[repr(C, align(8))]
    #[derive(Clone, Copy)]
    struct Control([u8; 64]);
    let mut controls = [Control([0; 64]); AT_ONCE];
    // SAFETY: zeros are a valid value of these plain structures.
    let (mut parts, mut messages): ([libc::iovec; AT_ONCE], [libc::mmsghdr; AT_ONCE]) =
        unsafe { (zeroed(), zeroed()) };
    for (((message, part), bytes), control) in
        messages.iter_mut().zip(&mut parts).zip(room.iter_mut()).zip(&mut controls)
    {
        *part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: CAPTURED };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.0.len();
    }
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: every message points to a part and a control buffer, and these to memory that is ours alone
    // throughout the call.
    let count = unsafe {
        libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), AT_ONCE as u32, flags, std::ptr::null_mut())
    };
    let count = match check(count) {
        Ok(count) => count as usize,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    for (message, bytes) in messages[..count].iter().zip(room.iter()) {
        // SAFETY: the header is one that the kernel has written, of a control buffer that still lives.
        let control = unsafe { libc::CMSG_FIRSTHDR(&raw const message.msg_hdr) };
        // SAFETY: null, or the first control message of that buffer, which the kernel has filled.
        let is_time = unsafe { control.as_ref() }.is_some_and(|control| {
            control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_TIMESTAMPNS
        });
        if is_time {
            // SAFETY: a control message of this kind holds a timespec, wherever it lies.
            let time = unsafe { libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned() };
            let nanoseconds = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            each(nanoseconds, &bytes[..(message.msg_len as usize).min(CAPTURED)]);
        }
    }
    Ok(count)
}

/// The result of a call that is negative where it fails.
fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
