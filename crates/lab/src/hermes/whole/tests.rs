//! Programs that ship over the simulated device: every verdict, byte, table and event is the interpreter's,
//! and times are those of a run without packets.

use super::*;
use crate::hermes::simulate::simulate;
use crate::programs::{PROGRAMS, compiled};
use crate::traffic::{TrafficCapture, first};
use exec::AsyncBackend;
use lang::pipeline::Decode;
use offload::OffloadError;
use offload::Offloaded;
use offload::device_queue::{DeviceQueue, Run as Held, Schedule, Supply};
use offload::policy::BatchingPolicy;
use std::convert::Infallible;
use std::time::Instant;
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
    let traffic = TrafficCapture::Generated(1).load(true).expect("it is made");
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
        let options = KernelOptions::default();
        if let Err(OffloadError::NoKernel(_)) = Offload::new(&program, PORTS, SEED, &options) {
            continue;
        }
        for (warps, tasks, commits) in [(8, 1024, 1024), (5, 2, 8)] {
            let settings = HermesSettings { cores: 3, warps, tasks, commits, ..HermesSettings::default() };
            let judged = judged(&program, &options, &frames, &hardware, &settings, &arrivals, &works);
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
    let settings = HermesSettings::default();
    let arrivals: Vec<u64> = (0..200).collect();
    let other = compiled("wire", Decode::Lazy).expect("it ships");
    let run = |judge: &Program| {
        let options = KernelOptions::default();
        let run = prepared(&program, &options, &frames, &hardware, &settings, &works);
        let mut run = run.expect("it has a kernel");
        simulate_on(&mut run, &settings, Load::new(&arrivals, &works)).expect("it runs");
        self::judge(judge, Packets::by_sender(frames.clone()), &run)
    };
    assert!(run(&program).is_ok());
    assert!(matches!(run(&other), Err(WholeError::Verdict { .. })));
}

/// Whoever runs batches that are held, and keeps what became of them.
struct Watch<'a> {
    backend: &'a mut dyn Backend,
    outputs: Outputs,
    seen: Vec<(Verdict, Vec<u8>)>,
}

impl Held for Watch<'_> {
    type Error = Infallible;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.backend.asynchronous()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        self.outputs.clear();
        self.backend.run(memory, batch, &mut self.outputs);
        let bytes = |place| batch.bytes(memory, place).unwrap_or_default().to_vec();
        self.seen.extend((0..batch.len).map(|place| (batch.verdict[place], bytes(place))));
        Ok(())
    }
}

#[test]
fn the_engine_runs_a_program_over_it_as_over_any_device() {
    let schedules = [
        Schedule::Hermes { quarters: 8 },
        Schedule::Policy(BatchingPolicy::FixedBatch { packets: 100 }),
        Schedule::Policy(BatchingPolicy::FixedBatch { packets: 512 }),
    ];
    for name in ["mac_switch", "router", "firewall_rules"] {
        let program = compiled(name, Decode::Lazy).expect("it ships");
        let mut packets = Packets::by_sender(frames(3000));
        let mut judge = exec::load(&program, BackendKind::Interpreter, PORTS, SEED).expect("it loads");
        let mut right = Watch { backend: judge.as_mut(), outputs: Outputs::default(), seen: Vec::new() };
        let mut batch = Batch::new();
        let whole = packets.clone();
        for first in (0..packets.frames.len()).step_by(BATCH) {
            whole.fill(&mut batch, first, BATCH);
            let Ok(()) = Held::batch(&mut right, packets.frames.memory_mut(), &mut batch);
        }
        let right = right.seen;
        for schedule in schedules {
            let hardware = Hardware::published();
            let offload =
                Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
            let offloaded = Offloaded::new(offload, schedule.depth(), |kernel, geometry| {
                let twin = Twin::new(kernel, &program, PORTS);
                Ok(Box::new(Simulated::new(twin, geometry, &hardware, 32, works())?))
            });
            let mut offloaded = offloaded.expect("it is made");
            let mut device_queue =
                DeviceQueue::new(&mut offloaded, schedule, Instant::now()).expect("it is on a device");
            let mut watch = Watch { backend: &mut offloaded, outputs: Outputs::default(), seen: Vec::new() };
            for first in (0..whole.frames.len()).step_by(BATCH) {
                whole.fill(&mut batch, first, BATCH);
                let Ok(()) = device_queue.take(&mut watch, whole.frames.memory(), &batch);
                // Now and then everything comes to rest, so that what was learned goes over.
                let supply = if first % (3 * BATCH) == 0 { Supply::Ended } else { Supply::Plenty };
                let Ok(_) = device_queue.run(&mut watch, supply);
            }
            let Ok(_) = device_queue.run(&mut watch, Supply::Ended);
            assert!(device_queue.is_empty() && watch.seen == right, "{name}, {schedule:?}");
            assert_eq!(offloaded.control().tables(), judge.tables(), "{name}, {schedule:?}");
            let on = offloaded.on_device().expect("it is on a device");
            assert!(on.failure.is_none() && on.tally.device > 0, "{name}, {schedule:?}: {on:?}");
        }
    }
}
