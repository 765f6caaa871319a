//! Tunnels: the process of each, and what it is handed.
//!
//! ```text
//! core ◄─ frames, a pair of sockets for each worker ─► tunnel (nobody, locked in) ◄─ datagrams of UDP ─► peers
//! ```
//!
//! The pairs of sockets outlive both processes. A socket for datagrams is one that no process had before:
//! whoever has a socket can shut it for all who share it.

use crate::arguments::{Settings, Tunnelling};
use crate::children::{Start, Started, do_without};
use crate::error::LaunchError;
use crate::error_output::PassedOn;
use crate::port::Port;
use crate::restart::Restart;
use crate::said::say;
use crate::sockets;
use crate::supervision::Event;
use confinement::Role;
use messages::Channel;
use messages::limits::ANSWERED_WITHIN;
use messages::tunnel::TunnelBegin;
use ports::live::secret_file;
use std::ffi::OsStr;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A tunnel.
pub(crate) struct TunnelLink<'a> {
    /// The number of its port.
    port: u16,
    tunnelling: &'a Tunnelling,
    /// The socket for the first process, until that is started.
    listens: Option<UdpSocket>,
    process: Option<Started>,
    restart: Restart,
    /// How much was passed on of what its processes told.
    passed_on: Arc<Mutex<PassedOn>>,
}

impl<'a> TunnelLink<'a> {
    /// Listens for the tunnels of these settings, whose processes are to be started at once.
    ///
    /// # Errors
    /// An address cannot be listened at, or a key cannot be read.
    pub(crate) fn all(settings: &'a Settings) -> Result<Vec<TunnelLink<'a>>, LaunchError> {
        let links = settings.tunnels.iter().map(|(port, tunnelling)| {
            for key in &tunnelling.keys {
                secret_file::read(key)?;
            }
            let listens = Some(sockets::of_tunnel(tunnelling.listen)?);
            let mut restart = Restart::new();
            restart.at = Some(Instant::now());
            Ok(TunnelLink {
                port: *port,
                tunnelling,
                listens,
                process: None,
                restart,
                passed_on: PassedOn::none(),
            })
        });
        links.collect()
    }

    /// Whether this process is the tunnel's.
    pub(crate) fn has(&self, process: i32) -> bool {
        self.process.as_ref().is_some_and(|started| started.is(process))
    }

    /// The number of its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process has ended.
    pub(crate) fn ended(&mut self) {
        self.process = None;
        self.restart.ended();
    }

    /// How long nothing is to be done, at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.restart.left(most)
    }

    /// Starts its process, if that is to be done now.
    pub(crate) fn restart(&mut self, ports: &[Port<'_>], settings: &Settings, events: &SyncSender<Event>) {
        if self.restart.is_due()
            && let Err(error) = self.start(ports, settings, events)
        {
            say(&format!("ravelin-launch: port {}: tunnel: {error}", self.port));
            self.process = None;
            self.restart.failed();
        }
    }

    fn start(
        &mut self,
        ports: &[Port<'_>],
        settings: &Settings,
        events: &SyncSender<Event>,
    ) -> Result<(), LaunchError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let port = ports.get(usize::from(self.port).wrapping_sub(1)).ok_or_else(missing)?;
        let frames = port.opened.as_ref().ok_or_else(missing)?.of_tunnel()?;
        let program = settings.tunnel.as_deref().ok_or_else(missing)?;
        let Tunnelling { listen, keys, mtu, peers } = self.tunnelling;
        let keys = keys.iter().map(|key| secret_file::read(key)).collect::<Result<_, _>>()?;
        let begin = TunnelBegin { mtu: *mtu, keys, peers: peers.clone() };
        let socket = self.listens.take().map_or_else(|| sockets::of_tunnel(*listen), Ok)?;
        let (mut tells, told) = Channel::pair()?;
        tells.send_within(ANSWERED_WITHIN)?;
        let arguments: Vec<&OsStr> = do_without(settings).collect();
        let start =
            Start { role: Role::Tunnel, program, arguments: &arguments, descriptors: &[(told.as_fd(), 0)] };
        self.process = Some(start.start_after(settings, self.passed_on.clone(), events)?);
        let descriptors = [socket.as_fd()].into_iter().chain(frames.iter().map(AsFd::as_fd));
        Ok(tells.send(&begin, &descriptors.collect::<Vec<_>>())?)
    }
}
