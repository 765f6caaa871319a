//! The attacks of a machine that shares its memory: on the protocol of its monitor, and on its rings. After
//! each of them a right frame must arrive, and nothing else.

use crate::frames::{RandomNumbers, Scene};
use crate::monitor::{AT_MONITOR, FEATURES, Monitor, RingSetup, events, setups, words};
use ports::live::vhost::limits::LONGEST_CHAIN;
use rig::virtio_driver::{MEMORY, RECEIVE, RingAt, SIZE, START, TRANSMIT};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// An attack by rings.
pub struct RingAttack {
    /// Its name.
    pub name: &'static str,
    /// Does it once. An error says that the gateway has ended the connection.
    once: fn(Monitor, &mut RandomNumbers) -> io::Result<()>,
}

/// All of them.
pub const RING_ATTACKS: &[RingAttack] = &[
    RingAttack {
        name: "descriptors_outside_of_the_memory",
        once: |monitor, random| broken(monitor, random, outside),
    },
    RingAttack { name: "chains_without_end", once: |monitor, random| broken(monitor, random, endless) },
    RingAttack {
        name: "descriptors_that_the_ring_does_not_have",
        once: |monitor, random| broken(monitor, random, beyond),
    },
    RingAttack {
        name: "indirect_and_unknown_descriptors",
        once: |monitor, random| broken(monitor, random, flags),
    },
    RingAttack { name: "more_chains_than_places", once: |monitor, random| broken(monitor, random, too_many) },
    RingAttack { name: "long_chains_that_carry_nothing", once: empty_chains },
    RingAttack { name: "frames_that_change_while_they_are_read", once: changing },
    RingAttack { name: "descriptors_that_change_while_they_are_read", once: changing_descriptors },
    RingAttack { name: "rings_in_one_another", once: in_one_another },
    RingAttack { name: "used_rings_of_another_time", once: scribbled },
    RingAttack { name: "memory_that_shrinks", once: shrinking },
    RingAttack { name: "memory_of_another_kind", once: other_files },
    RingAttack { name: "regions_over_one_another_and_without_end", once: regions },
    RingAttack { name: "rings_outside_of_the_memory", once: rings_outside },
    RingAttack { name: "messages_of_chance", once: by_chance },
    RingAttack { name: "more_descriptors_than_a_message_has", once: many_files },
    RingAttack { name: "rings_that_start_and_stop", once: restarts },
    RingAttack { name: "notifications_without_end", once: kicks },
    RingAttack { name: "interrupts_that_let_wait", once: full_pipe },
];

impl RingAttack {
    /// Does it once, by a connection to this socket. Whether the gateway lets it go on, others judge.
    ///
    /// # Errors
    /// It could not begin.
    pub fn run(&self, socket: &str, seed: u64) -> io::Result<()> {
        let monitor = Monitor::silent(socket)?;
        let _ = (self.once)(monitor, &mut RandomNumbers(seed));
        Ok(())
    }
}

/// How many descriptors the gateway takes as one chain at most.
const CHAIN: u16 = LONGEST_CHAIN as u16;

/// Makes one descriptor available.
fn one(monitor: &Monitor, at: RingAt, (address, length): (u64, u32), flags: u16, next: u16) {
    monitor.driver.write_descriptor(at, 0, address, length, flags, next);
    monitor.driver.offer(at, 0, 0);
    monitor.driver.write(at.available + 2, &1u16.to_le_bytes());
}

/// What is to be written of a ring.
fn write_flag(at: RingAt) -> u16 {
    if at.used == RECEIVE.used { 2 } else { 0 }
}

/// Does something to a ring, again and again, each time with rings that begin anew.
fn broken(
    mut monitor: Monitor,
    random: &mut RandomNumbers,
    work: fn(&mut Monitor, RingAt, &mut RandomNumbers),
) -> io::Result<()> {
    monitor.begin()?;
    for _ in 0..20 {
        // Frames for the machine come by themselves: hosts ask for it.
        let at = random.one_of(&[TRANSMIT, TRANSMIT, RECEIVE]);
        work(&mut monitor, at, random);
        monitor.kick();
        thread::sleep(Duration::from_millis(5));
        monitor.restart()?;
    }
    Ok(())
}

fn outside(monitor: &mut Monitor, at: RingAt, random: &mut RandomNumbers) {
    let end = START + (1 << MEMORY);
    let near = random.below(200) as u64;
    let address = random.one_of(&[0, START - 1 - near, end - near, end, u64::MAX - near, AT_MONITOR]);
    let length = random.one_of(&[200, 1514, u32::MAX, 1 << 31]);
    one(monitor, at, (address, length), write_flag(at), 0);
}

fn endless(monitor: &mut Monitor, at: RingAt, random: &mut RandomNumbers) {
    let flags = write_flag(at) | 1;
    for number in 0..SIZE {
        monitor.driver.write_descriptor(at, number, START, 1 << random.below(20), flags, (number + 1) % SIZE);
    }
    one(monitor, at, (START, 64), flags, random.one_of(&[0, 1, SIZE - 1]));
}

fn beyond(monitor: &mut Monitor, at: RingAt, random: &mut RandomNumbers) {
    let number = random.one_of(&[SIZE, SIZE + 1, 1 << 15, u16::MAX]);
    one(monitor, at, (START, 64), write_flag(at) | 1, number);
    if random.below(2) == 0 {
        monitor.driver.offer(at, 0, number);
    }
}

fn flags(monitor: &mut Monitor, at: RingAt, random: &mut RandomNumbers) {
    let flags = random.one_of(&[4, 5, 6, 8, 1 << 15, u16::MAX, write_flag(at) ^ 2]);
    one(monitor, at, (START, 64), flags, 1);
}

fn too_many(monitor: &mut Monitor, at: RingAt, random: &mut RandomNumbers) {
    one(monitor, at, (START, 64), write_flag(at), 0);
    let count = random.one_of(&[SIZE + 1, SIZE * 2, 1 << 15, u16::MAX]);
    monitor.driver.write(at.available + 2, &count.to_le_bytes());
}

/// Chains of as many descriptors as may be, without a byte in any of them.
fn empty_chains(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    for number in 0..SIZE {
        let more = u16::from(number % CHAIN != CHAIN - 1);
        monitor.driver.write_descriptor(TRANSMIT, number, START, 0, more, (number + 1) % SIZE);
        monitor.driver.offer(TRANSMIT, number, number / CHAIN * CHAIN);
    }
    for turn in 1..200u16 {
        monitor.driver.write(TRANSMIT.available + 2, &(turn * SIZE).to_le_bytes());
        monitor.wait(|driver| driver.used_of_sent() == turn * SIZE)?;
        thread::sleep(Duration::from_micros(random.below(200) as u64));
    }
    Ok(())
}

/// A thread that does something again and again until it is dropped.
struct Meanwhile(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Meanwhile {
    fn does(work: impl Fn() + Send + 'static) -> Meanwhile {
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let thread = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                work();
            }
        });
        Meanwhile(ends, Some(thread))
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(thread::JoinHandle::join);
    }
}

/// One of the right frames.
fn right(random: &mut RandomNumbers) -> Vec<u8> {
    let mut all = crate::frames::right(&Scene::usual());
    all.swap_remove(random.below(all.len()))
}

/// A frame that is right becomes one of another sender, and right again, while the gateway looks at it.
fn changing(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    let right = right(random);
    // Places of Ethernet's and both IPs' senders.
    let wrong: Vec<Vec<u8>> = [6..12, 26..30, 22..38, 28..32]
        .into_iter()
        .filter(|place| place.end <= right.len())
        .map(|place| {
            let mut wrong = right.clone();
            let other = random.bytes(place.len());
            wrong[place].copy_from_slice(&other);
            wrong
        })
        .collect();
    let place = 0x41_0000;
    let header = [0; 12];
    let driver = monitor.driver.again();
    let frames = right.clone();
    let _meanwhile = Meanwhile::does(move || {
        for wrong in &wrong {
            driver.write(place + 12, &frames);
            driver.write(place + 12, wrong);
        }
    });
    monitor.driver.write(place, &header);
    for turn in 1..=5000u16 {
        let length = (12 + right.len()) as u32;
        monitor.driver.write_descriptor(TRANSMIT, turn % SIZE, START + place, length, 0, 0);
        monitor.driver.offer(TRANSMIT, turn - 1, turn % SIZE);
        monitor.driver.write(TRANSMIT.available + 2, &turn.to_le_bytes());
        if turn % 64 == 0 {
            monitor.kick();
            thread::sleep(Duration::from_micros(300));
        }
    }
    Ok(())
}

/// The length and the address of a descriptor change while the gateway looks at them.
fn changing_descriptors(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    for _ in 0..10 {
        let driver = monitor.driver.again();
        let far = START + random.number() % (1 << 40);
        let meanwhile = Meanwhile::does(move || {
            for length in [64, 1514, u32::MAX, 70_000] {
                driver.write_descriptor(TRANSMIT, 0, START + 0x41_0000, length, 0, 0);
                driver.write_descriptor(TRANSMIT, 0, far, length, 1, 0);
            }
        });
        for turn in 1..=500u16 {
            monitor.driver.offer(TRANSMIT, turn - 1, 0);
            monitor.driver.write(TRANSMIT.available + 2, &turn.to_le_bytes());
            monitor.kick();
        }
        drop(meanwhile);
        monitor.restart()?;
    }
    Ok(())
}

/// Each ring, and buffers, lie where another ring is.
fn in_one_another(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.driver.seal();
    monitor.agree(START, 1 << MEMORY, 0)?;
    let at = AT_MONITOR + random.one_of(&[0, 0x40, 0x1000]);
    let here = RingAt { descriptors: at, available: at, used: at };
    monitor.set_up(&[RingSetup { size: SIZE.into(), at: here }; 2])?;
    for _ in 0..200 {
        let bytes = random.bytes(0x2000);
        monitor.driver.write(0, &bytes);
        monitor.kick();
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// What the gateway writes of its rings is written over.
fn scribbled(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    for _ in 0..20 {
        for _ in 0..20 {
            let bytes = random.bytes(4 + 8 * usize::from(SIZE));
            monitor.driver.write(TRANSMIT.used, &bytes);
            monitor.driver.write(RECEIVE.used, &bytes);
            monitor.kick();
        }
        monitor.restart()?;
    }
    Ok(())
}

/// Memory that is not sealed, and is cut off once it is shared.
fn shrinking(mut monitor: Monitor, _: &mut RandomNumbers) -> io::Result<()> {
    monitor.agree(START, 1 << MEMORY, 0)?;
    monitor.set_up(&setups())?;
    let file = monitor.driver.file();
    for length in [1 << MEMORY, 0, 1 << MEMORY, 4096] {
        ftruncate(&file, length)?;
        monitor.kick();
        thread::sleep(Duration::from_millis(20));
    }
    monitor.restart()
}

fn memory(length: u64, flags: MemfdFlags) -> io::Result<OwnedFd> {
    let file = memfd_create("guest", flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, length)?;
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}

/// Files that are no memory, large pages, and files that are shorter than is said.
fn other_files(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.features()?;
    let file = match random.below(4) {
        0 => std::fs::File::open("/proc/self/exe")?.into(),
        1 => events()?,
        2 => memory(4096, MemfdFlags::empty())?,
        // Where there are no large pages, the shortest memory.
        _ => memory(2 << 20, MemfdFlags::HUGETLB).or_else(|_| memory(1, MemfdFlags::empty()))?,
    };
    monitor.share(&[(START, 1 << MEMORY, AT_MONITOR, 0)], &[file.as_fd()])?;
    monitor.set_up(&setups())?;
    monitor.restart()
}

/// Regions that overlap, have no end, or do not lie at pages.
fn regions(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.driver.seal();
    monitor.features()?;
    let (file, all) = (monitor.driver.file(), 1 << MEMORY);
    let usual = (START, all, AT_MONITOR, 0);
    let other = random.one_of(&[
        (START, all, AT_MONITOR + all, 0),
        (START + 4096, 4096, AT_MONITOR + all, 0),
        (u64::MAX - 4095, 8192, AT_MONITOR + all, 0),
        (0, u64::MAX, 0, 0),
        (0, 4096, AT_MONITOR + all, u64::MAX - 4095),
        (1, 4096, AT_MONITOR + all, 0),
        (0, 4095, AT_MONITOR + all, 0),
        (0, 0, AT_MONITOR + all, 0),
        (0, 4096, AT_MONITOR + all, 1),
    ]);
    monitor.share(&[usual, other], &[file.as_fd(), file.as_fd()])?;
    monitor.set_up(&setups())?;
    monitor.restart()
}

/// Rings of a size that no ring has, or that reach beyond the memory.
fn rings_outside(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    monitor.driver.seal();
    monitor.agree(START, 1 << MEMORY, 0)?;
    let mut rings = setups();
    let (ring, last) = (random.below(2), AT_MONITOR + (1 << MEMORY) - 64);
    match random.below(6) {
        0 => rings[ring].size = random.one_of(&[0, 3, 255, 2048, 1 << 15, 1 << 16, u32::MAX]),
        1 => rings[ring].at.descriptors = last,
        2 => rings[ring].at.available = last,
        3 => rings[ring].at.used = last,
        4 => rings[ring].at.used += 1,
        _ => rings[ring].at.descriptors = random.number(),
    }
    monitor.set_up(&rings)?;
    monitor.restart()
}

/// Messages of chance, some with a right header.
fn by_chance(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    for _ in 0..50 {
        let count = random.below(300);
        let bytes = random.bytes(count);
        if random.below(2) == 0 {
            monitor.raw(&bytes)?;
        } else {
            monitor.say(random.below(45) as u32, &bytes, &[])?;
        }
    }
    Ok(())
}

fn many_files(mut monitor: Monitor, _: &mut RandomNumbers) -> io::Result<()> {
    monitor.features()?;
    let files = (0..16).map(|_| events()).collect::<io::Result<Vec<_>>>()?;
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    monitor.say(5, &words(&[8, 0]), &files)?;
    monitor.say(2, &FEATURES.to_ne_bytes(), &[])
}

fn restarts(mut monitor: Monitor, _: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    (0..100).try_for_each(|_| monitor.restart())
}

fn kicks(mut monitor: Monitor, _: &mut RandomNumbers) -> io::Result<()> {
    monitor.begin()?;
    (0..200_000).for_each(|_| monitor.kick());
    Ok(())
}

/// Interrupts go to a pipe that is full: whoever writes there waits.
fn full_pipe(mut monitor: Monitor, random: &mut RandomNumbers) -> io::Result<()> {
    let (_reads, writes) = io::pipe()?;
    rustix::io::ioctl_fionbio(&writes, true)?;
    while rustix::io::write(&writes, &[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writes, false)?;
    monitor.begin()?;
    monitor.say(13, &1u64.to_ne_bytes(), &[writes.as_fd()])?;
    for _ in 0..1000 {
        monitor.send([0; 10], &right(random))?;
    }
    Ok(())
}
