//! Indexes kept on local disk, so that a restart reads no film again.
//!
//! What is kept is an index MP4 (which gives back the same index), by the film's place and by all
//! that tells one state of it from another. A film changed so lately that its clock could hide
//! another change is not kept yet.

use crate::indexer::{self, Indexed};
use crate::stores::{Place, Stores};
use media::index::{Index, Indexer};
use media::mp4;
use net::Error;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use store::{DiskCache, DiskCounts, Identity, Object};

/// Raised whenever the same film gives another index, or an index another file.
const FORMAT: u8 = 3;
/// File systems' clocks may tick this rarely: two states within it can look alike.
const SETTLED: Duration = Duration::from_secs(3);
/// What a kept index MP4 names: nobody follows it.
const MEDIA: &str = "media";

/// Indexes on disk, if they are to be kept there.
#[derive(Default)]
pub(crate) struct Kept {
    disk: Option<DiskCache>,
    /// Whether it was said already that nothing can be written.
    complained: AtomicBool,
}

impl Kept {
    /// Keeps indexes in `folder`, at most `bytes_max` bytes of them.
    ///
    /// # Errors
    /// When the folder cannot be made or listed.
    pub(crate) fn on_disk(folder: &Path, bytes_max: u64) -> io::Result<Kept> {
        Ok(Kept {
            disk: Some(DiskCache::open(folder, bytes_max)?),
            complained: AtomicBool::new(false),
        })
    }

    /// What was asked of it so far, and the bytes that it takes.
    pub(crate) fn counts(&self) -> Option<(DiskCounts, u64)> {
        let disk = self.disk.as_ref()?;
        Some((disk.counts(), disk.bytes()))
    }

    /// The index of a file, from disk or made now. Blocks.
    ///
    /// # Errors
    /// As [`indexer::index`].
    pub(crate) fn index(
        &self,
        stores: &Stores,
        place: &Place,
        object: &Object,
    ) -> Result<Indexed, Error> {
        let (name, version) = (stores.name(place), version(object.identity()));
        if let Some(disk) = &self.disk
            && let Some(bytes) = disk.get(&name, &version)
        {
            match read(&bytes, object.len()) {
                Some(index) => {
                    object.settle();
                    return Ok(Indexed::Film(index));
                }
                // Whole, but not to be understood: another program's, say.
                None => disk.forget(&name),
            }
        }
        let indexed = indexer::index(&place.key, object)?;
        if let (Some(disk), Indexed::Film(index)) = (&self.disk, &indexed) {
            self.keep(disk, &name, &version, index, object);
        }
        Ok(indexed)
    }

    fn keep(&self, disk: &DiskCache, name: &str, version: &[u8], index: &Index, object: &Object) {
        let identity = object.identity();
        if identity.mtime_ns == 0 && identity.tag == 0 {
            // A server that says neither when it changed nor which state it is in.
            return;
        }
        let settled = SystemTime::now().checked_sub(SETTLED);
        if settled.is_none_or(|settled| identity.modified() > settled) {
            return;
        }
        // Delays that no clock can say: such a film is indexed anew each time.
        let Ok(bytes) = mp4::index_file(index, MEDIA) else {
            return;
        };
        if let Err(error) = disk.put(name, version, &bytes)
            && !self.complained.swap(true, Relaxed)
        {
            tracing::warn!(%error, "indexes are not kept on disk");
        }
    }
}

/// The index in a kept file.
fn read(bytes: &[u8], media_len: u64) -> Option<Index> {
    let mut indexer = Indexer::new(bytes.len() as u64);
    while let Some(range) = indexer.need() {
        let (start, end) = (
            usize::try_from(range.start).ok()?,
            usize::try_from(range.end).ok()?,
        );
        indexer.feed(bytes.get(start..end)?).ok()?;
    }
    let mut references = indexer.take_references()?;
    let own = references.media_len().is_some() && references.places().len() == 1;
    references.index(0, media_len).ok().filter(|_| own)
}

/// All that tells one state of a file from another.
fn version(identity: &Identity) -> Vec<u8> {
    let mut out = vec![FORMAT];
    out.extend_from_slice(&identity.len.to_le_bytes());
    out.extend_from_slice(&identity.mtime_ns.to_le_bytes());
    out.extend_from_slice(&identity.ctime_ns.to_le_bytes());
    out.extend_from_slice(&identity.inode.0.to_le_bytes());
    out.extend_from_slice(&identity.inode.1.to_le_bytes());
    out.extend_from_slice(&identity.tag.to_le_bytes());
    out
}
