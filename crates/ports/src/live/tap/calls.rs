//! The system calls by which packets pass TAP devices, each wrapped once.

use packet::VirtioHeader;
use rustix::io::{readv, writev};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;

/// Reads the next packet and what stands before it; says how long the packet is.
pub(super) fn read(
    fd: &OwnedFd,
    header: &mut [u8; VirtioHeader::LEN],
    packet: &mut [u8],
) -> io::Result<usize> {
    let length = readv(fd, &mut [IoSliceMut::new(header), IoSliceMut::new(packet)])?;
    // Another process may be at the other end.
    length.checked_sub(VirtioHeader::LEN).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Writes a packet and what stands before it.
pub(super) fn write(fd: &OwnedFd, header: &[u8; VirtioHeader::LEN], packet: &[u8]) -> io::Result<()> {
    writev(fd, &[IoSlice::new(header), IoSlice::new(packet)])?;
    Ok(())
}
