//! Drivers that do what no driver does, and memory that changes between two looks.

use super::*;
use crate::live::vhost::virtqueue::SharedMemory;
use std::sync::atomic::{AtomicBool, Ordering};

/// Does something to a ring, and says what the port makes of it.
fn violated(at: RingAt, work: impl FnOnce(&mut Driver)) {
    let mut bench = Bench::new();
    work(&mut bench.driver);
    match at.descriptors == TRANSMIT.descriptors {
        true => {
            assert_eq!(bench.received().len(), 0);
            assert_eq!(bench.lanes[0].receive.losses().unreadable, 1);
        }
        false => {
            bench.send(0, &frame(60, 1));
            assert_eq!(bench.lanes[0].send.losses().down, 1);
        }
    }
    assert_eq!(bench.said(), [BROKEN], "told once");
    // Nothing of it is used any more, in either direction, until another one is there.
    bench.driver = bench.driver.again();
    bench.driver.transmit(&frame(60, 1), 1, 0);
    bench.driver.supply(1, 100, 0);
    assert_eq!(bench.received().len(), 0);
    bench.send(0, &frame(60, 1));
    assert!(bench.said().is_empty() && bench.presence.gone_since().is_some());
    let (own, other_end) = bell();
    bench.driver = Driver::new(1 << MEMORY);
    let file = bench.driver.file();
    bench.renewal.renew(&handed(Some(rings(&bench.driver))), vec![own, file]).expect("another machine");
    bench.other_end = other_end;
    bench.driver.transmit(&frame(60, 2), 1, 0);
    assert_eq!(bench.received(), [frame(60, 2)]);
}

/// Makes one descriptor available, with these flags and what is behind it.
fn one(driver: &Driver, at: RingAt, address: u64, length: u32, flags: u16, next: u16) {
    driver.write_descriptor(at, 0, address, length, flags, next);
    driver.offer(at, 0, 0);
    driver.write(at.available + 2, &1u16.to_le_bytes());
}

#[test]
fn a_descriptor_outside_of_the_memory_ends_the_ring() {
    let end = START + (1 << MEMORY);
    for (at, write) in [(TRANSMIT, 0), (RECEIVE, 2)] {
        for (address, length) in [
            (0, 100),
            (START - 1, 100),
            (end - 99, 100),
            (end, 1),
            (u64::MAX, 2),
            (u64::MAX - 50, 100),
            (START, u32::MAX),
        ] {
            violated(at, |driver| one(driver, at, address, length, write, 0));
        }
    }
}

#[test]
fn a_loop_of_descriptors_and_a_number_beyond_the_ring_end_the_ring() {
    for (at, write) in [(TRANSMIT, 0), (RECEIVE, 2)] {
        violated(at, |driver| one(driver, at, START, 1, write | 1, 0));
        violated(at, |driver| one(driver, at, START, 1, write | 1, SIZE));
        violated(at, |driver| one(driver, at, START, 1, write | 1, u16::MAX));
        violated(at, |driver| {
            for number in 0..SIZE {
                driver.write_descriptor(at, number, START, 1, write | 1, (number + 1) % SIZE);
            }
            driver.offer(at, 0, 5);
            driver.write(at.available + 2, &1u16.to_le_bytes());
        });
        violated(at, |driver| {
            driver.offer(at, 0, SIZE);
            driver.write(at.available + 2, &1u16.to_le_bytes());
        });
    }
}

#[test]
fn flags_that_were_not_agreed_on_and_another_direction_end_the_ring() {
    for (at, write) in [(TRANSMIT, 0), (RECEIVE, 2)] {
        for flags in [write ^ 2, write | 4, write | 8, write | 1 << 15] {
            violated(at, |driver| one(driver, at, START, 100, flags, 0));
        }
    }
}

#[test]
fn more_chains_than_the_ring_has_end_the_ring() {
    for at in [TRANSMIT, RECEIVE] {
        for index in [SIZE + 1, u16::MAX] {
            violated(at, |driver| driver.write(at.available + 2, &index.to_le_bytes()));
        }
    }
}

#[test]
fn a_machine_cannot_overwrite_what_a_port_counts_by() {
    let mut bench = Bench::new();
    bench.driver.transmit(&frame(60, 1), 1, 0);
    assert_eq!(bench.received().len(), 1);
    assert!(bench.driver.transmitted().is_some());
    // The port counts by what it knows, and writes over what was written there.
    bench.driver.write(TRANSMIT.used, &[0xff; 4 + 8 * SIZE as usize]);
    bench.driver.transmit(&frame(60, 2), 1, 0);
    assert_eq!(bench.received(), [frame(60, 2)]);
    assert!(bench.driver.transmitted().is_some());
}

#[test]
fn rings_that_cannot_be_are_refused() {
    let driver = Driver::new(1 << MEMORY);
    let refused = |change: &dyn Fn(&mut Rings)| {
        let mut rings = rings(&driver);
        change(&mut rings);
        assert!(Machine::of(&rings, Offloads::Off, &[driver.file()], 0).is_err(), "{rings:?}");
        // While the port runs, the same is refused, and what was shared before is let go of.
        let mut bench = Bench::new();
        let (own, mut other_end) = super::bell();
        assert!(bench.renewal.renew(&handed(Some(rings)), vec![own, driver.file()]).is_err());
        let mut said = [0; 8];
        assert_eq!(other_end.read(&mut said).expect("said"), 1);
        assert_eq!(said[0], BROKEN);
        bench.driver.transmit(&frame(60, 1), 1, 0);
        assert_eq!(bench.received().len(), 0);
    };
    for size in [0, 3, 255, LARGEST_RING * 2, u16::MAX] {
        refused(&|rings| rings.transmit.size = size);
        refused(&|rings| rings.receive.size = size);
    }
    refused(&|rings| rings.transmit.descriptors += 8);
    refused(&|rings| rings.transmit.available += 1);
    refused(&|rings| rings.receive.used += 2);
    refused(&|rings| rings.receive.used = START + (1 << MEMORY) - 16);
    refused(&|rings| rings.receive.available = 0);
    refused(&|rings| rings.receive.descriptors = u64::MAX - 15);
    refused(&|rings| rings.regions.clear());
    refused(&|rings| rings.regions[0].start += 1);
    refused(&|rings| rings.regions[0].length -= 1);
    refused(&|rings| rings.regions[0].offset = 1);
    refused(&|rings| rings.regions[0].length = 0);
    refused(&|rings| rings.regions[0].start = u64::MAX - 4095);
    refused(&|rings| rings.regions.push(GuestRegion { start: 0, length: 4096, offset: 0 }));
}

#[test]
fn regions_that_overlap_or_are_too_many_are_refused() {
    let driver = Driver::new(1 << MEMORY);
    let page = |start| GuestRegion { start, length: 4096, offset: 0 };
    for regions in [
        vec![GuestRegion { start: START, length: 1 << MEMORY, offset: 0 }, page(START + 4096)],
        vec![page(START), GuestRegion { start: START - 4096, length: 1 << MEMORY, offset: 0 }],
        (0..9).map(|at| page(at * 4096)).collect(),
        vec![GuestRegion { start: 0, length: limits::MOST_GUEST_MEMORY + 4096, offset: 0 }],
    ] {
        let files: Vec<_> = regions.iter().map(|_| driver.file()).collect();
        assert!(GuestMemory::map(&regions, &files).is_err(), "{regions:?}");
    }
    let apart = [page(START), page(START + 8192)];
    let memory = GuestMemory::map(&apart, &[driver.file(), driver.file()]).expect("apart");
    assert!(memory.part(START + 4090, 6).is_some());
    assert!(memory.part(START + 4090, 7).is_none(), "beyond the end of a region");
    assert!(memory.part(START + 4096, 1).is_none() && memory.part(START + 8192, 4096).is_some());
}

#[test]
fn frames_stay_within_their_bounds_whatever_changes_meanwhile() {
    // The machine changes the frame, its length and its address all the time: whatever the port takes is one
    // frame, or an end of the ring, and the next machine is served.
    let mut bench = Bench::new();
    bench.driver.transmit(&frame(60, 1), 1, 0);
    let mut frames = bench.received().len();
    bench.driver.write(TRANSMIT.used, &[0; 4]);
    let mut bench = Bench::of(bench.driver);
    let (stop, driver) = (Arc::new(AtomicBool::new(false)), bench.driver.again());
    let ends = stop.clone();
    let changes = std::thread::spawn(move || {
        let mut count = 0u8;
        while !ends.load(Ordering::Relaxed) {
            count = count.wrapping_add(1);
            driver.write(0x41_0000, &[count; 4096]);
            driver.write_descriptor(TRANSMIT, 0, START + 0x41_0000, u32::from(count) * 16, 0, 0);
            driver.write_descriptor(
                TRANSMIT,
                0,
                START + (u64::from(count) << 20),
                64,
                u16::from(count % 2),
                0,
            );
        }
    });
    let mut ended = 0;
    for count in 1..=20_000u16 {
        bench.driver.offer(TRANSMIT, count - 1, 0);
        bench.driver.write(TRANSMIT.available + 2, &count.to_le_bytes());
        let mut batch = Batch::new();
        let memory = bench.lanes[0].receive.receive(&mut batch, now(1));
        for at in 0..batch.ports().len() {
            let bytes = batch.bytes(memory, at).expect("within the memory");
            assert!(bytes.len() <= limits::LONGEST_FRAME && bytes.len() <= MAXIMUM_CAPTURED as usize);
            frames += 1;
        }
        if bench.said().contains(&BROKEN) {
            ended += 1;
            let (own, other_end) = bell();
            bench.other_end = other_end;
            bench.driver.write(TRANSMIT.used, &[0; 4]);
            let file = bench.driver.file();
            bench.driver.write(TRANSMIT.used + 2, &count.to_le_bytes());
            bench.renewal.renew(&handed(Some(rings(&bench.driver))), vec![own, file]).expect("once more");
        }
    }
    stop.store(true, Ordering::Relaxed);
    changes.join().expect("changed");
    assert!(frames > 0 && ended > 0, "{frames} frames, {ended} ends");
}
