//! What is known of neighbours: which Ethernet address an IP address of a link has, and whether anybody still answers by it.
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
//! The states are those of RFC 4861 (7.3), for ARP (RFC 826) too. One thing differs: packets go by in the program, where nobody sees which neighbour they
//! go to; so each counts as being used, and one that has been silent is asked again about once a minute (RFC 1122, 2.3.2.1, the second way). From
//! Stale to Probe the address that is known is used.
//!
//! Time and packets are arguments, and what is to be done comes out as [`Action`]s; nothing here reads a clock or sends.

use packet::PortNumber;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

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

/// How much may be known and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Neighbours.
    pub(crate) neighbours: usize,
    /// Of these, such as nothing is known of yet: whoever asks for all addresses of a network must not displace those that are there.
    pub(crate) incomplete: usize,
    /// Packets that wait for one neighbour.
    pub(crate) queue: usize,
    /// Packets that wait.
    pub(crate) waiting: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { neighbours: 4096, incomplete: 512, queue: 8, waiting: 1024 }
    }
}

/// An address on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Neighbour {
    /// The port that the link is at.
    pub(crate) port: PortNumber,
    /// The address.
    pub(crate) address: IpAddr,
}

/// How much is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
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
}

/// How a neighbour was heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It asked for us (an ARP request for an own address, a neighbour solicitation).
    Question,
    /// It said its address without asking (a gratuitous ARP, RFC 826's merging): only what is known already changes.
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
    /// A packet is for one neighbour too many.
    TableFull(P),
}

#[derive(Clone)]
struct Entry<P> {
    state: State,
    mac: Option<Mac>,
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
    incomplete: usize,
    waiting: usize,
    random: u64,
}

/// A neighbour, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which.
    pub(crate) neighbour: Neighbour,
    /// How much is known of it.
    pub(crate) state: State,
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
        let (entries, due) = (HashMap::new(), BTreeSet::new());
        Neighbours { limits, entries, due, incomplete: 0, waiting: 0, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// A packet is for a neighbour. One that a route has `named` is looked for even while too many others are: whoever asks for all addresses of a
    /// network must not keep routers from being found.
    pub(crate) fn packet(
        &mut self,
        neighbour: Neighbour,
        named: bool,
        packet: P,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        let Some(entry) = self.entries.get_mut(&neighbour) else {
            let scarce = !named && self.incomplete >= self.limits.incomplete;
            if self.entries.len() >= self.limits.neighbours || scarce {
                return actions.push(Action::TableFull(packet));
            }
            if !named && self.waiting >= self.limits.waiting {
                return actions.push(Action::QueueFull(packet));
            }
            self.add(neighbour, State::Incomplete, None, now);
            actions.push(Action::Ask(neighbour, None));
            return self.queue(neighbour, packet, actions);
        };
        match entry.mac {
            Some(mac) => {
                if entry.state == State::Stale {
                    self.enter(neighbour, State::Delay, now);
                }
                actions.push(Action::Send(neighbour, mac, packet));
            }
            None => self.queue(neighbour, packet, actions),
        }
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
            if how == Heard::Question && self.entries.len() < self.limits.neighbours {
                self.add(neighbour, State::Stale, Some(mac), now);
                actions.push(Action::Known(neighbour, mac));
            }
            return;
        };
        let (state, same) = (entry.state, entry.mac == Some(mac));
        let next = match how {
            _ if state == State::Incomplete => match how {
                Heard::Answer { solicited: true, .. } => Some(State::Reachable),
                _ => Some(State::Stale),
            },
            Heard::Answer { solicited: true, replaces } if same || replaces => Some(State::Reachable),
            Heard::Answer { replaces: false, .. } if !same => {
                // Somebody else answers, too: what is known stays, but is to be asked for.
                if state == State::Reachable {
                    self.enter(neighbour, State::Stale, now);
                }
                return;
            }
            _ if same => None,
            _ => Some(State::Stale),
        };
        let Some(next) = next else { return };
        if let Some(entry) = self.entries.get_mut(&neighbour) {
            entry.mac = Some(mac);
        }
        if state == State::Incomplete {
            self.incomplete -= 1;
        }
        if !same {
            actions.push(Action::Known(neighbour, mac));
        }
        self.enter(neighbour, next, now);
        if let Some(entry) = self.entries.get_mut(&neighbour) {
            self.waiting -= entry.queue.len();
            actions.extend(entry.queue.drain(..).map(|packet| Action::Send(neighbour, mac, packet)));
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: u64, actions: &mut Vec<Action<P>>) {
        while let Some(&(due, neighbour)) = self.due.first().filter(|(due, _)| *due <= now) {
            let Some(entry) = self.entries.get_mut(&neighbour) else {
                self.due.remove(&(due, neighbour));
                continue;
            };
            match entry.state {
                State::Reachable => self.enter(neighbour, State::Stale, now),
                State::Stale => self.enter(neighbour, State::Delay, now),
                State::Delay => {
                    let mac = entry.mac;
                    self.enter(neighbour, State::Probe, now);
                    actions.push(Action::Ask(neighbour, mac));
                }
                State::Incomplete | State::Probe if entry.asked < ASKED => {
                    entry.asked += 1;
                    actions.push(Action::Ask(neighbour, entry.mac));
                    self.schedule(neighbour, now + ASK_AGAIN);
                }
                State::Incomplete | State::Probe => self.forget(neighbour, actions),
            }
        }
    }

    /// When [`advance`](Neighbours::advance) is to be called next.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Forgets a neighbour; what waits for it cannot reach it.
    pub(crate) fn forget(&mut self, neighbour: Neighbour, actions: &mut Vec<Action<P>>) {
        let Some(entry) = self.entries.remove(&neighbour) else { return };
        self.due.remove(&(entry.due, neighbour));
        self.waiting -= entry.queue.len();
        match entry.mac {
            Some(_) => actions.push(Action::Gone(neighbour)),
            None => self.incomplete -= 1,
        }
        actions.extend(entry.queue.into_iter().map(|packet| Action::Unreachable(neighbour, packet)));
    }

    /// Forgets every neighbour that this says of.
    pub(crate) fn forget_where(&mut self, gone: impl Fn(&Neighbour) -> bool, actions: &mut Vec<Action<P>>) {
        let mut all: Vec<Neighbour> = self.entries.keys().copied().filter(|known| gone(known)).collect();
        all.sort_unstable();
        all.into_iter().for_each(|neighbour| self.forget(neighbour, actions));
    }

    /// The Ethernet address of a neighbour.
    pub(crate) fn mac(&self, neighbour: Neighbour) -> Option<Mac> {
        self.entries.get(&neighbour).and_then(|entry| entry.mac)
    }

    /// How many packets wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether it is there, or looked for.
    pub(crate) fn has(&self, neighbour: Neighbour) -> bool {
        self.entries.contains_key(&neighbour)
    }

    /// Whether we are asking it.
    pub(crate) fn is_asked(&self, neighbour: Neighbour) -> bool {
        let state = self.entries.get(&neighbour).map(|entry| entry.state);
        matches!(state, Some(State::Incomplete | State::Probe))
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

    fn add(&mut self, neighbour: Neighbour, state: State, mac: Option<Mac>, now: u64) {
        self.incomplete += usize::from(mac.is_none());
        let entry = Entry { state, mac, asked: 0, due: now, since: now, queue: VecDeque::new() };
        self.entries.insert(neighbour, entry);
        self.enter(neighbour, state, now);
    }

    fn enter(&mut self, neighbour: Neighbour, state: State, now: u64) {
        // Times of neighbours that were learned together part (RFC 4861, 6.3.2: from half to one and a half).
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = self.random >> 33 & 1023;
        let Some(entry) = self.entries.get_mut(&neighbour) else { return };
        entry.since = now;
        entry.state = state;
        entry.asked = u8::from(matches!(state, State::Incomplete | State::Probe));
        let time = match state {
            State::Incomplete | State::Probe => ASK_AGAIN,
            State::Reachable => BELIEVED / 2 + BELIEVED * part / 1024,
            State::Stale => SILENT,
            State::Delay => DELAY,
        };
        self.schedule(neighbour, now + time);
    }

    fn schedule(&mut self, neighbour: Neighbour, due: u64) {
        let Some(entry) = self.entries.get_mut(&neighbour) else { return };
        self.due.remove(&(entry.due, neighbour));
        entry.due = due;
        self.due.insert((due, neighbour));
    }

    /// The newest packets wait (RFC 4861, 7.2.2).
    fn queue(&mut self, neighbour: Neighbour, packet: P, actions: &mut Vec<Action<P>>) {
        let Some(entry) = self.entries.get_mut(&neighbour) else { return };
        if entry.queue.len() >= self.limits.queue || self.waiting >= self.limits.waiting {
            let Some(oldest) = entry.queue.pop_front() else {
                return actions.push(Action::QueueFull(packet));
            };
            self.waiting -= 1;
            actions.push(Action::QueueFull(oldest));
        }
        entry.queue.push_back(packet);
        self.waiting += 1;
    }
}

#[cfg(test)]
mod tests;
