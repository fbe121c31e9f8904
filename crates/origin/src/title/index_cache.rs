//! The index cache on local disk. With this cache, a server that restarts need not read films
//! again.
//!
//! An entry is an index MP4, from which the index can be rebuilt. The key of an entry contains
//! everything that distinguishes one version of a film from another version. The index of a film
//! that was modified very recently is not stored. If the film is modified again soon, both versions
//! may have the same time, because the file system's clock is coarse.

use crate::title::indexer::{self, MediaOrReferences};
use crate::title::stores::{FileLocation, MediaStores};
use media::index::{Index, Indexer};
use media::mp4;
use net::Error;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use store::{DiskCache, DiskLookupCounts, Object, ObjectVersion};

/// Version that is part of each entry's key. Increase this version when changed code produces a
/// different index for the same film, or a different stored file for the same index.
const FORMAT_VERSION: u8 = 6;
/// Resolution of file system clocks. Two changes within this time can have the same timestamp.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// Name of the media file in a stored index MP4. A file with this name is never opened.
const PLACEHOLDER_MEDIA_NAME: &str = "media";

/// The index cache. Without a disk, the cache builds an index each time the index is requested.
#[derive(Default)]
pub(crate) struct IndexCache {
    disk: Option<DiskCache>,
    /// Whether indexes are built without a search for captions.
    skips_captions: bool,
    /// Whether a write failure has already been logged.
    has_warned: AtomicBool,
}

impl IndexCache {
    /// Creates a cache that stores indexes in `folder`, up to `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or listed.
    pub(crate) fn on_disk(folder: &Path, bytes_max: u64) -> io::Result<IndexCache> {
        Ok(IndexCache {
            disk: Some(DiskCache::open_disk_cache(folder, bytes_max)?),
            ..IndexCache::default()
        })
    }

    /// Creates a cache that stores nothing. This cache builds each index without a search for
    /// captions in the video.
    pub(crate) fn without_captions() -> IndexCache {
        IndexCache {
            skips_captions: true,
            ..IndexCache::default()
        }
    }

    /// Returns the counts of look-ups on disk so far, and the number of stored bytes. Returns
    /// `None` if indexes are not stored on disk.
    pub(crate) fn disk_usage(&self) -> Option<(DiskLookupCounts, u64)> {
        let disk = self.disk.as_ref()?;
        Some((disk.counts(), disk.stored_bytes()))
    }

    /// Returns the index of a file. Builds the index if the disk does not contain it. Blocks the
    /// thread.
    ///
    /// # Errors
    /// Returns the errors of [`indexer::index_file`].
    pub(crate) fn load_or_build(
        &self,
        stores: &MediaStores,
        place: &FileLocation,
        object: &Object,
    ) -> Result<MediaOrReferences, Error> {
        let (name, version) = (
            stores.global_file_name(place),
            version_bytes(object.version()),
        );
        if let Some(disk) = &self.disk
            && let Some(bytes) = disk.get(&name, &version)
        {
            match parse_stored_index(&bytes, object.len()) {
                Some(index) => {
                    object.free_first_bytes();
                    return Ok(MediaOrReferences::Media(index));
                }
                // The entry is intact, but contains no valid index. For example, another program
                // may have written the entry.
                None => disk.remove_value(&name),
            }
        }
        if self.skips_captions {
            return indexer::index_without_captions(&place.key, object);
        }
        let indexed = indexer::index_file(&place.key, object)?;
        if let (Some(disk), MediaOrReferences::Media(index)) = (&self.disk, &indexed) {
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
        let identity = object.version();
        if identity.mtime_ns == 0 && (identity.tag == 0 || identity.has_weak_tag) {
            // Without a modification time or a strong entity tag, a replaced film might not be
            // recognised.
            return;
        }
        if index.caption_channels.is_none() {
            // The media could not be searched for captions. The search is repeated when the film is
            // opened again.
            return;
        }
        let settled = SystemTime::now().checked_sub(SETTLE_TIME);
        let is_recent = |modified| settled.is_none_or(|settled| modified > settled);
        if identity.modified().is_some_and(is_recent) {
            return;
        }
        // Writing fails if no edit list can express the track delays of this film exactly. Such a
        // film is indexed again each time.
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
        references.recorded_media_len().is_some() && references.data_references().len() == 1;
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
