//! Media playlists: the segments of one rendition.

use super::{extension, version};
use crate::manifest::text::Quoted;
use crate::manifest::{Format, url};
use crate::presentation::{Presentation, Rendition};
use crate::time::Time;
use std::fmt::Write;

/// The media sequence number of a playlist's first segment.
pub const FIRST_NUMBER: u64 = 1;

/// The media playlist of a rendition; `None` if the format cannot carry it.
///
/// With `key_url`, segments are encrypted with AES-128 and the key that is there; initialization
/// vectors are the segments' numbers (RFC 8216, 4.3.2.4). The init segment, before it, is not.
pub fn media(
    presentation: &Presentation,
    rendition: &Rendition,
    format: Format,
    key_url: Option<&str>,
) -> Option<String> {
    let extension = extension(format, &presentation.track(rendition).codec)?;
    let mut out = String::with_capacity(400 + rendition.segments() * 40);
    header(&mut out, presentation, version(format, false), "");
    if format == Format::Cmaf {
        let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", url::INIT);
    }
    if let Some(url) = key_url {
        let _ = writeln!(out, "#EXT-X-KEY:METHOD=AES-128,URI=\"{}\"", Quoted(url));
    }
    let mut clock = Clock::new(presentation, rendition);
    let mut time = presentation.segment_start(rendition, 0);
    for n in 0..rendition.segments() {
        let next = presentation.segment_start(rendition, n + 1);
        clock.write(&mut out, next);
        let _ = writeln!(out, "{}", url::segment(time, extension));
        time = next;
    }
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}

/// What all playlists of segments open with; `more` are further tags, each a line.
pub(super) fn header(out: &mut String, presentation: &Presentation, version: u32, more: &str) {
    // Numbers as DASH counts them, from FIRST_NUMBER.
    let _ = write!(
        out,
        "#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{FIRST_NUMBER}\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-INDEPENDENT-SEGMENTS\n{more}",
        presentation.target_duration
    );
}

/// Writes `EXTINF` tags. Decimals are differences of rounded times since the start, so the
/// error never grows: it stays below a tick however long the film is.
pub(super) struct Clock {
    timescale: u32,
    /// Decimals printed: 6, or 9 where ticks are shorter than a microsecond.
    unit: u32,
    /// Served time of the playlist's start, in ticks.
    origin: u64,
    /// Printed so far, in `unit`s.
    printed: i64,
}

impl Clock {
    pub(super) fn new(presentation: &Presentation, rendition: &Rendition) -> Clock {
        let timescale = presentation.track(rendition).timescale;
        let start = presentation.segment_start(rendition, 0);
        Clock {
            timescale,
            unit: if timescale > 1_000_000 {
                1_000_000_000
            } else {
                1_000_000
            },
            // Negative where the first segment tells a lead: exact as a wrapping difference.
            origin: start.wrapping_sub(presentation.lead(rendition)),
            printed: 0,
        }
    }

    /// The tag of what lasts until the served time `end`, in ticks.
    pub(super) fn write(&mut self, out: &mut String, end: u64) {
        let since = Time::new(end.wrapping_sub(self.origin) as i64, self.timescale);
        let until = since.round_to(self.unit);
        let units = until - self.printed;
        self.printed = until;
        let (whole, fraction) = (units / i64::from(self.unit), units % i64::from(self.unit));
        let _ = match self.unit {
            1_000_000 => writeln!(out, "#EXTINF:{whole}.{fraction:06},"),
            _ => writeln!(out, "#EXTINF:{whole}.{fraction:09},"),
        };
    }
}
