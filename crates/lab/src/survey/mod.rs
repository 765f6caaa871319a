//! `lab gpu`: all about one device, in a time that is given: whether every program does there what the
//! interpreter does, what a kernel that keeps running is worth, the transfer ladder, schedules, and from
//! where on the device pays. It needs neither network nor repository.

mod agreement;
mod persistent;

use crate::crossover::{CrossoverBench, measure};
use crate::device_run::{ChosenDevice, DeviceSource, Wall};
use crate::experiment::Experiment;
use crate::kinds::ExperimentKind;
use crate::machine::Machine;
use crate::plan::{DeviceChoice, LabPlan, Length, TablesPlan};
use crate::programs::PROGRAMS;
use crate::schedule::burst::RATE;
use crate::traffic::LabError;
use crate::transfer::OVER;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Packets that all programs together run at least.
const PACKETS: u64 = 1_100_000;
/// The same with `quick`.
const QUICK_PACKETS: u64 = 20_000;
/// Parts of the time after which no further program is compared, no further burst sent, no further step of
/// the ladder taken, no further load carried by schedules, and nothing at all begun.
const ENDS: [f64; 5] = [0.32, 0.4, 0.55, 0.7, 0.95];
/// Runs of each figure, and the seconds of one.
const RUNS: usize = 3;
const SECONDS: f64 = 0.03;
/// The same with `quick`.
const QUICK_SECONDS: f64 = 0.003;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyPlan {
    /// The device.
    pub device: DeviceChoice,
    /// Programs with their texts whose answers are compared; those that ship if there are none.
    pub programs: Vec<(String, String)>,
    /// How long it may take.
    pub time: Duration,
    /// Shorter runs over smaller tables: to see that it works.
    pub quick: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The device's model.
    pub model: String,
    /// Its name, with that of its driver.
    pub device: String,
    /// Seconds that were given, and that it took.
    pub given_s: f64,
    /// See above.
    pub took_s: f64,
    /// What was left out since the time was over.
    pub left_out: Vec<String>,
    /// Packets that were compared with the interpreter's.
    pub compared: u64,
    /// Programs that did something else than the interpreter.
    pub wrong: usize,
    /// `agreement`, `persistent`, `transfer`, `schedule` and `crossover`.
    pub experiments: Vec<Experiment>,
}

/// Does it. `progress` hears what is being done.
///
/// # Errors
/// There is no device, or tables cannot be made. A program that does not do what it should is no error but a
/// row without a figure.
pub fn survey(
    plan: &SurveyPlan,
    machine: &Machine,
    progress: &mut dyn FnMut(&str),
) -> Result<Survey, LabError> {
    let begin = Instant::now();
    let clock = Wall::default();
    let chosen = ChosenDevice::find(plan.device)?;
    let device_source: &dyn DeviceSource = &chosen;
    let [compared, kept, laddered, scheduled, measured] = ENDS.map(|part| plan.time.mul_f64(part));
    let mut left_out = Vec::new();
    let (agreed, packets) = compare(plan, machine, device_source, begin + compared, &mut left_out, progress)?;
    let wrong = agreed.rows.iter().filter(|row| row.ours.is_none() && !row.unit.is_empty()).count();
    let ladder = LabPlan {
        kinds: vec![ExperimentKind::Transfer],
        captures: Vec::new(),
        runs: if plan.quick { 1 } else { RUNS },
        length: Length::Seconds(if plan.quick { QUICK_SECONDS } else { SECONDS }),
        quick: plan.quick,
        tables: TablesPlan::default(),
        gateways: Vec::new(),
        prefixes: Vec::new(),
        guest: None,
        // The same for all, also where it was the best that is asked for.
        device: chosen.choice(),
        until: Some(begin + laddered),
        simulated: Vec::new(),
    };
    let on_ladder = |mode: String| told(machine, mode, ladder.runs, ladder.length.line());
    let mut experiments = vec![agreed];
    if begin.elapsed() < kept {
        let (rows, mode, later) = persistent::rows(device_source, &clock, &ladder, begin + kept, progress)?;
        left_out.extend(later.into_iter().map(|what| format!("{}: {what}", persistent::NAME)));
        experiments.push(Experiment {
            experiment: persistent::NAME.to_owned(),
            machine: on_ladder(mode),
            rows,
        });
    } else {
        left_out.push("kernels that keep running".to_owned());
    }
    if begin.elapsed() < laddered {
        experiments.extend(crate::run(&ladder, machine, progress)?);
        if begin.elapsed() >= laddered {
            left_out.push("the last steps of the transfer ladder; their rows say so".to_owned());
        }
    } else {
        left_out.push("the transfer ladder".to_owned());
    }
    if begin.elapsed() < scheduled {
        let schedules = LabPlan {
            kinds: vec![ExperimentKind::Schedule],
            until: Some(begin + scheduled),
            ..ladder.clone()
        };
        experiments.extend(crate::run(&schedules, machine, progress)?);
        if begin.elapsed() >= scheduled {
            left_out.push("some loads of schedules; their rows say so".to_owned());
        }
    } else {
        left_out.push("schedules".to_owned());
    }
    let bench = CrossoverBench { device_source, clock: &clock, only: &[], until: Some(measured) };
    let (rows, mode, later) = measure(&bench, &ladder, progress)?;
    left_out.extend(later.into_iter().map(|what| format!("crossover: {what}")));
    experiments.push(Experiment {
        experiment: ExperimentKind::Crossover.name().to_owned(),
        machine: on_ladder(mode),
        rows,
    });
    Ok(Survey {
        model: device_source.model(),
        device: device_source.name(),
        given_s: plan.time.as_secs_f64(),
        took_s: begin.elapsed().as_secs_f64(),
        left_out,
        compared: packets,
        wrong,
        experiments,
    })
}

/// Programs beside the interpreter until the time is over, and how many packets were compared.
fn compare(
    plan: &SurveyPlan,
    machine: &Machine,
    device_source: &dyn DeviceSource,
    until: Instant,
    left_out: &mut Vec<String>,
    progress: &mut dyn FnMut(&str),
) -> Result<(Experiment, u64), LabError> {
    let shipped = || PROGRAMS.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let programs = if plan.programs.is_empty() { shipped() } else { plan.programs.clone() };
    let all = if plan.quick { QUICK_PACKETS } else { PACKETS };
    let each = all.div_ceil(programs.len().max(1) as u64);
    let traffic = agreement::Traffic::new(each)?;
    let (mut rows, mut packets) = (Vec::new(), 0);
    for (name, text) in &programs {
        if Instant::now() >= until {
            left_out.push(format!("comparing {name} with the interpreter"));
            continue;
        }
        progress(&format!("gpu: {name} and the interpreter"));
        let (own, count) = agreement::rows(device_source, name, text, &traffic);
        rows.extend(own);
        packets += count;
    }
    let mode = format!(
        "made traffic of many kinds, a part of it damaged, batch by batch; verdicts, bytes, outputs and events of every packet, and tables and \
         counters at the end, beside the interpreter's; device: {}",
        device_source.name()
    );
    let machine = told(machine, mode, 1, format!("{each} packets a program"));
    Ok((Experiment { experiment: "agreement".to_owned(), machine, rows }, packets))
}

/// The machine, with how a part was run.
fn told(machine: &Machine, mode: String, runs: usize, length: String) -> Machine {
    Machine { runs, length, mode, ..machine.clone() }
}

impl Survey {
    /// What its files are called, without what is behind the dot: `gpu-` and the model in small letters,
    /// digits and hyphens.
    pub fn stem(&self) -> String {
        let kept =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { ' ' };
        let words: String = self.model.chars().map(kept).collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        format!("gpu-{}", words.join("-"))
    }

    /// The rows that say most: what did not agree, words to and fro and the rates of bursts, from where on
    /// the device pays, and how far the cost model is off.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{}\n{:.0} s of {:.0} s\n\n{} packets compared with the interpreter's, {} programs with differences\n",
            self.device, self.took_s, self.given_s, self.compared, self.wrong
        );
        for row in self.experiments.iter().flat_map(|experiment| &experiment.rows) {
            // What there was no time for is told below.
            let refused = row.ours.is_none() && !row.what.ends_with(OVER);
            let telling = row.case.ends_with(", crossover")
                || row.case.contains(", all loads, ")
                || row.case.contains(", hermes beside ")
                || row.case == persistent::WORD
                || row.what == RATE;
            let beside = match (&row.other, row.ratio) {
                (Some(other), Some(ratio)) if row.what == RATE => format!(", {ratio:.2} × {}", other.name),
                _ => String::new(),
            };
            match &row.ours {
                Some(ours) if telling => {
                    let figure = format!("{:.2} {}{beside}", ours.median, row.unit);
                    text.push_str(&format!("{}: {}: {figure}\n", row.case, row.what));
                }
                _ if refused => text.push_str(&format!("{}: {}\n", row.case, row.what)),
                _ => {}
            }
        }
        for what in &self.left_out {
            text.push_str(&format!("left out, since the time was over: {what}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Better, Other, Row};

    #[test]
    fn without_time_nothing_is_measured_and_everything_is_named() {
        let plan = SurveyPlan {
            device: DeviceChoice::Host,
            programs: Vec::new(),
            time: Duration::ZERO,
            quick: true,
        };
        let machine = Machine::describe("", "");
        let mut hear = |what: &str| assert_eq!(what, "crossover: making tables", "nothing else is begun");
        let survey = survey(&plan, &machine, &mut hear).expect("there are threads");
        assert_eq!((survey.compared, survey.wrong), (0, 0));
        let mut rows = survey.experiments.iter().flat_map(|experiment| &experiment.rows);
        assert!(rows.all(|row| row.ours.is_none()), "{:#?}", survey.experiments);
        let named = |part: &str| survey.left_out.iter().filter(|what| what.starts_with(part)).count();
        assert_eq!(named("comparing "), PROGRAMS.len());
        for part in ["kernels that keep running", "the transfer ladder", "schedules"] {
            assert_eq!(named(part), 1, "{part}");
        }
        assert!(named("crossover: ") > 0, "{:?}", survey.left_out);
    }

    #[test]
    fn files_are_called_after_the_model_and_the_summary_says_what_is_missing() {
        let figure = crate::Figure { median: 2.5, low: 2.0, high: 3.0, ..crate::Figure::default() };
        let rows = vec![
            Row::alone(
                "lpm, crossover",
                "the device is faster from batch 512 on",
                "×",
                Some(figure.clone()),
                None,
            ),
            Row::alone("lpm, batch 8", "time of a batch", "µs", Some(figure.clone()), None),
            Row::refused("nat44", "packets", "packets", "verdict 3 differs"),
            Row::absent("LPM, every way", "packet rate", OVER),
            Row::alone("lpm, bursts, 32 packets, persistent", RATE, "Mpps", Some(figure.clone()), None)
                .against(Some(Other::of("queued", crate::Figure { median: 1.25, ..figure })), Better::More),
        ];
        let machine = Machine::describe("", "");
        let survey = Survey {
            model: "NVIDIA H100 80GB (HBM3)".to_owned(),
            device: "NVIDIA H100".to_owned(),
            given_s: 480.0,
            took_s: 400.0,
            left_out: vec!["crossover: dpi".to_owned()],
            compared: 5,
            wrong: 1,
            experiments: vec![Experiment { experiment: "crossover".to_owned(), machine, rows }],
        };
        assert_eq!(survey.stem(), "gpu-nvidia-h100-80gb-hbm3");
        let text = survey.summary();
        assert!(text.contains("lpm, crossover: the device is faster from batch 512 on: 2.50 ×"), "{text}");
        assert!(text.contains("rate of bursts that follow each other: 2.50 Mpps, 2.00 × queued"), "{text}");
        assert!(text.contains("verdict 3 differs") && text.contains("crossover: dpi"), "{text}");
        assert!(!text.contains("batch 8:") && !text.contains("LPM"), "{text}");
    }
}
