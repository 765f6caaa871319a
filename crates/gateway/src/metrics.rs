//! What a running gateway counts, for Prometheus: `GET /metrics` in the OpenMetrics text format.
//!
//! Nothing is kept for it: each question is answered from a picture that is taken then.

use crate::control::GatewayView;
use crate::http::Page;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// What is answered to a method and what it is applied to.
pub(crate) fn page(method: &str, path: &str, view: &dyn Fn() -> Result<GatewayView, String>) -> Page {
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

/// A picture as metrics.
fn written(view: GatewayView) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("ravelin");
    registry.register_collector(Box::new(Whole(view)));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Whole(GatewayView);

type Labels = Vec<(&'static str, String)>;

impl Collector for Whole {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Whole(view) = self;
        let report = &view.report;
        let one = |value: u64| vec![(Vec::new(), value)];
        let out = &mut encoder;
        let labels = vec![(vec![("program", report.setting.program.clone())], 1)];
        gauges(out, "program", "The program that runs", None, labels)?;
        gauges(
            out,
            "generation",
            "How many programs have taken over since the start",
            None,
            one(view.generation),
        )?;
        gauges(out, "workers", "Threads that run the program", None, one(view.workers))?;
        gauges(
            out,
            "age",
            "Time since the program took over",
            Some(&Unit::Seconds),
            one(view.seconds as u64),
        )?;
        counters(out, "received", "Packets that came in", None, one(report.received.packets))?;
        counters(out, "received_wire", "Bytes that came in", Some(&Unit::Bytes), one(report.received.bytes))?;
        counters(out, "forwarded", "Packets that left, each once", None, one(report.forwarded.packets))?;
        counters(out, "transmitted", "Packets that left, each copy", None, one(report.transmitted.packets))?;
        counters(out, "made", "Packets that the program made", None, one(report.made))?;
        let verdicts = &report.verdicts;
        let by = [
            ("send", verdicts.send),
            ("flood", verdicts.flood),
            ("multicast", verdicts.multicast),
            ("punt", verdicts.punt),
            ("drop", verdicts.drop),
        ];
        let by = by.map(|(name, packets)| (vec![("verdict", name.to_owned())], packets));
        counters(out, "verdicts", "Packets by verdict", None, by.to_vec())?;
        let reasons = |all: &std::collections::BTreeMap<String, u64>| -> Vec<(Labels, u64)> {
            all.iter()
                .map(|(name, &packets)| {
                    let at = view.places.get(name).map(|places| places.join(" ")).unwrap_or_default();
                    (vec![("reason", name.clone()), ("at", at)], packets)
                })
                .collect()
        };
        counters(
            out,
            "drops",
            "Packets dropped, by reason and by where the program gives it",
            None,
            reasons(&report.drops),
        )?;
        counters(
            out,
            "punts",
            "Packets handed to control, by reason and by where the program gives it",
            None,
            reasons(&report.punts),
        )?;
        counters(
            out,
            "punts_lost",
            "Punted packets that found no room on their way to control, by reason",
            None,
            reasons(&view.punts_lost),
        )?;
        gauges(
            out,
            "kernel_routes_unmeant",
            "Routes of the kernel that are not followed, since they say what the gateway cannot do",
            None,
            one(view.kernel_routes_unmeant),
        )?;
        let names: Vec<Labels> = (view.ports.iter())
            .map(|port| vec![("port", port.port.to_string()), ("interface", port.interface.clone())])
            .collect();
        let ports = |of: &dyn Fn(usize) -> u64| -> Vec<(Labels, u64)> {
            names.iter().enumerate().map(|(index, labels)| (labels.clone(), of(index))).collect()
        };
        type Count = fn(&engine::report::PortReport) -> u64;
        let by_port: [(&str, &str, Option<&Unit>, Count); 4] = [
            ("port_received", "Packets that came in by a port", None, |port| port.received),
            ("port_received_wire", "Bytes that came in by a port", Some(&Unit::Bytes), |port| {
                port.received_bytes
            }),
            ("port_transmitted", "Packets that left by a port", None, |port| port.transmitted),
            ("port_transmitted_wire", "Bytes that left by a port", Some(&Unit::Bytes), |port| {
                port.transmitted_bytes
            }),
        ];
        for (name, help, unit, of) in by_port {
            counters(out, name, help, unit, ports(&|index| report.ports.get(index).map_or(0, of)))?;
        }
        let of_ports = |wanted: fn(&str) -> bool| -> Vec<(Labels, u64)> {
            let mut rows = Vec::new();
            for (port, labels) in view.ports.iter().zip(&names) {
                let counts = serde_json::to_value(port.since_attached).unwrap_or_default();
                for (why, packets) in counts.as_object().into_iter().flatten() {
                    if let (true, Some(packets)) = (wanted(why.trim_end_matches("_in")), packets.as_u64()) {
                        rows.push(([labels.clone(), vec![("why", why.clone())]].concat(), packets));
                    }
                }
            }
            rows
        };
        counters(
            out,
            "port_lost",
            "Packets lost at a port without the program having a say",
            None,
            // Every way in which a port loses packets, whichever there are.
            of_ports(|why| why != "waiting" && !is_no_loss(why)),
        )?;
        counters(
            out,
            "port_other",
            "Packets that were doubled, damaged, left out of a trace, or meant for other stations: no losses",
            None,
            of_ports(is_no_loss),
        )?;
        gauges(
            out,
            "port_waiting",
            "Packets that are held back at a port now",
            None,
            of_ports(|why| why == "waiting"),
        )?;
        let there =
            ports(&|index| view.ports.get(index).map_or(0, |port| u64::from(port.gone_seconds.is_none())));
        gauges(out, "port_there", "Whether the interface of a port is there", None, there)?;
        let vanished = ports(&|index| view.ports.get(index).map_or(0, |port| port.vanished));
        counters(out, "port_vanished", "How often the interface of a port vanished", None, vanished)?;
        let tables = |of: fn(&engine::report::TableState) -> u64| -> Vec<(Labels, u64)> {
            report.tables.iter().map(|(name, state)| (vec![("table", name.clone())], of(state))).collect()
        };
        gauges(out, "table_entries", "Entries that a table holds", None, tables(|table| table.entries))?;
        gauges(out, "table_capacity", "Entries that a table can hold", None, tables(|table| table.capacity))?;
        counters(out, "table_inserts", "New entries of a table", None, tables(|table| table.inserts))?;
        counters(
            out,
            "table_expired",
            "Entries that went because their time was up",
            None,
            tables(|table| table.expired),
        )?;
        counters(
            out,
            "table_evictions",
            "Entries that went because the table was full",
            None,
            tables(|table| table.evictions),
        )?;
        counters(
            out,
            "table_refused",
            "New entries refused because the table was full",
            None,
            tables(|table| table.refused),
        )
    }
}

/// What is counted at a port beside losses.
fn is_no_loss(why: &str) -> bool {
    matches!(why, "doubled" | "damaged" | "untraced" | "foreign")
}

fn counters(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    rows: Vec<(Labels, u64)>,
) -> fmt::Result {
    family(
        out,
        name,
        help,
        unit,
        MetricType::Counter,
        rows.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value))),
    )
}

fn gauges(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    rows: Vec<(Labels, u64)>,
) -> fmt::Result {
    let rows = rows
        .into_iter()
        .map(|(labels, value)| (labels, ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))));
    family(out, name, help, unit, MetricType::Gauge, rows)
}

fn family<M: EncodeMetric>(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    kind: MetricType,
    rows: impl Iterator<Item = (Labels, M)>,
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, unit, kind)?;
    for (labels, metric) in rows {
        if labels.is_empty() {
            return metric.encode(family);
        }
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::PortView;
    use engine::report::TableState;
    use engine::{Report, Volume};
    use std::collections::BTreeMap;

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
            kernel_routes_unmeant: 3,
            ports: vec![port],
        };
        let values = parsed(&written(view).expect("is written"));
        for (name, value) in [
            ("ravelin_received_total", 7.0),
            ("ravelin_received_wire_bytes_total", 700.0),
            ("ravelin_drops_total{reason=\"no_route\",at=\"r.rav:3 r.rav:9\"}", 3.0),
            ("ravelin_punts_lost_total{reason=\"unresolved\",at=\"\"}", 4.0),
            ("ravelin_table_entries{table=\"hosts\"}", 5.0),
            ("ravelin_port_lost_total{port=\"1\",interface=\"eth\\\"0\",why=\"busy\"}", 0.0),
            ("ravelin_port_waiting{port=\"1\",interface=\"eth\\\"0\",why=\"waiting\"}", 0.0),
            ("ravelin_kernel_routes_unmeant", 3.0),
            ("ravelin_generation", 2.0),
        ] {
            assert_eq!(values.get(name), Some(&value), "{name} in {:#?}", values.keys());
        }
        let lost = values.keys().filter(|name| name.starts_with("ravelin_port_lost"));
        assert!(lost.into_iter().all(|name| !name.contains("doubled") && !name.contains("waiting")));
    }
}
