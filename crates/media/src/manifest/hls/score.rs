//! `SCORE` of variants (draft-pantos-hls-rfc8216bis, 4.4.6.2).

use crate::presentation::{Bandwidth, Presentation, Rendition};

/// Formats the score of a variant. The score is the average bitrate in Mbit/s that AVC would need
/// for the same quality.
///
/// Unlike values of `BANDWIDTH`, scores of different codecs are therefore comparable. The bitrate
/// of audio is added unchanged.
pub(super) fn format_score(
    presentation: &Presentation,
    rendition: &Rendition,
    own: Bandwidth,
    audio: Bandwidth,
) -> String {
    let percent = codec_efficiency_percent(presentation.track(rendition).codec.fourcc);
    let video = u128::from(own.average) * percent / 100;
    let kilobits = (video + u128::from(audio.average)).div_ceil(1000).max(1);
    format!("{}.{:03}", kilobits / 1000, kilobits % 1000)
}

/// Returns the bitrate that AVC needs for the same quality, in percent of the bitrate of this
/// codec. The values are typical of published comparisons of encoders. The order of the codecs
/// matters more than the exact values.
fn codec_efficiency_percent(fourcc: [u8; 4]) -> u128 {
    match &fourcc {
        b"vp09" => 140,
        b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => 150,
        b"av01" | b"dav1" => 180,
        b"vvc1" | b"vvi1" => 220,
        _ => 100,
    }
}
