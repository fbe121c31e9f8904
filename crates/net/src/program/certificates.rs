//! Following the certificate's files: whoever renews them has to tell nobody.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::config::Common;
use crate::server::Certificates;
use crate::{Failed, Running};

/// How often the files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// What changes when a file is written or replaced (through links, too).
type Stamp = Vec<Option<(u64, u64, i64, i64)>>;

impl Running {
    /// From now on serves with what the certificate's files hold, whenever they change. Files
    /// that do not belong together (the second is still being written) change nothing.
    ///
    /// # Errors
    /// [`Failed::Cannot`] when the system gives no thread.
    pub fn follow_tls(
        &mut self,
        common: &Common,
        certificates: Option<Certificates>,
    ) -> Result<(), Failed> {
        let Some(certificates) = certificates else {
            return Ok(());
        };
        let (common, shutdown) = (common.clone(), self.shutdown().clone());
        let mut seen = stamp(&common);
        self.until_drained("certificates", move || async move {
            loop {
                tokio::select! {
                    () = shutdown.draining() => return,
                    () = tokio::time::sleep(PERIOD) => {}
                }
                let now = stamp(&common);
                if now != seen {
                    seen = now;
                    match renew(&common, &certificates) {
                        Ok(()) => {
                            tracing::info!("the certificate changed and is served from now on")
                        }
                        Err(error) => tracing::warn!(%error, "the old certificate stays"),
                    }
                }
            }
        })
    }
}

fn renew(common: &Common, certificates: &Certificates) -> io::Result<()> {
    let tls = common.read_tls()?;
    tls.map_or(Ok(()), |tls| certificates.replace(&tls))
}

fn stamp(common: &Common) -> Stamp {
    let of = |path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
    };
    let files = common.tls.iter().flat_map(|(cert, key)| [cert, key]);
    files.map(of).collect()
}
