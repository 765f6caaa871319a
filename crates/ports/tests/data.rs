//! Reads a directory of captures made by others, where the variable `RAVELIN_DATA` names one, and compares
//! with what is known of them.
//!
//! The directory holds `pcapng/output_{le,be}/*/test*.{pcapng,txt}` (conformance files with their block
//! counts), `malformed/INDEX.csv` (columns `file`, `format`, `packets`, `bytes_on_wire`, `max_frame`) and
//! `captures/facts.json` with captures beside it.

use captures::CaptureError;
use packet::Batch;
use ports::{CaptureLinks, CaptureSource, Ingress, IngressPolicy, OpenError, Receive, ReceiveError};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A packet: bytes, length on the wire, time.
type Packet = (Vec<u8>, u32, u64);

fn data() -> Option<PathBuf> {
    let directory = PathBuf::from(std::env::var_os("RAVELIN_DATA")?);
    assert!(directory.is_dir(), "RAVELIN_DATA names no directory: {}", directory.display());
    Some(directory)
}

fn read(path: &Path) -> (Vec<Packet>, Option<CaptureError>) {
    let mut packets = Vec::new();
    let error = each(path, |bytes, wire, time| packets.push((bytes.to_vec(), wire, time)));
    (packets, error)
}

fn each(path: &Path, mut seen: impl FnMut(&[u8], u32, u64)) -> Option<CaptureError> {
    let name = path.to_str().expect("a name in UTF-8");
    let mut source = match CaptureSource::open(name, CaptureLinks::Any, Ingress::new(IngressPolicy::Hash, 5))
    {
        Ok(source) => source,
        Err(OpenError::Capture { source, .. }) => return Some(source),
        Err(error) => panic!("{error}"),
    };
    let mut batch = Batch::new();
    loop {
        let memory = match source.receive(&mut batch) {
            Ok(memory) => memory,
            Err(ReceiveError::Capture { source, .. }) => return Some(source),
            Err(error) => panic!("{error}"),
        };
        if batch.is_empty() {
            return None;
        }
        for i in 0..batch.len {
            seen(batch.bytes(memory, i).expect("inside the memory"), batch.wire[i], batch.time[i]);
        }
    }
}

#[test]
fn conformance_files_in_both_byte_orders() {
    let Some(data) = data() else {
        return;
    };
    let mut files = 0;
    for group in ["basic", "advanced", "difficult"] {
        for entry in fs::read_dir(data.join("pcapng/output_le").join(group)).expect("a directory") {
            let little = entry.expect("an entry").path();
            if little.extension().is_none_or(|extension| extension != "pcapng") {
                continue;
            }
            let name = little.file_name().expect("a name");
            let big = data.join("pcapng/output_be").join(group).join(name);
            let (packets, error) = read(&little);
            assert!(error.is_none(), "{name:?}: {error:?}");
            let (others, error) = read(&big);
            assert!(error.is_none(), "{name:?}: {error:?}");
            assert_eq!(packets, others, "{name:?} is the same in both byte orders");
            let text = fs::read_to_string(little.with_extension("txt")).expect("a text");
            let counts = text.lines().filter_map(|line| line.trim().split_once(": "));
            let blocks: BTreeMap<_, usize> =
                counts.filter_map(|(name, n)| Some((name, n.trim().parse().ok()?))).collect();
            let expected: usize = ["EPB", "SPB", "PB"].iter().filter_map(|kind| blocks.get(kind)).sum();
            assert_eq!(packets.len(), expected, "{name:?}");
            files += 2;
        }
    }
    assert_eq!(files, 48);
}

#[test]
fn malformed_captures_are_read_as_far_as_they_go() {
    let Some(data) = data() else {
        return;
    };
    let index = fs::read_to_string(data.join("malformed/INDEX.csv")).expect("an index");
    let mut lines = index.lines();
    let header: Vec<_> = lines.next().expect("a header").split(',').collect();
    let column = |name| header.iter().position(|&found| found == name).expect("a column");
    let [file, format, packets, bytes] = ["file", "format", "packets", "bytes_on_wire"].map(column);
    let mut files = 0;
    for line in lines {
        let fields: Vec<_> = line.split(',').collect();
        let path = data.join("malformed").join(fields[file]);
        let (mut found, mut wire) = (0_u64, 0_u64);
        let error = each(&path, |_, length, _| {
            found += 1;
            wire += u64::from(length);
        });
        files += 1;
        if fields[format] == "unknown" {
            assert!(matches!(error, Some(CaptureError::NotACapture { .. })), "{line}: {error:?}");
            continue;
        }
        let expected: u64 = fields[packets].parse().expect("a number");
        assert_eq!(found, expected, "{}: {error:?}", fields[file]);
        // An original length below the captured one counts as the captured one here, and as it stands there.
        let expected: u64 = fields[bytes].parse().expect("a number");
        let below = if fields[file] == "tcpdump__slip-compressed_sl_print-oobr.pcap" { 30 } else { 0 };
        assert_eq!(wire, expected + below, "{}: {error:?}", fields[file]);
    }
    assert!(files >= 300, "{files} files");
}
