//! `lab switch-apps`: the four applications of the thesis over its three captures, by the programs that ship
//! and as the thesis has them, beside hand-written Rust and an empty program.
//!
//! The programs that ship drop hairpins and let entries end, and change no packet. Those of the thesis count
//! the TTL down, so they get copies of packets, as they did there; an empty program tells what copies cost.

use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::{Contender, Group, Measured, Pass, SEED, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::{EMPTY, compile, compiled};
use crate::shares::Shares;
use crate::thesis::{self, Published, ThesisApplication};
use crate::traffic::{LabError, first};
use crate::twins::{Firewall, Inlined, MacSwitch, Pointed};
use exec::{Backend, BackendKind};
use ir::Program;
use lang::pipeline::Decode;
use ports::Order;

/// Packets of which `each` uses the first ones, since it repeats every one many times.
const EACH: usize = 14_261;

/// What the empty program is called.
const HARNESS: &str = "harness alone";

const POINTED: &str = "hand-written Rust by pointer";
const INLINED: &str = "hand-written Rust inlined";

/// A program and the ports it is run with.
struct App {
    name: String,
    program: Program,
    ports: u16,
    back_end: BackendKind,
    /// What it is in the thesis.
    paper: Option<ThesisApplication>,
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let (shipped, published) = (shipped()?, published()?);
    let mut rows = Vec::new();
    for capture in &plan.captures {
        progress("reading or making a capture");
        let traffic = capture.load(plan.quick)?;
        rows.extend(Shares::of(&traffic).rows(&traffic.name, traffic.sample.and_then(thesis::sample)));
        let paper = |app: &App| app.paper?.published(traffic.sample?);
        let few = traffic.frames.len() > EACH;
        let each = first(&traffic.frames, EACH);
        for (order, name, frames) in [
            (Order::Replay, "replay".to_owned(), traffic.frames),
            (Order::Each, if few { format!("each of the first {EACH}") } else { "each".to_owned() }, each),
        ] {
            progress(&format!("switch-apps: {}, {name}", traffic.name));
            let mut workload = Workload::new(frames, order, 5);
            for (apps, copies) in [(&shipped, false), (&published, true)] {
                workload.set_copies(copies);
                let mut groups = Vec::new();
                for app in apps {
                    groups.push((group(app).map_err(LabError::Program)?, app.ports));
                }
                let measured = rounds(&mut workload, &mut groups, plan);
                for (app, measured) in apps.iter().zip(measured) {
                    let case = format!("{}, {name}, {}", traffic.name, app.name);
                    rows.extend(app_rows(&case, measured, paper(app)));
                }
            }
        }
    }
    Ok(rows)
}

/// The programs that ship, and an empty one.
fn shipped() -> Result<Vec<App>, LabError> {
    let mut apps = Vec::new();
    for (application, file, back_end) in [
        (ThesisApplication::Wire, "wire", BackendKind::Native),
        (ThesisApplication::Mac, "mac_switch", BackendKind::Native),
        (ThesisApplication::Ipv4, "ipv4_switch", BackendKind::Native),
        (ThesisApplication::Firewall, "firewall", BackendKind::Native),
        (ThesisApplication::Firewall, "firewall", BackendKind::Bytecode),
        (ThesisApplication::Firewall, "firewall", BackendKind::Interpreter),
    ] {
        let program = compiled(file, Decode::Lazy).map_err(LabError::Program)?;
        let (how, paper) = match back_end {
            BackendKind::Native => ("", Some(application)),
            BackendKind::Bytecode => (" as bytecode", None),
            BackendKind::Interpreter => (" by the interpreter", None),
        };
        let name = format!("{}{how}", application.name());
        apps.push(App { name, program, ports: application.ports(), back_end, paper });
    }
    apps.push(empty("an empty program")?);
    Ok(apps)
}

/// Those of the thesis, over copies of packets, and an empty one.
fn published() -> Result<Vec<App>, LabError> {
    let mut apps = Vec::new();
    let wire = compiled("wire", Decode::Lazy);
    let programs = thesis::PROGRAMS
        .map(|(name, application, text)| (application, compile(name, text, Decode::Declared)));
    for (application, program) in [(ThesisApplication::Wire, wire)].into_iter().chain(programs) {
        apps.push(App {
            name: format!("{} as in the thesis", application.name()),
            program: program.map_err(LabError::Program)?,
            ports: application.ports(),
            back_end: BackendKind::Native,
            paper: Some(application),
        });
    }
    apps.push(empty("an empty program over copies")?);
    Ok(apps)
}

/// A program that does nothing, which tells what the harness costs.
fn empty(what: &str) -> Result<App, LabError> {
    let program = compile("empty", EMPTY, Decode::Lazy).map_err(LabError::Program)?;
    let name = format!("{HARNESS} ({what})");
    Ok(App { name, program, ports: 5, back_end: BackendKind::Native, paper: None })
}

/// The program and, where there are any, its twins.
fn group(app: &App) -> Result<Group<'_>, String> {
    let program = &app.program;
    let mut contenders = vec![Contender::loaded(program, app.back_end, app.ports)?];
    if app.back_end == BackendKind::Native {
        contenders.extend(twins(program)?);
    }
    Ok(Group::new(contenders))
}

/// The hand-written versions of a program, if it has any.
pub(crate) fn twins(program: &Program) -> Result<Vec<Contender<'_>>, String> {
    let (pointed, inlined): (Box<dyn Backend>, Box<dyn Backend>) = match program.name.as_str() {
        "mac_switch" => (
            Box::new(Pointed::new(MacSwitch::new(program, SEED)?, program)),
            Box::new(Inlined::new(MacSwitch::new(program, SEED)?, program)),
        ),
        "firewall" => (
            Box::new(Pointed::new(Firewall::new(program, SEED)?, program)),
            Box::new(Inlined::new(Firewall::new(program, SEED)?, program)),
        ),
        _ => return Ok(Vec::new()),
    };
    Ok(vec![Contender::other(POINTED, program, pointed), Contender::other(INLINED, program, inlined)])
}

/// The rows of one program: its four figures, and how it stands against each of its twins.
pub(crate) fn app_rows(
    case: &str,
    measured: Result<Vec<Measured>, String>,
    paper: Option<Published>,
) -> Vec<Row> {
    const RATE: &str = "packet rate";
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return vec![Row::refused(case, RATE, "Mpps", &why)],
    };
    let Some((ours, others)) = measured.split_first() else { return Vec::new() };
    let other = |measured: &Measured| Some(Other::of(measured.name, measured.figure(Pass::mpps)?));
    let rate =
        || Row::alone(case, RATE, "Mpps", ours.figure(Pass::mpps), paper.map(|paper| paper.packet_rate));
    let mut rows = Vec::new();
    match others.split_first() {
        None => rows.push(rate()),
        Some((nearest, further)) => {
            rows.push(rate().against(other(nearest), Better::More));
            rows.extend(
                further
                    .iter()
                    .map(|further| Row { paper: None, ..rate().against(other(further), Better::More) }),
            );
        }
    }
    let figure = |value: fn(&Pass) -> f64| -> Option<Figure> { ours.figure(value) };
    if case.contains(HARNESS) {
        rows.push(Row::alone(case, "time of a packet", "ns", figure(Pass::nanoseconds), None));
    }
    let data_rate = paper.map(|paper| paper.data_rate);
    rows.push(Row::alone(case, "data rate", "Gbit/s", figure(Pass::gbps), data_rate));
    let throughput = paper.map(|paper| paper.throughput);
    rows.push(Row::alone(case, "throughput", "Gbit/s", figure(Pass::forwarded_gbps), throughput));
    let share = paper.map(|paper| paper.forwarded());
    rows.push(Row::alone(case, "bytes forwarded", "%", figure(Pass::forwarded_share), share));
    rows
}
