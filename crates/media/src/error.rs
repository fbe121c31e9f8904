//! Errors in media files and manifests, with their location.

use std::fmt;

/// Result of every function that reads media.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a file cannot be packaged. The cause is in the file, not in this crate or its
/// caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Class of the error.
    pub kind: ErrorKind,
    /// Location of the error. In a media file, the location lists the boxes from the outermost to
    /// the innermost, such as `moov/trak/mdia`. In a manifest, the location is a line or an
    /// element, such as `line 4`. Empty if unknown.
    pub location: String,
    /// Byte offset of the error in the file, if known.
    pub byte_offset: Option<u64>,
    /// Cause of the error, and sometimes a remedy after a semicolon or a colon. The text is lower
    /// case, without a final period.
    pub message: String,
}

/// Classes of errors, distinguished by what the owner of the file can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The file or a box ends before the end of its declared content.
    Truncated,
    /// The bytes contradict the standard, or contradict other bytes of the file.
    Malformed,
    /// The file is valid, but uses a feature that this crate does not support, such as a codec,
    /// encryption or several edits.
    Unsupported,
    /// A limit of this crate is exceeded. The message contains the limit.
    TooLarge,
    /// The file is valid but contains nothing to play.
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

    /// Creates an [`ErrorKind::Malformed`] error, for bytes that contradict the standard.
    pub fn malformed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, message)
    }

    /// Creates an [`ErrorKind::Unsupported`] error, for a valid file that this crate does not
    /// support.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Puts the name of the enclosing box in front of the location.
    pub fn with_enclosing_box(mut self, name: [u8; 4]) -> Error {
        let name = format_fourcc(name);
        self.location = if self.location.is_empty() {
            name
        } else {
            format!("{name}/{}", self.location)
        };
        self
    }

    /// Adds the ID of the track to the message.
    pub(crate) fn with_track_id(mut self, id: u32) -> Error {
        self.message = format!("track {id}: {}", self.message);
        self
    }

    /// Sets the byte offset, unless a more exact offset is already set.
    pub fn with_byte_offset(mut self, at: u64) -> Error {
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

/// Formats a four-letter code for messages. Unprintable bytes appear as `\xNN`.
pub fn format_fourcc(code: [u8; 4]) -> String {
    code.escape_ascii().to_string()
}
