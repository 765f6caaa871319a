//! A second simulator of Hermes, in another style, that the first one is held against: time goes in equal
//! steps, and what is there is looked at in each of them. It has no events, and memory is one pipe in place
//! of channels. Of the first one it takes only when packets come and what each costs.
//!
//! The idea: in a step, packets that have come are put into warps, each core spends the step's cycles on the
//! warps that compute, first come, first served, and warps whose memory has answered go on or are done. A
//! delay is so at most some steps too long.

use super::hardware::Hardware;
use super::setting::{Setting, System, Traffic};
use super::source::Source;
use super::work::{Application, Work};
use std::collections::VecDeque;

/// A warp from its issue to its commit.
struct OnCore {
    core: usize,
    lanes: usize,
    /// Times that it still computes and asks memory.
    rounds: u32,
    /// Of one round.
    cycles: f64,
    sectors: f64,
    /// Cycles left of this round, and when memory answers.
    left: f64,
    answer: Option<f64>,
    is_done: bool,
}

/// Mean delay in nanoseconds of packets that come at these times, on the cores of the
/// hardware with so many warps each.
fn mean_delay(hardware: &Hardware, warps: usize, arrivals: &[u64], works: &[Work], step: f64) -> f64 {
    let cores = usize::from(hardware.cores);
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut tasks: VecDeque<usize> = VecDeque::new();
    let mut queue: VecDeque<OnCore> = VecDeque::new();
    // Names of warps that compute, by core; names count from the first warp on.
    let mut computing: Vec<VecDeque<usize>> = vec![VecDeque::new(); cores];
    let mut busy = vec![0; cores];
    let (mut came, mut issued, mut committed, mut head) = (0, 0, 0, 0);
    let (mut turn, mut gap, mut pipe_free, mut now, mut sum) = (0, None, 0.0_f64, 0.0, 0.0);
    while committed < arrivals.len() {
        now += step;
        while came < arrivals.len() && (arrivals[came] as f64) <= now {
            if came > 0 {
                let sample = (arrivals[came] - arrivals[came - 1]).min(100_000) as f64;
                let mean: f64 = gap.unwrap_or(sample);
                gap = Some(mean + (sample - mean) / 64.0);
            }
            waiting.push_back(came);
            came += 1;
        }
        let patience = gap.map_or(100.0, |gap: f64| (64.0 * gap).clamp(100.0, 100_000.0));
        while let Some(first) = waiting.front().copied() {
            let is_late = came == arrivals.len() || now - arrivals[first] as f64 >= patience;
            if waiting.len() < 32 && !is_late {
                break;
            }
            let lanes = waiting.len().min(32);
            waiting.drain(..lanes);
            tasks.push_back(lanes);
        }
        while queue.len() < 1024 && !tasks.is_empty() {
            let Some(core) = (0..cores).map(|more| (turn + more) % cores).find(|core| busy[*core] < warps)
            else {
                break;
            };
            let lanes = tasks.pop_front().unwrap_or(0);
            let of = (issued..issued + lanes).map(|packet| works[packet % works.len()]);
            let rounds = of.clone().map(|work| work.trips.max(1)).max().unwrap_or(1);
            let cycles = of.clone().map(|work| work.instructions).max().unwrap_or(0);
            let shared = of.clone().map(|work| work.shared).max().unwrap_or(0);
            // Four sectors take the verdicts of 32 lanes.
            let sectors = of.map(|work| work.own).sum::<u32>() + shared + 4;
            let (cycles, sectors) =
                (f64::from(cycles) / f64::from(rounds), f64::from(sectors) / f64::from(rounds));
            let warp =
                OnCore { core, lanes, rounds, cycles, sectors, left: cycles, answer: None, is_done: false };
            computing[core].push_back(head + queue.len());
            queue.push_back(warp);
            busy[core] += 1;
            turn = core + 1;
            issued += lanes;
        }
        for line in &mut computing {
            let mut budget = step;
            while let (Some(name), true) = (line.front().copied(), budget > 0.0) {
                let warp = &mut queue[name - head];
                let spent = budget.min(warp.left);
                warp.left -= spent;
                budget -= spent;
                if warp.left <= 0.0 {
                    line.pop_front();
                    let asked = now - budget;
                    pipe_free = asked.max(pipe_free) + warp.sectors * 32.0 / f64::from(hardware.bandwidth);
                    warp.answer = Some(pipe_free + hardware.latency as f64);
                }
            }
        }
        for (place, warp) in queue.iter_mut().enumerate() {
            if warp.answer.is_some_and(|answer| answer <= now) {
                warp.answer = None;
                warp.rounds -= 1;
                warp.left = warp.cycles;
                warp.is_done = warp.rounds == 0;
                if warp.is_done {
                    busy[warp.core] -= 1;
                } else {
                    computing[warp.core].push_back(head + place);
                }
            }
        }
        while let Some(warp) = queue.pop_front_if(|warp| warp.is_done) {
            sum += arrivals[committed..committed + warp.lanes]
                .iter()
                .map(|came| now - *came as f64)
                .sum::<f64>();
            committed += warp.lanes;
            head += 1;
        }
    }
    sum / arrivals.len() as f64
}

#[test]
fn a_second_simulator_in_another_style_has_the_same_delays() {
    const PACKETS: usize = 3000;
    for application in Application::ALL {
        let job = application.job().expect("it can be made");
        let traffic = Traffic::new(application, &job);
        let setting = Setting::published(PACKETS);
        let warps = setting.most_warps(application).expect("it fits");
        let setting = setting.with(warps, 8);
        let works = setting.works_on(System::Hermes, &traffic);
        let least = works.iter().map(|work| work.instructions).min().unwrap_or(1);
        let capacity = setting.capacity(System::Hermes, &traffic).expect("it runs");
        for load in [0.1, 0.5, 0.94] {
            let source = Source::Poisson(load * capacity);
            let arrivals = source.times(works.iter().cycle().map(|work| work.bytes).take(PACKETS), 9);
            let first = setting.run(System::Hermes, &traffic, &source, 9).expect("it runs");
            let first = first.delays.iter().sum::<u64>() as f64 / PACKETS as f64;
            let step = (f64::from(least) / 400.0).max(1.0);
            let second = mean_delay(&setting.hardware, warps.into(), &arrivals, &works, step);
            println!("{application:?} at {load}: {first:.0} and {second:.0} ns");
            assert!((second / first - 1.0).abs() < 0.05, "{application:?} at {load}: {first} and {second}");
        }
    }
}
