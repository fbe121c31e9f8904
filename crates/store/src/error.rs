//! Errors of libraries and their objects.

use std::fmt;
use std::io;

/// The reason why an object is unavailable. Error messages never contain a credential.
#[derive(Debug)]
pub enum Error {
    /// No object with this name exists, or the object is of another kind, for example a folder.
    NotFound,
    /// Access is refused, for example because of file permissions or because a link leads out of
    /// the library.
    Refused(&'static str),
    /// The object has changed since it was opened.
    Changed,
    /// The object does not have its declared length.
    OtherLength {
        /// The declared length in bytes.
        then: u64,
    },
    /// The object does not have its declared entity tag.
    Replaced,
    /// This storage cannot list objects.
    Unlisted,
    /// The storage denies access. The text contains the reason and the remedy.
    Denied(String),
    /// The storage did not respond in time.
    Slow(String),
    /// The storage is unreachable, or its response is invalid.
    Broken(String),
    /// The file system failed; a retry may help.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound => f.write_str("there is no such file"),
            Error::Refused(why) => f.write_str(why),
            Error::Changed => f.write_str("the file was changed while it was in use"),
            Error::OtherLength { then } => write!(
                f,
                "the media was {then} bytes long when it was indexed, but has changed; index it again"
            ),
            Error::Replaced => f.write_str(
                "the media was replaced after it was indexed (its ETag has changed); index it again",
            ),
            Error::Unlisted => {
                f.write_str("this storage cannot list its files; request a film by its full name")
            }
            Error::Denied(what) | Error::Slow(what) | Error::Broken(what) => f.write_str(what),
            Error::Io(error) => write!(f, "storage: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl Clone for Error {
    fn clone(&self) -> Error {
        match self {
            Error::NotFound => Error::NotFound,
            Error::Refused(why) => Error::Refused(why),
            Error::Changed => Error::Changed,
            Error::OtherLength { then } => Error::OtherLength { then: *then },
            Error::Replaced => Error::Replaced,
            Error::Unlisted => Error::Unlisted,
            Error::Denied(what) => Error::Denied(what.clone()),
            Error::Slow(what) => Error::Slow(what.clone()),
            Error::Broken(what) => Error::Broken(what.clone()),
            Error::Io(error) => Error::Io(match error.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(error.kind(), error.to_string()),
            }),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NotFound,
            io::ErrorKind::PermissionDenied => Error::Refused("permission denied by the storage"),
            _ => Error::Io(error),
        }
    }
}

const LINK_LEADS_OUT: &str =
    "a link leads out of the library; allow it with --follow-links, or move the file";

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Error {
        use rustix::io::Errno;
        match error {
            Errno::XDEV => Error::Refused(LINK_LEADS_OUT),
            Errno::LOOP => Error::Refused("links lead in a circle"),
            Errno::NAMETOOLONG | Errno::NXIO => Error::NotFound,
            _ => Error::from(io::Error::from(error)),
        }
    }
}
