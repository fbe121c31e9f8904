//! Names of renditions in URLs, as in Unified Origin: `<kind>[_<language>][_<n>]=<bitrate>`.

use super::served_tracks::ServedTrack;

/// Maximum length of a language tag in a name. BCP 47 tags in use are far shorter.
const LANGUAGE_BYTES_MAX: usize = 35;

/// Returns a unique name for each of `tracks`, in order.
pub(super) fn name_renditions(tracks: &[ServedTrack]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(tracks.len());
    for track in tracks {
        let kind = if track.is_video() { "video" } else { "audio" };
        let language = language_suffix(&track.track.language);
        let bitrate = round_to_kilobits(track.bitrate);
        let first = format!("{kind}{language}={bitrate}");
        let numbered = (1..).map(|n| format!("{kind}{language}_{n}={bitrate}"));
        let mut candidates = std::iter::once(first).chain(numbered);
        names.extend(candidates.find(|name| !names.contains(name)));
    }
    names
}

/// Returns `_eng`, or nothing if the language is unspecified or unsafe in a URL.
fn language_suffix(tag: &str) -> String {
    let safe = tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if tag.is_empty() || tag == "und" || tag.len() > LANGUAGE_BYTES_MAX || !safe {
        return String::new();
    }
    format!("_{tag}")
}

/// Rounds to whole kilobits, at least one. More digits would suggest a precision that the bitrate
/// lacks.
fn round_to_kilobits(bits: u64) -> u64 {
    (bits.saturating_add(500) / 1000).max(1) * 1000
}
