//! This end of a tunnel, which both halves of a port and the control plane use in turn: the state machine,
//! its socket, and what was counted.

use super::calls::{self, Leaving};
use crate::live::sys;
use crate::live::{ReceiveLosses, SendLosses};
use rustix::event::epoll;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tunnel::limits::LONGEST_PAYLOAD;
use tunnel::{
    DATA_HEADER, DATA_TAG, PeerId, SendOutcome, Tunnel, TunnelDrop, TunnelPayload, TunnelSendError,
    TunnelTransmit,
};

/// Why a frame of the program does not go into a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TunnelRefusal {
    /// Its destination is no address of a peer.
    NoPeer,
    /// Its destination is a group of stations, or all.
    Group,
    /// It is neither IPv4 nor IPv6, or says one and is the other.
    NotIp,
    /// Its destination is a peer with which only control messages are exchanged.
    ControlOnly,
    /// The packet is not there whole.
    Short,
    /// The packet is longer than the MTU.
    TooLong,
    /// There is no session with the peer, and nobody knows where it is.
    NoEndpoint,
    /// As many packets as possible wait for a session.
    QueueFull,
}

impl TunnelRefusal {
    pub(super) const ALL: [TunnelRefusal; 8] = [
        TunnelRefusal::NoPeer,
        TunnelRefusal::Group,
        TunnelRefusal::NotIp,
        TunnelRefusal::ControlOnly,
        TunnelRefusal::Short,
        TunnelRefusal::TooLong,
        TunnelRefusal::NoEndpoint,
        TunnelRefusal::QueueFull,
    ];

    /// Its name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            TunnelRefusal::NoPeer => "no_peer",
            TunnelRefusal::Group => "group",
            TunnelRefusal::NotIp => "not_ip",
            TunnelRefusal::ControlOnly => "control_only",
            TunnelRefusal::Short => "short",
            TunnelRefusal::TooLong => "too_long",
            TunnelRefusal::NoEndpoint => "no_endpoint",
            TunnelRefusal::QueueFull => "queue_full",
        }
    }

    pub(super) fn of(error: TunnelSendError) -> TunnelRefusal {
        match error {
            TunnelSendError::UnknownPeer => TunnelRefusal::NoPeer,
            TunnelSendError::TooLong => TunnelRefusal::TooLong,
            TunnelSendError::NotIp => TunnelRefusal::NotIp,
            TunnelSendError::ControlOnly => TunnelRefusal::ControlOnly,
            TunnelSendError::NoRoom => TunnelRefusal::Short,
            TunnelSendError::CannotBegin => TunnelRefusal::NoEndpoint,
            TunnelSendError::QueueFull => TunnelRefusal::QueueFull,
        }
    }
}

/// What the halves of a port share.
pub(super) struct Port {
    pub(super) socket: UdpSocket,
    /// Readable when the socket is, or the bell was rung.
    both: OwnedFd,
    bell: OwnedFd,
    rung: AtomicBool,
    end: Mutex<OwnEnd>,
}

/// What changes.
pub(super) struct OwnEnd {
    pub(super) tunnel: Tunnel,
    /// Datagrams that were dropped, by reason.
    pub(super) drops: [u64; TunnelDrop::ALL.len()],
    /// Frames that were refused, by reason.
    pub(super) refusals: [u64; TunnelRefusal::ALL.len()],
    /// What the socket did not take.
    unsent: SendLosses,
    /// Packets that the kernel had no room for, before this port and now.
    overruns: (u64, u64),
    /// Datagrams leave as several in one.
    pub(super) segments: bool,
    /// Room for a datagram.
    out: Box<[u8]>,
}

impl Port {
    /// An end with its socket.
    ///
    /// # Errors
    /// Linux gives no further descriptor.
    pub(super) fn of(socket: UdpSocket, tunnel: Tunnel) -> io::Result<Port> {
        let (bell, both) = (sys::bell()?, epoll::create(epoll::CreateFlags::CLOEXEC)?);
        for (number, readable) in [(0, socket.as_fd()), (1, bell.as_fd())] {
            epoll::add(&both, readable, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
        }
        let before = overruns(&socket).unwrap_or(0);
        let end = OwnEnd {
            tunnel,
            drops: [0; TunnelDrop::ALL.len()],
            refusals: [0; TunnelRefusal::ALL.len()],
            unsent: SendLosses::default(),
            overruns: (before, before),
            segments: true,
            out: vec![0; DATA_HEADER + LONGEST_PAYLOAD + DATA_TAG].into_boxed_slice(),
        };
        Ok(Port { socket, both, bell, rung: AtomicBool::new(false), end: Mutex::new(end) })
    }

    pub(super) fn end(&self) -> MutexGuard<'_, OwnEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn readable(&self) -> BorrowedFd<'_> {
        self.both.as_fd()
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.both.as_raw_fd()
    }

    /// Lets the worker that waits for this port look at its dates again.
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        sys::ring(&self.bell);
    }

    /// Ends what [`ring`](Port::ring) has begun.
    pub(super) fn silence(&self) {
        if self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::Acquire) {
            sys::silence(&self.bell);
        }
    }
}

impl OwnEnd {
    /// Sends what time or a datagram has brought: handshakes, answers, keepalives, packets that waited.
    pub(super) fn turn(&mut self, socket: &UdpSocket, now: u64) {
        if self.tunnel.next_deadline().is_none_or(|due| due > now) {
            return;
        }
        while let Some(transmit) = self.tunnel.transmit(now, &mut self.out) {
            let bytes = &self.out[..transmit.length];
            let leaving = Leaving { bytes, each: transmit.length, to: transmit.to };
            if let Err(error) = calls::send(socket, std::iter::once(leaving)) {
                self.unsent(&error, 1);
            }
        }
    }

    /// Sends a control message, or lets it wait.
    pub(super) fn send_control(
        &mut self,
        socket: &UdpSocket,
        now: u64,
        peer: u32,
        message: &[u8],
    ) -> Result<(), TunnelSendError> {
        let sent = self.tunnel.send(now, PeerId(peer), TunnelPayload::Control(message), &mut self.out)?;
        if let SendOutcome::Sealed(TunnelTransmit { to, length }) = sent {
            let leaving = Leaving { bytes: &self.out[..length], each: length, to };
            if let Err(error) = calls::send(socket, std::iter::once(leaving)) {
                self.unsent(&error, 1);
            }
        }
        self.turn(socket, now);
        Ok(())
    }

    /// Counts datagrams that the socket did not take.
    pub(super) fn unsent(&mut self, error: &io::Error, datagrams: u64) {
        let count = match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => &mut self.unsent.busy,
            Some(libc::EMSGSIZE | libc::EINVAL) => &mut self.unsent.refused,
            _ => &mut self.unsent.down,
        };
        *count += datagrams;
    }

    pub(super) fn receive_losses(&mut self, socket: &UdpSocket) -> ReceiveLosses {
        if let Ok(overruns) = overruns(socket) {
            self.overruns.1 = overruns;
        }
        ReceiveLosses {
            ring_full: self.overruns.1.saturating_sub(self.overruns.0),
            not_authentic: self.drops.iter().sum(),
            ..ReceiveLosses::default()
        }
    }

    pub(super) fn send_losses(&self) -> SendLosses {
        let of = |reason: TunnelRefusal| self.refusals[reason as usize];
        let refused = [
            TunnelRefusal::NoPeer,
            TunnelRefusal::Group,
            TunnelRefusal::NotIp,
            TunnelRefusal::ControlOnly,
            TunnelRefusal::Short,
            TunnelRefusal::TooLong,
        ];
        SendLosses {
            busy: self.unsent.busy + of(TunnelRefusal::QueueFull),
            refused: self.unsent.refused + refused.map(of).iter().sum::<u64>(),
            down: self.unsent.down + of(TunnelRefusal::NoEndpoint) + self.tunnel.discarded(),
            ..SendLosses::default()
        }
    }
}

/// How many datagrams found no room in a socket so far (SO_MEMINFO of socket(7); the ninth is the count of
/// drops, linux/sock_diag.h).
fn overruns(socket: &UdpSocket) -> io::Result<u64> {
    const SO_MEMINFO: i32 = 55;
    let numbers = sys::read_option(socket, libc::SOL_SOCKET, SO_MEMINFO, [0u32; 9])?;
    Ok(u64::from(numbers[8]))
}
