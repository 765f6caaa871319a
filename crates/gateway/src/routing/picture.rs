//! Routes and neighbours as they are shown.

use super::account::AccountPicture;
use super::neighbours::State;
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
    /// It counts; another of a source that goes before does otherwise.
    pub used: bool,
    /// It is in the program's table.
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
    /// The routes, for people.
    pub(super) fn routes_picture(&self) -> RoutesPicture {
        let all = self.rib.all();
        let count = all.len();
        let routes = all.into_iter().take(SHOWN).map(|(prefix, source, way, used)| {
            let (name, via, port) = match way {
                Way::Itself => ("itself", None, None),
                Way::Broadcast => ("broadcast", None, None),
                Way::Link(port) => ("link", None, Some(port)),
                Way::Via(neighbour) => ("via", Some(neighbour.address.to_string()), Some(neighbour.port)),
                Way::Blackhole => ("blackhole", None, None),
                Way::Unreachable => ("unreachable", None, None),
                Way::Prohibited => ("prohibited", None, None),
            };
            RoutePicture {
                to: prefix.to_string(),
                source,
                used,
                installed: used && self.installed(prefix).is_some(),
                way: name,
                via,
                port,
                interface: port.map(|port| self.interface_name(port)),
            }
        });
        RoutesPicture { count, routes: routes.collect() }
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
        let account = self.account.picture(self.neighbours.waiting());
        NeighboursPicture { neighbours: told.collect(), account }
    }

    fn interface_name(&self, port: PortNumber) -> String {
        self.port(port).map(|port| port.settings.interface.clone()).unwrap_or_default()
    }
}
