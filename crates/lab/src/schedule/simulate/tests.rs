//! Closed forms, conservation, order, Little's law, and the same again.

use super::*;
use crate::schedule::due::Pattern;
use offload::policy::BatchingPolicy;
use std::time::Duration;

const NOTHING: Line = Line { fixed: 0, slope: 0 };
const BARE: Model = Model {
    workers: 1,
    piece: 1,
    service: Line { fixed: 1000, slope: 0 },
    crowded: 1000,
    way: 0,
    take: NOTHING,
    begin: NOTHING,
    commit: NOTHING,
    here: NOTHING,
};

fn usual(workers: usize) -> Model {
    let line = |fixed, slope| Line { fixed, slope };
    Model {
        workers,
        piece: 32,
        service: line(3000, 700_000),
        crowded: 1000,
        way: 12_000,
        take: line(50, 30_000),
        begin: line(900, 40_000),
        commit: line(200, 20_000),
        here: line(100, 500_000),
    }
}

fn schedules() -> [Schedule; 5] {
    let time = Duration::from_micros(300);
    [
        BatchingPolicy::FixedBatch { packets: 256 }.into(),
        BatchingPolicy::BatchOrTimeout { packets: 256, timeout: time }.into(),
        BatchingPolicy::Deadline { packets: 256, deadline: 3 * time }.into(),
        BatchingPolicy::CostModel { packets: 256 }.into(),
        Schedule::Hermes { quarters: 8 },
    ]
}

/// Room for a schedule, with few places for warps so that all are used.
fn depth(schedule: Schedule) -> QueueDepth {
    match schedule {
        Schedule::Policy(_) => QueueDepth { packets: 256, device_batches: 2 },
        Schedule::Hermes { .. } => QueueDepth { packets: 32, device_batches: 16 },
    }
}

#[test]
fn a_worker_that_gets_packet_by_packet_has_the_waits_of_m_d_1() {
    for load in [0.3, 0.6, 0.8] {
        let times = Pattern::Poisson.times(load * 1e6, 400_000, 11);
        let depth = QueueDepth { packets: 1, device_batches: 2 };
        let outcome = Simulated::new(BARE, depth, BatchingPolicy::FixedBatch { packets: 1 }.into())
            .run(Due::At(&times));
        let mean = outcome.delays.iter().sum::<u64>() as f64 / outcome.delays.len() as f64;
        let wait = load / (2.0 * (1.0 - load)) * 1000.0;
        assert!(((mean - 1000.0) / wait - 1.0).abs() < 0.03, "{load}: {} and not {wait}", mean - 1000.0);
    }
}

#[test]
fn no_packet_is_lost_none_overtakes_and_little_s_law_holds_exactly() {
    for (number, schedule) in schedules().into_iter().enumerate() {
        // The last one is a device that is done with packets when it has them.
        let instant = Model { service: NOTHING, way: 0, commit: NOTHING, ..usual(1) };
        let models =
            [(usual(1), 300_000.0), (usual(2), 900_000.0), (usual(3), 4_000_000.0), (instant, 300_000.0)];
        for (model, rate) in models {
            let mut simulated = Simulated::new(model, depth(schedule), schedule);
            let times = Pattern::Poisson.times(rate, 20_000, number as u64);
            // The second run begins later, and where the first has left the policy.
            for _ in 0..2 {
                let outcome = simulated.run(Due::At(&times));
                assert_eq!((outcome.delays.len(), outcome.packets), (times.len(), 20_000));
                let done: Vec<u64> =
                    times.iter().zip(&outcome.delays).map(|(due, delay)| due + delay).collect();
                assert!(done.is_sorted() && done.last() == Some(&outcome.time));
                let delays: u128 = outcome.delays.iter().map(|delay| u128::from(*delay)).sum();
                assert_eq!(outcome.area, delays, "{schedule:?}");
            }
        }
    }
}

#[test]
fn the_same_run_gives_the_same_delays_again() {
    for schedule in schedules() {
        let times = Pattern::Poisson.times(700_000.0, 30_000, 5);
        let run = || Simulated::new(usual(2), depth(schedule), schedule).run(Due::At(&times));
        assert_eq!(run(), run());
    }
}

#[test]
fn at_saturation_the_slowest_part_sets_the_rate() {
    let rate = |model: Model, packets: usize| {
        let depth = QueueDepth { packets, device_batches: 4 };
        let mut simulated = Simulated::new(model, depth, BatchingPolicy::FixedBatch { packets }.into());
        let outcome = simulated.run(Due::Always(100_000_000));
        outcome.packets as f64 / outcome.time as f64
    };
    // One worker: 256 packets are eight pieces of 32; four workers: the loop.
    let worker = 256.0 / (8.0 * (3000.0 + 32.0 * 700.0));
    let found = rate(usual(1), 256);
    assert!((found / worker - 1.0).abs() < 0.02, "{found} and not {worker}");
    let through = Model { service: NOTHING, ..usual(4) };
    let work = 256.0 / ((50.0 + 900.0 + 200.0) + 256.0 * 90.0);
    let found = rate(through, 256);
    assert!((found / work - 1.0).abs() < 0.02, "{found} and not {work}");
}

#[test]
fn workers_in_each_other_s_way_take_longer_and_one_alone_does_not() {
    let crowded = Model { crowded: 1500, ..usual(2) };
    let alone = 3000 + 32 * 700;
    for (model, packets, takes) in [(crowded, 32, alone), (crowded, 64, alone * 3 / 2), (usual(2), 64, alone)]
    {
        let fixed = BatchingPolicy::FixedBatch { packets }.into();
        let mut simulated = Simulated::new(model, QueueDepth { packets, device_batches: 1 }, fixed);
        let outcome = simulated.run(Due::At(&vec![0; packets]));
        let work = [model.take, model.begin, model.commit].map(|line| line.of(packets)).iter().sum::<u64>();
        assert_eq!(outcome.time, work + takes + model.way);
    }
}

#[test]
fn a_packet_alone_waits_for_what_its_schedule_says_and_then_for_what_things_cost() {
    let model = usual(2);
    let work = [model.take, model.begin, model.service, model.commit].map(|line| line.of(1));
    let costs = work.iter().sum::<u64>() + model.way;
    let timeout = Duration::from_micros(300);
    let timed = BatchingPolicy::BatchOrTimeout { packets: 256, timeout };
    // The last packet is run at once, since nothing comes behind it.
    for (schedule, waits) in
        [(Schedule::Policy(timed), timeout.as_nanos() as u64), (Schedule::Hermes { quarters: 8 }, 100_000)]
    {
        let apart = [0, 5_000_000, 10_000_000, 15_000_000];
        let outcome = Simulated::new(model, depth(schedule), schedule).run(Due::At(&apart));
        // How fast packets come, Hermes does not know until there have been two; then it waits as long as it
        // ever does. A packet waits from when it begins to be taken.
        let delays = &outcome.delays[1..];
        assert_eq!(delays, [waits + costs - work[0]; 2].into_iter().chain([costs]).collect::<Vec<_>>());
    }
}

#[test]
fn the_cost_model_finds_the_faster_place() {
    let slow = usual(2);
    let fast = Model { service: Line { fixed: 500, slope: 10_000 }, way: 0, ..slow };
    for (model, least, most) in [(slow, 0.0, 0.1), (fast, 0.9, 1.0)] {
        let schedule = Schedule::Policy(BatchingPolicy::CostModel { packets: 256 });
        let mut simulated = Simulated::new(
            Model { here: Line { fixed: 100, slope: 150_000 }, ..model },
            depth(schedule),
            schedule,
        );
        let outcome = simulated.run(Due::Always(200_000_000));
        let share = outcome.on_device as f64 / outcome.packets as f64;
        assert!((least..=most).contains(&share), "{share} of {model:?}");
    }
}

#[test]
fn a_packet_that_comes_while_another_is_handed_over_is_taken_next() {
    // After 50,000 ns the first is handed over, which takes 20,000; the second falls due meanwhile, and is
    // the last.
    let line = |fixed| Line { fixed, slope: 0 };
    let model = Model { workers: 2, service: line(90_000), begin: line(20_000), ..BARE };
    let timed = BatchingPolicy::BatchOrTimeout { packets: 256, timeout: Duration::from_micros(50) };
    let mut simulated = Simulated::new(model, QueueDepth { packets: 256, device_batches: 2 }, timed.into());
    assert_eq!(simulated.run(Due::At(&[0, 55_000])).delays, [160_000, 125_000]);
}
