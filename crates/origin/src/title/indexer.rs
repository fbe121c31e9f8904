//! Runs the [`Indexer`] of the crate `media` on an open file.

use crate::error;
use crate::title::caption_channels::find_captions;
use media::index::{ExternalReferences, Index, Indexer, MediaVersion};
use media::text::CaptionChannel;
use net::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use store::{Key, Object, RemoteObject, RequestReason};

/// Maximum size of a read, in bytes. If the indexer needs more bytes, it receives them in several
/// blocks.
const READ_BYTES_MAX: u64 = 8 << 20;
/// Maximum number of consecutive requests for fragments that are close together. After this number
/// of requests, the rest of the file is read in one request.
const WALK_STEPS_MAX: u32 = 16;
/// Fragments with a larger distance than this are requested one by one. At 1 Gb/s, the transfer of
/// this many bytes takes 17 ms, which is a typical round-trip time.
const WALK_STEP_BYTES_MAX: u64 = 2 << 20;

/// An indexed file.
pub(crate) enum MediaOrReferences {
    /// A film with its own media.
    Media(Index),
    /// An index MP4, which contains the tables of media in other files.
    References(ExternalReferences),
}

/// Indexes a file and searches it for captions. Blocks the thread.
pub(crate) fn index_file(key: &Key, object: &Object) -> Result<MediaOrReferences, Error> {
    index_with_caption_search(key, object, find_captions)
}

/// Indexes a file for segment requests. Does not search the file for captions, because the search
/// reads media and only manifests announce captions. Blocks the thread.
pub(crate) fn index_without_captions(
    key: &Key,
    object: &Object,
) -> Result<MediaOrReferences, Error> {
    index_with_caption_search(key, object, |_, _| None)
}

fn index_with_caption_search(
    key: &Key,
    object: &Object,
    find_captions: impl Fn(&Object, &Index) -> Option<Vec<CaptionChannel>>,
) -> Result<MediaOrReferences, Error> {
    let of_media = |e: media::Error| error::from_media(key.as_str(), &e);
    let mut indexer = Indexer::new(object.len());
    let mut walk = FragmentWalk::default();
    while let Some(need) = indexer.needed_range() {
        if let Object::Remote(remote) = object {
            let range = if walk.has_too_many_short_steps(&need) {
                walk = FragmentWalk::default();
                need.start..object.len()
            } else {
                need
            };
            feed_while_receiving(&mut indexer, remote, range, of_media)?;
            continue;
        }
        let range = need.start..need.end.min(need.start + READ_BYTES_MAX);
        let bytes = object
            .read(range, RequestReason::Index)
            .map_err(|e| error::from_store(&e))?;
        indexer.feed(&bytes).map_err(of_media)?;
    }
    if let Some(references) = indexer.take_references() {
        return Ok(MediaOrReferences::References(references));
    }
    let mut index = indexer.finish().map_err(of_media)?;
    let media_hash = tag_or_probe_hash(object).map_err(|e| error::from_store(&e))?;
    index.fingerprint ^= media_hash;
    index.media_version = match object.is_remote() {
        false => Some(MediaVersion::ContentHash(media_hash)),
        true => Some(object.version().tag)
            .filter(|tag| *tag != 0)
            .map(MediaVersion::EntityTagHash),
    };
    index.caption_channels = find_captions(object, &index);
    object.free_first_bytes();
    if object.changed() {
        return Err(error::from_store(&store::Error::Changed));
    }
    Ok(MediaOrReferences::Media(index))
}

/// Counts the steps from fragment to fragment in a remote file. Each step costs a round trip, so
/// many short steps take longer than reading the media between the fragments.
#[derive(Default)]
struct FragmentWalk {
    at: u64,
    steps: u32,
}

impl FragmentWalk {
    /// Counts the step to `need`. Returns whether there were too many consecutive short steps.
    fn has_too_many_short_steps(&mut self, need: &Range<u64>) -> bool {
        let near = need.start.saturating_sub(self.at) <= WALK_STEP_BYTES_MAX;
        self.steps = if near { self.steps + 1 } else { 0 };
        self.at = need.start;
        self.steps > WALK_STEPS_MAX
    }
}

/// Reads a range in one request, and feeds the bytes to the indexer as they arrive. Stops when the
/// indexer fails, when it needs no more bytes, or when its next bytes are far ahead.
fn feed_while_receiving(
    indexer: &mut Indexer,
    object: &Arc<RemoteObject>,
    range: Range<u64>,
    of_media: impl Fn(media::Error) -> Error,
) -> Result<(), Error> {
    let mut fed = Ok(());
    let outcome = object.stream_range(range, RequestReason::Index, |at, bytes| {
        let end = at + bytes.len() as u64;
        let Some(need) = indexer.needed_range() else {
            return ControlFlow::Break(());
        };
        if need.start > end + WALK_STEP_BYTES_MAX {
            return ControlFlow::Break(());
        }
        // Skips media between two fragments.
        let skipped = usize::try_from(need.start.saturating_sub(at)).unwrap_or(usize::MAX);
        if let Some(bytes) = bytes.get(skipped..).filter(|bytes| !bytes.is_empty()) {
            fed = indexer.feed(bytes);
        }
        match fed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    outcome.map_err(|e| error::from_store(&e))?;
    fed.map_err(of_media)
}

/// Number of positions in a file at which bytes are hashed.
const PROBE_COUNT: u64 = 4;
const PROBE_BYTES: u64 = 1024;

/// Returns a hash that distinguishes files with equal tables, such as a film before and after its
/// media was replaced. The hash of the entity tag is used if there is a strong tag, because reading
/// media on a network costs requests. Otherwise, returns the hash of [`hash_probed_bytes`].
pub(crate) fn tag_or_probe_hash(object: &Object) -> Result<u64, store::Error> {
    let version = object.version();
    match version.tag {
        tag if tag != 0 && !version.has_weak_tag => Ok(tag),
        _ => hash_probed_bytes(object),
    }
}

/// Hashes a few bytes at [`PROBE_COUNT`] positions, as a sample of the media.
pub(crate) fn hash_probed_bytes(object: &Object) -> Result<u64, store::Error> {
    let mut hasher = DefaultHasher::new();
    for n in 0..PROBE_COUNT {
        // The position cannot overflow, because the length of a file is below 2^63.
        let at = object.len() / (PROBE_COUNT + 1) * (n + 1);
        let end = object.len().min(at + PROBE_BYTES);
        object
            .read(at..end, RequestReason::Index)?
            .hash(&mut hasher);
    }
    Ok(hasher.finish())
}
