//! `SCORE` of variants (draft-pantos-hls-rfc8216bis, 4.4.6.2).

use crate::presentation::{Bandwidth, Presentation, Rendition};

/// Writes the score of a variant: the average bitrate in Mbit/s that AVC would need for the same
/// quality.
///
/// Bitrates of different codecs are thereby comparable, which `BANDWIDTH` is not. The bitrate of
/// audio is added unchanged.
pub(super) fn format_score(
    presentation: &Presentation,
    rendition: &Rendition,
    own: Bandwidth,
    audio: Bandwidth,
) -> String {
    let percent = efficiency_percent(presentation.track(rendition).codec.fourcc);
    let video = u128::from(own.average) * percent / 100;
    let kilobits = (video + u128::from(audio.average)).div_ceil(1000).max(1);
    format!("{}.{:03}", kilobits / 1000, kilobits % 1000)
}

/// Returns the bits that AVC needs in place of 100 bits of this codec. The values are typical of
/// published comparisons of encoders. Only their order matters much.
fn efficiency_percent(fourcc: [u8; 4]) -> u128 {
    match &fourcc {
        b"vp09" => 140,
        b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" => 150,
        b"av01" | b"dav1" => 180,
        b"vvc1" | b"vvi1" => 220,
        _ => 100,
    }
}
