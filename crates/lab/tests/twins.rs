//! Twins decide on every packet as the programs do that they are twins of.

use captures::generate::{Generator, Profile};
use exec::{Backend, BackendKind, Outputs};
use ir::Program;
use lab::twins::{Firewall, Inlined, MacSwitch, Pointed};
use lang::pipeline::Decode;
use packet::{Batch, Frames, Verdict};
use ports::{Ingress, IngressPolicy, MemorySource, Order, Receive};

/// Traffic with every kind of packet, cut and damaged ones too.
fn frames() -> Frames {
    let profile = Profile {
        packets: 20_000,
        flows: 900,
        hosts: 200,
        cut_share: 0.1,
        damaged_share: 0.1,
        ..Profile::demo()
    };
    let mut generator = Generator::new(&profile, 7).expect("a possible profile");
    let (mut frames, mut bytes) = (Frames::new(), Vec::new());
    while let Some(stamp) = generator.next(&mut bytes) {
        frames.push(&bytes, stamp.wire, stamp.time);
    }
    // Every length that cuts a header, and every value of the bytes that choose a path.
    let whole: Vec<u8> =
        frames.iter().find(|frame| frame.bytes.len() >= 54).expect("a whole packet").bytes.to_vec();
    for length in 0..whole.len() {
        frames.push(&whole[..length], 1500, 0);
    }
    for place in [0, 6, 12, 13, 14, 20, 21, 23, 26, 30, 36, 37, 46] {
        for value in 0..=255 {
            let mut bytes = whole.clone();
            bytes[place] = value;
            frames.push(&bytes, 1500, 0);
        }
    }
    frames
}

fn verdicts(backend: &mut dyn Backend, frames: &Frames) -> Vec<Verdict> {
    let ingress = Ingress::new(IngressPolicy::RoundRobin, 5);
    let mut source = MemorySource::new(frames.clone(), Order::Replay, 2, false, ingress);
    let (mut batch, mut outputs, mut all) = (Batch::new(), Outputs::default(), Vec::new());
    loop {
        let memory = source.receive(&mut batch).expect("memory does not fail");
        if batch.is_empty() {
            return all;
        }
        backend.run(memory, &mut batch, &mut outputs);
        all.extend_from_slice(batch.verdicts());
    }
}

fn hold(program: &Program, twins: [Box<dyn Backend>; 2]) {
    let frames = frames();
    let mut judge = exec::load(program, BackendKind::Interpreter, 5, 3).expect("the program loads");
    let right = verdicts(judge.as_mut(), &frames);
    let kinds: std::collections::HashSet<Verdict> = right.iter().copied().collect();
    assert!(kinds.len() > 6, "the traffic takes many paths: {kinds:?}");
    for mut twin in twins {
        let found = verdicts(twin.as_mut(), &frames);
        for (number, (found, right)) in found.iter().zip(&right).enumerate() {
            let name = |verdict: &Verdict| {
                format!("{verdict} {:?}", program.reasons.get(verdict.argument() as usize))
            };
            assert_eq!(found, right, "packet {number}: {} instead of {}", name(found), name(right));
        }
        assert_eq!(found.len(), right.len());
        assert_eq!(twin.tables(), judge.tables());
        assert_eq!(twin.entries(0), judge.entries(0));
    }
}

#[test]
fn of_the_firewall() {
    let program = lab::compiled("firewall", Decode::Lazy).expect("it compiles");
    let twin = || Firewall::new(&program, 5).expect("the twin of this program");
    hold(&program, [Box::new(Pointed::new(twin(), &program)), Box::new(Inlined::new(twin(), &program))]);
}

#[test]
fn of_the_switch() {
    let program = lab::compiled("mac_switch", Decode::Lazy).expect("it compiles");
    let twin = || MacSwitch::new(&program, 5).expect("the twin of this program");
    hold(&program, [Box::new(Pointed::new(twin(), &program)), Box::new(Inlined::new(twin(), &program))]);
}

#[test]
fn a_program_with_other_reasons_has_no_twin() {
    let program = lab::compiled("hub", Decode::Lazy).expect("it compiles");
    assert!(MacSwitch::new(&program, 5).is_err());
    let program = lab::compiled("mac_switch", Decode::Lazy).expect("it compiles");
    let error = Firewall::new(&program, 5).err().expect("the switch knows no web");
    assert!(error.contains("no reason"), "{error}");
}
