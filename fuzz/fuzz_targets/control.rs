//! Any bytes in a tunnel are a control message or an error, and a message that is understood is written again
//! as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use naming::control::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = decode(bytes) {
        let mut again = Vec::new();
        encode(&message, &mut again);
        assert_eq!(again, bytes);
    }
});
