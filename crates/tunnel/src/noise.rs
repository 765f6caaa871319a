//! The handshake: Noise_IK_25519_ChaChaPoly_BLAKE2s of revision 34 of the Noise protocol framework, by
//! `snow`, with random bytes of the caller.

use crate::keys::{PublicKey, SecretKey};
use crate::message::{INITIATION_PAYLOAD, RESPONSE_PAYLOAD};
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";

/// Both ends mix this into what they authenticate, so ends of different versions have no session.
const PROLOGUE: &[u8] = b"ravelin tunnel 1";

/// Noise messages of the handshake: an ephemeral key, a sealed static key, a sealed payload.
pub(crate) const FIRST: usize = 32 + 32 + 16 + INITIATION_PAYLOAD + 16;
/// An ephemeral key and a sealed payload.
pub(crate) const SECOND: usize = 32 + RESPONSE_PAYLOAD + 16;

/// The message is not what a peer with these keys would have written.
#[derive(Debug)]
pub(crate) struct NotAuthentic;

impl From<snow::Error> for NotAuthentic {
    fn from(_: snow::Error) -> NotAuthentic {
        NotAuthentic
    }
}

/// The keys of the two directions of a session.
pub(crate) struct DirectionKeys {
    pub(crate) from_initiator: [u8; 32],
    pub(crate) from_responder: [u8; 32],
}

/// The initiator's side between its message and the answer.
pub(crate) struct Initiated(Box<HandshakeState>);

/// The responder's side between the initiator's message and the answer.
pub(crate) struct Asked {
    state: HandshakeState,
    /// Who asks.
    pub(crate) peer: PublicKey,
    pub(crate) payload: [u8; INITIATION_PAYLOAD],
}

/// Writes the first message.
pub(crate) fn initiate(
    secret: &SecretKey,
    peer: &PublicKey,
    ephemeral: [u8; 32],
    payload: &[u8; INITIATION_PAYLOAD],
) -> Result<(Initiated, [u8; FIRST]), NotAuthentic> {
    let mut state = builder(secret, ephemeral)?.remote_public_key(&peer.0)?.build_initiator()?;
    let mut message = [0; FIRST];
    state.write_message(payload, &mut message)?;
    Ok((Initiated(Box::new(state)), message))
}

/// Reads the first message. `ephemeral` is for the answer.
pub(crate) fn read_first(
    secret: &SecretKey,
    ephemeral: [u8; 32],
    message: &[u8],
) -> Result<Asked, NotAuthentic> {
    let mut state = builder(secret, ephemeral)?.build_responder()?;
    let mut payload = [0; INITIATION_PAYLOAD];
    if state.read_message(message, &mut payload)? != INITIATION_PAYLOAD {
        return Err(NotAuthentic);
    }
    let peer = state.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(NotAuthentic)?;
    Ok(Asked { state, peer: PublicKey(peer), payload })
}

impl Asked {
    /// Writes the second message.
    pub(crate) fn answer(
        mut self,
        payload: [u8; RESPONSE_PAYLOAD],
    ) -> Result<([u8; SECOND], DirectionKeys), NotAuthentic> {
        let mut message = [0; SECOND];
        self.state.write_message(&payload, &mut message)?;
        Ok((message, direction_keys(&mut self.state)))
    }
}

impl Initiated {
    /// Reads the second message. One that is not authentic changes nothing: another may follow.
    pub(crate) fn read_second(
        &mut self,
        message: &[u8],
    ) -> Result<([u8; RESPONSE_PAYLOAD], DirectionKeys), NotAuthentic> {
        let mut payload = [0; RESPONSE_PAYLOAD];
        if self.0.read_message(message, &mut payload)? != RESPONSE_PAYLOAD {
            return Err(NotAuthentic);
        }
        Ok((payload, direction_keys(&mut self.0)))
    }
}

/// The public key that belongs to a secret.
pub(crate) fn public_key(secret: &[u8; 32]) -> PublicKey {
    let mut dh = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("it is compiled in");
    dh.set(secret);
    PublicKey(dh.pubkey().try_into().expect("a key of X25519 has 32 bytes"))
}

/// Whether a public key gives results that depend on the secret.
pub(crate) fn is_usable(key: &PublicKey) -> bool {
    let mut dh = Given { ephemeral: [0; 32] }.resolve_dh(&DHChoice::Curve25519).expect("it is compiled in");
    dh.set(&[1; 32]);
    dh.dh(&key.0, &mut [0; 32]).is_ok()
}

/// The initiator's key is the first of the two (Noise, 5.2).
fn direction_keys(state: &mut HandshakeState) -> DirectionKeys {
    let (from_initiator, from_responder) = state.dangerously_get_raw_split();
    DirectionKeys { from_initiator, from_responder }
}

fn builder(secret: &SecretKey, ephemeral: [u8; 32]) -> Result<Builder<'_>, NotAuthentic> {
    let pattern: NoiseParams = PATTERN.parse()?;
    let resolver = Box::new(Given { ephemeral });
    Ok(Builder::with_resolver(pattern, resolver).local_private_key(secret.bytes())?.prologue(PROLOGUE)?)
}

/// The algorithms of `snow`, with random bytes that were given, and a check of what X25519 gives.
struct Given {
    ephemeral: [u8; 32],
}

impl CryptoResolver for Given {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice).map(|dh| Box::new(Contributory(dh)) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Random bytes for one key; a second one would be equal to the first.
struct Once(Option<[u8; 32]>);

impl Random for Once {
    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), snow::Error> {
        if into.len() != 32 {
            return Err(snow::Error::Rng);
        }
        into.copy_from_slice(&self.0.take().ok_or(snow::Error::Rng)?);
        Ok(())
    }
}

/// X25519 that refuses points of small order: for them the result is zero, whatever the secret is (RFC 7748,
/// 6.1).
struct Contributory(Box<dyn Dh>);

impl Dh for Contributory {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, secret: &[u8]) {
        self.0.set(secret);
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        self.0.generate(random)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.dh(public, out)?;
        if out[..32].iter().fold(0, |all, byte| all | byte) == 0 { Err(snow::Error::Dh) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: [u8; INITIATION_PAYLOAD] = [7; INITIATION_PAYLOAD];

    #[test]
    fn both_ends_have_the_same_keys_and_know_each_other() {
        let (a, b) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
        let (mut sent, first) = initiate(&a, &b.public(), [3; 32], &PAYLOAD).unwrap();
        let asked = read_first(&b, [4; 32], &first).unwrap();
        assert_eq!(asked.peer, a.public());
        assert_eq!(asked.payload, PAYLOAD);
        let (second, of_b) = asked.answer([9; RESPONSE_PAYLOAD]).unwrap();
        let mut damaged = second;
        damaged[40] ^= 1;
        assert!(sent.read_second(&damaged).is_err());
        let (payload, of_a) = sent.read_second(&second).expect("a damaged one before changed nothing");
        assert_eq!(payload, [9; RESPONSE_PAYLOAD]);
        assert_eq!(of_a.from_initiator, of_b.from_initiator);
        assert_eq!(of_a.from_responder, of_b.from_responder);
        assert_ne!(of_a.from_initiator, of_a.from_responder);
    }

    /// RFC 7748, 6.1.
    #[test]
    fn a_public_key_is_that_of_the_standard() {
        let hex = |text: &str| -> [u8; 32] {
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("digits"))
        };
        let secret = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(public_key(&secret).0, public);
    }

    #[test]
    fn points_of_small_order_are_refused() {
        let secret = SecretKey::new([1; 32]);
        for point in [[0; 32], std::array::from_fn(|i| u8::from(i == 0))] {
            assert!(initiate(&secret, &PublicKey(point), [3; 32], &PAYLOAD).is_err());
        }
    }
}
