//! What is known of a peer.

use crate::cipher::CipherSuite;
use crate::deadlines::NEVER;
use crate::keys::PublicKey;
use crate::limits::{
    COOKIE_SECRET_LIFE, GIVE_UP_AFTER, KEEPALIVE_AFTER, QUESTION_SILENCE, REJECT_AFTER, SILENCE,
};
use crate::macs::{MacBytes, MacKeys};
use crate::noise::Initiated;
use crate::session::SessionNumbers;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The caller's name for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// A peer as it is added.
#[derive(Clone, Debug)]
pub struct PeerSetup {
    /// Its public keys; while keys are rotated, both the old one and the new one.
    pub keys: Vec<PublicKey>,
    /// Where it is. Without an address this end waits until the peer begins.
    pub address: Option<SocketAddr>,
    /// Send something at least so often, in nanoseconds, so that a NAT in between keeps its mapping; and
    /// hold a session even if there is nothing to send.
    pub keepalive: Option<u64>,
    /// What [`PeerView::greatest_timestamp`] was before a restart; 0 if it was not stored.
    pub greatest_timestamp: u64,
}

/// What a caller may know of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Where its latest authentic message came from, or what it was set to.
    pub address: Option<SocketAddr>,
    /// The session in use.
    pub session: Option<SessionView>,
    /// That of its latest initiation. Initiations with this or an earlier one are refused.
    pub greatest_timestamp: u64,
    /// Packets that wait for a session.
    pub queued: usize,
    /// A handshake that this end has begun is under way.
    pub is_asking: bool,
    /// Packets that came from it, by which nothing else counts: no control messages, no keepalives.
    pub received: CarriedPackets,
    /// The same for packets to it.
    pub sent: CarriedPackets,
}

/// Packets that a tunnel has carried in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedPackets {
    /// How many.
    pub packets: u64,
    /// Their bytes, without those of the tunnel.
    pub bytes: u64,
}

impl CarriedPackets {
    pub(crate) fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// The session in use with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The key that the peer proved to have.
    pub peer_key: PublicKey,
    /// Ours.
    pub our_key: PublicKey,
    /// What seals its data.
    pub suite: CipherSuite,
    /// When its handshake ended, in the caller's time.
    pub born: u64,
    /// Data messages sent.
    pub sent: u64,
}

pub(crate) struct PeerKey {
    pub(crate) key: PublicKey,
    pub(crate) macs: MacKeys,
}

/// A handshake that this end has begun.
pub(crate) struct Attempt {
    pub(crate) begun: u64,
    pub(crate) retry_at: u64,
    pub(crate) tries: u32,
    /// The latest initiation.
    pub(crate) sent: Option<SentInitiation>,
}

pub(crate) struct SentInitiation {
    pub(crate) number: u32,
    pub(crate) noise: Initiated,
    pub(crate) mac1: MacBytes,
    pub(crate) our_key: PublicKey,
    pub(crate) peer_key: PublicKey,
}

/// A cookie that the peer gave to us.
pub(crate) struct HeldCookie {
    pub(crate) cookie: MacBytes,
    pub(crate) from_key: PublicKey,
    pub(crate) since: u64,
}

pub(crate) struct Peer {
    pub(crate) id: PeerId,
    /// The one that the latest session of ours was with stands first.
    pub(crate) keys: Vec<PeerKey>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) keepalive: Option<u64>,
    /// No packets come from it or go to it.
    pub(crate) is_control_only: bool,
    pub(crate) greatest_timestamp: u64,
    pub(crate) last_initiation: Option<u64>,
    /// What seals.
    pub(crate) current: Option<u32>,
    /// What still opens.
    pub(crate) previous: Option<u32>,
    /// Begun by the peer, which has not shown that it has the keys of it.
    pub(crate) next: Option<u32>,
    /// When the newest session was born in which something was received.
    pub(crate) heard: u64,
    pub(crate) attempt: Option<Attempt>,
    /// When to begin a handshake that had to wait.
    pub(crate) begin_at: Option<u64>,
    pub(crate) cookie: Option<HeldCookie>,
    /// Bodies of data messages that wait for a session.
    pub(crate) queue: VecDeque<Vec<u8>>,
    /// The peer has to learn that we have the keys of its session.
    pub(crate) confirm: bool,
    /// The first data since which we sent nothing.
    pub(crate) owes_since: Option<u64>,
    /// The first data sent since which nothing was received.
    pub(crate) unanswered_since: Option<u64>,
    /// The first question since which nothing was received.
    pub(crate) asked_since: Option<u64>,
    pub(crate) last_sent: Option<u64>,
    pub(crate) packets_received: CarriedPackets,
    pub(crate) packets_sent: CarriedPackets,
}

impl Peer {
    pub(crate) fn new(id: PeerId, setup: PeerSetup) -> Peer {
        let keys = setup.keys.iter().map(|key| PeerKey { key: *key, macs: MacKeys::new(key) }).collect();
        Peer {
            id,
            keys,
            address: setup.address,
            keepalive: setup.keepalive,
            is_control_only: false,
            greatest_timestamp: setup.greatest_timestamp,
            last_initiation: None,
            current: None,
            previous: None,
            next: None,
            heard: 0,
            attempt: None,
            begin_at: None,
            cookie: None,
            queue: VecDeque::new(),
            confirm: false,
            owes_since: None,
            unanswered_since: None,
            asked_since: None,
            last_sent: None,
            packets_received: CarriedPackets::default(),
            packets_sent: CarriedPackets::default(),
        }
    }

    pub(crate) fn macs(&self, key: &PublicKey) -> Option<&MacKeys> {
        self.keys.iter().find(|of| of.key == *key).map(|of| &of.macs)
    }

    /// The cookie for the next message to this key. It is used once: if it is out of date, the answer is
    /// another one, and only to a message without.
    pub(crate) fn take_cookie(&mut self, key: &PublicKey, now: u64) -> Option<MacBytes> {
        let held = self.cookie.take_if(|held| held.from_key == *key)?;
        (now.saturating_sub(held.since) < COOKIE_SECRET_LIFE).then_some(held.cookie)
    }

    pub(crate) fn sessions(&self) -> [Option<u32>; 3] {
        [self.current, self.previous, self.next]
    }

    /// Forgets a session number that is no longer valid.
    pub(crate) fn forget(&mut self, number: u32) {
        for place in [&mut self.current, &mut self.previous, &mut self.next] {
            if *place == Some(number) {
                *place = None;
            }
        }
    }

    /// When something has to be done for this peer.
    pub(crate) fn deadline(&self, numbers: &SessionNumbers, now: u64) -> u64 {
        let can_seal = self
            .current
            .and_then(|number| numbers.session(number))
            .is_some_and(|session| session.can_seal(now));
        if can_seal && (self.confirm || !self.queue.is_empty()) {
            return now;
        }
        let attempt = self
            .attempt
            .as_ref()
            .map(|attempt| attempt.retry_at.min(attempt.begun.saturating_add(GIVE_UP_AFTER)));
        let may_idle = self.can_begin() && self.attempt.is_none() && self.begin_at.is_none();
        let keepalive = self.keepalive.filter(|_| may_idle);
        let keepalive = keepalive.map(|every| self.last_sent.map_or(now, |last| last.saturating_add(every)));
        let ends = self.sessions().into_iter().flatten().filter_map(|number| numbers.session(number));
        let ends = ends.map(|session| session.born.saturating_add(REJECT_AFTER)).min();
        let after = |since: Option<u64>, time: u64| since.map(|since| since.saturating_add(time));
        let all = [
            attempt,
            self.begin_at,
            after(self.unanswered_since, SILENCE),
            after(self.asked_since, QUESTION_SILENCE),
            after(self.owes_since, KEEPALIVE_AFTER),
            keepalive,
            ends,
        ];
        all.into_iter().flatten().min().unwrap_or(NEVER)
    }

    /// Whether a handshake can be begun.
    pub(crate) fn can_begin(&self) -> bool {
        self.address.is_some() && !self.keys.is_empty()
    }
}
