//! The secret that edges send to their origin. The origin requires the secret, so that viewers
//! cannot bypass the edges.
//!
//! The file contains one value per line. Edges send the first value, and origins accept all values.
//! To rotate the secret without a refused request, first add the new value to the files of the
//! origins. Then make the new value the first value in the files of the edges. Finally, remove the
//! old value.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::access_token::equals_in_constant_time;
use crate::{FatalError, RunningProgram};

/// The header with the secret.
pub const EDGE_AUTH: HeaderName = HeaderName::from_static("headwater-edge-auth");

/// Minimum length of a secret in bytes, because shorter secrets could be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// Limit on the bytes of a secret, so that requests stay below the header limits of other servers.
const SECRET_BYTES_MAX: usize = 512;
/// Limit on the number of values that are valid at the same time.
const VALUES_MAX: usize = 4;
/// Interval between checks of the secret's file.
const PERIOD: Duration = Duration::from_secs(1);

/// The current values of a secret. Cloning is cheap, and all clones share the values.
#[derive(Clone)]
pub struct EdgeSecret {
    path: Arc<Path>,
    values: Arc<RwLock<Vec<HeaderValue>>>,
}

impl EdgeSecret {
    /// Reads the secret from a file.
    ///
    /// # Errors
    /// An error with the name of the file, if the file is unreadable or contains an invalid value.
    pub fn read_secret(path: PathBuf) -> io::Result<EdgeSecret> {
        let values = read_secret_values(&path)?;
        Ok(EdgeSecret {
            path: path.into(),
            values: Arc::new(RwLock::new(values)),
        })
    }

    /// Returns whether a request contains one of the values. The comparison takes constant time.
    pub fn has_valid_secret(&self, headers: &HeaderMap) -> bool {
        let Some(given) = headers.get(&EDGE_AUTH) else {
            return false;
        };
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let is_equal =
            |value: &HeaderValue| equals_in_constant_time(given.as_bytes(), value.as_bytes());
        // Compares with all values, so that the time does not depend on which value matches.
        values
            .iter()
            .fold(false, |any, value| any | is_equal(value))
    }

    /// Adds the header with the first value to a request. An existing header of the same name is
    /// replaced.
    pub fn attach_secret(&self, headers: &mut HeaderMap) {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.first() {
            headers.insert(EDGE_AUTH, value.clone());
        }
    }

    /// Reads the file again. Returns whether the values changed.
    fn reload_secret(&self) -> io::Result<bool> {
        let new = read_secret_values(&self.path)?;
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = *values != new;
        *values = new;
        Ok(is_changed)
    }
}

impl fmt::Debug for EdgeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EdgeSecret")
    }
}

impl RunningProgram {
    /// Reads the secret's file again at intervals while the program runs. A changed file, or a
    /// changed target of a symbolic link, therefore takes effect without a restart. An invalid file
    /// is ignored with a warning, and the old values stay valid.
    ///
    /// # Errors
    /// [`FatalError::Cannot`] when the system cannot create a thread.
    pub fn watch_secret_file(&mut self, secret: Option<EdgeSecret>) -> Result<(), FatalError> {
        let Some(secret) = secret else {
            return Ok(());
        };
        let shutdown = self.shutdown().clone();
        self.spawn_async_thread("secret", move || async move {
            let mut last_error = None;
            loop {
                tokio::select! {
                    () = shutdown.wait_until_draining() => return,
                    () = tokio::time::sleep(PERIOD) => {}
                }
                match secret.reload_secret() {
                    Ok(true) => tracing::info!("loaded a changed edge secret"),
                    Ok(false) => last_error = None,
                    Err(error) => {
                        let error = Some(error.to_string());
                        if error != last_error {
                            tracing::warn!(error, "cannot load the edge secret; the old one stays");
                        }
                        last_error = error;
                    }
                }
            }
        })
    }
}

fn read_secret_values(path: &Path) -> io::Result<Vec<HeaderValue>> {
    let named = |what: &dyn fmt::Display| {
        let message = format!("cannot use secret file {}: {what}", path.display());
        io::Error::other(message)
    };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| named(&crate::describe_io_error(&error)))?;
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if !(1..=VALUES_MAX).contains(&lines.len()) {
        return Err(named(&format!("expected 1 to {VALUES_MAX} lines")));
    }
    let values = lines.into_iter().map(parse_secret_value);
    let values: Result<_, String> = values.collect();
    values.map_err(|why| named(&why))
}

fn parse_secret_value(line: &str) -> Result<HeaderValue, String> {
    if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&line.len()) {
        return Err(format!(
            "a secret must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} characters"
        ));
    }
    if !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a secret must consist of visible ASCII characters".into());
    }
    let value = HeaderValue::from_str(line);
    let mut value = value.map_err(|_| "invalid secret".to_owned())?;
    // Hides the value in debug output.
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "old-0123456789abcdef";
    const NEW: &str = "new-0123456789abcdef";

    fn headers_with(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(EDGE_AUTH, value.parse().unwrap());
        headers
    }

    #[test]
    fn all_values_are_accepted_and_the_first_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, format!("{NEW}\n{OLD}\n")).unwrap();
        let secret = EdgeSecret::read_secret(path.clone()).unwrap();
        assert!(
            secret.has_valid_secret(&headers_with(NEW))
                && secret.has_valid_secret(&headers_with(OLD))
        );
        for wrong in ["", "x", "new-0123456789abcdeF", "new-0123456789abcdef0"] {
            assert!(!secret.has_valid_secret(&headers_with(wrong)), "{wrong}");
        }
        assert!(!secret.has_valid_secret(&HeaderMap::new()));
        let mut headers = headers_with("forged");
        secret.attach_secret(&mut headers);
        assert_eq!(headers, headers_with(NEW));
        assert!(!format!("{headers:?} {secret:?}").contains(NEW));
        std::fs::write(&path, NEW).unwrap();
        assert!(secret.reload_secret().unwrap() && !secret.reload_secret().unwrap());
        assert!(!secret.has_valid_secret(&headers_with(OLD)));
        std::fs::write(&path, "short").unwrap();
        assert!(secret.reload_secret().is_err() && secret.has_valid_secret(&headers_with(NEW)));
    }

    #[test]
    fn invalid_files_are_refused_without_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        assert!(EdgeSecret::read_secret(path.clone()).is_err(), "no file");
        let many = format!("{OLD}\n").repeat(VALUES_MAX + 1);
        for wrong in ["", "short-secret", "a secret with spaces inside", &many] {
            std::fs::write(&path, wrong).unwrap();
            let error = EdgeSecret::read_secret(path.clone())
                .unwrap_err()
                .to_string();
            assert!(error.contains("secret file"), "{error}");
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
        }
    }
}
