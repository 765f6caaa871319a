//! The roles of names that this process has: a name server with sockets, beside a gateway's ports or alone.
//!
//! ```text
//!  UDP: a thread for each address ──┐                            ┌─ naming::dns::NameServer
//!                                   ├──► Answering, one for all ─┤     │ held query      ▲ address
//!  TCP: a thread for each client  ──┘                            └─ Asking ─► WaypointWays
//!                                                                 tunnels to others ◄──┤
//!                                                                                  LocalWaypoint
//!                                                                                      └─► PacketPath ─► DataPath
//! ```

pub mod alone;
mod answering;
mod asking;
mod client_segments;
mod described;
mod elsewhere;
mod leading_clients;
mod packet_tables;
mod packets;
#[cfg(test)]
mod packets_of_test;
mod parts;
mod path;
mod promise_group;
mod reread;
mod server_name_tables;
mod server_names;
mod stable;
mod store;
mod tcp;
mod udp;
mod view;
mod waypoint;
mod without_sockets;

pub(crate) use packet_tables::FILLED;
pub use packet_tables::PacketTables;
pub use view::{
    AskedWaypointView, NameWish, NamesView, SaidServerNameView, StoreView, WhyNameView, WhyNameWish,
};
pub(crate) use waypoint::locked;
pub use without_sockets::WithoutSockets;

use crate::config::names::NamesConfig;
use crate::config::{Config, ConfigError};
use crate::control::{Asked, ControlAnswer};
use answering::Answering;
use elsewhere::Ways;
use engine::live::{Remote, SubscriptionWish, ToldOf};
use exec::Backend;
use ir::Program;
use naming::control::{ControlAsk, OwnerAnswer, Rejection};
use naming::dns::{DnsName, ZoneError};
use naming::store::StoredBinding;
use naming::{AddressPoolError, BindingKey, ClientSegment, ServiceTextError};
use packets::{LivePackets, quarantine_earlier};
use parts::{Amount, Parts};
use ports::live::clock::{Clock, MachineClock};
use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use store::Kept;
use waypoint::SharedWaypoint;

/// How often is looked what is due, at least: a query that begins to wait has its first date later than this.
const CLOCK: Duration = Duration::from_millis(50);

/// How long the events of packets are waited for before it is looked whether all ends.
const LOOK: Duration = Duration::from_millis(100);

/// Why names are not answered.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// an address cannot be listened at
    #[error(
        "names cannot be asked for at {address} by {transport}: {source}; `listen` in the file names another address"
    )]
    Listen {
        /// The address from the file.
        address: SocketAddr,
        /// UDP or TCP.
        transport: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// the zone is wrong
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// the addresses of the waypoint are wrong
    #[error(transparent)]
    Pool(#[from] AddressPoolError),
    /// packets cannot follow
    #[error("packets do not follow what is promised: {0}")]
    Packets(String),
    /// what was kept over the last end cannot be used
    #[error("{0}")]
    Store(String),
    /// the system gives no secret or no thread
    #[error("names cannot be answered: {0}")]
    System(#[from] io::Error),
}

/// The tables by which a program carries the packets of the waypoint of a file, if it has one.
///
/// # Errors
/// The program lacks a table or an event; names have no room in it, or leave none for what gateways register;
/// or several workers would each know some of the bindings.
pub fn carried(config: &Config, program: &Program) -> Result<Option<PacketTables>, ConfigError> {
    let Some(names) = config.names.as_ref().filter(|names| names.pool.is_some()) else { return Ok(None) };
    let (line, column) = names.waypoint_place;
    let wrong = |message: String| ConfigError { line, column, message };
    if config.workers.count != 1 {
        let message = "each worker would know some of the bindings: a waypoint has `workers = 1`";
        return Err(wrong(message.to_owned()));
    }
    let tables = PacketTables::of(program, names.network6.is_some(), !names.server_names.is_empty());
    let tables = tables.map_err(wrong)?;
    Parts::of(names, Amount::of_tables(&tables)).map_err(wrong)?;
    Ok(Some(tables))
}

/// The name server of this process and its sockets.
pub(crate) struct Names {
    answering: Mutex<Answering>,
    udp: Vec<Arc<UdpSocket>>,
    tcp: Vec<TcpListener>,
    connections: tcp::Connections,
    /// The ways to who has other roles.
    pub(crate) ways: Arc<Ways>,
    kept: Option<Arc<Kept>>,
    /// Bindings of the life before.
    earlier: Vec<StoredBinding>,
    /// Writes what packets do.
    keeping: Mutex<Option<JoinHandle<()>>>,
}

impl Names {
    /// Listens at all addresses; nobody is answered yet.
    ///
    /// # Errors
    /// The zone or an address is wrong.
    pub(crate) fn open(config: &NamesConfig) -> Result<Names, NamesError> {
        let (kept, earlier) = match Kept::open(config).map_err(NamesError::Store)? {
            Some((kept, earlier)) => (Some(Arc::new(kept)), Some(earlier)),
            None => (None, None),
        };
        let ways = Arc::<Ways>::default();
        let epoch = earlier.as_ref().map(|earlier| earlier.epoch);
        let mut answering = Answering::new(config, epoch, &ways)?;
        for wish in earlier.iter().flat_map(|earlier| &earlier.names) {
            answering.restore(wish).map_err(NamesError::Store)?;
        }
        answering.keep_by(kept.clone());
        let (answering, earlier) = (Mutex::new(answering), earlier.map(|earlier| earlier.bindings));
        let (mut udp, mut tcp) = (Vec::new(), Vec::new());
        for &address in &config.listen {
            let refused = |transport| move |source| NamesError::Listen { address, transport, source };
            udp.push(Arc::new(udp::listen(address).map_err(refused("UDP"))?));
            tcp.push(tcp::listen(address).map_err(refused("TCP"))?);
        }
        let (earlier, connections, keeping) =
            (earlier.unwrap_or_default(), Default::default(), Mutex::default());
        Ok(Names { answering, udp, tcp, connections, ways, kept, earlier, keeping })
    }

    /// Answers until `ended` is true; then the threads end within a second.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub(crate) fn start(self: &Arc<Names>, ended: &Arc<AtomicBool>) -> io::Result<()> {
        // Its threads may wait for packets, which this one lets begin.
        let waypoint = self.waypoint();
        for index in 0..self.udp.len() {
            let (names, until) = (self.clone(), ended.clone());
            let run = move || udp::serve(&names.udp[index], &names, &until);
            thread::Builder::new().name("names-udp".to_owned()).spawn(run)?;
            let (names, until) = (self.clone(), ended.clone());
            let run = move || tcp::serve(&names.tcp[index], &names, &until);
            thread::Builder::new().name("names-tcp".to_owned()).spawn(run)?;
        }
        let (names, until) = (self.clone(), ended.clone());
        thread::Builder::new().name("names-clock".to_owned()).spawn(move || names.clock(&until))?;
        if let (Some(kept), Some(waypoint)) = (self.kept.clone(), waypoint) {
            let (names, until) = (self.clone(), ended.clone());
            let keep = move || kept.follow(&waypoint, &names.earlier, &until);
            let thread = thread::Builder::new().name("names-store".to_owned()).spawn(keep)?;
            *self.keeping.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
        Ok(())
    }

    /// Lets the packets of the first program follow the waypoint, and fills its tables before it runs. A
    /// thread tells the waypoint what packets do, until the packet loop ends.
    ///
    /// # Errors
    /// The program has no room for the addresses that always lead to one host, or the system has no thread.
    pub(crate) fn carry(
        self: &Arc<Names>,
        remote: &Remote,
        tables: PacketTables,
        backend: &mut dyn Backend,
        remark: fn(&str),
    ) -> Result<(), NamesError> {
        let mut answering = self.answering();
        let Some(waypoint) = answering.waypoint.clone() else { return Ok(()) };
        answering.parts.divide(Amount::of_tables(&tables)).map_err(NamesError::Packets)?;
        let mut secret = [0; 16];
        // For so few bytes it is never interrupted.
        getrandom(&mut secret, GetRandomFlags::empty()).map_err(io::Error::from)?;
        let secret = u128::from_ne_bytes(secret);
        let cookie_key = [secret as u64, (secret >> 64) as u64];
        locked(&waypoint).carry(&tables, answering.gateways(), &answering.machine, cookie_key);
        answering.stand().map_err(NamesError::Packets)?;
        locked(&waypoint).fill(&tables, backend).map_err(NamesError::Packets)?;
        if self.kept.is_some() {
            locked(&waypoint).remember(&self.earlier, MachineClock.program());
        }
        let now = MachineClock.program();
        if let Err((count, error)) = quarantine_earlier(backend, &tables, &self.earlier, now) {
            remark(&format!(
                "`quarantine` has room for {count} of {} bindings of the time before ({error}): clients whose binding ended before them may reach another host by its address at once; raise `MOST_BINDINGS` by `[set]`, or start in two minutes",
                self.earlier.len()
            ));
        }
        let live = LivePackets { remote: remote.clone(), tables, generation: 1 };
        locked(&waypoint).begin(Box::new(live));
        let (remote, followed) = (remote.clone(), remote.clone());
        let follow = move || heed(&remote, &waypoint);
        thread::Builder::new().name("names-bindings".to_owned()).spawn(follow)?;
        if answering.server_names.leads() {
            let (names, remote) = (self.clone(), followed);
            let take = move |segment: &ClientSegment<'_>| {
                names.answering().segment(segment, MachineClock.program());
            };
            let follow = move || client_segments::follow(&remote, LOOK, take);
            thread::Builder::new().name("names-tls".to_owned()).spawn(follow)?;
        }
        Ok(())
    }

    /// The waypoint of this process. As long as it is held, nothing is promised.
    pub(crate) fn waypoint(&self) -> Option<SharedWaypoint> {
        self.answering().waypoint.clone()
    }

    /// Waits until what packets did last is kept. All threads have been told to end.
    pub(crate) fn finish(&self) {
        let thread = self.keeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If it has panicked, there is nothing to wait for.
        let _ = thread.map(JoinHandle::join);
    }

    /// Does what is due at some time, until `ended` is true.
    fn clock(&self, ended: &AtomicBool) {
        while !ended.load(Ordering::SeqCst) {
            let due = self.answering().turn().map_or(CLOCK, Duration::from_nanos);
            thread::sleep(due.clamp(CLOCK / 50, CLOCK));
        }
    }

    /// Whether the file lets a gateway register a name.
    pub(crate) fn gives(&self, gateway: &str, name: &DnsName) -> bool {
        let answering = self.answering();
        let described = answering.gateways().iter().find(|one| one.name == gateway);
        described.is_some_and(|one| one.names.iter().any(|pattern| pattern.holds(name)))
    }

    /// Adds a name for as long as a gateway has a lease for it, with the checks of the file. It is not kept
    /// over a restart: the gateway registers it again.
    ///
    /// # Errors
    /// Why it cannot be there.
    pub(crate) fn lease(&self, wish: &NameWish) -> Result<(), (Rejection, String)> {
        self.answering().add_leased(wish)
    }

    /// Whether this name is there by a lease.
    pub(crate) fn is_leased(&self, name: &DnsName) -> bool {
        self.answering().leased.contains(&name.to_string())
    }

    /// Whether what was added while the process runs can stay with a file that was read again.
    ///
    /// # Errors
    /// What cannot, and why.
    pub(crate) fn can_follow(&self, config: &NamesConfig) -> Result<(), String> {
        self.answering().can_follow(config)
    }

    /// Follows a file that was read again; the program that has taken over has these tables. Says what did
    /// not come, or went besides.
    pub(crate) fn follow(&self, config: &NamesConfig, tables: Option<&PacketTables>) -> Vec<String> {
        self.answering().follow(config, tables)
    }

    /// Removes a name whose lease is over. Somebody may have removed it before, and what has its place then
    /// is no name of a lease.
    pub(crate) fn end_lease(&self, name: &str) {
        self.answering().end_lease(name);
    }

    /// Forgets what these peers have said of their lives: they have gone, or a key of theirs was taken away.
    pub(crate) fn forget(&self, peers: &[String]) {
        let mut answering = self.answering();
        peers.iter().for_each(|peer| answering.forget(peer));
    }

    /// Takes an ask of the peer of this name, and gives the answer of the waypoint of this process.
    ///
    /// # Errors
    /// It is no name server of the file, or why its ask is dropped.
    pub(crate) fn asked(&self, by: &str, ask: &ControlAsk) -> Result<OwnerAnswer, &'static str> {
        self.answering().asked(by, ask, MachineClock.program())
    }

    /// Takes an answer of the peer of this name.
    ///
    /// # Errors
    /// It answers nothing that waits.
    pub(crate) fn answered(&self, by: &str, answer: &OwnerAnswer) -> Result<(), &'static str> {
        self.answering().answered(by, answer, MachineClock.program())
    }

    /// The figures, without lists.
    pub(crate) fn figures(&self) -> NamesView {
        let (connections, store) = (self.connections.count(), self.store());
        NamesView { connections, store, ..self.answering().figures() }
    }

    /// Answers a question about names.
    pub(crate) fn answer(&self, asked: &Asked) -> ControlAnswer {
        let changed =
            match asked {
                Asked::Names => return ControlAnswer::Names(Box::new(self.view())),
                Asked::WhyName(wish) => match self.why(wish) {
                    Ok(view) => return ControlAnswer::WhyName(Box::new(view)),
                    Err(error) => Err(error),
                },
                Asked::AddName(wish) => self.answering().add(wish),
                Asked::RemoveName { name } => self.answering().remove(name),
                _ => Err("this process answers for names and has no ports: `ravelin names list` asks it"
                    .to_owned()),
            };
        changed.map_or_else(ControlAnswer::Error, ControlAnswer::Done)
    }

    /// What becomes of a first packet.
    ///
    /// # Errors
    /// There is no such service, or no packets follow a waypoint of this process.
    pub(crate) fn why(&self, wish: &WhyNameWish) -> Result<WhyNameView, String> {
        let service = wish.service.parse().map_err(|error: ServiceTextError| error.to_string())?;
        let key = BindingKey { initiator: wish.initiator, address: wish.address, service };
        let waypoint =
            self.waypoint().ok_or("this process is no waypoint: its file has no `[names.waypoint]`")?;
        let why = locked(&waypoint).why(&key, MachineClock.program())?;
        Ok(WhyNameView { server_name: self.answering().server_names.said(&key), ..why })
    }

    /// What there is to see.
    pub(crate) fn view(&self) -> NamesView {
        let (connections, store) = (self.connections.count(), self.store());
        NamesView { connections, store, ..self.answering().view() }
    }

    /// What of packets is written, and what is not yet.
    fn store(&self) -> Option<StoreView> {
        let (kept, waypoint) = (self.kept.as_ref()?, self.waypoint()?);
        Some(kept.view(|| locked(&waypoint).untaken(), MachineClock.program()))
    }

    fn answering(&self) -> MutexGuard<'_, Answering> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a waypoint which bindings packets make and end, until the packet loop ends.
fn heed(remote: &Remote, waypoint: &SharedWaypoint) {
    let events = packet_tables::EVENTS.map(str::to_owned).to_vec();
    let wish = SubscriptionWish { events, ..SubscriptionWish::default() };
    let Some(subscription) = remote.subscribe(wish) else { return };
    // Nobody waits for the waypoint while this waits for the first batch.
    if remote.ask_at(0, |_| ()).is_none() {
        return;
    }
    let mut lost = None;
    loop {
        // What a snapshot brought back is there from the beginning.
        let now_lost = subscription.lost();
        if lost != Some(now_lost) {
            lost = Some(now_lost);
            locked(waypoint).compare(MachineClock.program());
        }
        let before = MachineClock.program();
        let told = match subscription.next(LOOK) {
            Ok(Some(told)) => told,
            Ok(None) => {
                locked(waypoint).heeded_until(before);
                continue;
            }
            Err(_) => return,
        };
        if let ToldOf::Event { event, arguments, .. } = &told.what {
            let name = told.program.events.get(*event as usize).map(|event| event.name.as_str());
            let over = name == Some(packet_tables::EVENTS[2]);
            let mut waypoint = locked(waypoint);
            waypoint.heed(arguments, over, MachineClock.program());
            // The only worker tells of all in its order.
            waypoint.heeded_until(told.time);
        }
    }
}

#[cfg(test)]
mod tests;
