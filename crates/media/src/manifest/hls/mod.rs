//! Writes HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis).

mod iframes;
mod media;
mod multivariant;
mod score;
mod text;

pub use iframes::write_iframe_playlist;
pub use media::{FIRST_MEDIA_SEQUENCE, write_media_playlist};
pub use multivariant::write_multivariant_playlist;
pub use text::write_text_playlist;

use super::SegmentFormat;
use crate::codec::Codec;
use crate::presentation::{Bandwidth, Presentation, Rendition};
use crate::ts::{self, FrameInfo};

/// Returns the length of a segment after AES-128 encryption, in bytes. PKCS#7 adds at least one
/// byte of padding, up to a multiple of 16 bytes (RFC 8216, 4.3.2.4).
pub fn encrypted_len(clear: u64) -> u64 {
    (clear / 16 + 1).saturating_mul(16)
}

/// Returns the file name extension of segments, without the dot; `None` if the format does not
/// support the codec.
pub fn segment_extension(format: SegmentFormat, codec: &Codec) -> Option<&'static str> {
    match format {
        SegmentFormat::Cmaf => Some("m4s"),
        SegmentFormat::Ts if ts::can_mux_ts(codec) => Some("ts"),
        SegmentFormat::Ts => ts::packed_audio_extension(codec),
    }
}

/// Returns the value of `EXT-X-VERSION` (RFC 8216bis, 8). CMAF playlists have version 7, as with
/// Apple's tools. With transport streams, multivariant playlists have version 4 because of
/// EXT-X-MEDIA, and media playlists have version 3 because of decimal durations.
fn playlist_version(format: SegmentFormat, multivariant: bool) -> u32 {
    match format {
        SegmentFormat::Cmaf => 7,
        SegmentFormat::Ts if multivariant => 4,
        SegmentFormat::Ts => 3,
    }
}

/// Declares that players may start at, and switch to, every segment (RFC 8216, 4.3.5.1). The tag is
/// not written if segments have leading pictures. In open GOPs, leading pictures depend on pictures
/// of the previous segment.
const INDEPENDENT_SEGMENTS: &str = "#EXT-X-INDEPENDENT-SEGMENTS\n";

/// Container of segments, and whether they are encrypted.
#[derive(Clone, Copy)]
struct SegmentPacking {
    format: SegmentFormat,
    is_encrypted: bool,
}

/// Returns the bandwidth of a rendition's segments with this packing.
fn bandwidth_with_packing(
    presentation: &Presentation,
    rendition: &Rendition,
    packing: SegmentPacking,
) -> Bandwidth {
    let len = |n| match packing.format {
        SegmentFormat::Cmaf => presentation.segment_len(rendition, n),
        SegmentFormat::Ts => ts_segment_len(presentation, rendition, n),
    };
    match packing {
        SegmentPacking {
            format: SegmentFormat::Cmaf,
            is_encrypted: false,
        } => rendition.bandwidth,
        SegmentPacking {
            is_encrypted: encrypted,
            ..
        } => presentation.measure_bandwidth(rendition, |n| match encrypted {
            true => encrypted_len(len(n)),
            false => len(n),
        }),
    }
}

/// Estimates the length of a transport stream or packed audio segment, in bytes. The length of the
/// sent segment may differ by a few bytes if pictures contain parameter sets.
fn ts_segment_len(presentation: &Presentation, rendition: &Rendition, n: usize) -> u64 {
    let track = presentation.track(rendition);
    let range = presentation.segment_samples(rendition, n);
    if track.codec.audio().is_some() {
        let bytes = track.samples.byte_count(range.clone());
        return ts::packed_audio_segment_len(&track.codec, range.len() as u64, bytes);
    }
    let offset = |time: i64| {
        time.saturating_add(ts::TIMESTAMP_OFFSET_90KHZ as i64)
            .max(0) as u64
    };
    let frames = presentation
        .access_unit_times(rendition, n)
        .map(|unit| FrameInfo {
            pts: offset(unit.pts),
            dts: offset(unit.dts),
            is_sync: unit.is_sync,
            size: unit.size,
        });
    ts::estimate_video_segment_len(&track.codec, frames)
}
