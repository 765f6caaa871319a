//! Routes and neighbours as they are shown.

use super::account::AccountPicture;
use super::neighbours::State;
use super::prefix::Prefix;
use super::rib::{Source, Way};
use super::router::Router;
use packet::PortNumber;
use serde::Serialize;

/// How many routes are shown at most.
const SHOWN: usize = 10_000;

/// The routes of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct RoutesPicture {
    /// How many there are.
    pub count: usize,
    /// How often the kernel told more than found room, so that all of it was asked for again.
    pub kernel_overruns: u64,
    /// The first ten thousand, by prefix.
    pub routes: Vec<RoutePicture>,
}

/// A route.
#[derive(Clone, Debug, Serialize)]
pub struct RoutePicture {
    /// Whom it is for.
    pub to: String,
    /// Where it comes from.
    pub source: Source,
    /// It counts; otherwise another does whose source goes before, or its link is down.
    pub used: bool,
    /// The program routes by it; otherwise control does, since there is no room for its next hop.
    pub installed: bool,
    /// Where it leads, in words: `itself`, `link`, `via`, `broadcast`, `blackhole`, `unreachable`, `prohibited`.
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
}

/// The routes that are shown, as they are.
pub(super) struct RoutesShown {
    count: usize,
    overruns: u64,
    routes: Vec<(Prefix, Source, Way, bool, bool)>,
    interfaces: Vec<String>,
}

impl RoutesShown {
    /// The same for people.
    pub(super) fn picture(self) -> RoutesPicture {
        let RoutesShown { count, overruns, routes, interfaces } = self;
        let routes = routes.into_iter().map(|(prefix, source, way, used, installed)| {
            let (name, via, port) = match way {
                Way::Itself => ("itself", None, None),
                Way::Broadcast(port) => ("broadcast", None, Some(port)),
                Way::Link(port) => ("link", None, Some(port)),
                Way::Via(neighbour) => ("via", Some(neighbour.address.to_string()), Some(neighbour.port)),
                Way::Blackhole => ("blackhole", None, None),
                Way::Unreachable => ("unreachable", None, None),
                Way::Prohibited => ("prohibited", None, None),
            };
            let interface = port
                .map(|port| interfaces.get(usize::from(port).wrapping_sub(1)).cloned().unwrap_or_default());
            RoutePicture { to: prefix.to_string(), source, used, installed, way: name, via, port, interface }
        });
        RoutesPicture { count, kernel_overruns: overruns, routes: routes.collect() }
    }
}

/// The neighbours of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct NeighboursPicture {
    /// By port and address.
    pub neighbours: Vec<NeighbourPicture>,
    /// What became of the packets that the program handed over.
    pub account: AccountPicture,
}

/// A neighbour.
#[derive(Clone, Debug, Serialize)]
pub struct NeighbourPicture {
    /// The port that it is at.
    pub port: PortNumber,
    /// The port's interface.
    pub interface: String,
    /// Its address.
    pub address: String,
    /// How much is known of it.
    pub state: State,
    /// Its Ethernet address.
    pub mac: Option<String>,
    /// Seconds since it came into its state or last confirmed it.
    pub seconds: f64,
    /// How many packets wait for it.
    pub queued: usize,
}

impl Router {
    /// The routes that are shown: no more is done here than must be while nothing else happens.
    pub(super) fn routes_shown(&self, overruns: u64) -> RoutesShown {
        let shown = self.rib.all().take(SHOWN);
        let shown = shown
            .map(|(prefix, source, way, used)| (prefix, source, way, used, used && self.installed(prefix)));
        RoutesShown {
            count: self.rib.count(),
            overruns,
            routes: shown.collect(),
            interfaces: self.ports.iter().map(|port| port.settings.interface.clone()).collect(),
        }
    }

    /// The neighbours, for people.
    pub(super) fn neighbours_picture(&self, now: u64) -> NeighboursPicture {
        let told = self.neighbours.all().into_iter().map(|seen| NeighbourPicture {
            port: seen.neighbour.port,
            interface: self.interface_name(seen.neighbour.port),
            address: seen.neighbour.address.to_string(),
            state: seen.state,
            mac: seen.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":")),
            seconds: now.saturating_sub(seen.since) as f64 / 1e9,
            queued: seen.queued,
        });
        let account = self.account.picture(self.waiting(), self.neighbours.displaced());
        NeighboursPicture { neighbours: told.collect(), account }
    }

    fn interface_name(&self, port: PortNumber) -> String {
        self.port(port).map(|port| port.settings.interface.clone()).unwrap_or_default()
    }
}
