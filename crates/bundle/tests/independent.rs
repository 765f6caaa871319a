//! A second judge, written by itself, agrees about good and bad bundles and about the edges between them.

#[path = "independent/judge.rs"]
mod judge;

mod hostile;
mod made;

use bundle::EngineVersion;
use hostile::{ADMINISTRATORS, Case, GATEWAYS, Gateways, Originals};
use judge::Situation;
use tables::generate::Random;

const CASES: usize = 20_000;

/// Asks both, and returns what both say.
fn both(gateways: &Gateways, keys: &[[u8; 32]], case: &Case) -> bool {
    let EngineVersion { major, minor, patch } = case.engine;
    let situation = Situation {
        gateway: GATEWAYS[case.gateway],
        keys,
        threshold: 2,
        now: case.now,
        newest: case.newest,
        engine: [major, minor, patch].map(u64::from),
    };
    let judged = gateways.judge(case);
    assert_eq!(judge::accepts(&case.bundle, &situation), judged.is_ok(), "{judged:?}: {case:02x?}");
    judged.is_ok()
}

#[test]
fn both_judges_say_the_same_of_every_case() {
    let seed = std::env::var("RAVELIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(278_u64);
    println!("RAVELIN_SEED={seed}");
    let random = &mut Random::new(seed);
    let (gateways, keys) = (Gateways::new(), made::public_keys(&ADMINISTRATORS));
    let originals = Originals::new(random, 200);
    let good: Vec<Case> = originals.good().collect();
    for case in &good {
        assert!(both(&gateways, &keys, case), "{case:02x?}");
    }
    let mut accepted = 0;
    for _ in 0..CASES {
        let mut case = random.pick(&good).unwrap().clone();
        // About the edges of what is accepted: times last for up to 4 seconds, and versions differ by few.
        case.now = case.now - 2 + random.below(8);
        case.newest = (case.newest + random.below(3)).saturating_sub(1);
        case.engine.major = random.between(1, 2) as u32;
        case.engine.minor = random.below(8) as u32;
        accepted += usize::from(both(&gateways, &keys, &case));
    }
    println!("{accepted} of {CASES} accepted by both");
    assert!(accepted > CASES / 100 && accepted < CASES);
    for _ in 0..CASES {
        let case = originals.hostile(random);
        assert!(!both(&gateways, &keys, &case), "{case:02x?}");
    }
}

#[test]
fn both_judges_say_the_same_of_payloads_that_are_changed_and_then_signed() {
    let seed = std::env::var("RAVELIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(279_u64);
    println!("RAVELIN_SEED={seed}");
    let random = &mut Random::new(seed);
    let (gateways, keys) = (Gateways::new(), made::public_keys(&ADMINISTRATORS));
    let mut accepted = 0;
    for _ in 0..CASES / 4 {
        let policy = made::random_policy(random);
        let mut payload = made::bytes(&made::value(&policy));
        for _ in 0..random.pareto(4) {
            let at = random.below(payload.len() as u64) as usize;
            payload[at] =
                if random.chance(50) { payload[at] ^ 1 << random.below(8) } else { random.word() as u8 };
        }
        let engine = EngineVersion { major: 2, minor: 0, patch: 0 };
        let (now, newest) = (policy.not_before, random.below(2) * (policy.version - 1));
        let case =
            Case { way: "signed", bundle: made::signed(payload, &[1, 3]), gateway: 0, now, newest, engine };
        accepted += usize::from(both(&gateways, &keys, &case));
    }
    println!("{accepted} of {} accepted by both", CASES / 4);
    assert!(accepted > 0 && accepted < CASES / 4);
}
