//! The control server of a running gateway: it answers each client on a thread of its own, away from the
//! packet threads.

use crate::active::active;
use crate::clients::{Attending, Clients, Visit};
use crate::config::Config;
use crate::control::{self, Asked, ControlAnswer, Conversation, GatewayView, PortView};
use crate::leases::Leasing;
use crate::metrics::Seen;
use crate::names::{Names, WhyNameView, WhyNameWish};
use crate::open_ports::OpenPort;
use crate::reload::Reloading;
use crate::review::{Policies, Review};
use crate::routing::Routing;
use crate::serve::Telling;
use crate::tables::{self, Known, TableAccess};
use crate::{http, metrics, policies, seeing};
use client::{RefusalCode, RequestRefusal};
use engine::live::look::{Counted, LossesSince};
use engine::live::{Loaded, Remote};
use engine::places;
use lang::policy_model::PolicyModel;
use ports::live::TunnelControl;
use ports::live::clock::{Clock, MachineClock};
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Reads the file that describes a gateway. An error is a text for people.
pub type ReadConfig = dyn Fn() -> Result<Config, String> + Send + Sync;

/// Loads the program that such a file names, for the file's ports and workers, and fills its tables from the
/// files that it names; and gives its policies. An error is a text for people.
pub type Load = dyn Fn(&Config) -> Result<(Loaded, Policies), String> + Send + Sync;

/// How a gateway reads its file and loads its program, at the start and at each reload.
#[derive(Clone)]
pub struct ConfigReader {
    /// Reads its file.
    pub config: Arc<ReadConfig>,
    /// Loads the program that the file names.
    pub load: Arc<Load>,
    /// What is compared before the program takes over from another one.
    pub review: Arc<Review>,
    /// How many bytes of memory its tables may be given before packets come, at all workers together.
    pub provides: fn() -> u64,
}

/// What the threads that answer clients share. Nobody waits for these threads when the gateway ends.
pub(crate) struct ControlServer {
    pub(crate) remote: Remote,
    pub(crate) reader: ConfigReader,
    /// The configuration in force.
    config: Mutex<Config>,
    /// The policies of the program that runs.
    pub(crate) policies: Mutex<Policies>,
    /// The ports in order.
    ports: Mutex<Vec<OpenPort>>,
    /// Who is told of ports.
    pub(crate) telling: Telling,
    pub(crate) routing: Arc<Routing>,
    pub(crate) reloading: Reloading,
    clients: Arc<Clients>,
    pub(crate) ended: Arc<AtomicBool>,
    pub(crate) table_access: TableAccess,
    /// The listening socket of the metrics, if the file asks for one.
    pub(crate) metrics: Option<TcpListener>,
    /// The name server, if the file asks for one.
    pub(crate) names: Option<Arc<Names>>,
    /// What is said over tunnels.
    pub(crate) leasing: Leasing,
}

/// When this is dropped, all clients are disconnected and no new ones are accepted, however the packet loop
/// ended.
pub(crate) struct Closing<'a>(pub(crate) &'a ControlServer, pub(crate) &'a UnixListener);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Closing(server, listener) = self;
        server.clients.end(listener);
        if let Some(metrics) = &server.metrics {
            let _ = shutdown(metrics, Shutdown::Both);
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
        let (routing, ended) = (Arc::new(routing), Arc::<AtomicBool>::default());
        ControlServer {
            table_access: TableAccess::new(remote.clone(), routing.clone()),
            remote,
            reader,
            config: Mutex::new(config),
            policies: Mutex::default(),
            ports: Mutex::new(ports),
            telling: Telling { back: |_, _, _| (), remark: |_| () },
            routing,
            reloading: Reloading::new(),
            clients: Arc::new(Clients::new(ended.clone())),
            ended,
            metrics: None,
            names: None,
            leasing: Leasing::default(),
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
                let seen = || {
                    let names = self.names.as_ref().map(|names| names.figures());
                    Ok(Seen { gateway: Some(self.view()?), policy: None, names })
                };
                let page = |method: &str, path: &str| metrics::page(method, path, &seen);
                http::serve(server, &self.ended, &page);
            });
        }
        let server = self.clone();
        // A client may disconnect at any time, or say nothing.
        let answer: Arc<Attending> = Arc::new(move |visit, stream| drop(server.converse(visit, stream)));
        self.clients.attend(listener, &answer);
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
            Asked::Reload(wish) => self.reload(&wish, say),
            Asked::Active => match active(&self.remote) {
                Some(view) => ControlAnswer::Active(Box::new(view)),
                None => ended(),
            },
            Asked::Policies => self.of_policies(&policies::view, ControlAnswer::Policies),
            Asked::PolicyCounts => self.of_policies(&policies::counts, ControlAnswer::PolicyCounts),
            Asked::Routes => ControlAnswer::Routes(Box::new(self.routing.routes())),
            Asked::Neighbours => ControlAnswer::Neighbours(Box::new(self.routing.neighbours())),
            Asked::WhyName(wish) if self.names.is_some() => self.why_name(&wish),
            asked @ (Asked::Names | Asked::WhyName(_) | Asked::AddName(_) | Asked::RemoveName { .. }) => {
                match &self.names {
                    Some(names) => names.answer(&asked),
                    None => ControlAnswer::Error(
                        "this gateway answers for no names: its file has no `[names]`".to_owned(),
                    ),
                }
            }
            Asked::Measure { seconds } => self.measure(seconds),
            Asked::Tables { version } => match self.tables(version) {
                Ok(known) => {
                    let known = tables.insert(known);
                    ControlAnswer::Tables(Box::new(known.schema.clone()))
                }
                Err(error) => ControlAnswer::Error(error),
            },
            Asked::Install(_) | Asked::Confirm { .. } => ControlAnswer::Error(
                "this gateway takes no signed policies: they need `[trust]` in its file".to_owned(),
            ),
            Asked::Stop => ControlAnswer::Done("stopping".to_owned()),
        }
    }

    /// Asks about each policy of the program that runs, while no other one takes over.
    fn of_policies<T>(
        &self,
        about: &dyn Fn(&Remote, &Known, &PolicyModel) -> Result<T, RequestRefusal>,
        answer: fn(Vec<T>) -> ControlAnswer,
    ) -> ControlAnswer {
        let asked = self.reloading.between(|| {
            let known = Known::now(&self.remote, &self.table_access.fillers, &self.program())?;
            let models = self.policies().clone();
            models.iter().map(|model| about(&self.remote, &known, model)).collect()
        });
        match asked {
            Some(Ok(told)) => answer(told),
            Some(Err(fault)) if fault.code == RefusalCode::Ended => ended(),
            Some(Err(fault)) => ControlAnswer::Error(fault.message),
            None => ControlAnswer::Error("a reload is under way and has not come to its end".to_owned()),
        }
    }

    /// What becomes of a first packet, with the last one that was dropped.
    fn why_name(&self, wish: &WhyNameWish) -> ControlAnswer {
        let Some(why) = self.names.as_ref().map(|names| names.why(wish)) else { return ended() };
        let filter = format!("src host {} and dst host {}", wish.initiator, wish.address);
        let refused = match seeing::why(&self.remote, &filter, 1) {
            ControlAnswer::Why(packets) => packets.into_iter().next_back(),
            _ => None,
        };
        match why {
            Ok(why) => ControlAnswer::WhyName(Box::new(WhyNameView { refused, ..why })),
            Err(error) => ControlAnswer::Error(error),
        }
    }

    fn view(&self) -> Result<GatewayView, String> {
        let ended = || "the packet loop has ended".to_owned();
        let whole = self.remote.look().and_then(Counted::whole).ok_or_else(ended)?;
        let (number, losses, lost) = (whole.number, whole.losses.clone(), whole.punts_lost.clone());
        let (seconds, program) = (whole.age.as_secs_f64(), whole.program.clone());
        let (checksums_left_open, segments_whole) = (whole.left_open, whole.ledger.segments());
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
            checksums_left_open,
            segments_whole,
            kernel_routes_unmeant: self.routing.unmeant() as u64,
            leases: self.leasing.view(),
            ports: self.views(&losses),
        })
    }

    /// Answers a client until it disconnects.
    fn converse(self: &Arc<ControlServer>, visit: &Visit, stream: &UnixStream) -> io::Result<()> {
        let turn = |silent| visit.turn(silent);
        let mut known = None;
        let conversation =
            control::converse(stream, &turn, &mut |asked, say| self.answer(asked, &mut known, say))?;
        match (conversation, known) {
            (Conversation::Tables(reader), Some(known)) => {
                let program = || self.program();
                tables::converse(&self.table_access, known, &program, stream, reader, &turn)
            }
            (Conversation::Stop, _) => {
                self.remote.stop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The tables of the program, for a client that speaks this version of the protocol.
    fn tables(&self, version: u32) -> Result<Known, String> {
        tables::speaks(version)?;
        Known::now(&self.remote, &self.table_access.fillers, &self.program()).map_err(|fault| fault.message)
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
            .map(|((port, OpenPort { name, mode, presence, tunnel, .. }), losses)| PortView {
                port,
                interface: name.clone(),
                mode: presence.mode().unwrap_or_else(|| mode.clone()),
                gone_seconds: presence.gone_since().map(seconds_since),
                gone_because: presence.refused(),
                untraced_because: presence.untraced(),
                vanished: presence.vanished(),
                host: self.routing.host(port),
                tunnel: tunnel.as_ref().map(TunnelControl::view),
                losses: losses.takeover,
                since_attached: losses.attached,
            })
            .collect()
    }

    /// The ports there are.
    pub(crate) fn ports(&self) -> MutexGuard<'_, Vec<OpenPort>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Speaks over the tunnels there are as the file says.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn speak(&self) -> io::Result<()> {
        let tunnels: Vec<_> = self.ports().iter().filter_map(|port| port.tunnel.clone()).collect();
        let register = self.config().register.clone();
        self.leasing.follow(register.as_ref(), &tunnels, &self.ended)
    }

    /// How the packet loop is asked.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The program's file.
    pub(crate) fn program(&self) -> String {
        self.config().program.display().to_string()
    }

    /// The policies of the program that runs.
    pub(crate) fn policies(&self) -> MutexGuard<'_, Policies> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since a time of the program.
fn seconds_since(time: u64) -> f64 {
    Duration::from_nanos(MachineClock.program().saturating_sub(time)).as_secs_f64()
}

pub(crate) fn ended() -> ControlAnswer {
    ControlAnswer::Error("the packet loop has ended".to_owned())
}
