//! How fast one core seals and opens data, and how many handshakes a second it does.
//!
//! `cargo run --release -p tunnel --example tunnel_speed`. All cases take turns, and each line has the median
//! and the range of the rounds.

use std::net::SocketAddr;
use std::time::Instant;
use tunnel::limits::SECOND;
use tunnel::{CipherSuite, PeerId, PeerSetup, SecretKey, SendOutcome, Tunnel, TunnelPayload, TunnelSetup};

const ROUNDS: usize = 9;
const PACKETS: u64 = 50_000;
const HANDSHAKES: u64 = 200;

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

/// The median and the range of figures a second.
fn print(what: &str, mut nanoseconds: Vec<f64>) {
    nanoseconds.sort_by(f64::total_cmp);
    let a_second = |of: f64| 1e9 / of;
    let [fastest, median, slowest] =
        [0, nanoseconds.len() / 2, nanoseconds.len() - 1].map(|at| nanoseconds[at]);
    println!(
        "{what:<44} {:>11.0} a second ({:.0} to {:.0}), {median:.0} ns",
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
    for _ in 0..ROUNDS {
        for (case, (aes, length)) in cases.into_iter().enumerate() {
            let (sealing, opening) = data(aes, length);
            seal[case].push(sealing);
            open[case].push(opening);
        }
        shake.push(handshakes());
    }
    println!("AES in hardware: {}; {ROUNDS} rounds", CipherSuite::aes_in_hardware());
    for (case, (aes, length)) in cases.into_iter().enumerate() {
        let suite = if aes { CipherSuite::Aes256Gcm } else { CipherSuite::ChaCha20Poly1305 };
        print(&format!("{suite:?}, {length} bytes, sealed"), std::mem::take(&mut seal[case]));
        print(&format!("{suite:?}, {length} bytes, opened"), std::mem::take(&mut open[case]));
    }
    print("handshakes, both ends on one core", shake);
}
