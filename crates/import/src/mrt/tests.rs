//! Dumps are kept whole, or refused by record and byte.

use super::*;
use proptest::prelude::*;

/// A record as a collector writes it.
fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = 1_700_000_000u32.to_be_bytes().to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend(subtype.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn peers() -> Vec<u8> {
    let mut body = vec![192, 0, 2, 1, 0, 4];
    body.extend(b"view");
    body.extend([0, 2]);
    body.extend([2, 1, 1, 1, 1, 192, 0, 2, 7, 0, 0, 0xfc, 0]);
    body.push(1);
    body.extend([2; 4 + 16 + 2]);
    record(13, 1, &body)
}

struct Path {
    peer: u16,
    attributes: Vec<u8>,
}

fn plain(hop: [u8; 4]) -> Vec<u8> {
    // ORIGIN first, then the next hop with a length of two bytes.
    let mut attributes = vec![0x40, 1, 1, 0, 0x50, 3, 0, 4];
    attributes.extend(hop);
    attributes
}

fn reachable(hop: u128, second: bool, whole: bool) -> Vec<u8> {
    let mut value = if whole { vec![0, 2, 1] } else { vec![] };
    value.push(if second { 32 } else { 16 });
    value.extend(hop.to_be_bytes());
    if second {
        value.extend([0xfe; 16]);
    }
    let mut attributes = vec![0x80, 14, value.len() as u8];
    attributes.extend(value);
    attributes
}

fn route(subtype: u16, width: u8, bits: u128, length: u8, paths: &[Path]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 9, length];
    let octets = usize::from(length.div_ceil(8));
    body.extend(&(bits << (128 - u32::from(width)).min(127)).to_be_bytes()[..octets]);
    body.extend((paths.len() as u16).to_be_bytes());
    for path in paths {
        body.extend(path.peer.to_be_bytes());
        body.extend([0; 4]);
        if subtype >= 8 {
            body.extend([0, 0, 0, 1]);
        }
        body.extend((path.attributes.len() as u16).to_be_bytes());
        body.extend(&path.attributes);
    }
    record(13, subtype, &body)
}

fn sample() -> Vec<Vec<u8>> {
    let six = 0x2001_0db8u128 << 96;
    let path = |attributes: Vec<u8>| Path { peer: 0, attributes };
    let other = Path { peer: 1, attributes: plain([192, 0, 2, 8]) };
    vec![
        peers(),
        route(2, 32, 0x0a00_0000, 8, &[path(plain([192, 0, 2, 7])), other]),
        route(8, 32, 0x0a80_0000, 9, &[path(plain([192, 0, 2, 7]))]),
        route(2, 32, 0, 0, &[path(plain([192, 0, 2, 9]))]),
        route(4, 128, six, 32, &[path(reachable(7, false, false))]),
        route(4, 128, six, 33, &[path(reachable(8, true, true))]),
        route(10, 128, six | 1, 128, &[path(reachable(7, true, false))]),
    ]
}

#[test]
fn the_first_path_of_each_route_is_kept() {
    let dump = read(&sample().concat()).unwrap();
    assert_eq!(dump.peers, 2);
    let prefix = |bits, length| Prefix { bits, length };
    assert_eq!(
        dump.v4.entries,
        [(prefix(0x0a00_0000, 8), 0), (prefix(0x0a80_0000, 9), 0), (prefix(0, 0), 1)]
    );
    assert_eq!(dump.v4.next_hops, ["192.0.2.7", "192.0.2.9"]);
    let six = 0x2001_0db8u128 << 96;
    assert_eq!(dump.v6.entries, [(prefix(six, 32), 0), (prefix(six, 33), 1), (prefix(six | 1, 128), 0)]);
    assert_eq!(dump.v6.next_hops, ["::7", "::8"]);
    assert_eq!((dump.v4.lines, dump.v6.lines), (vec![2, 3, 4], vec![5, 6, 7]));
}

#[test]
fn the_exact_record_is_named() {
    let path = |peer, attributes| Path { peer, attributes };
    let good = || path(0, plain([192, 0, 2, 7]));
    let with = |last: Vec<u8>| [peers(), last].concat();
    let mut long = route(2, 32, 0, 0, &[good()]);
    long[11] += 1;
    long.push(0);
    for (bytes, record_number, part) in [
        (route(2, 32, 0, 0, &[good()]), 1, "before the peers"),
        ([peers(), peers()].concat(), 2, "twice"),
        (with(record(16, 4, &[])), 2, "BGP messages"),
        (with(record(13, 3, &[])), 2, "multicast"),
        (with(record(13, 6, &[])), 2, "any kind"),
        (with(route(2, 32, 0, 33, &[good()])), 2, "has 33 bits"),
        (with(route(2, 32, 1, 31, &[good()])), 2, "behind its length"),
        (with(route(2, 32, 0, 0, &[])), 2, "no path"),
        (with(route(2, 32, 0, 0, &[path(2, plain([1; 4]))])), 2, "no peer 2"),
        (with(route(2, 32, 0, 0, &[path(0, vec![0x40, 1, 1, 0])])), 2, "no next hop"),
        (with(route(2, 32, 0, 0, &[path(0, vec![0x40, 3, 1, 0])])), 2, "not 4 bytes"),
        (with(route(4, 128, 0, 0, &[path(0, vec![0x80, 14, 2, 7, 0])])), 2, "has 7 bytes"),
        (with(long), 2, "behind its end"),
        (
            [peers(), route(2, 32, 0, 0, &[good()]), route(2, 32, 0, 0, &[good()])].concat(),
            3,
            "0.0.0.0/0 is on record 2 already",
        ),
    ] {
        let error = read(&bytes).expect_err(part);
        assert!(error.what.contains(part), "{error}");
        assert_eq!(error.line, record_number, "{error}");
        assert!(error.to_string().starts_with(&format!("record {record_number}, byte ")), "{error}");
    }
}

#[test]
fn every_cut_is_refused_unless_it_is_between_records() {
    let records = sample();
    let bytes = records.concat();
    let mut ends = vec![0];
    for record in &records {
        ends.push(ends[ends.len() - 1] + record.len());
    }
    for end in 0..bytes.len() {
        let whole = ends.iter().filter(|own| **own <= end).count();
        match read(&bytes[..end]) {
            Ok(_) => assert!(ends.contains(&end), "{end}"),
            Err(error) => {
                assert_eq!((error.line as usize, ends.contains(&end)), (whole, false), "{end}: {error}")
            }
        }
    }
}

proptest! {
    #[test]
    fn damaged_dumps_are_an_answer(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = sample().concat();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes).map_err(|error| assert!(error.line > 0 && error.column as usize <= bytes.len() + 1));
    }

    #[test]
    fn any_bytes_are_an_answer(bytes: Vec<u8>) {
        let _ = read(&bytes);
    }
}
