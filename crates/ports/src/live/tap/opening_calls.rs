//! The system calls by which TAP devices are made and set up, each wrapped once.

#![allow(unsafe_code)]

use crate::live::sys;
use packet::VirtioHeader;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Opens a queue of a TAP device, which is made if there is none, with virtio-net headers before packets.
pub(super) fn open(name: &str, several: bool) -> io::Result<OwnedFd> {
    open_as(name, if several { libc::IFF_MULTI_QUEUE } else { 0 })
}

/// The same for a device that nobody has made yet: an interface of this name is an error (EBUSY).
pub(super) fn make(name: &str, several: bool) -> io::Result<OwnedFd> {
    open_as(name, libc::IFF_TUN_EXCL | if several { libc::IFF_MULTI_QUEUE } else { 0 })
}

fn open_as(name: &str, how: libc::c_int) -> io::Result<OwnedFd> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    let fd = OwnedFd::from(file);
    let mut request = sys::request(name)?;
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | how) as libc::c_short;
    // SAFETY: the request lives throughout the call, and TUNSETIFF reads and writes inside it.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let length = VirtioHeader::LEN as libc::c_int;
    // SAFETY: the number lives throughout the call.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length) })?;
    Ok(fd)
}

/// Says which packets may be handed over unfinished; none by default (TUN_F_CSUM and others of
/// linux/if_tun.h).
pub(super) fn offloads(fd: &OwnedFd, which: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes numbers only.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(which)) })?;
    Ok(())
}

/// Switches an interface on, and lets so many packets wait for whoever reads.
pub(super) fn switch_on(name: &str, waiting: i32) -> io::Result<()> {
    let asker = sys::asker()?;
    let mut request = sys::request(name)?;
    request.ifr_ifru.ifru_metric = waiting;
    // SAFETY: the request lives throughout the call, which only reads it; the length of the queue has the
    // place of the metric (struct ifreq).
    sys::check(unsafe { libc::ioctl(asker.as_raw_fd(), libc::SIOCSIFTXQLEN, &raw mut request) })?;
    request.ifr_ifru.ifru_flags = (sys::interface_flags(&asker, name)? | libc::IFF_UP) as libc::c_short;
    // SAFETY: the request lives throughout the call, which only reads it.
    sys::check(unsafe { libc::ioctl(asker.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })?;
    Ok(())
}

/// Gives an interface an Ethernet address and an MTU.
pub(super) fn dress(name: &str, station: [u8; 6], mtu: u32) -> io::Result<()> {
    let asker = sys::asker()?;
    let mut request = sys::request(name)?;
    // SAFETY: zeros are a valid value of this plain structure.
    let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
    address.sa_family = libc::ARPHRD_ETHER;
    for (to, from) in address.sa_data.iter_mut().zip(station) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_hwaddr = address;
    // SAFETY: the request lives throughout the call, which only reads it.
    sys::check(unsafe { libc::ioctl(asker.as_raw_fd(), libc::SIOCSIFHWADDR, &raw mut request) })?;
    set_mtu(name, mtu)
}

/// Gives an interface an MTU, in bytes.
pub(super) fn set_mtu(name: &str, mtu: u32) -> io::Result<()> {
    let asker = sys::asker()?;
    let mut request = sys::request(name)?;
    request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
    // SAFETY: the request lives throughout the call, which only reads it.
    sys::check(unsafe { libc::ioctl(asker.as_raw_fd(), libc::SIOCSIFMTU, &raw mut request) })?;
    Ok(())
}

/// Has a device stay after the last of its queues is closed.
pub(super) fn keep(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes numbers only.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETPERSIST, 1 as libc::c_ulong) })?;
    Ok(())
}

/// Says whether a device has a carrier.
#[cfg(feature = "attach")]
pub(super) fn carrier(fd: &OwnedFd, there: bool) -> io::Result<()> {
    let there = libc::c_int::from(there);
    // SAFETY: the number lives throughout the call.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETCARRIER, &raw const there) })?;
    Ok(())
}

/// Whether the device that a queue was opened for is still there.
pub(super) fn is_attached(fd: &OwnedFd) -> bool {
    let Ok(mut request) = sys::request("") else { return false };
    // SAFETY: the request lives throughout the call, which writes inside it.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNGETIFF, &raw mut request) }).is_ok()
}
