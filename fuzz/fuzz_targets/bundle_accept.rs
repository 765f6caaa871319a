//! Any bytes are refused as a bundle that nobody signed, and so is one that was signed and has other bytes;
//! what is accepted of a payload that was signed is what signing makes of it again, byte by byte.
#![no_main]

use bundle::sign::{Signer, add_signature, read_unverified, sign};
use bundle::{EngineVersion, KeyPrefix, SignedPolicy, TableRight, Trust, TrustedKey};
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

/// A bundle that was signed, with the bytes exchanged that three bytes each name: a place and what is there.
fn exchanged(signer: &Signer, places: &[u8]) -> Vec<u8> {
    let right = |table: &str, width, bits| TableRight {
        table: table.to_owned(),
        prefixes: vec![KeyPrefix::new(width, 8, bits).unwrap()],
        most_entries: 256,
        changes_per_second: 20,
    };
    let policy = SignedPolicy {
        gateway: "gateway".to_owned(),
        version: 300,
        not_before: 1_800_000_000,
        expiry: 1_900_000_000,
        engine: EngineVersion::OWN,
        program: "program \"gate\"\nslots 0\n".to_owned(),
        rights: vec![right("neighbours", 32, 10 << 24), right("routes", 128, 0xfd << 120)],
    };
    let mut bundle = sign(&policy, signer).unwrap();
    for [high, low, byte] in places.as_chunks().0 {
        let place = usize::from(u16::from_be_bytes([*high, *low])) % bundle.len();
        bundle[place] = *byte;
    }
    bundle
}

fuzz_target!(|data: &[u8]| {
    let signer = Signer::new(&[7; 32]).unwrap();
    let engine = EngineVersion { major: u32::MAX, minor: u32::MAX, patch: u32::MAX };
    let trust = |gateway: &str| {
        let key = TrustedKey { name: "fuzz".to_owned(), key: signer.public_key() };
        Trust::new(gateway, vec![key], 1).unwrap()
    };
    trust("gateway").accept(data, 0, 0, engine).unwrap_err();
    let exchanged = exchanged(&signer, data);
    for bundle in [unsigned(data), data.to_vec(), exchanged] {
        let Ok(seen) = read_unverified(&bundle) else { continue };
        let (policy, newest) = (&seen.policy, seen.policy.version - 1);
        let trust = trust(&policy.gateway);
        let again = sign(policy, &signer).unwrap();
        assert_eq!(trust.accept(&bundle, policy.not_before, newest, engine).is_ok(), bundle == again);
        if seen.keys.is_empty() {
            assert_eq!(add_signature(&bundle, &signer).unwrap(), again);
        }
        let accepted = trust.accept(&again, policy.not_before, newest, engine).unwrap();
        assert_eq!(&accepted.policy, policy);
    }
});
