//! The back end of vhost-user beside the front end of the crate `vhost`, which others wrote; and messages
//! that no front end sends.
#![cfg(target_os = "linux")]

use messages::Channel;
use messages::limits::LONGEST_VHOST_REPORT;
use messages::vhost::{VhostReport, VhostSupply};
use ports::live::vhost::{BROKEN, GuestRegion, NOTIFY, RingPlace, Rings};
use ravelin_vhost::{
    ExchangeError, FEATURES, LONGEST_BODY, MOST_FILES, PROTOCOL_FEATURES, Side, UNFINISHED, exchange,
};
use rig::virtio_driver::{Driver, MEMORY, RECEIVE, RingAt, SIZE, START, TRANSMIT};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use vhost::vhost_user::message::{VhostUserHeaderFlag, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

/// The first address of the memory at the monitor.
const AT_MONITOR: u64 = 0x7f00_0000_0000;
/// How long something may take that another thread does.
const LIMIT: Duration = Duration::from_secs(20);

/// Everybody else than the process.
struct Others {
    launch: Channel,
    bell: UnixStream,
    monitor: UnixStream,
    process: JoinHandle<Result<(), ExchangeError>>,
}

impl Others {
    fn new() -> Others {
        Others::of(LIMIT, false)
    }

    /// Where the gateway has so long to let go of what was shared, and takes what is unfinished, if that is
    /// so.
    fn of(let_go_within: Duration, takes_unfinished: bool) -> Others {
        let (launch, theirs) = Channel::pair().expect("a channel");
        let (bell, rung) = UnixStream::pair().expect("a bell");
        let (monitor, connection) = UnixStream::pair().expect("a connection");
        bell.set_read_timeout(Some(LIMIT)).expect("a limit");
        monitor.set_read_timeout(Some(LIMIT)).expect("a limit");
        let (bell_of_process, say): (_, fn(&str)) = (rung.into(), |_| {});
        let side = Side {
            launch: theirs,
            monitor: connection,
            bell: bell_of_process,
            takes_unfinished,
            let_go_within,
            say,
        };
        Others { launch, bell, monitor, process: thread::spawn(move || exchange(side)) }
    }

    fn front_end(&self) -> Frontend {
        Frontend::from_stream(self.monitor.try_clone().expect("another handle"), 2)
    }

    fn report(&mut self) -> (VhostReport, Vec<OwnedFd>) {
        self.launch.receive(LONGEST_VHOST_REPORT).expect("a report").expect("it goes on")
    }

    /// The end of the process, as an error that says this.
    fn ends(self, told: &str) {
        let error = self.process.join().expect("no panic").expect_err("refused").to_string();
        assert!(error.contains(told), "{error}");
    }
}

fn expected() -> Rings {
    let place = |at: RingAt| RingPlace {
        size: SIZE,
        descriptors: START + at.descriptors,
        available: START + at.available,
        used: START + at.used,
    };
    let regions = vec![GuestRegion { start: START, length: 1 << MEMORY, offset: 0 }];
    Rings { regions, receive: place(RECEIVE), transmit: place(TRANSMIT), unfinished: false }
}

/// Agrees on everything, and says by which events both sides of each ring are told.
fn negotiate(front_end: &mut Frontend, memory: &OwnedFd) -> [(EventFd, EventFd); 2] {
    front_end.set_owner().expect("owned");
    assert_eq!(front_end.get_features().expect("features"), FEATURES);
    let protocol = front_end.get_protocol_features().expect("features");
    assert_eq!(protocol.bits(), PROTOCOL_FEATURES);
    front_end.set_protocol_features(VhostUserProtocolFeatures::REPLY_ACK).expect("agreed on");
    // From here on each request is acknowledged.
    front_end.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    front_end.set_features(FEATURES).expect("agreed on");
    front_end
        .set_mem_table(&[VhostUserMemoryRegionInfo {
            guest_phys_addr: START,
            memory_size: 1 << MEMORY,
            userspace_addr: AT_MONITOR,
            mmap_offset: 0,
            mmap_handle: memory.as_raw_fd(),
        }])
        .expect("shared");
    [0, 1].map(|ring| start_ring(front_end, ring))
}

fn start_ring(front_end: &mut Frontend, ring: usize) -> (EventFd, EventFd) {
    let at = [RECEIVE, TRANSMIT][ring];
    let config = VringConfigData {
        queue_max_size: SIZE,
        queue_size: SIZE,
        flags: 0,
        desc_table_addr: AT_MONITOR + at.descriptors,
        used_ring_addr: AT_MONITOR + at.used,
        avail_ring_addr: AT_MONITOR + at.available,
        log_addr: None,
    };
    let events = || EventFd::new(EFD_NONBLOCK).expect("events");
    let (kick, call) = (events(), events());
    front_end.set_vring_num(ring, SIZE).expect("its size");
    front_end.set_vring_base(ring, 0).expect("its beginning");
    front_end.set_vring_addr(ring, &config).expect("its addresses");
    front_end.set_vring_call(ring, &call).expect("its interrupts");
    front_end.set_vring_kick(ring, &kick).expect("its notifications");
    front_end.set_vring_enable(ring, true).expect("it begins");
    (kick, call)
}

#[test]
fn a_front_end_of_others_agrees_on_everything_and_both_sides_are_told() {
    let mut others = Others::new();
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    let memory = driver.file();
    let [(kick, call), (second_kick, second_call)] = negotiate(&mut front_end, &memory);
    let (report, files) = others.report();
    assert_eq!(report, VhostReport::Shares(expected()));
    // It is this memory.
    driver.write(4096, b"here");
    let mut here = [0; 4];
    std::fs::File::from(files.into_iter().next().expect("a file"))
        .read_exact_at(&mut here, 4096)
        .expect("read");
    assert_eq!(&here, b"here");
    let mut said = [0; 8];
    for kick in [&kick, &second_kick] {
        kick.write(1).expect("notified");
        assert_eq!(others.bell.read(&mut said).expect("rung"), 1);
        assert_eq!(said[0], NOTIFY);
    }
    others.bell.write_all(&[NOTIFY]).expect("room");
    // Interrupts come of a thread of their own.
    let interrupted = |call: &EventFd| (0..2000).any(|_| call.read().map_or_else(|_| wait(), |_| true));
    assert!(interrupted(&call) && interrupted(&second_call));

    // A ring that stops is let go of before the front end hears of it.
    driver.write(RECEIVE.used + 2, &7u16.to_le_bytes());
    let asks = thread::spawn(move || {
        let base = front_end.get_vring_base(0).expect("stopped");
        (front_end, base)
    });
    assert_eq!(others.report().0, VhostReport::SharesNothing);
    thread::sleep(Duration::from_millis(20));
    assert!(!asks.is_finished());
    others.launch.send(&VhostSupply::LetGo, &[]).expect("heard");
    let (mut front_end, base) = asks.join().expect("answered");
    assert_eq!(base, 7, "as far as the ring has come");
    assert_eq!(front_end.get_vring_base(1).expect("stopped"), 0);
    kick.write(1).expect("nobody hears it");
    start_ring(&mut front_end, 0);
    start_ring(&mut front_end, 1);
    assert_eq!(others.report().0, VhostReport::Shares(expected()));

    // A driver that does what no driver does is off until it starts anew, and what it shared is let go of.
    others.bell.write_all(&[BROKEN]).expect("room");
    assert_eq!(others.report().0, VhostReport::SharesNothing);
    others.launch.send(&VhostSupply::LetGo, &[]).expect("heard");
    for ring in [0, 1] {
        front_end.get_vring_base(ring).expect("stopped already");
        start_ring(&mut front_end, ring);
    }
    assert_eq!(others.report().0, VhostReport::Shares(expected()));
    drop(others.monitor);
    drop(front_end);
    assert!(others.process.join().expect("no panic").is_ok(), "the monitor is gone");
}

fn wait() -> bool {
    thread::sleep(Duration::from_millis(1));
    false
}

#[test]
fn unfinished_frames_are_agreed_on_where_the_core_finishes_them_and_the_driver_asks_for_it() {
    for (wanted, unfinished) in [(UNFINISHED, true), (1, true), (1 << 11, false), (0, false)] {
        let mut others = Others::of(LIMIT, true);
        let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
        assert_eq!(front_end.get_features().expect("features"), FEATURES | UNFINISHED);
        offer(&mut front_end, FEATURES | wanted, &driver.file(), AT_MONITOR, AT_MONITOR);
        match others.report().0 {
            VhostReport::Shares(rings) => assert_eq!(rings.unfinished, unfinished, "{wanted:#x}"),
            other => panic!("{other:?}"),
        }
    }
    let others = Others::new();
    let front_end = others.front_end();
    assert_eq!(front_end.get_features().expect("features"), FEATURES);
    front_end.set_features(FEATURES | 1).expect("sent");
    others.ends("were not offered");
}

#[test]
fn the_end_of_the_gateway_ends_it() {
    let Others { launch, monitor: _monitor, bell: _bell, process } = Others::new();
    drop(launch);
    assert!(process.join().expect("no panic").is_ok());
}

/// The bytes of a message.
fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [request, flags, body.len() as u32].iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend(body);
    bytes
}

#[test]
fn what_is_not_understood_exactly_ends_the_connection() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    for (bytes, told) in [
        (message(0, 1, &[]), "asks for 0"),
        (message(6, 1, &[0; 16]), "asks for 6"),
        (message(17, 1, &[]), "asks for 17"),
        (message(24, 1, &[0; 12]), "asks for 24"),
        (message(u32::MAX, 1, &[]), "asks for 4294967295"),
        (message(1, 2, &[]), "another version"),
        (message(1, 0, &[]), "another version"),
        (message(1, 1 | 4, &[]), "another version"),
        (message(1, 1 | 16, &[]), "another version"),
        (message(1, 1, &[0; LONGEST_BODY + 1]), "265 bytes"),
        // The longest is taken, and refused for what it asks.
        (message(1, 1, &[0; LONGEST_BODY]), "too long"),
        (message(1, 1, &[0]), "too long"),
        (message(2, 1, &[0; 7]), "too short"),
        (message(2, 1, &[0; 9]), "too long"),
        (message(2, 1, &[0xff; 8]), "were not offered"),
        (message(16, 1, &[0xff; 8]), "were not offered"),
        (message(8, 1, &words(&[2, 256])), "does not have"),
        (message(8, 1, &words(&[0, 1 << 16])), "so many descriptors"),
        (message(9, 1, &[&words(&[0, 1]), &[0; 32][..]].concat()), "a log"),
        (message(11, 1, &words(&[9, 0])), "does not have"),
        (message(12, 1, &0u64.to_ne_bytes()), "not one file"),
        (message(12, 1, &(1u64 << 8).to_ne_bytes()), "again and again"),
        (message(13, 1, &(1u64 << 9).to_ne_bytes()), "not one file"),
        (message(13, 1, &(1u64 << 8 | 5).to_ne_bytes()), "does not have"),
        (message(18, 1, &words(&[7, 1])), "does not have"),
        (message(5, 1, &words(&[0, 0])), "one to eight"),
        (message(5, 1, &[&words(&[1, 0]), &[0; 32][..]].concat()), "one to eight"),
        (message(5, 1, &words(&[9, 0])), "one to eight"),
    ] {
        let mut others = Others::new();
        others.monitor.write_all(&bytes).expect("sent");
        others.ends(told);
    }
    // A part of a message, and its end.
    let mut others = Others::new();
    others.monitor.write_all(&message(2, 1, &[0; 8])[..15]).expect("sent");
    others.monitor.shutdown(std::net::Shutdown::Write).expect("ended");
    others.ends("fill");
}

/// Agrees on everything with these features, on memory at this address of the monitor, and on rings which
/// begin at another one.
fn offer(front_end: &mut Frontend, features: u64, memory: &OwnedFd, at_monitor: u64, rings: u64) {
    // It enables no ring without having seen that.
    front_end.get_features().expect("features");
    front_end.set_features(features).expect("sent");
    let region = VhostUserMemoryRegionInfo {
        guest_phys_addr: START,
        memory_size: 1 << MEMORY,
        userspace_addr: at_monitor,
        mmap_offset: 0,
        mmap_handle: memory.as_raw_fd(),
    };
    front_end.set_mem_table(&[region]).expect("sent");
    for ring in [0, 1] {
        let config = VringConfigData {
            queue_max_size: SIZE,
            queue_size: SIZE,
            flags: 0,
            desc_table_addr: rings,
            used_ring_addr: rings,
            avail_ring_addr: rings,
            log_addr: None,
        };
        let events = EventFd::new(0).expect("events");
        front_end.set_vring_num(ring, SIZE).expect("sent");
        front_end.set_vring_addr(ring, &config).expect("sent");
        front_end.set_vring_kick(ring, &events).expect("sent");
        // The last request may find the connection ended.
        let _ = front_end.set_vring_enable(ring, true);
    }
}

#[test]
fn rings_that_are_not_the_memorys_are_refused() {
    for rings in [AT_MONITOR - 1, AT_MONITOR + (1 << MEMORY), u64::MAX - 4096] {
        let others = Others::new();
        let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
        offer(&mut front_end, FEATURES, &driver.file(), AT_MONITOR, rings);
        others.ends("outside of the memory");
    }
}

#[test]
fn a_driver_of_another_time_has_no_link_and_the_one_after_it_does() {
    let mut others = Others::new();
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    offer(&mut front_end, 1 << 30, &driver.file(), AT_MONITOR, AT_MONITOR);
    assert_eq!(front_end.get_features().expect("it goes on"), FEATURES);
    front_end.set_features(FEATURES).expect("sent");
    assert!(matches!(others.report().0, VhostReport::Shares(_)), "the first report");
}

/// Sends a message with so many descriptors.
fn send_with(monitor: &UnixStream, bytes: &[u8], count: usize) {
    let files: Vec<_> = (0..count).map(|_| EventFd::new(0).expect("events")).collect();
    let files: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
    assert_eq!(monitor.send_with_fds(&[bytes], &files).expect("sent"), bytes.len());
}

#[test]
fn descriptors_that_are_too_many_or_that_nothing_asks_for_end_the_connection() {
    let others = Others::new();
    send_with(&others.monitor, &message(5, 1, &[0; 8]), MOST_FILES + 1);
    others.ends("more than 8 descriptors");
    let others = Others::new();
    send_with(&others.monitor, &message(5, 1, &[0; 8]), MOST_FILES);
    others.ends("one to eight");
    let others = Others::new();
    send_with(&others.monitor, &message(1, 1, &[]), 1);
    others.ends("comes with descriptors");
}

#[test]
fn a_ring_that_is_used_is_not_changed() {
    let mut others = Others::new();
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    negotiate(&mut front_end, &driver.file());
    assert!(matches!(others.report().0, VhostReport::Shares(_)));
    assert!(front_end.set_vring_num(0, 16).is_err());
    others.ends("while it is used");
}

#[test]
fn features_stay_while_rings_are_used() {
    let mut others = Others::new();
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    negotiate(&mut front_end, &driver.file());
    assert!(matches!(others.report().0, VhostReport::Shares(_)));
    front_end.set_features(FEATURES).expect("the same");
    assert!(front_end.set_features(FEATURES & !(1 << 32)).is_err());
    others.ends("while rings are used");
}

#[test]
fn a_gateway_that_does_not_let_go_ends_the_connection() {
    let mut others = Others::of(Duration::from_millis(50), false);
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    negotiate(&mut front_end, &driver.file());
    assert!(matches!(others.report().0, VhostReport::Shares(_)));
    assert!(front_end.get_vring_base(0).is_err());
    assert_eq!(others.report().0, VhostReport::SharesNothing);
    others.ends("does not let go");
}

#[test]
fn a_gateway_that_ends_meanwhile_ends_the_connection() {
    let mut others = Others::new();
    let (mut front_end, driver) = (others.front_end(), Driver::new(1 << MEMORY));
    let memory = driver.file();
    negotiate(&mut front_end, &memory);
    assert!(matches!(others.report().0, VhostReport::Shares(_)));
    let asks = thread::spawn(move || front_end.get_vring_base(0).is_err());
    assert_eq!(others.report().0, VhostReport::SharesNothing);
    others.launch.end();
    assert!(others.process.join().expect("no panic").is_err());
    assert!(asks.join().expect("an answer"));
    let mut rest = [0; 1];
    let ended = others.monitor.read(&mut rest);
    assert!(matches!(ended, Ok(0)) || ended.is_err_and(|error| error.kind() != ErrorKind::WouldBlock));
}
