//! What datagrams do.

use crate::cipher::{CipherSuite, DataKey};
use crate::keys::PublicKey;
use crate::limits::{
    INITIATION_INTERVAL, KEEPALIVE_AFTER, MOST_ANSWERS, REJECT_AFTER_MESSAGES, REKEY_ON_RECEIVE_AFTER,
};
use crate::load::Effort;
use crate::macs::{Mac2, MacBytes};
use crate::message::{self, DATA_HEADER, DATA_TAG, MessageKind, Offer, RESPONSE, number};
use crate::noise::{self, DirectionKeys};
use crate::outcome::{Received, TunnelDrop};
use crate::peer::HeldCookie;
use crate::session::{Holder, Session};
use crate::tunnel::{Answer, Tunnel};
use crate::window::ReplayWindow;
use std::net::SocketAddr;

/// Who has agreed on a session, and on what.
struct Agreed {
    peer: usize,
    remote: u32,
    suite: CipherSuite,
    is_ours: bool,
    our_key: PublicKey,
    peer_key: PublicKey,
    mac1: MacBytes,
}

impl Tunnel {
    /// Takes a datagram. Data is opened in place: what the result says of it stands in `datagram`.
    ///
    /// `now` is in nanoseconds. After the call, [`Tunnel::transmit`] may have something to send.
    ///
    /// # Errors
    ///
    /// Why it was dropped.
    pub fn receive(
        &mut self,
        now: u64,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Result<Received, TunnelDrop> {
        let now = self.tick(now);
        match MessageKind::of(datagram).ok_or(TunnelDrop::Malformed)? {
            MessageKind::Data => self.receive_data(now, from, datagram),
            MessageKind::Initiation => self.receive_initiation(now, from, datagram),
            MessageKind::Response => self.receive_response(now, from, datagram),
            MessageKind::CookieReply => self.receive_cookie(now, datagram),
        }
    }

    fn receive_data(
        &mut self,
        now: u64,
        from: SocketAddr,
        datagram: &mut [u8],
    ) -> Result<Received, TunnelDrop> {
        let (number, counter) = (number(datagram, 4), message::counter(datagram));
        let session = self.numbers.session_mut(number).ok_or(TunnelDrop::UnknownSession)?;
        if session.is_expired(now) || counter >= REJECT_AFTER_MESSAGES {
            return Err(TunnelDrop::ExpiredSession);
        }
        if !session.window.is_open(counter) {
            return Err(TunnelDrop::Replayed);
        }
        if !session.open_key.open(counter, datagram) {
            return Err(TunnelDrop::ForgedData);
        }
        let newest = session.window.mark(counter);
        let (slot, born) = (session.peer, session.born);
        let is_ageing = session.is_ours && now.saturating_sub(born) >= REKEY_ON_RECEIVE_AFTER;
        let (start, end) = (DATA_HEADER, datagram.len() - DATA_TAG);
        let id = self.peer(slot).id;
        // A packet of a peer without packets is refused, but the peer is there and has the keys, so the
        // session learns of it all the same.
        let is_question = &datagram[start..end] == message::QUESTION;
        let received = match datagram[start..end].first() {
            None => Ok(Received::Keepalive(id)),
            Some(_) if is_question => Ok(Received::Keepalive(id)),
            Some(0) => Ok(Received::Control(id, start + 1..end)),
            Some(first) if matches!(first >> 4, 4 | 6) => match self.peer(slot).is_control_only {
                true => Err(TunnelDrop::ControlOnly),
                false => Ok(Received::Packet(id, start..end)),
            },
            Some(_) => return Err(TunnelDrop::UnknownPayload),
        };
        if self.peer(slot).next == Some(number) {
            self.take_next_into_use(slot);
        }
        let peer = self.peer_mut(slot);
        if let Ok(Received::Packet(_, place)) = &received {
            peer.packets_received.count(place.len());
        }
        // What is late, and what comes in a session older than the newest, does not say where the peer is.
        if newest && born >= peer.heard {
            peer.heard = born;
            peer.address = Some(from);
        }
        (peer.unanswered_since, peer.asked_since) = (None, None);
        peer.confirm |= is_question;
        if !matches!(received, Ok(Received::Keepalive(_))) && peer.owes_since.is_none() {
            peer.owes_since = Some(now);
            self.deadlines.advance(slot, now.saturating_add(KEEPALIVE_AFTER));
        }
        if is_ageing && self.peer(slot).current == Some(number) {
            self.begin(slot, now);
        }
        if is_question {
            self.schedule(slot);
        }
        received
    }

    /// The peer has shown that it has the keys of the session that it began.
    fn take_next_into_use(&mut self, slot: usize) {
        let before = self.peer(slot).previous;
        self.release(slot, before);
        let peer = self.peer_mut(slot);
        peer.previous = peer.current.take();
        peer.current = peer.next.take();
        self.schedule(slot);
    }

    fn receive_initiation(
        &mut self,
        now: u64,
        from: SocketAddr,
        message: &[u8],
    ) -> Result<Received, TunnelDrop> {
        let us = self.addressee(message)?;
        self.weigh(now, from, message, us)?;
        let ephemeral = self.random();
        let noise_message = &message[8..8 + noise::FIRST];
        let asked = noise::read_first(&self.identities[us].secret, ephemeral, noise_message)
            .map_err(|_| TunnelDrop::ForgedHandshake)?;
        let peer_key = asked.peer;
        let slot = *self.by_key.get(&peer_key).ok_or(TunnelDrop::UnknownKey)?;
        let offer = Offer::read(asked.payload);
        let peer = self.peer(slot);
        if offer.timestamp <= peer.greatest_timestamp {
            return Err(TunnelDrop::StaleInitiation);
        }
        if peer.last_initiation.is_some_and(|last| now.saturating_sub(last) < INITIATION_INTERVAL) {
            return Err(TunnelDrop::TooOften);
        }
        let suite = CipherSuite::choose(self.ciphers, offer.ciphers).ok_or(TunnelDrop::NoCommonCipher)?;
        let (second, keys) = asked.answer([suite as u8, 0, 0, 0]).map_err(|_| TunnelDrop::ForgedHandshake)?;

        // Nothing was changed up to here, and nothing fails from here on. The session is only for receiving
        // until the peer has used it, since anybody may have repeated this message after a restart.
        let remote = number(message, 4);
        let peer = self.peer_mut(slot);
        peer.greatest_timestamp = offer.timestamp;
        peer.last_initiation = Some(now);
        let id = peer.id;
        let before = peer.next;
        self.release(slot, before);
        let local = self.claim(Holder::Handshake(slot));
        let mut response = message::response(local, remote, &second);
        let peer = self.peer_mut(slot);
        let cookie = peer.take_cookie(&peer_key, now);
        let macs = peer.macs(&peer_key).expect("`by_key` has the keys of each peer");
        let mac1 = macs.finish(&mut response, cookie);
        peer.next = Some(local);
        let our_key = self.identities[us].key;
        let agreed = Agreed { peer: slot, remote, suite, is_ours: false, our_key, peer_key, mac1 };
        self.open_session(now, local, agreed, &keys);
        self.answers.push_back(Answer { to: from, bytes: response, length: RESPONSE });
        self.schedule(slot);
        Ok(Received::Initiation(id))
    }

    fn receive_response(
        &mut self,
        now: u64,
        from: SocketAddr,
        message: &[u8],
    ) -> Result<Received, TunnelDrop> {
        let local = number(message, 8);
        let &Holder::Handshake(slot) = self.numbers.holder(local) else {
            return Err(TunnelDrop::NothingAsked);
        };
        let us = self.addressee(message)?;
        self.weigh(now, from, message, us)?;
        let our_key = self.identities[us].key;
        let offered = self.ciphers;
        let peer = self.peer_mut(slot);
        let sent = peer.attempt.as_mut().and_then(|attempt| attempt.sent.as_mut());
        let sent = sent
            .filter(|sent| sent.number == local && sent.our_key == our_key)
            .ok_or(TunnelDrop::NothingAsked)?;
        let noise_message = &message[12..12 + noise::SECOND];
        let (payload, keys) =
            sent.noise.read_second(noise_message).map_err(|_| TunnelDrop::ForgedHandshake)?;
        let peer_key = sent.peer_key;
        let Some(suite) = CipherSuite::chosen(payload[0], offered) else {
            // The peer itself has broken off this handshake; the next attempt begins another one.
            if let Some(attempt) = &mut peer.attempt {
                attempt.sent = None;
            }
            self.release(slot, Some(local));
            return Err(TunnelDrop::NoCommonCipher);
        };

        let id = peer.id;
        peer.keys.sort_by_key(|of| of.key != peer_key);
        peer.address = Some(from);
        // What may have been begun by the peer meanwhile is kept: the peer may be about to use it.
        let (kept, given_up) = match peer.next.take() {
            Some(next) => (Some(next), [peer.current, peer.previous]),
            None => (peer.current, [peer.previous, None]),
        };
        peer.current = Some(local);
        peer.previous = kept;
        peer.heard = peer.heard.max(now);
        peer.confirm = true;
        (peer.unanswered_since, peer.asked_since) = (None, None);
        peer.owes_since = None;
        for number in given_up.into_iter().flatten() {
            self.numbers.release(number);
        }
        self.end_attempt(slot);
        let remote = number(message, 4);
        let agreed = Agreed { peer: slot, remote, suite, is_ours: true, our_key, peer_key, mac1: [0; 16] };
        self.open_session(now, local, agreed, &keys);
        self.schedule(slot);
        Ok(Received::Response(id))
    }

    fn receive_cookie(&mut self, now: u64, message: &[u8]) -> Result<Received, TunnelDrop> {
        let local = number(message, 4);
        let (slot, peer_key, mac1) = match self.numbers.holder(local) {
            Holder::Free => return Err(TunnelDrop::NothingAsked),
            &Holder::Handshake(slot) => {
                let sent = self.peer(slot).attempt.as_ref().and_then(|attempt| attempt.sent.as_ref());
                let sent = sent.filter(|sent| sent.number == local).ok_or(TunnelDrop::NothingAsked)?;
                (slot, sent.peer_key, sent.mac1)
            }
            Holder::Session(session) if self.peer(session.peer).next == Some(local) => {
                (session.peer, session.peer_key, session.mac1)
            }
            Holder::Session(_) => return Err(TunnelDrop::NothingAsked),
        };
        let peer = self.peer_mut(slot);
        let macs = peer.macs(&peer_key).ok_or(TunnelDrop::NothingAsked)?;
        let cookie = macs.open_reply(message, &mac1).ok_or(TunnelDrop::ForgedCookie)?;
        peer.cookie = Some(HeldCookie { cookie, from_key: peer_key, since: now });
        Ok(Received::CookieReply(peer.id))
    }

    /// Which of our secrets a handshake message is for.
    fn addressee(&self, message: &[u8]) -> Result<usize, TunnelDrop> {
        let of = |identity: &crate::tunnel::Identity| identity.macs.check(message);
        self.identities.iter().position(of).ok_or(TunnelDrop::WrongMac1)
    }

    /// Whether there is time for a handshake message, and room for its answer.
    fn weigh(&mut self, now: u64, from: SocketAddr, message: &[u8], us: usize) -> Result<(), TunnelDrop> {
        if self.cookies.is_old(now) {
            let secret = self.random();
            self.cookies.replace(secret, now);
        }
        let mac2 = self.cookies.check(message, from);
        if mac2 == Mac2::Wrong {
            return Err(TunnelDrop::WrongMac2);
        }
        if self.answers.len() >= MOST_ANSWERS {
            return Err(TunnelDrop::AnswersFull);
        }
        match self.load.weigh(now, from.ip(), mac2 == Mac2::Proved) {
            Effort::Spend => Ok(()),
            Effort::Refuse => Err(TunnelDrop::Overload),
            Effort::AskForCookie => {
                let nonce = self.random();
                let reply = self.identities[us].macs.reply(message, self.cookies.cookie(from), nonce);
                let mut bytes = [0; RESPONSE];
                message::put(&mut bytes, 0, &reply);
                self.answers.push_back(Answer { to: from, bytes, length: reply.len() });
                Err(TunnelDrop::AskedForCookie)
            }
        }
    }

    fn open_session(&mut self, now: u64, local: u32, agreed: Agreed, keys: &DirectionKeys) {
        let Agreed { peer, remote, suite, is_ours, our_key, peer_key, mac1 } = agreed;
        let (seal, open) = match is_ours {
            true => (&keys.from_initiator, &keys.from_responder),
            false => (&keys.from_responder, &keys.from_initiator),
        };
        let session = Session {
            peer,
            remote,
            seal_key: DataKey::new(suite, seal),
            open_key: DataKey::new(suite, open),
            suite,
            sent: 0,
            window: ReplayWindow::new(),
            is_ours,
            born: now,
            our_key,
            peer_key,
            mac1,
        };
        self.numbers.replace(local, Holder::Session(Box::new(session)));
    }
}
