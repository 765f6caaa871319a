//! Packets that are held, so that a device runs many together and several times at once: whatever the policy,
//! they mean what the interpreter says.

use captures::generate::Profile;
use exec::kernel::{Dialect, KernelOptions};
use exec::{Backend, BackendKind, Observer, OnDevice, Outputs, QueueDepth, SubmitOutcome};
use gpu::{FaultyDevice, OpenCl, SlotMemory, Trouble};
use ir::Program;
use lang::pipeline::Decode;
use offload::Offload;
use offload::device_queue::{Schedule, Supply};
use offload::policy::BatchingPolicy;
use offload::{Offloaded, host};
use packet::{BATCH, Batch};
use std::collections::BTreeSet;
use std::time::Duration;
use suite::corpus::{compile_file, files, root, shipped};
use suite::device::{PATIENCE, pocl};
use suite::outcome::{RunOutcome, SEED, see, see_held};
use suite::packet_generator::Arrivals;
use suite::traffic::traffic;

/// Ports of the gateway.
const PORTS: u16 = 5;

/// Two warp arrival times.
const HERMES: Schedule = Schedule::Hermes { quarters: 8 };
/// Device batches of 300 packets, three of them; and warps, with two warp arrival times, in 16 places.
const DEVICE_BATCHES: (Schedule, QueueDepth) = (
    Schedule::Policy(BatchingPolicy::FixedBatch { packets: 300 }),
    QueueDepth { packets: 300, device_batches: 3 },
);
const WARPS: (Schedule, QueueDepth) = (HERMES, QueueDepth { packets: 32, device_batches: 16 });

/// Schedules, and what each is told of what comes behind a batch.
fn schedules() -> [(Schedule, Supply); 7] {
    let short = Duration::from_micros(30);
    [
        (BatchingPolicy::FixedBatch { packets: 1000 }.into(), Supply::Unknown),
        (BatchingPolicy::FixedBatch { packets: 77 }.into(), Supply::Plenty),
        (BatchingPolicy::BatchOrTimeout { packets: 4096, timeout: short }.into(), Supply::Unknown),
        (BatchingPolicy::Deadline { packets: 600, deadline: short }.into(), Supply::Unknown),
        (BatchingPolicy::CostModel { packets: 2048 }.into(), Supply::Plenty),
        (HERMES, Supply::Unknown),
        (Schedule::Hermes { quarters: 0 }, Supply::Plenty),
    ]
}

fn judge(program: &Program, arrivals: &Arrivals) -> RunOutcome {
    see(program, BackendKind::Interpreter, arrivals, PORTS, BATCH).expect("it loads")
}

/// Holds packets for the program on PoCL; none if it has no kernel.
fn held(
    program: &Program,
    arrivals: &Arrivals,
    schedule: impl Into<Schedule>,
    supply: Supply,
) -> Option<(RunOutcome, OnDevice)> {
    let schedule = schedule.into();
    let offload = Offload::new(program, PORTS, SEED, &KernelOptions::default()).ok()?;
    let found = pocl();
    let depth = QueueDepth { device_batches: schedule.depth().device_batches.min(40), ..schedule.depth() };
    let backend = Offloaded::on_opencl(offload, &found, SlotMemory::Mapped, depth).expect("it opens");
    let mut backend = backend.with_patience(PATIENCE);
    let seen = see_held(program, &mut backend, arrivals, schedule, supply);
    Some((seen, backend.on_device().expect("it is on a device")))
}

#[test]
fn packets_that_are_held_mean_the_same() {
    let arrivals = traffic(Profile::sample1(), 2_001, PORTS, 17);
    let (mut programs, mut finished, mut handed) = (0, 0, 0);
    for path in files(&root().join("programs"), "rav").expect("the folder is there") {
        let compiled = compile_file(&path, Decode::Lazy).expect("a program can be read");
        let program = compiled.program.expect("it compiles");
        let judge = judge(&program, &arrivals);
        let mut ran = false;
        for (schedule, supply) in schedules() {
            let Some((seen, on)) = held(&program, &arrivals, schedule, supply) else { continue };
            let case = format!("{}, {schedule:?}, {supply:?}", path.display());
            assert_eq!(seen.difference(&judge), None, "{case}");
            assert_eq!(on.failure, None, "{case}");
            let tally = on.tally;
            assert_eq!(tally.device + tally.again + tally.changed + tally.host, 2_001, "{case}: {tally:?}");
            finished += tally.device;
            handed += tally.handed;
            ran = true;
        }
        programs += u64::from(ran);
    }
    println!("{programs} programs, {finished} packets finished by the device in {handed} device batches");
    assert!(programs > 10 && finished > 30_000 && handed > 300);
}

#[test]
fn a_policy_gets_the_device_batches_it_wants() {
    let program = shipped("router.rav");
    let arrivals = traffic(Profile::sample1(), 4_000, PORTS, 18);
    let fixed = BatchingPolicy::FixedBatch { packets: 1_000 };
    let (_, on) = held(&program, &arrivals, fixed, Supply::Unknown).expect("it has a kernel");
    assert_eq!((on.tally.handed, on.tally.host), (4, 0));
    // With the last packets nobody waits for more.
    let uneven = BatchingPolicy::FixedBatch { packets: 1_500 };
    let (_, on) = held(&program, &arrivals, uneven, Supply::Unknown).expect("it has a kernel");
    assert_eq!((on.tally.handed, on.tally.host), (3, 0));
    let patient = BatchingPolicy::BatchOrTimeout { packets: 512, timeout: Duration::from_secs(3600) };
    let (_, on) = held(&program, &arrivals, patient, Supply::Plenty).expect("it has a kernel");
    assert_eq!(on.tally.handed, 8);
    let cost = BatchingPolicy::CostModel { packets: 512 };
    let (_, on) = held(&program, &arrivals, cost, Supply::Unknown).expect("it has a kernel");
    assert!(on.tally.host > 0, "where nothing is known, the processor begins: {:?}", on.tally);
}

#[test]
fn a_device_that_fails_with_several_device_batches_under_way_loses_nothing() {
    let found = pocl();
    let arrivals = traffic(Profile::sample1(), 5_000, PORTS, 3);
    for name in ["mac_switch.rav", "router.rav", "firewall.rav"] {
        let program = shipped(name);
        let judge = judge(&program, &arrivals);
        let troubles = [Trouble::NoMemory, Trouble::Refused, Trouble::Lost, Trouble::Stalled];
        for (trouble, (schedule, depth)) in
            troubles.into_iter().flat_map(|t| [(t, DEVICE_BATCHES), (t, WARPS)])
        {
            for left in if trouble == Trouble::NoMemory { [0, 1] } else { [1, 4] } {
                let offload =
                    Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
                let mut backend = Offloaded::new(offload, depth, |kernel, geometry| {
                    let text = kernel.text(Dialect::OpenCl);
                    let inner = OpenCl::new(&found, &text, geometry, SlotMemory::Mapped)?;
                    Ok(Box::new(FaultyDevice::after(inner, trouble, left)))
                })
                .expect("it opens");
                let seen = see_held(&program, &mut backend, &arrivals, schedule, Supply::Unknown);
                assert_eq!(seen.difference(&judge), None, "{name}: {schedule:?}, {trouble:?} after {left}");
                let on = backend.on_device().expect("it was on a device");
                assert!(on.tally.host > 0, "{name}: {trouble:?} after {left}: {:?}", on.tally);
                // A learning program may rest the device for so long that its trouble never shows.
                let shows = name == "router.rav" || left == 0;
                assert!(!shows || on.failure.is_some(), "{name}: {trouble:?} after {left}");
            }
        }
    }
}

/// What a device can be doing when it is reset: tables, lending, starting, running, lending what came back.
const DOING: usize = 5;

#[test]
fn a_device_that_is_reset_at_any_call_loses_nothing() {
    let arrivals = traffic(Profile::sample1(), 1_200, PORTS, 3);
    let programs = ["mac_switch.rav", "lpm.rav"].map(|name| {
        let program = shipped(name);
        let judge = judge(&program, &arrivals);
        (name, program, judge)
    });
    let mut doing = BTreeSet::new();
    // Which call comes when depends on the threads of the device.
    for left in 0..90 {
        if left >= 18 && doing.len() == DOING {
            break;
        }
        for ((name, program, judge), (schedule, depth)) in
            programs.iter().flat_map(|one| [(one, DEVICE_BATCHES), (one, WARPS)])
        {
            let offload =
                Offload::new(program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
            let mut backend = Offloaded::new(offload, depth, |kernel, geometry| {
                Ok(Box::new(FaultyDevice::after(
                    host(kernel, program, PORTS, geometry)?,
                    Trouble::Reset,
                    left,
                )))
            })
            .expect("it opens")
            .with_patience(PATIENCE);
            let seen = see_held(program, &mut backend, &arrivals, schedule, Supply::Unknown);
            assert_eq!(seen.difference(judge), None, "{name}, {schedule:?}, after {left} calls");
            let failure = backend.on_device().expect("it was on a device").failure;
            assert!(left > 0 || failure.is_some(), "{name}: it was not reset");
            doing.extend(failure);
        }
    }
    // Each was what failed.
    assert_eq!(doing.len(), DOING, "{doing:?}");
}

/// Looks at nothing.
struct Nobody;

impl Observer for Nobody {}

#[test]
fn what_runs_step_by_step_in_between_keeps_the_order() {
    let program = shipped("router.rav");
    let arrivals = traffic(Profile::sample1(), 4 * BATCH as u64, PORTS, 29);
    let judge = judge(&program, &arrivals);
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let depth = QueueDepth { packets: 2 * BATCH, device_batches: 2 };
    let mut backend = Offloaded::on_host(offload, &program, PORTS, depth)
        .expect("there are threads")
        .with_patience(PATIENCE);
    let mut frames = arrivals.frames.clone();
    let mut batches = vec![Batch::new(); 4];
    for (place, batch) in batches.iter_mut().enumerate() {
        let all = place * BATCH..(place + 1) * BATCH;
        frames.fill(batch, all.clone());
        batch.port.copy_from_slice(&arrivals.ports[all]);
    }
    for device_batch in batches.chunks(2) {
        let device = backend.asynchronous().expect("there is a device");
        assert_eq!(device.submit(frames.memory(), device_batch), SubmitOutcome::Accepted);
    }
    let more = backend.asynchronous().expect("there is a device").submit(frames.memory(), &batches[..1]);
    assert_eq!(more, SubmitOutcome::Refused, "there is room for two");
    let mut outputs = Outputs::default();
    for (place, batch) in batches.iter_mut().enumerate() {
        if place == 1 || place == 2 {
            let inspect = backend.inspect().expect("it shows its steps");
            inspect.run_observed(&program, PORTS, &mut Nobody, frames.memory_mut(), batch, &mut outputs);
        } else {
            backend.run(frames.memory_mut(), batch, &mut outputs);
        }
        let verdicts = &judge.verdicts[place * BATCH..][..BATCH];
        assert_eq!(batch.verdicts(), verdicts, "batch {place}");
    }
    let tally = backend.on_device().expect("it is on a device").tally;
    assert_eq!(
        (tally.device + tally.again, tally.host, tally.handed),
        (2 * BATCH as u64, 2 * BATCH as u64, 2)
    );
}

#[test]
fn what_changes_meanwhile_goes_over_when_nothing_is_under_way() {
    let program = shipped("router.rav");
    let arrivals = traffic(Profile::sample1(), 3 * BATCH as u64, PORTS, 37);
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let depth = QueueDepth { packets: BATCH, device_batches: 2 };
    let mut backend = Offloaded::on_host(offload, &program, PORTS, depth)
        .expect("there are threads")
        .with_patience(PATIENCE);
    let mut judge = exec::load(&program, BackendKind::Interpreter, PORTS, SEED).expect("it loads");
    let routes =
        program.tables.iter().position(|table| table.name == "routes").expect("it has routes") as u32;
    let mut memories = [arrivals.frames.clone(), arrivals.frames.clone()];
    let (mut batch, mut judged) = (Batch::new(), Batch::new());
    let mut outputs = Outputs::default();
    // The first is under way when the routes change; the second waits until it is done, and then stays on the
    // host, as once after a change; the third finds the new routes on the device.
    let begins = [SubmitOutcome::Accepted, SubmitOutcome::Refused, SubmitOutcome::Accepted];
    for (place, expected) in begins.into_iter().enumerate() {
        let all = place * BATCH..(place + 1) * BATCH;
        for (frames, batch) in memories.iter_mut().zip([&mut batch, &mut judged]) {
            frames.fill(batch, all.clone());
            batch.port.copy_from_slice(&arrivals.ports[all.clone()]);
        }
        let frames = &mut memories[0];
        let device = backend.asynchronous().expect("there is a device");
        assert_eq!(device.submit(frames.memory(), std::slice::from_ref(&batch)), expected, "batch {place}");
        if place == 0 {
            for changed in [&mut backend as &mut dyn Backend, judge.as_mut()] {
                let last = changed.entries(routes).pop().expect("there are routes").0;
                assert!(changed.remove(routes, &last.key, last.priority));
            }
            let device = backend.asynchronous().expect("there is a device");
            let more = device.submit(frames.memory(), std::slice::from_ref(&batch));
            assert_eq!(more, SubmitOutcome::Busy);
        }
        outputs.clear();
        backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        judge.run(memories[1].memory_mut(), &mut judged, &mut outputs);
        assert_eq!(batch.verdicts(), judged.verdicts(), "batch {place}");
    }
    assert_eq!(backend.on_device().expect("it is on a device").tally.handed, 2);
}
