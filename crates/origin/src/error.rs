//! Converts every error to an HTTP status, in one place.

use crate::route::RouteError;
use crate::title::references;
use http::StatusCode;
use net::Error;
use store::{BadKey, Key};

/// Converts the error of a malformed or unknown URL.
pub(crate) fn from_route_error(bad: RouteError) -> Error {
    let status = match bad {
        RouteError::TooLong => StatusCode::URI_TOO_LONG,
        RouteError::Encoding | RouteError::Query(_) | RouteError::UnsupportedParameter(_) => {
            StatusCode::BAD_REQUEST
        }
        RouteError::Path(BadKey::Hidden) | RouteError::NotFound => StatusCode::NOT_FOUND,
        RouteError::Path(BadKey::TooLong) => StatusCode::URI_TOO_LONG,
        RouteError::Path(BadKey::Empty | BadKey::Dots | BadKey::Character) => {
            StatusCode::BAD_REQUEST
        }
    };
    Error::new_client_error(status, bad)
}

/// Converts a storage error.
pub(crate) fn from_store(error: &store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::new_client_error(StatusCode::NOT_FOUND, error),
        store::Error::Refused(_) => Error::new_client_error(StatusCode::FORBIDDEN, error),
        store::Error::Changed => Error::new_upstream_error(StatusCode::SERVICE_UNAVAILABLE, error),
        store::Error::OtherLength { .. } | store::Error::Replaced => {
            from_media("", &media::Error::unsupported(error.to_string()))
        }
        store::Error::Unlisted => Error::new_client_error(StatusCode::NOT_FOUND, error),
        // The storage refused the credentials of this server, so the error is not the client's
        // fault.
        store::Error::Denied(_) => {
            Error::new_upstream_error(StatusCode::BAD_GATEWAY, error).with_retryable(false)
        }
        store::Error::Slow(_) => Error::new_upstream_error(StatusCode::GATEWAY_TIMEOUT, error),
        store::Error::Broken(_) => Error::new_upstream_error(StatusCode::BAD_GATEWAY, error),
        store::Error::Io(io) if is_local_shortage(io) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Error {
                status,
                retry: true,
                ..Error::new_internal_error(error)
            }
        }
        store::Error::Io(_) => Error::new_upstream_error(StatusCode::BAD_GATEWAY, error),
    }
}

/// Returns `None` if a file is missing or unusable, and the error if the storage failed for now.
/// Denied access is not such a failure, because some storages deny access to missing files.
pub(crate) fn require_storage<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(error) if error.retry => Err(error),
        found => Ok(found.ok()),
    }
}

/// Returns whether an I/O error means that this machine has run out of file descriptors or memory.
fn is_local_shortage(error: &std::io::Error) -> bool {
    // ENOMEM, ENFILE and EMFILE have these numbers on every Linux architecture.
    matches!(error.raw_os_error(), Some(12 | 23 | 24))
}

/// Converts an error about a file that cannot be packaged. The error is not the client's fault, and
/// a retry does not help.
pub(crate) fn from_media(file: &str, error: &media::Error) -> Error {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let context = if file.is_empty() {
        error.to_string()
    } else {
        format!("{file}: {error}")
    };
    Error::new_upstream_error(status, context).with_retryable(false)
}

/// Converts a storage error about a file to which another file refers. The error is not the
/// client's fault.
pub(crate) fn from_referenced_file_error(holder: &Key, name: &Key, error: &store::Error) -> Error {
    let what = format_args!("{holder} refers to {name}: {error}");
    Error::new_upstream_error(StatusCode::BAD_GATEWAY, what)
}

/// Converts the reason why a reference is not followed.
pub(crate) fn from_reference_error(
    holder: &Key,
    name: &str,
    bad: &references::ReferenceError,
) -> Error {
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    let what = format!("reference {name:?} is not followed: {bad}");
    from_media(holder.as_str(), &media::Error::unsupported(what))
}

/// Maximum number of characters of a name in an error message.
const NAME_CHARS_MAX: usize = 100;

/// Returns the error for a title with too many files.
pub(crate) fn too_many_title_files(title: &Key) -> Error {
    let what = media::Error::unsupported("the title has more than 64 files");
    from_media(title.as_str(), &what)
}

/// Returns a 404.
pub(crate) fn not_found(what: &str) -> Error {
    Error::new_client_error(StatusCode::NOT_FOUND, what)
}

/// Returns the 404 for a segment that the rendition does not have.
pub(crate) fn no_such_segment() -> Error {
    not_found("unknown segment")
}

/// Returns the 410 for segments of an outdated title version.
pub(crate) fn version_gone() -> Error {
    let what = "the film or its segmentation has changed; reload the manifest";
    Error::new_client_error(StatusCode::GONE, what)
}

/// Converts the panic or cancellation of a task.
pub(crate) fn from_task(error: &tokio::task::JoinError) -> Error {
    Error::new_internal_error(format_args!("an internal task failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::error::ErrorSide;

    #[test]
    fn each_failure_of_the_storage_has_its_side_and_status() {
        let io = |number| store::Error::from(std::io::Error::from_raw_os_error(number));
        const EIO: i32 = 5;
        for (error, side, status, retry) in [
            (store::Error::NotFound, ErrorSide::Client, 404, false),
            (io(2), ErrorSide::Client, 404, false),
            (io(13), ErrorSide::Client, 403, false),
            (store::Error::Changed, ErrorSide::Upstream, 503, true),
            (
                store::Error::OtherLength { then: 7 },
                ErrorSide::Upstream,
                415,
                false,
            ),
            (store::Error::Replaced, ErrorSide::Upstream, 415, false),
            (store::Error::Unlisted, ErrorSide::Client, 404, false),
            (
                store::Error::Denied("403".into()),
                ErrorSide::Upstream,
                502,
                false,
            ),
            (
                store::Error::Slow("slow".into()),
                ErrorSide::Upstream,
                504,
                true,
            ),
            (
                store::Error::Broken("short".into()),
                ErrorSide::Upstream,
                502,
                true,
            ),
            (io(EIO), ErrorSide::Upstream, 502, true),
            (io(12), ErrorSide::Internal, 503, true),
            (io(24), ErrorSide::Internal, 503, true),
        ] {
            let converted = from_store(&error);
            assert_eq!(
                (converted.side, converted.status.as_u16(), converted.retry),
                (side, status, retry),
                "{error}"
            );
        }
    }
}
