//! Shows single packets of a running gateway: those that match a filter, as they come, and the last ones that
//! were dropped or punted.

use crate::control::ControlAnswer;
use engine::filter::{Decided, Filter, FilterError};
use engine::live::{Example, Remote, Seen, Wish};
use engine::places;
use engine::steps::{Recorder, TraceStep, told};
use exec::{Backend, EntryPlace, Interpreter, Outputs};
use ir::source::Sources;
use ir::{Entry, Program};
use packet::describe::describe;
use packet::{Batch, Verdict, VerdictKind};
use ports::live::clock::{Clock, MachineClock};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest duration of a watch, in seconds.
const LONGEST: f64 = 86_400.0;
/// How often the gateway sends a sign to a client that gets no packets; a failed write shows that the client
/// is gone.
const SIGN: Duration = Duration::from_secs(1);
/// The largest number of entries in all tables for which `why` finds the path of a packet, since it does so
/// on copies of the tables.
const ENTRIES: u64 = 10_000;

/// The largest number of entries, or packets, that are copied between two batches.
const PART: usize = 256;

/// The request of a watch: which packets to show, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchWish {
    /// The filter that holds for them.
    #[serde(default)]
    pub filter: String,
    /// At most so many.
    pub count: Option<u64>,
    /// The duration of the watch, in seconds.
    pub seconds: Option<f64>,
    /// How many bytes of each packet to show; all by default.
    pub snap: Option<u32>,
    /// Whether to show every step of the program.
    #[serde(default)]
    pub steps: bool,
}

/// A packet, with its verdict and what left because of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PacketView {
    /// When it came in, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// The port that it came in by.
    pub port: u16,
    /// Its length on the wire.
    pub wire: u32,
    /// Its bytes in hexadecimal, as many as were kept.
    pub bytes: String,
    /// A description of the packet in one line.
    pub packet: String,
    /// `send`, `flood`, `multicast`, `punt` or `drop`.
    pub verdict: &'static str,
    /// The reason for which it was dropped or punted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The help text of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The lines of the program where packets are dropped or punted for this reason; only the right line, if
    /// it is known.
    pub places: Vec<String>,
    /// The ports by which it left.
    pub out: Vec<u16>,
    /// The steps of its run, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<TraceStep>>,
}

/// How watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// Packets that were shown.
    pub packets: u64,
    /// Packets that may have matched the filter and found no room on their way to the client.
    pub lost: u64,
}

/// Shows packets until the requested number has come, the time is over, or the client disconnects.
pub(crate) fn watch(
    remote: &Remote,
    wanted: &WatchWish,
    say: &mut dyn FnMut(&ControlAnswer) -> io::Result<()>,
) -> ControlAnswer {
    let seconds = wanted.seconds.unwrap_or(LONGEST);
    if !(0.01..=LONGEST).contains(&seconds) {
        return ControlAnswer::Error(format!("`seconds`: between 0.01 and {LONGEST}"));
    }
    let filters: Result<Vec<Filter>, FilterError> =
        (0..remote.workers()).map(|_| Filter::new(&wanted.filter)).collect();
    let filters = match filters {
        Ok(filters) => filters,
        Err(error) => return ControlAnswer::Error(error.to_string()),
    };
    let most = wanted.count.unwrap_or(u64::MAX);
    let steps = wanted.steps.then(|| u32::try_from(most).unwrap_or(u32::MAX));
    let snap = wanted.snap.unwrap_or(u32::MAX);
    let wish = Wish { snap, duration: Duration::from_secs_f64(seconds), steps };
    let Some(watching) = remote.watch(filters, wish) else {
        return ControlAnswer::Error("the packet loop has ended".to_owned());
    };
    if say(&ControlAnswer::Watching(true)).is_err() {
        return ControlAnswer::Error("the client has gone".to_owned());
    }
    let (mut packets, mut last) = (0, Instant::now());
    let mut places: Option<(Arc<Program>, Vec<Vec<String>>)> = None;
    while packets < most {
        let said = match watching.next(SIGN) {
            Ok(Some(seen)) => {
                let known = places.take().filter(|(program, _)| Arc::ptr_eq(program, &seen.program));
                let of = known.unwrap_or_else(|| {
                    (seen.program.clone(), places::of_reasons(&seen.program, &seen.sources))
                });
                let view = view(seen, &of.1);
                places = Some(of);
                packets += 1;
                say(&ControlAnswer::Packet(Box::new(view)))
            }
            Ok(None) if last.elapsed() >= SIGN => say(&ControlAnswer::Watching(true)),
            Ok(None) => Ok(()),
            Err(_) => break,
        };
        if said.is_err() {
            break;
        }
        last = Instant::now();
    }
    ControlAnswer::Watched(Watched { packets, lost: watching.lost() })
}

fn view(seen: Seen, places: &[Vec<String>]) -> PacketView {
    let Seen { port, time, ref bytes, wire, verdict, ref out, .. } = seen;
    let steps = seen.steps.as_ref().map(|moments| told(&seen.program, &seen.sources, moments));
    let mut view = of_packet(time, port, wire, bytes, verdict, &seen.program, places);
    view.out.clone_from(out);
    if let Some(place) = steps.as_deref().and_then(last_place).filter(|_| view.reason.is_some()) {
        view.places = vec![place];
    }
    PacketView { steps, ..view }
}

/// The place of the last step that has one.
fn last_place(steps: &[TraceStep]) -> Option<String> {
    steps.iter().rev().map(|step| step.place.clone()).find(|place| !place.is_empty())
}

fn of_packet(
    time: u64,
    port: u16,
    wire: u32,
    bytes: &[u8],
    verdict: Verdict,
    program: &Program,
    places: &[Vec<String>],
) -> PacketView {
    let number = verdict.reason().map(usize::from);
    let reason = number.and_then(|number| program.reasons.get(number));
    PacketView {
        time: MachineClock.now().on_wall(time),
        port,
        wire,
        bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        packet: describe(bytes, wire),
        verdict: name(verdict.kind()),
        reason: reason.map(|reason| reason.name.clone()),
        help: reason.map(|reason| reason.help.clone()),
        places: number.and_then(|number| places.get(number)).cloned().unwrap_or_default(),
        out: Vec::new(),
        steps: None,
    }
}

fn name(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Pending => "none",
        VerdictKind::Send => "send",
        VerdictKind::Flood => "flood",
        VerdictKind::Multicast => "multicast",
        VerdictKind::Punt => "punt",
        VerdictKind::Drop => "drop",
    }
}

/// The copy of a worker's last dropped packets and table entries.
struct Kept {
    program: Arc<Program>,
    sources: Arc<Sources>,
    ports: u16,
    examples: Vec<(usize, Example)>,
    /// The entries of the tables; `None` if there are too many.
    held: Option<Vec<Vec<Entry>>>,
}

/// These copies from all workers, made part by part, so that a worker copies only a few entries or packets
/// between two batches. `None` if a worker has ended.
fn kept(remote: &Remote) -> Option<Vec<Kept>> {
    let mut entries = 0;
    let begun = remote.ask(|generation, _| {
        let entries: u64 = generation.backend.running_tables().iter().map(|table| table.entries).sum();
        let kept = Kept {
            program: generation.program.clone(),
            sources: generation.sources.clone(),
            ports: generation.ledger.ports(),
            examples: Vec::new(),
            held: None,
        };
        (generation.number, entries, kept)
    })?;
    let number = begun.first()?.0;
    let mut all: Vec<Kept> = Vec::with_capacity(begun.len());
    for (_, held, kept) in begun {
        entries = entries.max(held);
        all.push(kept);
    }
    for part in 0.. {
        let from = part * PART;
        let parts = remote.ask(move |generation, _| {
            let kept = generation.recent.examples().skip(from).take(PART);
            let part: Vec<_> = kept.map(|(reason, example)| (reason, *example)).collect();
            (generation.number, part)
        })?;
        // Packets of an earlier program do not belong to this one.
        let mut more = false;
        for (kept, (of, part)) in all.iter_mut().zip(parts) {
            if of == number {
                more |= part.len() == PART;
                kept.examples.extend(part);
            }
        }
        if !more {
            break;
        }
    }
    if entries > ENTRIES {
        return Some(all);
    }
    let tables = all.first()?.program.tables.len() as u32;
    let mut held = vec![Vec::new(); all.len()];
    for table in 0..tables {
        // Each worker has its own entries, and its own place in them for the next part.
        let mut next = vec![Some(EntryPlace::default()); all.len()];
        held.iter_mut().for_each(|tables: &mut Vec<Vec<Entry>>| tables.push(Vec::new()));
        while next.iter().any(Option::is_some) {
            let parts = remote.ask_each(next, move |generation, from| {
                let part = from.map(|from| generation.backend.entries_part(table, from, PART));
                (generation.number, part.unwrap_or_default())
            })?;
            next = Vec::with_capacity(parts.len());
            for (tables, (of, (part, further))) in held.iter_mut().zip(parts) {
                if of != number {
                    return Some(all);
                }
                tables.last_mut()?.extend(part);
                next.push(further);
            }
        }
    }
    all.iter_mut().zip(held).for_each(|(kept, held)| kept.held = Some(held));
    Some(all)
}

/// The last packets that were dropped or punted and that match a filter, oldest first.
pub(crate) fn why(remote: &Remote, filter: &str, last: u64) -> ControlAnswer {
    let mut filter = match Filter::new(filter) {
        Ok(filter) => filter,
        Err(error) => return ControlAnswer::Error(error.to_string()),
    };
    let Some(parts) = kept(remote) else {
        return ControlAnswer::Error("the packet loop has ended".to_owned());
    };
    let places: Vec<_> = parts.iter().map(|part| places::of_reasons(&part.program, &part.sources)).collect();
    let mut found = Vec::new();
    for (part, places) in parts.iter().zip(&places) {
        for (reason, example) in &part.examples {
            let number = *reason as u16;
            let verdict = if example.punted { Verdict::punt(number) } else { Verdict::drop(number) };
            let name = part.program.reasons.get(*reason).map(|reason| reason.name.as_str());
            let (bytes, wire, port) = (example.bytes(), example.wire, example.port);
            if holds(&mut filter, &Decided { bytes, wire, port, verdict, reason: name }) {
                found.push((part, places, example, verdict));
            }
        }
    }
    found.sort_by_key(|(_, _, example, _)| example.time);
    let first = found.len().saturating_sub(usize::try_from(last).unwrap_or(usize::MAX));
    // To find a path, a whole program with its tables is needed, so only the paths of packets that are shown
    // are found.
    let shown = found.split_off(first).into_iter().map(|(part, places, example, verdict)| {
        let (time, port, wire) = (example.time, example.port, example.wire);
        let mut view = of_packet(time, port, wire, example.bytes(), verdict, &part.program, places);
        view.steps = path(part, example, verdict);
        if let Some(place) = view.steps.as_deref().and_then(last_place) {
            view.places = vec![place];
        }
        view
    });
    ControlAnswer::Why(shown.collect())
}

fn holds(filter: &mut Filter, packet: &Decided<'_>) -> bool {
    let (mut batch, mut chosen) = (Batch::new(), Vec::new());
    let mut memory = batch.hold_one(packet.bytes, packet.wire, packet.port, 0);
    filter.choose(&mut memory, &mut batch, &mut chosen);
    !chosen.is_empty() && filter.holds(packet)
}

/// The steps of a dropped packet, found on a copy of the program's present state; `None` if the packet would
/// not be dropped for this reason now.
fn path(part: &Kept, example: &Example, verdict: Verdict) -> Option<Vec<TraceStep>> {
    let held = part.held.as_ref()?;
    let mut interpreter =
        Interpreter::with_observer(&part.program, part.ports, 0, Recorder::default()).ok()?;
    for (table, entries) in (0..).zip(held) {
        interpreter.control_mut().replace(table, entries.clone()).ok()?;
    }
    let bytes = example.bytes();
    let mut batch = Batch::new();
    let mut memory = batch.hold_one(bytes, example.wire, example.port, example.time);
    interpreter.observer().want(0, bytes.to_vec());
    interpreter.run(&mut memory, &mut batch, &mut Outputs::default());
    let moments = interpreter.observer().take().pop()?.1;
    (batch.verdict[0] == verdict).then(|| told(&part.program, &part.sources, &moments))
}
