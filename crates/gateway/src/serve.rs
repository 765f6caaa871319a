//! Starts a gateway (program, control socket, ports, workers, routes, control server) and ends it.

use crate::config::{Config, ConfigError};
use crate::control::PortView;
use crate::control_server::{Closing, ConfigReader, ControlServer};
use crate::leases::Leasing;
use crate::limits::SNAPSHOT_BYTES;
use crate::metrics;
use crate::names::{self, Names, NamesError};
use crate::open_ports::{self, Opened};
use crate::remarks::Remarks;
use crate::routing::{Hosts, Routing};
use crate::snapshot::{self, Moment, Returned, SnapshotError};
use engine::live::look::Counted;
use engine::live::{self, Ended, Generation, Remote};
use engine::{Imbalance, Report};
use exec::provision::provide;
use ir::Program;
use ir::source::Sources;
use messages::listening;
use packet::PortNumber;
use ports::live::clock::{Clock, MachineClock};
use ports::live::{AttachError, TunnelError, keep_off};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Why a gateway does not start, or why it ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// an interface cannot become a port
    #[error("port {port}: {source}")]
    Attach {
        /// The port's number, counted from 1.
        port: u16,
        /// Why the interface cannot be attached.
        source: AttachError,
    },
    /// the program cannot be loaded; the text says why
    #[error("{0}")]
    Program(String),
    /// the file does not fit the program
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// the control socket cannot be made
    #[error("cannot be asked at {path}: {source}; `control` in the file names another place")]
    Control {
        /// The path of the socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// the metrics' address cannot be listened at
    #[error(
        "metrics cannot be asked for at {address}: {source}; `metrics` in the file names another address"
    )]
    Metrics {
        /// The address from the file.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// names cannot be answered
    #[error(transparent)]
    Names(#[from] NamesError),
    /// the tunnel of a process without ports cannot be opened
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// the packet loop failed
    #[error("the packet loop ended: {0}")]
    Loop(io::Error),
    /// the account of packets does not add up
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
}

/// How a gateway ended.
pub struct Served {
    /// The account of all packets under all programs. Its tables and counters are those of the last program.
    pub report: Report,
    /// How many programs ran, one after the other.
    pub programs: u64,
    /// The program that ran last.
    pub program: Arc<Program>,
    /// The text of that program.
    pub sources: Arc<Sources>,
}

/// Functions that a running gateway calls to report events.
#[derive(Clone, Copy)]
pub struct Telling {
    /// The interface of a port has come back. Arguments: the port's number, the interface's name, and the
    /// mode in which it was attached.
    pub back: fn(PortNumber, &str, &str),
    /// A remark for the operator, as a sentence.
    pub remark: fn(&str),
}

/// Runs a gateway until a client asks it to stop. It calls `started` right before the first packet, with the
/// ports' modes and a handle to the workers, and later the functions of `telling`.
///
/// # Errors
/// The ports, the program or the socket are wrong (then the gateway took no packet), or the packet loop
/// failed.
pub fn serve(
    config: &Config,
    reader: ConfigReader,
    started: impl FnOnce(&[PortView], Remote),
    telling: Telling,
) -> Result<Served, ServeError> {
    let (count, workers) = (config.ports.len() as u16, config.workers.count);
    let (mut loaded, policies) = (reader.load)(config).map_err(ServeError::Program)?;
    config.workers.suit(&loaded.program)?;
    config.routes_by(&loaded.program)?;
    config.check_keys()?;
    let carried = names::carried(config, &loaded.program)?;
    // Linux takes a second to clear some gigabytes, in which a port would lose packets.
    let bytes = (reader.provides)() / u64::from(workers.max(1));
    for backend in &mut loaded.backends {
        provide(&loaded.program, bytes, backend.as_mut(), |_| true);
    }
    let listening = listening::listen(&config.control)
        .map_err(|source| ServeError::Control { path: config.control.display().to_string(), source })?;
    let server = match config.metrics {
        Some(address) => Some(
            metrics::listen(address)
                .map_err(|source| ServeError::Metrics { address: address.to_string(), source })?,
        ),
        None => None,
    };
    let names = config.names.as_ref().map(Names::open).transpose()?.map(Arc::new);
    if let Some(path) = &config.snapshot {
        snapshot::probe(path).map_err(|error| {
            config.about_snapshot(format!("{} cannot be written: {error}", path.display()))
        })?;
    }
    let hosts = Hosts::make(&config.routing, &config.ports)
        .map_err(|(port, error)| config.about_host(port, error.to_string()))?;
    let Opened { ports, lanes } =
        open_ports::open(&config.ports, &vec![true; usize::from(count)], workers, telling, &[])
            .map_err(|(port, source)| ServeError::Attach { port, source })?;
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (crew, remote) = live::workers(lanes, &clock).map_err(ServeError::Loop)?;
    let remarks = Remarks::to(telling.remark).map_err(ServeError::Loop)?;
    let routing = Routing::new(&loaded.program, &config.routing, hosts, remarks)
        .map_err(|error| config.explain(error))?;
    for backend in &mut loaded.backends {
        routing.fill(backend.as_mut()).map_err(ServeError::Program)?;
    }
    if let (Some(names), Some(tables), Some(backend)) = (&names, carried, loaded.backends.first_mut()) {
        names.carry(&remote, tables, backend.as_mut(), telling.remark)?;
    }
    if let Some(path) = &config.snapshot {
        let now = Moment::now(clock.program());
        let read = snapshot::read(path, &loaded.program, &mut loaded.backends, &now);
        returned(path, read).iter().for_each(|words| (telling.remark)(words));
        let most = snapshot::most_bytes(&loaded.program, workers, &now);
        if most > SNAPSHOT_BYTES {
            (telling.remark)(&format!(
                "{}: full tables of this program would need {most} bytes, and a snapshot has at most {SNAPSHOT_BYTES}: if they hold more when the gateway ends, nothing is kept; a lower `capacity` helps",
                path.display()
            ));
        }
    }
    // A core that the file gives to a worker is for packets. Other threads, above all those that compile,
    // stay off it where they can.
    keep_off(&config.workers.cores).map_err(ServeError::Loop)?;
    let mut control_server = ControlServer::new(remote.clone(), reader, config.clone(), ports, routing);
    control_server.metrics = server;
    *control_server.policies() = policies;
    control_server.leasing = Leasing::new(names.clone(), telling.remark);
    control_server.names = names;
    control_server.table_access.fillers.waypoint = carried.is_some();
    control_server.telling = telling;
    let control_server = Arc::new(control_server);
    if let Some(path) = &config.snapshot {
        snapshot::put_aside(path).map_err(|error| {
            config.about_snapshot(format!("{} cannot be moved away: {error}", path.display()))
        })?;
    }
    let generations = loaded.generations(count, 1);
    if let Some(names) = &control_server.names {
        names.start(&control_server.ended).map_err(NamesError::System)?;
    }
    control_server.speak().map_err(ServeError::Loop)?;
    let run = || {
        started(&control_server.views(&[]), remote.clone());
        live::run(crew, generations, &remote, &config.workers.cores)
    };
    let Ended { generations: last, failure } = attend(&control_server, &listening.listener, run);
    control_server.leasing.release();
    if let Some(names) = &control_server.names {
        names.finish();
    }
    if let Some(path) = &control_server.config().snapshot {
        let lost = kept(path, &last, usize::from(workers), clock.program());
        lost.iter().for_each(|words| (telling.remark)(words));
    }
    if let Some(error) = failure {
        return Err(ServeError::Loop(error));
    }
    let whole = Counted::whole(last.iter().map(Counted::of))
        .ok_or_else(|| ServeError::Loop(io::Error::other("there is no worker")))?;
    let (program, sources) = (whole.program.clone(), whole.sources.clone());
    let (report, programs) = control_server.total(whole.report(&control_server.program())?);
    Ok(Served { report, programs, program, sources })
}

/// Writes a snapshot of what all workers ran last; if it cannot, what the operator is told.
fn kept(path: &Path, last: &[Generation], workers: usize, now: u64) -> Option<String> {
    let control: Vec<_> = last.iter().map(|generation| generation.backend.control()).collect();
    let written = match last.first() {
        Some(Generation { program, .. }) if last.len() == workers => {
            snapshot::write(path, program, &control, &Moment::now(now))
        }
        _ => Err(io::Error::other("a worker did not run")),
    };
    let error = written.err()?;
    Some(format!("what packets learned is lost: {}: {error}", path.display()))
}

/// What the operator is told of a snapshot that was read.
fn returned(path: &Path, read: Result<Option<Returned>, SnapshotError>) -> Vec<String> {
    let path = path.display();
    match read {
        Ok(None) => Vec::new(),
        Ok(Some(Returned { age, tables })) => {
            let age = age.map_or_else(
                || "of an earlier start of the machine".to_owned(),
                |seconds| format!("{seconds} s old"),
            );
            let some = tables.into_iter().filter(|(_, taken, left_out)| taken + left_out > 0);
            let told = some.map(|(name, taken, left_out)| {
                let all = taken + left_out;
                format!("{path}, {age}: {taken} of {all} entries of `{name}` came back")
            });
            told.collect()
        }
        Err(error) => vec![format!("{path}: nothing came back, since {error}")],
    }
}

/// Answers clients while the packet loop runs. When the packet loop ends, for any reason, this function waits
/// neither for clients that are being answered nor for the threads of the control plane.
fn attend<T>(control_server: &Arc<ControlServer>, listener: &UnixListener, run: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let _closing = Closing(control_server, listener);
        control_server.routing.start(control_server.remote(), &control_server.ended);
        scope.spawn(|| control_server.open(scope, listener));
        run()
    })
}

#[cfg(test)]
mod tests;
