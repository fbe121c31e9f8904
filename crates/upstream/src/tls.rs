//! The TLS configuration of the client: trusted authorities and offered protocols.

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The ALPN protocol name of HTTP/1.1.
pub const ALPN_HTTP1: &[u8] = b"http/1.1";
/// The ALPN protocol name of HTTP/2 over TLS (RFC 9113 section 3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";

/// The certificate authorities that the client trusts to issue server certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TrustedAuthorities {
    /// The public authorities that browsers trust.
    #[default]
    Public,
    /// Only these authorities.
    Private(Vec<CertificateDer<'static>>),
    /// The public authorities and these authorities.
    PublicAnd(Vec<CertificateDer<'static>>),
}

impl TrustedAuthorities {
    /// Reads private authorities from a PEM file.
    ///
    /// # Errors
    /// When the file cannot be read, contains no certificate, or contains an invalid certificate.
    pub fn private_from_pem_file(path: &Path) -> io::Result<TrustedAuthorities> {
        let certificates = parse_certificates(&std::fs::read(path)?)?;
        let authorities = TrustedAuthorities::Private(certificates);
        authorities.root_store()?;
        Ok(authorities)
    }

    /// Returns the public authorities together with the authorities in a PEM text.
    ///
    /// # Errors
    /// When the text is invalid PEM or contains no certificate.
    pub fn public_and_pem(pem: &[u8]) -> io::Result<TrustedAuthorities> {
        Ok(TrustedAuthorities::PublicAnd(parse_certificates(pem)?))
    }

    fn root_store(&self) -> io::Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        if !matches!(self, TrustedAuthorities::Private(_)) {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        if let TrustedAuthorities::Private(certificates)
        | TrustedAuthorities::PublicAnd(certificates) = self
        {
            for certificate in certificates {
                roots.add(certificate.clone()).map_err(invalid_data)?;
            }
        }
        Ok(roots)
    }
}

/// Returns a client configuration that trusts `authorities` and offers `protocols` in this order.
/// If `resumes_sessions` is true, a new connection may resume the TLS session of an earlier
/// connection.
///
/// # Errors
/// When an authority's certificate is invalid.
pub fn client_config(
    authorities: &TrustedAuthorities,
    protocols: &[&[u8]],
    resumes_sessions: bool,
) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(authorities.root_store()?)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    if !resumes_sessions {
        config.resumption = Resumption::disabled();
    }
    Ok(Arc::new(config))
}

pub(crate) fn parse_certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates =
        certificates.map_err(|error| invalid_data(format!("invalid PEM: {error}")))?;
    match certificates.is_empty() {
        true => Err(invalid_data("no certificate in PEM found")),
        false => Ok(certificates),
    }
}

pub(crate) fn invalid_data(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_certificate_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        assert!(
            TrustedAuthorities::private_from_pem_file(&path).is_err(),
            "no such file"
        );
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        for wrong in [
            String::new(),
            made.signing_key.serialize_pem(),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
        ] {
            std::fs::write(&path, &wrong).unwrap();
            assert!(
                TrustedAuthorities::private_from_pem_file(&path).is_err(),
                "{wrong}"
            );
        }
        std::fs::write(&path, made.cert.pem()).unwrap();
        let read = TrustedAuthorities::private_from_pem_file(&path).unwrap();
        assert_eq!(
            read,
            TrustedAuthorities::Private(vec![made.cert.der().clone()])
        );
    }
}
