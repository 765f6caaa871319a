//! `lab naming`: set-ups of names by load, simulated, in real time and beside others' rules; plain answers
//! beside NSD; and in memory what a set-up takes step by step, what a packet costs in the packet loop, in the
//! programs and in the cipher, and what many bindings add to it.

mod bindings;
mod by_size;
mod ends;
mod name_servers;
mod paper_message;
mod plain_answers;
mod queries;
mod real_set_ups;
mod set_ups;
mod steps;

use crate::experiment::Row;
use crate::plan::LabPlan;
use crate::traffic::LabError;

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<(Vec<Row>, String), LabError> {
    let (mut rows, simulated) = set_ups::rows(plan, progress);
    rows.extend(real_set_ups::rows(plan, progress));
    progress("naming: plain answers");
    rows.extend(plain_answers::rows(plan));
    let clock = clock();
    progress("naming: a set-up step by step");
    rows.extend(steps::rows(plan, clock, set_ups::most(plan)));
    progress("naming: what a packet takes, by its size");
    rows.extend(by_size::rows(plan, clock)?);
    rows.extend(paper_message::rows(plan, clock)?);
    rows.extend(bindings::rows(plan, progress)?);
    let clock = clock.map_or(String::new(), |mhz| format!("; a nanosecond is {:.2} cycles", mhz / 1e3));
    let packets = "packets: in memory, native code, programs without accounting, the packet loop with it, time of the thread on its processor";
    let asked = "name servers: processes of their own, asked at the loopback interface by one thread";
    Ok((rows, format!("one thread; {simulated}; {asked}; {packets}{clock}")))
}

/// The frequency of the processor as the system knows it, in MHz.
fn clock() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    text.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok())
}
