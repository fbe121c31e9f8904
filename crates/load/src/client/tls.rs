//! TLS by rustls: whom to trust, which HTTP to offer.

use super::{Settings, Version};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The configuration that all connections share.
pub(super) fn config(settings: &Settings) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let mut config = if settings.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth()
    } else {
        let roots = roots(settings.authorities.as_deref())?;
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = match settings.version {
        Version::Http1 => vec![b"http/1.1".to_vec()],
        Version::Http2 => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn roots(authorities: Option<&[u8]>) -> Result<RootCertStore, String> {
    let Some(pem) = authorities else {
        let public = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        return Ok(public);
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("authorities: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("authorities: {error}"))?;
    }
    match roots.is_empty() {
        true => Err("authorities: no certificate in the file".into()),
        false => Ok(roots),
    }
}

/// Trusts every certificate; signatures of the handshake still have to be right.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
