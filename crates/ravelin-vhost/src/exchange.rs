//! The work of the process: requests of the monitor, notifications of the machine, and the core's bell.
//!
//! ```text
//! monitor ─ requests ──────────────► negotiation ─► launch ─► core
//! driver ─ eventfd ────────────────► bell ──────────────────► core
//! driver ◄─ eventfd ─────────────────────────────── bell ◄─── core
//! ```
//!
//! The eventfds are the monitor's, who may let whoever writes to them wait: this process waits then,
//! and nobody else.

use crate::message::{self, VhostMessageError};
use crate::negotiation::{Negotiation, RequestError, Sharing};
use messages::limits::LONGEST_SUPPLY;
use messages::vhost::{VhostReport, VhostSupply};
use messages::{Channel, ChannelError};
use ports::live::vhost::{BROKEN, NOTIFY, Rings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Why the process ends.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// a message
    #[error("the monitor: {0}")]
    Message(#[from] VhostMessageError),
    /// a request
    #[error(transparent)]
    Request(#[from] RequestError),
    /// launch
    #[error("`launch`: {0}")]
    Channel(#[from] ChannelError),
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
}

/// What the process has of others.
pub struct Side {
    /// The channel to `launch`.
    pub launch: Channel,
    /// The connection of the monitor.
    pub monitor: UnixStream,
    /// This end of the bell.
    pub bell: OwnedFd,
    /// Whether the core takes long segments and open checksums of the machine.
    pub takes_unfinished: bool,
    /// How long the gateway has to let go of what was shared.
    pub let_go_within: Duration,
    /// Tells somebody what is wrong.
    pub say: fn(&str),
}

/// How long the eventfds of notifications are not looked at once there was one, in nanoseconds: who notifies
/// without end takes no more time with it.
const BETWEEN_KICKS: i64 = 20_000;

/// Tells `launch` what is shared.
struct Launch {
    channel: Channel,
    let_go_within: Duration,
    say: fn(&str),
    /// Whether something was said: no more is said of a monitor, which may have no end of it.
    said: bool,
}

impl Sharing for Launch {
    fn share(&mut self, rings: &Rings, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.channel.send(&VhostReport::Shares(rings.clone()), files)
    }

    fn take_back(&mut self) -> io::Result<()> {
        self.channel.send(&VhostReport::SharesNothing, &[])?;
        let within = Timespec::try_from(self.let_go_within).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.channel, PollFlags::IN)];
        if poll(&mut polled, Some(&within))? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the gateway does not let go of the machine's memory",
            ));
        }
        match self.channel.receive::<VhostSupply>(LONGEST_SUPPLY) {
            Ok(Some((VhostSupply::LetGo, _))) => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn tell(&mut self, what: &str) {
        if !std::mem::replace(&mut self.said, true) {
            (self.say)(what);
        }
    }
}

/// Works until the monitor or the gateway is gone.
///
/// # Errors
/// The monitor asks for what cannot be.
pub fn exchange(side: Side) -> Result<(), ExchangeError> {
    let Side { launch, mut monitor, bell, takes_unfinished, let_go_within, say } = side;
    let mut launch = Launch { channel: launch, let_go_within, say, said: false };
    let (mut negotiation, mut pauses) = (Negotiation::new(takes_unfinished), false);
    loop {
        let (asked, rung, gone, kicked) = {
            let kicks: Vec<_> = negotiation.kicks().filter(|_| !pauses).collect();
            let mut polled = vec![
                PollFd::new(&monitor, PollFlags::IN),
                PollFd::new(&bell, PollFlags::IN),
                PollFd::new(&launch.channel, PollFlags::IN),
            ];
            polled.extend(kicks.iter().map(|kick| PollFd::new(*kick, PollFlags::IN)));
            let pause = Timespec { tv_sec: 0, tv_nsec: BETWEEN_KICKS };
            match poll(&mut polled, pauses.then_some(&pause)) {
                Err(Errno::INTR) => continue,
                polled => polled.map_err(io::Error::from)?,
            };
            let ready: Vec<_> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
            let kicked = kicks.iter().zip(&ready[3..]).filter(|(_, ready)| **ready);
            let kicked = kicked.map(|(kick, _)| is_kicked(kick)).collect::<Result<Vec<_>, _>>()?;
            (ready[0], ready[1], ready[2], kicked.contains(&true))
        };
        pauses = kicked;
        if gone {
            return Ok(());
        }
        if kicked {
            // Where there is no room, it has more to hear than this.
            let _ = send(&bell, &[NOTIFY], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        if rung {
            let mut said = [0; 64];
            let (_, length) = recv(&bell, &mut said[..], RecvFlags::DONTWAIT).map_err(io::Error::from)?;
            let said = &said[..length];
            if said.is_empty() {
                return Ok(());
            }
            if said.contains(&BROKEN) {
                launch.tell(
                    "the machine's driver has done what no driver does: its link is off until it starts anew",
                );
                negotiation.break_off(&mut launch)?;
            }
            for mut call in negotiation.calls() {
                call.write_all(&1u64.to_ne_bytes())?;
            }
        }
        if asked {
            let Some(message) = message::receive(&mut monitor)? else { return Ok(()) };
            if let Some(answer) = negotiation.take(message, &mut launch)? {
                monitor.write_all(&answer)?;
            }
        }
    }
}

/// Takes a notification off its file, and says whether there was one. How many there were says nothing.
///
/// # Errors
/// It is no eventfd.
fn is_kicked(mut kick: &File) -> io::Result<bool> {
    match kick.read(&mut [0; 8]) {
        Ok(8) => Ok(true),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "notifications come by no eventfd")),
        // The monitor reads there itself, too.
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// What `launch` hands over first: this end of the bell, and whether the core takes what is unfinished.
///
/// # Errors
/// Something else comes.
pub fn supplied(launch: &mut Channel) -> Result<(OwnedFd, bool), ExchangeError> {
    match launch.receive::<VhostSupply>(LONGEST_SUPPLY)? {
        Some((VhostSupply::Bell { takes_unfinished }, mut descriptors)) => {
            descriptors.pop().map(|bell| (bell, takes_unfinished))
        }
        _ => None,
    }
    .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof).into())
}
