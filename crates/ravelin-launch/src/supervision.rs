//! Supervises the other processes: starts them, starts again what dies, and goes on with interfaces that are
//! there again.
//!
//! ```text
//!           ┌────────────── the core ends, and with it what was started for it ────────────┐
//!           ▼                                                                              │
//! ports ─► core starts ─► locked ─► compile starts ─► a program takes over ────────────────┤
//!                              │         └─◄─┘ it dies before that                         │
//!                              ├──► control starts ◄─┐ it ends                             │
//!                              │         └───────────┘                                     │
//!                              └──► front starts ◄─┐ it ends, as with each end of control  │
//!                                        └─────────┘                                       │
//!
//! SIGHUP: compile starts again                       SIGTERM, SIGINT: everything ends
//! SIGUSR2: another core starts, and takes over from the one that runs
//! ```
//!
//! Where policies need no signature, a core that follows one which died gets what `compile` gave before, and
//! `compile` does not start.
//!
//! A core that runs native code cannot make any once it is locked in. There, what `compile` gives goes to
//! another core, which takes over likewise.
//!
//! What ends is started again at once, and later if it ends soon after its start again and again. Nothing
//! waits for that: signals, ports and the other processes go on.

use crate::arguments::Settings;
use crate::children::{ControlSockets, Core, HasKept, Successor};
use crate::closing::Closing;
use crate::compiled::{Compiled, LastProgram};
use crate::error::LaunchError;
use crate::kept::Store;
use crate::machines::{MachineEvent, MachineLink, Shared};
use crate::port::{Port, patiently};
use crate::reported::{Reported, What};
use crate::restart::Restart;
use crate::said::say;
use crate::sockets;
use crate::tunnels::TunnelLink;
use confinement::{ProcessEnd, Role};
use messages::limits::{READY_WITHIN, TAKEN_OVER_WITHIN};
use messages::listening::Listening;
use ports::live::FrameShare;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether interfaces are there.
const LOOK: Duration = Duration::from_millis(200);
/// How much of what was heard may wait: a core that says more waits itself.
const MOST_EVENTS: usize = 64;

/// What the supervisor hears of.
pub(crate) enum Event {
    /// The process of this number has ended.
    Ended(Role, i32, io::Result<ProcessEnd>),
    /// The core of this number reports.
    Report(u64, Reported),
    /// What `compile` gave has come.
    Compiled {
        /// The number of the core for which it is.
        core: u64,
        /// Which one it is of those that this core is handed in.
        number: u64,
        compiled: Compiled,
    },
    /// Something was kept, or not, that the core of this number reported.
    Kept(u64, HasKept),
    /// Something of the machine at the port of this number.
    Machine(u16, MachineEvent),
    /// A signal came.
    Signal(i32),
}

/// A gateway while it runs.
struct Supervisor<'a> {
    settings: &'a Settings,
    ports: Vec<Port<'a>>,
    /// Those of ports that are linked to virtual machines by vhost-user.
    machines: Vec<MachineLink>,
    /// Those of ports that are tunnels.
    tunnels: Vec<TunnelLink<'a>>,
    /// How often a port was handed over anew.
    renewals: u64,
    /// When it was tried last to open interfaces that were away, and to hand them over.
    looked: Instant,
    /// Nothing if it could not be made again.
    listening: Option<Listening>,
    /// Whether a process has had it.
    listened: bool,
    /// What keeps policies, where they have to be signed.
    store: Option<Arc<Store>>,
    events: SyncSender<Event>,
    core: Option<Core>,
    /// What closes the sockets of cores that have died.
    closing: Closing,
    /// A core that is to take over.
    successor: Option<Pending>,
    /// Whether one is wanted, with the program that runs.
    wants_successor: bool,
    /// How many cores were started.
    cores: u64,
    /// The core has locked itself in, so that it hears others.
    locked: bool,
    /// It has had a program.
    active: bool,
    /// What runs, or ran last, as `compile` gave it.
    last: LastProgram,
    core_restart: Restart,
    compile_restart: Restart,
    control_restart: Restart,
    front_restart: Restart,
    /// The socket at which the first front listens.
    front_listens: Option<TcpListener>,
    /// The socket at which the first `control` is asked for metrics.
    metrics_listens: Option<TcpListener>,
}

/// A core that is to take over from the one that runs.
struct Pending {
    core: Core,
    /// With another program than the one that runs.
    brings_program: bool,
    /// It has locked itself in.
    locked: bool,
    /// When it is given up.
    until: Instant,
}

/// Runs a gateway until a signal ends it.
///
/// # Errors
/// A port cannot be opened at the start, or a process cannot be started.
pub(crate) fn supervise(settings: &Settings) -> Result<(), LaunchError> {
    if settings.native {
        say(
            "ravelin-launch: the core is of the native tier: Cranelift, a compiler, is within the trusted part",
        );
    }
    let frames = patiently(|| Ok(FrameShare::of_all(&settings.ports, settings.workers)?))?;
    let ports = settings.ports.iter().zip(frames);
    let ports = ports.map(|(wanted, frames)| Port::open(wanted, frames, settings));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    let store = settings.trust.as_ref().map(|trust| {
        let failed = |source| LaunchError::Keep { folder: trust.keep_in.clone(), source };
        Ok::<_, LaunchError>(Arc::new(Store::open(&trust.keep_in).map_err(failed)?))
    });
    let store = store.transpose()?;
    let listening = Some(sockets::of_control_at_start(&settings.control)?);
    let front_listens = settings.front.as_ref().map(sockets::of_front).transpose()?;
    let metrics_listens = settings.metrics.map(sockets::of_metrics).transpose()?;
    let tunnels = TunnelLink::all(settings)?;
    let (events, heard) = mpsc::sync_channel(MOST_EVENTS);
    heed_signals(&events)?;
    let machines = (1..).zip(&ports);
    let machines = machines.map(|(number, port)| MachineLink::expect(number, port, settings, &events));
    let machines = machines.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let mut supervisor = Supervisor {
        settings,
        ports,
        machines,
        tunnels,
        renewals: 0,
        looked: Instant::now(),
        listening,
        listened: false,
        store,
        events,
        core: None,
        closing: Closing::default(),
        successor: None,
        wants_successor: false,
        cores: 0,
        locked: false,
        active: false,
        last: LastProgram::default(),
        core_restart: Restart::new(),
        compile_restart: Restart::new(),
        control_restart: Restart::new(),
        front_restart: Restart::new(),
        front_listens,
        metrics_listens,
    };
    patiently(|| supervisor.start_core())?;
    loop {
        match heard.recv_timeout(supervisor.left()) {
            Ok(Event::Signal(SIGHUP)) => {
                supervisor.last.read_anew();
                supervisor.compile_restart.at = Some(Instant::now());
            }
            Ok(Event::Signal(SIGUSR2)) => supervisor.wants_successor = true,
            Ok(Event::Signal(_)) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(Event::Report(number, report)) => supervisor.heard(number, &report),
            Ok(Event::Compiled { core, number, compiled }) => {
                if let Some(core) = core_of(core, &mut supervisor.core, &mut supervisor.successor) {
                    core.handed_in().arrived(number, compiled);
                }
            }
            Ok(Event::Kept(number, kept)) => supervisor.kept(number, kept),
            Ok(Event::Machine(port, event)) => supervisor.machine(port, event),
            Ok(Event::Ended(role, id, ended)) => supervisor.ended(role, id, &ended),
            Err(RecvTimeoutError::Timeout) => {}
        }
        supervisor.restart();
        supervisor.look();
    }
}

impl Supervisor<'_> {
    /// How long nothing is to be done if nothing is heard. What is for a core waits until one is there.
    fn left(&self) -> Duration {
        let mut left = self.core_restart.left(LOOK);
        left = self.tunnels.iter().fold(left, |most, tunnel| tunnel.left(most));
        if let Some(successor) = &self.successor {
            left = left.min(successor.until.saturating_duration_since(Instant::now()));
        }
        let of_core = [&self.compile_restart, &self.control_restart, &self.front_restart];
        of_core.into_iter().filter(|_| self.locked).fold(left, |most, restart| restart.left(most))
    }

    fn start_core(&mut self) -> Result<(), LaunchError> {
        // The one before it is ended first, with all that was started for it.
        (self.core, self.successor, self.wants_successor) = (None, None, false);
        self.cores += 1;
        (self.locked, self.active) = (false, false);
        (self.compile_restart, self.control_restart) = (Restart::new(), Restart::new());
        self.front_restart = Restart::new();
        // What was shared before, nobody uses any more.
        self.machines.iter_mut().for_each(MachineLink::unused);
        self.core =
            Some(Core::start(self.settings, &self.ports, self.cores, self.store.as_ref(), &self.events)?);
        // It has all ports as they are now; of machines it is told once more what they share.
        for port in self.ports.iter_mut().filter(|port| !port.wanted.is_by_vhost()) {
            port.handed_over = true;
        }
        Ok(())
    }

    /// Starts what is to be started now.
    fn restart(&mut self) {
        if self.core_restart.is_due()
            && let Err(error) = self.start_core()
        {
            say(&format!("ravelin-launch: core: {error}"));
            self.core_restart.failed();
        }
        for tunnel in &mut self.tunnels {
            tunnel.restart(&self.ports, self.settings, &self.events);
        }
        if self.successor.as_ref().is_some_and(|successor| successor.until <= Instant::now()) {
            say("ravelin-launch: the core that was to take over is not ready in time, and is ended");
            self.give_up(true);
        }
        if self.core.is_none() || !self.locked {
            return;
        }
        if self.successor.is_none() && std::mem::take(&mut self.wants_successor) {
            self.start_successor(Successor::Same);
        }
        if self.settings.native {
            if self.successor.is_none() && self.compile_restart.is_due() {
                self.start_successor(Successor::Compiled(self.last.to_hand_in()));
            }
        } else if self.compile_restart.is_due()
            && let Some(core) = &mut self.core
            && let Err(error) = core.compile(self.settings, self.last.to_hand_in(), &self.events)
        {
            say(&format!("ravelin-launch: compile: {error}"));
            self.compile_restart.failed();
        }
        if self.control_restart.is_due()
            && let Err(error) = self.start_control()
        {
            say(&format!("ravelin-launch: control: {error}"));
            self.control_restart.failed();
        }
        if self.front_restart.is_due()
            && let Err(error) = self.start_front()
        {
            say(&format!("ravelin-launch: front: {error}"));
            self.front_restart.failed();
        }
    }

    /// Starts the front with a socket that none before it had.
    fn start_front(&mut self) -> Result<(), LaunchError> {
        let (Some(core), Some(front)) = (&mut self.core, &self.settings.front) else { return Ok(()) };
        let listener = self.front_listens.take().map_or_else(|| sockets::of_front(front), Ok)?;
        core.front(self.settings, front, listener, &self.events)
    }

    /// Starts a core that takes over from the one that runs.
    fn start_successor(&mut self, successor: Successor) {
        let brings_program = matches!(successor, Successor::Compiled(_));
        let Supervisor { core: Some(core), settings, store, events, cores, .. } = self else { return };
        *cores += 1;
        match core.start_successor(settings, successor, *cores, store.as_ref(), events) {
            Ok(core) => {
                let until = Instant::now() + READY_WITHIN;
                self.successor = Some(Pending { core, brings_program, locked: false, until });
            }
            Err(error) => {
                say(&format!("ravelin-launch: a core that takes over: {error}"));
                if brings_program {
                    self.compile_restart.ended();
                }
            }
        }
    }

    /// Ends a core that was to take over. If there is no other, one starts anew. With `again`, the program
    /// that it was to bring is compiled once more: nothing was wrong with it.
    fn give_up(&mut self, again: bool) {
        let Some(given_up) = self.successor.take() else { return };
        if self.core.is_none() {
            self.core_restart.ended();
        } else if again && given_up.brings_program {
            self.compile_restart.ended();
        }
    }

    /// A core has taken over: the one before it ends, with what was started for it.
    fn took_over(&mut self) {
        let Some(successor) = self.successor.take() else { return };
        let mut core = successor.core;
        // Meanwhile an interface may have gone.
        for (port, number) in self.ports.iter().zip(1..) {
            if !port.handed_over && !port.wanted.is_by_vhost() {
                core.let_go(number);
            }
        }
        self.core = Some(core);
        self.machines.iter_mut().for_each(MachineLink::taken_over);
        (self.locked, self.active) = (true, true);
        self.core_restart = Restart::new();
        let now = Some(Instant::now());
        self.control_restart.at = now;
        self.front_restart.at = now.filter(|_| self.settings.front.is_some());
    }

    /// Starts `control` with sockets that none before it had.
    fn start_control(&mut self) -> Result<(), LaunchError> {
        let Some(core) = &mut self.core else { return Ok(()) };
        if self.listened {
            self.listening = None;
        }
        let listening = match self.listening.take() {
            Some(listening) => listening,
            None => sockets::of_control(&self.settings.control)?,
        };
        self.listened = true;
        core.end_control();
        let metrics = match (self.metrics_listens.take(), self.settings.metrics) {
            (None, Some(at)) => sockets::of_metrics(at)
                // Users of the control socket are answered nevertheless.
                .map_err(|error| say(&format!("ravelin-launch: until control starts again, {error}")))
                .ok(),
            (first, _) => first,
        };
        let port = |number: u16| self.ports.get(usize::from(number).wrapping_sub(1));
        let routes = self.settings.routes_of.and_then(port).and_then(|port| {
            // Neighbours are found nevertheless.
            let told =
                |error| say(&format!("ravelin-launch: the container's routes are not followed: {error}"));
            port.hears_routes().map_err(told).ok()
        });
        let listener = &self.listening.insert(listening).listener;
        core.control(self.settings, listener, ControlSockets { metrics, routes }, &self.events)
    }

    /// Says what became of what the core wanted kept.
    fn kept(&mut self, number: u64, kept: HasKept) {
        let HasKept { newest, is_policy, failed } = &kept;
        match failed {
            Some(why) => say(&format!(
                "ravelin-launch: version {newest} is not on the disk: {why}; with an end of the gateway it is forgotten"
            )),
            None if *is_policy => say(&format!("ravelin-launch: policy version {newest} is kept")),
            None => {}
        }
        if let Some(core) = self.core.as_mut().filter(|core| core.is(number)) {
            // If it is gone, its end is heard of.
            let _ = core.has_kept(kept);
        }
    }

    /// A core reports.
    fn heard(&mut self, number: u64, reported: &Reported) {
        if let Some(successor) = self.successor.as_mut().filter(|successor| successor.core.is(number)) {
            match reported.what {
                What::Locked => {
                    let until = Instant::now() + TAKEN_OVER_WITHIN;
                    successor.until = successor.until.min(until);
                    successor.locked = true;
                    return;
                }
                What::TookOver if !successor.locked => return,
                What::TookOver => self.took_over(),
                // It says so only of what it took over with.
                What::Activated { .. } => return,
                What::Refused => self.reported(number, false),
                What::Renewed { .. } => return,
            }
            return say(&reported.line);
        }
        if !self.core.as_ref().is_some_and(|core| core.is(number)) {
            return;
        }
        match reported.what {
            // A core that was taken over may say it again and again.
            What::Locked if self.locked => return,
            What::Locked => {
                self.locked = true;
                let now = Some(Instant::now());
                (self.compile_restart.at, self.control_restart.at) = (now, now);
                self.front_restart.at = now.filter(|_| self.settings.front.is_some());
            }
            What::Activated { handed_in } => {
                self.active = true;
                if handed_in {
                    self.reported(number, true);
                }
            }
            What::TookOver => return,
            What::Refused => self.reported(number, false),
            What::Renewed { serial } => return self.machines.iter_mut().for_each(|link| link.done(serial)),
        }
        say(&reported.line);
    }

    /// A core reports of what it was handed in: it `runs` without a signature, or is refused.
    fn reported(&mut self, core: u64, runs: bool) {
        let Some(core) = core_of(core, &mut self.core, &mut self.successor) else { return };
        let is_asked = self.compile_restart.at.is_some();
        if self.last.reported(core.handed_in(), runs, (self.active, is_asked)) {
            self.compile_restart.at = Some(Instant::now());
        }
    }

    /// A process has ended.
    fn ended(&mut self, role: Role, id: i32, ended: &io::Result<ProcessEnd>) {
        if role == Role::Vhost {
            return self.machine_ended(id, ended);
        }
        if role == Role::Tunnel {
            if let Some(tunnel) = self.tunnels.iter_mut().find(|tunnel| tunnel.has(id)) {
                tunnel.ended();
                say(&format!("ravelin-launch: port {}: {}", tunnel.port(), ending(role, ended)));
            }
            return;
        }
        let well = matches!(ended, Ok(ProcessEnd::Exited(0)));
        let of_successor = self.successor.as_ref().is_some_and(|successor| successor.core.has(role, id));
        if !of_successor && !self.core.as_ref().is_some_and(|core| core.has(role, id)) {
            return;
        }
        match role {
            Role::Core if of_successor => {
                // Without a program every packet is dropped.
                self.give_up(!well && !self.active);
                if well {
                    // It has said why it does not take over.
                    return;
                }
            }
            Role::Core => {
                if let Some(core) = self.core.take() {
                    self.closing.close(core.end());
                }
                match &mut self.successor {
                    // It has handed over, or is taken for one that has: the other one says so at once.
                    Some(successor) if well => {
                        successor.until = successor.until.min(Instant::now() + TAKEN_OVER_WITHIN);
                        return;
                    }
                    Some(_) => self.give_up(false),
                    None => self.core_restart.ended(),
                }
            }
            Role::Control => self.control_restart.ended(),
            Role::Front => self.front_restart.ended(),
            Role::Compile if well => return,
            // Without a program every packet is dropped; with one, whoever asked for another asks again.
            Role::Compile if !self.active => self.compile_restart.ended(),
            Role::Compile | Role::Vhost | Role::Tunnel => {}
        }
        say(&format!("ravelin-launch: {}", ending(role, ended)));
    }

    /// Something is heard of the machine at a port.
    fn machine(&mut self, number: u16, event: MachineEvent) {
        let Supervisor { settings, ports, machines, events, .. } = self;
        let port = ports.get(usize::from(number).wrapping_sub(1));
        let link = machines.iter_mut().find(|link| link.port() == number);
        let (Some(port), Some(link)) = (port, link) else { return };
        match link.hears(event, port, settings, events) {
            Ok(Some(shared)) => self.share(number, shared),
            Ok(None) => {}
            Err(error) => {
                if link.is_to_be_told(Instant::now()) {
                    say(&format!("ravelin-launch: port {number}: vhost: {error}"));
                }
                if let Some(shared) = link.end() {
                    self.share(number, shared);
                }
            }
        }
    }

    /// The process that speaks with a machine's monitor has ended.
    fn machine_ended(&mut self, id: i32, ended: &io::Result<ProcessEnd>) {
        let Some(link) = self.machines.iter_mut().find(|link| link.has(id)) else { return };
        let (number, shared) = (link.port(), link.end());
        // By itself it ends where the monitor does.
        if !matches!(ended, Ok(ProcessEnd::Exited(0))) && link.is_to_be_told(Instant::now()) {
            say(&format!("ravelin-launch: port {number}: {}", ending(Role::Vhost, ended)));
        }
        if let Some(shared) = shared {
            self.share(number, shared);
        }
    }

    /// The core is to have this of the machine at a port.
    fn share(&mut self, number: u16, Shared { bell, rings }: Shared) {
        let Some(port) = self.ports.get_mut(usize::from(number).wrapping_sub(1)) else { return };
        let name = &port.wanted.interface;
        let Some(opened) = port.opened.as_mut() else { return };
        let is_linked = rings.is_some();
        let shared = opened.share(bell, rings);
        port.handed_over = false;
        let Some(link) = self.machines.iter_mut().find(|link| link.port() == number) else { return };
        match shared {
            Ok(()) if is_linked && link.is_to_be_told(Instant::now()) => {
                say(&format!("ravelin-launch: port {number}: {name} is linked to a virtual machine"));
            }
            Ok(()) => {}
            Err(error) => {
                if link.is_to_be_told(Instant::now()) {
                    say(&format!("ravelin-launch: port {number}: the virtual machine at {name}: {error}"));
                }
                // Its monitor finds the connection ended.
                drop(link.end());
            }
        }
    }

    /// Where the interface of a port has gone, whatever is there of its name is opened and handed over.
    fn look(&mut self) {
        let Supervisor { settings, ports, machines, renewals, core, successor, looked, .. } = self;
        // What cannot be opened costs time, however much is heard.
        let opens = looked.elapsed() >= LOOK;
        if opens {
            *looked = Instant::now();
        }
        for (port, number) in ports.iter_mut().zip(1..) {
            let name = &port.wanted.interface;
            if port.opened.as_ref().is_some_and(|opened| !opened.is_there()) {
                // What it has of the old one goes before another is opened, which may be the same.
                (port.opened, port.handed_over) = (None, false);
                core.iter_mut().for_each(|core| core.let_go(number));
                if let Some(successor) = successor {
                    successor.until = Instant::now();
                }
                say(&format!("ravelin-launch: port {number}: {name} is gone"));
            }
            if port.opened.is_none() && opens {
                // Whatever is in the way now, it may be gone the next time.
                let _ = port.open_interface(settings.workers);
            }
            if let (Some(_), Some(core), None, false) =
                (&port.opened, core.as_mut(), &successor, port.handed_over)
                && (opens || port.wanted.is_by_vhost())
                && core.renew(number, port, settings, *renewals + 1).is_ok()
            {
                *renewals += 1;
                port.handed_over = true;
                if let Some(link) = machines.iter_mut().find(|link| link.port() == number) {
                    link.handed_over(*renewals);
                    continue;
                }
                say(&format!("ravelin-launch: port {number}: {name} is there again"));
            }
        }
    }
}

/// The core of this number, which runs or is to take over.
fn core_of<'c>(
    number: u64,
    core: &'c mut Option<Core>,
    successor: &'c mut Option<Pending>,
) -> Option<&'c mut Core> {
    let successor = successor.as_mut().map(|successor| &mut successor.core);
    core.iter_mut().chain(successor).find(|core| core.is(number))
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

fn heed_signals(events: &SyncSender<Event>) -> Result<(), LaunchError> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR2])?;
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
