//! Compares the back ends: random programs over random packets, in every decode mode and batch size.

use crate::coverage::Coverage;
use crate::edit_search::{self, Judged};
use crate::outcome::{RunOutcome, see};
use crate::packet_generator::{self, Arrivals};
use crate::program_generator;
use crate::shrink;
use exec::BackendKind;
use ir::{Program, print, read, verify};
use lang::diagnostic::Severity;
use lang::pipeline::{CompileOptions, Compiled, Decode, compile};
use packet::VerdictKind;
use std::time::{Duration, Instant};

/// How many ports there are.
pub const PORTS: u16 = 4;

/// Packets a program.
const PACKETS: usize = 300;

/// Batch sizes that must not matter.
const BATCHES: [usize; 3] = [1, 3, 256];

/// What a run of the comparison was over.
#[derive(Clone, Debug, Default)]
pub struct AgreeTally {
    /// Programs that were written.
    pub programs: u64,
    /// Those of them that the compiler accepted.
    pub accepted: u64,
    /// Packets of the accepted ones, each counted once.
    pub packets: u64,
    /// Packets that a program dropped because a header was short or broke a constraint.
    pub malformed: u64,
    /// Packets that were not dropped.
    pub passed: u64,
    /// Outputs besides verdicts.
    pub outputs: u64,
    /// Entries that were inserted, moved, evicted, refused, or expired.
    pub changes: [u64; 5],
    /// Constructs in accepted programs.
    pub coverage: Coverage,
    /// Codes of diagnostics for programs that were not accepted, and the seed of one.
    pub refusals: std::collections::BTreeMap<&'static str, (u64, u64)>,
    /// What the twin that sums whole packets judged.
    pub judged: Judged,
}

/// A program and packets over which two runs differ, made as small as easily done.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The seed of the program: `agree --seed N --programs 1` finds it again.
    pub seed: u64,
    /// The program.
    pub text: String,
    /// The packets.
    pub arrivals: Arrivals,
    /// What differs, in words.
    pub what: String,
}

/// Goes through the programs of `seed`, `seed + 1`, … until the time or the number is used up.
///
/// # Errors
/// The first disagreement.
pub fn search(seed: u64, time: Duration, programs: u64) -> Result<AgreeTally, Box<Disagreement>> {
    let begin = Instant::now();
    let mut tally = AgreeTally::default();
    for offset in 0..programs {
        if begin.elapsed() >= time {
            break;
        }
        one(seed.wrapping_add(offset), &mut tally)?;
    }
    Ok(tally)
}

/// The program of one seed over its packets.
///
/// # Errors
/// If two runs differ, or the program of edits of this seed lets a packet leave wrong that came in right.
pub fn one(seed: u64, tally: &mut AgreeTally) -> Result<(), Box<Disagreement>> {
    edit_search::one(seed, tally)?;
    let generated = program_generator::generate(seed);
    tally.programs += 1;
    let compiled = compile_as(&generated.text, Decode::Lazy);
    if compiled.program.is_none() {
        let errors = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        for code in errors.map(|diagnostic| diagnostic.code) {
            tally.refusals.entry(code).or_insert((0, seed)).0 += 1;
        }
        if compiled.diagnostics.is_empty() {
            let what = "there is neither a program nor a diagnostic".to_string();
            return Err(Box::new(Disagreement {
                seed,
                text: generated.text,
                arrivals: Arrivals::default(),
                what,
            }));
        }
        return Ok(());
    }
    let arrivals = packet_generator::generate(&generated, seed, PACKETS, PORTS);
    match compare(&generated.text, &arrivals) {
        Ok(Some((program, judge))) => {
            count(tally, &program, &judge);
            tally.coverage.add(&generated.coverage);
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(what) => {
            let (text, arrivals, what) = shrink::shrink(generated.text, arrivals, what);
            Err(Box::new(Disagreement { seed, text, arrivals, what }))
        }
    }
}

/// Runs a program text every way there is; none if it does not compile.
///
/// # Errors
/// What differs, in words.
pub fn compare(text: &str, arrivals: &Arrivals) -> Result<Option<(Program, RunOutcome)>, String> {
    let mut judged: Option<(Program, RunOutcome)> = None;
    for decode in [Decode::Lazy, Decode::Declared, Decode::Full] {
        let Some(program) = compile_as(text, decode).program else {
            return match judged {
                None => Ok(None),
                Some(_) => Err(format!("it compiles lazily and not as {decode:?}")),
            };
        };
        check_text(&program).map_err(|what| format!("{decode:?}: {what}"))?;
        for back_end in BackendKind::ALL {
            for size in BATCHES {
                let what = |what: String| format!("{decode:?}, {back_end:?}, batches of {size}: {what}");
                let seen = see(&program, back_end, arrivals, PORTS, size)
                    .map_err(|error| what(error.to_string()))?;
                match &judged {
                    None => judged = Some((program.clone(), seen)),
                    Some((_, judge)) => {
                        if let Some(difference) = seen.difference(judge) {
                            return Err(what(difference));
                        }
                    }
                }
            }
        }
    }
    Ok(judged)
}

/// Compiles a text that stands alone.
pub fn compile_as(text: &str, decode: Decode) -> Compiled {
    compile("random.rav", text, &|_| None, &CompileOptions { decode, ..CompileOptions::default() })
}

/// The IR is well formed and reads back from its text.
fn check_text(program: &Program) -> Result<(), String> {
    if let Err(faults) = verify::verify(program) {
        return Err(format!("the IR is not well formed: {faults:?}"));
    }
    let text = print::print(program);
    match read::read(&text) {
        Err(error) => Err(format!("the text of the IR does not read back: {error}")),
        Ok(again) if again != *program => Err("the IR changes when printed and read".to_string()),
        Ok(_) => Ok(()),
    }
}

fn count(tally: &mut AgreeTally, program: &Program, judge: &RunOutcome) {
    tally.accepted += 1;
    tally.packets += judge.verdicts.len() as u64;
    tally.outputs += judge.sent.len() as u64;
    for verdict in &judge.verdicts {
        if verdict.kind() == VerdictKind::Drop {
            let reason = program.reasons.get(usize::from(verdict.argument()));
            tally.malformed += u64::from(reason.is_some_and(|reason| reason.name.contains('(')));
        } else {
            tally.passed += 1;
        }
    }
    for table in &judge.tables {
        let numbers = [table.inserts, table.moves, table.evictions, table.refused, table.expired];
        for (sum, number) in tally.changes.iter_mut().zip(numbers) {
            *sum += number;
        }
    }
}
