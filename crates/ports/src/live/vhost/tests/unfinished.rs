//! Long segments and open checksums of a machine.

use super::*;

/// Bytes before the data of a segment: Ethernet, IPv4 and TCP without options.
const HEADERS: usize = 14 + 20 + 20;
const TRANSPORT: usize = 14 + 20;

/// A machine that may send what is unfinished.
fn bench(offloads: Offloads) -> Bench {
    let driver = Driver::new(1 << MEMORY);
    let rings = Rings { unfinished: true, ..rings(&driver) };
    Bench::handed(driver, &HandedOver { offloads, ..handed(Some(rings)) })
}

/// A segment of TCP whose checksum field has the sum of the pseudo header.
fn segment(data: usize) -> Vec<u8> {
    segment_at(data, 7, 1)
}

/// The same with this identification of IPv4 and this sequence number.
fn segment_at(data: usize, identification: u8, sequence: u16) -> Vec<u8> {
    let length = (HEADERS - 14 + data) as u16;
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, identification, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let header_sum = packet::checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&(!header_sum).to_be_bytes());
    frame.extend([0, 80, 0x9c, 0x40, 0, 0]);
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..data).map(|at| at as u8));
    let pseudo = [&frame[26..34], &[0, 6], &(length - 20).to_be_bytes()].concat();
    let pseudo = packet::checksum::sum(&pseudo);
    frame[TRANSPORT + 16..TRANSPORT + 18].copy_from_slice(&pseudo.to_be_bytes());
    frame
}

/// The header of a frame: its flags, its kind, how long headers and data are, and where the sum begins and
/// where its field is.
fn header(flags: u8, kind: u8, [headers, size, start, offset]: [u16; 4]) -> [u8; HEADER] {
    let [a, b] = headers.to_le_bytes();
    let [c, d] = size.to_le_bytes();
    let [e, f] = start.to_le_bytes();
    let [g, h] = offset.to_le_bytes();
    [flags, kind, a, b, c, d, e, f, g, h, 0, 0]
}

const OPEN: [u16; 4] = [0, 0, TRANSPORT as u16, 16];

fn of_segment(size: u16) -> [u8; HEADER] {
    header(1, 1, [HEADERS as u16, size, TRANSPORT as u16, 16])
}

/// Whether the checksum of TCP is right.
fn is_right(frame: &[u8]) -> bool {
    let length = (frame.len() - TRANSPORT) as u16;
    let pseudo = [&frame[26..34], &[0, 6], &length.to_be_bytes()].concat();
    packet::checksum::sum(&[&pseudo, &frame[TRANSPORT..]].concat()) == 0xffff
}

#[test]
fn a_long_segment_becomes_packets_and_an_open_checksum_is_finished() {
    let mut bench = bench(Offloads::Cut);
    let sent = segment(9_000);
    bench.driver.transmit_with(of_segment(1_460), &sent);
    bench.driver.transmit_with(header(1, 0, OPEN), &segment(100));
    let (mut packets, mut turns) = (Vec::new(), 0);
    while packets.len() < 8 && turns < 10 {
        packets.extend(bench.received());
        turns += 1;
    }
    let data: Vec<u8> = packets[..7].iter().flat_map(|packet| packet[HEADERS..].to_vec()).collect();
    assert_eq!((packets.len(), &data[..]), (8, &sent[HEADERS..]));
    assert!(packets.iter().all(|packet| packet.len() <= HEADERS + 1_460 && is_right(packet)));
    assert_eq!(bench.lanes[0].receive.losses(), ReceiveLosses::default());
}

#[test]
fn a_header_that_is_not_understood_exactly_is_refused_with_its_frame() {
    let mut bench = bench(Offloads::Cut);
    let frame = segment(3_000);
    let end = frame.len() as u16;
    let wrong = [
        ("a finished frame", header(2, 0, [0; 4])),
        ("other flags", header(3, 0, OPEN)),
        ("a segment without an open checksum", header(0, 1, [HEADERS as u16, 1_460, 0, 0])),
        ("datagrams as one", header(1, 3, [HEADERS as u16, 1_460, TRANSPORT as u16, 6])),
        ("datagrams as one, by their size", header(1, 5, [HEADERS as u16, 1_460, TRANSPORT as u16, 6])),
        ("congestion", header(1, 0x81, [HEADERS as u16, 1_460, TRANSPORT as u16, 16])),
        ("data that is too short", of_segment(7)),
        ("long headers", header(1, 1, [1_000, 1_460, VirtioHeader::MOST_HEADERS + 1, 16])),
        ("data of no segment", header(1, 0, [0, 1, TRANSPORT as u16, 16])),
        ("the field of UDP", header(1, 1, [HEADERS as u16, 1_460, TRANSPORT as u16, 6])),
        ("a field behind the frame", header(1, 0, [0, 0, end - 17, 16])),
        ("a start behind the frame", header(1, 0, [0, 0, u16::MAX, 16])),
        ("headers behind the frame", header(1, 1, [end + 1, 1_460, TRANSPORT as u16, 16])),
    ];
    for (number, (what, header)) in wrong.into_iter().enumerate() {
        bench.driver.transmit_with(header, &frame);
        assert!(bench.received().is_empty(), "{what}");
        assert_eq!(bench.lanes[0].receive.losses().unreadable, 1 + number as u64, "{what}");
        assert!(bench.driver.transmitted().is_some(), "{what}");
    }
    // The last ones that are right.
    bench.driver.transmit_with(of_segment(8), &frame);
    assert!(!bench.received().is_empty());
    while !bench.received().is_empty() {}
    bench.driver.transmit_with(header(1, 0, [0, 0, end - 18, 16]), &frame);
    assert_eq!(bench.received().len(), 1);
}

#[test]
fn a_checksum_that_the_frame_has_no_room_for_is_a_lost_frame() {
    let mut bench = bench(Offloads::Cut);
    // That of SCTP has four bytes, of which the frame has three.
    let mut frame = segment(100);
    frame[23] = 132;
    frame.truncate(TRANSPORT + 8 + 3);
    bench.driver.transmit_with(header(1, 0, [0, 0, TRANSPORT as u16, 8]), &frame);
    assert!(bench.received().is_empty());
    assert_eq!(bench.lanes[0].receive.losses().unreadable, 1);
}

#[test]
fn what_the_machine_receives_is_finished_and_not_joined() {
    let mut bench = bench(Offloads::Cut);
    // The second one follows the first one, so that a port that takes segments would get one.
    let sent = [segment(1_000), segment_at(1_000, 8, 1_001)].map(|mut frame| {
        let open =
            VirtioHeader::judged(header(1, 0, OPEN).first_chunk().expect("ten bytes"), frame.len(), false);
        assert!(open.expect("it is right").complete(&mut frame));
        frame
    });
    for frame in &sent {
        bench.driver.supply(1, 1_600, 0);
        bench.lanes[0].send.send(frame, VirtioHeader::NONE);
    }
    bench.lanes[0].send.flush();
    let received: Vec<_> = std::iter::from_fn(|| bench.driver.received()).collect();
    assert_eq!(received, sent);
    assert_eq!(bench.lanes[0].send.losses(), SendLosses::default());
}

#[test]
fn what_was_not_agreed_on_is_refused() {
    // By the driver, or by what the port does.
    for mut bench in [Bench::new(), bench(Offloads::Off)] {
        bench.driver.transmit_with(header(1, 0, OPEN), &segment(100));
        assert!(bench.received().is_empty());
        assert_eq!(bench.lanes[0].receive.losses().unreadable, 1);
    }
}
