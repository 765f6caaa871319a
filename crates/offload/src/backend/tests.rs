//! A device that falls silent is given up, by the time of an imitated clock.

use super::*;
use exec::kernel::KernelOptions;
use gpu::{FaultyDevice, Trouble};
use lang::pipeline::{self, CompileOptions};
use packet::{Arena, Verdict};
use std::sync::Mutex;

const TEXT: &str = r#"
import std.net.ethernet
reason other "neither"
start decoder frame(eth: ethernet) {
    match eth.type {
        0x0800 => send 2
        0x86dd => send 3
        else => drop other
    }
}
"#;

/// A clock that the test moves, and that advances by a step whenever it is read.
#[derive(Clone)]
struct Imitated(Arc<Mutex<Instant>>);

impl Imitated {
    fn new() -> Imitated {
        Imitated(Arc::new(Mutex::new(Instant::now())))
    }

    /// Lets time pass; the time before that.
    fn pass(&self, time: Duration) -> Instant {
        let mut now = self.0.lock().expect("nothing panics with it");
        let before = *now;
        *now += time;
        before
    }
}

fn program() -> Program {
    let compiled = pipeline::compile("silent.rav", TEXT, &|_| None, &CompileOptions::default());
    compiled.program.expect("it compiles")
}

/// A back end whose device takes packets and says nothing of them any more.
fn silent(clock: &Imitated, step: Duration) -> Offloaded {
    let program = program();
    let offload = Offload::new(&program, 4, 0, &KernelOptions::default()).expect("it has a kernel");
    let depth = QueueDepth { packets: 64, device_batches: 2 };
    let opened = Offloaded::new(offload, depth, |kernel, geometry| {
        let device = host(kernel, &program, 4, geometry)?;
        Ok(Box::new(FaultyDevice::after(device, Trouble::Silent, 0)))
    });
    let clock = clock.clone();
    opened.expect("it opens").by_clock(move || clock.pass(step))
}

/// Packets of three kinds, each with another verdict.
fn packets() -> (Arena, Batch) {
    let (mut arena, mut batch) = (Arena::sized(16_384), Batch::new());
    for time in 0..10 {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06]][time as usize % 3]);
        assert!(arena.push(&mut batch, &frame, 60, time));
    }
    (arena, batch)
}

/// The interpreter's verdicts on them.
fn right() -> Vec<Verdict> {
    let judge = exec::load(&program(), BackendKind::Interpreter, 4, 0);
    let (mut arena, mut batch) = packets();
    judge.expect("it loads").run(arena.memory_mut(), &mut batch, &mut Outputs::default());
    batch.verdicts().to_vec()
}

/// Polls again and again, so far apart, until the device is given up, and runs the packets; the number of
/// polls, and what is said of the device.
fn given_up(apart: Duration) -> (u64, String) {
    let clock = Imitated::new();
    let (mut backend, (mut arena, mut batch)) = (silent(&clock, Duration::ZERO), packets());
    let device = backend.asynchronous().expect("there is a device");
    for _ in 0..2 {
        let outcome = device.submit(arena.memory(), std::slice::from_ref(&batch));
        assert_eq!(outcome, SubmitOutcome::Accepted);
    }
    let mut polls = 1;
    clock.pass(apart);
    while !device.is_complete(0) {
        assert!(!device.is_complete(1), "it waits for the first device batch");
        clock.pass(apart);
        polls += 1;
    }
    assert!(backend.asynchronous().is_none());
    backend.run(arena.memory_mut(), &mut batch, &mut Outputs::default());
    assert_eq!(batch.verdicts(), right());
    let on = backend.on_device().expect("there was a device");
    assert_eq!((on.tally.host, on.tally.taken_back), (10, 20));
    (polls, on.failure.expect("the device was given up"))
}

#[test]
fn a_device_that_falls_silent_is_given_up_after_the_patience() {
    let (polls, failure) = given_up(Duration::from_millis(5));
    assert_eq!(polls, 401);
    assert!(failure.ends_with("has not answered for 2005 ms"), "{failure}");
}

#[test]
fn time_in_which_the_thread_was_suspended_does_not_count() {
    let (polls, failure) = given_up(Duration::from_secs(3600));
    assert_eq!(polls, 201);
    assert!(failure.ends_with("has not answered for 2010 ms"), "{failure}");
}

#[test]
fn a_thread_that_waits_for_a_silent_device_waits_no_longer_than_the_patience() {
    let (clock, step) = (Imitated::new(), Duration::from_millis(1));
    let (mut backend, (mut arena, mut batch)) = (silent(&clock, step), packets());
    let begin = clock.pass(Duration::ZERO);
    backend.run(arena.memory_mut(), &mut batch, &mut Outputs::default());
    assert_eq!(batch.verdicts(), right());
    // The clock is read twice for each poll.
    let waited = clock.pass(Duration::ZERO) - begin;
    assert!((PATIENCE..PATIENCE + 10 * step).contains(&waited), "{waited:?}");
    let on = backend.on_device().expect("there was a device");
    assert!(on.failure.is_some() && on.tally.taken_back == 10, "{on:?}");
}
