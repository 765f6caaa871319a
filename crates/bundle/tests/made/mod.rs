//! Keys, policies and bundles for tests. Bundles are made here a second time, from values of CBOR, by `coset`
//! and `ed25519-dalek`.

#![allow(dead_code, reason = "each test uses a part of it")]

use bundle::sign::Signer;
use bundle::{EngineVersion, KeyPrefix, SignedPolicy, TableRight, Trust, TrustedKey};
use ciborium::Value;
use coset::{CoseSignBuilder, CoseSignatureBuilder, HeaderBuilder, TaggedCborSerializable, iana};
use ed25519_dalek::Signer as _;
use tables::generate::Random;

/// The gateway of most tests.
pub(crate) const GATEWAY: &str = "gateway-7.example";

/// A second at which [`policy`] is valid.
pub(crate) const NOW: u64 = 1_800_000_000;

/// An engine for which [`policy`] was made.
pub(crate) const ENGINE: EngineVersion = EngineVersion { major: 1, minor: 4, patch: 2 };

fn seed(number: u8) -> [u8; 32] {
    std::array::from_fn(|at| number.wrapping_mul(31).wrapping_add(at as u8))
}

/// The secret key of administrator `number`.
pub(crate) fn signer(number: u8) -> Signer {
    Signer::new(&seed(number)).unwrap()
}

/// The same key, as `ed25519-dalek` has it.
pub(crate) fn other_signer(number: u8) -> ed25519_dalek::SigningKey {
    ed25519_dalek::SigningKey::from_bytes(&seed(number))
}

/// Its public key.
pub(crate) fn public_key(number: u8) -> [u8; 32] {
    other_signer(number).verifying_key().to_bytes()
}

/// Public keys of several administrators, in ascending order.
pub(crate) fn public_keys(numbers: &[u8]) -> Vec<[u8; 32]> {
    let mut keys: Vec<[u8; 32]> = numbers.iter().map(|number| public_key(*number)).collect();
    keys.sort_unstable();
    keys
}

/// Keys of several administrators with their names.
pub(crate) fn trusted(numbers: &[u8]) -> Vec<TrustedKey> {
    let one = |number: &u8| TrustedKey { name: format!("admin-{number}"), key: public_key(*number) };
    numbers.iter().map(one).collect()
}

/// The trust of most tests: two of the administrators 1, 2 and 3.
pub(crate) fn trust() -> Trust {
    Trust::new(GATEWAY, trusted(&[1, 2, 3]), 2).unwrap()
}

/// A small policy that [`trust`] accepts.
pub(crate) fn policy() -> SignedPolicy {
    let prefix = |length, bits| KeyPrefix::new(32, length, bits).unwrap();
    SignedPolicy {
        gateway: GATEWAY.to_owned(),
        version: 300,
        not_before: NOW - 1_000,
        expiry: NOW + 70_000,
        engine: EngineVersion { major: 1, minor: 2, patch: 30 },
        program: "program gate\n  decode ethernet → ipv4\n  stage main\n    drop\n".to_owned(),
        rights: vec![
            TableRight {
                table: "neighbours".to_owned(),
                prefixes: vec![prefix(24, 0x0a00_0100)],
                most_entries: 256,
                changes_per_second: 20,
            },
            TableRight {
                table: "routes".to_owned(),
                prefixes: vec![prefix(8, 0x0a00_0000), prefix(12, 0xac10_0000)],
                most_entries: 100_000,
                changes_per_second: 1_000,
            },
        ],
    }
}

/// A number of any size.
pub(crate) fn number(random: &mut Random) -> u64 {
    let shift = random.below(64);
    random.word() >> shift
}

/// A policy for [`GATEWAY`] and a time about [`NOW`], valid by itself.
pub(crate) fn random_policy(random: &mut Random) -> SignedPolicy {
    let not_before = NOW - random.below(4);
    let small = |random: &mut Random| number(random) as u32;
    SignedPolicy {
        gateway: GATEWAY.to_owned(),
        version: number(random).max(1),
        not_before,
        expiry: not_before + 1 + random.below(4),
        engine: EngineVersion { major: 1, minor: random.below(8) as u32, patch: small(random) },
        program: (0..random.below(300)).map(|_| *random.pick(&['a', ' ', '\n', 'é', '→']).unwrap()).collect(),
        rights: {
            let mut rights: Vec<TableRight> = (0..random.below(4))
                .map(|_| TableRight {
                    table: format!("t{}", number(random)),
                    prefixes: random_prefixes(random),
                    most_entries: small(random),
                    changes_per_second: small(random),
                })
                .collect();
            rights.sort_by(|one, other| one.table.cmp(&other.table));
            rights.dedup_by(|one, other| one.table == other.table);
            rights
        },
    }
}

fn random_prefixes(random: &mut Random) -> Vec<KeyPrefix> {
    let mut prefixes: Vec<KeyPrefix> = (0..random.below(5)).map(|_| random_prefix(random)).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

/// A prefix of keys of any width.
pub(crate) fn random_prefix(random: &mut Random) -> KeyPrefix {
    let width = random.between(1, 128) as u8;
    let length = random.below(u64::from(width) + 1) as u8;
    // Bit by bit, from the highest one on.
    let bits = (0..width).fold(0, |bits, at| bits << 1 | u128::from(at < length && random.chance(50)));
    KeyPrefix::new(width, length, bits).unwrap()
}

fn int(number: impl Into<u64>) -> Value {
    Value::Integer(number.into().into())
}

fn map(fields: Vec<Value>) -> Value {
    Value::Map((1_u64..).map(int).zip(fields).collect())
}

fn prefix_value(prefix: &KeyPrefix) -> Value {
    let bit = |at: u8| prefix.bits() >> (prefix.width() - 1 - at) & 1;
    let mut bytes = vec![0_u8; usize::from(prefix.length()).div_ceil(8)];
    for at in 0..prefix.length() {
        bytes[usize::from(at / 8)] |= (bit(at) as u8) << (7 - at % 8);
    }
    Value::Array(vec![int(prefix.width()), int(prefix.length()), Value::Bytes(bytes)])
}

/// The payload of a policy as a value.
pub(crate) fn value(policy: &SignedPolicy) -> Value {
    let engine = policy.engine;
    let right = |right: &TableRight| {
        map(vec![
            Value::Text(right.table.clone()),
            Value::Array(right.prefixes.iter().map(prefix_value).collect()),
            int(right.most_entries),
            int(right.changes_per_second),
        ])
    };
    map(vec![
        int(1_u64),
        Value::Text(policy.gateway.clone()),
        int(policy.version),
        int(policy.not_before),
        int(policy.expiry),
        Value::Array(vec![int(engine.major), int(engine.minor), int(engine.patch)]),
        Value::Text(policy.program.clone()),
        Value::Array(policy.rights.iter().map(right).collect()),
    ])
}

/// A value in bytes, by `ciborium`.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(value, &mut out).unwrap();
    out
}

/// A bundle of any payload, signed by these administrators for `context`, in the order in which they stand.
pub(crate) fn cose_in_order(payload: Vec<u8>, signers: &[u8], context: &[u8]) -> Vec<u8> {
    let mut builder = CoseSignBuilder::new().payload(payload);
    for number in signers {
        let key = other_signer(*number);
        let signature = CoseSignatureBuilder::new()
            .protected(HeaderBuilder::new().algorithm(iana::Algorithm::EdDSA).build())
            .unprotected(HeaderBuilder::new().key_id(key.verifying_key().to_bytes().to_vec()).build())
            .build();
        builder =
            builder.add_created_signature(signature, context, |data| key.sign(data).to_bytes().to_vec());
    }
    builder.build().to_tagged_vec().unwrap()
}

/// As [`cose_in_order`], with the signatures in the order of bundles.
pub(crate) fn cose(payload: Vec<u8>, signers: &[u8], context: &[u8]) -> Vec<u8> {
    let mut signers = signers.to_vec();
    signers.sort_unstable_by_key(|number| public_key(*number));
    cose_in_order(payload, &signers, context)
}

/// A bundle of any payload, signed rightly by these administrators.
pub(crate) fn signed(payload: Vec<u8>, signers: &[u8]) -> Vec<u8> {
    cose(payload, signers, b"ravelin signed policy, format 1")
}
