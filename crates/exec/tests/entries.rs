//! Entries from outside: what is put in, taken out and exchanged by a control plane, on all back ends.

use exec::{Backend, BackendKind, EntryError, Outputs, load};
use ir::{Entry, Match};
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, Verdict};

fn loaded(text: &str, back_end: BackendKind) -> Box<dyn Backend> {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    load(&program, back_end, 9, 1).expect("loads")
}

fn both(case: impl Fn(BackendKind)) {
    case(BackendKind::Interpreter);
    case(BackendKind::Native);
}

/// The verdict on a packet of these bytes.
fn verdict(backend: &mut dyn Backend, bytes: &[u8]) -> Verdict {
    let mut memory = vec![0; 128];
    memory[..bytes.len()].copy_from_slice(bytes);
    let mut batch = Batch::new();
    batch.push(0, bytes.len() as u32, bytes.len() as u32, 1, 1_000);
    backend.run(&mut memory, &mut batch, &mut Outputs::default());
    batch.verdict[0]
}

const HOLDING: &str = "
    layout probe { id: u8 }
    pool numbers: u16 { 7..7 }
    table held: exact(u8) -> u16 { capacity 4 idle 10s evict refuse releases numbers }
    start decoder frame(p: probe) {
        match take(numbers) {
            some n => { insert held[p.id] = n else { drop full } send n as port_of }
            none => drop empty
        }
    }";

#[test]
fn an_item_comes_back_whatever_takes_its_entry_away() {
    let text = HOLDING.replace("send n as port_of", "send 7");
    both(|back_end| {
        let mut backend = loaded(&text, back_end);
        let taken = Verdict::send(7);
        assert_eq!(verdict(backend.as_mut(), &[1]), taken);
        assert_ne!(verdict(backend.as_mut(), &[2]), taken, "the only item is taken");
        assert!(backend.remove(0, &[Match::Exact(1)], 0));
        assert!(!backend.remove(0, &[Match::Exact(1)], 0));
        assert_eq!(verdict(backend.as_mut(), &[2]), taken, "removed");
        backend.replace(0, Vec::new()).expect("fits");
        assert_eq!(verdict(backend.as_mut(), &[3]), taken, "exchanged");
        backend.insert(0, &Entry::exact(&[3], &[9])).expect("fits");
        assert_eq!(verdict(backend.as_mut(), &[4]), taken, "given another value");
        backend.insert(0, &Entry::exact(&[4], &[7])).expect("fits");
        assert_ne!(verdict(backend.as_mut(), &[5]), taken, "the same value holds it still");
    });
}

const RULES: &str = "
    layout probe { a: u8 }
    table acl: rules(u8) -> u8 { capacity 4 entries { 1..9 => 2, _ => 3, 1..9 => 4 } }
    start decoder frame(p: probe) { match acl[p.a] { 2 => send 2, some 3 => send 3, some 4 => send 4, else => flood } }";

#[test]
fn rules_that_stand_twice_are_taken_out_one_by_one_and_keep_their_place() {
    let text = RULES.replace("{ 2 => send 2, some 3", "{ some 2 => send 2, some 3");
    both(|back_end| {
        let mut backend = loaded(&text, back_end);
        let (key, all) = ([Match::Range { low: 1, high: 9 }], [Match::Any]);
        assert_eq!(verdict(backend.as_mut(), &[5]), Verdict::send(2));
        let changed = Entry { key: key.to_vec(), value: vec![4], priority: 0 };
        backend.insert(0, &changed).expect("it is there");
        assert_eq!(verdict(backend.as_mut(), &[5]), Verdict::send(4), "in its old place");
        assert_eq!(backend.entries(0).len(), 3);
        assert!(backend.remove(0, &key, 0));
        assert_eq!(verdict(backend.as_mut(), &[5]), Verdict::send(3));
        assert!(backend.remove(0, &all, 0));
        assert_eq!(verdict(backend.as_mut(), &[5]), Verdict::send(4), "the second of the two");
        assert!(backend.remove(0, &key, 0));
        assert!(!backend.remove(0, &key, 0));
        assert_eq!(verdict(backend.as_mut(), &[5]), Verdict::FLOOD);
    });
}

#[test]
fn what_does_not_suit_or_fit_changes_nothing() {
    let text = "
        layout probe { a: u8 }
        table nets: lpm(u8) -> u8 { capacity 2 entries { 128 / 1 => 5 } }
        start decoder frame(p: probe) { match nets[p.a] { some n => drop found, none => flood } }";
    both(|back_end| {
        let mut backend = loaded(text, back_end);
        let before = backend.entries(0);
        let entry =
            |part: Match, value: &[u128]| Entry { key: vec![part], value: value.to_vec(), priority: 0 };
        for (wrong, why) in [
            (entry(Match::Range { low: 1, high: 2 }, &[1]), "a range"),
            (entry(Match::Exact(256), &[1]), "too large"),
            (entry(Match::Prefix { value: 1, length: 4 }, &[1]), "bits behind the length"),
            (entry(Match::Exact(1), &[]), "no value"),
            (Entry::exact(&[1, 2], &[1]), "two parts"),
        ] {
            assert_eq!(backend.insert(0, &wrong), Err(EntryError::Key), "{why}");
            assert_eq!(backend.replace(0, vec![wrong]), Err(EntryError::Key), "{why}");
        }
        let many = (0..3).map(|number| Entry::exact(&[number], &[1])).collect();
        assert_eq!(backend.replace(0, many), Err(EntryError::Full { capacity: 2 }));
        assert_eq!(backend.entries(0), before);
        backend.insert(0, &Entry::exact(&[3], &[1])).expect("room");
        assert_eq!(backend.insert(0, &Entry::exact(&[4], &[1])), Err(EntryError::Full { capacity: 2 }));
        backend.insert(0, &Entry::exact(&[3], &[2])).expect("it is there already");
        assert_eq!(backend.set_default(0, Some(&[1])), Err(EntryError::NoDefault));
    });
}
