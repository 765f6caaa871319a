//! `lab router`: packets a second through a router and its kin over whole tables, and what each stage of the
//! router costs.
//!
//! All programs of a traffic take turns. Programs that change packets get copies of them, and so do the
//! programs that hold a part of the router's work. A stage costs what a program that ends behind it takes
//! longer than the one that ends before it.

pub(crate) mod data;
pub(crate) mod packets;
mod stages;

use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::{Contender, Group, Measured, Pass, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::compiled;
use crate::switch_apps::app_rows;
use crate::traffic::LabError;
use data::{Classifier, Data, PORTS};
use exec::BackendKind;
use ir::Program;
use lang::pipeline::Decode;
use packet::Frames;
use packets::Filling;
use ports::Order;
use stages::STAGES;
use std::ops::RangeInclusive;

/// How everything is run, in words.
const MODE: &str = "one thread, its own time, packets in memory, native code; all rules permit, all packets are IPv4 and enter by \
port 1 unless a row says otherwise; programs that change packets get copies, and copying counts; sizes count the frame check sequence, \
which is not in memory";

/// Different packets of a traffic.
const PACKETS: usize = 1 << 18;
/// Payload is the same again behind so many packets, which are larger.
const LARGE_PACKETS: usize = 1 << 14;
/// Packets that the interpreter judges, and those of them with payload.
const JUDGED: usize = 8192;
const JUDGED_PAYLOAD: usize = 32;
/// Flows through programs that keep flows.
const FLOWS: u32 = 16_384;
/// About so many rules there are where rates are wanted, and where stages are measured.
const WANTED_RULES: RangeInclusive<usize> = 500..=2000;

/// Programs and the traffic that they share.
struct Contest<'a> {
    case: String,
    frames: Frames,
    /// By this port packets enter, or by all in turn.
    enter_by: Option<u16>,
    ports: u16,
    changes: bool,
    /// Packets that the interpreter judges.
    judged: usize,
    /// Names with programs.
    programs: &'a [(&'a str, Program)],
}

/// How everything is run, and how busy the machine is before it begins.
pub(crate) fn mode() -> String {
    // Only Linux has this file.
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    match load.split_whitespace().next() {
        Some(load) => format!("{MODE}; load average before: {load}"),
        None => MODE.to_owned(),
    }
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    progress("router: reading or making routes and rules");
    let data = Data::new(&plan.tables, plan.quick).map_err(LabError::Tables)?;
    let classifiers = Classifier::all(&plan.tables, plan.quick).map_err(LabError::Tables)?;
    let mut rows = by_rules(plan, &data, &classifiers, progress)?;
    let classifier = classifiers.iter().rfind(|one| one.len() <= *WANTED_RULES.end());
    let Some(classifier) = classifier.or(classifiers.first()) else { return Ok(rows) };
    rows.extend(by_payload(plan, &data, classifier, progress)?);
    rows.extend(by_flows(plan, progress)?);
    Ok(rows)
}

/// How many packets there are, of so many unless the plan is quick.
fn shortened(plan: &LabPlan, full: usize) -> usize {
    if plan.quick { full / 64 } else { full }
}

/// Programs over routes and each set of rules; of the router also what its stages cost.
fn by_rules(
    plan: &LabPlan,
    data: &Data,
    classifiers: &[Classifier],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, LabError> {
    let count = shortened(plan, PACKETS);
    let mut rows = Vec::new();
    for (number, classifier) in classifiers.iter().enumerate() {
        let case = format!("64 bytes, {}, {}", classifier.name, data.name);
        let frames = || packets::routed(data, classifier, 64, Filling::Padding, count);
        let mut names = vec!["firewall_rules", "both"];
        if number == 0 {
            // Rules are nothing to it.
            names.insert(0, "lpm");
        }
        let programs = filled(&names, data, classifier)?;
        let contest = |changes, programs| Contest {
            case: case.clone(),
            frames: frames(),
            enter_by: Some(1),
            ports: PORTS,
            changes,
            judged: JUDGED,
            programs,
        };
        let measured = contest(false, &programs).run(plan, progress);
        rows.extend(rates(&case, &programs, measured, classifier.len()));
        let mut programs = filled(&["router"], data, classifier)?;
        let staged = WANTED_RULES.contains(&classifier.len()) || classifiers.len() == 1 || plan.quick;
        if staged {
            for (stage, name) in STAGES.iter().enumerate() {
                let mut program = stages::program(stage).map_err(LabError::Program)?;
                data.fill(&mut program, classifier).map_err(LabError::Program)?;
                programs.push((name, program));
            }
        }
        let mut measured = contest(true, &programs).run(plan, progress);
        let parts = measured.split_off(1);
        if staged {
            rows.extend(costs(&case, measured.first(), &parts));
        }
        rows.extend(rates(&case, &programs, measured, classifier.len()));
    }
    Ok(rows)
}

/// Programs that search payloads, over packets of three lengths.
fn by_payload(
    plan: &LabPlan,
    data: &Data,
    classifier: &Classifier,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let patterns = format!("{} patterns", data.patterns.len());
    for size in [64, 512, 1500] {
        for (names, filling, what) in [
            (&["dpi", "ids"][..], Filling::Words, "words"),
            (&["dpi", "ids", "router"], Filling::Random, "random bytes"),
        ] {
            let programs = filled(names, data, classifier)?;
            let case = format!("{size} bytes with {what}, {patterns}, {}, {}", classifier.name, data.name);
            let frames = packets::routed(data, classifier, size, filling, shortened(plan, LARGE_PACKETS));
            let contest = Contest {
                case: case.clone(),
                frames,
                enter_by: Some(1),
                ports: PORTS,
                changes: true,
                judged: JUDGED_PAYLOAD,
                programs: &programs,
            };
            rows.extend(rates(&case, &programs, contest.run(plan, progress), 0));
        }
    }
    Ok(rows)
}

/// Programs that keep state of flows or add headers.
fn by_flows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let count = shortened(plan, PACKETS);
    let flows = if plan.quick { FLOWS / 64 } else { FLOWS };
    let service = 0xc633_6401;
    for (name, case, enter_by, frames) in [
        (
            "nat44",
            format!("64 bytes, {flows} flows of UDP from inside"),
            Some(1),
            packets::inside(flows, 0x0808_0808, 53, count),
        ),
        (
            "load_balancer",
            format!("64 bytes, {flows} connections from clients"),
            Some(1),
            packets::clients(flows, 6, service, 80, count),
        ),
        (
            "vxlan_gateway",
            format!("64 bytes tagged and 114 bytes in VXLAN in turn, {flows} pairs of hosts, ports in turn"),
            None,
            packets::tunnelled(flows, count),
        ),
    ] {
        let programs = [(name, compiled(name, Decode::Lazy).map_err(LabError::Program)?)];
        let contest =
            Contest { case, frames, enter_by, ports: 2, changes: true, judged: JUDGED, programs: &programs };
        let case = contest.case.clone();
        rows.extend(rates(&case, &programs, contest.run(plan, progress), 0));
    }
    Ok(rows)
}

/// Programs that ship, with data in their tables.
fn filled<'n>(
    names: &[&'n str],
    data: &Data,
    classifier: &Classifier,
) -> Result<Vec<(&'n str, Program)>, LabError> {
    let mut programs = Vec::new();
    for name in names {
        let mut program = compiled(name, Decode::Lazy).map_err(LabError::Program)?;
        data.fill(&mut program, classifier).map_err(LabError::Program)?;
        programs.push((*name, program));
    }
    Ok(programs)
}

impl Contest<'_> {
    /// The runs of every program, or why there are none.
    fn run(self, plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Vec<Result<Measured, String>> {
        progress(&format!("router: {}", self.case));
        let mut workload = Workload::new(self.frames, Order::Replay, self.ports);
        workload.take_own_time();
        workload.judge_first(self.judged);
        if let Some(port) = self.enter_by {
            workload.enter_by(port);
        }
        if self.changes {
            workload.set_copies(true);
        }
        let mut groups = Vec::new();
        let mut places = Vec::new();
        for (_, program) in self.programs {
            let loaded = Contender::loaded(program, BackendKind::Native, self.ports);
            places.push(loaded.map(|contender| {
                groups.push((Group::new(vec![contender]), self.ports));
                groups.len() - 1
            }));
        }
        let measured = rounds(&mut workload, &mut groups, plan);
        let one = |place: Result<usize, String>| {
            let measured = measured[place?].clone()?;
            measured.into_iter().next().ok_or_else(|| "it was not run".to_owned())
        };
        places.into_iter().map(one).collect()
    }
}

/// The rates of programs.
fn rates(
    case: &str,
    programs: &[(&str, Program)],
    measured: Vec<Result<Measured, String>>,
    rules: usize,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((name, _), measured) in programs.iter().zip(measured) {
        let case = format!("{case}, {name}");
        let mut some = app_rows(&case, measured.map(|one| vec![one]), None);
        let wanted = match *name {
            "lpm" if rules > 0 => Some(40),
            "router" if WANTED_RULES.contains(&rules) => Some(15),
            _ => None,
        };
        if let (Some(wanted), Some(row)) = (wanted, some.first_mut()) {
            row.what = format!("{}; wanted: {wanted}", row.what);
        }
        rows.extend(some);
    }
    rows
}

/// The rows of stages, and their sum against the whole router.
fn costs(
    case: &str,
    whole: Option<&Result<Measured, String>>,
    stages: &[Result<Measured, String>],
) -> Vec<Row> {
    const WHAT: &str = "time of a packet";
    let case = format!("stages of router, {case}");
    let mut rows = Vec::new();
    let mut sum = 0.0;
    let mut before: Option<&Measured> = None;
    for (name, measured) in STAGES.iter().zip(stages) {
        let case = format!("{case}, {name}");
        let measured = match measured {
            Ok(measured) => measured,
            Err(why) => return vec![Row::refused(&case, WHAT, "ns", why)],
        };
        let earlier = |run: usize| before.and_then(|one| one.passes.get(run)).map_or(0.0, Pass::nanoseconds);
        let passes = measured.passes.iter().enumerate();
        let figure = Figure::of(passes.map(|(run, pass)| pass.nanoseconds() - earlier(run)));
        sum += figure.as_ref().map_or(0.0, |figure| figure.median);
        rows.push(Row::alone(&case, WHAT, "ns", figure, None));
        before = Some(measured);
    }
    let whole = match whole {
        Some(Ok(whole)) => whole.figure(Pass::nanoseconds),
        _ => None,
    };
    let Some(whole) = whole else { return rows };
    let apart = (sum / whole.median - 1.0) * 100.0;
    let verdict = if apart.abs() <= 10.0 { "within" } else { "not within" };
    let what = format!("{WHAT}; {verdict} 10 % of the whole");
    let figure = Figure::exactly(sum);
    let row = Row::alone(&format!("{case}, sum of the stages"), &what, "ns", Some(figure), None);
    rows.push(row.against(Some(Other::of("router as a whole", whole)), Better::Less));
    rows
}
