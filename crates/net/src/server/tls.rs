//! TLS with rustls.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use tokio_rustls::TlsAcceptor;

use super::certificate_expiry::find_earliest_expiry;
use super::client_verifier::build_client_verifier;

/// A certificate chain, its private key, and the authorities of client certificates, all in PEM.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The certificate chain, which starts with the server's own certificate.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
    /// Certificates of the authorities that issue client certificates. If set, every client needs a
    /// certificate.
    pub client_ca: Option<Vec<u8>>,
}

impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// The certificate chain for new connections. Cheap to clone; all clones share the chain.
#[derive(Clone)]
pub struct CurrentCertificates(Arc<RwLock<LoadedCertificates>>);

struct LoadedCertificates {
    acceptor: TlsAcceptor,
    /// The earliest end of validity in the chain, in seconds since 1970.
    expiry: Option<u64>,
}

impl CurrentCertificates {
    pub(super) fn new(tls: &TlsIdentity) -> io::Result<CurrentCertificates> {
        let loaded = build_tls_acceptor(tls)?;
        Ok(CurrentCertificates(Arc::new(RwLock::new(loaded))))
    }

    /// Replaces the certificate for new connections. Open connections keep their certificate.
    ///
    /// # Errors
    /// When the chain or the key is invalid, or the key does not match the chain. The old
    /// certificate then stays in use.
    pub fn replace_certificates(&self, tls: &TlsIdentity) -> io::Result<()> {
        let new = build_tls_acceptor(tls)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .acceptor
            .clone()
    }

    /// Returns the earliest end of validity in the chain, in seconds since 1970.
    pub(super) fn expiry(&self) -> Option<u64> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        loaded.expiry
    }
}

fn build_tls_acceptor(tls: &TlsIdentity) -> io::Result<LoadedCertificates> {
    let wrong = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("TLS {what}: {error}; give PEM files with --tls-cert and --tls-key"),
        )
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&tls.cert)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong("certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| wrong("key", &error))?;
    let expiry = find_earliest_expiry(&chain);
    let verifier = build_client_verifier(tls.client_ca.as_deref())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let builder = builder.with_client_cert_verifier(verifier);
            builder.with_single_cert(chain, key)
        })
        .map_err(|error| wrong("configuration", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if tls.client_ca.is_some() {
        // Disables session resumption, because a resumed session would not verify the client's
        // certificate again. The certificate may have expired since the first session.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        // With tickets, clients can resume sessions that the server does not store.
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| wrong("tickets", &error))?;
    }
    Ok(LoadedCertificates {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        expiry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_file_is_named_in_the_error() {
        let tls = TlsIdentity {
            cert: b"no PEM".to_vec(),
            key: b"nor here".to_vec(),
            client_ca: None,
        };
        let error = build_tls_acceptor(&tls).err().unwrap().to_string();
        assert!(error.starts_with("TLS key"), "{error}");
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let made = || rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let (one, other) = (made(), made());
        let tls = TlsIdentity {
            cert: one.cert.pem().into_bytes(),
            key: other.signing_key.serialize_pem().into_bytes(),
            client_ca: None,
        };
        assert!(build_tls_acceptor(&tls).is_err());
    }
}
