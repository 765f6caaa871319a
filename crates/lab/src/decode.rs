//! `lab decode`: how much slower a program is that decodes every field than one that decodes those it uses,
//! and the same by the measure of the thesis.

use crate::experiment::{Figure, Row};
use crate::measure::{Contender, Group, Measured, Pass, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::compiled;
use crate::thesis::{self, PublishedSample, percentage_difference};
use crate::traffic::LabError;
use exec::BackendKind;
use ir::Program;
use lang::pipeline::Decode;
use ports::Order;

/// A program in two ways.
struct Pair {
    name: &'static str,
    back_end: BackendKind,
    partial: Program,
    full: Program,
    /// Whether both change packets, and therefore get copies.
    copies: bool,
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let pairs = pairs().map_err(LabError::Program)?;
    let mut rows = Vec::new();
    for capture in &plan.captures {
        progress("reading or making a capture");
        let traffic = capture.load(plan.quick)?;
        progress(&format!("decode: {}", traffic.name));
        let mut workload = Workload::new(traffic.frames, Order::Replay, 5);
        for pairs in pairs.chunk_by(|one, next| one.copies == next.copies) {
            workload.set_copies(pairs.iter().any(|pair| pair.copies));
            let mut groups = Vec::new();
            for pair in pairs {
                let load = |program| Contender::loaded(program, pair.back_end, 5);
                let both = [&pair.partial, &pair.full].map(load).into_iter().collect::<Result<Vec<_>, _>>();
                groups.push((Group::new(both.map_err(LabError::Program)?), 5));
            }
            for (pair, measured) in pairs.iter().zip(rounds(&mut workload, &mut groups, plan)) {
                let case = format!("{}, replay, {}", traffic.name, pair.name);
                rows.extend(pair_rows(&case, measured, traffic.sample.and_then(thesis::sample)));
            }
        }
    }
    Ok(rows)
}

fn pairs() -> Result<Vec<Pair>, String> {
    let firewall = |decode| compiled("firewall", decode);
    let every = || compiled("firewall_full", Decode::Declared);
    let pair = |name, back_end, partial, full| Pair { name, back_end, partial, full, copies: false };
    let native = BackendKind::Native;
    let [partial, full] = thesis::firewalls()?;
    Ok(vec![
        pair("firewall_full against firewall", native, firewall(Decode::Declared)?, every()?),
        pair("firewall --decode full against lazy", native, firewall(Decode::Lazy)?, firewall(Decode::Full)?),
        pair(
            "firewall_full against firewall by the interpreter",
            BackendKind::Interpreter,
            firewall(Decode::Declared)?,
            every()?,
        ),
        Pair { copies: true, ..pair("the firewall of the thesis", native, partial, full) },
    ])
}

fn pair_rows(
    case: &str,
    measured: Result<Vec<Measured>, String>,
    paper: Option<PublishedSample>,
) -> Vec<Row> {
    const WHAT: &str = "full decode is slower by";
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return vec![Row::refused(case, WHAT, "%", &why)],
    };
    let [partial, full] = &measured[..] else { return Vec::new() };
    let pairs = || partial.passes.iter().zip(&full.passes);
    let slower = pairs().map(|(partial, full)| (full.seconds / partial.seconds - 1.0) * 100.0);
    let differ = pairs().map(|(partial, full)| percentage_difference(partial.mpps(), full.mpps()));
    let time = |what: &str, measured: &Measured| {
        Row::alone(case, what, "ns", measured.figure(Pass::nanoseconds), None)
    };
    let rate = |what: &str, measured: &Measured, paper: Option<f64>| {
        Row::alone(case, what, "Mpps", measured.figure(Pass::mpps), paper)
    };
    vec![
        Row::alone(case, WHAT, "%", Figure::of(slower), None),
        Row::alone(
            case,
            "difference in per cent of the middle rate",
            "%",
            Figure::of(differ),
            paper.map(|paper| paper.difference),
        ),
        rate("packet rate, partial decode", partial, paper.map(|paper| paper.partial)),
        rate("packet rate, full decode", full, paper.map(|paper| paper.full)),
        time("time of a packet, partial decode", partial),
        time("time of a packet, full decode", full),
    ]
}
