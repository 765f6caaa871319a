//! Entries with a lifetime of their own: all back ends end them at the same moment, with their events, also
//! after a takeover, and no device gives a lifetime.

use exec::kernel::{Kernel, KernelOptions};
use exec::replace::take_over;
use exec::{Backend, BackendKind, Outputs, load};
use ir::{Entry, Op, Program};
use lang::pipeline::{CompileOptions, compile};
use packet::{BATCH, Batch, Frames};

const SECOND: u64 = 1_000_000_000;

/// A packet names a host and for how many seconds it is known.
const TEXT: &str = "
layout lease { who: u16 seconds: u8 }
table hosts: exact(u16) -> u8 { capacity 3000  age 200s  evict refuse  expires over }
table loud: exact(u16, u64) -> u8 { capacity 3000  age 200s  idle 100s  evict lru }
event over(who: u16, seconds: u8) {}
start decoder all(l: lease) {
    if l.seconds > 200 { learn hosts[l.who] = l.seconds else {}  flood }
    learn hosts[l.who] = l.seconds for l.seconds as time * 1s else {}
    learn loud[l.who, 7] = l.seconds for l.seconds as time * 1s
    flood
}";

fn program(text: &str) -> Program {
    let compiled = compile("t.rav", text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

fn loaded(program: &Program, kind: BackendKind) -> Box<dyn Backend> {
    load(program, kind, 2, 1).expect("loads")
}

/// Runs packets in batches of a size: each names a host and seconds, and comes at a time.
fn run(backend: &mut dyn Backend, packets: &[(u16, u8, u64)], size: usize, outputs: &mut Outputs) {
    let mut frames = Frames::new();
    for (who, seconds, time) in packets {
        let [high, low] = who.to_be_bytes();
        frames.push(&[high, low, *seconds], 60, *time);
    }
    let mut batch = Batch::new();
    for first in (0..packets.len()).step_by(size) {
        frames.fill(&mut batch, first..packets.len().min(first + size));
        batch.port[..batch.len].fill(1);
        backend.run(frames.memory_mut(), &mut batch, outputs);
    }
}

/// The events of ended entries: when, which host, what it held.
fn ended(outputs: &Outputs) -> Vec<(u64, u128, u128)> {
    let of = |one: &exec::Raised| {
        let args = &outputs.arguments[one.first as usize..];
        (one.time, args[0], args[1])
    };
    outputs.raised.iter().map(of).collect()
}

#[test]
fn entries_end_when_their_own_lifetime_is_over_whatever_the_back_end_and_the_size_of_batches() {
    // Hosts come again with longer and shorter times, before and after they have ended.
    let packets: Vec<(u16, u8, u64)> = (0..2000_u64)
        .map(|number| (number as u16 * 7 % 300, (number * 37 % 256) as u8, number * SECOND / 10))
        .collect();
    let mut wanted = Vec::new();
    let mut until: Vec<Option<(u64, u8)>> = vec![None; 300];
    let ends_by = |until: &mut Vec<Option<(u64, u8)>>, time: u64, wanted: &mut Vec<_>| {
        let mut over: Vec<(u64, u128, u128)> = Vec::new();
        for (who, held) in until.iter_mut().enumerate() {
            if let Some((end, seconds)) = held.filter(|(end, _)| *end <= time) {
                over.push((end, who as u128, seconds.into()));
                *held = None;
            }
        }
        over.sort_unstable();
        wanted.extend(over);
    };
    for (who, seconds, time) in &packets {
        ends_by(&mut until, *time, &mut wanted);
        let lives = if *seconds > 200 { 200 * SECOND } else { (u64::from(*seconds) * SECOND).max(1) };
        until[usize::from(*who)] = Some((time + lives, *seconds));
    }
    ends_by(&mut until, 1000 * SECOND, &mut wanted);
    assert!(wanted.len() > 300, "{} entries end", wanted.len());
    for kind in BackendKind::ALL {
        for size in [1, 7, BATCH] {
            let (mut backend, mut outputs) = (loaded(&program(TEXT), kind), Outputs::default());
            run(backend.as_mut(), &packets, size, &mut outputs);
            assert!(backend.due().is_some_and(|due| due <= 400 * SECOND), "{kind:?}");
            for second in 200..=1000 {
                backend.advance(second * SECOND, &mut outputs);
            }
            let mut seen = ended(&outputs);
            seen.sort_unstable();
            let mut judged = wanted.clone();
            judged.sort_unstable();
            assert_eq!(seen, judged, "{kind:?}, {size}");
            let held: Vec<u64> = backend.tables().iter().map(|table| table.entries).collect();
            assert_eq!(held, [0, 0], "{kind:?}, {size}");
        }
    }
}

#[test]
fn a_takeover_leaves_entries_their_times_be_the_table_exchanged_or_copied() {
    let quiet = TEXT.replace("for l.seconds as time * 1s", "");
    let copied = TEXT.replace("evict refuse  expires", "evict refuse  entries { 9 => 9 }  expires");
    let texts = [TEXT.to_owned(), TEXT.replace("age 200s", "age 203s"), copied, quiet];
    for kind in BackendKind::ALL {
        for text in &texts {
            let (old, new) = (program(TEXT), program(text));
            let (mut running, mut next) = (loaded(&old, kind), loaded(&new, kind));
            let mut outputs = Outputs::default();
            let begin = 1000 * SECOND;
            run(running.as_mut(), &[(1, 10, begin), (2, 50, begin), (3, 199, begin)], 3, &mut outputs);
            let (_, exchanged) =
                take_over(running.as_mut(), &old, next.as_mut(), &new, &[], begin + SECOND).expect("fits");
            exchanged.keep(running.as_mut(), next.as_mut());
            let mut left_at = |after: u64| {
                next.advance(begin + after * SECOND, &mut outputs);
                let mut left: Vec<u128> = next.learned(0).iter().map(|entry| entry.value[0]).collect();
                left.sort_unstable();
                left
            };
            assert_eq!(left_at(9), [10, 50, 199], "{kind:?} {text}");
            assert_eq!(left_at(10), [50, 199], "{kind:?} {text}");
            assert_eq!(left_at(49), [50, 199], "{kind:?} {text}");
            assert_eq!(left_at(50), [199], "{kind:?} {text}");
            assert_eq!(left_at(198), [199], "{kind:?} {text}");
            assert_eq!(left_at(199), [0; 0], "{kind:?} {text}");
        }
    }
}

#[test]
fn what_the_text_of_the_next_program_declares_stays_with_what_packets_learned_before() {
    let declared = TEXT.replace("evict refuse  expires", "evict refuse  entries { 1 => 9 }  expires");
    for kind in BackendKind::ALL {
        let (old, new) = (program(TEXT), program(&declared));
        let (mut running, mut next) = (loaded(&old, kind), loaded(&new, kind));
        let mut outputs = Outputs::default();
        run(running.as_mut(), &[(1, 10, SECOND), (2, 10, SECOND)], 3, &mut outputs);
        let (_, exchanged) =
            take_over(running.as_mut(), &old, next.as_mut(), &new, &[], 2 * SECOND).expect("fits");
        exchanged.keep(running.as_mut(), next.as_mut());
        next.advance(100 * SECOND, &mut outputs);
        let held: Vec<Vec<u128>> = next.entries(0).into_iter().map(|(entry, _)| entry.value).collect();
        assert_eq!(held, [[10]], "{kind:?}: the declared one, with the value that was learned");
    }
}

#[test]
fn what_the_text_and_the_control_server_put_in_stays() {
    let text = TEXT.replace("evict refuse  expires", "evict refuse  entries { 1 => 9 }  expires");
    for kind in BackendKind::ALL {
        let (mut backend, mut outputs) = (loaded(&program(&text), kind), Outputs::default());
        backend.insert(0, &Entry::exact(&[2], &[8])).expect("room");
        run(backend.as_mut(), &[(1, 5, SECOND), (2, 5, SECOND), (3, 5, SECOND)], 3, &mut outputs);
        backend.advance(500 * SECOND, &mut outputs);
        let held: Vec<Vec<u128>> = backend.entries(0).into_iter().map(|(entry, _)| entry.value).collect();
        assert_eq!(held, [[5], [5]], "{kind:?}: changed, and there");
    }
}

#[test]
fn no_device_gives_a_lifetime() {
    let program = program(TEXT);
    let gives = program.functions[0].blocks.iter().flat_map(|block| &block.instructions);
    assert_eq!(gives.filter(|one| matches!(one.op, Op::EndAfter { .. })).count(), 2);
    let refused = match Kernel::new(&program, 2, &KernelOptions::default()) {
        Ok(kernel) => kernel.plan.refusals.iter().map(|one| one.sentence(&program).to_string()).collect(),
        Err(error) => vec![error.to_string()],
    };
    assert!(refused.iter().any(|sentence| sentence.contains("a lifetime of its own")), "{refused:?}");
}
