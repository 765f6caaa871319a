//! Ports of the kind tunnel, by the loopback interface.

mod tunnel_ends;

use packet::{Batch, VirtioHeader};
use ports::live::Lane;
use ports::live::clock::{Clock, MachineClock};
use std::time::{Duration, Instant};
use tunnel::{OWN_NUMBER, peer_mac};
use tunnel_ends::{ends, ends_with, frame, meet, receive};

/// Receives until so many packets have come, or none come any more.
fn received(lane: &mut Lane, batch: &mut Batch, wanted: usize) -> usize {
    let (mut came, end) = (0, Instant::now() + Duration::from_secs(10));
    while came < wanted && Instant::now() < end {
        came += receive(lane, batch);
    }
    came
}

/// More than leave in one message, of several lengths, from every lane.
#[test]
fn packets_arrive_in_order_with_the_peer_as_their_source() {
    let directory = tempfile::tempdir().expect("a directory");
    let [mut one, mut other] = ends(directory.path(), 2);
    assert_eq!((one.lanes.len(), other.lanes.len()), (2, 2));
    meet(&mut one.lanes[0], &mut other.lanes[0]);
    let lengths: Vec<u16> = (0..300).map(|number| 20 + (number / 40) * 200).collect();
    for lane in &mut one.lanes {
        for (number, length) in lengths.iter().enumerate() {
            let mut packet = frame(*length);
            packet[14 + 4..14 + 6].copy_from_slice(&(number as u16).to_be_bytes());
            lane.send.send(&packet, VirtioHeader::NONE);
        }
        lane.send.flush();
        let (mut batch, mut seen) = (Batch::new(), 0);
        let end = Instant::now() + Duration::from_secs(10);
        while seen < lengths.len() && Instant::now() < end {
            let receiver = &mut other.lanes[0].receive;
            let memory = receiver.receive(&mut batch, MachineClock.now());
            for index in 0..batch.len {
                let frame = batch.bytes(memory, index).expect("is there");
                assert_eq!(frame.len(), 14 + usize::from(lengths[seen]));
                assert_eq!((&frame[..6], &frame[6..12]), (&peer_mac(OWN_NUMBER)[..], &peer_mac(1)[..]));
                assert_eq!(frame[12..14], [8, 0]);
                assert_eq!(usize::from(u16::from_be_bytes([frame[18], frame[19]])), seen);
                seen += 1;
            }
        }
        assert_eq!(seen, lengths.len());
        assert_eq!(receive(&mut other.lanes[1], &mut batch), 0, "the first lane receives");
    }
    let sent = one.tunnel.expect("a tunnel").view().peers[0].clone();
    let came = other.tunnel.expect("a tunnel").view().peers[0].clone();
    assert_eq!((sent.sent, sent.sent_bytes), (came.received, came.received_bytes));
}

#[test]
fn a_port_says_whether_more_wait_than_it_takes_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other] = ends(directory.path(), 1);
    let mut lanes = [one, other].map(|end| end.lanes.into_iter().next().expect("a lane"));
    let [one, other] = &mut lanes;
    meet(one, other);
    let (mut batch, end) = (Batch::new(), Instant::now() + Duration::from_secs(10));
    // Linux may hand over what was sent a part at a time.
    while !other.receive.has_more() {
        assert!(Instant::now() < end, "never more than it takes");
        (0..300).for_each(|_| one.send.send(&frame(64), VirtioHeader::NONE));
        one.send.flush();
        receive(other, &mut batch);
    }
    while receive(other, &mut batch) > 0 {}
    assert!(!other.receive.has_more());
}

#[test]
fn packets_ask_for_no_memory_once_there_is_a_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other] = ends(directory.path(), 1);
    let mut lanes = [one, other].map(|end| end.lanes.into_iter().next().expect("a lane"));
    let [one, other] = &mut lanes;
    meet(one, other);
    let (packets, mut batch) = ([frame(64), frame(1_420)], Batch::new());
    let mut exchange = || {
        let mut came = 0;
        for packet in &packets {
            (0..100).for_each(|_| one.send.send(packet, VirtioHeader::NONE));
            one.send.send(&packet[..20], VirtioHeader::NONE);
            one.send.flush();
            came += received(other, &mut batch, 100);
        }
        came
    };
    assert_eq!(exchange(), 200);
    let mut came = 0;
    let asked = allocation_counter::measure(|| came = exchange());
    assert_eq!((came, asked.count_total), (200, 0));
}

/// Control messages wait for who takes them, so many and no more.
#[test]
fn control_messages_reach_who_takes_them_within_their_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let [mut one, mut other] = ends(directory.path(), 1);
    meet(&mut one.lanes[0], &mut other.lanes[0]);
    let (from, to) = (one.tunnel.expect("a tunnel"), other.tunnel.expect("a tunnel"));
    let (lane, mut batch) = (&mut other.lanes[0], Batch::new());
    let mut lost = |wanted: u64| {
        let end = Instant::now() + Duration::from_secs(10);
        while to.view().control_lost < wanted && Instant::now() < end {
            assert_eq!(receive(lane, &mut batch), 0, "no packet");
        }
        to.view().control_lost
    };
    from.send(1, b"nobody").expect("sent");
    assert_eq!(lost(1), 1);
    let messages = to.messages().expect("nobody takes them yet");
    assert!(to.messages().is_none());
    for number in 0..300_u16 {
        from.send(1, &number.to_be_bytes()).expect("sent");
    }
    assert_eq!(lost(45), 45, "256 of 300 wait, beside the first");
    let taken: Vec<_> = std::iter::from_fn(|| messages.next(Duration::ZERO)).collect();
    assert_eq!(taken.len(), 256);
    assert_eq!((&taken[0], &taken[255]), (&(1, vec![0, 0]), &(1, vec![0, 255])));
    assert!(from.send(2, b"nobody").is_err());
}

#[test]
fn a_peer_for_control_alone_exchanges_messages_and_no_packets() {
    let directory = tempfile::tempdir().expect("a directory");
    let [mut one, mut other] = ends_with(directory.path(), 1, [true, false]);
    let (from, to) = (one.tunnel.expect("a tunnel"), other.tunnel.expect("a tunnel"));
    let messages = to.messages().expect("nobody takes them yet");
    let (lane, back, mut batch) = (&mut other.lanes[0], &mut one.lanes[0], Batch::new());
    let end = Instant::now() + Duration::from_secs(60);
    let dropped = || to.view().drops.get("control_only").copied().unwrap_or(0);
    while dropped() < 3 {
        back.send.send(&frame(64), VirtioHeader::NONE);
        back.send.flush();
        assert_eq!(receive(lane, &mut batch), 0, "a packet came");
        receive(back, &mut batch);
        assert!(Instant::now() < end, "no packet was dropped: {:?}", to.view());
    }
    from.send(1, b"said").expect("there is a session");
    let said = loop {
        assert_eq!(receive(lane, &mut batch), 0, "a packet came");
        match messages.next(Duration::from_millis(1)) {
            Some(said) => break said,
            None => assert!(Instant::now() < end, "no message"),
        }
    };
    assert_eq!(said, (1, b"said".to_vec()));
    lane.send.send(&frame(64), VirtioHeader::NONE);
    lane.send.flush();
    assert_eq!(to.view().refusals.get("control_only"), Some(&1));
    assert_eq!(to.view().peers[0].sent, 0);
}
