//! Ends of tunnels and a network between them that loses, repeats, delays and reorders by a seed.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use tables::generate::Random;
use tunnel::limits::SECOND;
use tunnel::{
    PeerId, PeerSetup, PublicKey, Received, SecretKey, SendOutcome, Tunnel, TunnelDrop, TunnelPayload,
    TunnelSendError, TunnelSetup, TunnelTransmit,
};

/// The time of day when every test begins.
pub(crate) const DAY: u64 = 1_700_000_000 * SECOND;

/// The secret of an end; each end may have several.
pub(crate) fn secret(number: u8) -> SecretKey {
    SecretKey::new([number; 32])
}

pub(crate) fn key(number: u8) -> PublicKey {
    secret(number).public()
}

pub(crate) fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8 + 1], 4_000))
}

/// An end that begins at `now`, with random bytes of a seed.
pub(crate) fn end(secrets: &[u8], aes: bool, seed: u64, now: u64) -> Tunnel {
    let mut random = Random::new(seed);
    let setup = TunnelSetup {
        secrets: secrets.iter().map(|number| secret(*number)).collect(),
        aes,
        now,
        started: DAY + now,
    };
    Tunnel::new(setup, Box::new(move |bytes| bytes.iter_mut().for_each(|byte| *byte = random.word() as u8)))
        .expect("good secrets")
}

pub(crate) fn peer(keys: &[u8], address: Option<SocketAddr>) -> PeerSetup {
    let keys = keys.iter().map(|number| key(*number)).collect();
    PeerSetup { keys, address, keepalive: None, greatest_timestamp: 0 }
}

/// Two ends that know each other; the first knows where the second is. Their secrets are 1 and 2, and each
/// calls the other by its number from 0.
pub(crate) fn pair(aes: [bool; 2]) -> [Tunnel; 2] {
    let mut ends = [end(&[1], aes[0], 1, 0), end(&[2], aes[1], 2, 0)];
    ends[0].add_peer(PeerId(1), peer(&[2], Some(address(1)))).expect("a good peer");
    ends[1].add_peer(PeerId(0), peer(&[1], None)).expect("a good peer");
    ends
}

/// An IP packet that says who sent it to whom.
pub(crate) fn packet(from: usize, to: usize, number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0x45; length.max(8)];
    bytes[1] = from as u8;
    bytes[2] = to as u8;
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Everything that an end has to send now.
pub(crate) fn transmit_all(tunnel: &mut Tunnel, now: u64) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut out = [0; 2_000];
    std::iter::from_fn(|| {
        let TunnelTransmit { to, length } = tunnel.transmit(now, &mut out)?;
        Some((to, out[..length].to_vec()))
    })
    .collect()
}

/// Seals or queues one packet.
pub(crate) fn send(
    tunnel: &mut Tunnel,
    now: u64,
    to: u32,
    bytes: &[u8],
) -> Result<Option<(SocketAddr, Vec<u8>)>, TunnelSendError> {
    let mut out = vec![0; bytes.len() + 64];
    Ok(match tunnel.send(now, PeerId(to), TunnelPayload::Packet(bytes), &mut out)? {
        SendOutcome::Queued => None,
        SendOutcome::Sealed(TunnelTransmit { to, length }) => Some((to, out[..length].to_vec())),
    })
}

/// What the network does to a datagram.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    /// Of 100 datagrams.
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) longest_delay: u64,
}

pub(crate) const FAIR: Weather = Weather { lost: 0, repeated: 0, longest_delay: SECOND / 100 };

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at_end: usize,
    pub(crate) from: PeerId,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Internet {
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) weather: Weather,
    pub(crate) ends: Vec<Tunnel>,
    /// Where each end sends from and receives.
    pub(crate) addresses: Vec<SocketAddr>,
    /// By the time of arrival and a number.
    flying: BTreeMap<(u64, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    sent: u64,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) drops: BTreeMap<TunnelDrop, u64>,
    /// Every datagram that was sent: from, to, bytes.
    pub(crate) log: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    pub(crate) handshakes: u64,
}

impl Internet {
    pub(crate) fn new(seed: u64, ends: Vec<Tunnel>) -> Internet {
        let addresses = (0..ends.len()).map(address).collect();
        Internet {
            now: 0,
            random: Random::new(seed),
            weather: FAIR,
            ends,
            addresses,
            flying: BTreeMap::new(),
            sent: 0,
            arrivals: Vec::new(),
            drops: BTreeMap::new(),
            log: Vec::new(),
            handshakes: 0,
        }
    }

    /// Hands a datagram to the network, which may lose or repeat it.
    pub(crate) fn carry(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.handshakes += u64::from(bytes[0] == 1);
        self.log.push((from, to, bytes.clone()));
        let copies = match self.random.below(100) {
            chance if chance < self.weather.lost => 0,
            chance if chance < self.weather.lost + self.weather.repeated => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.sent += 1;
            let at = self.now + 1 + self.random.below(self.weather.longest_delay);
            self.flying.insert((at, self.sent), (from, to, bytes.clone()));
        }
    }

    pub(crate) fn send(&mut self, from: usize, to: usize, bytes: &[u8]) -> Result<(), TunnelSendError> {
        let sealed = send(&mut self.ends[from], self.now, to as u32, bytes)?;
        if let Some((address, bytes)) = sealed {
            self.carry(self.addresses[from], address, bytes);
        }
        self.flush(from);
        Ok(())
    }

    fn flush(&mut self, end: usize) {
        for (to, bytes) in transmit_all(&mut self.ends[end], self.now) {
            self.carry(self.addresses[end], to, bytes);
        }
    }

    /// Lets time pass, with all that happens in it.
    pub(crate) fn run(&mut self, time: u64) {
        let until = self.now + time;
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.ends.iter().filter_map(Tunnel::next_deadline).min();
            let next = arrival.into_iter().chain(deadline).min().unwrap_or(u64::MAX);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            for end in 0..self.ends.len() {
                self.flush(end);
            }
            while let Some(((at, _), _)) = self.flying.first_key_value()
                && *at <= self.now
            {
                let (_, (from, to, mut bytes)) = self.flying.pop_first().expect("it is there");
                if let Some(end) = self.addresses.iter().position(|address| *address == to) {
                    self.deliver(end, from, &mut bytes);
                }
            }
        }
    }

    pub(crate) fn deliver(&mut self, end: usize, from: SocketAddr, bytes: &mut [u8]) {
        match self.ends[end].receive(self.now, from, bytes) {
            Ok(Received::Packet(peer, range)) => {
                self.arrivals.push(Arrival { at_end: end, from: peer, bytes: bytes[range].to_vec() });
            }
            Ok(_) => {}
            Err(reason) => *self.drops.entry(reason).or_default() += 1,
        }
        self.flush(end);
    }
}
