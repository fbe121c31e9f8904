//! A minimal HLS parser that resolves every URL. The parser shares no code with the crates, so that
//! a mistake in a crate is not repeated here.

use crate::support::HeadwaterServer;

/// A media playlist with resolved URIs.
#[derive(Debug, Default)]
pub struct MediaPlaylist {
    pub target: String,
    pub map: Option<String>,
    /// The EXTINF value as printed, and the request target of each segment.
    pub segments: Vec<(String, String)>,
    pub target_duration: u64,
}

/// Returns the request targets of all media playlists in a multivariant playlist, except I-frame
/// playlists.
pub fn list_media_playlists(server: &HeadwaterServer, target: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in server.get_text(target).lines() {
        let uri = match line.strip_prefix("#EXT-X-MEDIA:") {
            Some(attributes) => read_attribute(attributes, "URI"),
            None if line.starts_with('#') || line.is_empty() => None,
            None => Some(line.to_owned()),
        };
        found.extend(uri.map(|uri| resolve_uri(target, &uri)));
    }
    found.sort();
    found.dedup();
    found
}

pub fn fetch_media_playlist(server: &HeadwaterServer, target: &str) -> MediaPlaylist {
    let text = server.get_text(target);
    assert!(text.starts_with("#EXTM3U\n"), "{target}: {text:.80}");
    assert!(text.ends_with("#EXT-X-ENDLIST\n"), "{target} has no end");
    let mut media = MediaPlaylist {
        target: target.to_owned(),
        ..MediaPlaylist::default()
    };
    let mut duration = None;
    for line in text.lines() {
        if let Some(value) = line.strip_prefix("#EXTINF:") {
            duration = Some(value.trim_end_matches(',').to_owned());
        } else if let Some(value) = line.strip_prefix("#EXT-X-TARGETDURATION:") {
            media.target_duration = value.parse().unwrap();
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-MAP:") {
            media.map = read_attribute(attributes, "URI").map(|uri| resolve_uri(target, &uri));
        } else if !line.starts_with('#') && !line.is_empty() {
            let duration = duration.take().expect("a segment without EXTINF");
            media.segments.push((duration, resolve_uri(target, line)));
        }
    }
    media
}

impl MediaPlaylist {
    /// Fetches the init segment, if the playlist names one.
    pub fn fetch_init(&self, server: &HeadwaterServer) -> Vec<u8> {
        let map = self.map.as_ref();
        map.map(|map| server.get_body(map)).unwrap_or_default()
    }

    /// Returns whether the folder of the playlist is named like a video rendition.
    pub fn is_video(&self) -> bool {
        self.target.rsplit('/').nth(1).unwrap().starts_with("video")
    }
}

/// Returns the value of a quoted attribute.
pub fn read_attribute(list: &str, name: &str) -> Option<String> {
    let start = format!("{name}=\"");
    let (_, rest) = list.split_once(&start)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// Resolves a relative reference against the path of the playlist that contains the reference.
pub fn resolve_uri(base: &str, uri: &str) -> String {
    if uri.starts_with('/') {
        return uri.to_owned();
    }
    let base = base.split('?').next().unwrap();
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in uri.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
