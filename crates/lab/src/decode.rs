//! `lab decode`: how much slower a program is that decodes every field than one that decodes those it uses.

use crate::experiment::{Figure, Row};
use crate::measure::{Contender, Group, Measured, Pass, Workload, rounds};
use crate::plan::LabPlan;
use crate::programs::compiled;
use crate::traffic::LabError;
use exec::BackendKind;
use lang::ir::Program;
use lang::pipeline::Decode;
use ports::Order;

/// Per cent by which full decode is slower in the thesis, for its three samples.
const PAPER: [f64; 3] = [5.00, 7.10, 7.56];

/// A program in two ways.
struct Pair {
    name: &'static str,
    back_end: BackendKind,
    partial: Program,
    full: Program,
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
        let mut groups = Vec::new();
        for pair in &pairs {
            let load = |program| Contender::loaded(program, pair.back_end, 5);
            let both = [&pair.partial, &pair.full].map(load).into_iter().collect::<Result<Vec<_>, _>>();
            groups.push((Group::new(both.map_err(LabError::Program)?), 5));
        }
        for (pair, measured) in pairs.iter().zip(rounds(&mut workload, &mut groups, plan)) {
            let case = format!("{}, replay, {}", traffic.name, pair.name);
            // The thesis' figure goes with the way that is nearest to it: a program that names every field.
            let paper = traffic.sample.and_then(|sample| PAPER.get(sample - 1).copied());
            rows.extend(pair_rows(&case, measured, paper));
        }
    }
    Ok(rows)
}

fn pairs() -> Result<Vec<Pair>, String> {
    let firewall = |decode| compiled("firewall", decode);
    let every = || compiled("firewall_full", Decode::Declared);
    let pair = |name, back_end, partial, full| Pair { name, back_end, partial, full };
    let native = BackendKind::Native;
    Ok(vec![
        pair("firewall_full against firewall", native, firewall(Decode::Declared)?, every()?),
        pair("firewall --decode full against lazy", native, firewall(Decode::Lazy)?, firewall(Decode::Full)?),
        pair(
            "firewall_full against firewall by the interpreter",
            BackendKind::Interpreter,
            firewall(Decode::Declared)?,
            every()?,
        ),
    ])
}

fn pair_rows(case: &str, measured: Result<Vec<Measured>, String>, paper: Option<f64>) -> Vec<Row> {
    const WHAT: &str = "full decode is slower by";
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return vec![Row::refused(case, WHAT, "%", &why)],
    };
    let [partial, full] = &measured[..] else { return Vec::new() };
    let pairs = partial.passes.iter().zip(&full.passes);
    let slower = pairs.map(|(partial, full)| (full.seconds / partial.seconds - 1.0) * 100.0);
    let time = |what: &str, measured: &Measured| {
        Row::alone(case, what, "ns", measured.figure(Pass::nanoseconds), None)
    };
    vec![
        Row::alone(case, WHAT, "%", Figure::of(slower), paper),
        time("time of a packet, partial decode", partial),
        time("time of a packet, full decode", full),
    ]
}
