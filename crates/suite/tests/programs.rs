//! The programs and good cases of the repository: their own tests, and the same report on every back end
//! however packets are batched.

use captures::generate::Profile;
use exec::{BackendKind, load};
use ir::Program;
use lang::diagnostic::Severity;
use lang::pipeline::Decode;
use packet::Frames;
use std::sync::atomic::{AtomicUsize, Ordering};
use suite::cores::each;
use suite::corpus::{compile_file, files, root};
use suite::outcome::see;
use suite::packet_generator::Arrivals;
use suite::traffic::traffic;

const PORTS: u16 = 5;

const DECODES: [Decode; 3] = [Decode::Lazy, Decode::Declared, Decode::Full];

/// Every program of `programs/` in every decode mode.
fn programs() -> Vec<(String, Program)> {
    let mut programs = Vec::new();
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        for decode in DECODES {
            let compiled = compile_file(&path, decode).expect("a program can be read");
            let program = compiled.program.unwrap_or_else(|| panic!("{} does not compile", path.display()));
            programs.push((format!("{} ({decode:?})", path.display()), program));
        }
    }
    assert!(programs.len() >= 30, "only {} programs and modes", programs.len());
    programs
}

/// The same packets, in order of arrival, with ports dealt out in turn.
fn dealt(frames: Frames) -> Arrivals {
    let ports = (0..frames.len()).map(|index| (index % usize::from(PORTS)) as u16 + 1).collect();
    Arrivals { frames, ports }
}

#[test]
fn in_source_tests_hold_on_both_back_ends() {
    let run = AtomicUsize::new(0);
    let mut all = Vec::new();
    for folder in ["programs", "suite/good"] {
        all.extend(files(&root().join(folder), "rav").expect("the folder is there"));
    }
    each(all, |path| {
        for decode in DECODES {
            let place = format!("{}, {decode:?}", path.display());
            let compiled = compile_file(path, decode).expect("a case can be read");
            let errors: Vec<_> =
                compiled.diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
            let program = compiled.program.ok_or_else(|| format!("{place}: {errors:?}"))?;
            if compiled.tests.is_empty() {
                return Err(format!("{place}: it has no test"));
            }
            for case in &compiled.tests {
                for back_end in BackendKind::ALL {
                    let mismatch = engine::case::run(&program, case, back_end);
                    if let Some(mismatch) = mismatch.map_err(|error| format!("{place}: {error}"))? {
                        return Err(format!("{place}, {:?}, {back_end:?}: {mismatch:?}", case.name));
                    }
                    run.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    });
    let run = run.into_inner();
    assert!(run > 500, "only {run} cases were run");
}

#[test]
fn generated_traffic_means_the_same_everywhere() {
    let captures = [
        ("demo", traffic(Profile::demo(), 500, PORTS, 1)),
        ("sample1", traffic(Profile::sample1(), 500, PORTS, 2)),
        ("sample3", traffic(Profile::sample3(), 500, PORTS, 3)),
    ];
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        for (name, arrivals) in &captures {
            let mut judge = None;
            for decode in DECODES {
                let compiled = compile_file(&path, decode).expect("a program can be read");
                let program = compiled.program.expect("a program compiles");
                for (back_end, size) in BackendKind::ALL
                    .into_iter()
                    .flat_map(|back_end| [(back_end, 1), (back_end, 7), (back_end, 256)])
                {
                    let seen = see(&program, back_end, arrivals, PORTS, size).expect("it loads");
                    let judge = judge.get_or_insert_with(|| seen.clone());
                    let place = format!("{}, {name}, {decode:?}, {back_end:?}, {size}", path.display());
                    assert_eq!(seen.difference(judge), None, "{place}");
                }
            }
        }
    }
}

#[test]
fn every_packet_is_accounted_for_and_runs_repeat() {
    let arrivals = dealt(traffic(Profile::sample2(), 600, PORTS, 4).frames);
    for (name, program) in programs() {
        for back_end in BackendKind::ALL {
            let report = || report(&program, back_end, &arrivals);
            let first = report();
            let verdicts = first.verdicts;
            let forwarded = verdicts.send + verdicts.flood + verdicts.multicast;
            assert_eq!(first.received.packets, 600, "{name}");
            assert_eq!(first.received.packets, forwarded + verdicts.drop + verdicts.punt, "{name}");
            assert_eq!(first.drops.values().sum::<u64>(), verdicts.drop, "{name}");
            assert_eq!(first.punts.values().sum::<u64>(), verdicts.punt, "{name}");
            assert_eq!(first, report(), "{name}");
        }
    }
}

/// The report that people see, without the times that were measured.
fn report(program: &Program, back_end: BackendKind, arrivals: &Arrivals) -> engine::Report {
    let mut backend = load(program, back_end, PORTS, 3).expect("it loads");
    let mut ledger = engine::Ledger::new(program, PORTS);
    let mut batch = packet::Batch::new();
    let mut outputs = exec::Outputs::default();
    let mut frames = arrivals.frames.clone();
    let mut latest = 0;
    for first in (0..frames.len()).step_by(64) {
        let count = frames.fill(&mut batch, first..first + 64);
        batch.port[..count].copy_from_slice(&arrivals.ports[first..first + count]);
        outputs.clear();
        backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        for time in outputs.packets.iter().map(|sent| sent.time) {
            assert!(time >= latest, "time went back from {latest} to {time}");
            latest = time;
        }
        ledger.commit(frames.memory(), &mut batch, &outputs);
    }
    let (setting, times) = (engine::Setting::default(), engine::Times::default());
    engine::Report::new(setting, program, &ledger, backend.as_ref(), times).expect("the accounting adds up")
}
