//! Traffic that the generator invents, with damage done to it.

use crate::packet_generator::Arrivals;
use crate::random::Random;
use packet::generate::{Generator, Profile};

/// Generated traffic, part of it damaged.
///
/// # Panics
/// The profile is not sound.
pub fn traffic(mut profile: Profile, packets: u64, ports: u16, seed: u64) -> Arrivals {
    profile.packets = packets;
    profile.flows = profile.flows.min(packets / 8).max(20);
    let mut generator = Generator::new(&profile, seed).expect("the profile is sound");
    let mut random = Random::new(seed);
    let (mut arrivals, mut bytes) = (Arrivals::default(), Vec::new());
    while let Some(stamp) = generator.next(&mut bytes) {
        let mut frame = bytes.clone();
        if random.one_in(5) && !frame.is_empty() {
            for _ in 0..random.between(1, 4) {
                let at = random.below(frame.len().min(60) as u64) as usize;
                frame[at] = random.number() as u8;
            }
        }
        if random.one_in(12) {
            frame.truncate(random.below(70) as usize);
        }
        arrivals.push(
            &frame,
            stamp.wire.max(frame.len() as u32),
            stamp.time,
            random.between(1, ports.into()) as u16,
        );
    }
    arrivals
}
