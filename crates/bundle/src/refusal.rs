//! Why a bundle was not accepted, and why a trust cannot be made: what was wrong, and what to do.

use crate::limits;
use crate::policy::EngineVersion;

/// Why a bundle was not accepted. Texts of the bundle that stand in it have gone through the limits, and have
/// no characters that a terminal would obey.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleRefusal {
    /// More bytes than any bundle has.
    #[error(
        "the bundle has {bytes} bytes, where at most {} are allowed: make the policy smaller",
        limits::BUNDLE_BYTES
    )]
    TooLong {
        /// What was handed in.
        bytes: usize,
    },
    /// The bytes are no bundle in its only form.
    #[error(
        "byte {at} of the bundle: {what} is expected there: hand in the file as it was signed, or sign it again"
    )]
    Malformed {
        /// Where, counted from 0.
        at: usize,
        /// What would have been right.
        what: &'static str,
    },
    /// A number or length is above its limit.
    #[error(
        "byte {at} of the bundle: {what} is {value}, where at most {most} is allowed: sign a smaller policy"
    )]
    TooLarge {
        /// Where, counted from 0.
        at: usize,
        /// What was measured.
        what: &'static str,
        /// What it is.
        value: u64,
        /// The limit.
        most: u64,
    },
    /// A signature is by a key that this gateway does not know.
    #[error(
        "signature {signature} of the bundle is by a key that this gateway does not know ({}): \
         let administrators of this gateway sign",
        hex(key)
    )]
    UnknownKey {
        /// Which signature, counted from 1.
        signature: usize,
        /// The public key that it names.
        key: [u8; 32],
    },
    /// One key signed twice, or the signatures are not in the order of their keys.
    #[error(
        "signature {signature} of the bundle is by the key of the one before it, or by a lower one: each key \
         signs once, in the order of the keys; add signatures by `ravelin bundle sign`"
    )]
    KeyOrder {
        /// Which signature, counted from 1.
        signature: usize,
    },
    /// Fewer signatures than the threshold.
    #[error(
        "the bundle has {count} of the {threshold} signatures that are needed: let more administrators sign it"
    )]
    TooFewSignatures {
        /// How many it has.
        count: usize,
        /// How many are needed.
        threshold: usize,
    },
    /// A signature is not of this payload, by this key, for this purpose.
    #[error(
        "the signature of {signer} is wrong: the bundle was changed after it was signed, or another thing was \
         signed: get it again from whoever signed it"
    )]
    WrongSignature {
        /// The name of the key.
        signer: String,
    },
    /// Made for another gateway.
    #[error(
        "the bundle is for gateway {found}, and this is {own}: hand it to that gateway, or sign one for this"
    )]
    OtherGateway {
        /// Whom it was signed for.
        found: String,
        /// Who is asked.
        own: String,
    },
    /// Not above the newest version that was accepted.
    #[error(
        "the bundle has version {found}, and version {newest} was accepted before: sign it again with a version \
         above {newest}"
    )]
    OldVersion {
        /// Its version.
        found: u64,
        /// The newest one that was accepted.
        newest: u64,
    },
    /// Kept as one of another version.
    #[error(
        "the bundle has version {found}, and was kept as version {kept}: what was kept is damaged or was \
         changed: install a newer policy"
    )]
    OtherVersion {
        /// Its version.
        found: u64,
        /// The version under which it was kept.
        kept: u64,
    },
    /// Its time has not begun.
    #[error(
        "the bundle is valid from second {not_before} after 1970 on, and it is second {now}: wait, or set the \
         clock of the gateway right"
    )]
    NotYetValid {
        /// The first second, in Unix time.
        not_before: u64,
        /// The time that it was judged at.
        now: u64,
    },
    /// Its time has ended.
    #[error(
        "the bundle was valid until second {expiry} after 1970, and it is second {now}: sign it again, or set \
         the clock of the gateway right"
    )]
    Expired {
        /// The first second at which it is no longer valid, in Unix time.
        expiry: u64,
        /// The time that it was judged at.
        now: u64,
    },
    /// Made for newer engines.
    #[error("the bundle needs engine {needed} or a newer one, and this is {own}: update the gateway first")]
    OldEngine {
        /// The oldest that it may run on.
        needed: EngineVersion,
        /// The one that was asked.
        own: EngineVersion,
    },
}

/// Why keys and a threshold are no trust.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// No name as bundles have them.
    #[error(
        "{name:?} is no name of a {of}: use 1 to {} visible characters of ASCII, without spaces",
        limits::NAME_BYTES
    )]
    Name {
        /// What was to be named.
        of: &'static str,
        /// The text.
        name: String,
    },
    /// No public key.
    #[error("the key `{name}`: a public key has 64 hexadecimal digits, as `ravelin bundle key show` prints")]
    Key {
        /// Its name.
        name: String,
    },
    /// More keys than a bundle may have signatures.
    #[error("{count} keys are given, where at most {} are allowed: leave some out", limits::KEYS)]
    TooManyKeys {
        /// How many were given.
        count: usize,
    },
    /// A threshold that everything or nothing would reach.
    #[error("the threshold is {threshold}, with {keys} keys: it must be from 1 to the number of keys")]
    Threshold {
        /// What was given.
        threshold: usize,
        /// How many keys there are.
        keys: usize,
    },
    /// Two keys have one name, or one key has two names.
    #[error(
        "{first} and {second} have the same name or the same key: give each administrator a key of its own"
    )]
    Twice {
        /// The name of the one.
        first: String,
        /// The name of the other.
        second: String,
    },
    /// A key with which anybody can sign.
    #[error("the key of {name} is weak: signatures by it can be made without its secret: make a new key")]
    WeakKey {
        /// Its name.
        name: String,
    },
}

/// Bytes, such as a key or a hash, in hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
