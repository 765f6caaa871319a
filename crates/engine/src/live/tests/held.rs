//! Workers whose program runs on a device: packets are held and come back later, programs replace each other
//! meanwhile, and devices fail.

use super::*;
use exec::kernel;
use gpu::{FaultyDevice, Trouble};
use offload::Offload as Kernels;
use offload::device_queue::Schedule;
use offload::policy::BatchingPolicy;
use offload::{Offloaded, host};

/// What every packet asks for is there from the beginning, so a device can finish all of them.
const KNOWN: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason other "no probe"
reason unknown "no such flow"
table flows: exact(u16) -> u16 { capacity 64 default => 7 }
start decoder frame(eth: ethernet) { match eth.type { 0x88b5 => check, else => drop other } }
decoder check(p: probe) {
    match flows[p.flow] { some n => { if n == 8 { drop unknown } } none => { drop unknown } }
    send 2
}
"#;

const FLOWS: u16 = 10;

/// A program on threads that stand in for a device, one that fails after so many batches if there is a
/// trouble.
fn loaded_held(text: &str, workers: usize, schedule: Schedule, trouble: Option<(Trouble, u64)>) -> Loaded {
    let Loaded { program, sources, .. } = loaded(text, 0);
    let depth = schedule.depth();
    let backend = |_| {
        let kernels =
            Kernels::new(&program, PORTS, 0, &kernel::KernelOptions::default()).expect("it has a kernel");
        let offloaded = Offloaded::new(kernels, depth, |kernel, geometry| {
            let device = host(kernel, &program, PORTS, geometry)?;
            Ok(match trouble {
                Some((trouble, after)) => {
                    Box::new(FaultyDevice::after(device, trouble, after)) as Box<dyn gpu::Device>
                }
                None => Box::new(device),
            })
        });
        Box::new(offloaded.expect("it opens")) as Box<dyn Backend>
    };
    let backends = (0..workers).map(backend).collect();
    let steering = load_steering(&program, BackendKind::Native, workers as u16).expect("loads");
    Loaded { backends, schedule: Some(schedule), program, sources, steering }
}

const HERMES: Schedule = Schedule::Hermes { quarters: 8 };

fn schedules() -> [Schedule; 5] {
    let short = Duration::from_micros(200);
    [
        BatchingPolicy::FixedBatch { packets: 100 }.into(),
        BatchingPolicy::BatchOrTimeout { packets: 1000, timeout: short }.into(),
        BatchingPolicy::Deadline { packets: 500, deadline: short }.into(),
        BatchingPolicy::CostModel { packets: 2000 }.into(),
        HERMES,
    ]
}

/// The numbers of every flow, in the order in which they left.
fn sequences(left: &[Cable]) -> HashMap<u16, Vec<u32>> {
    let mut sequences: HashMap<u16, Vec<u32>> = HashMap::new();
    for frame in left.iter().flat_map(|cable| cable.lock().unwrap().clone()) {
        let flow = u16::from_be_bytes([frame[14], frame[15]]);
        let number = u32::from_be_bytes([frame[16], frame[17], frame[18], frame[19]]);
        sequences.entry(flow).or_default().push(number);
    }
    sequences
}

/// Plays packets while programs that `next` makes replace each other, and gives the parts of all; nothing is
/// lost, doubled or put in another order.
fn pass(numbers: u32, workers: usize, next: &dyn Fn() -> Loaded) -> Vec<Generation> {
    let bench = Bench::running(workers, next());
    let left = bench.left.clone();
    let (mut parts, mut programs) = (Vec::new(), 1);
    thread::scope(|scope| {
        let player = scope.spawn(|| bench.play(FLOWS, 0..numbers));
        while !player.is_finished() {
            programs += 1;
            let replaced = bench.remote.replace(next().generations(PORTS, programs), Vec::new());
            let replaced = replaced.expect("all workers run");
            assert_eq!(replaced.outcome.expect("the shape is the same").len(), workers);
            parts.extend(replaced.retired);
        }
    });
    bench.settle();
    parts.extend(bench.stop());
    let all = u64::from(FLOWS) * u64::from(numbers);
    assert_eq!(account(&parts), (all, all), "{programs} programs");
    let sequences = sequences(&left);
    assert_eq!(sequences.len(), usize::from(FLOWS));
    let whole: Vec<u32> = (0..numbers).collect();
    assert!(sequences.values().all(|numbers| *numbers == whole));
    parts
}

#[test]
fn held_packets_are_run_in_order_while_programs_take_over() {
    for text in [KNOWN, IN_ORDER] {
        let mut finished = 0;
        for schedule in schedules() {
            let parts = pass(600, 2, &|| loaded_held(text, 2, schedule, None));
            for part in &parts {
                let on = part.backend.on_device().expect("it is on a device");
                assert_eq!(on.failure, None);
                finished += on.tally.device;
            }
        }
        // Where every packet changes what the next one asks for, the device can finish hardly any.
        assert!(text == IN_ORDER || finished > 5_000, "{finished}");
    }
}

#[test]
fn a_device_that_fails_between_live_ports_loses_nothing() {
    let policy = BatchingPolicy::BatchOrTimeout { packets: 200, timeout: Duration::from_micros(200) };
    let troubles = [Trouble::NoMemory, Trouble::Refused, Trouble::Lost, Trouble::Stalled];
    for (trouble, schedule) in
        troubles.into_iter().flat_map(|trouble| [(trouble, policy.into()), (trouble, HERMES)])
    {
        let after = if trouble == Trouble::NoMemory { 0 } else { 5 };
        let parts = pass(400, 1, &|| loaded_held(KNOWN, 1, schedule, Some((trouble, after))));
        let failed = |part: &&Generation| part.backend.on_device().is_some_and(|on| on.failure.is_some());
        let failed = parts.iter().filter(failed).count();
        assert!(failed > 0, "{trouble:?}, {schedule:?}: none of {} devices failed", parts.len());
    }
}

/// A flow that has not been seen for a second is new again.
const IDLE: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason other "no probe"
reason new "the first of its flow"
table flows: exact(u16) -> u32 { capacity 64 idle 1s evict lru }
start decoder frame(eth: ethernet) { match eth.type { 0x88b5 => check, else => drop other } }
decoder check(p: probe) {
    match flows[p.flow] {
        some _ => send 2
        none => {
            learn flows[p.flow] = p.number
            drop new
        }
    }
}
"#;

#[test]
fn for_packets_that_are_held_it_is_the_time_when_they_came() {
    let policy = BatchingPolicy::FixedBatch { packets: 2 };
    let bench = Bench::running(1, loaded_held(IDLE, 1, policy.into(), None));
    bench.play(1, 0..3);
    bench.settle();
    // The third waits for a fourth. Meanwhile its flow would be forgotten.
    thread::sleep(Duration::from_millis(1500));
    let parts = bench.stop();
    assert_eq!(account(&parts), (3, 2));
}

#[test]
fn a_device_that_falls_silent_is_given_up_while_programs_take_over() {
    let policy = BatchingPolicy::BatchOrTimeout { packets: 64, timeout: Duration::from_micros(200) };
    for schedule in [policy.into(), HERMES] {
        let bench = Bench::running(1, loaded_held(KNOWN, 1, schedule, Some((Trouble::Silent, 2))));
        let left = bench.left.clone();
        bench.play(FLOWS, 0..200);
        // The device answers two batches of at most 64 packets, so these are more than it has answered.
        let waiting = || bench.come.iter().map(|cable| cable.lock().unwrap().len()).sum::<usize>();
        while waiting() > usize::from(FLOWS) * 200 - 200 {
            bench.wait();
        }
        let next = loaded_held(KNOWN, 1, schedule, None).generations(PORTS, 2);
        let replaced = bench.remote.replace(next, Vec::new()).expect("the worker runs");
        assert!(replaced.outcome.is_ok());
        let on = replaced.retired[0].backend.on_device().expect("it was on a device");
        let failure = on.failure.expect("it was given up");
        assert!(failure.contains("has not answered"), "{failure}");
        let tally = on.tally;
        assert!(0 < tally.taken_back && tally.taken_back <= tally.host, "{tally:?}");
        bench.settle();
        let mut parts = replaced.retired;
        parts.extend(bench.stop());
        assert_eq!(account(&parts), (u64::from(FLOWS) * 200, u64::from(FLOWS) * 200));
        assert!(sequences(&left).values().all(|numbers| numbers.len() == 200));
    }
}

#[test]
fn nobody_waits_for_a_device_that_is_gone() {
    let policy = BatchingPolicy::FixedBatch { packets: 1000 };
    let bench = Bench::running(1, loaded_held(KNOWN, 1, policy.into(), Some((Trouble::Lost, 0))));
    bench.play(FLOWS, 0..100);
    bench.settle();
    while bench.left[0].lock().unwrap().len() < 1000 {
        thread::yield_now();
    }
    // Not as many as are run together.
    bench.play(FLOWS, 100..101);
    while bench.left[0].lock().unwrap().len() < 1010 {
        thread::yield_now();
    }
    assert_eq!(account(&bench.stop()), (1010, 1010));
}
