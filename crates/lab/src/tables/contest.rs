//! Contenders that answer the same queries: first whether they answer alike, then how fast, in turn.

use crate::experiment::{Better, Figure, Other, Row};
use cpu_time::ThreadTime;
use std::hint::black_box;

/// The answer where nothing is found.
pub(crate) const NONE: u32 = u32::MAX;
/// Batches in which contenders look up in bulk. The better one of each counts.
const BATCHES: [usize; 2] = [32, BATCH_MAX];
/// The largest batch. Queries that a contender looks up one at a time are taken from memory in such batches,
/// too.
pub(crate) const BATCH_MAX: usize = 256;

/// Something that answers a list of queries that it knows.
pub(crate) trait Contender {
    /// Its name in reports.
    fn name(&self) -> &str;
    /// The answer to every query, in order.
    fn answers(&mut self) -> Result<Vec<u32>, String>;
    /// Answers all queries once, and then `passes` times against the clock, in batches of at most so many.
    fn passes(&mut self, batch: usize, passes: u64) -> Result<Timed, String>;
}

/// Some timed passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timed {
    /// Seconds of this thread.
    pub(crate) seconds: f64,
    /// The first and the last answer of every batch of every pass, added up, so that contenders can be held
    /// against each other.
    pub(crate) sum: u64,
}

/// How a contender looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Many at once.
    Bulk,
    /// One after the other.
    Single,
    /// Byte strings, each scanned whole.
    Scan,
}

/// One contender and whose it is.
pub(crate) struct Entry<'a> {
    pub(crate) contender: Box<dyn Contender + 'a>,
    pub(crate) ours: bool,
    pub(crate) way: Way,
}

/// What is done and in what it is counted.
pub(crate) struct Contest<'a> {
    /// The table and the traffic, as parts of a case.
    pub(crate) case: &'a str,
    /// How many units one pass is: queries in millions, or bits in thousands of millions.
    pub(crate) amount: f64,
    /// The unit of the rate.
    pub(crate) unit: &'a str,
    /// Answers that are known to be right, to the first queries.
    pub(crate) right: &'a [u32],
    /// Runs of each figure.
    pub(crate) runs: usize,
    /// Seconds of a run.
    pub(crate) seconds: f64,
    /// The ratios that are wanted of all but single lookups, each against the best other whose name begins
    /// so.
    pub(crate) goals: &'a [(&'a str, f64)],
}

/// A contender of this process.
pub(crate) struct InProcess<'a, K> {
    name: String,
    keys: &'a [K],
    stride: usize,
    look: Box<Look<'a, K>>,
}

/// Answers the queries of a slice in order.
type Look<'a, K> = dyn FnMut(&[K], &mut [u32]) + 'a;

/// One contender with one size of batches, and its runs.
struct Lane {
    entry: usize,
    batch: usize,
    passes: u64,
    rates: Vec<f64>,
    /// What one pass sums up to.
    sum: u64,
}

impl<'a, K> InProcess<'a, K> {
    /// Looks up `keys`, `stride` elements a query, by `look`, which answers the queries of a slice in order.
    pub(crate) fn new(
        name: &str,
        keys: &'a [K],
        stride: usize,
        look: impl FnMut(&[K], &mut [u32]) + 'a,
    ) -> InProcess<'a, K> {
        InProcess { name: name.to_owned(), keys, stride, look: Box::new(look) }
    }

    fn pass(&mut self, batch: usize, answers: &mut [u32]) -> u64 {
        let mut sum = 0_u64;
        for keys in self.keys.chunks(batch * self.stride) {
            let answers = &mut answers[..keys.len() / self.stride];
            (self.look)(keys, answers);
            let answers = black_box(answers);
            let (Some(first), Some(last)) = (answers.first(), answers.last()) else { continue };
            sum = sum.wrapping_add(u64::from(*first)).wrapping_add(u64::from(*last));
        }
        sum
    }
}

impl<K> Contender for InProcess<'_, K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn answers(&mut self) -> Result<Vec<u32>, String> {
        let mut answers = vec![NONE; self.keys.len() / self.stride];
        let batch = BATCH_MAX;
        for (keys, answers) in self.keys.chunks(batch * self.stride).zip(answers.chunks_mut(batch)) {
            (self.look)(keys, answers);
        }
        Ok(answers)
    }

    fn passes(&mut self, batch: usize, passes: u64) -> Result<Timed, String> {
        let mut answers = vec![NONE; batch];
        self.pass(batch, &mut answers);
        let start = ThreadTime::now();
        let mut sum = 0_u64;
        for _ in 0..passes {
            sum = sum.wrapping_add(self.pass(batch, &mut answers));
        }
        Ok(Timed { seconds: start.elapsed().as_secs_f64(), sum })
    }
}

impl<'a> Entry<'a> {
    /// One of ours.
    pub(crate) fn ours(way: Way, contender: impl Contender + 'a) -> Entry<'a> {
        Entry { contender: Box::new(contender), ours: true, way }
    }

    /// Another's.
    pub(crate) fn other(way: Way, contender: impl Contender + 'a) -> Entry<'a> {
        Entry { contender: Box::new(contender), ours: false, way }
    }
}

impl Contest<'_> {
    /// The rows of the contest; without figures, and with the reason, if contenders do not answer alike.
    pub(crate) fn rows(&self, entries: &mut [Entry<'_>]) -> Vec<Row> {
        let lanes = self.check(entries).and_then(|()| self.run(entries));
        match lanes {
            Ok(lanes) => {
                let ways = [Way::Bulk, Way::Single, Way::Scan];
                ways.iter().flat_map(|way| self.report(entries, &lanes, *way)).collect()
            }
            Err(why) => vec![Row::refused(self.case, "lookups", self.unit, &why)],
        }
    }

    /// Whether all answer every query as the first one does, and that one as it should.
    fn check(&self, entries: &mut [Entry<'_>]) -> Result<(), String> {
        let mut first: Option<(String, Vec<u32>)> = None;
        for entry in entries {
            let name = entry.contender.name().to_owned();
            let answers = entry.contender.answers().map_err(|why| format!("{name}: {why}"))?;
            differs(&name, &answers, "the twin", self.right)?;
            match &first {
                None => first = Some((name, answers)),
                Some((other, right)) if answers.len() == right.len() => {
                    differs(&name, &answers, other, right)?;
                }
                Some((other, right)) => {
                    let (count, expected) = (answers.len(), right.len());
                    return Err(format!("{name} answers {count} queries, and {other} {expected}"));
                }
            }
        }
        Ok(())
    }

    /// Finds out how many passes a run is for each, and lets them take turns.
    fn run(&self, entries: &mut [Entry<'_>]) -> Result<Vec<Lane>, String> {
        let mut lanes = Vec::new();
        for (index, entry) in entries.iter_mut().enumerate() {
            let batches: &[usize] = if entry.way == Way::Bulk { &BATCHES } else { &[BATCH_MAX] };
            for &batch in batches {
                let once = named(entry, |contender| contender.passes(batch, 1))?;
                let passes = (self.seconds / once.seconds.max(1e-9)).ceil().clamp(1.0, 1e9) as u64;
                lanes.push(Lane { entry: index, batch, passes, rates: Vec::new(), sum: once.sum });
            }
        }
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        for _ in 0..self.runs {
            for &index in &order {
                let lane = &mut lanes[index];
                let entry = &mut entries[lane.entry];
                let timed = named(entry, |contender| contender.passes(lane.batch, lane.passes))?;
                if timed.sum != lane.sum.wrapping_mul(lane.passes) {
                    return Err(format!(
                        "{} answers otherwise than before in a timed run",
                        entry.contender.name()
                    ));
                }
                lane.rates.push(self.amount * lane.passes as f64 / timed.seconds.max(1e-9));
            }
            order.reverse();
        }
        for lane in &lanes {
            let alike = lanes.iter().filter(|other| other.batch == lane.batch);
            if let Some(other) = alike.clone().find(|other| other.sum != lane.sum) {
                let name = |lane: &Lane| entries[lane.entry].contender.name().to_owned();
                return Err(format!("{} and {} differ in the sum of a timed run", name(lane), name(other)));
            }
        }
        Ok(lanes)
    }

    /// The rows of one way to look up: our best against every other, and the rest of ours against the best
    /// other.
    fn report(&self, entries: &[Entry<'_>], lanes: &[Lane], way: Way) -> Vec<Row> {
        // The best batch of each contender, the fastest contender first.
        let mut best: Vec<(&Lane, Figure)> = Vec::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.way == way) {
            let figures = lanes.iter().filter(|lane| lane.entry == index);
            let figures = figures.filter_map(|lane| Some((lane, Figure::of(lane.rates.iter().copied())?)));
            let one = figures.max_by(|a, b| a.1.median.total_cmp(&b.1.median));
            debug_assert!(one.is_some(), "{} has no runs", entry.contender.name());
            best.extend(one);
        }
        best.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
        let (ours, others): (Vec<_>, Vec<_>) =
            best.into_iter().partition(|(lane, _)| entries[lane.entry].ours);
        let label = |lane: &Lane| {
            let name = entries[lane.entry].contender.name();
            if way == Way::Bulk { format!("{name}, batches of {}", lane.batch) } else { name.to_owned() }
        };
        let what = match way {
            Way::Bulk => "bulk",
            Way::Single => "single",
            Way::Scan => "all matches",
        };
        let mut rows = Vec::new();
        for (rank, (lane, figure)) in ours.iter().enumerate() {
            // Labels hold commas only where they cannot be taken for parts of a case.
            let case = format!("{}, {}", self.case, label(lane).replace(", ", " in "));
            let against = if rank == 0 { &others[..] } else { &others[..others.len().min(1)] };
            let mut goals = if rank == 0 { self.goals.to_vec() } else { Vec::new() };
            for (lane, other) in against {
                let name = entries[lane.entry].contender.name();
                let goal =
                    goals.iter().position(|(wanted, _)| way != Way::Single && name.starts_with(wanted));
                let what = match goal.map(|goal| goals.remove(goal)) {
                    Some((_, goal)) => format!("{what}; wanted: {goal}"),
                    None => what.to_owned(),
                };
                let row = Row::alone(&case, &what, self.unit, Some(figure.clone()), None);
                rows.push(row.against(Some(Other::of(&label(lane), other.clone())), Better::More));
            }
            if against.is_empty() {
                rows.push(Row::alone(&case, what, self.unit, Some(figure.clone()), None));
            }
        }
        rows
    }
}

fn named<T>(
    entry: &mut Entry<'_>,
    act: impl FnOnce(&mut dyn Contender) -> Result<T, String>,
) -> Result<T, String> {
    act(entry.contender.as_mut()).map_err(|why| format!("{}: {why}", entry.contender.name()))
}

/// Says where answers are not what they should be; the shorter list tells how far is looked.
fn differs(name: &str, answers: &[u32], other: &str, right: &[u32]) -> Result<(), String> {
    let word = |answer: u32| if answer == NONE { "nothing".to_owned() } else { answer.to_string() };
    match answers.iter().zip(right).position(|(answer, right)| answer != right) {
        Some(place) => Err(format!(
            "{name} answers {} to query {place}, and {other} {}",
            word(answers[place]),
            word(right[place])
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a contender answers to a query, and with which list of right answers it is judged.
    fn rows(others: &[fn(u32) -> u32], right: &[u32]) -> Vec<Row> {
        let keys: Vec<u32> = (0..1000).collect();
        let contender = |name: &str, answer: fn(u32) -> u32| {
            InProcess::new(name, &keys, 1, move |keys, answers: &mut [u32]| {
                keys.iter().zip(answers).for_each(|(key, to)| *to = answer(*key));
            })
        };
        let mut entries = vec![Entry::ours(Way::Bulk, contender("ours", |key| key / 2))];
        for (name, answer) in ["first other", "second other"].iter().zip(others) {
            entries.push(Entry::other(Way::Bulk, contender(name, *answer)));
        }
        let goals = [("", 1.1)];
        let contest = Contest {
            case: "halves",
            amount: 0.001,
            unit: "M/s",
            right,
            runs: 3,
            seconds: 0.0,
            goals: &goals,
        };
        contest.rows(&mut entries)
    }

    #[test]
    fn who_answers_alike_is_timed() {
        let rows = rows(&[|key| key / 2, |key| key >> 1], &[0, 0, 1, 1]);
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert!(row.ours.as_ref().is_some_and(|ours| ours.low > 0.0) && row.ratio.is_some(), "{row:?}");
            assert!(row.case.starts_with("halves, ours in batches of "), "{}", row.case);
        }
        assert_eq!((&rows[0].what[..], &rows[1].what[..]), ("bulk; wanted: 1.1", "bulk"));
    }

    #[test]
    fn one_wrong_answer_takes_all_figures_away() {
        let rows = rows(&[|key| key / 2, |key| if key == 777 { NONE } else { key / 2 }], &[]);
        assert_eq!(rows.len(), 1);
        assert!(rows[0].ours.is_none());
        let why = "second other answers nothing to query 777, and ours 388";
        assert!(rows[0].what.contains(why), "{}", rows[0].what);
    }

    #[test]
    fn the_twin_judges_ours() {
        let rows = rows(&[], &[0, 0, 1, 2]);
        assert!(rows[0].what.contains("ours answers 1 to query 3, and the twin 2"), "{}", rows[0].what);
    }

    #[test]
    fn answers_that_change_while_time_is_taken_are_noticed() {
        let keys: Vec<u32> = (0..100).collect();
        let mut calls = 0_u32;
        let drifting = InProcess::new("drifting", &keys, 1, |_, answers: &mut [u32]| {
            calls += 1;
            answers.fill(if calls > 20 { calls } else { 0 });
        });
        let contest = Contest {
            case: "drift",
            amount: 1.0,
            unit: "M/s",
            right: &[],
            runs: 20,
            seconds: 0.0,
            goals: &[],
        };
        let rows = contest.rows(&mut [Entry::ours(Way::Single, drifting)]);
        assert!(rows[0].what.contains("drifting answers otherwise than before"), "{}", rows[0].what);
    }
}
