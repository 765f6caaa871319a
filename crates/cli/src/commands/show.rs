//! `ravelin show`, `reload` and `stop`: asking a gateway that runs.

use crate::arguments::live::{AskArguments, ShowArguments, ShowChoice};
use crate::commands::show_routing;
use crate::failure::Failure;
use crate::render;
use crate::render::quantity::{bit_rate, count, of, packet_rate, share};
use crate::render::table::{Side, table};
use gateway::ControlError;
use gateway::control::{self, Asked};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Runs `ravelin show`.
pub(crate) fn run(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    if !(0.01..=3600.0).contains(&arguments.seconds) {
        return Err(Failure::Usage("--seconds: between 0.01 and 3600".to_owned()));
    }
    if matches!(arguments.what, ShowChoice::Stages | ShowChoice::Latency) {
        if arguments.seconds > 60.0 {
            let message = "--seconds: stages and latency are measured for at most 60 seconds at a time";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.total {
            let message = "--total: stages and latency are measured only while somebody asks, so there are no figures since the start; --seconds says for how long";
            return Err(Failure::Usage(message.to_owned()));
        }
        return measurement(arguments, json);
    }
    if matches!(arguments.what, ShowChoice::Routes | ShowChoice::Neighbours) {
        return show_routing::run(arguments, json);
    }
    let first = view(arguments)?;
    let interval = if arguments.total {
        Interval { before: Value::Null, seconds: first["seconds"].as_f64().unwrap_or(0.0), now: first }
    } else {
        thread::sleep(Duration::from_secs_f64(arguments.seconds));
        let now = view(arguments)?;
        let seconds = now["seconds"].as_f64().unwrap_or(0.0) - first["seconds"].as_f64().unwrap_or(0.0);
        // Another program has taken over in between: its account began at nothing.
        let same = now["generation"] == first["generation"];
        let seconds = if same { seconds } else { now["seconds"].as_f64().unwrap_or(0.0) };
        Interval { before: if same { first } else { Value::Null }, now, seconds }
    };
    if json {
        let Interval { before, now, seconds } = interval;
        return Ok(render::json(&json!({ "seconds": seconds, "before": before, "now": now }))?);
    }
    let text = match arguments.what {
        ShowChoice::Run => interval.run(),
        ShowChoice::Ports => interval.ports(),
        ShowChoice::Tables => interval.tables(),
        ShowChoice::Drops => interval.reasons(),
        // They are no interval between two pictures.
        ShowChoice::Stages | ShowChoice::Latency | ShowChoice::Routes | ShowChoice::Neighbours => {
            String::new()
        }
    };
    Ok(render::text(&text)?)
}

/// Runs `ravelin reload` and `ravelin stop`.
pub(crate) fn ask(arguments: &AskArguments, asked: Asked, json: bool) -> Result<(), Failure> {
    let answer = control::ask(&arguments.socket.control, asked).map_err(failure)?;
    if json {
        return Ok(render::json(&answer)?);
    }
    Ok(render::text(&format!("{}\n", answer["done"].as_str().unwrap_or_default()))?)
}

/// Has the gateway measure itself for a while.
fn measurement(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    let asked = Asked::Measure { seconds: arguments.seconds };
    let mut answer = control::ask(&arguments.socket.control, asked).map_err(failure)?;
    let measured = answer["measure"].take();
    if json {
        return Ok(render::json(&measured)?);
    }
    let number = |place: &str| measured.pointer(place).and_then(Value::as_f64).unwrap_or(0.0);
    let packets = count(number("/packets") as u64);
    let workers = render::quantity::of(number("/workers") as u64, "worker");
    let heading = format!("{workers}, {packets} packets in {:.2} s\n\n", number("/seconds"));
    let text = match arguments.what {
        ShowChoice::Latency => heading + &latency(&measured["latency"]),
        _ => heading + &stops(&measured) + "\n" + &program_stages(&measured),
    };
    Ok(render::text(&text)?)
}

fn stops(measured: &Value) -> String {
    let number = |row: &Value, what: &str| row[what].as_f64().unwrap_or(0.0);
    let rows = |what: &str| measured[what].as_array().cloned().unwrap_or_default();
    let stops = rows("stops").into_iter().map(|stop| {
        vec![
            stop["name"].as_str().unwrap_or_default().to_owned(),
            format!("{:.1} %", number(&stop, "share") * 100.0),
            format!("{:.0}", number(&stop, "cycles_per_packet")),
            format!("{:.1}", number(&stop, "nanoseconds_per_packet")),
        ]
    });
    let columns = [
        ("", Side::Left),
        ("time", Side::Right),
        ("cycles a packet", Side::Right),
        ("ns a packet", Side::Right),
    ];
    let all: f64 = rows("batches").iter().map(|row| number(row, "batches")).sum();
    let sizes = rows("batches").into_iter().map(|row| {
        let least = number(&row, "least") as u64;
        let size = match least {
            1 | 256 => count(least),
            least => format!("{least} to {}", 2 * least - 1),
        };
        let batches = number(&row, "batches") as u64;
        vec![size, count(batches), share(batches, all as u64)]
    });
    let sizes_columns = [("packets a batch", Side::Right), ("batches", Side::Right), ("share", Side::Right)];
    format!("{}\n{}", table(&columns, stops.collect()), table(&sizes_columns, sizes.collect()))
}

/// What the stages of the program cost, those that no packet came to left out.
fn program_stages(measured: &Value) -> String {
    if let Some(why) = measured["unmeasured"].as_str() {
        return format!("the stages of the program cannot be measured: {why}\n");
    }
    let packets = measured["program"]["packets"].as_u64().unwrap_or(0);
    if packets == 0 {
        return "no packet came that the stages of the program could be measured with\n".to_owned();
    }
    let stages = measured["program"]["stages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows = stages.iter().filter(|stage| stage["cycles"] != 0).map(|stage| {
        let number = |what: &str| stage[what].as_f64().unwrap_or(0.0);
        let (entered, between) = (number("entered") as u64, stage["kind"] == "between");
        let at = |what: &str| if between { String::new() } else { count(number(what) as u64) };
        vec![
            render::seen::stage_name(stage),
            if between { String::new() } else { share(entered, packets) },
            format!("{:.1} %", number("share") * 100.0),
            format!("{:.0}", number("cycles_per_packet")),
            format!("{:.1}", number("nanoseconds_per_packet")),
            at("p50"),
            at("p99"),
            stage["place"].as_str().unwrap_or_default().to_owned(),
        ]
    });
    let columns = [
        ("of the program", Side::Left),
        ("packets", Side::Right),
        ("time", Side::Right),
        ("cycles a packet", Side::Right),
        ("ns a packet", Side::Right),
        ("half at most", Side::Right),
        ("99 %", Side::Right),
        ("place", Side::Left),
    ];
    let all = measured["packets"].as_u64().unwrap_or(0);
    format!("from {} of these packets\n{}", count(packets.min(all)), table(&columns, rows.collect()))
}

fn latency(measured: &Value) -> String {
    let micros = |what: &str| format!("{:.1} µs", measured[what].as_f64().unwrap_or(0.0) / 1e3);
    let names = [
        ("min", "shortest"),
        ("p50", "half at most"),
        ("p90", "90 %"),
        ("p99", "99 %"),
        ("p999", "99.9 %"),
        ("max", "longest"),
    ];
    let rows = names.map(|(key, name)| vec![name.to_owned(), micros(key)]).to_vec();
    let packets = count(measured["packets"].as_u64().unwrap_or(0));
    format!("{packets} packets left\n\n{}", table(&[("", Side::Left), ("stayed", Side::Right)], rows))
}

fn view(arguments: &ShowArguments) -> Result<Value, Failure> {
    let mut answer = control::ask(&arguments.socket.control, Asked::Picture).map_err(failure)?;
    Ok(answer["picture"].take())
}

pub(super) fn failure(error: ControlError) -> Failure {
    Failure::Finding(error.to_string())
}

/// What can be lost at any port, and the columns' names.
const LOSSES: [(&str, &str); 5] = [
    ("ring_full", "ring full"),
    ("too_long", "too long"),
    ("busy", "busy"),
    ("refused", "refused"),
    ("down", "down"),
];

/// What hardly ever happens, and what only `shape` and `impair` do.
const RARE_LOSSES: [(&str, &str); 11] = [
    ("unreadable", "unreadable"),
    ("foreign", "for others"),
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

/// What happened between two pictures of one program, or since it took over.
struct Interval {
    before: Value,
    now: Value,
    seconds: f64,
}

impl Interval {
    /// By how much the number at this place has grown.
    fn grown(&self, place: &str) -> u64 {
        let at = |view: &Value| view.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        at(&self.now).saturating_sub(at(&self.before))
    }

    fn rate(&self, place: &str) -> String {
        packet_rate(self.per_second(place) / 1e6)
    }

    fn bits(&self, place: &str) -> String {
        bit_rate(self.per_second(place) * 8.0 / 1e9)
    }

    fn per_second(&self, place: &str) -> f64 {
        if self.seconds > 0.0 { self.grown(place) as f64 / self.seconds } else { 0.0 }
    }

    fn heading(&self) -> String {
        let program = self.now["report"]["program"].as_str().unwrap_or_default();
        let generation = &self.now["generation"];
        if self.before.is_null() {
            return format!(
                "{program}, generation {generation}, since it took over {:.1} s ago\n\n",
                self.seconds
            );
        }
        format!("{program}, generation {generation}, over {:.2} s\n\n", self.seconds)
    }

    fn run(&self) -> String {
        let received = self.grown("/report/received/packets");
        let row = |name: &str, packets: u64, rate: String, bits: String| {
            vec![name.to_owned(), count(packets), rate, bits, share(packets, received)]
        };
        let of = |what: &str, name: &str| {
            let (packets, bytes) = (format!("/report/{what}/packets"), format!("/report/{what}/bytes"));
            row(name, self.grown(&packets), self.rate(&packets), self.bits(&bytes))
        };
        let verdict = |what: &str, name: &str| {
            let place = format!("/report/verdicts/{what}");
            row(name, self.grown(&place), self.rate(&place), String::new())
        };
        let mut sent = of("transmitted", "sent copies");
        sent[4].clear();
        let rows = vec![
            of("received", "received"),
            of("forwarded", "forwarded"),
            verdict("drop", "dropped"),
            verdict("punt", "punted"),
            sent,
        ];
        let columns = [
            ("", Side::Left),
            ("packets", Side::Right),
            ("rate", Side::Right),
            ("bits", Side::Right),
            ("share", Side::Right),
        ];
        self.heading() + &table(&columns, rows) + &self.device()
    }

    /// What a device did of it, if there is one.
    fn device(&self) -> String {
        let device = &self.now["report"]["device"];
        let Some(name) = device["name"].as_str() else { return String::new() };
        let packets = |what: &str| of(self.grown(&format!("/report/device/{what}")), "packet");
        let text = format!(
            "{name} finished {}; {} went to it and were run by the processor in the end, {} did not go to it\n",
            packets("finished"),
            of(self.grown("/report/device/handed_back") + self.grown("/report/device/run_again"), "packet"),
            packets("not_asked"),
        );
        match device["failure"].as_str() {
            Some(failure) => format!("{text}given up: {failure}\n"),
            None => text,
        }
    }

    fn ports(&self) -> String {
        let ports = self.now["ports"].as_array().map_or(0, Vec::len);
        let lost = |port: usize, what: &str| self.grown(&format!("/ports/{port}/{what}"));
        // Columns that say nothing of any port would only make the others narrow.
        let rare: Vec<_> =
            RARE_LOSSES.into_iter().filter(|(what, _)| (0..ports).any(|port| lost(port, what) > 0)).collect();
        let rows = (0..ports).map(|port| {
            let at = |what: &str| format!("/report/ports/{port}/{what}");
            let text = |what: &str| self.now["ports"][port][what].as_str().unwrap_or_default().to_owned();
            let columns = LOSSES.iter().chain(&rare);
            let mut row = vec![
                (port + 1).to_string(),
                text("interface"),
                self.rate(&at("received")),
                self.bits(&at("received_bytes")),
                self.rate(&at("transmitted")),
                self.bits(&at("transmitted_bytes")),
            ];
            row.extend(columns.map(|(what, _)| count(lost(port, what))));
            row
        });
        let start = ["port", "interface", "received", "", "sent", ""];
        let side = |name| (name, if name == "interface" { Side::Left } else { Side::Right });
        let losses = LOSSES.iter().chain(&rare).map(|&(_, name)| (name, Side::Right));
        let columns: Vec<_> = start.map(side).into_iter().chain(losses).collect();
        // Too long for a column.
        let attached = (0..ports).map(|port| {
            let told = &self.now["ports"][port];
            let text = |what: &str| told[what].as_str().unwrap_or_default();
            let gone = match told["gone_seconds"].as_f64() {
                Some(seconds) => {
                    let why = told["gone_because"].as_str().map(|why| format!(" ({why})"));
                    format!("its interface has been gone for {seconds:.1} s{}; ", why.unwrap_or_default())
                }
                None => String::new(),
            };
            let untraced =
                told["untraced_because"].as_str().map(|why| format!("{why}; ")).unwrap_or_default();
            vec![(port + 1).to_string(), text("interface").to_owned(), gone + &untraced + text("mode")]
        });
        let attached = table(
            &[("port", Side::Right), ("interface", Side::Left), ("how it is attached", Side::Wrapped)],
            attached.collect(),
        );
        format!("{}{}\n{attached}", self.heading(), table(&columns, rows.collect()))
    }

    fn tables(&self) -> String {
        let names = self.now.pointer("/report/tables").and_then(Value::as_object);
        let rows = names.into_iter().flat_map(|tables| tables.iter()).map(|(name, state)| {
            let grown = |what: &str| count(self.grown(&format!("/report/tables/{name}/{what}")));
            let now = |what: &str| state[what].as_u64().unwrap_or(0);
            vec![
                name.clone(),
                count(now("entries")),
                share(now("entries"), now("capacity")),
                grown("inserts"),
                grown("moves"),
                grown("expired"),
                grown("evictions"),
                grown("refused"),
            ]
        });
        let columns = [
            ("table", Side::Left),
            ("entries", Side::Right),
            ("full", Side::Right),
            ("new", Side::Right),
            ("moved", Side::Right),
            ("expired", Side::Right),
            ("evicted", Side::Right),
            ("refused", Side::Right),
        ];
        self.heading() + &table(&columns, rows.collect())
    }

    fn reasons(&self) -> String {
        let received = self.grown("/report/received/packets");
        let mut rows = Vec::new();
        for (kind, what) in [("/report/drops", "drop"), ("/report/punts", "punt"), ("/punts_lost", "lost")] {
            let reasons = self.now.pointer(kind).and_then(Value::as_object);
            for name in reasons.into_iter().flat_map(|reasons| reasons.keys()) {
                let place = format!("{kind}/{name}");
                let places = self.now["places"][name].as_array().into_iter().flatten();
                let places: Vec<&str> = places.filter_map(Value::as_str).collect();
                let help = match what {
                    "lost" => "punted, and there was no room on the way to control",
                    _ => self.now["reasons"][name].as_str().unwrap_or_default(),
                };
                let packets = self.grown(&place);
                let cells = [
                    what.to_owned(),
                    name.clone(),
                    count(packets),
                    self.rate(&place),
                    share(packets, received),
                    places.join(" "),
                    help.to_owned(),
                ];
                rows.push((packets, cells.to_vec()));
            }
        }
        rows.sort_by(|(a, _), (b, _)| b.cmp(a));
        let columns = [
            ("", Side::Left),
            ("reason", Side::Left),
            ("packets", Side::Right),
            ("rate", Side::Right),
            ("share", Side::Right),
            ("in the program", Side::Wrapped),
            ("what it means", Side::Wrapped),
        ];
        if rows.is_empty() {
            return self.heading() + "nothing was dropped or punted\n";
        }
        self.heading() + &table(&columns, rows.into_iter().map(|(_, cells)| cells).collect())
    }
}
