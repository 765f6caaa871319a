//! A waypoint in the same process: it is asked by the same messages as one far away, without bytes.

use super::elsewhere::OWN;
use super::packet_tables::PacketTables;
use super::packets::{DataPath, Reached, Target, told};
use super::path::PacketPath;
use super::promise_group::PromiseGroup;
use super::server_name_tables::OpenPort;
use super::stable::StableHost;
use crate::config::names::{GatewayDescription, HostPlace, Hosts};
use crate::limits::{ASKED_HOSTS, ASKED_HOSTS_LOOKED_AT, PROMISES_SHOWN};
use crate::names::view::{PromiseView, PromisedTo, WhyNameView};
use exec::Backend;
use naming::control::{
    AnswerBody, AskBody, ControlAsk, ControlDrop, ControlOwner, OwnerAnswer, Peer, Rejection,
};
use naming::limits::TAIL;
use naming::store::StoredBinding;
use naming::{
    AddressPool, AddressPoolError, Ask, BindingKey, ClientConnection, Hold, Initiators, PathKey, Promise,
    Responder, Service, Services, Waypoint,
};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stands in the place of the name server that has asked for the hosts of bindings from before a restart. No
/// peer of a tunnel has this number.
const EARLIER_LIFE: u32 = u32::MAX;

/// How many promises to others are shown beside one.
const OTHERS_SHOWN: usize = 8;

/// Initiators, in words.
pub(super) fn shown(initiators: Initiators) -> String {
    match initiators {
        Initiators::Exact(address) => address.to_string(),
        Initiators::Prefix(address, length) => format!("{address}/{length}"),
        Initiators::Any => "any".to_owned(),
    }
}

/// What first packets may do from now on.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The address, and until when nobody else is promised the same.
    pub(super) promise: Promise,
    /// By whom, and by which services.
    pub(super) ask: Ask,
    /// Where the responder is.
    pub(super) place: HostPlace,
    /// When it was promised.
    pub(super) at: u64,
}

/// Promises that are remembered, so that they can be shown.
#[derive(Default)]
pub(super) struct Promises(VecDeque<Expected>);

impl Promises {
    pub(super) fn note(&mut self, expected: Expected) {
        // The same promise again replaces the earlier one.
        let is_same = |one: &Expected| {
            one.promise.address == expected.promise.address
                && one.ask.responder == expected.ask.responder
                && one.ask.initiators == expected.ask.initiators
        };
        if let Some(index) = self.0.iter().position(is_same) {
            self.0.remove(index);
        }
        if self.0.len() >= PROMISES_SHOWN {
            self.0.pop_front();
        }
        self.0.push_back(expected);
    }
}

/// The waypoint, and what it needs to carry out asks.
pub(crate) struct LocalWaypoint {
    owner: ControlOwner,
    waypoint: Waypoint,
    hosts: Arc<Mutex<Hosts>>,
    /// Of so many hosts a name server elsewhere may ask for without names here.
    part: usize,
    /// When it may be looked which of these hosts nothing leads to.
    look_at: u64,
    path: Option<PacketPath>,
    promises: Promises,
    /// What packets have done since it was taken, if somebody takes it: the last of each key.
    news: Option<HashMap<BindingKey, Reached>>,
    /// What packets did until this moment is known here; none until it was looked for once.
    heeded: Option<u64>,
}

/// A waypoint that several threads ask.
pub(crate) type SharedWaypoint = Arc<Mutex<LocalWaypoint>>;

/// The waypoint, for one thread.
pub(crate) fn locked(waypoint: &SharedWaypoint) -> MutexGuard<'_, LocalWaypoint> {
    waypoint.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalWaypoint {
    /// A waypoint that has promised nothing, and whose packets nobody carries.
    pub(super) fn new(
        epoch: u64,
        pool: AddressPool,
        hosts: Arc<Mutex<Hosts>>,
    ) -> Result<LocalWaypoint, AddressPoolError> {
        let (owner, waypoint) = (ControlOwner::new(epoch), Waypoint::new(pool)?);
        let (part, promises) = (ASKED_HOSTS, Promises::default());
        Ok(LocalWaypoint {
            owner,
            waypoint,
            hosts,
            part,
            look_at: 0,
            path: None,
            promises,
            news: None,
            heeded: None,
        })
    }

    /// The same, with so many name servers elsewhere.
    pub(super) fn asked_by(self, name_servers: usize) -> LocalWaypoint {
        LocalWaypoint { part: ASKED_HOSTS / name_servers.max(1), ..self }
    }

    /// The same, with another time for addresses of initiators that are not known.
    pub(super) fn holding(self, hold: Hold) -> LocalWaypoint {
        LocalWaypoint { waypoint: self.waypoint.holding(hold), ..self }
    }

    /// Packets will follow its promises; nobody is told yet. `cookie_key` is a secret.
    pub(super) fn carry(
        &mut self,
        tables: &PacketTables,
        gateways: &[GatewayDescription],
        machine: &BTreeSet<Service>,
        cookie_key: [u64; 2],
    ) {
        self.path = Some(PacketPath::new(tables, gateways, machine, cookie_key));
    }

    /// From now on these packets are told.
    pub(super) fn begin(&mut self, packets: Box<dyn DataPath>) {
        if let Some(path) = &mut self.path {
            path.begin(packets);
        }
    }

    /// Knows bindings of an earlier life of the process, and lets somebody take what packets do from now on.
    pub(super) fn remember(&mut self, earlier: &[StoredBinding], now: u64) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        for StoredBinding { key, gateway, host, ago } in earlier {
            let target = Target { peer: *gateway, host: *host };
            let reached = Reached { key: *key, target, quarantined: true };
            if let Some(path) = &self.path {
                // No name leads there yet where names are registered, or known to a name server elsewhere.
                // Without a number the host counts as forgotten.
                let _ =
                    path.place(target).and_then(|place| hosts.asked_for(place, EARLIER_LIFE, ASKED_HOSTS));
                path.note(&mut self.waypoint, &[reached], &hosts, now.saturating_sub(*ago));
            }
        }
        self.news = Some(HashMap::new());
    }

    /// What packets have done since this was asked last, and until which moment that is all.
    pub(super) fn take_reached(&mut self) -> (Vec<Reached>, Option<u64>) {
        let news = self.news.as_mut().map(|news| news.drain().map(|(_, reached)| reached).collect());
        (news.unwrap_or_default(), self.heeded)
    }

    /// How much of what packets have done nobody has taken.
    pub(super) fn untaken(&self) -> usize {
        self.news.as_ref().map_or(0, HashMap::len)
    }

    /// What packets did until this moment has been told.
    pub(super) fn heeded_until(&mut self, moment: u64) {
        self.heeded = self.heeded.max(Some(moment));
    }

    /// Whether packets follow its promises.
    pub(super) fn carries(&self) -> bool {
        self.path.is_some()
    }

    /// What is promised and was promised before, the oldest first.
    pub(super) fn promises(&self) -> impl DoubleEndedIterator<Item = &Expected> {
        self.promises.0.iter()
    }

    /// Bindings and entries of packets that there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.waypoint.bindings(), self.path.as_ref().map_or(0, PacketPath::count))
    }

    /// Forgets the lives of a name server, of which a key was taken away. What it was promised stays.
    pub(super) fn forget_peer(&mut self, peer: Peer) {
        self.owner.forget(peer);
    }

    /// Takes an ask of a peer about a host that is `served` by a gateway or not, and gives its answer. When
    /// it accepts, packets know the promise.
    ///
    /// # Errors
    /// Why the ask is dropped.
    pub(crate) fn heard(
        &mut self,
        peer: Peer,
        ask: &ControlAsk,
        served: bool,
        now: u64,
    ) -> Result<OwnerAnswer, ControlDrop> {
        let mut answers = self.heard_all(peer, &[ask], served, now);
        answers.pop().unwrap_or(Err(ControlDrop::Busy))
    }

    /// [`LocalWaypoint::heard`] for several asks, in their order. Packets are told of many at a time.
    pub(crate) fn heard_all(
        &mut self,
        peer: Peer,
        asks: &[&ControlAsk],
        served: bool,
        now: u64,
    ) -> Vec<Result<OwnerAnswer, ControlDrop>> {
        let LocalWaypoint { owner, waypoint, hosts, part, look_at, path, promises, .. } = self;
        let mut hosts = hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut group = PromiseGroup::new(peer, asks.len());
        for ask in asks {
            if let AskBody::SetUp(wanted) = &ask.body
                && !group.takes(wanted)
            {
                group.settle(owner, waypoint, path.as_mut(), &hosts, promises, now);
            }
            let carry_out = |body: &AskBody| {
                let AskBody::SetUp(wanted) = body else { return AnswerBody::Reject(Rejection::Unsupported) };
                let place = HostPlace { gateway: wanted.gateway.to_string(), address: wanted.host };
                if !served {
                    return AnswerBody::Reject(Rejection::UnknownResponder);
                }
                let is_new = hosts.known(&place).is_none();
                let mut number = hosts.asked_for(place.clone(), peer.0, *part);
                if number.is_none() && now >= *look_at {
                    *look_at = now.saturating_add(ASKED_HOSTS_LOOKED_AT);
                    let mut in_use = waypoint.responders(now);
                    in_use.extend(path.iter().flat_map(PacketPath::responders));
                    hosts.give_back_unused(&|number| in_use.contains(&Responder(number)));
                    number = hosts.asked_for(place.clone(), peer.0, *part);
                }
                let Some(number) = number else { return AnswerBody::Reject(Rejection::NoRoom) };
                let own = wanted.ask(Responder(number));
                let answer = group.promise(ask.serial, (own, place), waypoint, path.as_mut(), &hosts, now);
                if is_new && matches!(answer, AnswerBody::Reject(_)) {
                    hosts.take_back(number);
                }
                answer
            };
            let answer = match peer {
                OWN => owner.handed_over(peer, ask, carry_out),
                _ => owner.heard(peer, ask, now, carry_out),
            };
            group.answers.push(answer);
        }
        group.settle(owner, waypoint, path.as_mut(), &hosts, promises, now);
        group.answers
    }

    /// What becomes of a first packet, and who else is expected there.
    ///
    /// # Errors
    /// No packets follow this waypoint.
    pub(super) fn why(&mut self, key: &BindingKey, now: u64) -> Result<WhyNameView, String> {
        let none = "no packets follow this waypoint: ask the process that has `[[port]]`";
        let path = self.path.as_mut().ok_or(none)?;
        let state = path.state(key).ok_or("the packet loop has ended")?;
        let seconds = |until: u64| until.saturating_sub(now) as f64 / 1e9;
        let to = |target: Target| PromisedTo { gateway: path.gateway(target), host: target.host };
        let told = state.expected.map(|(target, length)| {
            let initiators = match length {
                32 => Initiators::Exact(key.initiator),
                0 => Initiators::Any,
                length => {
                    let shift = 32 - u32::from(length);
                    Initiators::Prefix(Ipv4Addr::from_bits(key.initiator.to_bits() >> shift << shift), length)
                }
            };
            let key = PathKey { address: key.address, service: key.service, initiators };
            let until = self.waypoint.promised(&key, now).map(|entry| entry.until);
            (to(target), shown(initiators), until.map(seconds))
        });
        let (young, room) = state.young;
        let by_server_name = key.service.protocol == 6 && path.is_open(&(key.address, key.service.port));
        let contested = state.contested.is_some_and(|until| until > now);
        let outcome = match (&state.bound, &told, &state.quarantined) {
            (Some((target, _)), Some((expected, ..)), _) if *expected != to(*target) => "ambiguous",
            (Some(_), None, _) if state.contested.is_some() => "ambiguous",
            (Some(_), Some(_), _) if contested => "ambiguous",
            (Some(_), ..) => "reaches",
            (None, None, _) if by_server_name => "server_name",
            (None, None, _) => "no_expectation",
            (None, Some((expected, ..)), Some((target, _))) if *expected != to(*target) => "quarantined",
            (None, Some(_), Some(_)) if contested => "ambiguous",
            _ if young >= room && state.has_cookies && key.service.protocol == 6 => "answered_by_cookie",
            _ if young >= room => "embryonic_full",
            _ => "would_reach",
        };
        let others = self.promises.0.iter().rev().filter(|one| {
            let there = one.promise.address == key.address && one.ask.services.contains(key.service);
            there && one.at + TAIL > now && !one.ask.initiators.contain(key.initiator)
        });
        let other = |one: &Expected| PromiseView {
            address: one.promise.address,
            to: PromisedTo { gateway: one.place.gateway.clone(), host: one.place.address },
            initiators: shown(one.ask.initiators),
            resolver: one.ask.resolver,
            exclusive_seconds: seconds(one.promise.exclusive_until),
            seconds: seconds(one.at + TAIL),
        };
        Ok(WhyNameView {
            outcome,
            bound: state.bound.map(|(target, _)| to(target)),
            proved: state.bound.is_some_and(|(_, proved)| proved),
            quarantined: state.quarantined.map(|(target, _)| to(target)),
            quarantine_seconds: state.quarantined.map(|(_, ends)| seconds(ends)),
            expected: told.as_ref().map(|(to, ..)| to.clone()),
            initiators: told.as_ref().map(|(_, initiators, _)| initiators.clone()),
            expected_seconds: told.and_then(|(.., seconds)| seconds),
            young,
            young_room: room,
            others: others.take(OTHERS_SHOWN).map(other).collect(),
            server_name: None,
            refused: None,
        })
    }

    /// Takes from packets what is over. Says when the next is due.
    pub(super) fn turn(&mut self, now: u64) -> Option<u64> {
        self.waypoint.advance(now);
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        self.path.as_mut()?.expire(&self.waypoint, &hosts, now)
    }

    /// Packets go to these gateways from now on.
    pub(super) fn serve(&mut self, gateways: &[GatewayDescription]) {
        if let Some(path) = &mut self.path {
            path.serve(gateways);
        }
    }

    /// Lets clients say at these places by a server name whom they mean.
    ///
    /// # Errors
    /// Why packets do not follow.
    pub(super) fn open(&mut self, ports: &[OpenPort]) -> Result<(), String> {
        self.path.as_mut().map_or(Ok(()), |path| path.open(ports))
    }

    /// Nobody is led by server names at these places any more.
    pub(super) fn close(&mut self, ports: &[OpenPort]) {
        if let Some(path) = &mut self.path {
            path.close(ports);
        }
    }

    /// Lets a connection of a client that has said whom it means go to this host. Says whether packets
    /// follow.
    pub(super) fn lead_client(&mut self, connection: &ClientConnection, place: &HostPlace, now: u64) -> bool {
        self.path.as_mut().is_some_and(|path| path.lead_client(connection, place, now))
    }

    /// Lets addresses lead to a host for everybody.
    ///
    /// # Errors
    /// Why packets do not follow.
    pub(super) fn stand(&mut self, keys: &[PathKey], place: &HostPlace) -> Result<(), String> {
        self.path.as_mut().map_or(Ok(()), |path| path.stand(keys, place))
    }

    /// Lets the address of a host of IPv6 lead to it, for one name more.
    ///
    /// # Errors
    /// Why packets do not follow.
    pub(super) fn lead(&mut self, host: &StableHost) -> Result<(), String> {
        self.path.as_mut().map_or(Ok(()), |path| path.lead(host))
    }

    /// Takes back that addresses lead to a host for everybody.
    pub(super) fn fall(&mut self, keys: &[PathKey]) {
        if let Some(path) = &mut self.path {
            path.fall(keys);
        }
    }

    /// A name of a host of IPv6 is gone.
    pub(super) fn forsake(&mut self, host: &StableHost) {
        if let Some(path) = &mut self.path {
            path.forsake(host);
        }
    }

    /// A name is gone: its addresses lead nowhere, and with `services` promises to its host by them are taken
    /// back.
    pub(super) fn forget(
        &mut self,
        keys: &[PathKey],
        (responder, services): (Responder, Option<&Services>),
        now: u64,
    ) {
        let withdrawn = services.map(|services| self.waypoint.withdraw(responder, services));
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &mut self.path {
            path.fall(keys);
            path.withdraw(&self.waypoint, &withdrawn.unwrap_or_default(), &hosts, now);
            if let Some(place) = hosts.place(responder.0) {
                path.lead_nobody(place);
            }
        }
        self.promises.0.retain(|one| {
            one.ask.responder != responder || services.is_none_or(|services| one.ask.services != *services)
        });
    }

    /// Fills the tables of a program that does not run yet.
    ///
    /// # Errors
    /// It does not take all.
    pub(crate) fn fill(&self, tables: &PacketTables, backend: &mut dyn Backend) -> Result<(), String> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        self.path.as_ref().map_or(Ok(()), |path| path.fill(tables, backend, &hosts))
    }

    /// Another program has taken over.
    pub(crate) fn took_over(&mut self, tables: PacketTables, generation: u64, now: u64) {
        if let Some(path) = &mut self.path {
            path.took_over(tables, generation);
        }
        self.compare(now);
    }

    /// Compares the bindings that it knows with those of packets.
    pub(super) fn compare(&mut self, now: u64) {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &mut self.path {
            let found = path.compare(&mut self.waypoint, &hosts, now);
            if let Some(news) = &mut self.news {
                news.extend(found.into_iter().map(|one| (one.key, one)));
            }
        }
    }

    /// Packets have bound an initiator, or a binding is `over`.
    pub(super) fn heed(&mut self, arguments: &[u128], over: bool, now: u64) {
        let (Some((key, target)), Some(path)) = (told(arguments), &self.path) else { return };
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        path.note(&mut self.waypoint, &[Reached { key, target, quarantined: false }], &hosts, now);
        if over {
            self.waypoint.end(&key, now);
        }
        if let Some(news) = &mut self.news {
            news.insert(key, Reached { key, target, quarantined: over });
        }
    }
}
