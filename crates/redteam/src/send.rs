//! Sends the frames of an attack by an interface, as fast as it takes them.

use crate::attacks::{Attack, Attempt};
use crate::frames::{RandomNumbers, Scene};
use crate::monitor::Monitor;
use ports::live::XdpSender;
use ports::live::sys::{self, Outgoing};
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

/// How many are handed over at once.
const TOGETHER: usize = 64;

/// Sends so many frames of an attack, and says how many Linux took. Those that it refuses, since they are no
/// frames or their header of virtio cannot be, are sent to nobody.
///
/// # Errors
/// There is no such interface, or the right is missing.
pub fn send(interface: &str, scene: &Scene, attack: &Attack, count: u64, seed: u64) -> io::Result<u64> {
    if is_socket(interface) {
        return send_by_rings(interface, scene, attack, count, seed);
    }
    if let Some(interface) = interface.strip_prefix("xdp:") {
        return send_by_xdp(interface, scene, attack, count, seed);
    }
    let socket = |with_header: bool| -> io::Result<OwnedFd> {
        let socket = sys::packet_socket()?;
        sys::set_number(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        sys::set_number(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, with_header.into())?;
        sys::bind_packet(&socket, sys::interface_index(interface)?, 0)?;
        Ok(socket)
    };
    let (plain, unfinished) = (socket(false)?, socket(true)?);
    let mut random = RandomNumbers(seed);
    let (mut made, mut taken) = (0, 0);
    while made < count {
        let batch = TOGETHER.min((count - made) as usize);
        let attempts: Vec<Attempt> = (0..batch).map(|_| (attack.next)(scene, &mut random)).collect();
        made += batch as u64;
        let (finished, open): (Vec<_>, Vec<_>) =
            attempts.into_iter().partition(|attempt| attempt.virtio.is_none());
        taken += hand_over(&plain, &finished, TRIALS)? + hand_over(&unfinished, &open, UNFINISHED_TRIALS)?;
    }
    Ok(taken)
}

/// Whether frames leave by the rings of a machine that shares its memory with a gateway, which expects its
/// monitor at a socket.
fn is_socket(interface: &str) -> bool {
    interface.starts_with('/')
}

/// The same by rings, which take every frame.
fn send_by_rings(socket: &str, scene: &Scene, attack: &Attack, count: u64, seed: u64) -> io::Result<u64> {
    let (mut monitor, mut random) = (Monitor::new(socket)?, RandomNumbers(seed));
    for _ in 0..count {
        let Attempt { virtio, frame } = (attack.next)(scene, &mut random);
        monitor.send(virtio.unwrap_or_default(), &frame)?;
    }
    monitor.settle()?;
    Ok(count)
}

/// The same by a socket of AF_XDP, which knows of no frames that are unfinished.
fn send_by_xdp(interface: &str, scene: &Scene, attack: &Attack, count: u64, seed: u64) -> io::Result<u64> {
    let (mut sender, mut random, mut taken) = (XdpSender::new(interface)?, RandomNumbers(seed), 0);
    for _ in 0..count {
        taken += u64::from(sender.send(&(attack.next)(scene, &mut random).frame)?);
    }
    Ok(taken)
}

/// How often a frame that finds no room is tried again; and one that is unfinished, which Linux may drop for
/// what it says.
const TRIALS: u32 = 2_000;
const UNFINISHED_TRIALS: u32 = 20;

/// Hands all of them over, and says how many were taken.
fn hand_over(socket: &OwnedFd, mut attempts: &[Attempt], most: u32) -> io::Result<u64> {
    let (mut taken, mut trials) = (0, 0);
    while let Some((_, others)) = attempts.split_first() {
        let outgoing = attempts.iter().map(|Attempt { virtio, frame }| Outgoing {
            header: virtio.as_ref().map_or(&[][..], |header| header),
            frame,
        });
        match sys::send_frames(socket, outgoing) {
            Ok(count) => {
                (taken, trials) = (taken + count as u64, 0);
                attempts = attempts.get(count..).unwrap_or_default();
            }
            Err(error) => match error.raw_os_error() {
                // Whoever reads at the other end is slower, or Linux drops this frame whenever it comes.
                Some(libc::ENOBUFS | libc::EAGAIN) if trials < most => {
                    trials += 1;
                    thread::yield_now();
                }
                Some(libc::ENOBUFS | libc::EAGAIN) => (attempts, trials) = (others, 0),
                Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO | libc::ENETDOWN) => attempts = others,
                _ => return Err(error),
            },
        }
    }
    Ok(taken)
}

/// Sends one frame by an interface of the network of this thread.
///
/// # Errors
/// Linux does not take it.
pub fn one(interface: &str, frame: &[u8]) -> io::Result<()> {
    if is_socket(interface) {
        let mut monitor = Monitor::new(interface)?;
        monitor.send([0; 10], frame)?;
        return monitor.settle();
    }
    let socket = sys::packet_socket()?;
    sys::bind_packet(&socket, sys::interface_index(interface)?, 0)?;
    sys::send_frames(&socket, std::iter::once(Outgoing { header: &[], frame })).map(drop)
}
