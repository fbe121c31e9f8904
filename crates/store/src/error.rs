//! Why an object could not be had.

use std::fmt;
use std::io;

/// Why an object could not be had. Nothing in it names a credential.
#[derive(Debug)]
pub enum Error {
    /// Nothing of that name, or not of the kind that was asked for.
    NotFound,
    /// It is there, but not for us: permissions, or a link that leaves the library.
    Refused(&'static str),
    /// The object is not any more what it was when it was opened.
    Changed,
    /// The object is not as long as whoever named it said.
    OtherLength {
        /// What was said, in bytes.
        then: u64,
    },
    /// The object has another entity tag than whoever named it said.
    Replaced,
    /// This storage cannot say what is in it.
    Unlisted,
    /// The storage does not let us in: what it said, and what to look at.
    Denied(String),
    /// The storage did not answer in time.
    Slow(String),
    /// The storage answers wrongly, or not at all.
    Broken(String),
    /// The file system failed; trying again may help.
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
                "the media is not {then} bytes long, as it was when it was indexed: index it again"
            ),
            Error::Replaced => f.write_str(
                "the media was replaced since it was indexed (its ETag is another): index it again",
            ),
            Error::Unlisted => {
                f.write_str("this storage cannot list its files: ask for a film by its whole name")
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

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Error {
        use rustix::io::Errno;
        match error {
            Errno::XDEV => Error::Refused("a link leads out of the library"),
            Errno::LOOP => Error::Refused("links lead in a circle"),
            Errno::NAMETOOLONG | Errno::NXIO => Error::NotFound,
            _ => Error::from(io::Error::from(error)),
        }
    }
}
