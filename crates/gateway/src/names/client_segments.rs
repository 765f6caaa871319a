//! Segments of clients that nobody is promised to, as the program punts them.

use super::packet_tables::SERVER_NAME;
use crate::routing::{ETHERNET, Ipv4};
use engine::live::{Remote, SubscriptionWish, ToldOf};
use naming::limits::LONGEST_HELLO;
use naming::{ClientConnection, ClientSegment};
use std::time::Duration;

/// The number of TCP.
const TCP: u8 = 6;

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

/// The segment of TCP in a frame; none in what is cut off, or is a part of a packet.
fn segment_of(frame: &[u8]) -> Option<ClientSegment<'_>> {
    let ip = Ipv4::read(frame).filter(|ip| ip.protocol == TCP && !ip.piece)?;
    let fixed: &[u8; 20] = ip.payload.first_chunk()?;
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let sequence = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    let bytes = ip.payload.get(usize::from(fixed[12] >> 4) * 4..)?;
    let connection = ClientConnection {
        initiator: ip.source,
        initiator_port: port(0),
        address: ip.destination,
        port: port(2),
    };
    Some(ClientSegment { connection, sequence, bytes })
}
