//! Lanes of a port on a virtual cable whose other end is a port, too, in a network namespace that goes with
//! the test.
//!
//! The tests run themselves again inside the namespace. Where the rights to make one are missing, a test says
//! so and ends.
#![cfg(target_os = "linux")]

use packet::{Batch, VirtioHeader};
use ports::live::clock::{Clock, MachineClock};
use ports::live::handed_over::{Adopter, OpenedPort};
use ports::live::{Attached, PortKind, PortWay, Receiver, VlanPlace, WantedPort, attach};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Says in which namespace a test runs inside.
const INSIDE: &str = "RAVELIN_TEST_NAMESPACE";

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Runs a test in a namespace of its own, where `x0` and `x1` are the ends of a cable.
fn inside(test: &str, run: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return run();
    }
    let name = format!("rvp{}{test}", std::process::id());
    let name = &name[..name.len().min(60)];
    if !ip(&["netns", "add", name]) {
        eprintln!("{test}: not run, since network namespaces cannot be made here");
        return;
    }
    let made = cable(Some(name));
    let this = std::env::current_exe().expect("a path");
    let output = Command::new("ip")
        .args(["netns", "exec", name])
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, name)
        .output();
    ip(&["netns", "delete", name]);
    let output = output.expect("runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(made && output.status.success() && text.contains("1 passed"), "{text}");
}

/// Makes the cable. No IPv6, whose hosts would talk by themselves.
fn cable(namespace: Option<&str>) -> bool {
    let within = |arguments: &[&str]| {
        let namespace: Vec<_> = namespace.map(|name| ["-n", name]).into_iter().flatten().collect();
        ip(&[&namespace[..], arguments].concat())
    };
    within(&["link", "add", "x0", "type", "veth", "peer", "name", "x1"])
        && ["x0", "x1"].iter().all(|end| {
            within(&["link", "set", end, "addrgenmode", "none"]) && within(&["link", "set", end, "up"])
        })
}

fn wanted(interface: &str) -> WantedPort {
    WantedPort { promiscuous: true, ..WantedPort::plain(interface) }
}

fn port(interface: &str, lanes: u16) -> Attached {
    attach(&wanted(interface), 1, lanes).expect("can be attached")
}

/// A UDP packet of a flow, with a number in it and `length` bytes in all.
fn datagram(flow: (u8, u16), back: bool, number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0u8; length.max(60)];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    let (mut from, mut to) = (([10, 0, 0, flow.0], flow.1), ([10, 9, 0, 1], 53));
    if back {
        std::mem::swap(&mut from, &mut to);
    }
    frame[26..30].copy_from_slice(&from.0);
    frame[30..34].copy_from_slice(&to.0);
    frame[34..36].copy_from_slice(&from.1.to_be_bytes());
    frame[36..38].copy_from_slice(&to.1.to_be_bytes());
    frame[38..40].copy_from_slice(&(total - 20).to_be_bytes());
    let end = frame.len();
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame[end - 4..].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[42..46].try_into().expect("four bytes"))
}

/// Everything that comes until `count` frames are there, or for 5 s.
fn receive(receiver: &mut dyn Receiver, count: usize) -> Vec<Vec<u8>> {
    let (mut batch, mut frames) = (Batch::new(), Vec::new());
    let end = Instant::now() + Duration::from_secs(5);
    while frames.len() < count && Instant::now() < end {
        let memory = receiver.receive(&mut batch, MachineClock.now());
        for index in 0..batch.len {
            frames.push(batch.bytes(memory, index).expect("lies in the memory").to_vec());
        }
        if batch.is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
    }
    frames
}

#[test]
fn every_packet_comes_by_one_lane_and_flows_stay_together() {
    inside("every_packet_comes_by_one_lane_and_flows_stay_together", || {
        const FLOWS: u16 = 64;
        let mut sender = port("x1", 1);
        let mut receiver = port("x0", 4);
        assert!(receiver.mode.contains("among 4 sockets"), "{}", receiver.mode);
        let send = &mut sender.lanes[0].send;
        let mut sent = 0u32;
        for _ in 0..10 {
            for flow in 0..FLOWS {
                for back in [false, true] {
                    send.send(&datagram(((flow % 7) as u8, 1000 + flow), back, sent, 60), VirtioHeader::NONE);
                    sent += 1;
                }
            }
        }
        send.flush();
        assert_eq!(send.losses(), Default::default());
        let end = Instant::now() + Duration::from_secs(10);
        let mut lanes: BTreeMap<u32, usize> = BTreeMap::new();
        let mut order = BTreeMap::new();
        while (lanes.len() as u32) < sent && Instant::now() < end {
            for (index, lane) in receiver.lanes.iter_mut().enumerate() {
                let mut batch = Batch::new();
                let memory = lane.receive.receive(&mut batch, MachineClock.now());
                for frame in (0..batch.len).filter_map(|at| batch.bytes(memory, at)) {
                    let number = number(frame);
                    assert_eq!(lanes.insert(number, index), None, "{number} came twice");
                    let last = order.insert(number % u32::from(2 * FLOWS), number);
                    assert!(last < Some(number), "{number} came after {last:?}");
                }
            }
        }
        assert_eq!(lanes.len() as u32, sent, "all came");
        for (number, lane) in &lanes {
            let first = number % u32::from(2 * FLOWS) / 2 * 2;
            assert_eq!(lanes[&first], *lane, "the flow of {number}, in both directions, has one lane");
        }
        assert!(lanes.values().collect::<BTreeSet<_>>().len() > 1, "several lanes are used");
    });
}

#[test]
fn packets_of_all_lengths_come_whole_also_longer_than_the_mtu_was() {
    inside("packets_of_all_lengths_come_whole_also_longer_than_the_mtu_was", || {
        let (mut sender, mut receiver) = (port("x1", 1), port("x0", 1));
        assert!(ip(&["link", "set", "x0", "mtu", "9000"]) && ip(&["link", "set", "x1", "mtu", "9000"]));
        let lengths: Vec<usize> = (60..9014).step_by(97).chain(1500..1700).collect();
        for (number, &length) in lengths.iter().enumerate() {
            sender.lanes[0].send.send(&datagram((1, 1), false, number as u32, length), VirtioHeader::NONE);
        }
        sender.lanes[0].send.flush();
        let frames = receive(receiver.lanes[0].receive.as_mut(), lengths.len());
        assert_eq!(frames.len(), lengths.len(), "{:?}", receiver.lanes[0].receive.losses());
        for (index, (frame, &length)) in frames.iter().zip(&lengths).enumerate() {
            assert!(
                *frame == datagram((1, 1), false, index as u32, length),
                "number {index}, {length} bytes"
            );
        }
    });
}

#[test]
fn long_packets_stay_in_step_with_the_ring_while_the_interface_is_switched() {
    inside("long_packets_stay_in_step_with_the_ring_while_the_interface_is_switched", || {
        let (mut sender, mut receiver) = (port("x1", 1), port("x0", 1));
        assert!(ip(&["link", "set", "x0", "mtu", "9000"]) && ip(&["link", "set", "x1", "mtu", "9000"]));
        let mut send = |numbers: std::ops::Range<u32>| {
            for number in numbers {
                let length = if number % 3 == 0 { 100 } else { 5000 };
                sender.lanes[0].send.send(&datagram((1, 1), false, number, length), VirtioHeader::NONE);
            }
            sender.lanes[0].send.flush();
        };
        send(0..10);
        assert!(ip(&["link", "set", "x0", "down"]) && ip(&["link", "set", "x0", "up"]));
        let end = Instant::now() + Duration::from_secs(10);
        while !ip(&["link", "show", "x1", "up"]) && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(100));
        send(10..20);
        let frames = receive(receiver.lanes[0].receive.as_mut(), 20);
        let losses = receiver.lanes[0].receive.losses();
        assert_eq!(
            frames.iter().map(|frame| number(frame)).collect::<Vec<_>>(),
            (0..20).collect::<Vec<_>>(),
            "{losses:?}"
        );
        assert_eq!(losses, Default::default());
    });
}

#[test]
fn what_is_sent_into_nothing_is_counted_as_such() {
    inside("what_is_sent_into_nothing_is_counted_as_such", || {
        let mut sender = port("x1", 1);
        let send = &mut sender.lanes[0].send;
        assert!(ip(&["link", "set", "x0", "down"]));
        for length in [60, 60, 5000] {
            send.send(&datagram((1, 1), false, 0, length), VirtioHeader::NONE);
        }
        send.flush();
        let losses = send.losses();
        assert_eq!((losses.busy, losses.refused + losses.down), (0, 3), "no carrier: {losses:?}");
        assert!(losses.down >= 2, "no carrier: {losses:?}");
        assert!(ip(&["link", "set", "x1", "down"]));
        send.send(&datagram((1, 1), false, 0, 60), VirtioHeader::NONE);
        send.flush();
        assert_eq!(send.losses().down, losses.down + 1, "switched off");
    });
}

#[test]
fn an_interface_that_vanished_is_used_again_when_it_is_back() {
    inside("an_interface_that_vanished_is_used_again_when_it_is_back", || {
        let mut receiver = port("x0", 2);
        let descriptors: Vec<_> = receiver.lanes.iter().map(|lane| lane.receive.descriptor()).collect();
        let presence = receiver.presence.clone();
        for times in 1..=3u64 {
            assert!(ip(&["link", "delete", "x0"]));
            wait_for("it is missed", &|| presence.gone_since().is_some());
            let send = &mut receiver.lanes[0].send;
            send.send(&datagram((1, 1), false, 0, 60), VirtioHeader::NONE);
            send.flush();
            assert_eq!(send.losses().down, times, "{:?}", send.losses());
            assert!(cable(None));
            wait_for("it is back", &|| presence.gone_since().is_none());
            assert_eq!(presence.vanished(), times);
            let mut other = port("x1", 1);
            let numbers = 0..40u32;
            for number in numbers.clone() {
                other.lanes[0]
                    .send
                    .send(&datagram((1, number as u16), false, number, 60), VirtioHeader::NONE);
            }
            other.lanes[0].send.flush();
            let mut came = BTreeSet::new();
            let end = Instant::now() + Duration::from_secs(5);
            while came.len() < numbers.len() && Instant::now() < end {
                for lane in &mut receiver.lanes {
                    came.extend(receive_now(lane.receive.as_mut()).iter().map(|frame| number(frame)));
                }
            }
            assert_eq!(came, numbers.collect(), "what comes in");
            receiver.lanes[1].send.send(&datagram((1, 1), true, 77, 60), VirtioHeader::NONE);
            receiver.lanes[1].send.flush();
            assert_eq!(receive(other.lanes[0].receive.as_mut(), 1).len(), 1, "what leaves");
        }
        let now: Vec<_> = receiver.lanes.iter().map(|lane| lane.receive.descriptor()).collect();
        assert_eq!(now, descriptors, "whoever waits for them still does");
    });
}

fn wait_for(what: &str, there: &dyn Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !there() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_came_before_the_interface_vanished_comes_first() {
    inside("what_came_before_the_interface_vanished_comes_first", || {
        let mut receiver = port("x0", 1);
        let presence = receiver.presence.clone();
        let send = |numbers: Range<u32>| {
            let sender = &mut port("x1", 1).lanes[0].send;
            numbers.for_each(|number| sender.send(&datagram((1, 1), false, number, 60), VirtioHeader::NONE));
            sender.flush();
        };
        // More than a batch: the first does not empty the ring.
        let (before, after) = (0..700, 700..720);
        send(before);
        assert!(ip(&["link", "delete", "x0"]));
        wait_for("it is missed", &|| presence.gone_since().is_some());
        assert!(cable(None));
        wait_for("it is back", &|| presence.gone_since().is_none());
        send(after);
        let receive_half = receiver.lanes[0].receive.as_mut();
        let came: Vec<u32> = receive(receive_half, 720).iter().map(|frame| number(frame)).collect();
        assert_eq!(came, (0..720).collect::<Vec<_>>());
        assert_eq!(receive_half.losses().ring_full, 0);
    });
}

#[test]
fn that_more_waits_is_told_also_where_frames_for_others_came_between() {
    inside("that_more_waits_is_told_also_where_frames_for_others_came_between", || {
        let mut receiver =
            attach(&WantedPort { promiscuous: false, ..wanted("x0") }, 1, 1).expect("attached");
        let receive_half = receiver.lanes[0].receive.as_mut();
        let sender = &mut port("x1", 1).lanes[0].send;
        let mut send = |count: u32| {
            for number in 0..count {
                let mut frame = datagram((1, 1), false, number, 60);
                // The first is for another station of the link, the others for all.
                if number > 0 {
                    frame[..6].fill(0xff);
                }
                sender.send(&frame, VirtioHeader::NONE);
            }
            sender.flush();
        };
        send(packet::BATCH as u32 + 20);
        assert_eq!(receive_now(receive_half).len(), packet::BATCH - 1, "the first was for another");
        assert!(receive_half.has_more(), "more waits");
        // What comes while a batch is worked on waited for nothing.
        assert_eq!(receive_now(receive_half).len(), 20);
        send(3);
        assert!(!receive_half.has_more(), "the batch had all that was there");
        while !receive_now(receive_half).is_empty() {}
        assert!(!receive_half.has_more(), "nothing waits");
    });
}

fn receive_now(receiver: &mut dyn Receiver) -> Vec<Vec<u8>> {
    let mut batch = Batch::new();
    let memory = receiver.receive(&mut batch, MachineClock.now());
    (0..batch.len).filter_map(|at| batch.bytes(memory, at)).map(<[u8]>::to_vec).collect()
}

#[test]
fn what_is_no_ethernet_interface_or_too_large_is_said_or_kept_small() {
    inside("what_is_no_ethernet_interface_or_too_large_is_said_or_kept_small", || {
        assert!(ip(&["link", "set", "lo", "up"]));
        let mode = port("lo", 1).mode;
        assert!(mode.contains("frames of 9"), "not of 64 KiB: {mode}");
        if ip(&["tuntap", "add", "dev", "t0", "mode", "tun"]) {
            assert!(ip(&["link", "set", "t0", "up"]));
            let error = attach(&wanted("t0"), 1, 1).err().expect("not Ethernet").to_string();
            assert!(error.contains("t0 is not an Ethernet interface"), "{error}");
        }
        let _port = port("x0", 1);
        let output = Command::new("ip").args(["-d", "link", "show", "x0"]).output().expect("runs");
        assert!(String::from_utf8_lossy(&output.stdout).contains("promiscuity 1"), "{output:?}");
    });
}

/// Numbers of frames that come, and that were sent by another port.
fn passed(from: &mut Attached, to: &mut Attached, numbers: Range<u32>) -> Vec<u32> {
    for number in numbers.clone() {
        from.lanes[0].send.send(&datagram((1, 1), false, number, 60), VirtioHeader::NONE);
    }
    from.lanes[0].send.flush();
    receive(to.lanes[0].receive.as_mut(), numbers.len()).iter().map(|frame| number(frame)).collect()
}

#[test]
fn a_port_that_was_opened_elsewhere_is_adopted_and_goes_on_with_other_sockets() {
    inside("a_port_that_was_opened_elsewhere_is_adopted_and_goes_on_with_other_sockets", || {
        let opened = OpenedPort::open(&wanted("x0"), 1, None).expect("it is claimed");
        let taken = attach(&wanted("x0"), 1, 1).err().expect("nobody else has it").to_string();
        assert!(taken.contains("are taken by process"), "{taken}");
        let (described, descriptors) = opened.lanes(1).expect("its sockets");
        assert_eq!(descriptors.len(), 3);
        let (mut adopted, renewal) = Adopter::new(false).adopt(&described, 7, descriptors).expect("adopted");
        let mut other = port("x1", 1);
        assert_eq!(passed(&mut other, &mut adopted, 0..5), [0, 1, 2, 3, 4]);
        assert_eq!(passed(&mut adopted, &mut other, 5..8), [5, 6, 7]);
        assert!(renewal.renew(&described, Vec::new()).is_err(), "as many as lanes");
        let (again, descriptors) = opened.lanes(1).expect("others");
        renewal.renew(&again, descriptors).expect("it goes on with them");
        // What went to the old socket before the change is taken first; both got it.
        receive_now(adopted.lanes[0].receive.as_mut());
        assert_eq!(passed(&mut other, &mut adopted, 10..15), [10, 11, 12, 13, 14]);
        assert_eq!(passed(&mut adopted, &mut other, 15..18), [15, 16, 17]);
        assert!(opened.is_there());
        assert!(ip(&["link", "delete", "x0"]));
        wait_for("it to be missed", &|| !opened.is_there());
    });
}

#[test]
fn a_tap_device_that_was_made_elsewhere_is_adopted_and_missed() {
    inside("a_tap_device_that_was_made_elsewhere_is_adopted_and_missed", || {
        // No IPv6, as at the cable.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("written");
        let tap = WantedPort { kind: PortKind::Tap, ..wanted("guest") };
        let opened = OpenedPort::open(&tap, 1, None).expect("it is made");
        let (described, descriptors) = opened.lanes(1).expect("its queue");
        assert_eq!((&described.way, descriptors.len()), (&PortWay::Tap, 1));
        let (mut adopted, renewal) = Adopter::new(false).adopt(&described, 3, descriptors).expect("adopted");
        let mut host = port("guest", 1);
        assert_eq!(passed(&mut host, &mut adopted, 0..5), [0, 1, 2, 3, 4]);
        assert_eq!(passed(&mut adopted, &mut host, 5..8), [5, 6, 7]);
        assert!(renewal.renew(&described, Vec::new()).is_err());
        assert!(opened.is_there() && ip(&["link", "delete", "guest"]));
        wait_for("it to be missed", &|| !opened.is_there());
        // Whoever has no rights does not try to make it again.
        let mut batch = Batch::new();
        adopted.lanes[0].receive.receive(&mut batch, MachineClock.now());
        assert!(
            batch.is_empty()
                && adopted.presence.gone_since().is_some()
                && adopted.presence.refused().is_none()
        );
        drop((opened, host));
        let opened = OpenedPort::open(&tap, 1, None).expect("it is made again");
        let (described, descriptors) = opened.lanes(1).expect("its queue");
        renewal.renew(&described, descriptors).expect("it goes on");
        assert!(adopted.presence.gone_since().is_none(), "it is back");
        let mut host = port("guest", 1);
        assert_eq!(passed(&mut host, &mut adopted, 8..11), [8, 9, 10]);
        assert_eq!(passed(&mut adopted, &mut host, 11..13), [11, 12]);
        // The next deletion is another one.
        assert!(ip(&["link", "delete", "guest"]));
        wait_for("it to be missed", &|| !opened.is_there());
        adopted.lanes[0].receive.receive(&mut batch, MachineClock.now());
        assert!(adopted.presence.gone_since().is_some());
        assert_eq!(adopted.presence.vanished(), 2);
    });
}

#[test]
fn frames_go_over_between_processes_and_headers_are_judged() {
    let tunnel = WantedPort { kind: PortKind::Tunnel, ..wanted("peers") };
    let opened = OpenedPort::open(&tunnel, 1, None).expect("its sockets");
    let (described, of_core) = opened.lanes(1).expect("the ends of the core");
    assert_eq!((&described.way, of_core.len()), (&PortWay::Process, 1));
    let [other_end] = <[_; 1]>::try_from(opened.of_tunnel().expect("the other ends")).expect("one");
    let other_end = std::fs::File::from(other_end);
    let (mut adopted, _) = Adopter::new(false).adopt(&described, 3, of_core).expect("adopted");
    let frame = datagram((1, 1), false, 7, 60);
    let sends = |header: [u8; 10], frame: &[u8]| {
        std::io::Write::write_all(&mut &other_end, &[&header, frame].concat()).expect("sent");
    };
    let plain = [0; 10];
    // One that leaves more work than it may, one that says what the frame has not, and a message without a
    // header: none of them is a packet, and what follows is.
    sends([1, 1, 0, 0, 1, 0, 255, 255, 16, 0], &frame);
    sends([1, 0, 0, 0, 0, 0, 255, 0, 6, 0], &frame);
    std::io::Write::write_all(&mut &other_end, &[0; 3]).expect("sent");
    sends(plain, &frame);
    let came = receive(adopted.lanes[0].receive.as_mut(), 1);
    assert_eq!(came.iter().map(|frame| number(frame)).collect::<Vec<_>>(), [7]);
    assert_eq!(adopted.lanes[0].receive.losses().unreadable, 3);
    // However much of it comes, each look ends.
    (0..600).for_each(|_| sends([1, 9, 0, 0, 0, 0, 0, 0, 0, 0], &frame));
    let mut batch = Batch::new();
    for looks in 1..=3 {
        adopted.lanes[0].receive.receive(&mut batch, MachineClock.now());
        assert_eq!(adopted.lanes[0].receive.losses().unreadable, 3 + (256 * looks).min(600));
    }
    adopted.lanes[0].send.send(&frame, VirtioHeader::NONE);
    adopted.lanes[0].send.flush();
    let mut message = [0; 128];
    let length = std::io::Read::read(&mut &other_end, &mut message).expect("it came");
    assert_eq!(message[..length], [&plain[..], &frame].concat());
}

#[test]
fn what_cannot_be_handed_over_is_refused() {
    let refused =
        |wanted: WantedPort| OpenedPort::open(&wanted, 1, None).err().expect("it is refused").to_string();
    let part = refused(WantedPort { vlan: VlanPlace::Tag(5), ..wanted("lo") });
    assert!(part.contains("`vlan`"), "{part}");
    let other = refused(WantedPort { kind: PortKind::Empty, ..wanted("lo") });
    assert!(other.contains("`empty`"), "{other}");
    let without = refused(WantedPort { kind: PortKind::AfXdp, ..wanted("lo") });
    assert!(without.contains("it has no frames"), "{without}");
}
