//! Changes of size, judged by another library: what goes in reads as it should, what goes in and out again is
//! what it was, fragments put together are the packet.

use engine::{Ledger, PacketBench};
use etherparse::defrag::IpDefragPool;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use exec::{BackendKind, Outputs, load};
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, Frames, Verdict};
use suite::random::SuiteRandom;

fn program(text: &str) -> Program {
    let compiled = compile("case.rav", text, &|_| None, &CompileOptions::default());
    assert_eq!(compiled.diagnostics, [], "{text}");
    compiled.program.expect("it compiles")
}

const TUNNEL_IN: &str = "
    import std.net.{ethernet, ipv4, udp, vxlan}
    start decoder frame(eth: ethernet) {
        encapsulate {
            ethernet(dst 02:00:00:00:00:02, src 02:00:00:00:00:01)
            / ipv4(src 192.0.2.1, dst 192.0.2.2, ttl 64, id eth.type)
            / udp(src 50000) / vxlan(vni 4711)
        }
        send 2
    }";

const TUNNEL_OUT: &str = "
    import std.net.{ethernet, ipv4, udp, vxlan}
    start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => drop other } }
    decoder packet(ip: ipv4) {
        if ip.frag != 0 { drop other }
        match ip.proto { 17 => datagram, else => drop other }
    }
    decoder datagram(u: udp) { match u.dst { 4789 => tunnel, else => drop other } }
    decoder tunnel(v: vxlan) { if v.vni == 4711 { goto inside } drop other }
    decoder inside(inner: ethernet) { decapsulate to inner  send 1 }";

const TAGS: &str = "
    import std.net.{ethernet, vlan}
    start decoder frame(eth: ethernet) {
        if in_port == 1 { push vlan(id 7, priority 5) after eth  send 2 }
        goto tag
    }
    decoder tag(t: vlan) { set eth.type = t.type  pop t  send 1 }";

const FRAGMENTS: &str = "
    import std.net.{ethernet, ipv4}
    start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => drop other } }
    decoder packet(ip: ipv4) {
        match in_port { 1 => small, 3 => middle, else => large }
    }
    stage small() { fragment ip to 68  send 2 }
    stage middle() { fragment ip to 576  send 2 }
    stage large() { fragment ip to 1500  send 2 }";

/// A frame of random bytes with a header of Ethernet.
fn frame(random: &mut SuiteRandom) -> Vec<u8> {
    let length = 14 + random.below(1_600) as usize;
    (0..length).map(|_| random.below(256) as u8).collect()
}

/// What leaves, which must be by this port.
fn left(bench: &mut PacketBench<'_>, port: u16, bytes: &[u8], out: u16) -> Vec<Vec<u8>> {
    let outcome = bench.packet(port, bytes, 0);
    assert_eq!(outcome.verdict, Some(Verdict::send(out)), "{bytes:02x?}");
    assert!(outcome.left.iter().all(|(port, _)| *port == out));
    outcome.left.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn into_a_tunnel_and_out_again_nothing_has_changed() {
    let (inward, outward) = (program(TUNNEL_IN), program(TUNNEL_OUT));
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(11);
        let mut inward = PacketBench::new(&inward, back_end, 3, 0).expect("it loads");
        let mut outward = PacketBench::new(&outward, back_end, 3, 0).expect("it loads");
        for _ in 0..400 {
            let frame = frame(&mut random);
            let carried = left(&mut inward, 1, &frame, 2);
            let [carried] = &carried[..] else { panic!("one packet leaves") };
            let sliced = SlicedPacket::from_ethernet(carried).expect("it is well formed");
            let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4 outside") };
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            assert_eq!(usize::from(header.total_len), carried.len() - 14);
            assert_eq!(header.identification, u16::from_be_bytes([frame[12], frame[13]]));
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("UDP outside") };
            assert_eq!((udp.destination_port(), usize::from(udp.length())), (4789, carried.len() - 34));
            let sum = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).expect("not too long");
            assert_eq!(udp.checksum(), sum);
            assert_eq!(udp.payload()[8..], frame, "the frame lies behind the VXLAN header as it was");
            assert_eq!(left(&mut outward, 2, carried, 1), [frame]);
        }
    }
}

#[test]
fn a_tag_goes_in_and_out() {
    let tags = program(TAGS);
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(12);
        let mut bench = PacketBench::new(&tags, back_end, 3, 0).expect("it loads");
        for _ in 0..400 {
            let mut frame = frame(&mut random);
            frame[12..14].copy_from_slice(&[0x08, 0x06]);
            let tagged = left(&mut bench, 1, &frame, 2);
            let sliced = etherparse::LaxSlicedPacket::from_ethernet(&tagged[0]).expect("it is well formed");
            let tag = sliced.vlan_ids().first().copied().expect("it is tagged");
            assert_eq!((tag.value(), sliced.vlan_ids().len()), (7, 1));
            assert_eq!(left(&mut bench, 2, &tagged[0], 1), [frame]);
        }
    }
}

#[test]
fn fragments_put_together_are_the_packet() {
    let fragments = program(FRAGMENTS);
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(13);
        let mut bench = PacketBench::new(&fragments, back_end, 3, 0).expect("it loads");
        let mut pool: IpDefragPool<(), ()> = IpDefragPool::new();
        let mut cut = 0;
        for id in 0..600_u16 {
            let port = 1 + random.below(3) as u16;
            let mtu = [68, 1_500, 576][usize::from(port) - 1];
            let data: Vec<u8> = (0..random.below(4_000)).map(|_| random.below(256) as u8).collect();
            let options = [1_u8, 0x88, 4, 1, 2, 0, 0, 0];
            let options = &options[..4 * random.below(3) as usize];
            let mut header = etherparse::Ipv4Header::new(
                data.len() as u16,
                9,
                etherparse::IpNumber(253),
                [10, 0, 0, 1],
                [10, 0, 0, 2],
            )
            .expect("not too long");
            header.identification = id;
            header.dont_fragment = false;
            header.options = options.try_into().expect("whole words");
            header.set_payload_len(data.len()).expect("not too long");
            header.header_checksum = header.calc_header_checksum();
            let mut whole = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
            header.write(&mut whole).expect("memory");
            whole.extend(&data);
            let pieces = left(&mut bench, port, &whole, 2);
            if whole.len() - 14 <= mtu {
                assert_eq!(pieces, [whole]);
                continue;
            }
            cut += 1;
            let mut together = None;
            for (index, piece) in pieces.iter().enumerate() {
                assert!(piece.len() - 14 <= mtu, "a piece of {} bytes", piece.len() - 14);
                assert_eq!(piece[..14], whole[..14]);
                let sliced = SlicedPacket::from_ethernet(piece).expect("it is well formed");
                let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
                let header = ip.header().to_header();
                assert_eq!(header.calc_header_checksum(), header.header_checksum);
                let done = pool.process_sliced_packet(&sliced, (), ()).expect("fragments fit");
                assert_eq!(done.is_some(), index + 1 == pieces.len(), "only the last completes it");
                together = done;
            }
            assert_eq!(together.expect("complete").payload, data);
        }
        assert!(cut > 200, "{cut} were cut");
    }
}

#[test]
fn lengths_count_what_was_not_captured() {
    let (inward, fragments) = (program(TUNNEL_IN), program(FRAGMENTS));
    for back_end in BackendKind::ALL {
        let mut bytes = vec![0; 60];
        bytes[12..18].copy_from_slice(&[8, 0, 0x45, 0, (1_986_u16 >> 8) as u8, (1_986 & 0xff) as u8]);
        let mut frames = Frames::with_headroom();
        frames.push(&bytes, 2_000, 0);
        let run = |program: &Program, frames: &mut Frames| {
            let mut backend = load(program, back_end, 3, 0).expect("it loads");
            let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
            frames.fill(&mut batch, 0..1);
            batch.port[0] = 3;
            backend.run(frames.memory_mut(), &mut batch, &mut outputs);
            let mut ledger = Ledger::new(program, 3);
            ledger.commit(frames.memory(), &mut batch, &outputs);
            let left = engine::pieces::leaving(frames.memory(), &batch, &outputs, 0);
            (ledger, left)
        };
        let (ledger, left) = run(&inward, &mut frames.clone());
        let [(carried, wire)] = &left[..] else { panic!("one packet leaves") };
        assert_eq!((carried.len(), *wire), (110, 2_050));
        assert_eq!(carried[16..18], 2_036_u16.to_be_bytes(), "the total length of the whole");
        assert_eq!(carried[38..40], 2_016_u16.to_be_bytes(), "and the length in UDP");
        assert_eq!(carried[40..42], [0, 0], "no checksum over what nobody saw");
        assert_eq!((ledger.received().bytes, ledger.transmitted_by(2).bytes), (2_000, 2_050));
        let (ledger, left) = run(&fragments, &mut frames.clone());
        let sizes: Vec<(usize, u32)> = left.iter().map(|(bytes, wire)| (bytes.len(), *wire)).collect();
        assert_eq!(sizes, [(60, 586), (34, 586), (34, 586), (34, 344)]);
        assert_eq!((ledger.forwarded().packets, ledger.received().packets), (1, 1));
        assert_eq!(ledger.transmitted_by(2), engine::Volume { packets: 4, bytes: 586 * 3 + 344 });
    }
}
