//! I-frame playlists (RFC 8216, 4.3.3.6): one key frame a segment, for trick play.

use super::media::{Clock, header};
use super::version;
use crate::manifest::{Format, url};
use crate::presentation::{Presentation, Rendition};
use std::fmt::Write;

/// The I-frame playlist of a video rendition; `None` for audio. Always CMAF.
pub fn iframes(presentation: &Presentation, rendition: &Rendition) -> Option<String> {
    presentation.track(rendition).codec.video()?;
    let keys: Vec<u32> = presentation.keys(rendition).collect();
    let mut out = String::with_capacity(400 + keys.len() * 44);
    header(
        &mut out,
        presentation,
        version(Format::Cmaf, false),
        "#EXT-X-I-FRAMES-ONLY\n",
    );
    let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", url::INIT);
    let mut clock = Clock::new(presentation, rendition);
    let nexts = keys.iter().skip(1).copied().chain([u32::MAX]);
    for (key, next) in keys.iter().zip(nexts) {
        clock.write(&mut out, presentation.served_time(rendition, next));
        let time = presentation.served_time(rendition, *key);
        let _ = writeln!(out, "{}", url::key(time));
    }
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}
