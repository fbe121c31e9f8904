//! Finds out whether a remote library is available. At start, the library is listed until a listing
//! succeeds, and the server is not ready before that. An HTTP server cannot be listed, so it must
//! respond to one request instead.

use crate::response::library_list::remote_listing::list_titles;
use net::Shutdown;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Error, Key, Store};

/// Time for which the start of the server waits for the first listing. A later result is only
/// logged.
const FIRST_LISTING_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two attempts to list the library.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// The result of the last attempt to list the library.
#[derive(Debug, Default)]
pub(crate) struct LibraryStatus {
    /// The reason why the library is unavailable; `None` if it is available.
    failure: Mutex<Option<String>>,
}

/// Lists a library repeatedly until a listing succeeds.
struct ListingTask {
    store: Arc<Store>,
    status: Arc<LibraryStatus>,
    shutdown: Shutdown,
    /// Channel for the result of the first listing. The result is the line to print at start, or
    /// `None` after a failure.
    first: SyncSender<Option<String>>,
}

impl LibraryStatus {
    /// Returns the reason why the library is unavailable, if it is.
    pub(crate) fn unavailable_reason(&self) -> Option<String> {
        self.lock_failure().clone()
    }

    fn lock_failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the result of an attempt. Returns whether the result differs from the previous
    /// result.
    fn store_listing_result(&self, failure: Option<String>) -> bool {
        let mut current = self.lock_failure();
        let differs = *current != failure;
        *current = failure;
        differs
    }

    /// Starts a thread that lists a remote library. If the first listing soon succeeds, returns a
    /// line that describes the library. A local library needs no thread, because opening the
    /// library has shown that it is available.
    ///
    /// # Errors
    /// When the system cannot create a thread.
    pub(crate) fn start_listing_thread(
        self: &Arc<LibraryStatus>,
        store: &Arc<Store>,
        shutdown: &Shutdown,
    ) -> io::Result<Option<String>> {
        if !store.is_remote() {
            return Ok(None);
        }
        self.store_listing_result(Some("the library has not been listed yet".into()));
        let (first, line): (_, Receiver<Option<String>>) = sync_channel(1);
        let task = ListingTask {
            store: store.clone(),
            status: self.clone(),
            shutdown: shutdown.clone(),
            first,
        };
        // The thread is not joined, because a request to a storage that does not respond would
        // delay the exit.
        let builder = std::thread::Builder::new().name("library".into());
        builder.spawn(move || task.list_until_available())?;
        Ok(line.recv_timeout(FIRST_LISTING_TIMEOUT).unwrap_or_default())
    }
}

impl ListingTask {
    fn list_until_available(self) {
        while !self.shutdown.is_draining() {
            let result = self.list_library();
            // Ignores a failed send. The channel is for the first result only, and the receiver is
            // dropped after a limited time.
            let _ = self.first.try_send(result.clone());
            if result.is_some() {
                return;
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Lists the library, and stores the result. Returns a description of the library if it is
    /// available.
    fn list_library(&self) -> Option<String> {
        let place = self.store.location();
        // Lists only the root, so that a large library is ready before all of its folders are
        // listed.
        let root = self.store.list_at_most(&Key::ROOT, 1);
        let failure = match &root {
            Ok(_) => None,
            Err(Error::Unlisted) => self.probe_server(),
            Err(error) => Some(describe_listing_failure(error)),
        };
        if let Some(failure) = failure {
            if self.status.store_listing_result(Some(failure.clone())) {
                tracing::error!("{place}: {failure}; /readyz fails until then");
            }
            return None;
        }
        self.status.store_listing_result(None);
        let line = match root {
            Err(_) => format!("{place}: an HTTP server cannot be listed; request films by path"),
            Ok(_) => self.describe_title_count(&place),
        };
        tracing::info!("{line}");
        Some(line)
    }

    /// Returns the error if the library is at an HTTP server that does not respond.
    fn probe_server(&self) -> Option<String> {
        let error = self.store.remote()?.probe().err()?;
        let text = format!("the library is unreachable: {error}");
        Some(match text.contains("; check ") {
            true => text,
            false => format!("{text}; check the URL, and that the server runs"),
        })
    }

    fn describe_title_count(&self, place: &str) -> String {
        let Ok((titles, truncated)) = list_titles(&self.store) else {
            return format!("{place}: listed");
        };
        let titles = titles.len();
        if titles == 0 && !truncated {
            tracing::warn!("{place}: no film found; check the prefix, or upload MP4 files");
        }
        let unit = if titles == 1 { "title" } else { "titles" };
        let least = if truncated { "at least " } else { "" };
        format!("{place}: {least}{titles} {unit}")
    }
}

/// Describes the reason why a library cannot be listed, and the remedy.
pub(crate) fn describe_listing_failure(error: &Error) -> String {
    let text = format!("the library cannot be listed: {error}");
    match error {
        // Most errors already contain a remedy.
        Error::Slow(_) | Error::Broken(_) if !text.contains("; check ") => {
            format!("{text}; check the endpoint, and that the storage runs")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_library_is_available() {
        let folder = tempfile::tempdir().unwrap();
        let options = store::Options::default();
        let store = Store::new(folder.path().to_str().unwrap(), options).unwrap();
        let status = Arc::new(LibraryStatus::default());
        let line = status
            .start_listing_thread(&Arc::new(store), &Shutdown::new())
            .unwrap();
        assert_eq!((line, status.unavailable_reason()), (None, None));
    }

    #[test]
    fn failures_of_the_network_name_a_remedy() {
        let text = describe_listing_failure(&Error::Broken("the response is cut".into()));
        assert!(
            text.ends_with("check the endpoint, and that the storage runs"),
            "{text}"
        );
        let text = describe_listing_failure(&Error::Broken("refused; check its address".into()));
        assert!(text.ends_with("refused; check its address"), "{text}");
        let text =
            describe_listing_failure(&Error::Denied("status 403; check the secret key".into()));
        assert!(text.ends_with("check the secret key"), "{text}");
    }
}
