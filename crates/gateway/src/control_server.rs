//! The control server of a running gateway: it answers each client on a thread of its own, away from the
//! packet threads.

use crate::config::Config;
use crate::control::{self, Asked, ControlAnswer, Conversation, GatewayView, PortView};
use crate::limits::{CLIENTS, SILENT};
use crate::open_ports::OpenPort;
use crate::reload::Reloading;
use crate::routing::Routing;
use crate::serve::Telling;
use crate::tables::{self, Known, TableAccess};
use crate::{http, metrics, seeing};
use engine::live::look::{Counted, LossesSince};
use engine::live::{Loaded, Remote};
use engine::places;
use ports::live::clock::{Clock, MachineClock};
use rustix::net::{Shutdown, shutdown};
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown as StreamShutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait when no client can be taken, as when descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the file that describes a gateway. An error is a text for people.
pub type ReadConfig = dyn Fn() -> Result<Config, String> + Send + Sync;

/// Loads the program that such a file names, for the file's ports and workers, and fills its tables from the
/// files that it names. An error is a text for people.
pub type Load = dyn Fn(&Config) -> Result<Loaded, String> + Send + Sync;

/// How a gateway reads its file and loads its program, at the start and at each reload.
#[derive(Clone)]
pub struct ConfigReader {
    /// Reads its file.
    pub config: Arc<ReadConfig>,
    /// Loads the program that the file names.
    pub load: Arc<Load>,
}

/// What the threads that answer clients share. Nobody waits for these threads when the gateway ends.
pub(crate) struct ControlServer {
    pub(crate) remote: Remote,
    pub(crate) reader: ConfigReader,
    /// The configuration in force.
    config: Mutex<Config>,
    /// The ports in order.
    ports: Mutex<Vec<OpenPort>>,
    /// Who is told of ports.
    pub(crate) telling: Telling,
    pub(crate) routing: Arc<Routing>,
    pub(crate) reloading: Reloading,
    clients: Mutex<HashMap<u64, Client>>,
    visits: AtomicU64,
    pub(crate) ended: Arc<AtomicBool>,
    pub(crate) table_access: TableAccess,
    /// The listening socket of the metrics, if the file asks for one.
    pub(crate) metrics: Option<TcpListener>,
}

/// A client at the control socket.
struct Client {
    stream: UnixStream,
    /// Since when it has been its turn to say something, if it is.
    silent: Option<Instant>,
}

/// When this is dropped, all clients are disconnected and no new ones are accepted, however the packet loop
/// ended.
pub(crate) struct Closing<'a>(pub(crate) &'a ControlServer, pub(crate) &'a UnixListener);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Closing(server, listener) = self;
        server.ended.store(true, Ordering::SeqCst);
        // If the listener is shut down already, nobody waits at it.
        let _ = shutdown(listener, Shutdown::Both);
        if let Some(metrics) = &server.metrics {
            let _ = shutdown(metrics, Shutdown::Both);
        }
        for client in server.clients().values() {
            // The client may have disconnected already.
            let _ = client.stream.shutdown(StreamShutdown::Both);
        }
    }
}

impl ControlServer {
    pub(crate) fn new(
        remote: Remote,
        reader: ConfigReader,
        config: Config,
        ports: Vec<OpenPort>,
        routing: Routing,
    ) -> ControlServer {
        let routing = Arc::new(routing);
        ControlServer {
            table_access: TableAccess::new(remote.clone(), routing.clone()),
            remote,
            reader,
            config: Mutex::new(config),
            ports: Mutex::new(ports),
            telling: Telling { back: |_, _, _| (), remark: |_| () },
            routing,
            reloading: Reloading::new(),
            clients: Mutex::default(),
            visits: AtomicU64::new(0),
            ended: Arc::default(),
            metrics: None,
        }
    }

    /// Answers clients until the packet loop has ended, each on a thread for which nobody waits.
    pub(crate) fn open<'s>(
        self: &'s Arc<ControlServer>,
        scope: &'s thread::Scope<'s, '_>,
        listener: &UnixListener,
    ) {
        if let Some(server) = &self.metrics {
            scope.spawn(move || {
                let page = |method: &str, path: &str| metrics::page(method, path, &|| self.view());
                http::serve(server, &self.ended, &page);
            });
        }
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
            // A client may disconnect at any time, or say nothing.
            let answer = move || drop(visit.answer(&stream));
            // If no thread can be made, the client is disconnected.
            let _ = thread::Builder::new().name("client".to_owned()).spawn(answer);
        }
    }

    /// Registers a client, unless there are too many and none of them has been silent for long; `None` if
    /// file descriptors have run out.
    fn enter(self: &Arc<ControlServer>, stream: UnixStream) -> Option<(Option<Visit>, UnixStream)> {
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

    fn answer(
        self: &Arc<ControlServer>,
        asked: Asked,
        tables: &mut Option<Known>,
        say: &mut dyn FnMut(&ControlAnswer) -> io::Result<()>,
    ) -> ControlAnswer {
        match asked {
            Asked::Picture => match self.view() {
                Ok(view) => ControlAnswer::Picture(Box::new(view)),
                Err(error) => ControlAnswer::Error(error),
            },
            Asked::Watch(wanted) => seeing::watch(&self.remote, &wanted, say),
            Asked::Why { filter, last } => seeing::why(&self.remote, &filter, last),
            Asked::Reload => self.reload(),
            Asked::Routes => ControlAnswer::Routes(Box::new(self.routing.routes())),
            Asked::Neighbours => ControlAnswer::Neighbours(Box::new(self.routing.neighbours())),
            Asked::Measure { seconds } => self.measure(seconds),
            Asked::Tables { version } => match self.tables(version) {
                Ok(known) => {
                    let known = tables.insert(known);
                    ControlAnswer::Tables(Box::new(known.schema.clone()))
                }
                Err(error) => ControlAnswer::Error(error),
            },
            Asked::Stop => ControlAnswer::Done("stopping".to_owned()),
        }
    }

    fn view(&self) -> Result<GatewayView, String> {
        let ended = || "the packet loop has ended".to_owned();
        let whole = self.remote.look().and_then(Counted::whole).ok_or_else(ended)?;
        let (number, losses, lost) = (whole.number, whole.losses.clone(), whole.punts_lost.clone());
        let (seconds, program) = (whole.age.as_secs_f64(), whole.program.clone());
        let places = places::of_reasons(&program, &whole.sources);
        let report = whole.report(&self.program()).map_err(|error| error.to_string())?;
        let named = |places: Vec<String>, name: &str| (!places.is_empty()).then(|| (name.to_owned(), places));
        Ok(GatewayView {
            seconds,
            generation: number,
            report,
            reasons: (program.reasons.iter())
                .map(|reason| (reason.name.clone(), reason.help.clone()))
                .collect(),
            places: (program.reasons.iter().zip(places))
                .filter_map(|(reason, places)| named(places, &reason.name))
                .collect(),
            workers: u64::from(self.config().workers.count),
            punt_queue_full: lost.iter().sum(),
            punts_lost: (program.reasons.iter().zip(lost))
                .filter(|(_, lost)| *lost > 0)
                .map(|(reason, lost)| (reason.name.clone(), lost))
                .collect(),
            kernel_routes_unmeant: self.routing.unmeant() as u64,
            ports: self.views(&losses),
        })
    }

    /// The tables of the program, for a client that speaks this version of the protocol.
    fn tables(&self, version: u32) -> Result<Known, String> {
        if version != client::VERSION {
            return Err(format!(
                "`version`: this gateway speaks version {} of the protocol of tables",
                client::VERSION
            ));
        }
        Known::now(&self.remote, &self.routing, &self.program()).map_err(|fault| fault.message)
    }

    fn measure(&self, seconds: f64) -> ControlAnswer {
        if !(0.01..=60.0).contains(&seconds) {
            return ControlAnswer::Error("`seconds`: between 0.01 and 60".to_owned());
        }
        match self.remote.measure(Duration::from_secs_f64(seconds)) {
            Some(measurement) => ControlAnswer::Measure(Box::new(measurement)),
            None => ended(),
        }
    }

    /// The ports with what was lost at each, if anybody has asked yet.
    pub(crate) fn views(&self, losses: &[LossesSince]) -> Vec<PortView> {
        let losses = losses.iter().copied().chain(std::iter::repeat(LossesSince::default()));
        (1..)
            .zip(self.ports().iter())
            .zip(losses)
            .map(|((port, OpenPort { name, mode, presence }), losses)| PortView {
                port,
                interface: name.clone(),
                mode: presence.mode().unwrap_or_else(|| mode.clone()),
                gone_seconds: presence.gone_since().map(seconds_since),
                gone_because: presence.refused(),
                untraced_because: presence.untraced(),
                vanished: presence.vanished(),
                host: self.routing.host(port),
                losses: losses.takeover,
                since_attached: losses.attached,
            })
            .collect()
    }

    /// The ports there are.
    pub(crate) fn ports(&self) -> MutexGuard<'_, Vec<OpenPort>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the packet loop is asked.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The program's file.
    pub(crate) fn program(&self) -> String {
        self.config().program.display().to_string()
    }

    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since a time of the program.
fn seconds_since(time: u64) -> f64 {
    Duration::from_nanos(MachineClock.program().saturating_sub(time)).as_secs_f64()
}

/// A client that is being answered.
struct Visit(Arc<ControlServer>, u64);

impl Visit {
    /// Answers the client until it disconnects.
    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        let (server, turn) = (&self.0, |silent| self.turn(silent));
        let mut known = None;
        let conversation =
            control::converse(stream, &turn, &mut |asked, say| server.answer(asked, &mut known, say))?;
        match (conversation, known) {
            (Conversation::Tables(reader), Some(known)) => {
                let program = || server.program();
                tables::converse(&server.table_access, known, &program, stream, reader, &turn)
            }
            (Conversation::Stop, _) => {
                server.remote.stop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// It is the client's turn to say something, or not.
    fn turn(&self, silent: bool) {
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

pub(crate) fn ended() -> ControlAnswer {
    ControlAnswer::Error("the packet loop has ended".to_owned())
}
