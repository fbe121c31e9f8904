//! The forms of the server's URLs. Tests compare these forms with the reference page
//! `docs/reference/urls.md`, with the router, and with the responses of a server.

/// A form of URLs, and the content at such a URL.
#[derive(Debug)]
pub struct UrlForm {
    /// Path and query. `T` stands for the path of a title, and `<…>` is a
    /// [`placeholder`](UrlForm::is_form_of_url).
    pub url: &'static str,
    /// A description for the reference page.
    pub content: &'static str,
    /// Media types of the response, without parameters. Empty for a response without a body.
    pub media_types: &'static [&'static str],
}

const HLS: &[&str] = &["application/vnd.apple.mpegurl"];
const DASH: &[&str] = &["application/dash+xml"];
const JSON: &[&str] = &["application/json"];
const MEDIA: &[&str] = &["video/mp4", "audio/mp4"];
const TEXT: &[&str] = &["text/plain"];
const VTT: &[&str] = &["text/vtt"];

const fn define_url_form(
    url: &'static str,
    content: &'static str,
    media_types: &'static [&'static str],
) -> UrlForm {
    UrlForm {
        url,
        content,
        media_types,
    }
}

/// URLs of a title.
pub const TITLE_URLS: &[UrlForm] = &[
    define_url_form("T/.m3u8", "HLS multivariant playlist, CMAF segments", HLS),
    define_url_form(
        "T/.m3u8?format=ts",
        "HLS with transport streams and packed audio",
        HLS,
    ),
    define_url_form("T/.mpd", "DASH with `$Time$` addressing", DASH),
    define_url_form(
        "T/.mpd?template=number",
        "DASH with `$Number$` addressing",
        DASH,
    ),
    define_url_form(
        "T/.json",
        "a description of the title: tracks, renditions, durations, and what is left out",
        JSON,
    ),
    define_url_form(
        "T",
        "the file itself, with ranges; for an index MP4 the whole film as a progressive MP4",
        MEDIA,
    ),
    define_url_form(
        "T/.key",
        "with `aes-secret`: the key of the title's segments",
        &["application/octet-stream"],
    ),
    define_url_form(
        "T/.license",
        "with `drm-keys = \"secret:FILE\"`: the ClearKey license (POST only)",
        JSON,
    ),
];

/// URLs of the segments of a title.
pub const SEGMENT_URLS: &[UrlForm] = &[
    define_url_form(
        "T/<set>/<rendition>/hls.m3u8",
        "HLS media playlist, CMAF segments",
        HLS,
    ),
    define_url_form(
        "T/<set>/<rendition>/ts.m3u8",
        "HLS media playlist, transport streams or packed audio",
        HLS,
    ),
    define_url_form(
        "T/<set>/<rendition>/keyframes.m3u8",
        "HLS I-frame playlist",
        HLS,
    ),
    define_url_form(
        "T/<set>/<rendition>/init.mp4",
        "CMAF header (init segment)",
        MEDIA,
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.m4s",
        "CMAF segment that starts at this time, in ticks of the track",
        MEDIA,
    ),
    define_url_form(
        "T/<set>/<rendition>/n/<number>.m4s",
        "CMAF segment with this number, from 1",
        MEDIA,
    ),
    define_url_form(
        "T/<set>/<rendition>/key/<time>.m4s",
        "key frame at this time, as a CMAF segment",
        MEDIA,
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.ts",
        "transport stream segment",
        &["video/mp2t"],
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.aac",
        "packed audio: AAC",
        &["audio/aac"],
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.ac3",
        "packed audio: AC-3",
        &["audio/ac3"],
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.ec3",
        "packed audio: E-AC-3",
        &["audio/eac3"],
    ),
    define_url_form(
        "T/<set>/<rendition>/<time>.mp3",
        "packed audio: MP3",
        &["audio/mpeg"],
    ),
];

/// URLs of the text of a title.
pub const TEXT_URLS: &[UrlForm] = &[
    define_url_form(
        "T/t-<version>/text=<language>/hls.m3u8",
        "HLS media playlist of WebVTT segments, for use with CMAF segments",
        HLS,
    ),
    define_url_form(
        "T/t-<version>/text=<language>/ts.m3u8",
        "HLS media playlist of WebVTT segments, for use with transport streams, which have another clock",
        HLS,
    ),
    define_url_form(
        "T/t-<version>/text=<language>/imsc.m3u8",
        "HLS media playlist of IMSC segments in CMAF",
        HLS,
    ),
    define_url_form(
        "T/t-<version>/text=<language>/<time>.vtt",
        "WebVTT segment, for use with CMAF segments",
        VTT,
    ),
    define_url_form(
        "T/t-<version>/text=<language>/<time>.ts.vtt",
        "WebVTT segment, for use with transport streams",
        VTT,
    ),
    define_url_form(
        "T/t-<version>/text=<language>/init.mp4",
        "CMAF header of WebVTT",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/<time>.m4s",
        "WebVTT in CMAF, by time",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/n/<number>.m4s",
        "WebVTT in CMAF, by number",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/init.imsc.mp4",
        "CMAF header of IMSC",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/<time>.imsc.m4s",
        "IMSC in CMAF, by time",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/n/<number>.imsc.m4s",
        "IMSC in CMAF, by number",
        &["application/mp4"],
    ),
    define_url_form(
        "T/t-<version>/text=<language>/all.vtt",
        "all cues as one WebVTT file",
        VTT,
    ),
];

/// URLs of the server.
pub const SERVER_URLS: &[UrlForm] = &[
    define_url_form("/", "the page: library and players", &["text/html"]),
    define_url_form("/healthz", "200 while the process works", TEXT),
    define_url_form(
        "/readyz",
        "200 while it should receive traffic; 503 while it drains, and until a remote library could be listed",
        TEXT,
    ),
    define_url_form(
        "/metrics",
        "[metrics](metrics.md) in the Prometheus text format or, by `Accept`, in OpenMetrics; with `--admin` on the admin port only",
        TEXT,
    ),
    define_url_form(
        "/cmcd",
        "with `cmcd-collector`: takes [events of players](../how-to/viewers.md) (POST)",
        &[],
    ),
    define_url_form(
        "/-/library.json",
        "the titles of the library, for the page",
        JSON,
    ),
    define_url_form(
        "/-/collector.json",
        "the path for events (`{\"cmcd\":\"/cmcd\"}`), or null without a collector",
        JSON,
    ),
    define_url_form(
        "/-/<asset>",
        "scripts, styles and players of the page",
        &["text/javascript", "text/css", "image/svg+xml"],
    ),
];

/// URLs of the admin port.
pub const ADMIN_URLS: &[UrlForm] = &[
    define_url_form("/", "status page", &["text/html"]),
    define_url_form("/status", "the same as JSON", JSON),
    define_url_form(
        "/viewers",
        "with `cmcd-collector`: [the viewers](../how-to/viewers.md) as a page",
        &["text/html"],
    ),
    define_url_form("/viewers.json", "the same as JSON", JSON),
    define_url_form("/metrics", "as above", TEXT),
    define_url_form("/healthz", "as above, without the token", TEXT),
    define_url_form("/readyz", "as above, without the token", TEXT),
];

impl UrlForm {
    /// Returns whether a URL has this form. The placeholders `<time>` and `<number>` stand for
    /// decimal numbers, `<version>` stands for a hexadecimal number, and `<set>` stands for a
    /// target duration and a version. Other placeholders stand for names. A title may have any
    /// path, and an asset may be in a folder.
    pub fn is_form_of_url(&self, url: &str) -> bool {
        match self.url.strip_prefix("T/") {
            _ if self.url == "T" => true,
            Some(pattern) => {
                let names = pattern.matches('/').count() + 1;
                let (path, query) = url.split_once('?').map_or((url, ""), |(p, q)| (p, q));
                let start = path.rmatch_indices('/').nth(names - 1);
                start.is_some_and(|(at, _)| {
                    let query = if query.is_empty() {
                        ""
                    } else {
                        &url[path.len()..]
                    };
                    is_pattern_match(pattern, &format!("{}{query}", &path[at + 1..]))
                })
            }
            None => is_pattern_match(self.url, url),
        }
    }
}

fn is_pattern_match(pattern: &str, text: &str) -> bool {
    let Some((literal, rest)) = pattern.split_once('<') else {
        return pattern == text;
    };
    let Some((name, rest)) = rest.split_once('>') else {
        return false;
    };
    let Some(text) = text.strip_prefix(literal) else {
        return false;
    };
    let ends = (1..=text.len()).filter(|end| text.is_char_boundary(*end));
    let mut ends = ends.take_while(|end| name == "asset" || !text[..*end].contains('/'));
    ends.any(|end| {
        is_valid_for_placeholder(name, &text[..end]) && is_pattern_match(rest, &text[end..])
    })
}

fn is_valid_for_placeholder(name: &str, value: &str) -> bool {
    let all = |is_legal: fn(&u8) -> bool| value.as_bytes().iter().all(is_legal);
    match name {
        "time" | "number" => all(u8::is_ascii_digit),
        "version" => all(u8::is_ascii_hexdigit),
        "set" => value.split_once('-').is_some_and(|(duration, version)| {
            is_valid_for_placeholder("time", duration)
                && is_valid_for_placeholder("version", version)
        }),
        _ => true,
    }
}
