//! Ports of the kind vhost-user, with a driver that writes its memory as a file, so that nothing of it is
//! written by what is tested.

mod attacks;
mod unfinished;

use super::*;
use crate::live::Offloads;
use crate::live::handed_over::{Adopter, PortRenewal};
use crate::live::vhost::limits::{LARGEST_RING, LONGEST_CHAIN, STEPS_AT_ONCE};
use packet::MAXIMUM_CAPTURED;
use rig::virtio_driver::{Driver, MEMORY, RECEIVE, RingAt, SIZE, START, TRANSMIT};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

const NUMBER: PortNumber = 3;

fn now(program: u64) -> Now {
    Now { program, ..Now::default() }
}

/// How often something is looked for at most that comes from another thread.
const TURNS: u32 = 10_000_000;

/// A wait that is ended by nothing, in nanoseconds: much longer than any thread waits for its turn.
const LONG: u64 = 30_000_000_000;

/// A port with a machine, and what the process at the other end of the bell has.
struct Bench {
    lanes: Vec<Lane>,
    renewal: PortRenewal,
    presence: Arc<Presence>,
    driver: Driver,
    other_end: UnixStream,
}

fn handed(rings: Option<Rings>) -> HandedOver {
    HandedOver {
        interface: "guest".to_owned(),
        way: PortWay::Vhost(VhostPort { lanes: 2, rings }),
        offloads: Offloads::Off,
        promiscuous: true,
        keeps_tags: true,
        mode: "vhost-user".to_owned(),
    }
}

/// What a driver shares.
fn rings(driver: &Driver) -> Rings {
    let place = |at: RingAt| RingPlace {
        size: SIZE,
        descriptors: START + at.descriptors,
        available: START + at.available,
        used: START + at.used,
    };
    let regions = vec![GuestRegion { start: START, length: driver.length(), offset: 0 }];
    Rings { regions, receive: place(RECEIVE), transmit: place(TRANSMIT), unfinished: false }
}

fn bell() -> (OwnedFd, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    theirs.set_nonblocking(true).expect("it waits for nobody");
    (ours.into(), theirs)
}

impl Bench {
    fn new() -> Bench {
        Bench::of(Driver::new(1 << MEMORY))
    }

    fn of(driver: Driver) -> Bench {
        let handed = handed(Some(rings(&driver)));
        Bench::handed(driver, &handed)
    }

    fn handed(driver: Driver, handed: &HandedOver) -> Bench {
        let (bell, other_end) = bell();
        let descriptors = vec![bell, driver.file()];
        let (attached, renewal) = Adopter::new(false).adopt(handed, NUMBER, descriptors).expect("a port");
        Bench { lanes: attached.lanes, renewal, presence: attached.presence, driver, other_end }
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut batch = Batch::new();
        let memory = self.lanes[0].receive.receive(&mut batch, now(7));
        (0..batch.ports().len()).map(|at| batch.bytes(memory, at).expect("a frame").to_vec()).collect()
    }

    fn send(&mut self, lane: usize, frame: &[u8]) {
        let send = &mut self.lanes[lane].send;
        send.send(frame, VirtioHeader::NONE);
        send.flush();
    }

    /// What the port has said at its bell.
    fn said(&mut self) -> Vec<u8> {
        let (mut said, mut room) = (Vec::new(), [0; 64]);
        loop {
            match self.other_end.read(&mut room) {
                Ok(length) if length > 0 => said.extend(&room[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return said,
                end => panic!("the bell ended: {end:?}"),
            }
        }
    }
}

/// A frame whose bytes tell their place.
fn frame(length: usize, first: u8) -> Vec<u8> {
    (0..length).map(|at| first.wrapping_add(at as u8)).collect()
}

#[test]
fn frames_pass_both_ways_whatever_their_length_and_wherever_they_lie() {
    let mut bench = Bench::new();
    // More than the ring and the count of 16 bits have places, in chains of one to five descriptors.
    let lengths = [1, 13, 60, 64, 65, 600, 1514, 9014];
    for round in 0..66_000usize {
        let length = if round < 4000 { lengths[round % lengths.len()] } else { 60 };
        let sent = frame(length, round as u8);
        bench.driver.transmit(&sent, 1 + round % 5, round % 7);
        assert_eq!(bench.received(), [&*sent], "round {round}");
        let head = bench.driver.transmitted().expect("given back");
        assert_eq!(head.written, 0);
        bench.driver.supply(1 + round % 5, 9100, round % 7);
        bench.send(round % 2, &sent);
        assert_eq!(bench.driver.received().expect("a frame"), sent, "round {round}");
        assert!(bench.driver.transmitted().is_none() && bench.driver.received().is_none());
    }
    assert_eq!(bench.lanes[0].receive.losses(), ReceiveLosses::default());
    assert_eq!(bench.lanes[0].send.losses(), SendLosses::default());
}

#[test]
fn frames_keep_their_order_and_a_full_ring_is_taken_whole() {
    let mut bench = Bench::new();
    for number in 0..SIZE {
        bench.driver.transmit(&frame(60, number as u8), 1, 0);
    }
    let mut all = Vec::new();
    while all.len() < usize::from(SIZE) {
        let more = bench.received();
        assert!(!more.is_empty(), "{} so far", all.len());
        all.extend(more);
    }
    assert!(all.iter().zip(0..SIZE).all(|(came, number)| *came == frame(60, number as u8)));
    assert_eq!(bench.received(), [[0u8; 0]; 0]);
    bench.send(0, &frame(60, 1));
    assert_eq!(bench.lanes[0].send.losses().busy, 1, "the machine gives no room");
}

#[test]
fn the_driver_is_rung_for_unless_it_wants_no_interrupts_and_rings_only_where_nothing_came() {
    let mut bench = Bench::new();
    assert_eq!(bench.received().len(), 0);
    assert!(!bench.driver.is_to_be_quiet(), "nothing came: the driver is to notify");
    bench.driver.transmit(&frame(60, 1), 1, 0);
    bench.other_end.write_all(&[NOTIFY]).expect("room");
    assert_eq!((bench.received().len(), bench.said()), (1, vec![NOTIFY]));
    assert!(bench.driver.is_to_be_quiet(), "more may come at once");
    bench.driver.wants_interrupts(false);
    bench.driver.transmit(&frame(60, 2), 1, 0);
    bench.driver.supply(1, 100, 0);
    bench.send(0, &frame(60, 3));
    assert_eq!((bench.received().len(), bench.said()), (1, vec![]));
    assert_eq!(bench.received().len(), 0);
    assert!(!bench.driver.is_to_be_quiet());
}

#[test]
fn what_the_driver_adds_while_the_port_falls_asleep_is_not_missed() {
    // The driver is at every moment between two looks of the port: what it adds is either taken, or it sees
    // that it has to ring. The port waits for that as soon as nothing came, and has no other way to know.
    let mut bench = Bench::new();
    assert_eq!(bench.received().len(), 0, "it sleeps: the first one is rung for");
    let driver = bench.driver.again();
    let mut bell = bench.other_end.try_clone().expect("another handle");
    let adds = std::thread::spawn(move || {
        let (mut driver, mut rings) = (driver, 0u32);
        for number in 0..20_000u32 {
            for _ in 0..TURNS {
                if driver.has_room() {
                    break;
                }
                std::thread::yield_now();
            }
            assert!(driver.has_room(), "the port takes nothing");
            driver.transmit(&number.to_le_bytes(), 1, 0);
            if !driver.is_to_be_quiet() {
                rings += 1;
                // Where there is no room, the port has more to hear than this.
                let _ = bell.write(&[NOTIFY]);
            }
            if number % 16 == 0 {
                std::thread::yield_now();
            }
        }
        (driver, rings)
    });
    let mut next = 0u32;
    for _ in 0..TURNS {
        if next == 20_000 {
            break;
        }
        let frames = bench.received();
        if frames.is_empty() && bench.lanes[0].receive.due().is_none() {
            let mut waiter =
                crate::live::Waiter::new(&[bench.lanes[0].receive.descriptor()]).expect("a waiter");
            let begun = crate::live::sys::since_start();
            waiter.wait(LONG).expect("a wait");
            assert!(crate::live::sys::since_start() - begun < LONG, "nobody rings for {next}");
        }
        for frame in frames {
            assert_eq!(frame, next.to_le_bytes());
            next += 1;
        }
        bench.said();
    }
    assert_eq!(next, 20_000);
    let (driver, rings) = adds.join().expect("added");
    assert!(rings > 0 && driver.has_room(), "it was asleep now and then");
}

#[test]
fn the_port_goes_on_where_whoever_looks_at_frames_next_leaves_none() {
    let mut bench = Bench::new();
    assert_eq!(bench.received().len(), 0);
    assert_eq!(bench.lanes[0].receive.due(), None, "it waits for the driver");
    bench.driver.transmit(&frame(60, 1), 1, 0);
    assert_eq!(bench.received().len(), 1);
    assert_eq!(bench.lanes[0].receive.due(), Some(0), "the driver is quiet");
    assert_eq!(bench.received().len(), 0);
    assert_eq!(bench.lanes[0].receive.due(), None);
    // A port that comes after one whose driver was quiet.
    bench.driver.transmit(&frame(60, 2), 1, 0);
    assert_eq!(bench.received().len(), 1);
    assert!(bench.driver.is_to_be_quiet());
    let mut next = Bench::of(bench.driver);
    assert_eq!(next.received().len(), 0);
    assert!(!next.driver.is_to_be_quiet());
}

#[test]
fn a_batch_has_its_share_of_descriptors_and_of_bytes() {
    let mut bench = Bench::new();
    // As many frames as fit that are lost for their length, and one behind them.
    for _ in 0..100 {
        bench.driver.transmit_repeated(60_000, 2);
    }
    bench.driver.transmit(&frame(60, 1), 1, 0);
    let mut turns = 0;
    while bench.received().is_empty() {
        assert!(bench.lanes[0].receive.has_more());
        turns += 1;
    }
    let each = (limits::LONGEST_FRAME + HEADER) as f64;
    assert_eq!(turns, (100.0 * each / limits::BYTES_AT_ONCE as f64) as u32);
    assert_eq!(bench.lanes[0].receive.losses().too_long, 100);
}

#[test]
fn a_chain_has_as_many_descriptors_as_may_be_and_no_more() {
    let mut bench = Bench::new();
    bench.driver.transmit(&frame(600, 1), LONGEST_CHAIN as usize, 0);
    assert_eq!(bench.received(), [frame(600, 1)]);
    bench.driver.transmit(&frame(600, 2), LONGEST_CHAIN as usize + 1, 0);
    assert_eq!((bench.received().len(), bench.said()), (0, vec![NOTIFY, BROKEN]));
}

#[test]
fn long_chains_that_carry_nothing_have_their_share_of_a_batch() {
    let (mut bench, last) = (Bench::new(), LONGEST_CHAIN as u16 - 1);
    for number in 0..=last {
        bench.driver.write_descriptor(TRANSMIT, number, START, 0, u16::from(number < last), number + 1);
    }
    (0..SIZE).for_each(|count| bench.driver.offer(TRANSMIT, count, 0));
    bench.driver.write(TRANSMIT.available + 2, &SIZE.to_le_bytes());
    assert_eq!(bench.received().len(), 0);
    assert!(bench.lanes[0].receive.has_more());
    assert_eq!(bench.lanes[0].receive.losses().unreadable, u64::from(STEPS_AT_ONCE / LONGEST_CHAIN));
}

#[test]
fn a_core_begins_though_what_a_machine_shares_cannot_be_served() {
    let driver = Driver::new(1 << MEMORY);
    let (own, mut other_end) = bell();
    let mut rings = rings(&driver);
    rings.receive.size = 3;
    let descriptors = vec![own, driver.file()];
    let (mut attached, renewal) =
        Adopter::new(false).adopt(&handed(Some(rings)), NUMBER, descriptors).expect("a port");
    let mut said = [0; 8];
    assert_eq!(other_end.read(&mut said).expect("said"), 1);
    assert_eq!(said[0], BROKEN);
    let mut batch = Batch::new();
    attached.lanes[0].receive.receive(&mut batch, now(7));
    assert_eq!((batch.ports().len(), attached.presence.gone_since()), (0, Some(7)));
    let (own, other_end) = bell();
    let descriptors = vec![own, driver.file()];
    renewal.renew(&handed(Some(super::tests::rings(&driver))), descriptors).expect("another machine");
    let mut bench = Bench { lanes: attached.lanes, renewal, presence: attached.presence, driver, other_end };
    bench.driver.transmit(&frame(60, 1), 1, 0);
    assert_eq!(bench.received(), [frame(60, 1)]);
}

#[test]
fn frames_that_cannot_be_are_lost_alone() {
    let mut bench = Bench::new();
    bench.driver.transmit_with([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame(60, 1));
    bench.driver.transmit_with([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame(60, 1));
    bench.driver.transmit(&[], 1, 0);
    bench.driver.transmit(&frame(60, 2), 1, 0);
    assert_eq!(bench.received(), [frame(60, 2)]);
    assert_eq!(bench.lanes[0].receive.losses().unreadable, 3);
    // A frame longer than any: the same buffer again and again.
    bench.driver.transmit_repeated(60_000, 2);
    bench.driver.transmit(&frame(60, 3), 1, 0);
    assert_eq!(bench.received(), [frame(60, 3)]);
    assert_eq!(bench.lanes[0].receive.losses().too_long, 1);
    // A chain without enough room for a frame.
    bench.driver.supply(2, 50, 0);
    bench.driver.supply(2, 100, 0);
    bench.send(0, &frame(60, 4));
    bench.send(0, &frame(60, 5));
    assert_eq!(bench.driver.received(), Some(Vec::new()), "a chain without a byte");
    assert_eq!(bench.driver.received(), Some(frame(60, 5)));
    assert_eq!(bench.lanes[0].send.losses().refused, 1);
}

#[test]
fn a_port_goes_on_where_the_one_before_it_ended() {
    let mut bench = Bench::new();
    for number in 0..300 {
        bench.driver.transmit(&frame(60, number as u8), 1, 0);
        bench.driver.supply(1, 100, 0);
        assert_eq!(bench.received().len(), 1);
        bench.send(0, &frame(60, 9));
        assert!(bench.driver.received().is_some() && bench.driver.transmitted().is_some());
    }
    bench.driver.transmit(&frame(60, 77), 1, 0);
    bench.driver.supply(1, 100, 0);
    let mut next = Bench::of(bench.driver);
    assert_eq!(next.received(), [frame(60, 77)]);
    next.send(1, &frame(60, 78));
    assert_eq!(next.driver.received(), Some(frame(60, 78)));
}

#[test]
fn without_a_machine_nothing_passes_and_with_another_one_it_does() {
    let mut bench = Bench::new();
    bench.driver.supply(1, 100, 0);
    let (own, mut other_end) = bell();
    bench.renewal.renew(&handed(None), vec![own]).expect("without a machine");
    assert_eq!(other_end.read(&mut [0; 8]).expect_err("silence").kind(), ErrorKind::WouldBlock);
    bench.driver.transmit(&frame(60, 1), 1, 0);
    assert_eq!(bench.received().len(), 0);
    bench.send(0, &frame(60, 2));
    assert!(bench.driver.transmitted().is_none() && bench.driver.received().is_none());
    assert_eq!(bench.lanes[0].send.losses().down, 1);
    assert_eq!((bench.presence.gone_since(), bench.presence.vanished()), (Some(7), 1));

    bench.driver = Driver::new(1 << MEMORY);
    let (own, other_end) = bell();
    let file = bench.driver.file();
    bench.renewal.renew(&handed(Some(rings(&bench.driver))), vec![own, file]).expect("another machine");
    bench.other_end = other_end;
    bench.driver.transmit(&frame(60, 3), 1, 0);
    assert_eq!(bench.received(), [frame(60, 3)]);
    assert_eq!(
        (bench.presence.gone_since(), bench.said()),
        (None, vec![NOTIFY, NOTIFY]),
        "once for what the device before it has not told"
    );
}

#[test]
fn an_end_of_the_bell_ends_no_wait_for_ever() {
    let mut bench = Bench::new();
    bench.other_end.shutdown(std::net::Shutdown::Both).expect("it ends");
    let is_readable = |bench: &Bench| {
        let mut polled =
            [libc::pollfd { fd: bench.lanes[0].receive.descriptor(), events: libc::POLLIN, revents: 0 }];
        crate::live::sys::poll(&mut polled, 0).expect("asked")
    };
    assert!(is_readable(&bench));
    assert_eq!(bench.received().len(), 0);
    assert!(!is_readable(&bench), "the end is heard once");
    bench.driver.transmit(&frame(60, 1), 1, 0);
    assert_eq!(bench.received(), [frame(60, 1)]);
}

#[test]
fn a_bell_that_nobody_hears_keeps_nobody_waiting() {
    let mut bench = Bench::new();
    let mut said = 0u32;
    // More than the pair has room for.
    while said < 5_000 {
        bench.driver.transmit(&frame(60, 1), 1, 0);
        assert_eq!(bench.received().len(), 1);
        assert!(bench.driver.transmitted().is_some());
        said += 1;
    }
    let heard = bench.said().len();
    assert!(heard > 0 && heard < said as usize, "{heard} of {said}");
}
