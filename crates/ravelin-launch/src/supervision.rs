//! Supervises the other processes: starts them, starts again what dies, and goes on with interfaces that are
//! there again.
//!
//! ```text
//!           ┌────────────── the core ends: at once, later if it ends soon after its start ─┐
//!           ▼                                                                              │
//! ports ─► core starts ─► locked ─► compile starts ─► a program takes over ────────────────┤
//!                              └──► control starts ◄─┐ it ends                             │
//!                                        └───────────┘                                     │
//! SIGHUP: compile starts again                       SIGTERM, SIGINT: everything ends
//! ```

use crate::arguments::Settings;
use crate::children::Core;
use confinement::{ProcessEnd, Role, SeparateError};
use messages::launch::CoreReport;
use messages::listening::listen;
use ports::live::AttachError;
use ports::live::handed_over::OpenedPort;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether interfaces are there.
const LOOK: Duration = Duration::from_millis(200);
/// A process that ends within this time of its start is started again after a while.
const SOON: Duration = Duration::from_secs(1);
/// How long a while is: twice as long each time, up to the second.
const WHILE: Duration = Duration::from_millis(100);
const LONGEST_WHILE: Duration = Duration::from_secs(5);

/// Why the gateway ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// a port cannot be opened
    #[error("{0}")]
    Port(#[from] AttachError),
    /// a process cannot be started
    #[error("{} cannot be started: {source}", program.display())]
    Start {
        /// Its program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// a process cannot be started apart
    #[error("{0}; `--without` with the name of a layer does without it")]
    Separate(#[from] SeparateError),
    /// the control socket cannot be made
    #[error("cannot be asked at {}: {source}; `control` in the file names another place", path.display())]
    Control {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// the system refuses
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What the supervisor hears of.
pub(crate) enum Event {
    /// A process has ended.
    Ended(Role, io::Result<ProcessEnd>),
    /// The core reports.
    Report(CoreReport),
    /// A signal came.
    Signal(i32),
}

/// How soon after its start a process ended, again and again.
struct Patience {
    since: Instant,
    wait: Duration,
}

impl Patience {
    fn new() -> Patience {
        Patience { since: Instant::now(), wait: Duration::ZERO }
    }

    /// The process has ended: waits for as long as it is to be waited before it starts again.
    fn exercise(&mut self) {
        self.wait = match self.since.elapsed() < SOON {
            true => (self.wait * 2).clamp(WHILE, LONGEST_WHILE),
            false => Duration::ZERO,
        };
        thread::sleep(self.wait);
        self.since = Instant::now();
    }
}

/// Runs a gateway until a signal ends it.
///
/// # Errors
/// A port cannot be opened at the start, or a process cannot be started.
pub(crate) fn supervise(settings: &Settings) -> Result<(), LaunchError> {
    let open = |wanted| OpenedPort::open(wanted, settings.workers);
    let mut ports = settings.ports.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let listening = listen(&settings.control)
        .map_err(|source| LaunchError::Control { path: settings.control.clone(), source })?;
    let (events, heard) = mpsc::channel();
    heed_signals(&events)?;
    let (mut core_patience, mut control_patience) = (Patience::new(), Patience::new());
    let mut core = Core::start(settings, &ports, &events)?;
    // Whether the core has locked itself in, so that it hears others; and how many processes answer for it.
    let (mut locked, mut controls) = (false, 0u32);
    let mut away = vec![false; ports.len()];
    loop {
        match heard.recv_timeout(LOOK) {
            Ok(Event::Signal(SIGHUP)) => {
                told(Role::Compile, core.compile(settings, &events));
            }
            Ok(Event::Signal(_)) => return Ok(()),
            Ok(Event::Report(report)) => {
                tell(&report);
                if let CoreReport::Locked { .. } = report {
                    locked = true;
                    told(Role::Compile, core.compile(settings, &events));
                    if controls == 0 {
                        controls += told(Role::Control, core.control(settings, &listening.listener, &events));
                    }
                }
            }
            Ok(Event::Ended(Role::Core, ended)) => {
                eprintln!("ravelin-launch: {}", ending(Role::Core, &ended));
                locked = false;
                core = restarted(settings, &ports, &events, &mut core_patience);
            }
            Ok(Event::Ended(Role::Control, ended)) => {
                controls = controls.saturating_sub(1);
                // It ends with its core; the next core gets another one.
                if locked && controls == 0 {
                    eprintln!("ravelin-launch: {}", ending(Role::Control, &ended));
                    control_patience.exercise();
                    controls += told(Role::Control, core.control(settings, &listening.listener, &events));
                }
            }
            Ok(Event::Ended(Role::Compile, ended)) => {
                if !matches!(ended, Ok(ProcessEnd::Exited(0))) {
                    eprintln!("ravelin-launch: {}", ending(Role::Compile, &ended));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        for ((port, wanted), (away, number)) in
            ports.iter_mut().zip(&settings.ports).zip(away.iter_mut().zip(1..))
        {
            look(port, wanted, away, number, &mut core, settings.workers);
        }
    }
}

/// A core in place of one that ended, as soon as one can be had.
fn restarted(
    settings: &Settings,
    ports: &[OpenedPort],
    events: &Sender<Event>,
    patience: &mut Patience,
) -> Core {
    loop {
        patience.exercise();
        match Core::start(settings, ports, events) {
            Ok(core) => return core,
            Err(error) => eprintln!("ravelin-launch: core: {error}"),
        }
    }
}

/// Says why a process could not be started for the core, and how many were: if the core is gone, the next one
/// gets its own.
fn told(role: Role, started: Result<(), LaunchError>) -> u32 {
    match started {
        Ok(()) => 1,
        Err(error) => {
            eprintln!("ravelin-launch: {}: {error}", role.name());
            0
        }
    }
}

/// Where the interface of a port has gone, whatever is there of its name is opened and handed over.
fn look(
    port: &mut OpenedPort,
    wanted: &ports::live::WantedPort,
    away: &mut bool,
    number: u16,
    core: &mut Core,
    workers: u16,
) {
    if port.is_there() {
        return;
    }
    if !std::mem::replace(away, true) {
        eprintln!("ravelin-launch: port {number}: {} is gone", wanted.interface);
    }
    // Whatever is in the way now, it may be gone the next time.
    let Ok(opened) = OpenedPort::open(wanted, workers) else { return };
    *port = opened;
    *away = false;
    match core.renew(number, port, workers) {
        Ok(()) => eprintln!("ravelin-launch: port {number}: {} is there again", wanted.interface),
        Err(error) => eprintln!("ravelin-launch: port {number}: {error}"),
    }
}

/// Says what the core reports.
fn tell(report: &CoreReport) {
    match report {
        CoreReport::Locked { layers } if layers.is_empty() => {
            eprintln!("core: runs, and drops every packet until a policy is there");
        }
        CoreReport::Locked { layers } => {
            eprintln!(
                "core: locked in by {}; it drops every packet until a policy is there",
                layers.join(", ")
            );
        }
        CoreReport::Activated { hash, number } => {
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("core: program {number} runs, sha256 {hash}");
        }
        CoreReport::Refused { why } => eprintln!("core: what ran goes on: {why}"),
    }
}

/// Says how a process ended.
fn ending(role: Role, ended: &io::Result<ProcessEnd>) -> String {
    let name = role.name();
    match ended {
        Ok(ProcessEnd::REFUSED) => {
            format!("{name} asked Linux for what it may not have, and was ended: a fault or an attack")
        }
        Ok(ProcessEnd::Signalled(signal)) => format!("{name} was ended by signal {signal}"),
        Ok(ProcessEnd::Exited(status)) => format!("{name} ended with {status}"),
        Err(error) => format!("{name} cannot be waited for: {error}"),
    }
}

fn heed_signals(events: &Sender<Event>) -> Result<(), LaunchError> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let events = events.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
