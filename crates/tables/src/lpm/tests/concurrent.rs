//! Readers beside the writer: every answer is one that was right at some moment of the lookup.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::spec::leading;
use super::super::{Lpm, LpmModel, LpmReader, LpmSpec, LpmTable, NONE, Prefix, Variant};

/// What readers may be told: for each address the answer before and after the change under way, and how many
/// changes began or ended so far.
struct Truth {
    addresses: Vec<u128>,
    answers: Vec<AtomicU64>,
    moments: AtomicU64,
    done: AtomicBool,
}

impl Truth {
    /// Of every address, the answers before and after, at a moment that can be compared.
    fn look(&self) -> (u64, Vec<u64>) {
        let moment = self.moments.load(Ordering::SeqCst);
        (moment, self.answers.iter().map(|answer| answer.load(Ordering::SeqCst)).collect())
    }

    /// Lets both answers count while a change is under way.
    fn change(&self, old: &[u32], new: &[u32], change: impl FnOnce()) {
        self.moments.fetch_add(1, Ordering::SeqCst);
        for ((answer, old), new) in self.answers.iter().zip(old).zip(new) {
            answer.store(u64::from(*old) << 32 | u64::from(*new), Ordering::SeqCst);
        }
        change();
        for (answer, new) in self.answers.iter().zip(new) {
            answer.store(u64::from(*new) << 32 | u64::from(*new), Ordering::SeqCst);
        }
    }
}

/// Looks everything up again and again; how many answers it could judge.
fn read(truth: &Truth, mut reader: LpmReader) -> u64 {
    let mut judged = 0;
    let mut out = vec![0; truth.addresses.len()];
    while !truth.done.load(Ordering::SeqCst) || judged == 0 {
        let (before, first) = truth.look();
        reader.find_bulk128(&truth.addresses, &mut out);
        let single: Vec<u32> = truth.addresses.iter().map(|address| reader.find(*address)).collect();
        let (after, last) = truth.look();
        // More changes than one: an answer in between may have come and gone unseen.
        if after - before > 1 {
            continue;
        }
        for index in 0..out.len() {
            let may = [first[index] >> 32, first[index], last[index] >> 32, last[index]]
                .map(|answer| answer as u32);
            for found in [out[index], single[index]] {
                assert!(may.contains(&found), "{:#x}: found {found}, may be {may:?}", truth.addresses[index]);
                judged += 1;
            }
        }
    }
    judged
}

fn play(width: u8, variant: Variant, changes: usize) {
    let spec = LpmSpec { width, capacity: 4000 };
    let mut random = xorshift();
    // All prefixes lie under a few high bits, so that they meet in the same nodes.
    let mut prefix = move || {
        let least = if width == 32 { 10 } else { 14 };
        let length = least + (random() % u64::from(width - least + 1)) as u8;
        let length = if random().is_multiple_of(3) { length } else { length.min(least + 20) };
        let high = u128::from(0x2001u16 + (random() % 2) as u16) << 112;
        let low = u128::from(random() % 4) << 108 | u128::from(random() % 64) << 96 | u128::from(random());
        let bits = (high | low & (u128::MAX >> 20)) >> (128 - u32::from(width));
        (Prefix { bits: bits & leading(length, width), length }, random())
    };
    let addresses: Vec<u128> = (0..48).map(|_| prefix().0.bits).collect();
    let mut table = LpmTable::with(spec, variant).unwrap();
    let mut model = LpmModel::new(spec).unwrap();
    let answers = addresses.iter().map(|_| AtomicU64::new(u64::from(NONE) << 32 | u64::from(NONE))).collect();
    let truth = Truth { addresses, answers, moments: AtomicU64::new(0), done: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let reader = table.reader();
                scope.spawn(|| read(&truth, reader))
            })
            .collect();
        let look = |model: &LpmModel| -> Vec<u32> {
            truth.addresses.iter().map(|address| model.find(*address).unwrap_or(NONE)).collect()
        };
        let mut old = look(&model);
        let mut named: Vec<Prefix> = Vec::new();
        for number in 0..changes {
            let (new, chance) = prefix();
            // Values grow, so that the table passes through all its forms.
            let value = (chance % (number as u64 + 2)) as u32;
            let value = if number > changes / 2 && chance % 7 == 0 { value | 0x8000_0000 } else { value };
            let gone = (chance % 5 < 2 && !named.is_empty())
                .then(|| named.swap_remove(chance as usize / 5 % named.len()));
            match gone {
                Some(prefix) => model.remove(prefix),
                None => model.insert(new, value).unwrap(),
            };
            let after = look(&model);
            truth.change(&old, &after, || {
                match gone {
                    Some(prefix) => table.remove(prefix),
                    None => table.insert(new, value).unwrap(),
                };
            });
            named.extend(gone.is_none().then_some(new));
            old = after;
        }
        truth.done.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    assert_eq!(table.entries(), model.entries());
}

fn xorshift() -> impl FnMut() -> u64 {
    let mut state = 88_172_645_463_325_252u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 8
    }
}

#[test]
fn readers_of_direct_cells_see_before_or_after() {
    play(32, Variant::Fast, 3000);
}

#[test]
fn readers_of_a_tree_of_32_bits_see_before_or_after() {
    play(32, Variant::Compact, 3000);
}

#[test]
fn readers_of_a_tree_of_128_bits_see_before_or_after() {
    play(128, Variant::Fast, 3000);
}
