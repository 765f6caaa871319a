//! Filters over packets written by hand, over made traffic, and against tcpdump.

use super::{Decided, Filter};
use captures::generate::{Generator, Profile};
use packet::region::SLACK;
use packet::{Batch, Verdict};

fn ipv4(proto: u8, frag: u16, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    bytes.extend((20 + behind.len() as u16).to_be_bytes());
    bytes.extend([0, 7]);
    bytes.extend(frag.to_be_bytes());
    bytes.extend([64, proto, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2]);
    bytes.extend(behind);
    bytes
}

fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut bytes = source.to_be_bytes().to_vec();
    bytes.extend(destination.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    bytes
}

fn tagged(bytes: &[u8], tags: &[u16]) -> Vec<u8> {
    let mut all = bytes[..12].to_vec();
    for tag in tags {
        all.extend([0x81, 0]);
        all.extend(tag.to_be_bytes());
    }
    all.extend(&bytes[12..]);
    all
}

fn ipv6(next: u8, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
    bytes.extend((behind.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(behind);
    bytes
}

/// Whether the filter holds for a packet from port 2 that was dropped for `no_route`.
fn holds(filter: &str, bytes: &[u8]) -> bool {
    holds_with(filter, bytes, Verdict::drop(7), Some("no_route"))
}

fn holds_with(filter: &str, bytes: &[u8], verdict: Verdict, reason: Option<&str>) -> bool {
    let mut filter = Filter::new(filter).unwrap_or_else(|error| panic!("{error}"));
    let (mut batch, mut chosen) = (Batch::new(), Vec::new());
    let mut memory = bytes.to_vec();
    memory.resize(bytes.len() + SLACK, 0);
    batch.push(0, bytes.len() as u32, bytes.len() as u32, 2, 0);
    filter.choose(&mut memory, &mut batch, &mut chosen);
    assert_eq!(&memory[..bytes.len()], bytes, "a filter changes nothing");
    let packet = Decided { bytes, wire: bytes.len() as u32, port: 2, verdict, reason };
    !chosen.is_empty() && filter.holds(&packet)
}

#[test]
fn expressions_of_the_language() {
    let web = ipv4(6, 0, &tcp(1024, 80, 0x12));
    for (filter, wanted) in [
        ("", true),
        ("ipv4.src in 10.0.0.0/8 && tcp.dst == 80", true),
        ("ipv4.src in 10.1.0.0/16", false),
        ("ip.dst == 10.1.0.2 and eth.src == 02:00:00:00:00:01", true),
        ("tcp.flags.syn && tcp.flags.ack", true),
        ("tcp.flags.rst", false),
        ("(tcp.dst & 0xff) == 80", true),
        ("!(tcp.dst == 80)", false),
        ("tcp.dst in 80..90 || udp.dst == 53", true),
        ("port == 2", true),
        ("in_port == 1", false),
        ("length < 60 && len >= 54", true),
        ("ethernet.type == ethertype.ipv4 as u16", true),
        ("!is_group(ethernet.dst)", true),
        ("vlan.id == 5", false),
        ("not vlan.id == 5", true),
        ("arp.operation == 1 || icmp.type == 8", false),
        ("verdict == drop", true),
        ("verdict == forward", false),
        ("verdict != drop", false),
        ("reason == no_route", true),
        ("reason == \"no_route\" && tcp.dst == 80", true),
        ("reason == \"short(ipv4)\"", false),
        ("reason == short(ipv4) or tcp.dst == 80", true),
        ("out_port == 3", false),
        ("out_port != 3", false),
    ] {
        assert_eq!(holds(filter, &web), wanted, "{filter}");
    }
    assert!(holds_with("out_port == 3 && verdict == send", &web, Verdict::send(3), None));
    assert!(holds_with("out_port != 4", &web, Verdict::send(3), None));
    assert!(!holds_with("reason != x && verdict == drop", &web, Verdict::send(3), None));
}

#[test]
fn primitives_of_pcap_filter() {
    let web = ipv4(6, 0, &tcp(1024, 80, 2));
    for (filter, wanted) in [
        ("host 10.0.0.1 and tcp port 80", true),
        ("src host 10.0.0.1", true),
        ("dst host 10.0.0.1", false),
        ("src 10.0.0.1 and dst 10.1.0.2", true),
        ("src or dst host 10.1.0.2", true),
        ("net 10.1", true),
        ("net 10.1.0.0/16 and not port 443", true),
        ("net 10.1.0.0 mask 255.255.0.0", true),
        ("src net 10.1", false),
        ("dst port http", true),
        ("port 443 or 80", true),
        ("udp port 80", false),
        ("portrange 79-81", true),
        ("tcp src portrange 1000-2000", true),
        ("ip", true),
        ("ip6 or arp", false),
        ("tcp", true),
        ("icmp or udp", false),
        ("ip proto 6", true),
        ("proto tcp", true),
        ("ip proto \\tcp", true),
        ("ether proto 0x800", true),
        ("ether src 2:0:0:0:0:1", true),
        ("ether dst 02:00:00:00:00:01", false),
        ("ether host 02:00:00:00:00:01", true),
        ("broadcast or multicast", false),
        ("ip multicast", false),
        ("less 60", true),
        ("greater 60", false),
        ("vlan", false),
        ("not vlan and (host 10.0.0.1 or host 10.0.0.9) and verdict == drop", true),
        ("tcp and tcp.flags.syn", true),
    ] {
        assert_eq!(holds(filter, &web), wanted, "{filter}");
    }
}

#[test]
fn headers_are_found_behind_tags_extensions_and_in_first_fragments_only() {
    let web = ipv4(6, 0, &tcp(1024, 80, 2));
    for tags in [&[5][..], &[5, 6]] {
        let packet = tagged(&web, tags);
        for filter in [
            "host 10.0.0.1",
            "tcp port 80",
            "vlan",
            "vlan 5",
            "vlan.id == 5 && tcp.dst == 80",
            "ip",
            "not vlan 6",
        ] {
            assert!(holds(filter, &packet), "{filter} behind {tags:?}");
        }
    }
    let later = ipv4(6, 3, &tcp(1024, 80, 2));
    assert!(holds("tcp", &later) && !holds("tcp port 80", &later) && !holds("tcp.dst == 80", &later));
    let plain = ipv6(6, &tcp(1024, 80, 2));
    let options = ipv6(0, &[&[6, 0, 0, 0, 0, 0, 0, 0][..], &tcp(1024, 80, 2)].concat());
    let first = ipv6(44, &[&[6, 0, 0, 1, 0, 0, 0, 7][..], &tcp(1024, 80, 2)].concat());
    let behind =
        ipv6(44, &[&[60, 0, 0, 1, 0, 0, 0, 7, 6, 0, 0, 0, 0, 0, 0, 0][..], &tcp(1024, 80, 2)].concat());
    for packet in [&plain, &options, &first, &behind] {
        for filter in [
            "tcp port 80",
            "ip6 and tcp",
            "host fd00::1",
            "dst host fd00::2",
            "net fd00::/8",
            "ipv6.hop_limit == 64",
        ] {
            assert!(holds(filter, packet), "{filter}");
        }
        assert!(!holds("udp or icmp6 or ip", packet));
    }
    let later = ipv6(44, &[&[6, 0, 0, 9, 0, 0, 0, 7][..], &tcp(1024, 80, 2)].concat());
    assert!(holds("tcp", &later) && !holds("port 80", &later));
}

#[test]
fn what_cannot_be_read_is_not_chosen_for_its_bytes_but_for_what_became_of_it() {
    let cut = &ipv4(6, 0, &tcp(1024, 80, 2))[..40];
    assert!(!holds("tcp port 80", cut) && !holds("not tcp port 80", cut));
    assert!(holds("tcp port 80 or verdict == drop", cut));
    assert!(holds("host 10.0.0.1", cut), "what can be read decides");
    assert!(holds("host 10.0.0.1 or tcp port 80", cut));
    assert!(holds("reason == no_route", &[]));
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    for (filter, marked, words) in [
        ("tcp port 80 and", "", "missing at the end"),
        ("host example.org", "example.org", "names are not looked up"),
        ("tcp prt 80", "prt", ""),
        ("port 70000", "70000", "is not the number of a port"),
        ("net 10.0.0.1/8", "10.0.0.1", "has bits set"),
        ("a or b and tcp", "and", "brackets"),
        ("(tcp", "(", "not closed"),
        ("ip[6:2] = 0", "ip", "name the field"),
        ("ipv5.src == 1", "ipv5.src", "there is no header"),
        ("tcp.dest == 80", "tcp.dest", "dest"),
        ("tcp.dst == 70000", "70000", ""),
        ("tcp.dst == 80 junk", "junk", ""),
        ("verdict == lost", "lost", "verdicts are"),
        ("verdict", "", "== or !="),
        ("10.0.0.1", "10.0.0.1", "say `host`"),
        ("ether host 10.0.0.1", "10.0.0.1", "six bytes"),
        ("icmp port 7", "7", "no ports"),
        ("inbound", "inbound", "port == 1"),
        ("vlan 5000", "5000", "4095"),
        ("tcp)", ")", "not expected"),
        ("port == \"x\"", "\"x\"", "only reasons"),
    ] {
        let error = Filter::new(filter).err().unwrap_or_else(|| panic!("{filter} is accepted"));
        assert_eq!(&filter[error.span.clone()], marked, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let deep = "not ".repeat(2000);
    assert!(Filter::new(&deep[..4000]).is_err());
}

/// Every packet of made traffic, cut anywhere, changes nothing and stops nothing; a filter and its opposite
/// never both hold.
#[test]
fn a_filter_and_its_opposite() {
    let filters = ["tcp port 80", "host 10.0.0.1 or arp", "ipv4.ttl > 10 && length > 70", "vlan 100 or ip6"];
    let mut generator = Generator::new(&Profile::demo(), 9).expect("possible");
    let (mut packets, mut bytes) = (Vec::new(), Vec::new());
    while packets.len() < 400 && generator.next(&mut bytes).is_some() {
        packets.push(bytes.clone());
    }
    let (mut both, mut neither) = ([0; 2], 0);
    for filter in filters {
        let opposite = format!("not ({filter})");
        let mut pair = [filter, &opposite].map(|text| Filter::new(text).expect(text));
        for (number, packet) in packets.iter().enumerate() {
            let whole = number % 3 != 0;
            let length = if whole { packet.len() } else { packet.len() * (number % 7) / 7 };
            let mut memory = packet[..length].to_vec();
            memory.resize(length + SLACK, 0);
            let held = pair.each_mut().map(|filter| {
                let (mut batch, mut chosen) = (Batch::new(), Vec::new());
                batch.push(0, length as u32, packet.len() as u32, 1, 0);
                filter.choose(&mut memory, &mut batch, &mut chosen);
                !chosen.is_empty()
            });
            assert!(!(held[0] && held[1]), "{filter}: {packet:02x?}");
            neither += usize::from(whole && !held[0] && !held[1]);
            both[0] += usize::from(held[0]);
            both[1] += usize::from(held[1]);
        }
    }
    // The made traffic holds some damaged packets.
    assert!(both[0] > 100 && both[1] > 100 && neither < 80, "{both:?}, {neither} neither");
}
