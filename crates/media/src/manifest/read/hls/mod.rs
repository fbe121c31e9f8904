//! HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis), read.

mod attributes;
mod media;
mod multivariant;
mod variables;

use self::attributes::Attributes;
use self::variables::Variables;
use super::{MANIFEST_BYTES_MAX, Segments, Title};
use crate::error::{Error, Kind, Result};
use url::Url;

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What a playlist turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Playlist {
    /// It names other playlists.
    Multivariant(Title),
    /// It names segments.
    Media(Media),
}

/// A media playlist.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Media {
    /// Its segments.
    pub segments: Segments,
    /// There is no `EXT-X-ENDLIST`: more may be added.
    pub live: bool,
    /// It is an I-frame playlist: nothing that plays.
    pub iframes_only: bool,
    /// Segments are encrypted.
    pub encrypted: bool,
}

/// Reads a playlist that was fetched from `url` (after redirects).
///
/// # Errors
/// `Malformed` with the line where it is no playlist, `TooLarge` over
/// [`MANIFEST_BYTES_MAX`] or [`super::SEGMENTS_MAX`], `Empty` if it names nothing.
pub fn read(url: &Url, bytes: &[u8]) -> Result<Playlist> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let what = format!("a playlist of more than {MANIFEST_BYTES_MAX} bytes");
        return Err(Error::new(Kind::TooLarge, what));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| Error::malformed("a playlist not in UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with("#EXTM3U") {
        return Err(Error::malformed("an HLS playlist starts with #EXTM3U; this does not").at(0));
    }
    let is_multivariant = lines(text).any(|line| {
        line.is_ok_and(|line| {
            line.text.starts_with("#EXT-X-STREAM-INF") || line.text.starts_with("#EXT-X-MEDIA:")
        })
    });
    if is_multivariant {
        Ok(Playlist::Multivariant(multivariant::read(url, text)?))
    } else {
        Ok(Playlist::Media(media::read(url, text)?))
    }
}

/// One line that is not empty, without blanks around it.
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// What follows a tag's name and colon; empty for a tag without a value.
    fn tag(&self, name: &str) -> Option<&'a str> {
        let rest = self.text.strip_prefix(name)?;
        match rest.strip_prefix(':') {
            Some(value) => Some(value.trim()),
            None => rest.is_empty().then_some(""),
        }
    }

    /// A comment or a tag, not a URI.
    fn is_tag(&self) -> bool {
        self.text.starts_with('#')
    }

    /// The same fault, on this line.
    fn place(&self, error: Error) -> Error {
        Error {
            place: format!("line {}", self.number),
            ..error
        }
    }

    fn malformed(&self, what: impl Into<String>) -> Error {
        self.place(Error::malformed(what))
    }
}

fn lines(text: &str) -> impl Iterator<Item = Result<Line<'_>>> {
    let numbered = text.lines().enumerate();
    let trimmed = numbered.map(|(n, text)| Line {
        number: n + 1,
        text: text.trim(),
    });
    trimmed.filter(|line| !line.text.is_empty()).map(|line| {
        if line.text.len() > LINE_BYTES_MAX {
            let what = format!(
                "a line of {} bytes; at most {LINE_BYTES_MAX} are read",
                line.text.len()
            );
            return Err(line.place(Error::new(Kind::TooLarge, what)));
        }
        Ok(line)
    })
}
