//! The bytes choose a random program, and packets beside its own: all back ends mean the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suite::agree::{PORTS, compare};
use suite::{packet_generator, program_generator};

fuzz_target!(|input: (u32, Vec<Vec<u8>>)| {
    let (seed, packets) = input;
    let program = program_generator::generate(seed.into());
    let mut arrivals = packet_generator::generate(&program, seed.into(), 40, PORTS);
    for (bytes, index) in packets.iter().zip(0..100u16) {
        arrivals.push(
            bytes,
            bytes.len() as u32,
            2_000_000_000 + u64::from(index) * 1_000_000,
            index % PORTS + 1,
        );
    }
    if let Err(what) = compare(&program.text, &arrivals) {
        panic!("seed {seed}: {what}\n{}", program.text);
    }
});
