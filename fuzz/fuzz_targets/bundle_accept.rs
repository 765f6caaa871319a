//! Any bytes are refused as a bundle that nobody signed; and what is accepted of a payload that was signed is
//! what signing makes of it again, byte by byte.
#![no_main]

use bundle::sign::{Signer, add_signature, read_unverified, sign};
use bundle::{EngineVersion, Trust, TrustedKey};
use libfuzzer_sys::fuzz_target;

/// A bundle of this payload without signatures.
fn unsigned(payload: &[u8]) -> Vec<u8> {
    let mut bundle = vec![0xd8, 98, 0x84, 0x40, 0xa0];
    match payload.len() as u32 {
        short @ 0..24 => bundle.push(0x40 | short as u8),
        short @ 24..0x100 => bundle.extend([0x58, short as u8]),
        short @ 0x100..0x1_0000 => bundle.extend([0x59, (short >> 8) as u8, short as u8]),
        long => bundle.extend([0x5a].into_iter().chain(long.to_be_bytes())),
    }
    bundle.extend(payload);
    bundle.push(0x80);
    bundle
}

fuzz_target!(|data: &[u8]| {
    let signer = Signer::new(&[7; 32]).unwrap();
    let engine = EngineVersion { major: u32::MAX, minor: u32::MAX, patch: u32::MAX };
    let trust = |gateway: &str| {
        let key = TrustedKey { name: "fuzz".to_owned(), key: signer.public_key() };
        Trust::new(gateway, vec![key], 1).unwrap()
    };
    let _ = trust("gateway").accept(data, 0, 0, engine).unwrap_err();
    for bundle in [unsigned(data), data.to_vec()] {
        let Ok(seen) = read_unverified(&bundle) else { continue };
        let (policy, newest) = (&seen.policy, seen.policy.version - 1);
        let trust = trust(&policy.gateway);
        assert!(trust.accept(&bundle, policy.not_before, newest, engine).is_err());
        let again = sign(policy, &signer).unwrap();
        if seen.keys.is_empty() {
            assert_eq!(add_signature(&bundle, &signer).unwrap(), again);
        }
        let accepted = trust.accept(&again, policy.not_before, newest, engine).unwrap();
        assert_eq!(&accepted.policy, policy);
    }
});
