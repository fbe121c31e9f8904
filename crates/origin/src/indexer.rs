//! Drives media's [`Indexer`] over an open file.

use crate::error;
use media::index::{Index, Indexer, MediaState, References};
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use store::{Key, Object, Reason, RemoteObject};

/// Most read at once, in bytes. The indexer may ask for more; it is fed piece by piece.
const READ_BYTES_MAX: u64 = 8 << 20;
/// Steps from fragment to fragment after which the rest is read as a whole.
const STEPS_MAX: u32 = 16;
/// Fragments that lie farther apart than this are rather asked for one by one: what passes a line
/// of 1 Gb/s in a round trip of 15 ms.
const STEP_BYTES_MAX: u64 = 2 << 20;

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
    let mut walk = Walk::default();
    while let Some(need) = indexer.need() {
        if let Object::Remote(remote) = object {
            let range = if walk.is_long(&need) {
                walk = Walk::default();
                need.start..object.len()
            } else {
                need
            };
            pour(&mut indexer, remote, range, of_media)?;
            continue;
        }
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
    let apart = told_apart(object).map_err(|e| error::of_store(&e))?;
    index.fingerprint ^= apart;
    index.media_state = match object.is_remote() {
        false => Some(MediaState::Bytes(apart)),
        true => Some(object.identity().tag)
            .filter(|tag| *tag != 0)
            .map(MediaState::Tag),
    };
    object.settle();
    if object.changed() {
        return Err(error::of_store(&store::Error::Changed));
    }
    Ok(Indexed::Film(index))
}

/// How a remote file is walked: each step is a round trip, so many small ones cost more than the
/// media that lies between them.
#[derive(Default)]
struct Walk {
    at: u64,
    steps: u32,
}

impl Walk {
    /// Whether many small steps were made, `need` included.
    fn is_long(&mut self, need: &Range<u64>) -> bool {
        let near = need.start.saturating_sub(self.at) <= STEP_BYTES_MAX;
        self.steps = if near { self.steps + 1 } else { 0 };
        self.at = need.start;
        self.steps > STEPS_MAX
    }
}

/// Feeds a range as it comes, in one request, as long as the indexer steps on.
fn pour(
    indexer: &mut Indexer,
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    of_media: impl Fn(media::Error) -> Error,
) -> Result<(), Error> {
    let mut fed = Ok(());
    let poured = object.pour(range, Reason::Index, |at, bytes| {
        let end = at + bytes.len() as u64;
        let Some(need) = indexer.need() else {
            return ControlFlow::Break(());
        };
        if need.start > end + STEP_BYTES_MAX {
            return ControlFlow::Break(());
        }
        // Media that lies between two fragments is passed over.
        let passed = usize::try_from(need.start.saturating_sub(at)).unwrap_or(usize::MAX);
        if let Some(bytes) = bytes.get(passed..).filter(|bytes| !bytes.is_empty()) {
            fed = indexer.feed(bytes);
        }
        match fed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    poured.map_err(|e| error::of_store(&e))?;
    fed.map_err(of_media)
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
pub(crate) fn probe(object: &Object) -> Result<u64, store::Error> {
    let mut hasher = DefaultHasher::new();
    for n in 0..PROBES {
        // Fits: a length is below 2^63.
        let at = object.len() / (PROBES + 1) * (n + 1);
        let end = object.len().min(at + PROBE_BYTES);
        object.read(at..end, Reason::Index)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
