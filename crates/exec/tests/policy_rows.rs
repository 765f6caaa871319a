//! Policies read back from the rows of their tables: those of the program decide as its rules do, and those
//! that were put in, exchanged and taken out from outside decide as the program does with them.

mod policy_draft;
mod program;

use exec::{Backend, BackendKind, Outputs, load};
use ir::{Entry, Match, Program};
use lang::pipeline::{CompileOptions, Compiled, compile};
use lang::policy_rows::{HookRows, changes, of_rows};
use packet::Batch;
use policy::{Path, Policy, RuleAction, difference, evaluate};
use policy_draft::{Draft, counts, draft, packet};
use program::Random;

fn compiled(text: &str) -> Option<Compiled> {
    let compiled = compile("policy.rav", text, &|_| None, &CompileOptions::default());
    compiled.program.is_some().then_some(compiled)
}

/// The policy that these rows of the table of the only hook are.
fn read_back(compiled: &Compiled, program: &Program, rows: &[Entry]) -> Result<Policy, String> {
    let text = |entry: &Entry| format!("{entry:?}");
    let hook = HookRows { table: &program.tables[0], rows: rows.to_vec(), text: &text };
    of_rows(&compiled.policies[0], &[hook])
}

fn rows(backend: &dyn Backend) -> Vec<Entry> {
    backend.entries(0).into_iter().map(|(row, _)| row).collect()
}

#[test]
fn the_rows_of_the_program_decide_about_every_packet_as_its_rules_do() {
    let (mut compared, mut passed_over) = (0, 0);
    for seed in 1..=200u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Draft { text, .. } = draft(&mut random);
        let Some(compiled) = compiled(&text) else { continue };
        let program = compiled.program.as_ref().expect("it compiles");
        let model = compiled.policies[0].policy.as_ref().expect("it has fields alone");
        let read = read_back(&compiled, program, &program.tables[0].entries);
        let read = read.unwrap_or_else(|sentence| panic!("seed {seed}: {sentence}\n{text}"));
        let found = difference(model, &read, 5).expect("it is small");
        assert!(found.classes.is_empty(), "seed {seed}: {:#?}\n{read:#?}\n{text}", found.classes);
        compared += 1;
        passed_over += usize::from(text.contains("return") || text.contains("limit"));
    }
    println!("{compared} policies, {passed_over} with rows that pass over others");
    assert!(compared >= 170 && passed_over >= 100, "{compared}, {passed_over}");
}

/// Another row: an action, a place and conditions at random. Its key says what the rows of the program say.
fn row_from_outside(random: &mut Random, table: &ir::Table, held: &[Entry]) -> Entry {
    let like = &held[random.below(held.len() as u64) as usize];
    let mut row = Entry { priority: like.priority + random.below(3) as u32, ..like.clone() };
    if random.below(2) == 0 {
        // Addresses and the protocol are always there.
        row.key[random.below(3) as usize] = Match::Any;
    }
    row.value[0] = random.below(4).into();
    row.value[1] = [0, 5, 259, 516][random.below(4) as usize];
    row.value[2] = random.below(64).into();
    if let (Some(below), Some(last)) = (row.key.last_mut(), table.keys.last())
        && last.name == "below"
    {
        *below = Match::Range { low: u128::from(row.priority) + 1, high: u32::MAX.into() };
    }
    row
}

#[test]
fn rows_from_outside_take_part_at_their_place() {
    let (mut policies, mut packets, mut changed) = (0, 0, 0);
    for seed in 1..=200u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 7);
        let Draft { text, limits, .. } = draft(&mut random);
        // A bucket is asked about each packet that comes to it, and the walk of this test knows none.
        if !limits.is_empty() {
            continue;
        }
        let text = text.replace("counted times", "").replace("hook forward", "capacity 4k\nhook forward");
        let Some(compiled) = compiled(&text) else { continue };
        let program = compiled.program.as_ref().expect("it compiles");
        let mut backend = load(program, BackendKind::Native, 9, seed).expect("it loads");
        policies += 1;
        for _ in 0..10 {
            let held = rows(backend.as_ref());
            if random.below(3) == 0 && !held.is_empty() {
                let gone = &held[random.below(held.len() as u64) as usize];
                assert!(backend.remove(0, &gone.key, gone.priority));
            } else if !held.is_empty() {
                let row = row_from_outside(&mut random, &program.tables[0], &held);
                backend.insert(0, &row).expect("there is room");
            }
            let held = rows(backend.as_ref());
            let text_of = |entry: &Entry| format!("{entry:?}");
            let hook = HookRows { table: &program.tables[0], rows: held.clone(), text: &text_of };
            let differ = changes(&[hook]);
            changed += usize::from(differ.from_outside + differ.gone > 0);
            let read = read_back(&compiled, program, &held);
            let read = read.unwrap_or_else(|sentence| panic!("seed {seed}: {sentence}\n{text}"));
            for _ in 0..20 {
                let (packet, mut bytes, port) = packet(&mut random);
                let wanted = evaluate(&read, Path::Forwarded, &packet, &|_| false).expect("no circle");
                let before = counts(backend.as_ref());
                let length = bytes.len() as u32;
                bytes.resize(128, 0);
                let mut batch = Batch::new();
                batch.push(0, length, length, port, 1_000);
                backend.run(&mut bytes, &mut batch, &mut Outputs::default());
                let acts = &counts(backend.as_ref())[0];
                let did = (0..4).find(|act| acts[*act] > before[0][*act]);
                let act = match wanted.action {
                    RuleAction::Pass => 0,
                    RuleAction::Keep => 1,
                    RuleAction::Block => 2,
                    _ => 3,
                };
                assert_eq!(did, Some(act), "seed {seed}: {packet:?}\n{wanted:?}\n{read:#?}\n{text}");
                packets += 1;
            }
        }
    }
    println!("{policies} policies, {packets} packets, {changed} times rows differed");
    assert!(policies >= 20 && packets >= 4_000 && changed >= 150, "{policies}, {packets}, {changed}");
}
