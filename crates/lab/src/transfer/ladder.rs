//! The ladder: one thing about the way to a device is varied at a time, from the setting that is best, beside
//! the iterations of the original.
//!
//! The idea: from a setting to begin with, each thing in turn takes the value that was fastest in a short
//! run, with what was found before kept. From the setting that comes out, all values of each thing are
//! measured again, in turns with one another. What a device does not have is a row with the sentence that
//! says so.

use super::Iteration;
use super::device::{Loaded, Setting};
use super::functions::FunctionData;
use super::original::Printed;
use super::rows;
use super::rows::{KERNEL, RATE};
use super::view::{LADDER, WANTED};
use super::ways::{self, Came, Contender, Way, in_turn};
use crate::device_run::{ChosenDevice, LabClock};
use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::{LabPlan, Length};
use exec::kernel::{Back, CopiedPart};
use gpu::{SlotMemory, Submission, study};

/// Batches that are under way at once where several are.
const DEEP: usize = 2;
/// Streams.
const STREAMS: usize = 4;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Over,
    Back,
    Memory,
    Submission,
}

impl Thing {
    const ALL: [Thing; 4] = [Thing::Over, Thing::Back, Thing::Memory, Thing::Submission];

    fn name(self) -> &'static str {
        match self {
            Thing::Over => "what goes over",
            Thing::Back => "what comes back",
            Thing::Memory => "memory",
            Thing::Submission => "submission",
        }
    }

    /// All values, each as the setting that has it and is otherwise as `base`.
    fn values(self, base: Setting) -> Vec<(String, Setting)> {
        match self {
            Thing::Over => {
                let all = [
                    (CopiedPart::Page, "buffer of 4 KiB"),
                    (CopiedPart::Frame, "whole frame"),
                    (CopiedPart::Header, "header bytes"),
                    (CopiedPart::Packed, "packed"),
                    (CopiedPart::InPlace, "frames in place"),
                ];
                // A bit comes back of packed bytes alone.
                let back = |over| match base.back {
                    Back::Bit if over != CopiedPart::Packed => Back::Half,
                    back => back,
                };
                all.into_iter()
                    .map(|(over, name)| (name.to_owned(), Setting { over, back: back(over), ..base }))
                    .collect()
            }
            Thing::Back => {
                let all = [(Back::Word, "4 bytes"), (Back::Half, "2 bytes"), (Back::Bit, "1 bit, packed")];
                // Only of packed bytes is it known that a packet has no third outcome: to be too short for
                // them.
                let over = |back| if back == Back::Bit { CopiedPart::Packed } else { base.over };
                all.into_iter()
                    .map(|(back, name)| (name.to_owned(), Setting { back, over: over(back), ..base }))
                    .collect()
            }
            Thing::Memory => study::MEMORIES
                .into_iter()
                .map(|memory| (memory.to_string(), Setting { memory, ..base }))
                .collect(),
            Thing::Submission => {
                let all = [
                    ("one at a time".to_owned(), study::SERIAL, 1),
                    (format!("{DEEP} deep"), Submission::Queued, DEEP),
                    (format!("{STREAMS} streams"), Submission::Streams(STREAMS), STREAMS),
                    ("graph".to_owned(), study::GRAPH, DEEP),
                ];
                all.into_iter()
                    .map(|(name, submission, depth)| (name, Setting { submission, depth, ..base }))
                    .collect()
            }
        }
    }
}

/// What is measured: a function by an algorithm, on a device.
pub(super) struct Ladder<'a> {
    pub(super) plan: &'a LabPlan,
    pub(super) data: &'a FunctionData,
    pub(super) loaded: &'a Loaded,
    pub(super) device: &'a ChosenDevice,
    pub(super) clock: &'a dyn LabClock,
    /// Function and algorithm.
    pub(super) case: &'a str,
}

impl<'a> Ladder<'a> {
    /// The rows at a size of batch, with those that hold the best setting against a rate that is wanted.
    pub(super) fn rows(&self, batch: usize, wanted: f64) -> Vec<Row> {
        let best = self.best(batch);
        // What is the same setting is measured once and told wherever it belongs.
        let mut settings: Vec<Setting> = Vec::new();
        let mut told: Vec<(String, usize)> = Vec::new();
        let mut add = |name: String, setting: Setting| {
            let known = settings.iter().position(|known| *known == setting);
            let place = known.unwrap_or_else(|| {
                settings.push(setting);
                settings.len() - 1
            });
            told.push((name, place));
        };
        for thing in Thing::ALL {
            for (name, setting) in thing.values(best) {
                let mark = if setting == best { " *" } else { "" };
                let bytes = self.loaded.bytes_over(setting).filter(|_| thing == Thing::Over);
                let frame = if setting.over == CopiedPart::InPlace { " and frame" } else { "" };
                let bytes = bytes.map(|bytes| format!(" ({bytes} B{frame})")).unwrap_or_default();
                add(format!("{} = {name}{bytes}{mark}", thing.name()), setting);
            }
        }
        for iteration in Iteration::ALL {
            add(format!("the original's iterations = {}", iteration.name()), iteration.setting());
        }
        add("resident = headers there, verdicts left there".to_owned(), Setting { ready: true, ..best });
        let mut ways: Vec<Contender> =
            settings.iter().map(|setting| Contender::new("", None, self.on(*setting, batch))).collect();
        let mut ways: Vec<&mut Contender> = ways.iter_mut().collect();
        let came = in_turn(self.data, &mut ways, batch, self.plan.runs, self.plan.length);
        let mut rows: Vec<Row> =
            told.iter().flat_map(|(name, place)| self.told(name, &came[*place], batch)).collect();
        let of = |setting: Setting, what: &str| {
            let place = settings.iter().position(|known| *known == setting)?;
            rows::of("", &came[place], Printed::default()).into_iter().find(|row| row.what == what)?.ours
        };
        let aim = Figure::exactly(wanted);
        for (what, ours) in [
            ("kernel alone, headers resident", of(Setting { ready: true, ..best }, KERNEL)),
            ("end to end, best setting", of(best, RATE)),
        ] {
            let case = format!("{WANTED}{} at {batch} packets", self.case);
            let row = match ours {
                Some(_) => Row::alone(&case, what, "Mpps", ours, None),
                None => Row::absent(&case, what, "no clock of the device tells it, or a verdict was wrong"),
            };
            rows.push(row.against(Some(Other::of("wanted", aim.clone())), Better::More));
        }
        rows
    }

    fn on(&self, setting: Setting, batch: usize) -> Result<Box<dyn Way + 'a>, String> {
        let has = setting.memory == SlotMemory::Mapped
            && matches!(setting.submission, study::SERIAL | Submission::Queued);
        match self.device {
            ChosenDevice::Host if !has => {
                Err("threads of this machine have no memory and no queues of their own".to_owned())
            }
            device => self.loaded.on(device, self.clock, setting, batch),
        }
    }

    fn told(&self, name: &str, came: &Came, batch: usize) -> Vec<Row> {
        let case = format!("{}, {LADDER}{name}, batch {batch}", self.case);
        let mut rows = rows::of(&case, came, Printed::default());
        // Rates, the kernel's own rate, the median delay and the parts.
        rows.retain(|row| row.what == RATE || row.ours.is_none() || rows::is_of_ladder(&row.what));
        rows
    }

    /// The setting that was fastest, thing by thing, in a short run each.
    fn best(&self, batch: usize) -> Setting {
        let mut best = Setting {
            over: CopiedPart::Packed,
            back: Back::Word,
            memory: SlotMemory::Mapped,
            submission: study::SERIAL,
            depth: 1,
            ready: false,
        };
        let length = match self.plan.length {
            Length::Seconds(seconds) => Length::Seconds(seconds / 2.0),
            repeat @ Length::Repeat(_) => repeat,
        };
        for thing in Thing::ALL {
            let mut fastest: Option<(f64, Setting)> = None;
            for (_, setting) in thing.values(best) {
                let Ok(mut way) = self.on(setting, batch) else { continue };
                // The first run warms up.
                let Ok(_) = ways::run(way.as_mut(), self.data, batch, length) else { continue };
                let Ok(run) = ways::run(way.as_mut(), self.data, batch, length) else { continue };
                let rate = run.mpps(run.spans.wall);
                if fastest.is_none_or(|(known, _)| rate > known) {
                    fastest = Some((rate, setting));
                }
            }
            best = fastest.map_or(best, |(_, setting)| setting);
        }
        best
    }
}
