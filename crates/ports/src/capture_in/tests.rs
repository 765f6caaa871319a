//! Tests of the capture source: compressions, batches, damage, link types.

use super::*;
use crate::IngressPolicy;
use captures::write::{Interface, PcapWriter, PcapngWriter};
use std::io::Write;

fn pcap(n: u32, length: usize) -> Vec<u8> {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET).expect("writes");
    for i in 0..n {
        let mut bytes = vec![0; length];
        bytes[..4].copy_from_slice(&i.to_le_bytes());
        writer.write(u64::from(i), 2000, &bytes).expect("writes");
    }
    writer.finish().expect("writes")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn source(bytes: Vec<u8>, links: CaptureLinks) -> Result<CaptureSource, OpenError> {
    let stream = uncompressed(io::Cursor::new(bytes)).expect("memory can be read");
    CaptureSource::of_stream("test".to_owned(), stream, links, Ingress::new(IngressPolicy::RoundRobin, 5))
}

/// The sizes of the batches, and the error at the end if there is one. Checks the numbers and ports of the
/// packets.
fn drain(mut source: CaptureSource) -> (Vec<usize>, Option<String>) {
    let mut batch = Batch::new();
    let mut sizes = Vec::new();
    let mut next = 0_u32;
    loop {
        let memory = match source.receive(&mut batch) {
            Ok(memory) => memory,
            Err(error) => {
                source.receive(&mut batch).expect("an error comes once");
                assert!(batch.is_empty(), "nothing follows an error");
                return (sizes, Some(error.to_string()));
            }
        };
        if batch.is_empty() {
            return (sizes, None);
        }
        for i in 0..batch.len {
            assert_eq!(batch.bytes(memory, i).expect("inside")[..4], next.to_le_bytes());
            assert_eq!(u32::from(batch.port[i]), next % 5 + 1);
            assert_eq!((batch.time[i], batch.wire[i]), (u64::from(next), batch.captured[i].max(2000)));
            next += 1;
        }
        sizes.push(batch.len);
    }
}

#[test]
fn plain_gzip_and_zstd_give_the_same() {
    let plain = pcap(600, 100);
    let half = plain.len() / 2;
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(&plain[..half])].concat();
    let two_frames = [skipped.clone(), skipped[..11].to_vec(), zstd(&plain[half..])].concat();
    let two_members = [gzip(&plain[..half]), gzip(&plain[half..])].concat();
    for bytes in [plain.clone(), gzip(&plain), zstd(&plain), two_frames, two_members] {
        assert_eq!(drain(source(bytes, CaptureLinks::Ethernet).expect("opens")), (vec![256, 256, 88], None));
    }
}

#[test]
fn long_frames_make_shorter_batches() {
    let (sizes, error) = drain(source(pcap(40, 262_144), CaptureLinks::Ethernet).expect("opens"));
    assert_eq!((sizes, error), (vec![15, 15, 10], None));
}

#[test]
fn what_lies_before_the_damage_is_delivered() {
    let mut bytes = pcap(300, 60);
    let whole = bytes.len();
    bytes.extend([0; 20]);
    bytes[whole + 8..whole + 12].copy_from_slice(&99_u32.to_le_bytes());
    let (sizes, error) = drain(source(gzip(&bytes), CaptureLinks::Ethernet).expect("opens"));
    assert_eq!(sizes, [256, 44]);
    let expected = format!(
        "test: the capture is damaged at byte {whole}: the file ends 95 bytes before the end of the record"
    );
    assert_eq!(error, Some(expected));
}

#[test]
fn damaged_compression_is_an_error_after_what_came_before() {
    let said = ["incomplete deflate stream", "the zstd data ends in the middle of a frame"];
    for (compressed, said) in [gzip(&pcap(5000, 100)), zstd(&pcap(5000, 100))].into_iter().zip(said) {
        let cut = compressed[..compressed.len() - 20].to_vec();
        let (sizes, error) = drain(source(cut, CaptureLinks::Ethernet).expect("opens"));
        // Four whole blocks of 128 KiB lie before the cut, which are 4,519 records of 116 bytes.
        assert!(sizes.iter().sum::<usize>() > 4_500, "{sizes:?}");
        let error = error.expect("the end is missing");
        assert!(error.starts_with("test: reading stopped at byte "), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let mut wrong_sum = zstd(&pcap(10, 100));
    *wrong_sum.last_mut().expect("not empty") ^= 1;
    let (_, error) = drain(source(wrong_sum, CaptureLinks::Ethernet).expect("opens"));
    assert!(error.as_ref().is_some_and(|error| error.contains("checksum")), "{error:?}");
}

#[test]
fn other_link_types_need_the_option() {
    let mut writer = PcapngWriter::new(
        Vec::new(),
        &[Interface { name: "a", link: LinkType::ETHERNET }, Interface { name: "b", link: LinkType::RAW }],
    )
    .expect("writes");
    for i in 0..3_u32 {
        writer.write(i / 2, u64::from(i), 2000, &i.to_le_bytes(), None).expect("writes");
    }
    let bytes = writer.finish().expect("writes");
    let (sizes, error) = drain(source(bytes.clone(), CaptureLinks::Ethernet).expect("opens"));
    assert_eq!(sizes, [2]);
    let error = error.expect("raw IP");
    assert!(
        error.starts_with("test: packet 3 is of interface 1, whose link type is 101 (raw IP)"),
        "{error}"
    );
    assert!(error.contains("--link any"), "{error}");
    assert_eq!(drain(source(bytes, CaptureLinks::Any).expect("opens")), (vec![3], None));
}

#[test]
fn the_interfaces_of_a_capture_are_ports() {
    let names = ["a", "b", "c"].map(|name| Interface { name, link: LinkType::ETHERNET });
    let mut writer = PcapngWriter::new(Vec::new(), &names).expect("writes");
    for interface in [2, 0, 1, 2] {
        writer.write(interface, 0, 60, &[0; 60], None).expect("writes");
    }
    let bytes = writer.finish().expect("writes");
    let opened = |ports| {
        let stream = uncompressed(io::Cursor::new(bytes.clone())).expect("memory can be read");
        let ingress = Ingress::new(IngressPolicy::Interface, ports);
        CaptureSource::of_stream("test".to_owned(), stream, CaptureLinks::Ethernet, ingress).expect("opens")
    };
    let mut batch = Batch::new();
    opened(3).receive(&mut batch).expect("all have a port");
    assert_eq!(batch.port[..batch.len], [3, 1, 2, 3]);
    let error = opened(2).receive(&mut batch).expect_err("no port 3").to_string();
    let said = "test: packet 1 is of interface 2, counted from 0, which would be port 3, and there are ports 1 to 2; --ports makes more";
    assert_eq!(error, said);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let ingress = Ingress::new(IngressPolicy::RoundRobin, 5);
    let error = CaptureSource::open("/no/such/file", CaptureLinks::Ethernet, ingress).err().expect("no file");
    assert!(error.to_string().starts_with("cannot open /no/such/file: "), "{error}");
    let error = source(b"GET / HTTP/1.1".to_vec(), CaptureLinks::Ethernet).err().expect("no capture");
    assert!(error.to_string().starts_with("test: not a capture"), "{error}");
    assert!(source(Vec::new(), CaptureLinks::Ethernet).is_err());
}
