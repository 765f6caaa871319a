//! Tests of the generator: exact counts, shares, lengths, checksums, and the same bytes for the same seed.

use super::frame::checksum;
use super::*;
use std::collections::HashSet;

/// What a run of packets consists of, by a reader that knows nothing of the generator.
#[derive(Debug, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    web: u64,
    web_destination: u64,
    web_destination_bytes: u64,
    tcp: u64,
    udp: u64,
    icmp: u64,
    arp: u64,
    other: u64,
    vlan: u64,
    ipv6: u64,
    fragments: u64,
    cut: u64,
    wrong: u64,
    flows: HashSet<(Vec<u8>, Vec<u8>, u8)>,
    last_time: u64,
}

impl Tally {
    fn of(profile: &Profile, seed: u64) -> Tally {
        let mut generator = Generator::new(profile, seed).expect("a possible profile");
        let (mut tally, mut bytes) = (Tally::default(), Vec::new());
        while let Some(stamp) = generator.next(&mut bytes) {
            assert!(stamp.time >= tally.last_time.max(START), "time goes on");
            assert!(stamp.wire <= 1514);
            tally.last_time = stamp.time;
            tally.packets += 1;
            tally.bytes += u64::from(stamp.wire);
            if bytes.len() < stamp.wire as usize {
                tally.cut += 1;
            } else if tally.frame(&bytes).is_none() {
                tally.wrong += 1;
            }
        }
        tally
    }

    /// Counts a whole frame; `None` where something about it is wrong.
    fn frame(&mut self, frame: &[u8]) -> Option<()> {
        let tagged = frame.get(12..14)? == [0x81, 0];
        let at = if tagged { 16 } else { 12 };
        let ether_type = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        let packet = frame.get(at + 2..)?;
        match ether_type {
            0x0800 => self.ipv4(packet, frame.len())?,
            0x86dd => self.ipv6(packet, frame.len())?,
            0x0806 if packet.len() >= 28 => self.arp += 1,
            0x9000 if packet.len() >= 4 => self.other += 1,
            _ => return None,
        }
        self.vlan += u64::from(tagged);
        Some(())
    }

    fn ipv4(&mut self, packet: &[u8], wire: usize) -> Option<()> {
        let header = packet.get(..20)?;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] != 0x45 || checksum(0, header) != 0 {
            return None;
        }
        let payload = packet.get(20..total)?;
        assert!(packet.len() == total || wire == 60, "only short frames are padded");
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if fragment != 0 {
            self.fragments += 1;
            self.udp += 1;
            if fragment & 0x1fff == 0 {
                self.flow(header[12..16].to_vec(), header[16..20].to_vec(), payload, 17);
            }
            return Some(());
        }
        self.transport(header[9], &header[12..16], &header[16..20], payload, wire)
    }

    fn ipv6(&mut self, packet: &[u8], wire: usize) -> Option<()> {
        let header = packet.get(..40)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        assert_eq!(packet.len(), 40 + length);
        let protocol = if header[6] == 58 { 1 } else { header[6] };
        self.ipv6 += 1;
        if protocol == 1 {
            let sum: u64 = 58 + length as u64;
            let pseudo = u64::from(!checksum(sum, &header[8..40]));
            assert_eq!(checksum(pseudo, &packet[40..]), 0);
            self.icmp += 1;
            return Some(());
        }
        self.transport(protocol, &header[8..24], &header[24..40], &packet[40..], wire)
    }

    fn transport(
        &mut self,
        protocol: u8,
        source: &[u8],
        destination: &[u8],
        payload: &[u8],
        wire: usize,
    ) -> Option<()> {
        let pseudo =
            u64::from(!checksum(u64::from(protocol) + payload.len() as u64, &[source, destination].concat()));
        match protocol {
            1 => {
                assert_eq!(checksum(0, payload), 0);
                self.icmp += 1;
                return Some(());
            }
            6 => {
                if payload[12] != 0x50 {
                    return None;
                }
                self.tcp += 1;
            }
            17 => {
                assert_eq!(usize::from(u16::from_be_bytes([payload[4], payload[5]])), payload.len());
                self.udp += 1;
            }
            _ => panic!("protocol {protocol}"),
        }
        assert_eq!(checksum(pseudo, payload), 0, "protocol {protocol}");
        let [from, to] = self.flow(source.to_vec(), destination.to_vec(), payload, protocol);
        let web = |port| port == 80 || port == 443;
        self.web += u64::from(web(from) || web(to));
        self.web_destination += u64::from(web(to));
        self.web_destination_bytes += if web(to) { wire as u64 } else { 0 };
        Some(())
    }

    /// Notes the flow, both directions alike, and returns the ports.
    fn flow(&mut self, mut one: Vec<u8>, mut other: Vec<u8>, payload: &[u8], protocol: u8) -> [u16; 2] {
        one.extend(&payload[..2]);
        other.extend(&payload[2..4]);
        let flow = if one < other { (one, other, protocol) } else { (other, one, protocol) };
        self.flows.insert(flow);
        [u16::from_be_bytes([payload[0], payload[1]]), u16::from_be_bytes([payload[2], payload[3]])]
    }

    fn assert_like(&self, profile: &Profile) {
        assert_eq!(self.packets, profile.packets);
        let mean = self.bytes as f64 / self.packets as f64;
        assert!((mean / profile.mean_bytes - 1.0).abs() < 0.01, "mean {mean}");
        let flows = self.flows.len() as f64;
        assert!((flows / profile.flows as f64 - 1.0).abs() < 0.01, "{flows} flows");
        for (name, found, wanted) in [
            ("web", self.web, profile.web_share),
            ("tcp", self.tcp, profile.tcp_share),
            ("udp", self.udp, profile.udp_share),
            ("icmp", self.icmp, profile.icmp_share),
            ("arp", self.arp, profile.arp_share),
            ("other", self.other, profile.other_share),
            ("fragments", self.fragments, profile.fragment_share),
            ("vlan", self.vlan, profile.vlan_share),
            ("ipv6", self.ipv6, profile.ipv6_share),
        ] {
            let share = found as f64 / self.packets as f64;
            // Packets that were cut or made wrong are not looked into.
            let lost = profile.cut_share + profile.damaged_share;
            assert!((share - wanted).abs() < 0.01 + lost, "{name}: {share} instead of {wanted}");
        }
    }
}

#[test]
fn checksums_are_those_of_rfc_1071() {
    // The example of section 3, with and without a last byte alone, and sums that carry more than once.
    assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    assert_eq!(checksum(0, &[0x00, 0x01, 0xf2]), !0xf201);
    assert_eq!(checksum(0, &[0xff, 0xff, 0, 1, 0xff, 0xff, 0, 1]), !2);
    assert_eq!(checksum(0x1_ffff, &[]), !1);
}

#[test]
fn a_checksum_is_folded_until_nothing_is_carried() {
    // 65,537 words of all ones add up to 0xffff_ffff: folded once that is 0x1_fffe, which carries again.
    let ones = vec![0xff; 2 * 65_537];
    assert_eq!(frame::checksum(0, &ones), 0);
    // The first fold of 0x0001_ffff gives 0x1_0000, and only the second gives 1.
    assert_eq!(frame::checksum(0x1_ffff, &[]), !1);
}

#[test]
fn sample1_is_as_published() {
    for seed in [0, u64::MAX] {
        let tally = Tally::of(&Profile::sample1(), seed);
        tally.assert_like(&Profile::sample1());
        assert_eq!(tally.flows.len(), 1_209);
        assert_eq!(tally.wrong, 0);
        let share = tally.web_destination as f64 / tally.packets as f64;
        assert!((share - 0.333).abs() < 0.01, "{share} of the packets go to a web server");
        let share = tally.web_destination_bytes as f64 / tally.bytes as f64;
        assert!((share - 0.11).abs() < 0.01, "{share} of the bytes go to a web server");
    }
}

#[test]
fn sample2_and_sample3_are_as_published() {
    // Of the bytes, what the firewall of the thesis forwards: 1.35 of 6.29 Gbit/s, and 0.04 of 1.25.
    for (mut profile, forwarded) in [(Profile::sample2(), 1.35 / 6.29), (Profile::sample3(), 0.04 / 1.25)] {
        // A part of the packets has the same shape in less time.
        profile.packets /= 40;
        profile.flows /= 40;
        let tally = Tally::of(&profile, 7);
        tally.assert_like(&profile);
        assert_eq!(tally.flows.len() as u64, profile.flows);
        assert_eq!(tally.wrong, 0);
        let share = tally.web_destination_bytes as f64 / tally.bytes as f64;
        assert!((share / forwarded - 1.0).abs() < 0.05, "{share} of the bytes go to a web server");
    }
}

#[test]
fn demo_has_a_little_of_everything() {
    let profile = Profile { snap_bytes: packet::MAXIMUM_CAPTURED, ..Profile::demo() };
    let tally = Tally::of(&profile, 1);
    tally.assert_like(&Profile { flows: tally.flows.len() as u64, ..profile });
    assert_eq!(tally.cut, 100);
    // A wrong header inside a packet that was cut, say, is not seen.
    assert!((28..=40).contains(&tally.wrong), "{}", tally.wrong);
    assert!((150..=160).contains(&tally.flows.len()), "{}", tally.flows.len());
}

#[test]
fn demo_is_small() {
    let profile = Profile::demo();
    let mut writer = crate::write::PcapngWriter::new(
        Vec::new(),
        &[crate::write::Interface { name: "demo", link: packet::LinkType::ETHERNET }],
    )
    .expect("writes");
    let (mut generator, mut bytes) = (Generator::new(&profile, 1).expect("possible"), Vec::new());
    while let Some(stamp) = generator.next(&mut bytes) {
        writer.write(0, stamp.time, stamp.wire, &bytes, None).expect("writes");
    }
    let size = writer.finish().expect("writes").len();
    assert!(size <= 200_000, "{size}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    // FNV-1a over all bytes and stamps.
    let digest = |seed| {
        let mut generator = Generator::new(&Profile::demo(), seed).expect("possible");
        let (mut hash, mut bytes) = (0xcbf2_9ce4_8422_2325_u64, Vec::new());
        while let Some(stamp) = generator.next(&mut bytes) {
            for &byte in bytes.iter().chain(&stamp.wire.to_le_bytes()).chain(&stamp.time.to_le_bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
    assert_eq!(digest(1), 14_590_025_646_944_324_068, "the bytes of a seed never change");
}

#[test]
fn one_direction_only() {
    let profile = Profile { bidirectional: false, packets: 5_000, flows: 100, ..Profile::sample1() };
    let tally = Tally::of(&profile, 3);
    tally.assert_like(&profile);
    assert_eq!(tally.web, tally.web_destination);
}

#[test]
fn everything_in_vlans_and_ipv6() {
    let profile = Profile {
        packets: 5_000,
        flows: 300,
        mean_bytes: 300.0,
        tcp_share: 0.5,
        web_share: 0.2,
        udp_share: 0.4,
        icmp_share: 0.1,
        arp_share: 0.0,
        vlan_share: 1.0,
        ipv6_share: 1.0,
        ..Profile::sample1()
    };
    let tally = Tally::of(&profile, 3);
    tally.assert_like(&profile);
    assert_eq!((tally.vlan, tally.ipv6, tally.wrong), (5_000, 5_000, 0));
}

#[test]
fn few_packets_or_none_make_no_trouble() {
    for packets in [0, 1, 2, 30] {
        let profile = Profile { packets, flows: 0, ..Profile::demo() };
        let mut generator = Generator::new(&profile, 1).expect("possible");
        let mut bytes = vec![1];
        for _ in 0..packets {
            generator.next(&mut bytes).expect("a packet");
        }
        assert_eq!(generator.next(&mut bytes), None);
        assert!(bytes.is_empty());
    }
}

#[test]
fn impossible_profiles_say_what_is_wrong() {
    let base = Profile::sample1();
    for (profile, message) in [
        (
            Profile { web_share: 0.97, ..base.clone() },
            "web_share is 0.97; it must be at least 0 and at most 0.9612",
        ),
        (Profile { udp_share: 0.5, ..base.clone() }, "add up to 1.4633 instead of 1"),
        (Profile { mean_bytes: f64::NAN, ..base.clone() }, "mean_bytes is NaN"),
        (Profile { flows: 20_000, ..base.clone() }, "flows is 20000; it must be at least 0"),
        (Profile { hosts: 1, ..base.clone() }, "hosts is 1; it must be at least 2"),
    ] {
        let error = Generator::new(&profile, 1).err().expect("impossible").to_string();
        assert!(error.contains(message), "{error}");
    }
}
