//! Any bytes are read as a capture, compressed or not, to a clean end or an error.
#![no_main]

use captures::Capture;
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read};

/// Compressed bytes may unpack to far more than there is time for.
const MOST: u64 = 1 << 22;

fuzz_target!(|bytes: &[u8]| {
    let Ok(stream) = captures::compressed::uncompressed(Cursor::new(bytes.to_vec())) else { return };
    let Ok(mut capture) = Capture::open(stream.take(MOST)) else { return };
    while let Ok(Some(record)) = capture.next() {
        assert!(record.wire as usize >= record.data.len());
    }
    assert!(!matches!(capture.next(), Ok(Some(_))), "there is a packet behind the end");
});
