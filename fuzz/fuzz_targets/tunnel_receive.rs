//! Any bytes at a tunnel are a message or a reason to drop them: what was not sealed by a peer gives no
//! payload, and changed messages of a peer neither.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;
use tunnel::limits::SECOND;
use tunnel::{
    PeerId, PeerSetup, Received, SecretKey, SendOutcome, Tunnel, TunnelDrop, TunnelPayload, TunnelSetup,
};

fn address(of: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, of], 4_000))
}

fn end(own: u8, other: u8) -> Tunnel {
    let setup = TunnelSetup { secrets: vec![SecretKey::new([own; 32])], aes: true, now: 0, started: SECOND };
    let mut filler = own;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            filler = filler.wrapping_mul(5).wrapping_add(3);
            *byte = filler;
        }
    };
    let mut tunnel = Tunnel::new(setup, Box::new(random)).expect("one secret");
    let keys = vec![SecretKey::new([other; 32]).public()];
    let peer = PeerSetup { keys, address: Some(address(other)), keepalive: None, greatest_timestamp: 0 };
    tunnel.add_peer(PeerId(0), peer).expect("a good peer");
    tunnel
}

// The first byte says which message of a handshake is changed, or that the input stands for itself; then
// come places and values to change.
fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else { return };
    let mut ends = [end(1, 2), end(2, 1)];
    let mut out = [0; 512];
    let waits = ends[0].send(0, PeerId(0), TunnelPayload::Control(b"begin"), &mut out);
    assert_eq!(waits, Ok(SendOutcome::Queued));
    for (step, (from, to)) in [(0, 1), (1, 0), (0, 1)].into_iter().enumerate() {
        let transmit = ends[from].transmit(0, &mut out).expect("a message of the handshake");
        let message = out[..transmit.length].to_vec();
        if usize::from(which % 4) == step {
            let mut changed = message.clone();
            for change in rest.chunks_exact(2) {
                let place = usize::from(change[0]) % changed.len();
                changed[place] = change[1];
            }
            if changed != message {
                let result = ends[to].receive(0, address(7), &mut changed);
                assert!(result.is_err(), "a changed message is taken: {result:?}");
                assert_ne!(result, Err(TunnelDrop::AskedForCookie));
            }
        }
        let received = ends[to].receive(0, address(from as u8 + 1), &mut message.clone());
        assert!(received.is_ok(), "{received:?}");
    }
    if which % 4 == 3 {
        let mut datagram = rest.to_vec();
        let result = ends[usize::from(which / 4 % 2)].receive(SECOND, address(7), &mut datagram);
        assert!(!matches!(result, Ok(Received::Packet(..) | Received::Control(..))), "{result:?}");
    }
});
