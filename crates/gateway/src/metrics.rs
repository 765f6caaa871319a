//! Metrics of a running gateway for Prometheus: `GET /metrics` in the OpenMetrics text format.
//!
//! The gateway stores nothing for this: it takes a snapshot of its counters for each request.

use crate::active::ActiveView;
use crate::control::{GatewayView, PortView};
use crate::http::Page;
use crate::leases::LeasesView;
use crate::names::NamesView;
use crate::routing::HostView;
use engine::live::PortLosses;
use engine::report::{PortReport, TableState};
use ports::live::LossKind;
use ports::live::tunnel::{TunnelPeerView, TunnelView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// What there is to measure at one moment.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The gateway, unless there are no ports.
    pub(crate) gateway: Option<GatewayView>,
    /// The policy of a confined core.
    pub(crate) policy: Option<ActiveView>,
    /// The name server, if there is one.
    pub(crate) names: Option<NamesView>,
}

/// The response to a request, by its method and path.
pub(crate) fn page(method: &str, path: &str, view: &dyn Fn() -> Result<Seen, String>) -> Page {
    match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => match view().map(written) {
            Ok(Ok(text)) => {
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                Page { status: "200 OK", kind, text }
            }
            Ok(Err(error)) => Page::plain("500 Internal Server Error", format!("{error}\n")),
            Err(error) => Page::plain("503 Service Unavailable", format!("{error}\n")),
        },
        ("GET" | "HEAD", _) => Page::plain("404 Not Found", "the metrics are at /metrics\n"),
        _ => Page::plain("405 Method Not Allowed", "only GET /metrics is answered\n"),
    }
}

/// A snapshot as a page of metrics.
fn written(seen: Seen) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("ravelin");
    registry.register_collector(Box::new(seen));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The labels of a row of a metric: names and values.
type Labels = Vec<(&'static str, String)>;
type Rows = Vec<(Labels, u64)>;

impl Collector for Seen {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families(encoder);
        if let Some(view) = &self.gateway {
            gateway(view, &mut out)?;
            packets(view, &mut out)?;
            ports(view, &mut out)?;
            leases(view, &mut out)?;
            tables(&view.report.tables, &mut out)?;
        }
        if let Some(active) = &self.policy {
            confined(active, &mut out)?;
        }
        self.names.as_ref().map_or(Ok(()), |view| names(view, &mut out))
    }
}

/// Metrics of the name server.
fn names(view: &NamesView, out: &mut Families<'_>) -> fmt::Result {
    let by = |label: &'static str, all: &mut dyn Iterator<Item = (&str, u64)>| -> Rows {
        all.map(|(name, count)| (vec![(label, name.to_owned())], count)).collect()
    };
    let zone = vec![(vec![("zone", view.zone.clone())], u64::from(view.serial))];
    out.gauges("names_serial", "The serial number of the zone", None, zone)?;
    let queries = by("transport", &mut view.queries.iter().map(|(name, count)| (*name, *count)));
    out.counters("names_queries", "Queries that came, by transport", None, queries)?;
    out.counters("names_replies", "Replies to queries", None, one(view.replies))?;
    let drops = by("reason", &mut view.drops.iter().map(|(name, count)| (name.as_str(), *count)));
    out.counters("names_drops", "Queries and connections without a reply, by reason", None, drops)?;
    let clients = by("outcome", &mut view.server_names.iter().map(|(name, count)| (*name, *count)));
    let help = "Clients of TLS that said by the server name whom they mean, by what became of them";
    out.counters("names_server_names", help, None, clients)?;
    out.gauges("names_held", "Queries that wait for a waypoint", None, one(view.held))?;
    let entries = "Promises that packets know, each service by itself";
    out.gauges("names_expectations", entries, None, one(view.expectations))?;
    let known = "Bindings that the waypoint knows, those included that are over and not forgotten";
    out.gauges("names_bindings", known, None, one(view.bindings))?;
    out.gauges("names_hosts", "Names that lead to hosts", None, one(view.host_count))?;
    if let Some(store) = &view.store {
        let unwritten = "Bindings that began or ended and are not written to the store yet";
        out.gauges("names_store_unwritten", unwritten, None, one(store.unwritten))?;
        let failing = "Whether the last attempt to write to the store failed";
        out.gauges("names_store_failing", failing, None, one(u64::from(store.error.is_some())))?;
    }
    let silent = view.waypoints.iter();
    let silent = silent.map(|one| (vec![("waypoint", one.name.clone())], u64::from(one.silent))).collect();
    out.gauges(
        "names_waypoint_silent",
        "Whether a waypoint did not answer when it was asked last",
        None,
        silent,
    )?;
    out.gauges("names_connections", "Connections of TCP to the name server", None, one(view.connections))
}

/// Metrics of the policy of a confined core, and of what guards before containers refused.
fn confined(active: &ActiveView, out: &mut Families<'_>) -> fmt::Result {
    let refused = active.refused.iter().flat_map(|(port, reasons)| {
        let row = |(reason, count): (&String, &u64)| {
            (vec![("interface", port.clone()), ("reason", reason.clone())], *count)
        };
        reasons.iter().map(row)
    });
    let help = "Frames from a container that its guard refused, by reason";
    out.counters("guard_refused", help, None, refused.collect())?;
    let Some(signed) = &active.policy else { return Ok(()) };
    let version = vec![(vec![("hash", signed.hash.clone())], signed.version)];
    out.gauges("policy_version", "The version of the signed policy that runs", None, version)?;
    let confirmed = "1 if the policy is confirmed, 0 if the one before it returns unless it is confirmed";
    out.gauges("policy_confirmed", confirmed, None, one(u64::from(signed.confirmed)))
}

/// Metrics of the running program and its workers.
fn gateway(view: &GatewayView, out: &mut Families<'_>) -> fmt::Result {
    let program = vec![(vec![("program", view.report.setting.program.clone())], 1)];
    out.gauges("program", "The program that runs", None, program)?;
    let generation = one(view.generation);
    out.gauges("generation", "How many programs have taken over since the start", None, generation)?;
    out.gauges("workers", "Threads that run the program", None, one(view.workers))?;
    let age = one(view.seconds as u64);
    out.gauges("age", "Time since the program took over", Some(&Unit::Seconds), age)
}

/// Metrics of the account of all packets, and of punted packets that were lost on their way to the control
/// plane.
fn packets(view: &GatewayView, out: &mut Families<'_>) -> fmt::Result {
    let report = &view.report;
    out.counters("received", "Packets that came in", None, one(report.received.packets))?;
    out.counters("received_wire", "Bytes that came in", Some(&Unit::Bytes), one(report.received.bytes))?;
    out.counters("forwarded", "Packets that left, each once", None, one(report.forwarded.packets))?;
    out.counters("transmitted", "Packets that left, each copy", None, one(report.transmitted.packets))?;
    out.counters("made", "Packets that the program made", None, one(report.made))?;
    let verdicts = &report.verdicts;
    let by = [
        ("send", verdicts.send),
        ("flood", verdicts.flood),
        ("multicast", verdicts.multicast),
        ("punt", verdicts.punt),
        ("drop", verdicts.drop),
    ];
    let by = by.map(|(name, packets)| (vec![("verdict", name.to_owned())], packets));
    out.counters("verdicts", "Packets by verdict", None, by.to_vec())?;
    let reasons = |all: &BTreeMap<String, u64>| -> Rows {
        let labels = |name: &String| {
            let at = view.places.get(name).map(|places| places.join(" ")).unwrap_or_default();
            vec![("reason", name.clone()), ("at", at)]
        };
        all.iter().map(|(name, &packets)| (labels(name), packets)).collect()
    };
    let help = "Packets dropped, by reason and by where the program gives it";
    out.counters("drops", help, None, reasons(&report.drops))?;
    let help = "Packets handed to control, by reason and by where the program gives it";
    out.counters("punts", help, None, reasons(&report.punts))?;
    let help = "Punted packets that found no room on their way to control, or had no share while others waited, by reason";
    out.counters("punts_lost", help, None, reasons(&view.punts_lost))?;
    let help = "Packets that left with the checksum that their sender had left open";
    out.counters("checksums_left_open", help, None, one(view.checksums_left_open))?;
    let help = "Segments that the program got whole; every other figure counts their packets";
    out.counters("segments_whole", help, None, one(view.segments_whole))?;
    let help = "Routes of the kernel that are not followed, since they say what the gateway cannot do";
    out.gauges("kernel_routes_unmeant", help, None, one(view.kernel_routes_unmeant))
}

/// Metrics of registrations over tunnels.
fn leases(view: &GatewayView, out: &mut Families<'_>) -> fmt::Result {
    let LeasesView { waypoints, gateways, drops } = &view.leases;
    let names = gateways.iter().map(|one| (vec![("gateway", one.name.clone())], one.names));
    out.gauges("lease_names", "Names that lead to a gateway by its lease", None, names.collect())?;
    let leased = waypoints.iter().map(|one| (vec![("waypoint", one.name.clone())], u64::from(one.leased)));
    out.gauges("lease_held", "Whether a waypoint has given a lease to this gateway", None, leased.collect())?;
    let drops = drops.iter().map(|(reason, count)| (vec![("reason", (*reason).to_owned())], *count));
    out.counters("lease_drops", "Control messages that led to nothing, by reason", None, drops.collect())
}

/// Metrics of each port: what it received, sent and lost, and whether its interface is there.
fn ports(view: &GatewayView, out: &mut Families<'_>) -> fmt::Result {
    let labels = |port: &PortView| -> Labels {
        vec![("port", port.port.to_string()), ("interface", port.interface.clone())]
    };
    let rows = |of: &dyn Fn(usize, &PortView) -> u64| -> Rows {
        view.ports.iter().enumerate().map(|(index, port)| (labels(port), of(index, port))).collect()
    };
    let counted = |of: fn(&PortReport) -> u64| rows(&|index, _| view.report.ports.get(index).map_or(0, of));
    let bytes = Some(&Unit::Bytes);
    out.counters("port_received", "Packets that came in by a port", None, counted(|port| port.received))?;
    let received = counted(|port| port.received_bytes);
    out.counters("port_received_wire", "Bytes that came in by a port", bytes, received)?;
    out.counters("port_transmitted", "Packets that left by a port", None, counted(|port| port.transmitted))?;
    let transmitted = counted(|port| port.transmitted_bytes);
    out.counters("port_transmitted_wire", "Bytes that left by a port", bytes, transmitted)?;
    let of_kind = |wanted: LossKind| -> Rows {
        let mut all = Rows::new();
        for port in &view.ports {
            let PortLosses { receive, send } = port.since_attached;
            let counts = receive.counts().into_iter().chain(send.counts());
            let mut counts: Vec<_> = counts.filter(|(_, kind, _)| *kind == wanted).collect();
            counts.sort_unstable_by_key(|(why, ..)| *why);
            let why = |why: &str| [labels(port), vec![("why", why.to_owned())]].concat();
            all.extend(counts.into_iter().map(|(name, _, packets)| (why(name), packets)));
        }
        all
    };
    let help = "Packets lost at a port without the program having a say";
    out.counters("port_lost", help, None, of_kind(LossKind::Lost))?;
    let help =
        "Packets that were doubled, damaged, left out of a trace, or meant for other stations: no losses";
    out.counters("port_other", help, None, of_kind(LossKind::Aside))?;
    let help = "Packets that are held back at a port now";
    out.gauges("port_waiting", help, None, of_kind(LossKind::Waiting))?;
    let host = |of: fn(&HostView) -> u64| -> Rows {
        let hosts = view.ports.iter().filter_map(|port| Some((labels(port), port.host.as_ref()?)));
        hosts.map(|(labels, host)| (labels, of(host))).collect()
    };
    let help = "Packets that were handed to the machine by the host interface of a port";
    out.counters("host_handed", help, None, host(|host| host.handed))?;
    let help = "Packets for the machine that it did not take";
    out.counters("host_refused", help, None, host(|host| host.refused))?;
    let help = "Packets that the machine sent by a port";
    out.counters("host_sent", help, None, host(|host| host.sent))?;
    let help = "Packets of the machine that found no room in the queue of its host interface";
    out.counters("host_unsent", help, None, host(|host| host.unsent))?;
    tunnels(view, &labels, out)?;
    let there = rows(&|_, port| u64::from(port.gone_seconds.is_none()));
    out.gauges("port_there", "Whether the interface of a port is there", None, there)?;
    let vanished = rows(&|_, port| port.vanished);
    out.counters("port_vanished", "How often the interface of a port vanished", None, vanished)
}

/// Metrics of the ports that are tunnels: of each peer, and what was dropped.
fn tunnels(view: &GatewayView, labels: &dyn Fn(&PortView) -> Labels, out: &mut Families<'_>) -> fmt::Result {
    let tunnels: Vec<_> = view.ports.iter().filter_map(|port| Some((port, port.tunnel.as_ref()?))).collect();
    let peers = |of: &dyn Fn(&TunnelPeerView) -> Option<u64>| -> Rows {
        let all =
            tunnels.iter().flat_map(|(port, tunnel)| tunnel.peers.iter().map(move |peer| (*port, peer)));
        let row = |(port, peer): (&PortView, &TunnelPeerView)| {
            let own = vec![("peer", peer.number.to_string()), ("name", peer.name.clone())];
            Some(([labels(port), own].concat(), of(peer)?))
        };
        all.filter_map(row).collect()
    };
    let bytes = Some(&Unit::Bytes);
    out.counters("tunnel_received", "Packets of a peer", None, peers(&|peer| Some(peer.received)))?;
    let received = peers(&|peer| Some(peer.received_bytes));
    out.counters("tunnel_received_inner", "Bytes of packets of a peer", bytes, received)?;
    out.counters("tunnel_sent", "Packets to a peer", None, peers(&|peer| Some(peer.sent)))?;
    let sent = peers(&|peer| Some(peer.sent_bytes));
    out.counters("tunnel_sent_inner", "Bytes of packets to a peer", bytes, sent)?;
    let help = "Time since the session with a peer began, for peers with a session";
    let ages = peers(&|peer| peer.handshake_seconds.map(|seconds| seconds as u64));
    out.gauges("tunnel_handshake_age", help, Some(&Unit::Seconds), ages)?;
    let endpoints = tunnels.iter().flat_map(|(port, tunnel)| {
        tunnel.peers.iter().filter_map(|peer| {
            let own = vec![("peer", peer.number.to_string()), ("endpoint", peer.endpoint?.to_string())];
            Some(([labels(port), own].concat(), 1))
        })
    });
    out.gauges("tunnel_endpoint", "Where a peer is", None, endpoints.collect())?;
    let reasons = |of: fn(&TunnelView) -> &BTreeMap<&'static str, u64>| -> Rows {
        let all = tunnels.iter().flat_map(|(port, tunnel)| {
            of(tunnel).iter().map(|(reason, count)| {
                ([labels(port), vec![("reason", (*reason).to_owned())]].concat(), *count)
            })
        });
        all.collect()
    };
    let help = "Datagrams to a tunnel that are not what a peer sends, by reason";
    out.counters("tunnel_drops", help, None, reasons(|tunnel| &tunnel.drops))?;
    let help = "Frames that did not go to a peer, by reason";
    out.counters("tunnel_refusals", help, None, reasons(|tunnel| &tunnel.refusals))
}

fn tables(states: &BTreeMap<String, TableState>, out: &mut Families<'_>) -> fmt::Result {
    let rows = |of: fn(&TableState) -> u64| -> Rows {
        states.iter().map(|(name, state)| (vec![("table", name.clone())], of(state))).collect()
    };
    out.gauges("table_entries", "Entries that a table holds", None, rows(|table| table.entries))?;
    out.gauges("table_capacity", "Entries that a table can hold", None, rows(|table| table.capacity))?;
    out.counters("table_inserts", "New entries of a table", None, rows(|table| table.inserts))?;
    let expired = rows(|table| table.expired);
    out.counters("table_expired", "Entries that went because their time was up", None, expired)?;
    let evictions = rows(|table| table.evictions);
    out.counters("table_evictions", "Entries that went because the table was full", None, evictions)?;
    let refused = rows(|table| table.refused);
    out.counters("table_refused", "New entries refused because the table was full", None, refused)
}

/// The row of a metric without labels.
fn one(value: u64) -> Rows {
    vec![(Vec::new(), value)]
}

/// Writes metrics, each as a metric family with its help text and its rows.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    /// Writes a counter: a number that only grows.
    fn counters(&mut self, name: &str, help: &str, unit: Option<&Unit>, rows: Rows) -> fmt::Result {
        let rows = rows.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.family(name, help, unit, MetricType::Counter, rows)
    }

    /// Writes a gauge: a number that grows and shrinks.
    fn gauges(&mut self, name: &str, help: &str, unit: Option<&Unit>, rows: Rows) -> fmt::Result {
        let value = |value| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        let rows = rows.into_iter().map(|(labels, number)| (labels, value(number)));
        self.family(name, help, unit, MetricType::Gauge, rows)
    }

    fn family<M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        rows: impl Iterator<Item = (Labels, M)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        for (labels, metric) in rows {
            if labels.is_empty() {
                return metric.encode(family);
            }
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active::SignedView;
    use crate::leases::GatewayLeaseView;
    use engine::{Report, Volume};
    use std::collections::BTreeSet;

    /// Metric by name and labels; fails where a line is not of the format, or a metric has no help.
    fn parsed(text: &str) -> BTreeMap<String, f64> {
        let (mut helped, mut values) = (Vec::new(), BTreeMap::new());
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words.as_slice() {
                ["#", "HELP", name, help] => {
                    assert!(help.len() > 5, "{line}");
                    helped.push((*name).to_owned());
                }
                ["#", "TYPE", name, kind] => assert!(matches!(*kind, "counter" | "gauge"), "{name} {kind}"),
                ["#", "UNIT", name, unit] => assert!(name.ends_with(unit), "{line}"),
                ["#", "EOF"] => {}
                _ => {
                    let (name, value) = line.rsplit_once(' ').expect(line);
                    let family = name.split('{').next().expect("a name").trim_end_matches("_total");
                    assert!(helped.iter().any(|helped| helped == family), "no help for {line}");
                    assert!(name.matches(['{', '}']).count() % 2 == 0 && !name.ends_with("{}"), "{line}");
                    assert!(
                        values.insert(name.to_owned(), value.parse().expect(line)).is_none(),
                        "twice: {line}"
                    );
                }
            }
        }
        values
    }

    #[test]
    fn counts_of_ports_have_the_names_that_reports_give_them() {
        let PortLosses { receive, send } = PortLosses::default();
        let counts = receive.counts().into_iter().chain(send.counts());
        let names: BTreeSet<_> = counts.map(|(name, ..)| name.to_owned()).collect();
        let told = serde_json::to_value(PortLosses::default()).expect("is written");
        let told: BTreeSet<_> = told.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(names, told);
    }

    #[test]
    fn every_metric_has_help_and_its_value() {
        let mut report = Report { received: Volume { packets: 7, bytes: 700 }, ..Report::default() };
        report.drops.insert("no_route".into(), 3);
        report
            .tables
            .insert("hosts".into(), TableState { entries: 5, capacity: 64, ..TableState::default() });
        let port = PortView {
            port: 1,
            interface: "eth\"0".into(),
            mode: String::new(),
            gone_seconds: None,
            gone_because: None,
            untraced_because: None,
            vanished: 3,
            tunnel: Some(TunnelView {
                keys: Vec::new(),
                peers: vec![TunnelPeerView {
                    number: 7,
                    name: "home".into(),
                    endpoint: Some(([192, 0, 2, 1], 5282).into()),
                    handshake_seconds: Some(9.5),
                    cipher: None,
                    received: 51,
                    received_bytes: 52,
                    sent: 53,
                    sent_bytes: 54,
                }],
                drops: BTreeMap::from([("replayed", 55)]),
                refusals: BTreeMap::from([("no_peer", 56)]),
                control_lost: 0,
            }),
            host: Some(HostView { interface: "h-x".into(), handed: 41, refused: 42, sent: 43, unsent: 44 }),
            losses: Default::default(),
            since_attached: Default::default(),
        };
        let view = GatewayView {
            seconds: 12.5,
            generation: 2,
            report,
            reasons: BTreeMap::new(),
            places: BTreeMap::from([(
                "no_route".to_owned(),
                vec!["r.rav:3".to_owned(), "r.rav:9".to_owned()],
            )]),
            workers: 1,
            punt_queue_full: 4,
            punts_lost: BTreeMap::from([("unresolved".to_owned(), 4)]),
            checksums_left_open: 6,
            segments_whole: 5,
            kernel_routes_unmeant: 3,
            leases: LeasesView {
                waypoints: Vec::new(),
                gateways: vec![GatewayLeaseView { name: "home".into(), names: 57, seconds: 30.0 }],
                drops: BTreeMap::from([("malformed", 58)]),
            },
            ports: vec![port],
        };
        let policy = ActiveView {
            hash: "00".to_owned(),
            program: "p".to_owned(),
            generation: 2,
            confined_by: Vec::new(),
            received: 0,
            forwarded: 0,
            dropped: BTreeMap::new(),
            punted: BTreeMap::new(),
            policy: Some(SignedView {
                version: 9,
                hash: "ab".to_owned(),
                signed_by: BTreeMap::new(),
                confirmed: false,
                seconds_left: Some(3),
                before: None,
            }),
            refused: BTreeMap::from([(
                "services".to_owned(),
                BTreeMap::from([("arp_sender".to_owned(), 8)]),
            )]),
        };
        let seen = Seen { gateway: Some(view), policy: Some(policy), names: None };
        let values = parsed(&written(seen).expect("is written"));
        for (name, value) in [
            ("ravelin_received_total", 7.0),
            ("ravelin_guard_refused_total{interface=\"services\",reason=\"arp_sender\"}", 8.0),
            ("ravelin_policy_version{hash=\"ab\"}", 9.0),
            ("ravelin_policy_confirmed", 0.0),
            ("ravelin_received_wire_bytes_total", 700.0),
            ("ravelin_drops_total{reason=\"no_route\",at=\"r.rav:3 r.rav:9\"}", 3.0),
            ("ravelin_punts_lost_total{reason=\"unresolved\",at=\"\"}", 4.0),
            ("ravelin_table_entries{table=\"hosts\"}", 5.0),
            ("ravelin_port_lost_total{port=\"1\",interface=\"eth\\\"0\",why=\"busy\"}", 0.0),
            ("ravelin_port_waiting{port=\"1\",interface=\"eth\\\"0\",why=\"waiting\"}", 0.0),
            ("ravelin_checksums_left_open_total", 6.0),
            ("ravelin_segments_whole_total", 5.0),
            ("ravelin_kernel_routes_unmeant", 3.0),
            ("ravelin_generation", 2.0),
            ("ravelin_lease_names{gateway=\"home\"}", 57.0),
            ("ravelin_lease_drops_total{reason=\"malformed\"}", 58.0),
            (
                "ravelin_tunnel_received_total{port=\"1\",interface=\"eth\\\"0\",peer=\"7\",name=\"home\"}",
                51.0,
            ),
            (
                "ravelin_tunnel_sent_inner_bytes_total{port=\"1\",interface=\"eth\\\"0\",peer=\"7\",name=\"home\"}",
                54.0,
            ),
            (
                "ravelin_tunnel_handshake_age_seconds{port=\"1\",interface=\"eth\\\"0\",peer=\"7\",name=\"home\"}",
                9.0,
            ),
            (
                "ravelin_tunnel_endpoint{port=\"1\",interface=\"eth\\\"0\",peer=\"7\",endpoint=\"192.0.2.1:5282\"}",
                1.0,
            ),
            ("ravelin_tunnel_drops_total{port=\"1\",interface=\"eth\\\"0\",reason=\"replayed\"}", 55.0),
            ("ravelin_tunnel_refusals_total{port=\"1\",interface=\"eth\\\"0\",reason=\"no_peer\"}", 56.0),
        ] {
            assert_eq!(values.get(name), Some(&value), "{name} in {:#?}", values.keys());
        }
        let lost = values.keys().filter(|name| name.starts_with("ravelin_port_lost"));
        assert!(lost.into_iter().all(|name| !name.contains("doubled") && !name.contains("waiting")));
    }
}
