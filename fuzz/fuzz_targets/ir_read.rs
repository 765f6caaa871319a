//! Any text is refused or read as a program that prints and reads back as itself.
#![no_main]

use ir::{print::print, read::read, verify::verify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(program) = read(text) {
        // The verifier must say something of any program, and only what it accepts need print.
        if verify(&program).is_ok() {
            assert_eq!(read(&print(&program)).as_ref(), Ok(&program));
        }
    }
});
