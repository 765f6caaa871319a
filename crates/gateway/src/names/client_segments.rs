//! Segments of clients that nobody is promised to, as the program punts them.

use super::packet_tables::SERVER_NAME;
use crate::routing::{ETHERNET, Ipv4};
use engine::live::{Remote, SubscriptionWish, ToldOf};
use naming::limits::LONGEST_HELLO;
use naming::{ClientConnection, ClientSegment, TCP};
use std::time::Duration;

/// The flag of a segment that acknowledges (RFC 9293, 3.1).
const ACK: u8 = 0x10;

/// Lets `take` have the segments, until the packet loop ends; that is looked for after `look`.
pub(super) fn follow(remote: &Remote, look: Duration, mut take: impl FnMut(&ClientSegment<'_>)) {
    let snap = (ETHERNET + 2 * 60 + LONGEST_HELLO) as u32;
    let wish =
        SubscriptionWish { reasons: vec![SERVER_NAME.to_owned()], snap, ..SubscriptionWish::default() };
    let Some(subscription) = remote.subscribe(wish) else { return };
    // Nobody waits for the waypoint while this waits for the first batch.
    if remote.ask_at(0, |_| ()).is_none() {
        return;
    }
    loop {
        match subscription.next(look) {
            Ok(Some(told)) => {
                if let ToldOf::Punt { bytes, .. } = &told.what
                    && let Some(segment) = segment_of(bytes)
                {
                    take(&segment);
                }
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

/// The segment of TCP in a frame; none in what is cut off, is a part of a packet or acknowledges nothing.
fn segment_of(frame: &[u8]) -> Option<ClientSegment<'_>> {
    let ip = Ipv4::read(frame).filter(|ip| ip.protocol == TCP && !ip.piece)?;
    let fixed: &[u8; 20] = ip.payload.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    if fixed[13] & ACK == 0 {
        return None;
    }
    let bytes = ip.payload.get(usize::from(fixed[12] >> 4) * 4..)?;
    let connection = ClientConnection {
        initiator: ip.source,
        initiator_port: port(0),
        address: ip.destination,
        port: port(2),
        acknowledges: number(8),
    };
    Some(ClientSegment { connection, sequence: number(4), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with two bytes of data and so many bytes of options, in a frame.
    fn frame(flags: u8, options: usize) -> Vec<u8> {
        let ports_and_numbers = [0x9c, 0x40, 1, 0xbb, 0xff, 0, 0, 1, 0x80, 0, 0, 2];
        let fixed = [(5 + options / 4) as u8 * 16, flags, 16, 0, 0, 0, 0, 0];
        let tcp = [&ports_and_numbers[..], &fixed, &vec![1; options], b"hi"].concat();
        let length = (20 + tcp.len() as u16).to_be_bytes();
        let ip = [&[0x45, 0][..], &length, &[0, 1, 0x40, 0, 64, TCP, 0, 0]].concat();
        let ip = [&ip[..], &[198, 51, 100, 9], &[203, 0, 113, 32]].concat();
        [&[2; 12][..], &[8, 0], &ip, &tcp].concat()
    }

    #[test]
    fn a_segment_has_the_number_that_it_acknowledges_and_one_that_acknowledges_nothing_is_none() {
        let connection = ClientConnection {
            initiator: [198, 51, 100, 9].into(),
            initiator_port: 40_000,
            address: [203, 0, 113, 32].into(),
            port: 443,
            acknowledges: 0x8000_0002,
        };
        for (flags, options) in [(ACK, 0), (ACK | 8, 12), (0xff, 40)] {
            let bytes = frame(flags, options);
            let segment = segment_of(&bytes).expect("it acknowledges");
            assert_eq!(
                (segment.connection, segment.sequence, segment.bytes),
                (connection, 0xff00_0001, &b"hi"[..])
            );
        }
        for flags in [0, 2, 8, 0xff ^ ACK] {
            assert!(segment_of(&frame(flags, 0)).is_none(), "{flags:#x}");
        }
        let whole = frame(ACK, 12);
        for length in 0..whole.len() {
            assert!(segment_of(&whole[..length]).is_none(), "{length}");
        }
    }
}
