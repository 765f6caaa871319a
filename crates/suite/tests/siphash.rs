//! `std.siphash` against the hash of another library, on every back end.

use siphasher::sip::SipHasher24;
use suite::agree::compare;
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

const TEXT: &str = "
import std.siphash.{siphash1, siphash2, siphash3, siphash4, siphash_blocks1}
layout asked { words: u8 k0: u64 k1: u64 a: u64 b: u64 c: u64 d: u64 hash: u64 }
start decoder all(q: asked) {
    set q.hash = match q.words {
        0 => siphash_blocks1(q.k0, q.k1, 0)
        1 => siphash1(q.k0, q.k1, q.a)
        2 => siphash2(q.k0, q.k1, q.a, q.b)
        3 => siphash3(q.k0, q.k1, q.a, q.b, q.c)
        else => siphash4(q.k0, q.k1, q.a, q.b, q.c, q.d)
    }
    send 2
}";

#[test]
fn hashes_of_words_are_those_of_another_library() {
    let mut random = SuiteRandom::new(7);
    let (mut arrivals, mut due) = (Arrivals::default(), Vec::new());
    for time in 0..300 {
        let words = time % 5;
        let mut number = || random.value(64) as u64;
        let (k0, k1, message) = (number(), number(), [number(), number(), number(), number()]);
        let mut packet = vec![words as u8];
        for part in [k0, k1].iter().chain(&message).chain(&[0]) {
            packet.extend(part.to_be_bytes());
        }
        arrivals.push(&packet, packet.len() as u32, time, 1);
        let bytes: Vec<u8> =
            message.iter().take(words as usize).flat_map(|word| word.to_le_bytes()).collect();
        let hash = SipHasher24::new_with_keys(k0, k1).hash(&bytes);
        let kept = packet.len() - size_of::<u64>();
        due.push([&packet[..kept], &hash.to_be_bytes()].concat());
    }
    let (_, seen) = compare(TEXT, &arrivals).expect("both agree").expect("a program");
    let left: Vec<&[u8]> = seen.bytes.iter().map(|(bytes, _)| bytes.as_slice()).collect();
    assert_eq!(left, due);
}
