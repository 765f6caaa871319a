//! The neighbour cache: which Ethernet address an IP address on a link has, and whether the neighbour still
//! answers.
//!
//! ```text
//!                      a packet for it                    it answers
//!           (unknown) ────────────────► Incomplete ─────────────────────────► Reachable ◄─────┐
//!            ▲   │                       │  asked 3 times,                     │  30 s ± 50 %  │
//!            │   │  it asks for us       │  1 s apart                          ▼               │ it answers
//!            │   └───────────────────────┼─────────────────────────────────► Stale            │
//!            │                           │                                     │  25 s, or a   │
//!            │ nobody answers            ▼                                     ▼  packet for it│
//!            ├────────────────────────(gone)                                 Delay ───────────┤
//!            │                                                                 │  5 s          │
//!            │                   asked 3 times, 1 s apart                      ▼               │
//!            └─────────────────────────────────────────────────────────────  Probe ───────────┘
//! ```
//!
//! The states are those of RFC 4861 (7.3), for ARP (RFC 826) too. One thing differs: packets go by in the
//! program, where nobody sees which neighbour they go to; so each counts as being used, and one that has been
//! silent is asked again about once a minute (RFC 1122, 2.3.2.1, the second way). From Stale to Probe the
//! address that is known is used.
//!
//! A neighbour whose Ethernet address somebody has set is Permanent, beside the picture: it is never asked,
//! never gives way, and no message changes it. When it is no longer set it is unknown.
//!
//! Who fills the table does not keep others out: one that is to be looked for takes the place of another, in
//! the [`Order`] of how little would be lost, at the port that has most (as the kernel's forced collection
//! behind `gc_thresh3`, but port by port). Routers that routes name stay.
//!
//! Time and packets are arguments, and what is to be done comes out as [`Action`]s; nothing here reads a
//! clock or sends.

use packet::PortNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// An Ethernet address.
pub type Mac = [u8; 6];

const SECOND: u64 = 1_000_000_000;
/// Between two questions (RFC 4861, 10: RETRANS_TIMER).
const ASK_AGAIN: u64 = SECOND;
/// How often is asked before a neighbour counts as gone (MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT).
const ASKED: u8 = 3;
/// How long an answer is believed, on average (REACHABLE_TIME).
const BELIEVED: u64 = 30 * SECOND;
/// How long a neighbour that has been silent stays so before it is in use again, as it were.
const SILENT: u64 = 25 * SECOND;
/// From being in use to the first question (DELAY_FIRST_PROBE_TIME).
const DELAY: u64 = 5 * SECOND;

/// How long a neighbour that is looked for keeps its place at least; most answer sooner. It bounds how often
/// all on a link are asked.
const ASKED_FOR: u64 = SECOND / 50;
/// How long one that answered does (as the kernel's forced collection has it).
const ANSWERED: u64 = 5 * SECOND;

/// How much may be known and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Neighbours.
    pub(crate) neighbours: usize,
    /// Of these, such as nothing is known of yet, at one port: whoever asks for all addresses of a network
    /// must not displace those that are there.
    pub(crate) incomplete: usize,
    /// Of these, permanent ones.
    pub(crate) permanent: usize,
    /// Packets that wait for one neighbour.
    pub(crate) queue: usize,
    /// Packets that wait for neighbours at one port.
    pub(crate) waiting: usize,
}

impl Limits {
    /// For a program with room for so many next hops, and so many ports.
    pub(crate) fn new(hops: usize, ports: usize) -> Limits {
        let ports = ports.max(1);
        let neighbours = hops.min(4096);
        Limits {
            neighbours,
            incomplete: (512 / ports).max(1),
            permanent: neighbours / 2,
            queue: 8,
            waiting: (1024 / ports).max(1),
        }
    }
}

/// Who gives way to others, the first first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// It was heard of and never answered: it may be made up.
    Unconfirmed,
    /// Nothing is known of it.
    Incomplete,
    /// It has been silent for a while.
    Silent,
    /// It answered lately.
    Answered,
}

/// An address on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Neighbour {
    /// The port that the link is at.
    pub(crate) port: PortNumber,
    /// The address.
    pub(crate) address: IpAddr,
}

/// How much is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourState {
    /// It was asked and has not answered.
    Incomplete,
    /// It answered lately.
    Reachable,
    /// It has been silent for a while, or was only heard of.
    Stale,
    /// It will be asked unless it is heard of in the next seconds.
    Delay,
    /// It is being asked whether it is still there.
    Probe,
    /// Somebody has set its address.
    Permanent,
}

/// Every kind, in this order.
const ALL: [Order; 4] = [Order::Unconfirmed, Order::Incomplete, Order::Silent, Order::Answered];

/// How a neighbour was heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It asked for us (an ARP request for an own address, a neighbour solicitation).
    Question,
    /// It said its address without asking (a gratuitous ARP, RFC 826's merging): only what is known already
    /// changes.
    Announcement,
    /// It answered.
    Answer {
        /// We had asked.
        solicited: bool,
        /// What is known gives way.
        replaces: bool,
    },
}

/// What is to be done. `P` is a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action<P> {
    /// Ask who has the address: all on the link, or only the one that had it.
    Ask(Neighbour, Option<Mac>),
    /// From now on packets for it go to this address.
    Known(Neighbour, Mac),
    /// From now on it is not known.
    Gone(Neighbour),
    /// Send a packet that waited.
    Send(Neighbour, Mac, P),
    /// Say that it could not be reached.
    Unreachable(Neighbour, P),
    /// A packet found no room.
    QueueFull(P),
    /// A packet is for one neighbour too many, or for one that gave way to another.
    TableFull(P),
}

#[derive(Clone)]
struct Entry<P> {
    state: NeighbourState,
    mac: Option<Mac>,
    /// It answered a question of ours with this address.
    confirmed: bool,
    asked: u8,
    /// When something is to happen, and the same in `Neighbours::due`.
    due: u64,
    /// When it came into its state, or last confirmed it.
    since: u64,
    queue: VecDeque<P>,
}

/// All neighbours of a gateway.
#[derive(Clone)]
pub(crate) struct Neighbours<P> {
    limits: Limits,
    entries: HashMap<Neighbour, Entry<P>>,
    due: BTreeSet<(u64, Neighbour)>,
    /// Who gives way, by port; the same as follows from `entries` and `named`.
    order: BTreeSet<(PortNumber, Order, u64, Neighbour)>,
    ports: BTreeMap<PortNumber, AtPort>,
    /// Routers that routes lead to.
    named: HashSet<Neighbour>,
    displaced: u64,
    random: u64,
}

/// How much there is at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AtPort {
    neighbours: usize,
    incomplete: usize,
    waiting: usize,
}

/// A neighbour, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which.
    pub(crate) neighbour: Neighbour,
    /// How much is known of it.
    pub(crate) state: NeighbourState,
    /// Its Ethernet address.
    pub(crate) mac: Option<Mac>,
    /// When it came into its state, or last confirmed it.
    pub(crate) since: u64,
    /// How many packets wait for it.
    pub(crate) queued: usize,
}

impl<P> Neighbours<P> {
    /// Nobody is known.
    pub(crate) fn new(limits: Limits) -> Neighbours<P> {
        Neighbours {
            limits,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            order: BTreeSet::new(),
            ports: BTreeMap::new(),
            named: HashSet::new(),
            displaced: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Knows what others knew, within its own limits and with its own names.
    pub(crate) fn succeed(&mut self, old: &Neighbours<P>)
    where
        P: Clone,
    {
        let (limits, named) = (self.limits, std::mem::take(&mut self.named));
        *self = Neighbours { limits, named, order: BTreeSet::new(), ..old.clone() };
        let all: Vec<Neighbour> = self.entries.keys().copied().collect();
        self.order = all.into_iter().filter_map(|neighbour| self.place(neighbour)).collect();
    }

    /// A route leads to this router, or none does any more.
    pub(crate) fn name(&mut self, neighbour: Neighbour, named: bool) {
        self.change(neighbour, |known| {
            if named {
                known.named.insert(neighbour)
            } else {
                known.named.remove(&neighbour)
            };
        });
    }

    /// A packet is for a neighbour. A router is looked for even while too many others are at its port:
    /// whoever asks for all addresses of a network must not keep routers from being found.
    pub(crate) fn packet(&mut self, neighbour: Neighbour, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        let Some(entry) = self.entries.get_mut(&neighbour) else {
            let (port, named) = (neighbour.port, self.named.contains(&neighbour));
            let many = !named && self.at(port).incomplete >= self.limits.incomplete;
            let full = self.entries.len() >= self.limits.neighbours;
            let waits = |known: &Neighbours<P>| !named && known.at(port).waiting >= known.limits.waiting;
            // Nobody gives way for a packet that is refused then; one that is looked for leaves room for it.
            if !many && waits(self) {
                return actions.push(Action::QueueFull(packet));
            }
            let room = (!many || self.displace(port, &[Order::Incomplete], now, actions))
                && (!full || many || self.displace(self.fullest(port), &ALL, now, actions));
            if !room {
                return actions.push(Action::TableFull(packet));
            }
            if waits(self) {
                return actions.push(Action::QueueFull(packet));
            }
            self.add(neighbour, NeighbourState::Incomplete, None, now);
            actions.push(Action::Ask(neighbour, None));
            return self.queue(neighbour, packet, actions);
        };
        match entry.mac {
            Some(mac) => {
                if entry.state == NeighbourState::Stale {
                    self.enter(neighbour, NeighbourState::Delay, now);
                }
                actions.push(Action::Send(neighbour, mac, packet));
            }
            None => self.queue(neighbour, packet, actions),
        }
    }

    /// Asks for a neighbour of which nothing is known, without a packet for it.
    pub(crate) fn look_for(&mut self, neighbour: Neighbour, now: u64, actions: &mut Vec<Action<P>>) {
        let full = self.entries.len() >= self.limits.neighbours;
        let there = self.has(neighbour);
        if there || (full && !self.displace(self.fullest(neighbour.port), &ALL, now, actions)) {
            return;
        }
        self.add(neighbour, NeighbourState::Incomplete, None, now);
        actions.push(Action::Ask(neighbour, None));
    }

    /// A neighbour was heard of with this Ethernet address (RFC 4861, 7.2.3, 7.2.5 and appendix C).
    pub(crate) fn heard(
        &mut self,
        neighbour: Neighbour,
        mac: Mac,
        how: Heard,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let Some(entry) = self.entries.get(&neighbour) else {
            let full = self.entries.len() >= self.limits.neighbours;
            let port = self.fullest(neighbour.port);
            if how == Heard::Question && (!full || self.displace(port, &[Order::Unconfirmed], now, actions)) {
                self.add(neighbour, NeighbourState::Stale, Some(mac), now);
                actions.push(Action::Known(neighbour, mac));
            }
            return;
        };
        let (state, same) = (entry.state, entry.mac == Some(mac));
        if state == NeighbourState::Permanent {
            return;
        }
        let next = match how {
            _ if state == NeighbourState::Incomplete => match how {
                Heard::Answer { solicited: true, .. } => Some(NeighbourState::Reachable),
                _ => Some(NeighbourState::Stale),
            },
            Heard::Answer { solicited: true, replaces } if same || replaces => {
                Some(NeighbourState::Reachable)
            }
            Heard::Answer { replaces: false, .. } if !same => {
                // Somebody else answers, too: what is known stays, but is to be asked for.
                if state == NeighbourState::Reachable {
                    self.enter(neighbour, NeighbourState::Stale, now);
                }
                return;
            }
            _ if same => None,
            _ => Some(NeighbourState::Stale),
        };
        if let Some(next) = next {
            self.found(neighbour, mac, next, now, actions);
        }
    }

    /// Its Ethernet address is known: what waits for it is sent.
    fn found(
        &mut self,
        neighbour: Neighbour,
        mac: Mac,
        next: NeighbourState,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let same = self.mac(neighbour) == Some(mac);
        self.change(neighbour, |known| {
            if let Some(entry) = known.entries.get_mut(&neighbour) {
                entry.mac = Some(mac);
                entry.confirmed = next == NeighbourState::Reachable || (entry.confirmed && same);
            }
        });
        if !same {
            actions.push(Action::Known(neighbour, mac));
        }
        self.enter(neighbour, next, now);
        let mut queue = VecDeque::new();
        self.change(neighbour, |known| {
            if let Some(entry) = known.entries.get_mut(&neighbour) {
                queue = std::mem::take(&mut entry.queue);
            }
        });
        actions.extend(queue.into_iter().map(|packet| Action::Send(neighbour, mac, packet)));
    }

    /// These are the permanent neighbours, the first of them up to the limit. Where all other places are
    /// taken, one that is not named gives way, however young.
    pub(crate) fn permanent(
        &mut self,
        wanted: &BTreeMap<Neighbour, Mac>,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let wanted: BTreeMap<Neighbour, Mac> =
            wanted.iter().take(self.limits.permanent).map(|(neighbour, mac)| (*neighbour, *mac)).collect();
        self.forget_where(
            |known, state| state == NeighbourState::Permanent && !wanted.contains_key(known),
            actions,
        );
        for (neighbour, mac) in wanted {
            match self.entries.get(&neighbour) {
                Some(entry) if entry.state == NeighbourState::Permanent && entry.mac == Some(mac) => {}
                Some(_) => self.found(neighbour, mac, NeighbourState::Permanent, now, actions),
                None => {
                    let full = self.entries.len() >= self.limits.neighbours;
                    if !full || self.displace(self.fullest(neighbour.port), &ALL, u64::MAX, actions) {
                        self.add(neighbour, NeighbourState::Permanent, Some(mac), now);
                        actions.push(Action::Known(neighbour, mac));
                    }
                }
            }
        }
    }

    /// How many permanent neighbours there may be.
    pub(crate) fn most_permanent(&self) -> usize {
        self.limits.permanent
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: u64, actions: &mut Vec<Action<P>>) {
        while let Some(&(due, neighbour)) = self.due.first().filter(|(due, _)| *due <= now) {
            let Some(entry) = self.entries.get_mut(&neighbour) else {
                self.due.remove(&(due, neighbour));
                continue;
            };
            match entry.state {
                NeighbourState::Reachable => self.enter(neighbour, NeighbourState::Stale, now),
                NeighbourState::Stale => self.enter(neighbour, NeighbourState::Delay, now),
                NeighbourState::Delay => {
                    let mac = entry.mac;
                    self.enter(neighbour, NeighbourState::Probe, now);
                    actions.push(Action::Ask(neighbour, mac));
                }
                NeighbourState::Incomplete | NeighbourState::Probe if entry.asked < ASKED => {
                    entry.asked += 1;
                    actions.push(Action::Ask(neighbour, entry.mac));
                    self.schedule(neighbour, now + ASK_AGAIN);
                }
                NeighbourState::Incomplete | NeighbourState::Probe => self.forget(neighbour, actions),
                NeighbourState::Permanent => {
                    self.due.remove(&(due, neighbour));
                }
            }
        }
    }

    /// When [`advance`](Neighbours::advance) is to be called next.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Forgets a neighbour; what waits for it cannot reach it.
    pub(crate) fn forget(&mut self, neighbour: Neighbour, actions: &mut Vec<Action<P>>) {
        let packets = self.remove(neighbour, actions);
        actions.extend(packets.into_iter().map(|packet| Action::Unreachable(neighbour, packet)));
    }

    /// Forgets every neighbour that this says of.
    pub(crate) fn forget_where(
        &mut self,
        gone: impl Fn(&Neighbour, NeighbourState) -> bool,
        actions: &mut Vec<Action<P>>,
    ) {
        let goes = self.entries.iter().filter(|(known, entry)| gone(known, entry.state));
        let mut all: Vec<Neighbour> = goes.map(|(known, _)| *known).collect();
        all.sort_unstable();
        all.into_iter().for_each(|neighbour| self.forget(neighbour, actions));
    }

    /// The Ethernet address of a neighbour.
    pub(crate) fn mac(&self, neighbour: Neighbour) -> Option<Mac> {
        self.entries.get(&neighbour).and_then(|entry| entry.mac)
    }

    /// How many packets wait.
    pub(crate) fn waiting(&self) -> usize {
        self.ports.values().map(|at| at.waiting).sum()
    }

    /// How many neighbours gave way to others.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Whether it is there, or looked for.
    pub(crate) fn has(&self, neighbour: Neighbour) -> bool {
        self.entries.contains_key(&neighbour)
    }

    /// Whether we are asking it.
    pub(crate) fn is_asked(&self, neighbour: Neighbour) -> bool {
        let state = self.entries.get(&neighbour).map(|entry| entry.state);
        matches!(state, Some(NeighbourState::Incomplete | NeighbourState::Probe))
    }

    /// Every neighbour, in the order of ports and addresses.
    pub(crate) fn all(&self) -> Vec<Seen> {
        let seen = |(&neighbour, entry): (&Neighbour, &Entry<P>)| Seen {
            neighbour,
            state: entry.state,
            mac: entry.mac,
            since: entry.since,
            queued: entry.queue.len(),
        };
        let mut all: Vec<Seen> = self.entries.iter().map(seen).collect();
        all.sort_unstable_by_key(|seen| seen.neighbour);
        all
    }

    fn add(&mut self, neighbour: Neighbour, state: NeighbourState, mac: Option<Mac>, now: u64) {
        let queue = VecDeque::new();
        let entry = Entry { state, mac, confirmed: false, asked: 0, due: now, since: now, queue };
        self.change(neighbour, |known| {
            known.entries.insert(neighbour, entry);
        });
        self.enter(neighbour, state, now);
    }

    /// Takes one out, and returns what waited for it.
    fn remove(&mut self, neighbour: Neighbour, actions: &mut Vec<Action<P>>) -> VecDeque<P> {
        let mut removed = None;
        self.change(neighbour, |known| removed = known.entries.remove(&neighbour));
        let Some(entry) = removed else { return VecDeque::new() };
        self.due.remove(&(entry.due, neighbour));
        if entry.mac.is_some() {
            actions.push(Action::Gone(neighbour));
        }
        entry.queue
    }

    /// The first at a port that gives way, of these kinds and not too young for that, goes. Says whether one
    /// did.
    fn displace(
        &mut self,
        port: PortNumber,
        kinds: &[Order],
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> bool {
        const FIRST: Neighbour = Neighbour { port: 0, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        let oldest = |kind: &Order| {
            let (_, _, since, neighbour) = self.order.range((port, *kind, 0, FIRST)..).next()?;
            let found = self.place(*neighbour).is_some_and(|(at, order, ..)| (at, order) == (port, *kind));
            let keeps = match kind {
                Order::Unconfirmed | Order::Silent => 0,
                Order::Incomplete => ASKED_FOR,
                Order::Answered => ANSWERED,
            };
            (found && since + keeps <= now).then_some(*neighbour)
        };
        let Some(neighbour) = kinds.iter().find_map(oldest) else { return false };
        self.displaced += 1;
        let packets = self.remove(neighbour, actions);
        actions.extend(packets.into_iter().map(Action::TableFull));
        true
    }

    /// The port that has most neighbours; this one if no other has more.
    fn fullest(&self, port: PortNumber) -> PortNumber {
        let most = self.ports.iter().max_by_key(|(of, at)| (at.neighbours, **of == port));
        most.map_or(port, |(port, _)| *port)
    }

    fn at(&self, port: PortNumber) -> AtPort {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// A neighbour's place among those that give way.
    fn place(&self, neighbour: Neighbour) -> Option<(PortNumber, Order, u64, Neighbour)> {
        let entry = self.entries.get(&neighbour).filter(|_| !self.named.contains(&neighbour))?;
        let order = match (entry.mac, entry.confirmed, entry.state) {
            (.., NeighbourState::Permanent) => return None,
            (None, ..) => Order::Incomplete,
            (_, false, _) => Order::Unconfirmed,
            (_, _, NeighbourState::Reachable) => Order::Answered,
            _ => Order::Silent,
        };
        Some((neighbour.port, order, entry.since, neighbour))
    }

    /// Changes what is known of a neighbour, and what is counted and ordered with it.
    fn change(&mut self, neighbour: Neighbour, change: impl FnOnce(&mut Neighbours<P>)) {
        if let Some(place) = self.place(neighbour) {
            self.order.remove(&place);
        }
        let before = self.counted(neighbour);
        change(self);
        let now = self.counted(neighbour);
        let at = self.ports.entry(neighbour.port).or_default();
        at.neighbours = at.neighbours + now.neighbours - before.neighbours;
        at.incomplete = at.incomplete + now.incomplete - before.incomplete;
        at.waiting = at.waiting + now.waiting - before.waiting;
        self.order.extend(self.place(neighbour));
    }

    /// What one neighbour counts for.
    fn counted(&self, neighbour: Neighbour) -> AtPort {
        self.entries.get(&neighbour).map_or(AtPort::default(), |entry| AtPort {
            neighbours: 1,
            incomplete: usize::from(entry.mac.is_none()),
            waiting: entry.queue.len(),
        })
    }

    fn enter(&mut self, neighbour: Neighbour, state: NeighbourState, now: u64) {
        // Times of neighbours that were learned together part (RFC 4861, 6.3.2: from half to one and a half).
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = self.random >> 33 & 1023;
        self.change(neighbour, |known| {
            let Some(entry) = known.entries.get_mut(&neighbour) else { return };
            (entry.since, entry.state) = (now, state);
            entry.asked = u8::from(matches!(state, NeighbourState::Incomplete | NeighbourState::Probe));
        });
        let time = match state {
            NeighbourState::Incomplete | NeighbourState::Probe => ASK_AGAIN,
            NeighbourState::Reachable => BELIEVED / 2 + BELIEVED * part / 1024,
            NeighbourState::Stale => SILENT,
            NeighbourState::Delay => DELAY,
            NeighbourState::Permanent => return self.unschedule(neighbour),
        };
        self.schedule(neighbour, now + time);
    }

    fn schedule(&mut self, neighbour: Neighbour, due: u64) {
        let Some(entry) = self.entries.get_mut(&neighbour) else { return };
        self.due.remove(&(entry.due, neighbour));
        entry.due = due;
        self.due.insert((due, neighbour));
    }

    /// Nothing is to be done for it at any time.
    fn unschedule(&mut self, neighbour: Neighbour) {
        if let Some(entry) = self.entries.get(&neighbour) {
            self.due.remove(&(entry.due, neighbour));
        }
    }

    /// The newest packets wait (RFC 4861, 7.2.2).
    fn queue(&mut self, neighbour: Neighbour, packet: P, actions: &mut Vec<Action<P>>) {
        let (limits, waiting) = (self.limits, self.at(neighbour.port).waiting);
        self.change(neighbour, |known| {
            let Some(entry) = known.entries.get_mut(&neighbour) else { return };
            if entry.queue.len() >= limits.queue || waiting >= limits.waiting {
                let Some(oldest) = entry.queue.pop_front() else {
                    return actions.push(Action::QueueFull(packet));
                };
                actions.push(Action::QueueFull(oldest));
            }
            entry.queue.push_back(packet);
        });
    }
}

#[cfg(test)]
mod tests;
