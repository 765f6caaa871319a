//! What time, roaming, rotation of keys and limits do to sessions.

mod internet;

use internet::{Internet, Weather, address, end, key, packet, pair, peer, secret, send, transmit_all};
use std::net::SocketAddr;
use tunnel::limits::{
    GIVE_UP_AFTER, KEEPALIVE_AFTER, LONGEST_PAYLOAD, MOST_HANDSHAKES, MOST_KEYS_OF_PEER, MOST_PEERS,
    MOST_QUEUED_BYTES, MOST_QUEUED_OF_PEER, MOST_SECRETS, QUESTION_SILENCE, REJECT_AFTER, RETRY, SECOND,
    SILENCE,
};
use tunnel::{
    DATA_HEADER, DATA_TAG, PeerId, PublicKey, Received, SendOutcome, TunnelDrop, TunnelPayload,
    TunnelSendError, TunnelSetupError,
};

/// Two ends with a session.
fn open(seed: u64) -> Internet {
    let mut internet = Internet::new(seed, pair([true, true]).into());
    internet.send(0, 1, &packet(0, 1, 0, 60)).unwrap();
    internet.run(SECOND);
    internet.send(1, 0, &packet(1, 0, 0, 60)).unwrap();
    internet.run(SECOND);
    assert_eq!(internet.arrivals.len(), 2);
    internet
}

const NOTHING_ARRIVES: Weather = Weather { lost: 100, repeated: 0, longest_delay: 1 };

fn arrived(internet: &Internet, bytes: &[u8]) -> bool {
    internet.arrivals.iter().any(|arrival| arrival.bytes == bytes)
}

#[test]
fn a_peer_that_moves_is_followed_when_it_sends_something_newer() {
    let mut internet = open(1);
    let old = send(&mut internet.ends[0], internet.now, 1, &packet(0, 1, 1, 60)).unwrap().unwrap().1;
    let home = internet.addresses[0];
    internet.addresses[0] = SocketAddr::from(([198, 51, 100, 9], 5_555));
    internet.send(0, 1, &packet(0, 1, 2, 60)).unwrap();
    internet.run(SECOND);
    let view = internet.ends[1].peer_view(PeerId(0)).unwrap();
    assert_eq!(view.address, Some(internet.addresses[0]));
    // Something older comes late, from where the peer was; then somebody repeats something from elsewhere.
    internet.deliver(1, home, &mut old.clone());
    internet.deliver(1, address(7), &mut old.clone());
    assert_eq!(internet.ends[1].peer_view(PeerId(0)).unwrap().address, Some(internet.addresses[0]));
    assert_eq!(internet.drops[&TunnelDrop::Replayed], 1);
    internet.send(1, 0, &packet(1, 0, 2, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(1, 0, 2, 60)));
    assert_eq!(internet.handshakes, 1);
}

#[test]
fn what_is_answered_by_nothing_else_is_answered_by_a_keepalive() {
    let mut internet = open(1);
    let before = internet.log.len();
    internet.run(3 * KEEPALIVE_AFTER);
    let keepalives: Vec<usize> = internet.log[before..].iter().map(|(_, _, bytes)| bytes.len()).collect();
    assert_eq!(keepalives, [32], "one, and none in answer to it");
}

#[test]
fn a_gateway_without_traffic_is_reachable_and_keeps_its_mapping() {
    let mut ends = [end(&[1], true, 1, 0), end(&[2], true, 2, 0)];
    let mut setup = peer(&[2], Some(address(1)));
    setup.keepalive = Some(25 * SECOND);
    ends[0].add_peer(PeerId(1), setup).unwrap();
    ends[1].add_peer(PeerId(0), peer(&[1], None)).unwrap();
    let mut internet = Internet::new(3, ends.into());
    internet.run(3_600 * SECOND);
    internet.send(1, 0, &packet(1, 0, 1, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(1, 0, 1, 60)));
    let quiet = internet.log.iter().filter(|(from, ..)| *from == address(0)).count();
    assert!((144..220).contains(&quiet), "{quiet} datagrams in an hour");
}

#[test]
fn silence_leads_to_a_new_session() {
    let mut internet = open(1);
    // The responder has lost its memory.
    internet.ends[1] = end(&[2], true, 9, internet.now);
    internet.ends[1].add_peer(PeerId(0), peer(&[1], None)).unwrap();
    internet.send(0, 1, &packet(0, 1, 5, 60)).unwrap();
    internet.run(SILENCE + SECOND);
    assert_eq!(internet.handshakes, 2);
    internet.send(0, 1, &packet(0, 1, 6, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(0, 1, 6, 60)));
    assert!(!arrived(&internet, &packet(0, 1, 5, 60)));
}

/// Nothing is sent but what keeps the peer reachable, and nobody has a lease to renew.
#[test]
fn a_peer_that_was_started_anew_is_called_again_within_seconds_without_traffic() {
    let every = 5 * SECOND;
    for started in 0..20 {
        let mut internet = open(started);
        internet.ends[0].set_keepalive(PeerId(1), Some(every)).unwrap();
        internet.run(60 * SECOND);
        assert_eq!(internet.handshakes, 1, "the peer answers each time");
        internet.run(started * SECOND / 4);
        internet.ends[1] = end(&[2], true, 9, internet.now);
        internet.ends[1].add_peer(PeerId(0), peer(&[1], None)).unwrap();
        internet.run(every + QUESTION_SILENCE + SECOND);
        internet.send(1, 0, &packet(1, 0, 5, 60)).unwrap();
        internet.run(SECOND);
        assert!(arrived(&internet, &packet(1, 0, 5, 60)), "{started}");
        assert_eq!(internet.handshakes, 2);
    }
}

#[test]
fn two_that_keep_each_other_reachable_do_not_answer_answers() {
    let mut internet = open(1);
    for (own, other) in [(0, 1), (1, 0)] {
        internet.ends[own].set_keepalive(PeerId(other as u32), Some(5 * SECOND)).unwrap();
    }
    let before = internet.log.len();
    internet.run(100 * SECOND);
    let sent = internet.log[before..].iter().map(|(_, _, bytes)| bytes.len());
    let (questions, answers) = sent.partition::<Vec<usize>, _>(|length| *length == 33);
    assert!(
        (20..=42).contains(&questions.len()) && answers == vec![32; questions.len()],
        "{questions:?} {answers:?}"
    );
}

#[test]
fn an_attempt_ends_and_what_waited_is_discarded() {
    let mut internet = Internet::new(1, pair([true, true]).into());
    internet.weather = NOTHING_ARRIVES;
    for number in 0..3 {
        internet.send(0, 1, &packet(0, 1, number, 60)).unwrap();
    }
    internet.run(2 * GIVE_UP_AFTER);
    let most = GIVE_UP_AFTER / RETRY.end() + 3;
    let least = GIVE_UP_AFTER / (RETRY.end() + RETRY.end() / 8);
    assert!((least..=most).contains(&internet.handshakes), "{}", internet.handshakes);
    assert_eq!(internet.ends[0].discarded(), 3);
    assert_eq!(internet.ends[0].numbers_in_use(), 0);
    assert_eq!(internet.ends[0].next_deadline(), None);
    internet.weather = internet::FAIR;
    internet.send(0, 1, &packet(0, 1, 9, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(0, 1, 9, 60)), "a later packet begins anew");
}

#[test]
fn a_revoked_key_has_no_session_from_then_on() {
    let mut internet = open(1);
    let late = send(&mut internet.ends[0], internet.now, 1, &packet(0, 1, 3, 60)).unwrap().unwrap().1;
    assert_eq!(internet.ends[1].revoke_key(&key(1)), Some(PeerId(0)));
    assert_eq!(internet.ends[1].numbers_in_use(), 0);
    internet.deliver(1, address(0), &mut late.clone());
    assert_eq!(internet.drops[&TunnelDrop::UnknownSession], 1);
    let refused = send(&mut internet.ends[1], internet.now, 0, &packet(1, 0, 3, 60));
    assert_eq!(refused, Err(TunnelSendError::CannotBegin));
    internet.send(0, 1, &packet(0, 1, 4, 60)).unwrap();
    internet.run(60 * SECOND);
    assert!(internet.drops[&TunnelDrop::UnknownKey] > 3, "{:?}", internet.drops);
    assert_eq!(internet.arrivals.len(), 2);
    assert_eq!(internet.ends[1].remove_peer(PeerId(0)), Ok(()));
    assert_eq!(internet.ends[1].remove_peer(PeerId(0)), Err(TunnelSetupError::NoPeer(PeerId(0))));
    assert_eq!(internet.ends[1].next_deadline(), None);
}

#[test]
fn keys_are_rotated_without_a_lost_packet() {
    let mut internet = open(1);
    let mut number = 10;
    let mut exchange = |internet: &mut Internet| {
        for _ in 0..400 {
            number += 1;
            internet.send(0, 1, &packet(0, 1, number, 60)).unwrap();
            internet.run(SECOND / 2);
            internet.send(1, 0, &packet(1, 0, number, 60)).unwrap();
            internet.run(SECOND / 2);
            assert!(arrived(internet, &packet(0, 1, number, 60)), "{number}");
            assert!(arrived(internet, &packet(1, 0, number, 60)), "{number}");
        }
    };
    // The initiator's: the peer learns it, then the initiator uses it, then the old one ends.
    internet.ends[1].add_key(PeerId(0), key(11)).unwrap();
    exchange(&mut internet);
    internet.ends[0].set_secrets(vec![secret(11), secret(1)]).unwrap();
    exchange(&mut internet);
    internet.ends[1].revoke_key(&key(1));
    internet.ends[0].set_secrets(vec![secret(11)]).unwrap();
    exchange(&mut internet);
    // The responder's: it takes both, then the initiator learns the new one, then the old one ends.
    internet.ends[1].set_secrets(vec![secret(12), secret(2)]).unwrap();
    internet.ends[0].add_key(PeerId(1), key(12)).unwrap();
    exchange(&mut internet);
    internet.ends[1].set_secrets(vec![secret(12)]).unwrap();
    internet.ends[0].revoke_key(&key(2));
    exchange(&mut internet);
    let session = internet.ends[0].peer_view(PeerId(1)).unwrap().session.unwrap();
    assert_eq!((session.our_key, session.peer_key), (key(11), key(12)));
}

/// The peer does not know that the session is over, and goes on sending in it.
#[test]
fn who_keeps_a_peer_reachable_begins_again_as_soon_as_its_old_key_is_left_out() {
    let mut internet = open(1);
    internet.ends[0].set_keepalive(PeerId(1), Some(25 * SECOND)).unwrap();
    internet.ends[1].add_key(PeerId(0), key(11)).unwrap();
    internet.ends[0].set_secrets(vec![secret(11), secret(1)]).unwrap();
    internet.run(SECOND);
    internet.ends[0].set_secrets(vec![secret(11)]).unwrap();
    internet.run(SECOND);
    internet.send(1, 0, &packet(1, 0, 9, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(1, 0, 9, 60)));
    let session = internet.ends[1].peer_view(PeerId(0)).unwrap().session.unwrap();
    assert_eq!(session.peer_key, key(11));
}

#[test]
fn an_old_key_of_the_peer_does_not_keep_an_attempt_from_reaching_it() {
    let mut ends = pair([true, true]);
    ends[0].revoke_key(&key(2));
    ends[0].add_key(PeerId(1), key(20)).unwrap();
    ends[0].add_key(PeerId(1), key(2)).unwrap();
    let mut internet = Internet::new(1, ends.into());
    internet.send(0, 1, &packet(0, 1, 1, 60)).unwrap();
    internet.run(2 * RETRY.start());
    assert!(arrived(&internet, &packet(0, 1, 1, 60)));
    assert_eq!(internet.drops[&TunnelDrop::WrongMac1], 1);
}

#[test]
fn a_clock_that_jumps_ends_sessions_or_does_nothing() {
    let mut internet = open(1);
    // Back: nothing happens.
    let now = internet.now;
    internet.now = 0;
    internet.send(0, 1, &packet(0, 1, 1, 60)).unwrap();
    internet.now = now;
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(0, 1, 1, 60)));
    // An hour on, as after a machine has slept: the session is too old, and another one begins at once.
    internet.now += 3_600 * SECOND;
    assert!(internet.now > REJECT_AFTER);
    internet.send(0, 1, &packet(0, 1, 2, 60)).unwrap();
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(0, 1, 2, 60)));
    assert_eq!(internet.handshakes, 2);
    // To the end of time, at one end only.
    let mut all = vec![0; 2_000];
    let _ = internet.ends[0].send(u64::MAX, PeerId(1), TunnelPayload::Control(b"late"), &mut all);
    assert!(transmit_all(&mut internet.ends[0], u64::MAX).len() <= 1);
}

#[test]
fn a_clock_set_back_during_a_restart_is_refused_until_what_was_stored_is_given() {
    let mut internet = open(1);
    let stored = internet.ends[0].last_timestamp();
    for (started, arrives) in [(internet::DAY / 2, false), (stored + 1, true)] {
        let setup = tunnel::TunnelSetup { secrets: vec![secret(1)], aes: true, now: 0, started };
        let mut restarted = tunnel::Tunnel::new(setup, Box::new(|bytes| bytes.fill(7))).unwrap();
        restarted.add_peer(PeerId(1), peer(&[2], Some(address(1)))).unwrap();
        internet.ends[0] = restarted;
        internet.send(0, 1, &packet(0, 1, 1, 60)).unwrap();
        internet.run(SECOND);
        assert_eq!(arrived(&internet, &packet(0, 1, 1, 60)), arrives);
    }
    assert!(internet.drops[&TunnelDrop::StaleInitiation] >= 1);
}

#[test]
fn control_messages_and_what_cannot_be_sent() {
    let mut internet = open(1);
    let mut out = vec![0; 70_000];
    let [zero, one] = &mut internet.ends[..] else { panic!("two ends") };
    let now = internet.now;
    let sealed = zero.send(now, PeerId(1), TunnelPayload::Control(b"lease 7"), &mut out).unwrap();
    let tunnel::SendOutcome::Sealed(transmit) = sealed else { panic!("there is a session") };
    let mut datagram = out[..transmit.length].to_vec();
    let Ok(Received::Control(from, range)) = one.receive(now, address(0), &mut datagram) else {
        panic!("it is authentic")
    };
    assert_eq!((from, &datagram[range]), (PeerId(0), &b"lease 7"[..]));

    let long = vec![0x45; LONGEST_PAYLOAD + 1];
    for (peer, payload, room, error) in [
        (2, TunnelPayload::Packet(&long[..20]), 99, TunnelSendError::UnknownPeer),
        (1, TunnelPayload::Packet(&long), 70_000, TunnelSendError::TooLong),
        (1, TunnelPayload::Control(&long[1..]), 70_000, TunnelSendError::TooLong),
        (1, TunnelPayload::Packet(&[]), 99, TunnelSendError::NotIp),
        (1, TunnelPayload::Packet(&[0x35; 20]), 99, TunnelSendError::NotIp),
        (1, TunnelPayload::Packet(&long[..20]), 51, TunnelSendError::NoRoom),
    ] {
        assert_eq!(zero.send(now, PeerId(peer), payload, &mut out[..room]), Err(error));
    }
    assert!(zero.send(now, PeerId(1), TunnelPayload::Packet(&long[1..]), &mut out).is_ok(), "the longest");
}

#[test]
fn queues_have_their_limits() {
    let mut tunnel = end(&[1], true, 1, 0);
    let key = |number: u32| {
        let mut bytes = [9; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        PublicKey(bytes)
    };
    let add = |tunnel: &mut tunnel::Tunnel, number: u32| {
        let setup = tunnel::PeerSetup { keys: vec![key(number)], ..peer(&[], Some(address(1))) };
        tunnel.add_peer(PeerId(number), setup)
    };
    for number in 0..MOST_PEERS as u32 {
        add(&mut tunnel, number).unwrap();
    }
    assert_eq!(add(&mut tunnel, MOST_PEERS as u32), Err(TunnelSetupError::TooManyPeers));

    let large = packet(0, 1, 0, 60_000);
    for _ in 0..MOST_QUEUED_OF_PEER {
        assert_eq!(send(&mut tunnel, 0, 0, &packet(0, 1, 0, 20)), Ok(None));
    }
    assert_eq!(send(&mut tunnel, 0, 0, &packet(0, 1, 0, 20)), Err(TunnelSendError::QueueFull));
    let mut bytes = MOST_QUEUED_OF_PEER * 20;
    let mut number = 1;
    while bytes + large.len() <= MOST_QUEUED_BYTES {
        assert_eq!(send(&mut tunnel, 0, number, &large), Ok(None));
        bytes += large.len();
        number += 1;
    }
    assert_eq!(send(&mut tunnel, 0, number, &large), Err(TunnelSendError::QueueFull));
    for number in 1..MOST_PEERS as u32 {
        let _ = send(&mut tunnel, 0, number, &packet(0, 1, 0, 20));
    }
    let first = transmit_all(&mut tunnel, 0).len();
    assert_eq!(first, MOST_HANDSHAKES, "the others wait for an end of these");
    assert_eq!(tunnel.numbers_in_use(), MOST_HANDSHAKES);
    // Those give up, and others take their place.
    transmit_all(&mut tunnel, GIVE_UP_AFTER);
    let next = transmit_all(&mut tunnel, GIVE_UP_AFTER + 2 * SECOND).len();
    assert_eq!(next, MOST_HANDSHAKES);
}

#[test]
fn keys_and_names_are_checked() {
    let mut tunnel = end(&[1], true, 1, 0);
    let with = |keys: &[u8]| peer(keys, None);
    tunnel.add_peer(PeerId(1), with(&[2])).unwrap();
    let too_many: Vec<u8> = (10..=10 + MOST_KEYS_OF_PEER as u8).collect();
    let mut weak = with(&[3]);
    weak.keys[0] = PublicKey([0; 32]);
    let mut often = with(&[3]);
    often.keepalive = Some(SECOND - 1);
    for (id, setup, error) in [
        (1, with(&[3]), TunnelSetupError::PeerExists(PeerId(1))),
        (2, with(&[2]), TunnelSetupError::KeyInUse(PeerId(1))),
        (2, with(&[3, 3]), TunnelSetupError::KeyInUse(PeerId(2))),
        (2, with(&[1]), TunnelSetupError::OwnKey),
        (2, with(&[]), TunnelSetupError::KeyCount),
        (2, with(&too_many), TunnelSetupError::KeyCount),
        (2, weak, TunnelSetupError::WeakKey),
        (2, often, TunnelSetupError::KeepaliveTooShort),
    ] {
        assert_eq!(tunnel.add_peer(PeerId(id), setup), Err(error));
    }
    for number in 2..=MOST_KEYS_OF_PEER as u8 {
        tunnel.add_key(PeerId(1), key(20 + number)).unwrap();
    }
    assert_eq!(tunnel.add_key(PeerId(1), key(40)), Err(TunnelSetupError::KeyCount));
    let secrets = |numbers: &[u8]| numbers.iter().map(|number| secret(*number)).collect::<Vec<_>>();
    let most: Vec<u8> = (1..=MOST_SECRETS as u8).map(|number| 50 + number).collect();
    for (numbers, error) in [
        (&[1, 2][..], TunnelSetupError::KeyInUse(PeerId(1))),
        (&[1, 1], TunnelSetupError::SecretExists),
        (&[], TunnelSetupError::SecretCount),
        (&[&most[..], &[60]].concat(), TunnelSetupError::SecretCount),
    ] {
        assert_eq!(tunnel.set_secrets(secrets(numbers)), Err(error));
        assert_eq!(tunnel.keys(), [key(1)], "nothing has changed");
    }
    tunnel.set_secrets(secrets(&most)).unwrap();
    let often = tunnel.set_keepalive(PeerId(1), Some(1));
    assert_eq!(often, Err(TunnelSetupError::KeepaliveTooShort));
    assert!(!format!("{:?}{tunnel:?}", secret(1)).contains("1, 1"), "secrets are not printed");
}

/// A packet that is sealed where it stands arrives, waits and counts as one that is sealed elsewhere.
#[test]
fn a_packet_is_sealed_where_it_stands() {
    let mut internet = open(1);
    let mut datagram = [0; DATA_HEADER + 60 + DATA_TAG];
    datagram[DATA_HEADER..DATA_HEADER + 60].copy_from_slice(&packet(0, 1, 1, 60));
    let now = internet.now;
    let sealed = internet.ends[0].seal_in_place(now, PeerId(1), &mut datagram);
    let Ok(SendOutcome::Sealed(transmit)) = sealed else { panic!("there is a session") };
    assert_eq!((transmit.to, transmit.length), (address(1), datagram.len()));
    internet.deliver(1, address(0), &mut datagram);
    assert!(arrived(&internet, &packet(0, 1, 1, 60)));
    let carried = |internet: &Internet| {
        let sent = internet.ends[0].peer_view(PeerId(1)).unwrap().sent;
        assert_eq!(internet.ends[1].peer_view(PeerId(0)).unwrap().received, sent);
        (sent.packets, sent.bytes)
    };
    assert_eq!(carried(&internet), (2, 120));
    internet.send(0, 1, &packet(0, 1, 2, 60)).unwrap();
    internet.run(SECOND);
    assert_eq!(carried(&internet), (3, 180));
    let mut wrong = |id, datagram: &mut [u8]| internet.ends[0].seal_in_place(now, PeerId(id), datagram);
    assert_eq!(wrong(7, &mut [0x45; 92]), Err(TunnelSendError::UnknownPeer));
    assert_eq!(wrong(1, &mut [0; 92]), Err(TunnelSendError::NotIp));
    assert_eq!(wrong(1, &mut [0x45; 32]), Err(TunnelSendError::NotIp));
    assert_eq!(wrong(1, &mut [0x45; 31]), Err(TunnelSendError::NoRoom));
    assert_eq!(wrong(1, &mut vec![0x45; LONGEST_PAYLOAD + 33]), Err(TunnelSendError::TooLong));
    // Without a session it waits for one.
    internet.run(REJECT_AFTER);
    let now = internet.now;
    let mut datagram = [0; DATA_HEADER + 60 + DATA_TAG];
    datagram[DATA_HEADER..DATA_HEADER + 60].copy_from_slice(&packet(0, 1, 3, 60));
    assert_eq!(internet.ends[0].seal_in_place(now, PeerId(1), &mut datagram), Ok(SendOutcome::Queued));
    internet.run(SECOND);
    assert!(arrived(&internet, &packet(0, 1, 3, 60)));
    assert_eq!(carried(&internet), (4, 240));
}

#[test]
fn a_refused_packet_confirms_the_session_in_which_it_comes_first() {
    let mut internet = Internet::new(1, pair([true, true]).into());
    internet.ends[1].set_control_only(PeerId(0), true).unwrap();
    internet.send(0, 1, &packet(0, 1, 0, 60)).unwrap();
    internet.run(SECOND);
    assert_eq!(internet.drops[&TunnelDrop::ControlOnly], 1);
    let view = internet.ends[1].peer_view(PeerId(0)).unwrap();
    assert!(view.session.is_some() && view.address == Some(internet.addresses[0]));
    assert_eq!(view.received.packets, 0);
    // The peer is answered by a keepalive, so it does not take the silence for a lost session.
    internet.run(3 * SILENCE);
    assert_eq!((internet.arrivals.len(), internet.handshakes), (0, 1));
}
