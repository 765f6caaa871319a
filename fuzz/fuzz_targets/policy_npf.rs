//! Any bytes are refused by line as a configuration of NPF, or kept; what NPF can say of it is read again.
#![no_main]

use import::policies::{PolicyOptions, read, write_npf};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, &[u8])| {
    let (skip_first_line, bytes) = input;
    let options = PolicyOptions {
        interfaces: vec![("a".to_owned(), 1), ("b".to_owned(), 2)],
        tables: vec![("t".to_owned(), "10.0.0.0/8\n2001:db8::/32\n".to_owned())],
        skip_first_line,
        ..PolicyOptions::default()
    };
    match read(bytes, "npf", &options) {
        Ok(imported) => {
            assert!(imported.refused.iter().all(|error| error.line > 0 && error.column > 0));
            if let Ok(text) = write_npf(&imported.policy) {
                let options = PolicyOptions { skip_first_line: false, ..options };
                let again = read(text.as_bytes(), "npf", &options).expect("what is written is read");
                assert!(again.refused.is_empty(), "{:?}\n{text}", again.refused);
            }
        }
        Err(error) => assert!(error.line > 0 && error.column > 0, "{error}"),
    }
});
