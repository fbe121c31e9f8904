//! Writes I-frame playlists for trick play (RFC 8216, 4.3.3.6). Each segment is one key frame.

use super::media::{ExtinfWriter, hls_keys, write_playlist_header};
use super::{INDEPENDENT_SEGMENTS, playlist_version};
use crate::manifest::{SegmentFormat, url};
use crate::presentation::{Presentation, Rendition};
use std::fmt::Write;

/// Writes the I-frame playlist of a video rendition, always with CMAF segments. Returns `None` for
/// audio.
pub fn write_iframe_playlist(presentation: &Presentation, rendition: &Rendition) -> Option<String> {
    presentation.track(rendition).codec.video()?;
    let keys: Vec<u32> = presentation.trick_play_key_frames(rendition).collect();
    let mut out = String::with_capacity(400 + keys.len() * 44);
    let version = playlist_version(SegmentFormat::Cmaf, false);
    let tags = format!("{INDEPENDENT_SEGMENTS}#EXT-X-I-FRAMES-ONLY\n");
    write_playlist_header(&mut out, presentation, version, &tags);
    let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", url::INIT_SEGMENT);
    out.push_str(hls_keys(presentation, rendition));
    let mut clock = ExtinfWriter::new(presentation, rendition);
    let nexts = keys.iter().skip(1).copied().chain([u32::MAX]);
    for (key, next) in keys.iter().zip(nexts) {
        clock.write_extinf(&mut out, presentation.presentation_time(rendition, next));
        let time = presentation.presentation_time(rendition, *key);
        let _ = writeln!(out, "{}", url::key_frame_url(time));
    }
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}
