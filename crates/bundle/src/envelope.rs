//! The outer form of a bundle, COSE_Sign (RFC 9052, 4.1) with Ed25519: a payload, which nobody looks into
//! here, and its signatures.
//!
//! ```text
//! d8 62 84 40 a0      tag 98, an array of 4, no protected header, no unprotected header
//! 40..5a length       the payload follows as a byte string; its length in the fewest bytes
//! 80..90              so many signatures follow, each of 107 bytes:
//!   83 43 a1 01 27      an array of 3, the protected header: algorithm (1) is EdDSA (-8)
//!   a1 04 58 20 key     the unprotected header: the key's number (4) is the public key, 32 bytes
//!   58 40 signature     64 bytes
//! ```

use crate::cbor::{Kind, Reader, head, string};
use crate::limits;
use crate::refusal::BundleRefusal;

/// What the signatures are for. It is signed with each payload (as the external data of RFC 9052, 4.3), so
/// that a signature that the same key made for another purpose is none of a bundle.
pub const CONTEXT: &[u8] = b"ravelin signed policy, format 1";

/// What a bundle begins with.
pub(crate) const START: [u8; 5] = [0xd8, 98, 0x84, 0x40, 0xa0];

/// The protected header of each signature (RFC 9053, 2.2).
pub(crate) const PROTECTED: [u8; 3] = [0xa1, 0x01, 0x27];

/// A signature up to the bytes of its key.
pub(crate) const SIGNATURE_START: [u8; 9] =
    [0x83, 0x43, PROTECTED[0], PROTECTED[1], PROTECTED[2], 0xa1, 0x04, 0x58, 32];

/// The head of a signature's 64 bytes.
pub(crate) const SIGNATURE_HEAD: [u8; 2] = [0x58, 64];

/// One signature, as it stands in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature<'a> {
    /// The public key that it is said to be by.
    pub(crate) key: [u8; 32],
    /// What Ed25519 made.
    pub(crate) signature: &'a [u8],
}

/// A bundle taken apart. Nothing of it is to be believed yet.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// The bytes that are signed.
    pub(crate) payload: &'a [u8],
    /// Where they begin.
    pub(crate) payload_start: usize,
    /// The signatures, by distinct keys in ascending order.
    pub(crate) signatures: Vec<Signature<'a>>,
}

impl<'a> Envelope<'a> {
    /// Takes a bundle apart.
    pub(crate) fn read(bundle: &'a [u8]) -> Result<Self, BundleRefusal> {
        if bundle.len() > limits::BUNDLE_BYTES {
            return Err(BundleRefusal::TooLong { bytes: bundle.len() });
        }
        let reader = &mut Reader::new(bundle, 0);
        reader.exactly(&START, "the start of a bundle")?;
        let payload = reader.bytes("the length of the payload", limits::BUNDLE_BYTES)?;
        let payload_start = reader.at() - payload.len();
        let count = reader.array("the number of signatures", limits::KEYS)?;
        let mut signatures: Vec<Signature<'a>> = Vec::with_capacity(count);
        for number in 1..=count {
            reader.exactly(&SIGNATURE_START, "a signature by Ed25519 and the key that made it")?;
            let mut key = [0; 32];
            key.copy_from_slice(reader.take(32)?);
            reader.exactly(&SIGNATURE_HEAD, "64 bytes of a signature")?;
            let signature = reader.take(64)?;
            if signatures.last().is_some_and(|before| before.key >= key) {
                return Err(BundleRefusal::KeyOrder { signature: number });
            }
            signatures.push(Signature { key, signature });
        }
        reader.end()?;
        Ok(Self { payload, payload_start, signatures })
    }
}

/// What Ed25519 signs: the `Sig_structure` of RFC 9052, 4.4. It is the same for all keys.
pub(crate) fn to_be_signed(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 64);
    head(Kind::Array, 5, &mut bytes);
    string(Kind::Text, b"Signature", &mut bytes);
    string(Kind::Bytes, b"", &mut bytes);
    string(Kind::Bytes, &PROTECTED, &mut bytes);
    string(Kind::Bytes, CONTEXT, &mut bytes);
    string(Kind::Bytes, payload, &mut bytes);
    bytes
}
