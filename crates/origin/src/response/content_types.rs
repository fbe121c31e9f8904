//! Content types by file extension.

/// Content types by file extension.
const CONTENT_TYPES: [(&str, &str); 30] = [
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mpd", "application/dash+xml"),
    ("mp4", "video/mp4"),
    ("m4v", "video/mp4"),
    ("m4s", "video/iso.segment"),
    ("cmfv", "video/mp4"),
    ("cmfa", "audio/mp4"),
    ("cmft", "application/mp4"),
    ("m4a", "audio/mp4"),
    ("ismv", "video/mp4"),
    ("isma", "audio/mp4"),
    ("mov", "video/quicktime"),
    ("3gp", "video/3gpp"),
    ("ts", "video/mp2t"),
    ("aac", "audio/aac"),
    ("ac3", "audio/ac3"),
    ("ec3", "audio/eac3"),
    ("mp3", "audio/mpeg"),
    ("webm", "video/webm"),
    ("vtt", "text/vtt; charset=utf-8"),
    ("srt", "application/x-subrip; charset=utf-8"),
    ("ttml", "application/ttml+xml"),
    ("json", "application/json"),
    ("ism", "application/smil+xml"),
    ("xml", "application/xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("webp", "image/webp"),
];

/// Returns the content type of a file by the extension of its name.
pub(crate) fn content_type_of(name: &str) -> &'static str {
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    let known = CONTENT_TYPES
        .iter()
        .find(|(known, _)| suffix.eq_ignore_ascii_case(known));
    known.map_or("application/octet-stream", |(_, name)| name)
}
