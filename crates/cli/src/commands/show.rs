//! `ravelin show` and `stop`: asking a gateway that runs.

use crate::arguments::live::{ShowArguments, ShowChoice};
use crate::arguments::socket::Socket;
use crate::commands::{front, show_routing};
use crate::failure::Failure;
use crate::render;
use crate::render::answer::{Interval, list, number, text, whole};
use crate::render::quantity::{bit_rate, count, of, packet_rate, share};
use crate::render::table::{Side, table};
use gateway::control::{self, Asked};
use messages::control::ControlQuestion;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Runs `ravelin show`.
pub(crate) fn run(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return Err(Failure::Usage("--seconds: between 0.01 and 3600".to_owned()));
    }
    if arguments.reached.network.front.is_some() && arguments.what != ShowChoice::Policy {
        let message = "--front: over a network, a gateway tells `policy` and nothing else";
        return Err(Failure::Usage(message.to_owned()));
    }
    let tell = match arguments.what {
        ShowChoice::Run => verdicts,
        ShowChoice::Ports => ports,
        ShowChoice::Tables => tables,
        ShowChoice::Drops => reasons,
        ShowChoice::Leases => leases,
        ShowChoice::Stages | ShowChoice::Latency => return measurement(arguments, json),
        ShowChoice::Policy => return active(arguments, json),
        ShowChoice::Routes | ShowChoice::Neighbours => return show_routing::run(arguments, json),
    };
    let first = view(arguments)?;
    let interval = if arguments.total {
        Interval::new(Value::Null, first)
    } else {
        thread::sleep(Duration::from_secs_f64(arguments.seconds));
        Interval::new(first, view(arguments)?)
    };
    if json {
        let Interval { before, now, seconds } = interval;
        return Ok(render::json(&json!({ "seconds": seconds, "before": before, "now": now }))?);
    }
    Ok(render::text(&tell(&interval))?)
}

/// Runs `ravelin stop`.
pub(crate) fn ask(socket: &Socket, asked: Asked, json: bool) -> Result<(), Failure> {
    let answer = control::ask(&socket.control, asked)?;
    if json {
        return Ok(render::json(&answer)?);
    }
    Ok(render::text(&format!("{}\n", text(&answer, "done")))?)
}

/// Shows which program decides, and what confines the process that runs it.
fn active(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    let mut answer = match front::connected(&arguments.reached.network)? {
        Some(mut session) => front::ask(&mut session, &ControlQuestion::Show)?,
        None => control::ask(&arguments.reached.socket.control, Asked::Active)?,
    };
    let active = answer["active"].take();
    if json {
        return Ok(render::json(&active)?);
    }
    let layers: Vec<_> =
        active["confined_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let confined = match layers.is_empty() {
        true => "not confined".to_owned(),
        false => layers.join(", "),
    };
    let mut told = format!(
        "program     {}, number {} since the start\nsha256      {}\nconfined    {confined}\nreceived    {}\nforwarded   {}\n",
        text(&active, "program"),
        whole(&active, "generation"),
        text(&active, "hash"),
        count(whole(&active, "received")),
        count(whole(&active, "forwarded")),
    );
    if active["policy"].is_object() {
        told.insert_str(0, &signed(&active["policy"]));
    }
    for (what, reasons) in [("dropped", &active["dropped"]), ("punted", &active["punted"])] {
        for (reason, packets) in reasons.as_object().into_iter().flatten() {
            told += &format!("{what:<12}{} {reason}\n", count(packets.as_u64().unwrap_or_default()));
        }
    }
    for (port, reasons) in active["refused"].as_object().into_iter().flatten() {
        for (reason, frames) in reasons.as_object().into_iter().flatten() {
            told += &format!(
                "{:<12}{} {reason} at {port}\n",
                "refused",
                count(frames.as_u64().unwrap_or_default())
            );
        }
    }
    Ok(render::text(&told)?)
}

/// The signed policy that runs.
fn signed(policy: &Value) -> String {
    let mut told =
        format!("policy      version {}, hash {}\n", whole(policy, "version"), text(policy, "hash"));
    for (name, key) in policy["signed_by"].as_object().into_iter().flatten() {
        told += &format!("signed by   {name}, key {}\n", key.as_str().unwrap_or_default());
    }
    told += &match (policy["seconds_left"].as_u64(), policy["before"].as_u64()) {
        (None, _) => "confirmed   yes\n".to_owned(),
        (Some(left), Some(before)) => {
            format!("confirmed   no: version {before} takes over again in {left} s\n")
        }
        (Some(left), None) => format!("confirmed   no: every packet is dropped again in {left} s\n"),
    };
    told
}

/// Has the gateway measure itself for a while.
fn measurement(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    if arguments.seconds > 60.0 {
        let message = "--seconds: stages and latency are measured for at most 60 seconds at a time";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.total {
        let message = "--total: stages and latency are measured only while somebody asks, so there are no figures since the start; --seconds says for how long";
        return Err(Failure::Usage(message.to_owned()));
    }
    let asked = Asked::Measure { seconds: arguments.seconds };
    let mut answer = control::ask(&arguments.reached.socket.control, asked)?;
    let measured = answer["measure"].take();
    if json {
        return Ok(render::json(&measured)?);
    }
    let (workers, packets) = (of(whole(&measured, "workers"), "worker"), count(whole(&measured, "packets")));
    let heading = format!("{workers}, {packets} packets in {:.2} s\n\n", number(&measured, "seconds"));
    let text = match arguments.what {
        ShowChoice::Latency => heading + &latency(&measured["latency"]),
        _ => heading + &stops(&measured) + "\n" + &program_stages(&measured),
    };
    Ok(render::text(&text)?)
}

/// Cells for the time that a stop or stage takes.
fn time_cells(part: &Value) -> [String; 3] {
    [
        format!("{:.1} %", number(part, "share") * 100.0),
        format!("{:.0}", number(part, "cycles_per_packet")),
        format!("{:.1}", number(part, "nanoseconds_per_packet")),
    ]
}

fn stops(measured: &Value) -> String {
    let stops = list(measured, "stops").iter().map(|stop| {
        let mut row = vec![text(stop, "name").to_owned()];
        row.extend(time_cells(stop));
        row
    });
    let columns =
        [Side::Left.columns(&[""]), Side::Right.columns(&["time", "cycles a packet", "ns a packet"])]
            .concat();
    let batches = list(measured, "batches");
    let all: u64 = batches.iter().map(|row| whole(row, "batches")).sum();
    let sizes = batches.iter().map(|row| {
        let size = match whole(row, "least") {
            least @ (1 | 256) => count(least),
            least => format!("{least} to {}", 2 * least - 1),
        };
        let batches = whole(row, "batches");
        vec![size, count(batches), share(batches, all)]
    });
    let sizes_columns = Side::Right.columns(&["packets a batch", "batches", "share"]);
    format!("{}\n{}", table(&columns, stops.collect()), table(&sizes_columns, sizes.collect()))
}

/// What the stages of the program cost, those that no packet came to left out.
fn program_stages(measured: &Value) -> String {
    if let Some(why) = measured["unmeasured"].as_str() {
        return format!("the stages of the program cannot be measured: {why}\n");
    }
    let packets = whole(&measured["program"], "packets");
    if packets == 0 {
        return "no packet came that the stages of the program could be measured with\n".to_owned();
    }
    let stages = list(&measured["program"], "stages").iter();
    let rows = stages.filter(|stage| stage["cycles"] != 0).map(|stage| {
        let between = stage["kind"] == "between";
        let unless_between = |cell: String| if between { String::new() } else { cell };
        let mut row =
            vec![render::seen::stage_name(stage), unless_between(share(whole(stage, "entered"), packets))];
        row.extend(time_cells(stage));
        row.extend(["p50", "p99"].map(|what| unless_between(count(whole(stage, what)))));
        row.push(text(stage, "place").to_owned());
        row
    });
    let numbers = ["packets", "time", "cycles a packet", "ns a packet", "half at most", "99 %"];
    let columns = [
        Side::Left.columns(&["of the program"]),
        Side::Right.columns(&numbers),
        Side::Left.columns(&["place"]),
    ];
    let all = whole(measured, "packets");
    format!("from {} of these packets\n{}", count(packets.min(all)), table(&columns.concat(), rows.collect()))
}

fn latency(measured: &Value) -> String {
    let micros = |what: &str| format!("{:.1} µs", number(measured, what) / 1e3);
    let names = [
        ("min", "shortest"),
        ("p50", "half at most"),
        ("p90", "90 %"),
        ("p99", "99 %"),
        ("p999", "99.9 %"),
        ("max", "longest"),
    ];
    let rows = names.map(|(key, name)| vec![name.to_owned(), micros(key)]).to_vec();
    let packets = count(whole(measured, "packets"));
    format!("{packets} packets left\n\n{}", table(&[("", Side::Left), ("stayed", Side::Right)], rows))
}

fn view(arguments: &ShowArguments) -> Result<Value, Failure> {
    let mut answer = control::ask(&arguments.reached.socket.control, Asked::Picture)?;
    Ok(answer["picture"].take())
}

/// What can be lost at any port, and the columns' names.
const LOSSES: [(&str, &str); 5] = [
    ("ring_full", "ring full"),
    ("too_long", "too long"),
    ("busy", "busy"),
    ("refused", "refused"),
    ("down", "down"),
];

/// What hardly ever happens, and what only ports of VLANs, `shape` and `impair` do.
const RARE_LOSSES: [(&str, &str); 14] = [
    ("unreadable", "unreadable"),
    ("foreign", "for others"),
    ("untagged", "untagged"),
    ("other_vlan", "other vlan"),
    ("not_authentic", "not authentic"),
    ("shaped", "shaped"),
    ("impaired", "impaired"),
    ("doubled", "doubled"),
    ("damaged", "damaged"),
    ("waiting", "waiting"),
    ("impaired_in", "impaired in"),
    ("doubled_in", "doubled in"),
    ("damaged_in", "damaged in"),
    ("waiting_in", "waiting in"),
];

fn rate(interval: &Interval, place: &str) -> String {
    packet_rate(interval.per_second(place) / 1e6)
}

fn bits(interval: &Interval, place: &str) -> String {
    bit_rate(interval.per_second(place) * 8.0 / 1e9)
}

fn heading(interval: &Interval) -> String {
    let Interval { before, now, seconds } = interval;
    let (program, generation) = (text(&now["report"], "program"), &now["generation"]);
    if before.is_null() {
        return format!("{program}, generation {generation}, since it took over {seconds:.1} s ago\n\n");
    }
    format!("{program}, generation {generation}, over {seconds:.2} s\n\n")
}

fn verdicts(interval: &Interval) -> String {
    let received = interval.grown("/report/received/packets");
    let row = |name: &str, packets: String, bits: String| {
        let number = interval.grown(&packets);
        vec![name.to_owned(), count(number), rate(interval, &packets), bits, share(number, received)]
    };
    let of = |what: &str, name: &str| {
        row(name, format!("/report/{what}/packets"), bits(interval, &format!("/report/{what}/bytes")))
    };
    let verdict = |what: &str, name: &str| row(name, format!("/report/verdicts/{what}"), String::new());
    let mut sent = of("transmitted", "sent copies");
    sent[4].clear();
    let rows = vec![
        of("received", "received"),
        of("forwarded", "forwarded"),
        verdict("drop", "dropped"),
        verdict("punt", "punted"),
        sent,
    ];
    let columns = [Side::Left.columns(&[""]), Side::Right.columns(&["packets", "rate", "bits", "share"])];
    heading(interval) + &table(&columns.concat(), rows) + &device(interval)
}

/// What a device did of it, if there is one.
fn device(interval: &Interval) -> String {
    let device = &interval.now["report"]["device"];
    let Some(name) = device["name"].as_str() else { return String::new() };
    let number = |what: &str| interval.grown(&format!("/report/device/{what}"));
    let told = format!(
        "{name} finished {}; {} went to it and were run by the processor in the end, {} did not go to it\n",
        of(number("finished"), "packet"),
        of(number("handed_back") + number("run_again"), "packet"),
        of(number("not_asked"), "packet"),
    );
    match device["failure"].as_str() {
        Some(failure) => format!("{told}given up: {failure}\n"),
        None => told,
    }
}

fn ports(interval: &Interval) -> String {
    let views = list(&interval.now, "ports");
    let lost = |port: usize, what: &str| interval.grown(&format!("/ports/{port}/{what}"));
    // Columns that say nothing of any port would only make the others narrow.
    let rare = RARE_LOSSES.iter().filter(|(what, _)| (0..views.len()).any(|port| lost(port, what) > 0));
    let losses: Vec<_> = LOSSES.iter().chain(rare).collect();
    let rows = views.iter().enumerate().map(|(port, view)| {
        let at = |what: &str| format!("/report/ports/{port}/{what}");
        let mut row = vec![
            (port + 1).to_string(),
            text(view, "interface").to_owned(),
            rate(interval, &at("received")),
            bits(interval, &at("received_bytes")),
            rate(interval, &at("transmitted")),
            bits(interval, &at("transmitted_bytes")),
        ];
        row.extend(losses.iter().map(|(what, _)| count(lost(port, what))));
        row
    });
    let mut columns = vec![("port", Side::Right), ("interface", Side::Left)];
    columns.extend(Side::Right.columns(&["received", "", "sent", ""]));
    columns.extend(losses.iter().map(|(_, name)| (*name, Side::Right)));
    // Too long for a column.
    let attached = (1..).zip(views).map(|(port, view): (u32, _)| {
        let gone = match view["gone_seconds"].as_f64() {
            Some(seconds) => {
                let why = view["gone_because"].as_str().map(|why| format!(" ({why})"));
                format!("its interface has been gone for {seconds:.1} s{}; ", why.unwrap_or_default())
            }
            None => String::new(),
        };
        let untraced = view["untraced_because"].as_str().map(|why| format!("{why}; ")).unwrap_or_default();
        vec![port.to_string(), text(view, "interface").to_owned(), gone + &untraced + text(view, "mode")]
    });
    let attached = table(
        &[("port", Side::Right), ("interface", Side::Left), ("how it is attached", Side::Wrapped)],
        attached.collect(),
    );
    format!(
        "{}{}\n{attached}{}",
        heading(interval),
        table(&columns, rows.collect()),
        hosts(views) + &tunnels(views)
    )
}

/// Registrations of names over tunnels.
fn leases(interval: &Interval) -> String {
    let view = &interval.now["leases"];
    let waypoints = list(view, "waypoints").iter().map(|one| {
        let state = match (one["leased"].as_bool(), one["settled"].as_bool()) {
            (Some(true), Some(true)) => "knows all",
            (Some(true), _) => "is being told",
            _ => "has not answered",
        };
        let refused: Vec<&str> = list(one, "refused").iter().filter_map(Value::as_str).collect();
        vec![text(one, "name").to_owned(), count(whole(one, "names")), state.to_owned(), refused.join(" ")]
    });
    let waypoints: Vec<_> = waypoints.collect();
    let gateways = list(view, "gateways").iter().map(|one| {
        vec![
            text(one, "name").to_owned(),
            count(whole(one, "names")),
            format!("{:.0} s", number(one, "seconds")),
        ]
    });
    let gateways: Vec<_> = gateways.collect();
    let mut said = format!(
        "registered at {}; {} registered here\n",
        of(waypoints.len() as u64, "waypoint"),
        of(gateways.len() as u64, "gateway")
    );
    if !waypoints.is_empty() {
        let columns = [
            ("waypoint", Side::Left),
            ("names", Side::Right),
            ("it", Side::Left),
            ("refused", Side::Wrapped),
        ];
        said += &format!("\n{}", table(&columns, waypoints));
    }
    if !gateways.is_empty() {
        let columns = [("gateway", Side::Left), ("names", Side::Right), ("lease lasts", Side::Right)];
        said += &format!("\n{}", table(&columns, gateways));
    }
    said
}

/// The peers of tunnels, and why datagrams and frames were dropped there.
fn tunnels(views: &[Value]) -> String {
    let tunnels = (1..).zip(views).filter(|(_, view)| view["tunnel"].is_object());
    let (mut peers, mut reasons) = (Vec::new(), Vec::new());
    for (port, view) in tunnels.map(|(port, view): (u32, _)| (port, &view["tunnel"])) {
        for peer in list(view, "peers") {
            let since = peer["handshake_seconds"].as_f64().map(|seconds| format!("{seconds:.0} s ago"));
            let mut row = vec![port.to_string(), whole(peer, "number").to_string()];
            row.extend(["name", "endpoint"].map(|what| text(peer, what).to_owned()));
            row.extend([since.unwrap_or_else(|| "no session".to_owned()), text(peer, "cipher").to_owned()]);
            row.extend(
                ["received", "received_bytes", "sent", "sent_bytes"].map(|what| count(whole(peer, what))),
            );
            peers.push(row);
        }
        for (kind, what) in [("drops", "datagram"), ("refusals", "frame to a peer")] {
            for (reason, number) in view[kind].as_object().into_iter().flatten() {
                let number = number.as_u64().map(count).unwrap_or_default();
                reasons.push(vec![port.to_string(), what.to_owned(), reason.clone(), number]);
            }
        }
    }
    let mut said = String::new();
    if !peers.is_empty() {
        let mut columns = vec![("port", Side::Right), ("peer", Side::Right)];
        columns.extend(Side::Left.columns(&["name", "where it is", "handshake", "cipher"]));
        columns.extend(Side::Right.columns(&["received", "bytes", "sent", "bytes"]));
        said += &format!("\n{}", table(&columns, peers));
    }
    if !reasons.is_empty() {
        let columns =
            [("port", Side::Right), ("dropped", Side::Left), ("reason", Side::Left), ("number", Side::Right)];
        said += &format!("\n{}", table(&columns, reasons));
    }
    said
}

/// What went between the ports and the machine, where it is a host at some.
fn hosts(views: &[Value]) -> String {
    let hosts = (1..).zip(views).filter(|(_, view)| view["host"].is_object());
    let rows: Vec<_> = hosts
        .map(|(port, view): (u32, _)| {
            let host = &view["host"];
            let mut row = vec![port.to_string(), text(host, "interface").to_owned()];
            row.extend(["handed", "refused", "sent", "unsent"].map(|what| count(whole(host, what))));
            row
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut columns = vec![("port", Side::Right), ("host interface", Side::Left)];
    columns.extend(Side::Right.columns(&["to the machine", "refused", "from the machine", "queue full"]));
    format!("\n{}", table(&columns, rows))
}

fn tables(interval: &Interval) -> String {
    let rows = interval.members("/report/tables").map(|(name, state)| {
        let entries = whole(state, "entries");
        let mut row = vec![name.clone(), count(entries), share(entries, whole(state, "capacity"))];
        row.extend(
            ["inserts", "moves", "expired", "evictions", "refused"]
                .map(|what| count(interval.grown(&format!("/report/tables/{name}/{what}")))),
        );
        row
    });
    let numbers = ["entries", "full", "new", "moved", "expired", "evicted", "refused"];
    let columns = [Side::Left.columns(&["table"]), Side::Right.columns(&numbers)].concat();
    heading(interval) + &table(&columns, rows.collect())
}

fn reasons(interval: &Interval) -> String {
    let received = interval.grown("/report/received/packets");
    let mut rows = Vec::new();
    for (kind, what) in [("/report/drops", "drop"), ("/report/punts", "punt"), ("/punts_lost", "lost")] {
        for (name, _) in interval.members(kind) {
            let place = format!("{kind}/{name}");
            let help = match what {
                "lost" => "punted, and without room on the way to control or a share beside others",
                _ => text(&interval.now["reasons"], name),
            };
            let packets = interval.grown(&place);
            let cells = [
                what.to_owned(),
                name.clone(),
                count(packets),
                rate(interval, &place),
                share(packets, received),
                interval.places(name).join(" "),
                help.to_owned(),
            ];
            rows.push((packets, cells.to_vec()));
        }
    }
    rows.sort_by(|(a, _), (b, _)| b.cmp(a));
    if rows.is_empty() {
        return heading(interval) + "nothing was dropped or punted\n";
    }
    let columns = [
        Side::Left.columns(&["", "reason"]),
        Side::Right.columns(&["packets", "rate", "share"]),
        Side::Wrapped.columns(&["in the program", "what it means"]),
    ];
    heading(interval) + &table(&columns.concat(), rows.into_iter().map(|(_, cells)| cells).collect())
}
