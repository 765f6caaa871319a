//! Virtual machines that are linked by vhost-user: the socket at which the monitor of each is expected, and
//! the process that speaks with it.
//!
//! ```text
//! monitor in the container ─ connection ─► launch ─ starts, hands it over ─► vhost ─ monitor
//!                                         launch ◄─ what is shared ──────── vhost
//!                            core ◄─ port ─ launch
//!                            core ─ done ─► launch ─ let go ──────────────► vhost
//! ```
//!
//! One monitor at a time has the link. What a process says that was taken over makes nothing grow: it is read
//! with pauses, and the memory that it names is looked at before the core gets it.

use crate::arguments::Settings;
use crate::children::{Start, Started, do_without};
use crate::error::LaunchError;
use crate::error_output::PassedOn;
use crate::port::Port;
use crate::said::say;
use crate::supervision::Event;
use confinement::Role;
use container::{Holder, monitor_socket};
use messages::Channel;
use messages::limits::{ANSWERED_WITHIN, LONGEST_VHOST_REPORT};
use messages::listening::{Listening, listen};
use messages::vhost::{VhostReport, VhostSupply};
use ports::live::Offloads;
use ports::live::vhost::Rings;
use ports::live::vhost::limits::MOST_REGIONS;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long the next report of a process waits, and the next connection.
const BETWEEN: Duration = Duration::from_millis(10);
/// How long after a connection another one finds an end: each starts a process.
const BETWEEN_CONNECTIONS: Duration = Duration::from_millis(100);
/// How often something is told of a port's machines at most.
const TOLD: Duration = Duration::from_secs(1);

/// What is heard of a machine.
pub(crate) enum MachineEvent {
    /// A monitor has come.
    Came(UnixStream),
    /// The process for the connection of this number says what is shared, with files.
    Shares(u64, Option<Rings>, Vec<OwnedFd>),
}

/// What the core is to have of a machine from now on.
pub(crate) struct Shared {
    /// The core's end of the bell.
    pub(crate) bell: OwnedFd,
    pub(crate) rings: Option<(Rings, Vec<OwnedFd>)>,
}

/// The link of a machine.
pub(crate) struct MachineLink {
    /// The number of its port.
    port: u16,
    /// How many connections there were.
    connections: u64,
    connection: Option<Connection>,
    /// When the last one began: who comes again and again has to wait.
    began: Option<Instant>,
    /// When something was told of them last.
    told: Option<Instant>,
    /// How much was passed on of what their processes told.
    passed_on: Arc<Mutex<PassedOn>>,
    _listening: Listening,
}

/// A monitor that is there.
struct Connection {
    channel: Channel,
    bell: OwnedFd,
    process: Started,
    /// Whether it has said that something is shared.
    shares: bool,
    waits: Waits,
}

/// Whether the process waits until the core has let go of what was shared before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    No,
    /// The core has not been told yet.
    ForHandingOver,
    /// The core has been told, under this number.
    For(u64),
}

impl MachineLink {
    /// Expects the monitor of a port's machine, if the port is linked to one so.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn expect(
        number: u16,
        port: &Port<'_>,
        settings: &Settings,
        events: &SyncSender<Event>,
    ) -> Result<Option<MachineLink>, LaunchError> {
        let Port { wanted, container: Some(Holder { namespaces: container, .. }), .. } = port else {
            return Ok(None);
        };
        if !wanted.is_by_vhost() {
            return Ok(None);
        }
        let path = monitor_socket(&settings.containers, &wanted.interface);
        let failed = |source| LaunchError::Monitor { path: path.clone(), source };
        let listening = listen(&path).map_err(failed)?;
        // It is for root of the container alone.
        let root = container.first_user;
        std::os::unix::fs::chown(&path, Some(root), Some(root)).map_err(failed)?;
        let (listener, events) = (listening.listener.try_clone().map_err(failed)?, events.clone());
        thread::Builder::new().name("monitors".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                // Where there is no descriptor for it, there may be one for the next.
                if let Ok(stream) = stream
                    && events.send(Event::Machine(number, MachineEvent::Came(stream))).is_err()
                {
                    return;
                }
                thread::sleep(BETWEEN);
            }
        })?;
        Ok(Some(MachineLink {
            port: number,
            connections: 0,
            connection: None,
            began: None,
            told: None,
            passed_on: PassedOn::none(),
            _listening: listening,
        }))
    }

    /// The number of its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether this process speaks with its monitor.
    pub(crate) fn has(&self, process: i32) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.process.is(process))
    }

    /// Does what was heard. Says what the core is to have, if that changes.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(crate) fn hears(
        &mut self,
        event: MachineEvent,
        port: &Port<'_>,
        settings: &Settings,
        events: &SyncSender<Event>,
    ) -> Result<Option<Shared>, LaunchError> {
        match event {
            // One that comes second, or too soon, finds its connection ended.
            MachineEvent::Came(_) if self.connection.is_some() || self.is_soon(Instant::now()) => Ok(None),
            MachineEvent::Came(stream) => {
                self.began = Some(Instant::now());
                self.connections += 1;
                let number = (self.port, self.connections);
                let takes_unfinished = port.wanted.offloads == Offloads::Cut;
                let monitor = (&stream, takes_unfinished);
                let connection =
                    Connection::start(number, monitor, settings, self.passed_on.clone(), events)?;
                // It works for the container, and takes its part of what that may take.
                let bounded = port.container.as_ref().map(|holder| holder.bound(connection.process.id()));
                if let Some(Err(error)) = bounded
                    && self.is_to_be_told(Instant::now())
                {
                    say(&format!(
                        "ravelin-launch: port {}: vhost is without the limits of the container: {error}",
                        self.port
                    ));
                }
                let bell = connection.bell.try_clone()?;
                self.connection = Some(connection);
                Ok(Some(Shared { bell, rings: None }))
            }
            MachineEvent::Shares(number, rings, files) => {
                let is_last = number == self.connections;
                let Some(connection) = self.connection.as_mut().filter(|_| is_last) else { return Ok(None) };
                if rings.is_some() == connection.shares {
                    if self.is_to_be_told(Instant::now()) {
                        say(&format!("ravelin-launch: port {}: vhost says twice what is shared", self.port));
                    }
                    return Ok(self.end());
                }
                let bell = connection.bell.try_clone()?;
                connection.shares = rings.is_some();
                if rings.is_none() {
                    connection.waits = Waits::ForHandingOver;
                }
                Ok(Some(Shared { bell, rings: rings.map(|rings| (rings, files)) }))
            }
        }
    }

    /// Ends the connection: what is shared cannot be the core's, or the process has ended. Says what the core
    /// is to have, if there was one.
    pub(crate) fn end(&mut self) -> Option<Shared> {
        // Nobody rings its bell any more: the other end goes with the process.
        let Connection { bell, .. } = self.connection.take()?;
        Some(Shared { bell, rings: None })
    }

    /// The core was told of its port under this number.
    pub(crate) fn handed_over(&mut self, serial: u64) {
        if let Some(connection) = &mut self.connection
            && connection.waits != Waits::No
        {
            connection.waits = Waits::For(serial);
        }
    }

    /// The core has done what it was told under this number.
    pub(crate) fn done(&mut self, serial: u64) {
        self.let_go_if(|waits| waits == Waits::For(serial));
    }

    /// Another core has taken over, which began with what the one before it was told last.
    pub(crate) fn taken_over(&mut self) {
        self.let_go_if(|waits| matches!(waits, Waits::For(_)));
    }

    /// There is no core that uses anything of what was shared.
    pub(crate) fn unused(&mut self) {
        self.let_go_if(|waits| waits != Waits::No);
    }

    /// Whether the last connection began a moment before.
    fn is_soon(&self, now: Instant) -> bool {
        self.began.is_some_and(|began| now.duration_since(began) < BETWEEN_CONNECTIONS)
    }

    /// Whether something is to be told of a machine: one that comes and goes again and again fills no disk
    /// with that.
    pub(crate) fn is_to_be_told(&mut self, now: Instant) -> bool {
        let is_due = self.told.is_none_or(|told| now.duration_since(told) >= TOLD);
        if is_due {
            self.told = Some(now);
        }
        is_due
    }

    fn let_go_if(&mut self, is_meant: impl Fn(Waits) -> bool) {
        if let Some(connection) = &mut self.connection
            && is_meant(connection.waits)
        {
            connection.waits = Waits::No;
            // If it is gone, its end is heard of.
            let _ = connection.channel.send(&VhostSupply::LetGo, &[]);
        }
    }
}

impl Connection {
    /// Starts the process for a monitor, and says whether the core takes what is unfinished.
    fn start(
        (port, number): (u16, u64),
        (monitor, takes_unfinished): (&UnixStream, bool),
        settings: &Settings,
        passed_on: Arc<Mutex<PassedOn>>,
        events: &SyncSender<Event>,
    ) -> Result<Connection, LaunchError> {
        let program = settings.vhost.as_deref().ok_or(io::ErrorKind::NotFound).map_err(io::Error::from)?;
        let ((mut channel, theirs), (bell, rung)) = (Channel::pair()?, UnixStream::pair()?);
        channel.send_within(ANSWERED_WITHIN)?;
        channel.send(&VhostSupply::Bell { takes_unfinished }, &[rung.as_fd()])?;
        let arguments: Vec<&OsStr> = do_without(settings).collect();
        let descriptors = &[(theirs.as_fd(), 0), (monitor.as_fd(), 1)];
        let start = Start { role: Role::Vhost, program, arguments: &arguments, descriptors };
        let process = start.start_after(settings, passed_on, events)?;
        let (hears, events) = (channel.again()?, events.clone());
        thread::Builder::new()
            .name("machine".to_owned())
            .spawn(move || hear((port, number), hears, &events))?;
        Ok(Connection { channel, bell: bell.into(), process, shares: false, waits: Waits::No })
    }
}

/// Passes on what the process says until its end.
fn hear((port, number): (u16, u64), mut process: Channel, events: &SyncSender<Event>) {
    loop {
        let (shares, files) = match process.receive(LONGEST_VHOST_REPORT) {
            Ok(Some((VhostReport::Shares(rings), files))) if files.len() <= MOST_REGIONS => {
                (Some(rings), files)
            }
            Ok(Some((VhostReport::SharesNothing, files))) if files.is_empty() => (None, files),
            Ok(None) => return,
            // It ends when it finds the channel ended.
            Ok(Some(_)) | Err(_) => return process.end(),
        };
        let event = MachineEvent::Shares(number, shares, files);
        if events.send(Event::Machine(port, event)).is_err() {
            return;
        }
        thread::sleep(BETWEEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_and_goes_again_and_again_waits_and_is_told_of_now_and_then() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut link = MachineLink {
            port: 1,
            connections: 0,
            connection: None,
            began: None,
            told: None,
            passed_on: PassedOn::none(),
            _listening: listen(&folder.path().join("a.vhost")).expect("a socket"),
        };
        let now = Instant::now();
        let moment = Duration::from_millis(1);
        assert!(!link.is_soon(now), "the first one may come at once");
        link.began = Some(now);
        assert!(link.is_soon(now + BETWEEN_CONNECTIONS - moment));
        assert!(!link.is_soon(now + BETWEEN_CONNECTIONS));
        assert!(link.is_to_be_told(now) && !link.is_to_be_told(now + TOLD - moment));
        assert!(link.is_to_be_told(now + TOLD));
    }
}
