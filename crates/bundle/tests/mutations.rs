//! A million bundles that were changed, replayed, or signed by too few or by others: none is accepted.

mod hostile;
mod made;

use bundle::BundleRefusal;
use hostile::{Case, Gateways, Originals};
use std::collections::BTreeMap;
use tables::generate::Random;

const CASES: usize = 1_000_000;
const THREADS: usize = 2;

/// Whether the signatures were computed before the bundle was refused.
fn reached_signatures(case: &Case, refusal: &BundleRefusal) -> bool {
    use BundleRefusal::{
        Expired, Malformed, NotYetValid, OldEngine, OldVersion, OtherGateway, TooLarge, WrongSignature,
    };
    match refusal {
        WrongSignature { .. } | OtherGateway { .. } | OldVersion { .. } => true,
        NotYetValid { .. } | Expired { .. } | OldEngine { .. } => true,
        Malformed { .. } | TooLarge { .. } => case.way == "another form of CBOR, signed",
        _ => false,
    }
}

/// Cases by the way they were made, with how many of them reached the signatures.
type Counts = BTreeMap<&'static str, (usize, usize)>;

fn run(seed: u64, cases: usize) -> Counts {
    let random = &mut Random::new(seed);
    let originals = Originals::new(random, 16);
    let gateways = Gateways::new();
    let good: Vec<Case> = originals.good().collect();
    let all_good = |when: usize| {
        for case in &good {
            let judged = gateways.judge(case);
            assert!(judged.is_ok(), "{judged:?}, seed {seed}, before case {when}: {case:02x?}");
        }
    };
    let mut counts = Counts::new();
    for number in 0..cases {
        if number % 10_000 == 0 {
            all_good(number);
        }
        let case = originals.hostile(random);
        let Err(refusal) = gateways.judge(&case) else {
            panic!("accepted, seed {seed}, case {number}: {case:02x?}");
        };
        let (all, reached) = counts.entry(case.way).or_default();
        *all += 1;
        *reached += usize::from(reached_signatures(&case, &refusal));
    }
    all_good(cases);
    counts
}

#[test]
fn no_hostile_bundle_is_accepted() {
    let first = std::env::var("RAVELIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(277_u64);
    println!("{THREADS} seeds from RAVELIN_SEED={first} on");
    let runs: Vec<Counts> = std::thread::scope(|scope| {
        let start = |thread| scope.spawn(move || run(first + thread as u64, CASES / THREADS));
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut counts = Counts::new();
    for (way, (all, reached)) in runs.into_iter().flatten() {
        let sum = counts.entry(way).or_default();
        *sum = (sum.0 + all, sum.1 + reached);
    }
    for (way, (all, reached)) in &counts {
        println!("{all:>8} refused, {reached:>8} of them after signatures were computed: {way}");
    }
    let (all, reached) = counts.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{all:>8} refused, {reached:>8} of them after signatures were computed");
    assert_eq!(all, CASES);
    assert_eq!(counts.len(), 24, "each way was taken");
    // Otherwise the cases would be judged by their outer form alone.
    assert!(reached > CASES / 2);
}
