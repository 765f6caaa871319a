//! The signing half, for administrators: policies become bundles, and bundles get further signatures. It is
//! behind the feature `sign`, so that a process that only judges bundles is built without it.

use crate::cbor::{Kind, head, string};
use crate::envelope::{Envelope, SIGNATURE_HEAD, SIGNATURE_START, START, Signature, to_be_signed};
use crate::policy::{FORMAT, SignedPolicy};
use crate::refusal::BundleRefusal;
use crate::rights::TableRight;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The secret key of an administrator. Its `Debug` form does not show it.
#[derive(Debug)]
pub struct Signer(Ed25519KeyPair);

/// 32 bytes that make no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these 32 bytes make no key of Ed25519: take other random bytes")]
pub struct SeedError;

impl Signer {
    /// The key that `seed` makes: the private key of RFC 8032, 5.1.5, 32 random bytes that nobody else knows.
    ///
    /// # Errors
    /// The seed makes no key.
    pub fn new(seed: &[u8; 32]) -> Result<Self, SeedError> {
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).map_err(|_| SeedError)
    }

    /// The public key, which gateways know.
    #[must_use]
    pub fn public_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.public_key().as_ref());
        key
    }
}

/// What a bundle says, believed by nobody: for people who look at it before they sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedBundle {
    /// The policy.
    pub policy: SignedPolicy,
    /// The public keys that the signatures name.
    pub keys: Vec<[u8; 32]>,
}

/// Reads a bundle without checking a signature.
///
/// # Errors
/// The bytes are no bundle.
pub fn read_unverified(bundle: &[u8]) -> Result<UnverifiedBundle, BundleRefusal> {
    let envelope = Envelope::read(bundle)?;
    let policy = SignedPolicy::read(envelope.payload, envelope.payload_start)?;
    Ok(UnverifiedBundle { policy, keys: envelope.signatures.iter().map(|signature| signature.key).collect() })
}

/// A bundle of this policy with one signature.
///
/// # Errors
/// The policy is one that no gateway would read: above a limit, a name that is none, rights or prefixes that
/// are not in ascending order, an expiry that is not after `not_before`. Positions are those in the bundle.
pub fn sign(policy: &SignedPolicy, signer: &Signer) -> Result<Vec<u8>, BundleRefusal> {
    let payload = encode(policy);
    let key = signer.public_key();
    let signature = signer.0.sign(&to_be_signed(&payload));
    let bundle = assemble(&payload, &[Signature { key, signature: signature.as_ref() }]);
    read_unverified(&bundle)?;
    Ok(bundle)
}

/// The same bundle with one more signature, which takes the place of an earlier one by the same key. The
/// other signatures are kept as they are, right or wrong.
///
/// # Errors
/// The bytes are no bundle, or it would have too many signatures.
pub fn add_signature(bundle: &[u8], signer: &Signer) -> Result<Vec<u8>, BundleRefusal> {
    let envelope = Envelope::read(bundle)?;
    SignedPolicy::read(envelope.payload, envelope.payload_start)?;
    let key = signer.public_key();
    let signature = signer.0.sign(&to_be_signed(envelope.payload));
    let mut signatures = envelope.signatures;
    signatures.retain(|other| other.key != key);
    signatures.push(Signature { key, signature: signature.as_ref() });
    signatures.sort_unstable_by_key(|signature| signature.key);
    let bundle = assemble(envelope.payload, &signatures);
    Envelope::read(&bundle)?;
    Ok(bundle)
}

/// Puts a bundle together.
fn assemble(payload: &[u8], signatures: &[Signature<'_>]) -> Vec<u8> {
    let mut out = START.to_vec();
    string(Kind::Bytes, payload, &mut out);
    head(Kind::Array, signatures.len() as u64, &mut out);
    for signature in signatures {
        out.extend(SIGNATURE_START);
        out.extend(signature.key);
        out.extend(SIGNATURE_HEAD);
        out.extend(signature.signature);
    }
    out
}

/// The payload of a policy.
fn encode(policy: &SignedPolicy) -> Vec<u8> {
    let mut out = Vec::with_capacity(policy.program.len() + 256);
    let number = |value: u64, out: &mut Vec<u8>| head(Kind::Number, value, out);
    head(Kind::Map, 8, &mut out);
    number(1, &mut out);
    number(FORMAT, &mut out);
    number(2, &mut out);
    string(Kind::Text, policy.gateway.as_bytes(), &mut out);
    for (key, value) in [(3, policy.version), (4, policy.not_before), (5, policy.expiry)] {
        number(key, &mut out);
        number(value, &mut out);
    }
    number(6, &mut out);
    head(Kind::Array, 3, &mut out);
    for part in [policy.engine.major, policy.engine.minor, policy.engine.patch] {
        number(u64::from(part), &mut out);
    }
    number(7, &mut out);
    string(Kind::Text, policy.program.as_bytes(), &mut out);
    number(8, &mut out);
    head(Kind::Array, policy.rights.len() as u64, &mut out);
    for right in &policy.rights {
        encode_right(right, &mut out);
    }
    out
}

fn encode_right(right: &TableRight, out: &mut Vec<u8>) {
    head(Kind::Map, 4, out);
    head(Kind::Number, 1, out);
    string(Kind::Text, right.table.as_bytes(), out);
    head(Kind::Number, 2, out);
    head(Kind::Array, right.prefixes.len() as u64, out);
    for prefix in &right.prefixes {
        head(Kind::Array, 3, out);
        head(Kind::Number, u64::from(prefix.width()), out);
        head(Kind::Number, u64::from(prefix.length()), out);
        let (bytes, length) = prefix.bytes();
        string(Kind::Bytes, &bytes[..length], out);
    }
    for (key, value) in [(3, right.most_entries), (4, right.changes_per_second)] {
        head(Kind::Number, key, out);
        head(Kind::Number, u64::from(value), out);
    }
}
