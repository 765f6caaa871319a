//! What a gateway tells of its registrations and of those at it.

use serde::Serialize;
use std::collections::BTreeMap;

/// Registrations at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LeasesView {
    /// The waypoints at which this gateway registers.
    pub waypoints: Vec<WaypointLeaseView>,
    /// The gateways that register here.
    pub gateways: Vec<GatewayLeaseView>,
    /// Control messages that led to nothing, by reason.
    pub drops: BTreeMap<&'static str, u64>,
}

/// The registration of this gateway at a waypoint.
#[derive(Clone, Debug, Serialize)]
pub struct WaypointLeaseView {
    /// The waypoint, as a peer of a tunnel.
    pub name: String,
    /// How many names are to be registered.
    pub names: u64,
    /// Those of them that the waypoint refuses.
    pub refused: Vec<String>,
    /// Whether the waypoint has given a lease that lasts.
    pub leased: bool,
    /// Whether it knows of all names.
    pub settled: bool,
}

/// The lease of a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayLeaseView {
    /// The gateway, as a peer of a tunnel.
    pub name: String,
    /// How many names lead to it by its lease.
    pub names: u64,
    /// For how many seconds it lasts if it is not renewed.
    pub seconds: f64,
}
