//! What gives batches of packets their verdicts, and running it: every verdict is held against the
//! interpreter's.

use super::functions::{FunctionData, PACKETS};
use super::original::Of;
use super::spans::{Delays, Run, Spans};
use crate::device_workload::Packets;
use crate::plan::Length;
use packet::Verdict;

/// Something that gives packets their verdicts.
pub(crate) trait Way {
    /// How many packets one call is to have, at least.
    fn stretch(&self) -> usize;

    /// How many batches one call is to have, at least.
    fn least(&self) -> usize {
        1
    }

    /// How many batches of a size it is to be given in one call.
    fn batches(&self, batch: usize) -> usize {
        (self.stretch() / batch).max(self.least())
    }

    /// Whether it runs the first packets in every batch.
    fn repeats(&self) -> bool {
        false
    }

    /// Whether it runs the program for packets that are known to be what they are.
    fn is_bare(&self) -> bool {
        false
    }

    /// Runs batches of `batch` packets, one behind the other, until all places for verdicts are filled. The
    /// packets begin at `first` and go round. `delays` takes every packet's delay, from when it was fetched
    /// until its verdict is known.
    ///
    /// # Errors
    /// What went wrong, in a sentence.
    fn run(
        &mut self,
        packets: &Packets,
        first: usize,
        batch: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String>;
}

/// A way with what its rows are called.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    /// What it is held against in the original's tables.
    pub(super) paper: Option<Of>,
    /// The way, or why it is not to be had here.
    pub(crate) way: Result<Box<dyn Way + 'a>, String>,
}

impl<'a> Contender<'a> {
    /// Names a way.
    pub(super) fn new(
        name: impl Into<String>,
        paper: Option<Of>,
        way: Result<Box<dyn Way + 'a>, String>,
    ) -> Contender<'a> {
        Contender { name: name.into(), paper, way }
    }
}

/// What came of a way.
pub(crate) enum Came {
    /// As many runs as were wanted.
    Runs(Vec<Run>),
    /// It is not to be had here, and why.
    Absent(String),
    /// It failed, or a verdict was wrong: no figure.
    Refused(String),
}

/// Runs a way over batch after batch until `length` is over.
///
/// # Errors
/// It failed, or one verdict is another than the interpreter's.
pub(crate) fn run(
    way: &mut dyn Way,
    data: &FunctionData,
    batch: usize,
    length: Length,
) -> Result<Run, String> {
    let mut run = Run::new(batch);
    let calls = way.batches(batch);
    let mut found = vec![Verdict::PENDING; calls * batch];
    let workload = data.workload(way.is_bare());
    let mut first = 0;
    loop {
        found.fill(Verdict::PENDING);
        let spans = way.run(&workload.packets, first, batch, &mut found, &mut run.delays)?;
        for (place, found) in found.chunks(batch).enumerate() {
            let first = if way.repeats() { 0 } else { (first + place * batch) % PACKETS };
            if let Some(wrong) = workload.wrong(first as u64, found) {
                return Err(wrong);
            }
        }
        run.spans.add(&spans);
        run.batches += calls as u64;
        first = (first + found.len()) % PACKETS;
        if length.is_over(run.spans.wall, run.batches) {
            return Ok(run);
        }
    }
}

/// A run of some seconds is cut into so many slices, so that what else happens on the machine falls on all
/// ways.
const SLICES: u32 = 4;

/// Lets ways take turns, `runs` times each and once more to warm up, with batches of a size. Runs of some
/// seconds are cut into slices that take turns.
pub(crate) fn in_turn(
    data: &FunctionData,
    ways: &mut [&mut Contender<'_>],
    batch: usize,
    runs: usize,
    length: Length,
) -> Vec<Came> {
    let begin = |contender: &&mut Contender<'_>| match &contender.way {
        Ok(_) => Came::Runs(Vec::new()),
        Err(why) => Came::Absent(why.clone()),
    };
    let (slices, length) = match length {
        Length::Seconds(seconds) => (SLICES, Length::Seconds(seconds / f64::from(SLICES))),
        repeat @ Length::Repeat(_) => (1, repeat),
    };
    let mut came: Vec<Came> = ways.iter().map(begin).collect();
    for round in 0..=runs {
        for slice in 0..slices {
            for (contender, came) in ways.iter_mut().zip(&mut came) {
                let (Ok(way), Came::Runs(kept)) = (&mut contender.way, &mut *came) else { continue };
                match run(way.as_mut(), data, batch, length) {
                    Err(why) => *came = Came::Refused(why),
                    // The first round warms up.
                    Ok(_) if round == 0 => (),
                    Ok(run) => match kept.last_mut().filter(|_| slice > 0) {
                        Some(whole) => whole.add(&run),
                        None => kept.push(run),
                    },
                }
            }
        }
    }
    came
}
