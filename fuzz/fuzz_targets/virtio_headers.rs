//! Any virtio header with any frame is finished, cut and joined again, or refused: nothing else of the frame
//! is touched, and what is joined is cut into the same packets again.
#![no_main]

use guard::{Guard, OwnAddresses};
use libfuzzer_sys::fuzz_target;
use packet::VirtioHeader;
use packet::segment::{Joined, Segments};

/// Where a frame begins that hosts send: Ethernet, IPv4 or IPv6 and TCP, UDP or SCTP, without or with a VLAN
/// tag. The lengths of IP and UDP are those of a frame of `length` bytes.
fn headers(kind: u8, length: usize) -> Vec<u8> {
    let (six, tagged, protocol) = (kind & 1 != 0, kind & 2 != 0, [6, 17, 132, 6][usize::from(kind >> 2 & 3)]);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if tagged {
        frame.extend([0x81, 0, 0, 7]);
    }
    let ip = frame.len() + 2;
    let of = |begin: usize| (length.saturating_sub(begin) as u16).to_be_bytes();
    if six {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(of(ip + 40));
        frame.extend([protocol, 64]);
        frame.extend([0xfd; 32]);
    } else {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(of(ip));
        frame.extend([0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let transport = frame.len();
    frame.extend([0, 80, 0, 90]);
    match protocol {
        17 => frame.extend(of(transport).into_iter().chain([1, 1])),
        _ => frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 2, 0, 1, 1, 0, 0]),
    }
    frame
}

/// The sum of big-endian pairs in ones' complement (RFC 1071), a pair at a time.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Says that two frames differ in no byte but these.
fn differ_at_most(one: &[u8], other: &[u8], begin: usize, count: usize) {
    assert_eq!(one.len(), other.len());
    for (at, (a, b)) in one.iter().zip(other).enumerate() {
        assert!(a == b || (begin..begin + count).contains(&at), "byte {at}");
    }
}

fn pieces(frame: &[u8], virtio: &VirtioHeader) -> Option<Vec<Vec<u8>>> {
    let segments = Segments::of(frame, virtio)?;
    let mut pieces = Vec::new();
    for index in 0..segments.count() {
        let mut piece = vec![0; segments.length(index)];
        segments.write(frame, index, &mut piece);
        pieces.push(piece);
    }
    assert_eq!(segments.wire_bytes(), pieces.iter().map(|piece| piece.len() as u64).sum());
    Some(pieces)
}

fuzz_target!(|data: &[u8]| {
    let Some(([kind, longer, more], rest)) = data.split_first_chunk() else { return };
    let Some((header, changes)) = rest.split_first_chunk() else { return };
    let virtio = VirtioHeader::read(header);
    assert_eq!(VirtioHeader::read(&virtio.write()), virtio);
    let length = usize::from(u16::from_be_bytes([*longer, *more])) % 9_000;
    let mut frame = headers(*kind, length);
    frame.resize(length, 0);
    frame.iter_mut().zip(changes).for_each(|(byte, change)| *byte ^= change);

    let (start, offset) = virtio.open_sum().map_or((0, 0), |(start, offset)| (start.into(), offset.into()));
    let field = start + offset;
    let judged = [false, true].map(|all_kinds| VirtioHeader::judged(header, frame.len(), all_kinds));
    assert!(judged[0].is_none() || judged[0] == judged[1], "more kinds refuse no more");
    if let Some(judged) = judged[1] {
        assert_eq!(judged, virtio);
        assert!(judged.is_open() && field + 2 <= frame.len(), "it is taken as it is");
    }
    let mut finished = frame.clone();
    if virtio.complete(&mut finished) {
        // SCTP's checksum has four bytes, and is no sum.
        differ_at_most(&frame, &finished, field, 4);
        if virtio.is_open() && finished[field + 2..] == frame[field + 2..] && offset % 2 == 0 && offset != 8 {
            let begun = u16::from_be_bytes([frame[field], frame[field + 1]]);
            let all = u32::from(sum(&finished[start..])) + u32::from(begun);
            assert_eq!(all % 0xffff, 0, "sum and field make nothing");
        }
    } else {
        assert_eq!(finished, frame, "refused, and written");
    }
    let mut restarted = frame.clone();
    if virtio.restart(&mut restarted) {
        differ_at_most(&frame, &restarted, field, 2);
    } else {
        assert_eq!(restarted, frame, "refused, and written");
    }
    let _ = (virtio.open_class(&frame), virtio.wire_bytes(&frame), virtio.moved(4), virtio.moved(-4));
    assert_eq!(VirtioHeader::unmarked(&frame).write()[1], 0, "a frame alone says nothing of segments");

    let own = OwnAddresses {
        ethernet: [2, 0, 0, 0, 0, 2],
        ipv4: vec![[10, 0, 0, 1].into()],
        ipv6: vec![[0xfd; 16].into()],
        mtu: 1500,
        advertises: kind & 0x80 != 0,
        dhcp_client: kind & 0x40 != 0,
    };
    let guard = Guard::new(own);
    let _ = guard.judge(&frame);
    let Some(cut) = pieces(&frame, &virtio) else { return };
    cut.iter().for_each(|piece| {
        let _ = guard.judge(piece);
    });
    let mut joined = Joined::default();
    if joined.begin(&cut[0], VirtioHeader::NONE) {
        let more = cut[1..].iter().take_while(|piece| joined.join(piece, VirtioHeader::NONE)).count();
        assert_eq!(joined.count(), more + 1);
        let (bytes, left) = joined.finish().expect("a segment was begun");
        let again = if more == 0 { vec![bytes.to_vec()] } else { pieces(bytes, &left).expect("it is cut") };
        assert_eq!(again, cut[..=more]);
    }
});
