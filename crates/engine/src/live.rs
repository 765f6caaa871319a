//! The packet loop over live ports, on one worker or several, and the requests by which control asks and
//! changes it.
//!
//! Every worker has its own lane of each port, its own program with tables, and its own account. It runs its
//! loop (`live/worker.rs`) without locks. Requests reach all workers in the same order, and a worker answers
//! them between two batches.

mod crew;
mod generation;
pub mod look;
mod measure;
mod punts;
pub mod recent;
mod stage_costs;
mod state;
mod two_phase;
pub mod watch;
mod worker;

pub use crew::{Core, run};
pub use generation::{Generation, Loaded, PortLosses};
pub use measure::{Latency, Measurement, Stop, StopCost};
pub use punts::{Injected, PuntQueue, Punted, Urgency, Urgent};
pub use recent::{Example, Recent};
pub use stage_costs::{MeasuredStage, ProgramCosts};
pub use state::remembered;
pub use watch::{Seen, WatchEnded, Watching, Wish};
pub use worker::LiveWorker;

use crate::filter::Filter;
use exec::replace::{ReplaceError, TakeoverReport, make_ready, take_over};
use exec::{Backend, Draft};
use lang::ir::Program;
use look::{Counted, Look};
use measure::Measuring;
use ports::live::clock::Clock;
use ports::live::{Bell, Lane};
use stage_costs::Sampling;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use two_phase::Vote;
use watch::Watcher;

/// A question to a generation that is asked between two batches, and what was lost at the ports since it took
/// over.
type Question = Box<dyn FnOnce(&mut Generation, &[PortLosses]) + Send>;

/// What is asked of a worker between two batches.
enum Request {
    /// To look at, or change, the state of the program.
    Ask(Question),
    /// To tell what the program has counted.
    Look(Look),
    /// To let another program take over, should it do so at all workers.
    Replace(Box<Takeover>),
    /// To send frames, in this order.
    Send(Vec<Injected>),
    /// To copy punted packets into this queue from now on, in place of the one before.
    Punts(PuntQueue),
    /// To show packets.
    Watch(Box<Watcher>),
    /// To measure where time goes.
    Measure(Box<Measuring>),
    /// To stop.
    Stop,
}

/// How one worker's part of a replacement ended: what went over with the old part, or why nothing did, if
/// this worker knows, with the new one.
type TakenOver = Result<(TakeoverReport, Generation), (Option<ReplaceError>, Generation)>;

/// One worker's part of a replacement.
struct Takeover {
    new: Generation,
    discard: Arc<[String]>,
    vote: Vote,
    answer: mpsc::Sender<(usize, TakenOver, Duration)>,
    worker: usize,
}

impl Takeover {
    /// Puts the new program in the place of the old one, or leaves everything as it was.
    fn perform(self, generation: &mut Generation, lost: Vec<PortLosses>, now: u64) {
        let Takeover { mut new, discard, vote, answer, worker } = self;
        let begun = Instant::now();
        let old: (&mut dyn Backend, &Program) = (generation.backend.as_mut(), &generation.program);
        let taken = take_over(old, (new.backend.as_mut(), &new.program), &discard, now);
        let all = vote.cast(taken.is_ok());
        let taken_over = match taken {
            Ok((mut report, exchanged)) if all => {
                report.events_given_up = exchanged.keep(generation.backend.as_mut(), new.backend.as_mut());
                (new.since, new.lost_before) = (Instant::now(), lost);
                std::mem::swap(generation, &mut new);
                Ok((report, new))
            }
            Ok((_, exchanged)) => {
                exchanged.undo(generation.backend.as_mut(), new.backend.as_mut());
                Err((None, new))
            }
            Err(error) => Err((Some(error), new)),
        };
        // Whoever asked may have gone.
        let _ = answer.send((worker, taken_over, begun.elapsed()));
    }
}

/// How a replacement ended, with the generations that are of no more use: the old ones, or where it failed
/// the new ones.
pub struct Replaced {
    /// What went over from every worker, or why the old program goes on.
    pub outcome: Result<Vec<TakeoverReport>, ReplaceError>,
    /// What is of no more use, worker by worker.
    pub retired: Vec<Generation>,
    /// For how long the worker that stood longest took no packets off its ports.
    pub pause: Duration,
}

/// Asks workers that run on other threads.
#[derive(Clone)]
pub struct Remote {
    lines: Arc<Mutex<Vec<Line>>>,
}

/// The way to one worker.
struct Line {
    requests: mpsc::Sender<Request>,
    bell: Bell,
}

impl Line {
    /// Says whether the worker still runs.
    fn request(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        self.bell.ring();
        sent
    }
}

/// Workers over the lanes of ports, of which each inner list is one worker's, port 1 first, whose programs
/// run by this clock; and how to ask them.
///
/// # Errors
/// The kernel gives no further descriptor.
pub fn workers(lanes: Vec<Vec<Lane>>, clock: &Arc<dyn Clock>) -> io::Result<(Vec<LiveWorker>, Remote)> {
    let mut lines = Vec::new();
    let mut workers = Vec::new();
    for lanes in lanes {
        let (worker, line) = LiveWorker::new(lanes, clock.clone())?;
        workers.push(worker);
        lines.push(line);
    }
    Ok((workers, Remote { lines: Arc::new(Mutex::new(lines)) }))
}

impl Remote {
    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.lines().len()
    }

    /// What `look` finds in, or does to, each worker's part of the program that runs, worker by worker;
    /// `None` where one has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        look: impl Fn(&mut Generation, &[PortLosses]) -> T + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let look = Arc::new(look);
        self.gather(|answer| {
            let look = look.clone();
            Some(Request::Ask(Box::new(move |generation, losses| answer(look(generation, losses)))))
        })
    }

    /// As [`Remote::ask`], each worker with what is meant for it, of which there is one for each.
    pub fn ask_each<S: Send + 'static, T: Send + 'static>(
        &self,
        meant: Vec<S>,
        look: impl Fn(&mut Generation, S) -> T + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let (look, mut meant) = (Arc::new(look), meant.into_iter());
        self.gather(|answer| {
            let (look, meant) = (look.clone(), meant.next()?);
            Some(Request::Ask(Box::new(move |generation, _| answer(look(generation, meant)))))
        })
    }

    /// What each worker's part of the program that runs has counted, worker by worker; `None` where one has
    /// ended. It is told a part at a time, and costs packets as little as [`look::CELLS`] says.
    pub fn look(&self) -> Option<Vec<Counted>> {
        self.gather(|answer| Some(Request::Look(answer)))
    }

    /// Lets another program take over at all workers, or at none; `None` where one has ended. There is one
    /// generation for each worker.
    pub fn replace(&self, mut generations: Vec<Generation>, discard: Vec<String>) -> Option<Replaced> {
        self.make_ready(&mut generations)?;
        let discard: Arc<[String]> = discard.into();
        let (answer, answers) = mpsc::channel();
        let mut votes = Vote::of_all(generations.len() as u32);
        let mut generations = generations.into_iter();
        let asked = self.each(|worker| {
            let (new, vote) = (generations.next()?, votes.pop()?);
            let (discard, answer) = (discard.clone(), answer.clone());
            Some(Request::Replace(Box::new(Takeover { new, discard, vote, answer, worker })))
        });
        drop((votes, answer));
        let mut answers: Vec<_> = answers.iter().collect();
        answers.sort_by_key(|&(worker, ..)| worker);
        if !asked || answers.len() < self.workers() {
            return None;
        }
        let (mut outcome, mut retired, mut longest) = (Ok(Vec::new()), Vec::new(), Duration::ZERO);
        for (_, taken_over, pause) in answers {
            longest = longest.max(pause);
            match taken_over {
                Ok((report, old)) => {
                    outcome = outcome.map(|mut all| {
                        all.push(report);
                        all
                    });
                    retired.push(old);
                }
                Err((error, new)) => {
                    outcome = error.map_or(outcome, Err);
                    retired.push(new);
                }
            }
        }
        Some(Replaced { outcome, retired, pause: longest })
    }

    /// What takes over has its memory before workers stand; `None` where one has ended.
    fn make_ready(&self, generations: &mut [Generation]) -> Option<()> {
        let parts = self.ask(|generation, _| {
            let tables = generation.backend.running_tables();
            (generation.program.clone(), tables.iter().map(|table| table.entries).collect::<Vec<_>>())
        })?;
        for (new, (old, held)) in generations.iter_mut().zip(parts) {
            make_ready(&old, &held, (new.backend.as_mut(), &new.program));
        }
        Some(())
    }

    /// Sends frames by ports, in this order and past the program. Says whether the worker still runs; a frame
    /// for a port that does not exist is lost.
    pub fn send(&self, frames: Vec<Injected>) -> bool {
        // Always the same worker: what control sends stays in order.
        self.lines().first().is_some_and(|line| line.request(Request::Send(frames)))
    }

    /// Copies of all packets that the program punts from now on; whoever asked before gets no more. A packet
    /// that finds no room is counted in [`Generation::punts_lost`]. Those that are urgent find room whatever
    /// else waits.
    pub fn punts(&self, urgency: Urgency) -> mpsc::Receiver<Punted> {
        let (queue, packets) = PuntQueue::new(urgency);
        self.each(|_| Some(Request::Punts(queue.clone())));
        packets
    }

    /// Packets that a filter holds for, from now on; one filter for each worker, which are all the same.
    /// `None` where one has ended.
    pub fn watch(&self, filters: Vec<Filter>, wish: Wish) -> Option<Watching> {
        let (watchers, watching) = watch::watch(filters, wish);
        let mut watchers = watchers.into_iter();
        self.each(|_| Some(Request::Watch(Box::new(watchers.next()?)))).then_some(watching)
    }

    /// Measures for so long where time goes at all workers, and waits for it; `None` where one has ended.
    /// Where the variant of the program that measures its stages is missing, it is compiled first, by the
    /// caller's thread.
    pub fn measure(&self, duration: Duration) -> Option<Measurement> {
        let parts = self.ask(|generation, _| {
            let Generation { number, program, sources, backend, .. } = generation;
            (*number, program.clone(), sources.clone(), backend.inspect().and_then(|inspect| inspect.draft()))
        })?;
        let (number, program, sources) = parts.first().map(|(n, p, s, _)| (*n, p.clone(), s.clone()))?;
        let mut unmeasured = None;
        let mut samplings = Vec::with_capacity(parts.len());
        for (number, program, _, draft) in parts {
            let measured = draft.map(Draft::compile).transpose().unwrap_or_else(|error| {
                unmeasured = Some(error.to_string());
                None
            });
            samplings.push(Sampling::new(number, &program, measured));
        }
        let mut samplings = samplings.into_iter();
        let parts = self.gather(|answer| {
            let sampling = samplings.next()?;
            Some(Request::Measure(Box::new(Measuring::new(duration, sampling, Box::new(answer)))))
        })?;
        let mut measurement = parts.into_iter().reduce(|mut all, part| {
            all += part;
            all
        })?;
        measurement.stages.tell_of(number, program, sources);
        measurement.unmeasured = unmeasured;
        Some(measurement)
    }

    /// Ends all workers between two batches.
    pub fn stop(&self) {
        self.each(|_| Some(Request::Stop));
    }

    /// Makes a request of every worker, which answers by what it is handed; the answers, worker by worker, or
    /// `None` where one has ended.
    fn gather<T: Send + 'static>(
        &self,
        mut request: impl FnMut(Box<dyn FnOnce(T) + Send>) -> Option<Request>,
    ) -> Option<Vec<T>> {
        let (sender, answers) = mpsc::channel();
        let asked = self.each(|worker| {
            let sender = sender.clone();
            request(Box::new(move |answer| {
                // Whoever asked may have gone.
                let _ = sender.send((worker, answer));
            }))
        });
        drop(sender);
        let mut answers: Vec<(usize, T)> = answers.iter().collect();
        answers.sort_by_key(|&(worker, _)| worker);
        (asked && answers.len() == self.workers())
            .then(|| answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// Hands a request to every worker; says whether all still run. Requests that are made at the same time
    /// come to all workers in one order.
    fn each(&self, mut request: impl FnMut(usize) -> Option<Request>) -> bool {
        let mut all = true;
        for (worker, line) in self.lines().iter().enumerate() {
            all &= request(worker).is_some_and(|request| line.request(request));
        }
        all
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
