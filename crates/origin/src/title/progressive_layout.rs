//! The byte layout of a title as one progressive MP4.

use crate::error;
use crate::send::body_parts::PlannedPart;
use bytes::Bytes;
use media::index::Index;
use media::mp4::ProgressiveMp4;
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use store::{Key, Object};

/// Version of the layout, which is part of the entity tag. Increase the version when changed code
/// produces different bytes for the same index.
const LAYOUT_VERSION: u8 = 1;
/// A title's progressive layout, computed on first use.
pub(crate) type ProgressiveSlot = OnceLock<Result<Arc<ProgressiveLayout>, Error>>;

/// The body parts and entity tag of a progressive file.
pub(crate) struct ProgressiveLayout {
    pub(crate) pieces: Arc<[PlannedPart]>,
    pub(crate) etag: String,
}

impl ProgressiveLayout {
    /// Lays out the film. The file ranges of the layout are offsets in the concatenation of
    /// `objects`.
    pub(crate) fn new<'a>(
        title: &Key,
        indexes: &[Arc<Index>],
        objects: impl Iterator<Item = &'a Object>,
    ) -> Result<ProgressiveLayout, Error> {
        let of_media = |e| error::from_media(title.as_str(), &e);
        let made = ProgressiveMp4::new(indexes).map_err(of_media)?;
        let mut hasher = DefaultHasher::new();
        (LAYOUT_VERSION, &made.head).hash(&mut hasher);
        for index in indexes {
            index.fingerprint.hash(&mut hasher);
        }
        let bases: Vec<u64> = objects
            .map(Object::len)
            .scan(0, |base, len| Some(std::mem::replace(base, *base + len)))
            .collect();
        let ranges = made.source_ranges.into_iter().map(|(file, range)| {
            let base = bases.get(file).copied().unwrap_or(0);
            PlannedPart::FileRange(range.start + base..range.end + base)
        });
        let pieces = std::iter::once(PlannedPart::Generated(Bytes::from(made.head))).chain(ranges);
        Ok(ProgressiveLayout {
            pieces: pieces.collect(),
            etag: format!("\"p{:016x}\"", hasher.finish()),
        })
    }
}
