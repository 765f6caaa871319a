//! Policies that administrators signed: the form in which a gateway takes a policy, and the judgement whether
//! it takes it.
//!
//! ```text
//!  administrators   SignedPolicy ─► sign ─► bundle ─► add_signature ─► bundle
//!                                                                        │ opaque bytes, by any way
//!  gateway                  Accepted or refusal ◄─ Trust::accept ◄───────┘
//! ```
//!
//! A bundle is a `COSE_Sign` of RFC 9052 with signatures of Ed25519 (RFC 9053, RFC 8032), in the
//! deterministic form of CBOR (RFC 8949, 4.2.1). In the notation of RFC 8610:
//!
//! ```text
//! bundle    = #6.98([ h'', {}, bstr .cbor payload, [*16 signature] ])
//! signature = [ h'a10127',           ; protected: algorithm (1) is EdDSA (-8)
//!               { 4: bstr .size 32 } ; the public key, as the number of the key
//!               bstr .size 64 ]      ; signatures ascend by their keys
//!
//! signed    = [ "Signature", h'', h'a10127', 'ravelin signed policy, format 1', bstr .cbor payload ]
//!
//! payload   = { 1: 1,                     ; the format
//!               2: name,                  ; the gateway
//!               3: 1..2^64-1,             ; the version
//!               4: uint,                  ; not before, seconds of Unix time
//!               5: uint,                  ; expiry, likewise, and later
//!               6: [u32, u32, u32],       ; the oldest engine
//!               7: tstr,                  ; the program, as text of its IR
//!               8: [0*64 right] }         ; rights ascend by their tables
//! right     = { 1: name,                  ; the table
//!               2: [0*1024 prefix],       ; in ascending order
//!               3: u32,                   ; the most entries
//!               4: u32 }                  ; changes in one second
//! prefix    = [ width: 1..128, length: 0..width, bstr ] ; the first `length` bits, zeros up to a whole byte
//! name      = tstr                        ; 1 to 255 visible characters of ASCII
//! ```
//!
//! Of each policy there is one encoding, and of each set of signatures one order; nothing else is read. So
//! bytes that were changed on their way are refused even where the change would mean nothing.
//!
//! The crate is pure: no I/O, no clock, no randomness. What it reads is bounded ([`limits`]).

#![forbid(unsafe_code)]

mod cbor;
mod envelope;
pub mod limits;
mod policy;
mod refusal;
mod rights;
#[cfg(feature = "sign")]
pub mod sign;
mod trust;

pub use envelope::CONTEXT;
pub use policy::{EngineVersion, SignedPolicy};
pub use refusal::{BundleRefusal, TrustError, hex};
pub use rights::{KeyPrefix, TableRight};
pub use trust::{Accepted, Trust, TrustedKey, bytes_of_digits};
