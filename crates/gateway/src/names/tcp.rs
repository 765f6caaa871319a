//! Queries by TCP (RFC 7766): a thread for each connection, which answers one query after the other.

use crate::limits::{
    DNS_CONNECTION_BYTES, DNS_CONNECTIONS, DNS_CONNECTIONS_OF_NETWORK, DNS_IDLE, DNS_PATIENCE, DNS_QUERY,
};
use crate::names::Names;
use crate::names::answering::{Received, ReplyTo, Taken};
use naming::dns::DnsTransport;
use naming::network;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether all ends.
const LOOK: Duration = Duration::from_millis(200);

/// The memory of a thread that answers: a query, a reply, and what the name server needs.
const STACK: usize = 256 << 10;

pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The connections there are.
#[derive(Default)]
pub(super) struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: u64,
    all: HashMap<u64, Connection>,
}

struct Connection {
    stream: TcpStream,
    network: u128,
    /// Since when it has not begun a query.
    silent: Option<Instant>,
}

impl Connections {
    pub(super) fn count(&self) -> u64 {
        self.open().all.len() as u64
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection in, if there is room for it.
    fn enter(&self, stream: &TcpStream, from: SocketAddr) -> Result<u64, &'static str> {
        let network = network(from.ip().to_canonical());
        let mut open = self.open();
        let of_network = open.all.values().filter(|one| one.network == network).count();
        if of_network >= DNS_CONNECTIONS_OF_NETWORK {
            return Err("too many connections of a network");
        }
        if open.all.len() >= DNS_CONNECTIONS {
            let silent = open.all.iter().filter_map(|(number, one)| Some((one.silent?, *number)));
            let Some((_, longest)) = silent.min() else { return Err("too many connections") };
            if let Some(one) = open.all.remove(&longest) {
                // Its thread then reads the end of the stream.
                let _ = one.stream.shutdown(Shutdown::Both);
            }
        }
        let stream = stream.try_clone().map_err(|_| "no descriptor for a connection")?;
        let number = open.next;
        open.next += 1;
        open.all.insert(number, Connection { stream, network, silent: Some(Instant::now()) });
        Ok(number)
    }

    fn turn(&self, number: u64, silent: bool) {
        if let Some(one) = self.open().all.get_mut(&number) {
            one.silent = silent.then(Instant::now);
        }
    }
}

/// Answers until `ended` is true.
pub(super) fn serve(listener: &TcpListener, names: &Arc<Names>, ended: &Arc<AtomicBool>) {
    while !ended.load(Ordering::SeqCst) {
        // The listener does not wait, so that the end is seen.
        let Ok((stream, from)) = listener.accept() else {
            wait(listener);
            continue;
        };
        let number = match names.connections.enter(&stream, from) {
            Ok(number) => number,
            Err(reason) => {
                names.answering().refuse(reason.to_owned());
                continue;
            }
        };
        let (here, until) = (names.clone(), ended.clone());
        let answer = move || {
            // Whoever asks may go at any time.
            let _ = converse(&stream, from, number, &here, &until);
            here.connections.open().all.remove(&number);
        };
        let thread = thread::Builder::new().name("names-client".to_owned()).stack_size(STACK);
        if thread.spawn(answer).is_err() {
            names.connections.open().all.remove(&number);
            names.answering().refuse("no thread for a connection".to_owned());
        }
    }
}

/// Waits until somebody connects, or for a short time.
fn wait(listener: &TcpListener) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_most = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
    // A fault only means that it is looked again, at once.
    if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&at_most)).is_err() {
        thread::sleep(LOOK);
    }
}

/// Answers the queries of a connection until it ends, is silent, or has had its share.
fn converse(
    stream: &TcpStream,
    from: SocketAddr,
    number: u64,
    names: &Names,
    ended: &AtomicBool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let (mut query, mut had) = (vec![0; DNS_QUERY], 0);
    while had < DNS_CONNECTION_BYTES {
        let mut length = [0; 2];
        names.connections.turn(number, true);
        read(stream, &mut length[..1], Instant::now() + DNS_IDLE, ended)?;
        names.connections.turn(number, false);
        let end = Instant::now() + DNS_PATIENCE;
        read(stream, &mut length[1..], end, ended)?;
        let length = usize::from(u16::from_be_bytes(length));
        let Some(bytes) = query.get_mut(..length) else {
            names.answering().refuse(format!("longer than {DNS_QUERY} bytes"));
            return Ok(());
        };
        read(stream, bytes, end, ended)?;
        had += 2 + length;
        let received = Received { bytes, from, transport: DnsTransport::Tcp, under_load: false };
        let (sender, later) = sync_channel(1);
        // The lock ends before the reply is written.
        let taken = names.answering().take(&[received], &|_| ReplyTo::Tcp(sender.clone())).pop();
        // Only who answers later has a way to here, and if it is gone nobody answers.
        drop(sender);
        let reply = match taken {
            Some(Taken::Reply(reply)) => reply,
            Some(Taken::Nothing) | None => return Ok(()),
            Some(Taken::Later) => {
                // A query is answered when it has waited for three seconds. Nobody answers it at the end.
                let waited = later.recv_timeout(DNS_PATIENCE);
                waited.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
            }
        };
        // The length before a message has two bytes, and no reply is longer than it can say.
        let whole = [&(reply.len() as u16).to_be_bytes()[..], &reply].concat();
        write(stream, &whole, Instant::now() + DNS_PATIENCE, ended)?;
    }
    Ok(())
}

/// The time for the next step, at most [`LOOK`]; an error if it is over.
fn step(end: Instant, ended: &AtomicBool) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() || ended.load(Ordering::SeqCst) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left.min(LOOK))
}

fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn read(mut stream: &TcpStream, mut to: &mut [u8], end: Instant, ended: &AtomicBool) -> io::Result<()> {
    while !to.is_empty() {
        stream.set_read_timeout(Some(step(end, ended)?))?;
        match stream.read(to) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => to = &mut to[length..],
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write(mut stream: &TcpStream, mut from: &[u8], end: Instant, ended: &AtomicBool) -> io::Result<()> {
    while !from.is_empty() {
        stream.set_write_timeout(Some(step(end, ended)?))?;
        match stream.write(from) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => from = &from[length..],
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
