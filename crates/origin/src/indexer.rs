//! Drives media's [`Indexer`] over an open file.

use crate::error;
use media::index::{Index, Indexer, References};
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use store::{Key, Object, Reason};

/// Most read at once, in bytes. The indexer may ask for more; it is fed piece by piece.
const READ_BYTES_MAX: u64 = 8 << 20;

/// What a file turned out to be.
pub(crate) enum Indexed {
    /// A film, whose media lies in it.
    Film(Index),
    /// An index MP4: tables of media that lies elsewhere.
    References(References),
}

/// Indexes a file. Blocks.
pub(crate) fn index(key: &Key, object: &Object) -> Result<Indexed, Error> {
    let of_media = |e: media::Error| error::of_media(key.as_str(), &e);
    let mut indexer = Indexer::new(object.len());
    while let Some(need) = indexer.need() {
        let range = need.start..need.end.min(need.start + READ_BYTES_MAX);
        let bytes = object
            .read(range, Reason::Index)
            .map_err(|e| error::of_store(&e))?;
        indexer.feed(&bytes).map_err(of_media)?;
    }
    if let Some(references) = indexer.take_references() {
        return Ok(Indexed::References(references));
    }
    let mut index = indexer.finish().map_err(of_media)?;
    index.fingerprint ^= told_apart(object).map_err(|e| error::of_store(&e))?;
    object.settle();
    if object.changed() {
        return Err(error::of_store(&store::Error::Changed));
    }
    Ok(Indexed::Film(index))
}

/// Places in a file whose bytes become part of its fingerprint.
const PROBES: u64 = 4;
const PROBE_BYTES: u64 = 1024;

/// What becomes part of a fingerprint beside the tables, which do not tell files apart whose
/// frames all have one size, or whose media was replaced in its place: the entity tag where there
/// is one, since over a network each look at the media would be a request; else a few media bytes.
pub(crate) fn told_apart(object: &Object) -> Result<u64, store::Error> {
    match object.identity().tag {
        0 => probe(object),
        tag => Ok(tag),
    }
}

/// A hash of a few media bytes.
fn probe(object: &Object) -> Result<u64, store::Error> {
    let mut hasher = DefaultHasher::new();
    for n in 0..PROBES {
        // Fits: a length is below 2^63.
        let at = object.len() / (PROBES + 1) * (n + 1);
        let end = object.len().min(at + PROBE_BYTES);
        object.read(at..end, Reason::Index)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
