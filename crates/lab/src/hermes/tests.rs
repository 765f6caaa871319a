//! Whether the simulator does what queueing theory says where theory says it: waits, Little's law,
//! conservation, closed formulas.

use super::baseline::Baseline;
use super::hardware::{Hardware, Machine, together};
use super::setting::{LONGER, NAMES, NEAR, SEEDS, SEEDS_NEAR, Setting, System, Traffic, figure};
use super::simulate::{Load, Outcome, simulate};
use super::source::Source;
use super::work::{Application, SECTOR, Turns, Work};
use offload::hermes::{Flush, HermesSettings, Rate};

/// Memory that costs a cycle, however much is asked.
fn no_memory() -> Hardware {
    Hardware { bandwidth: 4096, latency: 0, ..Hardware::published() }
}

fn settings(cores: u16, warps: u8, warp: u8) -> HermesSettings {
    HermesSettings { cores, warps, warp, ..HermesSettings::default() }
}

fn plain(instructions: u32) -> Work {
    Work { instructions, trips: 1, bytes: 64, ..Work::default() }
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

/// The mean wait of M/D/c in services (Crommelin, 1932): how many are inside a service later is who is there
/// but the first c, and who came.
fn md_wait(servers: usize, load: f64) -> f64 {
    let offered = servers as f64 * load;
    let mut came = vec![(-offered).exp()];
    while came.len() < 400 {
        came.push(came[came.len() - 1] * offered / came.len() as f64);
    }
    let mut inside = vec![0.0; 800];
    inside[0] = 1.0;
    for _ in 0..3000 {
        let mut later = vec![0.0; inside.len()];
        for (count, share) in inside.iter().enumerate().filter(|(_, share)| **share > 1e-16) {
            let left = count.saturating_sub(servers);
            for (more, chance) in came.iter().enumerate().take_while(|(more, _)| left + more < 800).take(120)
            {
                later[left + more] += share * chance;
            }
        }
        inside = later;
    }
    let mean: f64 = inside.iter().enumerate().map(|(count, share)| count as f64 * share).sum();
    mean / offered - 1.0
}

#[test]
fn waits_are_those_of_queueing_theory() {
    // Where one serves, the formula is known: half the load over what is left of it.
    assert!((md_wait(1, 0.8) - 2.0).abs() < 1e-6, "{}", md_wait(1, 0.8));
    let work = [plain(999)];
    for (servers, load, count) in
        [(1, 0.5, 300_000), (1, 0.8, 500_000), (8, 0.5, 500_000), (8, 0.8, 1_000_000)]
    {
        let hardware = Hardware { cores: servers, ..no_memory() };
        let rate = 672.0 * f64::from(servers) * load / 1000.0;
        let arrivals = Source::Poisson(rate).times((0..count).map(|_| 64), 11);
        let outcome = simulate(&hardware, &settings(servers, 1, 1), Load::new(&arrivals, &work));
        let outcome = outcome.expect("settings that can be");
        let (wait, wanted) = (mean(&outcome.unordered) / 1000.0 - 1.0, md_wait(servers.into(), load));
        assert!((wait / wanted - 1.0).abs() < 0.03, "M/D/{servers} at {load}: {wait} and not {wanted}");
        consistent(&outcome, count as usize);
    }
}

/// What holds of every run, to the nanosecond.
fn consistent(outcome: &Outcome, packets: usize) {
    let all: u64 = outcome.delays.iter().sum();
    assert_eq!(outcome.delays.len(), packets, "every packet is committed once");
    assert_eq!(
        outcome.area,
        u128::from(all),
        "Little's law: packets inside, summed up over time, are delays summed up over packets"
    );
    let parts = outcome.parts;
    assert_eq!(parts.forming + parts.queued + parts.running + parts.in_turn, all, "parts add up");
    assert!(outcome.delays.iter().zip(&outcome.unordered).all(|(ordered, not)| ordered >= not));
    let statistics = outcome.statistics.expect("it was counted");
    assert_eq!(
        (statistics.arrived, statistics.committed, statistics.again),
        (packets as u64, packets as u64, 0)
    );
}

#[test]
fn one_core_is_the_closed_formula() {
    let works = [Work { instructions: 300, own: 2, shared: 5, trips: 3, bytes: 64 }];
    let hardware = Hardware { cores: 1, channels: 1, bandwidth: 32, latency: 50, ..Hardware::published() };
    // A warp: instructions at one a cycle, sectors of all lanes and the verdicts' at one a cycle, and the
    // latency of each trip.
    let service = 300 + (32 * 2 + 5 + 4) + 3 * 50;
    let arrivals = vec![7; 32 * 100];
    let load = Load::new(&arrivals, &works);
    let outcome = simulate(&hardware, &settings(1, 1, 32), load).expect("settings that can be");
    let wanted: Vec<u64> = (0..arrivals.len() as u64).map(|packet| (packet / 32 + 1) * service).collect();
    assert_eq!(outcome.delays, wanted);
    consistent(&outcome, arrivals.len());
    // Evenly and slower than the core: a packet waits for those behind it in its warp, and then for the core
    // alone.
    let arrivals: Vec<u64> = (0..3200).map(|packet| packet * 20).collect();
    let flush = Flush { rate: Rate::Fixed { gap: 20_000 }, ..HermesSettings::default().flush };
    let load = Load::new(&arrivals, &works);
    let outcome = simulate(&hardware, &HermesSettings { flush, ..settings(1, 1, 32) }, load)
        .expect("settings that can be");
    let wanted: Vec<u64> = (0..3200).map(|packet| (31 - packet % 32) * 20 + service).collect();
    assert_eq!(outcome.delays, wanted);
    consistent(&outcome, arrivals.len());
}

#[test]
fn several_warps_hide_the_latency_of_memory_up_to_what_a_core_issues() {
    let works = [Work { instructions: 100, own: 0, shared: 0, trips: 1, bytes: 64 }];
    let hardware = Hardware { cores: 1, bandwidth: 4096, latency: 399, ..Hardware::published() };
    let arrivals = vec![0; 32 * 1000];
    for (warps, cycles) in [(1, 500.0), (2, 250.0), (4, 125.0), (5, 100.0), (16, 100.0)] {
        let load = Load::new(&arrivals, &works);
        let outcome = simulate(&hardware, &settings(1, warps, 32), load).expect("settings that can be");
        let each = outcome.end as f64 / 1000.0;
        assert!((each / cycles - 1.0).abs() < 0.01, "{warps} warps: {each} and not {cycles}");
    }
}

#[test]
fn the_same_again_is_the_same_and_everything_is_conserved() {
    let works: Vec<Work> = (0..1000_u32)
        .map(|packet| Work {
            instructions: 50 + packet * 7919 % 3000,
            own: packet % 5,
            shared: 1,
            trips: 1 + packet % 3,
            bytes: 64 + packet,
        })
        .collect();
    let source = Source::Bursts { packets: 300, line: 60.0, share: 0.3 };
    let arrivals = source.times(works.iter().cycle().map(|work| work.bytes).take(20_000), 5);
    let load = Load::new(&arrivals, &works);
    for (tasks, commits) in [(1024, 1024), (4, 8), (1, 1), (1024, 1)] {
        let run = || {
            let settings = HermesSettings { tasks, commits, ..settings(8, 16, 32) };
            simulate(&Hardware::published(), &settings, load).expect("settings that can be")
        };
        let outcome = run();
        consistent(&outcome, arrivals.len());
        assert_eq!(outcome, run());
        assert!(tasks > 1 || outcome.statistics.expect("it was counted").fifo_full > 0);
    }
}

#[test]
fn a_serial_baseline_is_its_sum_and_an_overlapped_one_its_slowest_part() {
    let hardware = no_memory();
    let works = [plain(1000)];
    let arrivals = vec![0; 4096 * 8];
    let load = Load::new(&arrivals, &works);
    let settings = settings(8, 16, 32);
    let serial = Baseline { launch: 500, ..Baseline::published() };
    // 128 warps on 8 cores, and 4,096 frames of 64 bytes at 8 bytes a nanosecond each way.
    let (copy, run) = (4096 * 8, 16 * 1000 + 1 + 500);
    let outcome = serial.run(&hardware, &settings, load);
    let wanted: Vec<u64> = (0..4096 * 8).map(|packet| (packet / 4096 + 1) * (2 * copy + run)).collect();
    assert!(
        outcome.delays.iter().zip(&wanted).all(|(delay, wanted)| delay.abs_diff(*wanted) <= 8),
        "{:?}",
        outcome.delays.last()
    );
    let overlapped = Baseline { overlapped: true, ..serial }.run(&hardware, &settings, load);
    // Two buffers: a third batch goes in when the first is back.
    let (first, last) = (overlapped.delays[0], overlapped.end);
    assert_eq!(first, outcome.delays[0]);
    assert!(last < outcome.end * 6 / 10, "{last} and {}", outcome.end);
}

#[test]
fn a_warp_takes_as_long_as_its_longest_lane() {
    let lanes = [(10, 1, 1), (500, 2, 1), (20, 0, 4)];
    let works =
        lanes.map(|(instructions, own, trips)| Work { instructions, own, shared: 3, trips, bytes: 64 });
    let wanted = Work { instructions: 500, own: 3 + 4, shared: 3, trips: 4, bytes: 192 };
    assert_eq!(together(works.into_iter()), wanted);
}

#[test]
fn a_device_without_registers_for_the_warps_is_refused() {
    let hardware = Hardware::published();
    let registers = Application::Classifier.registers();
    assert_eq!(hardware.check(13, 32, registers, 0), Ok(()));
    let error =
        hardware.check(16, 32, registers, 0).expect_err("40 × 32 × 16 is more than 16,768").to_string();
    assert_eq!(error, "concurrent warps whose registers a core has: 16 is not possible; from 1 to 13");
    let error = Hardware { bandwidth: 0, ..hardware }.check(8, 32, 16, 0).expect_err("no memory").to_string();
    assert_eq!(error, "bytes of memory a cycle: 0 is not possible; from 1 to 4096");
    let error = hardware.check(8, 32, 16, 20_000).expect_err("too much shared memory").to_string();
    assert_eq!(error, "bytes of shared memory of a core: 16384 are not enough; the kernel needs 20000");
    let error = Hardware { registers: 100, ..hardware }.check(8, 32, 16, 0).expect_err("few").to_string();
    assert_eq!(error, "registers of a core: 100 are not enough; a warp of the kernel needs 512");
}

/// Every name at the least, the most and beyond both; all that is possible runs with all systems.
#[test]
fn everything_that_can_be_set_runs_at_its_limits_and_is_refused_beyond() {
    let traffic = [Application::Ttl, Application::Dpi].map(|application| Traffic {
        application,
        packets: [64, 1518, 576].into_iter().map(|bytes| (Turns::of_payload(bytes), bytes)).collect(),
        image: Vec::new(),
    });
    for (name, what, least, most) in NAMES {
        for number in [least.wrapping_sub(1), most + 1, u32::MAX, 0] {
            let mut setting = Setting::published(500);
            let before = setting;
            if !(least..=most).contains(&number) {
                let error = setting.set(name, number).expect_err(name);
                let limit = format!("{name}={number} is not possible; from {least} to {most} {what}");
                assert_eq!((error, setting), (limit, before));
            }
        }
        let mut changes = false;
        for number in [least, most] {
            let mut setting = Setting::published(500);
            setting.set(name, number).expect("it is within the limits");
            changes |= setting != Setting::published(500);
            setting.packets = setting.packets.min(500);
            for traffic in &traffic {
                let Ok(warps) = setting.most_warps(traffic.application) else {
                    let error = setting.most_warps(traffic.application).expect_err("it was one").to_string();
                    assert!(matches!((name, number), ("registers", 1) | ("shared", 0)), "{name}: {error}");
                    assert!(error.contains(&format!("{number} are not enough")), "{error}");
                    continue;
                };
                let setting = setting.with(warps, setting.hardware.cores);
                let source = Source::Poisson(setting.rate(10.0));
                for system in [System::Hermes, System::Serial, System::Overlapped] {
                    let outcome = setting.run(system, traffic, &source, 3).expect("it can be");
                    assert_eq!(outcome.delays.len(), setting.packets, "{name}={number}");
                }
            }
        }
        assert!(changes, "{name} changes nothing");
    }
}

/// What was captured is looked up as what is made: the same frames give the same works.
#[test]
fn packets_of_a_capture_cost_what_they_cost_when_they_are_made() {
    for application in Application::ALL {
        let job = application.job().expect("it can be made");
        let mut frames = packet::Frames::new();
        job.frames.iter().for_each(|frame| frames.push(frame, frame.len() as u32, 0));
        let traffic = Traffic::new(application, &job);
        let captured = traffic.of_capture(&frames);
        assert_eq!(captured.packets, traffic.packets, "{application:?}");
        let some = |turns: &Turns| turns.loops > 0 || turns.extra;
        let has_turns = traffic.packets.iter().any(|(turns, _)| some(turns));
        assert_eq!(has_turns, application != Application::Header, "{application:?}");
        // What is cut short, or no IPv4, has nothing to look up.
        let mut others = packet::Frames::new();
        [&[0; 60][..], &[1; 13], &[]].iter().for_each(|bytes| others.push(bytes, 60, 0));
        let loops: u32 = traffic.of_capture(&others).packets.iter().map(|(turns, _)| turns.loops).sum();
        assert_eq!(loops, 0);
    }
}

/// Speed that does not depend on the machine: a packet of the smallest application is four events of the
/// simulator or less.
#[test]
fn a_packet_costs_few_events() {
    let bytes = 64;
    let works = [Application::Ttl.work(Turns { loops: 0, extra: false }, bytes)];
    let arrivals = Source::Poisson(80.0).times((0..100_000).map(|_| bytes), 3);
    let load = Load::new(&arrivals, &works);
    let outcome = simulate(&Hardware::published(), &settings(8, 32, 32), load).expect("settings that can be");
    assert!(outcome.events < 4 * 100_000, "{} events", outcome.events);
    consistent(&outcome, arrivals.len());
}

#[test]
fn memory_gives_what_it_can_and_no_more() {
    for (channels, bandwidth) in [(8, 25), (1, 4096), (64, 1), (7, 333), (1, 1), (64, 4096)] {
        gives(&Hardware { channels, bandwidth, ..Hardware::published() });
    }
}

fn gives(hardware: &Hardware) {
    let mut machine = Machine::new(hardware, 32);
    let work = together((0..32).map(|_| Work { instructions: 1, own: 6400, shared: 0, trips: 1, bytes: 64 }));
    for slot in 0..32 {
        let warp = offload::hermes::Warp { core: slot % 8, slot: (slot / 8) as u8, first: 0, packets: 32 };
        machine.start(0, warp, work);
    }
    let mut end = 0;
    while let Some(now) = machine.next() {
        end = now;
        machine.advance();
    }
    let bytes = machine.sectors * u64::from(SECTOR);
    let rate = bytes as f64 / (end - hardware.latency) as f64;
    assert!((rate / f64::from(hardware.bandwidth) - 1.0).abs() < 0.01, "{rate} of {hardware:?}");
}

#[test]
fn ranges_near_saturation_hold_what_a_run_eight_times_as_long_says() {
    for application in [Application::Dpi, Application::Classifier, Application::Ttl] {
        let job = application.job().expect("it can be made");
        let traffic = Traffic::new(application, &job);
        let setting = Setting::published(8192);
        let warps = setting.most_warps(application).expect("it fits");
        let setting = setting.with(warps, 8);
        let capacity = setting.capacity(System::Hermes, &traffic).expect("it runs");
        for load in [NEAR, 0.95] {
            let measures = setting.measures_at(load, capacity, System::Hermes, &traffic).expect("it runs");
            let range = figure(&measures, |measures| measures.mean).expect("there are runs");
            let longer = Setting { packets: 8 * LONGER * setting.packets, ..setting };
            // A seed of its own, so that no run is the beginning of the longer one.
            let source = Source::Poisson(load * capacity);
            let truth = longer.run(System::Hermes, &traffic, &source, 77).expect("it runs");
            let truth = truth.delays.iter().sum::<u64>() as f64 / truth.delays.len() as f64 / 1000.0;
            println!("{application:?} at {load}: {range:?} and {truth} µs");
            assert!(
                (range.low..=range.high).contains(&truth),
                "{application:?} at {load}: {range:?}, {truth}"
            );
        }
    }
}

/// The batch that is best is no single run's figure, and runs near saturation, and none else, are more.
#[test]
fn all_systems_have_as_many_runs_at_a_load() {
    let job = Application::Ttl.job().expect("it can be made");
    let traffic = Traffic::new(Application::Ttl, &job);
    let setting = Setting::published(2000);
    let capacity = setting.capacity(System::Overlapped, &traffic).expect("it runs");
    for (load, runs) in
        [(0.1, SEEDS), (0.79, SEEDS), (NEAR, SEEDS_NEAR), (0.99, SEEDS_NEAR), (1.0, SEEDS), (2.0, SEEDS)]
    {
        let source = Source::Poisson(load * capacity);
        let tuned = setting.tuned(&traffic, &source).expect("it runs");
        for (setting, system) in
            [(setting, System::Hermes), (setting, System::Overlapped), (tuned, System::Overlapped)]
        {
            let measures = setting.measures_at(load, capacity, system, &traffic).expect("it runs");
            assert_eq!(measures.len(), runs, "{system:?} at {load}");
        }
        let mean = |setting: &Setting| {
            let outcome = setting.run(System::Overlapped, &traffic, &source, 0).expect("it runs");
            mean(&outcome.delays)
        };
        let best = mean(&tuned);
        assert!(best <= mean(&setting), "{load}");
        for (batch, timeout) in [(32, 20_000), (512, 200_000), (4096, 1_000_000)] {
            let baseline = Baseline { batch, timeout, ..tuned.baseline };
            assert!(best <= mean(&Setting { baseline, ..tuned }), "{batch} at {load}");
        }
    }
}
