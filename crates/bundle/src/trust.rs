//! Whom a gateway takes policies from, and the judgement of a bundle.

use crate::envelope::{Envelope, to_be_signed};
use crate::limits;
use crate::policy::{EngineVersion, SignedPolicy, is_name};
use crate::refusal::{BundleRefusal, TrustError};
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};

/// The public key of an administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// Whose it is.
    pub name: String,
    /// A public key of Ed25519 (RFC 8032).
    pub key: [u8; 32],
}

/// A gateway, the keys of its administrators, and how many of them must sign.
#[derive(Clone, Debug)]
pub struct Trust {
    gateway: String,
    keys: Vec<TrustedKey>,
    threshold: usize,
}

/// A policy that enough administrators signed, for this gateway and this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The policy.
    pub policy: SignedPolicy,
    /// SHA-256 of the payload: two bundles with the same hash hold the same policy.
    pub hash: [u8; 32],
    /// The names of the keys that signed, in the order of the keys.
    pub signed_by: Vec<String>,
}

impl TrustedKey {
    /// A key from its 64 hexadecimal digits.
    ///
    /// # Errors
    /// These are no digits, or not as many.
    pub fn from_digits(name: &str, digits: &str) -> Result<Self, TrustError> {
        let name = name.to_owned();
        match bytes_of_digits(digits) {
            Some(key) => Ok(Self { name, key }),
            None => Err(TrustError::Key { name }),
        }
    }
}

/// 32 bytes, such as a key or a hash, from 64 hexadecimal digits.
#[must_use]
pub fn bytes_of_digits(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

impl Trust {
    /// Trust in policies for `gateway` that at least `threshold` of `keys` have signed.
    ///
    /// # Errors
    /// A threshold of 0 or above the number of keys; too many keys; a name that is none; the same name or key
    /// twice; a key with which anybody can sign.
    pub fn new(gateway: &str, keys: Vec<TrustedKey>, threshold: usize) -> Result<Self, TrustError> {
        let refuse = |of, name: &str| Err(TrustError::Name { of, name: name.to_owned() });
        if !is_name(gateway) {
            return refuse("gateway", gateway);
        }
        if keys.len() > limits::KEYS {
            return Err(TrustError::TooManyKeys { count: keys.len() });
        }
        if threshold == 0 || threshold > keys.len() {
            return Err(TrustError::Threshold { threshold, keys: keys.len() });
        }
        for (at, key) in keys.iter().enumerate() {
            if !is_name(&key.name) {
                return refuse("key", &key.name);
            }
            if is_weak(&key.key) {
                return Err(TrustError::WeakKey { name: key.name.clone() });
            }
            if let Some(other) =
                keys[..at].iter().find(|other| other.name == key.name || other.key == key.key)
            {
                return Err(TrustError::Twice { first: other.name.clone(), second: key.name.clone() });
            }
        }
        Ok(Self { gateway: gateway.to_owned(), keys, threshold })
    }

    /// The same with keys that are names and 64 hexadecimal digits each.
    ///
    /// # Errors
    /// As for [`new`](Trust::new); or the digits of a key are none, or not as many.
    pub fn of_digits<'a>(
        gateway: &str,
        keys: impl IntoIterator<Item = (&'a String, &'a String)>,
        threshold: usize,
    ) -> Result<Self, TrustError> {
        let keys = keys.into_iter().map(|(name, digits)| TrustedKey::from_digits(name, digits));
        Self::new(gateway, keys.collect::<Result<_, _>>()?, threshold)
    }

    /// Judges a bundle. `now` is Unix time in seconds, `newest_version` the newest version that this gateway
    /// has accepted, 0 before the first, and `engine` the version of this engine.
    ///
    /// All signatures are checked before anything of the payload is read. Each of them must be right and by a
    /// key of this trust: one wrong signature is not made good by others.
    ///
    /// # Errors
    /// The first reason for which the bundle is not to be accepted.
    pub fn accept(
        &self,
        bundle: &[u8],
        now: u64,
        newest_version: u64,
        engine: EngineVersion,
    ) -> Result<Accepted, BundleRefusal> {
        let accepted = self.signed_for_this_gateway(bundle)?;
        let policy = &accepted.policy;
        if policy.version <= newest_version {
            return Err(BundleRefusal::OldVersion { found: policy.version, newest: newest_version });
        }
        if now < policy.not_before {
            return Err(BundleRefusal::NotYetValid { not_before: policy.not_before, now });
        }
        if now >= policy.expiry {
            return Err(BundleRefusal::Expired { expiry: policy.expiry, now });
        }
        runs_on(policy, engine)?;
        Ok(accepted)
    }

    /// Judges a bundle that this gateway has accepted before and kept since, as one of this version: all that
    /// [`accept`](Trust::accept) asks but the time, and whether there was a newer one.
    ///
    /// # Errors
    /// As with [`accept`](Trust::accept); or it is of another version.
    pub fn accept_kept(
        &self,
        bundle: &[u8],
        version: u64,
        engine: EngineVersion,
    ) -> Result<Accepted, BundleRefusal> {
        let accepted = self.signed_for_this_gateway(bundle)?;
        if accepted.policy.version != version {
            return Err(BundleRefusal::OtherVersion { found: accepted.policy.version, kept: version });
        }
        runs_on(&accepted.policy, engine)?;
        Ok(accepted)
    }

    /// The policy of a bundle that enough administrators signed for this gateway.
    fn signed_for_this_gateway(&self, bundle: &[u8]) -> Result<Accepted, BundleRefusal> {
        let envelope = Envelope::read(bundle)?;
        let signed_by = self.check_signatures(&envelope)?;
        let policy = SignedPolicy::read(envelope.payload, envelope.payload_start)?;
        if policy.gateway != self.gateway {
            return Err(BundleRefusal::OtherGateway { found: policy.gateway, own: self.gateway.clone() });
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, envelope.payload).as_ref());
        Ok(Accepted { policy, hash, signed_by })
    }

    /// The names of the keys that signed, if they are enough and every signature is right. What costs little
    /// is looked at first: numbers and names of keys, of all signatures, before any of them is computed.
    fn check_signatures(&self, envelope: &Envelope<'_>) -> Result<Vec<String>, BundleRefusal> {
        // The keys in an envelope are distinct.
        let count = envelope.signatures.len();
        if count < self.threshold {
            return Err(BundleRefusal::TooFewSignatures { count, threshold: self.threshold });
        }
        let mut signers = Vec::with_capacity(count);
        for (at, signature) in envelope.signatures.iter().enumerate() {
            let known = self.keys.iter().find(|key| key.key == signature.key);
            signers.push(known.ok_or(BundleRefusal::UnknownKey { signature: at + 1, key: signature.key })?);
        }
        let signed = to_be_signed(envelope.payload);
        for (signer, signature) in signers.iter().zip(&envelope.signatures) {
            UnparsedPublicKey::new(&ED25519, signer.key)
                .verify(&signed, signature.signature)
                .map_err(|_| BundleRefusal::WrongSignature { signer: signer.name.clone() })?;
        }
        Ok(signers.into_iter().map(|signer| signer.name.clone()).collect())
    }
}

/// Whether the engine is new enough for a policy.
fn runs_on(policy: &SignedPolicy, engine: EngineVersion) -> Result<(), BundleRefusal> {
    if engine < policy.engine {
        return Err(BundleRefusal::OldEngine { needed: policy.engine, own: engine });
    }
    Ok(())
}

/// The y coordinates of the points of small order on Curve25519 in their Edwards form, in all encodings of
/// 255 bits. With such a key, everybody can make signatures that hold.
const SMALL_ORDER: [[u8; 32]; 7] = [
    small(0),
    small(1),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    near_field(0xec),
    near_field(0xed),
    near_field(0xee),
];

/// The number `lowest`, lowest byte first.
const fn small(lowest: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = lowest;
    bytes
}

/// 2^255 - 256 + `lowest`, lowest byte first: numbers about the size of the field, 2^255 - 19.
const fn near_field(lowest: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    bytes[0] = lowest;
    bytes[31] = 0x7f;
    bytes
}

/// Whether the key is a point of small order. The highest bit is the sign of x and does not matter.
fn is_weak(key: &[u8; 32]) -> bool {
    let mut y = *key;
    y[31] &= 0x7f;
    SMALL_ORDER.contains(&y)
}
