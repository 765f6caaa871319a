//! Starts the other processes of a gateway, and hands over what each of them needs.

use crate::arguments::Settings;
use crate::supervision::{Event, LaunchError};
use messages::Channel;
use messages::launch::{Begin, CoreReport, LaunchMessage, PortWay, SuppliedPort, Unfinished};
use messages::limits::LONGEST_MESSAGE;
use ports::live::handed_over::OpenedPort;
use ports::live::{HandedOver, Offloads, PortKind};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

/// One of the other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Core,
    Compile,
    Control,
}

impl Role {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Core => "core",
            Role::Compile => "compile",
            Role::Control => "control",
        }
    }
}

/// A core that was started: the channel to it.
pub(crate) struct Core {
    channel: Channel,
}

impl Core {
    /// Starts one, and gives it the ports.
    ///
    /// # Errors
    /// It cannot be started, or a port cannot be opened.
    pub(crate) fn start(
        settings: &Settings,
        ports: &[OpenedPort],
        events: &Sender<Event>,
    ) -> Result<Core, LaunchError> {
        let (mut channel, theirs) = Channel::pair()?;
        start(Role::Core, Command::new(&settings.core).stdin(stdio(theirs)), events)?;
        let begin = Begin { workers: settings.workers, seed: seed(), without: settings.without.clone() };
        channel.send(&LaunchMessage::Begin(begin), &[])?;
        for port in ports {
            let (described, descriptors) = port.lanes(settings.workers)?;
            let message = LaunchMessage::Port(supplied(described));
            channel.send(&message, &descriptors.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
        }
        channel.send(&LaunchMessage::Start, &[])?;
        let (mut hears, events) = (channel.again()?, events.clone());
        thread::Builder::new().name("reports".to_owned()).spawn(move || {
            // It ends with the core.
            while let Ok(Some((report, _))) = hears.receive::<CoreReport>(LONGEST_MESSAGE) {
                if events.send(Event::Report(report)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Core { channel })
    }

    /// Starts a process that makes a program of the gateway's file, and gives it to the core.
    ///
    /// # Errors
    /// It cannot be started, or the core is gone.
    pub(crate) fn compile(&mut self, settings: &Settings, events: &Sender<Event>) -> Result<(), LaunchError> {
        let (ours, theirs) = Channel::pair()?;
        let mut command = Command::new(&settings.ravelin);
        command.arg("compile-for-core").arg(&settings.file).stdin(stdio(theirs));
        start(Role::Compile, &mut command, events)?;
        Ok(self.channel.send(&LaunchMessage::Compile, &[ours.as_fd()])?)
    }

    /// Starts a process that answers at the control socket by what the core tells it.
    ///
    /// # Errors
    /// It cannot be started, or the core is gone.
    pub(crate) fn control(&mut self, settings: &Settings, events: &Sender<Event>) -> Result<(), LaunchError> {
        let (ours, theirs) = Channel::pair()?;
        let mut command = Command::new(&settings.ravelin);
        command.arg("control-for-core").arg(&settings.control).stdin(stdio(theirs));
        start(Role::Control, &mut command, events)?;
        Ok(self.channel.send(&LaunchMessage::Control, &[ours.as_fd()])?)
    }

    /// Hands over other descriptors of a port, whose interface is there again.
    ///
    /// # Errors
    /// They cannot be opened, or the core is gone.
    pub(crate) fn renew(&mut self, number: u16, port: &OpenedPort, workers: u16) -> Result<(), LaunchError> {
        let (described, descriptors) = port.lanes(workers)?;
        let message = LaunchMessage::Renewed { number, port: supplied(described) };
        Ok(self.channel.send(&message, &descriptors.iter().map(AsFd::as_fd).collect::<Vec<_>>())?)
    }
}

/// Starts a process, and tells when it has ended.
fn start(role: Role, command: &mut Command, events: &Sender<Event>) -> Result<(), LaunchError> {
    let program = command.get_program().to_owned();
    let mut child: Child = command.spawn().map_err(|source| LaunchError::Start { program, source })?;
    let events = events.clone();
    thread::Builder::new().name(role.name().to_owned()).spawn(move || {
        let ended = child.wait();
        // Whoever supervises may have ended.
        let _ = events.send(Event::Ended(role, ended));
    })?;
    Ok(())
}

fn stdio(channel: Channel) -> Stdio {
    Stdio::from(channel.into_descriptor())
}

/// The port as a message describes it.
fn supplied(port: HandedOver) -> SuppliedPort {
    SuppliedPort {
        way: match port.kind {
            PortKind::Tap => PortWay::Tap,
            _ => PortWay::AfPacket { frame: port.frame },
        },
        unfinished: match port.offloads {
            Offloads::Cut => Unfinished::Cut,
            Offloads::Whole => Unfinished::Whole,
            Offloads::Off => Unfinished::Off,
        },
        interface: port.interface,
        promiscuous: port.promiscuous,
        mode: port.mode,
    }
}

/// What chooses the tables' hash functions: the standard library draws its keys from the system, and has no
/// other stable way to ask it for a number.
fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Why a channel to the core cannot be used.
impl From<io::Error> for LaunchError {
    fn from(source: io::Error) -> LaunchError {
        LaunchError::System(source)
    }
}
