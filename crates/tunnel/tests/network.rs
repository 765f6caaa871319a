//! What arrives over a bad network was sent, by who it says, to whom it arrives, and at most once.

mod internet;

use internet::{FAIR, Internet, Weather, address, end, packet, pair, peer};
use std::collections::BTreeSet;
use tunnel::limits::{GIVE_UP_AFTER, REJECT_AFTER, SECOND};
use tunnel::{CipherSuite, PeerId};

/// Three ends, each of which knows the others; the last one can only be reached after it has begun.
fn three(seed: u64) -> Internet {
    let ends = (0..3).map(|of| {
        let mut tunnel = end(&[of as u8 + 1], seed & 1 << of != 0, seed * 3 + of as u64, 0);
        for other in (0..3).filter(|other| *other != of) {
            let known = (other != 2).then(|| address(other));
            let mut setup = peer(&[other as u8 + 1], known);
            setup.keepalive = (of == 2).then_some(25 * SECOND);
            tunnel.add_peer(PeerId(other as u32), setup).expect("a good peer");
        }
        tunnel
    });
    Internet::new(seed, ends.collect())
}

#[test]
fn what_arrives_was_sent_by_who_it_says_and_arrives_once() {
    let mut arrived = 0;
    for seed in 0..60 {
        let mut internet = three(seed);
        let lost = [0, 1, 5, 20, 50][seed as usize % 5];
        let longest_delay = [SECOND / 1_000, SECOND / 10, 2 * SECOND][seed as usize % 3];
        internet.weather = Weather { lost, repeated: 10, longest_delay };
        let mut sent = BTreeSet::new();
        for number in 0..400 {
            let from = internet.random.below(3) as usize;
            let to = (from + 1 + internet.random.below(2) as usize) % 3;
            let length = 8 + internet.random.below(1_400) as usize;
            let bytes = packet(from, to, number, length);
            if internet.send(from, to, &bytes).is_ok() {
                sent.insert((from, to, bytes));
            }
            let pause = [SECOND / 1_000, SECOND / 10, SECOND, 20 * SECOND][internet.random.below(4) as usize];
            internet.run(pause);
        }
        internet.run(60 * SECOND);
        let arrivals = std::mem::take(&mut internet.arrivals);
        arrived += arrivals.len();
        let mut once = BTreeSet::new();
        for arrival in arrivals {
            let who = (arrival.from.0 as usize, arrival.at_end, arrival.bytes);
            assert!(sent.contains(&who), "seed {seed}: something arrived that was not sent");
            assert!(once.insert(who), "seed {seed}: something arrived twice");
        }
        // Where nothing is lost, at most a packet is that comes when two sessions have followed its own.
        let least = match (lost, longest_delay < SECOND) {
            (0, true) => sent.len(),
            (0, false) => sent.len() * 99 / 100,
            _ => sent.len() * (60 - lost as usize) / 100,
        };
        assert!(once.len() >= least, "seed {seed}: {} of {} arrived", once.len(), sent.len());

        // When the weather is fair again, so is the tunnel.
        internet.weather = FAIR;
        internet.run(GIVE_UP_AFTER);
        let bytes = packet(2, 0, 1_000, 100);
        internet.send(2, 0, &bytes).expect("it knows where the other is");
        internet.run(SECOND);
        assert!(internet.arrivals.iter().any(|arrival| arrival.bytes == bytes), "seed {seed}");
    }
    assert!(arrived > 10_000, "{arrived}");
}

#[test]
fn the_cipher_is_the_best_that_both_have() {
    for aes in [[true, true], [true, false], [false, true], [false, false]] {
        let mut internet = Internet::new(1, pair(aes).into());
        internet.send(0, 1, &packet(0, 1, 0, 100)).unwrap();
        internet.run(SECOND);
        internet.send(1, 0, &packet(1, 0, 0, 100)).unwrap();
        internet.run(SECOND);
        assert_eq!(internet.arrivals.len(), 2);
        let expected = match aes {
            [true, true] => CipherSuite::Aes256Gcm,
            _ => CipherSuite::ChaCha20Poly1305,
        };
        for of in 0..2 {
            let view = internet.ends[of].peer_view(PeerId(1 - of as u32)).unwrap();
            assert_eq!(view.session.unwrap().suite, expected);
        }
    }
}

#[test]
fn sessions_are_replaced_while_packets_flow_and_none_is_lost() {
    let mut internet = Internet::new(1, pair([true, true]).into());
    let minutes = 60;
    for number in 0..minutes * 60 {
        internet.send(0, 1, &packet(0, 1, number, 64)).unwrap();
        internet.run(SECOND / 2);
        internet.send(1, 0, &packet(1, 0, number, 64)).unwrap();
        internet.run(SECOND / 2);
    }
    assert_eq!(internet.arrivals.len() as u32, 2 * minutes * 60);
    assert!((25..35).contains(&internet.handshakes), "{} in an hour", internet.handshakes);
    assert_eq!(internet.drops.values().sum::<u64>(), 0, "{:?}", internet.drops);
    let most_in_use = 3;
    assert!(internet.ends.iter().all(|end| end.numbers_in_use() <= most_in_use));
    internet.run(REJECT_AFTER + 60 * SECOND);
    let left: Vec<usize> = internet.ends.iter().map(tunnel::Tunnel::numbers_in_use).collect();
    assert_eq!(left, [0, 0], "keys of sessions that are too old are forgotten");
}
