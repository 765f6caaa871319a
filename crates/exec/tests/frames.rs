//! How much stack machine code needs: what is refused, that what is accepted runs on small stacks beside each
//! other, and what a stack that is too small does.

mod program;

use exec::{BackendKind, LoadError, load, native};
use ir::limits::{LARGEST_FRAME, MOST_ARGUMENTS, MOST_HOLES};
use ir::verify::Fault;
use ir::*;
use packet::Frames;
use program::*;
use std::sync::Barrier;

/// Bytes that the programs of this file read.
const BYTES: u32 = 4000;

/// Keeps so many loaded bytes on the stack, all until the packet's end, and emits a packet with so many of
/// them.
fn keeping(values: usize, holes: usize) -> Program {
    let mut packet = Build::new("packet");
    let start = packet.constant(32, 0);
    packet.need(start, BYTES);
    let loaded: Vec<Value> = (0..values)
        .map(|index| {
            let (bytes, offset) = (1 + index as u32 / 3990, index as u32 % 3990);
            let op = Op::Load { base: start, offset, bytes: bytes as u8, proven: BYTES };
            let value = packet.one(op, bytes as u8 * 8);
            // Nothing before this has an effect that could be done later.
            if bytes == 1 { value } else { packet.one(Op::Resize(value), 8) }
        })
        .collect();
    let port = packet.constant(16, 2);
    let emitted: Vec<Value> = loaded.iter().cycle().take(holes).copied().collect();
    packet.none(Op::Emit { template: 0, values: emitted, tail: None, limit: None, port });
    let sum = loaded.iter().rev().copied().reduce(|a, b| packet.one(Op::Binary(BinaryOp::Add, a, b), 8));
    let sum = sum.expect("there are values");
    let sum = packet.one(Op::Resize(sum), 32);
    packet.none(Op::Count { counter: 0, index: Some(sum) });
    packet.end(Terminator::Send(port));
    let mut program = program(vec![packet]);
    program.counters = vec![Counter { name: "sums".to_string(), size: 256, indexed: true }];
    let holes = (0..holes as u32).map(|hole| Hole { bit: hole * 8, width: 8 }).collect::<Vec<_>>();
    program.templates = vec![Template { bytes: vec![0; holes.len()], holes, sums: Vec::new() }];
    allowed(program)
}

/// The largest program of that kind that the estimate admits.
fn largest() -> Program {
    let bytes = |values| frame::frame(&keeping(values, MOST_HOLES).functions[0]).bytes;
    let (two, each) = (bytes(2), bytes(3) - bytes(2));
    let values = 2 + ((u64::from(LARGEST_FRAME) - two) / each) as usize;
    assert!(bytes(values) <= LARGEST_FRAME.into() && bytes(values + 1) > LARGEST_FRAME.into());
    keeping(values, MOST_HOLES)
}

fn packets() -> Frames {
    let mut frames = Frames::new();
    for number in 0..64_u32 {
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at * 7 + number * 13) as u8).collect();
        frames.push(&bytes, BYTES, u64::from(number));
    }
    frames
}

fn refused(program: &Program) -> Fault {
    let Err(LoadError::Verify(faults)) = load(program, BackendKind::Native, 4, 1) else {
        panic!("it is refused")
    };
    faults[0].fault.clone()
}

#[test]
fn more_holes_arguments_or_values_than_a_frame_holds_are_refused() {
    assert_eq!(refused(&keeping(1, 204_800)), Fault::TooManyHoles(0));
    assert_eq!(refused(&keeping(1, MOST_HOLES + 1)), Fault::TooManyHoles(0));
    assert!(
        matches!(refused(&keeping(30_000, MOST_HOLES)), Fault::LargeFrame(bytes) if bytes > LARGEST_FRAME.into())
    );
    let mut many = keeping(1, 1);
    many.functions.push(Build::new("handler").function);
    many.functions[1].blocks[0].params = (0..=MOST_ARGUMENTS as u32).map(Value).collect();
    many.functions[1].widths = vec![1; MOST_ARGUMENTS + 1];
    let params = columns(&[1; MOST_ARGUMENTS + 1]);
    many.events = vec![Event { name: "many".to_string(), params, handler: 1 }];
    assert_eq!(refused(&many), Fault::TooManyArguments(0));
}

#[test]
fn the_largest_frame_runs_on_two_small_stacks_at_once() {
    let program = largest();
    let laid_out = native::frames(&program).expect("the estimate admits it")[0].1;
    assert!(laid_out > LARGEST_FRAME / 2, "only {laid_out} bytes: nothing is shown");
    let judge = run(&program, BackendKind::Interpreter, &packets(), 64);
    let (program, judge, both) = (&program, &judge, &Barrier::new(2));
    std::thread::scope(|scope| {
        for worker in 0..2_u8 {
            let work = move || {
                let below = std::hint::black_box([0xa5 ^ worker; 4096]);
                both.wait();
                let native = run(program, BackendKind::Native, &packets(), 7);
                both.wait();
                assert_eq!(native, *judge);
                assert_eq!(std::hint::black_box(below), [0xa5 ^ worker; 4096]);
            };
            // Compiling needs more than running; what is run here needs the frame and little besides.
            let stack = std::thread::Builder::new().stack_size(LARGEST_FRAME as usize + (768 << 10));
            stack.spawn_scoped(scope, work).expect("a thread can be had");
        }
    });
}

/// Runs this test once more in a process of its own, with a stack smaller than the frame.
#[test]
fn a_stack_that_is_too_small_ends_the_process_at_its_guard_page() {
    const INSIDE: &str = "RAVELIN_TEST_SMALL_STACK";
    let name = "a_stack_that_is_too_small_ends_the_process_at_its_guard_page";
    if std::env::var_os(INSIDE).is_some() {
        let program = keeping(12_000, 1);
        let mut backend = load(&program, BackendKind::Native, 4, 7).expect("it is admitted");
        let (mut frames, mut batch) = (packets(), packet::Batch::new());
        let mut outputs = exec::Outputs::default();
        frames.fill(&mut batch, 0..1);
        let work = move || backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        let thread =
            std::thread::Builder::new().stack_size(48 << 10).spawn(work).expect("a thread can be had");
        thread.join().expect("it ends");
        return;
    }
    let own = std::env::current_exe().expect("the test has a file");
    let ended =
        std::process::Command::new(own).args(["--exact", name, "--nocapture"]).env(INSIDE, "1").output();
    let ended = ended.expect("the test can be started again");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        !ended.status.success() && said.contains("has overflowed its stack"),
        "{:?}: {said}",
        ended.status
    );
}
