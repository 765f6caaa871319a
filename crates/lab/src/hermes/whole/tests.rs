//! Programs that ship over the simulated device: every verdict, byte, table and event is the interpreter's, and times are those of a run without packets.

use super::*;
use crate::hermes::simulate::simulate;
use crate::programs::{PROGRAMS, compiled};
use crate::traffic::{Capture, first};
use engine::offload::Offloaded;
use exec::Room;
use exec::offload::OffloadError;
use lang::pipeline::Decode;
use tables::generate::Random;

/// Costs so different that warps overtake each other all the time.
fn works() -> Vec<Work> {
    let mut random = Random::new(5);
    let mut work = || Work {
        instructions: 20 + random.below(3000) as u32,
        own: random.below(9) as u32,
        shared: 1,
        trips: 1 + random.below(4) as u32,
        bytes: 64,
    };
    // A warp takes as long as its longest lane, so that lanes of their own would make all warps much alike.
    (0..97).flat_map(|_| [work(); 32]).collect()
}

fn frames(packets: usize) -> Frames {
    let traffic = Capture::Generated(1).load(true).expect("it is made");
    let mut frames = Frames::with_headroom();
    let some = first(&traffic.frames, packets);
    for (number, frame) in some.iter().enumerate() {
        // One of many is cut short, as captures are.
        let bytes = if number % 37 == 0 { &frame.bytes[..frame.bytes.len() / 2] } else { frame.bytes };
        frames.push(bytes, frame.wire, frame.time);
    }
    frames
}

#[test]
fn programs_that_ship_mean_the_same_over_the_simulated_device() {
    let (frames, works, hardware) = (frames(1500), works(), Hardware { cores: 3, ..Hardware::published() });
    let arrivals: Vec<u64> = (0..frames.len() as u64).map(|packet| packet * 12).collect();
    let (mut ran, mut finished, mut overtaken) = (0, 0, 0);
    for (name, _) in PROGRAMS {
        let program = compiled(name, Decode::Lazy).expect("it ships");
        let options = Options::default();
        if let Err(OffloadError::NoKernel(_)) = Offload::new(&program, PORTS, SEED, &options) {
            continue;
        }
        for (warps, tasks, commits) in [(8, 1024, 1024), (5, 2, 8)] {
            let settings = Settings { cores: 3, warps, tasks, commits, ..Settings::default() };
            let judged = judged((&program, &options), &frames, (&hardware, &settings), (&arrivals, &works));
            let Judged { outcome, tally } = judged.unwrap_or_else(|error| panic!("{name}: {error}"));
            let alone = simulate(&hardware, &settings, Load::new(&arrivals, &works)).expect("it can be");
            assert_eq!(
                outcome, alone,
                "{name}: packets take as long as they do without anything becoming of them"
            );
            assert_eq!(tally.device + tally.again + tally.changed, frames.len() as u64, "{name}: {tally:?}");
            finished += tally.device;
            overtaken +=
                outcome.delays.iter().zip(&outcome.unordered).filter(|(one, other)| one > other).count();
        }
        ran += 1;
    }
    assert!(ran >= 15 && finished > 20_000 && overtaken > 10_000, "{ran}, {finished}, {overtaken}");
}

#[test]
fn what_the_interpreter_does_not_say_is_told() {
    let program = compiled("mac_switch", Decode::Lazy).expect("it ships");
    let (frames, works, hardware) = (frames(200), works(), Hardware::published());
    let settings = Settings::default();
    let arrivals: Vec<u64> = (0..200).collect();
    let other = compiled("wire", Decode::Lazy).expect("it ships");
    let run = |judge: &Program| {
        let options = Options::default();
        let device = (&hardware, &settings);
        let mut run = prepared((&program, &options), &frames, device, &works).expect("it has a kernel");
        simulate_on(&mut run, &settings, Load::new(&arrivals, &works)).expect("it runs");
        self::judge(judge, frames.clone(), &run)
    };
    assert!(run(&program).is_ok());
    assert!(matches!(run(&other), Err(WholeError::Verdict { .. })));
}

#[test]
fn the_engine_runs_a_program_over_it_as_over_any_device() {
    for name in ["mac_switch", "router", "firewall_rules"] {
        let program = compiled(name, Decode::Lazy).expect("it ships");
        let offload = Offload::new(&program, PORTS, SEED, &Options::default()).expect("it has a kernel");
        let hardware = Hardware::published();
        let room = Room { packets: BATCH, convoys: 2 };
        let offloaded = Offloaded::new(offload, room, |kernel, geometry| {
            let twin = Twin::new(kernel, &program, PORTS);
            Ok(Box::new(Simulated::new(twin, geometry, (&hardware, 8), works())?))
        });
        let mut offloaded = offloaded.expect("it is made");
        let mut judge = exec::load(&program, BackEnd::Interpreter, PORTS, SEED).expect("it loads");
        let (mut mine, mut others) = (frames(3000), frames(3000));
        let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
        for first in (0..mine.len()).step_by(BATCH) {
            fill(&mine, &mut batch, first, BATCH);
            offloaded.run(mine.memory_mut(), &mut batch, &mut outputs);
            let found = batch.verdicts().to_vec();
            fill(&others, &mut batch, first, BATCH);
            judge.run(others.memory_mut(), &mut batch, &mut outputs);
            assert_eq!(found, batch.verdicts(), "{name}, from {first} on");
        }
        assert!(mine.memory() == others.memory(), "{name}");
        assert_eq!(offloaded.tables(), judge.tables(), "{name}");
        let on = exec::Processor::on_device(&offloaded).expect("it is on a device");
        assert!(on.failure.is_none() && on.tally.device > 0, "{name}: {on:?}");
    }
}
