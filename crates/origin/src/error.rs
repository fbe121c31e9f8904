//! What went wrong, as a status: the one table.

use crate::route::Bad;
use http::StatusCode;
use net::Error;
use net::error::Side;
use store::BadKey;

/// A URL that is none of ours.
pub(crate) fn of_route(bad: Bad) -> Error {
    let status = match bad {
        Bad::TooLong => StatusCode::URI_TOO_LONG,
        Bad::Encoding | Bad::Query(_) => StatusCode::BAD_REQUEST,
        Bad::Path(BadKey::Hidden) | Bad::Nothing => StatusCode::NOT_FOUND,
        Bad::Path(BadKey::TooLong) => StatusCode::URI_TOO_LONG,
        Bad::Path(BadKey::Empty | BadKey::Dots | BadKey::Character) => StatusCode::BAD_REQUEST,
    };
    Error::client(status, bad)
}

/// An object that could not be had.
pub(crate) fn of_store(error: &store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::client(StatusCode::NOT_FOUND, error),
        store::Error::Refused(_) => Error::client(StatusCode::FORBIDDEN, error),
        store::Error::Changed => Error::upstream(StatusCode::SERVICE_UNAVAILABLE, error),
        store::Error::Io(_) => Error::upstream(StatusCode::BAD_GATEWAY, error),
    }
}

/// A file that cannot be packaged: it is not the client's fault, and asking again will not help.
pub(crate) fn of_media(file: &str, error: &media::Error) -> Error {
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let context = if file.is_empty() {
        error.to_string()
    } else {
        format!("{file}: {error}")
    };
    Error {
        side: Side::Upstream,
        status,
        retry: false,
        context,
    }
}

/// Well-formed, but not there.
pub(crate) fn not_found(what: &str) -> Error {
    Error::client(StatusCode::NOT_FOUND, what)
}

/// Segments of a state of the title that is no more.
pub(crate) fn gone() -> Error {
    let what = "the film or the way it is cut has changed: load the manifest again";
    Error::client(StatusCode::GONE, what)
}

/// A task of ours that ended without an answer.
pub(crate) fn of_task(error: &tokio::task::JoinError) -> Error {
    Error::internal(format_args!("a task failed: {error}"))
}
