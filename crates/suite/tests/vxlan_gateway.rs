//! The program `vxlan_gateway`: two of them with frames that go from one to the other, judged by a twin of
//! what they learn, by another library, and by tshark where it is installed.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/`; without it, frames are made.

use captures::Capture;
use captures::write::PcapWriter;
use engine::PacketBench;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use exec::BackendKind;
use ir::Program;
use lang::pipeline::Decode;
use packet::LinkType;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;
use suite::corpus::{compile_file, root};
use suite::random::SuiteRandom;

const LOCAL: u16 = 1;
const REMOTE: u16 = 2;

/// Tag of VLAN 10, whose network is 5010.
const TAG: [u8; 4] = [0x81, 0, 0, 10];
const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0x13, 0x92, 0];

const OTHER: [u8; 4] = [192, 0, 2, 3];

fn program() -> Program {
    let path = root().join("programs/vxlan_gateway.rav");
    compile_file(&path, Decode::Lazy).expect("it can be read").program.expect("it compiles")
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &TAG, &frame[12..]].concat()
}

type Address = [u8; 6];

fn address(bytes: &[u8]) -> Address {
    bytes[..6].try_into().expect("six bytes")
}

/// Two gateways, `sides[0]` and `sides[1]`, with what each should know: true for an address behind the other
/// one.
struct Judge<'a> {
    sides: [(PacketBench<'a>, HashMap<Address, bool>); 2],
    /// Source port by inner addresses and type.
    sources: BTreeMap<Vec<u8>, u16>,
    /// Packets between the gateways with the frames that they hold.
    carried: Vec<(Vec<u8>, Vec<u8>)>,
    sent: u64,
    replicated: u64,
    local: u64,
    too_big: u64,
}

impl<'a> Judge<'a> {
    fn new(program: &'a Program, back_end: BackendKind) -> Judge<'a> {
        let side = || (PacketBench::new(program, back_end, 2, 0).expect("it loads"), HashMap::new());
        let (sources, carried) = (BTreeMap::new(), Vec::new());
        Judge { sides: [side(), side()], sources, carried, sent: 0, replicated: 0, local: 0, too_big: 0 }
    }

    /// A frame of a host, whose address says at which side it lives.
    fn frame(&mut self, frame: &[u8]) {
        let (dst, src) = (address(frame), address(&frame[6..]));
        let side = usize::from(src[5] & 1);
        let (bench, known) = &mut self.sides[side];
        if src[0] & 1 == 0 {
            known.insert(src, false);
        }
        let outcome = bench.packet(LOCAL, &tagged(frame), 0);
        let place = known.get(&dst).copied().filter(|_| dst[0] & 1 == 0);
        assert!(outcome.left.iter().all(|(port, _)| *port == REMOTE));
        let copies = match place {
            _ if frame.len() > 1_514 => {
                self.too_big += 1;
                0
            }
            Some(false) => {
                self.local += 1;
                0
            }
            Some(true) => {
                self.sent += 1;
                1
            }
            None => {
                self.replicated += 1;
                2
            }
        };
        assert_eq!(outcome.left.len(), copies, "{place:?}: {frame:02x?}");
        let mut reached = Vec::new();
        for (_, packet) in &outcome.left {
            let to = self.encapsulated(packet, frame);
            if to == OTHER {
                self.arrives(1 - side, packet, frame);
            }
            reached.push(to);
        }
        let all = [[192, 0, 2, 2], OTHER];
        assert_eq!(reached, if copies == 1 { &all[1..] } else { &all[..copies] });
    }

    /// Looks at a packet between the gateways; gives the address that it goes to.
    fn encapsulated(&mut self, packet: &[u8], frame: &[u8]) -> [u8; 4] {
        assert_eq!(packet[..12], [2, 0, 0x5e, 0, 0, 0xfe, 2, 0, 0x5e, 0, 0, 1]);
        let sliced = SlicedPacket::from_ethernet(packet).expect("it is well formed");
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4 outside") };
        let header = ip.header().to_header();
        assert_eq!(header.calc_header_checksum(), header.header_checksum);
        assert_eq!(usize::from(header.total_len), packet.len() - 14);
        assert!(header.dont_fragment && header.source == [192, 0, 2, 1] && header.total_len <= 1_550);
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { panic!("UDP outside") };
        assert_eq!((udp.destination_port(), udp.checksum()), (4_789, 0));
        assert_eq!(usize::from(udp.length()), packet.len() - 34);
        assert_eq!(udp.payload(), [&VXLAN[..], frame].concat(), "the frame lies inside as it was");
        assert!(udp.source_port() >= 49_152);
        let source = *self.sources.entry(frame[..14].to_vec()).or_insert(udp.source_port());
        assert_eq!(udp.source_port(), source, "one path for one conversation");
        self.carried.push((packet.to_vec(), frame.to_vec()));
        header.destination
    }

    /// The packet comes to the other gateway, which for itself is 192.0.2.1.
    fn arrives(&mut self, side: usize, packet: &[u8], frame: &[u8]) {
        let mut packet = packet.to_vec();
        let (src, dst) = packet[26..34].split_at_mut(4);
        src.swap_with_slice(dst);
        let (bench, known) = &mut self.sides[side];
        let (dst, src) = (address(frame), address(&frame[6..]));
        if src[0] & 1 == 0 {
            known.insert(src, true);
        }
        let outcome = bench.packet(REMOTE, &packet, 0);
        if known.get(&dst) == Some(&true) {
            assert!(outcome.left.is_empty(), "the destination lives at the side that it came from");
        } else {
            assert_eq!(outcome.left, [(LOCAL, tagged(frame))], "the frame comes out as it went in");
        }
    }
}

#[test]
fn frames_go_through_a_tunnel_unchanged() {
    let program = program();
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(72);
        let mut judge = Judge::new(&program, back_end);
        for _ in 0..3_000 {
            let mut frame: Vec<u8> = (0..14 + random.below(1_600)).map(|_| random.number() as u8).collect();
            frame[12..14].copy_from_slice(random.pick(&[[8_u8, 0], [0x86, 0xdd], [0x88, 0xb5]]).as_slice());
            for at in [0, 6] {
                let host = [2, 0, 0, 0, 0, random.below(12) as u8];
                frame[at..at + 6].copy_from_slice(if random.one_in(9) { &[0xff; 6] } else { &host });
            }
            judge.frame(&frame);
        }
        let Judge { sent, replicated, local, too_big, .. } = judge;
        assert!(
            sent > 500 && replicated > 200 && local > 500 && too_big > 50,
            "{sent} {replicated} {local} {too_big}"
        );
        let ports: std::collections::BTreeSet<u16> = judge.sources.into_values().collect();
        assert!(ports.len() > 100, "{} source ports", ports.len());
    }
}

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("RAVELIN_DATA").map(PathBuf::from);
    if data.is_none() {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
    }
    data
}

#[test]
fn real_frames_go_through_a_tunnel_unchanged() {
    let Some(data) = data() else { return };
    let program = program();
    let mut judge = Judge::new(&program, BackendKind::Native);
    let path = data.join("captures/4sics-151020-first150k.pcap.zst").display().to_string();
    let stream = ports::capture_in::open(&path).expect("it can be opened");
    let mut capture = Capture::open(stream).expect("it is a capture");
    let mut frames = 0;
    while let Some(record) = capture.next().expect("it is whole") {
        let frame = record.data;
        if frame.len() >= 14
            && ![[0x81, 0], [0x88, 0xa8]].contains(&[frame[12], frame[13]])
            && frames < 20_000
        {
            judge.frame(frame);
            frames += 1;
        }
    }
    println!("{frames} frames: {} sent, {} replicated, {} local", judge.sent, judge.replicated, judge.local);
    assert!(judge.sent > 1_000 && judge.replicated > 0 && judge.local > 1_000);
    tshark(&judge.carried[..judge.carried.len().min(5_000)]);
}

/// What tshark reads in the packets between the gateways.
fn tshark(carried: &[(Vec<u8>, Vec<u8>)]) {
    let path = std::env::temp_dir().join(format!("vxlan_gateway-{}.pcap", std::process::id()));
    let file = std::fs::File::create(&path).expect("a temporary file");
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET).expect("it can be written");
    for (packet, _) in carried {
        writer.write(0, packet.len() as u32, packet).expect("it can be written");
    }
    writer.finish().expect("it can be written");
    let options = ["-n", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "occurrence=a"];
    let fields = ["vxlan.vni", "udp.checksum", "ip.checksum.status", "eth.dst", "eth.src"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(options).args(fields.iter().flat_map(|field| ["-e", field]));
    let read = command.output();
    std::fs::remove_file(&path).expect("it is there");
    let Ok(read) = read else {
        println!("tshark is not installed: it was not asked");
        return;
    };
    let text = String::from_utf8(read.stdout).expect("it is text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), carried.len(), "{}", String::from_utf8_lossy(&read.stderr));
    let name = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":");
    for (line, (_, frame)) in lines.iter().zip(carried) {
        let columns: Vec<Vec<&str>> = line.split('\t').map(|column| column.split(',').collect()).collect();
        assert_eq!((columns[0][0], columns[1][0], columns[2][0]), ("5010", "0x0000", "1"), "{line}");
        assert_eq!(
            (columns[3][1], columns[4][1]),
            (&name(&frame[..6])[..], &name(&frame[6..12])[..]),
            "{line}"
        );
    }
    println!("tshark reads {} packets alike", lines.len());
}

#[test]
fn what_others_encapsulated_comes_out() {
    let Some(data) = data() else { return };
    let program = program();
    let path = data.join("captures/protocols.tar.zst");
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("it can be opened"));
    let mut archive = tar::Archive::new(ruzstd::decoding::StreamingDecoder::new(file).expect("it is zstd"));
    let mut frames = 0;
    for entry in archive.entries().expect("it is tar") {
        let mut entry = entry.expect("it is whole");
        if !entry.path().expect("it has a name").ends_with("pcap/vxlan.pcap") {
            continue;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("it is whole");
        let mut capture = Capture::open(&bytes[..]).expect("it is a capture");
        while let Some(record) = capture.next().expect("it is whole") {
            let sliced = SlicedPacket::from_ethernet(record.data).expect("it is well formed");
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else { continue };
            let inner = udp.payload()[8..].to_vec();
            // Its gateways and network become ours.
            let mut packet = record.data.to_vec();
            packet[26..30].copy_from_slice(&OTHER);
            packet[30..34].copy_from_slice(&[192, 0, 2, 1]);
            packet[46..49].copy_from_slice(&VXLAN[4..7]);
            let mut bench = PacketBench::new(&program, BackendKind::Native, 2, 0).expect("it loads");
            assert_eq!(bench.packet(REMOTE, &packet, 0).left, [(LOCAL, tagged(&inner))]);
            frames += 1;
        }
    }
    assert_eq!(frames, 10, "as the index of the captures says");
}
