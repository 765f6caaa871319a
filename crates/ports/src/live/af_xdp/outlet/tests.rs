//! The sending half at rings whose other side is the test, in place of the kernel.

use super::super::frames::Home;
use super::super::ring::Places;
use super::*;
use crate::live::{Middleware, Offloads, PortKind, VlanPlace, WantedPort, XdpWishes};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;

const CHUNK: usize = 2048;
/// Where the words of a ring lie, and how long it is at most.
const TAKEN: usize = 64;
const FLAGS: usize = 128;
const LENGTH: usize = 256 + 16 * TRANSMIT as usize;

/// Memory of a ring, mapped once for each side.
fn ring() -> (Shared, Shared, Places) {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(LENGTH as u64).expect("room");
    let file = OwnedFd::from(file);
    let side = || Shared::map(&file, LENGTH, 0).expect("memory");
    (side(), side(), Places { producer: 0, consumer: TAKEN, flags: FLAGS, entries: 256, size: TRANSMIT })
}

fn wanted() -> WantedPort {
    WantedPort {
        interface: "none".to_owned(),
        vlan: VlanPlace::default(),
        kind: PortKind::AfXdp,
        offloads: Offloads::Cut,
        keep_from_kernel: false,
        promiscuous: false,
        xdp: XdpWishes::default(),
        middleware: Middleware::default(),
    }
}

#[test]
fn what_the_interface_has_no_room_for_is_handed_over_again_soon() {
    let (own, kernel, places) = ring();
    let (completions, _kernel, completed) = ring();
    // A socket that takes the call, and nothing off the ring.
    let (socket, _other) = UnixDatagram::pair().expect("sockets");
    let exit = Exit {
        socket: Arc::new(OwnedFd::from(socket)),
        transmit: Producer::new(own, places),
        completed: Consumer::new(completions, completed),
    };
    let home = (FRAMES as usize + 1) * CHUNK;
    let copies = (TRANSMIT as usize + 1) * CHUNK;
    let (pages, mut parts) = Part::of_new_pages(&[home, copies]).expect("memory");
    let part = parts.pop().expect("two parts");
    let pool = Pool { pages: pages.clone(), chunk: CHUNK, home, homes: vec![Home::new(FRAMES).marks()] };
    let port = Arc::new(Port::unwatched(&wanted(), &[pages]));
    let mut outlet = Outlet::new(exit, Arc::new(pool), part, port, 0, 0);
    kernel.word(FLAGS).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
    outlet.flush();
    assert_eq!(outlet.due(), None, "nothing waits");
    outlet.send(&[7; 64], VirtioHeader::NONE);
    outlet.send(&[8; 64], VirtioHeader::NONE);
    for taken in 0..2 {
        kernel.word(TAKEN).store(taken, Ordering::Release);
        let before = MachineClock.program();
        outlet.flush();
        let again = (before + AGAIN)..=(MachineClock.program() + AGAIN);
        assert!(outlet.due().is_some_and(|due| again.contains(&due)), "{taken} of 2 are taken");
    }
    kernel.word(TAKEN).store(2, Ordering::Release);
    outlet.flush();
    assert_eq!(outlet.due(), None, "all are taken");
    assert_eq!(outlet.losses(), SendLosses::default());
}
