//! What was wrong with a file, in which box, at which byte.

use std::fmt;

/// Result of anything that reads media.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file cannot be packaged. Always the file's fault, never the reader's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of fault it is.
    pub kind: Kind,
    /// The box it was found in, outermost first, such as `moov/trak/mdia`; empty if none.
    pub place: String,
    /// Offset in the file, in bytes, where that is known.
    pub at: Option<u64>,
    /// What is wrong, and what to do about it, as one sentence without a full stop.
    pub what: String,
}

/// Kinds of fault, by what the owner of the file can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The file ends before something it declares.
    Truncated,
    /// The bytes contradict the standard or themselves.
    Malformed,
    /// Legal, but something we do not package (a codec, an encryption, a fancy edit list).
    Unsupported,
    /// A bound of ours was passed; the bound is in the message.
    TooLarge,
    /// Well-formed, but there is nothing to play in it.
    Empty,
}

impl Error {
    /// A fault of `kind`, not yet placed.
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error {
            kind,
            place: String::new(),
            at: None,
            what: what.into(),
        }
    }

    /// The bytes contradict the standard.
    pub fn malformed(what: impl Into<String>) -> Error {
        Error::new(Kind::Malformed, what)
    }

    /// Legal, but we do not package it.
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, what)
    }

    /// The same fault, inside one more box.
    pub fn inside(mut self, name: [u8; 4]) -> Error {
        let name = fourcc(name);
        self.place = if self.place.is_empty() {
            name
        } else {
            format!("{name}/{}", self.place)
        };
        self
    }

    /// The same fault, at byte `at` of the file, unless a closer place is known.
    pub fn at(mut self, at: u64) -> Error {
        self.at.get_or_insert(at);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match (self.place.as_str(), self.at) {
            ("", None) => Ok(()),
            ("", Some(at)) => write!(f, " (at byte {at})"),
            (place, None) => write!(f, " (in {place})"),
            (place, Some(at)) => write!(f, " (in {place}, at byte {at})"),
        }
    }
}

impl std::error::Error for Error {}

/// A four-letter code as people write it; bytes that cannot be printed become `\xNN`.
pub fn fourcc(code: [u8; 4]) -> String {
    code.escape_ascii().to_string()
}
