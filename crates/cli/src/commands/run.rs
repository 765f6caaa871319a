//! `ravelin run`: a program over a capture, and what happened to every packet.

use crate::arguments::RunArguments;
use crate::arguments::choices::{DECODE, ORDERS, word_of};
use crate::executing::Executing;
use crate::failure::Failure;
use crate::interruption;
use crate::program::{self, Ready};
use crate::render;
use crate::render::progress::Watched;
use engine::filter::Filter;
use engine::filter::selection::Selection;
use engine::ordering::fragment_order;
use engine::{Finished, Ledger, Report, RunError, Setting, TimedPart, Times, Transmitter, Worker};
use exec::{Backend, BackendKind};
use ir::Program;
use offload::device_queue::DeviceQueue;
use packet::{Batch, Frames, LinkType};
use ports::capture_in::first_link;
use ports::{
    CaptureLinks, CaptureOut, CaptureSource, Ingress, IngressPolicy, MemorySource, OpenError, Order, Receive,
    ReceiveError,
};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// The most bytes of packets that are held in memory to be repeated; a larger file is read again for each
/// repeat.
const HELD: u64 = 1 << 30;

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments, json: bool) -> Result<(), Failure> {
    let policy = policy(&arguments.ingress, arguments.ports)?;
    interruption::heed()?;
    let ready = program::ready(&arguments.program, &arguments.set.options(arguments.decode)?, json)?;
    let most = !ir::FROM_HOST;
    if ready.program.manifest.judges_host && arguments.ports > most {
        return Err(Failure::Usage(format!(
            "--ports: a program that names `from_host` has at most {most} ports"
        )));
    }
    let begin = Instant::now();
    let executing = Executing::new(arguments.back_end, &arguments.schedule);
    let (ports, seed) = (arguments.ports, arguments.seed);
    let here = |back_end| exec::load(&ready.program, back_end, ports, seed);
    let loaded = executing.load(&ready.program, &ready.sources, ports, seed, &here)?;
    anstream::eprint!("{}", loaded.notes);
    let mut backend = loaded.backend;
    let prepare = begin.elapsed();
    let mut out = match &arguments.out {
        Some(directory) => {
            let create = CaptureOut::create(directory, arguments.ports, written_link(arguments));
            Some(create.map_err(|error| Failure::Usage(format!("--out: {error}")))?)
        }
        None => None,
    };
    let mut ledger = Ledger::new(&ready.program, arguments.ports);
    let mut selection = match &arguments.filter {
        Some(text) => Some(Selection::new(filter(text)?, &ready.program, arguments.ports)),
        None => None,
    };
    let begin = Instant::now();
    let mut finished = {
        let mut transmitter =
            out.as_mut().map(|out| Transmitter::new(&ready.program, out as &mut dyn ports::Transmit));
        let mut device_queue = DeviceQueue::new(backend.as_mut(), executing.schedule(), Instant::now());
        let mut order = fragment_order(&ready.program, seed);
        let worker = Worker {
            backend: backend.as_mut(),
            ledger: &mut ledger,
            transmitter: transmitter.as_mut(),
            selection: selection.as_mut(),
            device_queue: device_queue.as_mut(),
            order: order.as_deref_mut(),
        };
        pass(arguments, &ready.program, policy, worker)?
    };
    let load = begin.elapsed().saturating_sub(finished.packets);
    if let Some(Err(error)) = out.map(CaptureOut::finish) {
        finished.error.get_or_insert(error.into());
    }
    let times = Times { compile: ready.compile, prepare, load, packets: finished.packets };
    let report = |ledger: &Ledger| {
        Report::new(setting(arguments), &ready.program, ledger, backend.as_ref(), times)
            .map_err(|error| Failure::Finding(error.to_string()))
    };
    let whole = report(&ledger)?;
    let report = match &selection {
        Some(chosen) => report(&chosen.ledger)?.of_filtered(chosen.text(), &ledger),
        None => whole,
    };
    tell(&report, &ready, finished.error.as_ref(), json)
}

/// The filter that an option spells.
pub(crate) fn filter(text: &str) -> Result<Filter, Failure> {
    Filter::new(text).map_err(|error| Failure::Usage(format!("--filter: {error}")))
}

/// The link type of what is written: that of the first packet. Standard input cannot be looked into first and
/// counts as Ethernet.
fn written_link(arguments: &RunArguments) -> LinkType {
    match arguments.link {
        CaptureLinks::Any if arguments.input != "-" => {
            first_link(&arguments.input).unwrap_or(LinkType::ETHERNET)
        }
        _ => LinkType::ETHERNET,
    }
}

/// The way to choose ports that an option spells.
pub(crate) fn policy(text: &str, ports: u16) -> Result<IngressPolicy, Failure> {
    let policy: IngressPolicy =
        text.parse().map_err(|error| Failure::Usage(format!("--ingress: {error}")))?;
    match policy.largest() {
        port if port > ports => Err(Failure::Usage(format!(
            "--ingress: there is no port {port}; the ports are 1 to {ports}, and --ports makes more"
        ))),
        _ => Ok(policy),
    }
}

/// Opens a capture that the command line names.
pub(crate) fn open(input: &str, links: CaptureLinks, ingress: Ingress) -> Result<CaptureSource, Failure> {
    CaptureSource::open(input, links, ingress).map_err(|error| match &error {
        OpenError::Open { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            match program::similar(Path::new(input)) {
                Some(meant) => {
                    Failure::Usage(format!("there is no capture {input}; did you mean {}?", meant.display()))
                }
                None => Failure::Usage(format!("there is no capture {input}")),
            }
        }
        OpenError::Open { .. } => Failure::Usage(error.to_string()),
        OpenError::Capture { .. } => Failure::Finding(error.to_string()),
    })
}

/// What is said of a run that the user ended.
const INTERRUPTED: &str = "interrupted: the account is of the packets that had run by then";

/// Tells a report, and what ended the run early.
pub(crate) fn tell(
    report: &Report,
    ready: &Ready,
    error: Option<&RunError>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let mut document =
            serde_json::to_value(report).map_err(|error| Failure::Finding(error.to_string()))?;
        if let Some(error) = error {
            document["error"] = json!({ "message": error.to_string(), "offset": offset(error) });
        } else if interruption::is_asked() {
            document["error"] = json!({ "message": INTERRUPTED });
        }
        render::json(&document)?;
    } else {
        render::text(&render::report::report(report, &ready.program, &ready.sources))?;
    }
    let Some(error) = error else {
        if interruption::is_asked() {
            anstream::eprintln!("{INTERRUPTED}");
            return Err(Failure::Interrupted);
        }
        return Ok(());
    };
    let style = anstyle::AnsiColor::Red.on_default().bold();
    anstream::eprintln!("{style}error{style:#}: {error}");
    if matches!(error, RunError::Receive(_)) {
        let packets = render::quantity::of(
            report.filter.as_ref().map_or(report.received, |filter| filter.ran).packets,
            "packet",
        );
        anstream::eprintln!("  what came before it was processed and reported: {packets}");
    }
    Err(Failure::Told)
}

/// Where a capture is damaged, in bytes.
fn offset(error: &RunError) -> Option<u64> {
    match error {
        RunError::Receive(ReceiveError::Capture { source, .. }) => Some(source.offset()),
        _ => None,
    }
}

/// Runs the capture as often as wanted.
fn pass(
    arguments: &RunArguments,
    program: &Program,
    policy: IngressPolicy,
    mut worker: Worker<'_>,
) -> Result<Finished, Failure> {
    let links = arguments.link;
    let by_interface = policy == IngressPolicy::Interface;
    let ingress = Ingress::new(policy, arguments.ports);
    if by_interface && arguments.repeat > 1 {
        // Memory keeps no interfaces, so the file is read again for each repeat.
        if arguments.order != Order::Replay || arguments.input == "-" {
            let message = "--ingress interface repeats a file as a whole: not standard input, and not with --order each";
            return Err(Failure::Usage(message.to_owned()));
        }
        return again_and_again(arguments, links, ingress, &mut worker);
    }
    if arguments.repeat == 1 {
        let mut source = open(&arguments.input, links, ingress)?;
        return Ok(worker.run(&mut Watched::new(&mut source, None), TimedPart::WithoutReceive));
    }
    match held(&arguments.input, links)? {
        Some((frames, damage)) => {
            let restore = program.manifest.writes_packet;
            let mut source = MemorySource::new(frames, arguments.order, arguments.repeat, restore, ingress);
            let total = source.packets();
            let mut finished = worker.run(&mut Watched::new(&mut source, Some(total)), TimedPart::Whole);
            finished.error = finished.error.or(damage.map(RunError::from));
            Ok(finished)
        }
        None if arguments.order == Order::Replay && arguments.input != "-" => {
            again_and_again(arguments, links, ingress, &mut worker)
        }
        None => Err(Failure::Usage(format!(
            "{} holds more than {} of packets, too many to repeat them from memory; use a file with --order replay, or fewer packets",
            arguments.input,
            render::quantity::bytes(HELD)
        ))),
    }
}

/// Reads a capture into memory, as far as it can be read, and says what damage ended it; none if it is too
/// large.
fn held(input: &str, links: CaptureLinks) -> Result<Option<(Frames, Option<ReceiveError>)>, Failure> {
    // Which ports packets enter by is chosen when they are run.
    let mut source = open(input, links, Ingress::new(IngressPolicy::RoundRobin, 1))?;
    let mut frames = Frames::new();
    let mut batch = Batch::new();
    let mut bytes = 0;
    loop {
        let memory = match source.receive(&mut batch) {
            Ok(_) if batch.is_empty() || interruption::is_asked() => return Ok(Some((frames, None))),
            Ok(memory) => memory,
            Err(damage) => return Ok(Some((frames, Some(damage)))),
        };
        for index in 0..batch.len {
            let frame = batch.bytes(memory, index).unwrap_or_default();
            bytes += frame.len() as u64;
            frames.push(frame, batch.wire[index], batch.time[index]);
        }
        if bytes > HELD {
            return Ok(None);
        }
    }
}

/// Reads the file once for each repeat. Ports are chosen as if it were one long capture.
fn again_and_again(
    arguments: &RunArguments,
    links: CaptureLinks,
    mut ingress: Ingress,
    worker: &mut Worker<'_>,
) -> Result<Finished, Failure> {
    let mut packets = Duration::ZERO;
    for _ in 0..arguments.repeat {
        let capture = open(&arguments.input, links, ingress.clone())?;
        let mut source = Entering { capture, ingress: &mut ingress };
        let finished = worker.run(&mut Watched::new(&mut source, None), TimedPart::WithoutReceive);
        packets += finished.packets;
        if finished.error.is_some() || interruption::is_asked() {
            return Ok(Finished { packets, ..finished });
        }
    }
    Ok(Finished { packets, error: None })
}

/// A capture whose packets enter by ports that are chosen beyond its end.
struct Entering<'a> {
    capture: CaptureSource,
    ingress: &'a mut Ingress,
}

impl Receive for Entering<'_> {
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        let memory = self.capture.receive(batch)?;
        self.ingress.assign(memory, batch);
        Ok(memory)
    }
}

fn setting(arguments: &RunArguments) -> Setting {
    Setting {
        program: arguments.program.display().to_string(),
        capture: if arguments.input == "-" { "standard input".into() } else { arguments.input.clone() },
        decode: word_of(&DECODE, arguments.decode).into(),
        ingress: arguments.ingress.clone(),
        order: word_of(&ORDERS, arguments.order).into(),
        repeat: arguments.repeat,
        seed: arguments.seed,
    }
}

/// Runs packets that lie in memory and reports.
pub(crate) fn from_memory(
    ready: &Ready,
    setting: Setting,
    frames: Frames,
    ports: u16,
    mut times: Times,
) -> Result<Report, Failure> {
    let begin = Instant::now();
    let mut backend = exec::load(&ready.program, BackendKind::Native, ports, setting.seed)
        .map_err(|error| Failure::Finding(format!("{}: {error}", ready.program.name)))?;
    times.prepare = begin.elapsed();
    let mut ledger = Ledger::new(&ready.program, ports);
    let ingress = Ingress::new(IngressPolicy::RoundRobin, ports);
    let restore = ready.program.manifest.writes_packet;
    let mut source = MemorySource::new(frames, Order::Replay, setting.repeat, restore, ingress);
    let total = source.packets();
    let backend: &mut dyn Backend = backend.as_mut();
    let mut order = fragment_order(&ready.program, setting.seed);
    let mut worker = Worker {
        backend: &mut *backend,
        ledger: &mut ledger,
        transmitter: None,
        selection: None,
        device_queue: None,
        order: order.as_deref_mut(),
    };
    times.packets = worker.run(&mut Watched::new(&mut source, Some(total)), TimedPart::Whole).packets;
    Report::new(setting, &ready.program, &ledger, backend, times)
        .map_err(|error| Failure::Finding(error.to_string()))
}
