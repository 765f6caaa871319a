//! One end of tunnels to many peers: its keys, its peers, and what belongs to all of them.

use crate::cipher::CipherSuite;
use crate::deadlines::Deadlines;
use crate::keys::{PublicKey, SecretKey};
use crate::limits::{
    MOST_HANDSHAKES, MOST_KEYS_OF_PEER, MOST_PEERS, MOST_SECRETS, RETRY, SHORTEST_KEEPALIVE,
};
use crate::load::Load;
use crate::macs::{CookieSecret, MacKeys};
use crate::message::RESPONSE;
use crate::noise;
use crate::outcome::TunnelSetupError;
use crate::peer::{Attempt, Peer, PeerId, PeerKey, PeerSetup, PeerView, SessionView};
use crate::session::{Holder, SessionNumbers};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Fills memory with random bytes that nobody can foresee.
pub type RandomSource = Box<dyn FnMut(&mut [u8]) + Send>;

/// One end of tunnels.
#[derive(Debug)]
pub struct TunnelSetup {
    /// The secrets of this end. Peers reach it by any of them; it begins handshakes with the first.
    pub secrets: Vec<SecretKey>,
    /// Offer AES-256-GCM: [`CipherSuite::aes_in_hardware`].
    pub aes: bool,
    /// The caller's time, in nanoseconds. It never goes back.
    pub now: u64,
    /// The time of day that belongs to `now`, in nanoseconds since 1970, or what was the latest in use
    /// before a restart, whichever is later. It is read this once: if the clock of the machine is set later,
    /// the timestamps of initiations do not follow it.
    pub started: u64,
}

/// A secret of this end, and what follows from it.
pub(crate) struct Identity {
    pub(crate) secret: SecretKey,
    pub(crate) key: PublicKey,
    pub(crate) macs: MacKeys,
}

/// A handshake message that waits to be sent.
pub(crate) struct Answer {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: [u8; RESPONSE],
    pub(crate) length: usize,
}

/// One end of tunnels to many peers.
///
/// It does nothing by itself: [`receive`](Tunnel::receive) takes datagrams, [`send`](Tunnel::send) takes
/// payloads, and after either, and when [`next_deadline`](Tunnel::next_deadline) has come,
/// [`transmit`](Tunnel::transmit) gives out what is to be sent until there is nothing more.
pub struct Tunnel {
    pub(crate) identities: Vec<Identity>,
    pub(crate) ciphers: u8,
    /// The latest time that was given.
    pub(crate) now: u64,
    /// What is added to the caller's time for a timestamp.
    pub(crate) offset: u64,
    pub(crate) last_timestamp: u64,
    pub(crate) random: RandomSource,
    pub(crate) peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    pub(crate) by_id: HashMap<PeerId, usize>,
    pub(crate) by_key: HashMap<PublicKey, usize>,
    pub(crate) numbers: SessionNumbers,
    pub(crate) deadlines: Deadlines,
    pub(crate) answers: VecDeque<Answer>,
    pub(crate) load: Load,
    pub(crate) cookies: CookieSecret,
    pub(crate) handshakes: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) discarded: u64,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("keys", &self.keys()).field("peers", &self.by_id.len()).finish()
    }
}

impl Tunnel {
    /// An end without peers.
    ///
    /// # Errors
    ///
    /// No secret, too many, or one twice.
    pub fn new(setup: TunnelSetup, mut random: RandomSource) -> Result<Tunnel, TunnelSetupError> {
        let mut secret = || -> [u8; 32] {
            let mut bytes = [0; 32];
            random(&mut bytes);
            bytes
        };
        let cookies = CookieSecret::new(secret(), secret(), setup.now);
        let load = Load::new(secret());
        let mut tunnel = Tunnel {
            identities: Vec::new(),
            ciphers: CipherSuite::offer(setup.aes),
            now: setup.now,
            offset: setup.started.saturating_sub(setup.now),
            last_timestamp: 0,
            random,
            peers: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            by_key: HashMap::new(),
            numbers: SessionNumbers::default(),
            deadlines: Deadlines::default(),
            answers: VecDeque::new(),
            load,
            cookies,
            handshakes: 0,
            queued_bytes: 0,
            discarded: 0,
        };
        tunnel.set_secrets(setup.secrets)?;
        Ok(tunnel)
    }

    /// Takes these secrets in place of those there are; handshakes are begun with the first. Sessions that
    /// were made with one of them go on, and all others end.
    ///
    /// # Errors
    ///
    /// There are none or too many, one stands there twice, or one is a peer's. Nothing has changed then.
    pub fn set_secrets(&mut self, secrets: Vec<SecretKey>) -> Result<(), TunnelSetupError> {
        if secrets.is_empty() || secrets.len() > MOST_SECRETS {
            return Err(TunnelSetupError::SecretCount);
        }
        let mut identities: Vec<Identity> = Vec::with_capacity(secrets.len());
        for secret in secrets {
            let key = secret.public();
            if identities.iter().any(|identity| identity.key == key) {
                return Err(TunnelSetupError::SecretExists);
            }
            if let Some(&slot) = self.by_key.get(&key) {
                return Err(TunnelSetupError::KeyInUse(self.peer(slot).id));
            }
            identities.push(Identity { secret, key, macs: MacKeys::new(&key) });
        }
        self.identities = identities;
        let keys = self.keys();
        for slot in 0..self.peers.len() {
            self.end_sessions(slot, |our_key, _| !keys.contains(our_key));
        }
        Ok(())
    }

    /// The public keys of this end; the first is the one it begins with.
    #[must_use]
    pub fn keys(&self) -> Vec<PublicKey> {
        self.identities.iter().map(|identity| identity.key).collect()
    }

    /// Adds a peer.
    ///
    /// # Errors
    ///
    /// What is wrong with its name, its keys or its interval of keepalives. Nothing is added then.
    pub fn add_peer(&mut self, id: PeerId, setup: PeerSetup) -> Result<(), TunnelSetupError> {
        if self.by_id.contains_key(&id) {
            return Err(TunnelSetupError::PeerExists(id));
        }
        if self.by_id.len() >= MOST_PEERS {
            return Err(TunnelSetupError::TooManyPeers);
        }
        if setup.keys.is_empty() || setup.keys.len() > MOST_KEYS_OF_PEER {
            return Err(TunnelSetupError::KeyCount);
        }
        if setup.keepalive.is_some_and(|keepalive| keepalive < SHORTEST_KEEPALIVE) {
            return Err(TunnelSetupError::KeepaliveTooShort);
        }
        for (place, key) in setup.keys.iter().enumerate() {
            self.check_key(key)?;
            if setup.keys[..place].contains(key) {
                return Err(TunnelSetupError::KeyInUse(id));
            }
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        self.by_id.insert(id, slot);
        self.by_key.extend(setup.keys.iter().map(|key| (*key, slot)));
        let peer = Peer::new(id, setup);
        self.peers[slot] = Some(peer);
        self.schedule(slot);
        Ok(())
    }

    /// Forgets a peer, with its keys, sessions and packets that wait.
    ///
    /// # Errors
    ///
    /// There is no such peer.
    pub fn remove_peer(&mut self, id: PeerId) -> Result<(), TunnelSetupError> {
        let slot = self.slot(id)?;
        // With nothing that waits, no new handshake begins when the sessions end.
        self.discard_queue(slot);
        self.end_sessions(slot, |_, _| true);
        self.by_id.remove(&id);
        self.by_key.retain(|_, of| *of != slot);
        self.peers[slot] = None;
        self.deadlines.set(slot, crate::deadlines::NEVER);
        self.free.push(slot);
        Ok(())
    }

    /// Lets a peer use one more key.
    ///
    /// # Errors
    ///
    /// There is no such peer, it has enough keys, or the key cannot be used.
    pub fn add_key(&mut self, id: PeerId, key: PublicKey) -> Result<(), TunnelSetupError> {
        let slot = self.slot(id)?;
        self.check_key(&key)?;
        if self.peer(slot).keys.len() >= MOST_KEYS_OF_PEER {
            return Err(TunnelSetupError::KeyCount);
        }
        self.by_key.insert(key, slot);
        self.peer_mut(slot).keys.push(PeerKey { key, macs: MacKeys::new(&key) });
        self.schedule(slot);
        Ok(())
    }

    /// Takes a key from its peer. Sessions and handshakes with this key end at once. Returns whose it was.
    pub fn revoke_key(&mut self, key: &PublicKey) -> Option<PeerId> {
        let slot = self.by_key.remove(key)?;
        self.peer_mut(slot).keys.retain(|of| of.key != *key);
        self.end_sessions(slot, |_, peer_key| peer_key == key);
        Some(self.peer(slot).id)
    }

    /// Says where a peer is. Its next authentic message may say otherwise.
    ///
    /// # Errors
    ///
    /// There is no such peer.
    pub fn set_address(&mut self, id: PeerId, address: SocketAddr) -> Result<(), TunnelSetupError> {
        let slot = self.slot(id)?;
        self.peer_mut(slot).address = Some(address);
        self.schedule(slot);
        Ok(())
    }

    /// Says how often something is sent to a peer at least, as [`PeerSetup::keepalive`] does.
    ///
    /// # Errors
    ///
    /// There is no such peer, or it would be too often.
    pub fn set_keepalive(&mut self, id: PeerId, keepalive: Option<u64>) -> Result<(), TunnelSetupError> {
        let slot = self.slot(id)?;
        if keepalive.is_some_and(|keepalive| keepalive < SHORTEST_KEEPALIVE) {
            return Err(TunnelSetupError::KeepaliveTooShort);
        }
        self.peer_mut(slot).keepalive = keepalive;
        self.schedule(slot);
        Ok(())
    }

    /// Says whether only control messages are exchanged with a peer. Packets that wait for it are sent.
    ///
    /// # Errors
    ///
    /// There is no such peer.
    pub fn set_control_only(&mut self, id: PeerId, is_control_only: bool) -> Result<(), TunnelSetupError> {
        let slot = self.slot(id)?;
        self.peer_mut(slot).is_control_only = is_control_only;
        Ok(())
    }

    /// What is known of a peer.
    #[must_use]
    pub fn peer_view(&self, id: PeerId) -> Option<PeerView> {
        let peer = self.peer(*self.by_id.get(&id)?);
        let session =
            peer.current.and_then(|number| self.numbers.session(number)).map(|session| SessionView {
                peer_key: session.peer_key,
                our_key: session.our_key,
                suite: session.suite,
                born: session.born,
                sent: session.sent,
            });
        Some(PeerView {
            address: peer.address,
            session,
            greatest_timestamp: peer.greatest_timestamp,
            queued: peer.queue.len(),
            is_asking: peer.attempt.is_some(),
            received: peer.packets_received,
            sent: peer.packets_sent,
        })
    }

    /// The latest timestamp that an initiation of this end has carried, to be stored: after a restart
    /// [`TunnelSetup::started`] must be later.
    #[must_use]
    pub fn last_timestamp(&self) -> u64 {
        self.last_timestamp
    }

    /// Packets that waited for a session until there was no hope of one.
    #[must_use]
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Session numbers in use: sessions, and handshakes that this end has begun.
    #[must_use]
    pub fn numbers_in_use(&self) -> usize {
        self.numbers.count()
    }

    fn slot(&self, id: PeerId) -> Result<usize, TunnelSetupError> {
        self.by_id.get(&id).copied().ok_or(TunnelSetupError::NoPeer(id))
    }

    fn check_key(&self, key: &PublicKey) -> Result<(), TunnelSetupError> {
        if self.keys().contains(key) {
            return Err(TunnelSetupError::OwnKey);
        }
        if let Some(&slot) = self.by_key.get(key) {
            return Err(TunnelSetupError::KeyInUse(self.peer(slot).id));
        }
        if noise::is_usable(key) { Ok(()) } else { Err(TunnelSetupError::WeakKey) }
    }

    /// A peer that is there: slots come from `by_id`, `by_key`, a session or a deadline, all of which end
    /// with the peer.
    pub(crate) fn peer(&self, slot: usize) -> &Peer {
        self.peers[slot].as_ref().expect("slots of peers that are gone are in no table")
    }

    pub(crate) fn peer_mut(&mut self, slot: usize) -> &mut Peer {
        self.peers[slot].as_mut().expect("slots of peers that are gone are in no table")
    }

    /// Takes the caller's time; a time that goes back is not believed.
    pub(crate) fn tick(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        self.now
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }

    /// A place for a session or handshake.
    pub(crate) fn claim(&mut self, holder: Holder) -> u32 {
        let random = u16::from_ne_bytes(self.random());
        self.numbers.claim(random, holder)
    }

    /// Gives up a session.
    pub(crate) fn release(&mut self, slot: usize, number: Option<u32>) {
        if let Some(number) = number {
            self.numbers.release(number);
            self.peer_mut(slot).forget(number);
        }
    }

    /// Begins a handshake with a peer unless one is under way or none can be begun.
    pub(crate) fn begin(&mut self, slot: usize, now: u64) {
        let full = self.handshakes >= MOST_HANDSHAKES;
        let peer = self.peer_mut(slot);
        if peer.attempt.is_some() || !peer.can_begin() {
            return;
        }
        if full {
            peer.begin_at = Some(now.saturating_add(*RETRY.start()));
        } else {
            peer.begin_at = None;
            peer.attempt = Some(Attempt { begun: now, retry_at: now, tries: 0, sent: None });
            self.handshakes += 1;
        }
        self.schedule(slot);
    }

    /// Ends the handshake that this end has begun.
    pub(crate) fn end_attempt(&mut self, slot: usize) -> Option<Attempt> {
        let attempt = self.peer_mut(slot).attempt.take()?;
        self.handshakes -= 1;
        Some(attempt)
    }

    pub(crate) fn discard_queue(&mut self, slot: usize) {
        let queue = std::mem::take(&mut self.peer_mut(slot).queue);
        self.queued_bytes -= queue.iter().map(Vec::len).sum::<usize>();
        self.discarded += queue.len() as u64;
    }

    /// Ends what a peer has with certain keys (ours, its own).
    fn end_sessions(&mut self, slot: usize, with: impl Fn(&PublicKey, &PublicKey) -> bool) {
        let Some(peer) = &self.peers[slot] else { return };
        let had_one = peer.current.is_some();
        for number in peer.sessions() {
            let session = number.and_then(|number| self.numbers.session(number));
            if session.is_some_and(|session| with(&session.our_key, &session.peer_key)) {
                self.release(slot, number);
            }
        }
        let sent = self.peer(slot).attempt.as_ref().and_then(|attempt| attempt.sent.as_ref());
        let keyless = self.peer(slot).keys.is_empty();
        if keyless || sent.is_some_and(|sent| with(&sent.our_key, &sent.peer_key)) {
            let sent = self.end_attempt(slot).and_then(|attempt| attempt.sent);
            self.release(slot, sent.map(|sent| sent.number));
        }
        let peer = self.peer_mut(slot);
        if peer.current.is_none() {
            (peer.unanswered_since, peer.asked_since) = (None, None);
            (peer.owes_since, peer.confirm) = (None, false);
            if had_one {
                // Only this end knows that the session is over: what keeps the peer reachable is due at once.
                peer.last_sent = None;
            }
        }
        if keyless {
            peer.begin_at = None;
            self.discard_queue(slot);
        }
        if !self.peer(slot).queue.is_empty() {
            self.begin(slot, self.now);
        }
        self.schedule(slot);
    }

    /// Notes when a peer has to be looked at next.
    pub(crate) fn schedule(&mut self, slot: usize) {
        let deadline = self.peer(slot).deadline(&self.numbers, self.now);
        self.deadlines.set(slot, deadline);
    }
}
