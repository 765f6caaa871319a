//! What is reported beyond the publication: delays at equal load, by source and for captures, and how fast
//! the simulator is.

use super::panels::{Bench, Done, MICROS, Of, TIMES, named};
use super::setting::{Altered, Measures, Setting, System, figure};
use super::simulate::{Load, simulate};
use super::source::Source;
use super::whole::judged;
use super::work::{Application, Job};
use crate::experiment::{Figure, Other, Row};
use crate::traffic::LabError;
use packet::Frames;
use std::error::Error;
use std::time::Instant;

/// Shares of a capacity at which delays are taken.
const LOADS: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];

impl Bench<'_> {
    /// Beyond the publication: the same packets for all three, at shares of what the slowest of them takes.
    pub(super) fn equal(&mut self, place: usize) -> Done {
        self.tell(place, "equal load");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let name = traffic.application.name();
        let [own, slowest, overlapped] = best.capacities(traffic)?;
        let mut rows = Vec::new();
        for load in LOADS {
            let source = Source::Poisson(load * slowest);
            let of = |system| best.measures_at(load, slowest, system, traffic);
            let all = [of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?];
            let tuned = best.tuned(traffic, &source)?;
            let tuned = tuned.measures_at(load, slowest, System::Overlapped, traffic)?;
            let case = format!("{name} at equal load, {load} of what the serial baseline takes");
            let others = [
                (named(System::Serial, load * slowest, slowest), &all[1]),
                (named(System::Overlapped, load * slowest, overlapped), &all[2]),
                ("overlapped, best batch, words back".to_owned(), &tuned),
            ];
            for (other, measured) in others {
                for (what, of) in delays() {
                    let other = figure(measured, of).map(|figure| Other::of(&other, figure));
                    rows.push((case.clone(), what, figure(&all[0], of), other));
                }
            }
            let measured = best.measures_at(load, own, System::Hermes, traffic)?;
            let case = format!("{name} at its own load, {load} of what Hermes takes");
            rows.extend(delays().map(|(what, of)| (case.clone(), what, figure(&measured, of), None)));
        }
        for (case, what, ours, other) in rows {
            self.held(&case, what, MICROS, ours, other);
        }
        Ok(())
    }

    /// How packets come: the same share of what Hermes takes, from every source.
    pub(super) fn sources(&mut self, place: usize) -> Done {
        self.tell(place, "sources");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let name = traffic.application.name();
        let capacities = best.capacities(traffic)?;
        let (rate, share) = (best.rate(capacities[0]), best.share(capacities[0]));
        let bursts = Source::Bursts { packets: 512, line: 4.0 * rate, share: 0.25 };
        let sources = [
            ("evenly", 1.0, Source::Constant(rate)),
            ("at random", 1.0, Source::Poisson(rate)),
            ("in bursts of 512, four times as fast", 1.0, bursts),
            ("seldom, a hundredth of it", 0.01, Source::Poisson(0.01 * rate)),
        ];
        let mut rows = Vec::new();
        for (how, part, source) in sources {
            let of = |system| match source {
                Source::Poisson(_) => best.measures_at(part * share, capacities[0], system, traffic),
                _ => best.measures(system, traffic, &source),
            };
            let all = [of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?];
            let case = format!("{name} by source at {}, {how}", best.rate_line());
            rows.push((case, all, part * rate));
        }
        rows.iter().for_each(|(case, all, rate)| self.beside(case, all, *rate, capacities));
        Ok(())
    }

    /// What it costs that a warp takes as long as its longest lane.
    pub(super) fn divergence(&mut self, place: usize) -> Done {
        let best = self.best(place)?;
        let alike = Setting { altered: Altered { alike: true, ..best.altered }, ..best };
        let traffic = &self.traffic[place];
        let capacities = [alike.capacity(System::Hermes, traffic)?, best.capacity(System::Hermes, traffic)?];
        let case = format!("divergence, {}", traffic.application.name());
        let what = "capacity with packets sorted by cost, by that as they come";
        let times = Figure::of([capacities[0] / capacities[1]]);
        self.rows.push(Row::alone(&case, what, TIMES, times, None));
        if traffic.application == Application::Expiring {
            // A warp takes as long as its longest lane, and at most as long as both ways one after the other.
            let both = Setting { altered: Altered { both_ways: true, ..best.altered }, ..best };
            let times = Figure::of([capacities[1] / both.capacity(System::Hermes, traffic)?]);
            let what = "capacity where a warp takes its longest lane, by that where it goes both ways";
            self.rows.push(Row::alone(&case, what, TIMES, times, None));
        }
        Ok(())
    }

    /// The times, lengths and headers of a capture, drawn together until they are half of what Hermes takes,
    /// or what was set.
    pub(super) fn capture(&mut self, capture: &crate::traffic::Traffic) -> Done {
        (self.progress)(&format!("hermes: {}", capture.name));
        let mut times: Vec<u64> = capture.frames.iter().map(|frame| frame.time).collect();
        // A capture may hold packets in another order than they came.
        times.sort_unstable();
        for place in 0..self.traffic.len() {
            let best = self.best(place)?;
            let traffic = self.traffic[place].of_capture(&capture.frames);
            let setting = Setting { packets: times.len().min(best.packets), ..best };
            let capacities = setting.capacities(&traffic)?;
            let rate = setting.rate(capacities[0]);
            let source = Source::Capture(&times[..setting.packets], rate);
            let of = |system| setting.measures(system, &traffic, &source);
            let all = [of(System::Hermes)?, of(System::Serial)?, of(System::Overlapped)?];
            let name = traffic.application.name();
            let case = format!("{} at {}, {name}", capture.name, best.rate_line());
            self.beside(&case, &all, rate, capacities);
        }
        Ok(())
    }

    /// Delays of Hermes beside those of both other systems, where so many bits come in a nanosecond.
    fn beside(&mut self, case: &str, all: &[Vec<Measures>; 3], rate: f64, capacities: [f64; 3]) {
        for (place, system) in [(1, System::Serial), (2, System::Overlapped)] {
            let name = named(system, rate, capacities[place]);
            for (what, of) in delays() {
                let other = figure(&all[place], of).map(|figure| Other::of(&name, figure));
                self.held(case, what, MICROS, figure(&all[0], of), other);
            }
        }
    }

    /// Whole programs over the simulated device: how many packets became what the interpreter says, with
    /// their tables and bytes.
    pub(super) fn answers(&mut self, jobs: &[Job]) -> Result<(), LabError> {
        for (place, job) in jobs.iter().enumerate() {
            self.tell(place, "answers");
            let told = |error: &dyn Error| LabError::Program(format!("{}: {error}", job.program.name));
            let best = self.best(place).map_err(|error| told(&error))?;
            let traffic = &self.traffic[place];
            let capacity = best.capacity(System::Hermes, traffic).map_err(|error| told(&error))?;
            let mut frames = Frames::new();
            let some = job.frames.iter().take(if self.quick { 512 } else { 4096 });
            some.for_each(|frame| frames.push(frame, frame.len() as u32, 0));
            let works = best.works(traffic);
            let lengths = works.iter().map(|work| work.bytes).take(frames.len());
            let arrivals = Source::Poisson(0.9 * capacity).times(lengths, 0);
            let (hardware, scheduler) = (&best.hardware, &best.scheduler);
            let judged = judged(&job.program, &job.options, &frames, hardware, scheduler, &arrivals, &works);
            let judged = judged.map_err(|error| told(&error))?;
            let alone = simulate(hardware, scheduler, Load::new(&arrivals, &works));
            if alone.map_err(|error| told(&error))? != judged.outcome {
                return Err(LabError::Program(format!(
                    "{}: packets take other times than works",
                    job.program.name
                )));
            }
            let name = traffic.application.name();
            let case = format!("answers, {name} over the simulated device");
            for (what, packets) in [
                ("packets whose verdict, bytes and effects are the interpreter's", frames.len() as u64),
                ("of them finished by the device", judged.tally.device),
            ] {
                self.rows.push(Row::alone(&case, what, "packets", Figure::of([packets as f64]), None));
            }
        }
        Ok(())
    }

    /// How many packets of the TTL application the simulator takes through in a second of this machine: the
    /// one figure that depends on it.
    pub(super) fn speed(&mut self) -> Done {
        let Some(place) = self.traffic.iter().position(|traffic| traffic.application == Application::Ttl)
        else {
            return Ok(());
        };
        self.tell(place, "speed of the simulator");
        let best = self.best(place)?;
        let traffic = &self.traffic[place];
        let capacity = best.capacity(System::Hermes, traffic)?;
        for load in [0.5, 0.9, best.overload] {
            let mut rates = Vec::new();
            for seed in 0..5 {
                let begin = Instant::now();
                best.run(System::Hermes, traffic, &Source::Poisson(load * capacity), seed)?;
                rates.push(best.packets as f64 / 1e6 / begin.elapsed().as_secs_f64());
            }
            let case = format!("speed of the simulator on this machine, TTL at {load} of what Hermes takes");
            self.rows.push(Row::alone(
                &case,
                "simulated packets a second",
                "millions",
                Figure::of(rates),
                None,
            ));
        }
        Ok(())
    }
}

/// Delays that are reported by load.
fn delays() -> [(&'static str, Of); 3] {
    [
        ("mean delay", |measures| measures.mean),
        ("median delay", |measures| measures.median),
        ("99th percentile of delays", |measures| measures.most),
    ]
}
