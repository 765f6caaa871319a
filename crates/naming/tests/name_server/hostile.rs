//! Damaged queries: no panic, no loop, and no reply that is more than it may be.

use crate::wire::{self, Asked, asked, edns};
use crate::{by_udp, policy, server};
use naming::dns::DnsAnswer;
use naming::limits::MOST_AMPLIFICATION;
use tables::generate::Random;

/// How many damaged queries; more by `NAMING_QUERIES`.
fn rounds() -> u64 {
    std::env::var("NAMING_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.word() as u8),
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 if at < bytes.len() => bytes[at] = [0, 1, 63, 64, 0xc0, 0xff][random.below(6) as usize],
            _ => {
                let piece = bytes.get(at..).unwrap_or_default().to_vec();
                bytes.extend(piece);
            }
        }
    }
}

#[test]
fn damaged_queries_get_a_reply_that_is_whole_and_short_or_none() {
    let mut random = Random::new(43);
    let mut server = server(policy());
    let subnet = [0, 1, 24, 0, 198, 51, 100];
    let seeds = [
        asked("nas.home.example.", 1).bytes(),
        Asked { edns: edns(&[(10, &[1; 8]), (8, &subnet)]), ..asked("tv.home.example.", 1) }.bytes(),
        Asked { edns: edns(&[(10, &[1; 24])]), ..asked("home.example.", 2) }.bytes(),
        Asked { edns: edns(&[(12, &[0; 60])]), ..asked("x.nas.home.example.", 255) }.bytes(),
    ];
    let mut out = Vec::new();
    let (mut replies, mut drops, mut holds) = (0, 0, 0);
    for round in 0..rounds() {
        let mut bytes = seeds[random.below(4) as usize].clone();
        damage(&mut random, &mut bytes);
        match server.answer(&by_udp(&bytes), &mut out) {
            DnsAnswer::Drop(_) => {
                drops += 1;
                continue;
            }
            DnsAnswer::Reply => replies += 1,
            DnsAnswer::Hold(number, _) => {
                holds += 1;
                server.resume(number, Ok([203, 0, 113, 5].into()), &mut out).expect("it waits");
            }
        }
        let said = wire::read(&out).unwrap_or_else(|| panic!("{round}: {bytes:?} got {out:?}"));
        assert!(out.len() <= MOST_AMPLIFICATION * bytes.len(), "{round}: {bytes:?} got {out:?}");
        assert_eq!((said.flags >> 15, &out[..2]), (1, &bytes[..2]), "{round}");
    }
    assert!(replies > drops && holds > 0 && drops > 0, "{replies} {drops} {holds}");
}
