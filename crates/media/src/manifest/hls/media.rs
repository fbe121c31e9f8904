//! Writes media playlists, which list the segments of one rendition (RFC 8216, 4.3.3).

use super::{INDEPENDENT_SEGMENTS, playlist_version, segment_extension};
use crate::manifest::escaping::QuotedString;
use crate::manifest::{SegmentFormat, url};
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::fmt::Write;

/// Media sequence number of the first segment in a playlist.
pub const FIRST_MEDIA_SEQUENCE: u64 = 1;

/// Writes the media playlist of a rendition. Returns `None` if the format does not support the
/// codec of the rendition.
///
/// If `key_url` is given, segments are encrypted with AES-128 and the key at that URL. The
/// initialization vector of a segment is its media sequence number (RFC 8216, 4.3.2.4). The init
/// segment is not encrypted, because EXT-X-MAP precedes EXT-X-KEY.
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

/// Returns the EXT-X-KEY lines of a rendition with Common Encryption. These lines follow EXT-X-MAP,
/// because init segments are not encrypted.
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
    // The segment numbers in DASH also start at `FIRST_MEDIA_SEQUENCE`.
    let _ = write!(
        out,
        "#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{FIRST_MEDIA_SEQUENCE}\n#EXT-X-PLAYLIST-TYPE:VOD\n{more}",
        presentation.target_duration_s
    );
}

/// Writes `EXTINF` tags.
///
/// Each duration is the difference between two rounded times since the start. Rounding errors
/// therefore do not accumulate. However long the film is, the error of the sum stays below one
/// tick.
pub(super) struct ExtinfWriter {
    timescale: u32,
    /// Units per second of the printed durations: one million, or one billion if ticks are shorter
    /// than a microsecond.
    units_per_second: u32,
    /// Time at which the playlist starts, in ticks of the served timeline.
    start_ticks: u64,
    /// Sum of the printed durations, in units of `1 / units_per_second` seconds.
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
            // If this rendition starts more than 250 ms after the earliest rendition, the `EXTINF`
            // duration of the first segment includes this delay. The delay never exceeds `start`,
            // so the subtraction does not wrap.
            start_ticks: start.wrapping_sub(presentation.late_start_ticks(rendition)),
            printed_units: 0,
        }
    }

    /// Writes the tag of a segment that ends at `end`, in ticks of the served timeline.
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
