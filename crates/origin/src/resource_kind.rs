//! Kinds of resources, which label access records and request counters.

use crate::route::{ManifestKind, OriginRequest, SegmentAddress, TextResource};

/// The kind of the requested resource, which labels access records and request counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Segment,
    Init,
    Text,
    Playlist,
    Mpd,
    Key,
    Description,
    File,
    Page,
    Admin,
    Other,
}

pub(crate) const RESOURCE_KINDS: &[&str] = &[
    "segment",
    "init",
    "text",
    "playlist",
    "mpd",
    "key",
    "description",
    "file",
    "page",
    "admin",
    "other",
];

impl ResourceKind {
    pub(crate) fn from_request(request: &OriginRequest) -> ResourceKind {
        match request {
            OriginRequest::Segment(segment) => ResourceKind::from_segment_address(segment.part),
            OriginRequest::Text(text) if matches!(text.part, TextResource::Init(_)) => {
                ResourceKind::Init
            }
            OriginRequest::Text(_) => ResourceKind::Text,
            OriginRequest::Manifest {
                manifest: ManifestKind::Dash(_),
                ..
            } => ResourceKind::Mpd,
            OriginRequest::Manifest {
                manifest: ManifestKind::Description,
                ..
            } => ResourceKind::Description,
            OriginRequest::Manifest { .. } => ResourceKind::Playlist,
            OriginRequest::Key(_) | OriginRequest::License(_) => ResourceKind::Key,
            OriginRequest::File(_) => ResourceKind::File,
            OriginRequest::Page | OriginRequest::Asset(_) | OriginRequest::Library => {
                ResourceKind::Page
            }
            OriginRequest::Health | OriginRequest::Ready | OriginRequest::Metrics => {
                ResourceKind::Admin
            }
        }
    }

    pub(crate) fn from_segment_address(part: SegmentAddress) -> ResourceKind {
        if part == SegmentAddress::Init {
            ResourceKind::Init
        } else {
            ResourceKind::Segment
        }
    }

    pub(crate) fn label(self) -> &'static str {
        RESOURCE_KINDS
            .get(self as usize)
            .copied()
            .unwrap_or("other")
    }
}
