//! Starting a gateway: ports, program, packet loop and control, in this order; and ending it in the other.

use crate::config::{Config, ConfigError};
use crate::control::{self, PortPicture};
use crate::desk::{Closing, Desk, Reader, Snapshot};
use crate::metrics;
use crate::routing::Routing;
use engine::live::{self, Remote};
use engine::{Imbalance, Report};
use lang::ir::Program;
use lang::source::Sources;
use packet::PortNumber;
use ports::live::{AttachError, attach_all, keep_off};
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

/// Why a gateway does not start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// a port
    #[error("port {port}: {source}")]
    Attach {
        /// Its number.
        port: u16,
        /// Why it cannot be attached.
        source: AttachError,
    },
    /// the program
    #[error("{0}")]
    Program(String),
    /// the file and the program together
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// the control socket
    #[error("cannot be asked at {path}: {source}; `control` in the file names another place")]
    Control {
        /// The socket.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// the metrics
    #[error(
        "metrics cannot be asked for at {address}: {source}; `metrics` in the file names another address"
    )]
    Metrics {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// the packet loop
    #[error("the packet loop ended: {0}")]
    Loop(io::Error),
    /// the account
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
}

/// How a gateway ended.
pub struct Served {
    /// The account of the last program.
    pub report: Report,
    /// That program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
}

/// Runs a gateway until it is asked to stop. `started` is called once packets run, with the ports' modes and a way to ask it; `back` whenever the
/// interface of a port is there again, with its number, its name and what was obtained.
///
/// # Errors
/// What is wrong with the ports, the program or the socket; then no packet has been taken.
pub fn serve(
    config: &Config,
    reader: Reader<'_>,
    started: impl FnOnce(&[PortPicture], Remote),
    back: fn(PortNumber, &str, &str),
) -> Result<Served, ServeError> {
    let (count, workers) = (config.ports.len() as u16, config.workers.count);
    let mut loaded = (reader.load)(config).map_err(ServeError::Program)?;
    config.workers.suit(&loaded.program)?;
    config.routes_by(&loaded.program)?;
    let listening = control::listen(&config.control)
        .map_err(|source| ServeError::Control { path: config.control.display().to_string(), source })?;
    let server = match config.metrics {
        Some(address) => Some(
            metrics::listen(address)
                .map_err(|source| ServeError::Metrics { address: address.to_string(), source })?,
        ),
        None => None,
    };
    let mut ports = Vec::new();
    let mut lanes: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    let attached =
        attach_all(&config.ports, workers).map_err(|(port, source)| ServeError::Attach { port, source })?;
    for (port, attached) in (1..).zip(attached) {
        let name = attached.name.clone();
        attached.presence.tell(move |mode| back(port, &name, mode)).map_err(ServeError::Loop)?;
        ports.push((attached.name, attached.mode, attached.presence));
        lanes.iter_mut().zip(attached.lanes).for_each(|(worker, lane)| worker.push(lane));
    }
    let (crew, remote) = live::workers(lanes).map_err(ServeError::Loop)?;
    let routing = Routing::new(&loaded.program, &config.routing).map_err(|error| config.explain(error))?;
    for processor in &mut loaded.processors {
        routing.fill(processor.as_mut()).map_err(ServeError::Program)?;
    }
    // Whoever asks for a core for a worker wants it for packets: what else runs, above all compiling, stays away from it where it can.
    keep_off(&config.workers.cores).map_err(ServeError::Loop)?;
    let mut desk = Desk::new(remote.clone(), reader, config.clone(), ports, routing);
    desk.metrics = server;
    let generations = loaded.generations(count, 1);
    let run = || {
        started(&desk.pictures(&[]), remote.clone());
        live::run(crew, generations, &remote, &config.workers.cores)
    };
    let mut last = attend(&desk, &listening.listener, run).map_err(ServeError::Loop)?;
    let (program, sources) = match last.first() {
        Some(first) => (first.program.clone(), first.sources.clone()),
        None => return Err(ServeError::Loop(io::Error::other("there is no worker"))),
    };
    let parts: Vec<_> = last.iter_mut().map(|part| Snapshot::of(part, &[])).collect();
    let whole =
        Snapshot::whole(parts).ok_or_else(|| ServeError::Loop(io::Error::other("there is no worker")))?;
    Ok(Served { report: whole.report(&desk.program())?, program, sources })
}

/// Answers clients while the packet loop runs. However that ends, nobody is waited for then.
fn attend<T>(desk: &Desk<'_>, listener: &UnixListener, run: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let _closing = Closing(desk, listener);
        scope.spawn(|| desk.open(scope, listener));
        desk.routing.start(scope, desk.remote(), &desk.ended);
        run()
    })
}

#[cfg(test)]
mod tests;
