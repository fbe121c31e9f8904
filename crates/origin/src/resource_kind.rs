//! Kinds of resources, which label access records and request counters.

use crate::route::{ManifestKind, RequestedResource, SegmentAddress, TextResource};

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
    pub(crate) fn from_request(request: &RequestedResource) -> ResourceKind {
        match request {
            RequestedResource::Segment(segment) => ResourceKind::from_segment_address(segment.part),
            RequestedResource::Text(text) if matches!(text.part, TextResource::Init(_)) => {
                ResourceKind::Init
            }
            RequestedResource::Text(_) => ResourceKind::Text,
            RequestedResource::Manifest {
                manifest: ManifestKind::Dash(_),
                ..
            } => ResourceKind::Mpd,
            RequestedResource::Manifest {
                manifest: ManifestKind::Description,
                ..
            } => ResourceKind::Description,
            RequestedResource::Manifest { .. } => ResourceKind::Playlist,
            RequestedResource::Key(_) | RequestedResource::License(_) => ResourceKind::Key,
            RequestedResource::File(_) => ResourceKind::File,
            RequestedResource::Page | RequestedResource::Asset(_) | RequestedResource::Library => {
                ResourceKind::Page
            }
            RequestedResource::Health | RequestedResource::Ready | RequestedResource::Metrics => {
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
