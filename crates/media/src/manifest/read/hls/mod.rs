//! Parses HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis).

mod attributes;
mod media;
mod multivariant;
mod playlist_lines;
mod variables;

use self::attributes::AttributeList;
use self::playlist_lines::numbered_lines;
use self::variables::PlaylistVariables;
use super::{MANIFEST_BYTES_MAX, ParsedManifest, SegmentList};
use crate::error::{Error, ErrorKind, Result};
use url::Url;

/// A parsed playlist of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedPlaylist {
    /// A playlist that lists other playlists.
    Multivariant(ParsedManifest),
    /// A playlist that lists segments.
    Media(MediaPlaylist),
}

/// A media playlist.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MediaPlaylist {
    /// Segments in order.
    pub segments: SegmentList,
    /// Whether `EXT-X-ENDLIST` is missing, so that segments may be added.
    pub is_live: bool,
    /// Whether this is an I-frame playlist. Such playlists are not played.
    pub is_iframes_only: bool,
    /// Whether segments are encrypted.
    pub is_encrypted: bool,
}

/// Parses a playlist. `url` is the URL from which it was fetched, after redirects.
///
/// # Errors
/// `Malformed` if the playlist is invalid; the location in the error names the line, if possible.
/// `TooLarge` if the playlist exceeds [`MANIFEST_BYTES_MAX`] or [`super::SEGMENTS_MAX`]; `Empty` if
/// it lists no media.
pub fn parse_playlist(url: &Url, bytes: &[u8]) -> Result<ParsedPlaylist> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let message = format!("a playlist of more than {MANIFEST_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| Error::malformed("a playlist not in UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with("#EXTM3U") {
        return Err(
            Error::malformed("an HLS playlist starts with #EXTM3U; this does not")
                .with_byte_offset(0),
        );
    }
    let is_multivariant = numbered_lines(text).any(|line| {
        line.is_ok_and(|line| {
            line.text.starts_with("#EXT-X-STREAM-INF") || line.text.starts_with("#EXT-X-MEDIA:")
        })
    });
    if is_multivariant {
        Ok(ParsedPlaylist::Multivariant(
            multivariant::parse_multivariant_playlist(url, text)?,
        ))
    } else {
        Ok(ParsedPlaylist::Media(media::parse_media_playlist(
            url, text,
        )?))
    }
}
