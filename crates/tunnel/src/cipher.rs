//! The ciphers of data messages, by `ring`: AES-256-GCM where both ends have it in hardware, and
//! ChaCha20-Poly1305 otherwise.

use crate::message::{DATA_HEADER, DATA_TAG};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

/// An authenticated cipher of data messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherSuite {
    /// RFC 8439. Every end has it.
    ChaCha20Poly1305 = 1,
    /// NIST SP 800-38D, with a key of 256 bits.
    Aes256Gcm = 2,
}

impl CipherSuite {
    /// Whether this machine has instructions for AES and for the multiplication of GCM. Without them AES-GCM
    /// is slow.
    #[must_use]
    pub fn aes_in_hardware() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        return std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        false
    }

    /// The bits of an offer.
    pub(crate) fn offer(aes: bool) -> u8 {
        CipherSuite::ChaCha20Poly1305 as u8 | if aes { CipherSuite::Aes256Gcm as u8 } else { 0 }
    }

    /// The best of what both ends offer.
    pub(crate) fn choose(ours: u8, theirs: u8) -> Option<CipherSuite> {
        [CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305]
            .into_iter()
            .find(|suite| ours & theirs & *suite as u8 != 0)
    }

    /// What the other end has chosen from an offer.
    pub(crate) fn chosen(number: u8, offered: u8) -> Option<CipherSuite> {
        [CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305]
            .into_iter()
            .find(|suite| *suite as u8 == number && offered & number != 0)
    }

    fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            CipherSuite::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
            CipherSuite::Aes256Gcm => &aead::AES_256_GCM,
        }
    }
}

/// The key of one direction.
pub(crate) struct DataKey(LessSafeKey);

impl DataKey {
    pub(crate) fn new(suite: CipherSuite, key: &[u8; 32]) -> DataKey {
        DataKey(LessSafeKey::new(UnboundKey::new(suite.algorithm(), key).expect("both take 32 bytes")))
    }

    /// Seals what stands between header and tag, and writes the tag. Nothing is authenticated beside it:
    /// with another kind, receiver or counter, another key or nonce would be taken.
    pub(crate) fn seal(&self, counter: u64, datagram: &mut [u8]) {
        let (body, tag) = datagram.split_at_mut(datagram.len() - DATA_TAG);
        let sealed =
            self.0.seal_in_place_separate_tag(nonce(counter), Aad::empty(), &mut body[DATA_HEADER..]);
        tag.copy_from_slice(sealed.expect("a datagram is far below the limits of both ciphers").as_ref());
    }

    /// Opens a data message in place and tells whether it is authentic. If not, its payload is destroyed.
    pub(crate) fn open(&self, counter: u64, datagram: &mut [u8]) -> bool {
        self.0.open_in_place(nonce(counter), Aad::empty(), &mut datagram[DATA_HEADER..]).is_ok()
    }
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}
