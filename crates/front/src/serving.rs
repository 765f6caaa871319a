//! The front at work: one thread for all connections, of which none waits for another, and one that asks
//! `control`. Both are made before the process locks itself in, and none ends before it does.

use crate::connection::{Connection, Over, Step};
use crate::key::{IdentityKey, KeyError};
use crate::limits::{CLIENTS, LONG_QUESTIONS, REFUSED_TOLD};
use crate::pinned::{PinnedClient, PinnedError};
use crate::places::{self, Place, Room};
use crate::tls::{self, PinnedClients};
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer};
use messages::front::FrontBegin;
use messages::limits::LONGEST_MESSAGE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use rustls::ServerConfig;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long no connection is taken where Linux gives none, as when memory has run out.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a front cannot work.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// its key
    #[error("its own key: {0}")]
    Key(#[from] KeyError),
    /// a client
    #[error("a client: {0}")]
    Client(#[from] PinnedError),
    /// too many clients
    #[error("{0} clients, of which it knows {CLIENTS} at most")]
    Clients(usize),
    /// TLS
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
}

/// The number of a connection.
type Number = u64;

/// A front that is made ready.
pub struct Front {
    listener: TcpListener,
    /// Watched for its end.
    control: Channel,
    config: Arc<ServerConfig>,
    clients: Arc<PinnedClients>,
    /// What clients wait with, in order: `control` is asked one at a time, and what a client has left behind
    /// is not asked.
    waiting: VecDeque<(Asked, ControlQuestion)>,
    /// What `control` was asked, and has not answered.
    in_flight: Option<Asked>,
    questions: Sender<ControlQuestion>,
    answers: Receiver<Option<CoreAnswer>>,
    /// Is rung at each answer.
    bell: UnixStream,
    connections: BTreeMap<Number, Connection>,
    last: Number,
    /// From when on connections are taken.
    takes_from: Instant,
    refused: Refused,
    say: fn(&str),
}

/// A question that has no answer yet.
struct Asked {
    /// Whose it is.
    by: Number,
    is_long: bool,
    /// What it changes, and who asked for that, in words.
    change: Option<String>,
}

/// The connections that were refused, of which not each is told.
struct Refused {
    untold: u64,
    told: Option<Instant>,
}

impl Front {
    /// Makes ready what `launch` asks for: it knows these clients, listens at this socket, which does not
    /// wait, and asks by this channel. `say` tells a line.
    ///
    /// # Errors
    /// A key is none, or Linux refuses something.
    pub fn new(
        begin: &FrontBegin,
        listener: TcpListener,
        control: Channel,
        say: fn(&str),
    ) -> Result<Front, FrontError> {
        if begin.clients.len() > CLIENTS {
            return Err(FrontError::Clients(begin.clients.len()));
        }
        let clients = begin.clients.iter().map(|text| text.parse()).collect::<Result<_, PinnedError>>()?;
        let clients = Arc::new(PinnedClients::new(clients));
        let config = tls::of_front(&IdentityKey::from_text(&begin.key)?, clients.clone())?;
        let (questions, heard) = mpsc::channel();
        let (answering, answers) = mpsc::channel();
        let (bell, rings) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let asks = control.again()?;
        let (begins, begun) = mpsc::channel();
        thread::Builder::new().name("asks".to_owned()).spawn(move || {
            // Whoever waits for it knows that the thread is set up.
            let _ = begins.send(());
            ask(asks, &heard, &answering, &rings);
        })?;
        let _ = begun.recv();
        Ok(Front {
            listener,
            control,
            config,
            clients,
            waiting: VecDeque::new(),
            in_flight: None,
            questions,
            answers,
            bell,
            connections: BTreeMap::new(),
            last: 0,
            takes_from: Instant::now(),
            refused: Refused { untold: 0, told: None },
            say,
        })
    }

    /// Answers clients until `control` is gone.
    ///
    /// # Errors
    /// Linux does not say which connections have something.
    pub fn run(mut self) -> Result<(), FrontError> {
        while self.turn()? {}
        Ok(())
    }

    /// Waits for something, and does what there is to do. Returns whether `control` is there.
    fn turn(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        let takes = now >= self.takes_from;
        let deadlines = self.connections.values().map(Connection::deadline);
        let until = deadlines.chain((!takes).then_some(self.takes_from)).min();
        let left = until.map(|until| timespec(until.saturating_duration_since(now)));
        let mut polled = vec![
            PollFd::new(&self.control, PollFlags::empty()),
            PollFd::new(&self.bell, PollFlags::IN),
            PollFd::new(&self.listener, if takes { PollFlags::IN } else { PollFlags::empty() }),
        ];
        let numbers: Vec<Number> = self.connections.keys().copied().collect();
        polled.extend(
            self.connections
                .values()
                .map(|one| PollFd::from_borrowed_fd(std::os::fd::AsFd::as_fd(one), one.waits_for())),
        );
        match poll(&mut polled, left.as_ref()) {
            Err(Errno::INTR) => return Ok(true),
            polled => polled?,
        };
        let told: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        drop(polled);
        let is_ready = |place: usize| !told[place].is_empty();
        if is_ready(0) || (is_ready(1) && !self.take_answer()) {
            return Ok(false);
        }
        for (number, told) in numbers.into_iter().zip(&told[3..]).filter(|(_, told)| !told.is_empty()) {
            self.go_on(number, *told);
        }
        if is_ready(2) {
            self.take_connections();
        }
        self.close_overdue(Instant::now());
        Ok(true)
    }

    /// Takes those who wait to be connected.
    fn take_connections(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let (socket, peer) = match acceptfrom_with(&self.listener, flags) {
                Ok((socket, peer)) => (socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok())),
                Err(Errno::WOULDBLOCK) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(_) => {
                    self.takes_from = Instant::now() + PAUSE;
                    return;
                }
            };
            let Some(peer) = peer else { continue };
            match places::for_newcomer(&self.places(), places::network(peer.ip())) {
                Room::Free => {}
                Room::InPlaceOf(number) => self.close(number, "another one needs its place"),
                Room::None => continue,
            }
            // Where TLS cannot begin, the socket is closed.
            if let Ok(connection) = Connection::new(TcpStream::from(socket), peer, &self.config) {
                self.last += 1;
                self.connections.insert(self.last, connection);
            }
        }
    }

    fn places(&self) -> Vec<Place> {
        let place = |(&number, one): (&Number, &Connection)| Place {
            number,
            network: places::network(one.peer.ip()),
            key: one.client.as_ref().map(|client| client.key),
            since: one.since(),
            waits: one.waits(),
        };
        self.connections.iter().map(place).collect()
    }

    /// Goes on with a connection, of which Linux tells this.
    fn go_on(&mut self, number: Number, told: PollFlags) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.waits() && told.intersects(PollFlags::ERR | PollFlags::HUP) {
            // Linux would tell it again and again until the answer is there.
            return self.close(number, "it broke off");
        }
        let was_long = connection.is_long;
        match connection.go_on(&self.clients) {
            Ok(step) => self.done(number, step, was_long),
            Err(over) => self.over(number, &over),
        }
    }

    /// Does what comes of a turn of a client.
    fn done(&mut self, number: Number, step: Step, was_long: bool) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (Some(client), peer) = (connection.client.clone(), connection.peer) else { return };
        if step.is_known {
            match places::for_key(&self.places(), client.key, number) {
                Room::Free => {}
                Room::InPlaceOf(other) => self.close(other, "another one of its key needs its place"),
                Room::None => return self.close(number, "others of its key wait for answers"),
            }
        }
        if let Some(why) = step.refused {
            (self.say)(&format!("{}: refused: {why}", whose(&client, peer)));
        }
        let mut long =
            self.connections.iter().filter(|(other, one)| **other != number && one.is_long).count();
        // Its client may be gone, and its bytes are there.
        long += usize::from(
            self.in_flight
                .as_ref()
                .is_some_and(|asked| asked.is_long && !self.connections.contains_key(&asked.by)),
        );
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.is_long && !was_long && long >= LONG_QUESTIONS {
            // Whether it can be told or not, it is over.
            let _ = connection.refuse("others hand policies in: try it again later");
            return;
        }
        if let Some(question) = step.question {
            let change = change(&question).map(|what| format!("{}: {what}", whose(&client, peer)));
            self.waiting.push_back((Asked { by: number, is_long: connection.is_long, change }, question));
            self.ask_next();
        }
    }

    /// Asks what waits longest, if nothing is asked.
    fn ask_next(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        let Some((asked, question)) = self.waiting.pop_front() else { return };
        self.in_flight = Some(asked);
        // If nobody takes it, the end of `control` is seen soon.
        let _ = self.questions.send(question);
    }

    /// Hands an answer to whoever asked. Returns whether `control` is there.
    fn take_answer(&mut self) -> bool {
        let mut rung = [0; 64];
        while matches!(self.bell.read(&mut rung), Ok(1..)) {}
        let Ok(answer) = self.answers.try_recv() else { return true };
        let (Some(answer), Some(asked)) = (answer, self.in_flight.take()) else { return false };
        self.ask_next();
        if let Some(change) = asked.change {
            (self.say)(&format!("{change}: {}", became(&answer)));
        }
        // Whoever asked may be gone.
        if let Some(connection) = self.connections.get_mut(&asked.by)
            && let Err(over) = connection.answer(&answer)
        {
            self.over(asked.by, &over);
        }
        true
    }

    fn close_overdue(&mut self, now: Instant) {
        let overdue = self.connections.iter().filter(|(_, one)| one.deadline() <= now);
        let numbers: Vec<Number> = overdue.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|number| self.close(number, "it took too long"));
    }

    /// A connection has ended.
    fn over(&mut self, number: Number, over: &Over) {
        self.close(number, &over.to_string());
    }

    /// Closes a connection. Of those whose clients have shown no key, not each is told.
    fn close(&mut self, number: Number, why: &str) {
        let Some(connection) = self.connections.remove(&number) else { return };
        self.waiting.retain(|(asked, _)| asked.by != number);
        if connection.client.is_none()
            && let Some(more) = self.refused.one_more(Instant::now())
        {
            (self.say)(&format!("{} is refused: {why}{more}", connection.peer));
        }
    }
}

impl Refused {
    /// What is said behind the cause of one more, if it is told.
    fn one_more(&mut self, now: Instant) -> Option<String> {
        if self.told.is_some_and(|told| now < told + REFUSED_TOLD) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        let before = std::mem::take(&mut self.untold);
        Some(if before > 0 { format!("; {before} more before it") } else { String::new() })
    }
}

/// Whose connection it is, in words.
fn whose(client: &PinnedClient, peer: SocketAddr) -> String {
    format!("{} ({}) at {peer}", client.name, client.role)
}

/// What a question changes, in words.
fn change(question: &ControlQuestion) -> Option<String> {
    match question {
        ControlQuestion::Install { bundle, confirm_within: None } => {
            Some(format!("hands a bundle of {} bytes in", bundle.len()))
        }
        ControlQuestion::Install { bundle, confirm_within: Some(seconds) } => {
            Some(format!("hands a bundle of {} bytes in, to be confirmed within {seconds} s", bundle.len()))
        }
        ControlQuestion::Confirm { .. } => Some("confirms".to_owned()),
        _ => None,
    }
}

/// What became of a change, in words.
fn became(answer: &CoreAnswer) -> String {
    match answer {
        CoreAnswer::Runs { policy, .. } => format!("version {} runs", policy.version),
        CoreAnswer::Refused(why) => format!("refused: {why}"),
        _ => "something else was answered".to_owned(),
    }
}

/// Asks `control`, one question after the other. It does not end before the process: once `control` is gone,
/// it says so and waits.
fn ask(
    mut control: Channel,
    questions: &Receiver<ControlQuestion>,
    answers: &Sender<Option<CoreAnswer>>,
    bell: &UnixStream,
) {
    for question in questions {
        let asked = control.send(&question, &[]).ok();
        let answer = asked.and_then(|()| control.receive_alone(LONGEST_MESSAGE).ok().flatten());
        let is_there = answer.is_some();
        let told = answers.send(answer).is_ok();
        // Where it is full, it has been rung.
        let _ = (&mut &*bell).write(&[1]);
        if !is_there || !told {
            break;
        }
    }
    loop {
        thread::park();
    }
}

fn timespec(time: Duration) -> Timespec {
    // A fraction of a millisecond more, so that what is due then is due.
    let time = time + Duration::from_millis(1);
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

#[cfg(test)]
mod tests;
