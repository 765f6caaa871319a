//! The sending half at rings whose other side is the test, in place of the kernel.

use super::super::Layout;
use super::super::frames::Home;
use super::super::ring::Places;
use super::*;
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

/// A sending half, the kernel's side of its transmit ring, and the frames of a port beside it.
struct Set {
    outlet: Outlet,
    kernel: Shared,
    home: Home,
    receiving: Part,
    _completions: Shared,
    /// A socket that takes calls, and nothing off the ring.
    _other: UnixDatagram,
}

fn set(metadata: bool) -> Set {
    let (own, kernel, places) = ring();
    let (completions, _completions, completed) = ring();
    let (socket, _other) = UnixDatagram::pair().expect("sockets");
    let exit = Exit {
        socket: Arc::new(OwnedFd::from(socket)),
        transmit: Producer::new(own, places),
        completed: Consumer::new(completions, completed),
        metadata,
    };
    let layout = Layout { chunk: CHUNK, sharing: 1 };
    let (pages, mut parts) = Part::of_new_pages(&layout.lengths()).expect("memory");
    let (part, receiving) = (parts.pop().expect("two parts"), parts.pop().expect("two parts"));
    let home = Home::new(FRAMES);
    let pool = Pool { pages, layout, homes: vec![home.marks()] };
    let port = Arc::new(Port::unwatched(1, Offloads::Cut, 1));
    let outlet = Outlet::new(exit, Arc::new(pool), part, port, 0, 0);
    Set { outlet, kernel, home, receiving, _completions, _other }
}

#[test]
fn what_the_interface_has_no_room_for_is_handed_over_again_soon() {
    let Set { mut outlet, kernel, .. } = set(false);
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

/// A packet of UDP with an open checksum, what is left to do with it, and the finished one.
fn open() -> (Vec<u8>, VirtioHeader, Vec<u8>) {
    let mut frame = vec![9; 142];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 128, 0, 1, 0, 0, 9, 17]);
    let mut header = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[6..8].copy_from_slice(&34u16.to_ne_bytes());
    header[8..10].copy_from_slice(&6u16.to_ne_bytes());
    let virtio = VirtioHeader::read(&header);
    assert!(virtio.restart(&mut frame));
    let mut finished = frame.clone();
    assert!(virtio.complete(&mut finished) && finished != frame);
    (frame, virtio, finished)
}

#[test]
fn an_open_packet_is_described_where_the_kernel_takes_that_and_finished_elsewhere() {
    let (frame, virtio, finished) = open();
    let said = metadata::of(&virtio).expect("is open");
    for described in [true, false] {
        let Set { mut outlet, kernel, mut home, mut receiving, .. } = set(described);
        assert_eq!(outlet.takes_open_checksums(), described);
        // One frame where its receiving half has described it, one in which it has moved since, and one whose
        // checksum is finished.
        let mut places = Vec::new();
        for (offset, bytes) in [(FIRST, &frame), (FIRST + 4, &frame), (FIRST + 4, &finished)] {
            let number = home.next_free().expect("is free");
            assert!(home.lend(number));
            let place = number as usize * CHUNK + offset;
            receiving.bytes()[place - said.len()..place].copy_from_slice(&said);
            receiving.bytes()[place..place + bytes.len()].copy_from_slice(bytes);
            places.push(place);
        }
        for (place, virtio) in places.iter().zip([virtio, virtio, VirtioHeader::NONE]) {
            outlet.send(&receiving.bytes()[*place..][..frame.len()], virtio);
        }
        // And one from elsewhere.
        outlet.send(&frame, virtio);
        outlet.flush();
        let copies = outlet.part.start();
        for (number, open) in [true, true, false, true].into_iter().enumerate() {
            let at = kernel.long(256 + 16 * number).load(Ordering::Acquire) as usize;
            let [a, b, c, d, options @ ..] =
                kernel.long(264 + 16 * number).load(Ordering::Acquire).to_ne_bytes();
            assert_eq!(u32::from_ne_bytes([a, b, c, d]) as usize, frame.len());
            let says = u32::from_ne_bytes(options) == libc::XDP_TX_METADATA;
            assert_eq!(says, open && described, "{number}");
            let in_place = if described { [0, 2].contains(&number) } else { number == 2 };
            assert_eq!(places.get(number) == Some(&at), in_place, "{number}");
            let memory = if at < copies { receiving.bytes() } else { outlet.part.bytes() };
            let at = if at < copies { at } else { at - copies };
            assert_eq!(memory[at..at + frame.len()], if says { frame.clone() } else { finished.clone() });
            assert!(!says || memory[at - said.len()..at] == said, "{number}");
        }
        assert_eq!(outlet.losses(), SendLosses::default());
    }
}
