//! Configures TLS with rustls: trusted certificate authorities and offered protocols.

use super::{ClientSettings, HttpVersion};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// The reason why TLS settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The TLS library rejects the protocol versions.
    #[error("cannot configure TLS: {0}")]
    Protocol(Error),
    /// The file of certificate authorities is not in PEM format.
    #[error("--ca: {0}; expected certificates in PEM")]
    Pem(rustls::pki_types::pem::Error),
    /// A certificate of the file cannot serve as a certificate authority.
    #[error("--ca: {0}; expected certificates of authorities")]
    Authority(Error),
    /// The file contains no certificate.
    #[error("--ca: the file contains no certificate; expected certificates in PEM")]
    NoCertificate,
}

/// Creates the TLS configuration that all connections share.
pub(super) fn build_tls_config(
    settings: &ClientSettings,
) -> Result<Arc<ClientConfig>, TlsSetupError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsSetupError::Protocol)?;
    let mut config = if settings.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
            .with_no_client_auth()
    } else {
        let roots = trusted_roots(settings.authorities.as_deref())?;
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = match settings.version {
        HttpVersion::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn trusted_roots(authorities: Option<&[u8]>) -> Result<RootCertStore, TlsSetupError> {
    let Some(pem) = authorities else {
        let public = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        return Ok(public);
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(TlsSetupError::Pem)?;
        roots.add(certificate).map_err(TlsSetupError::Authority)?;
    }
    match roots.is_empty() {
        true => Err(TlsSetupError::NoCertificate),
        false => Ok(roots),
    }
}

/// Trusts every certificate, but still verifies handshake signatures.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
