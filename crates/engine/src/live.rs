//! The packet loop over live ports, on one worker or several, and the requests by which the control plane
//! reads and changes it.
//!
//! Every worker has its own lane of each port, its own program with tables, and its own account. It runs its
//! loop (`live/worker.rs`) without locks. Requests reach all workers in the same order, and a worker answers
//! them between two batches.

mod crew;
mod crossing;
mod generation;
mod guarded_share;
mod host_packets;
mod host_share;
pub mod look;
#[cfg(feature = "observe")]
mod measure;
mod observed;
mod open_checksums;
mod punts;
pub mod recent;
mod rest;
mod ring;
#[cfg(feature = "observe")]
mod stage_costs;
mod stand_still;
mod state;
#[cfg(feature = "observe")]
mod subscribe;
#[cfg(feature = "observe")]
mod tail_drop;
mod two_phase;
pub mod urgency;
#[cfg(feature = "observe")]
pub mod watch;
mod worker;

pub use crew::{Core, Ended, run};
pub use crossing::{load_steering, parcel_memory, worker_of};
pub use generation::{Generation, Loaded, PortLosses};
#[cfg(feature = "observe")]
pub use measure::{Latency, Measurement, Stop, StopCost};
pub use punts::{Injected, PuntQueue, Punted, PuntedPackets, Urgency, Urgent};
pub use recent::{Example, Recent};
pub use rest::Halves;
#[cfg(feature = "observe")]
pub use stage_costs::{MeasuredStage, ProgramCosts};
pub use state::remembered;
#[cfg(feature = "observe")]
pub use subscribe::{Subscription, SubscriptionWish, Told, ToldOf};
#[cfg(feature = "observe")]
pub use tail_drop::{LoopEnded, TailDropReceiver};
#[cfg(feature = "observe")]
pub use watch::{Seen, WatchEnded, Watching, Wish};
pub use worker::LiveWorker;

use exec::replace::{ReplaceError, TakeoverReport, make_ready, take_over};
use look::{Counted, Look};
#[cfg(feature = "observe")]
use measure::Measuring;
use ports::live::clock::Clock;
use ports::live::{Bell, Lane};
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
#[cfg(feature = "observe")]
use subscribe::Subscriber;
use two_phase::Vote;
#[cfg(feature = "observe")]
use watch::Watcher;

/// A function that a worker runs on its generation between two batches; it also gets the losses at the ports
/// since the generation took over.
type Question = Box<dyn FnOnce(&mut Generation, &[PortLosses]) + Send>;

/// Work on a worker's generation that takes several turns: it is called once between two batches until it
/// says that it is finished.
type Work = Box<dyn FnMut(&mut Generation) -> bool + Send>;

/// A request that a worker handles between two batches.
enum Request {
    /// Read or change the state of the program.
    Ask(Question),
    /// The same a part at a time, with batches in between. Requests behind it wait until it is finished.
    Work(Work),
    /// Copy what the program has counted.
    Look(Look),
    /// Let another program take over, if it can do so at all workers.
    Replace(Box<Takeover>),
    /// Send frames of control, in this order.
    Send(Vec<Injected>),
    /// Send frames of the machine, in this order, or run the program over them if it decides about them; with
    /// `cut`, over the packets that segments stand for. Whoever waits for that hears that `sent` has gone.
    FromHost { frames: Vec<Injected>, cut: bool, sent: mpsc::Sender<()> },
    /// Copy punted packets into this queue from now on, instead of an earlier one.
    Punts(PuntQueue),
    /// Watch packets.
    #[cfg(feature = "observe")]
    Watch(Box<Watcher>),
    /// Pass on events and punted packets.
    #[cfg(feature = "observe")]
    Subscribe(Box<Subscriber>),
    /// Measure where time goes.
    #[cfg(feature = "observe")]
    Measure(Box<Measuring>),
    /// Stand still, so that another process can go on.
    Rest(rest::Rest),
    /// Stop the worker.
    Stop,
}

/// The result of a takeover at one worker: what was taken over, with the old generation; or why nothing was,
/// if this worker knows it, with the new generation.
type TakenOver = Result<(TakeoverReport, Generation), (Option<ReplaceError>, Generation)>;

/// Other ports, for one worker: for each port that there is then, its lane, or `None` if it stays.
pub struct OtherPorts(pub Vec<Option<Lane>>);

/// What a worker answers about a takeover: its number, what became of the programs, the lanes of ports that
/// are not needed any more, and for how long it took no packets.
type TakeoverAnswer = (usize, TakenOver, Vec<Lane>, Duration);

/// One worker's part of a takeover.
struct Takeover {
    new: Generation,
    discard: Arc<[String]>,
    /// The ports that there are behind it, if they change.
    ports: Option<OtherPorts>,
    vote: Vote,
    answer: mpsc::Sender<TakeoverAnswer>,
    worker: usize,
}

impl Takeover {
    /// Replaces the old program by the new one, and then the ports by `change`, which returns lanes that are
    /// not needed any more; or leaves everything unchanged.
    fn perform(
        self,
        generation: &mut Generation,
        mut lost: Vec<PortLosses>,
        now: u64,
        change: impl FnOnce(OtherPorts) -> Vec<Lane>,
    ) {
        let Takeover { mut new, discard, ports, vote, answer, worker } = self;
        let begun = Instant::now();
        let (old, old_program) = (generation.backend.as_mut(), &generation.program);
        let taken = take_over(old, old_program, new.backend.as_mut(), &new.program, &discard, now);
        let all = vote.cast(taken.is_ok());
        let unused = |ports: Option<OtherPorts>| {
            ports.map_or_else(Vec::new, |ports| ports.0.into_iter().flatten().collect())
        };
        let (taken_over, lanes) = match taken {
            Ok((mut report, exchanged)) if all => {
                report.events_given_up = exchanged.keep(generation.backend.as_mut(), new.backend.as_mut());
                // What is new has lost nothing yet.
                if let Some(OtherPorts(ports)) = &ports {
                    let anew = lost.iter_mut().zip(ports).filter(|(_, lane)| lane.is_some());
                    anew.for_each(|(lost, _)| *lost = PortLosses::default());
                }
                lost.resize(usize::from(new.ledger.ports()), PortLosses::default());
                (new.since, new.lost_before) = (Instant::now(), lost);
                std::mem::swap(generation, &mut new);
                (Ok((report, new)), ports.map_or_else(Vec::new, change))
            }
            Ok((_, exchanged)) => {
                exchanged.undo(generation.backend.as_mut(), new.backend.as_mut());
                (Err((None, new)), unused(ports))
            }
            Err(error) => (Err((Some(error), new)), unused(ports)),
        };
        // Whoever asked may have gone.
        let _ = answer.send((worker, taken_over, lanes, begun.elapsed()));
    }
}

/// The result of a takeover, with the generations that are not needed any more: the old ones, or after a
/// failure the new ones.
pub struct Replaced {
    /// What was taken over at every worker, or why the old program goes on.
    pub outcome: Result<Vec<TakeoverReport>, ReplaceError>,
    /// The generations that are not needed any more, worker by worker.
    pub retired: Vec<Generation>,
    /// The lanes of ports that are not needed any more: of those that went, or after a failure of those that
    /// were to come.
    pub lanes: Vec<Lane>,
    /// The longest time for which a worker took no packets off its ports.
    pub pause: Duration,
}

/// A handle by which other threads send requests to the workers.
#[derive(Clone)]
pub struct Remote {
    lines: Arc<Mutex<Vec<Line>>>,
}

/// The connection to one worker.
struct Line {
    requests: mpsc::Sender<Request>,
    bell: Bell,
}

impl Line {
    /// Sends a request. Returns whether the worker still runs.
    fn request(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        self.bell.ring();
        sent
    }
}

/// Makes workers over the lanes of ports, and the handle for requests to them. Each inner list has the lanes
/// of one worker, port 1 first. The clock gives the time of programs.
///
/// # Errors
/// Linux gives no further file descriptor.
pub fn workers(lanes: Vec<Vec<Lane>>, clock: &Arc<dyn Clock>) -> io::Result<(Vec<LiveWorker>, Remote)> {
    let mut lines = Vec::new();
    let mut workers = Vec::new();
    for lanes in lanes {
        let (worker, line) = LiveWorker::new(lanes, clock.clone())?;
        workers.push(worker);
        lines.push(line);
    }
    let bells: Vec<Bell> = lines.iter().map(|line| line.bell.clone()).collect();
    for (worker, crossing) in workers.iter_mut().zip(crossing::crossings(&bells)) {
        worker.meets(crossing);
    }
    Ok((workers, Remote { lines: Arc::new(Mutex::new(lines)) }))
}

impl Remote {
    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.lines().len()
    }

    /// Runs `look` on each worker's generation, and returns the results worker by worker; `None` if a worker
    /// has ended.
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

    /// As [`Remote::ask`], with one argument for each worker.
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

    /// Runs `step` on each worker's generation, once between every two batches, until it has a result; each
    /// worker begins with a state from `begin`. Returns the results worker by worker; `None` if a worker has
    /// ended. Requests that are made later wait until a worker has finished this one.
    pub fn ask_in_steps<S: Send + 'static, T: Send + 'static>(
        &self,
        begin: impl Fn() -> S,
        step: impl Fn(&mut Generation, &mut S) -> Option<T> + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let step = Arc::new(step);
        self.gather(|answer| {
            let (step, mut state, mut answer) = (step.clone(), begin(), Some(answer));
            Some(Request::Work(Box::new(move |generation| {
                let result = step(generation, &mut state);
                let finished = result.is_some();
                if let Some((result, answer)) = result.and_then(|result| Some((result, answer.take()?))) {
                    answer(result);
                }
                finished
            })))
        })
    }

    /// Runs `look` on the generation of one worker, counted from 0; `None` if the worker has ended or does
    /// not exist.
    pub fn ask_at<T: Send + 'static>(
        &self,
        worker: usize,
        look: impl FnOnce(&mut Generation) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answers) = mpsc::channel();
        let question: Question = Box::new(move |generation, _| {
            // Whoever asked may have gone.
            let _ = answer.send(look(generation));
        });
        self.lines().get(worker)?.request(Request::Ask(question)).then_some(())?;
        answers.recv().ok()
    }

    /// What each worker has counted for the running program, worker by worker; `None` if a worker has ended.
    /// Workers copy this in parts, so that a part takes no longer than [`look::CELLS`] cells.
    pub fn look(&self) -> Option<Vec<Counted>> {
        loop {
            let parts = self.gather(|answer| Some(Request::Look(answer)))?;
            // Another program may take over between the answers of two workers; then they are asked anew.
            if parts.windows(2).all(|two| two[0].number == two[1].number) {
                return Some(parts);
            }
        }
    }

    /// Lets another program take over at all workers, or at none; `None` if a worker has ended. There is one
    /// generation for each worker.
    pub fn replace(&self, generations: Vec<Generation>, discard: Vec<String>) -> Option<Replaced> {
        self.replace_with_ports(generations, discard, Vec::new())
    }

    /// The same together with other ports, for each worker, or for none if they stay. The generations have as
    /// many ports as there are then.
    pub fn replace_with_ports(
        &self,
        generations: Vec<Generation>,
        discard: Vec<String>,
        ports: Vec<OtherPorts>,
    ) -> Option<Replaced> {
        self.replace_when(generations, discard, ports, || ())
    }

    /// The same; `asked_for` is called when all workers have been asked, before their answers are waited for.
    fn replace_when(
        &self,
        generations: Vec<Generation>,
        discard: Vec<String>,
        ports: Vec<OtherPorts>,
        asked_for: impl FnOnce(),
    ) -> Option<Replaced> {
        let mut ports = ports.into_iter();
        let discard: Arc<[String]> = discard.into();
        let (answer, answers) = mpsc::channel();
        let mut votes = Vote::of_all(generations.len() as u32);
        let mut generations = generations.into_iter();
        let asked = self.each(|worker| {
            let (new, vote) = (generations.next()?, votes.pop()?);
            let (discard, answer) = (discard.clone(), answer.clone());
            let ports = ports.next();
            Some(Request::Replace(Box::new(Takeover { new, discard, ports, vote, answer, worker })))
        });
        drop((votes, answer));
        asked_for();
        let mut answers: Vec<_> = answers.iter().collect();
        answers.sort_by_key(|&(worker, ..)| worker);
        if !asked || answers.len() < self.workers() {
            return None;
        }
        let (mut outcome, mut retired, mut lanes) = (Ok(Vec::new()), Vec::new(), Vec::new());
        let mut longest = Duration::ZERO;
        for (_, taken_over, unused, pause) in answers {
            longest = longest.max(pause);
            lanes.extend(unused);
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
        Some(Replaced { outcome, retired, lanes, pause: longest })
    }

    /// Lets all workers stand still between two batches. Requests that are made later wait until they go on.
    pub fn rest(&self) -> Resting {
        let (workers, rounds) = (self.workers(), Arc::new(AtomicUsize::new(0)));
        let mut all = Vec::new();
        // One that has ended does not answer.
        let _ = self.each(|_| {
            let (turns, taken) = mpsc::channel();
            all.push(turns);
            Some(Request::Rest(rest::Rest { rounds: rounds.clone(), workers, turns: taken }))
        });
        Resting { remote: self.clone(), turns: all, stays: false }
    }

    /// Provides the memory of a program that is to take over, before workers stand still for it: so many
    /// bytes of tables that begin anew, at all workers together. `None` if a worker has ended.
    pub fn make_ready(&self, loaded: &mut Loaded, bytes: u64) -> Option<()> {
        let parts = self.ask(|generation, _| {
            let tables = generation.backend.running_tables();
            (generation.program.clone(), tables.iter().map(|table| table.entries).collect::<Vec<_>>())
        })?;
        let bytes = bytes / parts.len().max(1) as u64;
        for (new, (old, held)) in loaded.backends.iter_mut().zip(parts) {
            make_ready(&old, &held, new.as_mut(), &loaded.program, bytes);
        }
        Some(())
    }

    /// Sends frames by ports, in this order and past the program. Returns whether the worker still runs; a
    /// frame for a port that does not exist is lost.
    pub fn send(&self, frames: Vec<Injected>) -> bool {
        // One worker sends all frames of the control plane, so that they stay in order.
        self.lines().first().is_some_and(|line| line.request(Request::Send(frames)))
    }

    /// Sends frames that the machine sends as a host at ports, and waits until that has happened. A program
    /// that decides about packets of the machine runs over them; with `cut`, over the packets that a long
    /// segment stands for. Otherwise they leave by their ports as [`Remote::send`] sends frames. Whoever
    /// sends much has no more than these frames before the worker, which takes them between two batches.
    pub fn send_from_host(&self, frames: Vec<Injected>, cut: bool) -> bool {
        let (sent, done) = mpsc::channel();
        let request = Request::FromHost { frames, cut, sent };
        let asked = self.lines().first().is_some_and(|line| line.request(request));
        // Nothing is ever sent: the worker lets go of the other end.
        let _ = done.recv();
        asked
    }

    /// A queue with copies of all packets that the program punts from now on; an earlier queue gets no more
    /// packets. A packet that finds no room, or has no share while others wait, is counted in
    /// [`Generation::punts_lost`]. Urgent packets have room of their own, and need no share.
    pub fn punts(&self, urgency: Urgency) -> mpsc::Receiver<PuntedPackets> {
        let (queue, packets) = PuntQueue::new(urgency);
        self.each(|_| Some(Request::Punts(queue.another())));
        packets
    }

    /// Ends all workers between two batches.
    pub fn stop(&self) {
        self.each(|_| Some(Request::Stop));
    }

    /// Sends a request to every worker, and returns the answers, worker by worker, or `None` if a worker has
    /// ended.
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

    /// Sends a request to every worker. Returns whether all workers still run. Requests that are made at the
    /// same time come to all workers in the same order.
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

/// Workers that stand still, or are about to. They go on when this is dropped.
pub struct Resting {
    remote: Remote,
    turns: Vec<mpsc::Sender<rest::Turn>>,
    /// Whether they do not go on when this is dropped.
    stays: bool,
}

impl Resting {
    /// Runs `turn` on each worker's generation and ports, with one argument for each worker, and returns the
    /// results worker by worker; `None` if a worker has ended.
    pub fn each<S: Send + 'static, T: Send + 'static>(
        &self,
        meant: Vec<S>,
        turn: impl Fn(&mut Generation, Halves<'_>, S) -> T + Send + Sync + 'static,
    ) -> Option<Vec<T>> {
        let turn = Arc::new(turn);
        let answers: Vec<_> = self
            .turns
            .iter()
            .zip(meant)
            .map(|(turns, meant)| {
                let (turn, (answer, answers)) = (turn.clone(), mpsc::channel());
                // Whoever asked may have gone, and the worker may have ended.
                let asked: rest::Turn =
                    Box::new(move |generation, ports| drop(answer.send(turn(generation, ports, meant))));
                let _ = turns.send(asked);
                answers
            })
            .collect();
        answers.into_iter().map(|answers| answers.recv().ok()).collect()
    }

    /// Lets the workers stand still until the process ends, unless another program [takes
    /// over](Resting::replace).
    pub fn stay(&mut self) {
        self.stays = true;
    }

    /// Lets another program take over before the first packet, as [`Remote::replace`] does, and the workers
    /// go on.
    pub fn replace(mut self, generations: Vec<Generation>) -> Option<Replaced> {
        let turns = std::mem::take(&mut self.turns);
        self.remote.replace_when(generations, Vec::new(), Vec::new(), || drop(turns))
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        if self.stays {
            std::mem::forget(std::mem::take(&mut self.turns));
        }
    }
}

#[cfg(test)]
mod tests;
