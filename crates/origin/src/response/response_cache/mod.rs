//! Caches of recently served URLs, in front of routing.

pub(crate) mod manifests;
pub(crate) mod segments;
pub(crate) mod subsamples;
pub(crate) mod unfinished_bytes;
