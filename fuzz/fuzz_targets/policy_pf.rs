//! Any bytes are refused by line as a configuration of pf, or kept; what NPF can say of it is read again.
#![no_main]

use import::policies::{PolicyOptions, read, write_npf};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let options = PolicyOptions {
        interfaces: vec![("a".to_owned(), 1), ("b".to_owned(), 2)],
        tables: vec![("t".to_owned(), "10.0.0.0/8\n!10.1.0.0/16\n2001:db8::/32\n".to_owned())],
        ..PolicyOptions::default()
    };
    match read(bytes, "pf", &options) {
        Ok(imported) => {
            assert!(imported.refused.iter().all(|error| error.line > 0 && error.column > 0));
            if let Ok(text) = write_npf(&imported.policy) {
                let again = read(text.as_bytes(), "npf", &options).expect("what is written is read");
                assert!(again.refused.is_empty(), "{:?}\n{text}", again.refused);
            }
        }
        Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
    }
});
