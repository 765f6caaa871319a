//! What is cut is what a host would have sent packet by packet, and joining gives it back.

use super::*;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// How a segment is made.
#[derive(Clone, Debug)]
struct Made {
    six: bool,
    tagged: bool,
    tcp: bool,
    options: bool,
    flags: u8,
    sequence: u32,
    data: Vec<u8>,
    size: u16,
}

impl Made {
    fn frame(&self, sequence: u32, data: &[u8], flags: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        let link = PacketBuilder::ethernet2(FROM, TO);
        let vlan = etherparse::VlanHeader::Single(Default::default());
        macro_rules! transport {
            ($ip:expr) => {{
                if self.tcp {
                    let mut tcp = etherparse::TcpHeader::new(80, 4000, sequence, 500);
                    tcp.acknowledgment_number = 77;
                    (tcp.ack, tcp.psh, tcp.fin, tcp.cwr) =
                        (true, flags & PSH != 0, flags & FIN != 0, flags & CWR != 0);
                    if self.options {
                        tcp.set_options(&[etherparse::TcpOptionElement::Timestamp(5, 6)]).expect("fits");
                    }
                    $ip.tcp_header(tcp).write(&mut frame, data)
                } else {
                    $ip.udp(53, 4000).write(&mut frame, data)
                }
            }};
        }
        let written = match (self.tagged, self.six) {
            (false, false) => transport!(link.ipv4([10, 0, 0, 1], [10, 9, 0, 2], 9)),
            (false, true) => transport!(link.ipv6([1; 16], [2; 16], 9)),
            (true, false) => transport!(link.vlan(vlan).ipv4([10, 0, 0, 1], [10, 9, 0, 2], 9)),
            (true, true) => transport!(link.vlan(vlan).ipv6([1; 16], [2; 16], 9)),
        };
        written.expect("fits");
        frame
    }

    /// The long segment, and what its sender says of it.
    fn segment(&self) -> (Vec<u8>, VirtioHeader) {
        let frame = self.frame(self.sequence, &self.data, self.flags);
        let ip = if self.tagged { 18 } else { 14 };
        let transport = ip + if self.six { 40 } else { 20 };
        let kind = match (self.tcp, self.six) {
            (true, false) => 1,
            (true, true) => 4,
            (false, _) => 5,
        };
        let mut header = [0; VirtioHeader::LEN];
        (header[0], header[1]) = (1, kind);
        header[4..6].copy_from_slice(&self.size.to_ne_bytes());
        header[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
        header[8] = if self.tcp { 16 } else { 6 };
        (frame, VirtioHeader::read(&header))
    }

    /// The packets that a host without offloads sends, made one by one by another builder.
    fn packets(&self) -> Vec<Vec<u8>> {
        let ip = if self.tagged { 18 } else { 14 };
        let chunks: Vec<_> = self.data.chunks(usize::from(self.size)).collect();
        let one = |(index, data): (usize, &&[u8])| {
            let mut flags = self.flags;
            if index + 1 < chunks.len() {
                flags &= !(FIN | PSH);
            }
            if index > 0 {
                flags &= !CWR;
            }
            let sequence = self.sequence.wrapping_add((index * usize::from(self.size)) as u32);
            let mut frame = self.frame(sequence, data, flags);
            if !self.six {
                // The builder gives every packet the identification 0.
                put(&mut frame, ip + 4, index as u16);
                put(&mut frame, ip + 10, 0);
                let right = !sum(&frame[ip..ip + 20]);
                put(&mut frame, ip + 10, right);
            }
            frame
        };
        chunks.iter().enumerate().map(one).collect()
    }
}

fn cut(frame: &[u8], virtio: &VirtioHeader) -> Option<Vec<Vec<u8>>> {
    let segments = Segments::of(frame, virtio)?;
    let piece = |index| {
        let mut piece = vec![0xee; segments.length(index)];
        segments.write(frame, index, &mut piece);
        piece
    };
    Some((0..segments.count()).map(piece).collect())
}

fn made() -> impl Strategy<Value = Made> {
    let shape = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let flags = prop_oneof![Just(0), Just(PSH), Just(FIN), Just(CWR), Just(PSH | CWR)];
    (shape, flags, any::<u32>(), 1usize..20_000, 1u16..2_000).prop_map(
        |((six, tagged, tcp, options), flags, sequence, length, size)| Made {
            six,
            tagged,
            tcp,
            options,
            flags,
            sequence,
            data: (0..length).map(|index| (index * 7 % 253) as u8).collect(),
            size: size.max(if tcp { LEAST_TCP } else { length.div_ceil(MOST_UDP) } as u16),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cut_as_a_host_would_have_sent_it(made in made()) {
        let (frame, virtio) = made.segment();
        let pieces = cut(&frame, &virtio).expect("can be cut");
        let packets = made.packets();
        prop_assert_eq!(pieces.len(), packets.len());
        for (piece, packet) in pieces.iter().zip(&packets) {
            prop_assert_eq!(piece, packet);
        }
    }

    #[test]
    fn joined_again_it_is_what_was_cut(made in made()) {
        let made = Made { tcp: true, flags: made.flags & PSH, size: made.size.max(WORTHWHILE as u16), ..made };
        let (frame, _) = made.segment();
        let packets = made.packets();
        let mut joined = Joined::default();
        if made.data.len() < WORTHWHILE || packets.len() == 1 && made.flags & PSH != 0 {
            prop_assert!(!joined.begin(&packets[0], VirtioHeader::NONE));
            return Ok(());
        }
        prop_assert!(joined.begin(&packets[0], VirtioHeader::NONE));
        for packet in &packets[1..] {
            prop_assert!(joined.join(packet, VirtioHeader::NONE));
        }
        let (whole, virtio) = joined.finish().expect("was begun");
        let mut finished = whole.to_vec();
        prop_assert!(virtio.complete(&mut finished));
        prop_assert_eq!(&finished, &frame);
        if packets.len() > 1 {
            prop_assert_eq!(cut(whole, &virtio), Some(packets));
        }
    }

    /// Whatever is joined, cutting the result gives the packets back.
    #[test]
    fn what_differs_is_not_joined(made in made(), index in any::<prop::sample::Index>(), bit in 0u8..8, which in any::<prop::sample::Index>()) {
        let made = Made { tcp: true, flags: 0, size: made.size.clamp(WORTHWHILE as u16, 1_400), ..made };
        let mut packets = made.packets();
        let packet = which.index(packets.len());
        let at = index.index(packets[packet].len());
        packets[packet][at] ^= 1 << bit;
        let mut joined = Joined::default();
        let mut given = Vec::new();
        let mut groups: Vec<Vec<Vec<u8>>> = Vec::new();
        for packet in &packets {
            if joined.join(packet, VirtioHeader::NONE) {
                given.push(packet.clone());
                continue;
            }
            if let Some((whole, virtio)) = joined.finish() {
                groups.push(cut(whole, &virtio).unwrap_or_else(|| vec![whole.to_vec()]));
            }
            if joined.begin(packet, VirtioHeader::NONE) {
                given.push(packet.clone());
            } else {
                given.push(packet.clone());
                groups.push(vec![packet.clone()]);
            }
        }
        if let Some((whole, virtio)) = joined.finish() {
            groups.push(cut(whole, &virtio).unwrap_or_else(|| vec![whole.to_vec()]));
        }
        let out: Vec<_> = groups.concat();
        prop_assert_eq!(&out, &packets);
        prop_assert_eq!(given.len(), packets.len());
    }

    /// No bytes make it panic, and a piece never has more than the frame.
    #[test]
    fn any_bytes(frame in proptest::collection::vec(any::<u8>(), 0..200), header in any::<[u8; 10]>(), made in made(), cut_at in any::<prop::sample::Index>()) {
        let mut joined = Joined::default();
        for frame in [frame, made.segment().0] {
            let frame = &frame[..cut_at.index(frame.len() + 1)];
            for virtio in [VirtioHeader::read(&header), made.segment().1] {
                for piece in cut(frame, &virtio).into_iter().flatten() {
                    prop_assert!(piece.len() <= frame.len());
                }
            }
            joined.join(frame, VirtioHeader::NONE);
            joined.begin(frame, VirtioHeader::NONE);
        }
    }
}

/// A guest may say of a datagram that it is to be cut although its IP header cannot be one.
#[test]
fn a_header_of_ip_that_is_too_short_is_none() {
    let mut frame = vec![0; 14 + 40];
    frame[12] = 8;
    (frame[17], frame[23]) = (40, UDP);
    for words in 0..=5u8 {
        frame[14] = 0x40 | words;
        let transport = 14 + 4 * u16::from(words);
        let mut header = [1, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        header[4..6].copy_from_slice(&1u16.to_ne_bytes());
        header[6..8].copy_from_slice(&transport.to_ne_bytes());
        header[8..10].copy_from_slice(&6u16.to_ne_bytes());
        assert_eq!(
            cut(&frame, &VirtioHeader::read(&header)).map(|pieces| pieces.len()),
            (words == 5).then_some(12)
        );
    }
}

#[test]
fn pieces_are_what_another_reader_takes_for_right() {
    let data: Vec<u8> = (0..5000u32).map(|index| index as u8).collect();
    let made = Made {
        six: false,
        tagged: true,
        tcp: true,
        options: true,
        flags: FIN | PSH,
        sequence: u32::MAX - 9,
        data,
        size: 1448,
    };
    let (frame, virtio) = made.segment();
    let pieces = cut(&frame, &virtio).expect("can be cut");
    assert_eq!(pieces.len(), 4);
    let mut payload = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let sliced = SlicedPacket::from_ethernet(piece).expect("whole");
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport)
        else {
            panic!("{piece:?}")
        };
        assert_eq!(
            Ok(tcp.checksum()),
            tcp.to_header().calc_checksum_ipv4(&ip.header().to_header(), tcp.payload())
        );
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        assert_eq!((tcp.fin(), tcp.psh()), (index == 3, index == 3));
        payload.extend_from_slice(tcp.payload());
    }
    assert_eq!(payload, made.data);
}

#[test]
fn what_cannot_be_cut_is_left() {
    let made = Made {
        six: false,
        tagged: false,
        tcp: true,
        options: false,
        flags: 0,
        sequence: 1,
        data: vec![1; 3000],
        size: 1000,
    };
    let (frame, virtio) = made.segment();
    assert!(Segments::of(&frame, &VirtioHeader::NONE).is_none(), "nothing is to be cut");
    for (at, value) in [(1, 3), (1, 9), (4, 0), (6, 35)] {
        let mut header = virtio.write();
        header[at] = value;
        if at == 4 {
            header[5] = 0;
        }
        assert!(Segments::of(&frame, &VirtioHeader::read(&header)).is_none(), "{header:?}");
    }
    for length in 0..54 {
        assert!(Segments::of(&frame[..length], &virtio).is_none(), "{length}");
    }
}

#[test]
fn what_would_become_more_packets_than_any_kernel_makes_is_left() {
    for (tcp, least) in [(true, LEAST_TCP), (false, 60_000usize.div_ceil(MOST_UDP))] {
        for (six, size) in [false, true].into_iter().flat_map(|six| (1..1500).map(move |size| (six, size))) {
            let made = Made {
                six,
                tagged: false,
                tcp,
                options: false,
                flags: 0,
                sequence: 1,
                data: vec![1; 60_000],
                size: size as u16,
            };
            let (frame, virtio) = made.segment();
            assert_eq!(Segments::of(&frame, &virtio).is_some(), size >= least, "{tcp} {size}");
        }
    }
}
