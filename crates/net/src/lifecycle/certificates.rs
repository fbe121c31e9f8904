//! Reloads the certificate when its files change, so that a renewal needs no signal or restart.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::config::CommonSettings;
use crate::server::CurrentCertificates;
use crate::{FatalError, RunningProgram};

/// Interval between checks of the certificate files.
const PERIOD: Duration = Duration::from_secs(1);

/// Inode, size and modification time of each file. The values change when the file, or the target
/// of a symbolic link, is written or replaced.
type FileStamps = Vec<Option<(u64, u64, i64, i64)>>;

impl RunningProgram {
    /// Reloads the certificate whenever its files change.
    ///
    /// A certificate and a key that do not match are ignored with a warning, because the second
    /// file may not be written yet.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn watch_tls_files(
        &mut self,
        common: &CommonSettings,
        certificates: Option<CurrentCertificates>,
    ) -> Result<(), FatalError> {
        let Some(certificates) = certificates else {
            return Ok(());
        };
        let (common, shutdown) = (common.clone(), self.shutdown().clone());
        let mut seen = read_stamps(&common);
        self.spawn_async_thread("certificates", move || async move {
            loop {
                tokio::select! {
                    () = shutdown.wait_until_draining() => return,
                    () = tokio::time::sleep(PERIOD) => {}
                }
                let now = read_stamps(&common);
                if now != seen {
                    seen = now;
                    match reload_certificates(&common, &certificates) {
                        Ok(()) => {
                            tracing::info!("loaded a changed certificate")
                        }
                        Err(error) => tracing::warn!(%error, "cannot load the changed certificate; the old one stays"),
                    }
                }
            }
        })
    }
}

fn reload_certificates(
    common: &CommonSettings,
    certificates: &CurrentCertificates,
) -> io::Result<()> {
    let tls = common.read_tls()?;
    tls.map_or(Ok(()), |tls| certificates.replace_certificates(&tls))
}

fn read_stamps(common: &CommonSettings) -> FileStamps {
    let of = |path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
    };
    let files = common.tls.iter().flat_map(|(cert, key)| [cert, key]);
    files.chain(&common.client_ca).map(of).collect()
}
