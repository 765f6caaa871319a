//! How fast one core seals and opens data, how many handshakes a second it does, and what a datagram costs
//! that is refused.
//!
//! `cargo run --release -p tunnel --example tunnel_speed`. All cases take turns, and each line has the median
//! and the range of the rounds.

use std::net::SocketAddr;
use std::time::Instant;
use tunnel::limits::SECOND;
use tunnel::{
    CipherSuite, PeerId, PeerSetup, SecretKey, SendOutcome, Tunnel, TunnelDrop, TunnelPayload, TunnelSetup,
};

const ROUNDS: usize = 9;
const PACKETS: u64 = 50_000;
const HANDSHAKES: u64 = 200;
const REFUSED: u64 = 20_000;

/// What is refused, and by what it is known.
const REFUSALS: [(&str, TunnelDrop); 5] = [
    ("data of a session that nobody has", TunnelDrop::UnknownSession),
    ("data that was changed, 64 bytes", TunnelDrop::ForgedData),
    ("data that came before", TunnelDrop::Replayed),
    ("a handshake without our key", TunnelDrop::WrongMac1),
    ("handshakes of a stranger who has our key", TunnelDrop::AskedForCookie),
];

fn address(of: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, of], 4_000))
}

/// The random bytes need not be secret here: a counter does.
fn end(own: u8, other: u8, aes: bool) -> Tunnel {
    let setup = TunnelSetup { secrets: vec![SecretKey::new([own; 32])], aes, now: 0, started: SECOND };
    let mut counter = u64::from(own);
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            counter = counter.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = (counter >> 56) as u8;
        }
    };
    let mut tunnel = Tunnel::new(setup, Box::new(random)).expect("one secret");
    let keys = vec![SecretKey::new([other; 32]).public()];
    let peer = PeerSetup { keys, address: Some(address(other)), keepalive: None, greatest_timestamp: 0 };
    tunnel.add_peer(PeerId(0), peer).expect("a good peer");
    tunnel
}

/// Lets the first end begin, and both finish: the packet that waits for the session goes through.
fn open(ends: &mut [Tunnel; 2], now: u64) {
    let mut out = [0; 256];
    ends[0].send(now, PeerId(0), TunnelPayload::Control(b"begin"), &mut out).expect("it waits");
    for (from, to) in [(0, 1), (1, 0), (0, 1)] {
        let transmit = ends[from].transmit(now, &mut out).expect("a message of the handshake");
        ends[to].receive(now, address(from as u8 + 1), &mut out[..transmit.length]).expect("it is authentic");
    }
}

/// Nanoseconds a packet, to seal and to open. A batch is sealed, and then opened.
fn data(aes: bool, length: usize) -> (f64, f64) {
    let mut ends = [end(1, 2, aes), end(2, 1, aes)];
    open(&mut ends, 0);
    let packet = vec![0x45; length];
    let mut buffers = vec![[0; 1_600]; 100];
    let (mut sealing, mut opening) = (0, 0);
    for _ in 0..PACKETS / 100 {
        let begin = Instant::now();
        for buffer in &mut buffers {
            let sealed = ends[0].send(SECOND, PeerId(0), TunnelPayload::Packet(&packet), buffer);
            assert!(matches!(sealed, Ok(SendOutcome::Sealed(_))));
        }
        sealing += begin.elapsed().as_nanos();
        let begin = Instant::now();
        for buffer in &mut buffers {
            assert!(ends[1].receive(SECOND, address(1), &mut buffer[..length + 32]).is_ok());
        }
        opening += begin.elapsed().as_nanos();
    }
    (sealing as f64 / PACKETS as f64, opening as f64 / PACKETS as f64)
}

/// Nanoseconds of both ends together for a handshake and the data that confirms it.
fn handshakes() -> f64 {
    let mut ends = [end(1, 2, true), end(2, 1, true)];
    let begin = Instant::now();
    for number in 0..HANDSHAKES {
        // The session before is too old by then.
        open(&mut ends, number * 600 * SECOND);
    }
    begin.elapsed().as_nanos() as f64 / HANDSHAKES as f64
}

/// Nanoseconds to refuse a datagram for this reason, when many like it come at once.
fn refusal(reason: TunnelDrop) -> f64 {
    let mut ends = [end(1, 2, true), end(2, 1, true)];
    open(&mut ends, 0);
    let mut datagram = [0; 256];
    let is_data = !matches!(reason, TunnelDrop::WrongMac1 | TunnelDrop::AskedForCookie);
    let length = if is_data {
        let packet = [0x45; 64];
        match ends[0].send(SECOND, PeerId(0), TunnelPayload::Packet(&packet), &mut datagram) {
            Ok(SendOutcome::Sealed(sent)) => sent.length,
            other => panic!("data of an open session is sealed, not {other:?}"),
        }
    } else {
        let mut stranger = end(3, 2, true);
        stranger.send(SECOND, PeerId(0), TunnelPayload::Control(b"begin"), &mut datagram).expect("it waits");
        stranger.transmit(SECOND, &mut datagram).expect("a message of the handshake").length
    };
    match reason {
        TunnelDrop::UnknownSession => datagram[4..8].fill(0xff),
        TunnelDrop::ForgedData => datagram[length - 1] ^= 1,
        TunnelDrop::WrongMac1 => datagram[length - 32] ^= 1,
        TunnelDrop::Replayed => {
            let mut first = datagram;
            ends[1].receive(SECOND, address(1), &mut first[..length]).expect("it is new");
        }
        _ => {}
    }
    let mut refused = 0;
    let begin = Instant::now();
    for _ in 0..REFUSED {
        // Data is opened in place, so each is a copy.
        let mut copy = datagram;
        refused += u64::from(ends[1].receive(SECOND, address(3), &mut copy[..length]) == Err(reason));
        while ends[1].transmit(SECOND, &mut copy).is_some() {}
    }
    let nanoseconds = begin.elapsed().as_nanos() as f64 / REFUSED as f64;
    assert!(refused > REFUSED / 2, "{reason:?}: {refused}");
    nanoseconds
}

/// The median and the range of figures a second.
fn print(what: &str, mut nanoseconds: Vec<f64>) {
    nanoseconds.sort_by(f64::total_cmp);
    let a_second = |of: f64| 1e9 / of;
    let [fastest, median, slowest] =
        [0, nanoseconds.len() / 2, nanoseconds.len() - 1].map(|at| nanoseconds[at]);
    println!(
        "{what:<52} {:>11.0} a second ({:.0} to {:.0}), {median:.0} ns",
        a_second(median),
        a_second(slowest),
        a_second(fastest)
    );
}

fn main() {
    let cases = [(true, 64), (false, 64), (true, 1_464), (false, 1_464)];
    let mut seal = vec![Vec::new(); cases.len()];
    let mut open = vec![Vec::new(); cases.len()];
    let mut shake = Vec::new();
    let mut refusals = REFUSALS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (case, (aes, length)) in cases.into_iter().enumerate() {
            let (sealing, opening) = data(aes, length);
            seal[case].push(sealing);
            open[case].push(opening);
        }
        shake.push(handshakes());
        for (taken, (_, reason)) in refusals.iter_mut().zip(REFUSALS) {
            taken.push(refusal(reason));
        }
    }
    println!("AES in hardware: {}; {ROUNDS} rounds", CipherSuite::aes_in_hardware());
    for (case, (aes, length)) in cases.into_iter().enumerate() {
        let suite = if aes { CipherSuite::Aes256Gcm } else { CipherSuite::ChaCha20Poly1305 };
        print(&format!("{suite:?}, {length} bytes, sealed"), std::mem::take(&mut seal[case]));
        print(&format!("{suite:?}, {length} bytes, opened"), std::mem::take(&mut open[case]));
    }
    print("handshakes, both ends on one core", shake);
    for (taken, (what, _)) in refusals.into_iter().zip(REFUSALS) {
        print(&format!("refused: {what}"), taken);
    }
}
