//! Just enough of HLS to follow every URL: written for the tests, shared with nothing.

use crate::support::Server;

/// A media playlist, its URIs resolved against its own address.
#[derive(Debug, Default)]
pub struct Media {
    pub target: String,
    pub map: Option<String>,
    /// EXTINF as printed, and the segment's target.
    pub segments: Vec<(String, String)>,
    pub target_duration: u64,
}

/// Addresses of all media playlists that a multivariant playlist names (I-frame ones apart).
pub fn media_playlists(server: &Server, target: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in server.text(target).lines() {
        let uri = match line.strip_prefix("#EXT-X-MEDIA:") {
            Some(attributes) => attribute(attributes, "URI"),
            None if line.starts_with('#') || line.is_empty() => None,
            None => Some(line.to_owned()),
        };
        found.extend(uri.map(|uri| resolve(target, &uri)));
    }
    found.sort();
    found.dedup();
    found
}

pub fn media(server: &Server, target: &str) -> Media {
    let text = server.text(target);
    assert!(text.starts_with("#EXTM3U\n"), "{target}: {text:.80}");
    assert!(text.ends_with("#EXT-X-ENDLIST\n"), "{target} has no end");
    let mut media = Media {
        target: target.to_owned(),
        ..Media::default()
    };
    let mut duration = None;
    for line in text.lines() {
        if let Some(value) = line.strip_prefix("#EXTINF:") {
            duration = Some(value.trim_end_matches(',').to_owned());
        } else if let Some(value) = line.strip_prefix("#EXT-X-TARGETDURATION:") {
            media.target_duration = value.parse().unwrap();
        } else if let Some(attributes) = line.strip_prefix("#EXT-X-MAP:") {
            media.map = attribute(attributes, "URI").map(|uri| resolve(target, &uri));
        } else if !line.starts_with('#') && !line.is_empty() {
            let duration = duration.take().expect("a segment without EXTINF");
            media.segments.push((duration, resolve(target, line)));
        }
    }
    media
}

impl Media {
    /// The init segment, where there is one.
    pub fn init(&self, server: &Server) -> Vec<u8> {
        let map = self.map.as_ref();
        map.map(|map| server.body(map)).unwrap_or_default()
    }

    /// Whether it is a video rendition, by its folder's name.
    pub fn is_video(&self) -> bool {
        self.target.rsplit('/').nth(1).unwrap().starts_with("video")
    }
}

/// A quoted attribute's value.
pub fn attribute(list: &str, name: &str) -> Option<String> {
    let start = format!("{name}=\"");
    let (_, rest) = list.split_once(&start)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// A relative reference against the path it was found under.
pub fn resolve(base: &str, uri: &str) -> String {
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
