//! A process that answers for names and has no ports: its control socket, its start and its end.

use crate::clients::{Attending, Clients};
use crate::config::AloneConfig;
use crate::control::{self, Asked, ControlAnswer, Conversation};
use crate::http;
use crate::leases::Leasing;
use crate::metrics::{self, Seen};
use crate::names::{LOOK, Names, NamesError, NamesView};
use crate::serve::ServeError;
use messages::listening;
use ports::live::tunnel::LoneTunnel;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Ends a process that answers for names.
#[derive(Clone, Debug)]
pub struct Stopper(SyncSender<()>);

impl Stopper {
    /// Lets it end.
    pub fn stop(&self) {
        // If one is there already, it ends as it is.
        let _ = self.0.try_send(());
    }
}

/// Answers for names until a client or the stopper ends it. It calls `started` when everybody can ask.
///
/// # Errors
/// The zone, an address or the socket is wrong, or the system has no thread.
pub fn serve(config: &AloneConfig, started: impl FnOnce(Stopper)) -> Result<(), ServeError> {
    let listening = listening::listen(&config.control)
        .map_err(|source| ServeError::Control { path: config.control.display().to_string(), source })?;
    let metrics = match config.metrics {
        Some(address) => Some(
            metrics::listen(address)
                .map_err(|source| ServeError::Metrics { address: address.to_string(), source })?,
        ),
        None => None,
    };
    let names = Arc::new(Names::open(&config.names)?);
    let ended: Arc<AtomicBool> = Arc::default();
    let tunnel = config.tunnel.as_ref().map(LoneTunnel::open).transpose()?;
    let leasing = Leasing::new(Some(names.clone()), |_| ());
    if let Some((mut tunnel, control)) = tunnel {
        leasing.follow(None, &[control], &ended).map_err(NamesError::System)?;
        let (until, names) = (ended.clone(), names.clone());
        let run = move || {
            while !until.load(Ordering::SeqCst) {
                let packets = tunnel.turn(LOOK);
                if packets > 0 {
                    let reason = "packet of a peer, for which there is no program".to_owned();
                    names.answering().refuse_all(reason, packets);
                }
            }
        };
        thread::Builder::new().name("tunnel".to_owned()).spawn(run).map_err(NamesError::System)?;
    }
    let clients = Arc::new(Clients::new(ended.clone()));
    let (stop, stopped) = sync_channel(1);
    let stopper = Stopper(stop);
    names.start(&ended).map_err(NamesError::System)?;
    let (here, ends, leasing) = (names.clone(), stopper.clone(), Arc::new(leasing));
    let answer: Arc<Attending> = Arc::new(move |visit, stream| {
        let answer =
            &mut |asked, _: &mut dyn FnMut(&ControlAnswer) -> io::Result<()>| answer(&here, &leasing, &asked);
        // A client may disconnect at any time, or say nothing.
        if let Ok(Conversation::Stop) = control::converse(stream, &|silent| visit.turn(silent), answer) {
            ends.stop();
        }
    });
    thread::scope(|scope| {
        let _closing =
            Closing { clients: &clients, listener: &listening.listener, metrics: metrics.as_ref() };
        if let Some(metrics) = &metrics {
            let page = |method: &str, path: &str| {
                metrics::page(method, path, &|| {
                    Ok(Seen { gateway: None, policy: None, names: Some(names.figures()) })
                })
            };
            let (ended, page) = (&ended, page);
            scope.spawn(move || http::serve(metrics, ended, &page));
        }
        scope.spawn(|| clients.attend(&listening.listener, &answer));
        started(stopper);
        // All senders are gone only when nobody can end it any more.
        let _ = stopped.recv();
    });
    Ok(())
}

fn answer(names: &Names, leasing: &Leasing, asked: &Asked) -> ControlAnswer {
    match asked {
        Asked::Names => {
            let control_drops = leasing.view().drops;
            ControlAnswer::Names(Box::new(NamesView { control_drops, ..names.view() }))
        }
        Asked::Stop => ControlAnswer::Done("stopping".to_owned()),
        asked => names.answer(asked),
    }
}

/// When this is dropped, all clients are disconnected and no new ones are accepted.
struct Closing<'a> {
    clients: &'a Clients,
    listener: &'a UnixListener,
    metrics: Option<&'a TcpListener>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.clients.end(self.listener);
        if let Some(metrics) = self.metrics {
            // If it is shut down already, nobody waits at it.
            let _ = shutdown(metrics, Shutdown::Both);
        }
    }
}
