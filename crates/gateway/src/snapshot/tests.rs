//! Snapshots: what comes back, what does not, and files that are none.

use super::*;
use exec::{BackendKind, load};
use lang::pipeline::{CompileOptions, compile};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

const PROGRAM: &str = "
pool numbers: u16 { 1..9 }
table hosts: exact(u48, bool) -> (port, u40) { capacity 100  idle 60s  evict refuse  entries { (2, true) => (1, 7) } }
table taken: exact(ip6) -> u16 { capacity 100  age 60s  evict refuse  releases numbers }
table kinds: exact(u8) -> { off, on(level: u8) } { capacity 8 }
table ages: exact(u8) -> time { capacity 8 }
table nets: lpm(ip4) -> port { capacity 10 }
start stage all() {
    match hosts[2, false] { some _ => {}, none => {} }
    match taken[::1] { some _ => {}, none => {} }
    match ages[1] { some _ => {}, none => {} }
    match kinds[1] { some on(l) => {}, else => {} }
    match nets[1.2.3.4] { some p => send p, none => {} }
    match take(numbers) { some n => send n as| port, none => flood }
}
";

fn program(text: &str) -> Program {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

fn workers(program: &Program, count: usize) -> Vec<Box<dyn Backend>> {
    (0..count).map(|_| load(program, BackendKind::Native, 9, 0).expect("loads")).collect()
}

fn control(workers: &[Box<dyn Backend>]) -> Vec<&dyn ProgramControl> {
    workers.iter().map(|worker| worker.control()).collect()
}

fn exact(key: &[u128], value: &[u128]) -> Entry {
    Entry::exact(key, value)
}

const WRITTEN: u64 = 1_000 * SECOND;

/// So many seconds after the snapshot was written.
fn after(seconds: u64) -> Moment {
    Moment { program: WRITTEN + seconds * SECOND, start: "one".to_owned() }
}

/// A file of two workers with some entries.
fn written(program: &Program, path: &Path) {
    let mut workers = workers(program, 2);
    for (worker, number) in workers.iter_mut().zip([5, 6]) {
        worker.learn(0, &exact(&[number, 0], &[3, (1 << 40) - number]), WRITTEN).expect("room");
        worker.learn(1, &exact(&[u128::MAX - number], &[number]), WRITTEN).expect("room");
        worker.learn(2, &exact(&[number], &[1, 200]), WRITTEN).expect("room");
        worker.learn(3, &exact(&[number], &[SECOND.into()]), WRITTEN).expect("room");
    }
    write(path, program, &control(&workers), &after(0)).expect("written");
}

#[test]
fn what_packets_learned_comes_back_to_its_worker_with_its_items_and_the_rest_of_its_time() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    written(&program, &path);
    let mut anew = workers(&program, 2);
    let now = WRITTEN + 20 * SECOND;
    let returned = read(&path, &program, &mut anew, &after(20)).expect("right").expect("there");
    assert_eq!(returned.age, Some(20));
    let all = ["hosts", "taken", "kinds", "ages"].map(|name| (name.to_owned(), 2, 0));
    assert_eq!(returned.tables, all);
    for (worker, number) in anew.iter_mut().zip([5, 6]) {
        assert_eq!(worker.learned(0), [exact(&[number, 0], &[3, (1 << 40) - number])]);
        assert_eq!(worker.learned(1), [exact(&[u128::MAX - number], &[number])]);
        assert_eq!(worker.entries(0).len(), 2, "the text has one");
        let mut outputs = exec::Outputs::default();
        worker.advance(now + 39 * SECOND, &mut outputs);
        assert_eq!([worker.learned(0).len(), worker.learned(1).len()], [1, 1]);
        worker.advance(now + 41 * SECOND, &mut outputs);
        assert_eq!([worker.learned(0).len(), worker.learned(1).len(), worker.learned(2).len()], [0, 0, 1]);
    }
    let file = fs::metadata(&path).expect("there");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert!(!beside(&path).exists());
}

#[test]
fn an_item_that_came_back_is_not_handed_out_again() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    written(&program, &path);
    let mut anew = workers(&program, 2);
    read(&path, &program, &mut anew, &after(1)).expect("right");
    let (mut memory, mut batch) = (vec![0; 64 + packet::region::SLACK], packet::Batch::new());
    for _ in 0..9 {
        batch.push(0, 60, 60, 1, WRITTEN + SECOND);
    }
    anew[0].run(&mut memory, &mut batch, &mut exec::Outputs::default());
    let sent: BTreeSet<u32> = batch
        .verdicts()
        .iter()
        .filter(|verdict| verdict.kind() == packet::VerdictKind::Send)
        .map(|verdict| u32::from(verdict.argument()))
        .collect();
    assert_eq!(sent, (1..=9).filter(|number| *number != 5).collect(), "5 is taken");
}

#[test]
fn an_entry_comes_back_with_the_rest_of_its_lifetime() {
    let text = "
table leases: exact(u16) -> u8 { capacity 8  age 60s  evict refuse }
layout lease { who: u16 }
start decoder all(l: lease) {
    match l.who { 1 => { learn leases[1] = 1 for 30s else {} }, else => { learn leases[l.who] = 2 else {} } }
    flood
}";
    let without = text.replace(" for 30s", "");
    let (program, without) = (program(text), super::tests::program(&without));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    let mut old = workers(&program, 1);
    let mut frames = packet::Frames::new();
    (1..3).for_each(|who| frames.push(&[0, who], 60, WRITTEN - 5 * SECOND));
    let mut batch = packet::Batch::new();
    frames.fill(&mut batch, 0..2);
    batch.port[..2].fill(1);
    old[0].run(frames.memory_mut(), &mut batch, &mut exec::Outputs::default());
    write(&path, &program, &control(&old), &after(0)).expect("written");
    assert!(most_bytes(&program, 1, &after(0)) >= fs::metadata(&path).expect("a file").len());
    for program in [&program, &without] {
        let mut anew = workers(program, 1);
        let returned = read(&path, program, &mut anew, &after(10)).expect("right").expect("there");
        assert_eq!(returned.tables, [("leases".to_owned(), 2, 0)]);
        let mut left_at = |time: u64| {
            anew[0].advance(time, &mut exec::Outputs::default());
            let mut left: Vec<_> = anew[0].learned(0).iter().map(|entry| entry.value[0]).collect();
            left.sort_unstable();
            left
        };
        assert_eq!(left_at(WRITTEN + 25 * SECOND - 1), [1, 2]);
        assert_eq!(left_at(WRITTEN + 25 * SECOND), [2]);
        assert_eq!(left_at(WRITTEN + 55 * SECOND), [0; 0]);
    }
    let mut late = workers(&program, 1);
    let returned = read(&path, &program, &mut late, &after(40)).expect("right").expect("there");
    assert_eq!(returned.tables, [("leases".to_owned(), 2, 0)]);
    late[0].advance(WRITTEN + 40 * SECOND, &mut exec::Outputs::default());
    assert_eq!(late[0].learned(0).len(), 1, "what ended meanwhile has ended");
}

#[test]
fn what_does_not_fit_the_program_or_is_over_is_left_out_and_told() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    written(&program, &path);
    let back_at = |text: &str, now: &Moment| {
        let program = super::tests::program(text);
        let mut anew = workers(&program, 2);
        let returned = read(&path, &program, &mut anew, now).expect("right").expect("there");
        returned.tables.iter().map(|(_, taken, _)| *taken).collect::<Vec<_>>()
    };
    let back = |text: &str, seconds: u64| back_at(text, &after(seconds));
    assert_eq!(back(PROGRAM, 59), [2, 2, 2, 2]);
    assert_eq!(back(PROGRAM, 60), [0, 0, 2, 2]);
    assert_eq!(back(&PROGRAM.replace("u40", "u48"), 1), [0, 2, 2, 2], "another width");
    assert_eq!(back(&PROGRAM.replace("off, on(", "on(level: u8), off2("), 1), [2, 2, 0, 2], "other variants");
    assert_eq!(back(&PROGRAM.replace("kinds", "sorts"), 1), [2, 2, 0, 2], "no such table");
    assert_eq!(back(&PROGRAM.replace("1..9", "6..9"), 1), [2, 1, 2, 2], "the pool has no 5");
    assert_eq!(back(&PROGRAM.replace("capacity 8 ", "capacity 1 "), 1), [2, 2, 2, 2], "one at each worker");
}

#[test]
fn what_is_secret_is_in_no_file() {
    let (secret, folder) = (0x5ec2_e75e_c2e7_u128, tempfile::tempdir().expect("a folder"));
    for (is_secret, text) in [
        (false, PROGRAM.to_owned()),
        (true, PROGRAM.replace("60s  evict refuse  e", "60s  evict refuse  secret  e")),
    ] {
        let (program, path) = (program(&text), folder.path().join("state"));
        assert_eq!(program.tables[0].secret, is_secret);
        let mut workers = workers(&program, 2);
        workers[0].learn(0, &exact(&[secret, 0], &[3, 9]), WRITTEN).expect("room");
        write(&path, &program, &control(&workers), &after(0)).expect("written");
        let bytes = fs::read(&path).expect("a file");
        let shown = bytes.windows(6).any(|part| part == &secret.to_be_bytes()[10..]);
        assert_eq!(shown, !is_secret);
        assert!(most_bytes(&program, 2, &after(0)) >= bytes.len() as u64);
    }
}

/// The program's time cannot say when something was made before the machine started, however early or late
/// after that start somebody asks, and no other clock is asked.
#[test]
fn after_another_start_of_the_machine_what_ends_or_tells_a_time_is_left_out() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    written(&program, &path);
    for (start, program_time) in
        ["other", ""].into_iter().flat_map(|start| [0, SECOND, 2 * WRITTEN].map(|time| (start, time)))
    {
        let now = Moment { program: program_time, start: start.to_owned() };
        let mut anew = workers(&program, 2);
        let returned = read(&path, &program, &mut anew, &now).expect("right").expect("there");
        let taken: Vec<_> = returned.tables.iter().map(|(_, taken, _)| *taken).collect();
        assert_eq!((returned.age, taken), (None, vec![0, 0, 2, 0]));
    }
    // Neither start is known.
    let unknown = |program| Moment { program, start: String::new() };
    write(&path, &program, &control(&workers(&program, 2)), &unknown(WRITTEN)).expect("written");
    let returned = read(&path, &program, &mut workers(&program, 2), &unknown(WRITTEN + SECOND));
    assert_eq!(returned.expect("right").expect("there").age, None);
}

#[test]
fn a_file_of_a_later_time_than_now_brings_nothing() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    written(&program, &path);
    let mut anew = workers(&program, 2);
    let before = Moment { program: WRITTEN - 3 * SECOND, ..after(0) };
    let said = read(&path, &program, &mut anew, &before).expect_err("refused").to_string();
    assert!(said.contains("written 3 s later than now"), "{said}");
    assert!((0..4).all(|table| anew.iter().all(|worker| worker.learned(table).is_empty())));
}

#[test]
fn a_file_that_is_not_exactly_a_snapshot_brings_nothing() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    let mut two = workers(&program, 2);
    let told = |path: &Path, workers: &mut [Box<dyn Backend>]| {
        read(path, &program, workers, &after(1)).map_err(|error| error.to_string())
    };
    assert_eq!(told(&path, &mut two), Ok(None), "the first start");
    written(&program, &path);
    let bytes = fs::read(&path).expect("there");
    assert!(told(&path, &mut workers(&program, 1)).is_err_and(|error| error.contains("of 2 workers")));
    let mut with = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("written");
        told(&path, &mut two).expect_err("refused")
    };
    assert!(with(b"").contains("no snapshot") && with(b"#!/bin/sh\n").contains("no snapshot"));
    let mut other = bytes.clone();
    other[9] = 1;
    assert!(with(&other).contains("version is 1"));
    for at in 10..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 4;
        assert!(with(&other).contains("checksum"), "byte {at}");
    }
    for length in 8..bytes.len() {
        assert!(with(&bytes[..length]).contains("damaged"), "{length} bytes");
    }
    // The checksum is right, and the contents are not.
    let seal = |contents: &[u8]| [contents, &crc32fast::hash(contents).to_be_bytes()].concat();
    let contents = &bytes[..bytes.len() - 4];
    for length in 10..contents.len() {
        assert!(with(&seal(&contents[..length])).contains("ends too early"), "{length} bytes");
    }
    assert!(with(&seal(&[contents, &[0]].concat())).contains("ends too early, or too late"));
    assert_eq!(two.iter().map(|worker| worker.learned(0).len()).sum::<usize>(), 0);
    let long = File::create(&path).expect("made");
    long.set_len(SNAPSHOT_BYTES + 1).expect("a hole");
    assert!(told(&path, &mut two).is_err_and(|error| error.contains("more than 1073741824")));
}

/// A pipe without a writer and a device without an end: who opens and reads them waits for ever.
#[test]
fn what_is_no_regular_file_is_neither_waited_for_nor_written_over() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    for path in [path.as_path(), Path::new("/dev/zero"), folder.path()] {
        let read = read(path, &program, &mut workers(&program, 2), &after(1));
        let said = read.expect_err("refused").to_string();
        assert!(said.contains("only regular files"), "{said}");
        let said = probe(path).expect_err("refused").to_string();
        assert!(said.contains("no regular file"), "{said}");
    }
}

#[test]
fn an_earlier_file_stays_where_the_new_one_cannot_be_written() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    assert!(probe(&folder.path().join("none/state")).is_err());
    probe(&path).expect("it can be written");
    written(&program, &path);
    let before = fs::read(&path).expect("there");
    fs::create_dir(beside(&path)).expect("in the way");
    assert!(probe(&path).is_err());
    assert!(write(&path, &program, &control(&workers(&program, 2)), &after(9)).is_err());
    assert_eq!(fs::read(&path).expect("there"), before);
}

#[test]
fn nothing_that_others_put_beside_a_snapshot_is_written_to_or_kept() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let (path, other) = (folder.path().join("state"), folder.path().join("other"));
    let names = [beside(&path), folder.path().join("state.new")];
    fs::write(&other, "of somebody else").expect("written");
    for probes in [true, false] {
        for name in &names {
            std::os::unix::fs::symlink(&other, name).expect("a link");
        }
        if probes {
            probe(&path).expect("it can be written")
        } else {
            written(&program, &path)
        }
        assert_eq!(fs::read_to_string(&other).expect("there"), "of somebody else");
        fs::remove_file(&names[1]).expect("that of another process is left alone");
    }
    for name in &names {
        fs::write(name, "for all to read").expect("written");
        fs::set_permissions(name, Permissions::from_mode(0o644)).expect("set");
    }
    written(&program, &path);
    let file = fs::symlink_metadata(&path).expect("there");
    assert_eq!((file.is_file(), file.permissions().mode() & 0o777), (true, 0o600));
    assert_eq!(fs::read_to_string(&names[1]).expect("there"), "for all to read");
}

#[test]
fn the_bytes_of_full_tables_are_known_before() {
    let (program, folder) = (
        program(&PROGRAM.replace("entries { (2, true) => (1, 7) }", "")),
        tempfile::tempdir().expect("a folder"),
    );
    let path = folder.path().join("state");
    let mut full = workers(&program, 2);
    for worker in &mut full {
        for (table, value) in [(0, &[1, 2][..]), (1, &[7]), (2, &[1, 200]), (3, &[5])] {
            let capacity = u128::from(program.tables[table as usize].capacity);
            for key in 0..capacity {
                let key = if table == 0 { vec![key, 0] } else { vec![key] };
                worker.learn(table, &exact(&key, value), WRITTEN).expect("room");
            }
        }
    }
    write(&path, &program, &control(&full), &after(0)).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").len(), most_bytes(&program, 2, &after(0)));
}

#[test]
fn a_file_that_was_read_is_not_read_again() {
    let (program, folder) = (program(PROGRAM), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("state");
    put_aside(&path).expect("there is none");
    written(&program, &path);
    let bytes = fs::read(&path).expect("there");
    fs::write(folder.path().join("state.old"), "of a time before").expect("written");
    put_aside(&path).expect("it is moved");
    assert_eq!(read(&path, &program, &mut workers(&program, 2), &after(1)).expect("none"), None);
    assert_eq!(fs::read(folder.path().join("state.old")).expect("there"), bytes);
}

proptest! {
    /// Whatever a file holds, reading it ends, and only an untouched file is taken.
    #[test]
    fn no_contents_bring_harm(contents in prop::collection::vec(any::<u8>(), 0..200), version in 1_u16..4) {
        let start = [&MAGIC[..], &version.to_be_bytes(), &contents].concat();
        let whole = [&start[..], &crc32fast::hash(&start).to_be_bytes()].concat();
        if let Ok((_, _, parts)) = parts(&whole, 1) {
            prop_assert!(parts.iter().all(|part| part.bytes > 0 && part.entries.len() == 1));
        }
    }
}
