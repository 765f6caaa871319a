//! `lab connections`: `stateful` over connections of TCP, 100,000 and a million of them.
//!
//! A round has three parts, each with connections in an order of their own: *new* is the SYN of every
//! connection; *opened* is SYN, SYN,ACK and ACK of every connection, one connection after the other; *data*
//! are segments of the connections that are open, from either side, chosen at random.

use crate::experiment::{Figure, Row};
use crate::measure::SEED;
use crate::plan::LabPlan;
use crate::programs::{PROGRAMS, compile};
use crate::traffic::LabError;
use captures::generate::TcpStep;
use exec::{Backend, BackendKind, Outputs};
use ir::Program;
use lang::pipeline::Decode;
use packet::{BATCH, Batch, Frames, VerdictKind};
use std::time::{Duration, Instant};
use tables::generate::Random;

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;
/// How many connections.
const CONNECTIONS: [u32; 2] = [100_000, 1_000_000];
/// How many in a quick try.
const QUICK: [u32; 1] = [2_000];
/// Segments of data.
const SEGMENTS: u32 = 1 << 20;

/// What is counted in each part of a round, and its unit.
const PARTS: [(&str, &str); 3] =
    [("new connections", "M/s"), ("opened connections", "M/s"), ("segments of open connections", "Mpps")];

/// How packets were run.
pub(crate) fn mode() -> String {
    "one thread, packets in memory, native code, without accounting; time of the thread on its processor"
        .to_owned()
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let counts = if plan.quick { &QUICK[..] } else { &CONNECTIONS };
    let mut rows = Vec::new();
    for &count in counts {
        progress(&format!("connections: {count}"));
        let text = PROGRAMS.iter().find(|(name, _)| *name == "stateful").map_or("", |(_, text)| text);
        let program = with_room("stateful", text, count).map_err(LabError::Program)?;
        let case = format!("{count} connections of TCP, stateful");
        let measured = measure(&program, count, plan)?;
        rows.extend(parts(&case, measured));
    }
    Ok(rows)
}

/// A row for each part.
pub(crate) fn parts(case: &str, measured: [(Vec<f64>, bool); 3]) -> impl Iterator<Item = Row> {
    PARTS.into_iter().zip(measured).map(move |((what, unit), (rates, whole))| match whole {
        true => Row::alone(case, what, unit, Figure::of(rates), None),
        false => Row::refused(case, what, unit, "a packet that should pass did not"),
    })
}

/// A program that uses std.connections, with room for so many.
pub(crate) fn with_room(name: &str, text: &str, count: u32) -> Result<Program, String> {
    // A table that is nearly full keeps its entries in order, which takes time.
    let room = (count + count / 4).max(1 << 18);
    let text = format!("{text}\nconst MOST_ASSURED: u64 = {room}\nconst MOST_UNASSURED: u64 = {room}\n");
    compile(name, &text, Decode::Lazy)
}

/// The rates of each part, in millions a second, and whether every packet passed.
pub(crate) fn measure(
    program: &Program,
    count: u32,
    plan: &LabPlan,
) -> Result<[(Vec<f64>, bool); 3], LabError> {
    let (mut new, mut opened, mut data) = (Traffic::default(), Traffic::default(), Traffic::default());
    let segments = if plan.quick { SEGMENTS >> 6 } else { SEGMENTS };
    let mut random = Random::new(SEED);
    let step = |reply, sequence, acknowledgement, flags| TcpStep { reply, sequence, acknowledgement, flags };
    let open = [step(false, 1000, 0, 0x02), step(true, 5000, 1001, 0x12), step(false, 1001, 5001, 0x10)];
    let then = [step(true, 5001, 1001, 0x10), step(false, 1001, 5001, 0x10)];
    for number in 0..count {
        new.push(&open[0], number);
        open.iter().for_each(|step| opened.push(step, number));
    }
    for at in 0..segments {
        data.push(&then[at as usize % 2], random.below(count.into()) as u32);
    }
    let fresh = || {
        let loaded = exec::load(program, BackendKind::Native, 2, SEED);
        loaded.map_err(|error| LabError::Program(error.to_string()))
    };
    let mut parts = [const { (Vec::new(), true) }; 3];
    let mut note = |part: usize, (rate, whole): (f64, bool)| {
        parts[part].0.push(rate);
        parts[part].1 &= whole;
    };
    for _ in 0..plan.runs {
        note(0, new.run(fresh()?.as_mut(), count));
        let mut backend = fresh()?;
        note(1, opened.run(backend.as_mut(), count));
        // The first time warms up.
        let (begin, mut times) = (Instant::now(), 0);
        data.run(backend.as_mut(), segments);
        while !plan.length.is_over(begin.elapsed(), times) || times == 0 {
            note(2, data.run(backend.as_mut(), segments));
            times += 1;
        }
    }
    Ok(parts)
}

/// Frames, and the port by which each comes in.
#[derive(Default)]
struct Traffic {
    frames: Frames,
    ports: Vec<u16>,
}

impl Traffic {
    fn push(&mut self, step: &TcpStep, connection: u32) {
        let bytes = step.of_connection(connection);
        let time = 1_000_000_000 + self.ports.len() as u64 * 100;
        self.frames.push(&bytes, bytes.len() as u32, time);
        self.ports.push(if step.reply { OUTSIDE } else { INSIDE });
    }

    /// Runs all; how many millions of `things` a second, and whether every packet passed.
    fn run(&mut self, backend: &mut dyn Backend, things: u32) -> (f64, bool) {
        let (mut batch, mut outputs, mut sent) = (Batch::new(), Outputs::default(), 0);
        let (start, before) = (Instant::now(), on_processor());
        for first in (0..self.ports.len()).step_by(BATCH) {
            batch.clear();
            let filled = self.frames.fill(&mut batch, first..first + BATCH);
            batch.port[..filled].copy_from_slice(&self.ports[first..first + filled]);
            backend.run(self.frames.memory_mut(), &mut batch, &mut outputs);
            sent += batch.verdicts().iter().filter(|one| one.kind() == VerdictKind::Send).count();
        }
        let busy = match (before, on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed(),
        };
        (f64::from(things) / busy.as_secs_f64() / 1e6, sent == self.ports.len())
    }
}

/// Time this thread has been on a processor, where the system says: on a busy machine other programs do not
/// count.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
