//! Errors of a media file or manifest, with the box or line and the byte offset.

use std::fmt;

/// Result of every function that reads media.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a file cannot be packaged. The file is at fault, not this crate or its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Class of the error.
    pub kind: ErrorKind,
    /// Location of the error: the boxes, outermost first, such as `moov/trak/mdia`; or a line or
    /// element of a manifest, such as `line 4`. Empty if unknown.
    pub location: String,
    /// Offset in the file, in bytes, if known.
    pub byte_offset: Option<u64>,
    /// Cause and, after a semicolon or colon, the remedy. Lower case, no final period.
    pub message: String,
}

/// Classes of error, by what the owner of the file can do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file ends before something it declares.
    Truncated,
    /// The bytes contradict the standard or each other.
    Malformed,
    /// The file is legal but uses a feature that this crate does not support: a codec, encryption,
    /// several edits.
    Unsupported,
    /// A limit of this crate is exceeded. The message contains the limit.
    TooLarge,
    /// The file is well-formed but contains nothing to play.
    Empty,
}

impl Error {
    /// Creates an error without a location.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            location: String::new(),
            byte_offset: None,
            message: message.into(),
        }
    }

    /// Creates a [`ErrorKind::Malformed`] error: the bytes contradict the standard.
    pub fn malformed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, message)
    }

    /// Creates an [`ErrorKind::Unsupported`] error: the file is legal, but this crate does not
    /// support it.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Adds an enclosing box to the location.
    pub fn in_box(mut self, name: [u8; 4]) -> Error {
        let name = format_fourcc(name);
        self.location = if self.location.is_empty() {
            name
        } else {
            format!("{name}/{}", self.location)
        };
        self
    }

    /// Names the track in the message.
    pub(crate) fn message_in_track(mut self, id: u32) -> Error {
        self.message = format!("track {id}: {}", self.message);
        self
    }

    /// Sets the byte offset, unless a more exact offset is already set.
    pub fn at_byte(mut self, at: u64) -> Error {
        self.byte_offset.get_or_insert(at);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.location.as_str(), self.byte_offset) {
            ("", None) => Ok(()),
            ("", Some(at)) => write!(f, " (at byte {at})"),
            (place, None) => write!(f, " (in {place})"),
            (place, Some(at)) => write!(f, " (in {place}, at byte {at})"),
        }
    }
}

impl std::error::Error for Error {}

/// Formats a four-letter code for messages. Unprintable bytes become `\xNN`.
pub fn format_fourcc(code: [u8; 4]) -> String {
    code.escape_ascii().to_string()
}
