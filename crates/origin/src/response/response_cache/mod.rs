//! Caches for recently served URLs. Manifests and segments are looked up before the URL is parsed.

pub(crate) mod manifests;
pub(crate) mod segments;
pub(crate) mod subsamples;
pub(crate) mod unfinished_segment_budget;
