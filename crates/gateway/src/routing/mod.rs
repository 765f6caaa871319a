//! Addresses, neighbours and routes of a gateway that routes: the control plane, beside the packet loop. In
//! these modules, *the kernel* is the Linux kernel.
//!
//! ```text
//!  packet loop ──punted packets──► ┌────────────┐ ──frames, entries of tables──► packet loop
//!                                  │   Router   │
//!  kernel ───────rtnetlink───────► └────────────┘ ──pictures──► show routes, show neighbours
//! ```
//!
//! `Router` and the files that it uses do no I/O and read no clock. This file has the threads (one for
//! packets, one for the kernel, and one for the kernel in the network of a container whose routes are
//! followed), the lock that they share, and the turns in which each of them does what waits for the packet
//! loop.

mod account;
mod container_routes;
mod container_thread;
mod effects;
mod filled_tables;
mod follower;
mod frame;
mod hosts;
mod icmp;
mod kernel;
mod kernel_addresses;
mod known;
mod link_frames;
mod listing;
mod neighbours;
mod numbers;
mod own;
mod packets;
mod paths;
mod port;
mod prefix;
mod reassembly;
mod refused;
mod rib;
mod router;
mod rtnetlink;
mod several;
#[cfg(test)]
mod tests;
mod turns;
mod view;

pub use account::{AccountView, FateView};
pub(crate) use effects::{Change, Filled};
pub(crate) use frame::{ETHERNET, Ipv4};
pub(crate) use hosts::{HostError, NewHosts};
pub use hosts::{HostView, Hosts};
pub use kernel_addresses::shared;
pub use neighbours::{Mac, Neighbour, NeighbourState};
pub(crate) use numbers::HeldNextHop;
pub(crate) use paths::MEMBERS;
pub use port::PortSettings;
pub use prefix::{InterfaceAddress, IpPrefix, PrefixError};
pub use rib::Source;
pub(crate) use router::Packet;
pub use router::{FollowedRoutes, RoutingSettings, StaticRoute};
pub(crate) use turns::{NumberedChanges, PacketLoop};
pub use view::{NeighbourView, NeighboursView, RouteView, RoutesView, UnmeantView};

use crate::limits::{CONTAINER_TELLS, HOST_ADDRESSES};
use crate::remarks::Remarks;
use container_routes::ContainerRoutes;
use effects::Effects;
use engine::live::{Punted, PuntedPackets, Remote, urgency};
use exec::Backend;
use filled_tables::FilledTables;
use follower::Follower;
use ir::{Entry, Program};
use packet::PortNumber;
use ports::live::{LinkChanges, Netlink, WantedPort};
use router::Router;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use turns::{CHANGES_AT_ONCE, CHANGES_BY_RATE, Cause, EffectQueue};

/// After so many packets control applies their effects. Packets that come together are read together.
const PACKETS: usize = PuntedPackets::MOST;
/// The most changes that control takes from the kernel before it applies their effects, and the most
/// messages that it reads for them.
const TOLD: usize = 512;
/// The longest wait for packets or for the kernel, so that both threads notice the end of the gateway.
const PATIENCE: Duration = Duration::from_millis(100);
/// The shortest wait, and the longest while something waits for the packet loop.
const SHORTLY: Duration = Duration::from_millis(1);
/// The wait before control asks the kernel for everything again, after more changes than found room.
const PAUSE: Duration = Duration::from_millis(10);
/// The least time between two remarks about routes that are not followed.
const REMARKS: Duration = Duration::from_secs(10);
/// How long the start waits for the kernel to tell the links and addresses.
const LINKS: Duration = Duration::from_secs(2);

/// What control has at its start beside a program that runs.
#[derive(Default)]
pub(crate) struct Resumed<'a> {
    /// The next hops that its tables hold.
    pub(crate) held: &'a [HeldNextHop],
    /// The socket in the network of the container whose routes are followed. Nothing is asked there before
    /// control has begun: what is told there is heard by nobody else.
    pub(crate) container: Option<Netlink>,
}

/// What of a file needs a table of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableNeed {
    /// Its addresses.
    Addresses,
    /// Those of IPv4.
    Ipv4,
    /// Those of IPv6.
    Ipv6,
    /// This route of the file, from 0 on, with its several next hops.
    Route(usize),
}

/// Why a gateway cannot route.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// the program lacks a table
    #[error("{message}")]
    Program {
        /// What is wrong, and what to do.
        message: String,
        /// What it is needed for.
        need: TableNeed,
    },
    /// the kernel
    #[error("the kernel does not tell of its links and routes (rtnetlink): {0}")]
    Kernel(#[from] io::Error),
}

/// Whether a program has what the addresses of a file need.
///
/// # Errors
/// It lacks a table, or one has another shape.
pub fn check(program: &Program, settings: &RoutingSettings) -> Result<(), RoutingError> {
    filled_tables(program, settings).map(drop)
}

/// The tables that control fills: none where it does nothing.
fn filled_tables(program: &Program, settings: &RoutingSettings) -> Result<FilledTables, RoutingError> {
    if !settings.is_active() {
        return Ok(FilledTables::default());
    }
    FilledTables::of(program, settings).map_err(|missing| RoutingError::Program {
        need: match (missing.route, missing.table) {
            (Some(route), _) => TableNeed::Route(route),
            (None, Filled::Routes) => TableNeed::Ipv4,
            (None, Filled::Routes6) => TableNeed::Ipv6,
            _ => TableNeed::Addresses,
        },
        message: missing.message,
    })
}

/// The control plane of a gateway that routes. Without addresses in the file it does nothing.
pub struct Routing {
    state: Mutex<Controlled>,
    /// Held by whoever makes a turn of the queue, and by a reload; taken before `state`.
    turn: Mutex<()>,
    begun: Instant,
    hosts: Hosts,
    remarks: Remarks,
    /// How many routes of the kernel are not followed.
    unmeant: AtomicUsize,
}

struct Controlled {
    active: bool,
    router: Router,
    queue: EffectQueue,
    follower: Follower,
    netlink: Option<Netlink>,
    /// The routes of a container, if they are followed, and by what they are asked for in its network.
    container: Option<ContainerRoutes>,
    container_netlink: Option<Netlink>,
    filled_tables: FilledTables,
    /// The host interface of which was said that it has too many addresses, and how many.
    many: Option<(String, usize)>,
    /// When it may be said again that a container has too many routes.
    many_routes: Instant,
    /// How many permanent neighbours were said to be too many.
    many_neighbours: Option<usize>,
    /// How many routes are known not to be followed by whoever was told last, and when more may be told of.
    remarked: (usize, Instant),
}

/// The addresses and routes of a new file, until they take over or the reload fails.
pub struct Staged<'a> {
    routing: &'a Routing,
    /// No change of the program that runs is on its way meanwhile.
    _turn: MutexGuard<'a, ()>,
    state: MutexGuard<'a, Controlled>,
    router: Router,
    filled_tables: FilledTables,
    active: bool,
}

impl Routing {
    /// Checks the program and asks the kernel for the links. It sends no packet yet.
    ///
    /// # Errors
    /// The program lacks a table, or the kernel tells nothing.
    pub fn new(
        program: &Program,
        settings: &RoutingSettings,
        hosts: Hosts,
        remarks: Remarks,
    ) -> Result<Routing, RoutingError> {
        Routing::resuming(program, settings, hosts, remarks, Resumed::default())
    }

    /// The same, of a program that runs.
    ///
    /// # Errors
    /// As for [`Routing::new`].
    pub(crate) fn resuming(
        program: &Program,
        settings: &RoutingSettings,
        hosts: Hosts,
        remarks: Remarks,
        Resumed { held, container }: Resumed<'_>,
    ) -> Result<Routing, RoutingError> {
        let begun = Instant::now();
        let active = settings.is_active();
        let filled_tables = filled_tables(program, settings)?;
        let mut state = Controlled {
            active,
            router: Router::resuming(settings, filled_tables.hops, filled_tables.groups, held),
            queue: EffectQueue::default(),
            follower: Follower::new(settings, hosts.names()),
            netlink: None,
            container: None,
            container_netlink: None,
            filled_tables,
            many: None,
            many_routes: begun,
            many_neighbours: None,
            remarked: (0, begun),
        };
        let netlink = Netlink::open(&[
            LinkChanges::Links,
            LinkChanges::Neighbours,
            LinkChanges::Ipv4Addresses,
            LinkChanges::Ipv4Routes,
            LinkChanges::Ipv6Addresses,
            LinkChanges::Ipv6Routes,
            LinkChanges::NextHops,
        ]);
        state.netlink = match netlink {
            Ok(mut netlink) => {
                while active && !state.follower.knows_machine() && begun.elapsed() < LINKS {
                    // Nothing runs yet that these could have an effect on: all that is known goes into the
                    // tables before it does.
                    state.follow(&mut netlink, begun)?;
                }
                Some(netlink)
            }
            // Who does not route can do without.
            Err(_) if !active => None,
            Err(error) => return Err(error.into()),
        };
        state.container = container.is_some().then(|| ContainerRoutes::new(begun));
        state.container_netlink = container;
        let (state, turn) = (Mutex::new(state), Mutex::default());
        Ok(Routing { state, turn, begun, hosts, remarks, unmeant: AtomicUsize::new(0) })
    }

    /// Fills the tables of a program that has just been loaded.
    ///
    /// # Errors
    /// They have no room.
    pub fn fill(&self, backend: &mut dyn Backend) -> Result<(), String> {
        let state = self.lock();
        state.filled_tables.fill(&state.router, backend)
    }

    /// The numbers of the tables that control fills.
    pub(crate) fn fills(&self) -> Vec<u32> {
        self.lock().filled_tables.tables.values().copied().collect()
    }

    /// Serves the packet loop behind `remote` from two threads, until the loop has ended and `ended` says so.
    /// Nobody waits for them.
    pub(crate) fn start(self: &Arc<Routing>, remote: &Remote, ended: &Arc<AtomicBool>) {
        let (routing, for_packets, over) = (self.clone(), remote.clone(), ended.clone());
        let queue = |remote: &Remote| remote.punts(urgency::of_neighbours);
        // Asked for before the loop runs, so that the first punted packet finds the queue.
        let punts = self.lock().active.then(|| queue(remote));
        thread::spawn(move || {
            // Who does not route leaves punted packets to others.
            while punts.is_none() && !routing.lock().active {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(PATIENCE);
            }
            let punts = punts.unwrap_or_else(|| queue(&for_packets));
            routing.serve_packets(&punts, &for_packets);
        });
        self.hosts.start(remote, ended, &self.remarks);
        let netlink = self.lock().netlink.take();
        if let Some(netlink) = netlink {
            let (routing, for_kernel, over) = (self.clone(), remote.clone(), ended.clone());
            thread::spawn(move || routing.serve_kernel(netlink, &for_kernel, &over));
        }
    }

    /// Follows the kernel from a thread of its own for each network, for as long as this process runs.
    pub(crate) fn follow_kernel<L>(self: &Arc<Routing>, packet_loop: &Arc<L>)
    where
        L: PacketLoop + Send + Sync + 'static,
    {
        let mut state = self.lock();
        let (of_machine, of_container) = (state.netlink.take(), state.container_netlink.take());
        drop(state);
        if let Some(netlink) = of_machine {
            let (routing, packet_loop) = (self.clone(), packet_loop.clone());
            thread::spawn(move || routing.serve_kernel(netlink, &*packet_loop, &AtomicBool::new(false)));
        }
        if let Some(netlink) = of_container {
            let (routing, packet_loop) = (self.clone(), packet_loop.clone());
            thread::spawn(move || routing.serve_container(netlink, &*packet_loop));
        }
    }

    /// Follows the kernel until it has told all that was asked for, or so much time has passed: what it does
    /// not tell is not there.
    ///
    /// # Errors
    /// It tells nothing any more.
    pub(crate) fn wait_for_kernel(&self, most: Duration) -> io::Result<()> {
        let (mut state, until) = (self.lock(), Instant::now() + most);
        let Some(mut netlink) = state.netlink.take() else { return Ok(()) };
        let mut followed = Ok(());
        while followed.is_ok() && !state.follower.is_settled() && Instant::now() < until {
            followed = state.follow(&mut netlink, self.begun);
        }
        state.netlink = Some(netlink);
        let until = Instant::now() + CONTAINER_TELLS;
        while let Some(container) = state.container.as_ref().filter(|_| Instant::now() < until)
            && !container.is_settled()
        {
            state.follow_container();
        }
        followed
    }

    /// Has the queue bring tables of a program that runs to what is known, by the `difference` from what they
    /// `held` when this began. No changes of tables are made meanwhile.
    ///
    /// # Errors
    /// What they hold is not known.
    pub(crate) fn fill_running<H>(
        &self,
        held: impl FnOnce(&[(Filled, u32)]) -> Result<H, String>,
        difference: impl FnOnce(H, &[(Filled, u32, Vec<Entry>)]) -> Vec<Change>,
    ) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let tables: Vec<_> =
            self.lock().filled_tables.tables.iter().map(|(&of, &number)| (of, number)).collect();
        let held = held(&tables)?;
        // What the kernel tells meanwhile comes behind it.
        let mut state = self.lock();
        state.queue.forget_changes();
        let wanted = tables.into_iter().map(|(filled, number)| {
            let mut entries = state.router.entries(filled);
            entries.retain(|entry| !state.router.refused.has_key(filled, &entry.key));
            (filled, number, entries)
        });
        let changes = difference(held, &wanted.collect::<Vec<_>>());
        state.push(Effects { changes, ..Effects::default() }, Cause::Kernel);
        state.router.numbers.gone();
        Ok(())
    }

    /// Makes the host interfaces of the ports that a new file opens anew.
    ///
    /// # Errors
    /// The first port that cannot have one; then none is left.
    pub(crate) fn new_hosts(
        &self,
        settings: &RoutingSettings,
        ports: &[WantedPort],
        anew: &[bool],
    ) -> Result<NewHosts, (PortNumber, HostError)> {
        NewHosts::make(settings, ports, anew)
    }

    /// Prepares the addresses and routes of a new file for a new program. Nothing changes before
    /// `Staged::commit`, and no packet or change of the kernel is handled while the result lives.
    ///
    /// # Errors
    /// The program lacks a table.
    pub fn stage(&self, program: &Program, settings: &RoutingSettings) -> Result<Staged<'_>, RoutingError> {
        let (filled_tables, active) = (filled_tables(program, settings)?, settings.is_active());
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.lock();
        let mut router = Router::new(settings, filled_tables.hops, filled_tables.groups);
        router.succeed(&state.router);
        filled_tables.leave_out(&mut router, &state.router);
        Ok(Staged { routing: self, _turn, state, router, filled_tables, active })
    }

    /// The routes there are.
    pub fn routes(&self) -> RoutesView {
        let state = self.lock();
        let shown = state.router.routes_shown(&state.follower, state.queue.outstanding());
        drop(state);
        shown.view()
    }

    /// How many routes of the kernel are not followed; nobody is waited for.
    pub(crate) fn unmeant(&self) -> usize {
        self.unmeant.load(Ordering::Relaxed)
    }

    /// The host interface of a port, if it has one.
    pub(crate) fn host(&self, port: PortNumber) -> Option<HostView> {
        self.hosts.view(port)
    }

    /// The neighbours there are, and what became of packets that were handed over.
    pub fn neighbours(&self) -> NeighboursView {
        self.lock().router.neighbours_picture(self.now())
    }

    fn serve_packets(&self, punts: &Receiver<PuntedPackets>, remote: &Remote) {
        let packet = |Punted { reason, port, bytes, virtio, .. }: Punted<'_>| {
            (reason.clone(), Packet { port, bytes: bytes.to_vec(), virtio })
        };
        let some = |patience| {
            let mut first = match punts.recv_timeout(patience) {
                Ok(packets) => Some(packets),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return None,
            };
            let mut read = 0;
            let together = std::iter::from_fn(move || {
                let packets =
                    first.take().or_else(|| if read < PACKETS { punts.try_recv().ok() } else { None })?;
                read += packets.len();
                Some(packets)
            });
            Some(together.flat_map(move |packets| {
                (0..packets.len()).filter_map(move |index| packets.packet(index).map(packet))
            }))
        };
        while self.serve_some(some, remote) {}
    }

    /// Waits for some packets, does what they ask for, lets time pass, and makes a turn of the queue unless
    /// somebody else does. Without room for what packets bring, none are taken: they wait where they are
    /// counted when they are lost. Says whether there may be more.
    pub(crate) fn serve_some<P: Iterator<Item = (Arc<str>, Packet)>>(
        &self,
        some: impl Fn(Duration) -> Option<P>,
        packet_loop: &impl PacketLoop,
    ) -> bool {
        let state = self.lock();
        let (due, waits, room) = (state.router.due(), !state.queue.is_empty(), state.queue.has_room());
        drop(state);
        if room {
            let due = due.map_or(PATIENCE, |due| Duration::from_nanos(due.saturating_sub(self.now())));
            let Some(packets) = some(due.clamp(SHORTLY, if waits { SHORTLY } else { PATIENCE })) else {
                return false;
            };
            self.take_in(packets);
        } else {
            thread::sleep(SHORTLY);
        }
        if let Ok(turn) = self.turn.try_lock() {
            self.make_turn(&turn, packet_loop);
        }
        true
    }

    /// Takes in packets and the time that passed.
    fn take_in(&self, packets: impl Iterator<Item = (Arc<str>, Packet)>) {
        let mut state = self.lock();
        let (now, mut effects) = (self.now(), Effects::default());
        let active = state.active;
        for (reason, packet) in packets.filter(|_| active) {
            state.router.packet(&reason, packet, now, &mut effects);
        }
        state.router.advance(now, &mut effects);
        state.push(effects, Cause::Packets);
    }

    fn serve_kernel(&self, mut netlink: Netlink, packet_loop: &impl PacketLoop, ended: &AtomicBool) {
        let mut lost = false;
        while !ended.load(Ordering::Relaxed) {
            // What was told before something was lost would count as a part of the answer, so that is read to
            // its end first.
            let wanted = if lost { None } else { self.lock().follower.question() };
            if wanted.is_some_and(|wanted| netlink.ask(&rtnetlink::question(wanted)).is_err()) {
                // As an answer that broke off: everything is asked for again.
                self.told(vec![rtnetlink::Told::Done { broken: true }], packet_loop);
                thread::sleep(PAUSE);
                continue;
            }
            // What has come already is taken in together: each change of tables waits for the packet loop
            // once.
            let (mut told, mut all, mut patience) = (Vec::new(), false, PATIENCE);
            for _ in 0..TOLD {
                if told.len() >= TOLD {
                    break;
                }
                match netlink.receive(patience.as_nanos() as u64) {
                    Ok(None) => {
                        all = true;
                        break;
                    }
                    Ok(Some(bytes)) => told.extend(rtnetlink::read(bytes)),
                    Err(_) => {
                        lost = true;
                        self.lock().follower.overrun();
                        thread::sleep(PAUSE);
                        break;
                    }
                }
                patience = Duration::ZERO;
            }
            if lost {
                // All routes will be asked for.
                told.retain(|told| {
                    !matches!(told, rtnetlink::Told::Route { .. } | rtnetlink::Told::Object { .. })
                });
            }
            if !told.is_empty() {
                self.told(told, packet_loop);
            }
            lost = lost && !all;
            self.remark();
        }
    }

    /// Says that routes are not followed, when there are more than was said, and not too often; and that host
    /// interfaces have too many addresses or permanent neighbours.
    fn remark(&self) {
        let mut state = self.lock();
        let many = state.follower.too_many().map(|(name, count)| (name.to_owned(), count));
        if many != state.many {
            if let Some((name, count)) = &many {
                self.remarks.say(format!(
                    "{name} has {count} addresses; {HOST_ADDRESSES} of them are the gateway's, and the others are not"
                ));
            }
            state.many = many;
        }
        let most = state.router.neighbours.most_permanent();
        let many = Some(state.follower.permanent_count()).filter(|count| *count > most);
        if many != state.many_neighbours {
            if let Some(count) = many {
                self.remarks.say(format!(
                    "the machine has {count} permanent neighbours at its host interfaces; {most} of them are the gateway's, and the others are asked for"
                ));
            }
            state.many_neighbours = many;
        }
        let (said, again) = state.remarked;
        let count = state.router.unmeant_count(&state.follower);
        self.unmeant.store(count, Ordering::Relaxed);
        if !state.follower.is_settled() || Instant::now() < again {
            return;
        }
        if count > said
            && let Some(text) = state.router.remark(&state.follower)
        {
            self.remarks.say(text);
            state.remarked.1 = Instant::now() + REMARKS;
        }
        state.remarked.0 = count;
    }

    /// Takes in what the kernel told; what follows from it waits in the queue.
    fn take_told(&self, told: Vec<rtnetlink::Told>) {
        let mut state = self.lock();
        let (now, mut effects) = (self.now(), Effects::default());
        let Controlled { router, follower, .. } = &mut *state;
        follower.take(told, now, router, &mut effects);
        state.push(effects, Cause::Kernel);
    }

    /// Takes in what the kernel told, and does it.
    fn told(&self, told: Vec<rtnetlink::Told>, packet_loop: &impl PacketLoop) {
        self.take_told(told);
        // No more is read before all of it is done.
        self.do_all_of_kernel(packet_loop);
    }

    /// Does all that waits and that the kernel caused.
    fn do_all_of_kernel(&self, packet_loop: &impl PacketLoop) {
        loop {
            let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.make_turn(&turn, packet_loop);
            if !self.lock().queue.has_of_kernel() {
                return;
            }
        }
    }

    /// Makes the next turn of the queue, if there is one.
    fn make_turn(&self, _turn: &MutexGuard<'_, ()>, packet_loop: &impl PacketLoop) {
        let at_once = if packet_loop.has_rate() { CHANGES_BY_RATE } else { CHANGES_AT_ONCE };
        let next = self.lock().queue.take(at_once);
        let Some(mut turn) = next else { return };
        let refused = turn.make(packet_loop, &self.hosts);
        let (mut state, mut effects) = (self.lock(), Effects::default());
        state.queue.turn_made();
        state.router.made(turn.changes.iter().map(|(_, change)| change), &refused, &mut effects);
        state.push(effects, Cause::Kernel);
    }

    fn lock(&self) -> MutexGuard<'_, Controlled> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since control began.
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}

impl Controlled {
    /// One question to the kernel, if there is one, and one answer.
    fn follow(&mut self, netlink: &mut Netlink, begun: Instant) -> io::Result<()> {
        if let Some(wanted) = self.follower.question() {
            netlink.ask(&rtnetlink::question(wanted))?;
        }
        if let Some(bytes) = netlink.receive(PATIENCE.as_nanos() as u64)? {
            let now = begun.elapsed().as_nanos() as u64;
            self.follower.take(rtnetlink::read(bytes), now, &mut self.router, &mut Effects::default());
        }
        Ok(())
    }

    /// This is to be done next, unless control has nothing to do.
    fn push(&mut self, effects: Effects, cause: Cause) {
        if self.active {
            self.queue.push(effects, &self.filled_tables.tables, cause);
        }
    }
}

impl Staged<'_> {
    /// Fills the tables of the program that is to take over.
    ///
    /// # Errors
    /// They have no room.
    pub fn fill(&self, backend: &mut dyn Backend) -> Result<(), String> {
        self.filled_tables.fill(&self.router, backend)
    }

    /// Makes these addresses and routes the current ones, once the program has taken over.
    pub(crate) fn commit(self, settings: &RoutingSettings, new_hosts: NewHosts) {
        let Staged { routing, _turn, mut state, router, filled_tables, active } = self;
        let ended = routing.hosts.let_go(&new_hosts.anew);
        for error in routing.hosts.readdress(&state.router, &router) {
            routing.remarks.say(error.to_string());
        }
        routing.hosts.add(new_hosts);
        state.follower.change_ports(settings, routing.hosts.names());
        state.follower.follow_routes(router.followed_routes());
        (state.router, state.filled_tables, state.active) = (router, filled_tables, active);
        // The new program's tables were filled with all that is known.
        state.queue.forget_changes();
        drop(state);
        // Their interfaces are gone when this returns.
        ended.into_iter().for_each(|ended| ended.wait());
    }
}
