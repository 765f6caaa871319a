//! Tests of the capture readers and writers on captures built here.

use super::write::{Interface, PcapWriter, PcapngWriter};
use super::*;

/// A record with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    data: Vec<u8>,
    wire: u32,
    time_ns: u64,
    link: LinkType,
    interface: u32,
}

/// All records, and the error after them if there is one.
fn read(bytes: &[u8]) -> (Vec<Owned>, Option<CaptureError>) {
    read_from(bytes)
}

fn read_from(stream: impl Read) -> (Vec<Owned>, Option<CaptureError>) {
    let mut records = Vec::new();
    let mut capture = match Capture::open(stream) {
        Ok(capture) => capture,
        Err(error) => return (records, Some(error)),
    };
    loop {
        match capture.next() {
            Ok(Some(Record { data, wire, time_ns, link, interface })) => {
                records.push(Owned { data: data.to_vec(), wire, time_ns, link, interface });
            }
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(matches!(capture.next(), Ok(None)), "nothing follows an error");
                return (records, Some(error));
            }
        }
    }
}

/// A stream that gives one byte at a time, interrupted now and then.
struct Dribble<'a>(&'a [u8], bool);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.0.len().min(buffer.len()).min(1);
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// Writes numbers in either byte order.
struct Bytes {
    big: bool,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(big: bool) -> Bytes {
        Bytes { big, bytes: Vec::new() }
    }

    fn u16(&mut self, value: u16) -> &mut Bytes {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    fn u32(&mut self, value: u32) -> &mut Bytes {
        self.bytes.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.bytes.extend(bytes);
        self
    }

    fn pcap_header(&mut self, magic: u32, minor: u16, link: u32) -> &mut Bytes {
        self.u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(65_535).u32(link)
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Bytes)) -> &mut Bytes {
        let mut inner = Bytes::new(self.big);
        body(&mut inner);
        inner.bytes.resize(inner.bytes.len().next_multiple_of(4), 0);
        let length = inner.bytes.len() as u32 + 12;
        self.u32(kind).u32(length).raw(&inner.bytes).u32(length)
    }

    fn section(&mut self) -> &mut Bytes {
        self.block(0x0a0d_0d0a, |body| {
            body.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
        })
    }

    fn interface(&mut self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> &mut Bytes {
        self.block(1, |body| {
            body.u16(link).u16(0).u32(snap);
            for (code, value) in options {
                body.u16(*code).u16(value.len() as u16).raw(value);
                body.bytes.resize(body.bytes.len().next_multiple_of(4), 0);
            }
        })
    }

    fn enhanced(&mut self, interface: u32, time: u64, wire: u32, data: &[u8]) -> &mut Bytes {
        self.block(6, |body| {
            body.u32(interface)
                .u32((time >> 32) as u32)
                .u32(time as u32)
                .u32(data.len() as u32)
                .u32(wire)
                .raw(data);
        })
    }
}

fn one(data: &[u8], wire: u32, time_ns: u64) -> Owned {
    Owned { data: data.to_vec(), wire, time_ns, link: LinkType::ETHERNET, interface: 0 }
}

#[test]
fn every_flavour_of_pcap_in_both_byte_orders() {
    for big in [false, true] {
        for (magic, unit, extra) in [(0xa1b2_c3d4, 1_000, 0), (0xa1b2_3c4d, 1, 0), (0xa1b2_cd34, 1_000, 8)] {
            let mut file = Bytes::new(big);
            file.pcap_header(magic, 4, 1);
            file.u32(2).u32(3).u32(5).u32(7).raw(&vec![9; extra]).raw(b"hello");
            file.u32(u32::MAX).u32(0).u32(1).u32(0).raw(&vec![9; extra]).raw(b"!");
            let (records, error) = read(&file.bytes);
            assert!(error.is_none(), "{error:?}");
            let late = u64::from(u32::MAX) * 1_000_000_000;
            assert_eq!(records, [one(b"hello", 7, 2_000_000_000 + 3 * unit), one(b"!", 1, late)]);
        }
    }
}

#[test]
fn old_pcap_versions_swap_the_lengths() {
    for (minor, first, second) in [(2, 7, 5), (3, 5, 7), (3, 7, 5)] {
        let mut file = Bytes::new(false);
        file.pcap_header(0xa1b2_c3d4, minor, 1).u32(0).u32(0).u32(first).u32(second).raw(b"hello");
        assert_eq!(read(&file.bytes).0, [one(b"hello", 7, 0)]);
    }
    let mut file = Bytes::new(false);
    file.u32(0xa1b2_c3d4).u16(3).u16(0).raw(&[0; 16]);
    let error = read(&file.bytes).1.expect("version 3.0");
    assert_eq!(error.to_string(), "the capture is damaged at byte 0: pcap version 3.0 is not known");
}

#[test]
fn pcap_link_type_leaves_out_the_check_bytes() {
    let mut file = Bytes::new(false);
    file.pcap_header(0xa1b2_c3d4, 4, 0x4400_0071).u32(0).u32(0).u32(0).u32(0);
    assert_eq!(read(&file.bytes).0[0].link, LinkType::LINUX_SLL);
}

#[test]
fn pcapng_sections_of_both_orders_with_clocks_and_all_packet_blocks() {
    let mut file = Bytes::new(true);
    file.section().interface(1, 0, &[(2, b"left"), (9, &[9])]);
    file.interface(101, 0, &[(9, &[0x8a]), (14, &(-1_i64).to_be_bytes())]);
    file.enhanced(1, 3 * 512, 9, b"abc").enhanced(0, 77, 2, b"abc");
    file.block(5, |body| {
        body.u32(1).raw(&[0; 20]);
    });
    file.block(2, |body| {
        body.u16(1).u16(0xffff).u32(0).u32(4 * 1024).u32(2).u32(3).raw(b"ob");
    });
    let mut second = Bytes::new(false);
    second.section().block(0xbad, |body| {
        body.raw(&[1; 100]);
    });
    second.interface(1, 4, &[]).block(3, |body| {
        body.u32(10).raw(b"1234");
    });
    second.block(3, |body| {
        body.u32(3).raw(b"abc");
    });
    second.enhanced(0, 5, 3, b"xyz");
    file.raw(&second.bytes);
    let raw =
        |data: &[u8], wire, time_ns| Owned { link: LinkType::RAW, interface: 1, ..one(data, wire, time_ns) };
    let expected = [
        raw(b"abc", 9, 500_000_000),
        one(b"abc", 3, 77),
        raw(b"ob", 3, 3_000_000_000),
        one(b"1234", 10, 0),
        one(b"abc", 3, 0),
        one(b"xyz", 3, 5_000),
    ];
    let (records, error) = read(&file.bytes);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(records, expected);
    let (dribbled, error) = read_from(Dribble(&file.bytes, false));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(dribbled, expected);
}

/// The message for a file that is whole up to `at`, then damaged.
fn damage(file: &Bytes, records: usize, at: usize) -> String {
    let (found, error) = read(&file.bytes);
    assert_eq!(found.len(), records);
    let error = error.expect("damage");
    assert_eq!(error.offset(), at as u64, "{error}");
    let (before, error) = read(&file.bytes[..at]);
    assert_eq!((before, error.map(|error| error.to_string())), (found, None), "the part before is whole");
    read(&file.bytes).1.expect("damage").to_string()
}

#[test]
fn pcapng_damage_names_block_and_cause() {
    type Build = fn(&mut Bytes);
    let cases: &[(Build, &str)] = &[
        (|file| _ = file.enhanced(1, 0, 0, b""), "interface 1, and the section has described 1"),
        (|file| _ = file.u32(6).u32(31).raw(&[0; 40]), "type 0x6 says that it is 31 bytes long"),
        (|file| _ = file.u32(6).u32(28).raw(&[0; 40]), "at least 32"),
        (|file| _ = file.u32(6).u32(0x7fff_fff0).raw(&[0; 40]), "at most 16777216 are read"),
        (
            |file| _ = file.u32(6).u32(1 << 20).raw(&[0; 40]),
            "the file ends 1048528 bytes before the end of the block",
        ),
        (|file| _ = file.u32(9).u32(1 << 30).raw(&[0; 40]), "before the end of the block"),
        (|file| _ = file.u32(9).u32(12).u32(16), "12 bytes long by its start and 16 by its end"),
        (|file| _ = file.u32(6), "the file ends 4 bytes before the end of the block header"),
        (|file| _ = file.u32(9).u32(8), "type 0x9 says that it is 8 bytes long"),
        (|file| _ = file.interface(1, 0, &[(9, &[1, 2])]), "if_tsresol is 2 bytes long instead of 1"),
        (|file| _ = file.interface(1, 0, &[(14, &[1, 2])]), "if_tsoffset is 2 bytes long instead of 8"),
        (
            |file| {
                file.block(1, |body| {
                    body.u32(1).u32(0).u16(2).u16(99).raw(b"name");
                });
            },
            "option 2 is 99 bytes long and runs past the end",
        ),
        (
            |file| {
                file.block(6, |body| {
                    body.u32(0).u32(0).u32(0).u32(9).u32(9).raw(b"12345678");
                });
            },
            "the packet is 9 bytes long, and its block has room for 8",
        ),
        (
            |file| {
                file.block(3, |body| {
                    body.u32(9).raw(b"12345678");
                });
            },
            "the packet is 9 bytes long, and its block has room for 8",
        ),
        (|file| _ = file.enhanced(0, 0, 0, &[0; 262_145]), "holds 262145 bytes"),
        (|file| _ = file.u32(0x0a0d_0d0a).u32(28).u32(0x1234_5678).raw(&[0; 40]), "byte-order mark"),
        (|file| _ = file.u32(0x0a0d_0d0a).u32(24).u32(0x1a2b_3c4d).raw(&[0; 40]), "at least 28"),
        (
            |file| {
                file.block(0x0a0d_0d0a, |body| {
                    body.u32(0x1a2b_3c4d).u16(2).u16(1).u32(0).u32(0);
                });
            },
            "pcapng version 2.1 is not known",
        ),
    ];
    for (build, cause) in cases {
        for big in [false, true] {
            let mut file = Bytes::new(big);
            file.section().interface(1, 0, &[]).enhanced(0, 1, 5, b"hello");
            let at = file.bytes.len();
            build(&mut file);
            let message = damage(&file, 1, at);
            assert!(message.contains(cause), "{message} should say: {cause}");
            assert!(message.contains(&format!("at byte {at}")), "{message}");
        }
    }
}

#[test]
fn pcap_damage_names_record_and_cause() {
    for (captured, tail, cause) in [
        (262_145, 0, "the record says that it holds 262145 bytes"),
        (u32::MAX, 0, "4294967295 bytes, and at most 262144"),
        (100, 60, "the file ends 40 bytes before the end of the record"),
    ] {
        let mut file = Bytes::new(false);
        file.pcap_header(0xa1b2_c3d4, 4, 1).u32(0).u32(0).u32(2).u32(2).raw(b"ok");
        let at = file.bytes.len();
        file.u32(0).u32(0).u32(captured).u32(captured).raw(&vec![0; tail]);
        let message = damage(&file, 1, at);
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn a_file_cut_anywhere_gives_what_lies_before_the_cut() {
    let mut pcap = Bytes::new(true);
    pcap.pcap_header(0xa1b2_3c4d, 4, 1);
    let mut pcapng = Bytes::new(true);
    pcapng.section().interface(1, 0, &[]);
    let (mut pcap_ends, mut pcapng_ends) = (Vec::new(), Vec::new());
    for i in 0..4_u8 {
        pcap.u32(0).u32(0).u32(i.into()).u32(9).raw(&vec![i; i.into()]);
        pcap_ends.push(pcap.bytes.len());
        pcapng.enhanced(0, 1, 9, &vec![i; i.into()]);
        pcapng_ends.push(pcapng.bytes.len());
    }
    for (file, ends, whole) in [(&pcap, pcap_ends, vec![24]), (&pcapng, pcapng_ends, vec![28, 48])] {
        for cut in 0..file.bytes.len() {
            let (records, error) = read(&file.bytes[..cut]);
            assert_eq!(records.len(), ends.iter().filter(|&&end| end <= cut).count(), "cut at {cut}");
            let at = whole.iter().chain(&ends).copied().filter(|&end| end <= cut).max();
            match error {
                None => assert_eq!(at, Some(cut)),
                Some(error) => assert_eq!(error.offset(), at.unwrap_or(0) as u64, "cut at {cut}: {error}"),
            }
        }
    }
}

#[test]
fn what_is_no_capture_is_named() {
    for (bytes, found) in
        [(&b""[..], "it is empty"), (b"ab", "the bytes 61 62"), (b"GET / HTTP", "47 45 54 20")]
    {
        let error = read(bytes).1.expect("not a capture").to_string();
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn a_failing_stream_hands_out_what_came_before() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }
    let mut file = Bytes::new(false);
    file.section().interface(1, 0, &[]).enhanced(0, 1, 5, b"hello");
    let at = file.bytes.len();
    let mut longer = Bytes::new(false);
    longer.raw(&file.bytes).u32(9).u32(4000).raw(&[0; 99]);
    for bytes in [&file.bytes, &longer.bytes] {
        let (records, error) = read_from(Failing(bytes));
        assert_eq!(records.len(), 1);
        let error = error.expect("a read error");
        assert_eq!(
            error.to_string(),
            format!("reading stopped at byte {at} of the uncompressed data: the disk is gone")
        );
    }
}

#[test]
fn big_blocks_are_read_and_bigger_ones_skipped_in_bounded_memory() {
    let mut file = Bytes::new(false);
    file.section().interface(1, 0, &[]);
    file.block(4, |body| {
        body.raw(&vec![7; 20 << 20]);
    });
    file.block(6, |body| {
        body.u32(0).u32(0).u32(1).u32(262_144).u32(262_144).raw(&vec![5; 262_144]);
        for _ in 0..40 {
            body.u16(1).u16(60_000).raw(&[b'x'; 60_000]);
        }
    });
    let mut capture = Capture::open(&file.bytes[..]).expect("opens");
    let record = capture.next().expect("whole").expect("a record");
    assert_eq!((record.data.len(), record.data[262_143]), (262_144, 5));
    assert!(capture.next().expect("whole").is_none());
    assert!(capture.window.held() <= 8 << 20, "{}", capture.window.held());
}

#[test]
fn what_is_written_is_read() {
    let mut writer = PcapngWriter::new(
        Vec::new(),
        &[
            Interface { name: "port1", link: LinkType::ETHERNET },
            Interface { name: "port2", link: LinkType::RAW },
        ],
    )
    .expect("writes");
    writer.write(0, 1_700_000_000_123_456_789, 1500, b"one", None).expect("writes");
    writer.write(1, u64::MAX, 0, b"four", Some("not_web")).expect("writes");
    let long = "é".repeat(40_000);
    writer.write(0, 1, 1, b"", Some(&long)).expect("writes");
    assert!(writer.write(2, 0, 0, b"", None).is_err());
    assert!(writer.write(0, 0, 0, &vec![0; 262_145], None).is_err());
    let file = writer.finish().expect("flushes");
    let (records, error) = read(&file);
    assert!(error.is_none(), "{error:?}");
    let second = Owned { link: LinkType::RAW, interface: 1, ..one(b"four", 4, u64::MAX) };
    assert_eq!(records, [one(b"one", 1500, 1_700_000_000_123_456_789), second, one(b"", 1, 1)]);
    let comment = [&[1, 0, 7, 0][..], b"not_web\0", &[0; 4]].concat();
    assert!(file.windows(comment.len()).any(|window| window == comment));
    assert!(file.windows(5).any(|window| window == b"port2"));
    let cut = [&[1, 0, 0xfe, 0xff][..], &long.as_bytes()[..65_534]].concat();
    assert!(file.windows(cut.len()).any(|window| window == cut), "cut between two characters");
}

#[test]
fn classic_pcap_is_written_too() {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::RAW).expect("writes");
    writer.write(1_700_000_000_123_456_789, 9, b"one").expect("writes");
    assert!(writer.write(u64::MAX, 9, b"late").is_err());
    let (records, error) = read(&writer.finish().expect("flushes"));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(records, [Owned { link: LinkType::RAW, ..one(b"one", 9, 1_700_000_000_123_456_789) }]);
}

#[test]
fn changed_bytes_never_panic() {
    let mut file = Bytes::new(false);
    file.section().interface(1, 64, &[(2, b"name"), (9, &[9]), (14, &[0; 8])]);
    file.enhanced(0, 1, 5, b"hello").block(3, |body| {
        body.u32(4).raw(b"abcd");
    });
    file.block(2, |body| {
        body.u32(0).u32(0).u32(0).u32(2).u32(3).raw(b"ob");
    });
    let mut damaged_files = 0;
    for at in 0..file.bytes.len() {
        for value in [0, 1, 3, 0x7f, 0x80, 0xff] {
            let mut changed = file.bytes.clone();
            changed[at] = value;
            damaged_files += usize::from(read(&changed).1.is_some());
        }
    }
    assert!(damaged_files > file.bytes.len(), "most changes of lengths are noticed");
}
