//! Traffic that the generator invents, with damage done to it.

use crate::packet_generator::Arrivals;
use crate::random::SuiteRandom;
use captures::generate::{Generator, Profile};

/// Generated traffic, part of it damaged.
///
/// # Panics
/// The profile is not sound.
pub fn traffic(mut profile: Profile, packets: u64, ports: u16, seed: u64) -> Arrivals {
    profile.packets = packets;
    profile.flows = profile.flows.min(packets / 8).max(20);
    let mut generator = Generator::new(&profile, seed).expect("the profile is sound");
    let mut random = SuiteRandom::new(seed);
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

/// The same packets so many times over, a microsecond apart, and each station behind one port: what a program
/// learns comes to rest.
pub fn settled(arrivals: &Arrivals, times: usize, ports: u16) -> Arrivals {
    let begin = arrivals.frames.iter().map(|frame| frame.time).min().unwrap_or(0);
    let (mut round, mut all) = (Arrivals::default(), Arrivals::default());
    for (number, frame) in (0..).zip(arrivals.frames.iter()) {
        let source = frame.bytes.get(6..12).unwrap_or_default();
        let port = 1 + source.iter().map(|byte| u16::from(*byte)).sum::<u16>() % ports;
        round.push(frame.bytes, frame.wire, begin + 1_000 * number, port);
    }
    (0..times).for_each(|_| all.append(&round));
    all
}
