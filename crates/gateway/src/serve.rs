//! Starting a gateway: ports, program, packet loop and control, in this order; and ending it in the other.

use crate::config::{Config, ConfigError};
use crate::control::{self, PortView};
use crate::control_server::{Closing, ConfigReader, ControlServer, Snapshot};
use crate::metrics;
use crate::remarks::Remarks;
use crate::routing::Routing;
use engine::live::{self, Remote};
use engine::{Imbalance, Report};
use lang::ir::Program;
use lang::source::Sources;
use packet::PortNumber;
use ports::live::clock::{Clock, MachineClock};
use ports::live::{AttachError, Heard, attach_all, keep_off};
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
    /// The account of all packets, whichever program they had. Tables and counters are those of the last one.
    pub report: Report,
    /// How many programs have run, one after the other.
    pub programs: u64,
    /// The last program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
}

/// Who is told of what happens while a gateway runs.
#[derive(Clone, Copy)]
pub struct Telling {
    /// The interface of a port is there again: its number, its name and what was obtained.
    pub back: fn(PortNumber, &str, &str),
    /// Something that whoever runs it should know, in words.
    pub remark: fn(&str),
}

/// Runs a gateway until it is asked to stop. `started` is called once packets run, with the ports' modes and
/// a way to ask it; `telling` is told of what happens then.
///
/// # Errors
/// What is wrong with the ports, the program or the socket; then no packet has been taken.
pub fn serve(
    config: &Config,
    reader: ConfigReader,
    started: impl FnOnce(&[PortView], Remote),
    telling: Telling,
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
        let told = move |heard: &Heard| match heard {
            Heard::Back(mode) => (telling.back)(port, &name, mode),
            Heard::Remark(words) => (telling.remark)(&format!("port {port}: {name}: {words}")),
        };
        attached.presence.tell(told).map_err(ServeError::Loop)?;
        ports.push((attached.name, attached.mode, attached.presence));
        lanes.iter_mut().zip(attached.lanes).for_each(|(worker, lane)| worker.push(lane));
    }
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (crew, remote) = live::workers(lanes, &clock).map_err(ServeError::Loop)?;
    let remarks = Remarks::to(telling.remark).map_err(ServeError::Loop)?;
    let routing =
        Routing::new(&loaded.program, &config.routing, remarks).map_err(|error| config.explain(error))?;
    for backend in &mut loaded.backends {
        routing.fill(backend.as_mut()).map_err(ServeError::Program)?;
    }
    // Whoever asks for a core for a worker wants it for packets: what else runs, above all compiling, stays
    // away from it where it can.
    keep_off(&config.workers.cores).map_err(ServeError::Loop)?;
    let mut control_server = ControlServer::new(remote.clone(), reader, config.clone(), ports, routing);
    control_server.metrics = server;
    let control_server = Arc::new(control_server);
    let generations = loaded.generations(count, 1);
    let run = || {
        started(&control_server.views(&[]), remote.clone());
        live::run(crew, generations, &remote, &config.workers.cores)
    };
    let last = attend(&control_server, &listening.listener, run).map_err(ServeError::Loop)?;
    let (program, sources) = match last.first() {
        Some(first) => (first.program.clone(), first.sources.clone()),
        None => return Err(ServeError::Loop(io::Error::other("there is no worker"))),
    };
    let parts: Vec<_> = last.iter().map(Snapshot::of).collect();
    let whole =
        Snapshot::whole(parts).ok_or_else(|| ServeError::Loop(io::Error::other("there is no worker")))?;
    let (report, programs) = control_server.total(whole.report(&control_server.program())?);
    Ok(Served { report, programs, program, sources })
}

/// Answers clients while the packet loop runs. However that ends, nobody is waited for then: neither whoever
/// is being answered nor what control is about.
fn attend<T>(control_server: &Arc<ControlServer>, listener: &UnixListener, run: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let _closing = Closing(control_server, listener);
        scope.spawn(|| control_server.open(scope, listener));
        control_server.routing.start(control_server.remote(), &control_server.ended);
        run()
    })
}

#[cfg(test)]
mod tests;
