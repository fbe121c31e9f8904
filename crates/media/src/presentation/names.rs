//! Names of renditions in URLs, after Unified Origin: `<kind>[_<language>][_<n>]=<bitrate>`.

use super::tracks::Chosen;

/// Longest language tag that is put in a name; BCP 47 tags in use are far shorter.
const LANGUAGE_MAX: usize = 35;

/// A name for each of `tracks`, in order, all different.
pub(super) fn names(tracks: &[Chosen]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(tracks.len());
    for track in tracks {
        let kind = if track.is_video() { "video" } else { "audio" };
        let language = language(&track.of.language);
        let bitrate = kilobits(track.bitrate);
        let first = format!("{kind}{language}={bitrate}");
        let numbered = (1..).map(|n| format!("{kind}{language}_{n}={bitrate}"));
        let mut free = std::iter::once(first).chain(numbered);
        names.extend(free.find(|name| !names.contains(name)));
    }
    names
}

/// `_eng`, or nothing where the language is not said or would not be safe in a URL.
fn language(tag: &str) -> String {
    let safe = tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if tag.is_empty() || tag == "und" || tag.len() > LANGUAGE_MAX || !safe {
        return String::new();
    }
    format!("_{tag}")
}

/// Rounded to whole kilobits, at least one: exact bits a second look more exact than they are.
fn kilobits(bits: u64) -> u64 {
    (bits.saturating_add(500) / 1000).max(1) * 1000
}
