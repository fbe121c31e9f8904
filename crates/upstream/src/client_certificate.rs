//! The certificate that a client presents to servers that request one (RFC 8446 section 4.4.2).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;

use crate::tls::{invalid_data, parse_certificates};

/// A certificate chain and its key. Cheap to clone; all clones share the current certificate and
/// key.
#[derive(Clone)]
pub struct ClientCertificate {
    files: Arc<CertificateFiles>,
    current: Arc<RwLock<Arc<CertifiedKey>>>,
}

/// The PEM files of a certificate chain and its private key.
struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
}

impl ClientCertificate {
    /// Reads a certificate chain and its private key from PEM files.
    ///
    /// # Errors
    /// When a file is unreadable or invalid, or when the certificate and the key do not match. The
    /// error contains the file's name.
    pub fn from_pem_files(cert: PathBuf, key: PathBuf) -> io::Result<ClientCertificate> {
        let files = CertificateFiles { cert, key };
        let current = Arc::new(files.read_certified_key()?);
        Ok(ClientCertificate {
            files: Arc::new(files),
            current: Arc::new(RwLock::new(current)),
        })
    }

    /// Reads the files again. New TLS sessions then present the new certificate, and connections
    /// that resume a session keep its certificate. Returns whether the certificate changed.
    ///
    /// # Errors
    /// The same as for [`ClientCertificate::from_pem_files`]. After an error, the old certificate stays in
    /// use.
    pub fn reload(&self) -> io::Result<bool> {
        let new = self.files.read_certified_key()?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = current.cert != new.cert;
        if is_changed {
            *current = Arc::new(new);
        }
        Ok(is_changed)
    }
}

impl CertificateFiles {
    fn read_certified_key(&self) -> io::Result<CertifiedKey> {
        let chain = parse_certificates(&read_file(&self.cert)?);
        let chain = chain.map_err(|error| unusable_file_error(&self.cert, &error))?;
        let key = PrivateKeyDer::from_pem_slice(&read_file(&self.key)?);
        let key = key.map_err(|error| unusable_file_error(&self.key, &error))?;
        let pair = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        pair.map_err(|error| unusable_file_error(&self.cert, &error))
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| unusable_file_error(path, &error))
}

fn unusable_file_error(path: &Path, error: &dyn fmt::Display) -> io::Error {
    invalid_data(format!("cannot use {}: {error}", path.display()))
}

impl ResolvesClientCert for ClientCertificate {
    /// Presents the certificate regardless of the authorities that the server lists, because the
    /// server decides whether to accept it.
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_match_are_refused_and_the_old_pair_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
        let made = || rcgen::generate_simple_self_signed(vec!["edge".into()]).unwrap();
        let (old, new) = (made(), made());
        let read = || ClientCertificate::from_pem_files(cert.clone(), key.clone());
        assert!(read().unwrap_err().to_string().contains("cert"));
        std::fs::write(&cert, old.cert.pem()).unwrap();
        std::fs::write(&key, "nothing").unwrap();
        assert!(read().unwrap_err().to_string().contains("key"));
        std::fs::write(&key, old.signing_key.serialize_pem()).unwrap();
        let certificate = read().unwrap();
        let presented = || certificate.resolve(&[], &[]).unwrap().cert.clone();
        assert!(!certificate.reload().unwrap());
        std::fs::write(&cert, new.cert.pem()).unwrap();
        assert!(certificate.reload().is_err());
        assert_eq!(presented(), [old.cert.der().clone()]);
        std::fs::write(&key, new.signing_key.serialize_pem()).unwrap();
        assert!(certificate.reload().unwrap());
        assert_eq!(presented(), [new.cert.der().clone()]);
    }
}
