//! Any bytes are refused by line as filters, traces, lists of strings or rules of Snort, or kept.
#![no_main]

use import::classbench::{self, ClassBenchOptions};
use import::{literals, snort};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(rules) = classbench::read(bytes, &ClassBenchOptions { flags: true }) {
        let text = classbench::write(&rules).unwrap_or_default();
        if let Ok(again) = classbench::read(text.as_bytes(), &ClassBenchOptions { flags: true }) {
            let fields = |set: &import::ImportedRules| {
                set.rules.iter().map(|rule| rule.rule.clone()).collect::<Vec<_>>()
            };
            assert_eq!(fields(&rules), fields(&again));
        }
        let _ = rules.keys(bytes);
    }
    let _ = classbench::read_trace(bytes);
    if let Ok(patterns) = literals::read(bytes) {
        assert_eq!(literals::read(literals::write(&patterns).as_bytes()), Ok(patterns));
    }
    let _ = snort::read(bytes);
});
