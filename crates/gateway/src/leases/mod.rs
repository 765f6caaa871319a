//! Control messages over tunnels: gateways register the names of their hosts where names are answered for,
//! which gives leases for them; and name servers ask waypoints for addresses.
//!
//! ```text
//!  gateway: [register] ─► Registering ─► REGISTER ──tunnel──► Registrar ─► Names, as by `names add`
//!                                    ◄── LEASE, REJECT ──────
//!  name server:   Names ─► WaypointWays ─► SETUP ──tunnel──► Names ─► LocalWaypoint
//!                                    ◄── ACCEPT, REJECT ─────
//! ```
//!
//! Each tunnel has a thread, which takes what peers say and looks at its dates. What is said is bounded by
//! the tunnel ([`ports::live::tunnel`]) and by `naming::control`.

mod registering;
mod registrar;
mod view;

pub use view::{GatewayLeaseView, LeasesView, WaypointLeaseView};

use crate::config::RegisterConfig;
use crate::limits::LEASE_CLOCK;
use crate::names::Names;
use naming::control::{AskBody, ControlAsk, ControlMessage, OwnerAnswer, decode, encode};
use ports::live::TunnelControl;
use ports::live::clock::{Clock, MachineClock};
use ports::live::tunnel::{PeerMessages, WantedPeer};
use registering::Registering;
use registrar::Registrar;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is said over the tunnels of a gateway.
#[derive(Default)]
pub(crate) struct Leasing {
    tunnels: Mutex<Vec<Arc<Mutex<Conversations>>>>,
    /// The names that gateways may register, and for which waypoints are asked, if this process has any.
    names: Option<Arc<Names>>,
    /// The epoch that was given out last.
    latest: AtomicU64,
    remark: Option<fn(&str)>,
}

/// What is said over one tunnel.
struct Conversations {
    tunnel: TunnelControl,
    /// By their numbers.
    peers: BTreeMap<u32, WantedPeer>,
    names: Option<Arc<Names>>,
    registrar: Option<Registrar>,
    /// The waypoints at which this gateway registers, by the numbers of these peers.
    registering: BTreeMap<u32, Registering>,
    remark: fn(&str),
    drops: BTreeMap<&'static str, u64>,
}

impl Leasing {
    /// Nothing is said yet.
    pub(crate) fn new(names: Option<Arc<Names>>, remark: fn(&str)) -> Leasing {
        Leasing { names, remark: Some(remark), ..Leasing::default() }
    }

    /// A number for the life of who asks or answers, larger than all before: the time of day. After a restart
    /// it is larger, too, unless the clock went back.
    fn epoch(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let later = |latest: u64| Some(now.max(latest.saturating_add(1)));
        let before = self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        later(before.unwrap_or_default()).unwrap_or(now)
    }

    /// Speaks over tunnels that have come, and does what the file says now of those there were.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn follow(
        &self,
        register: Option<&RegisterConfig>,
        tunnels: &[TunnelControl],
        ended: &Arc<AtomicBool>,
    ) -> io::Result<()> {
        let mut known = self.tunnels();
        known.retain(|conversations| {
            let mut conversations = locked(conversations);
            let stays = tunnels.iter().any(|tunnel| tunnel.is(&conversations.tunnel));
            if !stays {
                conversations.end();
            }
            stays
        });
        if let Some(names) = &self.names {
            names.forget(&names.ways.follow(tunnels));
        }
        let speaks = self.names.is_some() || register.is_some();
        for tunnel in tunnels.iter().filter(|_| speaks) {
            let Some(messages) = tunnel.messages() else { continue };
            let conversations = Conversations {
                tunnel: tunnel.clone(),
                peers: BTreeMap::new(),
                names: self.names.clone(),
                registrar: self.names.clone().map(|names| Registrar::new(self.epoch(), names)),
                registering: BTreeMap::new(),
                remark: self.remark.unwrap_or(|_| ()),
                drops: BTreeMap::new(),
            };
            let conversations = Arc::new(Mutex::new(conversations));
            // It ends with the tunnel, and must not keep it open.
            let (spoken, ended) = (Arc::downgrade(&conversations), ended.clone());
            known.push(conversations);
            let speak = move || speak(&spoken, &messages, &ended);
            thread::Builder::new().name("leases".to_owned()).spawn(speak)?;
        }
        for conversations in known.iter() {
            locked(conversations).follow(register, &|| self.epoch());
        }
        Ok(())
    }

    /// Gives up all leases of this gateway. Nobody waits for the answers: without this message they end
    /// by themselves.
    pub(crate) fn release(&self) {
        self.tunnels().iter().for_each(|conversations| locked(conversations).release(|_| true));
    }

    /// What there is to see.
    pub(crate) fn view(&self) -> LeasesView {
        let mut view = LeasesView::default();
        self.tunnels().iter().for_each(|conversations| locked(conversations).show(&mut view));
        view
    }

    fn tunnels(&self) -> MutexGuard<'_, Vec<Arc<Mutex<Conversations>>>> {
        self.tunnels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locked(conversations: &Mutex<Conversations>) -> MutexGuard<'_, Conversations> {
    conversations.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what peers say until the gateway ends, or the tunnel has gone.
fn speak(conversations: &Weak<Mutex<Conversations>>, messages: &PeerMessages, ended: &AtomicBool) {
    while !ended.load(Ordering::SeqCst) {
        let said = messages.next(LEASE_CLOCK);
        let Some(conversations) = conversations.upgrade() else { return };
        let mut conversations = locked(&conversations);
        if let Some((peer, message)) = said {
            conversations.heard(peer, &message);
        }
        conversations.turn();
    }
}

impl Conversations {
    /// What the file says of who is a peer, and of what is registered where.
    fn follow(&mut self, config: Option<&RegisterConfig>, epoch: &dyn Fn() -> u64) {
        let peers = self.tunnel.peer_list();
        let new: BTreeMap<_, _> = peers.iter().map(|peer| (peer.number, peer.clone())).collect();
        let before = std::mem::replace(&mut self.peers, new);
        if let Some(registrar) = &mut self.registrar {
            registrar.follow(&peers);
        }
        let waypoints = config.map_or(&[][..], |config| &config.waypoints);
        let named = |name: &String| peers.iter().find(|peer| peer.name == *name).map(|peer| peer.number);
        let numbers: Vec<u32> = waypoints.iter().filter_map(named).collect();
        self.release(|number| !numbers.contains(&number));
        let keeps = |number: &u32| {
            let now = before.get(number).zip(self.peers.get(number));
            now.is_none_or(|(before, now)| now.keeps_keys_of(before))
        };
        // What was said by a key that is taken away is worth nothing, so the registration begins anew.
        self.registering.retain(|number, _| numbers.contains(number) && keeps(number));
        for number in numbers {
            let registering = self.registering.entry(number).or_insert_with(|| Registering::new(epoch()));
            registering.serve(config.map_or(&[], |config| &config.offers));
        }
    }

    /// Takes a message of a peer. What leads to nothing is counted.
    fn heard(&mut self, peer: u32, message: &[u8]) {
        let taken = match decode(message) {
            Ok(ControlMessage::Ask(ask)) => self.asked(peer, &ask).map(|answer| {
                self.say(peer, &ControlMessage::Answer(answer));
            }),
            Ok(ControlMessage::Answer(answer)) => self.answered(peer, &answer),
            Err(_) => Err("malformed"),
        };
        if let Err(reason) = taken {
            *self.drops.entry(reason).or_default() += 1;
        }
    }

    /// Takes an ask of a peer, and gives the answer.
    fn asked(&mut self, peer: u32, ask: &ControlAsk) -> Result<OwnerAnswer, &'static str> {
        // It may have been sent before its sender was revoked.
        let by = self.peers.get(&peer).ok_or("no_peer")?;
        match (&ask.body, &mut self.registrar, &self.names) {
            (AskBody::SetUp(_), _, Some(names)) => names.asked(&by.name, ask),
            (AskBody::Register(_), Some(registrar), _) => registrar.heard(peer, ask, MachineClock.program()),
            (AskBody::SetUp(_), _, None) => Err("no_name_server"),
            (AskBody::Register(_), None, _) => Err("no_registrar"),
        }
    }

    /// Takes an answer of a peer, which may give leases and own addresses.
    fn answered(&mut self, peer: u32, answer: &OwnerAnswer) -> Result<(), &'static str> {
        if let Some(registering) = self.registering.get_mut(&peer)
            && let Ok(told) = registering.heard(answer, MachineClock.program())
        {
            told.iter().for_each(|words| (self.remark)(words));
            return Ok(());
        }
        match (self.peers.get(&peer), &self.names) {
            (Some(by), Some(names)) => names.answered(&by.name, answer),
            _ => Err("not_asked"),
        }
    }

    /// Adds what there is to see.
    fn show(&self, view: &mut LeasesView) {
        let now = MachineClock.program();
        let named = |number: u32| self.peers.get(&number).map(|peer| peer.name.clone());
        let registering = self.registering.iter();
        let waypoints = registering.filter_map(|(number, one)| Some(one.view(named(*number)?, now)));
        view.waypoints.extend(waypoints);
        view.gateways.extend(self.registrar.iter().flat_map(|registrar| registrar.view(now)));
        for (reason, count) in &self.drops {
            *view.drops.entry(reason).or_default() += count;
        }
    }

    /// Does what is due.
    fn turn(&mut self) {
        let now = MachineClock.program();
        if let Some(registrar) = &mut self.registrar {
            registrar.turn(now);
        }
        let mut messages = Vec::new();
        for (&peer, registering) in &mut self.registering {
            messages.extend(registering.turn(now).into_iter().map(|ask| (peer, ControlMessage::Ask(ask))));
        }
        messages.iter().for_each(|(peer, message)| self.say(*peer, message));
    }

    /// Gives up the leases that some peers have given.
    fn release(&mut self, of: impl Fn(u32) -> bool) {
        let now = MachineClock.program();
        let mut messages = Vec::new();
        for (&peer, registering) in self.registering.iter_mut().filter(|(peer, _)| of(**peer)) {
            messages.extend(registering.release(now).into_iter().map(|ask| (peer, ControlMessage::Ask(ask))));
        }
        messages.iter().for_each(|(peer, message)| self.say(*peer, message));
    }

    /// The tunnel goes: nobody is a peer any more.
    fn end(&mut self) {
        self.release(|_| true);
        self.peers.clear();
        if let Some(registrar) = &mut self.registrar {
            registrar.follow(&[]);
        }
    }

    /// Sends a message. One that cannot go is repeated like one that gets lost.
    fn say(&self, peer: u32, message: &ControlMessage) {
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        let _ = self.tunnel.send(peer, &bytes);
    }
}

#[cfg(test)]
pub(crate) mod tests;
