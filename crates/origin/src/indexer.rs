//! Drives media's [`Indexer`] over an open file.

use crate::error;
use media::index::{Index, Indexer};
use net::Error;
use store::{Key, Object, Reason};

/// Most read at once, in bytes. The indexer may ask for more; it is fed piece by piece.
const READ_BYTES_MAX: u64 = 8 << 20;

/// Indexes a file. Blocks.
pub(crate) fn index(key: &Key, object: &Object) -> Result<Index, Error> {
    let of_media = |e: media::Error| error::of_media(key.as_str(), &e);
    let mut indexer = Indexer::new(object.len());
    while let Some(need) = indexer.need() {
        let range = need.start..need.end.min(need.start + READ_BYTES_MAX);
        let bytes = object
            .read(range, Reason::Index)
            .map_err(|e| error::of_store(&e))?;
        indexer.feed(&bytes).map_err(of_media)?;
    }
    let index = indexer.finish().map_err(of_media)?;
    if object.changed() {
        return Err(error::of_store(&store::Error::Changed));
    }
    Ok(index)
}
