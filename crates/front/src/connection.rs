//! A connection of the front: TLS over a socket that never waits, and whose turn it is.
//!
//! ```text
//! Handshake ─ the key is known ─► Client ─ a question is whole ─► Gateway
//!     │                             ▲ │                              │
//!     │                             └─│──────── the answer ──────────┘
//!     └─ it is not ─► closed          └─ refused ─► Closing ─ it is told ─► closed
//! ```

use crate::inbox::Inbox;
use crate::limits::{ANSWERED_WITHIN, HANDSHAKE_WITHIN, SILENCE, WHOLE_WITHIN};
use crate::pinned::PinnedClient;
use crate::tls::{self, PinnedClients};
use crate::welcome::Welcome;
use messages::control::{ControlQuestion, CoreAnswer};
use messages::frame;
use rustix::event::PollFlags;
use rustls::{ServerConfig, ServerConnection};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

/// How often is read before others have their turn.
const READS: usize = 16;

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Over {
    /// it was closed, after the client had shown its key
    #[error("it was closed")]
    Closed,
    /// the socket fails
    #[error("{0}")]
    System(#[from] io::Error),
    /// TLS fails
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// another form of messages
    #[error("it does not speak as the clients of this version do")]
    Protocol,
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The client has shown its key now.
    pub(crate) is_known: bool,
    /// What it asks.
    pub(crate) question: Option<ControlQuestion>,
    /// Why it was refused what it asked.
    pub(crate) refused: Option<String>,
}

/// Whose turn it is.
#[derive(Debug)]
enum Turn {
    /// Nobody knows yet who the client is.
    Handshake,
    /// The client's, to ask.
    Client(Inbox),
    /// The gateway's, to answer.
    Gateway,
    /// Nobody's: the last answer is on its way.
    Closing,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    tls: ServerConnection,
    turn: Turn,
    /// Where it comes from.
    pub(crate) peer: SocketAddr,
    /// Whose it is, once it is known.
    pub(crate) client: Option<PinnedClient>,
    /// Whether a long question comes, or waits for its answer.
    pub(crate) is_long: bool,
    /// When the turn began, or the question of it.
    since: Instant,
    /// When bytes came or went last.
    moved: Instant,
}

impl Connection {
    /// Of a socket that does not wait.
    pub(crate) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        config: &Arc<ServerConfig>,
    ) -> Result<Connection, rustls::Error> {
        let mut tls = ServerConnection::new(config.clone())?;
        // One answer at a time is on its way, and its length has a limit.
        tls.set_buffer_limit(None);
        let now = Instant::now();
        let (turn, client) = (Turn::Handshake, None);
        Ok(Connection { stream, tls, turn, peer, client, is_long: false, since: now, moved: now })
    }

    /// What is waited for.
    pub(crate) fn waits_for(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        // While the gateway answers, Linux keeps what the client sends.
        flags.set(PollFlags::IN, matches!(self.turn, Turn::Handshake | Turn::Client(_)));
        flags.set(PollFlags::OUT, self.tls.wants_write());
        flags
    }

    /// Until when something has to happen.
    pub(crate) fn deadline(&self) -> Instant {
        let (since, moved) = (self.since, self.moved);
        match &self.turn {
            Turn::Handshake => since + HANDSHAKE_WITHIN,
            Turn::Client(inbox) if inbox.has_begun() || self.tls.wants_write() => {
                (since + WHOLE_WITHIN).min(moved + SILENCE)
            }
            Turn::Client(_) => moved + SILENCE,
            Turn::Gateway => since + ANSWERED_WITHIN,
            Turn::Closing if self.tls.wants_write() => since + SILENCE,
            Turn::Closing => since,
        }
    }

    /// Whether it waits for an answer of the gateway.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.turn, Turn::Gateway)
    }

    /// Since when it is there, of a client that is not known; else since when nothing came or went.
    pub(crate) fn since(&self) -> Instant {
        if self.client.is_some() { self.moved } else { self.since }
    }

    /// Goes on as far as the socket does not wait.
    pub(crate) fn go_on(&mut self, clients: &PinnedClients) -> Result<Step, Over> {
        let mut step = Step::default();
        for _ in 0..READS {
            if !self.waits_for().contains(PollFlags::IN) || !self.receive()? {
                break;
            }
            self.hear(clients, &mut step)?;
        }
        self.send()?;
        Ok(step)
    }

    /// Reads what is there. Returns whether it was anything.
    fn receive(&mut self) -> Result<bool, Over> {
        match self.tls.read_tls(&mut self.stream) {
            Ok(0) => return Err(Over::Closed),
            Ok(_) => self.moved = Instant::now(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = self.tls.process_new_packets() {
            // The other end is told as well as it can be; the connection is over in any case.
            let _ = self.tls.write_tls(&mut self.stream);
            return Err(error.into());
        }
        Ok(true)
    }

    /// Takes what has come.
    fn hear(&mut self, clients: &PinnedClients, step: &mut Step) -> Result<(), Over> {
        if matches!(self.turn, Turn::Handshake) && !self.tls.is_handshaking() {
            self.welcome(clients)?;
            step.is_known = true;
        }
        let mut part = [0; 16 << 10];
        while let Turn::Client(inbox) = &mut self.turn {
            let read = match self.tls.reader().read(&mut part) {
                Ok(0) => return Err(Over::Closed),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if !inbox.has_begun() {
                self.since = Instant::now();
            }
            let taken = inbox.take(&part[..read]);
            self.is_long = inbox.is_long() || (self.is_long && matches!(taken, Ok(Some(_))));
            match taken {
                Ok(None) => {}
                Ok(Some(question)) => {
                    step.question = Some(question);
                    self.now(Turn::Gateway);
                }
                Err(refusal) => {
                    let why = refusal.to_string();
                    self.refuse(&why)?;
                    step.refused = Some(why);
                }
            }
        }
        Ok(())
    }

    /// Says to a client that has shown a known key that it is known.
    fn welcome(&mut self, clients: &PinnedClients) -> Result<(), Over> {
        if !tls::is_own(self.tls.alpn_protocol()) {
            return Err(Over::Protocol);
        }
        let shown = self.tls.peer_certificates().and_then(|shown| shown.first());
        let client = shown.and_then(|shown| clients.of(shown)).ok_or(Over::Protocol)?.clone();
        self.say(&Welcome { name: client.name.clone(), role: client.role })?;
        self.now(Turn::Client(Inbox::new(client.role)));
        self.client = Some(client);
        Ok(())
    }

    /// Answers a question; the next one may come.
    pub(crate) fn answer(&mut self, answer: &CoreAnswer) -> Result<(), Over> {
        let role = self.client.as_ref().ok_or(Over::Protocol)?.role;
        self.is_long = false;
        self.say(answer)?;
        self.now(Turn::Client(Inbox::new(role)));
        self.send()
    }

    /// Says why a question is refused, after which nothing is heard any more.
    pub(crate) fn refuse(&mut self, why: &str) -> Result<(), Over> {
        self.is_long = false;
        self.say(&CoreAnswer::Refused(why.to_owned()))?;
        self.tls.send_close_notify();
        self.now(Turn::Closing);
        Ok(())
    }

    fn now(&mut self, turn: Turn) {
        self.turn = turn;
        self.since = Instant::now();
        self.moved = self.since;
    }

    fn say<M: Serialize>(&mut self, message: &M) -> Result<(), Over> {
        Ok(self.tls.writer().write_all(&frame::written(message)?)?)
    }

    /// Sends what there is room for.
    fn send(&mut self) -> Result<(), Over> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.stream) {
                Ok(_) => self.moved = Instant::now(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
