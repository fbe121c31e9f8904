//! Names of renditions in URLs, as in Unified Origin: `<kind>[_<language>][_<n>]=<bitrate>`.

use super::served_tracks::ServedTrack;

/// Maximum length of a language tag in a name. BCP 47 tags in practice are far shorter.
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

/// Returns a suffix such as `_eng`. Returns an empty string if the language is unspecified, too
/// long or unsafe in a URL.
fn language_suffix(tag: &str) -> String {
    let safe = tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if tag.is_empty() || tag == "und" || tag.len() > LANGUAGE_BYTES_MAX || !safe {
        return String::new();
    }
    format!("_{tag}")
}

/// Rounds a bitrate to a multiple of 1000 bit/s, but at least to 1000 bit/s. More digits would
/// suggest too high a precision.
fn round_to_kilobits(bits: u64) -> u64 {
    (bits.saturating_add(500) / 1000).max(1) * 1000
}
