//! Any text gives a program that verifies or at least one diagnostic, and never a panic.
#![no_main]

use lang::pipeline::Decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let compiled = suite::agree::compile_as(text, Decode::Lazy);
    match compiled.program {
        Some(program) => assert_eq!(ir::verify::verify(&program), Ok(())),
        None => assert!(!compiled.diagnostics.is_empty(), "refused without a word"),
    }
});
