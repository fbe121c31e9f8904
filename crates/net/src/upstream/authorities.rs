//! Whose word about a server's name is believed.

use std::io;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The authorities whose certificates servers may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorities {
    /// Those that browsers know.
    #[default]
    Public,
    /// These, and no others.
    Own(Vec<CertificateDer<'static>>),
}

impl Authorities {
    /// Those of a PEM file.
    ///
    /// # Errors
    /// When it cannot be read, or what it holds is no certificate of an authority, or there is none.
    pub fn read(path: &Path) -> io::Result<Authorities> {
        let text = std::fs::read(path)?;
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let all = all.map_err(|error| wrong(format!("no PEM: {error}")))?;
        if all.is_empty() {
            return Err(wrong("it holds no certificate in PEM".into()));
        }
        let authorities = Authorities::Own(all);
        authorities.roots()?;
        Ok(authorities)
    }

    pub(super) fn roots(&self) -> io::Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match self {
            Authorities::Public => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Authorities::Own(all) => {
                for certificate in all {
                    let added = roots.add(certificate.clone());
                    added.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
            }
        }
        Ok(roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_authority_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        assert!(Authorities::read(&path).is_err(), "it is not there");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        for wrong in [
            String::new(),
            made.signing_key.serialize_pem(),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
        ] {
            std::fs::write(&path, &wrong).unwrap();
            assert!(Authorities::read(&path).is_err(), "{wrong}");
        }
        std::fs::write(&path, made.cert.pem()).unwrap();
        let read = Authorities::read(&path).unwrap();
        assert_eq!(read, Authorities::Own(vec![made.cert.der().clone()]));
    }
}
