//! Starting a gateway: ports, program, packet loop and control, in this order; and ending it in the other.

use crate::config::Config;
use crate::control::{self, Answer, Asked, Picture, PortPicture};
use engine::live::{Generation, LiveWorker, Remote, Request};
use engine::{Imbalance, Report, Setting, Times};
use exec::Processor;
use lang::ir::Program;
use ports::live::{AttachError, attach};
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// How many clients are answered at once; further ones are turned away.
const CLIENTS: usize = 16;

/// A program, loaded for as many ports as it is asked for, or why that is not possible, in words.
pub type Load<'a> = dyn Fn(u16) -> Result<(Program, Box<dyn Processor>), String> + Sync + 'a;

/// Why a gateway does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// a port
    #[error("port {port}: {source}")]
    Attach {
        /// Its number.
        port: u16,
        /// Why it cannot be attached.
        source: AttachError,
    },
    /// the program
    #[error("{0}")]
    Program(String),
    /// the control socket
    #[error("cannot be asked at {path}: {source}; `control` in the file names another place")]
    Control {
        /// The socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// the packet loop
    #[error("the packet loop ended: {0}")]
    Loop(io::Error),
    /// the account
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
}

/// How a gateway ended.
pub struct Served {
    /// The account of the last program.
    pub report: Report,
}

/// What the thread that answers needs.
struct Desk<'a> {
    remote: Remote,
    load: &'a Load<'a>,
    program: String,
    /// Name and mode of every port.
    ports: Vec<(String, String)>,
    generations: AtomicU64,
    clients: AtomicUsize,
    ended: AtomicBool,
}

/// Runs a gateway until it is asked to stop. `started` is called once packets run, with the ports' modes and a way to stop.
///
/// # Errors
/// What is wrong with the ports, the program or the socket; then no packet has been taken.
pub fn serve(
    config: &Config,
    load: &Load<'_>,
    started: impl FnOnce(&[PortPicture], Remote),
) -> Result<Served, ServeError> {
    let count = config.ports.len() as u16;
    let (program, processor) = load(count).map_err(ServeError::Program)?;
    let listening = control::listen(&config.control)
        .map_err(|source| ServeError::Control { path: config.control.display().to_string(), source })?;
    let (mut ports, mut lanes) = (Vec::new(), Vec::new());
    for (number, wanted) in (1..).zip(&config.ports) {
        let attached =
            attach(wanted, number, 1).map_err(|source| ServeError::Attach { port: number, source })?;
        ports.push((attached.name, attached.mode));
        lanes.extend(attached.lanes);
    }
    let (worker, remote) = LiveWorker::new(lanes).map_err(ServeError::Loop)?;
    let desk = Desk {
        remote: remote.clone(),
        load,
        program: config.program.display().to_string(),
        ports,
        generations: AtomicU64::new(1),
        clients: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
    };
    let generation = Generation::new(program, processor, count);
    let last = thread::scope(|scope| {
        scope.spawn(|| desk.answer(scope, &listening.listener));
        started(&desk.pictures(&[]), remote);
        let last = worker.run(generation);
        desk.ended.store(true, Ordering::Relaxed);
        // The thread that answers waits for somebody to come.
        let _ = UnixStream::connect(&config.control);
        last
    })
    .map_err(ServeError::Loop)?;
    Ok(Served { report: report(&desk.program, &last)? })
}

impl Desk<'_> {
    /// Answers every client on a thread of its own, until the packet loop has ended.
    fn answer<'s>(&'s self, scope: &'s thread::Scope<'s, '_>, listener: &UnixListener) {
        for stream in listener.incoming() {
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            if self.clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
                self.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            scope.spawn(move || {
                // A client that goes away, or says nothing, is no matter.
                if control::converse(&stream, &mut |asked| self.answer_one(asked)).unwrap_or(false) {
                    self.remote.request(Request::Stop);
                }
                self.clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    fn answer_one(&self, asked: Asked) -> Answer {
        match asked {
            Asked::Picture => self.picture(),
            Asked::Reload => self.reload(),
            Asked::Stop => Answer::Done("stopping".to_owned()),
        }
    }

    fn picture(&self) -> Answer {
        let program = self.program.clone();
        let looked = self.remote.ask(move |generation, losses| {
            let reasons = &generation.program.reasons;
            let reasons = reasons.iter().map(|reason| (reason.name.clone(), reason.help.clone())).collect();
            (report(&program, generation), generation.since.elapsed(), losses.to_vec(), reasons)
        });
        match looked.and_then(|mut answers| answers.pop()) {
            Some((Ok(report), since, losses, reasons)) => Answer::Picture(Box::new(Picture {
                seconds: since.as_secs_f64(),
                generation: self.generations.load(Ordering::Relaxed),
                report,
                reasons,
                ports: self.pictures(&losses),
            })),
            Some((Err(error), ..)) => Answer::Error(error.to_string()),
            None => Answer::Error("the packet loop has ended".to_owned()),
        }
    }

    fn reload(&self) -> Answer {
        let count = self.ports.len() as u16;
        let (program, processor) = match (self.load)(count) {
            Ok(loaded) => loaded,
            Err(error) => return Answer::Error(format!("{error}\nnothing has changed")),
        };
        match self.remote.replace(Generation::new(program, processor, count), Vec::new()) {
            Some(Ok((carried, old))) => {
                self.generations.fetch_add(1, Ordering::Relaxed);
                let entries: u64 = carried.tables.iter().map(|(_, entries)| entries).sum();
                let packets = old.ledger.received().packets;
                Answer::Done(format!(
                    "the program took over after {packets} packets of the one before; {entries} entries went over"
                ))
            }
            Some(Err((error, _))) => Answer::Error(format!("{error}; nothing has changed")),
            None => Answer::Error("the packet loop has ended".to_owned()),
        }
    }

    fn pictures(&self, losses: &[engine::live::PortLosses]) -> Vec<PortPicture> {
        let losses = losses.iter().copied().chain(std::iter::repeat(Default::default()));
        (1..)
            .zip(&self.ports)
            .zip(losses)
            .map(|((port, (interface, mode)), losses)| PortPicture {
                port,
                interface: interface.clone(),
                mode: mode.clone(),
                losses,
            })
            .collect()
    }
}

fn report(program: &str, generation: &Generation) -> Result<Report, Imbalance> {
    let setting = Setting { program: program.to_owned(), ..Setting::default() };
    let times = Times { packets: generation.since.elapsed(), ..Times::default() };
    Report::new(setting, &generation.program, &generation.ledger, generation.processor.as_ref(), times)
}
