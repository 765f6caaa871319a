//! What the two halves of a tunnel's port cost: packets from one end to another by the loopback interface.
//!
//! `cargo run --release -p ports --example tunnel_speed -- [BATCH] [ROUNDS]` prints nanoseconds a packet on
//! one thread, which sends batches and receives them: medians of rounds, and their extremes.

#[path = "../tests/tunnel_ends/mod.rs"]
mod tunnel_ends;

use packet::{Batch, VirtioHeader};
use ports::live::Lane;
use std::time::{Duration, Instant};
use tunnel_ends::{ends, frame, meet, receive};

/// Batches of a round.
const BATCHES: usize = 2_000;

fn send(lane: &mut Lane, frame: &[u8], count: usize) {
    (0..count).for_each(|_| lane.send.send(frame, VirtioHeader::NONE));
    lane.send.flush();
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<usize>().expect("a number"));
    let (size, rounds) = (numbers.next().unwrap_or(64).clamp(1, 256), numbers.next().unwrap_or(9).max(1));
    let directory = std::env::temp_dir().join(format!("tunnel_speed.{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory");
    let [mut one, mut other] = ends(&directory, 1).map(|end| end.lanes.into_iter().next().expect("a lane"));
    std::fs::remove_dir_all(&directory).expect("its own");
    meet(&mut one, &mut other);
    let mut batch = Batch::new();
    for length in [64, 512, 1_420] {
        let frame = frame(length);
        let mut times: [Vec<f64>; 2] = Default::default();
        let (mut sent, mut came) = (0, 0);
        for _ in 0..rounds {
            let mut spent = [Duration::ZERO; 2];
            for _ in 0..BATCHES {
                let begin = Instant::now();
                send(&mut one, &frame, size);
                let between = Instant::now();
                sent += size;
                loop {
                    match receive(&mut other, &mut batch) {
                        0 => break,
                        more => came += more,
                    }
                }
                spent[0] += between - begin;
                spent[1] += between.elapsed();
            }
            for (times, spent) in times.iter_mut().zip(spent) {
                times.push(spent.as_nanos() as f64 / (BATCHES * size) as f64);
            }
        }
        let told = times.each_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            format!("{:.0} ns ({:.0} to {:.0})", times[rounds / 2], times[0], times[rounds - 1])
        });
        println!(
            "{length} bytes, batches of {size}: sent {}, received {}; {came} of {sent} came",
            told[0], told[1]
        );
    }
}
