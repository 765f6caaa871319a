//! Thousands of entries that end together: on all back ends they go a few before each packet, each with all
//! that its end raises, and periodic handlers keep their times.

use exec::state::{MAX_DUE_RUNS, TIME_OF_RUN};
use exec::{BackendKind, Outputs, load};
use ir::Entry;
use lang::pipeline::{CompileOptions, compile};
use packet::{BATCH, Batch, Frames};

const BINDINGS: u64 = 1400;
const ENDS: u64 = 10_000_000_000;
const PACKETS: u64 = 1200;
/// So far apart packets come.
const GAP: u64 = 10_000;

/// A binding that has ended is in quarantine; three handlers do that, one after the other.
const TEXT: &str = "
table bindings: exact(u32) -> u8 { capacity 3000  age 10s  evict refuse  expires over }
table quarantine: exact(u32) -> time { capacity 3000  age 120s  evict refuse }
counter periods
event over(who: u32, what: u8) { raise unbound(who) }
event unbound(who: u32) { raise quarantined(who) }
event quarantined(who: u32) { learn quarantine[who] = now else {} }
every 1ms { count periods }
start stage all() { learn bindings[0] = 1 else {}  flood }
";

/// After each batch: bindings, how many are in quarantine, and how often the periodic handler ran; and all
/// events with their times.
type Ran = (Vec<(u64, u64, u64)>, Vec<(u32, u64, Vec<u128>)>);

fn run(kind: BackendKind, size: usize) -> Ran {
    let compiled = compile("t.rav", TEXT, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let mut backend = load(&program, kind, 2, 1).expect("loads");
    let mut outputs = Outputs::default();
    backend.advance(0, &mut outputs);
    for number in 1..BINDINGS {
        backend.learn(0, &Entry::exact(&[number.into()], &[7]), 0).expect("room");
    }
    backend.advance(ENDS - 1, &mut outputs);
    let mut frames = Frames::new();
    (0..PACKETS).for_each(|number| frames.push(&[0; 60], 60, ENDS + number * GAP));
    let (mut batch, mut seen, mut raised) = (Batch::new(), Vec::new(), Vec::new());
    for first in (0..PACKETS as usize).step_by(size) {
        frames.fill(&mut batch, first..first + size);
        batch.port[..batch.len].fill(1);
        outputs.clear();
        backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        let held: Vec<u64> = backend.running_tables().iter().map(|table| table.entries).collect();
        seen.push((held[0], held[1], backend.counter(0)[0].0));
        for one in &outputs.raised {
            let params = program.events[one.event as usize].params.len();
            let args = outputs.arguments[one.first as usize..][..params].to_vec();
            raised.push((one.event, one.time, args));
        }
    }
    (seen, raised)
}

#[test]
fn a_binding_that_has_ended_is_in_quarantine_before_any_packet() {
    for kind in BackendKind::ALL {
        let (seen, _) = run(kind, 1);
        let gone: Vec<u64> = seen.iter().map(|(_, quarantined, _)| *quarantined).collect();
        // The packets have learned a binding.
        assert!(seen.iter().all(|(bound, quarantined, _)| bound + quarantined == BINDINGS), "{kind:?}");
        assert_eq!(gone[0], MAX_DUE_RUNS.into(), "{kind:?}: what ends at one moment");
        let most = GAP / TIME_OF_RUN + 1;
        assert!(gone.windows(2).all(|two| two[1] - two[0] <= most), "{kind:?}: and what time allows");
        assert_eq!(gone.last(), Some(&(BINDINGS - 1)), "{kind:?}: until all have ended");
    }
}

#[test]
fn what_waits_is_the_same_on_every_back_end_and_in_batches_of_any_size() {
    let (seen, raised) = run(BackendKind::Interpreter, 1);
    assert_eq!(raised.len() as u64, 3 * (BINDINGS - 1));
    for kind in BackendKind::ALL {
        for size in [1, 7, BATCH] {
            let (of_batches, same) = run(kind, size);
            assert_eq!(same, raised, "{kind:?}, {size}");
            assert_eq!(of_batches.last(), seen.last(), "{kind:?}, {size}");
        }
    }
    let waiting = seen.iter().position(|(bound, ..)| *bound == 1).expect("all end") as u64;
    assert!(waiting * GAP > 5_000_000, "{waiting}");
    for (number, (_, _, periods)) in (0..).zip(&seen) {
        let passed = number * GAP / 1_000_000 + 1;
        assert_eq!(periods - (seen[0].2 - 1), passed, "after packet {number}");
    }
}
