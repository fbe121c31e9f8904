//! Kinds of requests.

use serde::{Deserialize, Serialize};

/// The kind of a request. Results are reported separately for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// A playlist or MPD.
    Manifest,
    /// An init segment.
    Init,
    /// A media segment.
    Segment,
    /// Subtitles or captions.
    Text,
    /// A range of a file.
    Range,
    /// Anything else.
    Other,
}

impl RequestKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [RequestKind; 6] = [
        RequestKind::Manifest,
        RequestKind::Init,
        RequestKind::Segment,
        RequestKind::Text,
        RequestKind::Range,
        RequestKind::Other,
    ];

    /// Returns the name of the kind in logs and expectations.
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Manifest => "manifest",
            RequestKind::Init => "init",
            RequestKind::Segment => "segment",
            RequestKind::Text => "text",
            RequestKind::Range => "range",
            RequestKind::Other => "other",
        }
    }

    /// Returns the kind of request that the extension of a path indicates.
    pub fn kind_from_path(path: &str) -> RequestKind {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "m3u8" | "mpd" => RequestKind::Manifest,
            "m4s" | "ts" | "m4v" | "m4a" | "cmfv" | "cmfa" | "aac" => RequestKind::Segment,
            "vtt" | "cmft" | "ttml" => RequestKind::Text,
            _ => RequestKind::Other,
        }
    }
}
