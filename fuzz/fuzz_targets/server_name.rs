//! Any segments give a server name, wait for more, or are refused; what is held stays within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use naming::limits::{HELLO_WAITS, LONGEST_HELLO, MOST_HELLOS};
use naming::{ClientConnection, ClientHellos, ClientSegment};

fuzz_target!(|bytes: &[u8]| {
    let mut hellos = ClientHellos::default();
    let (mut rest, mut now) = (bytes, 0);
    // A segment: its client, what it acknowledges and seconds since the one before, sequence number, length.
    while let Some(([client, seconds, high, low, length], after)) = rest.split_first_chunk() {
        now += u64::from(*seconds % 4) * 1_000_000_000;
        let (segment, after) = after.split_at((usize::from(*length) * 8).min(after.len()));
        let connection = ClientConnection {
            initiator: [203, 0, 113, *client].into(),
            initiator_port: 50_000,
            address: [198, 51, 100, 1].into(),
            port: 443,
            acknowledges: u32::from(*seconds >> 7),
        };
        let sequence = u32::from_be_bytes([0xff, 0xff, *high, *low]).wrapping_mul(3);
        let _ = hellos.take(&ClientSegment { connection, sequence, bytes: segment }, now);
        rest = after;
    }
    assert!(hellos.waiting(now) <= MOST_HELLOS);
    assert!(hellos.held() <= MOST_HELLOS * LONGEST_HELLO);
    assert_eq!(hellos.waiting(now + HELLO_WAITS), 0);
});
