//! The lines of a playlist.

use crate::error::{Error, ErrorKind, Result};

/// Maximum length of a line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// One non-empty line, without white space at the start and the end.
pub(super) struct PlaylistLine<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl<'a> PlaylistLine<'a> {
    /// Returns the value of the tag called `name`, which is the text after the name and a colon.
    /// Returns an empty text for a tag without a value, and `None` for any other line.
    pub(super) fn tag_value(&self, name: &str) -> Option<&'a str> {
        let rest = self.text.strip_prefix(name)?;
        match rest.strip_prefix(':') {
            Some(value) => Some(value.trim()),
            None => rest.is_empty().then_some(""),
        }
    }

    /// Returns whether the line is a comment or a tag instead of a URI.
    pub(super) fn is_tag_or_comment(&self) -> bool {
        self.text.starts_with('#')
    }

    /// Sets the location of an error to this line.
    pub(super) fn add_line_to_error(&self, error: Error) -> Error {
        Error {
            location: format!("line {}", self.number),
            ..error
        }
    }

    pub(super) fn malformed_error(&self, message: impl Into<String>) -> Error {
        self.add_line_to_error(Error::malformed(message))
    }
}

pub(super) fn numbered_lines(text: &str) -> impl Iterator<Item = Result<PlaylistLine<'_>>> {
    let numbered = text.lines().enumerate();
    let trimmed = numbered.map(|(n, text)| PlaylistLine {
        number: n + 1,
        text: text.trim(),
    });
    trimmed.filter(|line| !line.text.is_empty()).map(|line| {
        if line.text.len() > LINE_BYTES_MAX {
            let message = format!(
                "a line of {} bytes; at most {LINE_BYTES_MAX} are read",
                line.text.len()
            );
            return Err(line.add_line_to_error(Error::new(ErrorKind::TooLarge, message)));
        }
        Ok(line)
    })
}
