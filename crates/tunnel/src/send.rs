//! What goes out: payloads at once or when there is a session, and what time brings.

use crate::limits::{
    GIVE_UP_AFTER, JITTER_OF, KEEPALIVE_AFTER, LONGEST_PAYLOAD, MOST_QUEUED_BYTES, MOST_QUEUED_OF_PEER,
    QUESTION_SILENCE, RETRY, SILENCE,
};
use crate::message::{self, DATA_HEADER, DATA_TAG, INITIATION, Offer, QUESTION};
use crate::noise;
use crate::outcome::{SendOutcome, TunnelPayload, TunnelSendError, TunnelTransmit};
use crate::peer::{PeerId, SentInitiation};
use crate::session::{Holder, Session};
use crate::tunnel::Tunnel;

/// The longest message that [`Tunnel::transmit`] writes by itself. Packets that waited may be longer.
pub const LONGEST_HANDSHAKE_MESSAGE: usize = INITIATION;

/// What a control message begins with, so that it is told from an IP packet.
const CONTROL: &[u8] = &[0];

/// Whether it can be an IP packet, and nothing else that a payload may be.
fn is_ip(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| matches!(first >> 4, 4 | 6))
}

impl Tunnel {
    /// Seals a payload for a peer into `out`, or lets it wait until there is a session, which is begun if
    /// need be.
    ///
    /// `now` is in nanoseconds. After the call, [`Tunnel::transmit`] may have something to send.
    ///
    /// # Errors
    ///
    /// Why it neither was sealed nor waits.
    pub fn send(
        &mut self,
        now: u64,
        id: PeerId,
        payload: TunnelPayload<'_>,
        out: &mut [u8],
    ) -> Result<SendOutcome, TunnelSendError> {
        let now = self.tick(now);
        let slot = *self.by_id.get(&id).ok_or(TunnelSendError::UnknownPeer)?;
        let is_control_only = self.peer(slot).is_control_only;
        let (before, bytes) = match payload {
            TunnelPayload::Control(bytes) => (CONTROL, bytes),
            TunnelPayload::Packet(_) if is_control_only => return Err(TunnelSendError::ControlOnly),
            TunnelPayload::Packet(bytes) if is_ip(bytes) => (&[][..], bytes),
            TunnelPayload::Packet(_) => return Err(TunnelSendError::NotIp),
        };
        let length = before.len() + bytes.len();
        if length > LONGEST_PAYLOAD {
            return Err(TunnelSendError::TooLong);
        }
        if out.len() < DATA_HEADER + length + DATA_TAG {
            return Err(TunnelSendError::NoRoom);
        }
        let packet = matches!(payload, TunnelPayload::Packet(_)).then_some(length);
        match self.seal_next(slot, now, packet, |session| session.seal(before, bytes, out)) {
            Some(transmit) => Ok(SendOutcome::Sealed(transmit)),
            None => self.queue(slot, now, before, bytes),
        }
    }

    /// Seals an IP packet for a peer where it stands: in `datagram`, behind [`DATA_HEADER`] bytes and before
    /// [`DATA_TAG`] bytes, which are written over. Or lets a copy of it wait, as [`send`](Tunnel::send) does.
    ///
    /// # Errors
    ///
    /// Why it neither was sealed nor waits.
    pub fn seal_in_place(
        &mut self,
        now: u64,
        id: PeerId,
        datagram: &mut [u8],
    ) -> Result<SendOutcome, TunnelSendError> {
        let now = self.tick(now);
        let slot = *self.by_id.get(&id).ok_or(TunnelSendError::UnknownPeer)?;
        let end = datagram.len().checked_sub(DATA_TAG).ok_or(TunnelSendError::NoRoom)?;
        let packet = datagram.get(DATA_HEADER..end).ok_or(TunnelSendError::NoRoom)?;
        if self.peer(slot).is_control_only {
            return Err(TunnelSendError::ControlOnly);
        }
        if !is_ip(packet) {
            return Err(TunnelSendError::NotIp);
        }
        if packet.len() > LONGEST_PAYLOAD {
            return Err(TunnelSendError::TooLong);
        }
        let length = packet.len();
        match self.seal_next(slot, now, Some(length), |session| session.seal_in_place(datagram)) {
            Some(transmit) => Ok(SendOutcome::Sealed(transmit)),
            None => self.queue(slot, now, &[], &datagram[DATA_HEADER..end]),
        }
    }

    /// Seals with the session in use, if there is one and nothing waits, which would be overtaken.
    fn seal_next(
        &mut self,
        slot: usize,
        now: u64,
        packet: Option<usize>,
        write: impl FnOnce(&mut Session) -> usize,
    ) -> Option<TunnelTransmit> {
        if self.peer(slot).queue.is_empty() { self.seal(slot, now, packet, write) } else { None }
    }

    /// Lets a payload wait for a session, which is begun if need be.
    fn queue(
        &mut self,
        slot: usize,
        now: u64,
        before: &[u8],
        bytes: &[u8],
    ) -> Result<SendOutcome, TunnelSendError> {
        let length = before.len() + bytes.len();
        let peer = self.peer(slot);
        if !peer.can_begin() && peer.next.is_none() {
            return Err(TunnelSendError::CannotBegin);
        }
        if peer.queue.len() >= MOST_QUEUED_OF_PEER || self.queued_bytes + length > MOST_QUEUED_BYTES {
            return Err(TunnelSendError::QueueFull);
        }
        self.queued_bytes += length;
        self.peer_mut(slot).queue.push_back([before, bytes].concat());
        self.begin(slot, now);
        Ok(SendOutcome::Queued)
    }

    /// When [`Tunnel::transmit`] has to be called next, in the caller's time: what it gives may be past.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.answers.is_empty() { self.deadlines.first().map(|first| first.0) } else { Some(self.now) }
    }

    /// Gives out one datagram that is to be sent now: an answer, a handshake message, a keepalive, or a
    /// payload that has waited. To be called until it gives nothing.
    ///
    /// `out` has room for [`LONGEST_HANDSHAKE_MESSAGE`] bytes and for the longest payload that was sent, with
    /// header and tag. What it has no room for is given up, as a network would.
    pub fn transmit(&mut self, now: u64, out: &mut [u8]) -> Option<TunnelTransmit> {
        let now = self.tick(now);
        if out.len() < LONGEST_HANDSHAKE_MESSAGE {
            return None;
        }
        if let Some(answer) = self.answers.pop_front() {
            message::put(out, 0, &answer.bytes[..answer.length]);
            return Some(TunnelTransmit { to: answer.to, length: answer.length });
        }
        while let Some((deadline, slot)) = self.deadlines.first() {
            if deadline > now {
                return None;
            }
            let transmit = self.look_after(slot, now, out);
            if transmit.is_some() {
                self.schedule(slot);
                return transmit;
            }
            // Whatever a peer was due for is done or put off, so this loop ends.
            let next = self.peer(slot).deadline(&self.numbers, now);
            debug_assert!(next > now, "peer {:?} stays due", self.peer(slot).id);
            self.deadlines.set(slot, next.max(now.saturating_add(1)));
        }
        None
    }

    /// Does one thing for a peer whose deadline has come.
    fn look_after(&mut self, slot: usize, now: u64, out: &mut [u8]) -> Option<TunnelTransmit> {
        for number in self.peer(slot).sessions() {
            let session = number.and_then(|number| self.numbers.session(number));
            if session.is_some_and(|session| session.is_expired(now)) {
                self.release(slot, number);
            }
        }
        let is_due =
            |since: Option<u64>, after: u64| since.is_some_and(|since| now.saturating_sub(since) >= after);
        let can_seal = self.current_can_seal(slot, now);
        if can_seal && let Some(transmit) = self.flush(slot, now, out) {
            return Some(transmit);
        }
        let peer = self.peer_mut(slot);
        if !can_seal {
            // Without a session, nothing can be owed, and whoever sends begins one.
            peer.owes_since = None;
            peer.confirm = false;
        }
        let is_owed = is_due(peer.owes_since, KEEPALIVE_AFTER) || peer.confirm;
        let is_silent = is_due(peer.unanswered_since, SILENCE) || is_due(peer.asked_since, QUESTION_SILENCE);
        let idle = |every| peer.last_sent.is_none_or(|last| now.saturating_sub(last) >= every);
        let is_idle = peer.can_begin() && peer.attempt.is_none() && peer.keepalive.is_some_and(idle);
        let is_postponed = peer.begin_at.is_some_and(|at| at <= now);
        if can_seal && is_idle && !is_silent {
            peer.asked_since = peer.asked_since.or(Some(now));
            return self.seal(slot, now, None, |session| session.seal(&[], QUESTION, out));
        }
        if is_owed {
            return self.seal(slot, now, None, |session| session.seal(&[], &[], out));
        }
        if is_silent {
            (peer.unanswered_since, peer.asked_since) = (None, None);
        }
        if is_silent || is_idle || is_postponed {
            peer.begin_at = None;
            self.begin(slot, now);
        }
        let peer = self.peer(slot);
        if peer.attempt.is_none() && peer.begin_at.is_none() && peer.next.is_none() && !can_seal {
            self.discard_queue(slot);
        }
        self.attempt(slot, now, out)
    }

    fn current_can_seal(&self, slot: usize, now: u64) -> bool {
        let session = self.peer(slot).current.and_then(|number| self.numbers.session(number));
        session.is_some_and(|session| session.can_seal(now))
    }

    /// Seals the first payload that waits.
    fn flush(&mut self, slot: usize, now: u64, out: &mut [u8]) -> Option<TunnelTransmit> {
        while let Some(body) = self.peer_mut(slot).queue.pop_front() {
            self.queued_bytes -= body.len();
            if out.len() >= DATA_HEADER + body.len() + DATA_TAG {
                let packet = is_ip(&body).then_some(body.len());
                return self.seal(slot, now, packet, |session| session.seal(&[], &body, out));
            }
            self.discarded += 1;
        }
        None
    }

    /// Seals with the session in use, if there is one: `write` does, and says how long the datagram is. An IP
    /// packet of so many bytes counts.
    fn seal(
        &mut self,
        slot: usize,
        now: u64,
        packet: Option<usize>,
        write: impl FnOnce(&mut Session) -> usize,
    ) -> Option<TunnelTransmit> {
        let peer = self.peers[slot].as_mut()?;
        let to = peer.address?;
        let session = self.numbers.session_mut(peer.current?)?;
        if !session.can_seal(now) {
            return None;
        }
        let length = write(session);
        if let Some(bytes) = packet {
            peer.packets_sent.count(bytes);
        }
        let is_due = session.is_due(now);
        peer.last_sent = Some(now);
        peer.owes_since = None;
        peer.confirm = false;
        if length > DATA_HEADER + DATA_TAG && peer.unanswered_since.is_none() {
            peer.unanswered_since = Some(now);
            self.deadlines.advance(slot, now.saturating_add(SILENCE));
        }
        if is_due {
            self.begin(slot, now);
        }
        Some(TunnelTransmit { to, length })
    }

    /// Goes on with a handshake of ours: gives it up, or writes an initiation if it is time.
    fn attempt(&mut self, slot: usize, now: u64, out: &mut [u8]) -> Option<TunnelTransmit> {
        let attempt = self.peer(slot).attempt.as_ref()?;
        if now.saturating_sub(attempt.begun) >= GIVE_UP_AFTER {
            let sent = self.end_attempt(slot).and_then(|attempt| attempt.sent);
            self.release(slot, sent.map(|sent| sent.number));
            self.discard_queue(slot);
            // The next attempt for the sake of keepalives is one interval away.
            self.peer_mut(slot).last_sent = Some(now);
            return None;
        }
        if attempt.retry_at > now {
            return None;
        }
        self.initiate(slot, now, out)
    }

    fn initiate(&mut self, slot: usize, now: u64, out: &mut [u8]) -> Option<TunnelTransmit> {
        let timestamp = now.saturating_add(self.offset).max(self.last_timestamp.saturating_add(1));
        self.last_timestamp = timestamp;
        let offer = Offer { timestamp, ciphers: self.ciphers };
        let jitter = u64::from(u32::from_ne_bytes(self.random()));
        let ephemeral = self.random();

        let peer = self.peers[slot].as_mut()?;
        let to = peer.address?;
        let attempt = peer.attempt.as_mut()?;
        let pause = RETRY.start().checked_shl(attempt.tries).unwrap_or(u64::MAX).min(*RETRY.end());
        attempt.retry_at = now.saturating_add(pause + (pause / JITTER_OF) * jitter / u64::from(u32::MAX));
        // A peer that changes its key is reached by one of them.
        let peer_key = peer.keys.get(attempt.tries as usize % peer.keys.len().max(1))?.key;
        attempt.tries += 1;
        let before = attempt.sent.take();
        if let Some(before) = before {
            self.numbers.release(before.number);
        }
        let ours = &self.identities[0];
        let (state, first) = noise::initiate(&ours.secret, &peer_key, ephemeral, &offer.bytes()).ok()?;
        let our_key = ours.key;
        let number = self.claim(Holder::Handshake(slot));

        let peer = self.peer_mut(slot);
        let mut initiation = message::initiation(number, &first);
        let cookie = peer.take_cookie(&peer_key, now);
        let mac1 = peer.macs(&peer_key)?.finish(&mut initiation, cookie);
        if let Some(attempt) = &mut peer.attempt {
            attempt.sent = Some(SentInitiation { number, noise: state, mac1, our_key, peer_key });
        }
        peer.last_sent = Some(now);
        message::put(out, 0, &initiation);
        Some(TunnelTransmit { to, length: initiation.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{REJECT_AFTER_MESSAGES, REKEY_AFTER_MESSAGES, SECOND};
    use crate::{PeerSetup, Received, SecretKey, TunnelDrop, TunnelSetup};
    use std::net::SocketAddr;

    const TO: PeerId = PeerId(0);

    fn end(number: u8, of: u8) -> Tunnel {
        let setup =
            TunnelSetup { secrets: vec![SecretKey::new([number; 32])], aes: true, now: 0, started: SECOND };
        let mut filler = number;
        let random = move |bytes: &mut [u8]| {
            filler = filler.wrapping_add(7);
            bytes.fill(filler);
        };
        let mut tunnel = Tunnel::new(setup, Box::new(random)).unwrap();
        let address = Some(SocketAddr::from(([192, 0, 2, of], 1)));
        let keys = vec![SecretKey::new([of; 32]).public()];
        tunnel.add_peer(TO, PeerSetup { keys, address, keepalive: None, greatest_timestamp: 0 }).unwrap();
        tunnel
    }

    /// Lets everything that waits at both ends reach the other one.
    fn settle(ends: &mut [Tunnel; 2], now: u64) {
        let mut out = [0; 200];
        let mut from = 0;
        let mut idle = 0;
        while idle < 2 {
            match ends[from].transmit(now, &mut out) {
                Some(transmit) => {
                    let source = SocketAddr::from(([192, 0, 2, from as u8 + 1], 1));
                    ends[1 - from].receive(now, source, &mut out[..transmit.length]).unwrap();
                    idle = 0;
                }
                None => (from, idle) = (1 - from, idle + 1),
            }
        }
    }

    fn current(tunnel: &mut Tunnel) -> &mut crate::session::Session {
        let number = tunnel.peer(0).current.unwrap();
        tunnel.numbers.session_mut(number).unwrap()
    }

    /// Either end begins the next session after so many messages, and at twice as many there is an end.
    #[test]
    fn a_session_carries_so_many_messages_and_no_more() {
        for of in 0..2 {
            let mut ends = [end(1, 2), end(2, 1)];
            let mut out = [0; 100];
            assert_eq!(ends[0].send(0, TO, TunnelPayload::Control(b"a"), &mut out), Ok(SendOutcome::Queued));
            settle(&mut ends, 0);
            current(&mut ends[of]).sent = REKEY_AFTER_MESSAGES - 2;
            for asks in [false, true] {
                let sealed = ends[of].send(0, TO, TunnelPayload::Control(b"b"), &mut out);
                assert!(matches!(sealed, Ok(SendOutcome::Sealed(_))));
                assert_eq!(ends[of].peer(0).attempt.is_some(), asks);
            }
            current(&mut ends[of]).sent = REJECT_AFTER_MESSAGES - 1;
            let sealed = ends[of].send(0, TO, TunnelPayload::Control(b"c"), &mut out);
            let Ok(SendOutcome::Sealed(last)) = sealed else { panic!("the last one") };
            assert_eq!(
                ends[of].send(0, TO, TunnelPayload::Control(b"d"), &mut [0; 100]),
                Ok(SendOutcome::Queued)
            );
            let from = SocketAddr::from(([192, 0, 2, of as u8 + 1], 1));
            let received = ends[1 - of].receive(0, from, &mut out[..last.length]);
            assert_eq!(received, Ok(Received::Control(TO, 17..18)));
            // What only a peer can make that does not keep to the limit.
            let session = current(&mut ends[of]);
            let beyond = session.seal(&[], &[], &mut out);
            let received = ends[1 - of].receive(0, from, &mut out[..beyond]);
            assert_eq!(received, Err(TunnelDrop::ExpiredSession));
            let now = SECOND;
            settle(&mut ends, now);
            assert!(current(&mut ends[of]).sent <= 2, "a new session");
        }
    }

    #[test]
    fn authentic_data_of_no_known_kind_is_dropped() {
        let mut ends = [end(1, 2), end(2, 1)];
        let mut out = [0; 100];
        ends[0].send(0, TO, TunnelPayload::Control(b"a"), &mut out).unwrap();
        settle(&mut ends, 0);
        let length = current(&mut ends[0]).seal(&[], &[0x35, 1, 2], &mut out);
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        assert_eq!(ends[1].receive(0, from, &mut out[..length]), Err(TunnelDrop::UnknownPayload));
    }
}
