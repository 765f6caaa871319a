//! The clients at the control socket: how many there are, and who gives way to another.

use crate::control::{self, ControlAnswer};
use crate::limits::{CLIENTS, SILENT};
use rustix::net::{Shutdown, shutdown};
use std::collections::HashMap;
use std::net::Shutdown as StreamShutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait when no client can be taken, as when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// The clients that are being answered.
pub(crate) struct Clients {
    all: Mutex<HashMap<u64, Client>>,
    visits: AtomicU64,
    ended: Arc<AtomicBool>,
}

/// A client at the control socket.
struct Client {
    stream: UnixStream,
    /// Since when it has been its turn to say something, if it is.
    silent: Option<Instant>,
}

/// Answers one client until it disconnects.
pub(crate) type Attending = dyn Fn(&Visit, &UnixStream) + Send + Sync;

impl Clients {
    /// Nobody yet. Once `ended` is true, nobody is taken in any more.
    pub(crate) fn new(ended: Arc<AtomicBool>) -> Clients {
        Clients { all: Mutex::default(), visits: AtomicU64::new(0), ended }
    }

    /// Takes clients until the end, and answers each on a thread for which nobody waits.
    pub(crate) fn attend(self: &Arc<Clients>, listener: &UnixListener, answer: &Arc<Attending>) {
        for stream in listener.incoming() {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let Some((visit, stream)) = stream.ok().and_then(|stream| self.enter(stream)) else {
                thread::sleep(PAUSE);
                continue;
            };
            let Some(visit) = visit else {
                let text = format!("{CLIENTS} clients are being answered already: ask again later");
                // A client may disconnect at any time.
                let _ = control::say(&stream, &ControlAnswer::Error(text));
                continue;
            };
            let answer = answer.clone();
            // If no thread can be made, the client is disconnected.
            let _ = thread::Builder::new().name("client".to_owned()).spawn(move || answer(&visit, &stream));
        }
    }

    /// Registers a client, unless there are too many and none of them has been silent for long; `None` if
    /// file descriptors have run out.
    fn enter(self: &Arc<Clients>, stream: UnixStream) -> Option<(Option<Visit>, UnixStream)> {
        let mut clients = self.clients();
        if clients.len() >= CLIENTS {
            let silent = clients.iter().filter_map(|(number, client)| Some((client.silent?, *number)));
            let longest = silent.min().filter(|(since, _)| since.elapsed() >= SILENT);
            let Some(client) = longest.and_then(|(_, number)| clients.remove(&number)) else {
                return Some((None, stream));
            };
            // The client's thread then reads the end of the stream.
            let _ = client.stream.shutdown(StreamShutdown::Both);
        }
        let number = self.visits.fetch_add(1, Ordering::Relaxed);
        let client = Client { stream: stream.try_clone().ok()?, silent: Some(Instant::now()) };
        clients.insert(number, client);
        // Whoever closes the server shuts the streams that it finds after saying so.
        if self.ended.load(Ordering::SeqCst) {
            let _ = stream.shutdown(StreamShutdown::Both);
        }
        Some((Some(Visit(self.clone(), number)), stream))
    }

    /// Disconnects all, and lets nobody in any more.
    pub(crate) fn end(&self, listener: &UnixListener) {
        self.ended.store(true, Ordering::SeqCst);
        // If the listener is shut down already, nobody waits at it.
        let _ = shutdown(listener, Shutdown::Both);
        for client in self.clients().values() {
            // The client may have disconnected already.
            let _ = client.stream.shutdown(StreamShutdown::Both);
        }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that is being answered.
pub(crate) struct Visit(Arc<Clients>, u64);

impl Visit {
    /// It is the client's turn to say something, or not.
    pub(crate) fn turn(&self, silent: bool) {
        if let Some(client) = self.0.clients().get_mut(&self.1) {
            client.silent = silent.then(Instant::now);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.clients().remove(&self.1);
    }
}
