//! What strangers send: damaged, repeated, made up, too much.

mod internet;

use internet::{Internet, address, end, key, packet, pair, peer, send, transmit_all};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tables::generate::Random;
use tunnel::limits::{
    COOKIE_SECRET_LIFE, MOST_ANSWERS, PROVED_OF_ADDRESS_A_SECOND, REKEY_AFTER, SECOND, UNPROVED_A_SECOND,
};
use tunnel::{PeerId, PeerSetup, PeerView, Received, Tunnel, TunnelDrop};

/// All that can be seen of an end.
fn state(tunnel: &Tunnel) -> (Vec<Option<PeerView>>, usize, Option<u64>, u64) {
    let views = (0..3).map(|id| tunnel.peer_view(PeerId(id))).collect();
    (views, tunnel.numbers_in_use(), tunnel.next_deadline(), tunnel.discarded())
}

/// The four messages with which two ends begin: an initiation, a response, data, and data back.
struct Opening {
    ends: [Tunnel; 2],
    now: u64,
}

impl Opening {
    fn new() -> Opening {
        Opening { ends: pair([true, true]), now: SECOND }
    }

    fn initiation(&mut self) -> Vec<u8> {
        assert_eq!(send(&mut self.ends[0], self.now, 1, &packet(0, 1, 7, 60)), Ok(None));
        self.only(0)
    }

    fn only(&mut self, of: usize) -> Vec<u8> {
        let mut all = transmit_all(&mut self.ends[of], self.now);
        assert_eq!(all.len(), 1);
        all.remove(0).1
    }

    fn give(&mut self, to: usize, message: &[u8]) -> Result<Received, TunnelDrop> {
        self.ends[to].receive(self.now, address(1 - to), &mut message.to_vec())
    }

    /// Everything up to the session.
    fn open() -> (Opening, [Vec<u8>; 3]) {
        let mut opening = Opening::new();
        let initiation = opening.initiation();
        opening.give(1, &initiation).unwrap();
        let response = opening.only(1);
        opening.give(0, &response).unwrap();
        let data = opening.only(0);
        assert!(matches!(opening.give(1, &data), Ok(Received::Packet(..))));
        (opening, [initiation, response, data])
    }

    /// That no way to flip one bit of a message, to shorten or to lengthen it, does anything at this end.
    fn is_immune(&mut self, at: usize, message: &[u8]) {
        let before = state(&self.ends[at]);
        let mut reasons = BTreeMap::new();
        let damaged = (0..message.len() * 8).map(|bit| {
            let mut damaged = message.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            damaged
        });
        let shorter = (0..message.len()).map(|length| message[..length].to_vec());
        let longer = [1, 16].map(|more| [message, &vec![0; more]].concat());
        for (number, mut bytes) in damaged.chain(shorter).chain(longer).enumerate() {
            // As slowly as no handshake is refused for its number only.
            self.now += SECOND / UNPROVED_A_SECOND;
            let result =
                self.ends[at].receive(self.now, SocketAddr::from(([198, 51, 100, 7], 9)), &mut bytes);
            let reason = result.expect_err(&format!("change {number} was taken"));
            *reasons.entry(reason).or_insert(0) += 1;
            assert_eq!(state(&self.ends[at]), before, "change {number}: {reason}");
        }
        assert!(!reasons.contains_key(&TunnelDrop::AskedForCookie), "{reasons:?}");
    }
}

#[test]
fn a_flipped_bit_changes_nothing_and_nothing_is_sent() {
    let mut opening = Opening::new();
    let initiation = opening.initiation();
    opening.is_immune(1, &initiation);
    opening.give(1, &initiation).unwrap();
    let response = opening.only(1);
    let began = opening.now;
    opening.is_immune(0, &response);
    // The end that asked must not have begun again meanwhile.
    opening.now = began;
    assert!(opening.give(0, &response).is_ok(), "the damaged ones did no harm");
    let data = opening.only(0);
    opening.is_immune(1, &data);
    assert!(matches!(opening.give(1, &data), Ok(Received::Packet(..))));
    assert!(send(&mut opening.ends[1], opening.now, 0, &packet(1, 0, 1, 30)).unwrap().is_some());
}

/// Lets a tunnel be asked for more handshakes than it works on for strangers.
fn flood(tunnel: &mut Tunnel, now: u64, initiation: &[u8]) {
    let from = SocketAddr::from(([203, 0, 113, 5], 1));
    for _ in 0..UNPROVED_A_SECOND {
        let _ = tunnel.receive(now, from, &mut initiation.to_vec());
    }
    transmit_all(tunnel, now);
}

#[test]
fn under_a_flood_the_work_is_bounded_and_who_shows_a_cookie_gets_through() {
    let mut opening = Opening::new();
    let initiation = opening.initiation();
    // A stranger with the public key makes up messages that cost a handshake each.
    let mut made_up = end(&[9], true, 9, 0);
    made_up.add_peer(PeerId(0), peer(&[2], Some(address(1)))).unwrap();
    send(&mut made_up, 0, 0, &packet(0, 0, 0, 20)).unwrap();
    let stranger = transmit_all(&mut made_up, 0).remove(0).1;

    let mut spent = 0;
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for number in 0..20_000u32 {
        let from = SocketAddr::from(((0x0a00_0000 | number).to_be_bytes(), 1));
        bytes_in += stranger.len();
        match opening.ends[1].receive(opening.now, from, &mut stranger.clone()) {
            Err(TunnelDrop::UnknownKey) => spent += 1,
            Err(TunnelDrop::AskedForCookie | TunnelDrop::AnswersFull) => {}
            other => panic!("{other:?}"),
        }
        if number % 1_000 == 999 {
            let answers = transmit_all(&mut opening.ends[1], opening.now);
            assert!(answers.len() <= MOST_ANSWERS);
            bytes_out += answers.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        }
    }
    assert!(spent <= UNPROVED_A_SECOND, "{spent} of 20000 were worked on");
    assert!(bytes_out * 2 < bytes_in, "an answer is at most half as long as what it answers");

    // The peer is asked for a cookie as everybody is, and its next attempt shows it.
    assert_eq!(opening.give(1, &initiation), Err(TunnelDrop::AskedForCookie));
    let cookie = opening.only(1);
    assert_eq!(cookie.len(), 64);
    opening.is_immune(0, &cookie);
    opening.now = SECOND;
    assert_eq!(opening.give(0, &cookie), Ok(Received::CookieReply(PeerId(1))));
    opening.now = opening.ends[0].next_deadline().unwrap();
    let second = opening.only(0);
    flood(&mut opening.ends[1], opening.now, &stranger);
    let elsewhere = SocketAddr::from(([198, 51, 100, 1], 4_000));
    let stolen = opening.ends[1].receive(opening.now, elsewhere, &mut second.clone());
    assert_eq!(stolen, Err(TunnelDrop::WrongMac2), "a cookie is for one address");
    assert_eq!(opening.give(1, &second), Ok(Received::Initiation(PeerId(0))));
    let response = opening.only(1);
    assert!(response.len() < second.len());
    assert!(opening.give(0, &response).is_ok());
}

#[test]
fn a_proved_address_has_its_share_only() {
    let mut opening = Opening::new();
    opening.initiation();
    let mut made_up = end(&[9], true, 9, 0);
    made_up.add_peer(PeerId(0), peer(&[2], Some(address(1)))).unwrap();
    send(&mut made_up, 0, 0, &packet(0, 0, 0, 20)).unwrap();
    let stranger = transmit_all(&mut made_up, 0).remove(0).1;
    flood(&mut opening.ends[1], opening.now, &stranger);
    let from = SocketAddr::from(([203, 0, 113, 5], 1));
    let asked = opening.ends[1].receive(opening.now, from, &mut stranger.clone());
    assert_eq!(asked, Err(TunnelDrop::AskedForCookie));
    let mut cookie = opening.only(1);
    made_up.receive(0, address(1), &mut cookie).unwrap();
    let proved = transmit_all(&mut made_up, 5 * SECOND).remove(0).1;
    let mut reasons = BTreeMap::new();
    for _ in 0..1_000 {
        let reason = opening.ends[1].receive(opening.now, from, &mut proved.clone()).unwrap_err();
        *reasons.entry(reason).or_insert(0) += 1;
    }
    assert!(reasons[&TunnelDrop::UnknownKey] <= PROVED_OF_ADDRESS_A_SECOND, "{reasons:?}");
    assert!(reasons[&TunnelDrop::Overload] >= 1_000 - PROVED_OF_ADDRESS_A_SECOND, "{reasons:?}");
    // A cookie ends with the secret after the one it was made with.
    for later in 1..=2 {
        let when = opening.now + later * COOKIE_SECRET_LIFE;
        let reason = opening.ends[1].receive(when, from, &mut proved.clone()).unwrap_err();
        assert_eq!(reason == TunnelDrop::WrongMac2, later == 2, "{reason}");
    }
}

#[test]
fn what_was_recorded_does_nothing_later() {
    let (mut opening, [initiation, response, data]) = Opening::open();
    let attacker = SocketAddr::from(([198, 51, 100, 7], 9));
    for after_rekey in [false, true] {
        if after_rekey {
            opening.now += REKEY_AFTER;
            let (_, bytes) =
                send(&mut opening.ends[0], opening.now, 1, &packet(0, 1, 8, 60)).unwrap().unwrap();
            opening.give(1, &bytes).unwrap();
            transmit_all(&mut opening.ends[1], opening.now);
            let again = opening.only(0);
            opening.give(1, &again).unwrap();
            let answer = opening.only(1);
            opening.give(0, &answer).unwrap();
            let confirm = opening.only(0);
            opening.give(1, &confirm).unwrap();
        }
        let before = opening.ends.each_ref().map(state);
        for (message, expected) in [
            (&initiation, [TunnelDrop::WrongMac1, TunnelDrop::StaleInitiation]),
            (&response, [TunnelDrop::NothingAsked, TunnelDrop::NothingAsked]),
            (&data, [TunnelDrop::UnknownSession, TunnelDrop::Replayed]),
        ] {
            for (end, expected) in opening.ends.iter_mut().zip(expected) {
                let dropped = end.receive(opening.now, attacker, &mut message.clone());
                assert_eq!(dropped, Err(expected), "after rekey: {after_rekey}");
            }
        }
        assert_eq!(opening.ends.each_ref().map(state), before);
        assert!(opening.ends.iter_mut().all(|end| transmit_all(end, opening.now).is_empty()));
    }
}

/// The responder of an opening after a restart, with the greatest timestamp that it has stored.
fn restarted(greatest_timestamp: u64) -> Tunnel {
    let mut restarted = end(&[2], true, 77, 0);
    let setup = PeerSetup { greatest_timestamp, ..peer(&[1], None) };
    restarted.add_peer(PeerId(0), setup).unwrap();
    restarted
}

#[test]
fn what_was_recorded_before_a_restart_is_refused_where_the_timestamp_was_stored() {
    let (opening, messages) = Opening::open();
    let stored = opening.ends[1].peer_view(PeerId(0)).unwrap().greatest_timestamp;
    let mut restarted = restarted(stored);
    let before = state(&restarted);
    let reasons = [TunnelDrop::StaleInitiation, TunnelDrop::NothingAsked, TunnelDrop::UnknownSession];
    for (message, reason) in messages.iter().zip(reasons) {
        assert_eq!(restarted.receive(opening.now, address(0), &mut message.clone()), Err(reason));
    }
    assert_eq!(state(&restarted), before);
}

/// It is answered once, and that is all: no data goes there, and the peer's address is not believed.
#[test]
fn what_was_recorded_before_a_restart_takes_nothing_over_where_nothing_was_stored() {
    let (mut opening, [initiation, ..]) = Opening::open();
    let attacker = SocketAddr::from(([198, 51, 100, 7], 9));
    let mut restarted = restarted(0);
    let now = opening.now;
    let answered = restarted.receive(now, attacker, &mut initiation.clone());
    assert_eq!(answered, Ok(Received::Initiation(PeerId(0))));
    assert_eq!(transmit_all(&mut restarted, now).len(), 1);
    let view = restarted.peer_view(PeerId(0)).unwrap();
    assert_eq!((view.address, view.session), (None, None));
    let again = restarted.receive(now, attacker, &mut initiation.clone());
    assert_eq!(again, Err(TunnelDrop::StaleInitiation));
    assert_eq!(send(&mut restarted, now, 0, &packet(1, 0, 1, 30)), Ok(None), "it waits for the peer");

    // The peer itself gets through, and what waited goes to it.
    opening.ends[1] = restarted;
    opening.now += 20 * SECOND;
    opening.ends[0].revoke_key(&key(2));
    opening.ends[0].add_key(PeerId(1), key(2)).unwrap();
    let again = opening.initiation();
    opening.give(1, &again).unwrap();
    let answer = opening.only(1);
    opening.give(0, &answer).unwrap();
    let confirm = opening.only(0);
    assert!(matches!(opening.give(1, &confirm), Ok(Received::Packet(..))));
    let waited = transmit_all(&mut opening.ends[1], opening.now);
    assert_eq!(waited.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [address(0)]);
}

#[test]
fn messages_come_from_who_has_the_key() {
    let mut opening = Opening::new();
    let initiation = opening.initiation();
    // Reflected to its sender, and given to an end that it is not for.
    assert_eq!(opening.give(0, &initiation), Err(TunnelDrop::WrongMac1));
    let mut other = end(&[3], true, 3, 0);
    other.add_peer(PeerId(0), peer(&[1], None)).unwrap();
    assert_eq!(other.receive(0, address(0), &mut initiation.clone()), Err(TunnelDrop::WrongMac1));
    // Of a stranger who knows the public key.
    let mut stranger = end(&[4], true, 4, 0);
    stranger.add_peer(PeerId(1), peer(&[2], Some(address(1)))).unwrap();
    send(&mut stranger, 0, 1, &packet(0, 1, 0, 20)).unwrap();
    let message = transmit_all(&mut stranger, 0).remove(0).1;
    assert_eq!(opening.give(1, &message), Err(TunnelDrop::UnknownKey));
    // A response of somebody else to an initiation that was caught.
    opening.give(1, &initiation).unwrap();
    let response = opening.only(1);
    let mut swapped = message[..96].to_vec();
    swapped[..12].copy_from_slice(&response[..12]);
    assert_eq!(opening.give(0, &swapped), Err(TunnelDrop::WrongMac1));
    assert!(opening.give(0, &response).is_ok());
}

#[test]
fn any_bytes_are_an_answer() {
    let (opening, messages) = Opening::open();
    let mut internet = Internet::new(5, opening.ends.into());
    internet.now = opening.now;
    let mut random = Random::new(6);
    for _ in 0..100_000 {
        let mut bytes = match random.pick(&messages) {
            Some(message) if random.chance(70) => message.clone(),
            _ => (0..random.below(200)).map(|_| random.word() as u8).collect(),
        };
        for _ in 0..random.below(4) {
            let length = bytes.len() as u64;
            if let Some(byte) = bytes.get_mut(random.below(length) as usize) {
                *byte = random.below(8) as u8;
            }
        }
        bytes.truncate(random.below(3_000) as usize);
        let end = random.below(2) as usize;
        internet.deliver(end, address(5), &mut bytes);
    }
    assert!(internet.arrivals.is_empty());
    assert!(internet.log.iter().all(|(_, _, bytes)| bytes[0] == 3), "nothing but cookies");
    assert!(internet.drops.len() >= 5, "{:?}", internet.drops);
}
