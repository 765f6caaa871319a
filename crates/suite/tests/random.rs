//! Random programs: almost all type-check, nothing panics, every construct occurs, and all back ends mean
//! the same.

use lang::diagnostic::Severity;
use lang::pipeline::Decode;
use std::time::Duration;
use suite::agree::{AgreeTally, compile_as, one, search};
use suite::coverage::Coverage;
use suite::program_generator::generate;

#[test]
fn almost_all_programs_type_check_and_use_every_construct() {
    // Programs whose checksums or lengths could not be kept right are refused for that alone.
    const NOT_KEPT: [&str; 3] = ["E0317", "E0319", "E0436"];
    let (mut accepted, mut not_kept, mut coverage) = (0, 0, Coverage::default());
    for seed in 0..200 {
        let generated = generate(seed);
        let compiled = compile_as(&generated.text, Decode::Lazy);
        if compiled.program.is_some() {
            accepted += 1;
            coverage.add(&generated.coverage);
        } else {
            let mut errors =
                compiled.diagnostics.iter().filter(|found| found.severity == Severity::Error).peekable();
            assert!(errors.peek().is_some(), "seed {seed}: refused without a word");
            not_kept += usize::from(errors.all(|error| NOT_KEPT.contains(&error.code)));
        }
    }
    assert!(accepted >= 150, "only {accepted} of 200 programs are accepted");
    assert!(
        accepted + not_kept >= 190,
        "only {accepted} of 200 programs type-check, and {not_kept} but for checksums"
    );
    assert_eq!(coverage.missing(), [""; 0]);
}

#[test]
fn a_seed_gives_one_program() {
    assert_eq!(generate(11).text, generate(11).text);
    assert_ne!(generate(11).text, generate(12).text);
}

/// A search that judges nothing would say the same.
#[test]
fn edits_leave_packets_right_that_came_in_right() {
    let mut tally = AgreeTally::default();
    // Two exchange the IP header of padded packets; one changes what an extension header announces between
    // the change of an address and its own removal; one changes a header and then removes it on some paths;
    // one takes out a header that it pushed.
    let found_before = [
        11_564_992_784_177_954_440,
        270_080_648_348_668_044,
        42_420_969,
        1_300_001_459,
        17_290_018_307_565_611_638,
    ];
    for seed in (0..400).chain(found_before) {
        if let Err(found) = suite::edit_search::one(seed, &mut tally) {
            let frames: Vec<&[u8]> = found.arrivals.frames.iter().map(|frame| frame.bytes).collect();
            panic!("seed {}: {}\n{frames:02x?}\n{}", found.seed, found.what, found.text);
        }
    }
    let judged = tally.judged;
    assert!(
        judged.programs > 60 && judged.refused > 5 && judged.resized > 1_000 && judged.checks > 10_000,
        "too little happened: {judged:?}"
    );
}

/// The program of this seed inserts a header that states another layout than follows, and a checksum is kept
/// right where a field lies that was read before.
#[test]
fn what_a_checksum_is_written_over_is_read_anew() {
    if let Err(found) = one(77_000_521, &mut AgreeTally::default()) {
        panic!("{}\n{}", found.what, found.text);
    }
}

#[test]
fn back_ends_agree_over_random_programs() {
    let tally = match search(1000, Duration::from_secs(600), 25) {
        Ok(tally) => tally,
        Err(found) => panic!("seed {}: {}\n{}", found.seed, found.what, found.text),
    };
    assert!(
        tally.accepted > 20 && tally.passed > 500 && tally.outputs > 100,
        "too little happened: {tally:?}"
    );
    assert!(tally.changes.iter().all(|&number| number > 0), "tables hardly changed: {:?}", tally.changes);
    let mut again = AgreeTally::default();
    let result = one(1000, &mut again);
    assert!(result.is_ok() && again.programs == 1);
}
