//! Writing of media playlists: the segments of one rendition (RFC 8216, 4.3.3).

use super::{INDEPENDENT_SEGMENTS, playlist_version, segment_extension};
use crate::manifest::text::QuotedString;
use crate::manifest::{SegmentFormat, url};
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::fmt::Write;

/// Media sequence number of the first segment in a playlist.
pub const FIRST_MEDIA_SEQUENCE: u64 = 1;

/// Writes the media playlist of a rendition; `None` if the format does not support its codec.
///
/// With `key_url`, segments are encrypted with AES-128 and the key at that URL. Initialization
/// vectors are the segment numbers (RFC 8216, 4.3.2.4). The init segment precedes the key and is
/// not encrypted.
pub fn write_media_playlist(
    presentation: &Presentation,
    rendition: &Rendition,
    format: SegmentFormat,
    key_url: Option<&str>,
) -> Option<String> {
    let extension = segment_extension(format, &presentation.track(rendition).codec)?;
    let mut out = String::with_capacity(400 + rendition.segment_count() * 40);
    let version = playlist_version(format, false);
    let independent = if rendition.has_leading_pictures {
        ""
    } else {
        INDEPENDENT_SEGMENTS
    };
    write_playlist_header(&mut out, presentation, version, independent);
    if format == SegmentFormat::Cmaf {
        let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", url::INIT_SEGMENT);
    }
    out.push_str(hls_keys(presentation, rendition));
    if let Some(url) = key_url {
        let _ = writeln!(
            out,
            "#EXT-X-KEY:METHOD=AES-128,URI=\"{}\"",
            QuotedString(url)
        );
    }
    let mut clock = ExtinfWriter::new(presentation, rendition);
    let mut time = presentation.segment_start(rendition, 0);
    for n in 0..rendition.segment_count() {
        let next = presentation.segment_start(rendition, n + 1);
        clock.write_extinf(&mut out, next);
        let _ = writeln!(out, "{}", url::segment_url(time, extension));
        time = next;
    }
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}

/// Returns the key lines of a rendition with Common Encryption. They follow EXT-X-MAP, because init
/// segments are not encrypted.
pub(super) fn hls_keys<'a>(presentation: &'a Presentation, rendition: &Rendition) -> &'a str {
    let signaling = presentation.track_signaling(rendition);
    signaling.map_or("", |signaling| &signaling.hls_keys)
}

/// Writes the start of a segment playlist. `more` contains further tags, one per line.
pub(super) fn write_playlist_header(
    out: &mut String,
    presentation: &Presentation,
    version: u32,
    more: &str,
) {
    // DASH segment numbers start at the same number.
    let _ = write!(
        out,
        "#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{FIRST_MEDIA_SEQUENCE}\n#EXT-X-PLAYLIST-TYPE:VOD\n{more}",
        presentation.target_duration_s
    );
}

/// Writes `EXTINF` tags.
///
/// Each duration is the difference between two rounded times since the start, so rounding errors do
/// not accumulate: the sum is exact to within a tick, however long the film is.
pub(super) struct ExtinfWriter {
    timescale: u32,
    /// Resolution of the printed durations: a million per second, or a billion if ticks are shorter
    /// than a microsecond.
    units_per_second: u32,
    /// Served time at the start of the playlist, in ticks.
    start_ticks: u64,
    /// Sum of the printed durations, in these units.
    printed_units: i64,
}

impl ExtinfWriter {
    pub(super) fn new(presentation: &Presentation, rendition: &Rendition) -> ExtinfWriter {
        let timescale = presentation.track(rendition).timescale;
        let start = presentation.segment_start(rendition, 0);
        ExtinfWriter {
            timescale,
            units_per_second: if timescale > 1_000_000 {
                1_000_000_000
            } else {
                1_000_000
            },
            // If the first segment's duration includes the delay to the earliest rendition, the
            // result can be negative and then wraps. Differences are computed with wrapping, too,
            // so they are exact.
            start_ticks: start.wrapping_sub(presentation.listed_lead_ticks(rendition)),
            printed_units: 0,
        }
    }

    /// Writes the tag of a segment that lasts until the served time `end`, in ticks.
    pub(super) fn write_extinf(&mut self, out: &mut String, end: u64) {
        let since = Time::new(end.wrapping_sub(self.start_ticks) as i64, self.timescale);
        let until = since.round_to(self.units_per_second);
        let units = until - self.printed_units;
        self.printed_units = until;
        let (whole, fraction) = (
            units / i64::from(self.units_per_second),
            units % i64::from(self.units_per_second),
        );
        let _ = match self.units_per_second {
            1_000_000 => writeln!(out, "#EXTINF:{whole}.{fraction:06},"),
            _ => writeln!(out, "#EXTINF:{whole}.{fraction:09},"),
        };
    }
}
