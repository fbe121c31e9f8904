//! The index cache on local disk: a restart does not read films again.
//!
//! An entry is an index MP4, from which the index can be rebuilt. Its key contains everything that
//! distinguishes one version of a film from another. A film that was modified just now is not
//! stored yet: within the resolution of the file system's clock, another change could have the same
//! time.

use crate::title::indexer::{self, IndexedFile};
use crate::title::stores::{FileLocation, MediaStores};
use media::index::{Index, Indexer};
use media::mp4;
use net::Error;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use store::{DiskCache, DiskCounts, Object, ObjectVersion};

/// Part of the key. Increase it when a change of the code produces a different index for the same
/// film, or a different stored file for the same index.
const FORMAT_VERSION: u8 = 5;
/// Resolution of file system clocks: two changes within it can have the same time.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// Media name in a stored index MP4. It is never followed.
const PLACEHOLDER_MEDIA_NAME: &str = "media";

/// The index cache. Without a disk, it builds every index.
#[derive(Default)]
pub(crate) struct IndexCache {
    disk: Option<DiskCache>,
    /// Whether indexes are built without a search for captions.
    skips_captions: bool,
    /// Whether a write failure was logged already.
    has_warned: AtomicBool,
}

impl IndexCache {
    /// Stores indexes in `folder`, at most `bytes_max` bytes.
    ///
    /// # Errors
    /// If the folder cannot be created or listed.
    pub(crate) fn on_disk(folder: &Path, bytes_max: u64) -> io::Result<IndexCache> {
        Ok(IndexCache {
            disk: Some(DiskCache::open(folder, bytes_max)?),
            ..IndexCache::default()
        })
    }

    /// Stores nothing, and builds indexes that do not contain the captions of the video.
    pub(crate) fn without_captions() -> IndexCache {
        IndexCache {
            skips_captions: true,
            ..IndexCache::default()
        }
    }

    /// Returns the requests so far and the bytes stored.
    pub(crate) fn disk_usage(&self) -> Option<(DiskCounts, u64)> {
        let disk = self.disk.as_ref()?;
        Some((disk.counts(), disk.bytes()))
    }

    /// Returns the index of a file, from disk or built now. Blocks.
    ///
    /// # Errors
    /// The errors of [`indexer::index_file`].
    pub(crate) fn load_or_build(
        &self,
        stores: &MediaStores,
        place: &FileLocation,
        object: &Object,
    ) -> Result<IndexedFile, Error> {
        let (name, version) = (stores.unique_name(place), version_bytes(object.identity()));
        if let Some(disk) = &self.disk
            && let Some(bytes) = disk.get(&name, &version)
        {
            match parse_stored_index(&bytes, object.len()) {
                Some(index) => {
                    object.settle();
                    return Ok(IndexedFile::Media(index));
                }
                // The entry is intact, but contains no valid index. For example, another program
                // wrote it.
                None => disk.forget(&name),
            }
        }
        if self.skips_captions {
            return indexer::index_without_captions(&place.key, object);
        }
        let indexed = indexer::index_file(&place.key, object)?;
        if let (Some(disk), IndexedFile::Media(index)) = (&self.disk, &indexed) {
            self.store_index(disk, &name, &version, index, object);
        }
        Ok(indexed)
    }

    fn store_index(
        &self,
        disk: &DiskCache,
        name: &str,
        version: &[u8],
        index: &Index,
        object: &Object,
    ) {
        let identity = object.identity();
        if identity.mtime_ns == 0 && identity.tag == 0 {
            // The server sends neither a modification time nor an entity tag.
            return;
        }
        if index.caption_channels.is_none() {
            // The media could not be searched for captions; the next opening tries it again.
            return;
        }
        let settled = SystemTime::now().checked_sub(SETTLE_TIME);
        if settled.is_none_or(|settled| identity.modified() > settled) {
            return;
        }
        // No edit list can express the track delays of this film exactly, so the film is indexed
        // again each time.
        let Ok(bytes) = mp4::write_index_mp4(index, PLACEHOLDER_MEDIA_NAME) else {
            return;
        };
        if let Err(error) = disk.put(name, version, &bytes)
            && !self.has_warned.swap(true, Relaxed)
        {
            tracing::warn!(%error, "cannot write to the index cache; indexes stay in memory");
        }
    }
}

/// Reads the index from a stored index MP4.
fn parse_stored_index(bytes: &[u8], media_len: u64) -> Option<Index> {
    let mut indexer = Indexer::new(bytes.len() as u64);
    while let Some(range) = indexer.needed_range() {
        let (start, end) = (
            usize::try_from(range.start).ok()?,
            usize::try_from(range.end).ok()?,
        );
        indexer.feed(bytes.get(start..end)?).ok()?;
    }
    let mut references = indexer.take_references()?;
    let is_single_file =
        references.recorded_media_len().is_some() && references.locations().len() == 1;
    references
        .build_index(0, media_len)
        .ok()
        .filter(|_| is_single_file)
}

/// Returns the bytes that distinguish one version of a file from another.
fn version_bytes(identity: &ObjectVersion) -> Vec<u8> {
    let mut out = vec![FORMAT_VERSION];
    out.extend_from_slice(&identity.len.to_le_bytes());
    out.extend_from_slice(&identity.mtime_ns.to_le_bytes());
    out.extend_from_slice(&identity.ctime_ns.to_le_bytes());
    out.extend_from_slice(&identity.inode.0.to_le_bytes());
    out.extend_from_slice(&identity.inode.1.to_le_bytes());
    out.extend_from_slice(&identity.tag.to_le_bytes());
    out
}
