//! Filters of pcap-filter mean what tcpdump means by them, packet by packet; without tcpdump the test says so
//! and ends.
//!
//! Left out are packets with VLAN tags, which tcpdump looks into only behind the word `vlan`, with extension
//! headers of IPv6, behind which it does not look, and with headers that are cut off or damaged, about which
//! it decides by bytes that are no header. `RAVELIN_CAPTURES` names captures to compare besides made traffic.

use captures::Capture;
use captures::generate::{Generator, Profile};
use captures::write::{Interface, PcapngWriter};
use engine::filter::{Decided, Filter};
use packet::region::SLACK;
use packet::{Batch, LinkType, Verdict};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const FILTERS: [&str; 46] = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "not ip",
    "not tcp and not udp",
    "ether broadcast",
    "ether multicast",
    "ip multicast",
    "ip6 multicast",
    "tcp port 80",
    "port 443",
    "src port 80",
    "dst port 53",
    "udp port 53",
    "portrange 1-1024",
    "tcp portrange 1000-40000",
    "udp src portrange 50-60",
    "not port 80",
    "net 10.0.0.0/8",
    "src net 10",
    "dst net 10.0.0.0 mask 255.255.0.0",
    "ip net 10.0",
    "arp net 10",
    "not net 10",
    "net 2001:db8::/32",
    "net fe80::/10",
    "less 100",
    "greater 1000",
    "len > 200 and len <= 600",
    "ip proto 17",
    "ip6 proto 6",
    "proto 6",
    "ether proto 0x806",
    "tcp and (port 80 or port 443)",
    "(tcp port 80 or 443) and net 10",
    "host 10.0.0.1",
    "src host 10.0.0.1 and dst port 80",
    "ip and not (tcp or udp)",
    "sctp",
    "port http or port domain",
    "src or dst net 10.0.0.0/9",
    "not (ip or ip6 or arp)",
];

/// Whether a packet is left in for the comparison.
fn comparable(bytes: &[u8]) -> bool {
    let tagged = matches!(bytes.get(12..14), Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0]));
    let extended =
        bytes.get(12..14) == Some(&[0x86, 0xdd]) && matches!(bytes.get(20), Some(0 | 43 | 51 | 60));
    !tagged && !extended && etherparse::SlicedPacket::from_ethernet(bytes).is_ok()
}

fn chosen(filter: &str, packets: &[Vec<u8>]) -> Vec<usize> {
    let mut filter = Filter::new(filter).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    for (number, bytes) in packets.iter().enumerate() {
        let (mut batch, mut some) = (Batch::new(), Vec::new());
        let mut memory = bytes.clone();
        memory.resize(bytes.len() + SLACK, 0);
        let wire = bytes.len() as u32;
        batch.push(0, wire, wire, 1, 0);
        filter.choose(&mut memory, &mut batch, &mut some);
        let packet = Decided { bytes, wire, port: 1, verdict: Verdict::FLOOD, reason: None };
        if !some.is_empty() && filter.holds(&packet) {
            all.push(number);
        }
    }
    all
}

/// Writes packets with their number as time.
fn write(path: &Path, packets: &[Vec<u8>]) {
    let interface = Interface { name: "all", link: LinkType::ETHERNET };
    let mut writer =
        PcapngWriter::new(File::create(path).expect("can be made"), &[interface]).expect("begins");
    for (number, bytes) in packets.iter().enumerate() {
        writer.write(0, number as u64 * 1000, bytes.len() as u32, bytes, None).expect("can be written");
    }
    writer.finish().expect("ends");
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut capture = Capture::open(File::open(path).expect("is there")).expect("a capture");
    let mut all = Vec::new();
    while let Ok(Some(record)) = capture.next() {
        if record.data.len() == record.wire as usize && comparable(record.data) {
            all.push(record.data.to_vec());
        }
    }
    all
}

fn compare(name: &str, packets: &[Vec<u8>], directory: &Path) -> usize {
    let (from, to) = (directory.join("all.pcapng"), directory.join("chosen.pcap"));
    write(&from, packets);
    let mut found = 0;
    for filter in FILTERS {
        let output = Command::new("tcpdump")
            .arg("-r")
            .arg(&from)
            .arg("-w")
            .arg(&to)
            .args(["-Z", "root", filter])
            .output();
        let output = output.expect("tcpdump runs");
        assert!(output.status.success(), "tcpdump {filter}: {}", String::from_utf8_lossy(&output.stderr));
        let mut theirs = Vec::new();
        let mut capture = Capture::open(File::open(&to).expect("is there")).expect("a capture");
        while let Some(record) = capture.next().expect("whole") {
            theirs.push((record.time_ns / 1000) as usize);
        }
        let ours = chosen(filter, packets);
        if let Some(number) =
            (0..packets.len()).find(|number| ours.contains(number) != theirs.contains(number))
        {
            let packet = &packets[number];
            let described = packet::describe::describe(packet, packet.len() as u32);
            panic!(
                "{name}, {filter}: ours {}, theirs {}: {described}\n{packet:02x?}",
                ours.contains(&number),
                theirs.contains(&number)
            );
        }
        found += ours.len();
    }
    found
}

#[test]
fn primitives_mean_what_tcpdump_means() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("not run, since there is no tcpdump");
        return;
    }
    let directory = std::env::temp_dir().join(format!("ravelin-filters-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("can be made");
    let mut generator = Generator::new(&Profile::demo(), 11).expect("possible");
    let (mut packets, mut bytes) = (Vec::new(), Vec::new());
    while packets.len() < 2000 && generator.next(&mut bytes).is_some() {
        if comparable(&bytes) {
            packets.push(bytes.clone());
        }
    }
    let found = compare("made traffic", &packets, &directory);
    assert!(found > 2000, "only {found} were found");
    for path in std::env::var_os("RAVELIN_CAPTURES").iter().flat_map(std::env::split_paths) {
        let packets = read(&path);
        let found = compare(&path.display().to_string(), &packets[..packets.len().min(3000)], &directory);
        eprintln!(
            "{}: {} packets, {found} found by {} filters",
            path.display(),
            packets.len(),
            FILTERS.len()
        );
    }
    fs::remove_dir_all(&directory).expect("can be removed");
}
