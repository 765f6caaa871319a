//! What a name server and its waypoint tell of themselves.

use crate::config::names::HostPlace;
use crate::seeing::PacketView;
use naming::dns::Ipv4Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A name that somebody wants to lead to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NameWish {
    /// The name, as in the file.
    pub name: String,
    /// Where the host is.
    #[serde(flatten)]
    pub place: HostPlace,
    /// What it offers.
    pub services: Vec<String>,
    /// How it is reached by IPv4.
    #[serde(default)]
    pub ipv4: Ipv4Mode,
    /// Its address of IPv6. Where the waypoint has a network of IPv6 and the gateway serves this address, the
    /// name gets one of that network.
    #[serde(default)]
    pub ipv6: Option<Ipv6Addr>,
}

/// A name server at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NamesView {
    /// The zone.
    pub zone: String,
    /// Its serial number.
    pub serial: u32,
    /// Queries by UDP and by TCP.
    pub queries: BTreeMap<&'static str, u64>,
    /// Replies that were sent.
    pub replies: u64,
    /// Queries that wait for a waypoint at this moment.
    pub held: u64,
    /// Queries without an answer, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Connections at this moment.
    pub connections: u64,
    /// Bindings that the waypoint knows, those included that are over and not forgotten.
    pub bindings: u64,
    /// Promises that packets know, each service by itself.
    pub expectations: u64,
    /// The gateways of the file, in its order.
    pub gateways: Vec<NamedGatewayView>,
    /// How many names lead to hosts.
    pub host_count: u64,
    /// Names that lead to hosts: the first ones in their order.
    pub hosts: Vec<NamedHostView>,
    /// What was promised and still holds, the latest first.
    pub promises: Vec<PromiseView>,
    /// The waypoints elsewhere that are asked for addresses.
    pub waypoints: Vec<AskedWaypointView>,
    /// Clients that said by the server name of TLS whom they mean, by what became of them.
    pub server_names: BTreeMap<&'static str, u64>,
    /// What of packets is written to the store, of a waypoint that has one.
    pub store: Option<StoreView>,
    /// Control messages of peers that led to nothing, by reason, of a process without ports.
    pub control_drops: BTreeMap<&'static str, u64>,
}

/// What of the things that packets do is kept over an end of the process, and what is not yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreView {
    /// Bindings that began or ended and are not written yet.
    pub unwritten: u64,
    /// All that packets did until so many seconds ago is written; none until it was looked for once.
    pub written_seconds: Option<f64>,
    /// Why the last attempt to write failed. It is repeated.
    pub error: Option<String>,
}

/// A gateway that names may lead to.
#[derive(Clone, Debug, Serialize)]
pub struct NamedGatewayView {
    /// Its name.
    pub name: String,
    /// Its number in the tunnel, if it is a peer of one.
    pub number: Option<u32>,
    /// The networks behind it.
    pub networks: Vec<String>,
    /// How many names lead to hosts behind it.
    pub names: u64,
}

/// A waypoint that is asked for addresses.
#[derive(Clone, Debug, Serialize)]
pub struct AskedWaypointView {
    /// The name of this peer.
    pub name: String,
    /// It did not answer when it was asked last, and others are asked first for a while.
    pub silent: bool,
}

/// A name that leads to a host.
#[derive(Clone, Debug, Serialize)]
pub struct NamedHostView {
    /// The name.
    pub name: String,
    /// Where the host is.
    #[serde(flatten)]
    pub place: HostPlace,
    /// What it offers.
    pub services: Vec<String>,
    /// How it is reached by IPv4.
    pub ipv4: String,
    /// The address that always leads to it.
    pub ipv6: Option<Ipv6Addr>,
    /// The host's own address, if that is one of the waypoint.
    pub ipv6_host: Option<Ipv6Addr>,
}

/// An address that was promised to initiators.
#[derive(Clone, Debug, Serialize)]
pub struct PromiseView {
    /// The address.
    pub address: Ipv4Addr,
    /// Where it leads.
    #[serde(flatten)]
    pub to: PromisedTo,
    /// For which initiators.
    pub initiators: String,
    /// The resolver that asked.
    pub resolver: IpAddr,
    /// For how many seconds nobody else is promised the same.
    pub exclusive_seconds: f64,
    /// For how many seconds first packets are let through.
    pub seconds: f64,
}

/// The host to which a promise leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromisedTo {
    /// Its gateway.
    pub gateway: String,
    /// Its address there.
    pub host: Ipv4Addr,
}

/// What a client said by the server name of TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SaidServerNameView {
    /// The name, if there was one.
    pub name: Option<String>,
    /// `led`, or why it was not.
    pub outcome: &'static str,
}

/// Of which packets it is asked what becomes of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyNameWish {
    /// The client.
    pub initiator: Ipv4Addr,
    /// The address that it sends to.
    pub address: Ipv4Addr,
    /// The protocol and port there, such as `tcp/22`.
    pub service: String,
}

/// What becomes of a first packet of an initiator.
#[derive(Clone, Debug, Serialize)]
pub struct WhyNameView {
    /// `reaches`, `would_reach`, `no_expectation`, `quarantined`, `ambiguous`, `answered_by_cookie`,
    /// `embryonic_full`, or `server_name`: nobody is expected, and a client of TLS is led by the name that it
    /// says.
    pub outcome: &'static str,
    /// The host that it reaches.
    pub bound: Option<PromisedTo>,
    /// Whether the initiator has proved itself there.
    pub proved: bool,
    /// The host that it has reached a short time ago.
    pub quarantined: Option<PromisedTo>,
    /// For how many seconds no other takes its place.
    pub quarantine_seconds: Option<f64>,
    /// The host that is expected.
    pub expected: Option<PromisedTo>,
    /// For which initiators.
    pub initiators: Option<String>,
    /// For how many seconds; none where an address always leads to one host.
    pub expected_seconds: Option<f64>,
    /// Bindings that have not proved themselves.
    pub young: u64,
    /// How many there may be.
    pub young_room: u64,
    /// What is promised of this address and service to other initiators, the latest first.
    pub others: Vec<PromiseView>,
    /// What it said last there by the server name of TLS.
    pub server_name: Option<SaidServerNameView>,
    /// The last packet of the initiator to this address that was dropped.
    pub refused: Option<PacketView>,
}
