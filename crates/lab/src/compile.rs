//! `lab compile`: how long it takes from the text of a program to machine code with its tables, ready for the
//! first packet.

use crate::experiment::{Figure, Row};
use crate::measure::SEED;
use crate::plan::LabPlan;
use crate::programs::{PROGRAMS, compile};
use crate::traffic::LabError;
use exec::BackendKind;
use lang::pipeline::Decode;
use std::time::Instant;

/// Compilations of one run, of which the run's figure is the mean.
const TIMES: u32 = 5;

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    progress("compile: every program that ships");
    let mut seconds: Vec<[Vec<f64>; 2]> = vec![[Vec::new(), Vec::new()]; PROGRAMS.len()];
    for round in 0..=plan.runs {
        for ((name, text), [front, whole]) in PROGRAMS.iter().zip(&mut seconds) {
            let (mut to_ir, mut to_code) = (0.0, 0.0);
            for _ in 0..TIMES {
                let begin = Instant::now();
                let program = compile(name, text, Decode::Lazy).map_err(LabError::Program)?;
                to_ir += begin.elapsed().as_secs_f64();
                let loaded = exec::load(&program, BackendKind::Native, 5, SEED);
                to_code += begin.elapsed().as_secs_f64();
                loaded.map_err(|error| LabError::Program(error.to_string()))?;
            }
            // The first round warms up.
            if round > 0 {
                front.push(to_ir * 1e3 / f64::from(TIMES));
                whole.push(to_code * 1e3 / f64::from(TIMES));
            }
        }
    }
    let mut rows = Vec::new();
    for ((name, _), [front, whole]) in PROGRAMS.iter().zip(seconds) {
        let case = format!("compiler, {name}");
        rows.push(Row::alone(&case, "text to machine code and tables", "ms", Figure::of(whole), None));
        rows.push(Row::alone(&case, "of that, text to IR", "ms", Figure::of(front), None));
    }
    Ok(rows)
}
