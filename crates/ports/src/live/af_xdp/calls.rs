//! The system calls of AF_XDP that packets need: rings of a socket, what the kernel counted, and how it is
//! told that there is something to do.

#[cfg(feature = "open")]
pub(super) mod opening;

use super::ring::{Places, Words};
use super::{FRAMES, TRANSMIT};
use crate::live::sys::{self, Shared};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

impl Words for Shared {
    #[inline]
    fn word(&self, at: usize, order: Ordering) -> u32 {
        Shared::word(self, at).load(order)
    }
    #[inline]
    fn set_word(&self, at: usize, value: u32, order: Ordering) {
        Shared::word(self, at).store(value, order);
    }
    #[inline]
    fn long(&self, at: usize) -> u64 {
        Shared::long(self, at).load(Ordering::Relaxed)
    }
    #[inline]
    fn set_long(&self, at: usize, value: u64) {
        Shared::long(self, at).store(value, Ordering::Relaxed);
    }
}

/// The four rings a socket can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingKind {
    /// Free frames for the kernel to receive into.
    Fill,
    /// Frames that the kernel has sent.
    Completion,
    /// Received packets.
    Receive,
    /// Packets to be sent.
    Transmit,
}

impl RingKind {
    /// How many entries it has: a power of two.
    pub(crate) fn size(self) -> u32 {
        match self {
            RingKind::Fill | RingKind::Receive => FRAMES,
            RingKind::Completion | RingKind::Transmit => TRANSMIT,
        }
    }
}

/// Maps a ring of a socket that was asked for it. Before Linux 6.4 that is only possible as long as the
/// socket is not bound.
pub(crate) fn map_ring(fd: &OwnedFd, kind: RingKind) -> io::Result<(Shared, Places)> {
    let none = libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let offsets = libc::xdp_mmap_offsets { rx: none, tx: none, fr: none, cr: none };
    let offsets = sys::read_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, offsets)?;
    let (places, page, bytes) = match kind {
        RingKind::Fill => (offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64, 8),
        RingKind::Completion => (offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, 8),
        RingKind::Receive => (offsets.rx, libc::XDP_PGOFF_RX_RING, 16),
        RingKind::Transmit => (offsets.tx, libc::XDP_PGOFF_TX_RING, 16),
    };
    let (entries, size) = (places.desc as usize, kind.size());
    let shared = Shared::map(fd, entries + size as usize * bytes, page)?;
    let places = Places {
        producer: places.producer as usize,
        consumer: places.consumer as usize,
        flags: places.flags as usize,
        entries,
        size,
    };
    Ok((shared, places))
}

/// What the kernel counted at a socket since it was bound.
pub(crate) fn statistics(fd: &OwnedFd) -> io::Result<libc::xdp_statistics> {
    let none = libc::xdp_statistics {
        rx_dropped: 0,
        rx_invalid_descs: 0,
        tx_invalid_descs: 0,
        rx_ring_full: 0,
        rx_fill_ring_empty_descs: 0,
        tx_ring_empty_descs: 0,
    };
    sys::read_option(fd, libc::SOL_XDP, libc::XDP_STATISTICS, none)
}

/// Lets the kernel send what the transmit ring holds.
pub(crate) fn kick_transmit(fd: &OwnedFd) -> Result<(), Errno> {
    send(fd, &[], SendFlags::DONTWAIT).map(drop)
}

/// Lets the kernel look at the fill ring. Where it cannot, the interface is gone or off, which other calls
/// say.
pub(crate) fn kick_receive(fd: &OwnedFd) {
    let _ = recv(fd, &mut [0; 0][..], RecvFlags::DONTWAIT);
}

/// Whether a socket is still bound to an interface. It is asked to wait for its packets to leave, which it
/// never does: it says so only if it is bound.
pub(crate) fn is_bound(fd: &OwnedFd) -> bool {
    send(fd, &[], SendFlags::empty()) != Err(Errno::NXIO)
}
