//! The credentials by which an origin recognizes its edges. These are a secret in a header, and a
//! client certificate.

use std::time::Duration;

use net::config::UsageError;
use net::edge_secret::EdgeSecret;
use net::{FatalError, RunningProgram};
use upstream::ClientCertificate;

use crate::config::EdgeSettings;

/// Interval at which the files of the certificate are read again.
const PERIOD: Duration = Duration::from_secs(1);

/// The secret and the certificate of this edge. Cheap to clone; all clones share the same
/// credentials.
#[derive(Debug, Clone, Default)]
pub struct EdgeCredentials {
    pub secret: Option<EdgeSecret>,
    pub certificate: Option<ClientCertificate>,
}

impl EdgeCredentials {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// [`FatalError`] with the names of the setting and the file.
    pub fn read_credentials(settings: &EdgeSettings) -> Result<EdgeCredentials, FatalError> {
        let secret = settings.edge_secret.clone().map(EdgeSecret::read_secret);
        let secret = secret.transpose();
        let certificate = settings.origin_certificate.clone();
        let certificate =
            certificate.map(|(cert, key)| ClientCertificate::from_pem_files(cert, key));
        let certificate = certificate.transpose();
        Ok(EdgeCredentials {
            secret: secret.map_err(FatalError::cannot("--edge-secret-file"))?,
            certificate: certificate.map_err(FatalError::cannot("--origin-cert"))?,
        })
    }

    /// Reads the files again while the program runs. Invalid files are ignored with a warning,
    /// because the file of the certificate or of its key may not be completely written yet.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn follow_files(self, running: &mut RunningProgram) -> Result<(), FatalError> {
        running.watch_secret_file(self.secret)?;
        let Some(certificate) = self.certificate else {
            return Ok(());
        };
        let shutdown = running.shutdown().clone();
        running.spawn_async_thread("origin-cert", move || async move {
            let mut last_error = None;
            loop {
                tokio::select! {
                    () = shutdown.wait_until_draining() => return,
                    () = tokio::time::sleep(PERIOD) => {}
                }
                last_error = reload_certificate(&certificate, last_error);
            }
        })
    }
}

/// Reads the certificate again. Logs an error only if it differs from `last_error`. Returns the
/// error, if there is one.
fn reload_certificate(
    certificate: &ClientCertificate,
    last_error: Option<String>,
) -> Option<String> {
    match certificate.reload() {
        Ok(is_changed) => {
            if is_changed {
                tracing::info!("loaded a changed certificate for the origins");
            }
            None
        }
        Err(error) => {
            let error = error.to_string();
            if last_error.as_ref() != Some(&error) {
                tracing::warn!(
                    error,
                    "cannot load the certificate for the origins; the old one stays"
                );
            }
            Some(error)
        }
    }
}

/// Returns the certificate and its key, which must be set together.
pub fn pair_certificate_and_key<T>(
    cert: Option<T>,
    key: Option<T>,
) -> Result<Option<(T, T)>, UsageError> {
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (None, None) => Ok(None),
        _ => {
            let what = "origin-cert and origin-key must be set together";
            Err(UsageError(what.into()))
        }
    }
}
