//! The formatter refuses a text or gives one that it leaves alone and that compiles just as well.
#![no_main]

use lang::format::format;
use lang::pipeline::Decode;
use libfuzzer_sys::fuzz_target;
use suite::agree::compile_as;

fuzz_target!(|text: &str| {
    let Ok(formatted) = format(text) else { return };
    assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()), "formatting twice changes it again");
    let compiles = |text: &str| compile_as(text, Decode::Lazy).program.is_some();
    assert_eq!(compiles(text), compiles(&formatted), "formatting changes whether it compiles");
});
