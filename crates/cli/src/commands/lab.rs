//! `ravelin lab`: experiments, as tables, as JSON and as a page.

mod transfer;

use crate::arguments::{ExperimentChoice, LabArguments};
use crate::failure::Failure;
use crate::program;
use crate::render;
use crate::render::quantity::of;
use crate::render::table::{Side, table};
use lab::{Experiment, ExperimentKind, LabError, LabPlan, Length, Machine, Row, TablesPlan, TrafficCapture};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Runs of each figure, and the seconds of one, unless the command line says otherwise.
const RUNS: usize = 5;
const SECONDS: f64 = 0.3;
/// The seconds of one run over network interfaces.
const LIVE_SECONDS: f64 = 1.0;
/// How long the gateway runs that is to run for a long time.
const SOAK_SECONDS: f64 = 600.0;
/// The seconds of one run on a device: there are many.
const DEVICE_SECONDS: f64 = 0.05;
/// The same of the transfer ladder, whose figures are to come out alike in two runs.
const TRANSFER_SECONDS: f64 = 0.2;
/// The same with `--quick`.
const QUICK_RUNS: usize = 3;
const QUICK_SECONDS: f64 = 0.03;

/// The unit of bit rates.
const GBPS: &str = "Gbit/s";

/// Runs the command.
pub(crate) fn run(arguments: &LabArguments, json: bool) -> Result<(), Failure> {
    if arguments.experiments.contains(&ExperimentChoice::Gpu) {
        return super::lab_gpu::run(arguments, json);
    }
    if let (Some(page), false) = (&arguments.html, arguments.draw.is_empty()) {
        return draw(&arguments.draw, page);
    }
    if let (Some(reports), Some(pages)) = (&arguments.studies, &arguments.out) {
        return studies(reports, pages);
    }
    let plan = plan(arguments);
    if let Some(path) = &arguments.html {
        // Before anything is measured, since that may take minutes.
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.map_err(|error| cannot_write(path, &error))?;
    }
    let pinned = if plan.kinds.iter().any(|kind| kind.in_memory()) { lab::pin() } else { None };
    let machine = machine(pinned);
    let bar = io::stderr().is_terminal().then(indicatif::ProgressBar::new_spinner);
    let mut progress = |what: &str| {
        if let Some(bar) = &bar {
            bar.set_message(what.to_owned());
            bar.tick();
        }
    };
    let experiments = lab::run(&plan, &machine, &mut progress).map_err(|error| match error {
        LabError::Open(ports::OpenError::Open { .. })
        | LabError::Empty(_)
        | LabError::Tables(_)
        | LabError::Device(_) => Failure::Usage(error.to_string()),
        error => Failure::Finding(error.to_string()),
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if let Some(path) = &arguments.html {
        fs::write(path, lab::page(&experiments)).map_err(|error| cannot_write(path, &error))?;
    }
    if json {
        match &experiments[..] {
            [one] => render::json(one)?,
            several => render::json(&several)?,
        }
    } else {
        for experiment in &experiments {
            render::text(&text(experiment))?;
        }
        if machine.build == "debug" {
            anstream::eprintln!(
                "warning: this is a debug build; figures of `cargo run --release` mean something"
            );
        }
    }
    let missing =
        experiments.iter().flat_map(|experiment| &experiment.rows).filter(|row| row.is_missing()).count();
    if missing > 0 {
        let what = of(missing as u64, "row");
        return Err(Failure::Documented(format!("{what} without a figure; each says why")));
    }
    Ok(())
}

/// Writes the page of reports that were measured before, those of `lab gpu` among them.
fn draw(reports: &[PathBuf], page: &Path) -> Result<(), Failure> {
    let mut experiments = Vec::new();
    for path in reports {
        experiments.extend(report(path)?);
    }
    fs::write(page, lab::page(&experiments)).map_err(|error| cannot_write(page, &error))
}

/// Writes the pages of studies, of the reports in a folder.
fn studies(folder: &Path, pages: &Path) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for name in lab::reports_of_studies().map_err(Failure::Finding)? {
        let report = report(&folder.join(&name))?;
        reports.push((name, report));
    }
    let made = lab::study_pages(reports).map_err(Failure::Finding)?;
    fs::create_dir_all(pages).map_err(|error| cannot_write(pages, &error))?;
    for (name, text) in &made.files {
        let path = pages.join(name);
        fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
    }
    let lines: Vec<String> =
        made.counts.iter().map(|(name, counts)| format!("{name}: {}\n", counts.line())).collect();
    render::text(&lines.concat())?;
    Ok(())
}

fn report(path: &Path) -> Result<Vec<Experiment>, Failure> {
    lab::read_report(&program::read(path)?).map_err(|error| {
        Failure::Usage(format!("{} is no report of `ravelin lab --json`: {error}", path.display()))
    })
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot write {}: {error}", path.display()))
}

fn plan(arguments: &LabArguments) -> LabPlan {
    let mut kinds: Vec<ExperimentKind> = Vec::new();
    let asked = arguments.experiments.iter().flat_map(|choice| match choice {
        ExperimentChoice::One(kind) => std::slice::from_ref(kind),
        // It is run by itself.
        ExperimentChoice::Gpu => &[],
        ExperimentChoice::All => &ExperimentKind::ALL[..],
    });
    for kind in asked {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    let captures = match &arguments.capture[..] {
        [] => TrafficCapture::defaults(),
        files => files.iter().map(|file| TrafficCapture::parse(file)).collect(),
    };
    let live = !kinds.iter().any(|kind| kind.in_memory());
    let usual = match (arguments.quick, live) {
        (false, _) if kinds == [ExperimentKind::Transfer] => (RUNS, TRANSFER_SECONDS),
        _ if kinds.iter().all(|kind| kind.on_device()) => {
            if arguments.quick {
                (1, DEVICE_SECONDS / 10.0)
            } else {
                (QUICK_RUNS, DEVICE_SECONDS)
            }
        }
        _ if kinds == [ExperimentKind::Soak] => {
            (1, if arguments.quick { LIVE_SECONDS } else { SOAK_SECONDS })
        }
        (true, _) => (QUICK_RUNS, QUICK_SECONDS),
        (false, true) => (RUNS, LIVE_SECONDS),
        (false, false) => (RUNS, SECONDS),
    };
    let length = match (arguments.repeat, arguments.seconds) {
        (Some(repeat), _) => Length::Repeat(repeat),
        (None, seconds) => Length::Seconds(seconds.unwrap_or(usual.1)),
    };
    let runs = arguments.runs.map_or(usual.0, |runs| usize::try_from(runs).unwrap_or(usize::MAX));
    let gateways = arguments.gateway.clone();
    let device = arguments.device.unwrap_or_default();
    let tables = tables(arguments);
    let (quick, simulated) = (arguments.quick, arguments.simulated.clone());
    let (prefixes, guest) = (arguments.prefixes.clone(), arguments.guest.clone());
    LabPlan {
        kinds,
        captures,
        runs,
        length,
        quick,
        tables,
        gateways,
        prefixes,
        guest,
        device,
        until: None,
        simulated,
    }
}

fn tables(arguments: &LabArguments) -> TablesPlan {
    TablesPlan {
        kinds: arguments.table.clone(),
        peers: arguments.peers,
        routes: arguments.routes.clone(),
        rules: arguments.rules.clone(),
        patterns: arguments.patterns.clone(),
        payload: arguments.payload.clone(),
    }
}

/// The machine, as it stands with every figure; `pinned` is the processor that this thread is held on.
pub(super) fn machine(pinned: Option<usize>) -> Machine {
    // Elsewhere than on Linux these files do not exist, and the machine is described without them.
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut command: Vec<String> = std::env::args().collect();
    if let Some(program) = command.first_mut() {
        "ravelin".clone_into(program);
    }
    let described = Machine::describe(&read("/proc/cpuinfo"), &read("/proc/sys/kernel/osrelease"));
    Machine {
        pinned,
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: command.join(" "),
        ..described
    }
}

/// An experiment as people read it: a table for each traffic and order.
fn text(experiment: &Experiment) -> String {
    let bold = anstyle::Style::new().bold();
    let machine = &experiment.machine;
    let mut text = format!("\n{bold}{}{bold:#}\n", experiment.experiment);
    let by_batch = experiment.experiment == ExperimentKind::Transfer.name();
    if by_batch {
        text.push_str(&transfer::text(experiment));
    }
    let mut rest = if by_batch { &[][..] } else { &experiment.rows[..] };
    while let Some(first) = rest.first() {
        let heading = split(&first.case).0;
        let end = rest.iter().position(|row| split(&row.case).0 != heading).unwrap_or(rest.len());
        let (rows, further) = rest.split_at(end);
        text.push_str(&format!("\n  {heading}\n{}", section(rows)));
        rest = further;
    }
    text.push_str(&format!(
        "\n  {}\n  CPU features: {}\n  {}; {}; {}\n  median and range of {} runs, {}; a ratio above 1 means that ours is better\n",
        machine.line(),
        machine.features.join(" "),
        machine.date,
        machine.built(),
        machine.mode,
        machine.runs,
        machine.length,
    ));
    text
}

/// The traffic with its order, and what was run over it.
fn split(case: &str) -> (&str, &str) {
    case.rsplit_once(", ").unwrap_or(("", case))
}

/// The table of some rows. Bit rates of a program stand beside its packet rate.
fn section(rows: &[Row]) -> String {
    let rates = rows.iter().any(|row| row.unit == GBPS);
    let mut columns = vec![("", Side::Wrapped)];
    if !rates {
        columns.push(("", Side::Wrapped));
    }
    columns.extend([("median", Side::Right), ("range", Side::Right), ("", Side::Left)]);
    if rates {
        columns.extend([("Gbit/s in", Side::Right), ("forwarded", Side::Right)]);
    }
    columns.extend([
        ("held against", Side::Wrapped),
        ("median", Side::Right),
        ("ratio", Side::Right),
        ("publication", Side::Right),
    ]);
    let optional = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    let bits = |case: &str, what: &str| {
        let row = rows.iter().find(|row| row.case == case && row.what == what);
        row.and_then(|row| row.ours.as_ref()).map(|ours| number(ours.median)).unwrap_or_default()
    };
    let shown = rows.iter().filter(|row| row.unit != GBPS);
    let cells = shown.map(|row| {
        let mut cells = vec![split(&row.case).1.to_owned()];
        if !rates {
            cells.push(row.what.clone());
        }
        cells.push(row.ours.as_ref().map_or_else(|| "–".to_owned(), |ours| number(ours.median)));
        cells.push(
            row.ours
                .as_ref()
                .map(|ours| format!("{} – {}", number(ours.low), number(ours.high)))
                .unwrap_or_default(),
        );
        cells.push(row.unit.clone());
        if rates {
            let first = row.unit == "Mpps";
            cells.push(if first { bits(&row.case, "data rate") } else { String::new() });
            cells.push(if first { bits(&row.case, "throughput") } else { String::new() });
        }
        match &row.other {
            Some(other) => cells.extend([other.name.clone(), number(other.median)]),
            None if row.is_missing() => cells.extend([row.what.clone(), String::new()]),
            None => cells.extend([String::new(), String::new()]),
        }
        cells.extend([optional(row.ratio), optional(row.paper)]);
        cells
    });
    table(&columns, cells.collect())
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
