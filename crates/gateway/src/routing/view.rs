//! Routes and neighbours in the form in which the control protocol shows them.

use super::account::AccountView;
use super::follower::Follower;
use super::neighbours::{Neighbour, NeighbourState};
use super::paths::Several;
use super::prefix::IpPrefix;
use super::rib::{Source, Way};
use super::router::Router;
use super::rtnetlink::Condition;
use packet::PortNumber;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many routes are shown at most.
const SHOWN: usize = 10_000;

/// The routes of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct RoutesView {
    /// How many there are.
    pub count: usize,
    /// How often the kernel told more than found room, so that all of it was asked for again.
    pub kernel_overruns: u64,
    /// How many changes of entries are on their way to the program's tables. While there are some,
    /// `installed` tells how it will be.
    pub changes_on_their_way: usize,
    /// How many routes of the kernel say what the gateway cannot do.
    pub unmeant_count: usize,
    /// The first hundred of them, with why.
    pub unmeant: Vec<UnmeantView>,
    /// The first ten thousand, by prefix.
    pub routes: Vec<RouteView>,
}

/// A route of the kernel that is not followed.
#[derive(Clone, Debug, Serialize)]
pub struct UnmeantView {
    /// Whom it is for.
    pub to: String,
    /// What becomes of packets to there: `unreachable`, or `other routes` where it is for some of them alone.
    pub instead: &'static str,
    /// What the gateway cannot do.
    pub because: String,
}

/// A route.
#[derive(Clone, Debug, Serialize)]
pub struct RouteView {
    /// Whom it is for.
    pub to: String,
    /// Where it comes from.
    pub source: Source,
    /// It counts; otherwise another does whose source goes before, or its link is down.
    pub used: bool,
    /// The program routes by it, once no change is on its way to it any more. Otherwise its table of routes
    /// is full and the route has no effect, or there is no room for its next hop and control sends its
    /// packets.
    pub installed: bool,
    /// Where it leads, in words: `itself`, `link`, `via`, `several`, `broadcast`, `blackhole`, `unreachable`,
    /// `prohibited`, `machine` (an address of the machine itself), `unmeant` (it says what the gateway cannot
    /// do).
    pub way: &'static str,
    /// The router that it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The port that it leaves by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortNumber>,
    /// The port's interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The routers among which it distributes flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopView>,
}

/// One of several routers that a route leads to.
#[derive(Clone, Debug, Serialize)]
pub struct HopView {
    /// Its address.
    pub via: String,
    /// The port that it is at.
    pub port: PortNumber,
    /// The port's interface.
    pub interface: String,
    /// It is known, and has its share of the flows.
    pub used: bool,
}

/// How many of those are shown that are not followed.
const UNMEANT_SHOWN: usize = 100;

/// The routes that are shown, as they are.
pub(super) struct RoutesShown {
    count: usize,
    overruns: u64,
    changes_on_their_way: usize,
    unmeant_count: usize,
    unmeant: Vec<UnmeantView>,
    routes: Vec<(IpPrefix, Source, Way, bool, bool)>,
    interfaces: Vec<String>,
    groups: BTreeMap<Several, Vec<(Neighbour, bool)>>,
}

impl RoutesShown {
    /// The same for people.
    pub(super) fn view(self) -> RoutesView {
        let RoutesShown { count, overruns, unmeant_count, unmeant, routes, interfaces, groups, .. } = self;
        let changes_on_their_way = self.changes_on_their_way;
        let named =
            |port: PortNumber| interfaces.get(usize::from(port).wrapping_sub(1)).cloned().unwrap_or_default();
        let routes = routes.into_iter().map(|(prefix, source, way, used, installed)| {
            let (name, via, port) = match way {
                Way::Itself => ("itself", None, None),
                Way::Broadcast(port) => ("broadcast", None, Some(port)),
                Way::Link(port) => ("link", None, Some(port)),
                Way::Via(neighbour) => ("via", Some(neighbour.address.to_string()), Some(neighbour.port)),
                Way::Several(_) => ("several", None, None),
                Way::Blackhole => ("blackhole", None, None),
                Way::Unreachable => ("unreachable", None, None),
                Way::Prohibited => ("prohibited", None, None),
                Way::Machine => ("machine", None, None),
                Way::Unmeant(_) => ("unmeant", None, None),
            };
            let interface = port.map(named);
            let group = if let Way::Several(several) = way { groups.get(&several) } else { None };
            let hop = |(neighbour, used): &(Neighbour, bool)| HopView {
                via: neighbour.address.to_string(),
                port: neighbour.port,
                interface: named(neighbour.port),
                used: *used,
            };
            let hops = group.into_iter().flatten().map(hop).collect();
            RouteView {
                to: prefix.to_string(),
                source,
                used,
                installed,
                way: name,
                via,
                port,
                interface,
                hops,
            }
        });
        let routes = routes.collect();
        RoutesView { count, kernel_overruns: overruns, changes_on_their_way, unmeant_count, unmeant, routes }
    }
}

/// The neighbours of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct NeighboursView {
    /// By port and address.
    pub neighbours: Vec<NeighbourView>,
    /// What became of the packets that the program handed over.
    pub account: AccountView,
}

/// A neighbour.
#[derive(Clone, Debug, Serialize)]
pub struct NeighbourView {
    /// The port that it is at.
    pub port: PortNumber,
    /// The port's interface.
    pub interface: String,
    /// Its address.
    pub address: String,
    /// How much is known of it.
    pub state: NeighbourState,
    /// Its Ethernet address.
    pub mac: Option<String>,
    /// Seconds since it came into its state or last confirmed it.
    pub seconds: f64,
    /// How many packets wait for it.
    pub queued: usize,
}

impl Router {
    /// The routes that are shown: no more is done here than must be while nothing else happens.
    pub(super) fn routes_shown(&self, follower: &Follower, changes_on_their_way: usize) -> RoutesShown {
        let shown = self.rib.all().take(SHOWN);
        let shown = shown
            .map(|(prefix, source, way, used)| (prefix, source, way, used, used && self.installed(prefix)));
        RoutesShown {
            count: self.rib.count(),
            overruns: follower.overruns(),
            changes_on_their_way,
            unmeant_count: self.unmeant_count(follower),
            unmeant: self.unmeant(follower).take(UNMEANT_SHOWN).collect(),
            routes: shown.collect(),
            groups: self.groups_shown(),
            interfaces: self.ports.iter().map(|port| port.settings.interface.clone()).collect(),
        }
    }

    /// How many routes of the kernel are not followed.
    pub(super) fn unmeant_count(&self, follower: &Follower) -> usize {
        self.rib.unmeant().len() + follower.conditional().count()
    }

    /// Routes of the kernel that are not followed.
    fn unmeant<'a>(&'a self, follower: &'a Follower) -> impl Iterator<Item = UnmeantView> + 'a {
        let blocked = self.rib.unmeant().iter().filter_map(|prefix| {
            let because = self.rib.why_unmeant(*prefix)?.to_string();
            Some(UnmeantView { to: prefix.to_string(), instead: "unreachable", because })
        });
        let parted = follower.conditional().map(|(prefix, condition)| UnmeantView {
            to: prefix.to_string(),
            instead: "other routes",
            because: match condition {
                Condition::Tos(tos) => format!("it is for packets of type of service 0x{tos:02x} alone"),
                Condition::From(source) => format!("it is for packets from {source} alone"),
            },
        });
        blocked.chain(parted)
    }

    /// What is said about routes of the kernel that are not followed.
    pub(super) fn remark(&self, follower: &Follower) -> Option<String> {
        let UnmeantView { to, because, .. } = self.unmeant(follower).next()?;
        let routes = self.unmeant_count(follower);
        Some(format!(
            "routes of the kernel that are not followed: {routes}, such as {to}: {because}; `ravelin show routes` tells all"
        ))
    }

    /// The neighbours, for people.
    pub(super) fn neighbours_picture(&self, now: u64) -> NeighboursView {
        let told = self.neighbours.all().into_iter().map(|seen| NeighbourView {
            port: seen.neighbour.port,
            interface: self.interface_name(seen.neighbour.port),
            address: seen.neighbour.address.to_string(),
            state: seen.state,
            mac: seen.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":")),
            seconds: now.saturating_sub(seen.since) as f64 / 1e9,
            queued: seen.queued,
        });
        let account = self.account.view(self.waiting(), self.neighbours.displaced());
        NeighboursView { neighbours: told.collect(), account }
    }

    fn interface_name(&self, port: PortNumber) -> String {
        self.port(port).map(|port| port.settings.interface.clone()).unwrap_or_default()
    }
}
