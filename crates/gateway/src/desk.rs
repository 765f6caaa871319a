//! Where clients of a running gateway are answered: each on a thread of its own, away from the packets.

use crate::config::Config;
use crate::control::{self, Answer, Asked, Picture, PortPicture};
use crate::routing::Routing;
use crate::{http, metrics, seeing};
use engine::live::{Generation, Loaded, PortLosses, Remote};
use engine::{Figures, Imbalance, Ledger, Report, Setting, Times, places};
use lang::ir::Program;
use lang::source::Sources;
use ports::live::Presence;
use rustix::net::{Shutdown, shutdown};
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown as StreamShutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// How many clients are answered at once; further ones are turned away.
const CLIENTS: usize = 16;
/// How long to wait when no client can be taken, as when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// What a gateway is made from, read again whenever it is asked for.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The file that describes it, or what is wrong with it, in words.
    pub config: &'a (dyn Fn() -> Result<Config, String> + Sync),
    /// The program that such a file names, loaded for its ports and workers, with the entries of the files that it names; or why that is not possible,
    /// in words.
    pub load: &'a (dyn Fn(&Config) -> Result<Loaded, String> + Sync),
}

/// What the threads that answer need.
pub(crate) struct Desk<'a> {
    remote: Remote,
    reader: Reader<'a>,
    /// What it runs by.
    config: Mutex<Config>,
    /// Name of every port, its mode at first, and whether its interface is there.
    ports: Vec<(String, String, Arc<Presence>)>,
    pub(crate) routing: Routing,
    /// How many programs have taken over; locked while one does.
    generations: Mutex<u64>,
    clients: Mutex<HashMap<u64, UnixStream>>,
    visits: AtomicU64,
    pub(crate) ended: AtomicBool,
    /// Where the metrics can be asked for.
    pub(crate) metrics: Option<TcpListener>,
}

/// Sends all clients away and stops taking new ones when it goes, however the packet loop ended.
pub(crate) struct Closing<'a>(pub(crate) &'a Desk<'a>, pub(crate) &'a UnixListener);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Closing(desk, listener) = self;
        desk.ended.store(true, Ordering::SeqCst);
        // Where it is shut already nobody waits at it.
        let _ = shutdown(listener, Shutdown::Both);
        if let Some(metrics) = &desk.metrics {
            let _ = shutdown(metrics, Shutdown::Both);
        }
        for client in desk.clients().values() {
            // It may have gone by itself.
            let _ = client.shutdown(StreamShutdown::Both);
        }
    }
}

impl<'a> Desk<'a> {
    pub(crate) fn new(
        remote: Remote,
        reader: Reader<'a>,
        config: Config,
        ports: Vec<(String, String, Arc<Presence>)>,
        routing: Routing,
    ) -> Desk<'a> {
        Desk {
            remote,
            reader,
            config: Mutex::new(config),
            ports,
            routing,
            generations: Mutex::new(1),
            clients: Mutex::default(),
            visits: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            metrics: None,
        }
    }

    /// Answers clients until the packet loop has ended.
    pub(crate) fn open<'s>(&'s self, scope: &'s thread::Scope<'s, '_>, listener: &UnixListener) {
        if let Some(server) = &self.metrics {
            scope.spawn(move || {
                let page = |method: &str, path: &str| metrics::page(method, path, &|| self.picture());
                http::serve(server, &self.ended, &page);
            });
        }
        for stream in listener.incoming() {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let Some((visit, stream)) = stream.ok().and_then(|stream| self.enter(stream)) else {
                thread::sleep(PAUSE);
                continue;
            };
            if visit.is_none() {
                let text = format!("{CLIENTS} clients are being answered already: ask again later");
                // A client that goes away is no matter.
                let _ = control::say(&stream, &Answer::Error(text));
                continue;
            }
            scope.spawn(move || {
                let _visit = visit;
                // A client that goes away, or says nothing, is no matter.
                if control::converse(&stream, &mut |asked, say| self.answer(asked, say)).unwrap_or(false) {
                    self.remote.stop();
                }
            });
        }
    }

    /// Notes who is there, unless too many are; `None` where descriptors have run out.
    fn enter(&self, stream: UnixStream) -> Option<(Option<Visit<'_>>, UnixStream)> {
        let mut clients = self.clients();
        if clients.len() >= CLIENTS {
            return Some((None, stream));
        }
        let number = self.visits.fetch_add(1, Ordering::Relaxed);
        clients.insert(number, stream.try_clone().ok()?);
        // Whoever closes the desk shuts the streams that it finds after saying so.
        if self.ended.load(Ordering::SeqCst) {
            let _ = stream.shutdown(StreamShutdown::Both);
        }
        Some((Some(Visit(self, number)), stream))
    }

    fn answer(&self, asked: Asked, say: &mut dyn FnMut(&Answer) -> io::Result<()>) -> Answer {
        match asked {
            Asked::Picture => match self.picture() {
                Ok(picture) => Answer::Picture(Box::new(picture)),
                Err(error) => Answer::Error(error),
            },
            Asked::Watch(wanted) => seeing::watch(&self.remote, &wanted, say),
            Asked::Why { filter, last } => seeing::why(&self.remote, &filter, last),
            Asked::Reload => self.reload(),
            Asked::Routes => Answer::Routes(Box::new(self.routing.routes())),
            Asked::Neighbours => Answer::Neighbours(Box::new(self.routing.neighbours())),
            Asked::Measure { seconds } => self.measure(seconds),
            Asked::Stop => Answer::Done("stopping".to_owned()),
        }
    }

    fn picture(&self) -> Result<Picture, String> {
        let ended = || "the packet loop has ended".to_owned();
        let parts = self.remote.ask(Snapshot::of).ok_or_else(ended)?;
        let whole = Snapshot::whole(parts).ok_or_else(ended)?;
        let (number, losses, lost) = (whole.number, whole.losses.clone(), whole.punts_lost.clone());
        let (seconds, program) = (whole.age.as_secs_f64(), whole.program.clone());
        let places = places::of_reasons(&program, &whole.sources);
        let report = whole.report(&self.program()).map_err(|error| error.to_string())?;
        let named = |places: Vec<String>, name: &str| (!places.is_empty()).then(|| (name.to_owned(), places));
        Ok(Picture {
            seconds,
            generation: number,
            report,
            reasons: (program.reasons.iter())
                .map(|reason| (reason.name.clone(), reason.help.clone()))
                .collect(),
            places: (program.reasons.iter().zip(places))
                .filter_map(|(reason, places)| named(places, &reason.name))
                .collect(),
            workers: u64::from(self.config().workers.count),
            punt_queue_full: lost.iter().sum(),
            punts_lost: (program.reasons.iter().zip(lost))
                .filter(|(_, lost)| *lost > 0)
                .map(|(reason, lost)| (reason.name.clone(), lost))
                .collect(),
            ports: self.pictures(&losses),
        })
    }

    fn reload(&self) -> Answer {
        let count = self.ports.len() as u16;
        // One after the other, from reading on: what was read last is what runs in the end.
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let read = (self.reader.config)().and_then(|config| {
            self.config().takes(&config).map_err(|error| error.to_string())?;
            let loaded = (self.reader.load)(&config)?;
            config.workers.suit(&loaded.program).map_err(|error| error.to_string())?;
            Ok((config, loaded))
        });
        let (config, mut loaded) = match read {
            Ok(read) => read,
            Err(error) => return Answer::Error(format!("{error}\nnothing has changed")),
        };
        // From here on nothing changes routes or neighbours until the program has taken over or not.
        let staged = self.routing.stage(&loaded.program, &config.routing);
        let staged = staged.map_err(|error| config.explain(error).to_string()).and_then(|staged| {
            loaded.processors.iter_mut().try_for_each(|processor| staged.fill(processor.as_mut()))?;
            Ok(staged)
        });
        let staged = match staged {
            Ok(staged) => staged,
            Err(error) => return Answer::Error(format!("{error}\nnothing has changed")),
        };
        let replaced = self.remote.replace(loaded.generations(count, *generations + 1), Vec::new());
        let Some(replaced) = replaced else { return ended() };
        match replaced.outcome {
            Ok(carried) => {
                staged.commit();
                *generations += 1;
                *self.config() = config;
                let entries: u64 =
                    carried.iter().flat_map(|part| &part.tables).map(|(_, entries)| entries).sum();
                let packets: u64 = replaced.retired.iter().map(|old| old.ledger.received().packets).sum();
                let pause = replaced.pause.as_micros();
                Answer::Done(format!(
                    "the program took over after {packets} packets of the one before, in {pause} µs; {entries} entries went over"
                ))
            }
            Err(error) => Answer::Error(format!("{error}; nothing has changed")),
        }
    }

    fn measure(&self, seconds: f64) -> Answer {
        if !(0.01..=60.0).contains(&seconds) {
            return Answer::Error("`seconds`: between 0.01 and 60".to_owned());
        }
        match self.remote.measure(Duration::from_secs_f64(seconds)) {
            Some(measurement) => Answer::Measure(Box::new(measurement)),
            None => ended(),
        }
    }

    /// The ports with what was lost at each, if anybody has asked yet.
    pub(crate) fn pictures(&self, losses: &[Lost]) -> Vec<PortPicture> {
        let losses = losses.iter().copied().chain(std::iter::repeat(Lost::default()));
        (1..)
            .zip(&self.ports)
            .zip(losses)
            .map(|((port, (interface, mode, presence)), losses)| PortPicture {
                port,
                interface: interface.clone(),
                mode: presence.mode().unwrap_or_else(|| mode.clone()),
                gone_seconds: presence.gone_since().map(seconds_since),
                gone_because: presence.refused(),
                vanished: presence.vanished(),
                losses: losses.since_takeover,
                since_attached: losses.since_attached,
            })
            .collect()
    }

    /// How the packet loop is asked.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The program's file.
    pub(crate) fn program(&self) -> String {
        self.config().program.display().to_string()
    }

    fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u64, UnixStream>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since a time in nanoseconds since 1970-01-01 UTC.
fn seconds_since(time: u64) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(time)).as_secs_f64()
}

/// A client that is being answered.
struct Visit<'a>(&'a Desk<'a>, u64);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.clients().remove(&self.1);
    }
}

fn ended() -> Answer {
    Answer::Error("the packet loop has ended".to_owned())
}

/// What was lost at a port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    since_takeover: PortLosses,
    since_attached: PortLosses,
}

/// What a worker tells of its part of a program between two batches. Everything that is made from it is made elsewhere.
pub(crate) struct Snapshot {
    program: Arc<Program>,
    sources: Arc<Sources>,
    number: u64,
    age: Duration,
    ledger: Ledger,
    figures: Figures,
    losses: Vec<Lost>,
    punts_lost: Vec<u64>,
}

impl Snapshot {
    pub(crate) fn of(generation: &mut Generation, losses: &[PortLosses]) -> Snapshot {
        Snapshot {
            program: generation.program.clone(),
            sources: generation.sources.clone(),
            number: generation.number,
            age: generation.since.elapsed(),
            ledger: generation.ledger.clone(),
            figures: Figures::of(&generation.program, generation.processor.as_ref()),
            losses: losses.iter().zip(generation.lost_before()).map(lost).collect(),
            punts_lost: generation.punts_lost.clone(),
        }
    }

    /// All workers' parts as one.
    pub(crate) fn whole(parts: Vec<Snapshot>) -> Option<Snapshot> {
        parts.into_iter().reduce(|mut whole, part| {
            whole.ledger.add(&part.ledger);
            whole.figures.add(&whole.program, &part.figures);
            whole.age = whole.age.max(part.age);
            for (lost, more) in whole.losses.iter_mut().zip(&part.losses) {
                lost.since_takeover += more.since_takeover;
                lost.since_attached += more.since_attached;
            }
            for (lost, more) in whole.punts_lost.iter_mut().zip(&part.punts_lost) {
                *lost += more;
            }
            whole
        })
    }

    pub(crate) fn report(self, program: &str) -> Result<Report, Imbalance> {
        let setting = Setting { program: program.to_owned(), ..Setting::default() };
        let times = Times { packets: self.age, ..Times::default() };
        Report::of(setting, &self.program, &self.ledger, self.figures, times)
    }
}

fn lost((&since_takeover, &before): (&PortLosses, &PortLosses)) -> Lost {
    let mut since_attached = before;
    since_attached += since_takeover;
    // What waits now is no sum over time.
    since_attached.receive.waiting = since_takeover.receive.waiting;
    since_attached.send.waiting = since_takeover.send.waiting;
    Lost { since_takeover, since_attached }
}
