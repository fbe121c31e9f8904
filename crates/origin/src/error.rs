//! What went wrong, as a status: the one table.

use crate::reference;
use crate::route::Bad;
use http::StatusCode;
use net::Error;
use net::error::Side;
use store::{BadKey, Key};

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
        store::Error::OtherLength { .. } | store::Error::Replaced => {
            of_media("", &media::Error::unsupported(error.to_string()))
        }
        store::Error::Unlisted => Error::client(StatusCode::NOT_FOUND, error),
        // Ours to be let in, not the client's.
        store::Error::Denied(_) => {
            Error::upstream(StatusCode::BAD_GATEWAY, error).with_retry(false)
        }
        store::Error::Slow(_) => Error::upstream(StatusCode::GATEWAY_TIMEOUT, error),
        store::Error::Broken(_) => Error::upstream(StatusCode::BAD_GATEWAY, error),
        store::Error::Io(io) if is_ours(io) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Error {
                status,
                retry: true,
                ..Error::internal(error)
            }
        }
        store::Error::Io(_) => Error::upstream(StatusCode::BAD_GATEWAY, error),
    }
}

/// Whether our own machine is short of something: descriptors or memory.
fn is_ours(error: &std::io::Error) -> bool {
    // ENOMEM, ENFILE, EMFILE: the same numbers on every Linux.
    matches!(error.raw_os_error(), Some(12 | 23 | 24))
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

/// A file that another one names, but that cannot be had: it is not the client's fault.
pub(crate) fn of_named(holder: &Key, name: &Key, error: &store::Error) -> Error {
    let what = format_args!("{holder} names {name}: {error}");
    Error::upstream(StatusCode::BAD_GATEWAY, what)
}

/// A name that is not followed.
pub(crate) fn of_reference(holder: &Key, name: &str, bad: &reference::Bad) -> Error {
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    let what = format!("names {name:?}: {bad}");
    of_media(holder.as_str(), &media::Error::unsupported(what))
}

/// How much of a name is told.
const NAME_CHARS_MAX: usize = 100;

/// More files than a title may have.
pub(crate) fn too_many_files(title: &Key) -> Error {
    let what = media::Error::unsupported("a title has at most 64 files");
    of_media(title.as_str(), &what)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_of_the_storage_has_its_side_and_status() {
        let io = |number| store::Error::from(std::io::Error::from_raw_os_error(number));
        const EIO: i32 = 5;
        for (error, side, status, retry) in [
            (store::Error::NotFound, Side::Client, 404, false),
            (io(2), Side::Client, 404, false),
            (io(13), Side::Client, 403, false),
            (store::Error::Changed, Side::Upstream, 503, true),
            (
                store::Error::OtherLength { then: 7 },
                Side::Upstream,
                415,
                false,
            ),
            (store::Error::Replaced, Side::Upstream, 415, false),
            (store::Error::Unlisted, Side::Client, 404, false),
            (
                store::Error::Denied("403".into()),
                Side::Upstream,
                502,
                false,
            ),
            (store::Error::Slow("slow".into()), Side::Upstream, 504, true),
            (
                store::Error::Broken("short".into()),
                Side::Upstream,
                502,
                true,
            ),
            (io(EIO), Side::Upstream, 502, true),
            (io(12), Side::Internal, 503, true),
            (io(24), Side::Internal, 503, true),
        ] {
            let said = of_store(&error);
            assert_eq!(
                (said.side, said.status.as_u16(), said.retry),
                (side, status, retry),
                "{error}"
            );
        }
    }
}
