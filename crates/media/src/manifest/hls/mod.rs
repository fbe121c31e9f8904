//! HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis), as text.

mod iframes;
mod media;
mod multivariant;

pub use iframes::iframes;
pub use media::{FIRST_NUMBER, media};
pub use multivariant::multivariant;

use super::Format;
use crate::codec::Codec;
use crate::presentation::{Bandwidth, Presentation, Rendition};
use crate::ts::{self, FrameSize};

/// Bytes of a segment of so many encrypted with AES-128: PKCS#7 pads to whole blocks of 16, and by one
/// byte at least (RFC 8216, 4.3.2.4).
pub fn encrypted_len(clear: u64) -> u64 {
    (clear / 16 + 1).saturating_mul(16)
}

/// How a rendition's segment files end, without the dot; `None` where the format cannot carry
/// its codec.
pub fn extension(format: Format, codec: &Codec) -> Option<&'static str> {
    match format {
        Format::Cmaf => Some("m4s"),
        Format::Ts if ts::can_ts(codec) => Some("ts"),
        Format::Ts => ts::packed_extension(codec),
    }
}

/// `EXT-X-VERSION` (RFC 8216bis, 8): 7 for fragmented MP4 as Apple's tools have it; 4 where
/// there are I-frame playlists or EXT-X-MEDIA; 3 for decimal durations.
fn version(format: Format, multivariant: bool) -> u32 {
    match format {
        Format::Cmaf => 7,
        Format::Ts if multivariant => 4,
        Format::Ts => 3,
    }
}

/// How segments are packed, and whether they are encrypted then.
#[derive(Clone, Copy)]
struct Packing {
    format: Format,
    encrypted: bool,
}

/// Bandwidth as they are packed.
fn bandwidth(presentation: &Presentation, rendition: &Rendition, packing: Packing) -> Bandwidth {
    let len = |n| match packing.format {
        Format::Cmaf => presentation.segment_len(rendition, n),
        Format::Ts => ts_len(presentation, rendition, n),
    };
    match packing {
        Packing {
            format: Format::Cmaf,
            encrypted: false,
        } => rendition.bandwidth,
        Packing { encrypted, .. } => presentation.bandwidth_of(rendition, |n| match encrypted {
            true => encrypted_len(len(n)),
            false => len(n),
        }),
    }
}

/// Bytes of a transport stream or packed audio segment: what is sent, but for a few bytes where
/// pictures carry parameter sets of their own.
fn ts_len(presentation: &Presentation, rendition: &Rendition, n: usize) -> u64 {
    let track = presentation.track(rendition);
    let range = presentation.samples_of(rendition, n);
    if track.codec.audio().is_some() {
        let bytes = track.samples.bytes(range.clone());
        return ts::packed_audio_len(&track.codec, range.len() as u64, bytes);
    }
    let offset = |time: i64| time.saturating_add(ts::TS_OFFSET_90K as i64).max(0) as u64;
    let frames = presentation.unit_times(rendition, n).map(|unit| FrameSize {
        pts: offset(unit.pts),
        dts: offset(unit.dts),
        sync: unit.sync,
        size: unit.size,
    });
    ts::video_segment_len_estimate(&track.codec, frames)
}
