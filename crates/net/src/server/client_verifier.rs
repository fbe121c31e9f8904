//! Verification of client certificates (mutual TLS, RFC 8446 section 4.3.2).

use std::io;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

/// Returns a verifier that refuses clients without a certificate from one of these authorities.
/// `authorities` contains the authorities' certificates in PEM. If `authorities` is `None`, clients
/// need no certificate.
///
/// # Errors
/// When `authorities` contains no certificate or an invalid certificate.
pub(super) fn build_client_verifier(
    authorities: Option<&[u8]>,
) -> io::Result<Arc<dyn ClientCertVerifier>> {
    let Some(pem) = authorities else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let invalid = |error: &dyn std::fmt::Display| {
        let message = format!("client-ca: {error}; expected certificates in PEM");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| invalid(&error))?;
        roots.add(certificate).map_err(|error| invalid(&error))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().map_err(|error| invalid(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_authority_are_refused() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        for wrong in [
            "",
            &made.signing_key.serialize_pem(),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let error = build_client_verifier(Some(wrong.as_bytes())).unwrap_err();
            assert!(error.to_string().starts_with("client-ca: "), "{error}");
        }
        assert!(build_client_verifier(Some(made.cert.pem().as_bytes())).is_ok());
    }
}
