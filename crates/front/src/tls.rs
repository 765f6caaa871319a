//! TLS as both ends speak it: version 1.3 alone, no session that goes on later, and public keys that were
//! told before in place of certificates (RFC 7250).

use crate::key::{IdentityKey, in_tls};
use crate::pinned::PinnedClient;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    ServerConfig, SignatureScheme,
};
use std::sync::Arc;

/// What both ends say that they speak (RFC 7301): another form of messages would have another name.
const PROTOCOL: &[u8] = b"ravelin-front/1";

/// The clients that a front knows, by their keys.
#[derive(Debug)]
pub struct PinnedClients(Vec<PinnedClient>);

impl PinnedClients {
    /// These.
    #[must_use]
    pub fn new(clients: Vec<PinnedClient>) -> PinnedClients {
        PinnedClients(clients)
    }

    /// The one that has shown this in its handshake.
    pub(crate) fn of(&self, shown: &[u8]) -> Option<&PinnedClient> {
        self.0.iter().find(|client| in_tls(&client.key) == shown)
    }
}

/// How a front speaks.
pub(crate) fn of_front(key: &IdentityKey, clients: Arc<PinnedClients>) -> Result<Arc<ServerConfig>, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned { keys: clients, provider: provider.clone() });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key.certified())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// How a client speaks to the front that has this key.
pub(crate) fn of_client(key: &IdentityKey, front: [u8; 32]) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let verifier = Arc::new(Pinned { keys: front, provider: provider.clone() });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key.certified())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    // The key says which front it is; a name would only tell others.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Whether both ends speak the same form of messages.
pub(crate) fn is_own(protocol: Option<&[u8]>) -> bool {
    protocol == Some(PROTOCOL)
}

/// The ways to encrypt and to agree on keys.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    })
}

/// Finds out whether the other end has a key that was told before.
#[derive(Debug)]
struct Pinned<K> {
    keys: K,
    provider: Arc<CryptoProvider>,
}

impl<K> Pinned<K> {
    /// Whether what was said in the handshake is signed by the key that was shown.
    fn is_signed(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

/// A key that nobody has told.
fn unknown() -> Error {
    CertificateError::ApplicationVerificationFailure.into()
}

/// What a version before 1.3 would need, which is not spoken.
fn old_version() -> Error {
    PeerIncompatible::Tls12NotOffered.into()
}

/// What both ends answer alike when they are asked of signatures.
macro_rules! signatures_by_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(old_version())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            shown: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.is_signed(message, shown, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Pinned<[u8; 32]> {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let known = more.is_empty() && in_tls(&self.keys) == shown.as_ref();
        if known { Ok(ServerCertVerified::assertion()) } else { Err(unknown()) }
    }

    signatures_by_raw_keys!();
}

impl ClientCertVerifier for Pinned<Arc<PinnedClients>> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let known = more.is_empty() && self.keys.of(shown.as_ref()).is_some();
        if known { Ok(ClientCertVerified::assertion()) } else { Err(unknown()) }
    }

    signatures_by_raw_keys!();
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustls::client::ResolvesClientCert;
    use rustls::sign::CertifiedKey;

    /// Of a client that shows no key.
    #[derive(Debug)]
    struct NoKey;

    impl ResolvesClientCert for NoKey {
        fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            None
        }

        fn only_raw_public_keys(&self) -> bool {
            true
        }

        fn has_certs(&self) -> bool {
            false
        }
    }

    /// What a client has that shows no key.
    pub(crate) fn no_key() -> Arc<dyn ResolvesClientCert> {
        Arc::new(NoKey)
    }

    /// Of a client that shows the key `of`, and signs by the key `by`.
    pub(crate) fn with_key_of(of: &IdentityKey, by: &IdentityKey, front: [u8; 32]) -> Arc<ClientConfig> {
        let mut config = (*of_client(of, front).expect("a client")).clone();
        let shown = CertificateDer::from(in_tls(&of.public_key()));
        let forged = Arc::new(CertifiedKey::new(vec![shown], by.certified().key.clone()));
        config.client_auth_cert_resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(forged));
        Arc::new(config)
    }
}
