//! HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis), as text.

mod iframes;
mod media;
mod multivariant;

pub use iframes::iframes;
pub use media::media;
pub use multivariant::multivariant;

use super::Format;
use crate::codec::{AudioCoding, Codec, Media};
use crate::presentation::{Bandwidth, Presentation, Rendition};

/// How a rendition's segment files end, without the dot; `None` where the format cannot carry
/// its codec.
pub fn extension(format: Format, codec: &Codec) -> Option<&'static str> {
    match (format, &codec.media) {
        (Format::Cmaf, _) => Some("m4s"),
        (Format::Ts, Media::Video(video)) => video.nal.as_ref().map(|_| "ts"),
        (Format::Ts, Media::Audio(audio)) => match audio.coding {
            AudioCoding::Aac => Some("aac"),
            AudioCoding::Mp3 => Some("mp3"),
            AudioCoding::Ac3 => Some("ac3"),
            AudioCoding::Eac3 => Some("ec3"),
            AudioCoding::Opus | AudioCoding::Flac => None,
        },
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

/// Bandwidth in a format.
fn bandwidth(presentation: &Presentation, rendition: &Rendition, format: Format) -> Bandwidth {
    match format {
        Format::Cmaf => rendition.bandwidth,
        Format::Ts => presentation.bandwidth_of(rendition, |n| ts_len(presentation, rendition, n)),
    }
}

/// Bytes of a transport stream or packed audio segment, nearly.
fn ts_len(presentation: &Presentation, rendition: &Rendition, n: usize) -> u64 {
    let track = presentation.track(rendition);
    let range = presentation.samples_of(rendition, n);
    let payload = track.samples.bytes(range.clone());
    let count = range.len() as u64;
    match track.codec.audio() {
        // ID3 timestamp, and an ADTS header a frame.
        Some(audio) if audio.coding == AudioCoding::Aac => payload + 7 * count + 73,
        Some(_) => payload + 73,
        // A PES header and an access unit delimiter a picture, packets of 188 with 4 of header,
        // half a packet of stuffing, and the tables.
        None => (payload + 25 * count) * 188 / 184 + 94 * count + 2 * 188,
    }
}
