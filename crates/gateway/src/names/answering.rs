//! The name server that all sockets share, with the clock, the secrets and the waypoint that it does not have
//! itself.

use crate::config::elsewhere::Elsewhere;
use crate::config::names::{
    GatewayDescription, HostPlace, Hosts, NamesConfig, is_behind, no_peer, outside, own, reachable, served,
};
use crate::limits::{NAMED_HOSTS, NAMES_SHOWN};
use crate::names::NamesError;
use crate::names::asking::{Asking, Settled, Unpromised};
use crate::names::described::{entries, services, stable_host, standing_keys};
use crate::names::elsewhere::{WaypointWays, Ways, numbered};
use crate::names::parts::{Amount, Parts};
use crate::names::server_names::{ServerNames, shared_ports};
use crate::names::store::{Kept, wall};
use crate::names::view::{
    AskedWaypointView, NameWish, NamedGatewayView, NamedHostView, NamesView, PromiseView, PromisedTo,
};
use crate::names::waypoint::{Expected, LocalWaypoint, SharedWaypoint, locked, shown};
use crate::routing::IpPrefix;
use naming::control::{AskBody, ControlAsk, ControlDrop, OwnerAnswer, Peer, Rejection, SetUp};
use naming::dns::{
    Arrival, CookieSecrets, DnsAnswer, DnsMoment, DnsTransport, HeldQuery, Ipv4Mode, NameDescription,
    NameServer, Resumed, Zone, ZoneError,
};
use naming::limits::TAIL;
use naming::{AddressPool, Responder, Service, StableNetwork};
use ports::live::clock::{Clock, MachineClock};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A query as a socket has it.
pub(super) struct Received<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) from: SocketAddr,
    pub(super) transport: DnsTransport,
    /// More wait behind it than are answered at once.
    pub(super) under_load: bool,
}

/// What has become of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// This is the reply.
    Reply(Vec<u8>),
    /// Nothing is sent.
    Nothing,
    /// The reply comes later, by the way that was given.
    Later,
}

/// How a reply gets to who asked.
pub(super) enum ReplyTo {
    /// From this socket.
    Udp(Arc<UdpSocket>),
    /// By the thread of a connection, which waits.
    Tcp(SyncSender<Vec<u8>>),
}

/// A name of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileName {
    pub(super) described: NameDescription,
    pub(super) place: HostPlace,
    /// Its address behind the gateway, if it has one of the waypoint's network.
    pub(super) inside: Option<Ipv6Addr>,
}

/// The name server and its account.
pub(super) struct Answering {
    pub(super) server: NameServer,
    pub(super) asking: Asking,
    pub(super) hosts: Arc<Mutex<Hosts>>,
    /// By their whole names: all that lead to hosts, those of the file that was read last, and those that
    /// gateways have registered.
    pub(super) named: BTreeMap<String, NameDescription>,
    pub(super) of_file: BTreeMap<String, FileName>,
    pub(super) leased: BTreeSet<String>,
    pub(super) gateways: Vec<GatewayDescription>,
    /// Which gateway each number of a peer has had since the start: bindings outlive gateways.
    pub(super) numbered: BTreeMap<u32, String>,
    pool: Option<AddressPool>,
    pub(super) parts: Parts,
    /// What the machine itself listens at.
    pub(super) machine: BTreeSet<Service>,
    network6: Option<StableNetwork>,
    /// By the names of hosts with an address of this network: their own address behind the gateway.
    pub(super) inside6: HashMap<String, Ipv6Addr>,
    /// Clients that say by a server name whom they mean.
    pub(super) server_names: ServerNames,
    /// The waypoint of this process, if it is one.
    pub(super) waypoint: Option<SharedWaypoint>,
    /// Who has the other roles.
    elsewhere: Elsewhere,
    /// What keeps names that are added over the end of the process.
    kept: Option<Arc<Kept>>,
    later: HashMap<HeldQuery, ReplyTo>,
    udp: u64,
    tcp: u64,
    replies: u64,
    drops: BTreeMap<String, u64>,
}

impl Answering {
    /// A name server with new secrets. The epoch is larger than that of each life before.
    pub(super) fn new(
        config: &NamesConfig,
        epoch: Option<u64>,
        ways: &Arc<Ways>,
    ) -> Result<Answering, NamesError> {
        let mut current = [0; 16];
        // For so few bytes it is never interrupted.
        getrandom(&mut current, GetRandomFlags::empty()).map_err(io::Error::from)?;
        let secrets = CookieSecrets { current, previous: None };
        let zone = Zone::new(&config.zone)?;
        let mut named = BTreeMap::new();
        for described in &config.zone.names {
            named.insert(zone.name(&described.name)?.to_string(), described.clone());
        }
        let server = NameServer::new(zone, config.policy.clone(), secrets);
        let hosts = Arc::new(Mutex::new(config.hosts.clone()));
        // Without a store, the start is the best number that there is.
        let epoch = epoch.unwrap_or_else(wall);
        let waypoint = match &config.pool {
            Some(pool) => {
                let waypoint = LocalWaypoint::new(epoch, pool.clone(), hosts.clone())?;
                let waypoint = waypoint.holding(config.hold).asked_by(config.elsewhere.name_servers.len());
                Some(Arc::new(Mutex::new(waypoint)))
            }
            None => None,
        };
        let elsewhere = config.elsewhere.waypoints.clone();
        let link = WaypointWays { own: waypoint.clone(), elsewhere, ways: ways.clone() };
        let peers: Vec<Peer> = link.peers().collect();
        let asking = Asking::new(epoch, peers, Box::new(link));
        let (later, drops) = (HashMap::new(), BTreeMap::new());
        let (gateways, pool) = (config.gateways.clone(), config.pool.clone());
        let parts = Parts::of(config, Amount::without_packets()).map_err(NamesError::Packets)?;
        let server_names = ServerNames::new(pool.as_ref(), config.server_names.clone());
        let mut answering = Answering {
            server,
            asking,
            hosts,
            named,
            of_file: BTreeMap::new(),
            leased: BTreeSet::new(),
            gateways,
            numbered: BTreeMap::new(),
            pool,
            parts,
            machine: config.zone.machine.services.clone(),
            network6: config.network6,
            inside6: config.inside6.clone(),
            server_names,
            waypoint,
            elsewhere: config.elsewhere.clone(),
            kept: None,
            later,
            udp: 0,
            tcp: 0,
            replies: 0,
            drops,
        };
        answering.of_file = answering.file_names(config, &mut Vec::new());
        answering.note_numbers();
        Ok(answering)
    }

    /// From now on names that are added and removed are kept.
    pub(super) fn keep_by(&mut self, kept: Option<Arc<Kept>>) {
        self.kept = kept;
    }

    /// Adds a name that an earlier life of the process kept. One of the file has precedence.
    pub(super) fn restore(&mut self, wish: &NameWish) -> Result<(), String> {
        let name = self.server.zone().name(&wish.name).map(|name| name.to_string());
        if name.is_ok_and(|name| self.named.contains_key(&name)) {
            return Ok(());
        }
        self.add_unkept(wish).map(drop).map_err(|why| {
            format!(
                "`{}`, which `ravelin names add` has added, cannot be there any more: {why}; let the file have what it needs once more, remove the name, and change the file then",
                wish.name
            )
        })
    }

    /// Adds a name that leads to a host, with the checks of the file, keeps it, and says what was done.
    pub(super) fn add(&mut self, wish: &NameWish) -> Result<String, String> {
        let done = self.add_unkept(wish)?;
        if let Some(kept) = &self.kept
            && let Err(error) = kept.name(&self.whole(&wish.name)?, Some(wish))
        {
            self.remove_unkept(&wish.name)?;
            return Err(format!("{} cannot be kept, and was not added: {error}", wish.name));
        }
        Ok(done)
    }

    /// Removes a name of a lease.
    pub(super) fn end_lease(&mut self, name: &str) {
        if self.whole(name).is_ok_and(|name| self.leased.contains(&name)) {
            // It is there.
            let _ = self.remove_unkept(name);
        }
    }

    /// Notes which numbers the gateways have.
    pub(super) fn note_numbers(&mut self) {
        let numbers = self.gateways.iter().filter_map(|one| Some((one.peer?, one.name.clone())));
        self.numbered.extend(numbers);
    }

    /// The whole of a name.
    fn whole(&self, name: &str) -> Result<String, String> {
        self.server.zone().name(name).map(|name| name.to_string()).map_err(|error| error.to_string())
    }

    /// [`Answering::add_unkept`] for a gateway, which brings hosts behind itself only, and has its part of
    /// what is limited.
    pub(super) fn add_leased(&mut self, wish: &NameWish) -> Result<(), (Rejection, String)> {
        let not_allowed = |message: String| (Rejection::NotAllowed, message);
        let no_room = |message: String| (Rejection::NoRoom, message);
        let gateway = served(&self.gateways, &wish.place).map_err(|(_, message)| not_allowed(message))?;
        if let Some(host) = wish.ipv6
            && !is_behind(gateway, host)
        {
            return Err(not_allowed(format!("{host} is not behind the gateway `{}`", gateway.name)));
        }
        let suffice = |parts: &Parts, hosts: &Hosts| {
            let new = usize::from(!hosts.is_named(&wish.place));
            parts.suffice(&wish.place.gateway, hosts, new).map_err(no_room)
        };
        suffice(&self.parts, &lock(&self.hosts))?;
        self.add_unkept(wish).map_err(not_allowed)?;
        // How many entries it has is known when it is there.
        let fits = suffice(&self.parts, &lock(&self.hosts));
        if let Err(more) = fits {
            self.remove_unkept(&wish.name).map_err(not_allowed)?;
            return Err(more);
        }
        self.leased.insert(self.whole(&wish.name).map_err(not_allowed)?);
        Ok(())
    }

    /// [`Answering::add`], without keeping the name in the store.
    pub(super) fn add_unkept(&mut self, wish: &NameWish) -> Result<String, String> {
        let gateway = served(&self.gateways, &wish.place).map_err(|(_, message)| message)?;
        if self.carries() && gateway.peer.is_none() {
            return Err(no_peer(&gateway.name));
        }
        own(self.pool.as_ref(), wish.ipv4)?;
        let ipv6 = wish.ipv6.map(|host| outside(self.network6, gateway, host)).transpose()?;
        let mut hosts = lock(&self.hosts);
        if hosts.count() >= NAMED_HOSTS && !hosts.is_named(&wish.place) {
            return Err(format!(
                "names have led to {NAMED_HOSTS} hosts since the start: start anew for more"
            ));
        }
        let described = NameDescription {
            name: wish.name.clone(),
            responder: hosts.number(wish.place.clone()),
            services: wish.services.clone(),
            ipv6,
            ipv4: wish.ipv4,
            https: None,
        };
        drop(hosts);
        self.come(described, &wish.place, wish.ipv6.filter(|_| ipv6 != wish.ipv6))
    }

    /// Adds a name that leads to a host, which has the address `inside` behind its gateway.
    pub(super) fn come(
        &mut self,
        described: NameDescription,
        place: &HostPlace,
        inside: Option<Ipv6Addr>,
    ) -> Result<String, String> {
        let has_waypoint = self.pool.is_some() || !self.elsewhere.waypoints.is_empty();
        let zone = self.server.zone_mut();
        let told = |error: ZoneError| error.to_string();
        let name = zone.name(&described.name).map_err(told)?;
        zone.add_described(&described).map_err(told)?;
        let standing = standing_keys(zone, &described);
        let stable = inside.and_then(|inside| stable_host(&described, &place.gateway, inside));
        let ports = shared_ports(zone.mode(&name), services(&described));
        let opened = self.server_names.opened_by(&ports);
        let stands = || {
            let Some(waypoint) = &self.waypoint else { return Ok(()) };
            let mut waypoint = locked(waypoint);
            waypoint.stand(&standing, place)?;
            let opens = waypoint.open(&opened);
            let leads = opens.and_then(|()| stable.as_ref().map_or(Ok(()), |host| waypoint.lead(host)));
            leads.inspect_err(|_| {
                waypoint.fall(&standing);
                waypoint.close(&opened);
            })
        };
        if let Err(message) = reachable(zone, &described.name, has_waypoint).and_then(|()| stands()) {
            zone.remove(&name).map_err(told)?;
            return Err(message);
        }
        self.server_names.come(&ports);
        self.inside6.extend(inside.map(|inside| (name.to_string(), inside)));
        self.parts.come(&place.gateway, entries(&standing, stable.as_ref()));
        let HostPlace { gateway, address } = place;
        let done = format!("{name} leads to {address} behind `{gateway}`; serial {}", zone.serial());
        self.named.insert(name.to_string(), described);
        Ok(done)
    }

    /// Removes a name that leads to a host, and says what was done. One of the file comes back with the next
    /// start, or when the file has it otherwise and is read again.
    pub(super) fn remove(&mut self, name: &str) -> Result<String, String> {
        let done = self.remove_unkept(name)?;
        let name = self.whole(name)?;
        let forgotten = self.kept.as_ref().map_or(Ok(()), |kept| kept.name(&name, None));
        forgotten.map_err(|error| format!("{done}, but it may come back with the next start: {error}"))?;
        Ok(done)
    }

    /// The same, without noting it.
    pub(super) fn remove_unkept(&mut self, name: &str) -> Result<String, String> {
        let zone = self.server.zone_mut();
        let told = |error: ZoneError| error.to_string();
        let name = zone.name(name).map_err(told)?;
        let gone =
            self.named.get(&name.to_string()).map(|described| (described, standing_keys(zone, described)));
        let ports = gone.as_ref().map(|(described, _)| shared_ports(zone.mode(&name), services(described)));
        zone.remove(&name).map_err(told)?;
        let closed = self.server_names.go(&ports.unwrap_or_default());
        let serial = zone.serial();
        let inside = self.inside6.remove(&name.to_string());
        self.leased.remove(&name.to_string());
        let place = gone.as_ref().and_then(|(one, _)| lock(&self.hosts).place(one.responder).cloned());
        let stable = gone.as_ref().zip(place.as_ref()).zip(inside);
        let stable = stable.and_then(|(((one, _), place), inside)| stable_host(one, &place.gateway, inside));
        if let (Some((_, standing)), Some(place)) = (&gone, &place) {
            self.parts.go(&place.gateway, entries(standing, stable.as_ref()));
        }
        if let (Some((described, standing)), Some(waypoint)) = (gone, &self.waypoint) {
            if let Some(stable) = stable {
                locked(waypoint).forsake(&stable);
            }
            let services = services(described);
            let another = |(other, one): (&String, &NameDescription)| {
                *other != name.to_string()
                    && one.responder == described.responder
                    && self::services(one) == services
            };
            // Another name of the same host may have been asked for.
            let alone = services.as_ref().filter(|_| !self.named.iter().any(another));
            let now = MachineClock.program();
            locked(waypoint).forget(&standing, (Responder(described.responder), alone), now);
            locked(waypoint).close(&closed);
        }
        self.named.remove(&name.to_string());
        let connections =
            if self.carries() { "; connections that are there go on until they end" } else { "" };
        Ok(format!("{name} leads to no host any more{connections}; serial {serial}"))
    }

    /// How a name is reached by IPv4.
    pub(super) fn mode(&self, described: &NameDescription) -> Option<Ipv4Mode> {
        let zone = self.server.zone();
        zone.mode(&zone.name(&described.name).ok()?)
    }

    /// The gateways of the file.
    pub(super) fn gateways(&self) -> &[GatewayDescription] {
        &self.gateways
    }

    /// Whether packets follow the waypoint of this process.
    fn carries(&self) -> bool {
        self.waypoint.as_ref().is_some_and(|waypoint| locked(waypoint).carries())
    }

    /// Lets the addresses of all names that are there lead to their hosts, whoever asks.
    pub(super) fn stand(&mut self) -> Result<(), String> {
        let Some(waypoint) = &self.waypoint else { return Ok(()) };
        for (name, described) in &self.named {
            let place = lock(&self.hosts).place(described.responder).cloned();
            let Some(place) = place else { continue };
            let keys = standing_keys(self.server.zone(), described);
            let mut waypoint = locked(waypoint);
            let wrong = |why| format!("{}: {why}", described.name);
            waypoint.stand(&keys, &place).map_err(wrong)?;
            let ports = shared_ports(self.mode(described), services(described));
            waypoint.open(&self.server_names.opened_by(&ports)).map_err(wrong)?;
            self.server_names.come(&ports);
            let inside = self.inside6.get(name);
            let stable = inside.and_then(|inside| stable_host(described, &place.gateway, *inside));
            stable.map_or(Ok(()), |host| waypoint.lead(&host)).map_err(wrong)?;
        }
        Ok(())
    }

    /// Answers queries, which came together. A reply that is not there at the end comes later, by the way
    /// that `reply_to` makes for the query of this place.
    pub(super) fn take(
        &mut self,
        received: &[Received<'_>],
        reply_to: &dyn Fn(usize) -> ReplyTo,
    ) -> Vec<Taken> {
        let at = moment();
        let mut taken = Vec::with_capacity(received.len());
        let mut held: Vec<(HeldQuery, usize)> = Vec::new();
        let mut settled = Vec::new();
        for (place, one) in received.iter().enumerate() {
            *match one.transport {
                DnsTransport::Udp => &mut self.udp,
                DnsTransport::Tcp => &mut self.tcp,
            } += 1;
            let &Received { bytes, from, transport, under_load } = one;
            let arrival = Arrival { bytes, from, transport, at, under_load };
            let mut out = Vec::new();
            taken.push(match self.server.answer(&arrival, &mut out) {
                DnsAnswer::Reply => {
                    self.replies += 1;
                    Taken::Reply(out)
                }
                DnsAnswer::Drop(reason) => {
                    self.refuse(reason.to_string());
                    Taken::Nothing
                }
                DnsAnswer::Hold(number, ask) => {
                    held.push((number, place));
                    let place = lock(&self.hosts).place(ask.responder.0).cloned();
                    match place {
                        Some(place) => {
                            let set_up = SetUp::of(ask, place.gateway.into(), place.address);
                            self.asking.ask(number, set_up, at.now);
                        }
                        // Each name of the zone leads to a host with a place.
                        None => settled.push((number, Err(Unpromised::Unreached))),
                    }
                    Taken::Later
                }
            });
        }
        if held.is_empty() {
            return taken;
        }
        self.asking.turn(at.now, &mut settled);
        for (number, said) in settled {
            // The numbers of queries that came later are larger.
            let Ok(index) = held.binary_search_by_key(&number, |(number, _)| *number) else {
                self.settle(vec![(number, said)]);
                continue;
            };
            let mut out = Vec::new();
            taken[held[index].1] = match self.resume(number, said, &mut out) {
                Some(_) => {
                    self.replies += 1;
                    Taken::Reply(out)
                }
                None => Taken::Nothing,
            };
        }
        for (number, place) in held {
            if taken[place] == Taken::Later {
                self.later.insert(number, reply_to(place));
            }
        }
        taken
    }

    /// Does what is due: asks again, and answers queries that have waited for long enough. Says in how many
    /// nanoseconds the next is due.
    pub(super) fn turn(&mut self) -> Option<u64> {
        let now = MachineClock.program();
        let mut settled = Vec::new();
        self.asking.turn(now, &mut settled);
        self.settle(settled);
        let mut out = Vec::new();
        while let Some(resumed) = self.server.expire(now, &mut out) {
            self.send(&resumed, &out);
        }
        let due = self.asking.next_due();
        let over = self.waypoint.as_ref().and_then(|waypoint| locked(waypoint).turn(now));
        [due, over, self.server.next_expiry()].into_iter().flatten().min().map(|due| due.saturating_sub(now))
    }

    fn settle(&mut self, settled: Vec<Settled>) {
        let mut out = Vec::new();
        for (number, said) in settled {
            if let Some(resumed) = self.resume(number, said, &mut out) {
                self.send(&resumed, &out);
            }
        }
    }

    /// Writes the reply to a query that has waited; nothing if it waits no longer.
    fn resume(
        &mut self,
        number: HeldQuery,
        said: Result<Ipv4Addr, Unpromised>,
        out: &mut Vec<u8>,
    ) -> Option<Resumed> {
        match said {
            Ok(address) => self.server.resume(number, Ok(address), out),
            Err(Unpromised::Short(why)) => self.server.resume(number, Err(why), out),
            Err(Unpromised::Unreached) => self.server.give_up(number, out),
        }
    }

    /// Forgets what a peer has said of its lives.
    pub(super) fn forget(&mut self, by: &str) {
        let place = |names: &[String]| names.iter().position(|name| name == by).map(numbered);
        if let (Some(peer), Some(waypoint)) = (place(&self.elsewhere.name_servers), &self.waypoint) {
            locked(waypoint).forget_peer(peer);
        }
        if let Some(peer) = place(&self.elsewhere.waypoints) {
            self.asking.forget(peer);
        }
    }

    /// Takes an ask of a name server elsewhere, and gives the answer of the waypoint of this process.
    ///
    /// # Errors
    /// It is no name server of the file, or why its ask is dropped.
    pub(super) fn asked(
        &mut self,
        by: &str,
        ask: &ControlAsk,
        now: u64,
    ) -> Result<OwnerAnswer, &'static str> {
        let place = self.elsewhere.name_servers.iter().position(|name| name == by);
        let (Some(place), Some(waypoint)) = (place, &self.waypoint) else { return Err("no_name_server") };
        let served = match &ask.body {
            AskBody::SetUp(SetUp { gateway, host, .. }) => {
                let place = HostPlace { gateway: gateway.to_string(), address: *host };
                let peer = served(&self.gateways, &place).map(|gateway| gateway.peer);
                peer.is_ok_and(|peer| peer.is_some())
            }
            AskBody::Register(_) => false,
        };
        locked(waypoint).heard(numbered(place), ask, served, now).map_err(ControlDrop::name)
    }

    /// Takes an answer of a waypoint elsewhere, and answers the queries that waited for it.
    ///
    /// # Errors
    /// It answers nothing that waits.
    pub(super) fn answered(&mut self, by: &str, answer: &OwnerAnswer, now: u64) -> Result<(), &'static str> {
        let place = self.elsewhere.waypoints.iter().position(|name| name == by).ok_or("not_asked")?;
        if !self.asking.heard(numbered(place), answer, now) {
            return Err("not_asked");
        }
        let mut settled = Vec::new();
        self.asking.turn(now, &mut settled);
        self.settle(settled);
        Ok(())
    }

    /// Sends a reply that has waited.
    fn send(&mut self, resumed: &Resumed, reply: &[u8]) {
        let sent = match self.later.remove(&resumed.number) {
            // The socket of a network card takes it, or has no room; nobody waits for that.
            Some(ReplyTo::Udp(socket)) => socket.send_to(reply, resumed.to).is_ok(),
            Some(ReplyTo::Tcp(connection)) => connection.try_send(reply.to_vec()).is_ok(),
            None => false,
        };
        if sent {
            self.replies += 1;
        } else {
            self.refuse("reply not sent".to_owned());
        }
    }

    /// Counts a query that gets no answer.
    pub(super) fn refuse(&mut self, reason: String) {
        self.refuse_all(reason, 1);
    }

    /// Counts so many queries, or packets of a tunnel, that get no answer.
    pub(super) fn refuse_all(&mut self, reason: String, many: usize) {
        if many > 0 {
            // The reasons are few: all of them stand in the code.
            *self.drops.entry(reason).or_default() += many as u64;
        }
    }

    /// The figures, without lists.
    pub(super) fn figures(&self) -> NamesView {
        let counts = self.waypoint.as_ref().map(|waypoint| locked(waypoint).counts());
        let (bindings, expectations) = counts.unwrap_or_default();
        NamesView {
            bindings: bindings as u64,
            expectations: expectations as u64,
            zone: self.server.zone().apex().to_string(),
            serial: self.server.zone().serial(),
            queries: [("udp", self.udp), ("tcp", self.tcp)].into(),
            replies: self.replies,
            held: self.server.held() as u64,
            drops: self.drops.clone(),
            host_count: self.named.len() as u64,
            waypoints: self.waypoints_elsewhere(MachineClock.program()),
            server_names: self.server_names.counts(),
            ..NamesView::default()
        }
    }

    fn waypoints_elsewhere(&self, now: u64) -> Vec<AskedWaypointView> {
        let view = |(place, name): (usize, &String)| {
            let silent = self.asking.is_silent(numbered(place), now);
            AskedWaypointView { name: name.clone(), silent }
        };
        self.elsewhere.waypoints.iter().enumerate().map(view).collect()
    }

    /// The figures, gateways, names with their hosts, and promises.
    pub(super) fn view(&self) -> NamesView {
        let now = MachineClock.program();
        let seconds = |until: u64| until.saturating_sub(now) as f64 / 1e9;
        let promise = |one: &Expected| PromiseView {
            address: one.promise.address,
            to: PromisedTo { gateway: one.place.gateway.clone(), host: one.place.address },
            initiators: shown(one.ask.initiators),
            resolver: one.ask.resolver,
            exclusive_seconds: seconds(one.promise.exclusive_until),
            seconds: seconds(one.at + TAIL),
        };
        let live = |waypoint: &SharedWaypoint| -> Vec<PromiseView> {
            locked(waypoint).promises().rev().filter(|one| one.at + TAIL > now).map(promise).collect()
        };
        // The waypoint takes the hosts while it is taken itself, so they are taken last here.
        let promises = self.waypoint.as_ref().map(live).unwrap_or_default();
        let figures = self.figures();
        let known = lock(&self.hosts);
        let host = |(name, described): (&String, &NameDescription)| {
            let place = known.place(described.responder)?;
            let mode = self.mode(described)?;
            Some(NamedHostView {
                name: name.clone(),
                place: place.clone(),
                services: described.services.clone(),
                ipv4: match mode {
                    Ipv4Mode::Automatic | Ipv4Mode::PerInitiator => "per initiator".to_owned(),
                    Ipv4Mode::Shared => "shared".to_owned(),
                    Ipv4Mode::Dedicated(address) => address.to_string(),
                    Ipv4Mode::None => "none".to_owned(),
                },
                ipv6: described.ipv6,
                ipv6_host: self.inside6.get(name).copied(),
            })
        };
        let hosts = self.named.iter().filter_map(host).take(NAMES_SHOWN).collect();
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        for place in self.named.values().filter_map(|described| known.place(described.responder)) {
            *names.entry(&place.gateway).or_default() += 1;
        }
        let gateway = |one: &GatewayDescription| NamedGatewayView {
            name: one.name.clone(),
            number: one.peer,
            networks: one.networks.iter().map(IpPrefix::to_string).collect(),
            names: names.get(one.name.as_str()).copied().unwrap_or(0),
        };
        let gateways = self.gateways.iter().map(gateway).collect();
        NamesView { gateways, hosts, promises, ..figures }
    }
}

pub(super) fn lock(hosts: &Mutex<Hosts>) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn since_1970() -> Duration {
    // A clock before 1970 makes cookies that nobody else would take.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn moment() -> DnsMoment {
    DnsMoment { now: MachineClock.program(), unix: since_1970().as_secs() as u32 }
}
