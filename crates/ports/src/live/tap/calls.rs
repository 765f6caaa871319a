//! The system calls by which packets pass TAP devices, each wrapped once.

#![allow(unsafe_code)]

use crate::live::sys;
use packet::VirtioHeader;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Reads the next packet and what stands before it; says how long the packet is.
pub(super) fn read(
    fd: &OwnedFd,
    header: &mut [u8; VirtioHeader::LEN],
    packet: &mut [u8],
) -> io::Result<usize> {
    let parts = [header.as_mut_slice(), packet]
        .map(|bytes| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
    // SAFETY: the parts are of bytes that are ours alone throughout the call.
    let length = unsafe { libc::readv(fd.as_raw_fd(), parts.as_ptr(), 2) };
    Ok((sys::check(length)? as usize).saturating_sub(VirtioHeader::LEN))
}

/// Writes a packet and what stands before it.
pub(super) fn write(fd: &OwnedFd, header: &[u8; VirtioHeader::LEN], packet: &[u8]) -> io::Result<()> {
    let parts = [header.as_slice(), packet]
        .map(|bytes| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
    // SAFETY: the parts live throughout the call, which only reads them.
    sys::check(unsafe { libc::writev(fd.as_raw_fd(), parts.as_ptr(), 2) })?;
    Ok(())
}
